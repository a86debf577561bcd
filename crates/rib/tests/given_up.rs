//! What a source leaves behind is given up: engines of tables without routes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::engines::{Behaviour, makers};
use fibula_core::{Attributes, Change, Update, Value, Vrf};
use fibula_rib::{Event, Live, LiveOptions, Peer, Reader, Rib};

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
    for at in 0..8 {
        apply(&live, (large[at], peers[0]), "11.0.0.0/8", ANNOUNCE);
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
