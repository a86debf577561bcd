//! The clock: who has to be heard, and when.

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

#[test]
fn keepalives_every_third_of_the_lower_hold_time() {
    for (ours, theirs, third) in
        [(90, "00b4", 30), (180, "005a", 30), (9, "ffff", 3), (90, "0003", 1)]
    {
        let mut bench = Bench::new(Neighbour { hold_time: ours, ..neighbour() });
        bench.connect();
        bench.send(&message(&format!("01 04 fbf4 {theirs} c0000209 00"))).unwrap();
        bench.out.clear();
        bench.tick(third).unwrap();
        assert_eq!(bench.sent(), [KEEPALIVE], "also before the session is established");
        bench.send(&message(KEEPALIVE)).unwrap();
        for _ in 0..5 {
            bench.tick(third - 1).unwrap();
            assert!(bench.out.is_empty());
            bench.send(&message(KEEPALIVE)).unwrap();
            bench.tick(1).unwrap();
            assert_eq!(bench.sent(), [KEEPALIVE]);
        }
    }
}

/// Silence is a lost connection, not an end: the routes serve on. Any message ends the silence.
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

/// A neighbour without End-of-RIB has said everything when it sends no UPDATE for a while; one with it when
/// it says so, or after a long time.
#[test]
fn when_everything_was_said() {
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
