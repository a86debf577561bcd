//! Rows of a batch.

use crate::Batch;
use crate::batch::STRIDE;

/// The numbers 0, 1, 2 and so on: the rows of a batch.
pub(super) static ROWS: [u64; STRIDE] = {
    let (mut rows, mut at) = ([0; STRIDE], 0);
    while at < STRIDE {
        rows[at] = at as u64;
        at += 1;
    }
    rows
};

/// A set of rows.
#[derive(Clone, Copy)]
pub(super) struct Live(pub(super) [u64; Batch::MAX / 64 + 1]);

impl Live {
    pub(super) fn first(n: usize) -> Self {
        Self(std::array::from_fn(|i| match n.saturating_sub(64 * i) {
            64.. => u64::MAX,
            n => (1 << n) - 1,
        }))
    }
    #[inline(always)]
    pub(super) fn remove(&mut self, row: usize) {
        self.0[row / 64] &= !(1 << (row % 64));
    }
    /// Sixteen rows, of which the first is a multiple of the lanes.
    #[inline(always)]
    pub(super) fn from(&self, row: usize) -> u16 {
        (self.0[row / 64] >> (row % 64)) as u16
    }
    /// Of so many words.
    pub(super) fn iter(self) -> impl Iterator<Item = usize> {
        (0..).step_by(64).zip(self.0).flat_map(|(first, mut word)| {
            std::iter::from_fn(move || {
                let row = (word != 0).then(|| first + word.trailing_zeros() as usize);
                word &= word.wrapping_sub(1);
                row
            })
        })
    }
}
