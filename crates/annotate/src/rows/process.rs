//! Converts the bytes of an input to those of the output, block by block.

use super::work::{Stage, Work};
use crate::block::{Block, First};
use crate::clock::Clock;
use crate::fault::Fault;
use crate::formats::Decode;
use crate::formats::pcap::Position;
use crate::{AnnotateError, Column, Summary};

/// Passes an input, or parts of it, from stage to stage.
pub(super) struct Process<'r, W: Work> {
    work: &'r W,
    decoder: Box<dyn Decode<W::Keys>>,
    block: Block<W::Keys>,
    /// The stages after the decoder. They are created at the first row, when the columns are known.
    stages: Option<W::Stages<'r>>,
    pub(super) done: Done,
}

/// The lines, bytes and first faults of an input, or of a part of it.
#[derive(Debug, Default)]
pub(super) struct Done {
    /// Number of line ends.
    pub(super) lines: u64,
    pub(super) bytes: u64,
    /// The first cell that is not an address.
    unparsable: Option<AnnotateError>,
    /// The first damaged record.
    damaged: Option<AnnotateError>,
    /// The first time that cannot be read.
    untimed: Option<AnnotateError>,
    /// The first packet of a link type that is not known.
    unlinked: Option<AnnotateError>,
}

impl Done {
    /// Adds the results of the next part.
    pub(super) fn extend(&mut self, next: Self) {
        let Self { lines, bytes, unparsable, damaged, untimed, unlinked } = next;
        let later = |fault: AnnotateError| fault.behind(self.lines, self.bytes);
        self.unparsable = self.unparsable.take().or(unparsable.map(later));
        self.damaged = self.damaged.take().or(damaged.map(later));
        self.untimed = self.untimed.take().or(untimed.map(later));
        self.unlinked = self.unlinked.take().or(unlinked);
        self.lines += lines;
        self.bytes += bytes;
    }
}

impl<'r, W: Work> Process<'r, W> {
    pub(super) fn new(work: &'r W) -> Result<Self, AnnotateError> {
        let clock = work.clock()?;
        Ok(Self::with(work, work.decoder()?, clock))
    }

    fn with(work: &'r W, decoder: Box<dyn Decode<W::Keys>>, clock: Option<Clock>) -> Self {
        let (integers, more_rows) = (work.options().integers, work.parting().more_rows);
        let block = Block { integers, clock, more_rows, ..Block::default() };
        Self { work, decoder, block, stages: None, done: Done::default() }
    }

    /// A process for other parts of the input; `None` if the input cannot be split, or has had no rows so far.
    pub(super) fn fork(&self) -> Option<Self> {
        let clock = self.block.clock.as_ref().map(Clock::fork);
        let known = self.stages.is_some();
        known.then(|| Some(Self::with(self.work, self.decoder.fork()?, clock))).flatten()
    }

    /// The end of the last complete record in the data, where a part may end.
    pub(super) fn cut(&mut self, data: &[u8]) -> usize {
        self.decoder.cut(data)
    }

    /// Where the next part begins, if the records before it decide how it is read.
    pub(super) fn position(&self) -> Option<Position> {
        self.decoder.position()
    }

    /// Rows annotated so far.
    pub(super) fn rows(&self) -> u64 {
        self.block.tally.rows
    }

    /// Annotates a block from the beginning of the data and appends its rows to the output; on failure, the rows before
    /// the fault. Returns the number of bytes consumed.
    pub(super) fn block(
        &mut self,
        data: &[u8],
        end: bool,
        out: &mut Vec<u8>,
    ) -> Result<usize, AnnotateError> {
        self.block.clear();
        let decoded = self.decoder.decode(data, end, &mut self.block);
        let mut staged = Ok(());
        if !self.block.rows.is_empty() {
            let stages = self.stages.get_or_insert_with(|| self.work.stages(&*self.decoder));
            let data = (!self.decoder.writes_rows()).then_some(data);
            staged = stages.block(&mut self.block, data, out);
        }
        if let Some(fault) = self.block.unparsable.take() {
            self.done.unparsable = Some(self.error(fault, data));
        }
        if let Some(fault) = self.block.damaged.take() {
            self.done.damaged = Some(self.error(fault, data));
        }
        if let Some(fault) = self.block.unlinked.take() {
            self.done.unlinked = Some(self.error(fault, data));
        }
        let unreadable = self.block.clock.as_mut().and_then(|clock| clock.unreadable.take());
        if let Some(fault) = unreadable {
            self.done.untimed = Some(self.error(fault, data));
        }
        staged.map_err(|fault| self.error(fault, data))?;
        let used = decoded.map_err(|fault| self.error(fault, data))?;
        self.done.lines += count_lines(&data[..used]);
        self.done.bytes += used as u64;
        Ok(used)
    }

    /// Annotates a part that begins and ends with a record, and appends its rows to the output. Lines and bytes are
    /// counted from the beginning of the part.
    pub(super) fn part(
        &mut self,
        position: Option<Position>,
        mut data: &[u8],
        out: &mut Vec<u8>,
    ) -> (Done, Result<(), AnnotateError>) {
        (self.block.unparsable, self.block.damaged) = (First::default(), First::default());
        self.block.unlinked = First::default();
        if let Some(clock) = &mut self.block.clock {
            clock.unreadable = First::default();
        }
        if let Some(position) = position {
            self.decoder.seek(position);
        }
        let mut result = Ok(());
        while !data.is_empty() {
            match self.block(data, true, out) {
                Ok(used) => data = &data[used..],
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        (std::mem::take(&mut self.done), result)
    }

    /// Converts a fault to an error with its line or byte.
    fn error(&self, fault: Fault, data: &[u8]) -> AnnotateError {
        let line = |at: usize| self.done.lines + count_lines(&data[..at]) + 1;
        match fault {
            Fault::Options(error) => error,
            Fault::Time { at, text } => AnnotateError::Time {
                line: line(at),
                column: self.work.options().time.as_ref().map_or(String::new(), Column::to_string),
                text: String::from_utf8_lossy(&text).chars().take(60).collect(),
            },
            Fault::Row { at, what } => AnnotateError::Row { line: line(at), what },
            Fault::Record { at, what } => AnnotateError::Record { line: line(at), what },
            Fault::Bytes { at, what } => {
                AnnotateError::Bytes { offset: self.done.bytes + at as u64, what }
            }
            Fault::OpenQuote { at } => AnnotateError::OpenQuote { line: line(at) },
            Fault::OpenArray { at } => AnnotateError::OpenArray { line: line(at) },
            Fault::Packet { at, number, what } => {
                AnnotateError::Packet { packet: number, offset: self.done.bytes + at as u64, what }
            }
            Fault::Export { at, number, fault } => {
                AnnotateError::Export { number, offset: self.done.bytes + at as u64, fault }
            }
            Fault::Stored { fault } => AnnotateError::Stored { fault },
            Fault::Link { number, link } => AnnotateError::LinkType { packet: number, link },
            Fault::Unparsable { at, slot, text } => AnnotateError::Unparsable {
                line: line(at),
                column: self.decoder.names().get(slot).cloned().unwrap_or_default(),
                text: String::from_utf8_lossy(&text).chars().take(60).collect(),
            },
        }
    }

    /// Adds the counts of `other`.
    pub(super) fn merge(&mut self, other: &Self) {
        self.block.tally.merge(&other.block.tally);
        if let (Some(ours), Some(theirs)) = (&mut self.block.clock, &other.block.clock) {
            ours.before += theirs.before;
            ours.untimed += theirs.untimed;
        }
        if let (Some(ours), Some(theirs)) = (&mut self.stages, &other.stages) {
            ours.merge(theirs);
        }
    }

    /// Returns the error that is known only at the end of the input.
    pub(super) fn check_end(&self) -> Result<(), AnnotateError> {
        self.decoder.finish()
    }

    /// The summary of the input so far.
    pub(super) fn summary(&self) -> Summary {
        let tally = &self.block.tally;
        let clock = self.block.clock.as_ref();
        let (before, untimed) = clock.map_or((0, 0), |clock| (clock.before, clock.untimed));
        let text = |fault: &Option<AnnotateError>| fault.as_ref().map(ToString::to_string);
        let summary = Summary {
            before,
            untimed,
            first_untimed: text(&self.done.untimed),
            rows: tally.rows,
            damaged: tally.damaged,
            truncated: tally.truncated,
            cut: tally.cut,
            unknown_links: tally.unknown_links,
            exports: tally.exports,
            stored_blocks: tally.stored_blocks,
            fragments: tally.fragments,
            other_packets: tally.other_packets,
            first_unparsable: text(&self.done.unparsable),
            first_damaged: text(&self.done.damaged),
            first_unknown_link: text(&self.done.unlinked),
            columns: self.decoder.names().to_vec(),
            ..Summary::default()
        };
        match &self.stages {
            Some(stages) => stages.complete(summary),
            None => summary,
        }
    }

    /// The summary of the input, and the stages with their counts.
    pub(super) fn finish(self) -> (Summary, Option<W::Stages<'r>>) {
        (self.summary(), self.stages)
    }
}

fn count_lines(data: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', data).count() as u64
}
