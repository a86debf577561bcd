//! Classifies the flows of blocks, counts and writes rows.

use std::time::{Duration, Instant};

use fibula_classify::{Batch, Classifier, ClassifierCounts, RuleId};

use super::choice::ADDED;
use super::keys::FlowKeys;
use crate::block::{Block, RowKind};
use crate::fault::Fault;
use crate::formats::Style;
use crate::formats::csv::scan::write_field;
use crate::formats::json::write_string;
use crate::rows::work::Stage;
use crate::{Summary, rules::RuleTotals};

/// The stages behind the decoder of flows. Each thread has a classifier of its own.
pub(crate) struct RuleStages {
    classifier: Classifier,
    batch: Batch,
    found: Vec<Option<RuleId>>,
    style: Style,
    writes: bool,
    /// For each rule the bytes that a row gets, once it was hit; the last ones are of rows without a rule.
    added: Vec<Vec<u8>>,
    header: Vec<u8>,
    counts: RuleTotals,
}

impl RuleStages {
    pub(super) fn new(classifier: Classifier, style: Style, writes: bool) -> Self {
        let rules = classifier.rules().iter().map(|(id, _)| id.0 as usize + 1).max().unwrap_or(0);
        let mut header = Vec::new();
        if let Style::Fields(dialect) = style {
            for name in ADDED {
                header.push(dialect.delimiter);
                header.extend_from_slice(name.as_bytes());
            }
        }
        Self {
            classifier,
            batch: Batch::new(),
            found: Vec::new(),
            style,
            writes,
            added: vec![Vec::new(); rules + 1],
            header,
            counts: RuleTotals { packets: vec![0; rules], ..RuleTotals::default() },
        }
    }

    /// The counts of all threads whose stages were merged.
    pub(super) fn counts(&self) -> RuleTotals {
        let mut counts = self.counts.clone();
        counts.add_cache(&self.classifier);
        counts
    }

    /// Renders the values of a rule, or of none, as members or fields behind others.
    #[cold]
    fn render(&mut self, id: Option<RuleId>) {
        let rule = id.and_then(|id| self.classifier.rules().get(id));
        let line = rule.map(|rule| rule.line.to_string());
        let action = rule.map(|rule| rule.action.to_string());
        let label = rule.and_then(|rule| rule.label.as_deref());
        let mut out = Vec::new();
        for (name, value) in ADDED.into_iter().zip([line.as_deref(), action.as_deref(), label]) {
            match self.style {
                Style::Fields(dialect) => {
                    out.push(dialect.delimiter);
                    write_field(value.unwrap_or_default().as_bytes(), dialect, &mut out);
                }
                Style::Members => {
                    out.push(b',');
                    write_string(name, &mut out);
                    out.push(b':');
                    match value {
                        None => out.extend_from_slice(b"null"),
                        Some(value) if name == ADDED[0] => out.extend_from_slice(value.as_bytes()),
                        Some(value) => write_string(value, &mut out),
                    }
                }
            }
        }
        let at = self.place(id);
        self.added[at] = out;
    }

    fn place(&self, id: Option<RuleId>) -> usize {
        id.map_or(self.added.len() - 1, |id| id.0 as usize)
    }

    /// Finds the rules of the flows before the first row without one: the number of these.
    fn classify(&mut self, block: &Block<FlowKeys>) -> usize {
        let flows = block.keys.flows.iter().map_while(|flow| flow.as_ref().ok());
        let began = Instant::now();
        self.found.clear();
        for flow in flows {
            self.batch.push(flow);
            if self.batch.len() == Batch::MAX {
                self.flush();
            }
        }
        self.flush();
        self.counts.spent += began.elapsed();
        for found in &self.found {
            match found {
                Some(id) => self.counts.packets[id.0 as usize] += 1,
                None => self.counts.unmatched += 1,
            }
        }
        self.found.len()
    }

    fn flush(&mut self) {
        let from = self.found.len();
        self.found.resize(from + self.batch.len(), None);
        self.classifier.classify(0, &self.batch, &mut self.found[from..]);
        self.batch.clear();
    }
}

impl Stage<FlowKeys> for RuleStages {
    fn block(
        &mut self,
        block: &mut Block<FlowKeys>,
        data: Option<&[u8]>,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        let classified = self.classify(block);
        let source = data.unwrap_or(&block.text);
        let mut next = 0;
        for row in &block.rows {
            let is_flow = matches!(row.kind, RowKind::Annotate | RowKind::AnnotateEmpty);
            if is_flow && next == classified {
                let wrong = block.keys.flows.get(next).and_then(|flow| flow.as_ref().err());
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
                    let id = self.found[next - 1];
                    let at = self.place(id);
                    if self.added[at].is_empty() {
                        self.render(id);
                    }
                    out.extend_from_slice(&self.added[at]);
                }
            }
            out.extend_from_slice(&source[row.insert..row.end]);
        }
        Ok(())
    }

    fn merge(&mut self, other: &Self) {
        self.counts.merge(&other.counts());
    }

    fn complete(&self, summary: Summary) -> Summary {
        let matched = self.counts.packets.iter().sum();
        Summary { matched, unmatched: self.counts.unmatched, ..summary }
    }
}

impl RuleTotals {
    fn merge(&mut self, other: &Self) {
        let pairs = self.packets.iter_mut().zip(&other.packets);
        pairs.for_each(|(ours, theirs)| *ours += theirs);
        self.unmatched += other.unmatched;
        self.slow_path += other.slow_path;
        self.evicted += other.evicted;
        self.megaflows += other.megaflows;
        self.masks = self.masks.max(other.masks);
        // The threads classify at the same time.
        self.spent = Duration::max(self.spent, other.spent);
    }

    fn add_cache(&mut self, classifier: &Classifier) {
        let ClassifierCounts { misses, evicted, .. } = classifier.counts();
        self.slow_path += misses;
        self.evicted += evicted;
        self.megaflows += classifier.megaflows().count();
        self.masks = self.masks.max(classifier.subtables());
    }
}
