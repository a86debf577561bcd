use core::arch::x86_64::{
    __m256i, __m512i, _mm_loadu_si128, _mm256_add_epi32, _mm256_and_si256, _mm256_cmplt_epu16_mask,
    _mm256_cmplt_epu32_mask, _mm256_cvtepu16_epi32, _mm256_i32gather_epi32, _mm256_loadu_si256,
    _mm256_lzcnt_epi32, _mm256_mask_blend_epi32, _mm256_mask_i32gather_epi32,
    _mm256_maskz_compress_epi32, _mm256_movepi32_mask, _mm256_or_si256, _mm256_permutexvar_epi32,
    _mm256_set1_epi32, _mm256_sllv_epi32, _mm256_srlv_epi32, _mm256_sub_epi32, _mm512_add_epi32,
    _mm512_and_si512, _mm512_castsi256_si512, _mm512_castsi512_si256, _mm512_cmpeq_epi32_mask,
    _mm512_cmpeq_epi64_mask, _mm512_cmplt_epu16_mask, _mm512_cmplt_epu32_mask,
    _mm512_cmplt_epu64_mask, _mm512_cvtepu16_epi32, _mm512_extracti64x4_epi64,
    _mm512_i32gather_epi32, _mm512_inserti64x4, _mm512_loadu_si512, _mm512_lzcnt_epi32,
    _mm512_mask_blend_epi32, _mm512_mask_i32gather_epi32, _mm512_maskz_compress_epi32,
    _mm512_movepi32_mask, _mm512_or_si512, _mm512_permutex_epi64, _mm512_permutex2var_epi32,
    _mm512_permutexvar_epi32, _mm512_set1_epi32, _mm512_set1_epi64, _mm512_shuffle_epi32,
    _mm512_shuffle_i64x2, _mm512_sllv_epi32, _mm512_srlv_epi32, _mm512_srlv_epi64,
    _mm512_sub_epi32, _mm512_testn_epi64_mask, _mm512_xor_si512,
};

use crate::sealed::Sealed;
use crate::{Avx2, Avx512Lanes, Isa, Kernel, Row, RowOffsets, Simd, Word};

/// The proof that the machine has AVX-512 F, BW, CD, DQ and VL, and all that [`Isa::Avx2`] means.
#[derive(Clone, Copy, Debug)]
pub struct Avx512(pub(crate) ());

impl Avx512 {
    /// The proof, if the machine has the instructions.
    pub fn new() -> Option<Self> {
        (Avx2::new().is_some()
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512cd")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl"))
        .then_some(Self(()))
    }

    /// The proof of [`Isa::Avx2`], which this one includes.
    #[inline(always)]
    pub fn avx2(self) -> Avx2 {
        Avx2(())
    }
}

#[target_feature(
    enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt,fma"
)]
fn entry<K: Kernel>(simd: Avx512, kernel: K) -> K::Output {
    kernel.run(simd)
}

impl Sealed for Avx512 {}

// SAFETY: `Avx512::new` detects the instructions; the operations are as described.
unsafe impl Simd for Avx512 {
    type Splat64 = __m512i;
    type Splat32 = __m512i;
    type Row = Avx512Row;
    type HalfRow = Avx512HalfRow;
    type Lanes<T: Word> = Avx512Lanes<T>;

    const ISA: Isa = Isa::Avx512;
    const ROWS_WHOLE: bool = true;

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
    #[inline(always)]
    fn equal64(self, line: &[u64; 8], key: u64) -> u32 {
        // SAFETY: `self` proves that the machine has AVX-512 F; the 64 bytes of the line are
        // readable, and the load has no alignment to keep.
        let equal = unsafe {
            let line = _mm512_loadu_si512(line.as_ptr().cast());
            _mm512_cmpeq_epi64_mask(line, _mm512_set1_epi64(key.cast_signed()))
        };
        equal.into()
    }
    #[inline(always)]
    fn equal32(self, line: &[u32; 16], key: u32) -> u32 {
        // SAFETY: `self` proves that the machine has AVX-512 F; the 64 bytes of the line are
        // readable, and the load has no alignment to keep.
        let equal = unsafe {
            let line = _mm512_loadu_si512(line.as_ptr().cast());
            _mm512_cmpeq_epi32_mask(line, _mm512_set1_epi32(key.cast_signed()))
        };
        equal.into()
    }
    #[inline(always)]
    fn covering64(self, line: &[u64; 8], key: u64) -> u32 {
        // SAFETY: `self` proves that the machine has AVX-512 F; the 64 bytes of the line are
        // readable, and the load has no alignment to keep.
        let equal = unsafe {
            let line = _mm512_loadu_si512(line.as_ptr().cast());
            let differing = _mm512_xor_si512(line, _mm512_set1_epi64(key.cast_signed()));
            let differing =
                _mm512_srlv_epi64(differing, _mm512_and_si512(line, _mm512_set1_epi64(63)));
            _mm512_testn_epi64_mask(differing, differing)
        };
        equal.into()
    }
    #[inline(always)]
    fn below16(self, line: &[u16; 16], key: u32) -> u16 {
        // SAFETY: `self` proves that the machine has AVX-512 BW and VL; the 32 bytes of the line are
        // readable, and the load has no alignment to keep.
        unsafe {
            let line = _mm256_loadu_si256(line.as_ptr().cast());
            _mm256_cmplt_epu16_mask(line, _mm256_set1_epi32(key.cast_signed()))
        }
    }
    #[inline(always)]
    fn below16_line(self, line: &[u16; 32], key: u32) -> u32 {
        // SAFETY: `self` proves that the machine has AVX-512 BW; the 64 bytes of the line are
        // readable, and the load has no alignment to keep.
        unsafe {
            let line = _mm512_loadu_si512(line.as_ptr().cast());
            _mm512_cmplt_epu16_mask(line, _mm512_set1_epi32(key.cast_signed()))
        }
    }
    #[inline(always)]
    unsafe fn below16_rows(
        self,
        lines: *const [u16; 16],
        places: &RowOffsets,
        keys: Avx512Row,
        verdicts: &mut [u16; 16],
    ) {
        // Two half lines are compared at once: those of an even lane and the next one. `keys` has the even lanes' keys
        // below and the odd ones' above, so that a permutation within the halves gives both.
        const EVEN_ODD: [u32; 16] = [0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15];
        let pairs = (&raw const places.0).cast::<u64>();
        let verdicts = verdicts.as_mut_ptr().cast::<u32>();
        // SAFETY: `self` proves that the machine has AVX-512 F and BW; sixteen places at the begin of a cache line are
        // eight numbers of 64 bits, sixteen verdicts are eight words; the caller guarantees that the half lines can be
        // read. The reads of places are volatile because otherwise the compiler takes them out of a vector, the writes
        // because otherwise it moves each mask to a register of its own.
        unsafe {
            let keys =
                _mm512_permutexvar_epi32(_mm512_loadu_si512(EVEN_ODD.as_ptr().cast()), keys.0);
            let (even, odd) = (
                _mm512_shuffle_epi32::<0b10_10_00_00>(keys),
                _mm512_shuffle_epi32::<0b11_11_01_01>(keys),
            );
            let below = |i: usize, keys| {
                let pair = pairs.add(i).read_volatile();
                let line = |place: u64| _mm256_loadu_si256(lines.byte_add(place as usize).cast());
                let both = _mm512_inserti64x4::<1>(
                    _mm512_castsi256_si512(line(pair & u64::from(u32::MAX))),
                    line(pair >> 32),
                );
                let mask = _mm512_cmplt_epu16_mask(both, keys);
                verdicts.add(i).write_unaligned(mask);
            };
            below(0, _mm512_permutex_epi64::<0x00>(even));
            below(1, _mm512_permutex_epi64::<0x00>(odd));
            below(2, _mm512_permutex_epi64::<0x55>(even));
            below(3, _mm512_permutex_epi64::<0x55>(odd));
            below(4, _mm512_permutex_epi64::<0xaa>(even));
            below(5, _mm512_permutex_epi64::<0xaa>(odd));
            below(6, _mm512_permutex_epi64::<0xff>(even));
            below(7, _mm512_permutex_epi64::<0xff>(odd));
        }
    }
    #[inline(always)]
    unsafe fn below16_half_row(
        self,
        lines: *const [u16; 16],
        places: [u32; 8],
        keys: Avx512HalfRow,
        verdicts: &mut [u16; 8],
    ) {
        // As in `below16_rows`: the even lanes' keys in both quarters of the lower half, the odd ones' in the upper.
        const EVEN_ODD: [u32; 16] = [0, 2, 4, 6, 0, 2, 4, 6, 1, 3, 5, 7, 1, 3, 5, 7];
        let verdicts = verdicts.as_mut_ptr().cast::<u32>();
        // SAFETY: `self` proves that the machine has AVX-512 F and BW; eight verdicts are four words; the caller
        // guarantees that the half lines can be read.
        unsafe {
            let keys = _mm512_permutexvar_epi32(
                _mm512_loadu_si512(EVEN_ODD.as_ptr().cast()),
                _mm512_castsi256_si512(keys.0),
            );
            let below = |i: usize, keys| {
                let line =
                    |at: usize| _mm256_loadu_si256(lines.byte_add(places[at] as usize).cast());
                let both =
                    _mm512_inserti64x4::<1>(_mm512_castsi256_si512(line(2 * i)), line(2 * i + 1));
                verdicts.add(i).write_unaligned(_mm512_cmplt_epu16_mask(both, keys));
            };
            below(0, _mm512_shuffle_epi32::<0x00>(keys));
            below(1, _mm512_shuffle_epi32::<0x55>(keys));
            below(2, _mm512_shuffle_epi32::<0xaa>(keys));
            below(3, _mm512_shuffle_epi32::<0xff>(keys));
        }
    }
    #[inline(always)]
    fn row(self, words: &[u32; 16]) -> Avx512Row {
        // SAFETY: `self` proves that the machine has AVX-512 F; the 64 bytes of the words are
        // readable, and the load has no alignment to keep.
        Avx512Row(unsafe { _mm512_loadu_si512(words.as_ptr().cast()) })
    }
    #[inline(always)]
    fn splat_row(self, word: u32) -> Avx512Row {
        Avx512Row(self.splat32(word))
    }
    #[inline(always)]
    fn splat_half_row(self, word: u32) -> Avx512HalfRow {
        // SAFETY: `self` proves that the machine has AVX2.
        Avx512HalfRow(unsafe { _mm256_set1_epi32(word.cast_signed()) })
    }
    #[inline(always)]
    fn crc32c<T: Word>(self, crc: u32, word: T) -> u32 {
        self.avx2().crc32c(crc, word)
    }
    #[inline(always)]
    fn has_bits(self, block: &[u32; 8], hash: u32, factors: &[u32; 8]) -> bool {
        self.avx2().has_bits(block, hash, factors)
    }
    #[inline]
    fn run<K: Kernel>(self, kernel: K) -> K::Output {
        // SAFETY: `self` proves that the machine has the features that `entry` enables.
        unsafe { entry(self, kernel) }
    }
}

/// Words in one vector. Made by an [`Avx512`] alone, which proves that the machine has AVX-512 F, BW, CD, DQ and VL:
/// the fact behind every `unsafe` here.
#[derive(Clone, Copy, Debug)]
pub struct Avx512Row(__m512i);

/// Words in half of a vector. Made by an [`Avx512`] alone, as [`Avx512Row`] is.
#[derive(Clone, Copy, Debug)]
pub struct Avx512HalfRow(__m256i);

/// The places of the high words of eight numbers in two vectors, and of the words below those.
const HIGHS: [u32; 16] = [3, 7, 11, 15, 19, 23, 27, 31, 2, 6, 10, 14, 18, 22, 26, 30];

/// The high words of eight numbers in the lower half, the words below those in the upper one.
///
/// # Safety
/// The machine has AVX-512 F, and the numbers are two vectors of 64 readable bytes.
#[inline(always)]
unsafe fn high_words(numbers: *const __m512i) -> __m512i {
    // SAFETY: the caller's; the loads have no alignment to keep.
    unsafe {
        let of = _mm512_loadu_si512(HIGHS.as_ptr().cast());
        let quad = |i| _mm512_loadu_si512(numbers.add(i));
        _mm512_permutex2var_epi32(quad(0), of, quad(1))
    }
}

/// A row of so many words, with the instructions for its width.
macro_rules! row {
    (
        $row:ident, $words:literal, $vector:ident, $load:ident, $halves:ident = $loads_half:ident, $splat:ident, $and:ident, $or:ident,
        $add:ident, $sub:ident, $shl:ident, $shr:ident, $blend:ident, $tops:ident, $below:ident,
        $zeros:ident, $pack:ident, $pick:ident; $($other:tt)*
    ) => {
        impl Sealed for $row {}

        // SAFETY: the operations are as they are described.
        unsafe impl Row<$words> for $row {
            #[inline(always)]
            fn words(self) -> [u32; $words] {
                // SAFETY: both are as many bytes of plain integers.
                unsafe { core::mem::transmute::<$vector, [u32; $words]>(self.0) }
            }
            #[inline(always)]
            fn load(self, words: &[u32; $words]) -> Self {
                // SAFETY: see `Avx512Row`; the words are readable, and the load has no alignment to keep.
                Self(unsafe { $load(words.as_ptr().cast()) })
            }
            #[inline(always)]
            fn halves(self, words: &[u16; $words]) -> Self {
                // SAFETY: see `Avx512Row`; the words are readable, and the load has no alignment to keep.
                Self(unsafe { $halves($loads_half(words.as_ptr().cast())) })
            }
            #[inline(always)]
            fn splat(self, word: u32) -> Self {
                // SAFETY: see `Avx512Row`.
                Self(unsafe { $splat(word.cast_signed()) })
            }
            #[inline(always)]
            fn and(self, other: Self) -> Self {
                // SAFETY: see `Avx512Row`.
                Self(unsafe { $and(self.0, other.0) })
            }
            #[inline(always)]
            fn or(self, other: Self) -> Self {
                // SAFETY: see `Avx512Row`.
                Self(unsafe { $or(self.0, other.0) })
            }
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                // SAFETY: see `Avx512Row`.
                Self(unsafe { $add(self.0, other.0) })
            }
            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                // SAFETY: see `Avx512Row`.
                Self(unsafe { $sub(self.0, other.0) })
            }
            #[inline(always)]
            fn shl(self, by: Self) -> Self {
                // SAFETY: see `Avx512Row`.
                Self(unsafe { $shl(self.0, by.0) })
            }
            #[inline(always)]
            fn shr(self, by: Self) -> Self {
                // SAFETY: see `Avx512Row`.
                Self(unsafe { $shr(self.0, by.0) })
            }
            #[inline(always)]
            fn shr_long(self, high: Self, by: Self) -> Self {
                // Words shifted by 32 and more are 0, and so are those shifted by less than 0.
                let word = self.splat(32);
                self.shr(by).or(high.shl(word.sub(by))).or(high.shr(by.sub(word)))
            }
            #[inline(always)]
            fn if_top(self, test: Self, other: Self) -> Self {
                // SAFETY: see `Avx512Row`.
                Self(unsafe { $blend($tops(test.0), other.0, self.0) })
            }
            #[inline(always)]
            fn if_below(self, test: Self, limit: Self, other: Self) -> Self {
                // SAFETY: see `Avx512Row`.
                Self(unsafe { $blend($below(test.0, limit.0), other.0, self.0) })
            }
            #[inline(always)]
            fn top_bits(self) -> u16 {
                // SAFETY: see `Avx512Row`.
                unsafe { $tops(self.0) }.into()
            }
            #[inline(always)]
            fn pack(self, mask: u16) -> Self {
                // SAFETY: see `Avx512Row`.
                Self(unsafe { $pack(mask as _, self.0) })
            }
            #[inline(always)]
            fn pick(self, places: Self) -> Self {
                // SAFETY: see `Avx512Row`.
                Self(unsafe { $pick(places.0, self.0) })
            }
            #[inline(always)]
            fn bit_lengths(self) -> Self {
                // SAFETY: see `Avx512Row`.
                self.splat(32).sub(Self(unsafe { $zeros(self.0) }))
            }
            $($other)*
        }
    };
}

row! {
    Avx512Row, 16, __m512i, _mm512_loadu_si512, _mm512_cvtepu16_epi32 = _mm256_loadu_si256, _mm512_set1_epi32, _mm512_and_si512, _mm512_or_si512,
    _mm512_add_epi32, _mm512_sub_epi32, _mm512_sllv_epi32, _mm512_srlv_epi32, _mm512_mask_blend_epi32, _mm512_movepi32_mask, _mm512_cmplt_epu32_mask,
    _mm512_lzcnt_epi32, _mm512_maskz_compress_epi32, _mm512_permutexvar_epi32;

    #[inline(always)]
    fn high_words(self, numbers: &[u128; 16]) -> (Self, Self) {
        let quads = numbers.as_ptr().cast::<__m512i>();
        // SAFETY: see `Avx512Row`; the numbers are four times 64 readable bytes.
        unsafe {
            let (front, back) = (high_words(quads), high_words(quads.add(2)));
            (
                Self(_mm512_shuffle_i64x2::<0b01_00_01_00>(front, back)),
                Self(_mm512_shuffle_i64x2::<0b11_10_11_10>(front, back)),
            )
        }
    }
    #[inline(always)]
    unsafe fn gather(self, table: *const u32) -> Self {
        // SAFETY: see `Avx512Row`; the caller knows that the words can be read, and that the places
        // are the same as signed numbers.
        Self(unsafe { _mm512_i32gather_epi32::<4>(self.0, table.cast()) })
    }
    #[inline(always)]
    unsafe fn gather_if_top(self, test: Self, table: *const u32, other: Self) -> Self {
        // SAFETY: see `Avx512Row`; the caller knows that the words of these lanes can be read, and that
        // the places are the same as signed numbers. Other lanes are not read.
        Self(unsafe {
            let lanes = _mm512_movepi32_mask(test.0);
            _mm512_mask_i32gather_epi32::<4>(other.0, lanes, self.0, table.cast())
        })
    }
}

row! {
    Avx512HalfRow, 8, __m256i, _mm256_loadu_si256, _mm256_cvtepu16_epi32 = _mm_loadu_si128, _mm256_set1_epi32, _mm256_and_si256, _mm256_or_si256,
    _mm256_add_epi32, _mm256_sub_epi32, _mm256_sllv_epi32, _mm256_srlv_epi32, _mm256_mask_blend_epi32, _mm256_movepi32_mask, _mm256_cmplt_epu32_mask,
    _mm256_lzcnt_epi32, _mm256_maskz_compress_epi32, _mm256_permutexvar_epi32;

    #[inline(always)]
    fn high_words(self, numbers: &[u128; 8]) -> (Self, Self) {
        // SAFETY: see `Avx512Row`; the numbers are twice 64 readable bytes.
        unsafe {
            let both = high_words(numbers.as_ptr().cast());
            (Self(_mm512_castsi512_si256(both)), Self(_mm512_extracti64x4_epi64::<1>(both)))
        }
    }
    #[inline(always)]
    unsafe fn gather(self, table: *const u32) -> Self {
        // SAFETY: see `Avx512Row`; the caller knows that the words can be read, and that the places
        // are the same as signed numbers.
        Self(unsafe { _mm256_i32gather_epi32::<4>(table.cast(), self.0) })
    }
    #[inline(always)]
    unsafe fn gather_if_top(self, test: Self, table: *const u32, other: Self) -> Self {
        // The older instruction tests the top bits by itself.
        // SAFETY: see `Avx512Row`; the caller knows that the words of these lanes can be read, and that
        // the places are the same as signed numbers. Other lanes are not read.
        Self(unsafe {
            _mm256_mask_i32gather_epi32::<4>(other.0, table.cast(), self.0, test.0)
        })
    }
}
