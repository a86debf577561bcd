//! Verdicts before the lookup: each packet leaves as the model of its table expects, with its mark, or is dropped.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use fibula_classify::text::{self, RuleFormat, RuleOptions};
use fibula_classify::{Action, Classifier, ClassifierOptions, Field, Flow, RuleId, Table};
use fibula_packet::{Frame, LinkType};
use fibula_router::forward::{ByRules, Policy, Reason, RuleSet, TableByPort, Verdict};
use fibula_router::pipeline::{Guided, Stage, Views};
use fibula_router::{Forwarder, Outcome, Packet, Pool, View};
use fibula_testkit::Rng;

use super::frames::any;
use super::model::{ExpectedError, Fate};
use super::world::{Expected, SLOT, World, clear, options};

/// By a sum of the packet's bytes: two tables, one that is not there, drops; many marks.
fn verdict(frame: &[u8]) -> Verdict {
    let sum: u32 = frame.iter().map(|byte| u32::from(*byte)).sum();
    match sum % 7 {
        0 => Verdict::Drop,
        1 => Verdict::PASS,
        2 => Verdict::Forward { table: 2, mark: 0 },
        other => Verdict::Forward { table: (other % 2) as u16, mark: sum as u16 | 1 },
    }
}

struct BySum;

impl Policy for BySum {
    fn judge(&mut self, _: Instant, burst: &[Packet<'_>], verdicts: &mut [Verdict]) {
        assert_eq!(burst.len(), verdicts.len());
        for (packet, to) in burst.iter().zip(verdicts) {
            assert_eq!(*to, Verdict::PASS);
            *to = verdict(packet.bytes());
        }
    }
}

struct Of<'a>(&'a World);

impl Views for Of<'_> {
    fn view(&mut self) -> View<'_> {
        self.0.view()
    }
}

/// Two tables with the same prefixes, which mean other groups in each.
fn worlds() -> [World; 2] {
    let mut other = World::new(true);
    other.groups.rotate_left(3);
    [World::new(true), other]
}

fn fill<'p>(pool: &'p Pool, frames: &[(u16, Vec<u8>)]) -> Vec<Packet<'p>> {
    let filled = frames.iter().map(|(port, frame)| {
        let mut packet = pool.take().expect("the pool has slots");
        assert!(packet.fill(frame));
        packet.port = *port;
        packet
    });
    filled.collect()
}

/// The expected outcome of a burst, and the marks of the packets sent by each port in order: tables one after the
/// other.
fn expected(
    worlds: &[World; 2],
    frames: &[(u16, Vec<u8>)],
    of: impl Fn(u16, &[u8]) -> Verdict,
) -> (Expected, Vec<Vec<u16>>) {
    let ports = worlds[0].paths.description().ports.len();
    let (mut expected, mut marks) = (Expected::new(ports), vec![Vec::new(); ports]);
    for (number, world) in (0..).zip(worlds) {
        for (port, frame) in frames {
            let Verdict::Forward { table, mark } = of(*port, frame) else { continue };
            if table != number {
                continue;
            }
            let answer = world.model(|model| model.forward(*port, frame));
            expected.add(&answer, *port, frame);
            if let ExpectedError::Error(port, _) = answer.error {
                marks[usize::from(port)].push(0);
            }
            if let Fate::Sent(port, frames) = answer.fate {
                marks[usize::from(port)].extend(frames.iter().map(|_| mark));
            }
        }
    }
    for (port, frame) in frames {
        if !matches!(of(*port, frame), Verdict::Forward { table: 0 | 1, .. }) {
            expected.add_count(Reason::Policy.name(), frame.len());
            expected.dropped += 1;
        }
    }
    (expected, marks)
}

/// Runs bursts through a stage. Returns the counts by reason, and the marks of sent packets.
fn run<P: Policy>(
    worlds: &[World; 2],
    policy: P,
    of: impl Fn(u16, &[u8]) -> Verdict,
) -> (HashMap<&'static str, u64>, BTreeSet<u16>) {
    let pool = Pool::new(4096, SLOT);
    let mut rng = Rng::new(31);
    let (mut seen, mut marked) = (HashMap::new(), BTreeSet::new());
    let mut outcome = Outcome::default();
    let mut stage = Guided::new(worlds.iter().map(Of), policy, Forwarder::new(options()));
    let counters = stage.counters().unwrap();
    for len in [0, 1, 5, 64, 256].into_iter().cycle().take(150) {
        let frames: Vec<_> = (0..len).map(|_| any(&mut rng)).collect();
        let mut burst = fill(&pool, &frames);
        let before: Vec<_> = counters.iter().collect();
        stage.process(&pool, Instant::now(), &mut burst, &mut outcome);
        assert!(burst.is_empty());
        let (expected, marks) = expected(worlds, &frames, &of);
        expected.compare(&outcome, "a burst");
        for (port, packets) in outcome.send.iter().enumerate() {
            let found: Vec<u16> = packets.iter().map(|packet| packet.mark).collect();
            assert_eq!(found, marks[port], "port {port}");
            marked.extend(found);
        }
        for (before, after) in before.iter().zip(counters.iter()) {
            let more = (after.1 - before.1, after.2 - before.2);
            assert_eq!(more, expected.count(after.0), "{}", after.0.name());
            *seen.entry(after.0.name()).or_default() += more.0;
        }
        clear(&pool, &mut outcome);
        assert_eq!(pool.free(), 4096);
    }
    (seen, marked)
}

#[test]
fn each_packet_follows_its_verdict_and_its_table() {
    let (seen, marked) = run(&worlds(), BySum, |_, frame| verdict(frame));
    for name in ["policy", "forwarded_v4", "forwarded_v6", "fragmented", "host", "waiting"] {
        assert!(seen[name] > 40, "{name}: {seen:?}");
    }
    assert!(marked.contains(&0) && marked.len() > 100, "{marked:?}");
}

#[test]
fn the_port_chooses_the_table() {
    let worlds = worlds();
    let of = |port: u16, _: &[u8]| Verdict::Forward {
        table: [1, 0, 1].get(usize::from(port)).copied().unwrap_or(0),
        mark: 0,
    };
    let (seen, _) = run(&worlds, TableByPort::new([1, 0, 1]), of);
    assert!(seen["forwarded_v4"] > 100 && seen["policy"] == 0, "{seen:?}");
    // The tables have different answers for the same packet.
    let frame = |rng: &mut Rng| any(rng);
    let mut rng = Rng::new(31);
    let differ = (0..1000)
        .map(|_| frame(&mut rng))
        .filter(|(port, frame)| {
            let [a, b] = worlds.each_ref().map(|w| w.model(|model| model.forward(*port, frame)));
            a != b
        })
        .count();
    assert!(differ > 100, "{differ}");
}

/// Rules drop, mark and choose tables; packets other than IP pass without rules.
#[test]
fn rules_judge_packets() {
    let text = "\
udp dport 0-40000 -> drop
in_port 1 icmp -> drop
tcp dport 0-32767 -> mark 5
tcp -> mark 6 table 1
ip_version 6 -> allow table 1
any -> mark 9
";
    let rules = text::read(text.as_bytes(), RuleFormat::Rules, &RuleOptions::default()).unwrap();
    let all = rules.rules.clone();
    let of = move |port: u16, frame: &[u8]| {
        let frame = Frame::parse(LinkType::Ethernet, frame);
        let by_port = [1, 0, 1].get(usize::from(port)).copied().unwrap_or(0);
        if frame.network().is_none() {
            return Verdict::Forward { table: by_port, mark: 0 };
        }
        let mut flow = Flow::from(&frame);
        flow.set(Field::InPort, port.into());
        match &all.first_match(&flow).unwrap().1.action {
            Action::Drop => Verdict::Drop,
            Action::Allow { mark, table: Table::Number(table) } => {
                Verdict::Forward { table: *table, mark: *mark }
            }
            Action::Allow { mark, .. } => Verdict::Forward { table: by_port, mark: *mark },
        }
    };
    let classifier = Classifier::new(rules.rules, &ClassifierOptions::default());
    let number = |table: &Table| match table {
        Table::Number(number) => Ok(*number),
        _ => Err("numbers only"),
    };
    let policy = ByRules::new(classifier, [1, 0, 1], number).unwrap();
    let (seen, marked) = run(&worlds(), policy, of);
    assert!(seen["policy"] > 50 && seen["forwarded_v4"] > 50, "{seen:?}");
    assert!(marked.is_superset(&[0, 5, 6, 9].into()), "{marked:?}");
    let named = text::read(b"any -> vrf blue", RuleFormat::Rules, &RuleOptions::default()).unwrap();
    let classifier = Classifier::new(named.rules, &ClassifierOptions::default());
    assert_eq!(ByRules::new(classifier, [], number).unwrap_err(), "numbers only");
}

/// Another thread gives a policy other rules: they apply from the next burst on, and each set has its own counts.
#[test]
fn rules_are_replaced_between_bursts() {
    let set = |text: &str| {
        let read = text::read(text.as_bytes(), RuleFormat::Rules, &RuleOptions::default()).unwrap();
        let classifier = Classifier::new(read.rules, &ClassifierOptions::default());
        RuleSet::new(classifier, [0], |_| Err("no tables")).unwrap()
    };
    let pool = Pool::new(256, SLOT);
    let mut rng = Rng::new(7);
    let frames: Vec<_> = (0..100).map(|_| any(&mut rng)).collect();
    let burst = fill(&pool, &frames);
    let is_ip =
        |packet: &&Packet<'_>| Frame::parse(LinkType::Ethernet, packet.bytes()).network().is_some();
    let of_ip = burst.iter().filter(is_ip).count() as u64;
    let bytes: usize = burst.iter().filter(is_ip).map(|packet| packet.bytes().len()).sum();
    let mut policy = ByRules::from(set("any -> drop"));
    let (handle, first) = (policy.handle(), policy.counts());
    let judge = |policy: &mut ByRules| {
        let mut verdicts = vec![Verdict::PASS; burst.len()];
        policy.judge(Instant::now(), &burst, &mut verdicts);
        verdicts.iter().filter(|verdict| **verdict == Verdict::Drop).count() as u64
    };
    assert_eq!(judge(&mut policy), of_ip);
    handle.replace(set("any -> drop"));
    handle.replace(set("tcp -> drop\nany -> allow"));
    assert!(!handle.settle(Duration::from_millis(5)), "nobody has judged");
    assert_eq!(policy.classifier().rules().len(), 1);
    assert!(judge(&mut policy) < of_ip);
    assert!(handle.settle(Duration::ZERO));
    assert_eq!(policy.classifier().rules().len(), 2);
    let second = policy.counts();
    assert_eq!(first.of(Some(RuleId(0))), (of_ip, bytes as u64));
    let sums = [Some(RuleId(0)), Some(RuleId(1)), None].map(|rule| second.of(rule).0);
    assert_eq!((sums.iter().sum::<u64>(), sums[2]), (of_ip, 0));
    assert_eq!(second.of(Some(RuleId(9))), (0, 0));
}
