//! A block of rows between decoding and writing.

use fibula_flows::ExportCounts;

use crate::address::Address;
use crate::clock::Clock;
use crate::fault::Fault;
#[cfg(test)]
use crate::pipeline::answers::Without;
use crate::pipeline::keys::{Cells, KeySink};

/// The maximum number of rows in a block: enough for full lookup batches, small enough that a block with its
/// addresses, hops and output leaves most of the second-level cache to the table.
pub(crate) const MAX_ROWS: usize = 1024;

/// How a row is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowKind {
    /// Values are added for each of its addresses.
    Annotate,
    /// Like `Annotate`, but without a separator before the first value, because the JSON object is empty.
    AnnotateEmpty,
    /// The names of the added columns are added.
    Header,
    /// The row is copied unchanged.
    Pass,
}

/// A row, as byte offsets in its source: the output is `start..insert`, the added values, then `insert..end`. Rows
/// are contiguous: each begins where the previous one ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) start: usize,
    pub(crate) insert: usize,
    /// The end of the row, after its line end.
    pub(crate) end: usize,
    /// Number of empty fields to write first, so that the added fields are aligned with the header.
    pub(crate) pad: usize,
    pub(crate) kind: RowKind,
}

/// The counters of decoders.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) rows: u64,
    pub(crate) damaged: u64,
    pub(crate) truncated: u64,
    pub(crate) cut: u64,
    pub(crate) unknown_links: u64,
    pub(crate) exports: ExportCounts,
    pub(crate) stored_blocks: u64,
    pub(crate) fragments: u64,
    pub(crate) other_packets: u64,
}

impl Tally {
    /// Adds the counts of `other`.
    pub(crate) fn merge(&mut self, other: &Self) {
        let Self {
            rows,
            damaged,
            truncated,
            cut,
            unknown_links,
            exports,
            stored_blocks,
            fragments,
            other_packets,
        } = other;
        self.rows += rows;
        self.damaged += damaged;
        self.truncated += truncated;
        self.cut += cut;
        self.unknown_links += unknown_links;
        self.exports.add(exports);
        self.stored_blocks += stored_blocks;
        self.fragments += fragments;
        self.other_packets += other_packets;
    }
}

/// Rows and their address cells, row by row: with `k` address columns, the `i`-th annotated row has
/// the cells `k * i..k * (i + 1)`.
#[derive(Debug, Default)]
pub(crate) struct Block<K = Cells> {
    pub(crate) rows: Vec<Row>,
    pub(crate) keys: K,
    /// Number of cells so far.
    pub(crate) cells: usize,
    /// The sum of [`Row::pad`] over all rows.
    pub(crate) pads: usize,
    /// Rows that a decoder generates because the input has no text (packets).
    pub(crate) text: Vec<u8>,
    pub(crate) tally: Tally,
    /// Rows that it may have beyond [`MAX_ROWS`].
    pub(crate) more_rows: usize,
    /// Whether a cell with only digits is an address.
    pub(crate) integers: bool,
    /// The first cell of the input that is not an address.
    pub(crate) unparsable: First,
    /// The first damaged record of the input.
    pub(crate) damaged: First,
    /// The first packet of a link type that is not known.
    pub(crate) unlinked: First,
    /// Reads the times of rows, if the table has several dates.
    pub(crate) clock: Option<Clock>,
}

/// Keeps the first fault of a kind until it is taken.
#[derive(Debug, Default)]
pub(crate) struct First {
    fault: Option<Fault>,
    met: bool,
}

impl First {
    pub(crate) fn meet(
        &mut self,
        strict: bool,
        fault: impl FnOnce() -> Fault,
    ) -> Result<(), Fault> {
        if strict {
            return Err(fault());
        }
        if !self.met {
            self.met = true;
            self.fault = Some(fault());
        }
        Ok(())
    }

    pub(crate) fn take(&mut self) -> Option<Fault> {
        self.fault.take()
    }
}

/// The text is not an address.
#[derive(Debug)]
pub(crate) struct NotAnAddress;

impl<K: KeySink> Block<K> {
    /// Empties the block, but keeps the tally.
    pub(crate) fn clear(&mut self) {
        self.rows.clear();
        self.keys.clear();
        self.cells = 0;
        self.pads = 0;
        self.text.clear();
        if let Some(clock) = &mut self.clock {
            clock.rows.clear();
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.rows.len() >= MAX_ROWS + self.more_rows
    }

    /// Adds a cell with this text. Whitespace around the address is ignored.
    #[inline]
    pub(crate) fn cell(&mut self, text: &[u8]) -> Result<(), NotAnAddress> {
        let cell = self.next();
        self.keys.text(cell, text, self.integers)
    }

    /// The number of the next cell. A block has fewer than 2^32 cells: those of its rows, which are in memory.
    #[inline(always)]
    fn next(&mut self) -> u32 {
        let cell = self.cells as u32;
        self.cells += 1;
        cell
    }

    /// Adds a cell with an IPv4 address.
    #[inline(always)]
    pub(crate) fn v4(&mut self, addr: u32) {
        let cell = self.next();
        self.keys.v4(cell, addr);
    }

    /// Adds a cell with an address.
    #[inline]
    pub(crate) fn address(&mut self, address: Address) {
        let cell = self.next();
        self.keys.address(cell, address);
    }

    /// Adds an empty cell.
    pub(crate) fn empty(&mut self) {
        let cell = self.next();
        self.keys.empty(cell);
    }

    /// Sets the time of the row whose cells were just added.
    #[inline]
    pub(crate) fn time(&mut self, at: usize, text: &[u8], strict: bool) -> Result<(), Fault> {
        let Some(clock) = &mut self.clock else { return Ok(()) };
        clock.row(text, strict, || Fault::Time { at, text: text.to_vec() })
    }

    /// Completes the row whose cells were just added.
    #[inline]
    pub(crate) fn row(&mut self, row: Row) {
        let has_cells = matches!(row.kind, RowKind::Annotate | RowKind::AnnotateEmpty);
        if has_cells {
            self.keys.row();
        }
        self.keyed_row(row);
    }

    /// Adds a row whose keys are complete.
    #[inline]
    pub(crate) fn keyed_row(&mut self, row: Row) {
        let has_cells = matches!(row.kind, RowKind::Annotate | RowKind::AnnotateEmpty);
        self.tally.rows += u64::from(has_cells);
        self.pads += row.pad;
        self.rows.push(row);
    }

    /// Reports a cell that is not an address: an error if strict; otherwise the first one is kept.
    pub(crate) fn bad_cell(
        &mut self,
        strict: bool,
        fault: impl FnOnce() -> Fault,
    ) -> Result<(), Fault> {
        self.unparsable.meet(strict, fault)
    }

    /// Reports a damaged record: an error if strict; otherwise it is counted and the first one is kept.
    pub(crate) fn bad_record(
        &mut self,
        strict: bool,
        fault: impl FnOnce() -> Fault,
    ) -> Result<(), Fault> {
        self.tally.damaged += 1;
        self.damaged.meet(strict, fault)
    }

    /// Adds a row that is copied unchanged.
    pub(crate) fn pass(&mut self, start: usize, end: usize) {
        self.rows.push(Row { start, insert: end, end, pad: 0, kind: RowKind::Pass });
    }
}

#[cfg(test)]
impl Block {
    /// The number of cells without an address for this reason.
    pub(crate) fn count(&self, why: Without) -> usize {
        self.keys.others.iter().filter(|other| other.1 == why).count()
    }
}
