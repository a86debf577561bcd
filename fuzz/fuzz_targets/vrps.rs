//! VRPs from JSON and CSV: what is read has the bounds of a VRP, is read again from the CSV that validators would write
//! of it, and says of each VRP's own prefix what trying all VRPs says. The ASPAs of the same bytes are read again from
//! the JSON of them.
#![no_main]

use fibula_core::AnyPrefix;
use fibula_rpki::{BadVrps, Validity, Vrp, Vrps, decode, decode_aspas};
use libfuzzer_sys::fuzz_target;

/// More say nothing more, and trying all of them takes long.
const MOST: usize = 200;

fn parts(prefix: AnyPrefix) -> (u128, u8, u8) {
    match prefix {
        AnyPrefix::V4(prefix) => (u128::from(prefix.addr()) << 96, prefix.len(), 32),
        AnyPrefix::V6(prefix) => (prefix.addr(), prefix.len(), 128),
    }
}

/// Trying all of them.
fn scan(vrps: &[Vrp], prefix: AnyPrefix, origin: u32) -> Validity {
    let (addr, len, bits) = parts(prefix);
    let covers = |vrp: &&Vrp| {
        let (outer, outer_len, outer_bits) = parts(vrp.prefix());
        let differs = outer ^ addr;
        outer_bits == bits && outer_len <= len && differs.leading_zeros() >= outer_len.into()
    };
    let covering: Vec<&Vrp> = vrps.iter().filter(covers).collect();
    let mine = || covering.iter().filter(|vrp| vrp.asn() == origin && origin != 0);
    match (covering.is_empty(), mine().any(|vrp| vrp.max_len() >= len), mine().next()) {
        (true, ..) => Validity::NotFound,
        (_, true, _) => Validity::Valid,
        (.., Some(_)) => Validity::InvalidLength,
        (.., None) => Validity::InvalidOrigin,
    }
}

/// An error has a place in the file.
fn check(error: &BadVrps, data: &[u8]) {
    assert!(error.line > 0 && !error.what.is_empty());
    assert!(error.line <= 1 + data.iter().filter(|&&byte| byte == b'\n').count());
}

fn aspas(data: &[u8]) {
    match decode_aspas(data) {
        Err(error) => check(&error, data),
        Ok(decoded) => {
            let list = decoded.aspas.iter().map(|aspa| {
                assert!(!aspa.providers.is_empty());
                format!("{{\"customer\":{},\"providers\":{:?}}}", aspa.customer, aspa.providers)
            });
            let text = format!("{{\"aspas\":[{}]}}", list.collect::<Vec<_>>().join(","));
            let again = decode_aspas(text.as_bytes()).expect("what is written is read");
            assert_eq!(again.aspas, decoded.aspas);
        }
    }
}

fuzz_target!(|data: &[u8]| {
    aspas(data);
    let decoded = match decode(data) {
        Ok(decoded) => decoded,
        Err(error) => return check(&error, data),
    };
    let mut csv = String::from("ASN,IP Prefix,Max Length,Trust Anchor\n");
    for vrp in &decoded.vrps {
        let (_, len, bits) = parts(vrp.prefix());
        assert!((len..=bits).contains(&vrp.max_len()));
        csv += &format!("AS{},{},{},x\n", vrp.asn(), vrp.prefix(), vrp.max_len());
    }
    assert_eq!(decode(csv.as_bytes()).expect("what is written is read").vrps, decoded.vrps);
    let vrps = &decoded.vrps[..decoded.vrps.len().min(MOST)];
    let set = Vrps::new(vrps.iter().copied());
    for vrp in vrps {
        // An IPv4-mapped prefix is asked for as one of IPv4, and VRPs have it as it is written.
        let prefix = vrp.prefix();
        if prefix != prefix.unmapped() {
            continue;
        }
        for origin in [vrp.asn(), vrp.asn() ^ 1] {
            assert_eq!(set.validity(prefix, Some(origin)), scan(vrps, prefix, origin));
        }
    }
});
