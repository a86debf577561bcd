//! Parses four decimal numbers of up to three digits, separated by dots, without a loop over characters.

/// For each of sixteen characters, the first in the lowest byte: whether it is no decimal digit, and whether it is a
/// point. Bit `i` is for byte `i`.
///
/// ```
/// let text = u128::from_le_bytes(*b"10.2\0\0\0\0\0\0\0\0\0\0\0\0");
/// assert_eq!(fibula_simd::decimal_marks(text), (0xfff4, 0b100));
/// ```
#[inline]
pub fn decimal_marks(text: u128) -> (u32, u32) {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: SSE2, the only requirement, is part of x86-64.
        unsafe { sse2::marks(text) }
    }
    #[cfg(target_arch = "aarch64")]
    {
        // SAFETY: NEON, the only requirement, is part of 64-bit ARM with a standard library.
        unsafe { neon::marks(text) }
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    portable::marks(text)
}

/// The bytes for four decimal numbers, the first in the highest byte; `None` if one is larger than 255, has leading
/// zeros, or has no digits.
///
/// The digits (0 to 9, not characters) of each lie in its upper bytes, the last in the highest, zeros below; `lens` has
/// their numbers.
///
/// ```
/// let digits = [0x0100_0000, 0x0505_0200, 0, 0x0007_0000];
/// assert_eq!(fibula_simd::decimal_bytes(digits, [1, 3, 1, 2]), Some(0x01_ff_00_46));
/// assert_eq!(fibula_simd::decimal_bytes(digits, [2, 3, 1, 2]), None);
/// ```
#[inline]
pub fn decimal_bytes(digits: [u32; 4], lens: [u32; 4]) -> Option<u32> {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: SSE2, the only requirement, is part of x86-64.
        unsafe { sse2::bytes(digits, lens) }
    }
    #[cfg(target_arch = "aarch64")]
    {
        // SAFETY: NEON, the only requirement, is part of 64-bit ARM with a standard library.
        unsafe { neon::bytes(digits, lens) }
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    portable::bytes(digits, lens)
}

#[cfg(target_arch = "x86_64")]
mod sse2 {
    use std::arch::x86_64::{
        __m128i, _mm_add_epi32, _mm_and_si128, _mm_cmpeq_epi8, _mm_cmpeq_epi32, _mm_cmpgt_epi32,
        _mm_cvtsi128_si32, _mm_madd_epi16, _mm_max_epu8, _mm_movemask_epi8, _mm_packs_epi32,
        _mm_packus_epi16, _mm_set_epi32, _mm_set_epi64x, _mm_set1_epi8, _mm_set1_epi32,
        _mm_srli_epi16, _mm_sub_epi8, _mm_sub_epi32,
    };

    #[inline]
    #[target_feature(enable = "sse2")]
    pub(super) fn marks(text: u128) -> (u32, u32) {
        let text = _mm_set_epi64x((text >> 64) as i64, text as i64);
        let digits = _mm_sub_epi8(text, _mm_set1_epi8(b'0' as i8));
        let others = _mm_cmpeq_epi8(_mm_max_epu8(digits, _mm_set1_epi8(10)), digits);
        let points = _mm_cmpeq_epi8(text, _mm_set1_epi8(b'.' as i8));
        (_mm_movemask_epi8(others) as u32, _mm_movemask_epi8(points) as u32)
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn lanes([a, b, c, d]: [u32; 4]) -> __m128i {
        _mm_set_epi32(d as i32, c as i32, b as i32, a as i32)
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    pub(super) fn bytes(digits: [u32; 4], lens: [u32; 4]) -> Option<u32> {
        let (digits, lens) = (lanes(digits), lanes(lens));
        // Tens in the third byte; hundreds in the second and ones in the fourth.
        let tens = _mm_and_si128(digits, _mm_set1_epi32(0x00ff_0000));
        let tens = _mm_madd_epi16(tens, _mm_set1_epi32(10 << 16));
        let rest = _mm_madd_epi16(_mm_srli_epi16::<8>(digits), _mm_set1_epi32(1 << 16 | 100));
        let values = _mm_add_epi32(tens, rest);
        // The digits that a value needs. True is -1.
        let over = |limit| _mm_cmpgt_epi32(values, _mm_set1_epi32(limit));
        let more = _mm_add_epi32(over(9), over(99));
        let needed = _mm_sub_epi32(_mm_set1_epi32(1), more);
        let right = _mm_cmpeq_epi32(needed, lens);
        let right = _mm_and_si128(right, _mm_cmpeq_epi32(over(255), _mm_set1_epi32(0)));
        let words = _mm_packs_epi32(values, values);
        let bytes = _mm_cvtsi128_si32(_mm_packus_epi16(words, words)) as u32;
        (_mm_movemask_epi8(right) == 0xffff).then_some(bytes.swap_bytes())
    }
}

#[cfg(target_arch = "aarch64")]
mod neon {
    use std::arch::aarch64::{
        vaddq_u32, vaddvq_u32, vandq_u32, vceqq_u8, vceqq_u32, vcgeq_u8, vcgtq_u32, vcleq_u32,
        vdupq_n_u8, vdupq_n_u32, vld1q_s32, vld1q_u8, vld1q_u32, vminvq_u32, vmlaq_u32, vshlq_u32,
        vshrq_n_u32, vsubq_u8, vsubq_u32,
    };

    use crate::neon::masks::mask16;

    #[inline]
    #[target_feature(enable = "neon")]
    pub(super) fn marks(text: u128) -> (u32, u32) {
        let text = text.to_le_bytes();
        // SAFETY: sixteen bytes can be read.
        let text = unsafe { vld1q_u8(text.as_ptr()) };
        let others = vcgeq_u8(vsubq_u8(text, vdupq_n_u8(b'0')), vdupq_n_u8(10));
        let points = vceqq_u8(text, vdupq_n_u8(b'.'));
        // SAFETY: the machine has NEON.
        unsafe { (mask16(others).into(), mask16(points).into()) }
    }

    #[inline]
    #[target_feature(enable = "neon")]
    pub(super) fn bytes(digits: [u32; 4], lens: [u32; 4]) -> Option<u32> {
        // SAFETY: four words each can be read.
        let (digits, lens) = unsafe { (vld1q_u32(digits.as_ptr()), vld1q_u32(lens.as_ptr())) };
        let byte = vdupq_n_u32(0xff);
        let tens = vandq_u32(vshrq_n_u32::<16>(digits), byte);
        let hundreds = vandq_u32(vshrq_n_u32::<8>(digits), byte);
        let values = vmlaq_u32(vshrq_n_u32::<24>(digits), tens, vdupq_n_u32(10));
        let values = vmlaq_u32(values, hundreds, vdupq_n_u32(100));
        // The digits that a value needs. True is -1.
        let over = |limit| vcgtq_u32(values, vdupq_n_u32(limit));
        let needed = vsubq_u32(vdupq_n_u32(1), vaddq_u32(over(9), over(99)));
        let right = vandq_u32(vceqq_u32(needed, lens), vcleq_u32(values, byte));
        // The lowest byte of each word, the first word's highest.
        static PLACES: [i32; 4] = [24, 16, 8, 0];
        // SAFETY: four words can be read.
        let places = unsafe { vld1q_s32(PLACES.as_ptr()) };
        let bytes = vaddvq_u32(vshlq_u32(values, places));
        (vminvq_u32(right) != 0).then_some(bytes)
    }
}

#[cfg(any(test, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod portable {
    pub(super) fn marks(text: u128) -> (u32, u32) {
        let marks = |is: fn(u8) -> bool| {
            let bytes = text.to_le_bytes().into_iter();
            bytes.rev().fold(0, |marks, byte| marks << 1 | u32::from(is(byte)))
        };
        (marks(|byte| !byte.is_ascii_digit()), marks(|byte| byte == b'.'))
    }

    pub(super) fn bytes(digits: [u32; 4], lens: [u32; 4]) -> Option<u32> {
        let (mut bytes, mut wrong) = (0, false);
        for (digits, len) in digits.into_iter().zip(lens) {
            let (hundreds, tens, ones) = (digits >> 8 & 0xff, digits >> 16 & 0xff, digits >> 24);
            let value = 100 * hundreds + 10 * tens + ones;
            wrong |= value > 255 || len != 1 + u32::from(value > 9) + u32::from(value > 99);
            bytes = bytes << 8 | value;
        }
        (!wrong).then_some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every byte, in every place, among others.
    #[test]
    fn marks_agree() {
        for byte in 0..=u8::MAX {
            for place in 0..16 {
                for other in [b'0', b'.', byte.wrapping_mul(37)] {
                    let mut text = [other; 16];
                    text[place] = byte;
                    let text = u128::from_le_bytes(text);
                    assert_eq!(decimal_marks(text), portable::marks(text), "{text:032x}");
                }
            }
        }
    }

    /// All numbers of up to three digits, with every length, in every place.
    #[test]
    fn bytes_agree() {
        for value in 0..1000u32 {
            let digits = (value % 10) << 24 | (value / 10 % 10) << 16 | (value / 100) << 8;
            for len in 0..16 {
                for place in 0..4 {
                    let (mut all, mut lens) = ([0x0505_0200; 4], [3; 4]);
                    (all[place], lens[place]) = (digits, len);
                    assert_eq!(
                        decimal_bytes(all, lens),
                        portable::bytes(all, lens),
                        "{value} {len}"
                    );
                }
            }
        }
    }
}
