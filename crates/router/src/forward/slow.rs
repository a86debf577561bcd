//! One packet, by the book: whatever it is.

use std::net::{IpAddr, Ipv4Addr};

use fibula_core::{Addr, Hop};
use fibula_packet::{
    Fault, Frame, Header, Ipv6Payload, LinkType, Network, Refusal, checksum, ether_type,
};

use super::{Forwarder, Reason, Run, Side, View, Waiting, hash};
use crate::Packet;
use crate::egress::{Exit, Kind};

/// What is to be done with a packet.
enum Verdict<'a> {
    /// It is for this machine.
    Host,
    /// The MAC address of its next hop is not known.
    Wait(Waiting),
    /// It is dropped.
    Drop(Reason),
    /// It leaves by this exit.
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
    pub(super) fn slow<'p>(&mut self, run: &mut Run<'_, 'p>, mut packet: Packet<'p>) {
        let len = packet.bytes().len();
        match judge(run.view, self.options.hash_seed, &packet) {
            Verdict::Host => {
                self.tally.one(Reason::Host, len);
                run.outcome.host.push(packet);
            }
            Verdict::Wait(waiting) => {
                self.tally.one(Reason::Waiting, len);
                run.outcome.waiting.push((waiting, packet));
            }
            Verdict::Drop(reason) => self.drop(run, packet, reason),
            Verdict::Send(exit, ip) => {
                let grows = usize::from(exit.header_len) + 2 - ip.at.min(18);
                if run.pool.slot_len() - packet.room() < grows {
                    return self.drop(run, packet, Reason::NoSlot);
                }
                let reason = match ip.network {
                    Network::Ipv4 => Reason::ForwardedV4,
                    Network::Ipv6 => Reason::ForwardedV6,
                };
                self.tally.one(reason, len);
                age(ip, packet.bytes_mut());
                relink(exit, ip, &mut packet);
                run.outcome.send[usize::from(exit.port)].push(packet);
            }
        }
    }

    pub(super) fn drop<'p>(&mut self, run: &mut Run<'_, 'p>, packet: Packet<'p>, reason: Reason) {
        self.tally.one(reason, packet.bytes().len());
        run.outcome.dropped.push(packet);
    }
}

/// Decides, and changes nothing.
fn judge<'a>(view: &View<'a>, seed: u64, packet: &Packet<'_>) -> Verdict<'a> {
    let frame = Frame::parse(LinkType::Ethernet, packet.bytes());
    let Some(port) = view.egress.port(packet.port) else {
        return Verdict::Drop(Reason::UnknownPort);
    };
    let cut = matches!(frame.fault(), Some(Fault { header: Header::Link | Header::Vlan, .. }));
    let Some((to, _)) = frame.macs().filter(|_| !cut) else {
        return Verdict::Drop(Reason::ShortFrame);
    };
    if to[0] & 1 == 0 && to != port.mac {
        return Verdict::Drop(Reason::OtherMac);
    }
    // IP behind SNAP, MPLS or PPPoE is not at the end of the tags: it is another's business.
    let plain = frame.network_at().filter(|at| *at == 14 + 4 * frame.tags().count());
    let Some((at, network)) = plain.zip(frame.network()) else { return Verdict::Host };
    let refusal = frame.check_forward().err();
    if let Some(reason) = refusal.and_then(header_fault) {
        return Verdict::Drop(reason);
    }
    let Some((_, destination)) = frame.ends() else { return Verdict::Drop(Reason::TooShort) };
    if is_for_link(destination) || view.egress.is_own(destination) {
        return Verdict::Host;
    }
    let flow = || hash::of_frame(seed, &frame);
    let group = match destination {
        IpAddr::V4(v4) => group(&view.v4, v4.into()),
        IpAddr::V6(v6) => group(&view.v6, v6.into()),
    };
    let mut exit = view.egress.exit(group, flow);
    if exit.kind == Kind::Local {
        return Verdict::Host;
    }
    if let Some(refusal) = refusal {
        return Verdict::Drop(address_fault(refusal));
    }
    let wait = |port, next_hop| Verdict::Wait(Waiting { port, next_hop });
    if exit.kind == Kind::OnLink {
        match view.egress.neighbour(exit.port, destination) {
            Some(neighbour) => exit = neighbour,
            None => return wait(exit.port, destination),
        }
    }
    match exit.kind {
        Kind::NoRoute | Kind::Local | Kind::OnLink => return Verdict::Drop(Reason::NoRoute),
        Kind::Blackhole => return Verdict::Drop(Reason::Blackhole),
        Kind::Unreachable => return Verdict::Drop(Reason::Unreachable),
        Kind::Prohibit => return Verdict::Drop(Reason::Prohibited),
        Kind::NoEgress => return Verdict::Drop(Reason::NoEgress),
        Kind::NoMac => match view.egress.adjacency(exit) {
            Some(way) => return wait(way.port, way.gateway),
            None => return Verdict::Drop(Reason::NoEgress),
        },
        Kind::Ready => {}
    }
    let len = match (frame.ipv4(), frame.ipv6().map(|ip| ip.payload())) {
        (Some(ip), _) => usize::from(ip.total_len()),
        (_, Some(Ipv6Payload::Bytes(len))) => 40 + len,
        (_, Some(Ipv6Payload::Jumbo(len))) => 40 + len as usize,
        _ => return Verdict::Drop(Reason::TooShort),
    };
    if len > exit.limit as usize {
        return Verdict::Drop(Reason::TooBig);
    }
    Verdict::Send(exit, Ip { network, at, len })
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

/// The reason of a refusal to forward what this machine might still take.
fn address_fault(refusal: Refusal) -> Reason {
    match refusal {
        Refusal::Expired => Reason::Expired,
        Refusal::LinkBroadcast => Reason::LinkBroadcast,
        Refusal::Source => Reason::Source,
        _ => Reason::Destination,
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

/// Puts the exit's link header in front of the IP packet, and cuts off what stands behind it.
fn relink(exit: &Exit, ip: Ip, packet: &mut Packet<'_>) {
    let header_len = usize::from(exit.header_len);
    packet.set_len(ip.at + ip.len);
    packet.grow_front(header_len as isize + 2 - ip.at as isize);
    let ether_type = match ip.network {
        Network::Ipv4 => ether_type::IPV4,
        Network::Ipv6 => ether_type::IPV6,
    };
    let bytes = packet.bytes_mut();
    bytes[..header_len].copy_from_slice(&exit.header[..header_len]);
    bytes[header_len..header_len + 2].copy_from_slice(&ether_type.to_be_bytes());
}
