//! The records of megaflows, found by the cache's numbers.

use std::collections::HashMap;

use crate::rules::RuleId;
use crate::{MISS, Match};

/// The end of a list.
const NONE: u32 = MISS;

/// A megaflow with its rule and its number of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Megaflow {
    /// The packets that it matches.
    pub matched: Match,
    /// The rule that wins for these packets, if one matches.
    pub rule: Option<RuleId>,
    /// Number of packets.
    pub packets: u64,
    /// When the last one came, in the caller's time.
    pub used: u64,
}

#[derive(Clone, Copy, Debug)]
struct Record {
    megaflow: Megaflow,
    /// Packets came since the hand passed.
    recent: bool,
    /// The neighbours in the list of the rule's megaflows.
    before: u32,
    behind: u32,
}

/// Records by number. Numbers of those that went are used again.
#[derive(Clone, Debug, Default)]
pub(super) struct Megaflows {
    records: Vec<Option<Record>>,
    free: Vec<u32>,
    /// The first of each rule's.
    of_rule: HashMap<Option<RuleId>, u32>,
    /// The position where the search for one to evict continues.
    hand: usize,
}

impl Megaflows {
    pub(super) fn len(&self) -> usize {
        self.records.len() - self.free.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Megaflow)> {
        let numbered = self.records.iter().zip(0..);
        numbered.filter_map(|(record, number)| Some((number, &record.as_ref()?.megaflow)))
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Packets of it came: the rule that they have.
    #[inline]
    pub(super) fn hit(&mut self, number: u32, now: u64) -> Option<RuleId> {
        let record = self.records.get_mut(number as usize)?.as_mut()?;
        record.megaflow.packets += 1;
        record.megaflow.used = now;
        record.recent = true;
        record.megaflow.rule
    }

    pub(super) fn insert(&mut self, megaflow: Megaflow) -> u32 {
        let next = self.of_rule.get(&megaflow.rule).copied().unwrap_or(NONE);
        let record = Some(Record { megaflow, recent: false, before: NONE, behind: next });
        let number = match self.free.pop() {
            Some(number) => {
                self.records[number as usize] = record;
                number
            }
            None => {
                self.records.push(record);
                (self.records.len() - 1) as u32
            }
        };
        if let Some(next) = self.record(next) {
            next.before = number;
        }
        self.of_rule.insert(megaflow.rule, number);
        number
    }

    fn record(&mut self, number: u32) -> Option<&mut Record> {
        self.records.get_mut(number as usize)?.as_mut()
    }

    pub(super) fn remove(&mut self, number: u32) -> Option<Megaflow> {
        let Record { megaflow, before, behind, .. } =
            self.records.get_mut(number as usize)?.take()?;
        self.free.push(number);
        if let Some(behind) = self.record(behind) {
            behind.before = before;
        }
        match self.record(before) {
            Some(before) => before.behind = behind,
            None if behind == NONE => {
                self.of_rule.remove(&megaflow.rule);
            }
            None => {
                self.of_rule.insert(megaflow.rule, behind);
            }
        }
        Some(megaflow)
    }

    /// One of the rule's megaflows.
    pub(super) fn of_rule(&self, rule: Option<RuleId>) -> Option<u32> {
        self.of_rule.get(&rule).copied()
    }

    /// One that had no packet for long: the first that had none since the hand last passed it ("clock").
    pub(super) fn oldest(&mut self) -> Option<u32> {
        // After one turn no record is recent any more.
        for _ in 0..self.records.len() * 2 {
            let at = self.hand % self.records.len();
            self.hand = at + 1;
            match &mut self.records[at] {
                Some(record) if record.recent => record.recent = false,
                Some(_) => return Some(at as u32),
                None => {}
            }
        }
        None
    }
}
