//! The filters of a batch in plain loops over arrays, which the compiler turns into vectors of the instruction set: the
//! form that the paper compares its intrinsics with.
//!
//! Checked in the disassembly (x86-64, LLVM of rustc 1.95 or later, `release`): hashes and positions are computed in
//! `ymm` registers with AVX2 and in `zmm` registers with AVX-512 (`vpmulld`, `vpmuludq`, and for keys of 64 bits
//! `vpmullq` with AVX-512 alone). CRC32 becomes gathers from its table with AVX-512 and stays scalar with AVX2. The
//! words of a filter are read one by one, because each index has a check of its bounds. The loop that parts the keys
//! writes where the keys before it end, and stays scalar, too. The intrinsics of `fibula_filter` gather words and pack
//! keys, so they do all of this in vectors: with 900,000 IPv4 and 200,000 IPv6 prefixes `bloomfwd` is 1.6 (PFX) and 1.5
//! (RND), IPv6 1.3 and 1.8 times as fast (Xeon, family 6 model 207, AVX-512, machine shared).

use fibula_filter::{Hash, Key, Word};

use super::batch::{BLOCK, Scratch};
use super::bucket::Slot;
use super::tables::Level;

/// Parts the first `count` keys by the level's filter, as `fibula_filter::Bits::part` does; how many pass.
#[inline(always)]
pub(super) fn part<K: Slot<Hashed = K> + Key + Word>(
    level: &Level,
    filters: &[u64],
    hash: Hash,
    mask: K,
    scratch: &mut Scratch<K>,
    count: usize,
) -> usize {
    let words = &filters[level.words.clone()];
    let (keys, hashes) = (&scratch.keys[..count], &mut scratch.hashes[..count]);
    hash_all(hash, 0, mask, keys, hashes);
    let mut pass = [1u32; BLOCK];
    let mut places = [0u32; BLOCK];
    let mut others = [K::default(); BLOCK];
    for index in 0..level.shape.hashes() {
        if index == 0 {
            positions(level, hashes, &mut places[..count]);
        } else {
            hash_all(hash, index, mask, keys, &mut others[..count]);
            positions(level, &others[..count], &mut places[..count]);
        }
        for (pass, place) in pass[..count].iter_mut().zip(&places) {
            *pass &= (words[*place as usize / 64] >> (place % 64)) as u32 & 1;
        }
    }
    let (mut passed, mut failed) = (0, 0);
    for (i, pass) in pass[..count].iter().enumerate() {
        let (key, row, hash) = (scratch.keys[i], scratch.rows[i], scratch.hashes[i]);
        // Written in any case, kept if the count moves on; no more than have been read.
        (scratch.passed[passed], scratch.passed_rows[passed]) = (key, row);
        scratch.hashes[passed] = hash;
        (scratch.keys[failed], scratch.rows[failed]) = (key, row);
        passed += *pass as usize;
        failed += 1 - *pass as usize;
    }
    passed
}

#[inline(always)]
fn positions<K: Word>(level: &Level, hashes: &[K], places: &mut [u32]) {
    for (place, hash) in places.iter_mut().zip(hashes) {
        *place = level.shape.position(hash.low());
    }
}

/// The hash of this index of each `key & mask`. The function is chosen outside of the loop.
#[inline(always)]
pub(super) fn hash_all<K: Key + Word>(
    hash: Hash,
    index: u32,
    mask: K,
    keys: &[K],
    hashes: &mut [K],
) {
    macro_rules! loops {
        ($($name:ident),*) => {
            match hash {
                $(Hash::$name => {
                    for (hash, &key) in hashes.iter_mut().zip(keys) {
                        *hash = K::of_low(Hash::$name.nth(key & mask, index));
                    }
                })*
            }
        };
    }
    loops!(MurmurSeeded, Murmur, Knuth, H2, Crc32c);
}
