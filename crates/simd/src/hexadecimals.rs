//! Parses hexadecimal groups separated by colons, without a loop over characters.

/// For each of 48 characters: whether it is no hexadecimal digit, and whether it is a colon. Bit `i` is for byte `i`.
///
/// ```
/// let mut text = [b'0'; 48];
/// text[..6].copy_from_slice(b"aF::g9");
/// assert_eq!(fibula_simd::hex_marks(&text), (0b011100, 0b001100));
/// ```
#[inline]
pub fn hex_marks(text: &[u8; 48]) -> (u64, u64) {
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

/// The 16-bit values of eight groups of four hexadecimal digits, the first in the highest bits. A group's first digit
/// lies in its lowest byte; a zero byte counts as the digit zero. The result for other characters is undefined.
///
/// ```
/// let group = |text: &[u8; 4]| u32::from_le_bytes(*text);
/// let groups = [group(b"2001"), group(b"\0db8"), 0, 0, 0, 0, group(b"00aA"), group(b"\0\0\0f")];
/// assert_eq!(fibula_simd::hex_groups(groups), 0x2001_0db8_0000_0000_0000_0000_00aa_000f);
/// ```
#[inline]
pub fn hex_groups(groups: [u32; 8]) -> u128 {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: SSE2, the only requirement, is part of x86-64.
        unsafe { sse2::groups(groups) }
    }
    #[cfg(target_arch = "aarch64")]
    {
        // SAFETY: NEON, the only requirement, is part of 64-bit ARM with a standard library.
        unsafe { neon::groups(groups) }
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    portable::groups(groups)
}

#[cfg(target_arch = "x86_64")]
mod sse2 {
    use std::arch::x86_64::{
        __m128i, _mm_add_epi8, _mm_and_si128, _mm_cmpeq_epi8, _mm_cvtsi128_si64, _mm_madd_epi16,
        _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128, _mm_packs_epi32, _mm_set_epi32,
        _mm_set_epi64x, _mm_set1_epi8, _mm_set1_epi16, _mm_set1_epi32, _mm_slli_epi16,
        _mm_slli_epi32, _mm_srai_epi32, _mm_srli_epi16, _mm_sub_epi8, _mm_unpackhi_epi64,
    };

    #[inline]
    #[target_feature(enable = "sse2")]
    pub(super) fn marks(text: &[u8; 48]) -> (u64, u64) {
        let at_most =
            |value, limit| _mm_cmpeq_epi8(_mm_min_epu8(value, _mm_set1_epi8(limit)), value);
        let mask = |bytes| u64::from(_mm_movemask_epi8(bytes) as u32);
        let (mut digits, mut colons) = (0, 0);
        for (part, place) in text.as_chunks::<16>().0.iter().zip([0, 16, 32]) {
            let part = u128::from_le_bytes(*part);
            let part = _mm_set_epi64x((part >> 64) as i64, part as i64);
            let decimal = at_most(_mm_sub_epi8(part, _mm_set1_epi8(b'0' as i8)), 9);
            let lower = _mm_or_si128(part, _mm_set1_epi8(0x20));
            let letter = at_most(_mm_sub_epi8(lower, _mm_set1_epi8(b'a' as i8)), 5);
            let colon = _mm_cmpeq_epi8(part, _mm_set1_epi8(b':' as i8));
            digits |= mask(_mm_or_si128(decimal, letter)) << place;
            colons |= mask(colon) << place;
        }
        (digits ^ 0xffff_ffff_ffff, colons)
    }

    /// The numbers of four groups, the last first, each in a lane.
    #[inline]
    #[target_feature(enable = "sse2")]
    fn numbers(a: u32, b: u32, c: u32, d: u32) -> __m128i {
        let characters = _mm_set_epi32(a as i32, b as i32, c as i32, d as i32);
        // Letters have bit 6, and count on from nine.
        let one = _mm_and_si128(_mm_srli_epi16::<6>(characters), _mm_set1_epi8(1));
        let eight = _mm_and_si128(_mm_srli_epi16::<3>(characters), _mm_set1_epi8(8));
        let low = _mm_and_si128(characters, _mm_set1_epi8(15));
        let digits = _mm_add_epi8(low, _mm_or_si128(one, eight));
        // Two digits to a byte, two of these to a word.
        let bytes = _mm_or_si128(_mm_slli_epi16::<4>(digits), _mm_srli_epi16::<8>(digits));
        let bytes = _mm_and_si128(bytes, _mm_set1_epi16(0xff));
        _mm_madd_epi16(bytes, _mm_set1_epi32(1 << 16 | 256))
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    pub(super) fn groups([a, b, c, d, e, f, g, h]: [u32; 8]) -> u128 {
        // Packing takes signed numbers and keeps those of sixteen bits.
        let signed = |lanes| _mm_srai_epi32::<16>(_mm_slli_epi32::<16>(lanes));
        let words = _mm_packs_epi32(signed(numbers(e, f, g, h)), signed(numbers(a, b, c, d)));
        let high = _mm_cvtsi128_si64(_mm_unpackhi_epi64(words, words)) as u64;
        u128::from(high) << 64 | u128::from(_mm_cvtsi128_si64(words) as u64)
    }
}

#[cfg(target_arch = "aarch64")]
mod neon {
    use std::arch::aarch64::{
        vandq_u8, vceqq_u8, vcltq_u8, vdupq_n_u8, vld1q_u8, vmlaq_u8, vorrq_u8, vshlq_n_u8,
        vshrq_n_u8, vst1q_u8, vsubq_u8, vuzp1q_u8, vuzp2q_u8,
    };

    use crate::neon::masks::mask_bytes;

    #[inline]
    #[target_feature(enable = "neon")]
    pub(super) fn marks(text: &[u8; 48]) -> (u64, u64) {
        let at = text.as_ptr();
        // SAFETY: three times sixteen bytes can be read.
        let parts = unsafe { [vld1q_u8(at), vld1q_u8(at.add(16)), vld1q_u8(at.add(32))] };
        let digit = |part| {
            let decimal = vcltq_u8(vsubq_u8(part, vdupq_n_u8(b'0')), vdupq_n_u8(10));
            let lower = vorrq_u8(part, vdupq_n_u8(0x20));
            vorrq_u8(decimal, vcltq_u8(vsubq_u8(lower, vdupq_n_u8(b'a')), vdupq_n_u8(6)))
        };
        let colon = |part| vceqq_u8(part, vdupq_n_u8(b':'));
        let ([a, b, c], none) = (parts, vdupq_n_u8(0));
        // SAFETY: the machine has NEON.
        let (digits, colons) = unsafe {
            (
                mask_bytes([digit(a), digit(b), digit(c), none]),
                mask_bytes([colon(a), colon(b), colon(c), none]),
            )
        };
        (digits ^ 0xffff_ffff_ffff, colons)
    }

    #[inline]
    #[target_feature(enable = "neon")]
    pub(super) fn groups(groups: [u32; 8]) -> u128 {
        let at = groups.as_ptr().cast::<u8>();
        // SAFETY: eight words are twice sixteen bytes.
        let (front, back) = unsafe { (vld1q_u8(at), vld1q_u8(at.add(16))) };
        let digits = |characters| {
            // Letters have bit 6, and count on from nine.
            let letters = vandq_u8(vshrq_n_u8::<6>(characters), vdupq_n_u8(1));
            vmlaq_u8(vandq_u8(characters, vdupq_n_u8(15)), letters, vdupq_n_u8(9))
        };
        let (front, back) = (digits(front), digits(back));
        // Of two digits the first one has the higher bits.
        let high = vshlq_n_u8::<4>(vuzp1q_u8(front, back));
        let bytes = vorrq_u8(high, vuzp2q_u8(front, back));
        let mut number = [0; 16];
        // SAFETY: sixteen bytes can be written.
        unsafe { vst1q_u8(number.as_mut_ptr(), bytes) };
        u128::from_be_bytes(number)
    }
}

#[cfg(any(test, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod portable {
    pub(super) fn marks(text: &[u8; 48]) -> (u64, u64) {
        let marks = |is: fn(u8) -> bool| {
            text.iter().rev().fold(0, |marks, &byte| marks << 1 | u64::from(is(byte)))
        };
        (marks(|byte| !byte.is_ascii_hexdigit()), marks(|byte| byte == b':'))
    }

    pub(super) fn groups(groups: [u32; 8]) -> u128 {
        groups.into_iter().fold(0, |all, group| {
            // Letters have bit 6, and count on from nine.
            let digits = (group & 0x0f0f_0f0f) + 9 * (group >> 6 & 0x0101_0101);
            let number =
                digits.to_le_bytes().into_iter().fold(0, |n, digit| n << 4 | u128::from(digit));
            all << 16 | number
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every byte, in every place, among others.
    #[test]
    fn marks_agree() {
        for byte in 0..=u8::MAX {
            for place in 0..48 {
                for other in [b'0', b':', byte.wrapping_mul(37)] {
                    let mut text = [other; 48];
                    text[place] = byte;
                    assert_eq!(hex_marks(&text), portable::marks(&text), "{text:?}");
                }
            }
        }
    }

    /// Every number, in either case, in every place.
    #[test]
    fn groups_agree() {
        for number in 0..=u16::MAX {
            for text in [format!("{number:04x}"), format!("{number:04X}")] {
                let place = usize::from(number) % 8;
                let mut groups = [u32::from_le_bytes(*b"9aF0"); 8];
                groups[place] = u32::from_le_bytes(text.as_bytes().try_into().unwrap());
                let found = hex_groups(groups);
                assert_eq!(found, portable::groups(groups), "{text}");
                assert_eq!((found >> (112 - 16 * place)) as u16, number);
            }
        }
    }
}
