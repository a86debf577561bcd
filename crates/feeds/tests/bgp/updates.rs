//! Malformed UPDATE messages (RFC 7606), and other forms of them.

use fibula_feeds::bgp::Neighbour;
use fibula_feeds::{Protocol, SourceState};
use fibula_ingest::bgp::AfiSafi;

use super::speaker::*;

/// Malformed, but the routes are known: they are withdrawn, and the session continues.
#[test]
fn treated_as_withdrawn() {
    let mut bench = Bench::established(neighbour(), &[IPV4, IPV6, FOUR]);
    bench.send(&update(PATH, "08 0a 08 0b")).unwrap();
    bench.send(&update_v6("10 2001")).unwrap();
    // ORIGIN without a value; NEXT_HOP of 10.0.0.0/8 alone.
    bench.send(&update("400100 4002 00 4003 04 c0000209", "08 0a")).unwrap();
    assert_eq!(bench.prefixes(), ["11.0.0.0/8", "2001::/16"]);
    // An attribute that is longer than what is left.
    bench.send(&update(&format!("{PATH} 80 04 09 00"), "08 0b")).unwrap();
    // MP_REACH_NLRI is sound, ORIGIN is missing.
    let reach = "800e 18 0002 01 10 20010db8000000000000000000000009 00 10 2001";
    bench.send(&update(&format!("4002 00 {reach}"), "")).unwrap();
    assert!(bench.prefixes().is_empty());
    assert_eq!((bench.state(), bench.out.len()), (SourceState::Resync, 0));
    assert_eq!(bench.session.figures().damaged, 3);
    let events = bench.events();
    assert!(
        events[1].starts_with(
            "record 5, byte 186: UPDATE of peer 192.0.2.9 AS64500 of bgp 192.0.2.9: byte "
        ),
        "{events:?}"
    );
    assert!(events[1].ends_with("ORIGIN needs 1 bytes, 0 are left; its routes are withdrawn"));
}

/// Routes that would lead back to us are not used, and nothing is wrong with the session.
#[test]
fn loops() {
    let mut bench = Bench::new(neighbour());
    bench.session.local_address("192.0.2.7".parse().unwrap());
    bench.establish(&[IPV4, FOUR]);
    let path = |path: &str, next_hop: &str| {
        let len = hex(path).len();
        format!("40010100 4002 {len:02x} {path} 4003 04 {next_hop}")
    };
    bench.send(&update(PATH, "08 0a 08 0b")).unwrap();
    // Our AS in the path; our address as next hop.
    bench.send(&update(&path("0202 0000fbf4 0000fde8", "c0000209"), "08 0a")).unwrap();
    bench.send(&update(&path("0201 0000fbf4", "c0000207"), "08 0b 08 0c")).unwrap();
    assert!(bench.prefixes().is_empty());
    let figures = bench.session.figures();
    assert_eq!((figures.damaged, figures.ignored), (0, 2));
    // RFC 7607 and RFC 7606: a neighbour of another AS.
    for attributes in [
        path("0202 0000fbf4 00000000", "c0000209"),
        path("0200 0201 0000fbf4", "c0000209"),
        path("0301 00000009 0201 0000fbf4", "c0000209"),
        path("", "c0000209"),
        path("0201 0000fbf4", "00000000"),
        path("0201 0000fbf4", "e0000001"),
    ] {
        bench.send(&update(PATH, "08 0a")).unwrap();
        bench.send(&update(&attributes, "08 0a")).unwrap();
        assert!(bench.prefixes().is_empty(), "{attributes}");
    }
    assert_eq!((bench.session.figures().damaged, bench.out.len()), (6, 0));
}

/// Malformed, and its routes cannot be read: the session ends.
#[test]
fn session_resets() {
    let reach = |value: &str| format!("{PATH} 80 0e {:02x} {value}", hex(value).len());
    let next_hop = "20010db8000000000000000000000009";
    let twice =
        format!("{} 800f 03 000201 800f 03 000201", reach(&format!("000201 10 {next_hop} 00")));
    for (bytes, sent, what) in [
        // Lengths that do not fit.
        (message("02 0005 0000"), "0301", "withdrawn routes needs 5 bytes, 2 are left"),
        (message("02 0000 0009 400101"), "0301", "path attributes needs 9 bytes, 3 are left"),
        (message("02 0001 0a 00"), "0301", "attributes' length needs 2 bytes, 1 are left"),
        // Prefixes that cannot be read.
        (message("02 0002 210a 0000"), "030a", "prefix length 33 exceeds 32"),
        (message("02 0001 08 0000"), "030a", "prefix needs 1 bytes, 0 are left"),
        (update(PATH, "08 0a 21 0a000000 00"), "030a", "prefix length 33 exceeds 32"),
        (update(PATH, "18 0a00"), "030a", "prefix needs 3 bytes, 2 are left"),
        // Marked well-known, and unknown to everybody.
        (
            update(&format!("{PATH} 40 63 02 abcd"), "08 0a"),
            "0302406302abcd",
            "attribute 99 is marked well-known and is unknown",
        ),
        // Attributes with routes that cannot be read: they are quoted.
        (
            update(&reach(&format!("000201 10 {next_hop} 00 81 20")), ""),
            "0309800e17 000201 10 20010db8000000000000000000000009 008120",
            "prefix length 129 exceeds 128",
        ),
        (
            update(&reach("000201 03 c00002 00"), ""),
            "0309800e08 000201 03 c00002 00",
            "a next hop has 3 bytes",
        ),
        (
            update(&reach("000201 10 2001"), ""),
            "0309800e06 000201 10 2001",
            "next hop needs 16 bytes",
        ),
        (update("800f 02 0002", ""), "0309800f020002", "address family needs 1 bytes, 0 are left"),
        (
            update("800f 05 000201 10 20", ""),
            "0309800f05 0002011020",
            "prefix needs 2 bytes, 1 are left",
        ),
        // Routes may be missing.
        (update(&twice, ""), "0301", "attribute 15 comes twice"),
        (update("400100", ""), "0301", "attributes are malformed, and of no route"),
        (update("40010100 4002 ff", ""), "0301", "attributes are malformed, and of no route"),
    ] {
        let mut bench = Bench::established(neighbour(), &[IPV4, IPV6, FOUR, RESTART]);
        bench.send(&update(PATH, "08 0c")).unwrap();
        let why = bench.send(&bytes).unwrap_err();
        assert!(why.contains("an UPDATE is malformed, byte ") && why.contains(what), "{why}");
        assert_eq!(bench.sent(), [format!("03 {}", sent.replace(' ', ""))], "{why}");
        assert_eq!((bench.state(), bench.prefixes().len()), (SourceState::Idle, 0));
    }
}

/// Routes of families that were not negotiated or are not supported are ignored.
#[test]
fn other_families() {
    let one = Neighbour { families: vec![AfiSafi::IPV6], ..neighbour() };
    let mut bench = Bench::established(one, &[IPV4, IPV6, FOUR, AWARE]);
    bench.send(&update(PATH, "08 0a")).unwrap();
    // A VPN's route, 65000:1 2001:db8::/32 label 16, and a multicast route.
    let vpn = "0002 80 18 0000000000000000 20010db8000000000000000000000009 00 \
        78 000101 0000fde800000001 20010db8";
    let multicast = "0002 02 10 20010db8000000000000000000000009 00 10 2001";
    for value in [vpn, multicast] {
        bench.send(&update(&format!("{PATH} 800e {:02x} {value}", hex(value).len()), "")).unwrap();
    }
    assert!(bench.prefixes().is_empty());
    assert_eq!(bench.session.figures().ignored, 3);
    // Their end marks are ignored, too.
    bench.send(&message(END_V4)).unwrap();
    assert_eq!(bench.state(), SourceState::Resync);
    bench.send(&message(END_V6)).unwrap();
    assert_eq!(bench.state(), SourceState::Up);
}

/// LOCAL_PREF of another AS is ignored; that of our own AS is used.
#[test]
fn local_preference() {
    for (local_asn, wanted) in [(65000, None), (64500, Some(200))] {
        let mut bench = Bench::established(Neighbour { local_asn, ..neighbour() }, &[IPV4, FOUR]);
        let path = "40010100 4002 06 0201 0000fbf5 4003 04 c0000209";
        bench.send(&update(&format!("{path} 4005 04 000000c8"), "08 0a")).unwrap();
        let paths = bench.rib.paths::<u32>(0, "10.0.0.0/8".parse().unwrap());
        assert_eq!(paths[0].attributes.bgp().unwrap().local_pref, wanted);
    }
}

/// Two-byte AS numbers, path identifiers, next hops of IPv6 for IPv4, messages of 5,000 bytes.
#[test]
fn encodings() {
    let mut bench = Bench::established(Neighbour { asn: None, ..neighbour() }, &[]);
    // AS_PATH 64500 23456, AS4_PATH 64500 4200000000.
    let old = "40010100 4002 06 0202 fbf4 5ba0 4003 04 c0000209 c011 0a 0202 0000fbf4 fa56ea00";
    bench.send(&update(old, "08 0a")).unwrap();
    let path = |bench: &Bench, prefix: &str| {
        let paths = bench.rib.paths::<u32>(0, prefix.parse().unwrap());
        let of = |path: &fibula_rib::Path| {
            let bgp = path.attributes.bgp().unwrap();
            format!("{} {} {}", path.path_id, bgp.as_path, bgp.next_hop.unwrap())
        };
        paths.iter().map(of).collect::<Vec<_>>()
    };
    assert_eq!(path(&bench, "10.0.0.0/8"), ["0 64500 4200000000 192.0.2.9"]);

    let several = Neighbour { add_path: true, ..neighbour() };
    let mut bench = Bench::established(several, &[IPV4, FOUR, "0206 4504 00010102", "0202 0600"]);
    bench.send(&update(PATH, "00000001 08 0a")).unwrap();
    bench.send(&update(PATH, "00000002 08 0a")).unwrap();
    assert_eq!(path(&bench, "10.0.0.0/8").len(), 2);
    bench.send(&message("02 0006 00000001 080a 0000")).unwrap();
    assert_eq!(path(&bench, "10.0.0.0/8"), ["2 64500 64501 192.0.2.9"]);
    let reach = "0001 01 10 20010db8000000000000000000000009 00 00000003 08 0b";
    bench.send(&update(&format!("{PATH} 800e {:02x} {reach}", hex(reach).len()), "")).unwrap();
    assert_eq!(path(&bench, "11.0.0.0/8"), ["3 64500 64501 2001:db8::9"]);
    let many: String = (0..600).map(|i| format!("00000009 18 0c {i:04x} ")).collect();
    let long = update(PATH, &many);
    assert_eq!(long.len(), 19 + 4 + 24 + 600 * 8);
    bench.send(&long).unwrap();
    assert_eq!(bench.prefixes().len(), 602);
}
