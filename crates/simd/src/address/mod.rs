//! Addresses from text, without a loop over characters.
//!
//! `std::net` defines valid addresses; the fast paths accept what it reads the same way, and defer the
//! rest to it.

mod v4;
mod v6;

pub use v4::{parse_v4, parse_v4_at};
pub use v6::{parse_v6, parse_v6_at};

/// The longest text of an address: `ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255`.
const MAX_TEXT: usize = 45;

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    use super::*;
    use proptest::prelude::*;

    fn std_v4(text: &[u8]) -> Option<u32> {
        std::str::from_utf8(text).ok()?.parse::<Ipv4Addr>().ok().map(u32::from)
    }

    fn std_any(text: &[u8]) -> Option<IpAddr> {
        std::str::from_utf8(text).ok()?.parse().ok()
    }

    fn parse(text: &[u8]) -> Option<IpAddr> {
        let v4 = parse_v4(text).map(|addr| Ipv4Addr::from(addr).into());
        v4.or_else(|| parse_v6(text).map(v6))
    }

    fn v6(addr: u128) -> IpAddr {
        Ipv6Addr::from(addr).into()
    }

    /// Every address must read as std reads it, wherever in a buffer it stands.
    fn check(text: &[u8]) -> Result<(), TestCaseError> {
        prop_assert_eq!(parse_v4(text), std_v4(text), "{:?}", text.escape_ascii().to_string());
        prop_assert_eq!(parse(text), std_any(text), "{:?}", text.escape_ascii().to_string());
        // With much behind it that would go on, as in a column.
        let column = [b"::".as_slice(), text, &[b'1'; 64]].concat();
        if let Some(address) = parse_v6_at(&column, 2, 2 + text.len()) {
            prop_assert_eq!(Some(v6(address)), std_any(text));
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
        assert_eq!(parse_v6(b"::ffff:10.0.0.1"), Some(0xffff_0a00_0001));
        assert_eq!(parse("１.2.3.4".as_bytes()), None);
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
            prop_assert_eq!(parse_v6(text.as_bytes()), Some(v6));
            if !text.contains('.') {
                let column = [text.as_bytes(), &[b':'; 64]].concat();
                prop_assert_eq!(parse_v6_at(&column, 0, text.len()), Some(v6));
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
