//! When the exact-match cache in front of the megaflows is worth it: nanoseconds for a packet without and with it, by
//! the subtables that a packet traverses and the share of packets whose whole flow came a short time ago.
//!
//! `cargo run --release -p fibula-classify --example exact`. Searches alone are timed, in batches of 256; the best of
//! 15 passes.

use std::hint::black_box;
use std::time::{Duration, Instant};

use fibula_classify::{Batch, Cache, Field, Flow, MISS, Mask, Match, Searcher};
use fibula_testkit::Rng;

/// Packets of a pass: so many that flows which come once are forgotten before the next pass.
const PACKETS: usize = 1 << 16;
/// Flows that come again and again: half of what the cache has room for.
const AGAIN: usize = 4096;
/// Megaflows of each subtable.
const EACH: usize = 115;

fn main() {
    println!("subtables,subtables_packet,exact_hits,ns_without,ns_with");
    for subtables in [1, 3, 15, 59] {
        for percent in [0, 50, 90, 100] {
            measure(subtables, percent);
        }
    }
}

/// The masks of subtables: prefixes of address and port, all different.
fn mask(number: usize) -> Mask {
    let (address, port) = (32 - number as u32 % 16, 16 - number as u32 / 16);
    Mask::exact(Field::IpVersion)
        | Mask::prefix(Field::Ipv4Dst, address)
        | Mask::prefix(Field::DstPort, port)
}

fn measure(subtables: usize, percent: u64) {
    let mut rng = Rng::new(1);
    let mut cache = Cache::new();
    let mut megaflows = Vec::new();
    for number in 0..subtables * EACH {
        let mut flow = Flow::default();
        flow.set(Field::IpVersion, 4);
        flow.set(Field::Ipv4Dst, rng.next_u64().into());
        flow.set(Field::DstPort, rng.next_u64().into());
        cache.insert(Match::new(flow, mask(number % subtables)), number as u32);
        megaflows.push(flow);
    }
    let fresh = |rng: &mut Rng| {
        let mut flow = rng.choose(&megaflows).expect("there are some");
        flow.set(Field::Protocol, 6);
        flow.set(Field::Ipv4Src, rng.next_u64().into());
        flow.set(Field::SrcPort, rng.next_u64().into());
        flow
    };
    let again: Vec<Flow> = (0..AGAIN).map(|_| fresh(&mut rng)).collect();
    let mut batches = Vec::new();
    for _ in 0..PACKETS / Batch::MAX {
        let mut batch = Batch::new();
        for _ in 0..Batch::MAX {
            let is_again = rng.below(100) < percent;
            let flow = match is_again {
                true => rng.choose(&again).expect("there are some"),
                false => fresh(&mut rng),
            };
            batch.push(&flow);
        }
        batches.push(batch);
    }
    let mut searchers = [Searcher::new(), Searcher::with_exact()];
    let mut best = [Duration::MAX; 2];
    let mut numbers = [0; Batch::MAX];
    let mut hits = 0;
    for _ in 0..15 {
        for (searcher, best) in searchers.iter_mut().zip(&mut best) {
            let before = searcher.counts().exact_hits;
            let began = Instant::now();
            for batch in &batches {
                searcher.search(&cache, black_box(batch), &mut numbers);
                assert!(!black_box(&numbers).contains(&MISS), "each packet has a megaflow");
            }
            *best = began.elapsed().min(*best);
            hits = searcher.counts().exact_hits - before;
        }
    }
    let [without, with] = best.map(|best| best.as_secs_f64() * 1e9 / PACKETS as f64);
    let traversed = subtables.div_ceil(2);
    let share = hits as f64 / PACKETS as f64;
    println!("{subtables},{traversed},{share:.2},{without:.1},{with:.1}");
}
