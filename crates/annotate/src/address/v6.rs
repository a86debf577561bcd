//! IPv6 text: colons found eight characters at once, groups read four characters at once.
//!
//! ```text
//!   2001:db8::8a2e:7334          colons at 4, 8, 9 and 14, the two next to each other are the gap
//!   2001 | db8 | gap | 8a2e | 7334
//!   head = 0x20010db8            groups before the gap, moved to the top of the address
//!   tail = 0x8a2e7334            groups behind it, at the bottom
//! ```
//!
//! Whatever is in any way unusual (short, dotted, malformed) is left to the standard library.

use std::net::Ipv6Addr;

use super::{Address, MAX_TEXT, parse_v4};

/// The high bits of eight bytes.
const HIGH: u64 = 0x8080_8080_8080_8080;
/// A factor that brings bit 0 of byte `i` to bit 56 + `i`, without carries: 2^56 + 2^49 + ... + 2^7.
const GATHER: u64 = 0x0102_0408_1020_4080;

/// Reads IPv6 text.
// Not inlined: it would crowd the IPv4 path, which most rows take.
#[inline(never)]
pub(super) fn parse(text: &[u8]) -> Option<Address> {
    if let Some(addr) = groups(text) {
        return Some(Address::from_v6(addr));
    }
    // As dual-stack sockets write IPv4 addresses. What std reads otherwise begins otherwise.
    if let Some(mapped) = text.strip_prefix(b"::ffff:")
        && let Some(v4) = parse_v4(mapped)
    {
        return Some(Address::V4(v4));
    }
    slowly(text)
}

fn slowly(text: &[u8]) -> Option<Address> {
    // A colon comes within the first five bytes of any, and most of what comes here has none.
    if text.len() > MAX_TEXT || !text.iter().take(5).any(|&byte| byte == b':') {
        return None;
    }
    let ip: Ipv6Addr = std::str::from_utf8(text).ok()?.parse().ok()?;
    Some(Address::from_v6(ip.into()))
}

/// Set in the table below where a byte is no hexadecimal digit; it stays visible when digits are put
/// together.
const NO_DIGIT: u32 = 1 << 16;

const DIGITS: [u32; 256] = {
    let mut table = [NO_DIGIT; 256];
    let mut digit = 0;
    while digit < 16 {
        let text = b"0123456789abcdef"[digit];
        table[text as usize] = digit as u32;
        table[text.to_ascii_uppercase() as usize] = digit as u32;
        digit += 1;
    }
    table
};

/// The address of a text of 8 to 39 characters that has only groups and colons. `None` says nothing
/// about the text.
#[inline]
fn groups(text: &[u8]) -> Option<u128> {
    let len = text.len();
    if !(8..=39).contains(&len) {
        return None;
    }
    let mut colons = colons(text);
    let gaps = colons & colons >> 1;
    // One gap at most; a single colon at either end is no part of one.
    let ends = 1 | 1 << (len - 1);
    let gap_ends = gaps | gaps << 1;
    if gaps & gaps.wrapping_sub(1) != 0 || colons & ends & !gap_ends != 0 {
        return None;
    }

    let (mut value, mut head) = (0u128, 0u128);
    let (mut count, mut head_count, mut bad) = (0u32, 0u32, 0u32);
    let mut start = 0;
    if colons & 1 != 0 {
        // The gap comes first.
        (start, colons) = (2, colons & !3);
    }
    while start < len {
        let end = (colons.trailing_zeros() as usize).min(len);
        colons &= colons.wrapping_sub(1);
        let (group, wrong) = group(text, start, end);
        value = value << 16 | u128::from(group as u16);
        bad |= wrong;
        count += 1;
        start = end + 1;
        if colons >> start & 1 != 0 {
            (head, head_count, value) = (value, count, 0);
            colons &= colons - 1;
            start += 1;
        }
    }
    if bad != 0 || count > 8 {
        return None;
    }
    match gaps {
        0 if count == 8 => Some(value),
        0 => None,
        // A gap stands for one group of zeros at least.
        _ if count == 8 => None,
        _ if head_count == 0 => Some(value),
        _ => Some(head << (16 * (8 - head_count)) | value),
    }
}

/// A bit for each colon. The text has 8 to 39 characters.
#[inline]
fn colons(text: &[u8]) -> u64 {
    let of = |bytes: [u8; 8]| {
        let differ = u64::from_le_bytes(bytes) ^ u64::from_ne_bytes([b':'; 8]);
        let found = !((differ & !HIGH).wrapping_add(!HIGH) | differ) & HIGH;
        (found >> 7).wrapping_mul(GATHER) >> 56
    };
    let (chunks, rest) = text.as_chunks::<8>();
    let mut mask = 0;
    for (chunk, place) in chunks.iter().zip((0..).step_by(8)) {
        mask |= of(*chunk) << place;
    }
    if !rest.is_empty()
        && let Some(last) = text.last_chunk::<8>()
    {
        // Overlaps what was looked at; the same bits come out.
        mask |= of(*last) << (text.len() - 8);
    }
    mask
}

/// The group in `start..end`, and something other than 0 if it is none.
#[inline]
fn group(text: &[u8], start: usize, end: usize) -> (u32, u32) {
    let len = end.wrapping_sub(start);
    let wrong = u32::from(len.wrapping_sub(1) > 3);
    // Four characters that end where the group does; for a short group at the very beginning, those
    // from the beginning, moved. Zeros in place of what is before the group.
    let four = match end.checked_sub(4) {
        Some(from) => text.get(from..end).and_then(|four| four.first_chunk::<4>()),
        None => text.first_chunk::<4>(),
    };
    let Some(four) = four else { return (0, 1) };
    let characters = u32::from_le_bytes(*four) << (8 * 4usize.saturating_sub(end));
    let before = 8 * (4usize.wrapping_sub(len) as u32 & 3);
    let zeros = 0x3030_3030 & !(u32::MAX << before);
    let [a, b, c, d] = (characters & u32::MAX << before | zeros).to_le_bytes();
    let digit = |byte: u8| DIGITS[usize::from(byte)];
    let value = digit(a) << 12 | digit(b) << 8 | digit(c) << 4 | digit(d);
    (value, wrong | value & !0xffff)
}
