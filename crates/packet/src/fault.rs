//! Faults of frames: the header, its position and the error.

use core::fmt;

/// The first fault of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The header that is cut or malformed.
    pub header: HeaderKind,
    /// The offset in the frame where that header begins. It is after the frame's end if the header before it is also
    /// cut.
    pub at: usize,
    /// The error.
    pub kind: FaultKind,
}

/// The error in a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The captured part ends within the header. The frame was longer on the wire.
    Cut,
    /// The frame, or the packet by its length field, ends within the header.
    Short,
    /// A field has an invalid value.
    Malformed,
}

/// A header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HeaderKind {
    /// The first header, by the link type.
    Link,
    /// A VLAN tag.
    Vlan,
    /// LLC and SNAP behind an IEEE 802.3 length.
    Llc,
    /// An MPLS label, or the byte after the last one, which has the IP version.
    Mpls,
    /// PPPoE session header.
    Pppoe,
    /// The protocol field of PPP.
    Ppp,
    /// An IP header whose version is not known.
    Ip,
    /// The IPv4 header without its options.
    Ipv4,
    /// The options of the IPv4 header.
    Ipv4Options,
    /// The fixed IPv6 header.
    Ipv6,
    /// An extension header, by its number.
    Extension(u8),
    /// The header of a transport protocol or ICMP, by its number.
    Transport(u8),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            FaultKind::Cut => "cut by the capture",
            FaultKind::Short => "longer than the packet",
            FaultKind::Malformed => "malformed",
        };
        write!(f, "{} at byte {}: {kind}", self.header, self.at)
    }
}

impl core::error::Error for Fault {}

impl fmt::Display for HeaderKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Link => "link header",
            Self::Vlan => "VLAN tag",
            Self::Llc => "LLC header",
            Self::Mpls => "MPLS label",
            Self::Pppoe => "PPPoE header",
            Self::Ppp => "PPP header",
            Self::Ip => "IP header",
            Self::Ipv4 => "IPv4 header",
            Self::Ipv4Options => "IPv4 options",
            Self::Ipv6 => "IPv6 header",
            Self::Extension(number) => return write!(f, "IPv6 extension header {number}"),
            Self::Transport(number) => return write!(f, "header of protocol {number}"),
        })
    }
}
