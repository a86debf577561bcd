//! Numbers and addresses as text.

use std::net::IpAddr;

use fibula_core::{Addr, AnyPrefix};

/// Appends a number in decimal.
#[inline]
pub(crate) fn write_int(value: impl itoa::Integer, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// A bound on the length of a prefix as text. It leaves room for writing whole words and truncating them.
pub const MAX_PREFIX: usize = 64;

/// The text of each octet, followed by a dot, and its length with the dot.
const OCTETS: [([u8; 4], u8); 256] = {
    let mut table = [([b'.'; 4], 0); 256];
    let mut octet = 0;
    while octet < 256 {
        let digits = [octet / 100, octet / 10 % 10, octet % 10];
        let mut digit = if octet > 99 { 0 } else { 2 - (octet > 9) as usize };
        let mut len = 0;
        while digit < 3 {
            table[octet].0[len] = b'0' + digits[digit] as u8;
            len += 1;
            digit += 1;
        }
        table[octet].1 = len as u8 + 1;
        octet += 1;
    }
    table
};

/// Appends the bytes that `write` puts at the start of a buffer; `write` returns their number.
#[inline]
fn append(out: &mut Vec<u8>, write: impl FnOnce(&mut [u8; MAX_PREFIX]) -> usize) {
    let start = out.len();
    out.resize(start + MAX_PREFIX, 0);
    let len = out.last_chunk_mut().map_or(0, write);
    out.truncate(start + len);
}

/// Output space that is known to suffice, with room for one chunk after it. Short texts are copied as whole chunks,
/// without a branch on their length; the next text overwrites the excess.
pub(crate) struct Space<'o> {
    out: &'o mut Vec<u8>,
    at: usize,
}

/// The maximum number of bytes that may be written beyond the end.
const CHUNK: usize = 128;

impl<'o> Space<'o> {
    /// Adds space for `bytes` bytes at the end of `out`.
    pub(crate) fn new(out: &'o mut Vec<u8>, bytes: usize) -> Self {
        let at = out.len();
        out.resize(at + bytes + CHUNK, 0);
        Self { out, at }
    }

    /// Appends `from[start..end]`. Up to `2 * N` bytes are copied as one chunk of `N` or `2 * N` bytes.
    #[inline(always)]
    pub(crate) fn put<const N: usize>(&mut self, from: &[u8], start: usize, end: usize) {
        let (len, to) = (end - start, &mut self.out[self.at..]);
        let source = from.get(start..).unwrap_or_default();
        match (source.first_chunk::<N>(), to.first_chunk_mut::<N>()) {
            (Some(source), Some(to)) if len <= N => *to = *source,
            _ => match (source.get(..2 * N), to.get_mut(..2 * N)) {
                (Some(source), Some(to)) if len <= 2 * N => to.copy_from_slice(source),
                _ => to[..len].copy_from_slice(&from[start..end]),
            },
        }
        self.at += len;
    }

    /// Appends a prefix.
    #[inline(always)]
    pub(crate) fn put_prefix(&mut self, prefix: AnyPrefix) {
        let space = self.out[self.at..].first_chunk_mut();
        self.at += space.map_or(0, |space| put_prefix(prefix, space));
    }

    /// Appends a byte the given number of times.
    pub(crate) fn fill(&mut self, byte: u8, times: usize) {
        self.out[self.at..self.at + times].fill(byte);
        self.at += times;
    }

    /// The position of the next byte.
    pub(crate) fn place(&self) -> usize {
        self.at
    }

    /// Removes the byte at `place`.
    pub(crate) fn remove(&mut self, place: usize) {
        self.out.copy_within(place + 1..self.at, place);
        self.at -= 1;
    }

    /// Removes the unused space.
    pub(crate) fn finish(self) {
        self.out.truncate(self.at);
    }
}

/// Writes an IPv4 address at the start of `out`, without a branch for each digit; returns its length.
#[inline(always)]
fn put_v4(addr: u32, out: &mut [u8; MAX_PREFIX]) -> usize {
    let mut at = 0;
    for octet in addr.to_be_bytes() {
        let (text, len) = OCTETS[usize::from(octet)];
        out[at..at + 4].copy_from_slice(&text);
        at += usize::from(len);
    }
    at - 1
}

/// Writes an IPv6 address at the start of `out` in the form of RFC 5952; returns its length.
#[inline(never)]
fn put_v6(addr: u128, out: &mut [u8; MAX_PREFIX]) -> usize {
    if addr >> 32 == 0xffff {
        out[..7].copy_from_slice(b"::ffff:");
        let mut v4 = [0; MAX_PREFIX];
        let len = put_v4(addr as u32, &mut v4);
        out[7..22].copy_from_slice(&v4[..15]);
        return 7 + len;
    }
    let groups: [u16; 8] = std::array::from_fn(|i| (addr >> (112 - 16 * i)) as u16);
    let (gap, gap_len) = longest_zeros(&groups);
    let (mut at, mut i) = (0, 0);
    while i < groups.len() {
        if i == gap {
            out[at..at + 2].copy_from_slice(b"::");
            at += 2;
            i += gap_len;
            continue;
        }
        if i > 0 && i != gap + gap_len {
            out[at] = b':';
            at += 1;
        }
        let group = u32::from(groups[i]);
        let digits = 8 - (group | 1).leading_zeros() as usize / 4;
        for digit in (0..digits).rev() {
            out[at] = b"0123456789abcdef"[(group >> (4 * digit) & 15) as usize];
            at += 1;
        }
        i += 1;
    }
    at
}

/// Each byte as two hexadecimal digits.
const HEX: [[u8; 2]; 256] = {
    let mut table = [[0; 2]; 256];
    let mut byte = 0;
    while byte < 256 {
        let digits = b"0123456789abcdef";
        table[byte] = [digits[byte / 16], digits[byte % 16]];
        byte += 1;
    }
    table
};

/// Writes an IPv6 address whose lower half is zero at the start of `out`, without branches; returns its length. The
/// zeros at its end are always the longest run.
#[inline(always)]
fn put_v6_network(high: u64, out: &mut [u8; MAX_PREFIX]) -> usize {
    let groups = 4 - high.trailing_zeros() / 16;
    let mut at = 0;
    for i in 0..4 {
        let [first, second] = ((high >> (48 - 16 * i)) as u16).to_be_bytes();
        let ([a, b], [c, d]) = (HEX[usize::from(first)], HEX[usize::from(second)]);
        let group = u32::from(first) << 8 | u32::from(second) | 1;
        let zeros = (group << 16).leading_zeros() / 4;
        let digits = u64::from_le_bytes([a, b, c, d, b':', 0, 0, 0]) >> (8 * zeros);
        out[at..at + 8].copy_from_slice(&digits.to_le_bytes());
        at += if i < groups { 5 - zeros as usize } else { 0 };
    }
    // The colons of the gap. If a group precedes it, the first colon is already there and only one is added to the
    // length.
    out[at..at + 2].copy_from_slice(b"::");
    at + 1 + usize::from(groups == 0)
}

/// The start and the length of the longest run of at least two zeros; the first of equally long runs.
fn longest_zeros(groups: &[u16; 8]) -> (usize, usize) {
    let (mut best, mut run) = ((0, 0), 0);
    for (i, &group) in groups.iter().enumerate() {
        run = if group == 0 { run + 1 } else { 0 };
        if run > best.1 {
            best = (i + 1 - run, run);
        }
    }
    // A single zero is not replaced by a gap: return a start that is never reached.
    if best.1 < 2 { (groups.len() + 1, 0) } else { best }
}

/// Appends an address as text, which is that of its [`Display`](std::fmt::Display).
///
/// ```
/// let mut out = b"from ".to_vec();
/// fibula_annotate::write_ip("2001:db8::1".parse()?, &mut out);
/// assert_eq!(out, b"from 2001:db8::1");
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
pub fn write_ip(ip: IpAddr, out: &mut Vec<u8>) {
    append(out, |out| match ip {
        IpAddr::V4(v4) => put_v4(v4.into(), out),
        IpAddr::V6(v6) => put_v6(v6.into(), out),
    });
}

/// Writes the prefix of `len` bits that contains the address at the start of `out`; returns the length of the text.
#[inline(always)]
pub(crate) fn put_v4_prefix(addr: u32, len: u8, out: &mut [u8; MAX_PREFIX]) -> usize {
    let at = put_v4(addr & u32::netmask(len), out);
    put_length(at, len, out)
}

/// Writes the prefix of `len` bits that contains the address at the start of `out`; returns the length of the text.
#[inline(always)]
pub(crate) fn put_v6_prefix(addr: u128, len: u8, out: &mut [u8; MAX_PREFIX]) -> usize {
    let addr = addr & u128::netmask(len);
    let at = if len <= 64 { put_v6_network((addr >> 64) as u64, out) } else { put_v6(addr, out) };
    put_length(at, len, out)
}

/// Appends a prefix as text, which is that of its [`Display`](std::fmt::Display) in a fourth of the time.
///
/// ```
/// let mut out = b"to ".to_vec();
/// fibula_annotate::write_prefix("2001:db8::/32".parse()?, &mut out);
/// assert_eq!(out, b"to 2001:db8::/32");
/// # Ok::<(), fibula_core::PrefixError>(())
/// ```
pub fn write_prefix(prefix: AnyPrefix, out: &mut Vec<u8>) {
    append(out, |out| put_prefix(prefix, out));
}

/// Writes a prefix as text at the start of `out`; returns its length. What is behind it is overwritten, too.
///
/// ```
/// let mut text = [0; fibula_annotate::MAX_PREFIX];
/// let len = fibula_annotate::put_prefix("2001:db8::/32".parse()?, &mut text);
/// assert_eq!(&text[..len], b"2001:db8::/32");
/// # Ok::<(), fibula_core::PrefixError>(())
/// ```
#[inline(always)]
pub fn put_prefix(prefix: AnyPrefix, out: &mut [u8; MAX_PREFIX]) -> usize {
    match prefix {
        AnyPrefix::V4(prefix) => put_v4_prefix(prefix.addr(), prefix.len(), out),
        AnyPrefix::V6(prefix) => put_v6_prefix(prefix.addr(), prefix.len(), out),
    }
}

/// Writes a prefix length after the address, which ends at `at`; returns the length of both.
#[inline(always)]
fn put_length(at: usize, len: u8, out: &mut [u8; MAX_PREFIX]) -> usize {
    let (text, digits) = OCTETS[usize::from(len)];
    out[at] = b'/';
    out[at + 1..at + 5].copy_from_slice(&text);
    at + usize::from(digits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn equal_to_display(
            v4: u32, v6: u128, len in 0u8..=32, holes: [(u32, u32); 2], groups: [u8; 8]
        ) {
            // Runs of zeros, and groups of every length.
            let v6 = holes.iter().fold(v6, |v6, (len, at)| {
                v6 & !(u128::MAX >> (len % 128) << (at % 128))
            });
            let short = groups.iter().fold(0u128, |v6, &group| v6 << 16 | u128::from(group / 128 * group));
            let ips = [IpAddr::V4(v4.into()), IpAddr::V6(v6.into()), IpAddr::V6(short.into()),
                IpAddr::V6((0xffff << 32 | u128::from(v4)).into())];
            for ip in ips {
                let mut out = Vec::new();
                write_ip(ip, &mut out);
                prop_assert_eq!(String::from_utf8(out).unwrap(), ip.to_string());
                let longer = if ip.is_ipv6() { [len, 3 * len, 4 * len] } else { [len; 3] };
                for len in longer {
                    let prefix = AnyPrefix::masked(ip, len).unwrap();
                    let mut out = Vec::new();
                    write_prefix(prefix, &mut out);
                    prop_assert_eq!(String::from_utf8(out).unwrap(), prefix.to_string());
                }
            }
        }
    }
}
