//! The checks of a router before it forwards a packet: RFC 1812 for IPv4, RFC 8200 and RFC 4291 for IPv6.

use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr};

use crate::frame::{Frame, Length};
use crate::ipv4::Ipv4;
use crate::ipv6::{Ipv6, Ipv6Payload};
use crate::link::Network;

/// The reason why a router must not forward a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Refusal {
    /// The frame does not contain an IP packet.
    NotIp,
    /// The frame is too short for the IP header (RFC 1812, section 5.2.2, test 1).
    TooShort,
    /// The checksum of the IPv4 header is wrong (RFC 1812, section 5.2.2, test 2).
    Checksum,
    /// The version field is not the protocol's version (RFC 1812, section 5.2.2, test 3; RFC 8200, section 3).
    Version,
    /// IHL is below 5 (RFC 1812, section 5.2.2, test 4).
    HeaderLength,
    /// The packet claims to end within its header (RFC 1812, section 5.2.2, test 5), or within its
    /// hop-by-hop options (RFC 8200, section 4.3), or its length is zero and there is no jumbo
    /// payload option (RFC 2675, section 3). A captured packet with length 0 is one, too: [`Length::Offloaded`].
    LengthWithinHeader,
    /// A jumbo payload option with a length below 65,536 (RFC 2675, section 3).
    SmallJumbo,
    /// The packet claims more bytes than the frame has (RFC 1812, section 5.2.2; RFC 8200, section 3).
    LengthBeyondFrame,
    /// TTL or hop limit is 0 or 1, so it would be 0 (RFC 1812, section 5.3.1; RFC 8200, section 3).
    /// A router answers with ICMP Time Exceeded.
    Expired,
    /// The frame was broadcast or multicast on the link, but the packet is addressed to one host (RFC 1812, section
    /// 5.3.4).
    LinkBroadcast,
    /// The source address must not occur in a forwarded packet: see [`Frame::check_forward`].
    Source,
    /// Packets to the destination address must not be forwarded: see [`Frame::check_forward`].
    Destination,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotIp => "not an IP packet",
            Self::TooShort => "frame too short for an IP header",
            Self::Checksum => "wrong header checksum",
            Self::Version => "wrong IP version",
            Self::HeaderLength => "header length below 20",
            Self::LengthWithinHeader => "packet ends within its header",
            Self::SmallJumbo => "jumbo payload of fewer than 65,536 bytes",
            Self::LengthBeyondFrame => "packet longer than its frame",
            Self::Expired => "TTL or hop limit expired",
            Self::LinkBroadcast => "link-layer broadcast of a unicast packet",
            Self::Source => "source address that is not forwarded",
            Self::Destination => "destination address that is not forwarded",
        })
    }
}

impl core::error::Error for Refusal {}

impl Frame<'_> {
    /// Whether a router may forward the packet, without regard to its routes and interfaces. The
    /// tests run in the order of RFC 1812, section 5.2.2.
    ///
    /// Refused addresses, as source and destination except where a line limits this:
    ///
    /// | addresses | by |
    /// |---|---|
    /// | 0.0.0.0/8, 127.0.0.0/8 | RFC 1812, section 5.3.7 |
    /// | 169.254.0.0/16 | RFC 3927, section 7 |
    /// | 224.0.0.0/4 as source | RFC 1812, section 5.3.7 |
    /// | 224.0.0.0/24 as destination | RFC 5771, section 4 |
    /// | 240.0.0.0/4 with 255.255.255.255 | RFC 1812, sections 5.3.5.1 and 5.3.7 |
    /// | `::` | RFC 4291, section 2.5.2 |
    /// | `::1` | RFC 4291, section 2.5.3 |
    /// | ::ffff:0:0/96, IPv4 addresses in IPv6 | a host would take them for IPv4, behind rules for IPv4 |
    /// | fe80::/10 | RFC 4291, section 2.5.6 |
    /// | ff00::/8 as source, and as destination with a scope of 0, 1 or 2 | RFC 4291, section 2.7 |
    ///
    /// # Errors
    /// The first test that fails.
    pub fn check_forward(&self) -> Result<(), Refusal> {
        match self.network().ok_or(Refusal::NotIp)? {
            Network::Ipv4 => self.check_ipv4(&self.ipv4().ok_or(Refusal::TooShort)?),
            Network::Ipv6 => self.check_ipv6(&self.ipv6().ok_or(Refusal::TooShort)?),
        }
    }

    fn check_ipv4(&self, ip: &Ipv4<'_>) -> Result<(), Refusal> {
        // A checksum over IHL words means something only if there are that many: version and IHL
        // come first, so that the reason is the field that is wrong.
        ensure(ip.version() == 4, Refusal::Version)?;
        ensure(ip.header_len() >= 20, Refusal::HeaderLength)?;
        ensure(self.payload_at().is_some(), Refusal::TooShort)?;
        ensure(ip.checksum_is_right(), Refusal::Checksum)?;
        self.check_length(self.length() == Some(Length::WithinHeaders))?;
        ensure(ip.ttl() > 1, Refusal::Expired)?;
        let (source, destination) = (ip.source(), ip.destination());
        self.check_link(destination.is_multicast())?;
        let bad = |ip: Ipv4Addr| {
            ip.octets()[0] == 0 || ip.is_loopback() || ip.is_link_local() || ip.octets()[0] >= 240
        };
        ensure(!bad(source) && !source.is_multicast(), Refusal::Source)?;
        let local = destination.octets()[..3] == [224, 0, 0];
        ensure(!bad(destination) && !local, Refusal::Destination)
    }

    fn check_ipv6(&self, ip: &Ipv6<'_>) -> Result<(), Refusal> {
        ensure(ip.version() == 6, Refusal::Version)?;
        // A router reads no other extension header than hop-by-hop options (RFC 8200, section 4).
        let payload = ip.payload();
        let len = match payload {
            Ipv6Payload::Bytes(len) => len,
            Ipv6Payload::Jumbo(len) => {
                ensure(len >= 1 << 16, Refusal::SmallJumbo)?;
                len as usize
            }
            Ipv6Payload::Unknown => return Err(Refusal::LengthBeyondFrame),
        };
        // If they are cut before their length, so is the packet, unless it does not claim them.
        let options = ip.hop_by_hop_len().unwrap_or(8);
        self.check_length(len < options)?;
        ensure(ip.hop_limit() > 1, Refusal::Expired)?;
        let (source, destination) = (ip.source(), ip.destination());
        self.check_link(destination.is_multicast())?;
        let bad = |ip: Ipv6Addr| {
            ip.is_unspecified()
                || ip.is_loopback()
                || ip.is_unicast_link_local()
                || ip.to_ipv4_mapped().is_some()
        };
        ensure(!bad(source) && !source.is_multicast(), Refusal::Source)?;
        let local = destination.is_multicast() && destination.octets()[1] & 15 <= 2;
        ensure(!bad(destination) && !local, Refusal::Destination)
    }

    fn check_length(&self, within: bool) -> Result<(), Refusal> {
        let length = self.length();
        ensure(!within && length != Some(Length::Offloaded), Refusal::LengthWithinHeader)?;
        // A router has no use for the rest of a packet that a capture cut, either.
        let beyond = matches!(length, Some(Length::Beyond | Length::Cut));
        ensure(!beyond, Refusal::LengthBeyondFrame)
    }

    fn check_link(&self, multicast: bool) -> Result<(), Refusal> {
        let group = self.macs().is_some_and(|(destination, _)| destination[0] & 1 != 0);
        ensure(!group || multicast, Refusal::LinkBroadcast)
    }
}

fn ensure(sound: bool, refusal: Refusal) -> Result<(), Refusal> {
    if sound { Ok(()) } else { Err(refusal) }
}
