//! Eight 32-bit lanes, or four of 64 bits, which change places by a table of permutations: a row for each set of lanes
//! that can be done. With sixteen lanes the table would have 65,536 rows; HPBF avoids such a table.

use core::arch::x86_64::*;
use std::marker::PhantomData;

use super::{Lanes, Word, check, places};
use crate::Avx2;
use crate::sealed::Sealed;

/// The words of a set of 8, in order, and zeros behind them.
///
/// # Safety
/// The machine has AVX2.
#[inline(always)]
pub(crate) unsafe fn pack(words: __m256i, set: u8) -> __m256i {
    let (order, chosen) = (&PERMUTE[usize::from(set)], &BELOW[set.count_ones() as usize]);
    // SAFETY: the caller's; the rows of both tables have the 8 bytes that are read.
    unsafe {
        let order = _mm256_cvtepi8_epi32(_mm_loadl_epi64(order.as_ptr().cast()));
        let chosen = _mm256_cvtepi8_epi32(_mm_loadl_epi64(chosen.as_ptr().cast()));
        _mm256_and_si256(_mm256_permutevar8x32_epi32(words, order), chosen)
    }
}

/// A vector of 256 bits. Made by an [`Avx2`] alone, which proves that the machine has AVX2.
#[derive(Clone, Copy, Debug)]
pub struct Avx2Lanes<T>(__m256i, PhantomData<T>);

/// For each set of 8 words: its members in order, then the others. A set of 4 lanes of 64 bits is one of
/// 8 words, each lane twice.
static PERMUTE: [[u8; 8]; 256] = {
    let mut table = [[0; 8]; 256];
    let mut set = 0;
    while set < 256 {
        let (mut at, mut lane) = (0, 0);
        while lane < 16 {
            // Twice over the lanes: the members first.
            if (set >> (lane % 8) & 1 == 1) == (lane < 8) {
                table[set][at] = lane as u8 % 8;
                at += 1;
            }
            lane += 1;
        }
        set += 1;
    }
    table
};

/// For each set of 4 lanes, in words: two of them a lane.
static PERMUTE64: [[u8; 8]; 16] = {
    let mut table = [[0; 8]; 16];
    let mut set = 0;
    while set < 16 {
        let mut lane = 0;
        let mut words = 0;
        while lane < 4 {
            words |= (set >> lane & 1) * (3 << (2 * lane));
            lane += 1;
        }
        table[set] = PERMUTE[words];
        set += 1;
    }
    table
};

/// For each number of words, below which a blend takes the second operand.
static BELOW: [[u8; 8]; 9] = {
    let mut table = [[0; 8]; 9];
    let mut n = 0;
    while n < 9 {
        let mut word = 0;
        while word < n {
            table[n][word] = 0xff;
            word += 1;
        }
        n += 1;
    }
    table
};

impl<T> Avx2Lanes<T> {
    #[inline(always)]
    fn of(register: __m256i) -> Self {
        Self(register, PhantomData)
    }

    /// The 8 bytes as numbers of 32 bits, the top bit of each for its sign.
    #[inline(always)]
    fn row(self, bytes: &[u8; 8]) -> Self {
        // SAFETY: the lanes prove AVX2; the row has the 8 bytes that are read.
        Self::of(unsafe { _mm256_cvtepi8_epi32(_mm_loadl_epi64(bytes.as_ptr().cast())) })
    }
}

impl<T> Sealed for Avx2Lanes<T> {}

// SAFETY: a register has `N` lanes, and the operations are as they are described.
unsafe impl<T: Word> Lanes for Avx2Lanes<T> {
    type Word = T;
    type Simd = Avx2;
    const N: usize = 32 / size_of::<T>();

    registers! {
        add = _mm256_add_epi32, mul = _mm256_mullo_epi32, and = _mm256_and_si256,
        xor = _mm256_xor_si256, or = _mm256_or_si256, add64 = _mm256_add_epi64,
        mul_low = _mm256_mul_epu32;
        srl = _mm256_srl_epi32, sll = _mm256_sll_epi32, srl64 = _mm256_srl_epi64,
        sll64 = _mm256_sll_epi64
    }

    #[inline(always)]
    fn simd(self) -> Avx2 {
        Avx2(())
    }
    #[inline(always)]
    fn splat(_: Avx2, word: T) -> Self {
        let word = word.to_u64().cast_signed();
        // SAFETY: the token proves AVX2; registers alone are touched.
        Self::of(unsafe {
            if T::WIDE { _mm256_set1_epi64x(word) } else { _mm256_set1_epi32(word as i32) }
        })
    }
    #[inline(always)]
    unsafe fn load_unchecked(_: Avx2, from: &[T], at: usize) -> Self {
        debug_assert!(at + Self::N <= from.len());
        // SAFETY: the token proves AVX2; the 32 bytes lie within the slice, says the caller.
        Self::of(unsafe { _mm256_loadu_si256(from.as_ptr().add(at).cast()) })
    }
    #[inline(always)]
    fn load_long<F: Word>(_: Avx2, from: &[F], at: usize) -> Self {
        const { assert!(T::WIDE) };
        check::<Self>(from.len(), at);
        // SAFETY: the token proves AVX2; four words, 32 bytes or 16, lie within the slice.
        Self::of(unsafe {
            let from = from.as_ptr().add(at);
            match F::WIDE {
                true => _mm256_loadu_si256(from.cast()),
                false => _mm256_cvtepu32_epi64(_mm_loadu_si128(from.cast())),
            }
        })
    }
    #[inline(always)]
    unsafe fn store_unchecked(self, to: &mut [T], at: usize) {
        debug_assert!(at + Self::N <= to.len());
        // SAFETY: the lanes prove AVX2; the 32 bytes lie within the slice, says the caller.
        unsafe { _mm256_storeu_si256(to.as_mut_ptr().add(at).cast(), self.0) }
    }
    #[inline(always)]
    fn words(self, word: u32) -> Self {
        // SAFETY: the lanes prove AVX2; registers alone are touched.
        Self::of(unsafe { _mm256_set1_epi32(word.cast_signed()) })
    }
    #[inline(always)]
    fn longs(self, number: u64) -> Self {
        // SAFETY: the lanes prove AVX2; registers alone are touched.
        Self::of(unsafe { _mm256_set1_epi64x(number.cast_signed()) })
    }
    #[inline(always)]
    fn mulhi(self, number: u32) -> Self {
        let (a, b) = (self.0, self.longs(number.into()).0);
        // SAFETY: the lanes prove AVX2; registers alone are touched.
        Self::of(unsafe {
            let even = _mm256_srli_epi64::<32>(_mm256_mul_epu32(a, b));
            if T::WIDE {
                even
            } else {
                let odd = _mm256_mul_epu32(_mm256_srli_epi64::<32>(a), b);
                _mm256_blend_epi32::<0b1010_1010>(even, odd)
            }
        })
    }
    #[inline(always)]
    fn mul64(self, other: Self) -> Self {
        let (a, b) = (self.0, other.0);
        // The high half is the sum of the two cross products, modulo 2^32.
        // SAFETY: the lanes prove AVX2; registers alone are touched.
        Self::of(unsafe {
            let cross = _mm256_mullo_epi32(a, _mm256_shuffle_epi32::<0b10_11_00_01>(b));
            let cross = _mm256_add_epi32(cross, _mm256_srli_epi64::<32>(cross));
            _mm256_add_epi64(_mm256_mul_epu32(a, b), _mm256_slli_epi64::<32>(cross))
        })
    }
    #[inline(always)]
    fn bit64(self) -> Self {
        let by = self.and(self.longs(63));
        // SAFETY: the lanes prove AVX2; registers alone are touched.
        Self::of(unsafe { _mm256_sllv_epi64(_mm256_set1_epi64x(1), by.0) })
    }
    #[inline(always)]
    fn pick(self, table: &[T]) -> Self {
        let (places, start) = (T::of_low(places(table)), table.as_ptr());
        let at = self.and(Self::splat(self.simd(), places)).0;
        // SAFETY: the lanes prove AVX2; the places are below the table's length, and as signed numbers the
        // same.
        Self::of(unsafe {
            match T::WIDE {
                true => _mm256_i64gather_epi64::<8>(start.cast(), at),
                false => _mm256_i32gather_epi32::<4>(start.cast(), at),
            }
        })
    }
    #[inline(always)]
    fn low_twice(self) -> Self {
        // SAFETY: the lanes prove AVX2; registers alone are touched.
        Self::of(unsafe { _mm256_shuffle_epi32::<0b10_10_00_00>(self.0) })
    }
    #[inline(always)]
    fn high_twice(self) -> Self {
        // SAFETY: the lanes prove AVX2; registers alone are touched.
        Self::of(unsafe { _mm256_shuffle_epi32::<0b11_11_01_01>(self.0) })
    }
    #[inline(always)]
    fn equal(self, other: Self) -> u16 {
        let (a, b) = (self.0, other.0);
        // SAFETY: the lanes prove AVX2; registers alone are touched.
        unsafe {
            match T::WIDE {
                true => _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(a, b))) as u16,
                false => _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(a, b))) as u16,
            }
        }
    }
    #[inline(always)]
    fn pack(self, chosen: u16) -> Self {
        let order = match T::WIDE {
            true => &PERMUTE64[usize::from(chosen & 0xf)],
            false => &PERMUTE[usize::from(chosen & 0xff)],
        };
        // SAFETY: the lanes prove AVX2; registers alone are touched.
        Self::of(unsafe { _mm256_permutevar8x32_epi32(self.0, self.row(order).0) })
    }
    #[inline(always)]
    fn refill(self, fresh: Self, done: u16) -> Self {
        let which = self.row(&BELOW[Self::count(done) * size_of::<T>() / 4]);
        // SAFETY: the lanes prove AVX2; registers alone are touched.
        Self::of(unsafe { _mm256_blendv_epi8(self.pack(done).0, fresh.0, which.0) })
    }
    #[inline(always)]
    fn clear(self, done: u16) -> Self {
        self.refill(self.words(0), done)
    }
    #[inline(always)]
    unsafe fn test(self, table: &[u64]) -> u16 {
        // SAFETY: the lanes prove AVX2; the bits lie within the table, says the caller, so the words that
        // they are in do, and their numbers are below 2^26: the gather's numbers are signed.
        unsafe {
            // The wanted bit goes to the sign, by the word's last bit less its number.
            if T::WIDE {
                let at = _mm256_srli_epi64::<6>(self.0);
                let words = _mm256_i64gather_epi64::<8>(table.as_ptr().cast(), at);
                let by = _mm256_andnot_si256(self.0, _mm256_set1_epi64x(63));
                _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_sllv_epi64(words, by))) as u16
            } else {
                let at = _mm256_srli_epi32::<5>(self.0);
                let words = _mm256_i32gather_epi32::<4>(table.as_ptr().cast(), at);
                let by = _mm256_andnot_si256(self.0, _mm256_set1_epi32(31));
                _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_sllv_epi32(words, by))) as u16
            }
        }
    }
}
