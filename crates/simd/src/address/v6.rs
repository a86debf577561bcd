//! IPv6 text, all characters at once.
//!
//! ```text
//!   2001:db8::8a2e:7334          colons at 4, 8, 9 and 14; two next to each other are the gap
//!   2001 | 0db8 | (none) | 8a2e | 7334 | ...      what is between them, always eight groups
//!   head = the 2 before the gap, where they are
//!   tail = the 2 behind it, moved to the bottom; what is behind the end falls out
//! ```
//!
//! There is no loop over characters or over the existing groups, so addresses of mixed forms cause no mispredicted
//! branches. Text with other characters (dots, a zone) is left to the standard library.

use std::net::Ipv6Addr;

use super::{MAX_TEXT, parse_v4};
use crate::{hex_groups, hex_marks};

/// Number of characters that are read. The longest text without dots has 39, and four bytes after the last group are
/// read, too.
const WINDOW: usize = 52;

/// Reads IPv6 text: exactly what `Ipv6Addr::from_str` accepts (no zone, nothing around it).
///
/// ```
/// assert_eq!(fibula_simd::parse_v6(b"2001:DB8::1"), Some(0x2001_0db8 << 96 | 1));
/// assert_eq!(fibula_simd::parse_v6(b"::ffff:192.0.2.1"), Some(0xffff_c000_0201));
/// assert_eq!(fibula_simd::parse_v6(b"fe80::1%eth0"), None);
/// ```
// Not inlined: it would crowd the IPv4 path, which most rows take.
#[inline(never)]
pub fn parse_v6(text: &[u8]) -> Option<u128> {
    let mut window = [0; WINDOW];
    if let Some(front) = window.get_mut(..text.len()) {
        front.copy_from_slice(text);
        if let Some(addr) = groups(&window, text.len()) {
            return Some(addr);
        }
    }
    // The form in which dual-stack sockets write IPv4 addresses.
    if let Some(mapped) = text.strip_prefix(b"::ffff:")
        && let Some(v4) = parse_v4(mapped)
    {
        return Some(0xffff << 32 | u128::from(v4));
    }
    slowly(text)
}

/// As [`parse_v6`] of `data[start..end]`, which are places in `data`, where enough bytes follow for one read. `None`
/// does not mean that the text is invalid.
#[inline(always)]
pub fn parse_v6_at(data: &[u8], start: usize, end: usize) -> Option<u128> {
    let window = data.get(start..)?.first_chunk::<WINDOW>()?;
    groups(window, end.wrapping_sub(start))
}

fn slowly(text: &[u8]) -> Option<u128> {
    // Any address has a colon within its first five bytes, and most texts that reach this point have none.
    if text.len() > MAX_TEXT || !text.iter().take(5).any(|&byte| byte == b':') {
        return None;
    }
    let ip: Ipv6Addr = std::str::from_utf8(text).ok()?.parse().ok()?;
    Some(ip.into())
}

/// The address whose text, of groups and colons alone, are the first `len` of these characters. `None` does not mean
/// that the text is invalid.
#[inline(always)]
fn groups(window: &[u8; WINDOW], len: usize) -> Option<u128> {
    if !(2..=39).contains(&len) {
        return None;
    }
    let (others, all_colons) = hex_marks(window.first_chunk()?);
    let text_only = (1 << len) - 1;
    let (others, all_colons) = (others & text_only, all_colons & text_only);
    let digits = others ^ text_only;
    let five = digits & digits >> 1 & digits >> 2;
    let five = five & five >> 2;
    // Where two colons meet, at the first of them; three meet twice.
    let gap = all_colons & all_colons >> 1;
    // A colon at either end is one of the gap's.
    let ends = all_colons & (1 | 1 << (len - 1)) & !(gap | gap << 1);
    if others != all_colons || five | ends | gap & gap.wrapping_sub(1) != 0 {
        return None;
    }

    // Groups end at colons and at the end of the text. The gap is an empty group; at either end of the
    // text it would be two, so a colon less counts there.
    let at_front = gap & 1;
    let at_back = gap << 2 & (1 << len);
    let mut stops = all_colons & !at_front | (1 << len) & !at_back;
    let count = stops.count_ones();
    let before = (all_colons & gap.wrapping_sub(1)).count_ones() + u32::from(at_front == 0);
    if count > 8 || gap == 0 && count < 8 {
        return None;
    }
    // Behind the last group, some that fall out in the end.
    stops |= 0xff << 40;
    let mut characters = [0; 8];
    let mut start = at_front as usize;
    for group in &mut characters {
        let stop = stops.trailing_zeros() as usize;
        stops &= stops.wrapping_sub(1);
        let four = window.get(start..start + 4)?.first_chunk::<4>()?;
        // Aligned to the right, zeros before; nothing of an empty one.
        let empty = start.wrapping_sub(stop).wrapping_mul(8).wrapping_add(32) as u32;
        *group = u64::from(u32::from_le_bytes(*four)).wrapping_shl(empty) as u32;
        start = stop + 1;
    }
    let value = hex_groups(characters);
    if gap == 0 {
        return Some(value);
    }
    // At most seven groups stand before and behind the gap.
    let tail = u128::MAX.checked_shr(16 * before)?;
    Some(value & !tail | (value & tail) >> (16 * (8 - count)))
}
