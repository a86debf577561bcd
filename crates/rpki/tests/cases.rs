//! The rule, compared with a table of cases and a plain scan.

use fibula_core::AnyPrefix;
use fibula_rpki::{Validity, Vrp, Vrps, parse_asn};
use proptest::prelude::*;

use crate::files::file;

/// `192.0.2.0/24-24 AS64500`.
fn vrp(text: &str) -> Vrp {
    let (route, asn) = text.trim().split_once(' ').unwrap();
    let (prefix, max_len) = route.split_once('-').unwrap();
    Vrp::new(prefix.parse().unwrap(), max_len.parse().unwrap(), parse_asn(asn).unwrap()).unwrap()
}

#[test]
fn the_cases_of_rfc_6811() {
    let text = String::from_utf8(file("cases.txt")).unwrap();
    let mut counts = [0; 4];
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let fields: Vec<&str> = line.split('|').map(str::trim).collect();
        let [prefix, origin, vrps, expected] = fields[..] else { panic!("{line}") };
        let vrps: Vec<Vrp> =
            vrps.split(';').filter(|text| !text.trim().is_empty()).map(vrp).collect();
        let expected: Validity = expected.parse().unwrap();
        let (prefix, origin) = (prefix.parse().unwrap(), origin.parse().ok());
        counts[expected as usize] += 1;
        assert_eq!(Vrps::new(vrps.clone()).validity(prefix, origin), expected, "{line}");
        assert_eq!(scan(&vrps, prefix, origin), expected, "the scan, {line}");
        // What else there is, below, above and beside, changes nothing but what is covered by nothing.
        let others =
            ["192.0.2.192/26-32 AS9", "192.0.3.0/24-32 AS9", "2001:db8:1::/49-49 AS9"].map(vrp);
        let more = Vrps::new(vrps.into_iter().rev().chain(others));
        assert_eq!(more.validity(prefix, origin), expected, "among others, {line}");
    }
    assert!(counts.iter().all(|&count| count >= 8), "{counts:?}");
}

/// All VRPs, one after the other, as the RFC's text has it.
fn scan(vrps: &[Vrp], prefix: AnyPrefix, origin: Option<u32>) -> Validity {
    let origin = origin.unwrap_or(0);
    let covering: Vec<&Vrp> = vrps.iter().filter(|vrp| covers(vrp.prefix(), prefix)).collect();
    let of_origin = || covering.iter().filter(|vrp| vrp.asn() == origin && origin != 0);
    if covering.is_empty() {
        Validity::NotFound
    } else if of_origin().any(|vrp| parts(prefix).1 <= vrp.max_len()) {
        Validity::Valid
    } else if of_origin().next().is_some() {
        Validity::InvalidLength
    } else {
        Validity::InvalidOrigin
    }
}

/// The bits of an address, aligned to the left of 128, and the length.
fn parts(prefix: AnyPrefix) -> (u128, u8) {
    match prefix {
        AnyPrefix::V4(prefix) => (u128::from(prefix.addr()) << 96, prefix.len()),
        AnyPrefix::V6(prefix) => (prefix.addr(), prefix.len()),
    }
}

fn covers(vrp: AnyPrefix, prefix: AnyPrefix) -> bool {
    let ((outer, len), (inner, inner_len)) = (parts(vrp), parts(prefix));
    vrp.family() == prefix.family()
        && len <= inner_len
        && (0..len).all(|bit| (outer ^ inner) >> (127 - bit) & 1 == 0)
}

/// Prefixes that often cover each other, at both ends of the space and in between.
fn prefixes() -> impl Strategy<Value = AnyPrefix> {
    let shape = (any::<bool>(), any::<bool>(), any::<u8>(), 0..=8u8);
    shape.prop_map(|(is_v6, is_deep, bits, len)| {
        let (high, low) = (u32::from(bits) << 24, u32::MAX << 8 | u32::from(bits));
        match (is_v6, is_deep) {
            (false, false) => AnyPrefix::masked(std::net::Ipv4Addr::from(high).into(), len),
            (false, true) => AnyPrefix::masked(std::net::Ipv4Addr::from(low).into(), 24 + len),
            (true, is_deep) => {
                let deep = u128::MAX << 8 | u128::from(bits);
                let addr = if is_deep { deep } else { u128::from(bits) << 120 };
                let len = if is_deep { 120 + len } else { len };
                AnyPrefix::masked(std::net::Ipv6Addr::from(addr).into(), len)
            }
        }
        .unwrap()
    })
}

fn any_vrp() -> impl Strategy<Value = Vrp> {
    (prefixes(), 0..10u64, 0..4u32).prop_map(|(prefix, more, asn)| {
        let bits = if matches!(prefix, AnyPrefix::V4(_)) { 32 } else { 128 };
        let max_len = (u64::from(parts(prefix).1) + more).min(bits);
        Vrp::new(prefix, max_len, asn).unwrap()
    })
}

proptest! {
    #[test]
    fn as_a_scan(
        vrps in prop::collection::vec(any_vrp(), 0..60),
        routes in prop::collection::vec((prefixes(), prop::option::of(0..5u32)), 1..60),
    ) {
        let set = Vrps::new(vrps.iter().copied());
        for (prefix, origin) in routes {
            prop_assert_eq!(set.validity(prefix, origin), scan(&vrps, prefix, origin));
            let mut expected: Vec<Vrp> =
                vrps.iter().copied().filter(|vrp| covers(vrp.prefix(), prefix)).collect();
            expected.sort_by_key(|vrp| (std::cmp::Reverse(parts(vrp.prefix()).1), vrp.asn(), vrp.max_len()));
            expected.dedup();
            prop_assert_eq!(set.covering(prefix).collect::<Vec<_>>(), expected);
        }
        let mut distinct = vrps;
        distinct.sort();
        distinct.dedup();
        prop_assert_eq!(set.len(), distinct.len());
    }
}

#[test]
fn mapped_prefixes_are_ipv4() {
    let vrps = Vrps::new([vrp("192.0.2.0/24-24 AS64500")]);
    let mapped = "::ffff:192.0.2.0/120".parse().unwrap();
    assert_eq!(vrps.validity(mapped, Some(64500)), Validity::Valid);
    assert_eq!(vrps.covering(mapped).count(), 1);
}
