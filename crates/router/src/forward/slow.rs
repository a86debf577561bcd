//! Forwards one packet of any kind by the complete rules.

use std::net::{IpAddr, Ipv4Addr};

use fibula_core::{Addr, Hop};
use fibula_packet::{
    Fault, Frame, HeaderKind, Ipv4, Ipv6Payload, LinkType, Network, Refusal, checksum, ether_type,
};

use super::fragment::{self, Options};
use super::icmp::Notice;
use super::{ForwardOptions, Forwarder, Reason, Run, Side, SourceRoutes, View, Waiting, hash};
use crate::Packet;
use crate::egress::{Exit, ExitKind};

/// The action for a packet.
enum Verdict<'a> {
    /// It is for this machine.
    Host,
    /// The MAC address of its next hop is not known.
    Wait(Waiting),
    /// It is dropped.
    Drop(Reason),
    /// It is dropped, and its sender gets an error.
    Refuse(Reason, Notice),
    /// It leaves by this exit, in fragments if it is longer than the exit's limit.
    Send(&'a Exit, Ip),
}

/// Where the IP packet of a frame lies.
#[derive(Clone, Copy)]
struct Ip {
    network: Network,
    at: usize,
    len: usize,
}

impl Forwarder {
    /// Decides on a packet, and does it.
    pub(super) fn slow<'p>(&mut self, run: &mut Run<'_, 'p>, packet: Packet<'p>) {
        let len = packet.bytes().len();
        match judge(run.view, &self.options, &packet) {
            Verdict::Host => {
                self.tally.one(Reason::Host, len);
                run.outcome.host.push(packet);
            }
            Verdict::Wait(waiting) => {
                self.tally.one(Reason::Waiting, len);
                run.outcome.waiting.push((waiting, packet));
            }
            Verdict::Drop(reason) => self.drop(run, packet, reason),
            Verdict::Refuse(reason, notice) => self.refuse(run, packet, reason, notice),
            Verdict::Send(exit, ip) => self.send(run, exit, ip, packet),
        }
    }

    fn send<'p>(&mut self, run: &mut Run<'_, 'p>, exit: &Exit, ip: Ip, mut packet: Packet<'p>) {
        if !exit.fits(run.pool, ip.at, &packet) {
            return self.drop(run, packet, Reason::NoSlot);
        }
        let frame_len = packet.bytes().len();
        age(ip, packet.bytes_mut());
        if ip.len > exit.limit() as usize {
            return self.fragment(run, exit, (ip.at, ip.len), packet);
        }
        let (reason, ether_type) = match ip.network {
            Network::Ipv4 => (Reason::ForwardedV4, ether_type::IPV4),
            Network::Ipv6 => (Reason::ForwardedV6, ether_type::IPV6),
        };
        self.tally.one(reason, frame_len);
        exit.put(ether_type, ip.at, ip.len, &mut packet);
        run.outcome.send[usize::from(exit.port)].push(packet);
    }

    /// Drops a packet and sends an error to its sender.
    pub(super) fn refuse<'p>(
        &mut self,
        run: &mut Run<'_, 'p>,
        packet: Packet<'p>,
        reason: Reason,
        notice: Notice,
    ) {
        self.send_error(run, &packet, notice);
        self.drop(run, packet, reason);
    }

    pub(super) fn drop<'p>(&mut self, run: &mut Run<'_, 'p>, packet: Packet<'p>, reason: Reason) {
        self.tally.one(reason, packet.bytes().len());
        run.outcome.dropped.push(packet);
    }
}

/// Decides, and changes nothing.
fn judge<'a>(view: &View<'a>, options: &ForwardOptions, packet: &Packet<'_>) -> Verdict<'a> {
    let frame = Frame::parse(LinkType::Ethernet, packet.bytes());
    let Some(port) = view.egress.port(packet.port) else {
        return Verdict::Drop(Reason::UnknownPort);
    };
    let cut =
        matches!(frame.fault(), Some(Fault { header: HeaderKind::Link | HeaderKind::Vlan, .. }));
    let Some((to, from)) = frame.macs().filter(|_| !cut) else {
        return Verdict::Drop(Reason::ShortFrame);
    };
    if to[0] & 1 == 0 && to != port.mac {
        return Verdict::Drop(Reason::OtherMac);
    }
    // VLAN 0 is a tag for its priority alone.
    if port.vlan.is_none() && frame.tags().any(|tag| tag.vid() != 0) {
        return Verdict::Drop(Reason::Tagged);
    }
    // IP behind SNAP, MPLS or PPPoE is not at the end of the tags: it is another's business.
    let plain = frame.network_at().filter(|at| *at == 14 + 4 * frame.tags().count());
    let Some((at, network)) = plain.zip(frame.network()) else { return Verdict::Host };
    let refusal = frame.check_forward().err();
    if let Some(reason) = refusal.and_then(header_fault) {
        return Verdict::Drop(reason);
    }
    let Some((source, destination)) = frame.ends() else { return Verdict::Drop(Reason::TooShort) };
    if is_for_link(destination) || view.egress.is_own(destination) {
        return Verdict::Host;
    }
    let Some(len) = ip_len(&frame) else { return Verdict::Drop(Reason::TooShort) };
    let group = match destination {
        IpAddr::V4(v4) => group(&view.v4, v4.into()),
        IpAddr::V6(v6) => group(&view.v6, v6.into()),
    };
    let mut exit = view.egress.exit(group);
    if exit.kind == ExitKind::Local {
        return Verdict::Host;
    }
    if let Some(refusal @ (Refusal::Expired | Refusal::LinkBroadcast)) = refusal {
        return address_fault(refusal);
    }
    if from[0] & 1 != 0 {
        return Verdict::Drop(Reason::LinkSource);
    }
    // As the kernel does: of IPv4 alone.
    if source.is_ipv4() && view.egress.is_own(source) {
        return Verdict::Drop(Reason::Source);
    }
    if let Some(refusal) = refusal {
        return address_fault(refusal);
    }
    if let Some(verdict) = frame.ipv4().and_then(|ip| check_options(&ip, options.source_routes)) {
        return verdict;
    }
    if exit.kind == ExitKind::Shared {
        let flow = hash::of_frame(options.hash_seed, &without_trailer(&frame, at + len));
        exit = view.egress.share(exit, flow);
    }
    let wait = |port, next_hop| Verdict::Wait(Waiting { port, next_hop });
    if exit.kind == ExitKind::OnLink {
        match view.egress.neighbour(exit.port, destination) {
            Some(neighbour) => exit = neighbour,
            None => return wait(exit.port, destination),
        }
    }
    match exit.kind {
        ExitKind::NoRoute | ExitKind::Local | ExitKind::OnLink | ExitKind::Shared => {
            Verdict::Refuse(Reason::NoRoute, Notice::NetUnreachable)
        }
        ExitKind::Blackhole => Verdict::Drop(Reason::Blackhole),
        ExitKind::Unreachable => Verdict::Refuse(Reason::Unreachable, Notice::NetUnreachable),
        ExitKind::Prohibit => Verdict::Refuse(Reason::Prohibited, Notice::Prohibited),
        ExitKind::NoEgress => Verdict::Drop(Reason::NoEgress),
        ExitKind::NoMac => match view.egress.adjacency(exit) {
            Some(way) => wait(way.port, way.gateway),
            None => Verdict::Drop(Reason::NoEgress),
        },
        ExitKind::Ready => fit(&frame, exit, Ip { network, at, len }),
    }
}

/// Whether a packet fits through an exit, whole or in fragments.
fn fit<'a>(frame: &Frame<'_>, exit: &'a Exit, ip: Ip) -> Verdict<'a> {
    if ip.len <= exit.limit() as usize {
        return Verdict::Send(exit, ip);
    }
    match frame.ipv4() {
        Some(header) if fragment::may_cut(&header, exit.limit() as usize) => {
            match fragment::ends_beyond(&header) {
                true => Verdict::Drop(Reason::TooBig),
                false => Verdict::Send(exit, ip),
            }
        }
        _ => Verdict::Refuse(Reason::TooBig, Notice::TooBig(exit.limit())),
    }
}

fn check_options<'a>(ip: &Ipv4<'_>, source_routes: SourceRoutes) -> Option<Verdict<'a>> {
    if !ip.has_options() {
        return None;
    }
    match fragment::options(ip) {
        Options::Malformed(at) => Some(Verdict::Refuse(Reason::Options, Notice::Option(at))),
        Options::SourceRoute if source_routes == SourceRoutes::Drop => {
            Some(Verdict::Drop(Reason::SourceRoute))
        }
        Options::SourceRoute | Options::Plain => None,
    }
}

/// The length of the IP packet, if its header is sound.
fn ip_len(frame: &Frame<'_>) -> Option<usize> {
    match frame.ipv6() {
        None => Some(frame.ipv4()?.total_len().into()),
        Some(ip) => match ip.payload() {
            Ipv6Payload::Bytes(len) => Some(40 + len),
            Ipv6Payload::Jumbo(len) => Some(40 + len as usize),
            Ipv6Payload::Unknown => None,
        },
    }
}

/// The IP packet of a frame whose header is sound, as a frame that ends with it: its fields are then the packet's,
/// never those of padding.
pub(super) fn sound<'a>(frame: &Frame<'a>) -> Option<(&'a [u8], Frame<'a>)> {
    let (at, len) = (frame.network_at()?, ip_len(frame)?);
    let ip = frame.bytes().get(at..)?.get(..len)?;
    Some((ip, without_trailer(frame, at + len)))
}

fn without_trailer<'a>(frame: &Frame<'a>, end: usize) -> Frame<'a> {
    Frame::parse(LinkType::Ethernet, frame.bytes().get(..end).unwrap_or_default())
}

fn group<A: Addr>(side: &Side<'_, A>, destination: A) -> Option<u32> {
    let hop: Hop = side.engine.lookup(destination);
    side.groups.get(hop.index()? as usize).copied()
}

/// Whether the destination is on the link that the packet came in by, this machine among others.
fn is_for_link(destination: IpAddr) -> bool {
    match destination {
        IpAddr::V4(v4) => v4.is_multicast() || v4 == Ipv4Addr::BROADCAST,
        IpAddr::V6(v6) => v6.is_multicast() || v6.is_unicast_link_local(),
    }
}

/// The reason of a refusal for which the header cannot be believed.
fn header_fault(refusal: Refusal) -> Option<Reason> {
    Some(match refusal {
        Refusal::TooShort => Reason::TooShort,
        Refusal::Checksum => Reason::Checksum,
        Refusal::Version => Reason::Version,
        Refusal::HeaderLength => Reason::HeaderLength,
        Refusal::LengthWithinHeader => Reason::LengthWithinHeader,
        Refusal::SmallJumbo => Reason::SmallJumbo,
        Refusal::LengthBeyondFrame => Reason::LengthBeyondFrame,
        _ => return None,
    })
}

/// The action after a refusal, for a packet that is not for this machine.
fn address_fault<'a>(refusal: Refusal) -> Verdict<'a> {
    match refusal {
        Refusal::Expired => Verdict::Refuse(Reason::Expired, Notice::Expired),
        Refusal::LinkBroadcast => Verdict::Drop(Reason::LinkBroadcast),
        Refusal::Source => Verdict::Drop(Reason::Source),
        _ => Verdict::Drop(Reason::Destination),
    }
}

/// Takes one from TTL or hop limit.
fn age(ip: Ip, bytes: &mut [u8]) {
    let Some(header) = bytes.get_mut(ip.at..) else { return };
    match (ip.network, header) {
        (Network::Ipv4, [_, _, _, _, _, _, _, _, ttl, protocol, high, low, ..]) => {
            let old = u16::from_be_bytes([*ttl, *protocol]);
            *ttl = ttl.saturating_sub(1);
            let new = u16::from_be_bytes([*ttl, *protocol]);
            let sum = checksum::update(u16::from_be_bytes([*high, *low]), old, new);
            [*high, *low] = sum.to_be_bytes();
        }
        (Network::Ipv6, [_, _, _, _, _, _, _, limit, ..]) => *limit = limit.saturating_sub(1),
        _ => {}
    }
}
