//! The state of links, as messages add and remove it.

use fibula_ingest::netlink::{LinkMessage, NeighbourState};
use fibula_router::control::Links;

use super::{address, interface, ip, mac, neighbour};

const REACHABLE: NeighbourState = NeighbourState::Reachable;

#[test]
fn only_differences_that_affect_packets_are_changes() {
    let mut links = Links::default();
    let stale = neighbour(3, "10.0.0.2", NeighbourState::Stale, 2);
    let steps = [
        (interface(3, true), true),
        (interface(3, true), false),
        (LinkMessage::Address(address(3, "10.0.0.1/24")), true),
        (LinkMessage::Address(address(3, "10.0.0.1/24")), false),
        (neighbour(3, "10.0.0.2", NeighbourState::Incomplete, 2), false),
        (neighbour(3, "10.0.0.2", REACHABLE, 2), true),
        (stale.clone(), false),
        (neighbour(3, "10.0.0.2", NeighbourState::Probe, 2), false),
        (neighbour(3, "10.0.0.2", REACHABLE, 3), true),
        (neighbour(3, "10.0.0.2", NeighbourState::Failed, 3), true),
        (LinkMessage::NeighbourGone(3, ip("10.0.0.2")), false),
        (stale, true),
        (LinkMessage::NeighbourGone(3, ip("10.0.0.2")), true),
        (interface(3, false), true),
        (LinkMessage::AddressGone(address(3, "10.0.0.1/24")), true),
        (LinkMessage::AddressGone(address(3, "10.0.0.1/24")), false),
        (LinkMessage::InterfaceGone(3), true),
        (LinkMessage::InterfaceGone(3), false),
    ];
    for (message, is_change) in steps {
        assert_eq!(links.apply(message.clone()), is_change, "{message:?}");
    }
}

#[test]
fn entries_missing_from_a_dump_are_removed() {
    let mut links = Links::default();
    links.begin();
    for index in [3, 4] {
        links.apply(interface(index, true));
        links.apply(neighbour(index, "10.0.0.2", REACHABLE, 2));
    }
    links.fix(neighbour(4, "10.0.0.9", NeighbourState::Permanent, 9));
    links.begin();
    links.apply(interface(4, true));
    links.apply(neighbour(4, "10.0.0.2", REACHABLE, 2));
    assert!(links.sweep());
    assert!(!links.sweep());
    assert_eq!((links.interface(3), links.mac(3, ip("10.0.0.2"))), (None, None));
    assert_eq!(links.mac(4, ip("10.0.0.2")), Some(mac(9, 2)));
    assert_eq!(links.mac(4, ip("10.0.0.9")), Some(mac(9, 9)));
}

#[test]
fn what_is_fixed_stays() {
    let mut links = Links::default();
    links.fix(interface(3, true));
    links.fix(LinkMessage::Address(address(3, "10.0.0.1/24")));
    links.fix(neighbour(3, "10.0.0.2", NeighbourState::Permanent, 2));
    let against = [
        interface(3, false),
        LinkMessage::AddressGone(address(3, "10.0.0.1/24")),
        neighbour(3, "10.0.0.2", NeighbourState::Failed, 3),
        LinkMessage::NeighbourGone(3, ip("10.0.0.2")),
        LinkMessage::InterfaceGone(3),
    ];
    for message in against {
        assert!(!links.apply(message.clone()), "{message:?}");
    }
    links.begin();
    assert!(!links.sweep());
    assert!(links.interface(3).is_some_and(|interface| interface.is_up));
    assert_eq!(links.mac(3, ip("10.0.0.2")), Some(mac(9, 2)));
    assert_eq!(links.addresses(3).count(), 1);
}

#[test]
fn the_longest_subnet_is_connected() {
    let mut links = Links::default();
    for (index, subnet) in [
        (3, "10.0.0.1/8"),
        (4, "10.1.0.1/16"),
        (5, "10.1.0.2/16"),
        (6, "2001:db8::1/64"),
        (6, "fe80::1/64"),
    ] {
        links.apply(LinkMessage::Address(address(index, subnet)));
    }
    for (of, expected) in [
        ("10.9.9.9", Some(3)),
        ("10.1.9.9", Some(4)),
        ("11.0.0.1", None),
        ("2001:db8::9", Some(6)),
        ("2001:db9::9", None),
        // It is on every link.
        ("fe80::9", None),
    ] {
        assert_eq!(links.connected(ip(of)), expected, "{of}");
    }
}
