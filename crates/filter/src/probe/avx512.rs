//! Sixteen 32-bit keys, or eight of 64 bits.

use core::arch::x86_64::*;
use std::marker::PhantomData;

use super::lanes::Lanes;

/// The proof that the machine has AVX-512 F, BW, DQ and VL, and all that AVX2 means.
#[derive(Clone, Copy)]
pub struct Avx512<K>(PhantomData<K>);

impl<K> Avx512<K> {
    /// # Safety
    /// The machine has the instructions.
    #[inline(always)]
    pub unsafe fn new() -> Self {
        Self(PhantomData)
    }
}

/// A shift's count; a constant becomes part of the instruction.
#[inline(always)]
fn count(by: u32) -> __m128i {
    // SAFETY: every x86-64 machine has SSE2.
    unsafe { _mm_cvtsi32_si128(by.cast_signed()) }
}

/// What does not depend on the width of the keys.
macro_rules! words {
    () => {
        // SAFETY of every block in here: `self` proves that the machine has the instructions, which
        // touch registers alone.
        #[inline(always)]
        fn splat(self, word: u32) -> __m512i {
            // SAFETY: as said above.
            unsafe { _mm512_set1_epi32(word.cast_signed()) }
        }
        #[inline(always)]
        fn splat64(self, number: u64) -> __m512i {
            // SAFETY: as said above.
            unsafe { _mm512_set1_epi64(number.cast_signed()) }
        }
        #[inline(always)]
        fn add(self, a: __m512i, b: __m512i) -> __m512i {
            // SAFETY: as said above.
            unsafe { _mm512_add_epi32(a, b) }
        }
        #[inline(always)]
        fn mul(self, a: __m512i, b: __m512i) -> __m512i {
            // SAFETY: as said above.
            unsafe { _mm512_mullo_epi32(a, b) }
        }
        #[inline(always)]
        fn and(self, a: __m512i, b: __m512i) -> __m512i {
            // SAFETY: as said above.
            unsafe { _mm512_and_si512(a, b) }
        }
        #[inline(always)]
        fn xor(self, a: __m512i, b: __m512i) -> __m512i {
            // SAFETY: as said above.
            unsafe { _mm512_xor_si512(a, b) }
        }
        #[inline(always)]
        fn or(self, a: __m512i, b: __m512i) -> __m512i {
            // SAFETY: as said above.
            unsafe { _mm512_or_si512(a, b) }
        }
        #[inline(always)]
        fn srl(self, a: __m512i, by: u32) -> __m512i {
            // SAFETY: as said above.
            unsafe { _mm512_srl_epi32(a, count(by)) }
        }
        #[inline(always)]
        fn sll(self, a: __m512i, by: u32) -> __m512i {
            // SAFETY: as said above.
            unsafe { _mm512_sll_epi32(a, count(by)) }
        }
        #[inline(always)]
        fn srl64(self, a: __m512i, by: u32) -> __m512i {
            // SAFETY: as said above.
            unsafe { _mm512_srl_epi64(a, count(by)) }
        }
        #[inline(always)]
        fn mul64(self, a: __m512i, b: __m512i) -> __m512i {
            // SAFETY: as said above.
            unsafe { _mm512_mullo_epi64(a, b) }
        }
    };
}

impl Lanes for Avx512<u32> {
    type Key = u32;
    type V = __m512i;
    type Mask = u16;
    const N: usize = 16;

    words!();

    #[inline(always)]
    unsafe fn load(self, from: &[u32], at: usize) -> __m512i {
        debug_assert!(at + 16 <= from.len());
        // SAFETY: the 16 keys lie within the slice, says the caller.
        unsafe { _mm512_loadu_si512(from.as_ptr().add(at).cast()) }
    }
    #[inline(always)]
    unsafe fn store(self, lanes: __m512i, to: &mut [u32], at: usize) {
        debug_assert!(at + 16 <= to.len());
        // SAFETY: the 16 keys lie within the slice, says the caller.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().add(at).cast(), lanes) }
    }
    #[inline(always)]
    unsafe fn test(self, words: &[u64], positions: __m512i) -> u16 {
        // SAFETY: the positions lie within the words, says the caller, so the 32-bit words that they
        // are in do; their numbers are below 2^26, so the gather's signed ones.
        unsafe {
            let at = _mm512_srli_epi32::<5>(positions);
            let words = _mm512_i32gather_epi32::<4>(at, words.as_ptr().cast());
            // A rotation takes its count modulo 32, which a shift does not.
            _mm512_test_epi32_mask(words, _mm512_rolv_epi32(_mm512_set1_epi32(1), positions))
        }
    }
    #[inline(always)]
    fn splat_lane(self, number: u32) -> __m512i {
        self.splat(number)
    }
    #[inline(always)]
    fn mulhi(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: `self` proves that the machine has the instructions, on registers alone.
        unsafe {
            let even = _mm512_srli_epi64::<32>(_mm512_mul_epu32(a, b));
            let odd = _mm512_mul_epu32(_mm512_srli_epi64::<32>(a), b);
            _mm512_mask_blend_epi32(0xaaaa, even, odd)
        }
    }
    #[inline(always)]
    fn crc(self, keys: __m512i) -> __m512i {
        let mut words = [0u32; 16];
        // SAFETY: `self` proves that the machine has the instructions (AVX2 means SSE 4.2); the array
        // has 64 bytes.
        unsafe {
            _mm512_storeu_si512(words.as_mut_ptr().cast(), keys);
            for word in &mut words {
                *word = _mm_crc32_u64(_mm_crc32_u32(0, *word).into(), 4) as u32;
            }
            _mm512_loadu_si512(words.as_ptr().cast())
        }
    }
    #[inline(always)]
    fn equal(self, a: __m512i, b: __m512i) -> u16 {
        // SAFETY: `self` proves that the machine has the instruction, on registers alone.
        unsafe { _mm512_cmpeq_epi32_mask(a, b) }
    }
    #[inline(always)]
    fn count(self, mask: u16) -> usize {
        mask.count_ones() as usize
    }
    #[inline(always)]
    fn pack(self, lanes: __m512i, chosen: u16) -> __m512i {
        // SAFETY: `self` proves that the machine has the instruction, on registers alone.
        unsafe { _mm512_maskz_compress_epi32(chosen, lanes) }
    }
    #[inline(always)]
    fn refill(self, old: __m512i, fresh: __m512i, done: u16) -> __m512i {
        // SAFETY: `self` proves that the machine has the instruction, on registers alone.
        unsafe { _mm512_mask_expand_epi32(old, done, fresh) }
    }
    #[inline(always)]
    fn clear(self, old: __m512i, done: u16) -> __m512i {
        // SAFETY: `self` proves that the machine has the instruction, on registers alone.
        unsafe { _mm512_maskz_mov_epi32(!done, old) }
    }
}

impl Lanes for Avx512<u64> {
    type Key = u64;
    type V = __m512i;
    type Mask = u8;
    const N: usize = 8;

    words!();

    #[inline(always)]
    unsafe fn load(self, from: &[u64], at: usize) -> __m512i {
        debug_assert!(at + 8 <= from.len());
        // SAFETY: the 8 keys lie within the slice, says the caller.
        unsafe { _mm512_loadu_si512(from.as_ptr().add(at).cast()) }
    }
    #[inline(always)]
    unsafe fn store(self, lanes: __m512i, to: &mut [u64], at: usize) {
        debug_assert!(at + 8 <= to.len());
        // SAFETY: the 8 keys lie within the slice, says the caller.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().add(at).cast(), lanes) }
    }
    #[inline(always)]
    unsafe fn test(self, words: &[u64], positions: __m512i) -> u8 {
        // SAFETY: the positions lie within the words, says the caller, and have zeros above.
        unsafe {
            let at = _mm512_srli_epi64::<6>(positions);
            let words = _mm512_i64gather_epi64::<8>(at, words.as_ptr().cast());
            _mm512_test_epi64_mask(words, _mm512_rolv_epi64(_mm512_set1_epi64(1), positions))
        }
    }
    #[inline(always)]
    fn splat_lane(self, number: u32) -> __m512i {
        self.splat64(number.into())
    }
    #[inline(always)]
    fn mulhi(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: `self` proves that the machine has the instructions, on registers alone.
        unsafe { _mm512_srli_epi64::<32>(_mm512_mul_epu32(a, b)) }
    }
    #[inline(always)]
    fn crc(self, keys: __m512i) -> __m512i {
        let mut words = [0u64; 8];
        // SAFETY: `self` proves that the machine has the instructions (AVX2 means SSE 4.2); the array
        // has 64 bytes.
        unsafe {
            _mm512_storeu_si512(words.as_mut_ptr().cast(), keys);
            for word in &mut words {
                *word = _mm_crc32_u64(_mm_crc32_u64(0, *word), 8);
            }
            _mm512_loadu_si512(words.as_ptr().cast())
        }
    }
    #[inline(always)]
    fn equal(self, a: __m512i, b: __m512i) -> u8 {
        // SAFETY: `self` proves that the machine has the instruction, on registers alone.
        unsafe { _mm512_cmpeq_epi64_mask(a, b) }
    }
    #[inline(always)]
    fn count(self, mask: u8) -> usize {
        mask.count_ones() as usize
    }
    #[inline(always)]
    fn pack(self, lanes: __m512i, chosen: u8) -> __m512i {
        // SAFETY: `self` proves that the machine has the instruction, on registers alone.
        unsafe { _mm512_maskz_compress_epi64(chosen, lanes) }
    }
    #[inline(always)]
    fn refill(self, old: __m512i, fresh: __m512i, done: u8) -> __m512i {
        // SAFETY: `self` proves that the machine has the instruction, on registers alone.
        unsafe { _mm512_mask_expand_epi64(old, done, fresh) }
    }
    #[inline(always)]
    fn clear(self, old: __m512i, done: u8) -> __m512i {
        // SAFETY: `self` proves that the machine has the instruction, on registers alone.
        unsafe { _mm512_maskz_mov_epi64(!done, old) }
    }
}
