//! Dotted-decimal IPv4, sixteen characters at once.
//!
//! ```text
//!   text      1 0 . 2 0 . 3 . 2 5 5          11 characters, the first in the lowest byte
//!   others        ^     ^   ^                 what is no digit, found in all bytes at once: at 2, 5, 7
//!   octets    the 2, 2, 1 and 3 bytes between, read as hundreds, tens and ones, all four at once
//!   dots      there must be three others, and they must be dots
//! ```
//!
//! There is no loop over characters and no branch that depends on where the dots are, so addresses of mixed lengths
//! cause no mispredicted branches, which made a plain loop slow.

use crate::{decimal_bytes, decimal_marks};

/// The shortest text, `0.0.0.0`, and the longest, `255.255.255.255`.
const LENGTHS: std::ops::RangeInclusive<usize> = 7..=15;

/// Reads dotted-decimal IPv4 text: exactly what `Ipv4Addr::from_str` accepts (four octets, no leading
/// zeros, nothing around them).
///
/// ```
/// assert_eq!(fibula_simd::parse_v4(b"192.0.2.1"), Some(0xc000_0201));
/// assert_eq!(fibula_simd::parse_v4(b"192.0.2.01"), None);
/// ```
#[inline(always)]
pub fn parse_v4(text: &[u8]) -> Option<u32> {
    if !LENGTHS.contains(&text.len()) {
        return None;
    }
    let characters = characters(text);
    octets(characters, text.len(), |place| (characters >> (8 * place)) as u32)
}

/// As [`parse_v4`] of `data[start..end]`, which are places in `data`: where twenty bytes follow, they
/// are read at once, whatever the length, and octets are read again from where they are.
#[inline(always)]
pub fn parse_v4_at(data: &[u8], start: usize, end: usize) -> Option<u32> {
    let len = end.wrapping_sub(start);
    match data.get(start..).and_then(|rest| rest.first_chunk::<20>()) {
        Some(bytes) if LENGTHS.contains(&len) => {
            let text = bytes.first_chunk::<16>()?;
            octets(u128::from_le_bytes(*text), len, |place| {
                let at = place as usize & 15;
                u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
            })
        }
        Some(_) => None,
        None => parse_v4(data.get(start..end)?),
    }
}

/// The characters of a text of 7 to 15, the first in the lowest byte, zeros behind.
#[inline(always)]
fn characters(text: &[u8]) -> u128 {
    let len = text.len();
    // Two loads that overlap in the middle cover every length.
    match (text.first_chunk::<8>(), text.last_chunk::<8>()) {
        (Some(first), Some(last)) => {
            let last = u128::from(u64::from_le_bytes(*last)) << 64;
            u128::from(u64::from_le_bytes(*first)) | last >> (8 * (16 - len))
        }
        _ => text.iter().rev().fold(0, |value, &byte| value << 8 | u128::from(byte)),
    }
}

/// The address whose text are the first `len` (7 to 15) of these characters; `four` gives those from
/// a place on.
#[inline(always)]
fn octets(text: u128, len: usize, four: impl Fn(u32) -> u32) -> Option<u32> {
    let (others, dots) = decimal_marks(text);
    let text_only = (1 << len) - 1;
    let (others, dots) = (others & text_only, dots & text_only);
    let second_on = others & others.wrapping_sub(1);
    let third_on = second_on & second_on.wrapping_sub(1);
    if others != dots || third_on == 0 || third_on & (third_on - 1) != 0 {
        return None;
    }
    let (first, second, third) =
        (others.trailing_zeros(), second_on.trailing_zeros(), third_on.trailing_zeros());
    let lens = [first, second - first - 1, third - second - 1, len as u32 - third - 1];
    // Aligned to the right in four bytes, zeros before; a length beyond 3 is refused in the end.
    let aligned =
        |place, len: u32| (four(place) ^ 0x3030_3030) << (8 * (4u32.wrapping_sub(len) & 3));
    let digits = [
        aligned(0, lens[0]),
        aligned(first + 1, lens[1]),
        aligned(second + 1, lens[2]),
        aligned(third + 1, lens[3]),
    ];
    decimal_bytes(digits, lens)
}
