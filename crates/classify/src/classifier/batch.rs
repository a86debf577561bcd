//! Classifies a batch. Both classifiers share this code.

use crate::{Batch, Flow, Found, MISS, Mask, RuleId, Scratch, SlowPath};

/// The packets of a batch that the cache has no megaflow for. Kept between batches for its memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Missed {
    numbers: Vec<u32>,
    packets: Vec<usize>,
    flows: Vec<Flow>,
    found: Vec<Found>,
    scratch: Scratch,
}

impl Missed {
    /// Searches the batch, and writes the rules of the packets that were found: `hit` returns the rule of a megaflow's
    /// number.
    ///
    /// # Panics
    ///
    /// If there are not as many answers as packets.
    pub(super) fn search(
        &mut self,
        batch: &Batch,
        found: &mut [Option<RuleId>],
        search: impl FnOnce(&Batch, &mut [u32]),
        mut hit: impl FnMut(u32) -> Option<RuleId>,
    ) {
        assert_eq!(batch.len(), found.len(), "an answer for each packet");
        self.numbers.resize(batch.len(), MISS);
        search(batch, &mut self.numbers);
        self.packets.clear();
        self.flows.clear();
        for (packet, (&number, found)) in self.numbers.iter().zip(found).enumerate() {
            if number == MISS {
                self.packets.push(packet);
                self.flows.push(batch.flow(packet));
            } else {
                *found = hit(number);
            }
        }
    }

    /// How many they are.
    pub(super) fn len(&self) -> usize {
        self.flows.len()
    }

    /// Looks them up by the rules, and writes their answers.
    pub(super) fn look_up(&mut self, slow: &SlowPath, found: &mut [Option<RuleId>]) {
        self.found.resize(self.flows.len(), Found { rule: None, mask: Mask::EMPTY });
        slow.lookup_batch(&self.flows, &mut self.found, &mut self.scratch);
        for (&packet, by_rules) in self.packets.iter().zip(&self.found) {
            found[packet] = by_rules.rule;
        }
    }

    /// The packets that were looked up, with the results of the rules.
    pub(super) fn learned(&self) -> impl Iterator<Item = (&Flow, &Found)> {
        self.flows.iter().zip(&self.found)
    }
}

/// Packets by rule.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) packets: u64,
    pub(super) misses: u64,
    /// Of rules that went, too.
    hits: Vec<u64>,
    unmatched: u64,
}

impl Tally {
    pub(super) fn count(&mut self, found: &[Option<RuleId>], misses: usize) {
        self.packets += found.len() as u64;
        self.misses += misses as u64;
        for found in found {
            let Some(rule) = found else {
                self.unmatched += 1;
                continue;
            };
            let rule = rule.0 as usize;
            if rule >= self.hits.len() {
                self.hits.resize(rule + 1, 0);
            }
            self.hits[rule] += 1;
        }
    }

    /// Of a rule; `None` are those that hit none.
    pub(super) fn of(&self, rule: Option<RuleId>) -> u64 {
        match rule {
            Some(rule) => self.hits.get(rule.0 as usize).copied().unwrap_or(0),
            None => self.unmatched,
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.packets += other.packets;
        self.misses += other.misses;
        self.unmatched += other.unmatched;
        if self.hits.len() < other.hits.len() {
            self.hits.resize(other.hits.len(), 0);
        }
        self.hits.iter_mut().zip(&other.hits).for_each(|(sum, hits)| *sum += hits);
    }
}
