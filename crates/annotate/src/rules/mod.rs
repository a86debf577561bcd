//! Rules for rows and packets: the five fields of a flow are found in columns, or the flow in a packet, and the columns
//! of the rule that it hits are added.
//!
//! ```text
//!   formats::Decode      bytes -> a block: rows, and the cells of the five columns
//!     keys               cells -> the flow of each row, or its fault; packets -> their flows
//!     lookup             flows -> rules, by a classifier for each thread; counts
//!     stages, text       the bytes of the rows
//! ```
//!
//! `columns` does the same for the rows of Parquet and Arrow, whose flows `columns/flows.rs` reads. `listing` writes
//! CSV rows of them.

mod choice;
#[cfg(feature = "columnar")]
mod columns;
mod keys;
#[cfg(feature = "columnar")]
mod listing;
mod lookup;
mod stages;
mod text;

use std::io::{Read, Write};

use fibula_classify::Classifier;

pub(crate) use self::choice::FlowChoice;
#[cfg(feature = "columnar")]
pub use self::columns::{RuleColumnAnnotator, RuleOutput};
pub(crate) use self::keys::FlowKeys;
pub use self::lookup::RuleTotals;
use self::stages::RuleStages;
pub(crate) use self::text::write_flow;
use crate::clock::Clock;
use crate::formats::{Decode, flow_decoder};
use crate::rows::work::Work;
use crate::rows::{Parting, on_threads};
use crate::{AnnotateError, AnnotateOptions, LogFormat, Summary};

/// Adds the rules of a packet filter to rows of CSV, TSV and JSON, and to the packets of captures: `rule_line`,
/// `rule_action` and `rule_label`.
///
/// The columns of a flow are found by their names, such as `src`, `dst`, `protocol`, `src_port` and `dst_port`, in any
/// order among others. Rows keep their bytes and their order. A packet becomes a CSV row with its number and the five
/// fields.
pub struct RuleAnnotator {
    classifier: Classifier,
    format: LogFormat,
    options: AnnotateOptions,
    choice: FlowChoice,
    pub(crate) parting: Parting,
}

impl RuleAnnotator {
    /// Prepares inputs in this format. Of the options, `delimiter`, `quote`, `strict` and `threads` are used. With
    /// `writes`, the rows are written; otherwise they are only counted.
    ///
    /// # Errors
    /// If the format has no rows with fields, or options contradict each other.
    pub fn new(
        classifier: Classifier,
        format: LogFormat,
        options: &AnnotateOptions,
        writes: bool,
    ) -> Result<Self, AnnotateError> {
        let (options, parting) = (options.clone(), Parting::default());
        let annotator =
            Self { classifier, format, options, choice: FlowChoice { adds: writes }, parting };
        annotator.decoder()?;
        Ok(annotator)
    }

    /// Reads `input` to its end and writes every row, in order, with the columns of its rule. Output, summary and the
    /// first error do not depend on the number of threads.
    ///
    /// # Errors
    /// If reading or writing fails, at the first row whose fields are no flow, and with [`AnnotateOptions::strict`] at
    /// the first damaged record. Without it, damaged records are counted.
    pub fn annotate(
        &self,
        input: impl Read,
        mut output: impl Write + Send,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(Summary, RuleTotals), AnnotateError> {
        let (summary, stages) = on_threads(self, input, &mut output, progress)?;
        Ok((summary, stages.map_or_else(RuleTotals::default, |stages| stages.totals())))
    }
}

impl Work for RuleAnnotator {
    type Keys = FlowKeys;
    type Stages<'w> = RuleStages;

    fn format(&self) -> LogFormat {
        self.format
    }

    fn options(&self) -> &AnnotateOptions {
        &self.options
    }

    fn parting(&self) -> Parting {
        self.parting
    }

    fn decoder(&self) -> Result<Box<dyn Decode<FlowKeys>>, AnnotateError> {
        flow_decoder(self.format, &self.options, self.choice)
    }

    fn clock(&self) -> Result<Option<Clock>, AnnotateError> {
        Ok(None)
    }

    fn stages(&self, decoder: &dyn Decode<FlowKeys>) -> RuleStages {
        RuleStages::new(self.classifier.clone(), decoder.style(), self.choice.adds)
    }
}
