//! How a session begins, and when a connection is refused.

use fibula_feeds::bgp::{Neighbour, Notification};
use fibula_feeds::{Protocol, SourceState};
use fibula_ingest::bgp::{AddPath, AfiSafi};
use fibula_rib::Peer;

use super::speaker::*;

const OUR_OPEN: &str = "01 04fde8005a0a00000134\
    02060104000100010206010400020001020202000202460002020600\
    0208050600010001000202044002000002064104 0000fde8";

fn joined(text: &str) -> String {
    let (kind, body) = text.split_once(' ').unwrap();
    format!("{kind} {}", body.replace(' ', ""))
}

#[test]
fn a_session_byte_by_byte() {
    let mut bench = Bench::new(neighbour());
    assert_eq!((bench.state(), bench.session.deadline()), (SourceState::Idle, None));
    bench.connect();
    assert_eq!(bench.out[..19], hex("ffffffffffffffffffffffffffffffff 0051 01"));
    assert_eq!(bench.sent(), [joined(OUR_OPEN)]);
    bench.send(&open(&[IPV4, IPV6, FOUR, RESTART])).unwrap();
    assert_eq!(bench.sent(), [KEEPALIVE]);
    assert!(bench.session.established().is_none());
    bench.send(&message(KEEPALIVE)).unwrap();
    // The neighbour supports graceful restart, and waits for our End-of-RIB.
    assert_eq!(bench.sent(), ["02 00000000", "02 00000006800f03000201"]);
    assert_eq!(bench.state(), SourceState::Resync);
    assert_eq!(
        bench.events(),
        ["the session with 192.0.2.9 is established: AS64500, identifier 192.0.2.9, IPv4, IPv6, \
          hold time 90 s, graceful restart 120 s"]
    );
    bench.send(&update(PATH, "18 c63364 08 0a")).unwrap();
    bench.send(&update_v6("20 20010db8")).unwrap();
    bench.send(&message(END_V4)).unwrap();
    assert_eq!(bench.state(), SourceState::Resync);
    bench.send(&message(END_V6)).unwrap();
    assert_eq!(bench.state(), SourceState::Up);
    assert_eq!(bench.prefixes(), ["10.0.0.0/8", "198.51.100.0/24", "2001:db8::/32"]);
    // Withdrawn: 10.0.0.0/8.
    bench.send(&message("02 0002 080a 0000")).unwrap();
    assert_eq!(bench.prefixes(), ["198.51.100.0/24", "2001:db8::/32"]);
    let path = &bench.rib.paths::<u32>(0, "198.51.100.0/24".parse().unwrap())[0];
    let bgp = path.attributes.bgp().unwrap();
    assert_eq!((bgp.as_path, bgp.next_hop), ("64500 64501", Some(ADDRESS)));
    let source = Some("bgp 192.0.2.9".into());
    let peers: Vec<_> = bench.rib.peers().iter().map(|(_, peer)| peer.clone()).collect();
    assert_eq!(peers, [Peer { address: Some(ADDRESS), asn: 64500, source }]);
    assert!(bench.out.is_empty() && bench.events().is_empty());
    let figures = bench.session.figures();
    assert_eq!((figures.announced, figures.withdrawn, figures.connections), (3, 1, 1));
}

/// The result does not depend on how the bytes are cut.
#[test]
fn cut_at_every_byte() {
    let parts = [
        open(&[IPV4, IPV6, FOUR, RESTART]),
        message(KEEPALIVE),
        update(PATH, "18 c63364"),
        message(END_V4),
        update_v6("20 20010db8"),
        message(END_V6),
        message(KEEPALIVE),
    ];
    let all = parts.concat();
    let end = |pieces: &[&[u8]]| {
        let mut bench = Bench::new(neighbour());
        bench.connect();
        pieces.iter().for_each(|piece| bench.send(piece).unwrap());
        (bench.sent(), bench.prefixes(), bench.state(), bench.events())
    };
    let whole = end(&[&all]);
    assert_eq!(whole.2, SourceState::Up);
    for at in 0..all.len() {
        assert_eq!(end(&[&all[..at], &all[at..]]), whole, "cut at {at}");
    }
    let single: Vec<&[u8]> = all.chunks(1).collect();
    assert_eq!(end(&single), whole);
    let pieces: Vec<&[u8]> = all.chunks(7).collect();
    assert_eq!(end(&pieces), whole);
}

/// The settings that follow from both OPEN messages.
#[test]
fn agreements() {
    let agreed = |neighbour: Neighbour, parameters: &[&str]| {
        let mut bench = Bench::established(neighbour, parameters);
        bench.send(&message(KEEPALIVE)).unwrap();
        bench.session.established().unwrap().clone()
    };
    let old = agreed(neighbour(), &[]);
    assert_eq!(old.families, [AfiSafi::IPV4], "without capabilities it is IPv4");
    assert!(!old.speaker.four_byte_asns && old.graceful.is_none());
    assert_eq!(old.longest_message, 4096);
    let aware = agreed(neighbour(), &[IPV6, AWARE, "0202 0600"]);
    assert_eq!((aware.families, aware.longest_message), (vec![AfiSafi::IPV6], 65535));
    assert_eq!(aware.graceful.unwrap().time, None);
    // ADD-PATH: it sends both families (2), and we accept them if configured.
    let sends = "020a 4508 00010102 00020103";
    let taken = Neighbour { add_path: true, ..neighbour() };
    let speaker = agreed(taken.clone(), &[IPV4, IPV6, FOUR, sends]).speaker;
    assert_eq!((speaker.add_path_v4, speaker.add_path_v6), (AddPath::Present, AddPath::Present));
    assert_eq!(agreed(neighbour(), &[IPV4, sends]).speaker.add_path_v4, AddPath::Absent);
    let receives = "0206 4504 00010101";
    assert_eq!(agreed(taken, &[IPV4, receives]).speaker.add_path_v4, AddPath::Absent);
    // Any AS; the AS of the capability counts.
    let any = Neighbour { asn: None, ..neighbour() };
    let message =
        hex("ffffffffffffffffffffffffffffffff 0025 01 04 5ba0 00b4 c0000209 08 0206 4104 fa56ea00");
    let mut bench = Bench::new(any);
    bench.connect();
    bench.send(&message).unwrap();
    bench.send(&super::speaker::message(KEEPALIVE)).unwrap();
    let agreed = bench.session.established().unwrap();
    assert_eq!((agreed.asn, agreed.hold_time), (4_200_000_000, Some(s(90))));
}

/// Our OPEN of a four-byte AS, with ADD-PATH and one family.
#[test]
fn other_opens() {
    let one = Neighbour {
        local_asn: 4_200_000_000,
        add_path: true,
        families: vec![AfiSafi::IPV6, AfiSafi::IPV6],
        hold_time: 0,
        ..neighbour()
    };
    let mut bench = Bench::new(one);
    bench.connect();
    let wanted = "01 045ba000000a0000012a 0206010400020001 02020200 02024600 02020600 \
        020440020000 02064104fa56ea00 0206450400020101";
    assert_eq!(bench.sent(), [joined(wanted)]);
}

#[test]
fn configurations_that_cannot_be() {
    let with = |change: fn(&mut Neighbour)| {
        let mut neighbour = neighbour();
        change(&mut neighbour);
        neighbour.check().unwrap_err()
    };
    let texts = [
        with(|n| n.local_asn = 0),
        with(|n| n.asn = Some(0)),
        with(|n| n.router_id = std::net::Ipv4Addr::UNSPECIFIED),
        with(|n| n.hold_time = 2),
        with(|n| n.families.clear()),
        with(|n| n.families.push(AfiSafi::VPN_IPV4)),
    ];
    let wanted = [
        "there is no AS 0",
        "there is no AS 0",
        "the router id must not be 0.0.0.0",
        "the hold time must be 0 (none) or at least 3 seconds",
        "no address family is taken",
        "only IPv4 and IPv6 unicast can be taken",
    ];
    assert_eq!(texts, wanted.map(|text| format!("neighbour 192.0.2.9: {text}")));
}

/// A neighbour that does not know graceful restart and connects again: the existing session stays, and a KEEPALIVE is
/// sent on it at once.
#[test]
fn a_second_connection_is_refused() {
    let mut bench = Bench::established(neighbour(), &[IPV4, FOUR]);
    let refusal = bench.session.admit(bench.now, &mut bench.out).unwrap_err();
    assert_eq!(split(&refusal.farewell), ["03 0607"]);
    assert_eq!(refusal.why, "neighbour 192.0.2.9: it has an established session already");
    assert_eq!(bench.sent(), [KEEPALIVE]);
    // The reset that the KEEPALIVE causes.
    bench.session.disconnected(bench.now);
    assert!(bench.session.admit(bench.now, &mut bench.out).is_ok());
}

/// Before a session is established, and where the neighbour knows graceful restart, the newer connection wins.
#[test]
fn a_second_connection_replaces_the_first() {
    let mut bench = Bench::new(neighbour());
    bench.connect();
    bench.send(&open(&[IPV4, FOUR])).unwrap();
    assert!(bench.session.admit(bench.now, &mut bench.out).is_ok());

    bench.establish(&[IPV4, FOUR, RESTART]);
    bench.send(&update(PATH, "18 c63364 08 0a")).unwrap();
    bench.send(&update(PATH, "10 0b0b")[..20]).unwrap(); // half a message is forgotten
    assert!(bench.session.admit(bench.now, &mut bench.out).is_ok());
    bench.establish(&[IPV4, FOUR, RESTART]);
    assert_eq!(bench.prefixes().len(), 2);
    bench.send(&update(PATH, "08 0a")).unwrap();
    bench.send(&message(END_V4)).unwrap();
    assert_eq!(bench.prefixes(), ["10.0.0.0/8"]);
}

/// Our last message when we close; the routes stay in use.
#[test]
fn farewells() {
    let mut bench = Bench::established(neighbour(), &[IPV4, FOUR]);
    bench.send(&update(PATH, "08 0a")).unwrap();
    bench.session.close(&mut bench.out);
    assert_eq!(bench.sent(), ["03 06020b666962756c6120656e6473"]);
    let why = Notification::shutdown(4, "new keys");
    bench.session.shutdown(bench.now, &why, &mut bench.out);
    assert_eq!(bench.sent(), ["03 0604086e6577206b657973"]);
    assert_eq!((bench.state(), bench.prefixes().len()), (SourceState::Lost, 1));
    bench.session.shutdown(bench.now, &why, &mut bench.out);
    bench.session.close(&mut bench.out);
    assert!(bench.out.is_empty(), "there is no connection");
    bench.session.end(&mut bench.rib).unwrap();
    assert_eq!((bench.state(), bench.prefixes().len()), (SourceState::Idle, 0));
}
