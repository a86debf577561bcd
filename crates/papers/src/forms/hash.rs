//! The hashes of Open vSwitch: MurmurHash3 and CRC32C of masked words.

use fibula_filter::fmix32 as fmix;
use fibula_filter::steps::{crc_finish, fmix32, murmur_block};
use fibula_simd::{Lanes, One, Simd};

use super::Form;

/// Takes a word into a MurmurHash3 (x86, 32 bits).
#[inline(always)]
fn murmur_add(hash: u32, word: u32) -> u32 {
    let word = word.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
    (hash ^ word).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64)
}

/// Takes 64 bits in, the low half first, as Open vSwitch's `hash_add64` does.
#[inline(always)]
pub(super) fn murmur_add64(hash: u32, word: u64) -> u32 {
    murmur_add(murmur_add(hash, word as u32), (word >> 32) as u32)
}

/// Open vSwitch's `hash_finish`, of so many words of 64 bits.
#[inline(always)]
pub(super) fn murmur_finish(hash: u32, words: usize) -> u32 {
    let bytes = 8 * words as u32;
    fmix(hash ^ bytes)
}

/// [`murmur_add64`] of lanes of 32 bits.
#[inline(always)]
pub(super) fn murmur_lanes<V: Lanes>(hash: V, low: V, high: V) -> V {
    murmur_block(murmur_block(hash, low), high)
}

/// [`murmur_finish`] of lanes of 32 bits.
#[inline(always)]
pub(super) fn murmur_lanes_finish<V: Lanes>(hash: V, words: usize) -> V {
    fmix32(hash.xor(hash.words(8 * words as u32)))
}

/// Open vSwitch's `hash_finish` with CRC instructions.
#[inline(always)]
pub(super) fn crc32_finish<S: Simd>(simd: S, crc: u32, words: usize) -> u32 {
    crc_finish(One::new(simd.crc32c(crc, 8 * words as u64))).low()
}

/// The hash of masked words, for a table.
pub(super) fn of_words<S: Simd>(simd: S, form: Form, words: impl Iterator<Item = u64>) -> u32 {
    let mut n = 0;
    let words = words.inspect(|_| n += 1);
    match form {
        Form::Crc => {
            let hash = words.fold(0, |hash, word| simd.crc32c(hash, word));
            crc32_finish(simd, hash, n)
        }
        _ => {
            let hash = words.fold(0, murmur_add64);
            murmur_finish(hash, n)
        }
    }
}

#[cfg(test)]
mod tests {
    use fibula_filter::Hash;
    use fibula_simd::Scalar;

    use super::*;

    /// The filters' MurmurHash3 and CRC of keys of several words, which have tests against other
    /// implementations, are the same functions but for their beginnings and ends.
    #[test]
    fn hashes_are_those_of_open_vswitch() {
        let words = [0x2001_0db8_c000_0207, 0, u64::MAX];
        let hash = |form| of_words(Scalar, form, words.into_iter());
        // The high half has the seed 0.
        let mut digest = [0];
        let columns: [&[u64]; 3] = [&words[..1], &words[1..2], &words[2..]];
        let rows = fibula_filter::Columns::new(columns, [u64::MAX; 3]);
        rows.digests(Hash::MurmurSeeded, fibula_simd::Isa::Scalar.level(), &mut digest);
        assert_eq!(hash(Form::Murmur), (digest[0] >> 32) as u32);
        rows.digests(Hash::Crc32c, fibula_simd::Isa::Scalar.level(), &mut digest);
        assert_eq!(hash(Form::Crc), (digest[0] >> 32) as u32);
    }
}
