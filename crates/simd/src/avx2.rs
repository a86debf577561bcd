use core::arch::x86_64::{
    __m256i, _mm256_castsi256_ps, _mm256_cmpgt_epi32, _mm256_cmpgt_epi64, _mm256_loadu_si256,
    _mm256_movemask_epi8, _mm256_movemask_ps, _mm256_packs_epi32, _mm256_set1_epi32,
    _mm256_set1_epi64x, _mm256_shuffle_ps, _mm256_xor_si256,
};

use crate::{Isa, Kernel, Simd};

/// The proof that the machine has AVX2, BMI1, BMI2, FMA, LZCNT and POPCNT.
#[derive(Clone, Copy, Debug)]
pub struct Avx2(());

impl Avx2 {
    /// The proof, if the machine has the instructions.
    pub fn new() -> Option<Self> {
        (is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt"))
        .then_some(Self(()))
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,fma")]
fn entry<K: Kernel>(simd: Avx2, kernel: K) -> K::Output {
    kernel.run(simd)
}

// AVX2 compares signed integers only. With the sign bit of both sides flipped, signed order is the
// unsigned one; the key is flipped once, when it is splat, the line on every load.
impl Simd for Avx2 {
    type Splat64 = __m256i;
    type Splat32 = __m256i;

    const ISA: Isa = Isa::Avx2;

    #[inline(always)]
    fn splat64(self, key: u64) -> __m256i {
        // SAFETY: `self` proves that the machine has AVX2.
        unsafe { _mm256_set1_epi64x((key ^ (1 << 63)).cast_signed()) }
    }
    #[inline(always)]
    fn splat32(self, key: u32) -> __m256i {
        // SAFETY: `self` proves that the machine has AVX2.
        unsafe { _mm256_set1_epi32((key ^ (1 << 31)).cast_signed()) }
    }
    #[inline(always)]
    fn rank64(self, line: &[u64; 8], key: __m256i) -> u32 {
        let halves = line.as_ptr().cast::<__m256i>();
        // SAFETY: `self` proves that the machine has AVX2; both halves of the 64-byte line are
        // readable, and the loads have no alignment to keep.
        let below = unsafe {
            let flip = _mm256_set1_epi64x(i64::MIN);
            let low = _mm256_xor_si256(_mm256_loadu_si256(halves), flip);
            let high = _mm256_xor_si256(_mm256_loadu_si256(halves.add(1)), flip);
            let low = _mm256_castsi256_ps(_mm256_cmpgt_epi64(key, low));
            let high = _mm256_castsi256_ps(_mm256_cmpgt_epi64(key, high));
            // One 32-bit half of each lane's verdict: order does not matter to a count.
            _mm256_movemask_ps(_mm256_shuffle_ps::<0b11_01_11_01>(low, high))
        };
        below.count_ones()
    }
    #[inline(always)]
    fn rank32(self, line: &[u32; 16], key: __m256i) -> u32 {
        let halves = line.as_ptr().cast::<__m256i>();
        // SAFETY: `self` proves that the machine has AVX2; both halves of the 64-byte line are
        // readable, and the loads have no alignment to keep.
        let below = unsafe {
            let flip = _mm256_set1_epi32(i32::MIN);
            let low = _mm256_xor_si256(_mm256_loadu_si256(halves), flip);
            let high = _mm256_xor_si256(_mm256_loadu_si256(halves.add(1)), flip);
            let low = _mm256_cmpgt_epi32(key, low);
            let high = _mm256_cmpgt_epi32(key, high);
            // Two mask bits for each verdict.
            _mm256_movemask_epi8(_mm256_packs_epi32(low, high))
        };
        below.count_ones() / 2
    }
    #[inline]
    fn run<K: Kernel>(self, kernel: K) -> K::Output {
        // SAFETY: `self` proves that the machine has the features that `entry` enables.
        unsafe { entry(self, kernel) }
    }
}
