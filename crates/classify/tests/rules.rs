//! Rules and their tables.

use fibula_classify::{Action, Condition, Field, Flow, Match, Rule, RuleError, Rules};
use fibula_testkit::Rng;
use fibula_testkit::classbench::{RuleSetKind, filters, first, probes};

use crate::common::{flow, rule, table};

#[test]
fn rules_match_what_filters_match() {
    for kind in RuleSetKind::ALL {
        for filter in filters(kind, 300, 1) {
            let rule = rule(&filter);
            for packet in probes(&filter) {
                assert_eq!(rule.matches(&flow(&packet)), filter.matches(&packet), "{filter}");
                assert_eq!(rule.failing(&flow(&packet)).count() == 0, filter.matches(&packet));
            }
        }
    }
}

#[test]
fn the_first_of_equal_priority_wins() {
    let set = filters(RuleSetKind::Fw, 200, 2);
    let rules = table(&set);
    for packet in set.iter().flat_map(probes) {
        let found = rules.first_match(&flow(&packet)).map(|(id, _)| id.0 as usize);
        assert_eq!(found, first(&set, &packet));
    }
    let mut rules = Rules::new();
    let of = |priority| {
        let mut rule = Rule::new(Action::Drop);
        rule.priority = priority;
        rule
    };
    let ids = [1, 7, 7, 0].map(|priority| rules.insert(of(priority)).unwrap());
    let winner = |rules: &Rules| rules.first_match(&Flow::default()).map(|(id, _)| id);
    assert_eq!(winner(&rules), Some(ids[1]));
    for gone in [1, 2, 0] {
        assert!(rules.remove(ids[gone]).is_some());
        assert_eq!(rules.remove(ids[gone]), None, "it is gone");
    }
    assert_eq!((winner(&rules), rules.len()), (Some(ids[3]), 1));
    assert_eq!(rules.insert(of(0)).unwrap().0, 4, "numbers are not used again");
    assert_eq!(rules.iter().map(|(id, _)| id.0).collect::<Vec<_>>(), [3, 4]);
}

#[test]
fn conditions_bring_others() {
    let with = |field, value| Rule::new(Action::Drop).when(field, Condition::Is(value)).unwrap();
    for (field, other, value) in [
        (Field::Ipv4Src, Field::IpVersion, 4),
        (Field::Ipv6Dst, Field::IpVersion, 6),
        (Field::DstPort, Field::Transport, 1),
        (Field::IcmpType, Field::Transport, 2),
        (Field::TcpFlags, Field::Protocol, 6),
    ] {
        assert_eq!(with(field, 0).mask_match().flow().get(other), value, "{field}");
        assert_ne!(with(field, 0).mask_match().mask().get(other), 0, "{field}");
        // A packet without the field has 0 there, and is not meant.
        assert!(!with(field, 0).matches(&Flow::default()), "{field}");
    }
    // The VLAN 0 of a tag, and no tag.
    let mut tagged = Flow::default();
    assert!(!with(Field::Vlan, 0).matches(&tagged));
    tagged.set(Field::VlanTpid, 0x8100);
    assert!(with(Field::Vlan, 0).matches(&tagged));
    // Protocol 0 of IPv4 and IPv6, not of ARP.
    let mut ip = Flow::default();
    assert!(!with(Field::Protocol, 0).matches(&ip));
    for version in [4, 6] {
        ip.set(Field::IpVersion, version);
        assert!(with(Field::Protocol, 0).matches(&ip));
    }
}

#[test]
fn wrong_conditions_are_refused() {
    let refused = |conditions: &[(Field, Condition)]| {
        let mut rule = Ok(Rule::new(Action::Drop));
        for &(field, condition) in conditions {
            rule = rule.and_then(|rule| rule.when(field, condition));
        }
        rule.map(|_| ()).unwrap_err()
    };
    use Condition::{Is, Masked, Prefix, Range};
    use Field::{DstPort, IcmpType, IpVersion, Ipv4Src, Ipv6Dst, Protocol};
    assert_eq!(refused(&[(DstPort, Is(1 << 16))]), RuleError::Width(DstPort));
    assert_eq!(refused(&[(DstPort, Range(1, 1 << 16))]), RuleError::Width(DstPort));
    assert_eq!(refused(&[(DstPort, Range(2, 1))]), RuleError::Order(DstPort));
    assert_eq!(refused(&[(Ipv4Src, Prefix(1, 8))]), RuleError::HostBits(Ipv4Src));
    assert_eq!(refused(&[(Ipv4Src, Masked(3, 1))]), RuleError::HostBits(Ipv4Src));
    assert_eq!(refused(&[(Ipv4Src, Masked(0, 1 << 32))]), RuleError::Width(Ipv4Src));
    assert_eq!(refused(&[(Ipv4Src, Is(1)), (Ipv6Dst, Is(1))]), RuleError::Never(IpVersion));
    assert_eq!(refused(&[(Protocol, Is(6)), (Protocol, Is(17))]), RuleError::Never(Protocol));
    // Ports of ICMP, a type of TCP, in either order.
    assert_eq!(refused(&[(Protocol, Is(1)), (DstPort, Is(53))]), RuleError::Never(DstPort));
    assert_eq!(refused(&[(IcmpType, Is(8)), (Protocol, Is(6))]), RuleError::Never(Protocol));
    assert_eq!(
        refused(&[(DstPort, Is(1)), (Protocol, Range(34, 131))]),
        RuleError::Never(Protocol)
    );
    let ranges = [(DstPort, Range(1, 10)), (DstPort, Range(11, 20))];
    assert_eq!(refused(&ranges), RuleError::Never(DstPort));
    let odd = [(DstPort, Masked(1, 1)), (DstPort, Range(2, 2))];
    assert_eq!(refused(&odd), RuleError::Never(DstPort));
}

#[test]
fn conditions_on_one_field_are_all_met() {
    let rule = Rule::new(Action::Drop)
        .when(Field::DstPort, Condition::Range(10, 100))
        .and_then(|rule| rule.when(Field::DstPort, Condition::Range(50, 200)))
        .and_then(|rule| rule.when(Field::DstPort, Condition::Masked(1, 1)))
        .unwrap();
    for port in 0..300 {
        let mut flow = Flow::default();
        flow.set(Field::Transport, 1);
        flow.set(Field::DstPort, port);
        assert_eq!(rule.matches(&flow), (50..=100).contains(&port) && port % 2 == 1, "{port}");
    }
    // Aligned ranges are masks, whichever way they come about.
    let aligned = Rule::new(Action::Drop)
        .when(Field::DstPort, Condition::Range(0, 1535))
        .and_then(|rule| rule.when(Field::DstPort, Condition::Range(1024, 65535)))
        .unwrap();
    assert_eq!(aligned.ranges(), []);
    assert_eq!(aligned.mask_match().mask().get(Field::DstPort), 0xfe00);
}

/// Whether a rule and a megaflow have a packet in common, by trying all packets of a small space.
#[test]
fn rules_meet_megaflows() {
    let mut rng = Rng::new(1);
    let (mut met, mut passed) = (0, 0);
    for _ in 0..3000 {
        let first = u128::from(rng.below(16));
        let last = first + u128::from(rng.below(16 - first as u64));
        let mask = u128::from(rng.below(16));
        let rule =
            Rule::new(Action::Drop).when(Field::IpVersion, Condition::Range(first, last)).and_then(
                |rule| rule.when(Field::Fragment, Condition::Masked(u128::from(rng.below(2)), 1)),
            );
        let Ok(rule) = rule else { continue };
        let of = |version: u128, fragment: u128| {
            let mut flow = Flow::default();
            flow.set(Field::IpVersion, version);
            flow.set(Field::Fragment, fragment);
            flow
        };
        let mut bits = fibula_classify::Mask::bits(Field::IpVersion, mask);
        bits |= fibula_classify::Mask::bits(Field::Fragment, u128::from(rng.below(4)));
        let other = Match::new(of(u128::from(rng.below(16)), u128::from(rng.below(4))), bits);
        let all = (0..16).flat_map(|version| (0..4).map(move |fragment| of(version, fragment)));
        let expected = all.into_iter().any(|flow| rule.matches(&flow) && other.matches(&flow));
        assert_eq!(rule.meets(&other), expected, "{rule:?} {other:?}");
        if expected { met += 1 } else { passed += 1 }
    }
    assert!(met > 300 && passed > 300, "{met} {passed}");
}
