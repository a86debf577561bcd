//! ICMP and ICMPv6 errors for the senders of packets. The module's page describes where they are sent, and why.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fibula_packet::{Frame, LinkType, Refusal, checksum, ether_type, protocol};

use super::addresses::{forwards_v4, forwards_v6};
use super::limit::Bucket;
use super::slow::sound;
use super::{Forwarder, Reason, Run};
use crate::egress::{EgressPort, Exit, Paths};
use crate::{Packet, Pool};

/// The ICMP message about a packet that is not forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Notice {
    /// TTL or hop limit expired.
    Expired,
    /// There is no way to the network.
    NetUnreachable,
    /// The host's, or the gateway's, MAC address could not be found.
    HostUnreachable,
    /// Administratively prohibited.
    Prohibited,
    /// Larger than this MTU.
    TooBig(u32),
    /// The option at this byte of the IPv4 header is malformed.
    Option(u8),
}

impl Notice {
    /// Type, code, and the four bytes behind the checksum: RFC 792, RFC 1191, RFC 1812.
    fn v4(self) -> (u8, u8, u32) {
        match self {
            Self::Expired => (11, 0, 0),
            Self::NetUnreachable => (3, 0, 0),
            Self::HostUnreachable => (3, 1, 0),
            Self::Prohibited => (3, 13, 0),
            Self::TooBig(mtu) => (3, 4, mtu.min(0xffff)),
            Self::Option(at) => (12, 0, u32::from(at) << 24),
        }
    }

    /// The same of ICMPv6: RFC 4443.
    fn v6(self) -> (u8, u8, u32) {
        match self {
            Self::Expired => (3, 0, 0),
            Self::NetUnreachable => (1, 0, 0),
            Self::HostUnreachable => (1, 3, 0),
            Self::Prohibited => (1, 1, 0),
            Self::TooBig(mtu) => (2, 0, mtu),
            Self::Option(at) => (4, 0, at.into()),
        }
    }
}

/// The longest error of IPv4 (RFC 1812, section 4.3.2.3), and of IPv6 (RFC 4443, section 2.4 (c)).
const LONGEST: (usize, usize) = (576, 1280);
const TTL: u8 = 64;

impl Forwarder {
    /// Sends an error to the sender of a packet, which must be unchanged, unless the RFCs forbid an error about it.
    #[cold]
    pub(super) fn send_error<'p>(
        &mut self,
        run: &mut Run<'_, 'p>,
        packet: &Packet<'_>,
        notice: Notice,
    ) {
        let paths = run.view.egress;
        let frame = Frame::parse(LinkType::Ethernet, packet.bytes());
        let (Some(port), true) = (paths.port(packet.port), self.options.icmp) else { return };
        let Some((ip, frame)) = sound(&frame) else { return };
        let Some((from, source)) = addressee(paths, &frame) else { return };
        let len = packet.bytes().len();
        let Some(own) = own_address(paths, port, source) else {
            return self.tally.one(Reason::IcmpNoAddress, len);
        };
        let number = usize::from(packet.port);
        if self.buckets.len() <= number {
            self.buckets.resize(number + 1, Bucket::default());
        }
        let (rate, burst) = (self.options.icmp_rate, self.options.icmp_burst);
        if !self.buckets[number].take(run.now, rate, burst) {
            return self.tally.one(Reason::IcmpLimited, len);
        }
        let exit = Exit::back(packet.port, port, from);
        let class = frame.ipv4().map_or(0, |ip| ip.traffic_class());
        match write(run.pool, &exit, (ip, class), (own, source), notice) {
            Some(error) => {
                self.tally.one(Reason::IcmpSent, error.bytes().len());
                run.outcome.send[number].push(error);
            }
            None => self.tally.one(Reason::IcmpNoSlot, len),
        }
    }
}

/// The receiver of an error about this packet: MAC address of its frame's sender, and its source address. None where
/// RFC 1812, section 4.3.2.7, or RFC 4443, section 2.4 (e), forbids an error.
fn addressee(paths: &Paths, frame: &Frame<'_>) -> Option<([u8; 6], IpAddr)> {
    // Addresses of the link: no broadcast, no group; and none can be answered.
    let (to, from) = frame.macs()?;
    if to[0] & 1 != 0 || from[0] & 1 != 0 {
        return None;
    }
    // Headers that cannot be believed, and addresses that must not stand there. Their tests come after that of the TTL.
    let sound = matches!(frame.check_forward(), Ok(()) | Err(Refusal::Expired));
    let (source, destination) = frame.ends().filter(|_| sound)?;
    let forwards = match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            forwards_v4(source.into()) && forwards_v4(destination.into())
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            forwards_v6(source.into()) && forwards_v6(destination.into())
        }
        _ => false,
    };
    if !forwards || paths.is_own(source) {
        return None;
    }
    let later = frame.fragment().is_some_and(|fragment| fragment.offset > 0);
    let kind = frame.icmp().map(|(kind, _)| kind);
    let silent = match (source, frame.protocol()) {
        (IpAddr::V4(_), Some(protocol::ICMP)) => {
            later || kind.is_none_or(|kind| matches!(kind, 3 | 4 | 5 | 11 | 12))
        }
        (IpAddr::V4(_), _) => later,
        // Errors are below 128, 137 is a redirect. An unreadable message might be one.
        (IpAddr::V6(_), Some(protocol::ICMPV6)) => {
            kind.is_none_or(|kind| kind < 128 || kind == 137)
        }
        (IpAddr::V6(_), _) => false,
    };
    (!silent).then_some((from, source))
}

/// The address that an error comes from: the first of the port that may stand in a forwarded packet of this family,
/// else the first of any port.
fn own_address(paths: &Paths, port: &EgressPort, family: IpAddr) -> Option<IpAddr> {
    let fits = |own: &&IpAddr| match **own {
        IpAddr::V4(v4) => family.is_ipv4() && forwards_v4(v4.into()),
        IpAddr::V6(v6) => family.is_ipv6() && forwards_v6(v6.into()),
    };
    let others = || paths.description().ports.iter().flat_map(|port| &port.addresses).find(fits);
    port.addresses.iter().find(fits).or_else(others).copied()
}

/// Writes an error about a packet with this traffic class into a slot.
fn write<'p>(
    pool: &'p Pool,
    exit: &Exit,
    (ip, class): (&[u8], u8),
    (own, to): (IpAddr, IpAddr),
    notice: Notice,
) -> Option<Packet<'p>> {
    let mut error = pool.take()?;
    let link = exit.link_len();
    let (header, longest) = if own.is_ipv4() { (20, LONGEST.0) } else { (40, LONGEST.1) };
    let room = (error.room() - link).min(exit.limit() as usize).min(longest);
    let quoted = ip.len().min(room.saturating_sub(header + 8));
    error.set_len(link + header + 8 + quoted);
    error.port = exit.port;
    let (head, message) = error.bytes_mut().split_at_mut(link + header);
    let (head, network) = head.split_at_mut(link);
    message[8..].copy_from_slice(&ip[..quoted]);
    let (kind, code, rest) = if own.is_ipv4() { notice.v4() } else { notice.v6() };
    message[..4].copy_from_slice(&[kind, code, 0, 0]);
    message[4..8].copy_from_slice(&rest.to_be_bytes());
    match (own, to) {
        (IpAddr::V4(own), IpAddr::V4(to)) => {
            exit.write(ether_type::IPV4, head);
            write_v4(network, class, message.len(), own, to);
            seal(message, 0);
        }
        (IpAddr::V6(own), IpAddr::V6(to)) => {
            exit.write(ether_type::IPV6, head);
            write_v6(network, message.len(), own, to);
            // The pseudo-header: both addresses, length, protocol (RFC 8200, section 8.1).
            let pseudo = u32::from(checksum::sum(&network[8..])) + message.len() as u32;
            seal(message, pseudo + u32::from(protocol::ICMPV6));
        }
        _ => unreachable!("own addresses are chosen by the family of the other"),
    }
    Some(error)
}

/// The TOS bits of the packet, without ECN, and precedence 6 (RFC 1812, section 4.3.2.5). It is never fragmented, so it
/// needs no identification (RFC 6864).
fn write_v4(header: &mut [u8], class: u8, payload: usize, own: Ipv4Addr, to: Ipv4Addr) {
    let [high, low] = ((20 + payload) as u16).to_be_bytes();
    header[..10].copy_from_slice(&[
        0x45,
        class & 0x1c | 0xc0,
        high,
        low,
        0,
        0,
        0x40,
        0,
        TTL,
        protocol::ICMP,
    ]);
    header[10..12].fill(0);
    header[12..16].copy_from_slice(&own.octets());
    header[16..20].copy_from_slice(&to.octets());
    let sum = checksum::compute(header);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
}

fn write_v6(header: &mut [u8], payload: usize, own: Ipv6Addr, to: Ipv6Addr) {
    let [high, low] = (payload as u16).to_be_bytes();
    header[..8].copy_from_slice(&[0x60, 0, 0, 0, high, low, protocol::ICMPV6, TTL]);
    header[8..24].copy_from_slice(&own.octets());
    header[24..40].copy_from_slice(&to.octets());
}

/// Writes the message's checksum; `more` is the sum of the other data that it covers.
fn seal(message: &mut [u8], more: u32) {
    let sum = more + u32::from(checksum::sum(message));
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    message[2..4].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}
