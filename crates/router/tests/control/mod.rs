//! Control: links and neighbours, egress tables, views of tables that change.

mod egress;
#[cfg(target_os = "linux")]
mod kernel;
mod links;
mod shares;
#[cfg(target_os = "linux")]
mod views;

use std::net::IpAddr;

use fibula_core::{NextHop, NextHops};
use fibula_ingest::netlink::{Interface, InterfaceAddress, LinkMessage, Neighbour, NeighbourState};
use fibula_router::control::PortLink;

pub(crate) fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// An interface with a MAC address that ends in its index.
pub(crate) fn interface(index: u32, is_up: bool) -> LinkMessage {
    let mac = Some(mac(0, index as u8));
    LinkMessage::Interface(Interface { index, name: format!("eth{index}"), mac, mtu: 1500, is_up })
}

/// `10.0.0.1/24`, on an interface.
pub(crate) fn address(interface: u32, text: &str) -> InterfaceAddress {
    let (local, len) = text.split_once('/').expect("a subnet");
    let local = ip(local);
    InterfaceAddress { interface, local, subnet: local, len: len.parse().expect("a length") }
}

pub(crate) fn mac(a: u8, b: u8) -> [u8; 6] {
    [2, 0, 0, 0, a, b]
}

pub(crate) fn neighbour(
    interface: u32,
    address: &str,
    state: NeighbourState,
    last: u8,
) -> LinkMessage {
    let mac = Some(mac(9, last));
    LinkMessage::Neighbour(Neighbour { interface, address: ip(address), mac, state })
}

/// Ports on these interfaces.
pub(crate) fn ports(interfaces: &[u32]) -> Vec<PortLink> {
    let port = |&interface: &u32| PortLink {
        name: format!("port{interface}"),
        interface,
        mac: mac(7, interface as u8),
        mtu: 9000,
    };
    interfaces.iter().map(port).collect()
}

/// Next hops: `via 10.0.0.2 dev 3 weight 2, dev 4`.
pub(crate) fn hops(text: &str) -> NextHops {
    let hop = |text: &str| {
        let mut hop = NextHop { gateway: None, interface: None, weight: 1 };
        let words: Vec<&str> = text.split_whitespace().collect();
        for pair in words.chunks(2) {
            match pair {
                ["via", gateway] => hop.gateway = Some(ip(gateway)),
                ["dev", index] => hop.interface = Some(index.parse().expect("an index")),
                ["weight", weight] => hop.weight = weight.parse().expect("a weight"),
                other => panic!("{other:?}"),
            }
        }
        hop
    };
    NextHops { hops: text.split(',').map(hop).collect(), ..NextHops::default() }
}
