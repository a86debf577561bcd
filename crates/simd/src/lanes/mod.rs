//! Vectors whose lanes are keys, with which filters hash and probe many keys.

/// Operations that are one instruction of two registers, and shifts by a count.
#[cfg(target_arch = "x86_64")]
macro_rules! registers {
    ($($op:ident = $intrinsic:ident),*; $($shift:ident = $by_count:ident),*) => {
        $(
            #[inline(always)]
            fn $op(self, other: Self) -> Self {
                // SAFETY: the lanes prove that the machine has it; registers alone are touched.
                Self::of(unsafe { $intrinsic(self.0, other.0) })
            }
        )*
        $(
            #[inline(always)]
            fn $shift(self, by: u32) -> Self {
                // SAFETY: the lanes prove that the machine has it; registers alone are touched. A
                // constant count becomes part of the instruction.
                Self::of(unsafe { $by_count(self.0, _mm_cvtsi32_si128(by.cast_signed())) })
            }
        )*
    };
}

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
pub(crate) mod neon;
mod one;
mod permutations;
#[cfg(test)]
mod tests;

use std::fmt::Debug;
use std::ops::BitAnd;

use crate::Simd;
use crate::sealed::Sealed;

#[cfg(target_arch = "x86_64")]
pub use avx2::Avx2Lanes;
#[cfg(target_arch = "x86_64")]
pub use avx512::Avx512Lanes;
#[cfg(target_arch = "aarch64")]
pub use neon::NeonLanes;
pub use one::One;
pub use permutations::Permutations;

/// The type of a lane: `u32` or `u64`.
pub trait Word:
    Sealed + Copy + Default + Ord + BitAnd<Output = Self> + Debug + Send + Sync + 'static
{
    /// Whether it has 64 bits.
    const WIDE: bool = size_of::<Self>() == 8;

    /// The low 32 bits.
    fn low(self) -> u32;
    /// The word with these low 32 bits, zeros above.
    fn of_low(low: u32) -> Self;
    /// The word, with zeros above.
    fn to_u64(self) -> u64;
    /// The low bits of the number.
    fn of_u64(number: u64) -> Self;
}

macro_rules! word {
    ($($t:ty),*) => { $(
        impl Sealed for $t {}
        impl Word for $t {
            #[inline(always)]
            fn low(self) -> u32 {
                self as u32
            }
            #[inline(always)]
            fn of_low(low: u32) -> Self {
                low.into()
            }
            #[inline(always)]
            fn to_u64(self) -> u64 {
                self.into()
            }
            #[inline(always)]
            fn of_u64(number: u64) -> Self {
                number as Self
            }
        }
    )* };
}

word!(u32, u64);

/// A vector of words, one register of the instruction set. It is made by an instruction set
/// ([`Simd`]) alone, so that having one is the proof that the machine has the instructions.
///
/// Arithmetic is on the 32-bit words of the register, whatever the width of the lanes, except where an operation
/// documents something else: hashes have 32 bits, and with 64-bit keys they lie in the low halves of the lanes. Masks
/// have a bit for each lane, the first one's lowest; from bit [`Lanes::N`] on they are undefined.
///
/// # Safety
/// There are [`Lanes::N`] lanes, at most 16, and each operation does what is documented: code that gathers relies on
/// it.
pub unsafe trait Lanes: Sealed + Copy {
    /// The type of a lane.
    type Word: Word;
    /// The instruction set.
    type Simd: Simd;

    /// The number of lanes.
    const N: usize;

    /// The instruction set, which the lanes prove.
    fn simd(self) -> Self::Simd;
    /// The word in every lane.
    fn splat(simd: Self::Simd, word: Self::Word) -> Self;
    /// The words `from[at..at + N]`.
    ///
    /// # Panics
    /// If they do not lie within the slice.
    #[inline(always)]
    fn load(simd: Self::Simd, from: &[Self::Word], at: usize) -> Self {
        check::<Self>(from.len(), at);
        // SAFETY: as just checked.
        unsafe { Self::load_unchecked(simd, from, at) }
    }
    /// The words `from[at..at + N]`.
    ///
    /// # Safety
    /// They lie within the slice.
    unsafe fn load_unchecked(simd: Self::Simd, from: &[Self::Word], at: usize) -> Self;
    /// The words `from[at..at + N]`, each in a lane of 64 bits, zeros above it.
    ///
    /// # Panics
    /// If they do not lie within the slice. With lanes of 32 bits it does not compile.
    fn load_long<F: Word>(simd: Self::Simd, from: &[F], at: usize) -> Self;
    /// Writes all lanes to `to[at..at + N]`.
    ///
    /// # Panics
    /// If that does not lie within the slice.
    #[inline(always)]
    fn store(self, to: &mut [Self::Word], at: usize) {
        check::<Self>(to.len(), at);
        // SAFETY: as just checked.
        unsafe { self.store_unchecked(to, at) }
    }
    /// Writes all lanes to `to[at..at + N]`.
    ///
    /// # Safety
    /// That lies within the slice.
    unsafe fn store_unchecked(self, to: &mut [Self::Word], at: usize);

    /// This word in every 32 bits.
    fn words(self, word: u32) -> Self;
    /// This number in every lane of 64 bits.
    fn longs(self, number: u64) -> Self;
    /// Sum of words.
    fn add(self, other: Self) -> Self;
    /// Low half of the product of words.
    fn mul(self, other: Self) -> Self;
    /// And.
    fn and(self, other: Self) -> Self;
    /// Exclusive or.
    fn xor(self, other: Self) -> Self;
    /// Or.
    fn or(self, other: Self) -> Self;
    /// Words shifted right.
    fn srl(self, by: u32) -> Self;
    /// Words shifted left.
    fn sll(self, by: u32) -> Self;
    /// Words turned left.
    #[inline(always)]
    fn rotate(self, by: u32) -> Self {
        self.sll(by).or(self.srl(32 - by))
    }
    /// High words of the products with a number: of all words of 32-bit lanes, of the low words of 64-bit
    /// lanes, with zeros above.
    fn mulhi(self, number: u32) -> Self;

    /// Sum of lanes of 64 bits.
    fn add64(self, other: Self) -> Self;
    /// Low half of the product of lanes of 64 bits.
    fn mul64(self, other: Self) -> Self;
    /// Lanes of 64 bits shifted right.
    fn srl64(self, by: u32) -> Self;
    /// Lanes of 64 bits shifted left.
    fn sll64(self, by: u32) -> Self;
    /// Lanes of 64 bits turned left.
    #[inline(always)]
    fn rotate64(self, by: u32) -> Self {
        self.sll64(by).or(self.srl64(64 - by))
    }
    /// Products, of 64 bits, of the low words of lanes of 64 bits.
    fn mul_low(self, other: Self) -> Self;
    /// In each lane of 64 bits the bit that its six lowest bits name.
    fn bit64(self) -> Self;

    /// The low word of each lane of 64 bits in both of its words.
    fn low_twice(self) -> Self;
    /// The high word of each lane of 64 bits in both of its words.
    fn high_twice(self) -> Self;

    /// Which lanes hold the same.
    fn equal(self, other: Self) -> u16;
    /// How many lanes are in a mask.
    #[inline(always)]
    fn count(mask: u16) -> usize {
        (mask & u16::MAX >> (16 - Self::N)).count_ones() as usize
    }
    /// The chosen lanes in order, at the front; the others are undefined.
    fn pack(self, chosen: u16) -> Self;
    /// The first lanes of `fresh` in place of those that are done. The others may change places, in
    /// the same way whenever the same lanes are done.
    fn refill(self, fresh: Self, done: u16) -> Self;
    /// [`Lanes::refill`] with zeros.
    fn clear(self, done: u16) -> Self;
    /// [`Lanes::pack`] by a table, also where there is an instruction for it, for comparisons.
    #[inline(always)]
    fn pack_by(self, _table: &Permutations, chosen: u16) -> Self {
        self.pack(chosen)
    }
    /// [`Lanes::refill`] by a table, also where there is an instruction for it.
    #[inline(always)]
    fn refill_by(self, _table: &Permutations, fresh: Self, done: u16) -> Self {
        self.refill(fresh, done)
    }

    /// The words of a table that the lanes name, modulo its length.
    ///
    /// # Panics
    /// If the length is no power of two, or above 2^31.
    fn pick(self, table: &[Self::Word]) -> Self;

    /// Which lanes' bits of a table are set: a lane's low 32 bits are the number of its bit. With lanes
    /// of 64 bits the high words are zero.
    ///
    /// # Safety
    /// Every number is below the number of bits in `table`, and that is at most 2^31.
    unsafe fn test(self, table: &[u64]) -> u16;
}

/// The mask of places in a table whose length is a power of two, for vectors of signed places.
#[inline(always)]
fn places<T>(table: &[T]) -> u32 {
    assert!(table.len().is_power_of_two() && table.len() <= 1 << 31, "a table of 2^n words");
    (table.len() - 1) as u32
}

/// Checks that `N` words lie at this place of a slice of so many.
#[inline(always)]
fn check<L: Lanes>(len: usize, at: usize) {
    assert!(len >= L::N && at <= len - L::N, "a vector within the slice");
}
