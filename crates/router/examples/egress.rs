//! What it costs to make the paths of a router: `cargo run --release -p fibula-router --example egress [GROUPS]
//! [NEIGHBOURS] [SUBNETS]`.
//!
//! Each group has two gateways without an interface, over two ports, which are among the neighbours. So many other
//! subnets are on the first port. Prints the best of ten.

use std::env;
use std::time::{Duration, Instant};

use fibula_core::{NextHop, NextHops};
use fibula_ingest::netlink::{Interface, InterfaceAddress, LinkMessage, Neighbour, NeighbourState};
use fibula_router::Paths;
use fibula_router::control::{Links, PortLink, egress};

fn main() {
    let mut numbers = env::args().skip(1).map(|text| text.parse::<u32>().expect("a number"));
    let mut number = |default| numbers.next().unwrap_or(default);
    let (groups, neighbours, subnets) = (number(10_000), number(10_000), number(0));
    let at = |number: u32| std::net::Ipv4Addr::from(0x0a00_0000 + number).into();
    let mut links = Links::default();
    for index in [1, 2] {
        let mac = Some([2, 0, 0, 0, 0, index as u8]);
        let interface = Interface { index, name: String::new(), mac, mtu: 1500, is_up: true };
        links.apply(LinkMessage::Interface(interface));
        let local = at(index << 20);
        links.apply(LinkMessage::Address(InterfaceAddress {
            interface: index,
            local,
            subnet: local,
            len: 12,
        }));
    }
    for number in 0..subnets {
        let local = std::net::Ipv4Addr::from(0xc600_0000 + number * 4).into();
        links.apply(LinkMessage::Address(InterfaceAddress {
            interface: 1,
            local,
            subnet: local,
            len: 30,
        }));
    }
    let address = |number: u32| at(((number % 2 + 1) << 20) + 1 + number / 2);
    for number in 0..neighbours {
        let [.., a, b] = number.to_be_bytes();
        links.apply(LinkMessage::Neighbour(Neighbour {
            interface: number % 2 + 1,
            address: address(number),
            mac: Some([2, 0, 0, 1, a, b]),
            state: NeighbourState::Reachable,
        }));
    }
    let via = |number: u32| NextHop::via(address(number % neighbours.max(1)));
    let all: Vec<NextHops> = (0..groups)
        .map(|group| NextHops { hops: vec![via(group), via(group + 1)], ..NextHops::default() })
        .collect();
    let ports = [1, 2].map(|interface| PortLink { interface, ..PortLink::default() });
    let (mut making, mut compiling) = (Duration::MAX, Duration::MAX);
    for _ in 0..10 {
        let began = Instant::now();
        let description = egress(&links, &ports, all.iter().map(Some));
        making = making.min(began.elapsed());
        assert_eq!(description.adjacencies.len() as u32, neighbours.min(groups + 1));
        let began = Instant::now();
        let paths = Paths::new(description);
        compiling = compiling.min(began.elapsed());
        assert_eq!(paths.description().groups.len() as u32, groups);
    }
    println!(
        "{groups} groups, {neighbours} neighbours, {subnets} more subnets: egress table {making:.2?}, paths {compiling:.2?}"
    );
}
