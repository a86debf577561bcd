//! Four 32-bit lanes, or two of 64 bits, which change places by a table of sixteen permutations of bytes.

use core::arch::aarch64::*;
use std::marker::PhantomData;

use super::{Lanes, Word, check, places};
use crate::Neon;
use crate::sealed::Sealed;

/// For each set of four words, the bytes of its members in order, and then those of the others.
static PERMUTE: [[u8; 16]; 16] = orders(false);
/// The same with zeros for the others: a permutation of bytes writes 0 for a place that does not exist.
static PACK: [[u8; 16]; 16] = orders(true);

const fn orders(members_only: bool) -> [[u8; 16]; 16] {
    let mut table = [[0xff; 16]; 16];
    let mut set = 0;
    while set < 16 {
        let (mut at, mut word) = (0, 0);
        // Twice over the words: the members first.
        while word < if members_only { 4 } else { 8 } {
            if (set >> (word % 4) & 1 == 1) == (word < 4) {
                let mut byte = 0;
                while byte < 4 {
                    table[set][at] = (word % 4 * 4 + byte) as u8;
                    (at, byte) = (at + 1, byte + 1);
                }
            }
            word += 1;
        }
        set += 1;
    }
    table
}

/// The words of a set of 4, in order, and zeros behind them.
///
/// # Safety
/// The machine has NEON.
#[inline(always)]
pub(crate) unsafe fn pack(words: uint32x4_t, set: u16) -> uint32x4_t {
    // SAFETY: the caller's.
    unsafe { permute(words, &PACK[usize::from(set & 15)]) }
}

/// # Safety
/// The machine has NEON.
#[inline(always)]
unsafe fn permute(words: uint32x4_t, order: &[u8; 16]) -> uint32x4_t {
    // SAFETY: the caller's; the order has sixteen bytes.
    unsafe {
        vreinterpretq_u32_u8(vqtbl1q_u8(vreinterpretq_u8_u32(words), vld1q_u8(order.as_ptr())))
    }
}

/// A vector of 128 bits. Made by a [`Neon`] alone, which proves that the machine has NEON.
#[derive(Clone, Copy, Debug)]
pub struct NeonLanes<T>(uint32x4_t, PhantomData<T>);

impl<T> NeonLanes<T> {
    #[inline(always)]
    fn of(register: uint32x4_t) -> Self {
        Self(register, PhantomData)
    }
    #[inline(always)]
    fn of64(register: uint64x2_t) -> Self {
        // SAFETY: lanes are made of lanes or of a token; registers alone are touched.
        Self::of(unsafe { vreinterpretq_u32_u64(register) })
    }
    #[inline(always)]
    fn to64(self) -> uint64x2_t {
        // SAFETY: the lanes prove NEON; registers alone are touched.
        unsafe { vreinterpretq_u64_u32(self.0) }
    }
    /// The low words of the lanes of 64 bits.
    #[inline(always)]
    fn low_words(self) -> uint32x2_t {
        // SAFETY: the lanes prove NEON; registers alone are touched.
        unsafe { vmovn_u64(self.to64()) }
    }
    /// The low 32 bits of each lane.
    #[inline(always)]
    fn numbers(self) -> impl Iterator<Item = u32>
    where
        T: Word,
    {
        let mut words = [0; 4];
        // SAFETY: the lanes prove NEON; the four words can be written.
        unsafe { vst1q_u32(words.as_mut_ptr(), self.0) };
        words.into_iter().step_by(size_of::<T>() / 4)
    }
}

impl<T> Sealed for NeonLanes<T> {}

/// Operations of two registers that are one instruction.
macro_rules! registers {
    ($($op:ident = $intrinsic:ident),*) => { $(
        #[inline(always)]
        fn $op(self, other: Self) -> Self {
            // SAFETY: the lanes prove NEON; registers alone are touched.
            Self::of(unsafe { $intrinsic(self.0, other.0) })
        }
    )* };
}

// SAFETY: a register has `N` lanes, and the operations are as they are described.
unsafe impl<T: Word> Lanes for NeonLanes<T> {
    type Word = T;
    type Simd = Neon;
    const N: usize = 16 / size_of::<T>();

    registers! { add = vaddq_u32, mul = vmulq_u32, and = vandq_u32, xor = veorq_u32, or = vorrq_u32 }

    #[inline(always)]
    fn simd(self) -> Neon {
        Neon(())
    }
    #[inline(always)]
    fn splat(_: Neon, word: T) -> Self {
        // SAFETY: the token proves NEON; registers alone are touched.
        unsafe {
            match T::WIDE {
                true => Self::of64(vdupq_n_u64(word.to_u64())),
                false => Self::of(vdupq_n_u32(word.low())),
            }
        }
    }
    #[inline(always)]
    unsafe fn load_unchecked(_: Neon, from: &[T], at: usize) -> Self {
        debug_assert!(at + Self::N <= from.len());
        // SAFETY: the token proves NEON; the 16 bytes lie within the slice, says the caller.
        Self::of(unsafe { vld1q_u32(from.as_ptr().add(at).cast()) })
    }
    #[inline(always)]
    fn load_long<F: Word>(_: Neon, from: &[F], at: usize) -> Self {
        const { assert!(T::WIDE) };
        check::<Self>(from.len(), at);
        // SAFETY: the token proves NEON; two words, 16 bytes or 8, lie within the slice.
        Self::of64(unsafe {
            let from = from.as_ptr().add(at);
            match F::WIDE {
                true => vld1q_u64(from.cast()),
                false => vmovl_u32(vld1_u32(from.cast())),
            }
        })
    }
    #[inline(always)]
    unsafe fn store_unchecked(self, to: &mut [T], at: usize) {
        debug_assert!(at + Self::N <= to.len());
        // SAFETY: the lanes prove NEON; the 16 bytes lie within the slice, says the caller.
        unsafe { vst1q_u32(to.as_mut_ptr().add(at).cast(), self.0) }
    }
    #[inline(always)]
    fn words(self, word: u32) -> Self {
        // SAFETY: the lanes prove NEON; registers alone are touched.
        Self::of(unsafe { vdupq_n_u32(word) })
    }
    #[inline(always)]
    fn longs(self, number: u64) -> Self {
        // SAFETY: the lanes prove NEON; registers alone are touched.
        Self::of64(unsafe { vdupq_n_u64(number) })
    }
    #[inline(always)]
    fn srl(self, by: u32) -> Self {
        // SAFETY: the lanes prove NEON; registers alone are touched. A constant count becomes part of the instruction.
        Self::of(unsafe { vshlq_u32(self.0, vdupq_n_s32(-by.cast_signed())) })
    }
    #[inline(always)]
    fn sll(self, by: u32) -> Self {
        // SAFETY: as in `srl`.
        Self::of(unsafe { vshlq_u32(self.0, vdupq_n_s32(by.cast_signed())) })
    }
    #[inline(always)]
    fn mulhi(self, number: u32) -> Self {
        // SAFETY: the lanes prove NEON; registers alone are touched.
        unsafe {
            if T::WIDE {
                let products = vmull_u32(self.low_words(), vdup_n_u32(number));
                Self::of64(vshrq_n_u64::<32>(products))
            } else {
                let front = vmull_u32(vget_low_u32(self.0), vdup_n_u32(number));
                let back = vmull_high_u32(self.0, vdupq_n_u32(number));
                Self::of(vuzp2q_u32(vreinterpretq_u32_u64(front), vreinterpretq_u32_u64(back)))
            }
        }
    }
    #[inline(always)]
    fn add64(self, other: Self) -> Self {
        // SAFETY: the lanes prove NEON; registers alone are touched.
        Self::of64(unsafe { vaddq_u64(self.to64(), other.to64()) })
    }
    #[inline(always)]
    fn mul64(self, other: Self) -> Self {
        // The high half is the sum of the two cross products, modulo 2^32.
        // SAFETY: the lanes prove NEON; registers alone are touched.
        Self::of64(unsafe {
            let cross = vpaddlq_u32(vmulq_u32(self.0, vrev64q_u32(other.0)));
            vmlal_u32(vshlq_n_u64::<32>(cross), self.low_words(), other.low_words())
        })
    }
    #[inline(always)]
    fn srl64(self, by: u32) -> Self {
        // SAFETY: as in `srl`.
        Self::of64(unsafe { vshlq_u64(self.to64(), vdupq_n_s64(-i64::from(by))) })
    }
    #[inline(always)]
    fn sll64(self, by: u32) -> Self {
        // SAFETY: as in `srl`.
        Self::of64(unsafe { vshlq_u64(self.to64(), vdupq_n_s64(by.into())) })
    }
    #[inline(always)]
    fn mul_low(self, other: Self) -> Self {
        // SAFETY: the lanes prove NEON; registers alone are touched.
        Self::of64(unsafe { vmull_u32(self.low_words(), other.low_words()) })
    }
    #[inline(always)]
    fn bit64(self) -> Self {
        // SAFETY: the lanes prove NEON; registers alone are touched.
        Self::of64(unsafe {
            let by = vandq_u64(self.to64(), vdupq_n_u64(63));
            vshlq_u64(vdupq_n_u64(1), vreinterpretq_s64_u64(by))
        })
    }
    #[inline(always)]
    fn pick(self, table: &[T]) -> Self {
        let places = places(table);
        let mut picked = [T::default(); 4];
        for (to, at) in picked.iter_mut().zip(self.numbers()) {
            // SAFETY: the place is below the table's length.
            *to = unsafe { *table.get_unchecked((at & places) as usize) };
        }
        Self::load(self.simd(), &picked, 0)
    }
    #[inline(always)]
    fn low_twice(self) -> Self {
        // SAFETY: the lanes prove NEON; registers alone are touched.
        Self::of(unsafe { vtrn1q_u32(self.0, self.0) })
    }
    #[inline(always)]
    fn high_twice(self) -> Self {
        // SAFETY: the lanes prove NEON; registers alone are touched.
        Self::of(unsafe { vtrn2q_u32(self.0, self.0) })
    }
    #[inline(always)]
    fn equal(self, other: Self) -> u16 {
        static BITS: [u32; 4] = [1, 2, 4, 8];
        static BITS64: [u64; 2] = [1, 2];
        // SAFETY: the lanes prove NEON; there is a bit for each lane.
        unsafe {
            if T::WIDE {
                let equal = vceqq_u64(self.to64(), other.to64());
                vaddvq_u64(vandq_u64(equal, vld1q_u64(BITS64.as_ptr()))) as u16
            } else {
                let equal = vceqq_u32(self.0, other.0);
                vaddvq_u32(vandq_u32(equal, vld1q_u32(BITS.as_ptr()))) as u16
            }
        }
    }
    #[inline(always)]
    fn pack(self, chosen: u16) -> Self {
        // A lane of 64 bits is two words.
        let set = match T::WIDE {
            true => (chosen & 1) * 3 | (chosen >> 1 & 1) * 12,
            false => chosen & 15,
        };
        // SAFETY: the lanes prove NEON.
        Self::of(unsafe { permute(self.0, &PERMUTE[usize::from(set)]) })
    }
    #[inline(always)]
    fn refill(self, fresh: Self, done: u16) -> Self {
        static PLACES: [u32; 4] = [0, 1, 2, 3];
        let words = Self::count(done) * size_of::<T>() / 4;
        // SAFETY: the lanes prove NEON; there are four places.
        Self::of(unsafe {
            let is_fresh = vcltq_u32(vld1q_u32(PLACES.as_ptr()), vdupq_n_u32(words as u32));
            vbslq_u32(is_fresh, fresh.0, self.pack(done).0)
        })
    }
    #[inline(always)]
    fn clear(self, done: u16) -> Self {
        self.refill(self.words(0), done)
    }
    #[inline(always)]
    unsafe fn test(self, table: &[u64]) -> u16 {
        let mut set = 0;
        for (lane, bit) in self.numbers().enumerate() {
            // SAFETY: the bits lie within the table, says the caller, so the words that they are in do.
            let word = unsafe { table.get_unchecked(bit as usize / 64) };
            set |= ((word >> (bit % 64) & 1) as u16) << lane;
        }
        set
    }
}
