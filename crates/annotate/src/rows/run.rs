//! One input on its way.

use std::io::{Read, Write};

use super::Annotator;
use super::count::Counter;
use super::emit::Emitter;
use super::lookup::LookUp;
use crate::block::{Block, Tally};
use crate::clock::Clock;
use crate::fault::Fault;
use crate::formats::{LogDecoder, decoder};
use crate::input::{Input, MAX_RECORD};
use crate::{AnnotateError, Column, LogFormat, Summary};

/// Bytes that tell whether an input is text.
const TEXT: u64 = 8 << 10;

/// Reads an input and passes its blocks from stage to stage.
pub(super) struct Run<'r> {
    annotator: &'r Annotator,
    decoder: Box<dyn LogDecoder>,
    block: Block,
    /// What comes behind the decoder: made with the first row, which tells the address columns.
    stages: Option<Stages<'r>>,
    /// Line ends consumed.
    lines: u64,
    bytes_read: u64,
    bytes_written: u64,
    first_unparsable: Option<String>,
    first_damaged: Option<String>,
    first_untimed: Option<String>,
}

struct Stages<'r> {
    lookup: LookUp<'r>,
    counter: Counter<'r>,
    emitter: Emitter<'r>,
}

impl<'r> Stages<'r> {
    fn new(annotator: &'r Annotator, decoder: &dyn LogDecoder) -> Self {
        let (table, additions) = (&*annotator.table, &*annotator.additions);
        let (names, style) = (decoder.names(), decoder.style());
        Self {
            lookup: LookUp::new(table, additions, names, &annotator.options),
            counter: Counter::new(table, additions, names, annotator.options.top),
            emitter: Emitter::new(table, additions, names, style, &annotator.options),
        }
    }
}

impl<'r> Run<'r> {
    pub(super) fn new(annotator: &'r Annotator) -> Result<Self, AnnotateError> {
        let Annotator { format, options, additions, .. } = annotator;
        Ok(Self {
            annotator,
            decoder: decoder(*format, options, additions)?,
            block: Block {
                integers: options.integers,
                clock: Clock::new(&*annotator.table, options)?,
                ..Block::default()
            },
            stages: None,
            lines: 0,
            bytes_read: 0,
            bytes_written: 0,
            first_unparsable: None,
            first_damaged: None,
            first_untimed: None,
        })
    }

    /// Reads to the end.
    pub(super) fn all<R: Read>(
        &mut self,
        input: &mut Input<R>,
        output: &mut impl Write,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), AnnotateError> {
        if self.annotator.format != LogFormat::Pcap {
            let mark = input.mark().map_err(AnnotateError::Read)?;
            self.bytes_read += mark.len() as u64;
            write(mark, output, &mut self.bytes_written)?;
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
                let used = self.block(data, end, output)?;
                progress(self.block.tally.rows);
                if let Some(at) = zero.filter(|_| used == 0) {
                    return Err(AnnotateError::Binary { offset: self.bytes_read + at as u64 });
                }
                self.bytes_read += used as u64;
                input.consume(used);
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
                return Err(AnnotateError::TooLong { line: self.lines + 1, limit: MAX_RECORD });
            }
        }
        output.flush().map_err(AnnotateError::Write)?;
        self.decoder.finish()
    }

    /// The place of a zero byte among the first of an input of text.
    fn zero(&self, data: &[u8]) -> Option<usize> {
        let left = TEXT.saturating_sub(self.bytes_read);
        if self.annotator.format == LogFormat::Pcap || left == 0 {
            return None;
        }
        memchr::memchr(0, &data[..data.len().min(left as usize)])
    }

    /// Annotates a block from the beginning of the data; returns how much of it was consumed.
    fn block(
        &mut self,
        data: &[u8],
        end: bool,
        output: &mut impl Write,
    ) -> Result<usize, AnnotateError> {
        self.block.clear();
        let decoded = self.decoder.decode(data, end, &mut self.block);
        let block = &self.block;
        if !block.rows.is_empty() {
            let stages =
                self.stages.get_or_insert_with(|| Stages::new(self.annotator, &*self.decoder));
            let answers = stages.lookup.block(block);
            stages.counter.block(block, answers);
            let source = if self.decoder.writes_rows() { &block.text } else { data };
            let rows = stages.emitter.block(source, block, answers);
            write(rows, output, &mut self.bytes_written)?;
        }
        if let Some(fault) = self.block.unparsable.take() {
            self.first_unparsable = Some(self.error(fault, data).to_string());
        }
        if let Some(fault) = self.block.damaged.take() {
            self.first_damaged = Some(self.error(fault, data).to_string());
        }
        let unreadable = self.block.clock.as_mut().and_then(|clock| clock.unreadable.take());
        if let Some(fault) = unreadable {
            self.first_untimed = Some(self.error(fault, data).to_string());
        }
        let used = decoded.map_err(|fault| self.error(fault, data))?;
        self.lines += count_lines(&data[..used]);
        Ok(used)
    }

    /// The fault with its place in the input.
    fn error(&self, fault: Fault, data: &[u8]) -> AnnotateError {
        let line = |at: usize| self.lines + count_lines(&data[..at]) + 1;
        match fault {
            Fault::Options(error) => error,
            Fault::Time { at, text } => AnnotateError::Time {
                line: line(at),
                column: self
                    .annotator
                    .options
                    .time
                    .as_ref()
                    .map_or(String::new(), Column::to_string),
                text: String::from_utf8_lossy(&text).chars().take(60).collect(),
            },
            Fault::Record { at, what } => AnnotateError::Record { line: line(at), what },
            Fault::Packet { at, number, what } => {
                AnnotateError::Packet { packet: number, offset: self.bytes_read + at as u64, what }
            }
            Fault::Unparsable { at, slot, text } => AnnotateError::Unparsable {
                line: line(at),
                column: self.decoder.names().get(slot).cloned().unwrap_or_default(),
                text: String::from_utf8_lossy(&text).chars().take(60).collect(),
            },
        }
    }

    /// What was done so far.
    pub(super) fn finish(self) -> Summary {
        let Tally { rows, unparsable, empty, damaged, truncated, cut } = self.block.tally;
        let (before, untimed) =
            self.block.clock.as_ref().map_or((0, 0), |clock| (clock.before, clock.untimed));
        let summary = Summary {
            before,
            untimed,
            first_untimed: self.first_untimed,
            rows,
            unparsable,
            empty,
            damaged,
            truncated,
            cut,
            first_unparsable: self.first_unparsable,
            first_damaged: self.first_damaged,
            columns: self.decoder.names().to_vec(),
            bytes_read: self.bytes_read,
            bytes_written: self.bytes_written,
            ..Summary::default()
        };
        match self.stages {
            Some(stages) => {
                let left_out = stages.emitter.left_out();
                Summary { left_out, ..stages.counter.complete(summary) }
            }
            None => summary,
        }
    }
}

fn write(bytes: &[u8], output: &mut impl Write, written: &mut u64) -> Result<(), AnnotateError> {
    output.write_all(bytes).map_err(AnnotateError::Write)?;
    *written += bytes.len() as u64;
    Ok(())
}

fn count_lines(data: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', data).count() as u64
}
