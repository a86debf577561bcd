//! Addresses in the form in which they are looked up.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fibula_core::mapped_v4;
use fibula_simd::{parse_v4, parse_v6};

/// An address in the form in which it is looked up, in host byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Address {
    /// IPv4, also from IPv4-mapped IPv6 text.
    V4(u32),
    /// IPv6.
    V6(u128),
}

impl Address {
    /// Parses an address like `IpAddr::from_str` (without a zone or surrounding text), except that an IPv4-mapped
    /// IPv6 address (`::ffff:a.b.c.d`) becomes its IPv4 address, because routing tables list it there. This function is
    /// several times as fast, and the bytes need not be UTF-8.
    ///
    /// ```
    /// use fibula_annotate::Address;
    /// assert_eq!(Address::parse(b"192.0.2.1"), Some(Address::V4(0xc000_0201)));
    /// assert_eq!(Address::parse(b"::ffff:192.0.2.1"), Some(Address::V4(0xc000_0201)));
    /// assert_eq!(Address::parse(b"2001:DB8::1"), Some(Address::V6(0x2001_0db8 << 96 | 1)));
    /// for text in ["192.0.2.01", "192.0.2", "fe80::1%eth0", "[::1]", " ::1"] {
    ///     assert_eq!(Address::parse(text.as_bytes()), None);
    /// }
    /// ```
    #[inline]
    pub fn parse(text: &[u8]) -> Option<Self> {
        match parse_v4(text) {
            Some(v4) => Some(Self::V4(v4)),
            None => parse_v6(text).map(Self::from_v6),
        }
    }

    /// Parses the text of a cell: an address, also with whitespace around it, with a port (`192.0.2.1:443`,
    /// `[2001:db8::1]:443`), in brackets, or as a prefix of the address alone (`192.0.2.1/32`, `2001:db8::1/128`).
    ///
    /// ```
    /// use fibula_annotate::Address;
    /// let v4 = Address::parse(b"192.0.2.1");
    /// for text in ["192.0.2.1 ", "192.0.2.1:443", "192.0.2.1/32"] {
    ///     assert_eq!(Address::parse_cell(text.as_bytes()), v4, "{text}");
    /// }
    /// let v6 = Address::parse(b"2001:db8::1");
    /// for text in ["[2001:db8::1]", "[2001:db8::1]:443", "2001:db8::1/128"] {
    ///     assert_eq!(Address::parse_cell(text.as_bytes()), v6, "{text}");
    /// }
    /// for text in ["192.0.2.0/24", "192.0.2.1:", "192.0.2.1:65536", "[192.0.2.1", "[::1]x", "::1/32"] {
    ///     assert_eq!(Address::parse_cell(text.as_bytes()), None, "{text}");
    /// }
    /// ```
    pub fn parse_cell(text: &[u8]) -> Option<Self> {
        let text = text.trim_ascii();
        if let Some(address) = Self::parse(text) {
            return Some(address);
        }
        let is_port = |port: &[u8]| {
            let port = std::str::from_utf8(port).ok().filter(|port| !port.starts_with('+'));
            port.is_some_and(|port| port.parse::<u16>().is_ok())
        };
        if let Some(inside) = text.strip_prefix(b"[") {
            let close = inside.iter().position(|byte| *byte == b']')?;
            let behind = &inside[close + 1..];
            let is_end = behind.is_empty() || behind.strip_prefix(b":").is_some_and(is_port);
            return parse_v6(&inside[..close]).filter(|_| is_end).map(Self::from_v6);
        }
        if let Some(address) = text.strip_suffix(b"/32") {
            return parse_v4(address).map(Self::V4);
        }
        if let Some(address) = text.strip_suffix(b"/128") {
            return parse_v6(address).map(Self::from_v6);
        }
        let colon = text.iter().position(|byte| *byte == b':')?;
        parse_v4(&text[..colon]).filter(|_| is_port(&text[colon + 1..])).map(Self::V4)
    }

    /// Parses an address written as a number with only digits: IPv4 below 2^32, else IPv6.
    ///
    /// ```
    /// use fibula_annotate::Address;
    /// assert_eq!(Address::from_digits(b"3221225985"), Some(Address::V4(0xc000_0201)));
    /// assert_eq!(Address::from_digits(b"42540766411282592856903984951653826561").map(|_| ()), Some(()));
    /// assert_eq!(Address::from_digits(b"340282366920938463463374607431768211456"), None); // 2^128
    /// assert_eq!(Address::from_digits(b"+1"), None);
    /// ```
    pub fn from_digits(text: &[u8]) -> Option<Self> {
        if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let number: u128 = std::str::from_utf8(text).ok()?.parse().ok()?;
        Some(u32::try_from(number).map_or_else(|_| Self::from_v6(number), Self::V4))
    }

    /// An IPv6 address; if it is IPv4-mapped, its IPv4 address. See [`mapped_v4`] for the policy.
    ///
    /// ```
    /// use fibula_annotate::Address;
    /// assert_eq!(Address::from_v6(0xffff_0a00_0001), Address::V4(0x0a00_0001));
    /// assert_eq!(Address::from_v6(1), Address::V6(1));
    /// ```
    #[inline]
    pub const fn from_v6(addr: u128) -> Self {
        match mapped_v4(addr) {
            Some(v4) => Self::V4(v4),
            None => Self::V6(addr),
        }
    }
}

impl From<IpAddr> for Address {
    fn from(ip: IpAddr) -> Self {
        match ip {
            IpAddr::V4(v4) => Self::V4(v4.into()),
            IpAddr::V6(v6) => Self::from_v6(v6.into()),
        }
    }
}

impl From<Address> for IpAddr {
    fn from(address: Address) -> Self {
        match address {
            Address::V4(v4) => Ipv4Addr::from(v4).into(),
            Address::V6(v6) => Ipv6Addr::from(v6).into(),
        }
    }
}
