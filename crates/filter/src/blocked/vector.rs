//! Blocks against keys: hashes of many keys in vectors, then a vector comparison for each key.

use std::marker::PhantomData;

use fibula_simd::{Kernel, Lanes, Level, Simd, Word, prefetch_read_l2};

use super::{Block, FACTORS};
use crate::families::HashFamily;
use crate::probe::Job;

/// Keys hashed at a time.
const GROUP: usize = 32;

/// How many groups ahead blocks are prefetched: some 250 keys, the time of an access to memory.
const LEAD: usize = 8;

/// Groups under way: a power of two above the lead.
const RING: usize = 16;

/// The numbers of the blocks of a group, and the hashes of their bits.
#[derive(Clone, Copy)]
struct Group<T>([T; GROUP], [T; GROUP]);

/// Tests all keys; how many passed.
pub(crate) fn run<T: Word, F: HashFamily>(
    job: Job<'_, T, &[Block]>,
    prefetch: bool,
    level: Level,
) -> usize {
    match prefetch {
        false => level.run(Probe::<T, F, false> { job, family: PhantomData }),
        true => level.run(Probe::<T, F, true> { job, family: PhantomData }),
    }
}

struct Probe<'a, T, F, const PREFETCH: bool> {
    job: Job<'a, T, &'a [Block]>,
    family: PhantomData<F>,
}

impl<T: Word, F: HashFamily, const PREFETCH: bool> Kernel for Probe<'_, T, F, PREFETCH> {
    type Output = usize;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> usize {
        let Job { bits: blocks, keys, payloads, out_keys, out_payloads, .. } = self.job;
        let mut groups = [Group([T::default(); GROUP], [T::default(); GROUP]); RING];
        let lead = if PREFETCH { LEAD } else { 1 };
        let group = |number: usize| {
            let start = keys.len().min(number * GROUP);
            &keys[start..keys.len().min(start + GROUP)]
        };
        for (number, to) in groups.iter_mut().enumerate().take(lead) {
            hash::<S::Lanes<T>, F, PREFETCH>(simd, blocks, group(number), to);
        }
        let mut n = 0;
        for number in 0..keys.len().div_ceil(GROUP) {
            let (start, len) = (number * GROUP, group(number).len());
            let next = number + lead;
            hash::<S::Lanes<T>, F, PREFETCH>(simd, blocks, group(next), &mut groups[next % RING]);
            let Group(at, bits) = &groups[number % RING];
            for i in 0..len {
                // SAFETY: `hash` made the number for this many blocks.
                let block = unsafe { blocks.get_unchecked(at[i].low() as usize) };
                // SAFETY: `n <= start + i < keys.len()`, the length of the payloads and at most that of
                // the outputs (checked by `Job::new`).
                unsafe {
                    *out_keys.get_unchecked_mut(n) = *keys.get_unchecked(start + i);
                    *out_payloads.get_unchecked_mut(n) = *payloads.get_unchecked(start + i);
                }
                n += usize::from(simd.has_bits(block, bits[i].low(), &FACTORS));
            }
        }
        n
    }
}

/// Hashes at most a group of keys, and prefetches their blocks. The other places of the group have valid block numbers,
/// too.
#[inline(always)]
fn hash<V: Lanes, F: HashFamily, const PREFETCH: bool>(
    simd: V::Simd,
    blocks: &[Block],
    keys: &[V::Word],
    group: &mut Group<V::Word>,
) {
    let mut rest = [V::Word::default(); 16];
    for (at, keys) in (0..GROUP).step_by(V::N).zip(keys.chunks(V::N)) {
        let keys = if keys.len() < V::N {
            rest[..keys.len()].copy_from_slice(keys);
            &rest[..]
        } else {
            keys
        };
        let (first, second) = F::pair(V::load(simd, keys, 0));
        first.mulhi(blocks.len() as u32).store(&mut group.0, at);
        second.store(&mut group.1, at);
        if PREFETCH {
            for block in &group.0[at..at + V::N] {
                prefetch_read_l2(blocks, block.low() as usize);
            }
        }
    }
}
