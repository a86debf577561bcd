//! Timers: the times at which messages are sent and expected.

use fibula_feeds::bgp::Neighbour;
use fibula_feeds::{Protocol, SourceState};

use super::speaker::*;

#[test]
fn a_neighbour_has_four_minutes_for_its_open() {
    let mut bench = Bench::new(neighbour());
    bench.connect();
    bench.out.clear();
    assert_eq!(bench.session.deadline(), Some(bench.now + s(240)));
    bench.send(&open(&[])[..28]).unwrap(); // bytes alone do not help
    bench.tick(239).unwrap();
    assert!(bench.out.is_empty());
    let why = bench.tick(1).unwrap_err();
    let wanted = "neighbour 192.0.2.9: it was silent for longer than its hold time (sent: Hold Timer Expired)";
    assert_eq!(why, wanted);
    assert_eq!(bench.sent(), ["03 0400"]);
    assert_eq!(bench.session.deadline(), None);
}

/// The intervals of this number of KEEPALIVEs, in milliseconds.
fn keepalives(neighbour: Neighbour, theirs: &str, count: usize) -> Vec<u64> {
    let mut bench = Bench::new(neighbour);
    bench.connect();
    bench.send(&message(&format!("01 04 fbf4 {theirs} c0000209 00"))).unwrap();
    bench.out.clear();
    let mut gaps = Vec::new();
    for turn in 0..count {
        let (last, due) = (bench.now, bench.session.deadline().unwrap());
        bench.now = due - s(1) / 1000;
        bench.tick(0).unwrap();
        assert!(bench.out.is_empty());
        bench.now = due;
        bench.tick(0).unwrap();
        assert_eq!(bench.sent(), [KEEPALIVE], "also before the session is established");
        gaps.push((due - last).as_millis() as u64);
        if turn == 0 || turn % 2 == 1 {
            bench.send(&message(KEEPALIVE)).unwrap();
        }
    }
    gaps
}

/// With jitter (RFC 4271, 10): sessions that began together do not send together.
#[test]
fn keepalives_about_every_third_of_the_lower_hold_time() {
    for (ours, theirs, third) in
        [(90, "00b4", 30_000), (180, "005a", 30_000), (9, "ffff", 3_000), (90, "0003", 1_000)]
    {
        let timed = |address: &str| {
            let (hold_time, address) = (ours, address.parse().unwrap());
            let quiet = s(1_000_000); // no other deadline comes between
            let neighbour = Neighbour { quiet, longest_resync: quiet, ..neighbour() };
            keepalives(Neighbour { hold_time, address, ..neighbour }, theirs, 100)
        };
        let gaps = timed("192.0.2.9");
        assert!(gaps.iter().all(|gap| (third * 3 / 4..=third).contains(gap)), "{gaps:?}");
        let (least, most) = (*gaps.iter().min().unwrap(), *gaps.iter().max().unwrap());
        assert!(most - least > third / 5, "they are spread: {gaps:?}");
        let together = timed("192.0.2.10").iter().zip(&gaps).filter(|(a, b)| a == b).count();
        assert!(together < 10, "{together} of 100");
    }
}

/// Silence is a lost connection, not an end: the routes stay in use. Any message restarts the hold timer.
#[test]
fn the_hold_timer() {
    let mut bench = Bench::established(neighbour(), &[IPV4, FOUR, REFRESH]);
    for kind in [update(PATH, "08 0a"), message(KEEPALIVE), message("05 00010001")] {
        bench.tick(89).unwrap();
        bench.send(&kind).unwrap();
    }
    bench.tick(89).unwrap();
    bench.out.clear();
    let why = bench.tick(1).unwrap_err();
    assert!(why.ends_with("(sent: Hold Timer Expired); its routes serve for 30 s"), "{why}");
    assert_eq!(bench.sent(), ["03 0400"]);
    assert_eq!((bench.state(), bench.prefixes().len()), (SourceState::Lost, 1));
    bench.tick(30).unwrap();
    assert_eq!((bench.state(), bench.prefixes().len()), (SourceState::Idle, 0));
    assert_eq!(
        bench.events().last().unwrap(),
        "the connection did not come back: the routes of 1 peers are gone"
    );
}

#[test]
fn no_hold_time_means_no_timers() {
    let mut bench = Bench::new(Neighbour { hold_time: 0, ..neighbour() });
    bench.connect();
    bench.send(&open(&[IPV4, FOUR, AWARE])).unwrap();
    bench.send(&message(KEEPALIVE)).unwrap();
    bench.send(&message(END_V4)).unwrap();
    bench.out.clear();
    assert_eq!(bench.session.deadline(), None);
    bench.tick(1_000_000).unwrap();
    assert!(bench.out.is_empty() && bench.state() == SourceState::Up);
}

/// The table of a neighbour without End-of-RIB is complete when it sends no UPDATE for a while; with End-of-RIB at the
/// mark, or after a long time.
#[test]
fn when_the_table_is_complete() {
    let mut bench = Bench::established(neighbour(), &[IPV4, FOUR]);
    for _ in 0..3 {
        bench.tick(4).unwrap();
        bench.send(&update(PATH, "08 0a")).unwrap();
    }
    bench.send(&message(KEEPALIVE)).unwrap();
    bench.tick(4).unwrap();
    bench.send(&message(KEEPALIVE)).unwrap(); // is no UPDATE
    assert_eq!(bench.state(), SourceState::Resync);
    assert_eq!(bench.session.deadline(), Some(bench.now + s(1)));
    bench.tick(1).unwrap();
    assert_eq!(bench.state(), SourceState::Up);

    let mut bench = Bench::established(neighbour(), &[IPV4, FOUR, AWARE]);
    for _ in 0..29 {
        bench.tick(10).unwrap();
        bench.send(&message(KEEPALIVE)).unwrap();
    }
    assert_eq!(bench.state(), SourceState::Resync);
    bench.tick(10).unwrap();
    assert_eq!(bench.state(), SourceState::Up);
}
