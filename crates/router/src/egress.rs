//! Egress tables: where the packets of each hop are sent, and how.
//!
//! ```text
//!   hop of the engine ──group_of──► Group: the action; its members, by weight ──► Member ──► Adjacency
//!                                                 flow hash ──► bucket ─────────┘   port, MACs, MTU
//! ```
//!
//! An egress table never changes. After a change (a new neighbour, a link that goes down) a new one is compiled and
//! published. It is small, because it has groups and adjacencies, not routes. [`Egress`] is the description; [`Paths`]
//! is compiled from it and is read by forwarders.

use std::collections::HashMap;
use std::net::IpAddr;

mod paths;
pub use paths::Paths;
pub(crate) use paths::{Exit, ExitKind, Own};

/// Groups, adjacencies and neighbours at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Egress {
    /// The actions of routes, by the number in [`GroupId`].
    pub groups: Vec<Group>,
    /// The adjacencies, by the number in [`Member::Gateway`].
    pub adjacencies: Vec<Adjacency>,
    /// MAC addresses of neighbours on the links, for routes without a gateway; by the router's number of the port.
    pub neighbours: HashMap<(u16, IpAddr), [u8; 6]>,
    /// The ports' own addresses and sizes, by the router's number of the port.
    pub ports: Vec<EgressPort>,
}

/// The index of a [`Group`].
pub type GroupId = u32;

/// The action for the packets of a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Group {
    /// Packets are shared by these members, in proportion to how often each is listed. A member that is not usable
    /// (its link is down) is not listed. If the list is empty, there is no way at the moment, and packets are
    /// unreachable.
    Forward(Vec<Member>),
    /// Packets are delivered to this machine.
    Local,
    /// Packets are dropped silently.
    Blackhole,
    /// Packets are dropped, and the sender gets the error "network unreachable".
    Unreachable,
    /// Packets are dropped, and the sender gets the error "prohibited".
    Prohibit,
}

/// One way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Member {
    /// A gateway: the adjacency with this number.
    Gateway(u32),
    /// The destination is on the link of this port.
    OnLink(u16),
}

/// A gateway on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Adjacency {
    /// The router's number of the port.
    pub port: u16,
    /// The gateway's address.
    pub gateway: IpAddr,
    /// Its MAC address; `None` if unknown.
    pub mac: Option<[u8; 6]>,
}

/// The settings of a port for packets that leave by it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EgressPort {
    /// The router's MAC address there.
    pub mac: [u8; 6],
    /// The longest IP packet, in bytes.
    pub mtu: u32,
    /// The VLAN tag that packets get, if any.
    pub vlan: Option<u16>,
    /// The router's own addresses there, which are the sources of ICMP errors.
    pub addresses: Vec<IpAddr>,
}
