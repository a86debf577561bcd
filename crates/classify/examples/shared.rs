//! What several threads classify by shared rules, and what changes of the rules cost: millions of packets a second of
//! all threads, and microseconds for a change.
//!
//! `cargo run --release -p fibula-classify --example shared [-- RULES]`. Packets of some thousand flows in batches of
//! 256, one second for each line. A change adds or removes one rule, at random; when it returns, batches that begin
//! have answers by the new rules. Before and after the time a thousand answers are compared with those of trying each
//! rule.

mod common;

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fibula_classify::{Batch, Classifier, ClassifierReader, Flow, RuleId, SharedClassifier};
use fibula_testkit::Rng;
use fibula_testkit::classbench::{RuleSetKind, filters, traffic};

/// Different packets.
const PACKETS: usize = 4096;
const SECOND: Duration = Duration::from_secs(1);

fn main() {
    let size = std::env::args().nth(1).map_or(10_000, |rules| rules.parse().expect("a number"));
    println!("set,rules,readers,changes_s,mpps,misses_percent,change_us_p50,change_us_p99");
    for kind in RuleSetKind::ALL {
        let set = filters(kind, size, 1);
        let rules = common::rules(&set);
        let flows: Vec<Flow> = traffic(&set, PACKETS, 2).iter().map(common::flow).collect();
        let batches: Vec<Batch> = flows
            .chunks(Batch::MAX)
            .map(|flows| {
                let mut batch = Batch::new();
                flows.iter().for_each(|flow| batch.push(flow));
                batch
            })
            .collect();

        let mut alone = Classifier::new(rules.clone(), &Default::default());
        let mut found = [None; Batch::MAX];
        let (mut packets, began) = (0, Instant::now());
        while began.elapsed() < SECOND {
            for batch in &batches {
                alone.classify(0, batch, &mut found[..batch.len()]);
                packets += black_box(&found[..batch.len()]).len();
            }
        }
        let mpps = packets as f64 / began.elapsed().as_secs_f64() / 1e6;
        println!("{kind:?},{size},without sharing,0,{mpps:.1},,,");
        for (readers, changes) in [(1, 0), (2, 0), (1, 100), (1, 1000), (1, 10_000), (2, 1000)] {
            let shared = SharedClassifier::new(rules.clone(), &Default::default());
            measure(kind, &shared, &flows, &batches, readers, changes);
        }
    }
}

/// A thousand answers, against trying each rule.
fn check(
    shared: &SharedClassifier,
    reader: &mut ClassifierReader,
    flows: &[Flow],
    batches: &[Batch],
) {
    for (flows, batch) in flows.chunks(Batch::MAX).zip(batches).take(4) {
        let mut found = [None; Batch::MAX];
        reader.classify(0, batch, &mut found[..flows.len()]);
        for (flow, found) in flows.iter().zip(found) {
            let first = shared.with_rules(|rules| rules.first_match(flow).map(|(id, _)| id));
            assert_eq!(found, first, "{flow:?}");
        }
    }
}

fn measure(
    kind: RuleSetKind,
    shared: &SharedClassifier,
    flows: &[Flow],
    batches: &[Batch],
    readers: usize,
    changes: u32,
) {
    let (stop, packets) = (AtomicBool::new(false), AtomicU64::new(0));
    check(shared, &mut shared.reader(), flows, batches);
    let size = shared.with_rules(|rules| rules.len());
    let mut took: Vec<Duration> = Vec::new();
    let began = Instant::now();
    thread::scope(|scope| {
        for _ in 0..readers {
            scope.spawn(|| {
                let mut reader = shared.reader();
                let mut found = [None::<RuleId>; Batch::MAX];
                let mut classified = 0;
                while !stop.load(Ordering::Relaxed) {
                    for batch in batches {
                        reader.classify(0, batch, &mut found[..batch.len()]);
                        classified += black_box(&found[..batch.len()]).len() as u64;
                    }
                }
                packets.fetch_add(classified, Ordering::Relaxed);
            });
        }
        let mut rng = Rng::new(5);
        let mut out = Vec::new();
        let ids: Vec<RuleId> = shared.with_rules(|rules| rules.iter().map(|(id, _)| id).collect());
        while began.elapsed() < SECOND {
            let Some(every) = SECOND.checked_div(changes) else {
                thread::sleep(SECOND);
                break;
            };
            let due = began + every * took.len() as u32;
            thread::sleep(due.saturating_duration_since(Instant::now()));
            let change = Instant::now();
            // A rule goes and comes back, later and with another number.
            if out.len() < 50 {
                out.extend(shared.remove(rng.choose(&ids).expect("there are rules")));
            } else {
                let rule = out.swap_remove(rng.below(out.len() as u64) as usize);
                shared.insert(rule).expect("there are numbers left");
            }
            took.push(change.elapsed());
        }
        stop.store(true, Ordering::Relaxed);
    });
    let elapsed = began.elapsed().as_secs_f64();
    let counts = shared.counts();
    check(shared, &mut shared.reader(), flows, batches);
    took.sort_unstable();
    let micros = |part: usize| match took.len() {
        0 => String::new(),
        len => format!("{:.0}", took[(len * part / 100).min(len - 1)].as_secs_f64() * 1e6),
    };
    println!(
        "{kind:?},{size},{readers},{:.0},{:.1},{:.2},{},{}",
        took.len() as f64 / elapsed,
        packets.into_inner() as f64 / elapsed / 1e6,
        counts.misses as f64 * 100.0 / counts.packets.max(1) as f64,
        micros(50),
        micros(99),
    );
}
