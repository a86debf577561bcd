use fibula_core::Hop;
use fibula_filter::{Parting, Word, hash_all};
use fibula_simd::{Kernel, Level as IsaLevel, Scalar, Simd, prefetch_read_l2};

use super::bucket::{Address, Code, Keyed, Slot, find, home, probe};
use super::compiled;
use super::lookup::{key, place};
use super::tables::{Level, Tables};
use fibula_engines::common::hop;

// The levels are processed one after the other, each for all addresses of a block. At each level the filter divides
// them, sixteen at a time. The buckets of all addresses that pass are prefetched before the first one is read.
// Addresses that fail, or whose bucket does not contain the key, remain for the next level.
//
// Measurements (Zen 4, 900,000 IPv4 and 180,000 IPv6 prefixes, 256 hops, PFX, Mlps):
//
// - Buckets prefetched into the first-level cache: 37; into the second: 71. A block has many more prefetches than the
//   first level has line fill buffers.
// - Two positions at 30 %: 70 IPv4, 24 IPv6; one: 74, 36; one at 10 %: 77, 38, and of uniform keys,
//   which are rarely in a table, 104, 31 instead of 72, 18.
// - Blocks of 64: 41 where those of 256 did 37.

/// Addresses that go through the levels together.
pub(super) const BLOCK: usize = 256;

pub(super) fn lookup_batch<A: Address, C: Code>(
    tables: &Tables<A, C>,
    isa: IsaLevel,
    addrs: &[A],
    hops: &mut [Hop],
) {
    isa.run(Batch { stages: Stages::<_, _, false> { tables, isa }, addrs, hops });
}

/// The same with the filters as plain loops.
pub(super) fn lookup_batch_compiled<A: Address, C: Code>(
    tables: &Tables<A, C>,
    isa: IsaLevel,
    addrs: &[A],
    hops: &mut [Hop],
) {
    isa.run(Batch { stages: Stages::<_, _, true> { tables, isa }, addrs, hops });
}

struct Batch<'a, A, C: Code, const COMPILED: bool> {
    stages: Stages<'a, A, C, COMPILED>,
    addrs: &'a [A],
    hops: &'a mut [Hop],
}

/// The keys under way, each with its row: the number of its address in the block.
pub(super) struct Scratch<K> {
    pub(super) keys: [K; BLOCK],
    pub(super) rows: [K; BLOCK],
    pub(super) passed: [K; BLOCK],
    pub(super) passed_rows: [K; BLOCK],
    pub(super) hashes: [K; BLOCK],
    places: [u32; BLOCK],
}

impl<A: Address, C: Code, const COMPILED: bool> Kernel for Batch<'_, A, C, COMPILED> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let zero = [<A as Keyed>::Key::default(); BLOCK];
        let mut scratch = Scratch {
            keys: zero,
            rows: zero,
            passed: zero,
            passed_rows: zero,
            hashes: zero,
            places: [0; BLOCK],
        };
        for (addrs, hops) in self.addrs.chunks(BLOCK).zip(self.hops.chunks_mut(BLOCK)) {
            if COMPILED {
                // Comparisons with the keys of a bucket are loops of this form, too.
                self.stages.block(Scalar, &mut scratch, addrs, hops);
            } else {
                self.stages.block(simd, &mut scratch, addrs, hops);
            }
        }
    }
}

/// The state of a block.
struct Stages<'a, A, C: Code, const COMPILED: bool> {
    tables: &'a Tables<A, C>,
    isa: IsaLevel,
}

impl<A: Address, C: Code, const COMPILED: bool> Stages<'_, A, C, COMPILED> {
    #[inline(always)]
    fn block<S: Simd>(
        &self,
        simd: S,
        scratch: &mut Scratch<<A as Keyed>::Key>,
        addrs: &[A],
        hops: &mut [Hop],
    ) {
        let tables = self.tables;
        let mut left = addrs.len();
        for (i, &addr) in addrs.iter().enumerate() {
            scratch.keys[i] = <A as Keyed>::Key::of(addr);
            scratch.rows[i] = <A as Keyed>::Key::of_low(i as u32);
        }
        if let Some(gate) = &tables.gate {
            let passed = self.part(gate, scratch, left);
            left = self.long(scratch, passed, left - passed, addrs, hops);
        }
        for level in tables.levels.iter().filter(|level| level.keys > 0) {
            let passed = self.part(level, scratch, left);
            left = self.search(simd, level, scratch, passed, left - passed, hops);
        }
        let bits = tables.direct_bits;
        for row in &scratch.rows[..left] {
            prefetch_read_l2(&tables.direct, place(addrs[row.low() as usize], bits));
        }
        for row in &scratch.rows[..left] {
            let row = row.low() as usize;
            hops[row] = hop(tables.direct[place(addrs[row], bits)].into());
        }
    }

    /// Parts the first `keys` keys by the level's filter; how many pass.
    #[inline(always)]
    fn part(&self, level: &Level, scratch: &mut Scratch<<A as Keyed>::Key>, keys: usize) -> usize {
        let mask = key::<A, <A as Keyed>::Key>(A::MAX, level.len);
        let (filters, hash) = (&self.tables.filters[..], self.tables.hashes.filter);
        if COMPILED {
            return compiled::part(level, filters, hash, mask, scratch, keys);
        }
        let parting = Parting {
            mask,
            keys: &mut scratch.keys[..keys],
            rows: &mut scratch.rows[..keys],
            passed: &mut scratch.passed[..keys],
            passed_rows: &mut scratch.passed_rows[..keys],
            hashes: &mut scratch.hashes[..keys],
        };
        level.bits(filters, hash).part(self.isa, parting)
    }

    /// Looks for the keys that passed the level's filter in its buckets. Those that are not there join
    /// the `left` ones that failed; how many these are then.
    #[inline(always)]
    fn search<S: Simd>(
        &self,
        simd: S,
        level: &Level,
        scratch: &mut Scratch<<A as Keyed>::Key>,
        passed: usize,
        mut left: usize,
        hops: &mut [Hop],
    ) -> usize {
        let mask = key::<A, <A as Keyed>::Key>(A::MAX, level.len);
        let hashes = self.tables.hashes;
        if hashes.table != hashes.filter {
            let (from, to) = (&scratch.passed[..passed], &mut scratch.hashes[..passed]);
            if COMPILED {
                compiled::hash_all(hashes.table, 0, mask, from, to);
            } else {
                hash_all(hashes.table, self.isa, mask, from, to);
            }
        }
        let buckets = &self.tables.buckets[level.buckets.clone()];
        for (hash, place) in scratch.hashes[..passed].iter().zip(&mut scratch.places) {
            let at = home(hash.low(), buckets.len());
            prefetch_read_l2(buckets, at);
            *place = at as u32;
        }
        for i in 0..passed {
            let (whole, row) = (scratch.passed[i], scratch.passed_rows[i]);
            let key = whole & mask;
            let mut code: C = probe(simd, &buckets[scratch.places[i] as usize], key);
            if code == C::ON {
                code = find(buckets, key, scratch.hashes[i].low());
            }
            hops[row.low() as usize] = hop(code.into());
            (scratch.keys[left], scratch.rows[left]) = (whole, row);
            left += usize::from(code == C::NONE);
        }
        left
    }

    /// Looks for routes longer than a key, one address after the other: few pass the gate. Addresses
    /// that have none join the `left` ones; how many these are then.
    fn long(
        &self,
        scratch: &mut Scratch<<A as Keyed>::Key>,
        passed: usize,
        mut left: usize,
        addrs: &[A],
        hops: &mut [Hop],
    ) -> usize {
        for i in 0..passed {
            let row = scratch.passed_rows[i].low() as usize;
            match self.tables.find_long(addrs[row]) {
                Some(code) => hops[row] = hop(code.into()),
                None => {
                    (scratch.keys[left], scratch.rows[left]) =
                        (scratch.passed[i], scratch.passed_rows[i]);
                    left += 1;
                }
            }
        }
        left
    }
}
