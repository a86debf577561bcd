use core::arch::x86_64::{
    __m128i, __m256i, _mm_crc32_u32, _mm_crc32_u64, _mm_loadu_si128, _mm_movemask_epi8,
    _mm_packs_epi16, _mm256_add_epi32, _mm256_and_si256, _mm256_andnot_si256, _mm256_blendv_epi8,
    _mm256_blendv_ps, _mm256_castps_si256, _mm256_castsi256_pd, _mm256_castsi256_ps,
    _mm256_castsi256_si128, _mm256_cmpeq_epi32, _mm256_cmpeq_epi64, _mm256_cmpgt_epi16,
    _mm256_cmpgt_epi32, _mm256_cmpgt_epi64, _mm256_cvtepi32_ps, _mm256_cvtepu16_epi32,
    _mm256_extracti128_si256, _mm256_loadu_si256, _mm256_max_epu32, _mm256_min_epu32,
    _mm256_movemask_epi8, _mm256_movemask_pd, _mm256_movemask_ps, _mm256_mullo_epi32,
    _mm256_or_si256, _mm256_packs_epi32, _mm256_permutevar8x32_epi32, _mm256_set1_epi16,
    _mm256_set1_epi32, _mm256_set1_epi64x, _mm256_setzero_si256, _mm256_shuffle_ps,
    _mm256_slli_epi32, _mm256_sllv_epi32, _mm256_srli_epi32, _mm256_srlv_epi32, _mm256_srlv_epi64,
    _mm256_storeu_si256, _mm256_sub_epi32, _mm256_subs_epu16, _mm256_testc_si256, _mm256_xor_si256,
};

use crate::lanes::avx2::pack;
use crate::row::array;
use crate::sealed::Sealed;
use crate::{Avx2Lanes, Isa, Kernel, Row, ScalarRow, Simd, Word};

/// The proof that the machine has AVX2, BMI1, BMI2, FMA, LZCNT, POPCNT and SSE 4.2.
#[derive(Clone, Copy, Debug)]
pub struct Avx2(pub(crate) ());

impl Avx2 {
    /// The proof, if the machine has the instructions.
    pub fn new() -> Option<Self> {
        (is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt")
            && is_x86_feature_detected!("sse4.2"))
        .then_some(Self(()))
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,fma")]
fn entry<K: Kernel>(simd: Avx2, kernel: K) -> K::Output {
    kernel.run(simd)
}

impl Sealed for Avx2 {}

// SAFETY: `Avx2::new` detects the instructions; the operations are as described.
//
// AVX2 compares signed integers only. With the sign bit of both sides flipped, signed order is the
// unsigned one; the key is flipped once, when it is splat, the line on every load.
unsafe impl Simd for Avx2 {
    type Splat64 = __m256i;
    type Splat32 = __m256i;
    type Row = Avx2Row<2>;
    type HalfRow = Avx2Row<1>;
    type Lanes<T: Word> = Avx2Lanes<T>;

    const ISA: Isa = Isa::Avx2;
    const ROWS_WHOLE: bool = false;

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
            _mm256_movemask_epi8(_mm256_packs_epi32(low, high))
        };
        // Two bits each, in packing's order: order does not matter to a count.
        below.count_ones() / 2
    }
    #[inline(always)]
    fn equal64(self, line: &[u64; 8], key: u64) -> u32 {
        let halves = line.as_ptr().cast::<__m256i>();
        // SAFETY: `self` proves that the machine has AVX2; both halves of the 64-byte line are
        // readable, and the loads have no alignment to keep.
        let half = |i| unsafe {
            let equal = _mm256_cmpeq_epi64(
                _mm256_loadu_si256(halves.add(i)),
                _mm256_set1_epi64x(key.cast_signed()),
            );
            _mm256_movemask_pd(_mm256_castsi256_pd(equal)).cast_unsigned()
        };
        half(0) | half(1) << 4
    }
    #[inline(always)]
    fn equal32(self, line: &[u32; 16], key: u32) -> u32 {
        let halves = line.as_ptr().cast::<__m256i>();
        // SAFETY: `self` proves that the machine has AVX2; both halves of the 64-byte line are
        // readable, and the loads have no alignment to keep.
        let half = |i| unsafe {
            let equal = _mm256_cmpeq_epi32(
                _mm256_loadu_si256(halves.add(i)),
                _mm256_set1_epi32(key.cast_signed()),
            );
            _mm256_movemask_ps(_mm256_castsi256_ps(equal)).cast_unsigned()
        };
        half(0) | half(1) << 8
    }
    #[inline(always)]
    fn covering64(self, line: &[u64; 8], key: u64) -> u32 {
        let halves = line.as_ptr().cast::<__m256i>();
        // SAFETY: `self` proves that the machine has AVX2; both halves of the 64-byte line are
        // readable, and the loads have no alignment to keep.
        let half = |i| unsafe {
            let line = _mm256_loadu_si256(halves.add(i));
            let differing = _mm256_xor_si256(line, _mm256_set1_epi64x(key.cast_signed()));
            let shifts = _mm256_and_si256(line, _mm256_set1_epi64x(63));
            let equal =
                _mm256_cmpeq_epi64(_mm256_srlv_epi64(differing, shifts), _mm256_setzero_si256());
            _mm256_movemask_pd(_mm256_castsi256_pd(equal)).cast_unsigned()
        };
        half(0) | half(1) << 4
    }
    #[inline(always)]
    fn below16(self, line: &[u16; 16], key: u32) -> u16 {
        // SAFETY: `self` proves that the machine has AVX2; the 32 bytes of the line are readable, and
        // the load has no alignment to keep.
        let below = unsafe {
            let line = _mm256_loadu_si256(line.as_ptr().cast());
            let line = _mm256_xor_si256(line, _mm256_set1_epi16(i16::MIN));
            let key = _mm256_set1_epi32((key ^ 0x8000_8000).cast_signed());
            let below = _mm256_cmpgt_epi16(key, line);
            let (low, high) = (_mm256_castsi256_si128(below), _mm256_extracti128_si256::<1>(below));
            _mm_movemask_epi8(_mm_packs_epi16(low, high))
        };
        below.cast_unsigned() as u16
    }
    #[inline(always)]
    fn below16_line(self, line: &[u16; 32], key: u32) -> u32 {
        let (halves, _) = line.as_chunks();
        u32::from(self.below16(&halves[0], key)) | u32::from(self.below16(&halves[1], key)) << 16
    }
    #[inline(always)]
    fn row(self, words: &[u32; 16]) -> Avx2Row<2> {
        self.splat_row(0).load(words)
    }
    #[inline(always)]
    fn splat_row(self, word: u32) -> Avx2Row<2> {
        // SAFETY: `self` proves that the machine has AVX2.
        Avx2Row([unsafe { _mm256_set1_epi32(word.cast_signed()) }; 2])
    }
    #[inline(always)]
    fn splat_half_row(self, word: u32) -> Avx2Row<1> {
        // SAFETY: `self` proves that the machine has AVX2.
        Avx2Row([unsafe { _mm256_set1_epi32(word.cast_signed()) }])
    }
    #[inline(always)]
    fn crc32c<T: Word>(self, crc: u32, word: T) -> u32 {
        // SAFETY: `self` proves that the machine has SSE 4.2.
        unsafe {
            match T::WIDE {
                true => _mm_crc32_u64(crc.into(), word.to_u64()) as u32,
                false => _mm_crc32_u32(crc, word.low()),
            }
        }
    }
    #[inline(always)]
    fn has_bits(self, block: &[u32; 8], hash: u32, factors: &[u32; 8]) -> bool {
        // SAFETY: `self` proves that the machine has AVX2; block and factors have 32 readable bytes, and
        // the loads have no alignment to keep.
        unsafe {
            let factors = _mm256_loadu_si256(factors.as_ptr().cast());
            let block = _mm256_loadu_si256(block.as_ptr().cast());
            let bits = _mm256_mullo_epi32(_mm256_set1_epi32(hash.cast_signed()), factors);
            let bits = _mm256_sllv_epi32(_mm256_set1_epi32(1), _mm256_srli_epi32::<27>(bits));
            _mm256_testc_si256(block, bits) == 1
        }
    }
    #[inline]
    fn run<K: Kernel>(self, kernel: K) -> K::Output {
        // SAFETY: `self` proves that the machine has the features that `entry` enables.
        unsafe { entry(self, kernel) }
    }
}

/// Words in one vector or two. Made by an [`Avx2`] alone, which proves that the machine has AVX2: the fact
/// behind every `unsafe` here.
#[derive(Clone, Copy, Debug)]
pub struct Avx2Row<const V: usize>([__m256i; V]);

impl<const V: usize> Avx2Row<V> {
    /// A plain loop: `array::from_fn` and `map` are not always inlined.
    #[inline(always)]
    fn each(mut self, vector: impl Fn(usize) -> __m256i) -> Self {
        for i in 0..V {
            self.0[i] = vector(i);
        }
        self
    }
    #[inline(always)]
    fn with(self, other: Self, vector: impl Fn(__m256i, __m256i) -> __m256i) -> Self {
        self.each(|i| vector(self.0[i], other.0[i]))
    }
}

impl<const V: usize> Sealed for Avx2Row<V> {}

/// How many bits each word has up to its highest one that is set: its exponent as a floating-point number. Not a
/// closure, which would not always be inlined.
///
/// # Safety
/// The machine has AVX2.
#[inline(always)]
unsafe fn bit_lengths(words: __m256i) -> __m256i {
    // SAFETY: the caller's.
    unsafe {
        // Without the bit below its highest one, a word is not rounded up to the next power of two. Words from 2^31 on
        // would be negative.
        let words = _mm256_andnot_si256(_mm256_srli_epi32::<1>(words), words);
        let words = _mm256_min_epu32(words, _mm256_set1_epi32(i32::MIN));
        let floats = _mm256_castps_si256(_mm256_cvtepi32_ps(words));
        let exponents = _mm256_and_si256(_mm256_srli_epi32::<23>(floats), _mm256_set1_epi32(255));
        // The exponent of 0 is 0, and so is the difference, which saturates.
        _mm256_subs_epu16(exponents, _mm256_set1_epi32(126))
    }
}

/// A row of so many words in so many vectors.
macro_rules! row {
    ($words:literal, $vectors:literal) => {
        impl Avx2Row<$vectors> {
            #[inline(always)]
            fn of(words: [u32; $words]) -> Self {
                // SAFETY: both are as many bytes of plain integers; made of a row's words.
                Self(unsafe { core::mem::transmute::<[u32; $words], [__m256i; $vectors]>(words) })
            }
        }

        // SAFETY: the operations are as they are described.
        unsafe impl Row<$words> for Avx2Row<$vectors> {
            #[inline(always)]
            fn words(self) -> [u32; $words] {
                // SAFETY: both are as many bytes of plain integers.
                unsafe { core::mem::transmute::<[__m256i; $vectors], [u32; $words]>(self.0) }
            }
            #[inline(always)]
            fn load(self, words: &[u32; $words]) -> Self {
                let vectors = words.as_ptr().cast::<__m256i>();
                // SAFETY: see `Avx2Row`; the words are as many readable vectors, and the loads have no alignment to
                // keep.
                self.each(|i| unsafe { _mm256_loadu_si256(vectors.add(i)) })
            }
            #[inline(always)]
            fn halves(self, words: &[u16; $words]) -> Self {
                let halves = words.as_ptr().cast::<__m128i>();
                // SAFETY: see `Avx2Row`; the words are as many readable halves of vectors, and the loads have no
                // alignment to keep.
                self.each(|i| unsafe { _mm256_cvtepu16_epi32(_mm_loadu_si128(halves.add(i))) })
            }
            #[inline(always)]
            fn splat(self, word: u32) -> Self {
                // SAFETY: see `Avx2Row`.
                self.each(|_| unsafe { _mm256_set1_epi32(word.cast_signed()) })
            }
            #[inline(always)]
            fn high_words(self, numbers: &[u128; $words]) -> (Self, Self) {
                let word = |by: u32| self.load(&array(|i| (numbers[i] >> by) as u32));
                (word(96), word(64))
            }
            #[inline(always)]
            fn and(self, other: Self) -> Self {
                // SAFETY: see `Avx2Row`.
                self.with(other, |a, b| unsafe { _mm256_and_si256(a, b) })
            }
            #[inline(always)]
            fn or(self, other: Self) -> Self {
                // SAFETY: see `Avx2Row`.
                self.with(other, |a, b| unsafe { _mm256_or_si256(a, b) })
            }
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                // SAFETY: see `Avx2Row`.
                self.with(other, |a, b| unsafe { _mm256_add_epi32(a, b) })
            }
            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                // SAFETY: see `Avx2Row`.
                self.with(other, |a, b| unsafe { _mm256_sub_epi32(a, b) })
            }
            #[inline(always)]
            fn shl(self, by: Self) -> Self {
                // SAFETY: see `Avx2Row`.
                self.with(by, |a, b| unsafe { _mm256_sllv_epi32(a, b) })
            }
            #[inline(always)]
            fn shr(self, by: Self) -> Self {
                // SAFETY: see `Avx2Row`.
                self.with(by, |a, b| unsafe { _mm256_srlv_epi32(a, b) })
            }
            #[inline(always)]
            fn shr_long(self, high: Self, by: Self) -> Self {
                self.each(|i| {
                    // Words shifted by 32 and more are 0, and so are those shifted by less than 0.
                    // SAFETY: see `Avx2Row`.
                    unsafe {
                        let (low, high, by) = (self.0[i], high.0[i], by.0[i]);
                        let word = _mm256_set1_epi32(32);
                        let across = _mm256_sllv_epi32(high, _mm256_sub_epi32(word, by));
                        let high = _mm256_srlv_epi32(high, _mm256_sub_epi32(by, word));
                        _mm256_or_si256(_mm256_or_si256(_mm256_srlv_epi32(low, by), across), high)
                    }
                })
            }
            #[inline(always)]
            fn if_top(self, test: Self, other: Self) -> Self {
                self.each(|i| {
                    // SAFETY: see `Avx2Row`.
                    unsafe {
                        let [own, other, test] =
                            [self.0[i], other.0[i], test.0[i]].map(|v| _mm256_castsi256_ps(v));
                        _mm256_castps_si256(_mm256_blendv_ps(other, own, test))
                    }
                })
            }
            #[inline(always)]
            fn if_below(self, test: Self, limit: Self, other: Self) -> Self {
                self.each(|i| {
                    // There is no unsigned comparison, but an unsigned maximum.
                    // SAFETY: see `Avx2Row`.
                    unsafe {
                        let not_below =
                            _mm256_cmpeq_epi32(_mm256_max_epu32(test.0[i], limit.0[i]), test.0[i]);
                        _mm256_blendv_epi8(self.0[i], other.0[i], not_below)
                    }
                })
            }
            #[inline(always)]
            fn top_bits(self) -> u16 {
                let mut bits = 0;
                for i in 0..$vectors {
                    // SAFETY: see `Avx2Row`.
                    let vector = unsafe { _mm256_movemask_ps(_mm256_castsi256_ps(self.0[i])) };
                    bits |= vector << (8 * i);
                }
                bits as u16
            }
            #[inline(always)]
            fn pack(self, mask: u16) -> Self {
                let (mut packed, mut len) = ([0; $words + 8], 0);
                for (i, &vector) in self.0.iter().enumerate() {
                    let set = (mask >> (8 * i)) as u8;
                    let to: &mut [u32; 8] = packed[len..].first_chunk_mut().expect("room");
                    // SAFETY: see `Avx2Row`; a vector has the size of the words, and the store has no alignment to
                    // keep.
                    unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), pack(vector, set)) };
                    len += set.count_ones() as usize;
                }
                self.load(packed.first_chunk().expect("a row"))
            }
            #[inline(always)]
            fn pick(self, places: Self) -> Self {
                let mut picked = self;
                for (to, places) in picked.0.iter_mut().zip(places.0) {
                    // The place's fourth bit, which the permutation ignores, selects the second vector, if there is
                    // one. SAFETY: see `Avx2Row`.
                    unsafe {
                        let front = _mm256_permutevar8x32_epi32(self.0[0], places);
                        let back = _mm256_permutevar8x32_epi32(self.0[$vectors - 1], places);
                        let in_back = _mm256_castsi256_ps(_mm256_slli_epi32::<28>(places));
                        let (front, back) = (_mm256_castsi256_ps(front), _mm256_castsi256_ps(back));
                        *to = _mm256_castps_si256(_mm256_blendv_ps(front, back, in_back));
                    }
                }
                picked
            }
            #[inline(always)]
            fn bit_lengths(self) -> Self {
                let mut lengths = self;
                for vector in &mut lengths.0 {
                    // SAFETY: see `Avx2Row`.
                    *vector = unsafe { bit_lengths(*vector) };
                }
                lengths
            }
            #[inline(always)]
            unsafe fn gather(self, table: *const u32) -> Self {
                // A load for each word: no slower here than the instruction.
                // SAFETY: the caller's.
                Self::of(unsafe { ScalarRow(self.words()).gather(table) }.0)
            }
            #[inline(always)]
            unsafe fn gather_if_top(self, test: Self, table: *const u32, other: Self) -> Self {
                let (places, test, other) =
                    (ScalarRow(self.words()), ScalarRow(test.words()), ScalarRow(other.words()));
                // SAFETY: the caller's.
                Self::of(unsafe { places.gather_if_top(test, table, other) }.0)
            }
        }
    };
}

row!(16, 2);
row!(8, 1);
