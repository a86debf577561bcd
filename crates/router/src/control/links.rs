//! The known interfaces, addresses and neighbours.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv4Addr};

use fibula_core::AnyPrefix;
use fibula_ingest::netlink::{Interface, InterfaceAddress, LinkMessage, Neighbour};

/// Interfaces, addresses and neighbours. Configured ones are fixed. Those from the kernel are removed when a dump
/// does not contain them.
#[derive(Clone, Debug, Default)]
pub struct Links {
    interfaces: HashMap<u32, (Interface, Round)>,
    addresses: BTreeMap<InterfaceAddress, Round>,
    neighbours: HashMap<(u32, IpAddr), (Neighbour, Round)>,
    round: Round,
}

/// The number of the dump that contained an entry, or [`FIXED`].
type Round = u32;

const FIXED: Round = Round::MAX;

impl Links {
    /// Adds a fixed entry, whatever the kernel reports.
    pub fn fix(&mut self, message: LinkMessage) {
        let round = std::mem::replace(&mut self.round, FIXED);
        self.apply(message);
        self.round = round;
    }

    /// Removes the fixed addresses and neighbours of an interface.
    pub fn unfix(&mut self, interface: u32) {
        self.addresses.retain(|a, round| a.interface != interface || *round != FIXED);
        self.neighbours.retain(|key, (_, round)| key.0 != interface || *round != FIXED);
    }

    /// Applies a message of the kernel. Returns whether it can affect packets.
    pub fn apply(&mut self, message: LinkMessage) -> bool {
        let round = self.round;
        match message {
            LinkMessage::Interface(new) => {
                let old = self.interfaces.get(&new.index);
                if is_fixed(old.map(|old| old.1), round) {
                    return false;
                }
                let is_changed = old.is_none_or(|(old, _)| *old != new);
                self.interfaces.insert(new.index, (new, round));
                is_changed
            }
            LinkMessage::InterfaceGone(index) => {
                let is_mine = |&round: &Round| round != FIXED;
                let was = self.interfaces.get(&index).is_some_and(|(_, round)| is_mine(round));
                if was {
                    self.interfaces.remove(&index);
                    self.addresses.retain(|a, round| a.interface != index || !is_mine(round));
                    self.neighbours.retain(|key, (_, round)| key.0 != index || !is_mine(round));
                }
                was
            }
            LinkMessage::Address(new) => {
                let old = self.addresses.get(&new).copied();
                if !is_fixed(old, round) {
                    self.addresses.insert(new, round);
                }
                old.is_none()
            }
            LinkMessage::AddressGone(gone) => {
                let was = self.addresses.get(&gone).is_some_and(|&round| round != FIXED);
                was && self.addresses.remove(&gone).is_some()
            }
            LinkMessage::Neighbour(new) => {
                let key = (new.interface, new.address);
                let old = self.neighbours.get(&key);
                if is_fixed(old.map(|old| old.1), round) {
                    return false;
                }
                let before = old.and_then(|(old, _)| mac(old));
                self.neighbours.insert(key, (new, round));
                before != mac(&new)
            }
            LinkMessage::NeighbourGone(interface, address) => {
                let key = (interface, address);
                if self.neighbours.get(&key).is_none_or(|old| old.1 == FIXED) {
                    return false;
                }
                self.neighbours.remove(&key).is_some_and(|(old, _)| mac(&old).is_some())
            }
            LinkMessage::Reply(_) => false,
        }
    }

    /// Begins a dump.
    pub fn begin(&mut self) {
        self.round = (self.round + 1) % FIXED;
    }

    /// Ends a dump: removes entries that it did not contain. Returns whether this can affect packets.
    pub fn sweep(&mut self) -> bool {
        let is_said = |&round: &Round| round == FIXED || round == self.round;
        let before = (self.interfaces.len(), self.addresses.len(), self.neighbours.len());
        self.interfaces.retain(|_, (_, round)| is_said(round));
        self.addresses.retain(|_, round| is_said(round));
        self.neighbours.retain(|_, (_, round)| is_said(round));
        before != (self.interfaces.len(), self.addresses.len(), self.neighbours.len())
    }

    /// The interface with this index.
    pub fn interface(&self, index: u32) -> Option<&Interface> {
        self.interfaces.get(&index).map(|(interface, _)| interface)
    }

    /// The addresses of an interface, in order.
    pub fn addresses(&self, interface: u32) -> impl Iterator<Item = &InterfaceAddress> {
        self.addresses.keys().filter(move |address| address.interface == interface)
    }

    /// All addresses of this machine, with those of all hosts of its IPv4 subnets.
    pub fn own(&self) -> Vec<IpAddr> {
        let all = self.addresses.keys();
        let mut own: Vec<IpAddr> =
            all.flat_map(|address| [Some(address.local), broadcast(address)]).flatten().collect();
        own.sort_unstable();
        own.dedup();
        own
    }

    /// The MAC address of a neighbour, if packets can be sent to it.
    pub fn mac(&self, interface: u32, address: IpAddr) -> Option<[u8; 6]> {
        self.neighbours.get(&(interface, address)).and_then(|(neighbour, _)| mac(neighbour))
    }

    /// All neighbours.
    pub fn neighbours(&self) -> impl Iterator<Item = &Neighbour> {
        self.neighbours.values().map(|(neighbour, _)| neighbour)
    }

    /// The interface whose subnet has this address: the longest prefix, of equals the lowest index. Link-local
    /// addresses are in every subnet, so they identify no interface.
    pub fn connected(&self, address: IpAddr) -> Option<u32> {
        self.subnets().interface(address)
    }

    /// The subnets of all interfaces, in a form for many lookups.
    pub(super) fn subnets(&self) -> Subnets {
        let mut subnets = Subnets::default();
        for of in self.addresses.keys() {
            let Ok(prefix) = AnyPrefix::masked(of.subnet, of.len) else { continue };
            let lowest = subnets.interfaces.entry(prefix).or_insert(of.interface);
            *lowest = of.interface.min(*lowest);
            subnets.lengths.push((of.subnet.is_ipv4(), of.len));
        }
        subnets.lengths.sort_unstable_by_key(|length| std::cmp::Reverse(*length));
        subnets.lengths.dedup();
        subnets
    }
}

/// The subnets of interfaces, by prefix.
#[derive(Default)]
pub(super) struct Subnets {
    interfaces: HashMap<AnyPrefix, u32>,
    /// Whether it is one of IPv4, and the length; the longest first.
    lengths: Vec<(bool, u8)>,
}

impl Subnets {
    /// As [`Links::connected`].
    pub(super) fn interface(&self, address: IpAddr) -> Option<u32> {
        if matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local()) {
            return None;
        }
        let lengths = self.lengths.iter().filter(|(is_v4, _)| *is_v4 == address.is_ipv4());
        lengths
            .filter_map(|&(_, len)| AnyPrefix::masked(address, len).ok())
            .find_map(|prefix| self.interfaces.get(&prefix).copied())
    }
}

/// Whether this round may not change an entry of that one.
fn is_fixed(known: Option<Round>, by: Round) -> bool {
    known == Some(FIXED) && by != FIXED
}

/// The MAC address that packets are sent to.
pub(super) fn mac(neighbour: &Neighbour) -> Option<[u8; 6]> {
    neighbour.mac.filter(|_| neighbour.state.is_usable())
}

/// The address of all hosts of an IPv4 subnet.
pub(super) fn broadcast(of: &InterfaceAddress) -> Option<IpAddr> {
    match of.subnet {
        IpAddr::V4(v4) if of.len < 31 => {
            Some(Ipv4Addr::from(u32::from(v4) | (u32::MAX >> of.len)).into())
        }
        _ => None,
    }
}
