//! How many packets a second the slow path classifies alone, on one core, without a cache in front of it.
//!
//! `cargo run --release -p fibula-classify --example slow_path [-- RULES]`, of 1,000 and 100,000 rules unless a number is
//! given. The packets are drawn from the rules, one after another from different ones: nothing of a packet's search helps the
//! next one. A thousand answers are compared with the oracle's before anything is timed.

use std::hint::black_box;
use std::time::{Duration, Instant};

use fibula_classify::{
    Action, Condition, Field, Flow, Found, Mask, Rule, Rules, Scratch, SlowPath,
};
use fibula_testkit::classbench::{Filter, Kind, Packet, filters, first, traffic};

const PACKETS: usize = 100_000;
/// Packets that are timed together.
const PART: usize = 5000;
const NOTHING: Found = Found { rule: None, mask: Mask::EMPTY };

fn rule(filter: &Filter) -> Rule {
    let (src, dst) = (filter.src, filter.dst);
    let mut rule = Rule::new(Action::ALLOW)
        .when(Field::Ipv4Src, Condition::Prefix(src.addr().into(), src.len().into()))
        .and_then(|rule| {
            rule.when(Field::Ipv4Dst, Condition::Prefix(dst.addr().into(), dst.len().into()))
        });
    for (field, (first, last)) in
        [(Field::SrcPort, filter.src_port), (Field::DstPort, filter.dst_port)]
    {
        if (first, last) != (0, u16::MAX) {
            let range = Condition::Range(first.into(), last.into());
            rule = rule.and_then(|rule| rule.when(field, range));
        }
    }
    if let Some(protocol) = filter.protocol {
        let is = Condition::Is(protocol.into());
        rule = rule.and_then(|rule| rule.when(Field::Protocol, is));
    }
    rule.expect("filters are consistent")
}

fn flow(packet: &Packet) -> Flow {
    let mut flow = Flow::default();
    flow.set(Field::IpVersion, 4);
    flow.set(Field::Ipv4Src, packet.src.into());
    flow.set(Field::Ipv4Dst, packet.dst.into());
    flow.set(Field::Protocol, packet.protocol.into());
    flow.set(Field::Transport, 1);
    flow.set(Field::SrcPort, packet.src_port.into());
    flow.set(Field::DstPort, packet.dst_port.into());
    flow
}

fn main() {
    let sizes = match std::env::args().nth(1) {
        Some(rules) => vec![rules.parse().expect("a number of rules")],
        None => vec![1000, 100_000],
    };
    println!("set,rules,tuples,build_ms,bytes_rule,tuples_packet,probes_packet,mpps,ns_packet");
    for kind in Kind::ALL {
        for &size in &sizes {
            measure(kind, size);
        }
    }
}

fn measure(kind: Kind, size: usize) {
    let set = filters(kind, size, 1);
    let mut rules = Rules::new();
    for filter in &set {
        rules.insert(rule(filter)).expect("there are numbers left");
    }
    let began = Instant::now();
    let slow = SlowPath::of(&rules);
    let built = began.elapsed();

    let packets = traffic(&set, PACKETS, 2);
    let flows: Vec<Flow> = packets.iter().map(flow).collect();
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
    println!(
        "{kind:?},{size},{},{:.0},{},{:.1},{:.1},{:.2},{ns:.0}",
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
