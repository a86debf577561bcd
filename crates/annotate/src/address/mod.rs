//! Address text.
//!
//! What is accepted is what `std::net` accepts, no more and no less; the fast paths below only ever
//! say yes to text that it would read the same way, and leave the rest to it.

mod v4;
mod v6;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fibula_core::mapped_v4;

pub(crate) use self::v4::{parse_v4, parse_v4_at};
pub(crate) use self::v6::parse_v6_at;

/// The longest text of an address: `ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255`.
pub(crate) const MAX_TEXT: usize = 45;

/// An address as tables are asked for it, in host byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Address {
    /// IPv4, also from v4-mapped IPv6 text.
    V4(u32),
    /// IPv6.
    V6(u128),
}

impl Address {
    /// Reads an address as `IpAddr::from_str` does (no zone, nothing around it), except that a
    /// v4-mapped IPv6 address (`::ffff:a.b.c.d`) is the IPv4 address that it stands for: routing
    /// tables list it there. Several times as fast, and the bytes need not be UTF-8.
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
            None => v6::parse(text),
        }
    }

    /// An IPv6 address, as IPv4 if it is mapped: the policy of [`mapped_v4`].
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn std_v4(text: &[u8]) -> Option<u32> {
        std::str::from_utf8(text).ok()?.parse::<Ipv4Addr>().ok().map(u32::from)
    }

    fn std_any(text: &[u8]) -> Option<Address> {
        Some(std::str::from_utf8(text).ok()?.parse::<IpAddr>().ok()?.into())
    }

    /// Every address must read as std reads it, wherever in a buffer it stands.
    fn check(text: &[u8]) -> Result<(), TestCaseError> {
        prop_assert_eq!(parse_v4(text), std_v4(text), "{:?}", text.escape_ascii().to_string());
        prop_assert_eq!(
            Address::parse(text),
            std_any(text),
            "{:?}",
            text.escape_ascii().to_string()
        );
        // With much behind it that would go on, as in a column.
        let column = [b"::".as_slice(), text, &[b'1'; 64]].concat();
        if let Some(address) = parse_v6_at(&column, 2, 2 + text.len()) {
            prop_assert_eq!(Some(address), std_any(text));
        }
        Ok(())
    }

    #[test]
    fn corner_cases_equal_std() {
        let cases = "0.0.0.0 255.255.255.255 256.0.0.0 01.2.3.4 1.2.3.04 00.0.0.0 0.0.0.00 1.2.3 \
            1.2.3.4.5 1..2.3 .1.2.3 1.2.3. 1.2.3.4. +1.2.3.4 1.2.3.4x 1.2.3.999 1000.1.1.1 1.2.3.256 \
            1.2.34.5/8 1.2.3,4.5 1/2.3.4 1.2.3.:4 255.255.255.2555 1.1.1.1.1 ...1 1... 1234567 \
            :: ::1 1:: ::: :::: : 1: :1 1:2 ::1:2 1:2:: ::ffff:1.2.3.4 ::FFFF:1.2.3.4 ::1.2.3.4 \
            ::ffff:1.2.3.04 ::ffff:1.2.3 ::ffff:1.2.3.4.5 ::fffe:1.2.3.4 0:0:0:0:0:ffff:1.2.3.4 \
            0::ffff:1.2.3.4 ::ffff:0:1.2.3.4 ::ffff:102:304 64:ff9b::192.0.2.33 1:2:3:4:5:6:7:8 \
            1:2:3:4:5:6:7:8:9 1:2:3:4:5:6:7 1:2:3:4:5:6:7:: ::2:3:4:5:6:7:8 1::3:4:5:6:7:8 \
            1:2:3:4:5:6:7::8 1:2:3:4::5:6:7:8 ::1:2:3:4:5:6:7:8 1:2:3:4:5:6:7:8:: 1::2::3 1:::2 \
            :1:2:3:4:5:6:7 1:2:3:4:5:6:7: :2:3:4:5:6:7:8 1:2:3:4:5:6:7:8: ::1: :1::2 \
            fe80::1%eth0 fe80::1%1 [::1] 12345::1 1:12345::1 g::1 1:g::1234567 0000::0000 00001:: \
            ABCD:EF01:2345:6789:abcd:ef01:2345:6789 abcd:ef01:2345:6789:abcd:ef01:2345:67890 \
            abcd:ef01:2345:6789:abcd:ef01:255.255.255.255 2001:db8::/32 2001:db8:: 2001:db8::g \
            2001:0db8:0000:0000:0000:0000:0000:0001 2001:db8::1@ 2001:db8::1` 2001:db8::1G \
            1:2:3:4:5:6:1.2.3.4 1:2:3:4:5:6:7:1.2.3.4 1:2:3:4:5:1.2.3.4 1.2.3.4:: 1.2.3.4::1";
        for text in
            cases.split_whitespace().chain(["", " ", "1.2.3.4 ", " 1.2.3.4", "::1 ", " ::1"])
        {
            check(text.as_bytes()).unwrap();
        }
        assert_eq!(Address::parse(b"::ffff:10.0.0.1"), Some(Address::V4(0x0a00_0001)));
        assert_eq!(Address::parse("１.2.3.4".as_bytes()), None);
    }

    /// Every length of every octet, in every place.
    #[test]
    fn all_octets_equal_std() {
        for octet in 0..=1100 {
            for text in [
                format!("{octet}.2.3.4"),
                format!("1.{octet}.30.4"),
                format!("1.20.{octet}.4"),
                format!("100.200.30.{octet}"),
                format!("1.{octet:02}.3.4"),
                format!("1.2.3.{octet:03}"),
                format!("::{octet}"),
                format!("2001:db8::{octet}"),
                format!("{octet}:2:3:4:5:6:7:8"),
            ] {
                check(text.as_bytes()).unwrap();
            }
        }
    }

    /// Every byte in every place of valid text.
    #[test]
    fn every_byte_everywhere_equals_std() {
        for valid in [
            "1.2.3.4",
            "10.20.3.255",
            "255.255.255.255",
            "::1",
            "1::",
            "2001:db8::1",
            "::ffff:1.2.3.4",
            "1:2:3:4:5:6:7:8",
            "2001:db8:10:20:300:400:5000:6000",
            "::2001:db8:7:8:9",
            "1:2:3:4:5:6:77.88.99.100",
        ] {
            for at in 0..valid.len() {
                for byte in 0..=u8::MAX {
                    let mut text = valid.as_bytes().to_vec();
                    text[at] = byte;
                    check(&text).unwrap();
                    text.insert(at, valid.as_bytes()[at]);
                    check(&text).unwrap();
                }
                let mut text = valid.as_bytes().to_vec();
                text.remove(at);
                check(&text).unwrap();
                check(&valid.as_bytes()[..at]).unwrap();
                check(&valid.as_bytes()[at..]).unwrap();
            }
        }
    }

    /// Groups of an IPv6 address as people and programs write them.
    fn groups() -> impl Strategy<Value = String> {
        let group = prop_oneof![
            4 => any::<u16>().prop_map(|g| format!("{g:x}")),
            1 => any::<u16>().prop_map(|g| format!("{g:04X}")),
            2 => Just("0".to_owned()),
            1 => Just(String::new()),
            1 => "[0-9a-gA-G]{0,5}",
        ];
        let tail = prop_oneof![
            6 => Just(String::new()),
            1 => any::<u32>().prop_map(|a| format!(":{}", Ipv4Addr::from(a))),
        ];
        (proptest::collection::vec(group, 1..10), tail)
            .prop_map(|(groups, tail)| groups.join(":") + &tail)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(8192))]

        #[test]
        fn every_address_reads_back(v4: u32, v6: u128, zeros in 0u32..128, shift in 0u32..128) {
            check(Ipv4Addr::from(v4).to_string().as_bytes())?;
            let text = Ipv4Addr::from(v4).to_string();
            prop_assert_eq!(parse_v4(text.as_bytes()), Some(v4));
            // Runs of zeros anywhere, so that "::" stands anywhere.
            let v6 = v6 & !(u128::MAX >> zeros << shift);
            let text = Ipv6Addr::from(v6).to_string();
            prop_assert_eq!(Address::parse(text.as_bytes()), Some(Address::from_v6(v6)));
            if !text.contains('.') {
                let column = [text.as_bytes(), &[b':'; 64]].concat();
                prop_assert_eq!(parse_v6_at(&column, 0, text.len()), Some(Address::from_v6(v6)));
            }
            check(text.to_uppercase().as_bytes())?;
        }

        #[test]
        fn near_addresses_equal_std(
            text in "[0-9]{0,4}(\\.[0-9]{0,4}){2,4}|[0-9.:a-fF]{0,45}|::ffff:[0-9]{1,3}(\\.[0-9]{1,3}){2,4}"
        ) {
            check(text.as_bytes())?;
        }

        #[test]
        fn groups_equal_std(text in groups(), at in 0usize..45) {
            check(text.as_bytes())?;
            // A "::" somewhere.
            let at = at % (text.len() + 1);
            check(format!("{}::{}", &text[..at], &text[at..]).as_bytes())?;
            check(format!("{}:{}", &text[..at], &text[at..]).as_bytes())?;
        }

        #[test]
        fn any_bytes_equal_std(text in proptest::collection::vec(any::<u8>(), 0..50)) {
            check(&text)?;
        }
    }
}
