//! Eight 32-bit keys, or four of 64 bits, which change places by a table of permutations: a row for
//! each set of lanes that can be done. With sixteen lanes the table would have 65,536 rows, which is
//! what HPBF replaces.

use core::arch::x86_64::*;
use std::marker::PhantomData;

use super::lanes::Lanes;

/// The proof that the machine has AVX2, BMI and POPCNT.
#[derive(Clone, Copy)]
pub struct Avx2<K>(PhantomData<K>);

impl<K> Avx2<K> {
    /// # Safety
    /// The machine has the instructions.
    #[inline(always)]
    pub unsafe fn new() -> Self {
        Self(PhantomData)
    }
}

/// For each set of 8 lanes: its members in order, then the others.
static PERMUTE8: [[u8; 8]; 256] = {
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
static PERMUTE4: [[u8; 8]; 16] = {
    let mut table = [[0; 8]; 16];
    let mut set = 0;
    while set < 16 {
        let (mut at, mut lane) = (0, 0);
        while lane < 8 {
            if (set >> (lane % 4) & 1 == 1) == (lane < 4) {
                table[set][at] = lane as u8 % 4 * 2;
                table[set][at + 1] = lane as u8 % 4 * 2 + 1;
                at += 2;
            }
            lane += 1;
        }
        set += 1;
    }
    table
};

/// For each number of lanes, below which lanes a blend takes the second operand.
static BELOW: [[u8; 8]; 9] = {
    let mut table = [[0; 8]; 9];
    let mut n = 0;
    while n < 9 {
        let mut lane = 0;
        while lane < n {
            table[n][lane] = 0xff;
            lane += 1;
        }
        n += 1;
    }
    table
};

/// The lanes in the row's order.
///
/// # Safety
/// The machine has AVX2.
#[inline(always)]
unsafe fn permute(lanes: __m256i, row: &[u8; 8]) -> __m256i {
    // SAFETY: the machine has AVX2, says the caller; the row has 8 bytes.
    unsafe {
        let order = _mm256_cvtepu8_epi32(_mm_loadl_epi64(row.as_ptr().cast()));
        _mm256_permutevar8x32_epi32(lanes, order)
    }
}

/// `fresh` in the first `words` words, `old` in the others.
///
/// # Safety
/// The machine has AVX2.
#[inline(always)]
unsafe fn blend(old: __m256i, fresh: __m256i, words: usize) -> __m256i {
    // SAFETY: the machine has AVX2, says the caller; the row has 8 bytes.
    unsafe {
        let which = _mm256_cvtepi8_epi32(_mm_loadl_epi64(BELOW[words].as_ptr().cast()));
        _mm256_blendv_epi8(old, fresh, which)
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
        fn splat(self, word: u32) -> __m256i {
            // SAFETY: as said above.
            unsafe { _mm256_set1_epi32(word.cast_signed()) }
        }
        #[inline(always)]
        fn splat64(self, number: u64) -> __m256i {
            // SAFETY: as said above.
            unsafe { _mm256_set1_epi64x(number.cast_signed()) }
        }
        #[inline(always)]
        fn add(self, a: __m256i, b: __m256i) -> __m256i {
            // SAFETY: as said above.
            unsafe { _mm256_add_epi32(a, b) }
        }
        #[inline(always)]
        fn mul(self, a: __m256i, b: __m256i) -> __m256i {
            // SAFETY: as said above.
            unsafe { _mm256_mullo_epi32(a, b) }
        }
        #[inline(always)]
        fn and(self, a: __m256i, b: __m256i) -> __m256i {
            // SAFETY: as said above.
            unsafe { _mm256_and_si256(a, b) }
        }
        #[inline(always)]
        fn xor(self, a: __m256i, b: __m256i) -> __m256i {
            // SAFETY: as said above.
            unsafe { _mm256_xor_si256(a, b) }
        }
        #[inline(always)]
        fn or(self, a: __m256i, b: __m256i) -> __m256i {
            // SAFETY: as said above.
            unsafe { _mm256_or_si256(a, b) }
        }
        #[inline(always)]
        fn srl(self, a: __m256i, by: u32) -> __m256i {
            // SAFETY: as said above.
            unsafe { _mm256_srl_epi32(a, count(by)) }
        }
        #[inline(always)]
        fn sll(self, a: __m256i, by: u32) -> __m256i {
            // SAFETY: as said above.
            unsafe { _mm256_sll_epi32(a, count(by)) }
        }
        #[inline(always)]
        fn srl64(self, a: __m256i, by: u32) -> __m256i {
            // SAFETY: as said above.
            unsafe { _mm256_srl_epi64(a, count(by)) }
        }
        #[inline(always)]
        fn mul64(self, a: __m256i, b: __m256i) -> __m256i {
            // SAFETY: as said above. The high half is the sum of the two cross products, modulo 2^32.
            unsafe {
                let cross = _mm256_mullo_epi32(a, _mm256_shuffle_epi32::<0b10_11_00_01>(b));
                let cross = _mm256_add_epi32(cross, _mm256_srli_epi64::<32>(cross));
                _mm256_add_epi64(_mm256_mul_epu32(a, b), _mm256_slli_epi64::<32>(cross))
            }
        }
    };
}

impl Lanes for Avx2<u32> {
    type Key = u32;
    type V = __m256i;
    type Mask = u8;
    const N: usize = 8;

    words!();

    #[inline(always)]
    unsafe fn load(self, from: &[u32], at: usize) -> __m256i {
        debug_assert!(at + 8 <= from.len());
        // SAFETY: the 8 keys lie within the slice, says the caller.
        unsafe { _mm256_loadu_si256(from.as_ptr().add(at).cast()) }
    }
    #[inline(always)]
    unsafe fn store(self, lanes: __m256i, to: &mut [u32], at: usize) {
        debug_assert!(at + 8 <= to.len());
        // SAFETY: the 8 keys lie within the slice, says the caller.
        unsafe { _mm256_storeu_si256(to.as_mut_ptr().add(at).cast(), lanes) }
    }
    #[inline(always)]
    unsafe fn test(self, words: &[u64], positions: __m256i) -> u8 {
        // SAFETY: the positions lie within the words, says the caller, so the 32-bit words that they
        // are in do; their numbers are below 2^26, so the gather's signed ones.
        unsafe {
            let at = _mm256_srli_epi32::<5>(positions);
            let words = _mm256_i32gather_epi32::<4>(words.as_ptr().cast(), at);
            // The wanted bit goes to the sign, by 31 less its number.
            let by = _mm256_andnot_si256(positions, _mm256_set1_epi32(31));
            _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_sllv_epi32(words, by))) as u8
        }
    }
    #[inline(always)]
    fn splat_lane(self, number: u32) -> __m256i {
        self.splat(number)
    }
    #[inline(always)]
    fn mulhi(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: `self` proves that the machine has the instructions, on registers alone.
        unsafe {
            let even = _mm256_srli_epi64::<32>(_mm256_mul_epu32(a, b));
            let odd = _mm256_mul_epu32(_mm256_srli_epi64::<32>(a), b);
            _mm256_blend_epi32::<0b1010_1010>(even, odd)
        }
    }
    #[inline(always)]
    fn crc(self, keys: __m256i) -> __m256i {
        let mut words = [0u32; 8];
        // SAFETY: `self` proves that the machine has the instructions (AVX2 means SSE 4.2); the array
        // has 32 bytes.
        unsafe {
            _mm256_storeu_si256(words.as_mut_ptr().cast(), keys);
            for word in &mut words {
                *word = _mm_crc32_u64(_mm_crc32_u32(0, *word).into(), 4) as u32;
            }
            _mm256_loadu_si256(words.as_ptr().cast())
        }
    }
    #[inline(always)]
    fn equal(self, a: __m256i, b: __m256i) -> u8 {
        // SAFETY: `self` proves that the machine has the instructions, on registers alone.
        unsafe { _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(a, b))) as u8 }
    }
    #[inline(always)]
    fn count(self, mask: u8) -> usize {
        mask.count_ones() as usize
    }
    #[inline(always)]
    fn pack(self, lanes: __m256i, chosen: u8) -> __m256i {
        // SAFETY: `self` proves that the machine has AVX2.
        unsafe { permute(lanes, &PERMUTE8[usize::from(chosen)]) }
    }
    #[inline(always)]
    fn refill(self, old: __m256i, fresh: __m256i, done: u8) -> __m256i {
        // SAFETY: `self` proves that the machine has AVX2.
        unsafe { blend(self.pack(old, done), fresh, self.count(done)) }
    }
    #[inline(always)]
    fn clear(self, old: __m256i, done: u8) -> __m256i {
        self.refill(old, self.splat(0), done)
    }
}

impl Lanes for Avx2<u64> {
    type Key = u64;
    type V = __m256i;
    /// The low four bits.
    type Mask = u8;
    const N: usize = 4;

    words!();

    #[inline(always)]
    unsafe fn load(self, from: &[u64], at: usize) -> __m256i {
        debug_assert!(at + 4 <= from.len());
        // SAFETY: the 4 keys lie within the slice, says the caller.
        unsafe { _mm256_loadu_si256(from.as_ptr().add(at).cast()) }
    }
    #[inline(always)]
    unsafe fn store(self, lanes: __m256i, to: &mut [u64], at: usize) {
        debug_assert!(at + 4 <= to.len());
        // SAFETY: the 4 keys lie within the slice, says the caller.
        unsafe { _mm256_storeu_si256(to.as_mut_ptr().add(at).cast(), lanes) }
    }
    #[inline(always)]
    unsafe fn test(self, words: &[u64], positions: __m256i) -> u8 {
        // SAFETY: the positions lie within the words, says the caller, and have zeros above.
        unsafe {
            let at = _mm256_srli_epi64::<6>(positions);
            let words = _mm256_i64gather_epi64::<8>(words.as_ptr().cast(), at);
            let by = _mm256_andnot_si256(positions, _mm256_set1_epi64x(63));
            _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_sllv_epi64(words, by))) as u8
        }
    }
    #[inline(always)]
    fn splat_lane(self, number: u32) -> __m256i {
        self.splat64(number.into())
    }
    #[inline(always)]
    fn mulhi(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: `self` proves that the machine has the instructions, on registers alone.
        unsafe { _mm256_srli_epi64::<32>(_mm256_mul_epu32(a, b)) }
    }
    #[inline(always)]
    fn crc(self, keys: __m256i) -> __m256i {
        let mut words = [0u64; 4];
        // SAFETY: `self` proves that the machine has the instructions (AVX2 means SSE 4.2); the array
        // has 32 bytes.
        unsafe {
            _mm256_storeu_si256(words.as_mut_ptr().cast(), keys);
            for word in &mut words {
                *word = _mm_crc32_u64(_mm_crc32_u64(0, *word), 8);
            }
            _mm256_loadu_si256(words.as_ptr().cast())
        }
    }
    #[inline(always)]
    fn equal(self, a: __m256i, b: __m256i) -> u8 {
        // SAFETY: `self` proves that the machine has the instructions, on registers alone.
        unsafe { _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(a, b))) as u8 }
    }
    #[inline(always)]
    fn count(self, mask: u8) -> usize {
        (mask & 15).count_ones() as usize
    }
    #[inline(always)]
    fn pack(self, lanes: __m256i, chosen: u8) -> __m256i {
        // SAFETY: `self` proves that the machine has AVX2.
        unsafe { permute(lanes, &PERMUTE4[usize::from(chosen & 15)]) }
    }
    #[inline(always)]
    fn refill(self, old: __m256i, fresh: __m256i, done: u8) -> __m256i {
        // SAFETY: `self` proves that the machine has AVX2.
        unsafe { blend(self.pack(old, done), fresh, 2 * self.count(done)) }
    }
    #[inline(always)]
    fn clear(self, old: __m256i, done: u8) -> __m256i {
        self.refill(old, self.splat(0), done)
    }
}
