//! Counting what the cells of a column are.

use super::answers::{Numbers, Without};

/// What happened to the cells of a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Cells.
    pub rows: u64,
    /// Addresses that a route covers.
    pub matched: u64,
    /// Addresses that no route covers.
    pub unmatched: u64,
    /// Cells that hold something that is not an address.
    pub unparsable: u64,
    /// Nulls, and text that is empty.
    pub empty: u64,
    /// Of the addresses, IPv4 ones.
    pub v4: u64,
    /// Rows whose time is before the first table of several dates; nothing was looked up for them.
    pub before: u64,
    /// Rows without a time, or with something that is none; likewise.
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

    /// Adds a block, of whose addresses so many are IPv4 ones.
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
