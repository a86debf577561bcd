//! Address text and the address of a cell.

use std::net::Ipv6Addr;

/// A parsed address, in host byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    /// IPv4, also from v4-mapped IPv6 text.
    V4(u32),
    /// IPv6.
    V6(u128),
}

impl Address {
    /// Reads an address as the standard library does, except that a v4-mapped IPv6 address
    /// (`::ffff:a.b.c.d`) is the IPv4 address that it stands for: routing tables list it there.
    #[inline]
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        match parse_v4(text) {
            Some(v4) => Some(Self::V4(v4)),
            None => parse_v6(text),
        }
    }

    /// An IPv6 address, unmapped as [`Address::parse`] does.
    pub(crate) fn from_v6(ip: Ipv6Addr) -> Self {
        match ip.to_ipv4_mapped() {
            Some(v4) => Self::V4(v4.into()),
            None => Self::V6(ip.into()),
        }
    }
}

/// Reads dotted-decimal IPv4 text: exactly what `Ipv4Addr::from_str` accepts (four octets, no leading
/// zeros, nothing around them), in about a quarter of its time: this is the inner loop of every text
/// format.
#[inline]
pub(crate) fn parse_v4(text: &[u8]) -> Option<u32> {
    if text.len() > "255.255.255.255".len() {
        return None;
    }
    let (mut value, mut octet, mut digits, mut dots) = (0u32, 0u32, 0u32, 0u32);
    for &byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit <= 9 {
            if digits != 0 && octet == 0 {
                return None;
            }
            octet = octet * 10 + u32::from(digit);
            digits += 1;
            if octet > 255 {
                return None;
            }
        } else {
            if byte != b'.' || digits == 0 || dots == 3 {
                return None;
            }
            value = value << 8 | octet;
            (octet, digits) = (0, 0);
            dots += 1;
        }
    }
    (dots == 3 && digits != 0).then_some(value << 8 | octet)
}

// Not inlined: it would crowd the IPv4 loop, which nearly all rows take.
#[inline(never)]
fn parse_v6(text: &[u8]) -> Option<Address> {
    // The shortest is "::"; a colon comes within the first five bytes of any.
    if !text.iter().take(5).any(|&b| b == b':') {
        return None;
    }
    let ip: Ipv6Addr = std::str::from_utf8(text).ok()?.parse().ok()?;
    Some(Address::from_v6(ip))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::{IpAddr, Ipv4Addr};

    fn std_v4(text: &[u8]) -> Option<u32> {
        std::str::from_utf8(text).ok()?.parse::<Ipv4Addr>().ok().map(u32::from)
    }

    fn std_any(text: &[u8]) -> Option<Address> {
        match std::str::from_utf8(text).ok()?.parse::<IpAddr>().ok()? {
            IpAddr::V4(v4) => Some(Address::V4(v4.into())),
            IpAddr::V6(v6) => Some(Address::from_v6(v6)),
        }
    }

    #[test]
    fn corner_cases_equal_std() {
        let cases = "0.0.0.0 255.255.255.255 256.0.0.0 01.2.3.4 1.2.3.04 00.0.0.0 0.0.0.00 1.2.3 \
            1.2.3.4.5 1..2.3 .1.2.3 1.2.3. 1.2.3.4. +1.2.3.4 1.2.3.4x 1.2.3.999 1000.1.1.1 :: ::1 \
            1:2 ::ffff:1.2.3.4 ::FFFF:1.2.3.4 ::1.2.3.4 1:2:3:4:5:6:7:8 1:2:3:4:5:6:7:8:9 \
            fe80::1%eth0 [::1] 12345::1 1:::2 abcd:ef01:2345:6789:abcd:ef01:255.255.255.255";
        for text in cases.split_whitespace().chain(["", " ", "1.2.3.4 ", " 1.2.3.4"]) {
            assert_eq!(parse_v4(text.as_bytes()), std_v4(text.as_bytes()), "{text:?}");
            assert_eq!(Address::parse(text.as_bytes()), std_any(text.as_bytes()), "{text:?}");
        }
        assert_eq!(Address::parse(b"::ffff:10.0.0.1"), Some(Address::V4(0x0a00_0001)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        #[test]
        fn every_address_reads_back(v4: u32, v6: u128) {
            let text = Ipv4Addr::from(v4).to_string();
            prop_assert_eq!(parse_v4(text.as_bytes()), Some(v4));
            let text = Ipv6Addr::from(v6).to_string();
            prop_assert_eq!(Address::parse(text.as_bytes()), std_any(text.as_bytes()));
        }

        #[test]
        fn near_addresses_equal_std(text in "[0-9]{0,4}(\\.[0-9]{0,4}){2,4}|[0-9.:a-f]{0,18}") {
            prop_assert_eq!(parse_v4(text.as_bytes()), std_v4(text.as_bytes()));
            prop_assert_eq!(Address::parse(text.as_bytes()), std_any(text.as_bytes()));
        }

        #[test]
        fn mutated_addresses_equal_std(v4: u32, at in 0usize..15, byte: u8) {
            let mut text = Ipv4Addr::from(v4).to_string().into_bytes();
            let at = at % text.len();
            text[at] = byte;
            prop_assert_eq!(parse_v4(&text), std_v4(&text));
        }

        #[test]
        fn any_bytes_equal_std(text in proptest::collection::vec(any::<u8>(), 0..20)) {
            prop_assert_eq!(Address::parse(&text), std_any(&text));
        }
    }
}
