//! The slow path with 5-tuples over IPv6: generated sets whose prefixes are spread over 128 bits, so that lengths are
//! others.

use fibula_classify::{
    Action, Classifier, Condition, Field, Flow, Match, Rule, Rules, Scratch, SlowPath,
};
use fibula_core::Prefix;
use fibula_testkit::Rng;
use fibula_testkit::classbench::{Filter, Packet, RuleSetKind, filters, first, probes, traffic};

use crate::common::{flow, under};

/// Three bits for each bit of an IPv4 address, behind 2001:db8::/32: prefixes of `n` bits become those of `32 + 3 n`.
fn six(address: u32) -> u128 {
    let ones = (0..32).filter(|bit| address >> (31 - bit) & 1 == 1);
    ones.fold(0x2001_0db8 << 96, |all, bit| all | 0b101 << (93 - 3 * bit))
}

fn prefix(prefix: Prefix<u32>) -> Option<Condition> {
    let len = u32::from(prefix.len());
    (len > 0).then(|| Condition::Prefix(six(prefix.addr()), 32 + 3 * len))
}

fn rule(filter: &Filter) -> Rule {
    let ports = |(first, last): (u16, u16)| {
        ((first, last) != (0, u16::MAX)).then(|| Condition::Range(first.into(), last.into()))
    };
    let conditions = [
        // A filter without addresses is about IPv6 here, too.
        (Field::IpVersion, Some(Condition::Is(6))),
        (Field::Ipv6Src, prefix(filter.src)),
        (Field::Ipv6Dst, prefix(filter.dst)),
        (Field::SrcPort, ports(filter.src_port)),
        (Field::DstPort, ports(filter.dst_port)),
        (Field::Protocol, filter.protocol.map(|protocol| Condition::Is(protocol.into()))),
    ];
    conditions.into_iter().fold(Rule::new(Action::Drop), |rule, (field, condition)| match condition
    {
        Some(condition) => rule.when(field, condition).expect("filters are consistent"),
        None => rule,
    })
}

fn table(set: &[Filter]) -> Rules {
    let mut rules = Rules::new();
    for filter in set {
        rules.insert(rule(filter)).unwrap();
    }
    rules
}

fn flow6(packet: &Packet) -> Flow {
    let mut of = flow(packet);
    for (field, value) in [
        (Field::EthType, 0x86dd),
        (Field::IpVersion, 6),
        (Field::Ipv4Src, 0),
        (Field::Ipv4Dst, 0),
        (Field::Ipv6Src, six(packet.src)),
        (Field::Ipv6Dst, six(packet.dst)),
    ] {
        of.set(field, value);
    }
    of
}

/// The IPv4 filters are the oracle: addresses keep their order and what they have in common.
#[test]
fn sets_of_ipv6() {
    for kind in RuleSetKind::ALL {
        for count in [300, 20_000] {
            let set = filters(kind, count, 11);
            let slow = SlowPath::of(&table(&set));
            let mut scratch = Scratch::default();
            let near = set.iter().step_by(count / 30).flat_map(probes);
            for packet in traffic(&set, 500, 12).into_iter().chain(near) {
                let found = slow.lookup(&flow6(&packet), &mut scratch).rule;
                assert_eq!(
                    found.map(|id| id.0 as usize),
                    first(&set, &packet),
                    "{kind:?} {count} {packet:?}"
                );
            }
        }
    }
}

/// Packets under a megaflow have its answer, also those whose addresses are no spread ones and those of IPv4.
#[test]
fn megaflows_of_ipv6() {
    let (mut rng, mut scratch) = (Rng::new(13), Scratch::default());
    for kind in RuleSetKind::ALL {
        let set = filters(kind, 400, 14);
        // Some rules over IPv4 are among them.
        let mut rules = table(&set);
        for filter in set.iter().step_by(5) {
            rules.insert(crate::common::rule(filter)).unwrap();
        }
        let slow = Classifier::new(rules.clone(), &Default::default()).slow_path().clone();
        let near = set.iter().step_by(9).flat_map(probes).step_by(3);
        for packet in traffic(&set, 200, 15).into_iter().chain(near) {
            let flow = if rng.chance(0.2) { flow(&packet) } else { flow6(&packet) };
            let found = slow.lookup(&flow, &mut scratch);
            assert_eq!(found.rule, rules.first_match(&flow).map(|(id, _)| id));
            for _ in 0..6 {
                let other = under(&flow, &found.mask, &mut rng);
                assert!(Match::new(flow, found.mask).matches(&other));
                let expected = rules.first_match(&other).map(|(id, _)| id);
                assert_eq!(found.rule, expected, "{kind:?} {flow:?} {:?} {other:?}", found.mask);
            }
        }
    }
}
