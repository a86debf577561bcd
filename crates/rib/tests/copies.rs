//! Copies: of engines to be patched, and of the RIB while it changes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::engines::{Behaviour, makers};
use fibula_core::{Attributes, Change, Hop, Prefix, Update, Value};
use fibula_rib::{Audit, Generation, Live, LiveOptions, Pacing, Peer, Preference, Rib, Snapshot};
use fibula_testkit::Rng;

fn update(prefix: Prefix<u32>, value: Option<u64>, to: impl FnOnce(&Update<'_>)) {
    let values = value.map(|value| [Value::Int(value)]);
    let change = match &values {
        Some(values) => Change::Announce(Attributes::Values(values)),
        None => Change::Withdraw,
    };
    to(&Update::new(fibula_core::AnyPrefix::V4(prefix), change));
}

/// A copy of the RIB keeps the state of that moment while the RIB changes: as a table and as a checkpoint.
#[test]
fn copies_of_a_rib_stay_what_they_were() {
    let (mut rib, mut map, mut rng) = (Rib::default(), BTreeMap::new(), Rng::new(3));
    rib.peer(Peer::new(None, 64500));
    let mut copies = Vec::new();
    for i in 0..12_000u64 {
        let prefix =
            Prefix::masked(rng.addr::<u32>() & 0xff0f_ff00, 9 + rng.below(16) as u8).unwrap();
        let value = (!rng.chance(0.3)).then_some(i % 3000);
        update(prefix, value, |update| rib.apply(update, &mut ()).unwrap());
        match value {
            Some(value) => map.insert(prefix, value),
            None => map.remove(&prefix),
        };
        if i % 1500 == 700 {
            copies.push((rib.freeze(0), rib.checkpoint("here"), map.clone(), i + 1));
        }
    }
    for (frozen, checkpoint, map, sequence) in copies {
        assert_eq!((frozen.sequence(), frozen.len()), (sequence, map.len()));
        let table = frozen.table().unwrap();
        let value = |hop: Hop| match table.columns.value(0, hop.index().unwrap()) {
            Value::Int(value) => value,
            other => panic!("{other:?}"),
        };
        let routes = table.v4.iter().map(|route| (route.prefix, value(route.hop)));
        assert!(routes.eq(map.clone()), "after {sequence}");
        let snapshot = Snapshot::from_bytes(checkpoint.to_bytes().unwrap()).unwrap();
        let restored = Rib::from_snapshot(&snapshot, Preference::default()).unwrap().rib;
        assert_eq!(restored.sequence(), sequence);
        let routes = restored.iter::<u32>(0).map(|(prefix, path)| (prefix, path.attributes));
        let routes: Vec<_> = routes.collect();
        let values = routes.iter().map(|(prefix, set)| (*prefix, set.values()[0]));
        assert!(values.eq(map.into_iter().map(|(prefix, value)| (prefix, Value::Int(value)))));
    }
}

/// Once nothing changes, a table that was patched in many places is built, once, and large batches have copies patched
/// that were made before.
#[test]
fn a_table_that_was_patched_is_built_when_nothing_changes() {
    let delay = Duration::from_millis(20);
    let behaviour = Behaviour { copies: true, delay, ..Behaviour::default() };
    let pacing = Pacing { bucket: Duration::from_millis(1), ..Pacing::default() };
    let options = LiveOptions { pacing, audit: Audit::Full, ..LiveOptions::default() };
    let live =
        Live::start(Rib::default(), &[0], makers(behaviour), options, |event| panic!("{event}"))
            .unwrap();
    for round in 0..5u32 {
        for i in 0..1000 {
            let prefix = Prefix::masked((round * 1000 + i) << 12, 20).unwrap();
            update(prefix, Some(u64::from(i)), |update| live.apply(update).unwrap());
        }
        live.flush().unwrap();
    }
    let counters = live.counters::<u32>(0).unwrap();
    let before = counters.generations.get();
    let waits = (0..100).take_while(|_| {
        std::thread::sleep(Duration::from_millis(100));
        counters.generations.get() == before
    });
    assert!(waits.count() < 100, "it is built");
    let mut hops = [Hop::NONE];
    live.current::<u32>(0).unwrap().lookup_batch(&[4999 << 12], &mut hops);
    assert_ne!(hops, [Hop::NONE]);
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(counters.generations.get(), before + 1, "and not again");
    assert_eq!(counters.differences.get(), 0);
}

/// Without a spare engine, as at the beginning and while a reader keeps the one before the current, a copy of the
/// current one is patched: nothing is rebuilt, and a reader that holds a generation continues with it.
#[test]
fn a_copy_is_patched_where_there_is_no_spare_engine() {
    const ADDR: u32 = 0x0a00_0001;
    let alive = Arc::<AtomicUsize>::default();
    // Builds take so long that patches are always cheaper.
    let delay = Duration::from_millis(20);
    let behaviour =
        Behaviour { copies: true, delay, alive: Arc::clone(&alive), ..Behaviour::default() };
    let pacing = Pacing { bucket: Duration::from_millis(1), ..Pacing::default() };
    let options = LiveOptions { pacing, audit: Audit::Full, ..LiveOptions::default() };
    let live =
        Live::start(Rib::default(), &[0], makers(behaviour), options, |event| panic!("{event}"))
            .unwrap();
    let step = |value: u64| {
        update("10.0.0.0/8".parse().unwrap(), Some(value), |update| live.apply(update).unwrap());
        live.flush().unwrap();
    };
    let value = |table: &Generation<u32>| {
        let mut hops = [Hop::NONE];
        table.lookup_batch(&[ADDR], &mut hops);
        match table.attributes(hops[0]).unwrap().values()[..] {
            [Value::Int(value)] => value,
            ref other => panic!("{other:?}"),
        }
    };
    step(1);
    for round in 0..20 {
        let mut reader = live.reader::<u32>(0).unwrap();
        assert_eq!(value(reader.pin()), 1 + 3 * round);
        let kept = live.current::<u32>(0).unwrap();
        step(2 + 3 * round);
        step(3 + 3 * round);
        assert_eq!(value(&kept), 1 + 3 * round, "never changed");
        assert_eq!(value(reader.pin()), 3 + 3 * round);
        assert!(alive.load(Ordering::Relaxed) <= 3);
        drop((kept, reader));
        step(4 + 3 * round);
    }
    let counters = live.counters::<u32>(0).unwrap();
    assert_eq!((counters.rebuilds.get(), counters.differences.get()), (0, 0));
    assert_eq!(counters.patches.get(), 61);
}
