//! Link headers: from the first byte of a frame to its network header.

use crate::bytes::{array_at, u8_at, u16_at, u32_at};
use crate::fault::HeaderKind;

/// EtherTypes that the parser follows, and ARP.
pub mod ether_type {
    #![allow(missing_docs, reason = "the names are those of the protocols")]
    pub const IPV4: u16 = 0x0800;
    pub const ARP: u16 = 0x0806;
    /// IEEE 802.1Q: a customer's tag.
    pub const VLAN: u16 = 0x8100;
    /// IEEE 802.1ad: a provider's tag (QinQ).
    pub const SERVICE_VLAN: u16 = 0x88a8;
    /// QinQ before the standard.
    pub const OLD_QINQ: u16 = 0x9100;
    /// QinQ before the standard.
    pub const OLD_QINQ_2: u16 = 0x9200;
    pub const IPV6: u16 = 0x86dd;
    pub const MPLS: u16 = 0x8847;
    pub const MPLS_UPSTREAM: u16 = 0x8848;
    pub const PPPOE_SESSION: u16 = 0x8864;
    /// Smaller values are lengths (IEEE 802.3).
    pub const FIRST: u16 = 0x0600;
}
use ether_type::{IPV4, IPV6, MPLS, MPLS_UPSTREAM, PPPOE_SESSION};

/// The type of the first header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkType {
    /// Ethernet II, or IEEE 802.3 with LLC.
    Ethernet,
    /// BSD loopback: the address family in four bytes of either byte order.
    Loopback,
    /// PPP, with or without address and control bytes (RFC 1662).
    Ppp,
    /// Cisco HDLC.
    CiscoHdlc,
    /// No link header: the frame begins with IPv4 or IPv6, by the version in its first byte.
    RawIp,
    /// Linux cooked capture, version 1.
    LinuxSll,
    /// Linux cooked capture, version 2.
    LinuxSll2,
}

impl LinkType {
    /// The link type of a capture's LINKTYPE number; `None` if the parser does not know it.
    #[must_use]
    pub const fn from_number(number: u32) -> Option<Self> {
        Some(match number {
            1 => Self::Ethernet,
            0 | 108 => Self::Loopback,
            9 | 50 => Self::Ppp,
            104 => Self::CiscoHdlc,
            // 12 and 14 were used by BSDs; 228 and 229 are IPv4 and IPv6.
            12 | 14 | 101 | 228 | 229 => Self::RawIp,
            113 => Self::LinuxSll,
            276 => Self::LinuxSll2,
            _ => return None,
        })
    }

    /// Where the EtherType is, and where the header ends.
    const fn ether_type_and_end(self) -> Option<(usize, usize)> {
        match self {
            Self::Ethernet => Some((12, 14)),
            Self::CiscoHdlc => Some((2, 4)),
            Self::LinuxSll => Some((14, 16)),
            Self::LinuxSll2 => Some((0, 20)),
            Self::Loopback | Self::Ppp | Self::RawIp => None,
        }
    }
}

/// A VLAN tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tag {
    /// The EtherType that announced the tag: 0x8100 for a customer's, 0x88a8 for a provider's.
    pub tpid: u16,
    /// Tag control information: priority, drop-eligible bit, VLAN identifier.
    pub tci: u16,
}

impl Tag {
    /// The VLAN identifier, 12 bits; 0 is a tag for its priority alone.
    #[must_use]
    pub fn vid(self) -> u16 {
        self.tci & 0xfff
    }

    /// The priority code point, 0 to 7.
    #[must_use]
    pub fn priority(self) -> u8 {
        (self.tci >> 13) as u8
    }

    /// The drop-eligible indicator.
    #[must_use]
    pub fn drop_eligible(self) -> bool {
        self.tci & 0x1000 != 0
    }
}

/// The VLAN tags of a frame, outermost first.
#[derive(Clone, Debug)]
pub struct Tags<'a> {
    bytes: &'a [u8],
    tpid: Option<u16>,
    at: usize,
}

impl<'a> Tags<'a> {
    #[inline]
    pub(crate) fn new(link: LinkType, bytes: &'a [u8]) -> Self {
        match link.ether_type_and_end() {
            Some((type_at, at)) => Self { bytes, tpid: u16_at(bytes, type_at), at },
            None => Self { bytes, tpid: None, at: 0 },
        }
    }
}

impl Iterator for Tags<'_> {
    type Item = Tag;

    /// The next tag that is there in full, with the EtherType behind it.
    #[inline]
    fn next(&mut self) -> Option<Tag> {
        let tpid = self.tpid.filter(|tpid| is_tag(*tpid))?;
        let tci = u16_at(self.bytes, self.at)?;
        self.tpid = Some(u16_at(self.bytes, self.at + 2)?);
        self.at += 4;
        Some(Tag { tpid, tci })
    }
}

/// Which IP header follows the link headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Network {
    /// IPv4, according to the header before it.
    Ipv4,
    /// IPv6, according to the header before it.
    Ipv6,
}

/// The contents of a frame's link headers, in as many bytes as two registers hold. So it is not returned through
/// memory, where a read of the whole would wait for the writes of its parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    /// Where the bytes begin that the link headers announce; beyond the end if they are cut.
    pub(crate) payload_at: usize,
    announced: Announced,
    payload: Payload,
}

const _: () = assert!(size_of::<Link>() <= 2 * size_of::<u64>());

/// The numbers that announce the payload.
#[derive(Clone, Copy, Debug)]
enum Announced {
    Nothing,
    /// The EtherType after all tags, or that of SNAP.
    EtherType(u16),
    /// The protocol field of PPP.
    Ppp(u16),
    /// The same in a PPPoE session, which an EtherType announces.
    Pppoe(u16),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Payload {
    Ip(Network),
    /// Not IP, or not known.
    Other,
    /// An IP header of neither version.
    BadVersion,
    /// The frame ends in this header.
    Cut(HeaderKind),
}

impl Link {
    /// Reads the link headers.
    #[inline]
    pub(crate) fn read(link: LinkType, bytes: &[u8]) -> Self {
        match (link, link.ether_type_and_end()) {
            (_, Some((type_at, end))) => Self::behind(bytes, u16_at(bytes, type_at), end),
            (LinkType::Loopback, _) => Self::loopback(bytes),
            (LinkType::Ppp, _) => Self::ppp(bytes, 0, Announced::Nothing),
            (_, None) => Self::by_version(bytes, 0, Announced::Nothing),
        }
    }

    #[inline]
    fn new(payload_at: usize, announced: Announced, payload: Payload) -> Self {
        Self { payload_at, announced, payload }
    }

    /// The EtherType after all tags, or that of SNAP.
    #[inline]
    pub(crate) fn ether_type(&self) -> Option<u16> {
        match self.announced {
            Announced::EtherType(ether_type) => Some(ether_type),
            Announced::Pppoe(_) => Some(PPPOE_SESSION),
            Announced::Nothing | Announced::Ppp(_) => None,
        }
    }

    /// The protocol field of PPP.
    pub(crate) fn ppp_protocol(&self) -> Option<u16> {
        match self.announced {
            Announced::Ppp(protocol) | Announced::Pppoe(protocol) => Some(protocol),
            Announced::Nothing | Announced::EtherType(_) => None,
        }
    }

    #[inline]
    pub(crate) fn network(&self) -> Option<Network> {
        match self.payload {
            Payload::Ip(network) => Some(network),
            _ => None,
        }
    }

    /// The header that the frame ends in, with its offset.
    pub(crate) fn cut(&self) -> Option<(HeaderKind, usize)> {
        match self.payload {
            Payload::Cut(HeaderKind::Link) => Some((HeaderKind::Link, 0)),
            Payload::Cut(header) => Some((header, self.payload_at)),
            _ => None,
        }
    }

    /// Whether an IP header of neither version begins at `payload_at`.
    pub(crate) fn has_bad_version(&self) -> bool {
        self.payload == Payload::BadVersion
    }

    /// Reads the header that an EtherType announces; `at` is the end of the header that holds it.
    #[inline]
    fn behind(bytes: &[u8], ether_type: Option<u16>, mut at: usize) -> Self {
        let cut = |header, at| Self::new(at, Announced::Nothing, Payload::Cut(header));
        let Some(mut ether_type) = ether_type else { return cut(HeaderKind::Link, 0) };
        // Any number of tags: the frame's length bounds the loop, and no tag is stored.
        while is_tag(ether_type) {
            let Some(inner) = u16_at(bytes, at + 2) else { return cut(HeaderKind::Vlan, at) };
            (ether_type, at) = (inner, at + 4);
        }
        let announced = Announced::EtherType(ether_type);
        match ether_type {
            IPV4 => Self::new(at, announced, Payload::Ip(Network::Ipv4)),
            IPV6 => Self::new(at, announced, Payload::Ip(Network::Ipv6)),
            _ => Self::other(bytes, ether_type, at),
        }
    }

    /// The same for an EtherType other than IP's.
    #[cold]
    fn other(bytes: &[u8], ether_type: u16, at: usize) -> Self {
        let announced = Announced::EtherType(ether_type);
        let payload = match ether_type {
            MPLS | MPLS_UPSTREAM => return Self::mpls(bytes, at, announced),
            // Version, code, session and length, then PPP.
            PPPOE_SESSION if bytes.len() < at + 6 => Payload::Cut(HeaderKind::Pppoe),
            PPPOE_SESSION => return Self::ppp(bytes, at + 6, announced),
            0..ether_type::FIRST => return Self::llc(bytes, at),
            // A cooked header may be cut behind its EtherType.
            _ if bytes.len() < at => Payload::Cut(HeaderKind::Link),
            _ => Payload::Other,
        };
        Self::new(at, announced, payload)
    }

    /// LLC and SNAP with an EtherType (RFC 1042). Other LLC frames are not followed.
    fn llc(bytes: &[u8], at: usize) -> Self {
        const SNAP: [u8; 6] = [0xaa, 0xaa, 3, 0, 0, 0];
        let there = bytes.get(at..).unwrap_or_default();
        // As soon as a byte differs from SNAP's it is something else, whatever follows. Its EtherType
        // was a length.
        if there.iter().zip(&SNAP).any(|(byte, snap)| byte != snap) {
            return Self::new(at, Announced::Nothing, Payload::Other);
        }
        let Some(ether_type) = u16_at(there, SNAP.len()) else {
            return Self::new(at, Announced::Nothing, Payload::Cut(HeaderKind::Llc));
        };
        let payload = match ether_type {
            IPV4 => Payload::Ip(Network::Ipv4),
            IPV6 => Payload::Ip(Network::Ipv6),
            _ => Payload::Other,
        };
        Self::new(at + 8, Announced::EtherType(ether_type), payload)
    }

    /// A stack of MPLS labels (RFC 3032). It has no type for the header after it: IP is assumed if the byte there has
    /// an IP version.
    fn mpls(bytes: &[u8], mut at: usize, announced: Announced) -> Self {
        while let Some(label) = u32_at(bytes, at) {
            at += 4;
            if label & 0x100 != 0 {
                let payload = match u8_at(bytes, at).map(|byte| byte >> 4) {
                    Some(4) => Payload::Ip(Network::Ipv4),
                    Some(6) => Payload::Ip(Network::Ipv6),
                    Some(_) => Payload::Other,
                    None => Payload::Cut(HeaderKind::Mpls),
                };
                return Self::new(at, announced, payload);
            }
        }
        Self::new(at, announced, Payload::Cut(HeaderKind::Mpls))
    }

    /// PPP, where address and control bytes may be left out (RFC 1661, section 6.6). `outer` announced it.
    #[cold]
    fn ppp(bytes: &[u8], mut at: usize, outer: Announced) -> Self {
        if array_at(bytes, at) == Some(&[0xff, 3]) {
            at += 2;
        }
        let Some(protocol) = u16_at(bytes, at) else {
            return Self::new(at, outer, Payload::Cut(HeaderKind::Ppp));
        };
        let announced = match outer {
            Announced::EtherType(_) => Announced::Pppoe(protocol),
            _ => Announced::Ppp(protocol),
        };
        match protocol {
            0x0021 | 0x0057 => Self::by_version(bytes, at + 2, announced),
            _ => Self::new(at + 2, announced, Payload::Other),
        }
    }

    /// The family is in the byte order of the host that captured, or in network order.
    #[cold]
    fn loopback(bytes: &[u8]) -> Self {
        let (at, payload) = match u32_at(bytes, 0).map(|family| family.min(family.swap_bytes())) {
            Some(2) => (4, Payload::Ip(Network::Ipv4)),
            // AF_INET6 has a number for each BSD, and one on Linux.
            Some(10 | 24 | 28 | 30) => (4, Payload::Ip(Network::Ipv6)),
            Some(_) => (4, Payload::Other),
            None => (0, Payload::Cut(HeaderKind::Link)),
        };
        Self::new(at, Announced::Nothing, payload)
    }

    #[inline]
    fn by_version(bytes: &[u8], at: usize, announced: Announced) -> Self {
        let payload = match u8_at(bytes, at).map(|byte| byte >> 4) {
            Some(4) => Payload::Ip(Network::Ipv4),
            Some(6) => Payload::Ip(Network::Ipv6),
            Some(_) => Payload::BadVersion,
            None => Payload::Cut(HeaderKind::Ip),
        };
        Self::new(at, announced, payload)
    }
}

#[inline]
fn is_tag(ether_type: u16) -> bool {
    use ether_type::{OLD_QINQ, OLD_QINQ_2, SERVICE_VLAN, VLAN};
    matches!(ether_type, VLAN | SERVICE_VLAN | OLD_QINQ | OLD_QINQ_2)
}
