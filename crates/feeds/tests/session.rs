//! Sessions: successive connections, cut anywhere, compared with the routes of the other end.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{Lines, Paths, paths};
use fibula_core::{AnyPrefix, Prefix};
use fibula_feeds::{Event, FeedError, Protocol, Session, SessionOptions};
use fibula_rib::{Path, Peer, Preference, Rib, Snapshot};
use fibula_testkit::Rng;

fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn options() -> SessionOptions {
    SessionOptions { quiet: s(5), longest_resync: s(60), hold: s(120), ..Default::default() }
}

type EventLog = Arc<Mutex<Vec<String>>>;

fn session(options: SessionOptions) -> (Session, EventLog) {
    let log = EventLog::default();
    let events = Arc::clone(&log);
    let session = Session::new(|| Box::new(Lines::default()), options)
        .with_events(move |event| events.lock().unwrap().push(event.to_string()));
    (session, log)
}

fn p(text: &str) -> AnyPrefix {
    text.parse().unwrap()
}

fn prefix(rng: &mut Rng) -> AnyPrefix {
    match rng.chance(0.5) {
        true => {
            Prefix::masked(rng.addr::<u32>() & 0xc000_0001, rng.below(33) as u8).unwrap().into()
        }
        false => Prefix::masked(rng.addr::<u128>() & 7, 120 + rng.below(9) as u8).unwrap().into(),
    }
}

/// A daemon's dump of its whole table: the peers under new indices each time, and their routes.
fn dump(peers: &[u32], table: &Paths, marks: bool) -> String {
    let mut text = String::new();
    for (index, asn) in peers.iter().enumerate() {
        text += &format!("peer {index} {asn}\n");
        let of_peer = table.iter().filter(|((peer, _), _)| peer == asn);
        of_peer.for_each(|((_, p), value)| text += &format!("+ {index} {p} {value}\n"));
        if marks {
            text += &format!("end {index}\n");
        }
    }
    text
}

/// Random daemons: routes change while the connection is there and while it is not; connections break
/// anywhere, inside dumps and inside lines. Once a connection has sent everything, the table is the daemon's. A route
/// that exists all the time is never missing meanwhile.
#[test]
fn tables_converge_whatever_breaks() {
    let (mut broken, mut stale_seen) = (0, 0);
    for seed in 0..40 {
        let mut rng = Rng::new(seed);
        let marks = seed % 2 == 0;
        let (mut session, _) = session(options());
        let mut rib = Rib::default();
        let mut peers = vec![64500, 64501, 64502];
        let mut table = Paths::new();
        let route: Prefix<u32> = "203.0.113.0/24".parse().unwrap();
        let stable = (64500, route.into());
        table.insert(stable, 1);
        let mut now = s(0);
        let mut had_stable = false;
        for _ in 0..30 {
            for _ in 0..rng.below(20) {
                let key = (peers[rng.below(3) as usize], prefix(&mut rng));
                if rng.chance(0.6) {
                    table.insert(key, rng.below(3));
                } else if key != stable {
                    table.remove(&key);
                }
            }
            peers.rotate_left(rng.below(3) as usize);
            session.connected(now, &mut rib, &mut Vec::new()).unwrap();
            let mut text = dump(&peers, &table, marks);
            let breaks = rng.chance(0.5);
            if breaks {
                text.truncate(rng.below(text.len() as u64) as usize);
                broken += 1;
            }
            let mut rest = text.as_bytes();
            while !rest.is_empty() {
                let (piece, behind) = rest.split_at((1 + rng.below(40) as usize).min(rest.len()));
                now += Duration::from_millis(10);
                session.bytes(now, piece, &mut rib, &mut Vec::new()).unwrap();
                rest = behind;
                let of_peer = |path: &Path| rib.peers()[path.peer].asn == stable.0;
                let has_stable = rib.paths::<u32>(0, route).iter().any(of_peer);
                had_stable |= has_stable;
                assert!(!had_stable || has_stable, "it serves all the time");
            }
            if breaks {
                stale_seen += rib.resyncing().len();
                session.disconnected(now);
                now += s(rng.below(100));
                session.tick(now, &mut rib, &mut Vec::new()).unwrap();
                continue;
            }
            now += s(4);
            session.tick(now, &mut rib, &mut Vec::new()).unwrap();
            assert!(!marks || rib.resyncing().is_empty(), "marks sweep at once");
            assert!(!session.is_complete(), "more peers may follow");
            now += s(1);
            session.tick(now, &mut rib, &mut Vec::new()).unwrap();
            assert!(session.is_complete() && rib.resyncing().is_empty());
            assert_eq!(paths(&rib), table);
            // Afterwards the table follows the daemon at once.
            let (asn, prefix) = (peers[1], prefix(&mut rng));
            if (asn, prefix) != stable {
                session
                    .bytes(now, format!("+ 1 {prefix} 9\n").as_bytes(), &mut rib, &mut Vec::new())
                    .unwrap();
                table.insert((asn, prefix), 9);
                assert_eq!(paths(&rib), table);
            }
            session.disconnected(now);
        }
    }
    assert!(broken > 300 && stale_seen > 300, "{broken} {stale_seen}");
}

#[test]
fn routes_of_a_lost_connection_stay_for_its_hold_time() {
    let (mut session, log) = session(options());
    let mut rib = Rib::default();
    assert_eq!(session.deadline(), None);
    session.connected(s(10), &mut rib, &mut Vec::new()).unwrap();
    session
        .bytes(
            s(10),
            b"peer 0 1\npeer 1 2\n+ 0 10.0.0.0/8 1\n+ 1 11.0.0.0/8 1\n",
            &mut rib,
            &mut Vec::new(),
        )
        .unwrap();
    session.disconnected(s(20));
    session.disconnected(s(90)); // nothing new
    assert_eq!(session.deadline(), Some(s(140)));
    session.bytes(s(30), b"+ 0 12.0.0.0/8 1\n", &mut rib, &mut Vec::new()).unwrap();
    session.tick(s(139), &mut rib, &mut Vec::new()).unwrap();
    assert_eq!(rib.memory().routes, 2, "no connection, no bytes");
    session.tick(s(140), &mut rib, &mut Vec::new()).unwrap();
    assert!(rib.is_empty());
    assert_eq!(
        *log.lock().unwrap(),
        ["the connection did not come back: the routes of 2 peers are gone"]
    );
    assert_eq!(session.deadline(), None);
    session.end(&mut rib).unwrap();
    assert_eq!(log.lock().unwrap().len(), 1, "there was nothing left to end");
}

/// A session of a peer that ends while the peer is being swept, and a peer that never comes back in a
/// stream that is never quiet.
#[test]
fn peers_end_in_the_middle_of_a_sweep() {
    let (mut session, log) = session(options());
    let mut rib = Rib::default();
    let hello = b"peer 0 1\npeer 1 2\npeer 2 3\n";
    session.connected(s(0), &mut rib, &mut Vec::new()).unwrap();
    session.bytes(s(0), hello, &mut rib, &mut Vec::new()).unwrap();
    for index in 0..3 {
        let routes = format!("+ {index} 10.{index}.0.0/16 1\n+ {index} 11.0.0.0/8 {index}\n");
        session.bytes(s(0), routes.as_bytes(), &mut rib, &mut Vec::new()).unwrap();
    }
    session.disconnected(s(1));
    session.connected(s(2), &mut rib, &mut Vec::new()).unwrap();
    assert_eq!(rib.resyncing(), [0, 1, 2]);
    session.bytes(s(2), b"peer 5 1\npeer 4 2\n", &mut rib, &mut Vec::new()).unwrap();
    // Peer 1 announces one route, then its session ends, and a new one begins with another route.
    session
        .bytes(s(3), b"+ 5 10.0.0.0/16 2\ndown 5\n+ 5 12.0.0.0/8 2\n", &mut rib, &mut Vec::new())
        .unwrap();
    assert_eq!(rib.resyncing(), [1, 2]);
    // Peer 2 is complete; peer 3 does not come back.
    session.bytes(s(4), b"+ 4 11.0.0.0/8 7\nend 4\nend 4\n", &mut rib, &mut Vec::new()).unwrap();
    assert_eq!(rib.resyncing(), [2]);
    let expected = |third: bool| {
        let mut all = BTreeMap::from([((1, p("12.0.0.0/8")), 2), ((2, p("11.0.0.0/8")), 7)]);
        if third {
            all.extend([((3, p("10.2.0.0/16")), 1), ((3, p("11.0.0.0/8")), 2)]);
        }
        all
    };
    assert_eq!(paths(&rib), expected(true));
    for second in 5..62 {
        session.bytes(s(second), b"+ 5 12.0.0.0/8 2\n", &mut rib, &mut Vec::new()).unwrap();
        session.tick(s(second), &mut rib, &mut Vec::new()).unwrap();
        assert_eq!(rib.resyncing(), [2]);
    }
    assert_eq!(session.deadline(), Some(s(62)), "it was never quiet");
    session.tick(s(62), &mut rib, &mut Vec::new()).unwrap();
    assert_eq!(paths(&rib), expected(false));
    let logged = log.lock().unwrap().clone();
    assert_eq!(logged, [1, 2].map(|peer| format!("peer {peer} has sent its whole table again")));
}

/// A router that sends one peer's table after the other: no peer's end is the end of the table. Changes of peers that
/// have ended do not delay it.
#[test]
fn a_connection_is_complete_when_no_more_peers_come() {
    let (mut session, _) = session(options());
    let mut rib = Rib::default();
    session.connected(s(0), &mut rib, &mut Vec::new()).unwrap();
    for index in 0..4 {
        let at = 4 * index;
        let text = format!("peer {index} {index}\n+ {index} 10.{index}.0.0/16 1\nend {index}\n");
        session.bytes(s(at), text.as_bytes(), &mut rib, &mut Vec::new()).unwrap();
        session.tick(s(at + 3), &mut rib, &mut Vec::new()).unwrap();
        assert!(!session.is_complete(), "after peer {index}");
    }
    for at in 13..17 {
        session.bytes(s(at), b"+ 0 10.0.0.0/16 2\n", &mut rib, &mut Vec::new()).unwrap();
        assert_eq!(session.deadline(), Some(s(17)));
    }
    session.tick(s(17), &mut rib, &mut Vec::new()).unwrap();
    assert!(session.is_complete());
    // A peer that appears later, and one without routes, is no reason to start over.
    session.bytes(s(18), b"peer 7 7\n+ 7 11.0.0.0/8 1\n", &mut rib, &mut Vec::new()).unwrap();
    assert!(session.is_complete() && session.deadline().is_none());
}

#[test]
fn streams_that_make_no_sense_are_errors_and_damage_is_an_event() {
    let (mut session, log) = session(SessionOptions { longest_record: 100, ..options() });
    let mut rib = Rib::default();
    session.connected(s(0), &mut rib, &mut Vec::new()).unwrap();
    session.bytes(s(0), b"what is this\n+ 0 10.0.0.0/8 1\n", &mut rib, &mut Vec::new()).unwrap();
    assert_eq!(log.lock().unwrap()[0], "record 1, byte 0: no such word");
    assert_eq!(rib.memory().routes, 1);
    let error = session.bytes(s(0), &[b'x'; 101], &mut rib, &mut Vec::new()).unwrap_err();
    assert!(matches!(error, FeedError::TooLong { bytes: 101 }), "{error}");
    session.connected(s(1), &mut rib, &mut Vec::new()).unwrap();
    let error = session.bytes(s(1), b"binary\n", &mut rib, &mut Vec::new()).unwrap_err();
    assert_eq!(error.to_string(), "not lines");
    // The routes of the broken connection are stale, not lost.
    session.connected(s(2), &mut rib, &mut Vec::new()).unwrap();
    session.tick(s(7), &mut rib, &mut Vec::new()).unwrap();
    assert!(rib.is_empty() && session.is_complete());
}

/// A process that starts again: its RIB comes from a checkpoint, written in the middle of a sweep; the
/// source adopts its peer and sweeps the routes of the checkpoint that the source no longer has.
#[test]
fn routes_of_a_checkpoint_are_adopted() {
    let speaker = Peer::new(Some([127, 0, 0, 1].into()), 7);
    let options = SessionOptions { peer: speaker.clone(), ..options() };
    let mut rib = Rib::default();
    let other = rib.peer(Peer::new(None, 9));
    let (mut first, _) = session(options.clone());
    first.connected(s(0), &mut rib, &mut Vec::new()).unwrap();
    first.bytes(s(0), b"+ 0 10.0.0.0/8 1\n+ 0 11.0.0.0/8 1\n", &mut rib, &mut Vec::new()).unwrap();
    first.disconnected(s(1));
    first.connected(s(2), &mut rib, &mut Vec::new()).unwrap();
    first.bytes(s(2), b"+ 0 11.0.0.0/8 2\n", &mut rib, &mut Vec::new()).unwrap();
    let bytes = rib.checkpoint("").to_bytes().unwrap();
    let snapshot = Snapshot::from_bytes(bytes).unwrap();
    let mut rib = Rib::from_snapshot(&snapshot, Preference::default()).unwrap().rib;
    assert_eq!(rib.memory().routes, 2);

    let (mut second, _) = session(options);
    let number = rib.peer(speaker);
    assert_ne!(number, other);
    second.adopt(number, s(2));
    second.connected(s(0), &mut rib, &mut Vec::new()).unwrap();
    second.bytes(s(1), b"+ 0 11.0.0.0/8 3\n+ 0 12.0.0.0/8 3\n", &mut rib, &mut Vec::new()).unwrap();
    assert_eq!(rib.memory().routes, 3);
    second.tick(s(6), &mut rib, &mut Vec::new()).unwrap();
    let expected = [((7, p("11.0.0.0/8")), 3), ((7, p("12.0.0.0/8")), 3)];
    assert_eq!(paths(&rib), BTreeMap::from(expected));
}

/// Events are typed, so that programs need not parse texts.
#[test]
fn events_are_typed() {
    let swept = Arc::new(Mutex::new(Vec::new()));
    let events = Arc::clone(&swept);
    let mut session = Session::new(|| Box::new(Lines::default()), options()).with_events(
        move |event| match event {
            Event::Swept { peer } => events.lock().unwrap().push(peer),
            other => panic!("{other}"),
        },
    );
    let mut rib = Rib::default();
    for at in [0, 1] {
        session.connected(s(at), &mut rib, &mut Vec::new()).unwrap();
        session
            .bytes(s(at), b"peer 0 1\n+ 0 10.0.0.0/8 1\nend 0\n", &mut rib, &mut Vec::new())
            .unwrap();
    }
    session.tick(s(6), &mut rib, &mut Vec::new()).unwrap();
    assert!(session.is_complete());
    assert_eq!(*swept.lock().unwrap(), [0], "on the first connection nothing was stale");
}

/// A source's routing instances are tables of their own, called by its table's name; peers with several
/// views are several peers, with the session's name as their source.
#[test]
fn tables_and_views_have_names() {
    let peer = Peer { source: Some("bmp 192.0.2.1".into()), ..Peer::default() };
    let (mut session, _) = session(SessionOptions { peer, table: "bmp".into(), ..options() });
    let mut rib = Rib::default();
    session.connected(s(0), &mut rib, &mut Vec::new()).unwrap();
    let text = "peer 0 7 pre\npeer 1 7 post\nvrf 5 pre\nvrf 6\nremark r1\n\
                in 5\n+ 0 10.0.0.0/8 1\nin 6\n+ 1 10.0.0.0/8 2\nin 9\n+ 1 11.0.0.0/8 3\n";
    session.bytes(s(1), text.as_bytes(), &mut rib, &mut Vec::new()).unwrap();
    let sources: Vec<_> =
        rib.peers().iter().map(|(_, peer)| peer.source.as_deref().unwrap()).collect();
    assert_eq!(sources, ["bmp 192.0.2.1 pre", "bmp 192.0.2.1 post"]);
    let [pre, main] = ["bmp/pre", "bmp"].map(|name| rib.find_vrf(name).unwrap());
    // An instance without a name is the source's own table.
    assert_eq!((rib.len::<u32>(pre), rib.len::<u32>(main), rib.len::<u32>(0)), (1, 2, 0));
    let figures = Protocol::figures(&session);
    assert_eq!((figures.connections, figures.announced, figures.withdrawn), (1, 3, 0));
    assert_eq!((figures.bytes, &*figures.remarks["text"]), (text.len() as u64, "r1"));
    // Another connection may give other numbers.
    session.connected(s(2), &mut rib, &mut Vec::new()).unwrap();
    session
        .bytes(
            s(2),
            b"peer 0 7 post\nvrf 1 pre\nin 1\n+ 0 12.0.0.0/8 1\n",
            &mut rib,
            &mut Vec::new(),
        )
        .unwrap();
    assert_eq!((rib.len::<u32>(pre), rib.peers().len()), (2, 2));
}

/// A withdrawal that the next record may turn into a replacement is passed on after a moment without one.
#[test]
fn held_back_withdrawals_are_passed_on_after_a_moment() {
    let ms = Duration::from_millis;
    let (mut session, _) = session(options());
    let mut rib = Rib::default();
    session.connected(s(0), &mut rib, &mut Vec::new()).unwrap();
    session.bytes(s(1), b"peer 0 7\n+ 0 10.0.0.0/8 1\nend 0\n", &mut rib, &mut Vec::new()).unwrap();
    session.tick(s(6), &mut rib, &mut Vec::new()).unwrap();
    assert!(session.is_complete() && session.deadline().is_none());
    for (at, is_there) in [(10, true), (20, false)] {
        session.bytes(s(7), b"hold 0 10.0.0.0/8\n", &mut rib, &mut Vec::new()).unwrap();
        assert_eq!(session.deadline(), Some(s(7) + ms(20)));
        session.tick(s(7) + ms(at), &mut rib, &mut Vec::new()).unwrap();
        assert_eq!(rib.len::<u32>(0) == 1, is_there);
    }
    assert!(session.is_complete() && session.deadline().is_none());
    // While a connection sends its table, the moment passes before the silence that completes it.
    session.connected(s(8), &mut rib, &mut Vec::new()).unwrap();
    session
        .bytes(s(8), b"peer 0 7\n+ 0 11.0.0.0/8 1\nhold 0 11.0.0.0/8\n", &mut rib, &mut Vec::new())
        .unwrap();
    session.tick(s(9), &mut rib, &mut Vec::new()).unwrap();
    assert_eq!((rib.len::<u32>(0), session.is_complete()), (0, false));
    session.tick(s(13), &mut rib, &mut Vec::new()).unwrap();
    assert!(session.is_complete());
}

/// Peers of a checkpoint are removed if their source does not come back.
#[test]
fn adopted_peers_go_after_the_hold_time() {
    let (mut session, _) = session(options());
    let mut rib = Rib::default();
    let peer = rib.peer(Peer::new(None, 7));
    session.connected(s(0), &mut rib, &mut Vec::new()).unwrap();
    session.bytes(s(0), b"peer 0 7\n+ 0 10.0.0.0/8 1\n", &mut rib, &mut Vec::new()).unwrap();
    let (mut after, _) = self::session(options());
    Protocol::adopt(&mut after, peer, s(10));
    assert_eq!(after.deadline(), Some(s(130)));
    after.tick(s(129), &mut rib, &mut Vec::new()).unwrap();
    assert_eq!(rib.len::<u32>(0), 1);
    after.tick(s(130), &mut rib, &mut Vec::new()).unwrap();
    assert_eq!(rib.len::<u32>(0), 0);
}
