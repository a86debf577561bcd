//! The slow path against trying all rules, and the megaflows that it gives.

use std::collections::HashSet;

use fibula_classify::{
    Action, Condition, Field, Flow, Mask, Match, Rule, RuleId, Rules, Scratch, SlowPath,
};
use fibula_testkit::Rng;
use fibula_testkit::classbench::{Packet, RuleSetKind, filters, first, probes, traffic};

use crate::common::{flow, table, under};

/// All boundaries of all rules of small sets.
#[test]
fn boundaries() {
    for kind in RuleSetKind::ALL {
        let set = filters(kind, 400, 1);
        let slow = SlowPath::of(&table(&set));
        let mut scratch = Scratch::default();
        for packet in set.iter().flat_map(probes) {
            let found = slow.lookup(&flow(&packet), &mut scratch).rule.map(|id| id.0 as usize);
            assert_eq!(found, first(&set, &packet), "{kind:?} {packet:?}");
        }
    }
}

/// Large sets, on packets of some rules.
#[test]
fn large_sets() {
    for kind in RuleSetKind::ALL {
        for count in [1000, 10_000, 100_000] {
            let set = filters(kind, count, 2);
            let slow = SlowPath::of(&table(&set));
            assert_eq!(slow.rules(), count);
            let mut scratch = Scratch::default();
            let near = set.iter().step_by(count / 8).flat_map(probes);
            let packets = traffic(&set, 300, 3).into_iter().chain(near);
            for packet in packets {
                let found = slow.lookup(&flow(&packet), &mut scratch).rule.map(|id| id.0 as usize);
                assert_eq!(found, first(&set, &packet), "{kind:?} {count} {packet:?}");
            }
        }
    }
}

/// What a megaflow is: all packets under it have its answer.
#[test]
fn megaflows_are_right_for_all_their_packets() {
    let (mut rng, mut scratch) = (Rng::new(4), Scratch::default());
    for kind in RuleSetKind::ALL {
        let set = filters(kind, 500, 5);
        let rules = table(&set);
        let slow = SlowPath::of(&rules);
        let near = set.iter().step_by(7).flat_map(probes).step_by(3);
        for packet in traffic(&set, 300, 6).into_iter().chain(near) {
            let flow = flow(&packet);
            let found = slow.lookup(&flow, &mut scratch);
            for _ in 0..8 {
                let other = under(&flow, &found.mask, &mut rng);
                assert!(Match::new(flow, found.mask).matches(&other));
                let expected = rules.first_match(&other).map(|(id, _)| id);
                assert_eq!(found.rule, expected, "{kind:?} {flow:?} {:?} {other:?}", found.mask);
            }
        }
    }
}

/// A packet that has rules in hundreds of tuples, all of which may win.
#[test]
fn rules_of_hundreds_of_masks_match_one_packet() {
    let mut rules = Rules::new();
    for (source, destination) in (0..8u32).flat_map(|source| (0..8).map(move |to| (source, to))) {
        // The last field is one that does not part groups.
        for port in [0, 3, 6, 9] {
            let mut rule = Rule::new(Action::Drop)
                .when(Field::Ipv4Src, Condition::Prefix(0, source))
                .and_then(|rule| rule.when(Field::Ipv4Dst, Condition::Prefix(0, destination)))
                .and_then(|rule| rule.when(Field::SrcPort, Condition::Prefix(0, port)))
                .unwrap();
            rule.priority = (source * 7 + destination * 5 + port) % 23;
            rules.insert(rule).unwrap();
        }
    }
    let slow = SlowPath::of(&rules);
    assert!(slow.tuples() > 250);
    let (mut scratch, mut rng) = (Scratch::default(), Rng::new(9));
    for _ in 0..2000 {
        let mut flow = Flow::default();
        flow.set(Field::IpVersion, 4);
        flow.set(Field::Transport, 1);
        flow.set(Field::Ipv4Src, 1 << rng.below(33) >> 1);
        flow.set(Field::Ipv4Dst, 1 << rng.below(33) >> 1);
        flow.set(Field::SrcPort, 1 << rng.below(17) >> 1);
        let found = slow.lookup(&flow, &mut scratch);
        assert_eq!(found.rule, rules.first_match(&flow).map(|(id, _)| id), "{flow:?}");
        let other = under(&flow, &found.mask, &mut rng);
        assert_eq!(found.rule, rules.first_match(&other).map(|(id, _)| id), "{other:?}");
    }
}

/// Random conditions on all kinds of fields, with masks that are no prefixes, among rules that come and go.
#[test]
fn rules_of_all_fields_come_and_go() {
    let fields = [
        Field::InPort,
        Field::Vlan,
        Field::EthDst,
        Field::Ipv4Src,
        Field::Ipv4Dst,
        Field::SrcPort,
        Field::DstPort,
        Field::Protocol,
        Field::Dscp,
        Field::TcpFlags,
        Field::IcmpType,
        Field::Ipv6Src,
    ];
    for seed in 0..12 {
        let mut rng = Rng::new(seed);
        let mut rules = Rules::new();
        let mut slow = SlowPath::default();
        let mut scratch = Scratch::default();
        let mut matched = HashSet::new();
        for step in 0..400 {
            if rng.chance(0.65) || rules.is_empty() {
                let rule = random_rule(&mut rng, &fields);
                let id = rules.insert(rule.clone()).unwrap();
                slow.insert(id, &rule);
            } else {
                let ids: Vec<RuleId> = rules.iter().map(|(id, _)| id).collect();
                let id = rng.choose(&ids).unwrap();
                let rule = rules.remove(id).unwrap();
                slow.remove(id, &rule);
            }
            assert_eq!(slow.rules(), rules.len());
            for _ in 0..6 {
                let flow = near_a_rule(&mut rng, &rules, &fields);
                let found = slow.lookup(&flow, &mut scratch);
                let expected = rules.first_match(&flow).map(|(id, _)| id);
                assert_eq!(found.rule, expected, "{seed} {step} {flow:?}");
                matched.insert(expected);
                for _ in 0..4 {
                    let other = under(&flow, &found.mask, &mut rng);
                    let expected = rules.first_match(&other).map(|(id, _)| id);
                    assert_eq!(found.rule, expected, "{seed} {step} {flow:?} {other:?}");
                }
            }
            if step % 100 == 99 {
                // What came and went answers as if it had been built anew. Megaflows may differ: which of several ways
                // to show that tuples are excluded is taken depends on their numbers.
                let anew = SlowPath::of(&rules);
                assert_eq!(anew.tuples(), slow.tuples());
                for _ in 0..50 {
                    let flow = near_a_rule(&mut rng, &rules, &fields);
                    let mut fresh = Scratch::default();
                    let (old, new) =
                        (slow.lookup(&flow, &mut scratch), anew.lookup(&flow, &mut fresh));
                    assert_eq!(old.rule, new.rule);
                }
            }
        }
        assert!(matched.len() > 20, "{} different answers", matched.len());
    }
}

pub fn random_rule(rng: &mut Rng, fields: &[Field]) -> Rule {
    loop {
        let mut rule = Ok(Rule::new(Action::Drop));
        for _ in 0..1 + rng.below(4) {
            let field = rng.choose(fields).unwrap();
            let (value, bits) = (value(rng, field), field.bits());
            let ones = u128::MAX >> (128 - bits);
            let condition = match rng.below(5) {
                0 | 1 => Condition::Is(value),
                2 => {
                    let len = rng.below(u64::from(bits) + 1) as u32;
                    let low = ones.checked_shr(len).unwrap_or(0);
                    Condition::Prefix(value & !low, len)
                }
                3 => {
                    let mask = u128::from(rng.next_u64()) & ones;
                    Condition::Masked(value & mask, mask)
                }
                _ => Condition::Range(value, ones.min(value + u128::from(rng.below(9)))),
            };
            rule = rule.and_then(|rule| rule.when(field, condition));
        }
        if let Ok(mut rule) = rule {
            rule.priority = rng.below(4) as u32;
            return rule;
        }
    }
}

/// Few values, some of them neighbours: rules overlap.
fn value(rng: &mut Rng, field: Field) -> u128 {
    let top = u128::from(rng.below(2)) << (field.bits() - 1);
    let value = top | u128::from(rng.below(3)) << (field.bits() / 2) | u128::from(rng.below(4));
    value & u128::MAX >> (128 - field.bits())
}

fn near_a_rule(rng: &mut Rng, rules: &Rules, fields: &[Field]) -> Flow {
    let mut flow = Flow::default();
    for field in fields.iter().chain(&[Field::IpVersion, Field::Transport, Field::VlanTpid]) {
        flow.set(*field, value(rng, *field));
    }
    let all: Vec<&Rule> = rules.iter().map(|(_, rule)| rule).collect();
    if let Some(rule) = rng.choose(&all) {
        let mut words = *flow.words();
        let (has, mask) = (rule.mask_match().flow().words(), rule.mask_match().mask().words());
        for ((word, has), mask) in words.iter_mut().zip(has).zip(mask) {
            *word = *word & !mask | has;
        }
        flow = Flow::from_words(words);
        for range in rule.ranges() {
            let end = if rng.chance(0.5) { range.first } else { range.last };
            flow.set(range.field, end + u128::from(rng.below(2)));
        }
    }
    flow
}

/// Few megaflows serve many packets: as many as packets would be exact match in another dress.
#[test]
fn megaflows_are_no_wider_than_needed() {
    for (kind, most) in [(RuleSetKind::Acl, 0.05), (RuleSetKind::Fw, 0.2), (RuleSetKind::Ipc, 0.15)]
    {
        let set = filters(kind, 1000, 7);
        let slow = SlowPath::of(&table(&set));
        let (mut scratch, mut rng) = (Scratch::default(), Rng::new(8));
        let (mut megaflows, mut packets) = (HashSet::new(), 0);
        for packet in traffic(&set, 40, 9) {
            // What one client sends to one service, from many ports; and hosts around it.
            for _ in 0..200 {
                let packet = Packet { src_port: rng.below(65536) as u16, ..packet };
                let packet = Packet { src: packet.src ^ rng.below(4) as u32, ..packet };
                let flow = flow(&packet);
                let found = slow.lookup(&flow, &mut scratch);
                megaflows.insert(Match::new(flow, found.mask));
                packets += 1;
            }
        }
        let share = megaflows.len() as f64 / f64::from(packets);
        assert!(share < most, "{kind:?}: {} megaflows of {packets} packets", megaflows.len());
    }
}

/// Worked by hand: what one rule, and what two rules leave open.
#[test]
fn masks_by_hand() {
    let mut rules = Rules::new();
    let of = |conditions: &[(Field, Condition)]| {
        conditions.iter().fold(Rule::new(Action::Drop), |rule, &(field, condition)| {
            rule.when(field, condition).unwrap()
        })
    };
    let net = (Field::Ipv4Dst, Condition::Prefix(0x0a00_0000, 8));
    rules.insert(of(&[net, (Field::DstPort, Condition::Range(1024, 65535))])).unwrap();
    rules.insert(of(&[net])).unwrap();
    let slow = SlowPath::of(&rules);
    let ask = |dst: u32, port: u16| {
        let packet = Packet { dst, dst_port: port, protocol: 6, ..Packet::default() };
        let found = slow.lookup(&flow(&packet), &mut Scratch::default());
        let mask = |field| found.mask.get(field);
        (
            found.rule.map(|id| id.0),
            mask(Field::Ipv4Dst),
            mask(Field::DstPort),
            mask(Field::Ipv4Src),
        )
    };
    // 8080 is at least 4096 and below 8192: four bits show that it is above 1023.
    assert_eq!(ask(0x0a01_0203, 8080), (Some(0), 0xff00_0000, 0xf000, 0));
    assert_eq!(ask(0x0a01_0203, 65535), (Some(0), 0xff00_0000, 0x8000, 0));
    assert_eq!(ask(0x0a01_0203, 1024), (Some(0), 0xff00_0000, 0xfc00, 0));
    assert_eq!(ask(0x0a01_0203, 80), (Some(1), 0xff00_0000, 0xfc00, 0));
    // The first bit parts 138.0.0.0 from 10.0.0.0, the eighth 11.0.0.0.
    assert_eq!(ask(0x8a00_0000, 80), (None, 0x8000_0000, 0, 0));
    assert_eq!(ask(0x0b00_0000, 8080), (None, 0xff00_0000, 0, 0));
    // ARP has no port and no address: that it is not IPv4, which the second bit of 0100 shows, is enough.
    let found = slow.lookup(&Flow::default(), &mut Scratch::default());
    assert_eq!((found.rule, found.mask), (None, Mask::prefix(Field::IpVersion, 2)));
}
