//! Hashes of masked flows: those of Open vSwitch, and sums of products.

use fibula_filter::steps::{crc_finish, fmix32, murmur_block};
use fibula_filter::{fmix32 as fmix, fmix64};
use fibula_simd::{Lanes, One, Simd};

use crate::{Form, WORDS};

/// A key of [`sums`] for each word of a flow.
pub(crate) type Keys = [u64; WORDS];

/// What a masked flow is found by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hashed {
    /// Its high bits choose the bucket.
    pub(crate) index: u32,
    /// What candidates of a bucket are compared by.
    pub(crate) signature: u32,
    /// All bits of the hash: what the filter takes.
    pub(crate) whole: u64,
}

impl Hashed {
    /// A hash of 32 bits.
    #[inline(always)]
    pub(crate) fn of_word(hash: u32) -> Self {
        Self { index: hash, signature: hash, whole: hash.into() }
    }

    /// A hash of 64 bits.
    #[inline(always)]
    pub(crate) fn of_long(hash: u64) -> Self {
        Self { index: hash as u32, signature: (hash >> 32) as u32, whole: hash }
    }
}

/// The keys of a seed.
pub(crate) fn keys(seed: u64) -> Keys {
    std::array::from_fn(|word| fmix64(seed ^ fmix64(word as u64 + 1)))
}

/// Takes a word into a MurmurHash3 (x86, 32 bits).
#[inline(always)]
pub(crate) fn murmur_add(hash: u32, word: u32) -> u32 {
    let word = word.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
    (hash ^ word).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64)
}

/// Takes 64 bits in, the low half first, as Open vSwitch's `hash_add64` does.
#[inline(always)]
pub(crate) fn murmur_add64(hash: u32, word: u64) -> u32 {
    murmur_add(murmur_add(hash, word as u32), (word >> 32) as u32)
}

/// Open vSwitch's `hash_finish`, of so many words of 64 bits.
#[inline(always)]
pub(crate) fn murmur_finish(hash: u32, words: usize) -> u32 {
    let bytes = 8 * words as u32;
    fmix(hash ^ bytes)
}

/// [`murmur_add64`] of lanes of 32 bits.
#[inline(always)]
pub(crate) fn murmur_lanes<V: Lanes>(hash: V, low: V, high: V) -> V {
    murmur_block(murmur_block(hash, low), high)
}

/// [`murmur_finish`] of lanes of 32 bits.
#[inline(always)]
pub(crate) fn murmur_lanes_finish<V: Lanes>(hash: V, words: usize) -> V {
    fmix32(hash.xor(hash.words(8 * words as u32)))
}

/// Open vSwitch's `hash_finish` with CRC instructions.
#[inline(always)]
pub(crate) fn crc32_finish<S: Simd>(simd: S, crc: u32, words: usize) -> u32 {
    crc_finish(One::new(simd.crc32c(crc, 8 * words as u64))).low()
}

/// What a masked word adds to a sum: the product of its halves, to each of which half of a key was added (NH,
/// of UMAC). Words may come in any order, several sums are independent of each other, and a word costs one
/// multiplication.
#[inline(always)]
pub(crate) fn product<V: Lanes<Word = u64>>(masked: V, key: V) -> V {
    let sum = masked.add(key);
    sum.mul_low(sum.srl64(32))
}

/// Mixes a sum, so that each half of the hash depends on all bits.
#[inline(always)]
pub(crate) fn mix<V: Lanes<Word = u64>>(sum: V) -> V {
    let hash = sum.xor(sum.srl64(32)).mul64(sum.longs(0x9e37_79b9_7f4a_7c15));
    hash.xor(hash.srl64(32))
}

/// The hash of masked words, by a form: of `(word of the flow, value)`.
#[inline(always)]
pub(crate) fn of_words<S: Simd>(
    simd: S,
    form: Form,
    keys: &Keys,
    words: impl Iterator<Item = (usize, u64)>,
) -> Hashed {
    let mut n = 0;
    let words = words.inspect(|_| n += 1);
    match form {
        Form::Murmur | Form::Gather | Form::Transposed => {
            let hash = words.fold(0, |hash, (_, word)| murmur_add64(hash, word));
            Hashed::of_word(murmur_finish(hash, n))
        }
        Form::Crc => {
            let hash = words.fold(0, |hash, (_, word)| simd.crc32c(hash, word));
            Hashed::of_word(crc32_finish(simd, hash, n))
        }
        Form::Packed => {
            let add = |sum: One<u64>, (at, word): (usize, u64)| {
                sum.add64(product(One::new(word), One::new(keys[at])))
            };
            Hashed::of_long(mix(words.fold(One::new(0), add)).to_u64())
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
        let hash = |form| of_words(Scalar, form, &keys(1), words.into_iter().enumerate()).signature;
        // The high half has the seed 0.
        let mut digest = [0];
        let columns: [&[u64]; 3] = [&words[..1], &words[1..2], &words[2..]];
        let rows = fibula_filter::Columns::new(columns, [u64::MAX; 3]);
        rows.digests(Hash::MurmurSeeded, fibula_simd::Isa::Scalar.level(), &mut digest);
        assert_eq!(hash(Form::Murmur), (digest[0] >> 32) as u32);
        rows.digests(Hash::Crc32c, fibula_simd::Isa::Scalar.level(), &mut digest);
        assert_eq!(hash(Form::Crc), (digest[0] >> 32) as u32);
    }

    #[test]
    fn sums_do_not_depend_on_the_order() {
        let words = [(0, 7), (4, u64::MAX), (9, 1 << 63)];
        let hash = |words: &mut dyn Iterator<Item = (usize, u64)>| {
            of_words(Scalar, Form::Packed, &keys(3), words).whole
        };
        assert_eq!(hash(&mut words.into_iter()), hash(&mut words.into_iter().rev()));
        assert_ne!(hash(&mut words.into_iter()), hash(&mut [(0, 7)].into_iter()));
    }
}
