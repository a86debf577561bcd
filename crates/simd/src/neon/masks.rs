//! Masks in general registers, with a bit for each lane whose bits are all set; NEON has no instruction for them. Each
//! lane keeps a bit of its own, and pairs of lanes are added up.

use core::arch::aarch64::*;

/// The bit of each byte among eight.
static BITS: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];

/// The bits of 32 bytes, four bits to a byte, after two of the three additions of pairs.
///
/// # Safety
/// The machine has NEON.
#[inline(always)]
pub(super) unsafe fn pairs(a: uint8x16_t, b: uint8x16_t) -> uint8x16_t {
    // SAFETY: the caller's; there are sixteen bits' bytes.
    unsafe {
        let bits = vld1q_u8(BITS.as_ptr());
        let bytes = vpaddq_u8(vandq_u8(a, bits), vandq_u8(b, bits));
        vpaddq_u8(bytes, bytes)
    }
}

/// Of four vectors of sixteen bytes each.
///
/// # Safety
/// The machine has NEON.
#[inline(always)]
pub(crate) unsafe fn mask_bytes([a, b, c, d]: [uint8x16_t; 4]) -> u64 {
    // SAFETY: the caller's; there are sixteen bits' bytes.
    unsafe {
        let bits = vld1q_u8(BITS.as_ptr());
        let front = vpaddq_u8(vandq_u8(a, bits), vandq_u8(b, bits));
        let back = vpaddq_u8(vandq_u8(c, bits), vandq_u8(d, bits));
        let all = vpaddq_u8(front, back);
        vgetq_lane_u64::<0>(vreinterpretq_u64_u8(vpaddq_u8(all, all)))
    }
}

/// Of sixteen bytes.
///
/// # Safety
/// The machine has NEON.
#[inline(always)]
pub(crate) unsafe fn mask16(bytes: uint8x16_t) -> u16 {
    // SAFETY: the caller's; there are sixteen bits' bytes.
    unsafe {
        let bits = vandq_u8(bytes, vld1q_u8(BITS.as_ptr()));
        let low = vaddv_u8(vget_low_u8(bits));
        u16::from(low) | u16::from(vaddv_u8(vget_high_u8(bits))) << 8
    }
}

/// Of eight words of 16 bits.
///
/// # Safety
/// The machine has NEON.
#[inline(always)]
pub(super) unsafe fn mask8(words: uint16x8_t) -> u16 {
    static BITS: [u16; 8] = [1, 2, 4, 8, 16, 32, 64, 128];
    // SAFETY: the caller's; there are eight words.
    unsafe { vaddvq_u16(vandq_u16(words, vld1q_u16(BITS.as_ptr()))) }
}

/// Of sixteen words of 32 bits.
///
/// # Safety
/// The machine has NEON.
#[inline(always)]
pub(super) unsafe fn mask32([a, b, c, d]: [uint32x4_t; 4]) -> u16 {
    // SAFETY: the caller's.
    unsafe {
        let front = vuzp1q_u16(vreinterpretq_u16_u32(a), vreinterpretq_u16_u32(b));
        let back = vuzp1q_u16(vreinterpretq_u16_u32(c), vreinterpretq_u16_u32(d));
        mask16(vuzp1q_u8(vreinterpretq_u8_u16(front), vreinterpretq_u8_u16(back)))
    }
}

/// Of eight words of 64 bits.
///
/// # Safety
/// The machine has NEON.
#[inline(always)]
pub(super) unsafe fn mask64([a, b, c, d]: [uint64x2_t; 4]) -> u32 {
    // SAFETY: the caller's.
    unsafe {
        let front = vuzp1q_u32(vreinterpretq_u32_u64(a), vreinterpretq_u32_u64(b));
        let back = vuzp1q_u32(vreinterpretq_u32_u64(c), vreinterpretq_u32_u64(d));
        super::mask_half([front, back]).into()
    }
}
