//! The computations of a batch's steps, for a row of lookups at once.

use fibula_simd::Row;

use super::record::Codes;
use super::word::{BASE, BITS_AT, BYTE};

/// The places of the next words, where a word names a table.
#[inline(always)]
pub(super) fn places<R: Row<N>, const N: usize>(keys: R, words: R) -> R {
    words.and(words.splat(BASE)).add(keys.shr(words.shr(words.splat(BITS_AT))))
}

/// Removes the bits that index the table from each key whose word names one.
#[inline(always)]
pub(super) fn shorten<R: Row<N>, const N: usize>(keys: R, words: R) -> R {
    let bits = words.splat(32).sub(words.shr(words.splat(BITS_AT)));
    keys.shl(bits).if_top(words, keys)
}

/// The first bytes of the records' units, and the keys as the comparison needs them.
#[inline(always)]
pub(super) fn unit_and_key<C: Codes, R: Row<N>, const N: usize>(words: R, keys: R) -> (R, R) {
    let splat = |word| words.splat(word);
    let unit = words.shr(splat(3)).and(splat(BYTE & !(size_of::<C::Unit>() as u32 - 1)));
    (unit, keys.and(splat(0xffff_0000)).or(keys.shr(splat(16))))
}

/// The first byte of each record's code. `below` has a bit for each key of the unit that is below the searched key.
#[inline(always)]
pub(super) fn code_places<C: Codes, R: Row<N>, const N: usize>(words: R, below: R) -> R {
    let splat = |word| words.splat(word);
    let (bytes, keys) = (words.shr(splat(3)).and(splat(BYTE)), words.and(splat(31)));
    let first = words.shr(splat(4)).and(splat(size_of::<C::Unit>() as u32 / 2 - 2));
    let all = splat(1).shl(keys).add(splat(u32::MAX));
    // The keys are sorted, so the set bits are the lowest ones, and the bit length is their number.
    let ranks = below.shr(first).and(all).bit_lengths();
    let size = size_of::<C::Code>() as u32;
    let behind_keys = keys.add(keys).add(splat(size - 1)).and(splat(!(size - 1)));
    bytes.add(behind_keys).add(ranks.shl(splat(size.trailing_zeros())))
}

/// Extracts the codes at these bytes from the words that contain them.
#[inline(always)]
pub(super) fn code_words<C: Codes, R: Row<N>, const N: usize>(read: R, places: R) -> R {
    let splat = |word| places.splat(word);
    // Codes of 8 and of 16 bits are read as part of an aligned word, so no load crosses the end of a line.
    if size_of::<C::Code>() == 4 {
        return read;
    }
    read.shr(places.and(splat(3)).shl(splat(3))).and(splat(C::TOP))
}
