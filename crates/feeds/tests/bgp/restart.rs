//! Sessions that are lost and come back (RFC 4724).

use fibula_feeds::{Protocol, SourceState};
use fibula_rib::{Peer, Preference, Rib, Snapshot};

use super::speaker::*;

/// A neighbour with graceful restart: its restart time counts, and its End-of-RIB marks sweep.
#[test]
fn graceful() {
    let with = [IPV4, IPV6, FOUR, RESTART];
    let mut bench = Bench::established(neighbour(), &with);
    bench.send(&update(PATH, "08 0a 08 0b")).unwrap();
    bench.send(&update_v6("10 2001 10 2002")).unwrap();
    bench.send(&message(END_V4)).unwrap();
    bench.send(&message(END_V6)).unwrap();
    bench.session.disconnected(bench.now);
    assert_eq!(bench.state(), SourceState::Lost);
    assert_eq!(bench.session.deadline(), Some(s(1120)));
    bench.tick(119).unwrap();
    bench.establish(&with);
    assert_eq!((bench.state(), bench.prefixes().len()), (SourceState::Resync, 4));
    bench.send(&update(PATH, "08 0a")).unwrap();
    // Longer than any silence: the neighbour has not sent its End-of-RIB.
    bench.tick(50).unwrap();
    bench.send(&message(END_V4)).unwrap();
    assert_eq!(bench.prefixes().len(), 4, "all families of a peer end together");
    bench.send(&update_v6("10 2002")).unwrap();
    bench.send(&message(END_V6)).unwrap();
    assert_eq!(bench.prefixes(), ["10.0.0.0/8", "2002::/16"]);
    assert_eq!(bench.state(), SourceState::Up);
    assert_eq!(bench.events().last().unwrap(), "peer 0 has sent its whole table again");
    // Later end marks change nothing.
    bench.send(&message(END_V6)).unwrap();
    assert_eq!(bench.prefixes().len(), 2);
}

/// The neighbour does not come back in time; an open connection without a session does not count.
#[test]
fn too_late() {
    let mut bench = Bench::established(neighbour(), &[IPV4, FOUR, RESTART]);
    bench.send(&update(PATH, "08 0a")).unwrap();
    bench.session.disconnected(bench.now);
    bench.tick(60).unwrap();
    bench.connect();
    bench.send(&open(&[IPV4, FOUR, RESTART])).unwrap();
    bench.tick(59).unwrap();
    assert_eq!((bench.state(), bench.prefixes().len()), (SourceState::Lost, 1));
    bench.tick(1).unwrap();
    assert_eq!((bench.state(), bench.prefixes().len()), (SourceState::Idle, 0));
    bench.send(&message(KEEPALIVE)).unwrap();
    bench.send(&update(PATH, "08 0b")).unwrap();
    assert_eq!(bench.prefixes(), ["11.0.0.0/8"]);
}

/// Without graceful restart, or with it but for no family, our own hold time counts; silence sweeps.
#[test]
fn plain() {
    for with in [&[IPV4, FOUR][..], &[IPV4, FOUR, AWARE]] {
        let mut bench = Bench::established(neighbour(), with);
        bench.send(&update(PATH, "08 0a 08 0b")).unwrap();
        bench.session.disconnected(bench.now);
        bench.session.disconnected(bench.now + s(20)); // nothing new
        assert_eq!(bench.session.deadline(), Some(s(1030)));
        bench.tick(29).unwrap();
        bench.establish(with);
        bench.send(&update(PATH, "08 0b")).unwrap();
        assert_eq!(bench.prefixes().len(), 2);
        if with.len() == 2 {
            bench.tick(5).unwrap();
        } else {
            bench.send(&message(END_V4)).unwrap();
        }
        assert_eq!(bench.prefixes(), ["11.0.0.0/8"]);
    }
}

/// The routes of a family that the neighbour no longer has are removed when the other families are complete.
#[test]
fn fewer_families() {
    let mut bench = Bench::established(neighbour(), &[IPV4, IPV6, FOUR, RESTART]);
    bench.send(&update(PATH, "08 0a")).unwrap();
    bench.send(&update_v6("10 2001")).unwrap();
    bench.session.disconnected(bench.now);
    bench.establish(&[IPV4, FOUR, AWARE]);
    bench.send(&update(PATH, "08 0a")).unwrap();
    bench.send(&message(END_V4)).unwrap();
    assert_eq!(bench.prefixes(), ["10.0.0.0/8"]);
}

/// Another AS at the same address is another peer, and replaces the first one.
#[test]
fn another_as() {
    let any = fibula_feeds::bgp::Neighbour { asn: None, ..neighbour() };
    let mut bench = Bench::established(any, &[IPV4, FOUR, AWARE]);
    bench.send(&update(PATH, "08 0a 08 0b")).unwrap();
    bench.session.disconnected(bench.now);
    bench.establish(&[IPV4, "0206 4104 0000fbff", AWARE]);
    bench.send(&update(PATH, "08 0b")).unwrap();
    assert_eq!(bench.rib.paths::<u32>(0, "11.0.0.0/8".parse().unwrap()).len(), 2);
    bench.send(&message(END_V4)).unwrap();
    assert_eq!(bench.prefixes(), ["11.0.0.0/8"]);
    let paths = bench.rib.paths::<u32>(0, "11.0.0.0/8".parse().unwrap());
    assert_eq!(bench.rib.peers()[paths[0].peer].asn, 64511);
    assert_eq!(paths.len(), 1);
}

/// The process starts again from a checkpoint: the routes stay in use until the neighbour is back, or for the hold
/// time.
#[test]
fn from_a_checkpoint() {
    let mut bench = Bench::established(neighbour(), &[IPV4, FOUR, AWARE]);
    bench.send(&update(PATH, "08 0a 08 0b")).unwrap();
    let bytes = bench.rib.checkpoint("").to_bytes().unwrap();
    let again = || {
        let snapshot = Snapshot::from_bytes(bytes.clone()).unwrap();
        let mut bench = Bench::new(neighbour());
        bench.rib = Rib::from_snapshot(&snapshot, Preference::default()).unwrap().rib;
        let source = Some("bgp 192.0.2.9".into());
        let number = bench.rib.peer(Peer { address: Some(ADDRESS), asn: 64500, source });
        assert_eq!(number, 0);
        bench.session.adopt(number, bench.now);
        assert_eq!((bench.state(), bench.prefixes().len()), (SourceState::Lost, 2));
        bench
    };
    let mut late = again();
    late.tick(30).unwrap();
    assert!(late.prefixes().is_empty());
    let mut back = again();
    back.establish(&[IPV4, FOUR, AWARE]);
    back.send(&update(PATH, "08 0b")).unwrap();
    back.send(&message(END_V4)).unwrap();
    assert_eq!(back.prefixes(), ["11.0.0.0/8"]);
}
