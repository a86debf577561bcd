//! Hand-made records of every kind, whole, cut, split and damaged.

mod doubtful;

use proptest::prelude::*;

use super::*;
use crate::bgp::AsWidth;
use crate::{Collected, PeerInfo, PeerState};

const TIME: u32 = 1_445_558_400;

fn record(kind: u16, subtype: u16, body: &[u8]) -> Vec<u8> {
    let len = u32::try_from(body.len()).unwrap();
    let head = [TIME.to_be_bytes(), (u32::from(kind) << 16 | u32::from(subtype)).to_be_bytes()];
    [head.as_flattened(), &len.to_be_bytes(), body].concat()
}

fn attribute(code: u8, value: &[u8]) -> Vec<u8> {
    let flags = match code {
        4 | 14 | 15 => 0x80,
        7 | 8 | 17 | 18 | 32 => 0xc0,
        _ => 0x40,
    };
    [&[flags, code, value.len() as u8], value].concat()
}

/// ORIGIN, AS_PATH of two- or four-byte numbers, NEXT_HOP 192.0.2.9.
fn attributes(path: &[u32], width: AsWidth) -> Vec<u8> {
    let mut as_path = vec![2, path.len() as u8];
    for asn in path {
        let bytes = asn.to_be_bytes();
        as_path.extend(&bytes[4 - width.bytes()..]);
    }
    [attribute(1, &[0]), attribute(2, &as_path), attribute(3, &[192, 0, 2, 9])].concat()
}

fn with_len(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u16).to_be_bytes(), bytes].concat()
}

fn update_body(withdrawn: &[u8], attributes: &[u8], nlri: &[u8]) -> Vec<u8> {
    [with_len(withdrawn), with_len(attributes), nlri.to_vec()].concat()
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let len = (19 + body.len()) as u16;
    [&[0xff; 16][..], &len.to_be_bytes(), &[kind], body].concat()
}

/// The head of a BGP4MP record: AS 64500 or, of four bytes, 65536 at 192.0.2.1.
fn envelope(width: AsWidth) -> Vec<u8> {
    let asns: &[u8] = match width {
        AsWidth::Two => &[0xfb, 0xf4, 0xfd, 0xe8],
        AsWidth::Four => &[0, 1, 0, 0, 0, 0, 0xfd, 0xe8],
    };
    [asns, &[0, 0, 0, 1, 192, 0, 2, 1, 192, 0, 2, 2]].concat()
}

fn bgp4mp(subtype: u16, width: AsWidth, update: &[u8]) -> Vec<u8> {
    record(16, subtype, &[envelope(width), message(2, update)].concat())
}

fn peer_table() -> Vec<u8> {
    let peers: [&[u8]; 3] = [
        &[0, 0, 0, 0, 1, 192, 0, 2, 1, 0xfb, 0xf4],
        &[2, 0, 0, 0, 2, 192, 0, 2, 2, 0, 1, 0, 0],
        &[3, 0, 0, 0, 3, 0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 1],
    ];
    let body = [&[0, 0, 0, 9, 0, 1, b'v', 0, 3][..], &peers.concat()].concat();
    record(13, 1, &body)
}

/// An entry of a TABLE_DUMP_V2 record.
fn entry(peer: u16, path_id: Option<u32>, attributes: &[u8]) -> Vec<u8> {
    let id = path_id.map(|id| id.to_be_bytes().to_vec()).unwrap_or_default();
    [&peer.to_be_bytes()[..], &TIME.to_be_bytes(), &id, &with_len(attributes)].concat()
}

fn rib(subtype: u16, prefix: &[u8], entries: &[Vec<u8>]) -> Vec<u8> {
    let count = (entries.len() as u16).to_be_bytes();
    record(13, subtype, &[&[0; 4][..], prefix, &count, &entries.concat()].concat())
}

fn decode(bytes: &[u8]) -> Collected {
    decode_in_pieces(bytes, &[], Tail::End)
}

/// Decodes in pieces cut at `cuts`, as `read` does: the rest that was not consumed is passed again.
fn decode_in_pieces(bytes: &[u8], cuts: &[usize], tail: Tail) -> Collected {
    let mut sink = Collected::default();
    let mut decoder = MrtDecoder::new(BgpOptions {
        as_path: true,
        communities: true,
        extended_communities: true,
    });
    let mut start = 0;
    for &cut in cuts {
        let cut = cut.clamp(start, bytes.len());
        start += decoder.decode(&bytes[start..cut], Tail::More, &mut sink).expect("never stopped");
    }
    let taken = decoder.decode(&bytes[start..], tail, &mut sink).expect("never stopped");
    assert_eq!(start + taken, bytes.len());
    sink
}

/// The result for a sound input.
fn lines(bytes: &[u8]) -> Vec<String> {
    let sink = decode(bytes);
    assert_eq!(sink.damage, []);
    sink.lines
}

#[test]
fn messages_of_both_widths() {
    let old = attributes(&[64500, 23456], AsWidth::Two);
    let as4 = attribute(17, &[2, 1, 0, 1, 0, 1]);
    let new = attributes(&[65536, 64501], AsWidth::Four);
    let bytes = [
        bgp4mp(1, AsWidth::Two, &update_body(&[8, 10], &[old, as4].concat(), &[16, 172, 16])),
        bgp4mp(4, AsWidth::Four, &update_body(&[], &new, &[24, 198, 51, 100, 0])),
        // KEEPALIVE, and messages of the collector itself.
        record(16, 4, &[envelope(AsWidth::Four), message(4, &[])].concat()),
        record(16, 7, &[envelope(AsWidth::Four), message(2, &[])].concat()),
    ]
    .concat();
    let sink = decode(&bytes);
    assert_eq!(sink.damage, []);
    assert_eq!(
        sink.lines,
        [
            "- 0 10.0.0.0/8",
            "+ 0 172.16.0.0/16 192.0.2.9 65537",
            "+ 1 198.51.100.0/24 192.0.2.9 64501",
            "+ 1 0.0.0.0/0 192.0.2.9 64501",
        ]
    );
    let asns: Vec<u32> = sink.peers.iter().map(|peer| peer.asn).collect();
    assert_eq!((asns, sink.ignored), (vec![64500, 65536], 1));
    assert_eq!(sink.info.and_then(|info| info.date), Some(u64::from(TIME)));
}

#[test]
fn multiprotocol_routes() {
    let next_hop = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7];
    let mut pair = next_hop.to_vec();
    pair.extend([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7]);
    let reach = |safi: u8| {
        attribute(14, &[&[0, 2, safi, 32][..], &pair, &[0, 32, 0x20, 1, 0xd, 0xb8]].concat())
    };
    let unreach = attribute(15, &[0, 2, 1, 16, 0x20, 2]);
    let both = [attributes(&[65536], AsWidth::Four), reach(1), unreach].concat();
    let bytes = bgp4mp(4, AsWidth::Four, &update_body(&[], &both, &[8, 10]));
    assert_eq!(
        lines(&bytes),
        ["- 0 2002::/16", "+ 0 10.0.0.0/8 192.0.2.9 65536", "+ 0 2001:db8::/32 2001:db8::7 65536"]
    );
    // Multicast, labelled unicast (2001:db8::/32 with label 16), VPN.
    let labelled = [&[0, 2, 4, 32][..], &pair, &[0, 56, 0, 1, 1, 0x20, 1, 0xd, 0xb8]].concat();
    for attributes in [reach(2), attribute(14, &labelled), attribute(15, &[0, 1, 128, 0])] {
        let sink = decode(&bgp4mp(4, AsWidth::Four, &update_body(&[], &attributes, &[])));
        assert_eq!((sink.lines.len(), sink.damage.len(), sink.ignored), (0, 0, 1));
    }
}

#[test]
fn session_changes() {
    let down = record(16, 0, &[envelope(AsWidth::Two), vec![0, 6, 0, 1]].concat());
    let up = record(16, 5, &[envelope(AsWidth::Four), vec![0, 5, 0, 6]].concat());
    let micros = [&[0, 0, 0, 5][..], &envelope(AsWidth::Two), &[0, 6, 0, 7]].concat();
    let sink = decode(&[down, up, record(17, 0, &micros)].concat());
    assert_eq!(sink.damage, []);
    let time = u64::from(TIME) * 1_000_000;
    let state = |peer, time, old, new| PeerState { peer, time, old, new };
    assert_eq!(sink.states, [state(0, time, 6, 1), state(1, time, 5, 6), state(0, time + 5, 6, 7)]);
    assert_eq!(sink.states.iter().map(PeerState::is_down).collect::<Vec<_>>(), [true, false, true]);
}

#[test]
fn path_identifiers() {
    let attrs = attributes(&[65536], AsWidth::Four);
    let nlri = [0, 0, 0, 3, 8, 10, 0, 0, 0, 4, 8, 10];
    let wanted = ["+ 0 10.0.0.0/8#3 192.0.2.9 65536", "+ 0 10.0.0.0/8#4 192.0.2.9 65536"];
    // Declared by the subtype, and not.
    for subtype in [9, 4] {
        let bytes = bgp4mp(subtype, AsWidth::Four, &update_body(&[], &attrs, &nlri));
        assert_eq!(lines(&bytes), wanted);
    }
}

#[test]
fn tables_with_a_table_of_peers() {
    let attrs = attributes(&[65536], AsWidth::Four);
    let next_hop = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7];
    let short = attribute(14, &[&[16][..], &next_hop].concat());
    let full = attribute(14, &[&[0, 2, 1, 16][..], &next_hop, &[0]].concat());
    let bytes = [
        peer_table(),
        rib(2, &[8, 10], &[entry(0, None, &attrs), entry(1, None, &attrs)]),
        rib(4, &[16, 0x20, 1], &[entry(2, None, &short), entry(1, None, &full)]),
        rib(8, &[8, 11], &[entry(1, Some(5), &attrs)]),
        rib(6, &[0, 1, 1, 8, 12], &[entry(1, None, &attrs)]),
        rib(6, &[0, 1, 128, 8, 12], &[entry(1, None, &attrs)]),
        rib(6, &[0, 1, 4, 32, 0, 1, 1, 12], &[entry(1, None, &attrs)]),
        rib(3, &[8, 13], &[entry(1, None, &attrs)]),
    ]
    .concat();
    let sink = decode(&bytes);
    assert_eq!((sink.damage.len(), sink.ignored), (0, 3));
    assert_eq!(
        sink.lines,
        [
            "+ 0 10.0.0.0/8 192.0.2.9 65536",
            "+ 1 10.0.0.0/8 192.0.2.9 65536",
            "+ 2 2001::/16 2001:db8::7 none",
            "+ 1 2001::/16 2001:db8::7 none",
            "+ 1 11.0.0.0/8#5 192.0.2.9 65536",
            "+ 1 12.0.0.0/8 192.0.2.9 65536",
        ]
    );
    let last = PeerInfo::new(Some("2001:db8::1".parse().unwrap()), 65537, Some(3));
    assert_eq!(sink.peers.last(), Some(&last));
}

#[test]
fn table_dump_and_records_of_1999() {
    let attrs = attributes(&[64500], AsWidth::Two);
    let head = [0, 0, 0, 1, 10, 0, 0, 0, 8, 1, 0, 0, 0, 0, 192, 0, 2, 1, 0xfb, 0xf4];
    let table = record(12, 1, &[&head[..], &with_len(&attrs)].concat());
    let speaker = [0xfb, 0xf4, 192, 0, 2, 1];
    let local = [0xfd, 0xe8, 192, 0, 2, 2];
    let update = update_body(&[8, 11], &attrs, &[8, 12]);
    let bytes = [
        table,
        record(5, 1, &[&speaker[..], &local, &update].concat()),
        record(5, 3, &[&speaker[..], &[0, 6, 0, 1]].concat()),
        record(5, 7, &[&speaker[..], &local].concat()),
    ]
    .concat();
    let sink = decode(&bytes);
    assert_eq!((sink.damage.len(), sink.peers.len(), sink.states.len()), (0, 1, 1));
    assert_eq!(
        sink.lines,
        ["+ 0 10.0.0.0/8 192.0.2.9 64500", "- 0 11.0.0.0/8", "+ 0 12.0.0.0/8 192.0.2.9 64500"]
    );
}

#[test]
fn damage_stays_within_its_record() {
    let attrs = attributes(&[65536], AsWidth::Four);
    let good = bgp4mp(4, AsWidth::Four, &update_body(&[], &attrs, &[8, 10]));
    let bad_path = [attribute(2, &[2, 9, 0, 0]), attribute(1, &[0])].concat();
    let cases = [
        (bgp4mp(4, AsWidth::Four, &update_body(&[], &bad_path, &[8, 10])), "AS path segment needs"),
        (
            bgp4mp(4, AsWidth::Four, &update_body(&[], &attrs, &[33, 10, 0, 0, 0, 0])),
            "prefix length",
        ),
        (bgp4mp(4, AsWidth::Four, &[0, 200, 0]), "withdrawn routes needs 200 bytes"),
        (record(16, 4, &[0; 9]), "interface index"),
        (
            record(16, 4, &[envelope(AsWidth::Four), message(9, &[])].concat()),
            "unknown BGP message",
        ),
        (record(17, 4, &[0; 3]), "microseconds needs 4 bytes, 3 are left"),
        (record(13, 1, &[0; 7]), "peer count"),
    ];
    for (bad, what) in cases {
        let mut sink = decode(&[&good[..], &bad, &good].concat());
        if what.starts_with("AS path") {
            // RFC 7606: the peer's earlier route is no longer valid.
            assert_eq!(sink.lines.remove(1), "- 0 10.0.0.0/8");
        }
        assert_eq!(sink.lines, ["+ 0 10.0.0.0/8 192.0.2.9 65536"; 2], "{what}");
        let [damage] = sink.damage.as_slice() else { panic!("{what}: {:?}", sink.damage) };
        assert!(damage.what.contains(what), "{}: {what}", damage.what);
        assert_eq!((damage.record, damage.offset), (2, good.len() as u64));
    }
    // One bad entry of a table does not cost the others.
    let ribs = rib(
        2,
        &[8, 10],
        &[entry(9, None, &attrs), entry(0, None, &bad_path), entry(1, None, &attrs)],
    );
    let sink = decode(&[peer_table(), ribs].concat());
    assert_eq!((sink.lines.len(), sink.damage.len()), (1, 1));
}

#[test]
fn what_is_lost_is_found_again() {
    let attrs = attributes(&[65536], AsWidth::Four);
    let good = bgp4mp(4, AsWidth::Four, &update_body(&[], &attrs, &[8, 10]));
    let junk = vec![0xa5; 5000];
    let sink = decode(&[&good[..], &junk, &good, &good].concat());
    assert_eq!(sink.lines.len(), 3);
    let [damage] = sink.damage.as_slice() else { panic!("{:?}", sink.damage) };
    assert_eq!((damage.record, damage.offset), (2, good.len() as u64));
    assert!(damage.what.contains("5000 bytes skipped"), "{}", damage.what);

    let sink = decode(&[&good[..], &junk].concat());
    assert_eq!((sink.lines.len(), sink.damage.len()), (1, 1));
    // A length beyond reason is not waited for.
    let mut huge = good.clone();
    huge[8..12].copy_from_slice(&[0xff; 4]);
    let sink = decode(&[huge, good.clone(), good].concat());
    assert_eq!((sink.lines.len(), sink.damage.len()), (2, 1));
}

#[test]
fn no_table_of_peers() {
    let attrs = attributes(&[65536], AsWidth::Four);
    let ribs = rib(2, &[8, 10], &[entry(7, None, &attrs), entry(3, None, &attrs)]);
    let sink = decode(&[ribs.clone(), ribs].concat());
    assert_eq!((sink.lines.len(), sink.damage.len(), sink.peers.len()), (4, 1, 2));
    assert_eq!(sink.peers[1], PeerInfo::new(None, 0, None));
}

#[test]
fn a_sink_may_stop() {
    struct Stopper(u32);
    impl Sink for Stopper {
        fn update(&mut self, _: &fibula_core::Update<'_>) {
            self.0 += 1;
        }
        fn damage(&mut self, _: &Damage) -> std::ops::ControlFlow<()> {
            std::ops::ControlFlow::Break(())
        }
    }
    let attrs = attributes(&[65536], AsWidth::Four);
    let good = bgp4mp(4, AsWidth::Four, &update_body(&[], &attrs, &[8, 10]));
    let bytes = [&good[..], &record(16, 4, &[0; 9]), &good].concat();
    let mut sink = Stopper(0);
    let result = MrtDecoder::default().decode(&bytes, Tail::End, &mut sink);
    assert_eq!((result, sink.0), (Err(StopReason::BySink), 1));
}

/// A file with a record of every kind.
fn zoo() -> Vec<u8> {
    let new = attributes(&[65536, 64501], AsWidth::Four);
    let old = attributes(&[64500], AsWidth::Two);
    let communities = [attribute(8, &[1, 2, 3, 4]), attribute(32, &[7; 12])].concat();
    let all = [new.clone(), communities].concat();
    let early = [
        &[0, 0, 0, 1, 10, 0, 0, 0, 8, 1, 0, 0, 0, 0, 192, 0, 2, 1, 0xfb, 0xf4][..],
        &with_len(&old),
        &[10, 1, 0, 0, 16, 1, 0, 0, 0, 0, 192, 0, 2, 1, 0xfb, 0xf4],
        &with_len(&old),
    ]
    .concat();
    let mut early = record(12, 1, &early);
    early[11] -= 4;
    [
        peer_table(),
        rib(2, &[8, 10], &[entry(0, None, &all), entry(1, None, &new)]),
        rib(10, &[16, 0x20, 1], &[entry(2, Some(1), &new)]),
        early,
        bgp4mp(1, AsWidth::Two, &update_body(&[8, 10], &old, &[16, 172, 16])),
        bgp4mp(9, AsWidth::Four, &update_body(&[], &all, &[0, 0, 0, 3, 8, 10])),
        record(16, 0, &[envelope(AsWidth::Two), vec![0, 6, 0, 1]].concat()),
        record(11, 0, &[0; 20]),
        bgp4mp(4, AsWidth::Four, &update_body(&[], &new, &[8, 10])),
    ]
    .concat()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn cuts_change_nothing(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cuts in proptest::collection::vec(0usize..2600, 0..12),
        is_cut in any::<bool>(),
    ) {
        let mut bytes = [zoo(), zoo()].concat();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        let mut cuts = cuts;
        cuts.sort_unstable();
        let tail = if is_cut { Tail::Cut } else { Tail::End };
        let whole = decode_in_pieces(&bytes, &[], tail);
        prop_assert_eq!(whole, decode_in_pieces(&bytes, &cuts, tail));
    }

    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        decode(&bytes);
    }

    #[test]
    fn any_body(
        kind in prop_oneof![Just(5u16), Just(12), Just(13), Just(16), Just(17)],
        subtype in 0u16..13,
        body in proptest::collection::vec(prop_oneof![any::<u8>(), 0u8..4], 0..200),
    ) {
        let sink = decode(&[peer_table(), record(kind, subtype, &body)].concat());
        prop_assert!(sink.damage.len() <= 2);
    }

    #[test]
    fn a_cut_file_begins_like_the_whole(cut in 0usize..1200) {
        let bytes = zoo();
        let whole = decode(&bytes);
        prop_assert_eq!(&whole.damage, &[]);
        let cut = cut.min(bytes.len());
        let part = decode_in_pieces(&bytes[..cut], &[], Tail::Cut);
        prop_assert!(whole.lines.starts_with(&part.lines));
        // Two where the cut takes the last bytes of a record that declares itself too short.
        prop_assert!(part.damage.len() <= 2);
    }
}
