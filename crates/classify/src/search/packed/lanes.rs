//! Vector code: hashes, and the filter that selects some of them.

use std::hint::black_box;

use fibula_simd::{Kernel, Lanes, Simd};

use crate::Batch;
use crate::batch::STRIDE;
use crate::cache::Cache;
use crate::hash::{mix, product};
use crate::subtable::{Subtable, filter_bits};

/// Vectors of packets that are hashed at a time.
pub(super) const UNROLL: usize = 4;

/// The lanes whose hashes pass a filter.
#[inline(always)]
pub(super) fn passes<V: Lanes<Word = u64>>(hash: V, start: V, len: V, filters: &[u64]) -> u16 {
    let bits = filter_bits(hash);
    let words = start.add64(hash.mul_low(len).srl64(32)).pick(filters);
    words.and(bits).equal(bits)
}

/// Hashes the rows under a subtable's mask.
#[inline(always)]
pub(super) fn hash_all<S: Simd>(
    simd: S,
    table: &Subtable,
    columns: &[u64],
    rows: usize,
    to: &mut [u64],
) {
    let lanes = S::Lanes::<u64>::N;
    let mut at = 0;
    while at + UNROLL * lanes <= rows {
        hash::<S, UNROLL>(simd, table, columns, at, to);
        at += UNROLL * lanes;
    }
    while at < rows {
        hash::<S, 1>(simd, table, columns, at, to);
        at += lanes;
    }
}

/// Hashes some vectors of rows.
#[inline(always)]
fn hash<S: Simd, const U: usize>(
    simd: S,
    table: &Subtable,
    columns: &[u64],
    at: usize,
    to: &mut [u64],
) {
    let lanes = S::Lanes::<u64>::N;
    let mut sums = [S::Lanes::splat(simd, 0u64); U];
    for (word, mask, key) in table.words.with_keys() {
        let column = &columns[word * STRIDE..][..STRIDE];
        // One by one: `array::from_fn` and `map` are not always inlined.
        let (mask, key) = (S::Lanes::splat(simd, mask), S::Lanes::splat(simd, key));
        for (i, sum) in sums.iter_mut().enumerate() {
            let words = S::Lanes::load(simd, column, at + i * lanes);
            *sum = sum.add64(product(words.and(mask), key));
        }
    }
    for (i, sum) in sums.into_iter().enumerate() {
        mix(sum).store(to, at + i * lanes);
    }
}

/// The hashes alone, repeated, for [`repeat_hashes`](crate::repeat_hashes).
pub(crate) struct Hashes<'a> {
    pub(crate) cache: &'a Cache,
    pub(crate) batch: &'a Batch,
    pub(crate) visits: &'a [(usize, u32)],
    pub(crate) times: usize,
}

impl Kernel for Hashes<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let mut hashes = [0; STRIDE];
        for _ in 0..self.times {
            for (at, live) in self.visits {
                let Some(table) = self.cache.subtables.get(*at) else { continue };
                let (columns, rows) = (&self.batch.columns, live.count_ones() as usize);
                hash_all(simd, table, columns, rows, &mut hashes);
                black_box(&mut hashes);
            }
        }
    }
}
