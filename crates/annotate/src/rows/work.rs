//! The work on the rows of an input: one kind of keys, and the stages behind them.

use super::Parting;
use crate::block::Block;
use crate::clock::Clock;
use crate::fault::Fault;
use crate::formats::Decode;
use crate::pipeline::keys::KeySink;
use crate::{AnnotateError, AnnotateOptions, LogFormat, Summary};

/// A kind of work on rows: addresses that get the values of a table, or flows that get a rule. It is chosen when the
/// code is compiled, so that it costs nothing for a row.
pub(crate) trait Work: Sync {
    /// The keys of a block.
    type Keys: KeySink;
    /// The stages behind the decoder.
    type Stages<'w>: Stage<Self::Keys>
    where
        Self: 'w;

    fn format(&self) -> LogFormat;

    fn options(&self) -> &AnnotateOptions;

    fn parting(&self) -> Parting;

    fn decoder(&self) -> Result<Box<dyn Decode<Self::Keys>>, AnnotateError>;

    /// Reads the times of rows, if the table has several dates.
    fn clock(&self) -> Result<Option<Clock>, AnnotateError>;

    /// The stages of an input whose columns are known.
    fn stages<'w>(&'w self, decoder: &dyn Decode<Self::Keys>) -> Self::Stages<'w>;
}

/// Looks up, counts and writes the rows of blocks.
pub(crate) trait Stage<K>: Send {
    /// Appends the rows of a block. They are in `data`, or in the block's text. On failure, only the rows before the
    /// fault.
    fn block(
        &mut self,
        block: &mut Block<K>,
        data: Option<&[u8]>,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault>;

    /// Adds the counts of `other`.
    fn merge(&mut self, other: &Self);

    /// Adds the counts to a summary that has the decoder's counts.
    fn complete(&self, summary: Summary) -> Summary;
}
