//! Counts the cells of a column by their results.

use super::answers::{Numbers, Without};

/// The counts of an address column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Number of cells.
    pub rows: u64,
    /// Addresses that a route covers.
    pub matched: u64,
    /// Addresses that no route covers.
    pub unmatched: u64,
    /// Cells that are not addresses.
    pub unparsable: u64,
    /// Nulls and empty text.
    pub empty: u64,
    /// IPv4 addresses.
    pub v4: u64,
    /// Rows whose time is before the first of several dates. They were not looked up.
    pub before: u64,
    /// Rows without a time, or with an invalid one. They were not looked up.
    pub untimed: u64,
}

impl Counts {
    pub(crate) fn add(&mut self, other: &Self) {
        self.rows += other.rows;
        self.matched += other.matched;
        self.unmatched += other.unmatched;
        self.unparsable += other.unparsable;
        self.empty += other.empty;
        self.v4 += other.v4;
        self.before += other.before;
        self.untimed += other.untimed;
    }
}

/// Counts the answers of one column, block by block.
pub(super) struct Tally {
    /// How the answers are numbered.
    numbers: Numbers,
    pub(super) counts: Counts,
    /// The row of the first cell that is not an address.
    pub(super) first_unparsable: Option<usize>,
}

impl Tally {
    pub(super) fn new(numbers: Numbers) -> Self {
        Self { numbers, counts: Counts::default(), first_unparsable: None }
    }

    /// How the answers are numbered.
    pub(super) fn numbers(&self) -> Numbers {
        self.numbers
    }

    /// Adds a block with `v4` IPv4 addresses.
    pub(super) fn add(&mut self, answers: &[u32], v4: u64) {
        let numbers = self.numbers;
        let without = answers.iter().filter(|&&answer| !numbers.is_known(answer)).count();
        self.counts.v4 += v4;
        self.counts.matched += (answers.len() - without) as u64;
        if without > 0 {
            self.add_without(answers);
        }
        self.counts.rows += answers.len() as u64;
    }

    fn add_without(&mut self, answers: &[u32]) {
        for (at, &answer) in answers.iter().enumerate() {
            if self.numbers.is_known(answer) {
                continue;
            }
            match self.numbers.without(answer) {
                Some(Without::Unmatched) | None => self.counts.unmatched += 1,
                Some(Without::Untimed) => {}
                Some(Without::Empty) => self.counts.empty += 1,
                Some(Without::Unparsable) => {
                    self.counts.unparsable += 1;
                    self.first_unparsable.get_or_insert(self.counts.rows as usize + at);
                }
            }
        }
    }
}
