//! The counters of the programs.

use std::fs;
use std::io;

/// Why a packet was passed on to the XDP socket or the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Why {
    /// No IPv4 or IPv6 packet right behind the link header, or not to the port's MAC address: ARP, VLAN tags,
    /// multicast.
    Frame,
    /// The IP header is damaged, has options, TTL or hop limit 0 or 1, or addresses that are not forwarded.
    Header,
    /// It is to an address of the machine.
    Own,
    /// The tables are not in the kernel: not yet, or not those of this family.
    NoTable,
    /// No route covers the destination.
    NoRoute,
    /// The route has no way out that is ready: the MAC address is not known, it leads to a port of another kind, or
    /// nowhere.
    NoExit,
    /// It is longer than the egress port's MTU.
    TooBig,
    /// The destination is on a link, and its MAC address is not known.
    Neighbour,
    /// Equal-cost paths, and a flow that takes a look at extension headers.
    Flow,
    /// The sender's kernel left the checksum to a device (on virtual links).
    Checksum,
}

impl Why {
    /// All, in the order of their numbers.
    pub const ALL: [Self; 10] = [
        Self::Frame,
        Self::Header,
        Self::Own,
        Self::NoTable,
        Self::NoRoute,
        Self::NoExit,
        Self::TooBig,
        Self::Neighbour,
        Self::Flow,
        Self::Checksum,
    ];

    /// The name, as metrics and records have it. It never changes.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Frame => "frame",
            Self::Header => "header",
            Self::Own => "own",
            Self::NoTable => "no_table",
            Self::NoRoute => "no_route",
            Self::NoExit => "no_exit",
            Self::TooBig => "too_big",
            Self::Neighbour => "neighbour",
            Self::Flow => "flow",
            Self::Checksum => "checksum",
        }
    }
}

/// Packets, and bytes of frames as they came in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Of IPv4.
    pub v4: (u64, u64),
    /// Of IPv6.
    pub v6: (u64, u64),
}

/// The counts of the fast path, over all ports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FastCounts {
    /// How many ports there are.
    pub(super) ports: usize,
    /// By the ports that packets came in and left by.
    pub(super) sent: Vec<Sent>,
    /// By the port that they came in by, and why.
    pub(super) passed: Vec<u64>,
    /// Tables that were written: of IPv4, of IPv6, of ways out.
    pub written: [u64; 3],
}

impl FastCounts {
    /// The router's ports, those of other kinds among them.
    pub fn ports(&self) -> usize {
        self.ports
    }

    /// Packets and bytes from one port to another, by their numbers.
    pub fn sent(&self, from: usize, to: usize) -> Sent {
        self.sent.get(from * self.ports + to).copied().unwrap_or_default()
    }

    /// Packets of a port that were passed on.
    pub fn passed(&self, from: usize, why: Why) -> u64 {
        self.passed.get(from * Why::ALL.len() + why as usize).copied().unwrap_or_default()
    }

    /// The sum over some pairs of ports.
    pub fn sum(&self, pairs: impl Iterator<Item = (usize, usize)>) -> Sent {
        pairs.fold(Sent::default(), |sum, (from, to)| {
            let more = self.sent(from, to);
            Sent {
                v4: (sum.v4.0 + more.v4.0, sum.v4.1 + more.v4.1),
                v6: (sum.v6.0 + more.v6.0, sum.v6.1 + more.v6.1),
            }
        })
    }
}

/// How many processors there may be: the kernel has a counter for each.
pub(super) fn processors() -> io::Result<usize> {
    let path = "/sys/devices/system/cpu/possible";
    let text = fs::read_to_string(path)?;
    let last = text.trim().rsplit(['-', ',']).next().and_then(|last| last.parse::<usize>().ok());
    last.map(|last| last + 1).ok_or_else(|| io::Error::other(format!("{path}: {text:?}")))
}
