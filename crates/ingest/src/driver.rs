//! Connects input that arrives in pieces with a decoder of complete records.

use std::fmt;
use std::io::{self, ErrorKind, Read};

use crate::{Decoder, Sink, StopReason, Tail};

/// Number of bytes for each read.
const BLOCK: usize = 256 << 10;

/// Feeds a [`Decoder`] from an input that arrives in pieces, pauses, and may break off anywhere. It keeps the bytes
/// that the decoder has not consumed, up to a limit.
///
/// ```
/// use fibula_ingest::{Collected, Driver, Tail, text::TextDecoder};
///
/// let (mut driver, mut sink) = (Driver::new(Box::new(TextDecoder::default()), 1 << 20), Collected::default());
/// driver.push(b"10.0.0.0/8 1\n10.0", &mut sink)?;
/// driver.push(b".0.0/9 2\n10.0.0.0/1", &mut sink)?;
/// // The connection broke off, so the last line is not trusted.
/// driver.finish(Tail::Cut, &mut sink)?;
/// assert_eq!(sink.lines, ["10.0.0.0/8 = 1", "10.0.0.0/9 = 2"]);
/// assert_eq!(sink.damage[0].what, "the last line is cut off");
/// # Ok::<(), fibula_ingest::DriveError>(())
/// ```
pub struct Driver {
    decoder: Box<dyn Decoder>,
    /// `buf[start..end]` has not been consumed by the decoder.
    buf: Vec<u8>,
    start: usize,
    end: usize,
    limit: usize,
    /// Bytes that the decoder has consumed.
    offset: u64,
}

/// The result of [`Driver::pull`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PullResult {
    /// This number of bytes was read and decoded.
    Bytes(usize),
    /// No data now: the reader would block, timed out, or was interrupted.
    Paused,
    /// The end of the input.
    End,
}

impl Driver {
    /// Makes a driver for this decoder. An input with more than `limit` bytes without a complete record ends with
    /// [`DriveError::TooLong`].
    pub fn new(decoder: Box<dyn Decoder>, limit: usize) -> Self {
        Self { decoder, buf: Vec::new(), start: 0, end: 0, limit, offset: 0 }
    }

    /// Decodes the next bytes of the input.
    ///
    /// # Errors
    /// [`DriveError::Stopped`] and [`DriveError::TooLong`]. The driver must not be used again.
    pub fn push(&mut self, bytes: &[u8], sink: &mut dyn Sink) -> Result<(), DriveError> {
        if !self.pending().is_empty() {
            self.keep(bytes)?;
            return self.decode(sink);
        }
        let taken = self.decoder.decode(bytes, Tail::More, sink)?.min(bytes.len());
        self.offset += taken as u64;
        self.keep(&bytes[taken..])?;
        self.check_limit()
    }

    /// Reads once and decodes the data.
    ///
    /// # Errors
    /// [`DriveError::Io`] if the reader fails; the driver can still be [finished](Driver::finish). Otherwise the
    /// errors of [`Driver::push`].
    pub fn pull(
        &mut self,
        input: &mut dyn Read,
        sink: &mut dyn Sink,
    ) -> Result<PullResult, DriveError> {
        if self.buf.len() - self.end < BLOCK / 2 {
            self.make_room(BLOCK)?;
        }
        match input.read(&mut self.buf[self.end..]) {
            Ok(0) => Ok(PullResult::End),
            Ok(read) => {
                self.end += read;
                self.decode(sink)?;
                Ok(PullResult::Bytes(read))
            }
            Err(error) if is_pause(&error) => Ok(PullResult::Paused),
            Err(error) => Err(DriveError::Io(error)),
        }
    }

    /// Decodes the rest at the end of the input. Returns the number of bytes that belonged to an incomplete record.
    /// In formats whose records have a length, a number above 0 means that the input is truncated.
    ///
    /// # Errors
    /// [`DriveError::Stopped`].
    ///
    /// # Panics
    /// In debug builds, if `tail` is [`Tail::More`].
    pub fn finish(&mut self, tail: Tail, sink: &mut dyn Sink) -> Result<usize, DriveError> {
        debug_assert!(tail.is_last());
        let left = self.pending().len();
        let taken = self.decoder.decode(&self.buf[self.start..self.end], tail, sink)?;
        self.consume(taken);
        Ok(left)
    }

    /// Whether the decoder holds an update back; see [`Decoder::is_holding`].
    pub fn is_holding(&self) -> bool {
        self.decoder.is_holding()
    }

    /// Passes held-back updates to the sink; see [`Decoder::flush`].
    pub fn flush(&mut self, sink: &mut dyn Sink) {
        self.decoder.flush(sink);
    }

    /// Number of bytes that the decoder has consumed.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Number of records that the decoder has seen.
    pub fn records(&self) -> u64 {
        self.decoder.records()
    }

    /// The bytes that the decoder has not consumed.
    pub fn pending(&self) -> &[u8] {
        &self.buf[self.start..self.end]
    }

    fn decode(&mut self, sink: &mut dyn Sink) -> Result<(), DriveError> {
        let taken = self.decoder.decode(&self.buf[self.start..self.end], Tail::More, sink)?;
        self.consume(taken);
        self.check_limit()
    }

    fn consume(&mut self, bytes: usize) {
        let bytes = bytes.min(self.pending().len());
        self.start += bytes;
        self.offset += bytes as u64;
    }

    fn check_limit(&self) -> Result<(), DriveError> {
        match self.pending().len() {
            bytes if bytes > self.limit => Err(DriveError::TooLong { bytes }),
            _ => Ok(()),
        }
    }

    fn keep(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.make_room(bytes.len())?;
        self.buf[self.end..self.end + bytes.len()].copy_from_slice(bytes);
        self.end += bytes.len();
        Ok(())
    }

    /// Makes room for so many bytes after the pending ones.
    fn make_room(&mut self, wanted: usize) -> io::Result<()> {
        if self.buf.len() - self.end >= wanted {
            return Ok(());
        }
        self.buf.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        // A decoder that consumes nothing waits for something large: the buffer grows in proportion, so
        // that the bytes that are moved and looked at again stay linear.
        if self.buf.len() - self.end < wanted {
            let len = self.end + wanted.max(self.end);
            self.buf.try_reserve(len - self.buf.len())?;
            self.buf.resize(len, 0);
        }
        Ok(())
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pending = self.pending().len();
        f.debug_struct("Driver")
            .field("offset", &self.offset)
            .field("pending", &pending)
            .finish_non_exhaustive()
    }
}

/// Whether a reader will have more later.
pub(crate) fn is_pause(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// The reason why a [`Driver`] stopped.
#[derive(Debug)]
#[non_exhaustive]
pub enum DriveError {
    /// The decoder was stopped.
    Stopped(StopReason),
    /// A record is longer than any valid record.
    TooLong {
        /// How many.
        bytes: usize,
    },
    /// The reader failed, or there is not enough memory for its data.
    Io(io::Error),
}

impl fmt::Display for DriveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped(stopped) => write!(f, "{stopped}"),
            Self::TooLong { bytes } => write!(f, "no record ends within {bytes} bytes"),
            Self::Io(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for DriveError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Stopped(stopped) => Some(stopped),
            Self::Io(error) => Some(error),
            Self::TooLong { .. } => None,
        }
    }
}

impl From<io::Error> for DriveError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<StopReason> for DriveError {
    fn from(stopped: StopReason) -> Self {
        Self::Stopped(stopped)
    }
}
