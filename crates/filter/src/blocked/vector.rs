//! Blocks against keys: hashes of many keys in vectors, then a vector comparison for each key.

use core::arch::x86_64::*;

use fibula_simd::{Isa, Level, prefetch_read_l2};

use super::{Block, FACTORS};
use crate::probe::lanes::{Crc32c, H2Hash, Knuth, Lanes, Murmur, MurmurSeeded, Twice};
use crate::{Hash, Key};

/// A batch. The payloads are as many as the keys, the outputs at least as many.
pub struct Job<'a, K> {
    pub keys: &'a [K],
    pub payloads: &'a [K],
    pub out_keys: &'a mut [K],
    pub out_payloads: &'a mut [K],
}

/// Keys hashed at a time.
const GROUP: usize = 32;

/// How many groups ahead blocks are asked for: some 250 keys, as far as it takes from memory.
const LEAD: usize = 8;

/// Groups under way: a power of two above the lead.
const RING: usize = 16;

/// The numbers of the blocks of a group, and the hashes of their bits.
#[derive(Clone, Copy)]
struct Group<K>([K; GROUP], [K; GROUP]);

/// Tests all keys; how many passed. The level is not the scalar one.
pub fn run<K: Key>(
    blocks: &[Block],
    hash: Hash,
    prefetch: bool,
    job: Job<'_, K>,
    level: Level,
) -> usize {
    match hash {
        Hash::MurmurSeeded => by_level::<K, MurmurSeeded>(blocks, prefetch, job, level),
        Hash::Murmur => by_level::<K, Murmur>(blocks, prefetch, job, level),
        Hash::Knuth => by_level::<K, Knuth>(blocks, prefetch, job, level),
        Hash::H2 => by_level::<K, H2Hash>(blocks, prefetch, job, level),
        Hash::Crc32c => by_level::<K, Crc32c>(blocks, prefetch, job, level),
    }
}

fn by_level<K: Key, T: Twice>(
    blocks: &[Block],
    prefetch: bool,
    job: Job<'_, K>,
    level: Level,
) -> usize {
    assert!(level.isa() != Isa::Scalar);
    // SAFETY: a level is made only where the machine has its instructions.
    unsafe {
        match (level.isa(), prefetch) {
            (Isa::Avx512, false) => probe512::<K, T, false>(blocks, job),
            (Isa::Avx512, true) => probe512::<K, T, true>(blocks, job),
            (_, false) => probe256::<K, T, false>(blocks, job),
            (_, true) => probe256::<K, T, true>(blocks, job),
        }
    }
}

#[target_feature(
    enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt,fma"
)]
fn probe512<K: Key, T: Twice, const PREFETCH: bool>(blocks: &[Block], job: Job<'_, K>) -> usize {
    // SAFETY: whoever calls this function has the instructions.
    probe::<K::Wide, T, PREFETCH>(unsafe { K::wide() }, blocks, job)
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,fma")]
fn probe256<K: Key, T: Twice, const PREFETCH: bool>(blocks: &[Block], job: Job<'_, K>) -> usize {
    // SAFETY: whoever calls this function has the instructions.
    probe::<K::Half, T, PREFETCH>(unsafe { K::half() }, blocks, job)
}

#[inline(always)]
fn probe<L: Lanes, T: Twice, const PREFETCH: bool>(
    l: L,
    blocks: &[Block],
    job: Job<'_, L::Key>,
) -> usize {
    let Job { keys, payloads, out_keys, out_payloads } = job;
    let zero = L::Key::default();
    let mut groups = [Group([zero; GROUP], [zero; GROUP]); RING];
    let lead = if PREFETCH { LEAD } else { 1 };
    let group = |number: usize| {
        let start = keys.len().min(number * GROUP);
        &keys[start..keys.len().min(start + GROUP)]
    };
    for (number, to) in groups.iter_mut().enumerate().take(lead) {
        hash::<L, T, PREFETCH>(l, blocks, group(number), to);
    }
    let mut n = 0;
    for number in 0..keys.len().div_ceil(GROUP) {
        let (start, len) = (number * GROUP, group(number).len());
        let next = number + lead;
        hash::<L, T, PREFETCH>(l, blocks, group(next), &mut groups[next % RING]);
        let Group(at, bits) = &groups[number % RING];
        for i in 0..len {
            // SAFETY: `hash` made the number for this many blocks.
            let block = unsafe { blocks.get_unchecked(at[i].low() as usize) };
            // SAFETY: `n <= start + i < keys.len()`, the length of the payloads and at most that of
            // the outputs (checked by `BlockedFilter::probe_with`).
            unsafe {
                *out_keys.get_unchecked_mut(n) = *keys.get_unchecked(start + i);
                *out_payloads.get_unchecked_mut(n) = *payloads.get_unchecked(start + i);
            }
            n += usize::from(passes(l, block, bits[i].low()));
        }
    }
    n
}

/// Hashes at most a group of keys, and asks for their blocks. What is behind them in the group are
/// numbers of blocks too.
#[inline(always)]
fn hash<L: Lanes, T: Twice, const PREFETCH: bool>(
    l: L,
    blocks: &[Block],
    keys: &[L::Key],
    group: &mut Group<L::Key>,
) {
    let mut rest = [L::Key::default(); 16];
    let number = l.splat_lane(blocks.len() as u32);
    for (at, keys) in (0..GROUP).step_by(L::N).zip(keys.chunks(L::N)) {
        let keys = if keys.len() < L::N {
            rest[..keys.len()].copy_from_slice(keys);
            &rest[..]
        } else {
            keys
        };
        // SAFETY: there are `N` keys, as just seen, and in the arrays too: `N` divides `GROUP`.
        unsafe {
            let (first, second) = T::twice(l, l.load(keys, 0));
            l.store(l.mulhi(first, number), &mut group.0, at);
            l.store(second, &mut group.1, at);
        }
        if PREFETCH {
            for block in &group.0[at..at + L::N] {
                prefetch_read_l2(blocks, block.low() as usize);
            }
        }
    }
}

/// Whether the key's bits are set in the block.
#[inline(always)]
fn passes<L: Lanes>(_proof: L, block: &Block, hash: u32) -> bool {
    // SAFETY: the proof is of AVX2 at least; a block and the factors have 32 bytes.
    unsafe {
        let factors = _mm256_loadu_si256(FACTORS.as_ptr().cast());
        let block = _mm256_loadu_si256(block.as_ptr().cast());
        let bits = _mm256_mullo_epi32(_mm256_set1_epi32(hash.cast_signed()), factors);
        let bits = _mm256_sllv_epi32(_mm256_set1_epi32(1), _mm256_srli_epi32::<27>(bits));
        _mm256_testc_si256(block, bits) == 1
    }
}
