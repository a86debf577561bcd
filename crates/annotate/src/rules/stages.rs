//! Classifies the flows of blocks and writes rows.

use fibula_classify::Classifier;

use super::keys::FlowKeys;
use super::lookup::{FlowLookup, RuleTotals};
use super::text::RuleText;
use crate::Summary;
use crate::block::{Block, RowKind};
use crate::fault::Fault;
use crate::formats::Style;
use crate::rows::work::Stage;

/// The stages behind the decoder of flows. Each thread has its own classifier.
pub(crate) struct RuleStages {
    lookup: FlowLookup,
    style: Style,
    writes: bool,
    text: RuleText,
    header: Vec<u8>,
}

impl RuleStages {
    pub(super) fn new(classifier: Classifier, style: Style, writes: bool) -> Self {
        let lookup = FlowLookup::new(classifier);
        let text = RuleText::new(lookup.rules(), style);
        let header = text.header();
        Self { lookup, style, writes, text, header }
    }

    /// The counts of all threads whose stages were merged.
    pub(super) fn totals(&self) -> RuleTotals {
        self.lookup.totals()
    }
}

impl Stage<FlowKeys> for RuleStages {
    fn block(
        &mut self,
        block: &mut Block<FlowKeys>,
        data: Option<&[u8]>,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        // Only the flows before the first row without one.
        let FlowKeys { flows, lengths, .. } = &block.keys;
        self.lookup.flows(flows.iter().map_while(|flow| flow.as_ref().ok()), lengths);
        let found = self.lookup.found();
        let source = data.unwrap_or(&block.text);
        let mut next = 0;
        for row in &block.rows {
            let is_flow = matches!(row.kind, RowKind::Annotate | RowKind::AnnotateEmpty);
            if is_flow && next == found.len() {
                let wrong = flows.get(next).and_then(|flow| flow.as_ref().err());
                let what = wrong.cloned().unwrap_or_default();
                return Err(Fault::Row { at: row.start, what });
            }
            if is_flow {
                next += 1;
            }
            if !self.writes {
                continue;
            }
            out.extend_from_slice(&source[row.start..row.insert]);
            match row.kind {
                RowKind::Pass => {}
                RowKind::Header => out.extend_from_slice(&self.header),
                RowKind::Annotate | RowKind::AnnotateEmpty => {
                    if let Style::Fields(dialect) = self.style {
                        out.resize(out.len() + row.pad, dialect.delimiter);
                    }
                    let text = self.text.of(self.lookup.rules(), found[next - 1]);
                    out.extend_from_slice(text);
                }
            }
            out.extend_from_slice(&source[row.insert..row.end]);
        }
        Ok(())
    }

    fn merge(&mut self, other: &Self) {
        self.lookup.merge(&other.lookup);
    }

    fn complete(&self, summary: Summary) -> Summary {
        let RuleTotals { packets, unmatched, .. } = self.totals();
        let matched = packets.iter().sum::<u64>();
        let addresses = (matched + unmatched).saturating_sub(summary.unknown_links);
        Summary { addresses, matched, unmatched, ..summary }
    }
}
