use core::arch::x86_64::{
    __m512i, _mm512_cmplt_epu32_mask, _mm512_cmplt_epu64_mask, _mm512_loadu_si512,
    _mm512_set1_epi32, _mm512_set1_epi64,
};

use crate::{Isa, Kernel, Simd};

/// The proof that the machine has AVX-512 F, BW, CD, DQ and VL, and all that [`Isa::Avx2`] means.
#[derive(Clone, Copy, Debug)]
pub struct Avx512(());

impl Avx512 {
    /// The proof, if the machine has the instructions.
    pub fn new() -> Option<Self> {
        (crate::Avx2::new().is_some()
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512cd")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl"))
        .then_some(Self(()))
    }
}

#[target_feature(
    enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt,fma"
)]
fn entry<K: Kernel>(simd: Avx512, kernel: K) -> K::Output {
    kernel.run(simd)
}

impl Simd for Avx512 {
    type Splat64 = __m512i;
    type Splat32 = __m512i;

    const ISA: Isa = Isa::Avx512;

    #[inline(always)]
    fn splat64(self, key: u64) -> __m512i {
        // SAFETY: `self` proves that the machine has AVX-512 F.
        unsafe { _mm512_set1_epi64(key.cast_signed()) }
    }
    #[inline(always)]
    fn splat32(self, key: u32) -> __m512i {
        // SAFETY: `self` proves that the machine has AVX-512 F.
        unsafe { _mm512_set1_epi32(key.cast_signed()) }
    }
    #[inline(always)]
    fn rank64(self, line: &[u64; 8], key: __m512i) -> u32 {
        // SAFETY: `self` proves that the machine has AVX-512 F; the 64 bytes of the line are
        // readable, and the load has no alignment to keep.
        let below = unsafe {
            let line = _mm512_loadu_si512(line.as_ptr().cast());
            _mm512_cmplt_epu64_mask(line, key)
        };
        u32::from(below).count_ones()
    }
    #[inline(always)]
    fn rank32(self, line: &[u32; 16], key: __m512i) -> u32 {
        // SAFETY: `self` proves that the machine has AVX-512 F; the 64 bytes of the line are
        // readable, and the load has no alignment to keep.
        let below = unsafe {
            let line = _mm512_loadu_si512(line.as_ptr().cast());
            _mm512_cmplt_epu32_mask(line, key)
        };
        u32::from(below).count_ones()
    }
    #[inline]
    fn run<K: Kernel>(self, kernel: K) -> K::Output {
        // SAFETY: `self` proves that the machine has the features that `entry` enables.
        unsafe { entry(self, kernel) }
    }
}
