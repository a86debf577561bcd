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
    /// Reads the link headers into `self`, in place: moving the struct costs more than the parsing.
    #[inline]
    pub(crate) fn walk(&mut self, link: LinkType, bytes: &[u8]) {
        match (link, link.ether_type_and_end()) {
            (LinkType::Loopback, _) => self.loopback(bytes),
            (LinkType::Ppp, _) => self.ppp(bytes, 0),
            (_, Some((type_at, end))) => self.ether_type(bytes, u16_at(bytes, type_at), end),
            (_, None) => self.by_version(bytes, 0),
        }
    }

    #[inline]
    fn cut(&mut self, header: Header, at: usize) {
        self.cut = Some((header, at));
        self.payload_at = at;
    }

    #[inline]
    fn found(&mut self, network: Network, payload_at: usize) {
        self.network = Some(network);
        self.payload_at = payload_at;
    }

    /// What an EtherType announces; `at` is the end of the header that holds it.
    #[inline]
    fn ether_type(&mut self, bytes: &[u8], ether_type: Option<u16>, mut at: usize) {
        let Some(mut ether_type) = ether_type else { return self.cut(Header::Link, 0) };
        // Any number of tags: the frame's length bounds the loop, and no tag is stored.
        while is_tag(ether_type) {
            let Some(inner) = u16_at(bytes, at + 2) else { return self.cut(Header::Vlan, at) };
            (ether_type, at) = (inner, at + 4);
        }
        self.ether_type = Some(ether_type);
        match ether_type {
            IPV4 => self.found(Network::Ipv4, at),
            IPV6 => self.found(Network::Ipv6, at),
            MPLS | MPLS_UPSTREAM => self.mpls(bytes, at),
            // Version, code, session and length, then PPP.
            PPPOE_SESSION if bytes.len() < at + 6 => self.cut(Header::Pppoe, at),
            PPPOE_SESSION => self.ppp(bytes, at + 6),
            0..ether_type::FIRST => self.llc(bytes, at),
            _ => {
                // A cooked header may be cut behind its EtherType.
                self.cut = (bytes.len() < at).then_some((Header::Link, 0));
                self.payload_at = at;
            }
        }
    }

    /// LLC and SNAP with an EtherType (RFC 1042). Other LLC frames are not followed.
    #[cold]
    fn llc(&mut self, bytes: &[u8], at: usize) {
        const SNAP: [u8; 6] = [0xaa, 0xaa, 3, 0, 0, 0];
        // It was a length.
        (self.ether_type, self.payload_at) = (None, at);
        let there = bytes.get(at..).unwrap_or_default();
        // As soon as a byte differs from SNAP's it is something else, whatever follows.
        if there.iter().zip(&SNAP).any(|(byte, snap)| byte != snap) {
            return;
        }
        let Some(ether_type) = u16_at(there, SNAP.len()) else { return self.cut(Header::Llc, at) };
        self.ether_type = Some(ether_type);
        match ether_type {
            IPV4 => self.found(Network::Ipv4, at + 8),
            IPV6 => self.found(Network::Ipv6, at + 8),
            _ => self.payload_at = at + 8,
        }
    }

    /// A stack of MPLS labels (RFC 3032). What follows the last is not said; an IP version there is
    /// taken for IP.
    #[cold]
    fn mpls(&mut self, bytes: &[u8], mut at: usize) {
        while let Some(label) = u32_at(bytes, at) {
            at += 4;
            if label & 0x100 != 0 {
                return match u8_at(bytes, at).map(|byte| byte >> 4) {
                    Some(4) => self.found(Network::Ipv4, at),
                    Some(6) => self.found(Network::Ipv6, at),
                    Some(_) => self.payload_at = at,
                    None => self.cut(Header::Mpls, at),
                };
            }
        }
        self.cut(Header::Mpls, at);
    }

    /// PPP, where address and control bytes may be left out (RFC 1661, section 6.6).
    #[cold]
    fn ppp(&mut self, bytes: &[u8], mut at: usize) {
        if array_at(bytes, at) == Some(&[0xff, 3]) {
            at += 2;
        }
        self.ppp = u16_at(bytes, at);
        match self.ppp {
            Some(0x0021 | 0x0057) => self.by_version(bytes, at + 2),
            Some(_) => self.payload_at = at + 2,
            None => self.cut(Header::Ppp, at),
        }
    }

    /// The family is in the byte order of the host that captured, or in network order.
    #[cold]
    fn loopback(&mut self, bytes: &[u8]) {
        match u32_at(bytes, 0).map(|family| family.min(family.swap_bytes())) {
            Some(2) => self.found(Network::Ipv4, 4),
            // AF_INET6 has a number for each BSD, and one on Linux.
            Some(10 | 24 | 28 | 30) => self.found(Network::Ipv6, 4),
            Some(_) => self.payload_at = 4,
            None => self.cut(Header::Link, 0),
        }
    }

    #[inline]
    fn by_version(&mut self, bytes: &[u8], at: usize) {
        match u8_at(bytes, at).map(|byte| byte >> 4) {
            Some(4) => self.found(Network::Ipv4, at),
            Some(6) => self.found(Network::Ipv6, at),
            Some(_) => (self.payload_at, self.bad_version) = (at, true),
            None => self.cut(Header::Ip, at),
        }
    }
}

fn is_tag(ether_type: u16) -> bool {
    use ether_type::{OLD_QINQ, OLD_QINQ_2, SERVICE_VLAN, VLAN};
    matches!(ether_type, VLAN | SERVICE_VLAN | OLD_QINQ | OLD_QINQ_2)
}
