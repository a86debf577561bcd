//! Reads and annotates an input on one thread.

use std::io::{Read, Write};

use super::process::Process;
use super::work::Work;
use crate::input::{Input, MAX_RECORD};
use crate::{AnnotateError, Summary};

/// Number of bytes that are checked to see whether an input is text.
pub(super) const TEXT: u64 = 8 << 10;

/// Reads an input, annotates its blocks and writes the rows.
pub(super) struct Run<'r, W: Work> {
    work: &'r W,
    pub(super) process: Process<'r, W>,
    /// The number of bytes after which several threads may process the rest; `None` if they may not.
    parts_from: Option<u64>,
    /// The length of the byte order mark, which precedes the first row.
    mark: u64,
    pub(super) bytes_written: u64,
    out: Vec<u8>,
    /// Whether rows are held back, because there has been no address.
    holds: bool,
}

/// The maximum number of bytes that are held back.
const HELD: usize = 1 << 20;

/// How reading ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progressed {
    /// The whole input was read, and all rows were written.
    All,
    /// Several threads may process the rest.
    Begun,
}

impl<'r, W: Work> Run<'r, W> {
    pub(super) fn new(work: &'r W, parts_from: Option<u64>) -> Result<Self, AnnotateError> {
        let process = Process::new(work)?;
        let (holds, out) = (work.options().hold, Vec::new());
        Ok(Self { work, process, parts_from, mark: 0, bytes_written: 0, out, holds })
    }

    /// Reads to the end, or to a point from which several threads may continue.
    pub(super) fn all<R: Read>(
        &mut self,
        input: &mut Input<R>,
        output: &mut impl Write,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Progressed, AnnotateError> {
        let done = self.read(input, output, progress);
        let (format, scan) = (self.work.format(), self.work.options().scan);
        let is_refused = match done {
            Ok(Progressed::All) => self.process.summary().unfit(format, scan).is_some(),
            Ok(Progressed::Begun) => false,
            Err(_) => true,
        };
        if !(self.holds && is_refused) {
            self.holds = false;
            self.write(output)?;
        }
        if matches!(done, Ok(Progressed::All)) {
            output.flush().map_err(AnnotateError::Write)?;
            self.process.check_end()?;
        }
        done
    }

    fn read<R: Read>(
        &mut self,
        input: &mut Input<R>,
        output: &mut impl Write,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Progressed, AnnotateError> {
        if !self.work.format().is_binary() {
            let mark = input.mark().map_err(AnnotateError::Read)?;
            self.mark = mark.len() as u64;
            self.out.extend_from_slice(mark);
            self.write(output)?;
        }
        loop {
            let end = input.at_end();
            // The call at the end, possibly without data, lets decoders handle an input without rows.
            if end || !input.data().is_empty() {
                // Text contains no zero byte: only the rows before it are processed.
                let zero = self.zero(input.data());
                let (data, end) = match zero {
                    Some(at) => (&input.data()[..at], false),
                    None => (input.data(), end),
                };
                let done = self.process.block(data, end, &mut self.out);
                self.write(output)?;
                let used = done?;
                progress(self.process.rows());
                if let Some(at) = zero.filter(|_| used == 0) {
                    return Err(AnnotateError::Binary { offset: self.bytes_read() + at as u64 });
                }
                input.consume(used);
                if self.parts_from.is_some_and(|from| self.bytes_read() >= from) {
                    self.parts_from = None;
                    if !end && self.process.fork().is_some() {
                        return Ok(Progressed::Begun);
                    }
                }
                if used > 0 && !input.data().is_empty() {
                    continue;
                }
                if end {
                    debug_assert!(input.data().is_empty(), "a decoder left the end of the input");
                    break;
                }
            }
            if input.is_slow() {
                output.flush().map_err(AnnotateError::Write)?;
            }
            if !input.more().map_err(AnnotateError::Read)? {
                return Err(self.too_long(0));
            }
        }
        Ok(Progressed::All)
    }

    /// Writes the complete records of an input that cannot be read to its end.
    pub(super) fn complete_records<R: Read>(
        &mut self,
        input: &mut Input<R>,
        output: &mut impl Write,
    ) -> Result<(), AnnotateError> {
        loop {
            let done = self.process.block(input.data(), false, &mut self.out);
            self.write(output)?;
            match done? {
                0 => return Ok(()),
                used => input.consume(used),
            }
        }
    }

    /// Bytes read and processed.
    fn bytes_read(&self) -> u64 {
        self.mark + self.process.done.bytes
    }

    /// The error for a record that is too long, after `lines` further lines.
    pub(super) fn too_long(&self, lines: u64) -> AnnotateError {
        let line = self.process.done.lines + lines + 1;
        AnnotateError::TooLong { line, limit: MAX_RECORD }
    }

    /// The position of the first zero byte in `data`, if it is among the first [`TEXT`] bytes of a text input.
    fn zero(&self, data: &[u8]) -> Option<usize> {
        let left = TEXT.saturating_sub(self.bytes_read());
        if self.work.format().is_binary() || left == 0 {
            return None;
        }
        memchr::memchr(0, &data[..data.len().min(left as usize)])
    }

    /// Writes the rows in the buffer and empties it, unless rows are held back.
    fn write(&mut self, output: &mut impl Write) -> Result<(), AnnotateError> {
        self.holds = self.holds && self.out.len() < HELD && self.process.summary().addresses == 0;
        if self.holds {
            return Ok(());
        }
        output.write_all(&self.out).map_err(AnnotateError::Write)?;
        self.bytes_written += self.out.len() as u64;
        self.out.clear();
        Ok(())
    }

    /// The summary so far, and the stages with their counts.
    pub(super) fn finish(self) -> (Summary, Option<W::Stages<'r>>) {
        let (bytes_read, bytes_written) = (self.bytes_read(), self.bytes_written);
        let (summary, stages) = self.process.finish();
        (Summary { bytes_read, bytes_written, ..summary }, stages)
    }
}
