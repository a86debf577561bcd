//! Sixteen 32-bit lanes, or eight of 64 bits.

use core::arch::x86_64::*;
use std::marker::PhantomData;

use super::{Lanes, Permutations, Word, check, places};
use crate::Avx512;
use crate::sealed::Sealed;

/// A vector of 512 bits. Made by an [`Avx512`] alone, which proves that the machine has AVX-512 F and DQ.
#[derive(Clone, Copy, Debug)]
pub struct Avx512Lanes<T>(__m512i, PhantomData<T>);

impl<T> Avx512Lanes<T> {
    #[inline(always)]
    fn of(register: __m512i) -> Self {
        Self(register, PhantomData)
    }
}

impl<T> Sealed for Avx512Lanes<T> {}

// SAFETY: a register has `N` lanes, and the operations are as they are described.
unsafe impl<T: Word> Lanes for Avx512Lanes<T> {
    type Word = T;
    type Simd = Avx512;
    const N: usize = 64 / size_of::<T>();

    registers! {
        add = _mm512_add_epi32, mul = _mm512_mullo_epi32, and = _mm512_and_si512,
        xor = _mm512_xor_si512, or = _mm512_or_si512, add64 = _mm512_add_epi64,
        mul64 = _mm512_mullo_epi64, mul_low = _mm512_mul_epu32;
        srl = _mm512_srl_epi32, sll = _mm512_sll_epi32, srl64 = _mm512_srl_epi64,
        sll64 = _mm512_sll_epi64
    }

    #[inline(always)]
    fn simd(self) -> Avx512 {
        Avx512(())
    }
    #[inline(always)]
    fn splat(_: Avx512, word: T) -> Self {
        let word = word.to_u64().cast_signed();
        // SAFETY: the token proves AVX-512; registers alone are touched.
        Self::of(unsafe {
            if T::WIDE { _mm512_set1_epi64(word) } else { _mm512_set1_epi32(word as i32) }
        })
    }
    #[inline(always)]
    unsafe fn load_unchecked(_: Avx512, from: &[T], at: usize) -> Self {
        debug_assert!(at + Self::N <= from.len());
        // SAFETY: the token proves AVX-512; the 64 bytes lie within the slice, says the caller.
        Self::of(unsafe { _mm512_loadu_si512(from.as_ptr().add(at).cast()) })
    }
    #[inline(always)]
    fn load_long<F: Word>(_: Avx512, from: &[F], at: usize) -> Self {
        const { assert!(T::WIDE) };
        check::<Self>(from.len(), at);
        // SAFETY: the token proves AVX-512; eight words, 64 bytes or 32, lie within the slice.
        Self::of(unsafe {
            let from = from.as_ptr().add(at);
            match F::WIDE {
                true => _mm512_loadu_si512(from.cast()),
                false => _mm512_cvtepu32_epi64(_mm256_loadu_si256(from.cast())),
            }
        })
    }
    #[inline(always)]
    unsafe fn store_unchecked(self, to: &mut [T], at: usize) {
        debug_assert!(at + Self::N <= to.len());
        // SAFETY: the lanes prove AVX-512; the 64 bytes lie within the slice, says the caller.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().add(at).cast(), self.0) }
    }
    #[inline(always)]
    fn words(self, word: u32) -> Self {
        // SAFETY: the lanes prove AVX-512; registers alone are touched.
        Self::of(unsafe { _mm512_set1_epi32(word.cast_signed()) })
    }
    #[inline(always)]
    fn longs(self, number: u64) -> Self {
        // SAFETY: the lanes prove AVX-512; registers alone are touched.
        Self::of(unsafe { _mm512_set1_epi64(number.cast_signed()) })
    }
    #[inline(always)]
    fn mulhi(self, number: u32) -> Self {
        let (a, b) = (self.0, self.longs(number.into()).0);
        // SAFETY: the lanes prove AVX-512; registers alone are touched.
        Self::of(unsafe {
            let even = _mm512_srli_epi64::<32>(_mm512_mul_epu32(a, b));
            if T::WIDE {
                even
            } else {
                let odd = _mm512_mul_epu32(_mm512_srli_epi64::<32>(a), b);
                _mm512_mask_blend_epi32(0xaaaa, even, odd)
            }
        })
    }
    #[inline(always)]
    fn bit64(self) -> Self {
        // A rotation takes its count modulo the width, which a shift does not.
        // SAFETY: the lanes prove AVX-512; registers alone are touched.
        Self::of(unsafe { _mm512_rolv_epi64(_mm512_set1_epi64(1), self.0) })
    }
    #[inline(always)]
    fn pick(self, table: &[T]) -> Self {
        let (places, start) = (T::of_low(places(table)), table.as_ptr());
        let at = self.and(Self::splat(self.simd(), places)).0;
        // SAFETY: the lanes prove AVX-512; the places are below the table's length, and as signed numbers
        // the same.
        Self::of(unsafe {
            match T::WIDE {
                true => _mm512_i64gather_epi64::<8>(at, start.cast()),
                false => _mm512_i32gather_epi32::<4>(at, start.cast()),
            }
        })
    }
    #[inline(always)]
    fn low_twice(self) -> Self {
        // SAFETY: the lanes prove AVX-512; registers alone are touched.
        Self::of(unsafe { _mm512_shuffle_epi32::<0b10_10_00_00>(self.0) })
    }
    #[inline(always)]
    fn high_twice(self) -> Self {
        // SAFETY: the lanes prove AVX-512; registers alone are touched.
        Self::of(unsafe { _mm512_shuffle_epi32::<0b11_11_01_01>(self.0) })
    }
    #[inline(always)]
    fn equal(self, other: Self) -> u16 {
        // SAFETY: the lanes prove AVX-512; registers alone are touched.
        unsafe {
            match T::WIDE {
                true => _mm512_cmpeq_epi64_mask(self.0, other.0).into(),
                false => _mm512_cmpeq_epi32_mask(self.0, other.0),
            }
        }
    }
    #[inline(always)]
    fn pack(self, chosen: u16) -> Self {
        // SAFETY: the lanes prove AVX-512; registers alone are touched.
        Self::of(unsafe {
            match T::WIDE {
                true => _mm512_maskz_compress_epi64(chosen as u8, self.0),
                false => _mm512_maskz_compress_epi32(chosen, self.0),
            }
        })
    }
    #[inline(always)]
    fn refill(self, fresh: Self, done: u16) -> Self {
        // SAFETY: the lanes prove AVX-512; registers alone are touched.
        Self::of(unsafe {
            match T::WIDE {
                true => _mm512_mask_expand_epi64(self.0, done as u8, fresh.0),
                false => _mm512_mask_expand_epi32(self.0, done, fresh.0),
            }
        })
    }
    #[inline(always)]
    fn clear(self, done: u16) -> Self {
        // SAFETY: the lanes prove AVX-512; registers alone are touched.
        Self::of(unsafe {
            match T::WIDE {
                true => _mm512_maskz_mov_epi64(!done as u8, self.0),
                false => _mm512_maskz_mov_epi32(!done, self.0),
            }
        })
    }
    #[inline(always)]
    fn pack_by(self, table: &Permutations, chosen: u16) -> Self {
        // Of eight lanes the low half of a row is a permutation, too.
        let set = if T::WIDE { chosen & 0xff } else { chosen };
        let row = table.0[usize::from(set)].as_ptr().cast();
        // SAFETY: the lanes prove AVX-512; the row has the 16 bytes that are read, or the 8.
        Self::of(unsafe {
            match T::WIDE {
                true => {
                    let order = _mm512_cvtepu8_epi64(_mm_loadl_epi64(row));
                    _mm512_permutexvar_epi64(order, self.0)
                }
                false => {
                    let order = _mm512_cvtepu8_epi32(_mm_loadu_si128(row));
                    _mm512_permutexvar_epi32(order, self.0)
                }
            }
        })
    }
    #[inline(always)]
    fn refill_by(self, table: &Permutations, fresh: Self, done: u16) -> Self {
        let (old, first) = (self.pack_by(table, done), (1u32 << Self::count(done)) - 1);
        // SAFETY: the lanes prove AVX-512; registers alone are touched.
        Self::of(unsafe {
            match T::WIDE {
                true => _mm512_mask_blend_epi64(first as u8, old.0, fresh.0),
                false => _mm512_mask_blend_epi32(first as u16, old.0, fresh.0),
            }
        })
    }
    #[inline(always)]
    unsafe fn test(self, table: &[u64]) -> u16 {
        // SAFETY: the lanes prove AVX-512; the bits lie within the table, says the caller, so the words
        // that they are in do, and their numbers are below 2^26: the gather's numbers are signed.
        unsafe {
            // A rotation takes its count modulo the width, which a shift does not.
            if T::WIDE {
                let at = _mm512_srli_epi64::<6>(self.0);
                let words = _mm512_i64gather_epi64::<8>(at, table.as_ptr().cast());
                let bits = _mm512_rolv_epi64(_mm512_set1_epi64(1), self.0);
                _mm512_test_epi64_mask(words, bits).into()
            } else {
                let at = _mm512_srli_epi32::<5>(self.0);
                let words = _mm512_i32gather_epi32::<4>(at, table.as_ptr().cast());
                let bits = _mm512_rolv_epi32(_mm512_set1_epi32(1), self.0);
                _mm512_test_epi32_mask(words, bits)
            }
        }
    }
}
