//! Sets of filters as those of ClassBench (Taylor and Turner, INFOCOM 2005), packets for them, and their oracle.
//!
//! ClassBench describes a real set by its statistics and makes sets of any size from them. So does this module. The
//! tables of ACL are those of ClassBench's published parameter file `acl1`; those of FW and IPC follow the paper's
//! description of such sets, not its files (`seeds.rs`). They are shares of protocols, of pairs of port classes, of
//! prefix lengths for each pair, and how often addresses branch at each bit. Duplicates are left out, as ClassBench's
//! filters are distinct.
//!
//! ```
//! use fibula_testkit::classbench::{RuleSetKind, filters, first, probes};
//!
//! let set = filters(RuleSetKind::Acl, 1000, 1);
//! assert_eq!(set.len(), 1000);
//! // Of each filter the packets on its boundaries: at least one of them is inside.
//! assert!(probes(&set[7]).iter().any(|packet| set[7].matches(packet)));
//! assert!(first(&set, &probes(&set[7])[0]).is_some());
//! ```

mod packets;
mod seeds;

use std::collections::HashSet;
use std::fmt;

use fibula_core::Prefix;

pub use packets::{probes, traffic};
use seeds::{Class, Seed};

use crate::Rng;

/// The purpose of a set of filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RuleSetKind {
    /// Access control lists: pairs of hosts and subnets, exact destination ports.
    Acl,
    /// Firewalls: wildcards, and ranges of both ports.
    Fw,
    /// Chains of a Linux packet filter: between the two.
    Ipc,
}

impl RuleSetKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Acl, Self::Fw, Self::Ipc];
}

/// A filter over the five fields; all must match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Filter {
    /// Source address.
    pub src: Prefix<u32>,
    /// Destination address.
    pub dst: Prefix<u32>,
    /// Source port: first and last.
    pub src_port: (u16, u16),
    /// Destination port: first and last.
    pub dst_port: (u16, u16),
    /// Protocol, `None` for any.
    pub protocol: Option<u8>,
}

/// The five fields of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Packet {
    /// Source address.
    pub src: u32,
    /// Destination address.
    pub dst: u32,
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// Protocol.
    pub protocol: u8,
}

impl Filter {
    /// Whether it matches the packet.
    pub fn matches(&self, packet: &Packet) -> bool {
        self.src.contains(packet.src)
            && self.dst.contains(packet.dst)
            && (self.src_port.0..=self.src_port.1).contains(&packet.src_port)
            && (self.dst_port.0..=self.dst_port.1).contains(&packet.dst_port)
            && self.protocol.is_none_or(|protocol| protocol == packet.protocol)
    }
}

/// The line of a ClassBench file, without the flags that some of its seeds add.
impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ((a, b), (c, d)) = (self.src_port, self.dst_port);
        write!(f, "@{}\t{}\t{a} : {b}\t{c} : {d}\t", self.src, self.dst)?;
        match self.protocol {
            Some(protocol) => write!(f, "0x{protocol:02x}/0xFF"),
            None => write!(f, "0x00/0x00"),
        }
    }
}

/// The oracle: the first filter that matches, tried one after the other.
pub fn first(filters: &[Filter], packet: &Packet) -> Option<usize> {
    filters.iter().position(|filter| filter.matches(packet))
}

/// So many filters of a kind, distinct. Fewer if the statistics do not give that many.
pub fn filters(kind: RuleSetKind, count: usize, seed: u64) -> Vec<Filter> {
    let (statistics, mut rng) = (seeds::of(kind), Rng::new(seed));
    let (mut found, mut seen) = (Vec::with_capacity(count), HashSet::with_capacity(count));
    // Likely filters are drawn again and again; after so many tries there are no further ones.
    for _ in 0..count.saturating_mul(200) {
        if found.len() == count {
            break;
        }
        let filter = one(statistics, seed, &mut rng);
        if seen.insert(filter) {
            found.push(filter);
        }
    }
    found
}

fn one(statistics: &Seed, seed: u64, rng: &mut Rng) -> Filter {
    let protocol = pick(rng, statistics.protocols);
    // Only protocols with ports have filters on ports.
    let ports = match protocol {
        6 | 17 => pick(rng, statistics.ports),
        _ => (Class::Wc, Class::Wc),
    };
    let lengths = match ports {
        (Class::Wc, Class::Wc) => statistics.lengths_without_ports,
        _ => statistics.lengths,
    };
    let (src, dst) = pick(rng, lengths);
    Filter {
        src: prefix(rng, seed ^ 1, statistics.src_branches, src),
        dst: prefix(rng, seed ^ 2, statistics.dst_branches, dst),
        src_port: range(rng, ports.0, statistics),
        dst_port: range(rng, ports.1, statistics),
        protocol: (protocol != 0).then_some(protocol),
    }
}

/// One of the values, each with its weight.
fn pick<T: Copy>(rng: &mut Rng, weighted: &[(u32, T)]) -> T {
    let sum: u32 = weighted.iter().map(|(weight, _)| weight).sum();
    let mut at = rng.below(sum.into()) as u32;
    for &(weight, value) in weighted {
        match at.checked_sub(weight) {
            Some(rest) => at = rest,
            None => return value,
        }
    }
    unreachable!("the number is below the sum of the weights")
}

/// Walks down the tree of the set's addresses. A node's place decides, with the seed, whether it has one child or two,
/// and which is the heavier one.
fn prefix(rng: &mut Rng, seed: u64, branches: &[u8; 32], len: u8) -> Prefix<u32> {
    let mut bits = 0u32;
    for (level, &percent) in branches.iter().enumerate().take(len.into()) {
        let node = u64::from(bits) << 6 | level as u64;
        let mut fate = Rng::new(seed ^ node.wrapping_mul(0x2545_f491_4f6c_dd1d));
        let (two, heavy) = (fate.below(100) < percent.into(), fate.below(2) as u32);
        let child = if two && rng.chance(0.35) { heavy ^ 1 } else { heavy };
        bits |= child << (31 - level);
    }
    Prefix::masked(bits, len).expect("32 bits at most")
}

fn range(rng: &mut Rng, class: Class, statistics: &Seed) -> (u16, u16) {
    match class {
        Class::Wc => (0, u16::MAX),
        Class::Hi => (1024, u16::MAX),
        Class::Lo => (0, 1023),
        Class::Ar => pick(rng, statistics.ranges),
        // The published ports, and others behind them: larger sets have more services.
        Class::Em if rng.chance(0.8) => {
            let port = pick(rng, statistics.exact);
            (port, port)
        }
        Class::Em => {
            let port = 1024 + rng.below(4000) as u16;
            (port, port)
        }
    }
}
