//! VRFs that appear while a table lives, the history of its changes, and limits.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::engines::{Behaviour, makers};
use fibula_core::{Addr, Attributes, Change, Update, Value, Vrf};
use fibula_rib::{
    Event, FeedEvent, Limits, Live, LiveOptions, Peer, Preference, Rib, Snapshot, TableError,
};

fn update(vrf: Vrf, prefix: &str, peer: u32, value: Option<u64>) -> Update<'static> {
    let change = match value {
        None => Change::Withdraw,
        Some(0) => Change::Announce(Attributes::Values(&[Value::Int(0)])),
        Some(1) => Change::Announce(Attributes::Values(&[Value::Int(1)])),
        Some(_) => panic!("0 or 1"),
    };
    Update { vrf, peer, ..Update::new(prefix.parse().unwrap(), change) }
}

/// The value that the published engine gives, if any.
fn answer<A: Addr>(live: &Live, vrf: Vrf, addr: A) -> Option<Value<'static>> {
    let generation = live.current::<A>(vrf)?;
    let hop = generation.engine().lookup(addr);
    let set = generation.attributes(hop)?;
    Some(match set.values()[0] {
        Value::Int(n) => Value::Int(n),
        ref other => panic!("{other:?}"),
    })
}

#[test]
fn tables_appear_and_are_followed() {
    let events = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&events);
    let options = LiveOptions { history: 3, tables: 3, ..LiveOptions::default() };
    let mut rib = Rib::default();
    assert!(rib.name_global("fpm") && !rib.name_global("other") && !rib.name_global(""));
    let on_event = move |event: Event| log.lock().unwrap().push(event.to_string());
    let live = Live::start(rib, &[0], makers(Behaviour::default()), options, on_event).unwrap();
    let peer = live.peer(Peer { source: Some("fpm".into()), ..Peer::default() });
    let names = ["fpm", "fpm/100", "bgp", "fpm/100", "late", "late"];
    assert_eq!(names.map(|name| live.vrf(name)), [0, 1, 2, 1, 3, 3]);
    assert_eq!(live.followed(), [0, 1, 2]);
    let refused = events.lock().unwrap().join("\n");
    assert!(
        refused.starts_with("table late has no engine") && refused.lines().count() == 1,
        "{refused}"
    );

    for vrf in 0..4 {
        live.apply(&update(vrf, "10.0.0.0/8", peer, Some(u64::from(vrf) % 2))).unwrap();
        live.apply(&update(vrf, "2001:db8::/32", peer, Some(1))).unwrap();
    }
    live.apply(&update(1, "10.0.0.0/8", peer, None)).unwrap();
    live.flush().unwrap();
    let v4 = |vrf| answer::<u32>(&live, vrf, 0x0a00_0001);
    assert_eq!(
        [v4(0), v4(1), v4(2), v4(3)],
        [Some(Value::Int(0)), None, Some(Value::Int(0)), None]
    );
    assert_eq!(answer::<u128>(&live, 1, 0x2001_0db8 << 96), Some(Value::Int(1)));
    assert!(live.with_rib(|rib| rib.longest::<u32>(3, 0x0a00_0001).is_some()));

    // The history has the last three of nine changes.
    let since = live.history().since(1, 10);
    assert_eq!((since.changes.len(), since.lost, since.next), (3, 6, 10));
    let last = &since.changes[2];
    assert_eq!((last.vrf, last.prefix.to_string().as_str(), last.peer), (1, "10.0.0.0/8", peer));
    assert!(last.best.is_none() && since.changes[1].best.is_some());
    assert!(!live.history().wait(10, Duration::ZERO));
    // Whether a route was withdrawn, or went with its peer.
    live.event(FeedEvent::Down(peer)).unwrap();
    let gone = live.history().since(10, 10);
    assert!(!gone.changes.is_empty() && gone.changes.iter().all(|change| change.is_of_end));
    assert!(since.changes.iter().all(|change| !change.is_of_end));
}

/// A newly followed VRF has the routes that the RIB has already.
#[test]
fn a_table_that_is_followed_late_is_whole() {
    let mut rib = Rib::default();
    let (vrf, peer) = (rib.vrf("bmp/pre-policy"), rib.peer(Peer::new(None, 1)));
    rib.apply(&update(vrf, "10.0.0.0/8", peer, Some(1)), &mut ()).unwrap();
    let makers = makers(Behaviour::default());
    let live = Live::start(rib, &[], makers, LiveOptions::default(), |_| {}).unwrap();
    assert!(live.current::<u32>(vrf).is_none());
    assert_eq!(live.vrf("bmp/pre-policy"), vrf);
    assert_eq!(answer::<u32>(&live, vrf, 0x0a00_0001), Some(Value::Int(1)));
}

#[test]
fn names_and_sources_survive_a_checkpoint() {
    let mut rib = Rib::default();
    assert!(rib.name_global("fpm"));
    let vrf = rib.vrf("fpm/100");
    let sources = [None, Some("bmp 192.0.2.1 pre-policy".into()), Some("bgp".into())];
    let peers = sources.clone().map(|source| rib.peer(Peer { source, ..Peer::new(None, 7) }));
    assert_eq!(peers, [0, 1, 2]);
    rib.apply(&update(vrf, "10.0.0.0/8", peers[1], Some(1)), &mut ()).unwrap();
    let file = Snapshot::from_bytes(rib.checkpoint("").to_bytes().unwrap()).unwrap();
    let again = Rib::from_snapshot(&file, Preference::default()).unwrap().rib;
    assert!(again.peers().iter().map(|(_, peer)| peer.source.clone()).eq(sources));
    assert_eq!(
        ["fpm", "fpm/100", "bgp"].map(|name| again.find_vrf(name)),
        [Some(0), Some(vrf), None]
    );
    assert_eq!((again.paths_of::<u32>(1), again.paths_of::<u32>(2)), (1, 0));
}

#[test]
fn paths_beyond_the_limits_are_refused_and_existing_ones_stay() {
    let mut rib = Rib::default();
    let peers = [1, 2].map(|asn| rib.peer(Peer::new(None, asn)));
    rib.set_limits(Limits { peer_paths: 2, paths: 3, ..Limits::default() });
    let mut apply = |prefix: &str, peer: usize, value| {
        rib.apply(&update(0, prefix, peers[peer], value), &mut ()).map(|()| rib.len::<u32>(0))
    };
    assert_eq!(apply("10.0.0.0/8", 0, Some(0)), Ok(1));
    assert_eq!(apply("11.0.0.0/8", 0, Some(0)), Ok(2));
    // The limit of one peer; its existing paths may still change.
    let full = |most, of_peer| Err(TableError::Full { most, of_peer });
    assert_eq!(apply("12.0.0.0/8", 0, Some(0)), full(2, true));
    assert_eq!(apply("11.0.0.0/8", 0, Some(1)), Ok(2));
    assert_eq!(apply("12.0.0.0/8", 1, Some(0)), Ok(3));
    // The limit of all peers together.
    assert_eq!(apply("13.0.0.0/8", 1, Some(0)), full(3, false));
    assert_eq!(apply("12.0.0.0/8", 1, Some(1)), Ok(3));
    assert_eq!(apply("10.0.0.0/8", 0, None), Ok(2));
    assert_eq!(apply("13.0.0.0/8", 1, Some(1)), Ok(3));
    let (one, other) = (rib.paths_of::<u32>(peers[0]), rib.paths_of::<u32>(peers[1]));
    assert_eq!((one, other), (1, 2));
}
