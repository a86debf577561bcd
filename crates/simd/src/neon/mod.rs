//! NEON, ARM's vectors of 128 bits: a cache line of keys is four of them.

pub(crate) mod masks;
mod row;

use core::arch::aarch64::*;

use crate::sealed::Sealed;
use crate::{Isa, Kernel, NeonLanes, Simd, Word};

use masks::{mask8, mask16, mask32};
pub use row::NeonRow;

/// The proof that the machine has NEON and the CRC32 instructions.
#[derive(Clone, Copy, Debug)]
pub struct Neon(pub(crate) ());

impl Neon {
    /// The proof, if the machine has the instructions. Kernels are written for little-endian machines.
    pub fn new() -> Option<Self> {
        (cfg!(target_endian = "little")
            && std::arch::is_aarch64_feature_detected!("neon")
            && std::arch::is_aarch64_feature_detected!("crc"))
        .then_some(Self(()))
    }
}

#[target_feature(enable = "neon,crc")]
fn entry<K: Kernel>(simd: Neon, kernel: K) -> K::Output {
    kernel.run(simd)
}

/// The four vectors of a line of 64-bit keys.
///
/// # Safety
/// The machine has NEON.
#[inline(always)]
unsafe fn line64(line: &[u64; 8]) -> [uint64x2_t; 4] {
    let at = line.as_ptr();
    // SAFETY: the caller's; the line has eight keys, and the loads have no alignment to keep.
    unsafe { [vld1q_u64(at), vld1q_u64(at.add(2)), vld1q_u64(at.add(4)), vld1q_u64(at.add(6))] }
}

/// The four vectors of a line of 32-bit keys.
///
/// # Safety
/// The machine has NEON.
#[inline(always)]
unsafe fn line32(line: &[u32; 16]) -> [uint32x4_t; 4] {
    let at = line.as_ptr();
    // SAFETY: the caller's; the line has sixteen keys, and the loads have no alignment to keep.
    unsafe { [vld1q_u32(at), vld1q_u32(at.add(4)), vld1q_u32(at.add(8)), vld1q_u32(at.add(12))] }
}

/// Which of sixteen keys are below the key, as bytes.
///
/// # Safety
/// The machine has NEON, and the 32 bytes from `line` on can be read.
#[inline(always)]
unsafe fn below(line: *const u16, key: uint16x8_t) -> uint8x16_t {
    // SAFETY: the caller's; the loads have no alignment to keep.
    unsafe {
        let low = vcltq_u16(vld1q_u16(line), key);
        let high = vcltq_u16(vld1q_u16(line.add(8)), key);
        vuzp1q_u8(vreinterpretq_u8_u16(low), vreinterpretq_u8_u16(high))
    }
}

impl Sealed for Neon {}

// SAFETY: `Neon::new` detects the instructions; the operations are as described.
//
// Verdicts are all ones, which is -1: to count keys is to add verdicts. A mask in a general register costs more, so
// ranks do without one.
unsafe impl Simd for Neon {
    type Splat64 = uint64x2_t;
    type Splat32 = uint32x4_t;
    type Row = NeonRow<4>;
    type HalfRow = NeonRow<2>;
    type Lanes<T: Word> = NeonLanes<T>;

    const ISA: Isa = Isa::Neon;
    const ROWS_WHOLE: bool = false;

    #[inline(always)]
    fn splat64(self, key: u64) -> uint64x2_t {
        // SAFETY: `self` proves that the machine has NEON.
        unsafe { vdupq_n_u64(key) }
    }
    #[inline(always)]
    fn splat32(self, key: u32) -> uint32x4_t {
        // SAFETY: `self` proves that the machine has NEON.
        unsafe { vdupq_n_u32(key) }
    }
    #[inline(always)]
    fn rank64(self, line: &[u64; 8], key: uint64x2_t) -> u32 {
        // SAFETY: `self` proves that the machine has NEON.
        unsafe {
            let [a, b, c, d] = line64(line);
            let front = vaddq_u64(vcltq_u64(a, key), vcltq_u64(b, key));
            let back = vaddq_u64(vcltq_u64(c, key), vcltq_u64(d, key));
            (vaddvq_u64(vaddq_u64(front, back)) as u32).wrapping_neg()
        }
    }
    #[inline(always)]
    fn rank32(self, line: &[u32; 16], key: uint32x4_t) -> u32 {
        // SAFETY: `self` proves that the machine has NEON.
        unsafe {
            let [a, b, c, d] = line32(line);
            let front = vaddq_u32(vcltq_u32(a, key), vcltq_u32(b, key));
            let back = vaddq_u32(vcltq_u32(c, key), vcltq_u32(d, key));
            vaddvq_u32(vaddq_u32(front, back)).wrapping_neg()
        }
    }
    #[inline(always)]
    fn equal64(self, line: &[u64; 8], key: u64) -> u32 {
        // SAFETY: `self` proves that the machine has NEON.
        unsafe {
            let (key, [a, b, c, d]) = (vdupq_n_u64(key), line64(line));
            masks::mask64([
                vceqq_u64(a, key),
                vceqq_u64(b, key),
                vceqq_u64(c, key),
                vceqq_u64(d, key),
            ])
        }
    }
    #[inline(always)]
    fn equal32(self, line: &[u32; 16], key: u32) -> u32 {
        // SAFETY: `self` proves that the machine has NEON.
        unsafe {
            let (key, [a, b, c, d]) = (vdupq_n_u32(key), line32(line));
            let equal =
                [vceqq_u32(a, key), vceqq_u32(b, key), vceqq_u32(c, key), vceqq_u32(d, key)];
            mask32(equal).into()
        }
    }
    #[inline(always)]
    fn covering64(self, line: &[u64; 8], key: u64) -> u32 {
        // SAFETY: `self` proves that the machine has NEON.
        unsafe {
            let (key, mut line) = (vdupq_n_u64(key), line64(line));
            for words in &mut line {
                let shifts = vreinterpretq_s64_u64(vandq_u64(*words, vdupq_n_u64(63)));
                *words = vceqzq_u64(vshlq_u64(veorq_u64(*words, key), vnegq_s64(shifts)));
            }
            masks::mask64(line)
        }
    }
    #[inline(always)]
    fn below16(self, line: &[u16; 16], key: u32) -> u16 {
        // SAFETY: `self` proves that the machine has NEON; the line has 32 bytes.
        unsafe { mask16(below(line.as_ptr(), vreinterpretq_u16_u32(vdupq_n_u32(key)))) }
    }
    #[inline(always)]
    fn below16_line(self, line: &[u16; 32], key: u32) -> u32 {
        let at = line.as_ptr();
        // SAFETY: `self` proves that the machine has NEON; the line has twice 32 bytes.
        unsafe {
            let key = vreinterpretq_u16_u32(vdupq_n_u32(key));
            let bytes = masks::pairs(below(at, key), below(at.add(16), key));
            vgetq_lane_u32::<0>(vreinterpretq_u32_u8(vpaddq_u8(bytes, bytes)))
        }
    }
    #[inline(always)]
    fn rank16(self, line: &[u16; 16], first: u32, len: u32, key: u16) -> u32 {
        static PLACES: [u16; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
        let (line, places) = (line.as_ptr(), PLACES.as_ptr());
        // SAFETY: `self` proves that the machine has NEON; line and places have twice eight words.
        unsafe {
            let (key, first, len) =
                (vdupq_n_u16(key), vdupq_n_u16(first as u16), vdupq_n_u16(len as u16));
            let half = |at| {
                // Below 0 is far above.
                let counts = vcltq_u16(vsubq_u16(vld1q_u16(places.add(at)), first), len);
                vandq_u16(vcltq_u16(vld1q_u16(line.add(at)), key), counts)
            };
            vaddvq_u16(vaddq_u16(half(0), half(8))).wrapping_neg().into()
        }
    }
    #[inline(always)]
    fn row(self, words: &[u32; 16]) -> NeonRow<4> {
        NeonRow::new(self, 0).read(words)
    }
    #[inline(always)]
    fn splat_row(self, word: u32) -> NeonRow<4> {
        NeonRow::new(self, word)
    }
    #[inline(always)]
    fn splat_half_row(self, word: u32) -> NeonRow<2> {
        NeonRow::new(self, word)
    }
    #[expect(
        inline_always_mismatching_target_features,
        reason = "the instructions are inlined with this function into `entry`, which has the feature"
    )]
    #[inline(always)]
    fn crc32c<T: Word>(self, crc: u32, word: T) -> u32 {
        // SAFETY: `self` proves that the machine has the CRC32 instructions.
        unsafe {
            match T::WIDE {
                true => __crc32cd(crc, word.to_u64()),
                false => __crc32cw(crc, word.low()),
            }
        }
    }
    #[inline(always)]
    fn has_bits(self, block: &[u32; 8], hash: u32, factors: &[u32; 8]) -> bool {
        let (block, factors) = (block.as_ptr(), factors.as_ptr());
        // SAFETY: `self` proves that the machine has NEON; block and factors have twice four words.
        unsafe {
            let missing = |at| {
                let bits = vmulq_u32(vld1q_u32(factors.add(at)), vdupq_n_u32(hash));
                let numbers = vreinterpretq_s32_u32(vshrq_n_u32::<27>(bits));
                vbicq_u32(vshlq_u32(vdupq_n_u32(1), numbers), vld1q_u32(block.add(at)))
            };
            vmaxvq_u32(vorrq_u32(missing(0), missing(4))) == 0
        }
    }
    #[inline]
    fn run<K: Kernel>(self, kernel: K) -> K::Output {
        // SAFETY: `self` proves that the machine has the features that `entry` enables.
        unsafe { entry(self, kernel) }
    }
}

/// Which of eight words have all bits set.
///
/// # Safety
/// The machine has NEON.
#[inline(always)]
unsafe fn mask_half([a, b]: [uint32x4_t; 2]) -> u16 {
    // SAFETY: the caller's.
    unsafe { mask8(vuzp1q_u16(vreinterpretq_u16_u32(a), vreinterpretq_u16_u32(b))) }
}
