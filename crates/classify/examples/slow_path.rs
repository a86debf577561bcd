//! How many packets a second the slow path classifies alone, on one core, without a cache in front of it.
//!
//! `cargo run --release -p fibula-classify --example slow_path [-- RULES]`, of 1,000 and 100,000 rules unless a number
//! is given. The packets are drawn from the rules, one after another from different ones: nothing of a packet's search
//! helps the next one. A thousand answers are compared with the oracle's before anything is timed.
//!
//! The last two columns show how wide the megaflows are: how many megaflows, of how many masks, a hundred thousand
//! packets from few clients to few services need, whose source ports and hosts differ.

mod common;

use std::collections::HashSet;
use std::hint::black_box;
use std::time::{Duration, Instant};

use fibula_classify::{Flow, Found, Mask, Match, Scratch, SlowPath};
use fibula_testkit::Rng;
use fibula_testkit::classbench::{Filter, Packet, RuleSetKind, filters, first, traffic};

const PACKETS: usize = 100_000;
/// Packets that are timed together.
const PART: usize = 5000;
const NOTHING: Found = Found { rule: None, mask: Mask::EMPTY };

fn main() {
    let sizes = match std::env::args().nth(1) {
        Some(rules) => vec![rules.parse().expect("a number of rules")],
        None => vec![1000, 100_000],
    };
    println!(
        "set,rules,tuples,build_ms,bytes_rule,tuples_packet,probes_packet,mpps,ns_packet,megaflows,masks"
    );
    for kind in RuleSetKind::ALL {
        for &size in &sizes {
            measure(kind, size);
        }
    }
}

fn measure(kind: RuleSetKind, size: usize) {
    let set = filters(kind, size, 1);
    let rules = common::rules(&set);
    let began = Instant::now();
    let slow = SlowPath::of(&rules);
    let built = began.elapsed();

    let packets = traffic(&set, PACKETS, 2);
    let flows: Vec<Flow> = packets.iter().map(common::flow).collect();
    let mut scratch = Scratch::default();
    for (packet, flow) in packets.iter().zip(&flows).take(1000) {
        let found = slow.lookup(flow, &mut scratch).rule.map(|id| id.0 as usize);
        assert_eq!(found, first(&set, packet), "{packet:?}");
    }
    let before = scratch.effort();
    pass(&slow, &flows, &mut scratch);
    let after = scratch.effort();
    // The best of eight passes over each part: other programs of the machine disturb some of them.
    let mut best = vec![Duration::MAX; flows.len().div_ceil(PART)];
    for _ in 0..8 {
        for (best, part) in best.iter_mut().zip(flows.chunks(PART)) {
            *best = pass(&slow, part, &mut scratch).min(*best);
        }
    }
    let best: Duration = best.iter().sum();
    let ns = best.as_nanos() as f64 / flows.len() as f64;
    let mean = |sum: usize| sum as f64 / flows.len() as f64;
    let (megaflows, masks) = megaflows(&slow, &set);
    println!(
        "{kind:?},{size},{},{:.0},{},{:.1},{:.1},{:.2},{ns:.0},{megaflows},{masks}",
        slow.tuples(),
        built.as_secs_f64() * 1000.0,
        slow.memory() / size,
        mean(after.tuples - before.tuples),
        mean(after.probes - before.probes),
        1000.0 / ns,
    );
}

fn pass(slow: &SlowPath, flows: &[Flow], scratch: &mut Scratch) -> Duration {
    let began = Instant::now();
    let mut found = [NOTHING; 256];
    for flows in flows.chunks(found.len()) {
        slow.lookup_batch(black_box(flows), &mut found[..flows.len()], scratch);
        black_box(&found);
    }
    began.elapsed()
}

/// How many megaflows, and how many masks of them, the packets need that hosts of 500 neighbourhoods send to 500
/// services.
fn megaflows(slow: &SlowPath, set: &[Filter]) -> (usize, usize) {
    let (mut scratch, mut rng) = (Scratch::default(), Rng::new(3));
    let (mut megaflows, mut masks) = (HashSet::new(), HashSet::new());
    for packet in traffic(set, 500, 4) {
        for _ in 0..200 {
            let src_port = rng.below(65536) as u16;
            let flow =
                common::flow(&Packet { src_port, src: packet.src ^ rng.below(4) as u32, ..packet });
            let found = slow.lookup(&flow, &mut scratch);
            megaflows.insert(Match::new(flow, found.mask));
            masks.insert(found.mask);
        }
    }
    (megaflows.len(), masks.len())
}
