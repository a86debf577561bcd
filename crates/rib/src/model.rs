//! Tests the threads of a live table under many schedules, with shuttle. A failure prints its schedule, which
//! `shuttle::replay` can run again.
//!
//! `FIBULA_MODEL_SCHEDULES` is the number of schedules of each check; `./dev model` tries many.

use std::collections::BTreeMap;
use std::env;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use fibula_core::{
    Attributes, BoxedEngine, BuildError, Follow, Hop, Lookup, Memory, Patched, Prefix, Routes,
    Value, unstored,
};
use shuttle::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use shuttle::sync::{Arc, Mutex};
use shuttle::thread;

use crate::log::{Due, Log};
use crate::publisher::{AttributeTable, Generation, Publisher, Retired};
use crate::{AttributeSet, Change, EngineSource, Maker, Pacing, Plain, Reader};

/// Schedules of each check: few enough for every run of the tests.
const SCHEDULES: usize = 2_000;

fn schedules() -> usize {
    match env::var("FIBULA_MODEL_SCHEDULES") {
        Ok(number) => number.parse().expect("FIBULA_MODEL_SCHEDULES is a number"),
        Err(_) => SCHEDULES,
    }
}

fn prefix(at: u32) -> Prefix<u32> {
    Prefix::host(at)
}

fn change(at: u32, hop: u32) -> Change<u32> {
    let set = AttributeSet::new(&Attributes::Values(&[Value::Int(hop.into())]));
    Change { prefix: prefix(at), peer: 0, best: Some((hop, set)), last_origin: None }
}

/// No clock: every change is due at once, none is ever late.
fn log(capacity: usize) -> Arc<Log<u32>> {
    let pacing = Pacing { bucket: Duration::ZERO, late: Duration::from_secs(1 << 30), capacity };
    Arc::new(Log::new(pacing, 0))
}

/// The feed, held back at one or two prefixes, and the compiler: the last change of each prefix arrives,
/// none arrives after a later one of its prefix, positions ascend, and a flush waits for all of it.
#[test]
fn the_log_loses_and_reorders_nothing() {
    (1..=3).for_each(lose_nothing);
}

/// With this number of changes for each lock of the log.
fn lose_nothing(chunk: usize) {
    shuttle::check_random(
        move || {
            let log = log(2);
            let seen = Arc::new(Mutex::new((BTreeMap::new(), 0)));
            let compiler = {
                let (log, seen) = (Arc::clone(&log), Arc::clone(&seen));
                thread::spawn(move || {
                    while log.wait_until_due(Duration::from_secs(1)) != Due::Closed {
                        let batch = log.cut();
                        let mut seen = seen.lock().unwrap();
                        assert!(batch.sequence >= seen.1);
                        seen.1 = batch.sequence;
                        for change in batch.changes {
                            let hop = change.hop().index();
                            let before = seen.0.insert(change.prefix, hop);
                            assert!(before < Some(hop), "back to an earlier change");
                        }
                        drop(seen);
                        log.done(Duration::ZERO);
                    }
                })
            };
            let mut i = 0;
            while i < 6 {
                // Like the feed of a live table: an event may change several prefixes.
                while log.is_full() {
                    log.wait_for_room();
                }
                let mut writer = log.writer();
                for _ in 0..chunk {
                    if i < 6 && !log.is_full() {
                        writer.push(change(i % 3, i), u64::from(i) + 1);
                        i += 1;
                    }
                }
            }
            assert!(log.flush());
            {
                let seen = seen.lock().unwrap();
                assert_eq!(seen.1, 6);
                let last = [3, 4, 5].map(Some);
                assert!(seen.0.values().copied().eq(last), "{seen:?}");
            }
            log.writer().push(change(7, 9), 7);
            log.close();
            compiler.join().unwrap();
            assert_eq!(seen.lock().unwrap().1, 7, "what was pushed before the end is published");
        },
        schedules(),
    );
}

/// Addresses of the table below. Generation `n` gives address `n % ADDRS` the hop `n`.
const ADDRS: usize = 3;

/// The changes from the generation before to this one.
fn changed(number: u64) -> Prefix<u32> {
    prefix((number % ADDRS as u64) as u32)
}

/// The hops of all addresses in this generation; 0 where none changed an address yet.
fn hops(number: u64) -> [u32; ADDRS] {
    let last = |addr| number.saturating_sub((number + ADDRS as u64 - addr) % ADDRS as u64);
    std::array::from_fn(|addr| last(addr as u64) as u32)
}

fn routes(number: u64) -> Routes<u32> {
    (0..).zip(hops(number)).map(|(addr, hop)| (prefix(addr), Hop::new(hop))).collect()
}

/// An engine that counts its instances. Each address that is read or patched is a step, and other threads run between
/// the steps: a reader of an engine that is patched meanwhile sees a mixture.
struct Counted {
    hops: [AtomicU32; ADDRS],
    alive: Arc<AtomicUsize>,
}

impl Counted {
    fn new(number: u64, alive: &Arc<AtomicUsize>) -> Self {
        let others = alive.fetch_add(1, Ordering::SeqCst);
        assert!(others < 3, "two generations, and one in the making");
        Self { hops: hops(number).map(AtomicU32::new), alive: Arc::clone(alive) }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Lookup<u32> for Counted {
    fn lookup(&self, addr: u32) -> Hop {
        Hop::new(self.hops[addr as usize].load(Ordering::SeqCst))
    }
    fn lookup_batch(&self, addrs: &[u32], hops: &mut [Hop]) {
        assert_eq!(addrs.len(), hops.len());
        addrs.iter().zip(hops).for_each(|(addr, hop)| *hop = self.lookup(*addr));
    }
    fn memory(&self) -> Memory {
        Memory::default()
    }
}

impl Follow<u32> for Counted {
    fn follow(&mut self, routes: &Routes<u32>, at: &[Prefix<u32>]) -> Result<Patched, BuildError> {
        for prefix in at {
            let hop = routes.get(*prefix).and_then(Hop::index).expect("addresses keep a route");
            self.hops[prefix.addr() as usize].store(hop, Ordering::SeqCst);
        }
        Ok(Patched::Applied)
    }

    fn copy(&self) -> Option<Self> {
        let copy = Self::new(0, &self.alive);
        for (to, from) in copy.hops.iter().zip(&self.hops) {
            to.store(from.load(Ordering::SeqCst), Ordering::SeqCst);
        }
        Some(copy)
    }
}

fn generation(number: u64, engine: BoxedEngine<u32>) -> Generation<u32> {
    let attributes = AttributeTable::default();
    Generation { number, sequence: number, name: "counted", engine, attributes }
}

/// Counts how the generations of all schedules were made. The counters are not shuttle's, so counting is not a step of
/// a schedule.
#[derive(Default)]
struct MethodCounts {
    /// From the spare engine.
    patched: AtomicU64,
    /// From a copy of the current one, since a reader still had the spare one.
    copied: AtomicU64,
    /// With the changes beside the routes.
    aside: AtomicU64,
}

/// Readers that pin, look up and release, and a compiler that patches the engine that came back, or a copy of the one
/// that serves: a batch is of one generation, generations never go back, no reader sees an engine that is being
/// patched, a patched one lacks no change, and there are never more than three engines.
#[test]
fn a_batch_is_of_one_generation() {
    const LAST: u64 = 6;
    /// Built although the spare one could be patched, as for large batches.
    const BUILT: u64 = 4;
    let ways = Arc::new(MethodCounts::default());
    let counted = Arc::clone(&ways);
    shuttle::check_random(
        move || {
            let alive = Arc::new(AtomicUsize::new(0));
            let publisher =
                Arc::new(Publisher::new(generation(1, unstored(Counted::new(1, &alive)))));
            let readers: Vec<_> = (0..2)
                .map(|_| {
                    let mut reader = Reader::new(&publisher);
                    thread::spawn(move || {
                        let mut last = 0;
                        for round in 0..4 {
                            let mut found = [Hop::NONE; ADDRS];
                            let table = reader.pin();
                            let number = table.number();
                            table.lookup_batch(&[0, 1, 2], &mut found);
                            assert_eq!(
                                found,
                                hops(number).map(Hop::new),
                                "not generation {number}"
                            );
                            assert!(number >= last, "a reader went back");
                            last = number;
                            if round % 2 == 1 {
                                reader.release();
                            }
                        }
                    })
                })
                .collect();
            let mut retired = Retired::<Generation<u32>, _>::new();
            for number in 2..=LAST {
                while retired.in_use() > 1 {
                    thread::yield_now();
                }
                let engine: BoxedEngine<u32> = match retired.take_spare() {
                    Some((spare, mut at)) if number != BUILT => {
                        assert_eq!(spare.number() + 2, number);
                        at.push(changed(number));
                        let mut engine = spare.engine;
                        let patched = engine.follow(&routes(number), &at);
                        assert!(matches!(patched, Ok(Patched::Applied)));
                        ways.patched.fetch_add(1, Ordering::Relaxed);
                        engine
                    }
                    None if number != BUILT => {
                        let current = publisher.load();
                        assert_eq!(current.number() + 1, number);
                        let mut engine = current.engine.boxed_copy().expect("it makes copies");
                        drop(current);
                        let patched = engine.follow(&routes(number), &[changed(number)]);
                        assert!(matches!(patched, Ok(Patched::Applied)));
                        ways.copied.fetch_add((number > 2).into(), Ordering::Relaxed);
                        engine
                    }
                    spare => {
                        drop(spare);
                        unstored(Counted::new(number, &alive))
                    }
                };
                let old = publisher.publish(generation(number, engine));
                assert_eq!(old.number() + 1, number);
                retired.put(old, vec![changed(number)]);
            }
            readers.into_iter().for_each(|reader| reader.join().unwrap());
            let mut reader = Reader::new(&publisher);
            assert_eq!(reader.pin().number(), LAST);
            drop((retired, reader, publisher));
            assert_eq!(alive.load(Ordering::SeqCst), 0, "all are freed");
        },
        schedules(),
    );
    let [patched, copied] =
        [&counted.patched, &counted.copied].map(|way| way.load(Ordering::Relaxed));
    assert!(patched > 0 && copied > 0, "{patched} patched, {copied} in copies");
}

/// The engine of a table with a number for each route: each address that is read or patched is a step.
struct Cells([AtomicU32; ADDRS]);

impl Cells {
    fn of(routes: &Routes<u32>) -> Self {
        let hop = |at: usize| routes.get(prefix(at as u32)).unwrap_or(Hop::NONE);
        Self(std::array::from_fn(|at| AtomicU32::new(hop(at).to_bits())))
    }
}

impl Lookup<u32> for Cells {
    fn lookup(&self, addr: u32) -> Hop {
        Hop::from_bits(self.0[addr as usize].load(Ordering::SeqCst))
    }
    fn lookup_batch(&self, addrs: &[u32], hops: &mut [Hop]) {
        addrs.iter().zip(hops).for_each(|(addr, hop)| *hop = self.lookup(*addr));
    }
    fn memory(&self) -> Memory {
        Memory::default()
    }
}

impl Follow<u32> for Cells {
    fn follow(&mut self, routes: &Routes<u32>, at: &[Prefix<u32>]) -> Result<Patched, BuildError> {
        for prefix in at {
            let hop = routes.get(*prefix).unwrap_or(Hop::NONE);
            self.0[prefix.addr() as usize].store(hop.to_bits(), Ordering::SeqCst);
        }
        Ok(Patched::Applied)
    }

    fn reach(&self, changed: Prefix<u32>) -> Option<Prefix<u32>> {
        Some(changed)
    }

    fn copy(&self) -> Option<Self> {
        let load = |at: usize| AtomicU32::new(self.0[at].load(Ordering::SeqCst));
        Some(Self(std::array::from_fn(load)))
    }
}

struct OfCells;

impl EngineSource<u32> for OfCells {
    fn candidates(&self, _: &Routes<u32>) -> Vec<Maker<u32>> {
        vec![Maker::new("cells", |routes| Ok(unstored(Cells::of(routes))))]
    }
}

/// A writer that publishes each change itself, with a new value each, whose numbers are used again; and readers: each
/// batch is of one state of the table, engine and values, and a reader never goes back.
#[test]
fn a_plain_table_is_read_in_one_state() {
    const CHANGES: u64 = 6;
    let ways = Arc::new(MethodCounts::default());
    let counted = Arc::clone(&ways);
    let values =
        |changes: u64| hops(changes).map(|of| if of == 0 { 0 } else { 1000 + u64::from(of) });
    shuttle::check_random(
        move || {
            let mut table = Plain::<u32>::new(Arc::new(OfCells), 0);
            let readers: Vec<_> = (0..2)
                .map(|_| {
                    let mut reader = table.reader();
                    thread::spawn(move || {
                        let mut last = 0;
                        for round in 0..4 {
                            let mut found = [0; ADDRS];
                            let state = reader.pin();
                            let number = state.number();
                            state.lookup(&[0, 1, 2], &mut found);
                            assert_eq!(found, values(number - 1), "not state {number}");
                            assert!(number >= last, "a reader went back");
                            last = number;
                            if round % 2 == 1 {
                                reader.release();
                            }
                        }
                    })
                })
                .collect();
            for change in 1..=CHANGES {
                table.change([(changed(change), Some(1000 + change))]).unwrap();
                table.publish().unwrap();
            }
            readers.into_iter().for_each(|reader| reader.join().unwrap());
            let memory = table.memory();
            assert_eq!((table.len(), memory.held), (ADDRS, 0), "readers are gone");
            let of = table.counters();
            ways.patched.fetch_add(of.patches, Ordering::Relaxed);
            ways.copied.fetch_add(of.copies, Ordering::Relaxed);
            ways.aside.fetch_add(of.aside, Ordering::Relaxed);
        },
        schedules(),
    );
    let [patched, copied, aside] =
        [&counted.patched, &counted.copied, &counted.aside].map(|way| way.load(Ordering::Relaxed));
    assert!(
        patched > 0 && copied > 0 && aside > 0,
        "{patched} patched, {copied} in copies, {aside} with routes aside"
    );
}
