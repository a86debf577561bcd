//! A writer and readers in threads of their own. `model.rs` tries their schedules; this is real threads and large
//! caches.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use fibula_classify::{Batch, Cache, Field, Flow, Mask, Match, Writer};

use fibula_testkit::Rng;

const FLOWS: u32 = 200;
const PUBLISHED: u32 = 2000;

fn flow(i: u32) -> Flow {
    let mut flow = Flow::default();
    flow.set(Field::Ipv4Dst, i.into());
    flow.set(Field::DstPort, 443);
    flow
}

/// The megaflow of a flow from a version on: its mask changes, so that subtables come and go.
fn megaflow(i: u32, version: u32) -> Match {
    let more = Mask::prefix(Field::DstPort, version.wrapping_mul(0x9e37) >> 8 & 15);
    Match::new(flow(i), Mask::exact(Field::Ipv4Dst) | more)
}

/// Each flow always has one megaflow, whose number says since which generation. A reader finds one that was there
/// when it began or was published since, and never an older one than the last time.
#[test]
fn every_answer_was_right_while_it_was_searched_for() {
    let mut cache = Cache::new();
    (0..FLOWS).for_each(|i| assert_eq!(cache.insert(megaflow(i, 0), i), None));
    let mut writer = Writer::new(cache);
    // Of each flow the last version that was published.
    let versions: Arc<Vec<AtomicU32>> = Arc::new((0..FLOWS).map(|_| AtomicU32::new(0)).collect());
    let readers: Vec<_> = [false, true]
        .into_iter()
        .map(|exact| {
            let mut reader = if exact { writer.reader_with_exact() } else { writer.reader() };
            let versions = Arc::clone(&versions);
            thread::spawn(move || {
                let mut batch = Batch::new();
                (0..FLOWS).for_each(|i| batch.push(&flow(i)));
                let mut numbers = vec![0; FLOWS as usize];
                let mut rounds = 0;
                while reader.generation() < u64::from(PUBLISHED) + 1 {
                    let before: Vec<u32> =
                        versions.iter().map(|v| v.load(Ordering::SeqCst)).collect();
                    reader.search(&batch, &mut numbers);
                    let generation = reader.generation() as u32 - 1;
                    for (i, number) in (0..).zip(&numbers) {
                        let (of, version) = (number % FLOWS, number / FLOWS);
                        assert_eq!(of, i, "a megaflow of another flow");
                        let oldest = before[i as usize];
                        assert!(oldest <= version && version <= generation, "{version}");
                    }
                    rounds += 1;
                    if rounds % 64 == 0 {
                        reader.release();
                    }
                }
            })
        })
        .collect();
    let mut random = Rng::new(1);
    let mut last = vec![0; FLOWS as usize];
    for version in 1..=PUBLISHED {
        let changed: Vec<u32> =
            (0..1 + random.below(5)).map(|_| random.below(FLOWS.into()) as u32).collect();
        for i in changed.iter().copied() {
            let old = std::mem::replace(&mut last[i as usize], version);
            writer.remove(&megaflow(i, old));
            writer.insert(megaflow(i, version), version * FLOWS + i);
        }
        assert_eq!(writer.publish(), u64::from(version) + 1);
        for i in changed {
            versions[i as usize].store(version, Ordering::SeqCst);
        }
    }
    readers.into_iter().for_each(|reader| reader.join().expect("a reader"));
    assert_eq!((writer.len(), writer.oldest()), (FLOWS as usize, u64::from(PUBLISHED) + 1));
}
