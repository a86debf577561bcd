//! Generated sets of filters.

use std::collections::HashSet;

use fibula_testkit::classbench::{Filter, Packet, RuleSetKind, filters, first, probes, traffic};

#[test]
fn sets_have_the_requested_size_and_no_duplicates() {
    for kind in RuleSetKind::ALL {
        let set = filters(kind, 100_000, 1);
        assert_eq!(set.len(), 100_000, "{kind:?}");
        assert_eq!(set.iter().collect::<HashSet<_>>().len(), set.len(), "{kind:?}");
        assert_eq!(set[..1000], filters(kind, 1000, 1), "{kind:?}: not the same again");
        assert_ne!(set[..1000], filters(kind, 1000, 2), "{kind:?}: the seed does nothing");
    }
}

/// The shares of the published parameter file of ACL: 87 % TCP, 8 % any protocol, host pairs most often. Duplicates are
/// left out, so shares of frequent filters come out a little lower.
#[test]
fn shares_are_the_published_ones() {
    let set = filters(RuleSetKind::Acl, 5000, 3);
    let share = |is: &dyn Fn(&Filter) -> bool| {
        set.iter().filter(|filter| is(filter)).count() as f64 / set.len() as f64
    };
    let near = |share: f64, expected: f64| (share - expected).abs() < 0.05;
    assert!(near(share(&|f| f.protocol == Some(6)), 0.873));
    assert!(near(share(&|f| f.protocol.is_none()), 0.085));
    assert!(near(share(&|f| f.src_port == (0, 65535)), 1.0));
    assert!(near(share(&|f| f.dst_port.0 == f.dst_port.1), 0.884 * 0.653));
    assert!(share(&|f| (f.src.len(), f.dst.len()) == (32, 32)) > 0.6);
    let firewall = filters(RuleSetKind::Fw, 5000, 3);
    assert!(firewall.iter().any(|f| f.src_port == (1024, 65535)));
}

#[test]
fn packets_lie_where_they_should() {
    for kind in RuleSetKind::ALL {
        let set = filters(kind, 300, 5);
        for packet in traffic(&set, 500, 1) {
            assert!(first(&set, &packet).is_some());
        }
        for filter in &set {
            let inside = probes(filter).into_iter().filter(|p| filter.matches(p)).count();
            assert!(inside >= 2, "{filter}");
            // All packets are inside of the filter that matches everything alone.
            let any =
                filter.to_string().starts_with("@0.0.0.0/0\t0.0.0.0/0\t0 : 65535\t0 : 65535\t0x00");
            assert_eq!(inside == probes(filter).len(), any, "{filter}");
        }
    }
    assert!(traffic(&[], 5, 1).is_empty());
    assert_eq!(first(&[], &Packet::default()), None);
}

#[test]
fn lines_are_classbench_s() {
    let filter = Filter {
        src: "10.0.0.0/8".parse().unwrap(),
        dst: "192.0.2.1/32".parse().unwrap(),
        src_port: (0, 65535),
        dst_port: (1521, 1521),
        protocol: Some(6),
    };
    let line = "@10.0.0.0/8\t192.0.2.1/32\t0 : 65535\t1521 : 1521\t0x06/0xFF";
    assert_eq!(filter.to_string(), line);
    let any = Filter { protocol: None, ..filter };
    assert!(any.to_string().ends_with("\t0x00/0x00"));
}
