//! Files of nfdump's collectors.

use fibula_flows::{NfcapdDecoder, NfcapdStep};

use super::{Exports, RowSink, State};
use crate::block::{Block, MAX_ROWS};
use crate::fault::Fault;

/// A file, and how much of its data is held back.
#[derive(Debug, Default)]
pub(super) struct Stored {
    decoder: NfcapdDecoder,
    /// Bytes of the file's header that are not consumed.
    header: usize,
    /// Bytes of the block, as it is in the file, that are not consumed. A block has more records than rows are written
    /// at once: its bytes are consumed one for each call, and all that are left with its last records.
    left: usize,
}

impl Stored {
    /// Reads the header; `None` if it is not complete.
    pub(super) fn begin(data: &[u8], end: bool) -> Result<Option<Self>, Fault> {
        let mut stored = Self::default();
        match stored.decoder.next(data) {
            NfcapdStep::Skip(len) => {
                stored.header = len;
                Ok(Some(stored))
            }
            NfcapdStep::Lost(fault) => Err(Fault::Stored { fault }),
            _ if end => match stored.decoder.end(data.len()) {
                Err(fault) => Err(Fault::Stored { fault }),
                Ok(()) => Ok(None),
            },
            _ => Ok(None),
        }
    }
}

impl Exports {
    /// Reads a step of a file; `None` if more data is needed.
    pub(super) fn stored(
        &mut self,
        data: &[u8],
        at: usize,
        block: &mut Block,
    ) -> Result<Option<usize>, Fault> {
        let State::Stored(stored) = &mut self.state else { return Ok(Some(data.len())) };
        if stored.header > 0 {
            return Ok(Some(at + std::mem::take(&mut stored.header)));
        }
        if stored.left == 0 {
            match stored.decoder.next(&data[at..]) {
                NfcapdStep::Incomplete => return Ok(None),
                NfcapdStep::Skip(len) => return Ok(Some(at + len)),
                NfcapdStep::Damaged(len, fault) => {
                    block.bad_record(self.strict, || Fault::Stored { fault })?;
                    return Ok(Some(at + len));
                }
                NfcapdStep::Lost(fault) => {
                    self.state = State::Lost;
                    block.bad_record(self.strict, || Fault::Stored { fault })?;
                    return Ok(Some(data.len()));
                }
                NfcapdStep::Block(len) => {
                    stored.left = len;
                    block.tally.stored_blocks += 1;
                }
            }
        }
        let before = stored.decoder.flows();
        let more = loop {
            // The last byte goes with all records that are left.
            let room = match stored.left {
                1 => usize::MAX,
                _ => (MAX_ROWS + block.more_rows).saturating_sub(block.rows.len()),
            };
            let (slots, form) = (&self.slots[..], self.form);
            let mut sink = RowSink { block, slots, form, time: None, first_fault: None };
            match stored.decoder.records(room, |record, source| sink.row(record, source)) {
                Ok(more) => break more,
                Err(fault) => block.bad_record(self.strict, || Fault::Stored { fault })?,
            }
        };
        block.tally.exports.flows += stored.decoder.flows() - before;
        let used = if more { 1 } else { stored.left };
        stored.left -= used;
        Ok(Some(at + used))
    }

    /// Reports a file that ends too early, with so many bytes behind what was read.
    pub(super) fn check_stored_end(&mut self, rest: usize, block: &mut Block) -> Result<(), Fault> {
        let State::Stored(stored) = &self.state else { return Ok(()) };
        let done = stored.decoder.end(rest);
        self.state = State::Lost;
        match done {
            Ok(()) => Ok(()),
            Err(fault) => block.bad_record(self.strict, || Fault::Stored { fault }),
        }
    }
}
