use std::net::{IpAddr, Ipv4Addr};

use proptest::prelude::*;

use super::*;
use crate::bgp::{AddPathMode, AfiSafi};
use crate::{Collected, PeerInfo, PeerState};

const RD: [u8; 8] = [0, 0, 0xfd, 0xe8, 0, 0, 0, 1];
const NO_RD: [u8; 8] = [0; 8];
const PRE: u8 = 0;
const POST: u8 = 0x40;
const OUT: u8 = 0x10;
const TWO_BYTES: u8 = 0x20;

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let len = (HEADER + body.len()) as u32;
    [&[3][..], &len.to_be_bytes(), &[kind], body].concat()
}

/// A header about 192.0.2.`n` in AS 64500 + `n`, at 1,000,000 s and 7 us.
fn of(kind: u8, flags: u8, rd: [u8; 8], n: u8) -> Vec<u8> {
    let asn = 64_500 + u32::from(n);
    let last = if kind == 3 { [0; 4] } else { [192, 0, 2, n] };
    let time = [&1_000_000u32.to_be_bytes()[..], &[0, 0, 0, 7]].concat();
    [&[kind, flags][..], &rd, &[0; 12], &last, &asn.to_be_bytes(), &[192, 0, 2, n], &time].concat()
}

fn bgp_message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[0xff; 16][..], &(19 + body.len() as u16).to_be_bytes(), &[kind], body].concat()
}

fn monitoring(of: Vec<u8>, update: &[u8]) -> Vec<u8> {
    message(kind::ROUTE_MONITORING, &[of, bgp_message(2, update)].concat())
}

/// An UPDATE with this list of prefixes, by AS 64499, a number of `width` bytes.
fn announce(width: usize, prefixes: &[u8]) -> Vec<u8> {
    let path = &64_499u32.to_be_bytes()[4 - width..];
    let attributes =
        [&[0x40, 1, 1, 0, 0x40, 2, 2 + width as u8, 2, 1][..], path, &[0x40, 3, 4, 192, 0, 2, 9]]
            .concat();
    [&[0, 0, 0, attributes.len() as u8], &attributes[..], prefixes].concat()
}

/// Peers that are complete.
const NOBODY: [u32; 0] = [];
const NET: [u8; 2] = [8, 10];
const END_V4: [u8; 4] = [0; 4];
const END_V6: [u8; 10] = [0, 0, 0, 6, 0x80, 15, 3, 0, 2, 1];
const END_VPN: [u8; 10] = [0, 0, 0, 6, 0x80, 15, 3, 0, 1, 128];
const END_EVPN: [u8; 10] = [0, 0, 0, 6, 0x80, 15, 3, 0, 25, 70];

fn families(families: &[AfiSafi]) -> Vec<Capability> {
    let asn = [Capability::FourByteAsn(64_500)];
    asn.into_iter().chain(families.iter().map(|f| Capability::Multiprotocol(*f))).collect()
}

fn peer_up_with(of: Vec<u8>, sent: &[Capability], received: &[Capability]) -> Vec<u8> {
    let open = |capabilities: &[Capability]| {
        Open::new(64_500, 90, 1, capabilities.to_vec()).encode().unwrap()
    };
    // An entry of an unknown type, and a name.
    let information = [0, 99, 0, 1, 7, 0, 3, 0, 3, b'r', b'e', b'd'];
    message(
        kind::PEER_UP,
        &[&of[..], &[0; 20], &open(sent), &open(received), &information].concat(),
    )
}

fn peer_up(of: Vec<u8>, of_families: &[AfiSafi]) -> Vec<u8> {
    let capabilities = families(of_families);
    peer_up_with(of, &capabilities, &capabilities)
}

fn peer_down(of: Vec<u8>, reason: &[u8]) -> Vec<u8> {
    message(kind::PEER_DOWN, &[&of[..], reason].concat())
}

fn decode(messages: &[Vec<u8>]) -> Collected {
    let mut sink = Collected::default();
    let stream = messages.concat();
    let mut decoder = BmpDecoder::new(BgpOptions::default());
    assert_eq!(decoder.decode(&stream, Tail::End, &mut sink), Ok(stream.len()));
    assert_eq!(decoder.records(), messages.len() as u64);
    sink
}

#[test]
fn every_view_and_instance_is_a_table_and_a_peer() {
    let say = |kind, flags, rd| monitoring(of(kind, flags, rd, 1), &announce(4, &NET));
    let sink = decode(&[
        say(0, PRE, NO_RD),
        say(0, POST, NO_RD),
        say(0, OUT, NO_RD),
        say(0, OUT | POST, NO_RD),
        say(3, 0, NO_RD),
        say(1, POST, RD),
        say(3, 0x80, RD),
        say(0, POST, NO_RD),
    ]);
    let views = [
        "pre-policy",
        "post-policy",
        "out-pre-policy",
        "out-post-policy",
        "loc-rib",
        "post-policy/65000:1",
        "loc-rib/65000:1",
    ];
    let vrfs: Vec<String> = (1..).zip(views).map(|(n, view)| format!("{n} = {view}")).collect();
    assert_eq!(sink.vrfs, vrfs);
    let address = Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)));
    for (peer, view) in sink.peers.iter().zip(views) {
        let address = address.filter(|_| !view.starts_with("loc-rib"));
        let wanted = PeerInfo::new(address, 64_501, Some(0xc000_0201));
        assert_eq!(*peer, PeerInfo { view: view.to_owned(), ..wanted });
    }
    assert_eq!(sink.peers.len(), views.len());
    assert_eq!(sink.lines[6], "+ 6 10.0.0.0/8 192.0.2.9 64499 of 7");
    assert_eq!(sink.lines[7], "+ 1 10.0.0.0/8 192.0.2.9 64499 of 2");
    // Once for each table.
    assert_eq!(sink.noted.len(), 7);
}

#[test]
fn peers_that_are_not_wanted_are_passed_over() {
    let say = |n| {
        let update = announce(4, &NET);
        [
            peer_up(of(0, PRE, NO_RD, n), &[AfiSafi::IPV4]),
            monitoring(of(0, PRE, NO_RD, n), &update),
            monitoring(of(0, POST, NO_RD, n), &update),
            message(kind::STATISTICS, &[of(0, PRE, NO_RD, n), vec![0; 4]].concat()),
            peer_down(of(0, PRE, NO_RD, n), &[4]),
        ]
    };
    let own = monitoring(of(3, 0, NO_RD, 2), &announce(4, &NET));
    let stream: Vec<u8> = [say(1), say(2)].concat().into_iter().chain([own]).flatten().collect();
    let decode = |ignored: &[&str]| {
        let ignored: Vec<AnyPrefix> = ignored.iter().map(|text| text.parse().unwrap()).collect();
        let mut sink = Collected::default();
        let mut decoder = BmpDecoder::new(BgpOptions::default()).without(ignored);
        decoder.decode(&stream, Tail::End, &mut sink).unwrap();
        assert!(sink.damage.is_empty(), "{:?}", sink.damage);
        let peers: Vec<_> =
            sink.peers.iter().map(|peer| peer.address.map(|a| a.to_string())).collect();
        let announced = sink.lines.iter().filter(|line| line.starts_with('+')).count();
        (peers, announced, sink.ignored)
    };
    let [one, two] = ["192.0.2.1", "192.0.2.2"].map(|address| Some(address.to_owned()));
    let all = vec![one.clone(), one, two.clone(), two.clone(), None];
    assert_eq!(decode(&[]), (all.clone(), 5, 0));
    // Beside: another address, another family.
    assert_eq!(decode(&["192.0.2.3/32", "::/0"]), (all, 5, 0));
    assert_eq!(decode(&["192.0.2.1/32"]), (vec![two.clone(), two, None], 3, 5));
    // The router's own table stays.
    assert_eq!(decode(&["192.0.2.0/24"]), (vec![None], 1, 10));
}

/// The router's own address is a doubtful next hop of routes that it received, and the right one of those that it sent.
#[test]
fn doubtful_next_hops_are_counted() {
    let up = peer_up(of(0, PRE, NO_RD, 1), &[AfiSafi::IPV4]);
    // The local address of Peer Up, behind the headers of the message and of the peer.
    let at = HEADER + PerPeer::BYTES;
    let up = [&up[..at + 12], &[192, 0, 2, 7], &up[at + 16..]].concat();
    let say = |kind, flags, next_hop: &[u8; 4]| {
        let update = announce(4, &NET);
        let at = update.len() - NET.len() - 4;
        let update = [&update[..at], next_hop, &NET].concat();
        monitoring(of(kind, flags, NO_RD, 1), &update)
    };
    let own = [192, 0, 2, 7];
    let sink = decode(&[
        up,
        say(0, PRE, &own),
        say(0, POST, &own),
        say(0, OUT, &own),
        say(0, PRE, &[192, 0, 2, 9]),
        say(0, PRE, &[0; 4]),
    ]);
    const OWN: &str = "next hops that are the receiver's own address, kept as they are";
    const NO_HOST: &str = "next hops that are not the address of a host, kept as they are";
    assert_eq!((sink.lines.len(), sink.noted, sink.damage), (5, vec![OWN, OWN, NO_HOST], vec![]));
}

#[test]
fn the_header_selects_two_byte_as_numbers() {
    let up = peer_up(of(0, PRE, NO_RD, 1), &[AfiSafi::IPV4]);
    let short = monitoring(of(0, TWO_BYTES, NO_RD, 1), &announce(2, &NET));
    let long = monitoring(of(0, PRE, NO_RD, 1), &announce(4, &NET));
    // A router's own table always has four bytes; the flag means something else there.
    let own = monitoring(of(3, TWO_BYTES, NO_RD, 1), &announce(4, &NET));
    let sink = decode(&[up, short, long, own]);
    assert_eq!(sink.damage, []);
    assert_eq!(sink.lines.iter().filter(|line| line.contains("64499")).count(), 3);
}

#[test]
fn path_identifiers_are_of_one_direction() {
    let with = |receive, send| {
        let mut all = families(&[AfiSafi::IPV4]);
        all.push(Capability::AddPath(vec![(AfiSafi::IPV4, AddPathMode { receive, send })]));
        all
    };
    let (receives, sends) = (with(true, false), with(false, true));
    let plain = announce(4, &NET);
    let identified = announce(4, &[0, 0, 0, 5, 8, 10]);
    let route = |line: &str, id: &str| line.contains(&format!("10.0.0.0/8{id} 192.0.2.9"));
    let check = |sent: &[Capability], received: &[Capability], incoming: bool, outgoing: bool| {
        let of = |flags| of(0, flags, NO_RD, 1);
        let update = |has_ids| if has_ids { &identified } else { &plain };
        let sink = decode(&[
            peer_up_with(of(PRE), sent, received),
            monitoring(of(POST), update(incoming)),
            monitoring(of(OUT), update(outgoing)),
        ]);
        assert_eq!((sink.damage.len(), sink.lines.len()), (0, 2), "{:?}", sink.lines);
        for (line, has_ids) in sink.lines.iter().zip([incoming, outgoing]) {
            assert!(route(line, if has_ids { "#5" } else { "" }), "{line}");
        }
    };
    check(&receives, &sends, true, false);
    check(&sends, &receives, false, true);
    check(&with(true, true), &with(true, true), true, true);
    check(&receives, &receives, false, false);
    // For the router's own table both OPENs are equal.
    let sink = decode(&[
        peer_up_with(of(3, 0, NO_RD, 1), &sends, &sends),
        monitoring(of(3, 0, NO_RD, 1), &identified),
    ]);
    assert!(route(&sink.lines[0], "#5"), "{:?}", sink.lines);
    assert_eq!(sink.remarks, ["table name: AS64501 loc-rib is red"]);
}

#[test]
fn a_peer_is_complete_when_all_its_families_are() {
    let own_table = of(3, 0, NO_RD, 1);
    let of = |flags, n| of(0, flags, NO_RD, n);
    let both = [AfiSafi::IPV4, AfiSafi::IPV6, AfiSafi { afi: 25, safi: 70 }];
    let end = |flags, n, end: &[u8]| monitoring(of(flags, n), end);
    let complete = |messages: &[Vec<u8>]| decode(messages).complete;
    let up = peer_up(of(PRE, 1), &both);
    assert_eq!(complete(&[up.clone(), end(POST, 1, &END_V4)]), NOBODY);
    let whole = [up.clone(), end(POST, 1, &END_V6), end(POST, 1, &END_V4)];
    let sink = decode(&whole);
    // The view is declared although it has no routes: it may have had some.
    assert_eq!((sink.complete, sink.peers[0].view.as_str()), (vec![0], "post-policy"));
    assert_eq!((sink.vrfs.len(), sink.lines.len()), (0, 0));
    // Each view for itself, once, and families that are not read do not matter.
    let mixed = [end(PRE, 1, &END_V4), end(POST, 1, &END_V6), end(POST, 1, &END_EVPN)];
    assert_eq!(complete(&[&[up.clone()][..], &mixed].concat()), NOBODY);
    assert_eq!(complete(&[&whole[..], &whole[1..]].concat()), [0]);
    // A new session of the peer must send everything again.
    let down = peer_down(of(PRE, 1), &[4]);
    assert_eq!(complete(&[&whole[..], std::slice::from_ref(&down), &whole[1..]].concat()), [0]);
    assert_eq!(complete(&[&whole[..], &[down], &whole[..]].concat()), [0, 0]);
    // Without Peer Up the families are unknown, and so are those of FRR's own table.
    assert_eq!(complete(&whole[1..]), NOBODY);
    let own = |update: &[u8]| monitoring(own_table.clone(), update);
    let own_up = |f: &[AfiSafi]| peer_up(own_table.clone(), f);
    assert_eq!(complete(&[own_up(&[]), own(&END_V4)]), NOBODY);
    assert_eq!(complete(&[own_up(&[AfiSafi::IPV4]), own(&END_V4)]), [0]);
    // Huawei sends a Peer Up for each family.
    let (v4, v6) = (own_up(&[AfiSafi::IPV4]), own_up(&[AfiSafi::IPV6]));
    assert_eq!(complete(&[v4.clone(), v6.clone(), own(&END_V4)]), NOBODY);
    assert_eq!(complete(&[v4, v6, own(&END_V4), own(&END_V6)]), [0]);
    // Without multiprotocol capabilities there is IPv4 alone; VPNs count where they are agreed on.
    assert_eq!(complete(&[peer_up(of(PRE, 2), &[]), end(PRE, 2, &END_V4)]), [0]);
    let vpn = peer_up(of(PRE, 2), &[AfiSafi::IPV4, AfiSafi::VPN_IPV4]);
    assert_eq!(complete(&[vpn.clone(), end(PRE, 2, &END_V4)]), NOBODY);
    assert_eq!(complete(&[vpn, end(PRE, 2, &END_VPN), end(PRE, 2, &END_V4)]), [0]);
}

#[test]
fn peers_go_down_with_all_their_tables() {
    let of = |flags, n| of(0, flags, NO_RD, n);
    let say = |flags, n| monitoring(of(flags, n), &announce(4, &NET));
    // Cease, administrative reset.
    let notification = [&[3][..], &bgp_message(3, &[6, 4])].concat();
    let sink = decode(&[
        // One that is not known: FRR repeats this all the time.
        peer_down(of(PRE, 3), &[2, 0, 0]),
        peer_up(of(PRE, 1), &[AfiSafi::IPV4]),
        say(PRE, 1),
        say(POST, 1),
        say(POST, 2),
        peer_down(of(PRE, 1), &notification),
        peer_down(of(PRE, 1), &notification),
        peer_up(of(PRE, 1), &[AfiSafi::IPV4]),
        say(POST, 1),
        peer_down(of(PRE, 1), &[5]),
        say(POST, 1),
        peer_down(of(PRE, 1), &[9]),
    ]);
    let state = |peer, old, new| PeerState { peer, time: 1_000_000_000_007, old, new };
    let (down, up) = (|peer| state(peer, 6, 1), |peer| state(peer, 5, 6));
    let both = |state: &dyn Fn(u32) -> PeerState| [state(0), state(1)];
    assert_eq!(sink.states, [&both(&down)[..], &both(&up), &both(&down), &[down(1)]].concat());
    let remark = |reason: &str| format!("peer down: 192.0.2.1 AS64501: {reason}");
    let reasons = [
        "closed by the peer with NOTIFICATION 6/4 (Cease)",
        "no longer monitored",
        "unknown reason 9",
    ];
    assert_eq!(sink.remarks, reasons.map(remark));
    assert_eq!(sink.noted.len(), 2, "{:?}", sink.noted);
    assert!(sink.noted[1].starts_with("routes of a peer that went down"));
    assert_eq!(sink.peers.len(), 3);
}

#[test]
fn a_peer_that_comes_back_as_another_is_another() {
    let first = of(0, PRE, NO_RD, 1);
    let mut other = first.clone();
    other[29] = 9;
    let say = |of: &Vec<u8>| monitoring(of.clone(), &announce(4, &NET));
    let up = |of: &Vec<u8>| peer_up(of.clone(), &[AfiSafi::IPV4]);
    let sink = decode(&[say(&first), up(&other), say(&other)]);
    assert_eq!(sink.peers.iter().map(|peer| peer.asn).collect::<Vec<_>>(), [64_501, 64_265]);
    assert!(sink.states[0].is_down() && sink.states[0].peer == 0);
    assert_eq!(sink.states.len(), 1);
    // And when its session was up and did not end with Peer Down.
    let again = decode(&[up(&first), say(&first), up(&other), say(&other)]);
    assert_eq!((again.peers, again.states), (sink.peers, sink.states));
}

#[test]
fn what_is_not_known_is_passed_over() {
    let unknown_type = message(200, &[1, 2, 3]);
    let unknown_peer = message(0, &of(9, 0, NO_RD, 1));
    let mirroring = message(6, &of(0, 0, NO_RD, 1));
    let keepalive = message(0, &[of(0, 0, NO_RD, 1), bgp_message(4, &[])].concat());
    let initiation = message(4, &[0, 77, 0, 1, 0, 0, 2, 0, 2, b'r', b'1', 0, 1, 0, 1, 7]);
    let termination = message(5, &[0, 1, 0, 2, 0, 3, 0, 9, 0, 0]);
    let sink = decode(&[initiation, unknown_type, unknown_peer, mirroring, keepalive, termination]);
    assert_eq!(sink.damage, []);
    assert_eq!(sink.ignored, 4);
    let wanted =
        ["system name: r1", "system description: ", "termination: the connection is redundant"];
    assert_eq!(sink.remarks, wanted);
}

#[test]
fn statistics_are_readable() {
    let counters = [
        &[0, 0, 0, 4][..],
        &[0, 0, 0, 4, 0, 0, 0, 3],
        &[0, 7, 0, 8, 0, 0, 0, 1, 0, 0, 0, 0],
        &[0, 9, 0, 11, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 5],
        &[1, 0, 0, 2, 7, 7],
    ]
    .concat();
    let report = [of(1, POST, RD, 1), counters].concat();
    let sink = decode(&[message(1, &report)]);
    let wanted = "statistics: 192.0.2.1 AS64501 65000:1: prefixes rejected by inbound policy 3, \
                  routes in Adj-RIB-In 4294967296, routes in Adj-RIB-In of IPv6 5, counter 256 in 2 bytes";
    assert_eq!((sink.remarks, sink.damage), (vec![wanted.to_owned()], vec![]));
}

#[test]
fn damage_has_its_peer_and_its_place() {
    let good = monitoring(of(0, POST, NO_RD, 1), &announce(4, &NET));
    let what = |bad: Vec<u8>| {
        let sink = decode(&[good.clone(), bad, good.clone()]);
        assert_eq!(sink.damage.len(), 1, "{:?}", sink.damage);
        assert_eq!((sink.damage[0].record, sink.damage[0].offset), (2, good.len() as u64));
        assert!(sink.lines.len() >= 2);
        sink.damage[0].what.to_string()
    };
    let bad_prefix = monitoring(of(0, POST, NO_RD, 1), &announce(4, &[33, 10]));
    assert_eq!(
        what(bad_prefix),
        "192.0.2.1 AS64501 post-policy: prefix length 33 exceeds 32 (byte 91 of the message)"
    );
    let bad_marker = message(0, &[of(1, PRE, RD, 1), vec![0; 9]].concat());
    assert_eq!(
        what(bad_marker),
        "192.0.2.1 AS64501 pre-policy/65000:1: BGP marker needs 16 bytes, 9 are left (byte 48 of the message)"
    );
    assert!(what(message(2, &[0; 41])).starts_with("per-peer header needs 4 bytes, 3 are left"));
    assert_eq!(
        what(message(3, &of(0, PRE, NO_RD, 1))),
        "192.0.2.1 AS64501: local address and ports needs 20 bytes, 0 are left (byte 48 of the message)"
    );
    let not_open = [of(0, PRE, NO_RD, 1), vec![0; 20], bgp_message(4, &[])].concat();
    assert!(what(message(3, &not_open)).contains("message of type 4 in place of an OPEN"));
    assert!(
        what(message(4, &[0, 2, 0, 9, 1])).starts_with("information needs 9 bytes, 1 are left")
    );
    assert!(
        what(message(1, &[&of(0, 0, NO_RD, 1)[..], &[0xff; 4]].concat())).contains("information")
    );
}

#[test]
fn streams_that_are_none() {
    let good = message(4, &[]);
    let misfit = |bytes: &[u8]| {
        let (mut decoder, mut sink) = (BmpDecoder::default(), Collected::default());
        match decoder.decode(bytes, Tail::More, &mut sink) {
            Err(StopReason::Misfit(what)) => (what, sink.info.is_some()),
            other => panic!("{other:?}"),
        }
    };
    let (what, begun) = misfit(b"GET / HTTP/1.1\r\n");
    assert_eq!(what, "this is no stream of BMP: it begins with version 71 in place of 3");
    assert!(!begun);
    assert!(misfit(&[3, 0, 0, 0, 5, 4]).0.contains("a message of 5 bytes"));
    assert!(misfit(&[3, 0xff, 0, 0, 0, 4]).0.contains("a message of 4278190080 bytes"));
    let (what, begun) = misfit(&[&good[..], &[9]].concat());
    assert_eq!(
        what,
        "byte 6: no BMP message begins here, but version 9 in place of 3; what follows cannot be read"
    );
    assert!(begun);
}

#[test]
fn detection() {
    assert!(looks_like_bmp(&message(4, &[0, 2, 0, 2, b'r', b'1'])));
    assert!(looks_like_bmp(&message(4, &[])));
    assert!(looks_like_bmp(&peer_up(of(0, PRE, NO_RD, 1), &[])));
    assert!(!looks_like_bmp(&message(4, &[9, 2, 0, 2])));
    assert!(!looks_like_bmp(&message(0, &of(7, PRE, NO_RD, 1))));
    assert!(!looks_like_bmp(&message(77, &[])));
    assert!(!looks_like_bmp(b"\x03\0\0\0"));
}

/// One message of each kind.
fn zoo() -> Vec<u8> {
    let down = peer_down(of(0, PRE, NO_RD, 1), &[4]);
    let messages = [
        message(4, &[0, 2, 0, 2, b'r', b'1']),
        peer_up(of(0, PRE, NO_RD, 1), &[AfiSafi::IPV4]),
        monitoring(of(0, PRE, NO_RD, 1), &announce(4, &NET)),
        monitoring(of(0, PRE, NO_RD, 1), &END_V4),
        message(1, &[&of(0, PRE, NO_RD, 1)[..], &[0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 3]].concat()),
        down.clone(),
        down,
        message(5, &[0, 1, 0, 2, 0, 1]),
    ];
    messages.concat()
}

proptest! {
    #[test]
    fn cuts_change_nothing(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cuts in proptest::collection::vec(0usize..700, 0..12),
        is_cut in any::<bool>(),
    ) {
        let mut bytes = zoo();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        let tail = if is_cut { Tail::Cut } else { Tail::End };
        let run = |cuts: &[usize]| {
            let (mut decoder, mut sink, mut start) = (BmpDecoder::default(), Collected::default(), 0);
            let mut result = Ok(0);
            for &cut in cuts {
                let cut = cut.min(bytes.len());
                if start <= cut && result.is_ok() {
                    result = decoder.decode(&bytes[start..cut], Tail::More, &mut sink);
                    start += result.clone().unwrap_or(0);
                }
            }
            let last = result.and_then(|_| decoder.decode(&bytes[start..], tail, &mut sink));
            (sink, last.map(|len| start + len), decoder.records())
        };
        let mut cuts = cuts;
        cuts.sort_unstable();
        prop_assert_eq!(run(&cuts), run(&[]));
    }

    #[test]
    fn any_body(
        kind in 0u8..8,
        of_kind in 0u8..5,
        flags in any::<u8>(),
        version in 3u8..5,
        body in proptest::collection::vec(prop_oneof![any::<u8>(), 0u8..4], 0..200),
    ) {
        let mut bad = message(kind, &[of(of_kind, flags, RD, 1), body].concat());
        bad[0] = version;
        let sink = decode(&[bad, message(4, &[])]);
        prop_assert!(sink.damage.len() <= 1);
    }
}
