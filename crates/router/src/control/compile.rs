//! Compiles next hops, links and ports into an egress table.

use std::collections::HashMap;
use std::net::IpAddr;

use fibula_core::{NextHop, NextHops, RouteKind};

use super::links::{Links, Subnets, broadcast, mac};
use super::weights::{MOST, shares};
use crate::egress::{Adjacency, Egress, EgressPort, Group, Member};
use crate::port::Port;

/// A port of the router, for the control.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortLink {
    /// Its name.
    pub name: String,
    /// The index of its interface; 0 while it has none.
    pub interface: u32,
    /// Its MAC address, unless the interface has one.
    pub mac: [u8; 6],
    /// The longest IP packet in bytes, unless the interface has one.
    pub mtu: u32,
}

impl From<&Port<'_>> for PortLink {
    fn from(port: &Port<'_>) -> Self {
        let Port { name, interface, mac, mtu, .. } = port;
        Self { name: name.clone(), interface: *interface, mac: *mac, mtu: *mtu }
    }
}

/// The index by which next hops of files name the router's port of this number. No interface of a system has it, and
/// it stays when the port's interface is another one.
pub const fn index_of_port(number: u16) -> u32 {
    0x4000_0000 + number as u32
}

/// Makes the egress table of these groups, by number. Entries that are `None` are unused.
///
/// - A next hop with an interface leaves by the port of that interface. A next hop without one is on the connected
///   subnet that contains its address. If no subnet contains it, it is not usable.
/// - The kernel handles next hops over an interface that is not a port. If all usable next hops of a group are of
///   this kind, the group's packets go to the host. If some leave by ports, these get all packets.
/// - A next hop whose port is down is in no group. A group without a usable next hop has no members, and its packets
///   are unreachable.
pub fn egress<'a>(
    links: &Links,
    ports: &[PortLink],
    groups: impl IntoIterator<Item = Option<&'a NextHops>>,
) -> Egress {
    let mut compiler = Compiler::new(links, ports);
    let groups = groups.into_iter().map(|next_hops| compiler.group(next_hops)).collect();
    Egress {
        groups,
        neighbours: compiler.neighbours(),
        ports: ports.iter().map(|port| compiler.port(port)).collect(),
        adjacencies: compiler.adjacencies,
    }
}

struct Compiler<'a> {
    links: &'a Links,
    /// By the interface's index, and by [`index_of_port`].
    ports: HashMap<u32, PortState>,
    subnets: Subnets,
    adjacencies: Vec<Adjacency>,
    /// By port and gateway: the adjacency.
    known: HashMap<(u16, IpAddr), u32>,
    /// By gateway and interface, as next hops have them: groups share most of their gateways.
    ways: HashMap<(IpAddr, Option<u32>), HopTarget>,
    /// Reused.
    members: Vec<Member>,
    weights: Vec<u32>,
}

/// A port whose interface has an index.
#[derive(Clone, Copy)]
struct PortState {
    number: u16,
    interface: u32,
    /// Whether it takes packets.
    is_up: bool,
}

/// Where a next hop leads.
#[derive(Clone, Copy)]
enum HopTarget {
    Out(Member),
    Host,
    Nowhere,
}

impl<'a> Compiler<'a> {
    fn new(links: &'a Links, ports: &[PortLink]) -> Self {
        let mut by_index = HashMap::with_capacity(2 * ports.len());
        for (number, port) in (0..).zip(ports) {
            let interface = port.interface;
            let is_up = links.interface(interface).is_some_and(|interface| interface.is_up);
            let state = PortState { number, interface, is_up };
            by_index.insert(index_of_port(number), state);
            if interface > 0 {
                by_index.insert(interface, state);
            }
        }
        // Gateways are neighbours, or become some. Tables that grow are hashed again each time.
        let room = links.neighbours().count();
        Self {
            links,
            ports: by_index,
            subnets: links.subnets(),
            adjacencies: Vec::new(),
            known: HashMap::with_capacity(room),
            ways: HashMap::with_capacity(room),
            members: Vec::new(),
            weights: Vec::new(),
        }
    }

    fn group(&mut self, next_hops: Option<&NextHops>) -> Group {
        let Some(NextHops { kind, hops }) = next_hops else { return Group::Unreachable };
        match kind {
            RouteKind::Unicast => self.forward(hops),
            RouteKind::Local => Group::Local,
            RouteKind::Blackhole => Group::Blackhole,
            RouteKind::Unreachable => Group::Unreachable,
            RouteKind::Prohibit => Group::Prohibit,
        }
    }

    fn forward(&mut self, hops: &[NextHop]) -> Group {
        self.members.clear();
        self.weights.clear();
        let mut is_hosts = false;
        for hop in hops {
            match self.way(hop) {
                HopTarget::Out(member) => {
                    self.members.push(member);
                    // A weight of 0 would be a next hop that is there and gets nothing.
                    self.weights.push(hop.weight.max(1));
                }
                HopTarget::Host => is_hosts = true,
                HopTarget::Nowhere => {}
            }
        }
        let Self { members, weights, .. } = self;
        if members.is_empty() && is_hosts {
            return Group::Local;
        }
        if members.len() <= MOST && weights.iter().all(|weight| *weight == weights[0]) {
            return Group::Forward(members.clone());
        }
        let shares = shares(weights);
        let mut table = Vec::with_capacity(shares.iter().sum::<u32>() as usize);
        for (member, share) in members.iter().zip(shares) {
            table.extend(std::iter::repeat_n(*member, share as usize));
        }
        Group::Forward(table)
    }

    fn way(&mut self, hop: &NextHop) -> HopTarget {
        let Some(gateway) = hop.gateway else { return self.out(hop.interface, None) };
        let key = (gateway, hop.interface);
        if let Some(way) = self.ways.get(&key) {
            return *way;
        }
        let interface = hop.interface.or_else(|| self.subnets.interface(gateway));
        let way = self.out(interface, Some(gateway));
        self.ways.insert(key, way);
        way
    }

    /// Out by an interface, to a gateway or to a destination on the link.
    fn out(&mut self, interface: Option<u32>, gateway: Option<IpAddr>) -> HopTarget {
        let Some(interface) = interface else { return HopTarget::Nowhere };
        match (self.ports.get(&interface), gateway) {
            (None, _) => HopTarget::Host,
            (Some(port), _) if !port.is_up => HopTarget::Nowhere,
            (Some(port), None) => HopTarget::Out(Member::OnLink(port.number)),
            (Some(&PortState { number, interface, .. }), Some(gateway)) => {
                HopTarget::Out(Member::Gateway(self.adjacency(number, interface, gateway)))
            }
        }
    }

    fn adjacency(&mut self, port: u16, interface: u32, gateway: IpAddr) -> u32 {
        let Self { links, adjacencies, known, .. } = self;
        *known.entry((port, gateway)).or_insert_with(|| {
            adjacencies.push(Adjacency { port, gateway, mac: links.mac(interface, gateway) });
            (adjacencies.len() - 1) as u32
        })
    }

    fn neighbours(&self) -> HashMap<(u16, IpAddr), [u8; 6]> {
        let known = |neighbour| {
            let mac = mac(neighbour)?;
            let port = self.ports.get(&neighbour.interface)?;
            port.is_up.then_some(((port.number, neighbour.address), mac))
        };
        let all = self.links.neighbours();
        let mut neighbours = HashMap::with_capacity(all.size_hint().0);
        neighbours.extend(all.filter_map(known));
        neighbours
    }

    fn port(&self, port: &PortLink) -> EgressPort {
        let interface = self.links.interface(port.interface);
        let addresses = || self.links.addresses(port.interface);
        let mut own: Vec<IpAddr> = addresses().map(|address| address.local).collect();
        // After the addresses, because errors come from the first one. Packets to a subnet's broadcast address are for
        // the kernel, like those to the router's own addresses.
        own.extend(addresses().filter_map(broadcast));
        EgressPort {
            mac: interface.and_then(|interface| interface.mac).unwrap_or(port.mac),
            mtu: interface
                .map(|interface| interface.mtu)
                .filter(|&mtu| mtu > 0)
                .unwrap_or(port.mtu),
            vlan: None,
            addresses: own,
        }
    }
}
