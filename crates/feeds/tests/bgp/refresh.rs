//! Route refresh (RFC 2918), with and without its beginning and end (RFC 7313).

use fibula_feeds::{Protocol, SourceState};

use super::speaker::*;

const ASK: [&str; 2] = ["05 00010001", "05 00020001"];

fn refresh(bench: &mut Bench) -> bool {
    bench.session.refresh(bench.now, &mut bench.rib, &mut bench.out).unwrap()
}

#[test]
fn is_requested_where_it_is_supported() {
    assert!(!refresh(&mut Bench::new(neighbour())));
    let mut bench = Bench::established(neighbour(), &[IPV4, IPV6, FOUR]);
    assert!(!refresh(&mut bench) && bench.out.is_empty());
    for known in [REFRESH, ENHANCED] {
        let mut bench = Bench::established(neighbour(), &[IPV4, IPV6, FOUR, known]);
        assert!(refresh(&mut bench));
        assert_eq!(bench.sent(), ASK);
    }
}

/// Routes that the neighbour does not announce between the marks are removed at the end mark, and stay in use until
/// then.
#[test]
fn marks_sweep() {
    let mut bench = Bench::established(neighbour(), &[IPV4, IPV6, FOUR, AWARE, REFRESH, ENHANCED]);
    bench.send(&update(PATH, "08 0a 08 0b")).unwrap();
    bench.send(&update_v6("10 2001 10 2002")).unwrap();
    bench.send(&[message(END_V4), message(END_V6)].concat()).unwrap();
    assert!(refresh(&mut bench));
    bench.sent();
    bench.send(&message("05 00010101")).unwrap();
    assert_eq!(bench.state(), SourceState::Resync);
    assert_eq!(bench.sent(), [ASK[1]], "a table marks both families");
    bench.send(&update(PATH, "08 0b")).unwrap();
    bench.send(&message("05 00010201")).unwrap();
    assert_eq!(bench.prefixes().len(), 4);
    bench.send(&message("05 00020101")).unwrap();
    bench.send(&update_v6("10 2002")).unwrap();
    bench.send(&message("05 00020201")).unwrap();
    assert_eq!(bench.prefixes(), ["11.0.0.0/8", "2002::/16"]);
    assert_eq!((bench.state(), bench.out.len()), (SourceState::Up, 0));
}

/// The end mark never comes: after a long time the refresh counts as complete.
#[test]
fn a_refresh_that_does_not_end() {
    let mut bench = Bench::established(neighbour(), &[IPV4, FOUR, AWARE, ENHANCED]);
    bench.send(&update(PATH, "08 0a 08 0b")).unwrap();
    bench.send(&message(END_V4)).unwrap();
    bench.send(&message("05 00010201")).unwrap(); // an end without a beginning
    assert_eq!((bench.state(), bench.prefixes().len()), (SourceState::Up, 2));
    bench.send(&message("05 00010101")).unwrap();
    bench.send(&update(PATH, "08 0b")).unwrap();
    for _ in 0..30 {
        assert_eq!(bench.state(), SourceState::Resync);
        bench.tick(10).unwrap();
        bench.send(&message(KEEPALIVE)).unwrap();
    }
    assert_eq!((bench.state(), bench.prefixes().len()), (SourceState::Up, 1));
}

/// The neighbour requests our routes: we have none, and send the begin and end marks.
#[test]
fn answers() {
    let mut bench = Bench::established(neighbour(), &[IPV4, FOUR, ENHANCED]);
    bench.send(&message("05 00010001")).unwrap();
    assert_eq!(bench.sent(), ["05 00010101", "05 00010201"]);
    // Requests of another family, with an unknown subtype, with filters that were not negotiated.
    bench.send(&message("05 00020001")).unwrap();
    bench.send(&message("05 0001ff01")).unwrap();
    assert!(bench.out.is_empty());
    bench.send(&message("05 00010001 01400000")).unwrap();
    assert_eq!(bench.sent().len(), 2);
    let mut plain = Bench::established(neighbour(), &[IPV4, FOUR, REFRESH]);
    plain.send(&message("05 00010001")).unwrap();
    plain.send(&message("05 00010101 00")).unwrap();
    assert!(plain.out.is_empty());
}

#[test]
fn wrong_lengths() {
    let mut bench = Bench::established(neighbour(), &[IPV4, FOUR, ENHANCED]);
    let why = bench.send(&message("05 00010101 00")).unwrap_err();
    assert!(why.contains("a ROUTE-REFRESH has a length of 24 bytes"), "{why}");
    let quoted = "ffffffffffffffffffffffffffffffff0018050001010100";
    assert_eq!(bench.sent(), [format!("03 0701{quoted}")]);
}

/// A neighbour that sends requests and never reads does not fill our memory.
#[test]
fn answers_are_bounded() {
    let mut bench = Bench::established(neighbour(), &[IPV4, FOUR, ENHANCED]);
    let many = message("05 00010001").repeat(1000);
    let why = (0..1000).find_map(|_| bench.send(&many).err()).unwrap();
    assert!(why.contains("requests routes and does not read the answers"), "{why}");
    assert!(bench.out.len() < 70_000);
    assert_eq!(bench.sent().last().unwrap(), "03 0608");
}
