//! Parses values in the notations that people use.

use std::net::IpAddr;

use crate::{Condition, Field};

/// Names of protocols, as files have them.
const PROTOCOLS: &[(&str, u8)] = &[
    ("icmp", 1),
    ("igmp", 2),
    ("tcp", 6),
    ("udp", 17),
    ("dccp", 33),
    ("gre", 47),
    ("esp", 50),
    ("ah", 51),
    ("icmpv6", 58),
    ("ipv6-icmp", 58),
    ("icmp6", 58),
    ("ospf", 89),
    ("sctp", 132),
    ("udplite", 136),
];

/// Names of ICMP's types that packet filters write.
const ICMP: &[(&str, u8)] = &[
    ("echo-reply", 0),
    ("destination-unreachable", 3),
    ("echo-request", 8),
    ("time-exceeded", 11),
    ("parameter-problem", 12),
];

const ICMPV6: &[(&str, u8)] = &[
    ("destination-unreachable", 1),
    ("packet-too-big", 2),
    ("time-exceeded", 3),
    ("parameter-problem", 4),
    ("echo-request", 128),
    ("echo-reply", 129),
    ("nd-router-solicit", 133),
    ("nd-router-advert", 134),
    ("nd-neighbor-solicit", 135),
    ("nd-neighbor-advert", 136),
];

/// Names of services that `iptables-save` and `nft` may write in place of ports.
const SERVICES: &[(&str, u16)] = &[
    ("ftp", 21),
    ("ssh", 22),
    ("telnet", 23),
    ("smtp", 25),
    ("domain", 53),
    ("http", 80),
    ("ntp", 123),
    ("snmp", 161),
    ("https", 443),
];

fn named<T: Copy>(names: &[(&str, T)], word: &str) -> Option<T> {
    names.iter().find(|(name, _)| *name == word).map(|(_, value)| *value)
}

/// A decimal or, behind 0x, a hexadecimal number.
pub(super) fn number(word: &str) -> Option<u128> {
    match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        Some(digits) if !digits.starts_with('+') => u128::from_str_radix(digits, 16).ok(),
        None if !word.starts_with('+') => word.parse().ok(),
        _ => None,
    }
}

pub(super) fn protocol(word: &str) -> Option<u8> {
    named(PROTOCOLS, word).or_else(|| u8::try_from(number(word)?).ok())
}

/// The name of a protocol, if it has one.
pub(super) fn protocol_name(number: u128) -> Option<&'static str> {
    PROTOCOLS.iter().find(|(_, value)| u128::from(*value) == number).map(|(name, _)| *name)
}

pub(super) fn icmp_type(word: &str, six: bool) -> Option<u8> {
    named(if six { ICMPV6 } else { ICMP }, word).or_else(|| u8::try_from(number(word)?).ok())
}

fn port(word: &str) -> Option<u128> {
    let number = named(SERVICES, word).map(u128::from).or_else(|| number(word))?;
    (number <= 65_535).then_some(number)
}

/// One port, or two with this between them.
pub(super) fn ports(word: &str, between: char) -> Option<Condition> {
    match word.split_once(between) {
        None => Some(Condition::Is(port(word)?)),
        Some((first, last)) => {
            // iptables omits the first and the last of all ports.
            let end = |word: &str, end| match word.is_empty() && between == ':' {
                true => Some(end),
                false => port(word),
            };
            Some(Condition::Range(end(first, 0)?, end(last, 65_535)?))
        }
    }
}

/// The field of one side's address, of the address's family.
pub(super) fn side(ip: IpAddr, source: bool) -> Field {
    match (ip, source) {
        (IpAddr::V4(_), true) => Field::Ipv4Src,
        (IpAddr::V4(_), false) => Field::Ipv4Dst,
        (IpAddr::V6(_), true) => Field::Ipv6Src,
        (IpAddr::V6(_), false) => Field::Ipv6Dst,
    }
}

fn bits(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(ip) => ip.to_bits().into(),
        IpAddr::V6(ip) => ip.to_bits(),
    }
}

/// `10.0.0.0/8`, or an address.
pub(super) fn prefix(word: &str) -> Option<(IpAddr, Condition)> {
    let (ip, len) = match word.split_once('/') {
        Some((ip, len)) => (ip.parse::<IpAddr>().ok()?, Some(len)),
        None => (word.parse().ok()?, None),
    };
    let width = if ip.is_ipv4() { 32 } else { 128 };
    let condition = match len {
        None => Condition::Is(bits(ip)),
        Some(len) => match len.parse::<u32>() {
            // No sign, no zeros in front.
            Ok(number) if number <= width && number.to_string() == len => {
                Condition::Prefix(bits(ip), number)
            }
            Ok(_) => return None,
            // iptables writes masks that are no prefixes so.
            Err(_) => {
                let mask = len.parse::<IpAddr>().ok().filter(|mask| mask.is_ipv4() == ip.is_ipv4());
                Condition::Masked(bits(ip), bits(mask?))
            }
        },
    };
    Some((ip, condition))
}

/// An address, a prefix, or two addresses with a `-` between them.
pub(super) fn addresses(word: &str, source: bool) -> Option<(Field, Condition)> {
    if let Some((first, last)) = word.split_once('-') {
        let (first, last) = (first.parse::<IpAddr>().ok()?, last.parse::<IpAddr>().ok()?);
        let same = first.is_ipv4() == last.is_ipv4();
        return same.then(|| (side(first, source), Condition::Range(bits(first), bits(last))));
    }
    let (ip, condition) = prefix(word)?;
    Some((side(ip, source), condition))
}

/// `02:00:00:00:00:01`.
pub(super) fn mac(word: &str) -> Option<u128> {
    let mut bytes = word.split(':');
    let mut all = 0;
    for _ in 0..6 {
        let byte = bytes.next().filter(|byte| byte.len() == 2)?;
        all = all << 8 | u128::from(u8::from_str_radix(byte, 16).ok()?);
    }
    bytes.next().is_none().then_some(all)
}

/// The value of any field: a number, `NUMBER/MASK`, `FIRST-LAST`, an address, a prefix, a MAC.
pub(super) fn any(field: Field, word: &str) -> Option<Condition> {
    let is_source = matches!(field, Field::Ipv4Src | Field::Ipv6Src);
    if let Some((of, condition)) = addresses(word, is_source) {
        return (of == field).then_some(condition);
    }
    let value = |word: &str| match field {
        Field::EthSrc | Field::EthDst => mac(word).or_else(|| number(word)),
        Field::Protocol => protocol(word).map(u128::from),
        Field::SrcPort | Field::DstPort => port(word),
        _ => number(word),
    };
    if let Some((of, mask)) = word.split_once('/') {
        return Some(Condition::Masked(value(of)?, value(mask)?));
    }
    if let Some(value) = value(word) {
        return Some(Condition::Is(value));
    }
    let (first, last) = word.split_once('-')?;
    Some(Condition::Range(value(first)?, value(last)?))
}
