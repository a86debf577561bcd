//! Frames, and the headers in them.

use core::net::IpAddr;

use crate::bytes::array_at;
use crate::fault::{Fault, FaultKind, HeaderKind};
use crate::ip::{self, Ip, IpFault};
use crate::ipv4::Ipv4;
use crate::ipv6::{Extensions, Fragment, Ipv6, Ipv6Payload, number};
use crate::link::{Link, LinkType, Network, Tags};
use crate::transport::{Tcp, Udp, icmp, least_len, ports, protocol};

/// A frame, parsed as far as its bytes go. The parser uses link headers, IHL and the lengths of extension headers,
/// but not the length of a packet: [`Frame::length`] compares that with the bytes. Every offset that a method returns
/// is at most `bytes().len()`.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    bytes: &'a [u8],
    wire_len: usize,
    link: Link,
    ip: Ip,
    link_type: LinkType,
    captured: bool,
}

/// The comparison of the packet's length field with the bytes of its frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Length {
    /// The packet is complete. Bytes after it are a trailer, such as Ethernet's padding.
    Whole,
    /// The captured part ends within the packet, and the frame on the wire was long enough for it.
    Cut,
    /// The packet claims more bytes than the frame had on the wire.
    Beyond,
    /// The packet claims to end within its own IP headers. A received frame with length 0 is one.
    WithinHeaders,
    /// The length field of a captured packet is 0: the host leaves segmentation to the network card, and the capture
    /// was made before. The packet ends with its frame. No router forwards it: [`Frame::check_forward`].
    Offloaded,
}

impl<'a> Frame<'a> {
    /// Parses a complete frame, as it was received.
    #[inline]
    #[must_use]
    pub fn parse(link: LinkType, bytes: &'a [u8]) -> Self {
        Self::walk(link, bytes, bytes.len(), false)
    }

    /// Parses a frame of a capture, which perhaps has only its beginning. `wire_len` is its length on the wire; if it
    /// is smaller than the number of bytes, that number is used. An IP length of 0 means that the packet ends with its
    /// frame: [`Length::Offloaded`].
    #[inline]
    #[must_use]
    pub fn parse_captured(link_type: LinkType, bytes: &'a [u8], wire_len: usize) -> Self {
        Self::walk(link_type, bytes, wire_len, true)
    }

    #[inline(always)]
    fn walk(link_type: LinkType, bytes: &'a [u8], wire_len: usize, captured: bool) -> Self {
        let link = Link::read(link_type, bytes);
        let ip = match link.network() {
            Some(Network::Ipv4) => Ip::of_ipv4(bytes, link.payload_at),
            Some(Network::Ipv6) => Ip::of_ipv6(bytes, link.payload_at),
            None => Ip::NONE,
        };
        Self { bytes, wire_len: wire_len.max(bytes.len()), link, ip, link_type, captured }
    }

    /// The bytes of the frame.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The length of the frame on the wire.
    #[must_use]
    pub fn wire_len(&self) -> usize {
        self.wire_len
    }

    /// Destination and source of an Ethernet frame.
    #[inline]
    #[must_use]
    pub fn macs(&self) -> Option<([u8; 6], [u8; 6])> {
        let ethernet = self.link_type == LinkType::Ethernet;
        let mac = |at| array_at(self.bytes, at).copied();
        if ethernet { mac(0).zip(mac(6)) } else { None }
    }

    /// The VLAN tags, outermost first.
    #[inline]
    #[must_use]
    pub fn tags(&self) -> Tags<'a> {
        Tags::new(self.link_type, self.bytes)
    }

    /// The EtherType after all VLAN tags, or the EtherType of SNAP. `None` if no EtherType announces the next header:
    /// raw IP, PPP, loopback, other frames of IEEE 802.3.
    #[inline]
    #[must_use]
    pub fn ether_type(&self) -> Option<u16> {
        self.link.ether_type()
    }

    /// The protocol field of PPP, on a PPP link or in a PPPoE session: 0x0021 is IPv4, 0x0057 IPv6.
    #[must_use]
    pub fn ppp_protocol(&self) -> Option<u16> {
        self.link.ppp_protocol()
    }

    /// The IP version that the link headers announce. The IP header may be cut.
    #[must_use]
    pub fn network(&self) -> Option<Network> {
        self.link.network()
    }

    /// The offset of the network header, or the other protocol that the link headers announce.
    #[inline]
    #[must_use]
    pub fn network_at(&self) -> Option<usize> {
        let there = self.link.cut().is_none() && self.link.payload_at <= self.bytes.len();
        there.then_some(self.link.payload_at)
    }

    /// The IPv4 header, if its fixed part is complete.
    #[inline]
    #[must_use]
    pub fn ipv4(&self) -> Option<Ipv4<'a>> {
        let bytes = self.bytes.get(self.link.payload_at..)?;
        if self.link.network() == Some(Network::Ipv4) { Ipv4::new(bytes) } else { None }
    }

    /// The fixed IPv6 header, if it is complete.
    #[inline]
    #[must_use]
    pub fn ipv6(&self) -> Option<Ipv6<'a>> {
        let bytes = self.bytes.get(self.link.payload_at..)?;
        if self.link.network() == Some(Network::Ipv6) { Ipv6::new(bytes) } else { None }
    }

    /// The extension headers of IPv6. Their offsets are relative to [`Frame::network_at`].
    #[must_use]
    pub fn extensions(&self) -> Option<Extensions<'a>> {
        self.ipv6().map(|ip| ip.extensions())
    }

    /// Source and destination address of the outermost IP header.
    #[inline]
    #[must_use]
    pub fn ends(&self) -> Option<(IpAddr, IpAddr)> {
        match self.link.network()? {
            Network::Ipv4 => self.ipv4().map(|ip| (ip.source().into(), ip.destination().into())),
            Network::Ipv6 => self.ipv6().map(|ip| (ip.source().into(), ip.destination().into())),
        }
    }

    /// The protocol over IP, after all extension headers. In a later fragment, it is the protocol in the fragment
    /// header, although only the first fragment has its header.
    #[inline]
    #[must_use]
    pub fn protocol(&self) -> Option<u8> {
        self.ip.protocol()
    }

    /// The last protocol or extension header that the bytes announce: [`Frame::protocol`], or the
    /// number of an extension header that is cut.
    #[inline]
    #[must_use]
    pub fn announced(&self) -> Option<u8> {
        self.ip.announced()
    }

    /// The kind of fragment, if the packet is one: with the MF bit or an offset, or with a fragment header.
    #[inline]
    #[must_use]
    pub fn fragment(&self) -> Option<Fragment> {
        self.ip.fragment
    }

    /// The offset of the payload after the IP headers.
    #[must_use]
    pub fn payload_at(&self) -> Option<usize> {
        self.ip.payload_at()
    }

    /// The offset of the transport header; `None` in later fragments, which have none.
    #[inline]
    #[must_use]
    pub fn transport_at(&self) -> Option<usize> {
        let later = self.ip.fragment.is_some_and(|fragment| fragment.offset > 0);
        self.ip.payload_at().filter(|_| !later)
    }

    /// Whether the packet was captured before the network card divided it, so that its length field is 0.
    #[inline]
    fn is_offloaded(&self) -> bool {
        self.captured && self.has_no_length()
    }

    #[cold]
    fn has_no_length(&self) -> bool {
        match self.link.network() {
            Some(Network::Ipv4) => self.ipv4().is_some_and(|ip| ip.total_len() == 0),
            Some(Network::Ipv6) => self.ipv6().is_some_and(|ip| {
                ip.next_header() != number::NO_NEXT_HEADER && ip.payload() == Ipv6Payload::Bytes(0)
            }),
            None => false,
        }
    }

    /// Where the packet ends by its length field, which may lie beyond the frame. `None` without
    /// an IP header, or where the jumbo payload option of an IPv6 packet is cut.
    #[inline]
    fn packet_end(&self) -> Option<usize> {
        let len = match self.link.network()? {
            Network::Ipv4 => match self.ipv4()?.total_len() {
                0 if self.is_offloaded() => return Some(self.wire_len),
                len => len.into(),
            },
            Network::Ipv6 => match self.ipv6()?.payload() {
                Ipv6Payload::Bytes(0) if self.is_offloaded() => return Some(self.wire_len),
                Ipv6Payload::Bytes(len) => 40 + len,
                Ipv6Payload::Jumbo(len) => usize::try_from(len).ok()?.checked_add(40)?,
                Ipv6Payload::Unknown => return None,
            },
        };
        self.link.payload_at.checked_add(len)
    }

    /// The comparison of the packet's length field with the bytes; `None` if the length is unknown.
    #[inline]
    #[must_use]
    pub fn length(&self) -> Option<Length> {
        let end = self.packet_end()?;
        let headers_end = match self.link.network()? {
            Network::Ipv4 => self.link.payload_at + self.ipv4()?.header_len().max(20),
            // A header that is cut although the packet has ended lies behind its end.
            Network::Ipv6 => self.ip.payload_at().unwrap_or(match end <= self.bytes.len() {
                true => usize::MAX,
                false => self.link.payload_at + 40,
            }),
        };
        Some(if end == self.wire_len && self.is_offloaded() {
            Length::Offloaded
        } else if end < headers_end {
            Length::WithinHeaders
        } else if end > self.wire_len {
            Length::Beyond
        } else if end > self.bytes.len() {
            Length::Cut
        } else {
            Length::Whole
        })
    }

    /// The bytes from the transport header to the end of the packet by its length field, or to the
    /// end of the frame. `None` in later fragments, and in packets that end within their headers.
    #[inline]
    #[must_use]
    pub fn segment(&self) -> Option<&'a [u8]> {
        let end = self.packet_end()?.min(self.bytes.len());
        self.bytes.get(self.transport_at()?..end)
    }

    /// The TCP header, if the packet has one and its first 20 bytes are complete.
    #[must_use]
    pub fn tcp(&self) -> Option<Tcp<'a>> {
        if self.protocol() == Some(protocol::TCP) { Tcp::new(self.segment()?) } else { None }
    }

    /// The UDP header, if the packet has one and it is complete.
    #[must_use]
    pub fn udp(&self) -> Option<Udp<'a>> {
        if self.protocol() == Some(protocol::UDP) { Udp::new(self.segment()?) } else { None }
    }

    /// Source and destination port of TCP, UDP, DCCP, SCTP and UDP-Lite.
    #[must_use]
    pub fn ports(&self) -> Option<(u16, u16)> {
        ports(self.protocol()?, self.segment()?)
    }

    /// Type and code of ICMP and ICMPv6.
    #[must_use]
    pub fn icmp(&self) -> Option<(u8, u8)> {
        icmp(self.protocol()?, self.segment()?)
    }

    /// The first header that is cut or malformed, up to the header of the transport protocol. `None` if there is
    /// none, whatever follows the headers.
    #[must_use]
    pub fn fault(&self) -> Option<Fault> {
        if let Some((header, at)) = self.link.cut() {
            return Some(Fault { header, at, kind: self.ends_within() });
        }
        if self.link.has_bad_version() {
            let at = self.link.payload_at;
            return Some(Fault { header: HeaderKind::Ip, at, kind: FaultKind::Malformed });
        }
        if let Some((header, at, malformed)) = self.ip_fault() {
            let kind = if malformed { FaultKind::Malformed } else { self.ends_within() };
            return Some(Fault { header, at, kind });
        }
        self.transport_fault()
    }

    fn transport_fault(&self) -> Option<Fault> {
        let (protocol, at, segment) = (self.protocol()?, self.transport_at()?, self.segment()?);
        let fault = |kind| Some(Fault { header: HeaderKind::Transport(protocol), at, kind });
        if segment.len() < least_len(protocol) {
            return fault(self.ends_within());
        }
        if let Some(tcp) = self.tcp() {
            return match tcp.header_len() {
                0..20 => fault(FaultKind::Malformed),
                len if len > segment.len() => fault(self.ends_within()),
                _ => None,
            };
        }
        // A length of 0 is a jumbogram's (RFC 2675, section 4).
        let short = self.udp().is_some_and(|udp| (1..8).contains(&udp.len()));
        if short { fault(FaultKind::Malformed) } else { None }
    }

    /// An IP header has a version or length that it must not have.
    pub(crate) fn ip_is_malformed(&self) -> bool {
        self.link.has_bad_version() || matches!(self.ip_fault(), Some((_, _, true)))
    }

    fn ip_fault(&self) -> Option<IpFault> {
        ip::fault(self.network()?, self.bytes, self.link.payload_at)
    }

    /// Why a header is not there in full.
    fn ends_within(&self) -> FaultKind {
        let ended = self.packet_end().is_some_and(|end| end <= self.bytes.len());
        let cut = self.wire_len > self.bytes.len() && !ended;
        if cut { FaultKind::Cut } else { FaultKind::Short }
    }
}
