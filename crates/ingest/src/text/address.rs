//! Addresses, prefixes and ranges in text, from bytes.
//!
//! The same notations as the standard library's parsers (the tests compare), at a third of the time:
//! a table is a million of these.

use std::net::{IpAddr, Ipv6Addr};

use fibula_core::{AnyPrefix, Prefix, PrefixError};

use crate::HostBits;

/// What the key of a line covers.
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
}

impl KeyError {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Syntax => "not an address, a prefix or a range",
            Self::Length => "the prefix length exceeds the family's bits",
            Self::HostBits => "bits beyond the prefix length are set",
            Self::Families => "the range's ends are of different families",
            Self::Order => "the range ends before it starts",
        }
    }
}

/// An IPv4 address in dotted notation; leading zeros are refused, as they mean octal to some.
pub(crate) fn parse_v4(text: &[u8]) -> Option<u32> {
    let mut addr = 0;
    let (mut octet, mut digits, mut dots) = (0u32, 0, 0);
    for &b in text {
        match b {
            b'0'..=b'9' => {
                if digits > 0 && octet == 0 {
                    return None;
                }
                octet = octet * 10 + u32::from(b - b'0');
                digits += 1;
                if octet > 255 {
                    return None;
                }
            }
            b'.' if digits > 0 && dots < 3 => {
                addr = addr << 8 | octet;
                (octet, digits, dots) = (0, 0, dots + 1);
            }
            _ => return None,
        }
    }
    (dots == 3 && digits > 0).then_some(addr << 8 | octet)
}

/// An IPv6 address: groups of hex digits, at most one `::`, possibly a dotted tail.
pub(crate) fn parse_v6(text: &[u8]) -> Option<u128> {
    let mut groups = [0u16; 8];
    let mut count = 0;
    let mut gap = None;
    let mut rest = text;
    if let Some(after) = rest.strip_prefix(b"::") {
        gap = Some(0);
        rest = after;
    }
    while !rest.is_empty() {
        let end = rest.iter().position(|&b| b == b':').unwrap_or(rest.len());
        let (group, after) = rest.split_at(end);
        if group.contains(&b'.') {
            let v4 = parse_v4(group)?;
            if !after.is_empty() || count > 6 {
                return None;
            }
            groups[count] = (v4 >> 16) as u16;
            groups[count + 1] = v4 as u16;
            count += 2;
            break;
        }
        if count == 8 {
            return None;
        }
        groups[count] = hex_group(group)?;
        count += 1;
        rest = match after {
            [] => break,
            [b':', b':', tail @ ..] if gap.is_none() => {
                gap = Some(count);
                tail
            }
            [b':', tail @ ..] if !tail.is_empty() => tail,
            _ => return None,
        };
    }
    join_groups(&groups[..count], gap)
}

fn hex_group(text: &[u8]) -> Option<u16> {
    if text.is_empty() || text.len() > 4 {
        return None;
    }
    text.iter().try_fold(0, |value, &b| Some(value << 4 | char::from(b).to_digit(16)? as u16))
}

fn join_groups(groups: &[u16], gap: Option<usize>) -> Option<u128> {
    let join = |groups: &[u16]| groups.iter().fold(0u128, |v, &g| v << 16 | u128::from(g));
    match gap {
        None => (groups.len() == 8).then(|| join(groups)),
        // `::` stands for at least one group of zeros.
        Some(_) if groups.len() == 8 => None,
        Some(at) => {
            let (head, tail) = groups.split_at(at);
            let head = match head.len() {
                0 => 0,
                len => join(head) << (16 * (8 - len)),
            };
            Some(head | join(tail))
        }
    }
}

/// An address of either family.
pub(crate) fn parse_ip(text: &[u8]) -> Option<IpAddr> {
    // The first groups tell the families apart: at most four characters before the first ':'.
    match text.iter().take(5).any(|&b| b == b':') {
        true => parse_v6(text).map(|a| IpAddr::V6(Ipv6Addr::from(a))),
        false => parse_v4(text).map(|a| IpAddr::V4(a.into())),
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
    let dash = text.iter().position(|&b| b == b'-').ok_or(KeyError::Syntax)?;
    parse_range(text[..dash].trim_ascii(), text[dash + 1..].trim_ascii(), false)
}

fn parse_len(text: &[u8]) -> Option<u8> {
    match text {
        [b'0', _, ..] => None,
        _ if text.len() > 3 => None,
        _ => parse_decimal(text)?.try_into().ok(),
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
        match (parse_ip(start), parse_ip(end)) {
            (Some(IpAddr::V4(start)), Some(IpAddr::V4(end))) => {
                Key::RangeV4(start.into(), end.into())
            }
            (Some(IpAddr::V6(start)), Some(IpAddr::V6(end))) => {
                Key::RangeV6(start.into(), end.into())
            }
            (Some(_), Some(_)) => return Err(KeyError::Families),
            _ => return Err(KeyError::Syntax),
        }
    };
    match key {
        Key::RangeV4(start, end) if start > end => Err(KeyError::Order),
        Key::RangeV6(start, end) if start > end => Err(KeyError::Order),
        key => Ok(key),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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

    fn same_as_std(text: &str) {
        let expected: Option<IpAddr> = text.parse().ok();
        assert_eq!(parse_ip(text.as_bytes()), expected, "{text}");
    }

    #[test]
    fn odd_addresses_as_the_standard_library_takes_them() {
        for text in [
            "::",
            ":",
            ":::",
            "1::",
            "::1",
            "1:::2",
            "1::2::3",
            "1:2:3:4:5:6:7:8",
            "1:2:3:4:5:6:7",
            "1:2:3:4:5:6:7:8:9",
            "1:2:3:4:5:6:7::",
            "::2:3:4:5:6:7:8",
            "1::2:3:4:5:6:7:8",
            ":1::",
            "1:2:3:4:5:6:1.2.3.4",
            "::1.2.3.4",
            "::ffff:1.2.3.4",
            "1:2:3:4:5:6:7:1.2.3.4",
            "1.2.3.4::",
            "::1.2.3",
            "::1.2.3.4:5",
            "12345::",
            "::g",
            "1:",
            "::1:",
            "0.0.0.0",
            "1.2.3",
            "1.2.3.4.5",
            "01.2.3.4",
            "0.0.0.00",
            "256.1.1.1",
            "1..2.3",
            ".1.2.3",
            "1.2.3.",
        ] {
            same_as_std(text);
        }
    }

    proptest! {
        #[test]
        fn any_text_as_the_standard_library_takes_it(text in "[0-9a-f:.]{0,24}") {
            same_as_std(&text);
        }

        #[test]
        fn any_address_as_the_standard_library_writes_it(v4: u32, v6: u128, mask: u128) {
            same_as_std(&std::net::Ipv4Addr::from(v4).to_string());
            same_as_std(&Ipv6Addr::from(v6).to_string());
            same_as_std(&Ipv6Addr::from(v6 & mask & mask.rotate_left(7)).to_string());
        }
    }
}
