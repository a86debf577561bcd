//! The key of a line: a prefix, an address or a range, from bytes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fibula_core::{AnyPrefix, Prefix, PrefixError};
use fibula_simd::{parse_v4, parse_v6};

use crate::HostBits;

/// The addresses of a line's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Prefix(AnyPrefix),
    RangeV4(u32, u32),
    RangeV6(u128, u128),
}

/// Why a key was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyError {
    /// Neither an address nor a prefix nor a range.
    Syntax,
    Length,
    HostBits,
    /// Start and end of different families.
    Families,
    /// The end comes before the start.
    Order,
    /// Not a number of addresses, or more than there are.
    Count,
}

impl KeyError {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Syntax => "not an address, a prefix or a range",
            Self::Length => "the prefix length exceeds the family's bits",
            Self::HostBits => {
                "bits beyond the prefix length are set (--mask-host-bits clears them)"
            }
            Self::Families => "the range's ends are of different families",
            Self::Order => "the range ends before it starts",
            Self::Count => "not a number of addresses, or more than the family has from there",
        }
    }
}

/// An address of either family.
pub(crate) fn parse_ip(text: &[u8]) -> Option<IpAddr> {
    match parse_v4(text) {
        Some(addr) => Some(Ipv4Addr::from(addr).into()),
        None => parse_v6(text).map(|addr| Ipv6Addr::from(addr).into()),
    }
}

/// An address as a plain decimal integer, as IP2Location and Tor write the ends of ranges.
pub(crate) fn parse_decimal(text: &[u8]) -> Option<u128> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u128, |value, &b| {
        let digit = b.is_ascii_digit().then(|| u128::from(b - b'0'))?;
        value.checked_mul(10)?.checked_add(digit)
    })
}

/// A prefix, an address (its host route) or `start-end`.
pub(crate) fn parse_key(text: &[u8], host_bits: HostBits) -> Result<Key, KeyError> {
    // A length is at the end and at most three digits: look for the slash from there.
    let slash = text.iter().rev().take(5).position(|&b| b == b'/');
    if let Some(from_end) = slash {
        let (ip, len) = text.split_at(text.len() - 1 - from_end);
        let ip = parse_ip(ip).ok_or(KeyError::Syntax)?;
        let len = parse_len(&len[1..]).ok_or(KeyError::Syntax)?;
        return make_prefix(ip, len, host_bits).map(Key::Prefix);
    }
    if let Some(ip) = parse_ip(text) {
        return Ok(Key::Prefix(match ip {
            IpAddr::V4(a) => AnyPrefix::V4(Prefix::host(a.into())),
            IpAddr::V6(a) => AnyPrefix::V6(Prefix::host(a.into())),
        }));
    }
    if let Some(dash) = text.iter().position(|&b| b == b'-') {
        return parse_range(text[..dash].trim_ascii(), text[dash + 1..].trim_ascii(), false);
    }
    let to = text.windows(4).position(|word| word.eq_ignore_ascii_case(b" to "));
    let (start, end) = text.split_at(to.ok_or(KeyError::Syntax)?);
    parse_range(start.trim_ascii(), end[4..].trim_ascii(), false)
}

fn parse_len(text: &[u8]) -> Option<u8> {
    match text {
        [b'0', _, ..] => None,
        _ if text.len() > 3 => None,
        _ => parse_decimal(text)?.try_into().ok(),
    }
}

/// The length that a netmask (`255.255.255.0`, `ffff:ffff::`) or, if `wildcard`, its inverse (`0.0.0.255`) stands for.
pub(crate) fn mask_length(mask: IpAddr, wildcard: bool) -> Option<u8> {
    // At the upper end of the word, with ones behind an IPv4 mask that do not count.
    let (bits, width) = match mask {
        IpAddr::V4(mask) => (u128::from(u32::from(mask)) << 96, 32),
        IpAddr::V6(mask) => (mask.into(), 128),
    };
    let bits = if wildcard { !bits & (u128::MAX << (128 - width)) } else { bits };
    (bits.leading_ones() == bits.count_ones()).then(|| bits.count_ones() as u8)
}

/// The network at `addr` with this length, netmask or, if `wildcard`, inverse of a netmask.
pub(crate) fn parse_network(
    addr: &[u8],
    len: &[u8],
    wildcard: bool,
    host_bits: HostBits,
) -> Result<AnyPrefix, KeyError> {
    let ip = parse_ip(addr).ok_or(KeyError::Syntax)?;
    let len = match parse_ip(len) {
        Some(mask) if mask.is_ipv4() == ip.is_ipv4() => mask_length(mask, wildcard),
        Some(_) => None,
        None => parse_len(len.strip_prefix(b"/").unwrap_or(len)),
    };
    make_prefix(ip, len.ok_or(KeyError::Syntax)?, host_bits)
}

/// The range of `count` addresses from `start`.
pub(crate) fn parse_counted(start: &[u8], count: &[u8]) -> Result<Key, KeyError> {
    let start = parse_ip(start).ok_or(KeyError::Syntax)?;
    let more =
        parse_decimal(count).and_then(|count| count.checked_sub(1)).ok_or(KeyError::Count)?;
    match start {
        IpAddr::V4(start) => {
            let start = u32::from(start);
            let end = u32::try_from(more).ok().and_then(|more| start.checked_add(more));
            Ok(Key::RangeV4(start, end.ok_or(KeyError::Count)?))
        }
        IpAddr::V6(start) => {
            let start = u128::from(start);
            Ok(Key::RangeV6(start, start.checked_add(more).ok_or(KeyError::Count)?))
        }
    }
}

fn make_prefix(ip: IpAddr, len: u8, host_bits: HostBits) -> Result<AnyPrefix, KeyError> {
    let prefix = match host_bits {
        HostBits::Refuse => AnyPrefix::new(ip, len),
        HostBits::Mask => AnyPrefix::masked(ip, len),
    };
    prefix.map_err(|error| match error {
        PrefixError::HostBits => KeyError::HostBits,
        _ => KeyError::Length,
    })
}

/// The range from `start` to `end`, both included; decimal integers if `decimal`.
pub(crate) fn parse_range(start: &[u8], end: &[u8], decimal: bool) -> Result<Key, KeyError> {
    let key = if decimal {
        let start = parse_decimal(start).ok_or(KeyError::Syntax)?;
        let end = parse_decimal(end).ok_or(KeyError::Syntax)?;
        match (u32::try_from(start), u32::try_from(end)) {
            (Ok(start), Ok(end)) => Key::RangeV4(start, end),
            _ => Key::RangeV6(start, end),
        }
    } else {
        let start = parse_ip(start).ok_or(KeyError::Syntax)?;
        return range(start, parse_ip(end).ok_or(KeyError::Syntax)?);
    };
    in_order(key)
}

/// The range from `start` to `end`, both included.
fn range(start: IpAddr, end: IpAddr) -> Result<Key, KeyError> {
    match (start, end) {
        (IpAddr::V4(start), IpAddr::V4(end)) => in_order(Key::RangeV4(start.into(), end.into())),
        (IpAddr::V6(start), IpAddr::V6(end)) => in_order(Key::RangeV6(start.into(), end.into())),
        _ => Err(KeyError::Families),
    }
}

fn in_order(key: Key) -> Result<Key, KeyError> {
    match key {
        Key::RangeV4(start, end) if start > end => Err(KeyError::Order),
        Key::RangeV6(start, end) if start > end => Err(KeyError::Order),
        key => Ok(key),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys() {
        let key = |text: &str| parse_key(text.as_bytes(), HostBits::Refuse);
        let prefix = |text: &str| Ok(Key::Prefix(text.parse().unwrap()));
        assert_eq!(key("10.0.0.0/8"), prefix("10.0.0.0/8"));
        assert_eq!(key("10.0.0.1"), prefix("10.0.0.1/32"));
        assert_eq!(key("::/0"), prefix("::/0"));
        assert_eq!(key("2001:db8::1"), prefix("2001:db8::1/128"));
        assert_eq!(key("10.0.0.1-10.0.0.9"), Ok(Key::RangeV4(0x0a00_0001, 0x0a00_0009)));
        assert_eq!(key("10.0.0.1 - 10.0.0.9"), Ok(Key::RangeV4(0x0a00_0001, 0x0a00_0009)));
        assert_eq!(key("10.0.0.1 to 10.0.0.9"), Ok(Key::RangeV4(0x0a00_0001, 0x0a00_0009)));
        assert_eq!(key("::1-::2"), Ok(Key::RangeV6(1, 2)));
        for (text, error) in [
            ("10.0.0.1/8", KeyError::HostBits),
            ("10.0.0.0/33", KeyError::Length),
            ("::/129", KeyError::Length),
            ("::/999", KeyError::Syntax),
            ("10.0.0.0/08", KeyError::Syntax),
            ("10.0.0.0/", KeyError::Syntax),
            ("/8", KeyError::Syntax),
            ("", KeyError::Syntax),
            ("10.0.0.9-10.0.0.1", KeyError::Order),
            ("10.0.0.9-::1", KeyError::Families),
            ("AS13335", KeyError::Syntax),
        ] {
            assert_eq!(key(text), Err(error), "{text}");
        }
        let masked = parse_key(b"10.0.0.1/8", HostBits::Mask);
        assert_eq!(masked, prefix("10.0.0.0/8"));
    }

    #[test]
    fn decimal_ranges() {
        let range = |a: &str, b: &str| parse_range(a.as_bytes(), b.as_bytes(), true);
        assert_eq!(range("16777216", "16777471"), Ok(Key::RangeV4(0x0100_0000, 0x0100_00ff)));
        assert_eq!(range("0", "281470681743359"), Ok(Key::RangeV6(0, 0xfffe_ffff_ffff)));
        assert_eq!(range("1", &"9".repeat(40)), Err(KeyError::Syntax));
        assert_eq!(range("2", "1"), Err(KeyError::Order));
    }

    #[test]
    fn networks_and_counts() {
        let network = |addr: &str, len: &str, wildcard| {
            parse_network(addr.as_bytes(), len.as_bytes(), wildcard, HostBits::Refuse)
                .map(|p| p.to_string())
        };
        for (addr, len, wildcard, expected) in [
            ("10.0.0.0", "255.0.0.0", false, "10.0.0.0/8"),
            ("10.0.0.0", "/8", false, "10.0.0.0/8"),
            ("10.0.0.0", "0.255.255.255", true, "10.0.0.0/8"),
            ("10.0.0.1", "0.0.0.0", true, "10.0.0.1/32"),
            ("0.0.0.0", "0.0.0.0", false, "0.0.0.0/0"),
            ("2001:db8::", "ffff:ffff::", false, "2001:db8::/32"),
            ("2001:db8::", "::ffff:ffff:ffff:ffff:ffff:ffff", true, "2001:db8::/32"),
        ] {
            assert_eq!(network(addr, len, wildcard).as_deref(), Ok(expected), "{addr} {len}");
        }
        for (addr, len) in
            [("10.0.0.0", "ffff::"), ("::", "255.0.0.0"), ("10.0.0.0", "255.0.255.0")]
        {
            assert_eq!(network(addr, len, false), Err(KeyError::Syntax), "{addr} {len}");
        }
        let counted = |start: &str, count: &str| parse_counted(start.as_bytes(), count.as_bytes());
        assert_eq!(counted("10.0.0.0", "256"), Ok(Key::RangeV4(0x0a00_0000, 0x0a00_00ff)));
        assert_eq!(counted("::", "3"), Ok(Key::RangeV6(0, 2)));
        for count in ["0", "", "x", "4294967297"] {
            assert_eq!(counted("10.0.0.0", count), Err(KeyError::Count), "{count}");
        }
    }
}
