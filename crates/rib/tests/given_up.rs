//! What a source leaves behind is given up: engines of tables without routes, those tables, and peers.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::engines::{Behaviour, makers};
use fibula_core::{Attributes, Change, Update, Value, Vrf};
use fibula_rib::{Event, Live, LiveOptions, Peer, Preference, Reader, Rib, Snapshot};

const ANNOUNCE: Change<'_> = Change::Announce(Attributes::Values(&[Value::Int(1)]));

/// A table with this limit of engines, their number, and its events.
fn start(tables: usize) -> (Live, Arc<AtomicUsize>, Arc<Mutex<Vec<String>>>) {
    let (behaviour, events) = (Behaviour::default(), Arc::new(Mutex::new(Vec::new())));
    let (alive, log) = (Arc::clone(&behaviour.alive), Arc::clone(&events));
    let options = LiveOptions { tables, ..LiveOptions::default() };
    let on_event = move |event: Event| log.lock().unwrap().push(event.to_string());
    let live = Live::start(Rib::default(), &[0], makers(behaviour), options, on_event).unwrap();
    (live, alive, events)
}

fn apply(live: &Live, (vrf, peer): (Vrf, u32), prefix: &str, change: Change<'_>) {
    live.apply(&Update { vrf, peer, ..Update::new(prefix.parse().unwrap(), change) }).unwrap();
}

/// Whether the reader's table has a route of 10.0.0.1.
fn finds(reader: &mut Reader<u32>) -> bool {
    !reader.pin().engine().lookup(0x0a00_0001).is_none()
}

#[test]
fn tables_without_routes_have_no_engines() {
    let (live, alive, _) = start(8);
    let vrf = live.name_vrf("bmp/pre-policy");
    assert!(live.reader::<u32>(vrf).is_none() && live.followed() == [0], "no route so far");
    let engines = alive.load(Ordering::SeqCst);
    for round in 0..3 {
        apply(&live, (vrf, 0), "10.0.0.0/8", ANNOUNCE);
        apply(&live, (vrf, 0), "2001:db8::/32", ANNOUNCE);
        live.flush().unwrap();
        assert_eq!(live.followed(), [0, vrf], "{round}");
        let mut reader = live.reader::<u32>(vrf).unwrap();
        assert!(finds(&mut reader) && !live.tidy() && !live.tidy());
        apply(&live, (vrf, 0), "10.0.0.0/8", Change::Withdraw);
        live.flush().unwrap();
        assert!(!live.tidy() && !live.tidy(), "a route of IPv6 is left");
        apply(&live, (vrf, 0), "2001:db8::/32", Change::Withdraw);
        live.flush().unwrap();
        // A reader keeps its table, and sees what comes next.
        assert!(!live.tidy() && !live.tidy());
        assert!(!finds(&mut reader));
        apply(&live, (vrf, 0), "10.0.0.0/8", ANNOUNCE);
        live.flush().unwrap();
        assert!(finds(&mut reader));
        drop(reader);
        // Between two looks nothing may have changed.
        assert!(!live.tidy(), "it has a route");
        apply(&live, (vrf, 0), "10.0.0.0/8", Change::Withdraw);
        assert!(live.tidy());
        apply(&live, (vrf, 0), "10.0.0.0/8", ANNOUNCE);
        apply(&live, (vrf, 0), "10.0.0.0/8", Change::Withdraw);
        assert!(live.tidy() && live.followed() == [0, vrf]);
        live.flush().unwrap();
        assert!(!live.tidy() && live.followed() == [0], "{round}");
        assert_eq!(alive.load(Ordering::SeqCst), engines, "{round}");
    }
    // The engines that the program asked for stay: a router's reader may come later than the feed.
    assert_eq!(live.vrf("bmp/pre-policy"), vrf);
    assert!(!live.tidy() && !live.tidy());
    assert!(!finds(&mut live.reader::<u32>(vrf).unwrap()));
}

/// The first tables with routes do not take all engines, whichever session fills them.
#[test]
fn sessions_share_the_engines() {
    let (live, _, events) = start(5);
    let session = |name: &str| {
        live.peer(Peer { source: Some(format!("{name} pre-policy").into()), ..Peer::default() })
    };
    let peers = ["bmp 192.0.2.1", "bmp 192.0.2.2", "bmp 192.0.2.3"].map(session);
    let table = |peer: usize, name: &str| {
        let vrf = live.name_vrf(&format!("{peer}/{name}"));
        apply(&live, (vrf, peers[peer]), "10.0.0.0/8", ANNOUNCE);
        vrf
    };
    let large: Vec<Vrf> = (0..8).map(|at| table(0, &at.to_string())).collect();
    assert_eq!(live.followed(), [0, large[0], large[1], large[2], large[3]]);
    let said = |events: &Mutex<Vec<String>>| std::mem::take(&mut *events.lock().unwrap());
    let refused = said(&events);
    assert_eq!(refused.len(), 4, "{refused:?}");
    assert!(refused[0].starts_with("table 0/4 has no engine"), "{refused:?}");

    // Both of the others get some, at the cost of the one with the most.
    let small = [table(1, "a"), table(2, "a"), table(2, "b")];
    assert_eq!(live.followed(), [0, large[0], large[1], small[0], small[1]]);
    let lost = said(&events);
    assert!(
        lost[0].starts_with("table 0/3 has no engine") && lost[0].contains("bmp 192.0.2.1 had")
    );
    assert_eq!(lost.len(), 3, "{lost:?}");
    // Nobody takes turns: further changes leave it so.
    for (at, &table) in large.iter().enumerate().take(8) {
        apply(&live, (table, peers[0]), "11.0.0.0/8", ANNOUNCE);
        apply(&live, (small[2], peers[2]), &format!("11.{at}.0.0/16"), ANNOUNCE);
    }
    assert_eq!(live.followed(), [0, large[0], large[1], small[0], small[1]]);
    assert!(said(&events).is_empty(), "each is reported once");

    // A place that becomes free is taken by the next table that changes, with all its routes.
    apply(&live, (small[0], peers[1]), "10.0.0.0/8", Change::Withdraw);
    live.flush().unwrap();
    assert!(live.tidy() && !live.tidy());
    apply(&live, (small[2], peers[2]), "12.0.0.0/8", ANNOUNCE);
    assert_eq!(live.followed(), [0, large[0], large[1], small[1], small[2]]);
    assert!(finds(&mut live.reader::<u32>(small[2]).unwrap()));
}

/// The number of a peer or VRF that was given up is not that of another one, and a checkpoint has no gaps.
#[test]
fn peers_and_vrfs_are_given_up() {
    let mut rib = Rib::default();
    assert!(rib.name_global("bmp"));
    let peers = [1, 2, 3, 4].map(|asn| rib.peer(Peer::new(None, asn)));
    let vrfs = ["bmp/a", "bmp/b", "bmp/c"].map(|name| rib.vrf(name));
    let update = |vrf, peer, prefix: &str, change| Update {
        vrf,
        peer,
        ..Update::new(prefix.parse().unwrap(), change)
    };
    for (vrf, peer) in [(0, 0), (0, 2), (vrfs[0], 0), (vrfs[1], 2), (vrfs[1], 3)] {
        rib.apply(&update(vrf, peers[peer], "10.0.0.0/8", ANNOUNCE), &mut ()).unwrap();
        rib.apply(&update(vrf, peers[peer], "2001:db8::/32", ANNOUNCE), &mut ()).unwrap();
    }
    assert!(!rib.forget_peer(peers[0]) && !rib.forget_vrf(vrfs[0]) && !rib.forget_vrf(0));
    assert_eq!((rib.empty_vrfs(), rib.paths_of::<u32>(peers[0])), (vec![vrfs[2]], 2));
    rib.peer_down(peers[0], &mut ());
    assert_eq!((rib.empty_vrfs(), rib.paths_of::<u32>(peers[0])), (vec![vrfs[0], vrfs[2]], 0));
    assert!(rib.forget_peer(peers[0]) && rib.forget_peer(peers[1]));
    assert!(rib.forget_vrf(vrfs[0]) && rib.forget_vrf(vrfs[2]));
    assert!(!rib.is_vrf(vrfs[0]) && rib.is_vrf(vrfs[1]) && rib.find_vrf("bmp/a").is_none());
    assert_eq!((rib.peers().len(), rib.peers().get(peers[0])), (2, None));

    let again = [1, 5].map(|asn| rib.peer(Peer::new(None, asn)));
    assert!(again.iter().all(|number| !peers.contains(number)), "{again:?}");
    let vrf = rib.vrf("bmp/a");
    assert!(!vrfs.contains(&vrf), "{vrf}");

    // Peer 3 starts over, and has announced one of its four paths.
    rib.mark_stale(peers[2]);
    rib.apply(&update(0, peers[2], "10.0.0.0/8", ANNOUNCE), &mut ()).unwrap();
    let file = Snapshot::from_bytes(rib.checkpoint("").to_bytes().unwrap()).unwrap();
    let mut restored = Rib::from_snapshot(&file, Preference::default()).unwrap().rib;
    let names = |rib: &Rib| rib.peers().iter().map(|(_, peer)| peer.asn).collect::<Vec<_>>();
    assert_eq!((names(&restored), names(&rib)), (vec![3, 4, 1, 5], vec![3, 4, 1, 5]));
    assert_eq!((restored.resyncing(), rib.resyncing()), (vec![0], vec![peers[2]]));
    for (rib, peer) in [(&mut restored, 0), (&mut rib, peers[2])] {
        assert_eq!((rib.paths_of::<u32>(peer), rib.paths_of::<u128>(peer)), (2, 2));
        rib.sweep(peer, &mut ());
        assert_eq!((rib.paths_of::<u32>(peer), rib.paths_of::<u128>(peer)), (1, 0));
        assert_eq!(rib.memory().routes, 3);
    }
    assert_eq!(restored.find_vrf("bmp/b"), Some(vrfs[1]));
    assert!(!restored.is_vrf(vrfs[0]) && restored.vrf("bmp/d") > vrf);
}
