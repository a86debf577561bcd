//! An egress table in the form for forwarding.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;

use fibula_simd::{Row, Simd};

use crate::{Packet, Pool};

use super::{Adjacency, Egress, EgressPort, Group, GroupId, Member};

/// An [`Egress`] compiled for forwarding: link headers are prepared, and groups are resolved to their exits. It never
/// changes.
///
/// ```text
///   group ──ways──► exit: link header, port, MTU; or a range of shares ──flow hash──► exit
///   own addresses ──► a filter of 1,024 bits, then the set      neighbours ──► open hash table
/// ```
#[derive(Clone, Debug)]
pub struct Paths {
    description: Egress,
    /// By group: the exit of all its packets, or a range of `shares`.
    ways: Vec<Exit>,
    /// Places in `exits`.
    shares: Vec<u32>,
    exits: Vec<Exit>,
    neighbours: Neighbours,
    own: HashSet<IpAddr>,
    filter: Own,
}

/// A filter for the addresses of the router; few other addresses pass. An address has two bits, one in each of two rows
/// of 512. A row is read from registers, sixteen addresses at a time: reading words of a table by a gather costs Zen 4
/// several times as much.
#[derive(Clone, Debug, Default)]
pub(crate) struct Own([[u32; 16]; 2]);

impl Own {
    fn insert(&mut self, address: IpAddr) {
        let hash = match address {
            IpAddr::V4(v4) => Self::hash_v4(v4.to_bits()),
            IpAddr::V6(v6) => {
                let octets = v6.octets();
                let (words, _) = octets.as_chunks::<4>();
                Self::hash_v6(std::array::from_fn(|word| u32::from_le_bytes(words[word])))
            }
        };
        for (row, (place, bit)) in self.0.iter_mut().zip(PLACES) {
            row[(hash >> place & 15) as usize] |= 0x8000_0000 >> (hash >> bit & 31);
        }
    }

    /// The hash of an address, as [`may_have`](Self::may_have) takes it.
    #[inline(always)]
    pub(crate) fn hash_v4(address: u32) -> u32 {
        address.wrapping_mul(0x9e37_79b1)
    }

    /// The same of IPv6, of words in little-endian order.
    #[inline(always)]
    pub(crate) fn hash_v6([a, b, c, d]: [u32; 4]) -> u32 {
        Self::hash_v4(a ^ b.rotate_left(7) ^ c.rotate_left(13) ^ d.rotate_left(22))
    }

    /// Which addresses of these hashes may be the router's; a bit for each, the first one's lowest. Those that are
    /// always have one.
    #[inline(always)]
    pub(crate) fn may_have<S: Simd>(&self, simd: S, hashes: &[u32; 16]) -> u16 {
        let hashes = simd.row(hashes);
        let first = bits(simd, simd.row(&self.0[0]), hashes, PLACES[0]);
        let second = bits(simd, simd.row(&self.0[1]), hashes, PLACES[1]);
        first.and(second).top_bits()
    }
}

/// For each row of the filter, which bits of a hash are the place of its word, of four bits from this one on, and which
/// ones the number of its bit, counted from the top, of five.
const PLACES: [(u32, u32); 2] = [(28, 23), (19, 14)];

/// The bits of a row that the hashes stand for, at the top of each word.
#[inline(always)]
fn bits<S: Simd>(simd: S, row: S::Row, hashes: S::Row, (place, bit): (u32, u32)) -> S::Row {
    let words = row.pick(hashes.shr(simd.splat_row(place)));
    words.shl(hashes.shr(simd.splat_row(bit)).and(simd.splat_row(31)))
}

/// One way out, or the reason why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(align(32))]
pub(crate) struct Exit {
    /// The MAC addresses and the VLAN tag, if there is one; the EtherType follows.
    pub(crate) header: [u8; 16],
    /// Bytes of `header`: 12 or 16.
    pub(crate) header_len: u8,
    pub(crate) kind: ExitKind,
    pub(crate) port: u16,
    /// The longest IP packet that leaves as it is, with a link header without a tag: the MTU, or 0 if the kind is not
    /// [`ExitKind::Ready`] or there is a tag. A single comparison with it replaces all other checks.
    pub(crate) plain_limit: u32,
    /// Of [`ExitKind::Ready`]: the MTU. Of [`ExitKind::NoMac`]: the adjacency. Of [`ExitKind::Shared`]: where its
    /// shares begin.
    at: u32,
    /// Of [`ExitKind::Shared`]: how many there are.
    count: u32,
}

const _: () = assert!(size_of::<Exit>() == 32);

/// The action of an [`Exit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum ExitKind {
    NoRoute,
    Local,
    Blackhole,
    Unreachable,
    Prohibit,
    /// The port is not there.
    NoEgress,
    /// They leave with this link header.
    Ready,
    /// The gateway's MAC address is not known.
    NoMac,
    /// The destination is on the link of this port.
    OnLink,
    /// The flow's hash chooses among others.
    Shared,
}

impl Exit {
    const fn alone(kind: ExitKind) -> Self {
        Self { header: [0; 16], header_len: 12, kind, port: 0, plain_limit: 0, at: 0, count: 0 }
    }

    fn ready(port: u16, own: &EgressPort, mac: [u8; 6]) -> Self {
        let mut exit =
            Self { port, plain_limit: own.mtu, at: own.mtu, ..Self::alone(ExitKind::Ready) };
        exit.header[..6].copy_from_slice(&mac);
        exit.header[6..12].copy_from_slice(&own.mac);
        if let Some(vlan) = own.vlan {
            (exit.header_len, exit.plain_limit) = (16, 0);
            exit.header[12..14].copy_from_slice(&[0x81, 0]);
            exit.header[14..].copy_from_slice(&(vlan & 0xfff).to_be_bytes());
        }
        exit
    }

    /// The longest IP packet that leaves as it is: the MTU, or 0 if the kind is not [`ExitKind::Ready`].
    #[inline]
    pub(crate) fn limit(&self) -> u32 {
        if self.kind == ExitKind::Ready { self.at } else { 0 }
    }

    /// Bytes of the link header, EtherType included.
    #[inline]
    pub(crate) fn link_len(&self) -> usize {
        usize::from(self.header_len) + 2
    }

    /// Writes the link header into as many bytes.
    #[inline]
    pub(crate) fn write(&self, ether_type: u16, to: &mut [u8]) {
        let (macs, number) = to.split_at_mut(usize::from(self.header_len));
        macs.copy_from_slice(&self.header[..macs.len()]);
        number.copy_from_slice(&ether_type.to_be_bytes());
    }

    /// Whether there is room for the link header in front of byte `at` of a packet.
    #[inline]
    pub(crate) fn fits(&self, pool: &Pool, at: usize, packet: &Packet<'_>) -> bool {
        self.link_len() <= at + pool.slot_len() - packet.room()
    }

    /// Puts the link header in front of the `len` bytes at byte `at` of the packet, and cuts off the bytes behind them.
    ///
    /// # Panics
    /// If it does not fit.
    #[inline]
    pub(crate) fn put(&self, ether_type: u16, at: usize, len: usize, packet: &mut Packet<'_>) {
        packet.set_len(at + len);
        packet.grow_front(self.link_len() as isize - at as isize);
        self.write(ether_type, &mut packet.bytes_mut()[..self.link_len()]);
    }

    /// The way back to a machine on the link of a port: the sender of a frame that came in there.
    pub(crate) fn back(port: u16, own: &EgressPort, mac: [u8; 6]) -> Self {
        Self::ready(port, own, mac)
    }
}

impl Default for Paths {
    /// No ports, no groups: nothing is forwarded.
    fn default() -> Self {
        Self::new(Egress::default())
    }
}

impl From<Egress> for Paths {
    fn from(description: Egress) -> Self {
        Self::new(description)
    }
}

impl Paths {
    /// Compiles a table.
    pub fn new(description: Egress) -> Self {
        let mut exits = vec![Exit::alone(ExitKind::NoEgress)];
        let on_link = exits.len() as u32;
        exits.extend(
            (0..description.ports.len())
                .map(|port| Exit { port: port as u16, ..Exit::alone(ExitKind::OnLink) }),
        );
        let gateways = exits.len() as u32;
        exits.extend(
            description
                .adjacencies
                .iter()
                .enumerate()
                .map(|(at, way)| gateway(&description, at, way)),
        );
        let member = |member: &Member| match *member {
            Member::Gateway(at) if (at as usize) < description.adjacencies.len() => gateways + at,
            Member::OnLink(port) if usize::from(port) < description.ports.len() => {
                on_link + u32::from(port)
            }
            Member::Gateway(_) | Member::OnLink(_) => 0,
        };
        let (mut ways, mut shares) = (Vec::with_capacity(description.groups.len()), Vec::new());
        for group in &description.groups {
            ways.push(match group {
                Group::Forward(members) => match members.as_slice() {
                    [] => Exit::alone(ExitKind::Unreachable),
                    [only] => exits[member(only) as usize],
                    several => {
                        let (at, count) = (shares.len() as u32, several.len() as u32);
                        shares.extend(several.iter().map(member));
                        Exit { at, count, ..Exit::alone(ExitKind::Shared) }
                    }
                },
                Group::Local => Exit::alone(ExitKind::Local),
                Group::Blackhole => Exit::alone(ExitKind::Blackhole),
                Group::Unreachable => Exit::alone(ExitKind::Unreachable),
                Group::Prohibit => Exit::alone(ExitKind::Prohibit),
            });
        }
        let mut neighbours = Neighbours::with_room(description.neighbours.len());
        for (&(port, address), &mac) in &description.neighbours {
            if let Some(own) = description.ports.get(usize::from(port)) {
                neighbours.insert(port, address, exits.len() as u32);
                exits.push(Exit::ready(port, own, mac));
            }
        }
        let own: HashSet<IpAddr> =
            description.ports.iter().flat_map(|port| port.addresses.iter().copied()).collect();
        let mut filter = Own::default();
        own.iter().for_each(|&address| filter.insert(address));
        Self { description, ways, shares, exits, neighbours, own, filter }
    }

    /// The description that it was compiled from.
    pub fn description(&self) -> &Egress {
        &self.description
    }

    /// The port of a number.
    #[inline]
    pub(crate) fn port(&self, port: u16) -> Option<&EgressPort> {
        self.description.ports.get(usize::from(port))
    }

    /// The adjacency of an exit without a MAC address.
    pub(crate) fn adjacency(&self, exit: &Exit) -> Option<&Adjacency> {
        self.description.adjacencies.get(exit.at as usize)
    }

    /// The exit of a group. One that is not there is no route.
    #[inline]
    pub(crate) fn exit(&self, group: Option<GroupId>) -> &Exit {
        const NO_ROUTE: &Exit = &Exit::alone(ExitKind::NoRoute);
        group.and_then(|group| self.ways.get(group as usize)).unwrap_or(NO_ROUTE)
    }

    /// The share of a flow with this hash, of an exit that is [`ExitKind::Shared`].
    #[inline]
    pub(crate) fn share(&self, exit: &Exit, hash: u32) -> &Exit {
        let share = (u64::from(hash) * u64::from(exit.count)) >> 32;
        &self.exits[self.shares[exit.at as usize + share as usize] as usize]
    }

    /// The exit to a neighbour on a port's link, if its MAC address is known.
    pub(crate) fn neighbour(&self, port: u16, address: IpAddr) -> Option<&Exit> {
        self.exits.get(self.neighbours.get(port, address)? as usize)
    }

    /// Addresses that may be the router's.
    #[inline]
    pub(crate) fn own(&self) -> &Own {
        &self.filter
    }

    /// The exits of all groups, by their numbers.
    #[inline]
    pub(crate) fn ways(&self) -> &[Exit] {
        &self.ways
    }

    /// The MAC address of a port, the first byte in the lowest bits, shifted up by 15; a number that no address is if
    /// there is no such port. The bit above the address is 0.
    #[inline]
    pub(crate) fn mac(&self, port: u16) -> u64 {
        self.port(port).map_or(u64::MAX, |port| {
            let [a, b, c, d, e, f] = port.mac;
            u64::from_le_bytes([a, b, c, d, e, f, 0, 0]) << 15
        })
    }

    /// Whether this is an address of the router.
    pub(crate) fn is_own(&self, address: IpAddr) -> bool {
        self.own.contains(&address)
    }
}

fn gateway(description: &Egress, at: usize, way: &Adjacency) -> Exit {
    match (description.ports.get(usize::from(way.port)), way.mac) {
        (None, _) => Exit::alone(ExitKind::NoEgress),
        (Some(own), Some(mac)) => Exit::ready(way.port, own, mac),
        (Some(_), None) => Exit { port: way.port, at: at as u32, ..Exit::alone(ExitKind::NoMac) },
    }
}

/// MAC addresses by port and address: an open hash table, at most half full, with linear probing. The hash has a seed,
/// because hosts on a link can choose their addresses.
#[derive(Clone, Debug)]
struct Neighbours {
    /// Address, then port and family; `EMPTY` in the latter marks an empty slot.
    slots: Vec<(u128, u32, u32)>,
    seed: u64,
}

const EMPTY: u32 = u32::MAX;

impl Neighbours {
    fn with_room(count: usize) -> Self {
        let slots = (count * 2).next_power_of_two().max(2);
        Self { slots: vec![(0, EMPTY, 0); slots], seed: RandomState::new().hash_one(0) }
    }

    fn key(port: u16, address: IpAddr) -> (u128, u32) {
        match address {
            IpAddr::V4(v4) => (v4.to_bits().into(), u32::from(port)),
            IpAddr::V6(v6) => (v6.to_bits(), u32::from(port) | 0x1_0000),
        }
    }

    fn start(&self, (address, tag): (u128, u32)) -> usize {
        let fold = |a: u64, b: u64| {
            let wide = u128::from(a) * u128::from(b);
            (wide >> 64) as u64 ^ wide as u64
        };
        let high = fold((address >> 64) as u64 ^ self.seed, 0xa076_1d64_78bd_642f ^ u64::from(tag));
        let hash = fold(address as u64 ^ high, 0xe703_7ed1_a0b4_28db ^ self.seed.rotate_left(32));
        hash as usize & (self.slots.len() - 1)
    }

    fn insert(&mut self, port: u16, address: IpAddr, exit: u32) {
        let key = Self::key(port, address);
        let mut at = self.start(key);
        while self.slots[at].1 != EMPTY {
            at = (at + 1) & (self.slots.len() - 1);
        }
        self.slots[at] = (key.0, key.1, exit);
    }

    fn get(&self, port: u16, address: IpAddr) -> Option<u32> {
        let key = Self::key(port, address);
        let mut at = self.start(key);
        loop {
            let (bits, tag, exit) = self.slots[at];
            if (bits, tag) == key {
                return Some(exit);
            }
            if tag == EMPTY {
                return None;
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }
}
