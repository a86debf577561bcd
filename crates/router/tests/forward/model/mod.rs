//! A router as the RFCs describe it: one packet at a time, plain reads of bytes, checksums computed anew. It shares no
//! code with the crate but the types of the egress table.
#![allow(dead_code, reason = "tests and the fuzz target use parts of it")]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fibula_router::egress::{Egress, Group, Member};

mod fragments;
mod hash;
mod icmp;

/// The model's tables.
pub struct Model<'a> {
    pub egress: &'a Egress,
    /// The group of a destination.
    pub v4: &'a dyn Fn(u32) -> Option<u32>,
    pub v6: &'a dyn Fn(u128) -> Option<u32>,
    pub seed: u64,
    /// Whether packets with source routes are dropped.
    pub drops_source_routes: bool,
}

/// The outcome for a received packet.
#[derive(Debug, PartialEq, Eq)]
pub enum Fate {
    /// These frames leave by the port.
    Sent(u16, Vec<Vec<u8>>),
    Host,
    Waiting(u16, IpAddr),
    Dropped,
}

/// Its fate, under which name it counts, and the error that its sender gets.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    pub fate: Fate,
    pub name: &'static str,
    pub error: ExpectedError,
}

#[derive(Debug, PartialEq, Eq)]
pub enum ExpectedError {
    Nothing,
    /// There should be an error, but no address to send it from.
    NoAddress,
    Error(u16, Vec<u8>),
}

/// The content of an error.
#[derive(Clone, Copy, Debug)]
pub enum Why {
    Expired,
    Net,
    Host,
    Prohibited,
    TooBig(u32),
    Option(u8),
}

pub fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from(bytes[at]) << 8 | u16::from(bytes[at + 1])
}

/// The checksum of RFC 1071: the complement of the sum in one's complement arithmetic.
pub fn checksum(bytes: &[u8]) -> u16 {
    let mut sum = 0u32;
    for (at, byte) in bytes.iter().enumerate() {
        sum += if at % 2 == 0 { u32::from(*byte) << 8 } else { u32::from(*byte) };
        if sum > 0xffff {
            sum -= 0xffff;
        }
    }
    !(sum as u16)
}

/// Makes the checksum of an IPv4 header in a frame right, if there is a whole header.
pub fn mend(frame: &mut [u8]) {
    let Some(at) =
        (12..frame.len().saturating_sub(22)).step_by(4).find(|at| u16_at(frame, *at) == 0x0800)
    else {
        return;
    };
    let header = usize::from(frame[at + 2] & 15) * 4;
    if let Some(header) = frame.get_mut(at + 2..at + 2 + header).filter(|h| h.len() >= 20) {
        header[10..12].fill(0);
        let sum = checksum(header);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
    }
}

fn dropped(name: &'static str) -> Answer {
    Answer { fate: Fate::Dropped, name, error: ExpectedError::Nothing }
}

fn host() -> Answer {
    Answer { fate: Fate::Host, name: "host", error: ExpectedError::Nothing }
}

/// A packet whose header is sound.
pub struct Sound<'a> {
    pub port: u16,
    pub to_mac: &'a [u8],
    pub from_mac: &'a [u8],
    /// The IP packet, with the length in its header.
    pub ip: &'a [u8],
    pub source: IpAddr,
    pub destination: IpAddr,
}

impl Model<'_> {
    pub fn forward(&self, port: u16, frame: &[u8]) -> Answer {
        let Some(own) = self.egress.ports.get(usize::from(port)) else {
            return dropped("unknown_port");
        };
        if frame.len() < 14 {
            return dropped("short_frame");
        }
        let (mut at, mut vlans) = (12, 0);
        while [0x8100, 0x88a8, 0x9100, 0x9200].contains(&u16_at(frame, at)) {
            at += 4;
            if at + 2 > frame.len() {
                return dropped("short_frame");
            }
            vlans |= u16_at(frame, at - 2) & 0xfff;
        }
        let to_all = frame[0] & 1 == 1;
        if !to_all && frame[..6] != own.mac {
            return dropped("other_mac");
        }
        if own.vlan.is_none() && vlans != 0 {
            return dropped("tagged");
        }
        let packet = &frame[at + 2..];
        let checked = match u16_at(frame, at) {
            0x0800 => check_v4(packet),
            0x86dd => check_v6(packet),
            _ => return host(),
        };
        let (len, source, destination, ttl) = match checked {
            Ok(checked) => checked,
            Err(name) => return dropped(name),
        };
        let (to_mac, from_mac, ip) = (&frame[..6], &frame[6..12], &packet[..len]);
        self.route(Sound { port, to_mac, from_mac, ip, source, destination }, ttl)
    }

    /// The error of RFC 1812 and RFC 4443 to the sender of a packet that waited in vain.
    pub fn fail(&self, port: u16, frame: &[u8]) -> ExpectedError {
        let at = (12..).step_by(4).find(|at| [0x0800, 0x86dd].contains(&u16_at(frame, *at)));
        let packet = &frame[at.unwrap() + 2..];
        let is_v4 = packet[0] >> 4 == 4;
        let checked = if is_v4 { check_v4(packet) } else { check_v6(packet) };
        let (len, source, destination, _) = checked.unwrap();
        let (to_mac, from_mac, ip) = (&frame[..6], &frame[6..12], &packet[..len]);
        self.expected_error(&Sound { port, to_mac, from_mac, ip, source, destination }, Why::Host)
    }

    fn is_own(&self, address: IpAddr) -> bool {
        self.egress.ports.iter().any(|port| port.addresses.contains(&address))
    }

    fn refused(&self, packet: &Sound<'_>, name: &'static str, why: Why) -> Answer {
        Answer { error: self.expected_error(packet, why), ..dropped(name) }
    }

    fn route(&self, packet: Sound<'_>, ttl: u8) -> Answer {
        // Multicast, the link's broadcast and link-local addresses of IPv6 are the machine's business.
        let for_link = match packet.destination {
            IpAddr::V4(v4) => v4.octets()[0] >> 4 == 14 || v4 == Ipv4Addr::BROADCAST,
            IpAddr::V6(v6) => v6.octets()[0] == 0xff || is_link_local(v6),
        };
        if for_link || self.is_own(packet.destination) {
            return host();
        }
        let group = match packet.destination {
            IpAddr::V4(v4) => (self.v4)(u32::from_be_bytes(v4.octets())),
            IpAddr::V6(v6) => (self.v6)(u128::from_be_bytes(v6.octets())),
        };
        let group = group.and_then(|group| self.egress.groups.get(group as usize));
        if group == Some(&Group::Local) {
            return host();
        }
        if ttl < 2 {
            return self.refused(&packet, "expired", Why::Expired);
        }
        if packet.to_mac[0] & 1 == 1 {
            return dropped("link_broadcast");
        }
        if packet.from_mac[0] & 1 == 1 {
            return dropped("link_source");
        }
        let is_ours = packet.source.is_ipv4() && self.is_own(packet.source);
        if is_ours || !may_travel(packet.source) {
            return dropped("source");
        }
        if !may_travel(packet.destination) {
            return dropped("destination");
        }
        if packet.source.is_ipv4() {
            match fragments::source_route(packet.ip) {
                Err(at) => return self.refused(&packet, "options", Why::Option(at)),
                Ok(true) if self.drops_source_routes => return dropped("source_route"),
                Ok(_) => {}
            }
        }
        match group {
            None => self.refused(&packet, "no_route", Why::Net),
            Some(Group::Unreachable) => self.refused(&packet, "unreachable", Why::Net),
            Some(Group::Prohibit) => self.refused(&packet, "prohibited", Why::Prohibited),
            Some(Group::Blackhole) => dropped("blackhole"),
            Some(Group::Forward(members)) if members.is_empty() => {
                self.refused(&packet, "unreachable", Why::Net)
            }
            Some(Group::Forward(members)) => {
                let share = u64::from(hash::flow(self.seed, packet.ip)) * members.len() as u64;
                self.leave(packet, members[(share >> 32) as usize])
            }
            Some(Group::Local) => unreachable!("handled above"),
        }
    }

    fn leave(&self, packet: Sound<'_>, member: Member) -> Answer {
        let waiting = |port, next_hop| Answer {
            fate: Fate::Waiting(port, next_hop),
            name: "waiting",
            error: ExpectedError::Nothing,
        };
        let (number, next_hop, mac) = match member {
            Member::Gateway(at) => match self.egress.adjacencies.get(at as usize) {
                Some(way) => (way.port, way.gateway, way.mac),
                None => return dropped("no_egress"),
            },
            Member::OnLink(port) => {
                let mac = self.egress.neighbours.get(&(port, packet.destination));
                (port, packet.destination, mac.copied())
            }
        };
        let Some(port) = self.egress.ports.get(usize::from(number)) else {
            return dropped("no_egress");
        };
        let Some(mac) = mac else { return waiting(number, next_hop) };
        let (mut link, mtu) = (mac.to_vec(), port.mtu as usize);
        link.extend(port.mac);
        if let Some(vlan) = port.vlan {
            link.extend([0x81, 0, (vlan >> 8) as u8 & 15, vlan as u8]);
        }
        let is_v4 = packet.source.is_ipv4();
        link.extend(if is_v4 { [0x08, 0x00] } else { [0x86, 0xdd] });
        let sent = |name, packets: Vec<Vec<u8>>| {
            let frames = packets.into_iter().map(|ip| [&link[..], &ip].concat()).collect();
            Answer { fate: Fate::Sent(number, frames), name, error: ExpectedError::Nothing }
        };
        let mut ip = packet.ip.to_vec();
        if !is_v4 && ip.len() <= mtu {
            ip[7] -= 1;
            return sent("forwarded_v6", vec![ip]);
        }
        if is_v4 {
            ip[8] -= 1;
            let header = usize::from(ip[0] & 15) * 4;
            ip[10..12].fill(0);
            let sum = checksum(&ip[..header]);
            ip[10..12].copy_from_slice(&sum.to_be_bytes());
            if ip.len() <= mtu {
                return sent("forwarded_v4", vec![ip]);
            }
            let may_fragment = ip[6] & 0x40 == 0 && mtu >= header + 8;
            if may_fragment {
                let end = usize::from(u16_at(&ip, 6) & 0x1fff) * 8 + ip.len() - header;
                if end > 65535 {
                    return dropped("too_big");
                }
                return sent("fragmented", fragments::cut(&ip, mtu));
            }
        }
        self.refused(&packet, "too_big", Why::TooBig(port.mtu))
    }
}

type Checked = (usize, IpAddr, IpAddr, u8);

/// RFC 1812, section 5.2.2.
fn check_v4(packet: &[u8]) -> Result<Checked, &'static str> {
    if packet.len() < 20 {
        return Err("too_short");
    }
    if packet[0] >> 4 != 4 {
        return Err("version");
    }
    let header = usize::from(packet[0] & 15) * 4;
    if header < 20 {
        return Err("header_length");
    }
    if packet.len() < header {
        return Err("too_short");
    }
    if checksum(&packet[..header]) != 0 {
        return Err("checksum");
    }
    let len = usize::from(u16_at(packet, 2));
    if len < header {
        return Err("length_within_header");
    }
    if len > packet.len() {
        return Err("length_beyond_frame");
    }
    let address = |at: usize| IpAddr::from([0, 1, 2, 3].map(|i| packet[at + i]));
    Ok((len, address(12), address(16), packet[8]))
}

/// RFC 8200, section 3, RFC 2675, section 3.
fn check_v6(packet: &[u8]) -> Result<Checked, &'static str> {
    if packet.len() < 40 {
        return Err("too_short");
    }
    if packet[0] >> 4 != 6 {
        return Err("version");
    }
    let has_options = packet[6] == 0;
    let options_len = match has_options {
        true => (usize::from(*packet.get(41).unwrap_or(&0)) + 1) * 8,
        false => 0,
    };
    let mut len = usize::from(u16_at(packet, 4));
    if len == 0 && has_options {
        let end = packet.len().min(40 + options_len);
        match jumbo(packet.get(42..end).unwrap_or(&[])) {
            Some(jumbo) if jumbo < 65536 => return Err("small_jumbo"),
            Some(jumbo) => len = jumbo as usize,
            None if packet.len() < 42 || packet.len() < 40 + options_len => {
                return Err("length_beyond_frame");
            }
            None => {}
        }
    }
    if len < options_len {
        return Err("length_within_header");
    }
    if 40 + len > packet.len() {
        return Err("length_beyond_frame");
    }
    let address = |at: usize| {
        let mut octets = [0; 16];
        octets.copy_from_slice(&packet[at..at + 16]);
        IpAddr::from(octets)
    };
    Ok((40 + len, address(8), address(24), packet[7]))
}

fn jumbo(options: &[u8]) -> Option<u32> {
    let mut at = 0;
    while at < options.len() {
        if options[at] == 0 {
            at += 1;
            continue;
        }
        let len = usize::from(*options.get(at + 1)?);
        if options[at] == 0xc2 && len == 4 {
            let value = options.get(at + 2..at + 6)?;
            return Some(value.iter().fold(0, |all, byte| all << 8 | u32::from(*byte)));
        }
        at += 2 + len;
    }
    None
}

fn is_link_local(address: Ipv6Addr) -> bool {
    let [first, second, ..] = address.octets();
    first == 0xfe && second & 0xc0 == 0x80
}

/// Whether a unicast packet with this source, or to this destination, may be forwarded: RFC 1812, section 5.3.7, RFC
/// 3927, section 7, RFC 4291, section 2.
pub fn may_travel(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let [first, second, ..] = v4.octets();
            first != 0 && first != 127 && first < 224 && (first, second) != (169, 254)
        }
        IpAddr::V6(v6) => {
            let octets = v6.octets();
            let is_own = octets[..15].iter().all(|byte| *byte == 0) && octets[15] < 2;
            let is_mapped =
                octets[..10].iter().all(|byte| *byte == 0) && octets[10..12] == [0xff; 2];
            !(is_mapped || is_own || octets[0] == 0xff || is_link_local(v6))
        }
    }
}
