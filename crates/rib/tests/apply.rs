//! Updates of a live table: the same routes as in a RIB alone, room in the log, and an error in the middle.

use std::time::Duration;

use fibula_core::{AnyPrefix, Attributes, Change, Update, Value, Vrf};
use fibula_rib::{FeedEvent, Limits, Listener, Live, LiveOptions, Pacing, Peer, Rib, TableError};
use fibula_testkit::Rng;

use crate::engines::{Behaviour, makers};

const VRFS: [Vrf; 3] = [0, 1, 2];

/// Follows two of the three VRFs. The log has room for few prefixes.
fn live(rib: Rib) -> Live {
    let pacing = Pacing { bucket: Duration::from_millis(1), capacity: 3, ..Pacing::default() };
    let options = LiveOptions { pacing, ..LiveOptions::default() };
    let engines = makers(Behaviour::default());
    Live::start(rib, &VRFS[..2], engines, options, |event| panic!("{event}")).unwrap()
}

/// Updates of few prefixes of both families in all VRFs.
fn updates<'a>(count: usize, values: &'a [[Value<'a>; 1]]) -> Vec<Update<'a>> {
    let mut rng = Rng::new(3);
    let update = |_| {
        let low = rng.below(200) as u8;
        let prefix = match rng.chance(0.5) {
            true => AnyPrefix::host([10, 0, 0, low].into()),
            false => AnyPrefix::host([0x2001, 0, 0, 0, 0, 0, 0, u16::from(low)].into()),
        };
        let value = Attributes::Values(&values[rng.below(values.len() as u64) as usize]);
        let change = if rng.chance(0.7) { Change::Announce(value) } else { Change::Withdraw };
        let vrf = VRFS[rng.below(3) as usize];
        Update { vrf, peer: rng.below(2) as u32, ..Update::new(prefix, change) }
    };
    (0..count).map(update).collect()
}

fn contents(rib: &Rib) -> String {
    let of = |vrf| {
        let v4: Vec<_> = rib.iter::<u32>(vrf).map(|(at, path)| format!("{at} {path:?}")).collect();
        let v6: Vec<_> = rib.iter::<u128>(vrf).map(|(at, path)| format!("{at} {path:?}")).collect();
        format!("{v4:?} {v6:?}")
    };
    format!("{} {:?}", rib.sequence(), VRFS.map(of))
}

#[test]
fn a_live_table_has_the_routes_of_a_rib() {
    let values: Vec<_> = (0..50).map(|value| [Value::Int(value)]).collect();
    let updates = updates(3_000, &values);
    let mut plain = Rib::default();
    for update in &updates {
        plain.apply(update, &mut ()).unwrap();
    }
    let live = live(Rib::default());
    updates.iter().for_each(|update| live.apply(update).unwrap());
    assert_eq!(live.with_rib(contents), contents(&plain));
    live.flush().unwrap();
    for vrf in &VRFS[..2] {
        let table = live.current::<u32>(*vrf).unwrap();
        for low in 0..200 {
            let addr = u32::from_be_bytes([10, 0, 0, low]);
            let expected =
                plain.longest::<u32>(*vrf, addr).map(|(_, best)| format!("{:?}", best.attributes));
            let found = table.attributes(table.engine().lookup(addr)).map(|set| format!("{set:?}"));
            assert_eq!(found, expected, "{vrf} 10.0.0.{low}");
        }
    }
}

#[test]
fn those_before_a_refused_one_are_applied() {
    let mut rib = Rib::default();
    rib.set_limits(Limits { paths: 700, ..Limits::default() });
    let live = live(rib);
    let values = [Value::Int(1)];
    let change = Change::Announce(Attributes::Values(&values));
    let of =
        |at: u16| Update::new(AnyPrefix::host([10, 0, (at >> 8) as u8, at as u8].into()), change);
    let updates: Vec<_> = (0..900).map(of).collect();
    let error = updates.iter().try_for_each(|update| live.apply(update)).unwrap_err();
    assert!(matches!(error, TableError::Full { .. }), "{error}");
    assert_eq!(live.with_rib(|rib| (rib.iter::<u32>(0).count(), rib.sequence())), (700, 700));
}

/// A RIB and a live table take the same events through one trait.
#[test]
fn a_live_table_takes_the_events_of_a_rib() {
    let values: Vec<_> = (0..50).map(|value| [Value::Int(value)]).collect();
    let updates = updates(600, &values);
    let feed = |to: &mut dyn Listener| {
        let peers = [64500, 64501].map(|asn| to.peer(&Peer::new(None, asn)));
        let names = (peers, to.vrf("a"), to.value_places(&["x"]));
        for (at, update) in updates.iter().enumerate() {
            to.update(update).unwrap();
            match at {
                150 => to.mark_stale(1).unwrap(),
                300 => to.sweep(1).unwrap(),
                450 => to.event(FeedEvent::Down(0)).unwrap(),
                _ => {}
            }
        }
        (names, to.paths_of(1).unwrap())
    };
    let (mut rib, live) = (Rib::default(), live(Rib::default()));
    rib.apply_event(FeedEvent::Update(&updates[0]), &mut ()).unwrap();
    live.event(FeedEvent::Update(&updates[0])).unwrap();
    assert_eq!(feed(&mut rib), feed(&mut &live));
    assert_eq!(live.with_rib(contents), contents(&rib));
}
