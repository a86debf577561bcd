//! What the vector loops are written over, and the hash functions over it.

use std::marker::PhantomData;
use std::ops::{BitAnd, Not};

use crate::Shape;
use crate::hash::{GOLDEN, H2, KNUTH, KNUTH64, Key, OVS};

/// A vector of keys. A value of an implementing type is the proof that the machine has the
/// instructions. Arithmetic is on 32-bit words, whatever the width of the keys: hashes have 32 bits,
/// and with 64-bit keys they lie in the low halves of the lanes, with anything in the high ones.
pub trait Lanes: Copy {
    /// What a lane holds.
    type Key: Key;
    /// The vector.
    type V: Copy;
    /// A bit for each lane.
    type Mask: Copy + BitAnd<Output = Self::Mask> + Not<Output = Self::Mask>;

    /// The number of lanes.
    const N: usize;

    /// The keys `from[at..at + N]`.
    ///
    /// # Safety
    /// They lie within the slice.
    unsafe fn load(self, from: &[Self::Key], at: usize) -> Self::V;
    /// Writes all lanes to `to[at..at + N]`.
    ///
    /// # Safety
    /// They lie within the slice.
    unsafe fn store(self, lanes: Self::V, to: &mut [Self::Key], at: usize);
    /// Which positions have their bit set. Other bits than the low 32 of a lane are ignored.
    ///
    /// # Safety
    /// Every position is below the number of bits in `words`, and that is at most 2^31.
    unsafe fn test(self, words: &[u64], positions: Self::V) -> Self::Mask;

    /// The word in every word.
    fn splat(self, word: u32) -> Self::V;
    /// The number in every lane.
    fn splat_lane(self, number: u32) -> Self::V;
    /// The number in every 64 bits.
    fn splat64(self, number: u64) -> Self::V;
    /// Sum of words.
    fn add(self, a: Self::V, b: Self::V) -> Self::V;
    /// Low half of the product of words.
    fn mul(self, a: Self::V, b: Self::V) -> Self::V;
    /// And.
    fn and(self, a: Self::V, b: Self::V) -> Self::V;
    /// Exclusive or.
    fn xor(self, a: Self::V, b: Self::V) -> Self::V;
    /// Or.
    fn or(self, a: Self::V, b: Self::V) -> Self::V;
    /// Words shifted right.
    fn srl(self, a: Self::V, by: u32) -> Self::V;
    /// Words shifted left.
    fn sll(self, a: Self::V, by: u32) -> Self::V;
    /// 64-bit numbers shifted right.
    fn srl64(self, a: Self::V, by: u32) -> Self::V;
    /// Low half of the product of 64-bit numbers.
    fn mul64(self, a: Self::V, b: Self::V) -> Self::V;
    /// High words of the products of the low words of 64-bit lanes, or of all words of 32-bit lanes.
    fn mulhi(self, a: Self::V, b: Self::V) -> Self::V;
    /// The CRC of each key, then of its length in bytes.
    fn crc(self, keys: Self::V) -> Self::V;

    /// Which lanes hold the same.
    fn equal(self, a: Self::V, b: Self::V) -> Self::Mask;
    /// How many lanes.
    fn count(self, mask: Self::Mask) -> usize;
    /// The chosen lanes in order, at the front; what is behind them is nothing to rely on.
    fn pack(self, lanes: Self::V, chosen: Self::Mask) -> Self::V;
    /// The first lanes of `fresh` in place of those that are done. The others may change places, in
    /// the same way whenever the same lanes are done.
    fn refill(self, old: Self::V, fresh: Self::V, done: Self::Mask) -> Self::V;
    /// [`Lanes::refill`] with zeros.
    fn clear(self, old: Self::V, done: Self::Mask) -> Self::V;
}

/// Turns words left.
#[inline(always)]
fn rotate<L: Lanes>(l: L, x: L::V, by: u32) -> L::V {
    l.or(l.sll(x, by), l.srl(x, 32 - by))
}

/// `(x ^ x >> by) * by`
#[inline(always)]
fn mix<L: Lanes>(l: L, x: L::V, by: u32, factor: u32) -> L::V {
    l.mul(l.xor(x, l.srl(x, by)), l.splat(factor))
}

#[inline(always)]
fn fmix32<L: Lanes>(l: L, x: L::V) -> L::V {
    let x = mix(l, mix(l, x, 16, 0x85eb_ca6b), 13, 0xc2b2_ae35);
    l.xor(x, l.srl(x, 16))
}

#[inline(always)]
fn h2<L: Lanes>(l: L, x: L::V) -> L::V {
    let x = mix(l, mix(l, x, 16, H2), 16, H2);
    l.xor(x, l.srl(x, 16))
}

#[inline(always)]
fn murmur_block<L: Lanes>(l: L, hash: L::V, block: L::V) -> L::V {
    let block = rotate(l, l.mul(block, l.splat(0xcc9e_2d51)), 15);
    let hash = rotate(l, l.xor(hash, l.mul(block, l.splat(0x1b87_3593))), 13);
    l.add(l.mul(hash, l.splat(5)), l.splat(0xe654_6b64))
}

/// Whether keys have 64 bits, known when compiling.
const fn wide<L: Lanes>() -> bool {
    size_of::<L::Key>() == 8
}

/// The high halves of 64-bit keys, in the low ones.
#[inline(always)]
fn high<L: Lanes>(l: L, keys: L::V) -> L::V {
    l.srl64(keys, 32)
}

/// A [`crate::Hash`] over vectors, each a type, so that loops are compiled for it.
pub trait Family: Copy {
    /// The hash of each key of its lane's index.
    fn nth<L: Lanes>(l: L, keys: L::V, index: L::V) -> L::V;
}

/// A function that double hashing begins with.
pub trait Pair: Copy {
    /// [`Key::pair`].
    fn pair<L: Lanes>(l: L, keys: L::V) -> (L::V, L::V);
}

#[inline(always)]
fn turned<L: Lanes>(l: L, first: L::V) -> (L::V, L::V) {
    (first, l.or(rotate(l, first, 16), l.splat(1)))
}

/// The halves of a 64-bit hash.
#[inline(always)]
fn halves<L: Lanes>(l: L, hash: L::V) -> (L::V, L::V) {
    (high(l, hash), l.or(hash, l.splat(1)))
}

#[derive(Clone, Copy)]
pub struct MurmurSeeded;
#[derive(Clone, Copy)]
pub struct Double<P>(PhantomData<P>);
#[derive(Clone, Copy)]
pub struct Murmur;
#[derive(Clone, Copy)]
pub struct Knuth;
#[derive(Clone, Copy)]
pub struct H2Hash;
#[derive(Clone, Copy)]
pub struct Crc32c;

impl Family for MurmurSeeded {
    #[inline(always)]
    fn nth<L: Lanes>(l: L, keys: L::V, index: L::V) -> L::V {
        let hash = murmur_block(l, l.mul(index, l.splat(GOLDEN)), keys);
        if wide::<L>() {
            let hash = murmur_block(l, hash, high(l, keys));
            return fmix32(l, l.xor(hash, l.splat(8)));
        }
        fmix32(l, l.xor(hash, l.splat(4)))
    }
}

impl<P: Pair> Family for Double<P> {
    #[inline(always)]
    fn nth<L: Lanes>(l: L, keys: L::V, index: L::V) -> L::V {
        let (first, second) = P::pair(l, keys);
        l.add(first, l.mul(index, second))
    }
}

impl Pair for Murmur {
    #[inline(always)]
    fn pair<L: Lanes>(l: L, keys: L::V) -> (L::V, L::V) {
        if !wide::<L>() {
            return turned(l, fmix32(l, keys));
        }
        let x = l.mul64(l.xor(keys, l.srl64(keys, 33)), l.splat64(0xff51_afd7_ed55_8ccd));
        let x = l.mul64(l.xor(x, l.srl64(x, 33)), l.splat64(0xc4ce_b9fe_1a85_ec53));
        halves(l, l.xor(x, l.srl64(x, 33)))
    }
}

impl Pair for Knuth {
    #[inline(always)]
    fn pair<L: Lanes>(l: L, keys: L::V) -> (L::V, L::V) {
        if wide::<L>() {
            return halves(l, l.mul64(keys, l.splat64(KNUTH64)));
        }
        turned(l, l.mul(keys, l.splat(KNUTH)))
    }
}

impl Pair for H2Hash {
    #[inline(always)]
    fn pair<L: Lanes>(l: L, keys: L::V) -> (L::V, L::V) {
        let keys = if wide::<L>() { l.xor(h2(l, high(l, keys)), keys) } else { keys };
        turned(l, h2(l, keys))
    }
}

impl Pair for Crc32c {
    #[inline(always)]
    fn pair<L: Lanes>(l: L, keys: L::V) -> (L::V, L::V) {
        let hash = l.mul(l.crc(keys), l.splat(OVS));
        turned(l, l.xor(hash, l.srl(hash, 16)))
    }
}

/// The two hashes of a blocked filter.
pub trait Twice: Copy {
    /// Those of a block and of its bits.
    fn twice<L: Lanes>(l: L, keys: L::V) -> (L::V, L::V);
}

impl Twice for MurmurSeeded {
    #[inline(always)]
    fn twice<L: Lanes>(l: L, keys: L::V) -> (L::V, L::V) {
        (Self::nth(l, keys, l.splat_lane(0)), Self::nth(l, keys, l.splat_lane(1)))
    }
}

impl<P: Pair> Twice for P {
    #[inline(always)]
    fn twice<L: Lanes>(l: L, keys: L::V) -> (L::V, L::V) {
        P::pair(l, keys)
    }
}

/// [`Shape::position`] over vectors.
#[derive(Clone, Copy)]
pub struct Reduce {
    shift: Option<u32>,
    bits: u32,
}

impl Reduce {
    pub fn new(shape: Shape) -> Self {
        Self { shift: shape.shift(), bits: shape.bits() }
    }

    /// Where the hashes point: in the low 32 bits of each lane, the high ones are zero.
    #[inline(always)]
    pub fn positions<L: Lanes>(self, l: L, hashes: L::V) -> L::V {
        match self.shift {
            Some(shift) if !wide::<L>() => l.srl(hashes, shift),
            _ => l.mulhi(hashes, l.splat_lane(self.bits)),
        }
    }
}
