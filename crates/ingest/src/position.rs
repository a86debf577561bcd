//! Shared code of decoders for streams of records: reading one record after the other, with its position.

use crate::{Damage, Sink, StopReason, Tail};

/// Calls `step` with the rest of the input until it consumes nothing. Returns the number of consumed bytes.
pub(crate) fn each_record(
    input: &[u8],
    mut step: impl FnMut(&[u8]) -> Result<usize, StopReason>,
) -> Result<usize, StopReason> {
    let mut at = 0;
    while at < input.len() {
        match step(&input[at..])? {
            0 => break,
            taken => at += taken,
        }
    }
    Ok(at)
}

/// Where a decoder is that searches for the next record where none begins.
#[derive(Debug, Default)]
pub(crate) struct RecordPosition {
    /// Records so far.
    pub(crate) records: u64,
    /// Bytes that were decoded.
    pub(crate) offset: u64,
    /// The beginning of a stretch without a record so far, and the fault there.
    pub(crate) lost: Option<(u64, String)>,
}

impl RecordPosition {
    /// The lost stretch, if there is one, ends so many bytes from here.
    pub(crate) fn found(&mut self, at: usize, sink: &mut dyn Sink) -> Result<(), StopReason> {
        let Some((offset, what)) = self.lost.take() else { return Ok(()) };
        let skipped = self.offset + at as u64 - offset;
        self.report(offset, format!("{what}; {skipped} bytes skipped"), sink)
    }

    /// The input ends within a record; all of it is taken if no more comes.
    pub(crate) fn cut(
        &mut self,
        rest: &[u8],
        tail: Tail,
        what: impl Into<String>,
        sink: &mut dyn Sink,
    ) -> Result<usize, StopReason> {
        if !tail.is_last() {
            return Ok(0);
        }
        self.records += 1;
        self.report(self.offset, what.into(), sink)?;
        Ok(rest.len())
    }

    pub(crate) fn report(
        &self,
        offset: u64,
        what: String,
        sink: &mut dyn Sink,
    ) -> Result<(), StopReason> {
        match sink.damage(&Damage::new(self.records, offset, what)).is_break() {
            true => Err(StopReason::BySink),
            false => Ok(()),
        }
    }
}
