use std::array;

use fibula_core::Hop;

use super::{ARRAY_BITS, FilterAddr, HASH, HASHES, Level, Pbf};
use crate::common::bits;
use fibula_engines::common::hop;

// The levels are processed one after the other for all addresses of a block, and each level position by position: all
// that have no answer yet are tested at the first position, those whose bit is set there at the second, and so on. Half
// of the bits of a filter are set, so a branch on a bit is hard to predict: one address after the other, random
// addresses take 2.4 times as long as consecutive ones, with as many instructions. Here a test decides only whether the
// next key overwrites this one in a list. The positions of a list are computed before the first of them is read, so
// that the hashes of several keys overlap: one loop for both takes a quarter longer.

/// Addresses that go through the levels together. A row, the number of one of them, is a `u8`.
const BLOCK: usize = 1 << u8::BITS;

/// # Panics
/// If the slices differ in length.
pub(super) fn lookup_batch<A: FilterAddr>(tables: &Pbf<A>, addrs: &[A], hops: &mut [Hop]) {
    assert_eq!(addrs.len(), hops.len(), "as many hops as addresses");
    let mut maybe = Maybe { keys: [A::MAX.key(); BLOCK], rows: [0; BLOCK], places: [0; BLOCK] };
    for (addrs, hops) in addrs.chunks(BLOCK).zip(hops.chunks_mut(BLOCK)) {
        block(tables, &mut maybe, addrs, hops);
    }
}

fn block<A: FilterAddr>(tables: &Pbf<A>, maybe: &mut Maybe<A>, addrs: &[A], hops: &mut [Hop]) {
    // The rows without an answer.
    let mut rows: [u8; BLOCK] = array::from_fn(|row| row as u8);
    let mut left = addrs.len();
    for level in &tables.levels {
        let mut found = [false; BLOCK];
        let passed = maybe.pass(level, &tables.filters, addrs, &rows[..left]);
        for row in passed.iter().map(|&row| usize::from(row)) {
            let key = addrs[row].and(level.mask);
            if let Some((code, _)) = tables.slots.find(level.part, key, || {}) {
                (hops[row], found[row]) = (hop(code), true);
            }
        }
        if !passed.is_empty() {
            let before = left;
            left = 0;
            for i in 0..before {
                rows[left] = rows[i];
                left += usize::from(!found[usize::from(rows[i])]);
            }
        }
    }
    for row in rows[..left].iter().map(|&row| usize::from(row)) {
        hops[row] = hop(tables.array[bits(addrs[row], 0, ARRAY_BITS.into())]);
    }
}

/// The rows whose bits of a filter are set at the positions so far.
struct Maybe<A: FilterAddr> {
    keys: [A::Key; BLOCK],
    rows: [u8; BLOCK],
    places: [u32; BLOCK],
}

impl<A: FilterAddr> Maybe<A> {
    /// Those of the rows that the level's filter says "maybe" to.
    fn pass(&mut self, level: &Level<A>, filters: &[u64], addrs: &[A], rows: &[u8]) -> &[u8] {
        let mut left = rows.len();
        self.rows[..left].copy_from_slice(rows);
        for (key, &row) in self.keys.iter_mut().zip(rows) {
            *key = addrs[usize::from(row)].and(level.mask).key();
        }
        for index in 0..HASHES {
            for (place, &key) in self.places.iter_mut().zip(&self.keys[..left]) {
                *place = level.shape.position(HASH.nth(key, index));
            }
            let before = left;
            left = 0;
            for i in 0..before {
                (self.keys[left], self.rows[left]) = (self.keys[i], self.rows[i]);
                left += usize::from(level.is_set(filters, self.places[i]));
            }
        }
        &self.rows[..left]
    }
}
