//! Link headers: from the first byte of a frame to its network header.

use crate::bytes::{array_at, u8_at, u16_at, u32_at};
use crate::fault::Header;

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

/// What the first header of a frame is.
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
    /// No link header: the IP version tells which header it is.
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
            // 12 and 14 are what BSDs used; 228 and 229 are IPv4 and IPv6.
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
    /// IPv4, by what announces it.
    Ipv4,
    /// IPv6, by what announces it.
    Ipv6,
}

/// The link headers of a frame.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Link {
    /// The EtherType after all tags, or that of SNAP.
    pub(crate) ether_type: Option<u16>,
    /// The protocol field of PPP.
    pub(crate) ppp: Option<u16>,
    pub(crate) network: Option<Network>,
    /// Where the bytes are that the link headers announce; beyond the end if they are cut.
    pub(crate) payload_at: usize,
    /// The header, with its offset, that the frame ends in.
    pub(crate) cut: Option<(Header, usize)>,
    /// An IP header of neither version begins at `payload_at`.
    pub(crate) bad_version: bool,
}

impl Link {
    #[inline]
    pub(crate) fn parse(link: LinkType, bytes: &[u8]) -> Self {
        match (link, link.ether_type_and_end()) {
            (LinkType::Loopback, _) => loopback(bytes),
            (LinkType::Ppp, _) => ppp(bytes, 0),
            (_, Some((type_at, end))) => after_ether_type(bytes, u16_at(bytes, type_at), end),
            (_, None) => by_version(bytes, 0),
        }
    }

    fn cut(header: Header, at: usize) -> Self {
        Self { cut: Some((header, at)), payload_at: at, ..Self::default() }
    }

    fn found(network: Network, payload_at: usize) -> Self {
        Self { network: Some(network), payload_at, ..Self::default() }
    }
}

fn is_tag(ether_type: u16) -> bool {
    use ether_type::{OLD_QINQ, OLD_QINQ_2, SERVICE_VLAN, VLAN};
    matches!(ether_type, VLAN | SERVICE_VLAN | OLD_QINQ | OLD_QINQ_2)
}

/// What an EtherType announces; `at` is the end of the header that holds it.
#[inline]
fn after_ether_type(bytes: &[u8], ether_type: Option<u16>, mut at: usize) -> Link {
    let Some(mut ether_type) = ether_type else { return Link::cut(Header::Link, 0) };
    // Any number of tags: the frame's length bounds the loop, and no tag is stored.
    while is_tag(ether_type) {
        let Some(inner) = u16_at(bytes, at + 2) else { return Link::cut(Header::Vlan, at) };
        (ether_type, at) = (inner, at + 4);
    }
    let inner = match ether_type {
        IPV4 => Link::found(Network::Ipv4, at),
        IPV6 => Link::found(Network::Ipv6, at),
        MPLS | MPLS_UPSTREAM => mpls(bytes, at),
        // Version, code, session and length, then PPP.
        PPPOE_SESSION if bytes.len() < at + 6 => Link::cut(Header::Pppoe, at),
        PPPOE_SESSION => ppp(bytes, at + 6),
        0..ether_type::FIRST => return llc(bytes, at),
        // A cooked header may be cut behind its EtherType.
        _ if bytes.len() < at => Link { payload_at: at, ..Link::cut(Header::Link, 0) },
        _ => Link { payload_at: at, ..Link::default() },
    };
    Link { ether_type: Some(ether_type), ..inner }
}

/// LLC and SNAP with an EtherType (RFC 1042). Other LLC frames are not followed.
#[cold]
fn llc(bytes: &[u8], at: usize) -> Link {
    const SNAP: [u8; 6] = [0xaa, 0xaa, 3, 0, 0, 0];
    let Some(header) = array_at::<8>(bytes, at) else {
        let there = bytes.get(at..).unwrap_or_default();
        // As soon as a byte differs from SNAP's it is something else, whatever follows.
        if there.iter().zip(&SNAP).any(|(byte, snap)| byte != snap) {
            return Link { payload_at: at, ..Link::default() };
        }
        return Link::cut(Header::Llc, at);
    };
    let [snap @ .., high, low] = header;
    if *snap != SNAP {
        return Link { payload_at: at, ..Link::default() };
    }
    let ether_type = u16::from_be_bytes([*high, *low]);
    let network = match ether_type {
        IPV4 => Some(Network::Ipv4),
        IPV6 => Some(Network::Ipv6),
        _ => None,
    };
    Link { ether_type: Some(ether_type), network, payload_at: at + 8, ..Link::default() }
}

/// A stack of MPLS labels (RFC 3032). What follows the last is not said; an IP version there is
/// taken for IP.
#[cold]
fn mpls(bytes: &[u8], mut at: usize) -> Link {
    while let Some(label) = u32_at(bytes, at) {
        at += 4;
        if label & 0x100 != 0 {
            return match u8_at(bytes, at).map(|byte| byte >> 4) {
                Some(4) => Link::found(Network::Ipv4, at),
                Some(6) => Link::found(Network::Ipv6, at),
                Some(_) => Link { payload_at: at, ..Link::default() },
                None => Link::cut(Header::Mpls, at),
            };
        }
    }
    Link::cut(Header::Mpls, at)
}

/// PPP, where address and control bytes may be left out (RFC 1661, section 6.6).
#[cold]
fn ppp(bytes: &[u8], mut at: usize) -> Link {
    if array_at(bytes, at) == Some(&[0xff, 3]) {
        at += 2;
    }
    match u16_at(bytes, at) {
        Some(ppp @ (0x0021 | 0x0057)) => Link { ppp: Some(ppp), ..by_version(bytes, at + 2) },
        ppp @ Some(_) => Link { ppp, payload_at: at + 2, ..Link::default() },
        None => Link::cut(Header::Ppp, at),
    }
}

/// The family is in the byte order of the host that captured, or in network order.
#[cold]
fn loopback(bytes: &[u8]) -> Link {
    match u32_at(bytes, 0).map(|family| family.min(family.swap_bytes())) {
        Some(2) => Link::found(Network::Ipv4, 4),
        // AF_INET6 has a number for each BSD, and one on Linux.
        Some(10 | 24 | 28 | 30) => Link::found(Network::Ipv6, 4),
        Some(_) => Link { payload_at: 4, ..Link::default() },
        None => Link::cut(Header::Link, 0),
    }
}

#[inline]
fn by_version(bytes: &[u8], at: usize) -> Link {
    match u8_at(bytes, at).map(|byte| byte >> 4) {
        Some(4) => Link::found(Network::Ipv4, at),
        Some(6) => Link::found(Network::Ipv6, at),
        Some(_) => Link { payload_at: at, bad_version: true, ..Link::default() },
        None => Link::cut(Header::Ip, at),
    }
}
