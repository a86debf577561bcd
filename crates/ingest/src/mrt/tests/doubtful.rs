//! Routes that a session would refuse, and peers that cannot be trusted.

use super::*;

const NOTHING: [&str; 0] = [];

/// What a session would refuse is kept and counted, in records of every kind.
#[test]
fn doubtful_routes_are_counted() {
    const AS_0: &str = "AS paths with AS 0, kept as they are";
    const EMPTY_SEGMENT: &str = "AS paths with an empty segment, kept as they are";
    const CONFEDERATION: &str = "AS paths with a segment of a confederation, kept as they are";
    const EMPTY_PATH: &str = "empty AS paths, kept as they are";
    const NO_PATH: &str = "routes without an AS path, kept as they are";
    const NO_NEXT_HOP: &str = "routes without a next hop, kept as they are";
    const NO_HOST: &str = "next hops that are not the address of a host, kept as they are";
    const OWN: &str = "next hops that are the receiver's own address, kept as they are";
    let (path, host) = (&[2, 1, 0xfb, 0xf4][..], &[192, 0, 2, 9][..]);
    let of = |path: &[u8], next_hop: &[u8]| {
        [attribute(1, &[0]), attribute(2, path), attribute(3, next_hop)].concat()
    };
    let table = |attributes: &[u8]| {
        let entry = [&[0; 4][..], &[10, 0, 0, 0, 8, 1, 0, 0, 0, 0, 192, 0, 2, 1, 0xfb, 0xf4]];
        record(12, 1, &[&entry.concat()[..], &with_len(attributes)].concat())
    };
    for (attributes, noted) in [
        (of(path, host), vec![]),
        (of(&[2, 2, 0xfb, 0xf4, 0, 0], host), vec![AS_0]),
        (of(&[2, 1, 0xfb, 0xf4, 2, 0], host), vec![EMPTY_SEGMENT]),
        (of(&[4, 1, 0, 9, 2, 1, 0xfb, 0xf4], host), vec![CONFEDERATION]),
        (of(&[3, 2, 0, 9, 0, 0], &[0; 4]), vec![AS_0, CONFEDERATION, NO_HOST]),
        (of(&[], host), vec![EMPTY_PATH]),
        (of(path, &[224, 0, 0, 1]), vec![NO_HOST]),
    ] {
        let message = bgp4mp(1, AsWidth::Two, &update_body(&[], &attributes, &[8, 10]));
        for bytes in [table(&attributes), message] {
            let sink = decode(&bytes);
            assert_eq!((sink.lines.len(), sink.noted, sink.damage), (1, noted.clone(), vec![]));
        }
    }
    // What a message must have, and a table may lack; the collector's own address is known of messages only.
    assert_eq!(decode(&table(&attribute(1, &[0]))).noted, [NO_PATH, NO_NEXT_HOP]);
    let own = of(path, &[192, 0, 2, 2]);
    assert_eq!(decode(&table(&own)).noted, NOTHING);
    let message = bgp4mp(1, AsWidth::Two, &update_body(&[], &own, &[8, 10]));
    assert_eq!(decode(&message).noted, [OWN]);
    // ff02::1 of a record whose prefix is of IPv6.
    let multicast = [&[16, 0xff, 2][..], &[0; 13], &[1]].concat();
    let attributes =
        [attribute(1, &[0]), attribute(2, &[2, 1, 0, 0, 0xfb, 0xf4]), attribute(14, &multicast)];
    let bytes = [peer_table(), rib(4, &[16, 0x20, 1], &[entry(2, None, &attributes.concat())])];
    assert_eq!(decode(&bytes.concat()).noted, [NO_HOST]);
}

/// Entries behind a table of peers that cannot be read are not of the peers of the table before it.
#[test]
fn a_damaged_table_of_peers() {
    let attrs = attributes(&[65536], AsWidth::Four);
    let entries = rib(2, &[8, 10], &[entry(0, None, &attrs)]);
    // A second dump, whose table of peers names one more than it has.
    let mut damaged = peer_table();
    let at = HEADER + 8;
    assert_eq!(damaged[at], 3);
    damaged[at] = 4;
    let sink = decode(&[peer_table(), entries.clone(), damaged, entries].concat());
    assert_eq!(sink.lines, ["+ 0 10.0.0.0/8 192.0.2.9 65536", "+ 3 10.0.0.0/8 192.0.2.9 65536"]);
    assert_eq!(sink.peers[3], PeerInfo::new(None, 0, None));
    let faults: Vec<&str> = sink.damage.iter().map(|damage| &*damage.what).collect();
    assert!(faults[0].starts_with("peer type needs 1 bytes, 0 are left"), "{faults:?}");
    assert!(faults[1].starts_with("no PEER_INDEX_TABLE comes before"), "{faults:?}");
    assert_eq!(faults.len(), 2);
}

#[test]
fn a_file_has_a_bound_of_peers() {
    let table = |from: u32| {
        let peers: Vec<u8> = (from..from + 60_000)
            .flat_map(|asn| [&[2, 0, 0, 0, 1, 192, 0, 2, 1][..], &asn.to_be_bytes()].concat())
            .collect();
        let count = 60_000u16.to_be_bytes();
        record(13, 1, &[&[0, 0, 0, 9, 0, 0][..], &count, &peers].concat())
    };
    let bytes: Vec<u8> = (0..5).flat_map(|i| table(1 + 60_000 * i)).collect();
    let sink = decode(&bytes);
    assert_eq!((sink.peers.len(), sink.damage.len()), (1 << 18, 1));
    assert!(sink.damage[0].what.starts_with("there are too many peers"), "{}", sink.damage[0]);
}
