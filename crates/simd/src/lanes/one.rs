use std::marker::PhantomData;

use super::{Lanes, Word, places};
use crate::Scalar;
use crate::sealed::Sealed;

/// A single lane, without vectors, for code over [`Lanes`] with one key. A word of 32 bits has zeros above.
#[derive(Clone, Copy, Debug)]
pub struct One<T>(u64, PhantomData<T>);

impl<T: Word> One<T> {
    /// The word as a lane.
    #[inline(always)]
    pub fn new(word: T) -> Self {
        Self(word.to_u64(), PhantomData)
    }

    /// The low 32 bits.
    #[inline(always)]
    pub fn low(self) -> u32 {
        self.0 as u32
    }

    /// The word, with zeros above.
    #[inline(always)]
    pub fn to_u64(self) -> u64 {
        self.0
    }

    #[inline(always)]
    fn of(bits: u64) -> Self {
        Self(bits, PhantomData)
    }

    /// Both halves by themselves.
    #[inline(always)]
    fn each(self, other: Self, word: impl Fn(u32, u32) -> u32) -> Self {
        let high = word((self.0 >> 32) as u32, (other.0 >> 32) as u32);
        Self::of(u64::from(high) << 32 | u64::from(word(self.0 as u32, other.0 as u32)))
    }
}

impl<T> Sealed for One<T> {}

// SAFETY: plain integers, and the operations as they are described.
unsafe impl<T: Word> Lanes for One<T> {
    type Word = T;
    type Simd = Scalar;
    const N: usize = 1;

    #[inline(always)]
    fn simd(self) -> Scalar {
        Scalar
    }
    #[inline(always)]
    fn splat(_: Scalar, word: T) -> Self {
        Self::new(word)
    }
    #[inline(always)]
    unsafe fn load_unchecked(_: Scalar, from: &[T], at: usize) -> Self {
        Self::new(from[at])
    }
    #[inline(always)]
    fn load_long<F: Word>(_: Scalar, from: &[F], at: usize) -> Self {
        const { assert!(T::WIDE) };
        Self::of(from[at].to_u64())
    }
    #[inline(always)]
    unsafe fn store_unchecked(self, to: &mut [T], at: usize) {
        to[at] = T::of_u64(self.0);
    }
    #[inline(always)]
    fn words(self, word: u32) -> Self {
        Self::of(if T::WIDE { u64::from(word) * 0x1_0000_0001 } else { word.into() })
    }
    #[inline(always)]
    fn longs(self, number: u64) -> Self {
        Self::of(number)
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.each(other, u32::wrapping_add)
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        self.each(other, u32::wrapping_mul)
    }
    #[inline(always)]
    fn and(self, other: Self) -> Self {
        Self::of(self.0 & other.0)
    }
    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        Self::of(self.0 ^ other.0)
    }
    #[inline(always)]
    fn or(self, other: Self) -> Self {
        Self::of(self.0 | other.0)
    }
    #[inline(always)]
    fn srl(self, by: u32) -> Self {
        self.each(self, |word, _| word >> by)
    }
    #[inline(always)]
    fn sll(self, by: u32) -> Self {
        self.each(self, |word, _| word << by)
    }
    #[inline(always)]
    fn rotate(self, by: u32) -> Self {
        self.each(self, |word, _| word.rotate_left(by))
    }
    #[inline(always)]
    fn mulhi(self, number: u32) -> Self {
        Self::of(((self.0 & 0xffff_ffff) * u64::from(number)) >> 32)
    }
    #[inline(always)]
    fn add64(self, other: Self) -> Self {
        Self::of(self.0.wrapping_add(other.0))
    }
    #[inline(always)]
    fn mul64(self, other: Self) -> Self {
        Self::of(self.0.wrapping_mul(other.0))
    }
    #[inline(always)]
    fn srl64(self, by: u32) -> Self {
        Self::of(self.0 >> by)
    }
    #[inline(always)]
    fn sll64(self, by: u32) -> Self {
        Self::of(self.0 << by)
    }
    #[inline(always)]
    fn rotate64(self, by: u32) -> Self {
        Self::of(self.0.rotate_left(by))
    }
    #[inline(always)]
    fn mul_low(self, other: Self) -> Self {
        Self::of((self.0 & 0xffff_ffff) * (other.0 & 0xffff_ffff))
    }
    #[inline(always)]
    fn bit64(self) -> Self {
        Self::of(1 << (self.0 & 63))
    }
    #[inline(always)]
    fn pick(self, table: &[T]) -> Self {
        Self::new(table[(self.low() & places(table)) as usize])
    }
    #[inline(always)]
    fn low_twice(self) -> Self {
        Self::of((self.0 & 0xffff_ffff) * 0x1_0000_0001)
    }
    #[inline(always)]
    fn high_twice(self) -> Self {
        Self::of((self.0 >> 32) * 0x1_0000_0001)
    }
    #[inline(always)]
    fn equal(self, other: Self) -> u16 {
        u16::from(self.0 == other.0)
    }
    #[inline(always)]
    fn pack(self, _: u16) -> Self {
        self
    }
    #[inline(always)]
    fn refill(self, fresh: Self, done: u16) -> Self {
        if done & 1 == 1 { fresh } else { self }
    }
    #[inline(always)]
    fn clear(self, done: u16) -> Self {
        self.refill(Self::of(0), done)
    }
    #[inline(always)]
    unsafe fn test(self, table: &[u64]) -> u16 {
        (table[self.low() as usize / 64] >> (self.low() % 64) & 1) as u16
    }
}
