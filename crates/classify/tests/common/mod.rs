//! Rules and packets for tests.

use fibula_classify::{Action, Condition, Field, Flow, Mask, Rule, Rules};
use fibula_testkit::Rng;
use fibula_testkit::classbench::{Filter, Packet};

/// The rule of a filter, made by hand: readers are tested against it.
pub fn rule(filter: &Filter) -> Rule {
    let mut conditions = vec![
        (Field::Ipv4Src, Condition::Prefix(filter.src.addr().into(), filter.src.len().into())),
        (Field::Ipv4Dst, Condition::Prefix(filter.dst.addr().into(), filter.dst.len().into())),
    ];
    for (field, (first, last)) in
        [(Field::SrcPort, filter.src_port), (Field::DstPort, filter.dst_port)]
    {
        if (first, last) != (0, u16::MAX) {
            conditions.push((field, Condition::Range(first.into(), last.into())));
        }
    }
    if let Some(protocol) = filter.protocol {
        conditions.push((Field::Protocol, Condition::Is(protocol.into())));
    }
    conditions.into_iter().fold(Rule::new(Action::ALLOW), |rule, (field, condition)| {
        rule.when(field, condition).expect("filters are consistent")
    })
}

/// A table of filters' rules.
pub fn table(filters: &[Filter]) -> Rules {
    let mut rules = Rules::new();
    for filter in filters {
        rules.insert(rule(filter)).expect("there are numbers left");
    }
    rules
}

/// The flow of a packet. All have ports, as ClassBench's have, whatever their protocol is.
pub fn flow(packet: &Packet) -> Flow {
    let mut flow = Flow::default();
    for (field, value) in [
        (Field::EthType, 0x0800),
        (Field::IpVersion, 4),
        (Field::Ipv4Src, packet.src.into()),
        (Field::Ipv4Dst, packet.dst.into()),
        (Field::Protocol, packet.protocol.into()),
        (Field::Transport, 1),
        (Field::SrcPort, packet.src_port.into()),
        (Field::DstPort, packet.dst_port.into()),
    ] {
        flow.set(field, value);
    }
    flow
}

/// A flow that agrees with another one in the bits of a mask, and is random in some of the others.
pub fn under(flow: &Flow, mask: &Mask, rng: &mut Rng) -> Flow {
    let mut words = *flow.words();
    let all = rng.chance(0.3);
    for (word, mask) in words.iter_mut().zip(mask.words()) {
        // All free bits, or one here and there: what is near the megaflow is where it would be wrong.
        let noise = if all { rng.next_u64() } else { 1 << rng.below(64) | 1 << rng.below(64) };
        *word ^= noise & !mask;
    }
    Flow::from_words(words)
}
