//! The newest records: those of the log, in memory.

use std::collections::BTreeMap;

use crate::record::{HistoryBreak, Recorded, RouteKey, RouteRecord};
use crate::segment::{Lengths, Summary};

/// The records of the log, by key, and what the log covers.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    pub(crate) number: u64,
    /// Whether no file before the log is needed.
    pub(crate) is_complete: bool,
    /// No record is earlier.
    pub(crate) from: u64,
    /// No record is later, and none that comes may be earlier.
    pub(crate) newest: u64,
    pub(crate) recorded: Vec<Recorded>,
    /// Whether the last time that is recorded goes on.
    pub(crate) is_open: bool,
    pub(crate) records: BTreeMap<RouteKey, Vec<RouteRecord>>,
    pub(crate) lengths: Lengths,
    pub(crate) count: usize,
    /// About how many bytes of memory the records take.
    pub(crate) bytes: usize,
}

impl Memory {
    pub(crate) fn new(number: u64, from: u64, is_complete: bool) -> Self {
        Self { number, from, newest: from, is_complete, ..Self::default() }
    }

    /// The first log of a history has no time before it has something.
    fn start(&mut self, time: u64) {
        if self.from == 0 && self.is_empty() {
            self.from = time;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0 && self.recorded.is_empty()
    }

    pub(crate) fn insert(&mut self, key: &RouteKey, mut record: RouteRecord) {
        record.time = record.time.max(self.newest);
        self.start(record.time);
        self.newest = record.time;
        self.count += 1;
        self.bytes += record.memory();
        self.lengths.add(key.prefix);
        match self.records.get_mut(key) {
            Some(records) => records.push(record),
            None => {
                self.bytes += 128 + key.table.len();
                self.records.insert(key.clone(), vec![record]);
            }
        }
    }

    /// A time begins of which everything is recorded.
    pub(crate) fn begin(&mut self, from: u64, before: HistoryBreak) {
        let from = from.max(self.newest);
        self.start(from);
        self.newest = from;
        self.recorded.push(Recorded { from, until: from, before });
        self.is_open = true;
    }

    /// Everything until then is recorded.
    pub(crate) fn cover(&mut self, until: u64) {
        if let Some(last) = self.recorded.last_mut().filter(|_| self.is_open) {
            let until = until.max(self.newest);
            self.newest = until;
            last.until = until;
        }
    }

    /// The time until which everything is recorded, if it is.
    pub(crate) fn covered(&self) -> Option<u64> {
        self.recorded.last().filter(|_| self.is_open).map(|last| last.until)
    }

    /// The summary of a file of these records.
    pub(crate) fn summary(&self) -> Summary {
        Summary {
            first: self.number,
            last: self.number,
            is_complete: self.is_complete,
            from: self.from,
            until: self.newest,
            recorded: self.recorded.clone(),
            ..Summary::default()
        }
    }

    /// The log that follows.
    pub(crate) fn next(&self) -> Self {
        let mut next = Self::new(self.number + 1, self.newest, false);
        if self.is_open {
            next.begin(self.newest, HistoryBreak::None);
        }
        next
    }
}
