//! Finds the rules of flows, and counts them.

use std::time::{Duration, Instant};

use fibula_classify::{Batch, Classifier, ClassifierCounts, Flow, RuleId, Rules};

/// Rows by rule, and counts of the classifiers' caches, of all threads together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleTotals {
    /// Rows by the number of their rule.
    pub packets: Vec<u64>,
    /// Bytes of packets by the number of their rule. Only the packets of captures have a length.
    pub bytes: Vec<u64>,
    /// Rows without a rule.
    pub unmatched: u64,
    /// Bytes of packets without a rule.
    pub unmatched_bytes: u64,
    /// Rows that the slow path classified.
    pub slow_path: u64,
    /// Megaflows in the caches.
    pub megaflows: usize,
    /// Masks of the cache that has most.
    pub masks: usize,
    /// Megaflows that others displaced.
    pub evicted: u64,
    /// Time spent classifying, by the thread that spent most.
    pub spent: Duration,
}

impl RuleTotals {
    fn merge(&mut self, other: &Self) {
        let add = |ours: &mut [u64], theirs: &[u64]| {
            ours.iter_mut().zip(theirs).for_each(|(ours, theirs)| *ours += theirs);
        };
        add(&mut self.packets, &other.packets);
        add(&mut self.bytes, &other.bytes);
        self.unmatched += other.unmatched;
        self.unmatched_bytes += other.unmatched_bytes;
        self.slow_path += other.slow_path;
        self.evicted += other.evicted;
        self.megaflows += other.megaflows;
        self.masks = self.masks.max(other.masks);
        // The threads classify at the same time.
        self.spent = Duration::max(self.spent, other.spent);
    }
}

/// A thread's own classifier, with the results of the last flows.
pub(crate) struct FlowLookup {
    classifier: Classifier,
    batch: Batch,
    found: Vec<Option<RuleId>>,
    /// Without the counts of this thread's cache.
    totals: RuleTotals,
}

impl FlowLookup {
    pub(crate) fn new(classifier: Classifier) -> Self {
        let rules = rule_numbers(classifier.rules());
        let counts = || vec![0; rules];
        let totals = RuleTotals { packets: counts(), bytes: counts(), ..RuleTotals::default() };
        Self { classifier, batch: Batch::new(), found: Vec::new(), totals }
    }

    pub(crate) fn rules(&self) -> &Rules {
        self.classifier.rules()
    }

    /// The rules of the last flows.
    pub(crate) fn found(&self) -> &[Option<RuleId>] {
        &self.found
    }

    /// Finds the rules of flows and counts them. Packets have lengths, rows have none.
    pub(crate) fn flows<'f>(&mut self, flows: impl Iterator<Item = &'f Flow>, lengths: &[u32]) {
        let began = Instant::now();
        self.found.clear();
        for flow in flows {
            self.batch.push(flow);
            if self.batch.len() == Batch::MAX {
                self.flush();
            }
        }
        self.flush();
        self.totals.spent += began.elapsed();
        for found in &self.found {
            match found {
                Some(id) => self.totals.packets[id.0 as usize] += 1,
                None => self.totals.unmatched += 1,
            }
        }
        for (found, &length) in self.found.iter().zip(lengths) {
            let bytes = match found {
                Some(id) => &mut self.totals.bytes[id.0 as usize],
                None => &mut self.totals.unmatched_bytes,
            };
            *bytes += u64::from(length);
        }
    }

    fn flush(&mut self) {
        let from = self.found.len();
        self.found.resize(from + self.batch.len(), None);
        self.classifier.classify(0, &self.batch, &mut self.found[from..]);
        self.batch.clear();
    }

    /// The counts of all threads whose lookups were merged.
    pub(crate) fn totals(&self) -> RuleTotals {
        let mut totals = self.totals.clone();
        let ClassifierCounts { misses, evicted, .. } = self.classifier.counts();
        totals.slow_path += misses;
        totals.evicted += evicted;
        totals.megaflows += self.classifier.megaflows().count();
        totals.masks = totals.masks.max(self.classifier.subtables());
        totals
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.totals.merge(&other.totals());
    }
}

/// The number above those of all rules.
pub(crate) fn rule_numbers(rules: &Rules) -> usize {
    rules.iter().map(|(id, _)| id.0 as usize + 1).max().unwrap_or(0)
}
