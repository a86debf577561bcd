//! Counts cells by their results.

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

/// Counts answers, block by block.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) counts: Counts,
    /// The first cell that is not an address.
    pub(crate) first_unparsable: Option<usize>,
}

impl Tally {
    /// Adds a block of answers in this numbering, with `v4` IPv4 addresses.
    #[inline]
    pub(crate) fn add(
        &mut self,
        numbers: Numbers,
        answers: impl Iterator<Item = u32> + Clone,
        v4: u64,
    ) {
        let Counts { rows, matched, unmatched, unparsable, empty, .. } = &mut self.counts;
        let (mut all, mut without) = (0, 0);
        for answer in answers.clone() {
            all += 1;
            without += u64::from(!numbers.is_known(answer));
        }
        if without > 0 {
            let why = |why| {
                let number = numbers.of(why);
                answers.clone().filter(|&answer| answer == number).count() as u64
            };
            *unmatched += why(Without::Unmatched);
            *empty += why(Without::Empty);
            let found = why(Without::Unparsable);
            if found > 0 && self.first_unparsable.is_none() {
                let number = numbers.of(Without::Unparsable);
                let at = answers.clone().position(|answer| answer == number);
                self.first_unparsable = at.map(|at| *rows as usize + at);
            }
            *unparsable += found;
        }
        *matched += all - without;
        *rows += all;
        self.counts.v4 += v4;
    }
}
