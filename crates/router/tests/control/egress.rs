//! Egress tables: by hand, and against a plain model.

use std::collections::HashMap;
use std::net::IpAddr;

use fibula_core::{NextHop, NextHops, RouteKind};
use fibula_ingest::netlink::{LinkMessage, NeighbourState};
use fibula_router::control::{Links, PortLink, egress};
use fibula_router::egress::{Egress, Group, Member};
use proptest::prelude::*;

use super::{address, hops, interface, ip, mac, neighbour, ports};

/// Ports 0 and 1 on interfaces 3 and 4; interface 5 is no port.
fn links() -> Links {
    let mut links = Links::default();
    for index in [3, 4, 5] {
        links.apply(interface(index, true));
    }
    let addresses =
        [(3, "10.0.0.1/24"), (4, "10.0.1.1/24"), (5, "10.0.2.1/24"), (3, "2001:db8::1/64")];
    for (index, subnet) in addresses {
        links.apply(LinkMessage::Address(address(index, subnet)));
    }
    for (index, at, last) in [(3, "10.0.0.2", 2), (4, "10.0.1.2", 3), (3, "fe80::2", 4)] {
        links.apply(neighbour(index, at, NeighbourState::Reachable, last));
    }
    links
}

fn one(links: &Links, next_hops: &NextHops) -> Egress {
    egress(links, &ports(&[3, 4]), [Some(next_hops)])
}

/// Members as text: `0/10.0.0.2/02:..` by port, gateway and the last byte of the MAC address.
fn shown(egress: &Egress) -> String {
    let member = |member: &Member| match *member {
        Member::OnLink(port) => format!("{port}"),
        Member::Gateway(at) => {
            let way = egress.adjacencies[at as usize];
            let mac = way.mac.map_or("?".to_owned(), |mac| mac[5].to_string());
            format!("{}/{}/{mac}", way.port, way.gateway)
        }
    };
    match &egress.groups[0] {
        Group::Forward(members) => members.iter().map(member).collect::<Vec<_>>().join(" "),
        other => format!("{other:?}"),
    }
}

#[test]
fn next_hops_leave_by_ports() {
    for (next_hops, expected) in [
        ("via 10.0.0.2 dev 3", "0/10.0.0.2/2"),
        // Without an interface: by the connected subnets.
        ("via 10.0.1.2", "1/10.0.1.2/3"),
        ("via 10.0.1.77", "1/10.0.1.77/?"),
        ("via 192.0.2.1", ""),
        ("via fe80::2", ""),
        // A gateway of the other family, which an IPv4 route may have, is in no subnet or in one.
        ("via fe80::2 dev 3", "0/fe80::2/4"),
        ("via 2001:db8::9", "0/2001:db8::9/?"),
        // On the link.
        ("dev 4", "1"),
        // Interface 5 is no port, and interface 6 does not exist: these are for the kernel.
        ("via 10.0.2.2 dev 5", "Local"),
        ("via 10.0.2.2", "Local"),
        ("dev 6", "Local"),
        // Of several, those over ports.
        ("via 10.0.2.2 dev 5, via 10.0.0.2 dev 3", "0/10.0.0.2/2"),
        ("via 10.0.0.2 dev 3, via 10.0.1.2 dev 4", "0/10.0.0.2/2 1/10.0.1.2/3"),
        ("via 10.0.0.2 weight 20, dev 4 weight 10", "0/10.0.0.2/2 0/10.0.0.2/2 1"),
    ] {
        assert_eq!(shown(&one(&links(), &hops(next_hops))), expected, "{next_hops}");
    }
}

#[test]
fn other_kinds_have_no_members() {
    for (kind, group) in [
        (RouteKind::Local, Group::Local),
        (RouteKind::Blackhole, Group::Blackhole),
        (RouteKind::Unreachable, Group::Unreachable),
        (RouteKind::Prohibit, Group::Prohibit),
    ] {
        let next_hops = NextHops { kind, ..hops("dev 3") };
        assert_eq!(one(&links(), &next_hops).groups, [group]);
    }
    let none = egress(&links(), &ports(&[3]), [None, Some(&NextHops::default())]);
    assert_eq!(none.groups, [Group::Unreachable, Group::Forward(vec![])]);
}

#[test]
fn a_link_that_flaps_takes_its_members_along() {
    let mut links = links();
    let next_hops = hops("via 10.0.0.2 dev 3, via 10.0.1.2 dev 4, via 10.0.2.2 dev 5");
    let mut members = |message| {
        links.apply(message);
        shown(&one(&links, &next_hops))
    };
    assert_eq!(members(interface(4, false)), "0/10.0.0.2/2");
    // Nothing leaves by ports: the kernel still has a way.
    assert_eq!(members(interface(3, false)), "Local");
    assert_eq!(members(interface(4, true)), "1/10.0.1.2/3");
    assert_eq!(members(interface(3, true)), "0/10.0.0.2/2 1/10.0.1.2/3");
    assert_eq!(members(LinkMessage::InterfaceGone(4)), "0/10.0.0.2/2");
    let alone = hops("via 10.0.1.2 dev 4");
    assert_eq!(one(&links, &alone).groups, [Group::Forward(vec![])]);
}

#[test]
fn neighbours_and_ports_are_those_of_the_links() {
    let mut links = links();
    links.apply(neighbour(3, "10.0.0.9", NeighbourState::Failed, 9));
    links.apply(neighbour(5, "10.0.2.2", NeighbourState::Reachable, 5));
    let description = one(&links, &hops("dev 3"));
    let expected = HashMap::from([
        ((0, ip("10.0.0.2")), mac(9, 2)),
        ((1, ip("10.0.1.2")), mac(9, 3)),
        ((0, ip("fe80::2")), mac(9, 4)),
    ]);
    assert_eq!(description.neighbours, expected);
    // Its own addresses first, then the broadcast address of the subnet.
    let own = [ip("10.0.0.1"), ip("2001:db8::1"), ip("10.0.0.255")];
    assert_eq!(
        (description.ports[0].addresses.as_slice(), description.ports[0].mac),
        (&own[..], mac(0, 3))
    );
    assert_eq!(description.ports[0].mtu, 1500);
    // Without an interface, the port's own values apply.
    let description = egress(&Links::default(), &ports(&[3]), []);
    assert_eq!((description.ports[0].mac, description.ports[0].mtu), (mac(7, 3), 9000));
}

/// Next hops over gateways 10.0.x.1 to 3 (x: interface 3 to 6, perhaps unsaid), on the link, of weights 0 to 4.
fn any_hops() -> impl Strategy<Value = NextHops> {
    let hop = (3u32..7, any::<bool>(), 0u8..4, 0u32..5).prop_map(|(index, said, last, weight)| {
        let gateway: Option<IpAddr> = (last > 0).then(|| [10, 0, index as u8, last].into());
        NextHop { gateway, interface: (said || last == 0).then_some(index), weight }
    });
    prop::collection::vec(hop, 0..5).prop_map(|hops| NextHops { hops, ..NextHops::default() })
}

proptest! {
    #[test]
    fn equal_to_the_model(
        all in prop::collection::vec(any_hops(), 0..6),
        up in prop::array::uniform4(any::<bool>()),
        known in prop::collection::vec((3u32..7, 1u8..4), 0..6),
        is_port in prop::array::uniform4(any::<bool>()),
    ) {
        let mut links = Links::default();
        let index_of = |at: usize| at as u32 + 3;
        for (at, &up) in up.iter().enumerate() {
            links.apply(interface(index_of(at), up));
            links.apply(LinkMessage::Address(address(index_of(at), &format!("10.0.{}.100/24", at + 3))));
        }
        for &(index, last) in &known {
            let at = format!("10.0.{index}.{last}");
            links.apply(neighbour(index, &at, NeighbourState::Stale, last));
        }
        let indices: Vec<u32> = (0..4).filter(|&at| is_port[at]).map(index_of).collect();
        let links_of_ports: Vec<PortLink> = ports(&indices);
        let description = egress(&links, &links_of_ports, all.iter().map(Some));
        for (next_hops, group) in all.iter().zip(&description.groups) {
            // The expected result: the sum of the weights of usable members, by interface and gateway.
            let mut wanted: HashMap<(u16, Option<IpAddr>), u32> = HashMap::new();
            let mut has_host = false;
            for hop in &next_hops.hops {
                let index = hop.interface.unwrap_or_else(|| match hop.gateway {
                    Some(IpAddr::V4(gateway)) => u32::from(gateway.octets()[2]),
                    other => panic!("{other:?}"),
                });
                match indices.iter().position(|&port| port == index) {
                    None => has_host = true,
                    Some(port) if up[index as usize - 3] => {
                        *wanted.entry((port as u16, hop.gateway)).or_default() += hop.weight.max(1);
                    }
                    Some(_) => {}
                }
            }
            let Group::Forward(members) = group else {
                prop_assert!(wanted.is_empty() && has_host && *group == Group::Local);
                continue;
            };
            prop_assert!(!members.is_empty() || !has_host);
            let mut got: HashMap<(u16, Option<IpAddr>), u32> = HashMap::new();
            for member in members {
                let key = match *member {
                    Member::OnLink(port) => (port, None),
                    Member::Gateway(at) => {
                        let way = description.adjacencies[at as usize];
                        let IpAddr::V4(gateway) = way.gateway else { panic!("{way:?}") };
                        let [.., index, last] = gateway.octets();
                        let is_known = known.contains(&(index.into(), last));
                        prop_assert_eq!(way.mac, is_known.then(|| mac(9, last)));
                        (way.port, Some(way.gateway))
                    }
                };
                *got.entry(key).or_default() += 1;
            }
            let all: u32 = wanted.values().sum();
            prop_assert_eq!(wanted.len(), got.len());
            for (key, weight) in wanted {
                prop_assert_eq!(got[&key] * all, weight * members.len() as u32);
            }
        }
    }
}
