//! Hashes of masked flows: sums of products.

use fibula_filter::fmix64;
use fibula_simd::{Lanes, One};

use crate::WORDS;

/// A key of [`sums`] for each word of a flow.
pub(crate) type Keys = [u64; WORDS];

/// The hash by which a masked flow is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hashed {
    /// Its high bits choose the bucket.
    pub(crate) index: u32,
    /// The signature that is compared with the candidates of a bucket.
    pub(crate) signature: u32,
    /// All bits of the hash, for the filter.
    pub(crate) whole: u64,
}

impl Hashed {
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

/// The summand of a masked word: the product of its halves, to each of which half of a key was added (NH, of UMAC).
/// Words may come in any order, several sums are independent of each other, and a word costs one multiplication.
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

/// The hash of masked words: of `(word of the flow, value)`.
#[inline(always)]
pub(crate) fn of_words(keys: &Keys, words: impl Iterator<Item = (usize, u64)>) -> Hashed {
    let add = |sum: One<u64>, (at, word): (usize, u64)| {
        sum.add64(product(One::new(word), One::new(keys[at])))
    };
    Hashed::of_long(mix(words.fold(One::new(0), add)).to_u64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_do_not_depend_on_the_order() {
        let words = [(0, 7), (4, u64::MAX), (9, 1 << 63)];
        let hash = |words: &mut dyn Iterator<Item = (usize, u64)>| of_words(&keys(3), words).whole;
        assert_eq!(hash(&mut words.into_iter()), hash(&mut words.into_iter().rev()));
        assert_ne!(hash(&mut words.into_iter()), hash(&mut [(0, 7)].into_iter()));
    }
}
