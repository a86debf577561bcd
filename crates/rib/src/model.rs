//! What the threads of a live table do to each other, tried in many schedules by shuttle:
//! `RUSTFLAGS="--cfg fibula_model" cargo test -p fibula-rib --lib model`.

use std::collections::BTreeMap;
use std::time::Duration;

use fibula_core::{Addr, Attributes, Follow, Hop, Lookup, Memory, Prefix, Value};
use shuttle::sync::atomic::{AtomicUsize, Ordering};
use shuttle::sync::{Arc, Mutex};
use shuttle::thread;

use crate::log::{Due, Log};
use crate::publisher::{AttributeTable, Generation, Publisher, Retired};
use crate::{AttributeSet, Change, Pacing, Reader};

const SCHEDULES: usize = 5_000;

fn prefix(at: u32) -> Prefix<u32> {
    Prefix::host(at)
}

fn change(at: u32, hop: u32) -> Change<u32> {
    let set = AttributeSet::new(&Attributes::Values(&[Value::Int(hop.into())]));
    Change { prefix: prefix(at), best: Some((hop, set)) }
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
    shuttle::check_random(
        || {
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
                        log.done();
                    }
                })
            };
            for i in 0..6 {
                log.wait_for_room();
                log.push(change(i % 3, i), u64::from(i) + 1);
            }
            log.flush();
            {
                let seen = seen.lock().unwrap();
                assert_eq!(seen.1, 6);
                let last = [3, 4, 5].map(Some);
                assert!(seen.0.values().copied().eq(last), "{seen:?}");
            }
            log.push(change(7, 9), 7);
            log.close();
            compiler.join().unwrap();
            assert_eq!(seen.lock().unwrap().1, 7, "what was pushed before the end is published");
        },
        SCHEDULES,
    );
}

/// An engine that counts how many there are, and answers with the generation that it was made for.
struct Counted {
    hop: u32,
    alive: Arc<AtomicUsize>,
}

impl Counted {
    fn new(hop: u32, alive: &Arc<AtomicUsize>) -> Box<Self> {
        let others = alive.fetch_add(1, Ordering::SeqCst);
        assert!(others < 3, "two generations, and one in the making");
        Box::new(Self { hop, alive: Arc::clone(alive) })
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, Ordering::SeqCst);
    }
}

impl<A: Addr> Lookup<A> for Counted {
    fn lookup(&self, _: A) -> Hop {
        Hop::new(self.hop)
    }
    fn lookup_batch(&self, addrs: &[A], hops: &mut [Hop]) {
        assert_eq!(addrs.len(), hops.len());
        for hop in hops {
            *hop = Hop::new(self.hop);
            thread::yield_now();
        }
    }
    fn memory(&self) -> Memory {
        Memory::default()
    }
}

impl<A: Addr> Follow<A> for Counted {}

fn generation(number: u64, engine: Box<Counted>) -> Generation<u32> {
    let attributes = AttributeTable::default();
    Generation { number, sequence: number, name: "counted", engine, attributes }
}

/// Readers that pin, look up and rest, and a compiler that patches what came back: a batch is of one
/// generation, generations never go back, and there are never more than three engines.
#[test]
fn a_batch_is_of_one_generation() {
    const LAST: u64 = 5;
    shuttle::check_random(
        || {
            let alive = Arc::new(AtomicUsize::new(0));
            let publisher = Arc::new(Publisher::new(generation(1, Counted::new(1, &alive))));
            let readers: Vec<_> = (0..2)
                .map(|_| {
                    let mut reader = Reader::new(&publisher);
                    thread::spawn(move || {
                        let mut last = 0;
                        for round in 0..4 {
                            let mut hops = [Hop::NONE; 3];
                            let table = reader.pin();
                            let number = table.number();
                            table.lookup_batch(&[0; 3], &mut hops);
                            assert_eq!(hops, [Hop::new(number as u32); 3]);
                            assert!(number >= last, "a reader went back");
                            last = number;
                            if round % 2 == 1 {
                                reader.release();
                            }
                        }
                    })
                })
                .collect();
            let mut retired = Retired::new();
            for number in 2..=LAST {
                while retired.in_use() > 1 {
                    thread::yield_now();
                }
                // Every other one is built although it could have been patched, as large batches are.
                let spare = retired.take_spare();
                let engine = match spare {
                    Some((old, behind)) if number % 2 == 0 => {
                        assert_eq!(old.number() + 2, number);
                        assert_eq!(behind, [prefix(number as u32 - 1)]);
                        drop(old);
                        Counted::new(number as u32, &alive)
                    }
                    spare => {
                        drop(spare);
                        Counted::new(number as u32, &alive)
                    }
                };
                let old = publisher.publish(generation(number, engine));
                assert_eq!(old.number() + 1, number);
                retired.put(old, vec![prefix(number as u32)]);
            }
            readers.into_iter().for_each(|reader| reader.join().unwrap());
            let mut reader = Reader::new(&publisher);
            assert_eq!(reader.pin().number(), LAST);
            drop((retired, reader, publisher));
            assert_eq!(alive.load(Ordering::SeqCst), 0, "all are freed");
        },
        SCHEDULES,
    );
}
