//! One input on its way.

use std::io::{Read, Write};

use super::Annotator;
use super::process::Process;
use crate::input::{Input, MAX_RECORD};
use crate::{AnnotateError, LogFormat, Summary};

/// Bytes that tell whether an input is text.
pub(super) const TEXT: u64 = 8 << 10;

/// Reads an input and passes its blocks on.
pub(super) struct Run<'r> {
    annotator: &'r Annotator,
    pub(super) process: Process<'r>,
    /// Behind which byte the rest may be left to several threads; `None` if it may not.
    parts_from: Option<u64>,
    /// What is read before the first row, and is no part of it.
    mark: u64,
    pub(super) bytes_written: u64,
    out: Vec<u8>,
}

/// How reading ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progressed {
    /// All was read and written.
    All,
    /// The rest may be left to several threads.
    Begun,
}

impl<'r> Run<'r> {
    pub(super) fn new(
        annotator: &'r Annotator,
        parts_from: Option<u64>,
    ) -> Result<Self, AnnotateError> {
        let process = Process::new(annotator)?;
        Ok(Self { annotator, process, parts_from, mark: 0, bytes_written: 0, out: Vec::new() })
    }

    /// Reads to the end, or to where several threads may go on.
    pub(super) fn all<R: Read>(
        &mut self,
        input: &mut Input<R>,
        output: &mut impl Write,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Progressed, AnnotateError> {
        if self.annotator.format != LogFormat::Pcap {
            let mark = input.mark().map_err(AnnotateError::Read)?;
            self.mark = mark.len() as u64;
            self.out.extend_from_slice(mark);
            self.write(output)?;
        }
        loop {
            let end = input.at_end();
            // The call at the very end tells decoders of an input without rows.
            if end || !input.data().is_empty() {
                // Rows before a byte that no text has are rows; what comes then is not read.
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
        output.flush().map_err(AnnotateError::Write)?;
        self.process.check_end()?;
        Ok(Progressed::All)
    }

    /// Bytes read and passed on.
    fn bytes_read(&self) -> u64 {
        self.mark + self.process.done.bytes
    }

    /// The record behind so many lines is too long.
    pub(super) fn too_long(&self, lines: u64) -> AnnotateError {
        let line = self.process.done.lines + lines + 1;
        AnnotateError::TooLong { line, limit: MAX_RECORD }
    }

    /// The place of a zero byte among the first of an input of text.
    fn zero(&self, data: &[u8]) -> Option<usize> {
        let left = TEXT.saturating_sub(self.bytes_read());
        if self.annotator.format == LogFormat::Pcap || left == 0 {
            return None;
        }
        memchr::memchr(0, &data[..data.len().min(left as usize)])
    }

    /// Writes what was made of the input.
    fn write(&mut self, output: &mut impl Write) -> Result<(), AnnotateError> {
        output.write_all(&self.out).map_err(AnnotateError::Write)?;
        self.bytes_written += self.out.len() as u64;
        self.out.clear();
        Ok(())
    }

    /// What was done so far.
    pub(super) fn finish(self) -> Summary {
        let (bytes_read, bytes_written) = (self.bytes_read(), self.bytes_written);
        Summary { bytes_read, bytes_written, ..self.process.summary() }
    }
}
