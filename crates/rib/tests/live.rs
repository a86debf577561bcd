//! Tables that change while they are read: every batch of every reader against the oracle of its
//! generation, engines that refuse, fail, panic and lie, and a feed that is held back.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::engines::{Behaviour, maker, makers};
use fibula_core::{Attributes, Change, Hop, PerFamily, Prefix, Routes, Update, Value};
use fibula_rib::{
    Audit, EngineSource, Event, Live, LiveOptions, Maker, Makers, Pacing, Reader, Rib,
};
use fibula_testkit::Rng;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn quick(audit: Audit) -> LiveOptions {
    LiveOptions {
        pacing: Pacing { bucket: ms(1), ..Pacing::default() },
        audit,
        ..LiveOptions::default()
    }
}

fn announce(live: &Live, prefix: Prefix<u32>, value: u64) {
    let values = [Value::Int(value)];
    let change = Change::Announce(Attributes::Values(&values));
    let prefix = fibula_core::AnyPrefix::V4(prefix);
    live.apply(&Update::new(prefix, change)).unwrap();
}

fn withdraw(live: &Live, prefix: Prefix<u32>) {
    let prefix = fibula_core::AnyPrefix::V4(prefix);
    live.apply(&Update::new(prefix, Change::Withdraw)).unwrap();
}

/// The table's answer for the address, as attributes.
fn answer(reader: &mut Reader<u32>, addr: u32) -> Option<u64> {
    let table = reader.pin();
    let mut hops = [Hop::NONE];
    table.lookup_batch(&[addr], &mut hops);
    match table.attributes(hops[0])?.values()[..] {
        [Value::Int(value)] => Some(value),
        ref other => panic!("{other:?}"),
    }
}

fn p(text: &str) -> Prefix<u32> {
    text.parse().unwrap()
}

/// Waits until this holds, and fails after a time limit.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "never: {what}");
        thread::sleep(ms(1));
    }
}

fn collect(events: &Arc<Mutex<Vec<Event>>>) -> impl Fn(Event) + Send + Sync + 'static + use<> {
    let events = Arc::clone(events);
    move |event| events.lock().unwrap().push(event)
}

/// The longest match by definition, in a plain map.
fn longest(map: &BTreeMap<Prefix<u32>, u64>, addr: u32) -> Option<u64> {
    let covering = (0..=32).rev().map(|len| Prefix::masked(addr, len).unwrap());
    covering.into_iter().find_map(|prefix| map.get(&prefix).copied())
}

/// Readers keep whole batches with their generations; afterwards the feed is replayed into a plain map,
/// and every batch compared at its place in the feed.
#[test]
fn every_batch_is_right_for_its_generation() {
    const UPDATES: u64 = 30_000;
    /// After this many updates, both readers see the newest generation before the feed continues.
    const FLUSH: usize = 300;
    let live = Live::start(
        Rib::default(),
        &[0],
        makers(Behaviour::default()),
        quick(Audit::Sampling),
        |event| panic!("{event}"),
    )
    .unwrap();
    let done = AtomicBool::new(false);
    let seen_by = [AtomicU64::new(0), AtomicU64::new(0)];
    let mut feed: Vec<(Prefix<u32>, Option<u64>)> = Vec::new();
    let mut rng = Rng::new(5);
    for i in 0..UPDATES {
        let len = 4 + rng.below(9) as u8;
        let prefix = Prefix::masked(rng.addr::<u32>() & 0xfff0_0000, len).unwrap();
        feed.push((prefix, (!rng.chance(0.3)).then_some(i % 300)));
    }
    type Seen = Vec<(u64, Vec<(u32, Option<u64>)>)>;
    let batches: Vec<Seen> = thread::scope(|scope| {
        let readers: Vec<_> = (100..)
            .zip(&seen_by)
            .map(|(seed, seen_by)| {
                let (mut reader, done) = (live.reader::<u32>(0).unwrap(), &done);
                scope.spawn(move || {
                    let mut rng = Rng::new(seed);
                    let mut seen: Seen = Vec::new();
                    let mut hops = [Hop::NONE; 256];
                    let mut last = 0;
                    while !done.load(Ordering::Relaxed) {
                        let addrs: Vec<u32> = (0..256).map(|_| rng.addr()).collect();
                        let table = reader.pin();
                        table.lookup_batch(&addrs, &mut hops);
                        assert!(table.sequence() >= last, "never back");
                        let value = |hop: &Hop| match table.attributes(*hop)?.values()[..] {
                            [Value::Int(value)] => Some(value),
                            _ => panic!("no value"),
                        };
                        let is_new = table.sequence() > last;
                        last = table.sequence();
                        if is_new || rng.chance(0.001) {
                            let answers = addrs.iter().copied().zip(hops.iter().map(value));
                            seen.push((last, answers.collect()));
                        }
                        seen_by.store(last, Ordering::Relaxed);
                    }
                    seen
                })
            })
            .collect();
        for part in feed.chunks(FLUSH) {
            for (prefix, value) in part {
                match value {
                    Some(value) => announce(&live, *prefix, *value),
                    None => withdraw(&live, *prefix),
                }
            }
            live.flush().unwrap();
            let newest = live.current::<u32>(0).unwrap().sequence();
            until("both readers see a generation", || {
                seen_by.iter().all(|seen| seen.load(Ordering::Relaxed) >= newest)
            });
        }
        done.store(true, Ordering::Relaxed);
        readers.into_iter().map(|reader| reader.join().unwrap()).collect()
    });
    let mut all: Seen = batches.into_iter().flatten().collect();
    all.sort_by_key(|(sequence, _)| *sequence);
    let generations = live.counters::<u32>(0).unwrap().generations.get();
    let flushes = feed.len() / FLUSH;
    assert!(generations >= flushes as u64 && all.len() >= 2 * flushes, "{generations}");
    let (mut map, mut at) = (BTreeMap::new(), 0);
    for (sequence, answers) in &all {
        for (prefix, value) in &feed[at..*sequence as usize] {
            match value {
                Some(value) => map.insert(*prefix, *value),
                None => map.remove(prefix),
            };
        }
        at = *sequence as usize;
        for (addr, value) in answers {
            assert_eq!(*value, longest(&map, *addr), "{addr:x} at {sequence}");
        }
    }
    let counters = live.counters::<u32>(0).unwrap();
    assert!(counters.patches.get() > 0, "{counters:?}");
    assert_eq!(counters.differences.get(), 0);
    assert!(counters.probes.get() > 0);
}

#[test]
fn the_next_engine_takes_over_at_a_limit_and_the_first_comes_back() {
    let events = Arc::new(Mutex::new(Vec::new()));
    let small = Behaviour { most: 3, name: "small", ..Behaviour::default() };
    let live = Live::start(
        Rib::default(),
        &[0],
        PerFamily::<Makers> {
            v4: vec![maker(small.clone()), maker(Behaviour::default())],
            v6: vec![maker(Behaviour::default())],
        },
        quick(Audit::Full),
        collect(&events),
    )
    .unwrap();
    let mut reader = live.reader::<u32>(0).unwrap();
    for i in 0..4 {
        announce(&live, Prefix::masked(i << 24, 8).unwrap(), i.into());
        live.flush().unwrap();
        let name = if i < 3 { "small" } else { "plain" };
        assert_eq!(reader.pin().engine_name(), name);
        assert_eq!(answer(&mut reader, i << 24), Some(i.into()));
    }
    let reported = events.lock().unwrap().clone();
    assert!(
        matches!(&reported[..], [Event::Engine { now: "plain", refused }] if refused[0].to_string().contains("engine small")),
        "{reported:?}"
    );
}

#[test]
fn a_failed_build_keeps_the_last_good_table() {
    let events = Arc::new(Mutex::new(Vec::new()));
    let broken = Arc::new(AtomicBool::new(false));
    let behaviour =
        Behaviour { patches: false, broken: Arc::clone(&broken), ..Behaviour::default() };
    let live = Live::start(
        Rib::default(),
        &[0],
        makers(behaviour.clone()),
        quick(Audit::Full),
        collect(&events),
    )
    .unwrap();
    let mut reader = live.reader::<u32>(0).unwrap();
    announce(&live, p("10.0.0.0/8"), 1);
    live.flush().unwrap();
    broken.store(true, Ordering::Relaxed);
    announce(&live, p("10.0.0.0/8"), 2);
    live.flush().unwrap();
    assert_eq!(answer(&mut reader, 0x0a00_0000), Some(1));
    let counters = live.counters::<u32>(0).unwrap();
    assert!(counters.failures.get() > 0);
    assert!(matches!(&events.lock().unwrap()[..], [Event::Failed { .. }, ..]));
    broken.store(false, Ordering::Relaxed);
    announce(&live, p("11.0.0.0/8"), 3);
    live.flush().unwrap();
    assert_eq!(answer(&mut reader, 0x0a00_0000), Some(2));
    assert_eq!(answer(&mut reader, 0x0b00_0000), Some(3));
}

#[test]
fn the_audit_finds_a_corruption_and_heals_it() {
    for audit in [Audit::Sampling, Audit::Full] {
        let events = Arc::new(Mutex::new(Vec::new()));
        // From now on every engine that was built before it answers wrongly in one network.
        let damage = Arc::new(AtomicU32::new(0));
        let behaviour = Behaviour { damage: Arc::clone(&damage), ..Behaviour::default() };
        let live = Live::start(
            Rib::default(),
            &[0],
            makers(behaviour.clone()),
            quick(audit),
            collect(&events),
        )
        .unwrap();
        let mut reader = live.reader::<u32>(0).unwrap();
        for i in 0..20u32 {
            announce(&live, Prefix::masked(i << 24, 8).unwrap(), i.into());
        }
        live.flush().unwrap();
        assert_eq!(answer(&mut reader, 7 << 24), Some(7));
        damage.store(7 << 24, Ordering::Relaxed);
        assert_ne!(answer(&mut reader, 7 << 24), Some(7), "it does lie");
        let mut round = 0;
        until("the corruption is found", || {
            // An engine that happens to be built, not patched, is right: damaged again, all are wrong.
            round += 1;
            damage.store(7 << 24 | round, Ordering::Relaxed);
            announce(&live, p("7.0.0.0/9"), round.into());
            live.flush().unwrap();
            live.counters::<u32>(0).unwrap().differences.get() > 0
        });
        until("it is healed", || answer(&mut reader, 7 << 24 | 0x80_0000) == Some(7));
        let reported = events.lock().unwrap().clone();
        assert!(
            reported
                .iter()
                .any(|e| matches!(e, Event::Difference { addr, .. } if addr.starts_with("7."))),
            "{reported:?}"
        );
    }
}

/// An engine that is wrong although it was just built gives way to the next.
#[test]
fn an_engine_that_lies_gives_way() {
    let liar = Behaviour { lies: true, name: "liar", ..Behaviour::default() };
    let live = Live::start(
        Rib::default(),
        &[0],
        PerFamily::<Makers> {
            v4: vec![maker(liar.clone()), maker(Behaviour::default())],
            v6: vec![maker(Behaviour::default())],
        },
        quick(Audit::Sampling),
        |_| {},
    )
    .unwrap();
    announce(&live, p("10.0.0.0/8"), 1);
    let mut reader = live.reader::<u32>(0).unwrap();
    until("the liar gives way", || answer(&mut reader, 0x0a00_0000) == Some(1));
    // Patching does not bring it back, although the spare engine is its own.
    for i in 0..20u32 {
        announce(&live, Prefix::masked(i << 24, 8).unwrap(), i.into());
        live.flush().unwrap();
        assert_eq!(reader.pin().engine_name(), "plain");
        assert_eq!(answer(&mut reader, i << 24), Some(i.into()));
    }
    assert!(live.counters::<u32>(0).unwrap().patches.get() > 0);
}

/// A compiler that cannot keep up: the feed waits, no change is lost, and few changes are pending.
#[test]
fn the_feed_is_held_back() {
    let behaviour = Behaviour { patches: false, delay: ms(5), ..Behaviour::default() };
    let pacing = Pacing { bucket: ms(1), capacity: 64, ..Pacing::default() };
    let options = LiveOptions { pacing, audit: Audit::Off, ..LiveOptions::default() };
    let live =
        Live::start(Rib::default(), &[0], makers(behaviour.clone()), options, |_| {}).unwrap();
    for i in 0..2000u32 {
        announce(&live, Prefix::masked(i << 16, 16).unwrap(), i.into());
    }
    live.flush().unwrap();
    let counters = live.counters::<u32>(0).unwrap();
    assert!(counters.generations.get() >= 2000 / 65, "{counters:?}");
    assert_eq!(counters.visible().count(), 2000);
    let mut reader = live.reader::<u32>(0).unwrap();
    for i in 0..2000u32 {
        assert_eq!(answer(&mut reader, i << 16), Some(i.into()));
    }
}

/// Two idle readers on two old generations: no further generation is made until one releases; then the compiler
/// continues.
#[test]
fn memory_is_bounded_by_what_readers_hold() {
    let behaviour = Behaviour::default();
    let live =
        Live::start(Rib::default(), &[0], makers(behaviour.clone()), quick(Audit::Off), |_| {})
            .unwrap();
    let mut readers: Vec<_> = (0..2).map(|_| live.reader::<u32>(0).unwrap()).collect();
    for (i, reader) in readers.iter_mut().enumerate() {
        reader.pin();
        announce(&live, p("10.0.0.0/8"), i as u64);
        live.flush().unwrap();
    }
    let stalled = || live.counters::<u32>(0).unwrap().stalled_ms.get();
    let before = stalled();
    announce(&live, p("10.0.0.0/8"), 7);
    until("the compiler waits for readers", || stalled() > before);
    let mut fresh = live.reader::<u32>(0).unwrap();
    assert_eq!(answer(&mut fresh, 0x0a00_0000), Some(1), "one in the making was one too many");
    assert_eq!(behaviour.alive.load(Ordering::Relaxed), 3);
    fresh.release();
    thread::sleep(Duration::from_millis(20));
    assert!(live.lag::<u32>(0) > Some(Duration::ZERO), "two readers hold old tables");
    readers[1].release();
    live.flush().unwrap();
    assert_eq!(answer(&mut fresh, 0x0a00_0000), Some(7));
    fresh.release();
    for i in 0..200 {
        announce(&live, p("10.0.0.0/8"), i);
        live.flush().unwrap();
        assert!(behaviour.alive.load(Ordering::Relaxed) <= 3);
    }
    drop(readers);
    assert_eq!(answer(&mut fresh, 0x0a00_0000), Some(199));
}

/// VRFs are tables of their own; VRFs without followers are also in the RIB.
#[test]
fn vrfs_are_apart() {
    let live = Live::start(
        Rib::default(),
        &[0, 7],
        makers(Behaviour::default()),
        quick(Audit::Full),
        |_| {},
    )
    .unwrap();
    for vrf in [0, 7, 9] {
        let values = [Value::Int(vrf.into())];
        let change = Change::Announce(Attributes::Values(&values));
        let prefix = fibula_core::AnyPrefix::V4(p("10.0.0.0/8"));
        live.apply(&Update { vrf, ..Update::new(prefix, change) }).unwrap();
    }
    live.flush().unwrap();
    for vrf in [0, 7] {
        let mut reader = live.reader::<u32>(vrf).unwrap();
        assert_eq!(answer(&mut reader, 0x0a00_0000), Some(vrf.into()));
    }
    assert!(live.reader::<u32>(9).is_none());
    assert!(live.with_rib(|rib| rib.exact(9, p("10.0.0.0/8")).is_some()));
}

/// Engines by the shape of the table: `few` up to 20 routes, `many` beyond, `long` if most are host routes.
struct ByShape;

impl EngineSource<u32> for ByShape {
    fn candidates(&self, routes: &Routes<u32>) -> Vec<Maker<u32>> {
        let hosts = routes.iter().filter(|route| route.prefix.len() == 32).count();
        let name = match routes.len() {
            len if hosts * 2 > len => "long",
            ..=20 => "few",
            _ => "many",
        };
        vec![maker(Behaviour { name, ..Behaviour::default() })]
    }
}

impl EngineSource<u128> for ByShape {
    fn candidates(&self, _: &Routes<u128>) -> Vec<Maker<u128>> {
        vec![maker(Behaviour::default())]
    }
}

/// Another engine takes over as the table grows, gets longer routes and shrinks, although the one that
/// serves could be patched; answers are always right, and an event reports the change.
#[test]
fn engines_are_chosen_again_as_the_table_changes() {
    let events = Arc::new(Mutex::new(Vec::new()));
    let live = Live::start(Rib::default(), &[0], ByShape, quick(Audit::Full), collect(&events));
    let live = live.unwrap();
    let mut reader = live.reader::<u32>(0).unwrap();
    assert_eq!(reader.pin().engine_name(), "few");
    let mut names = vec!["few"];
    let short = (0..60u32).map(|i| Prefix::masked(i << 24, 8).unwrap());
    let hosts = (0..200u32).map(|i| Prefix::host(i << 20 | 1));
    for (i, prefix) in (0..).zip(short.chain(hosts.clone())) {
        announce(&live, prefix, i);
        live.flush().unwrap();
        assert_eq!(answer(&mut reader, prefix.first()), Some(i));
        let name = reader.pin().engine_name();
        if names.last() != Some(&name) {
            names.push(name);
        }
    }
    hosts.for_each(|prefix| withdraw(&live, prefix));
    live.flush().unwrap();
    names.push(reader.pin().engine_name());
    assert_eq!(names, ["few", "many", "long", "many"]);
    let counters = live.counters::<u32>(0).unwrap();
    assert!(counters.patches.get() > 0, "{counters:?}");
    assert_eq!(counters.differences.get(), 0);
    let now = |event: &Event| match event {
        Event::Engine { now, refused } if refused.is_empty() => *now,
        other => panic!("{other}"),
    };
    assert!(events.lock().unwrap().iter().map(now).eq(["many", "long", "many"]));
}
