//! Flow keys, which classifiers match.

use core::net::IpAddr;

use crate::frame::{Frame, Length};
use crate::link::Tag;
use crate::transport::{icmp, ports};

/// The fields that all packets of a flow share. A field that the frame does not have, or that is cut, is `None`.
/// Bytes after the end of the packet never become part of its key. A packet with a malformed IP header, or that ends
/// within its IP headers, has no IP fields. A captured packet with length 0 has those of all its frame
/// ([`Length::Offloaded`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FlowKey {
    /// Destination and source of an Ethernet frame.
    pub macs: Option<([u8; 6], [u8; 6])>,
    /// The two outermost VLAN tags.
    pub tags: [Option<Tag>; 2],
    /// The EtherType after all tags.
    pub ether_type: Option<u16>,
    /// Source and destination address.
    pub ends: Option<(IpAddr, IpAddr)>,
    /// DSCP (6 bits) and ECN (2 bits) of the IP header.
    pub traffic_class: Option<u8>,
    /// The kind of fragment.
    pub fragment: Fragmentation,
    /// The protocol over IP, after all extension headers.
    pub protocol: Option<u8>,
    /// Source and destination port. Later fragments have none.
    pub ports: Option<(u16, u16)>,
    /// The flags of TCP: [`Tcp::flags`](crate::Tcp::flags).
    pub tcp_flags: Option<u16>,
    /// Type and code of ICMP or ICMPv6.
    pub icmp: Option<(u8, u8)>,
}

/// The kind of fragment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fragmentation {
    /// Not a fragment: the packet is complete, perhaps with an atomic fragment header (RFC 6946).
    #[default]
    Whole,
    /// The first, which has the transport header.
    First,
    /// A later one, which has no transport header.
    Later,
}

impl FlowKey {
    /// Differentiated services code point (RFC 2474).
    #[must_use]
    pub fn dscp(&self) -> Option<u8> {
        self.traffic_class.map(|class| class >> 2)
    }

    /// Explicit congestion notification (RFC 3168).
    #[must_use]
    pub fn ecn(&self) -> Option<u8> {
        self.traffic_class.map(|class| class & 3)
    }
}

impl Frame<'_> {
    /// The flow that the frame belongs to.
    #[must_use]
    pub fn flow_key(&self) -> FlowKey {
        let mut tags = self.tags();
        let link = FlowKey {
            macs: self.macs(),
            tags: [tags.next(), tags.next()],
            ether_type: self.ether_type(),
            ..FlowKey::default()
        };
        if self.ip_is_malformed() || self.length() == Some(Length::WithinHeaders) {
            return link;
        }
        let header = self.protocol().zip(self.segment());
        let class4 = self.ipv4().map(|ip| ip.traffic_class());
        FlowKey {
            ends: self.ends(),
            traffic_class: class4.or_else(|| self.ipv6().map(|ip| ip.traffic_class())),
            fragment: match self.fragment() {
                Some(fragment) if fragment.offset > 0 => Fragmentation::Later,
                Some(fragment) if fragment.more => Fragmentation::First,
                _ => Fragmentation::Whole,
            },
            protocol: self.protocol(),
            ports: header.and_then(|(protocol, bytes)| ports(protocol, bytes)),
            tcp_flags: self.tcp().map(|tcp| tcp.flags()),
            icmp: header.and_then(|(protocol, bytes)| icmp(protocol, bytes)),
            ..link
        }
    }
}
