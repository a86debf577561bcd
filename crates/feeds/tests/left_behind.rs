//! What a source leaves behind is given up: peers and tables of connections that do not come back.

use std::fmt::Write;
use std::time::Duration;

use crate::common::{Fake, Lines};
use fibula_feeds::{Clock, LiveFeed, Protocol, Session, SessionOptions};
use fibula_fib::FibOptions;
use fibula_rib::{Limits, Listener, Live, LiveOptions, Peer, Rib};

const HOLD: Duration = Duration::from_secs(60);

fn live() -> Live {
    live_with(Limits::default())
}

fn live_with(limits: Limits) -> Live {
    let options = LiveOptions { tables: 8, ..LiveOptions::default() };
    let mut rib = Rib::default();
    rib.set_limits(limits);
    assert!(rib.name_global("fpm"));
    Live::start(rib, &[0], FibOptions::default(), options, |_| {}).unwrap()
}

fn session(name: &str) -> Session {
    let peer = Peer { source: Some(name.into()), ..Peer::default() };
    let options = SessionOptions { peer, table: "bmp".into(), hold: HOLD, ..Default::default() };
    Session::new(|| Box::new(Lines::default()), options)
}

fn send(session: &mut Session, text: &str, clock: &Fake, feed: &mut dyn Listener) {
    session.bytes(clock.now(), text.as_bytes(), feed, &mut Vec::new()).unwrap();
}

/// Waits until the feed has nothing more to do.
fn rest(feed: &mut LiveFeed<'_, Fake>, clock: &Fake) {
    while let Some(wait) = feed.idle() {
        clock.sleep(wait);
    }
}

/// Number of peers and of tables.
fn sizes(live: &Live) -> (usize, usize) {
    live.with_rib(|rib| (rib.peers().len(), rib.vrfs().count()))
}

/// 60,000 peers and 4,096 tables of one connection, again and again under other names.
#[test]
fn a_flood_leaves_nothing_behind() {
    const PEERS: u32 = 60_000;
    const TABLES: u32 = 4096;
    let (live, clock) = (live(), Fake::default());
    let mut feed = LiveFeed::with_clock(&live, clock.clone()).giving_up_after(HOLD);
    let mut honest = session("bmp 192.0.2.1");
    honest.connected(clock.now(), &mut feed, &mut Vec::new()).unwrap();
    send(&mut honest, "peer 0 7\nvrf 1 honest\nin 1\n+ 0 10.0.0.0/8 1\n", &clock, &mut feed);
    assert_eq!(sizes(&live), (1, 1));

    let mut hostile = session("bmp 192.0.2.2");
    let mut largest = 0;
    for round in 0..2 {
        let mut text = String::new();
        for table in 1..=TABLES {
            writeln!(text, "vrf {table} {round}-{table}").unwrap();
        }
        for peer in 0..PEERS {
            // Most are in one table: the end of all of them reads it a few times, not once a peer.
            let table = if peer < TABLES { 1 + peer } else { 1 };
            let (asn, [_, a, b, c]) = (round * PEERS + peer, peer.to_be_bytes());
            writeln!(text, "peer {peer} {asn}\nin {table}").unwrap();
            writeln!(text, "+ {peer} 10.{a}.{b}.{c}/32 1").unwrap();
        }
        hostile.connected(clock.now(), &mut feed, &mut Vec::new()).unwrap();
        send(&mut hostile, &text, &clock, &mut feed);
        assert_eq!(sizes(&live), (1 + PEERS as usize, 1 + TABLES as usize));
        assert_eq!(live.followed().len(), 8);
        let numbers = live.with_rib(|rib| rib.peers().iter().map(|(n, _)| n).collect::<Vec<_>>());
        assert!(numbers[1] > largest, "numbers are not given again");
        largest = *numbers.last().unwrap();

        // The routes stay for the hold time, and what they leave behind for another.
        hostile.disconnected(clock.now());
        rest(&mut feed, &clock);
        assert_eq!(sizes(&live), (1 + PEERS as usize, 1 + TABLES as usize));
        clock.sleep(HOLD);
        hostile.tick(clock.now(), &mut feed, &mut Vec::new()).unwrap();
        assert_eq!(live.with_rib(|rib| rib.memory().routes), 1);
        assert_eq!(sizes(&live), (1 + PEERS as usize, 1 + TABLES as usize));
        assert!(feed.idle().is_some());
        rest(&mut feed, &clock);
        assert_eq!(sizes(&live), (1, 1));
        assert_eq!(live.followed().len(), 2);
        let bytes = live.with_rib(|rib| rib.memory().route_bytes);
        assert!(bytes < 1 << 20, "{bytes}");
    }
    let (honest, name) = live.with_rib(|rib| (rib.find_vrf("bmp/honest"), rib.peers()[0].asn));
    assert_eq!((live.with_rib(|rib| rib.len::<u32>(honest.unwrap())), name), (1, 7));
}

/// Each of many connections names as many peers as it may; those with few are not refused.
#[test]
fn peers_of_all_sources_are_bounded() {
    const PEERS: usize = 1000;
    let live = live_with(Limits { peers: PEERS, ..Limits::default() });
    let clock = Fake::default();
    let mut feed = LiveFeed::with_clock(&live, clock.clone()).giving_up_after(HOLD);
    let peers = |source: u32, count: u32| {
        (0..count).fold(String::new(), |mut text, peer| {
            writeln!(text, "peer {peer} {}", source << 16 | peer).unwrap();
            text
        })
    };
    let mut connect = |session: &mut Session, text: &str| {
        session.connected(clock.now(), &mut feed, &mut Vec::new()).unwrap();
        let done = session.bytes(clock.now(), text.as_bytes(), &mut feed, &mut Vec::new());
        done.map_err(|error| error.to_string())
    };
    let count = || live.with_rib(|rib| rib.peers().len());

    let mut first = session("bmp 192.0.2.1");
    connect(&mut first, &peers(1, 700)).unwrap();
    let refused = connect(&mut session("bmp 192.0.2.2"), &peers(2, 700)).unwrap_err();
    assert!(refused.contains("there are 1000 peers, which is the limit, 300 of them"), "{refused}");
    assert_eq!(count(), PEERS);

    connect(&mut session("bmp 192.0.2.3"), &peers(3, 256)).unwrap();
    connect(&mut session("bmp 192.0.2.4"), &peers(4, 257)).unwrap_err();
    assert_eq!(count(), PEERS + 2 * 256);

    // Those that are known come back.
    first.disconnected(clock.now());
    connect(&mut first, &peers(1, 700)).unwrap();
    assert_eq!(count(), PEERS + 2 * 256);
}

/// A connection goes on with a table of its own that was given up meanwhile, and with its others.
#[test]
fn a_table_that_was_given_up_comes_back() {
    let (live, clock) = (live(), Fake::default());
    let mut feed = LiveFeed::with_clock(&live, clock.clone()).giving_up_after(HOLD);
    let mut session = session("bmp 192.0.2.1");
    session.connected(clock.now(), &mut feed, &mut Vec::new()).unwrap();
    let begin = "peer 0 7\nvrf 1 a\nvrf 2 b\nin 2\n+ 0 11.0.0.0/8 1\n+ 0 12.0.0.0/8 1\nin 1\n";
    send(&mut session, begin, &clock, &mut feed);
    let table = |name: &str| live.with_rib(|rib| rib.find_vrf(name));
    let routes = |name: &str| live.with_rib(|rib| rib.len::<u32>(table_of(rib, name)));
    let mut before = None;
    for _ in 0..3 {
        send(&mut session, "+ 0 10.0.0.0/8 1\n", &clock, &mut feed);
        let now = table("bmp/a");
        assert!(now.is_some() && now != before, "{now:?}");
        assert!(live.current::<u32>(now.unwrap()).is_some());
        before = now;
        send(&mut session, "- 0 10.0.0.0/8\n", &clock, &mut feed);
        live.flush().unwrap();
        rest(&mut feed, &clock);
        assert_eq!((table("bmp/a"), routes("bmp/b")), (None, 2));
        // Nothing to withdraw; and the other table is the same.
        send(&mut session, "- 0 10.0.0.0/8\nin 2\n- 0 12.0.0.0/8\n", &clock, &mut feed);
        assert_eq!((table("bmp/a"), routes("bmp/b")), (None, 1));
        send(&mut session, "+ 0 12.0.0.0/8 1\nin 1\n", &clock, &mut feed);
    }
}

fn table_of(rib: &Rib, name: &str) -> u32 {
    rib.find_vrf(name).unwrap()
}

/// A peer that comes back in time is the same; one that its router does not name again is given up.
#[test]
fn peers_are_released_by_the_next_connection() {
    let (live, clock) = (live(), Fake::default());
    let mut feed = LiveFeed::with_clock(&live, clock.clone()).giving_up_after(HOLD);
    let mut session = session("bmp 192.0.2.1");
    let peers = || -> Vec<(u32, u32)> {
        live.with_rib(|rib| rib.peers().iter().map(|(number, peer)| (number, peer.asn)).collect())
    };
    let all = "peer 0 10\npeer 1 11\npeer 2 12\n+ 0 10.0.0.0/8 1\n+ 1 10.0.0.0/8 1\n";
    for text in [all, "peer 0 12\npeer 1 10\n+ 1 10.0.0.0/8 1\n", all] {
        session.connected(clock.now(), &mut feed, &mut Vec::new()).unwrap();
        send(&mut session, text, &clock, &mut feed);
        clock.sleep(SessionOptions::default().quiet);
        session.tick(clock.now(), &mut feed, &mut Vec::new()).unwrap();
        assert!(session.is_complete());
    }
    assert_eq!(peers(), [(0, 10), (1, 11), (2, 12)], "within the hold time");
    session.connected(clock.now(), &mut feed, &mut Vec::new()).unwrap();
    send(&mut session, "peer 0 12\npeer 1 10\n+ 1 10.0.0.0/8 1\n", &clock, &mut feed);
    clock.sleep(SessionOptions::default().quiet);
    session.tick(clock.now(), &mut feed, &mut Vec::new()).unwrap();
    rest(&mut feed, &clock);
    assert_eq!(peers(), [(0, 10), (2, 12)]);
    // The table's peers without routes are nobody's when a feed begins.
    let mut feed = LiveFeed::with_clock(&live, clock.clone()).giving_up_after(HOLD);
    rest(&mut feed, &clock);
    assert_eq!(peers(), [(0, 10)]);
}
