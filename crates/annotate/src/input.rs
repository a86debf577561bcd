//! A buffered input whose buffer grows until it holds a complete record.

use std::io::{self, ErrorKind, Read};
use std::ops::Range;

/// The default number of bytes to request at once.
pub(crate) const CHUNK: usize = 256 << 10;

/// While fewer bytes are buffered, a partial record is decoded again after every read, so that rows of a slow pipe are
/// written as they arrive. Beyond, the data must double first, so that reading takes linear time.
const EAGER: usize = 64 << 10;

/// The maximum length of a record in bytes. It bounds the memory that a hostile input can claim.
pub(crate) const MAX_RECORD: usize = 16 << 20;

/// The byte order mark of UTF-8.
const BOM: &[u8] = b"\xef\xbb\xbf";

#[derive(Debug)]
pub(crate) struct Input<R> {
    inner: R,
    buf: Vec<u8>,
    start: usize,
    end: usize,
    eof: bool,
    /// The size of the last read if it returned less than requested: the program at the other end may be waiting.
    short: Option<usize>,
    /// A read error that is returned after the bytes before it have been processed.
    failed: Option<io::Error>,
    chunk: usize,
    /// Whether a read goes on until the buffer is full.
    fills: bool,
}

impl<R: Read> Input<R> {
    /// An input that requests `chunk` bytes at once, usually [`CHUNK`]. If it fills, it waits for all of them.
    pub(crate) fn new(inner: R, chunk: usize, fills: bool) -> Self {
        let (buf, short, failed) = (vec![0; chunk], None, None);
        Self { inner, buf, start: 0, end: 0, eof: false, short, failed, chunk, fills }
    }

    /// The number of bytes that are requested at once.
    pub(crate) fn chunk(&self) -> usize {
        self.chunk
    }

    /// The bytes that were read but not consumed.
    pub(crate) fn data(&self) -> &[u8] {
        &self.buf[self.start..self.end]
    }

    pub(crate) fn consume(&mut self, bytes: usize) {
        self.start = (self.start + bytes).min(self.end);
    }

    /// Consumes and returns a byte order mark, which is not part of the first name or address. Returns an empty slice
    /// if there is none.
    pub(crate) fn mark(&mut self) -> io::Result<&'static [u8]> {
        while self.data().len() < BOM.len() && BOM.starts_with(self.data()) && !self.at_end() {
            self.more()?;
        }
        if !self.data().starts_with(BOM) {
            return Ok(&[]);
        }
        self.consume(BOM.len());
        Ok(BOM)
    }

    /// Whether [`Input::data`] is all that remains.
    pub(crate) fn at_end(&self) -> bool {
        self.eof
    }

    /// Whether the last read returned less than requested.
    pub(crate) fn is_slow(&self) -> bool {
        self.short.is_some()
    }

    /// Whether the last read returned less than requested and less than `bytes`: the other end may be a person, or a
    /// program that writes line by line.
    pub(crate) fn is_very_slow(&self, bytes: usize) -> bool {
        self.short.is_some_and(|short| short < bytes)
    }

    /// Swaps the buffer with `buf`, after copying all data but the first `used` bytes to `buf`. Returns the range of
    /// these first bytes in the old buffer, which is then in `buf`.
    pub(crate) fn exchange(&mut self, used: usize, buf: &mut Vec<u8>) -> Range<usize> {
        let used = self.start..(self.start + used).min(self.end);
        let rest = &self.buf[used.end..self.end];
        if buf.len() < rest.len() {
            buf.resize(rest.len(), 0);
        }
        buf[..rest.len()].copy_from_slice(rest);
        (self.start, self.end) = (0, rest.len());
        std::mem::swap(&mut self.buf, buf);
        used
    }

    /// Reads more because the data has no complete record. Returns `false` if the record would become too long.
    pub(crate) fn more(&mut self) -> io::Result<bool> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let have = self.end - self.start;
        if have > MAX_RECORD {
            return Ok(false);
        }
        let want = if have < EAGER { have + 1 } else { have * 2 };
        self.buf.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, have);
        // One chunk more than wanted, so that no read has only a few bytes of space.
        if self.buf.len() < want + self.chunk {
            self.buf.resize(want + self.chunk, 0);
        }
        // A fixed limit, so that the sizes of reads do not affect whether a record is too long.
        let limit = self.buf.len().min(MAX_RECORD + 1);
        let want = if self.fills { limit } else { want.min(limit) };
        while self.end < want && !self.eof {
            let space = &mut self.buf[self.end..limit];
            let requested = space.len();
            match self.inner.read(space) {
                Ok(0) => self.eof = true,
                Ok(n) => {
                    self.end += n.min(requested);
                    self.short = (n < requested).then_some(n);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if self.end > have => {
                    self.failed = Some(error);
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns one byte per read, as a slow pipe may do.
    struct Drip<'a>(&'a [u8]);

    impl Read for Drip<'_> {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            let n = self.0.len().min(buf.len()).min(1);
            buf[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    #[test]
    fn reads_on_and_ends() {
        let mut input = Input::new(Drip(b"abc"), CHUNK, false);
        assert!(input.more().unwrap());
        assert_eq!(input.data(), b"a");
        assert!(input.more().unwrap());
        input.consume(1);
        assert_eq!(input.data(), b"b");
        assert!(input.more().unwrap() && input.more().unwrap());
        assert_eq!(input.data(), b"bc");
        assert!(input.at_end());
    }

    #[test]
    fn fills_the_buffer_however_slow_the_input_is() {
        let mut input = Input::new(Drip(b"abcdefgh"), 4, true);
        assert!(input.more().unwrap());
        assert_eq!(input.data(), b"abcde");
        input.consume(4);
        assert!(input.more().unwrap());
        assert!(input.data().len() >= 4 && input.data().starts_with(b"e"));
    }

    #[test]
    fn an_endless_record_is_refused() {
        let mut input = Input::new(io::repeat(b'x'), CHUNK, false);
        let mut reads = 0;
        while input.more().unwrap() {
            reads += 1;
            assert!(reads < 100, "reading is not linear");
        }
        assert!(input.data().len() <= 4 * MAX_RECORD);
    }
}
