//! Finds characters among sixty-four bytes, as a mask with one bit for each byte, so that separators are found
//! without a loop over characters.

/// The bytes that equal `byte`. Bit `i` is for byte `i`.
///
/// ```
/// let mut text = [b' '; 64];
/// text[..9].copy_from_slice(b"a,b,c\nd,e");
/// assert_eq!(fibula_simd::byte_marks(&text, b','), 0b1000_1010);
/// ```
#[inline(always)]
pub fn byte_marks(text: &[u8; 64], byte: u8) -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: SSE2, the only requirement, is part of x86-64.
        unsafe { sse2::equal(text, byte) }
    }
    #[cfg(target_arch = "aarch64")]
    {
        // SAFETY: NEON, the only requirement, is part of 64-bit ARM with a standard library.
        unsafe { neon::equal(text, byte) }
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    portable::marks(text, |other| other == byte)
}

/// The bytes that are not printable ASCII, except DEL: control characters, and parts of other characters.
///
/// ```
/// let mut text = [b' '; 64];
/// text[..8].copy_from_slice("a\tb\u{e9}\x7f~ ".as_bytes());
/// assert_eq!(fibula_simd::unprintable_marks(&text), 0b1_1010);
/// ```
#[inline(always)]
pub fn unprintable_marks(text: &[u8; 64]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: SSE2, the only requirement, is part of x86-64.
        unsafe { sse2::unprintable(text) }
    }
    #[cfg(target_arch = "aarch64")]
    {
        // SAFETY: NEON, the only requirement, is part of 64-bit ARM with a standard library.
        unsafe { neon::unprintable(text) }
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    portable::marks(text, |byte| (byte as i8) < 0x20)
}

/// The bytes that are digits, `0` to `9`.
///
/// ```
/// let mut text = [b' '; 64];
/// text[..9].copy_from_slice(b"\"a\":1070,");
/// assert_eq!(fibula_simd::digit_marks(&text), 0b1111_0000);
/// ```
#[inline(always)]
pub fn digit_marks(text: &[u8; 64]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: SSE2, the only requirement, is part of x86-64.
        unsafe { sse2::digits(text) }
    }
    #[cfg(target_arch = "aarch64")]
    {
        // SAFETY: NEON, the only requirement, is part of 64-bit ARM with a standard library.
        unsafe { neon::digits(text) }
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    portable::marks(text, |byte| byte.is_ascii_digit())
}

#[cfg(target_arch = "x86_64")]
mod sse2 {
    use std::arch::x86_64::{
        __m128i, _mm_add_epi8, _mm_cmpeq_epi8, _mm_cmplt_epi8, _mm_movemask_epi8, _mm_set_epi64x,
        _mm_set1_epi8,
    };

    /// A bit for each byte for which `is` returns all ones.
    #[inline]
    #[target_feature(enable = "sse2")]
    fn marks(text: &[u8; 64], is: impl Fn(__m128i) -> __m128i) -> u64 {
        let mut marks = 0;
        for (i, part) in text.as_chunks::<16>().0.iter().enumerate() {
            let part = u128::from_le_bytes(*part);
            let part = _mm_set_epi64x((part >> 64) as i64, part as i64);
            marks |= u64::from(_mm_movemask_epi8(is(part)) as u16) << (16 * i);
        }
        marks
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    pub(super) fn equal(text: &[u8; 64], byte: u8) -> u64 {
        let byte = _mm_set1_epi8(byte as i8);
        marks(text, |part| _mm_cmpeq_epi8(part, byte))
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    pub(super) fn unprintable(text: &[u8; 64]) -> u64 {
        let blank = _mm_set1_epi8(0x20);
        // As signed numbers bytes from 0x80 on are below, too.
        marks(text, |part| _mm_cmplt_epi8(part, blank))
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    pub(super) fn digits(text: &[u8; 64]) -> u64 {
        // Digits become the ten smallest signed numbers.
        let (shift, tenth) = (_mm_set1_epi8((0x80 - b'0') as i8), _mm_set1_epi8(i8::MIN + 10));
        marks(text, |part| _mm_cmplt_epi8(_mm_add_epi8(part, shift), tenth))
    }
}

#[cfg(target_arch = "aarch64")]
mod neon {
    use std::arch::aarch64::{
        uint8x16_t, vceqq_u8, vcltq_s8, vcltq_u8, vdupq_n_s8, vdupq_n_u8, vld1q_u8,
        vreinterpretq_s8_u8, vsubq_u8,
    };

    use crate::neon::masks::mask_bytes;

    /// A bit for each byte for which `is` returns all ones.
    #[inline]
    #[target_feature(enable = "neon")]
    fn marks(text: &[u8; 64], is: impl Fn(uint8x16_t) -> uint8x16_t) -> u64 {
        let at = text.as_ptr();
        // SAFETY: four times sixteen bytes can be read.
        let [a, b, c, d] = unsafe {
            [vld1q_u8(at), vld1q_u8(at.add(16)), vld1q_u8(at.add(32)), vld1q_u8(at.add(48))]
        };
        // SAFETY: the machine has NEON.
        unsafe { mask_bytes([is(a), is(b), is(c), is(d)]) }
    }

    #[inline]
    #[target_feature(enable = "neon")]
    pub(super) fn equal(text: &[u8; 64], byte: u8) -> u64 {
        let byte = vdupq_n_u8(byte);
        marks(text, |part| vceqq_u8(part, byte))
    }

    #[inline]
    #[target_feature(enable = "neon")]
    pub(super) fn unprintable(text: &[u8; 64]) -> u64 {
        let blank = vdupq_n_s8(0x20);
        // As signed numbers bytes from 0x80 on are below, too.
        marks(text, |part| vcltq_s8(vreinterpretq_s8_u8(part), blank))
    }

    #[inline]
    #[target_feature(enable = "neon")]
    pub(super) fn digits(text: &[u8; 64]) -> u64 {
        let (zero, ten) = (vdupq_n_u8(b'0'), vdupq_n_u8(10));
        marks(text, |part| vcltq_u8(vsubq_u8(part, zero), ten))
    }
}

#[cfg(any(test, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod portable {
    pub(super) fn marks(text: &[u8; 64], is: impl Fn(u8) -> bool) -> u64 {
        text.iter().enumerate().fold(0, |marks, (i, &byte)| marks | u64::from(is(byte)) << i)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every byte, in every place, among others.
    #[test]
    fn marks_agree() {
        for byte in 0..=u8::MAX {
            for place in 0..64 {
                for other in [b',', 0x1f, byte.wrapping_mul(37)] {
                    let mut text = [other; 64];
                    text[place] = byte;
                    let equal = portable::marks(&text, |b| b == byte);
                    assert_eq!(byte_marks(&text, byte), equal, "{text:x?}");
                    let unprintable = portable::marks(&text, |b| !(0x20..0x80).contains(&b));
                    assert_eq!(unprintable_marks(&text), unprintable, "{text:x?}");
                    let digits = portable::marks(&text, |b| b.is_ascii_digit());
                    assert_eq!(digit_marks(&text), digits, "{text:x?}");
                }
            }
        }
    }
}
