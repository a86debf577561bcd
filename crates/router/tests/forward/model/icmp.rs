//! Errors: RFC 792, RFC 1191, RFC 1812, section 4.3, RFC 4443.

use std::net::IpAddr;

use super::hash::above;
use super::{ExpectedError, Model, Sound, Why, checksum, may_travel};

impl Model<'_> {
    pub(super) fn expected_error(&self, packet: &Sound<'_>, why: Why) -> ExpectedError {
        if !self.may_get_error(packet) {
            return ExpectedError::Nothing;
        }
        let port = &self.egress.ports[usize::from(packet.port)];
        let all = self.egress.ports.iter().flat_map(|port| &port.addresses);
        let own =
            port.addresses.iter().chain(all).find(|address| {
                address.is_ipv4() == packet.source.is_ipv4() && may_travel(**address)
            });
        let Some(own) = own else { return ExpectedError::NoAddress };
        let mtu = port.mtu as usize;
        let mut frame = packet.from_mac.to_vec();
        frame.extend(port.mac);
        if let Some(vlan) = port.vlan {
            frame.extend([0x81, 0, (vlan >> 8) as u8 & 15, vlan as u8]);
        }
        frame.extend(match own {
            IpAddr::V4(_) => [vec![8, 0], error_v4(packet, *own, why, mtu)].concat(),
            IpAddr::V6(_) => [vec![0x86, 0xdd], error_v6(packet, *own, why, mtu)].concat(),
        });
        ExpectedError::Error(packet.port, frame)
    }

    /// RFC 1812, section 4.3.2.7; RFC 4443, section 2.4 (e).
    fn may_get_error(&self, packet: &Sound<'_>) -> bool {
        let groups = (packet.to_mac[0] | packet.from_mac[0]) & 1 == 1;
        let travels = may_travel(packet.source) && may_travel(packet.destination);
        if groups || !travels || self.is_own(packet.source) {
            return false;
        }
        let above = above(packet.ip);
        let kind = packet.ip.get(above.at + 1).map(|_| packet.ip[above.at]);
        let kind = if above.is_later { None } else { kind };
        match (packet.source, above.protocol) {
            (IpAddr::V4(_), Some(1)) => !matches!(kind, None | Some(3 | 4 | 5 | 11 | 12)),
            (IpAddr::V4(_), _) => !above.is_later,
            (IpAddr::V6(_), Some(58)) => !matches!(kind, None | Some(0..=127 | 137)),
            (IpAddr::V6(_), _) => true,
        }
    }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}

fn quoted(ip: &[u8], most: usize) -> &[u8] {
    &ip[..ip.len().min(most)]
}

fn error_v4(packet: &Sound<'_>, own: IpAddr, why: Why, mtu: usize) -> Vec<u8> {
    let mut message = match why {
        Why::Expired => vec![11, 0, 0, 0, 0, 0, 0, 0],
        Why::Net => vec![3, 0, 0, 0, 0, 0, 0, 0],
        Why::Host => vec![3, 1, 0, 0, 0, 0, 0, 0],
        Why::Prohibited => vec![3, 13, 0, 0, 0, 0, 0, 0],
        Why::TooBig(mtu) => {
            let mtu = mtu.min(65535);
            vec![3, 4, 0, 0, 0, 0, (mtu >> 8) as u8, mtu as u8]
        }
        Why::Option(at) => vec![12, 0, 0, 0, at, 0, 0, 0],
    };
    message.extend(quoted(packet.ip, 576.min(mtu).saturating_sub(28)));
    let sum = checksum(&message);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    let mut ip = vec![0x45, packet.ip[1] & 0b1_1100 | 0b1100_0000];
    ip.extend((message.len() as u16 + 20).to_be_bytes());
    ip.extend([0, 0, 0x40, 0, 64, 1, 0, 0]);
    ip.extend(octets(own));
    ip.extend(octets(packet.source));
    let sum = checksum(&ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    ip.extend(message);
    ip
}

fn error_v6(packet: &Sound<'_>, own: IpAddr, why: Why, mtu: usize) -> Vec<u8> {
    let mut message = match why {
        Why::Expired => vec![3, 0, 0, 0, 0, 0, 0, 0],
        Why::Net => vec![1, 0, 0, 0, 0, 0, 0, 0],
        Why::Host => vec![1, 3, 0, 0, 0, 0, 0, 0],
        Why::Prohibited => vec![1, 1, 0, 0, 0, 0, 0, 0],
        Why::TooBig(mtu) => [vec![2, 0, 0, 0], mtu.to_be_bytes().to_vec()].concat(),
        Why::Option(_) => unreachable!("options of IPv6 are not read"),
    };
    message.extend(quoted(packet.ip, 1280.min(mtu).saturating_sub(48)));
    let ends = [octets(own), octets(packet.source)].concat();
    let len = message.len() as u32;
    let pseudo = [&ends[..], &len.to_be_bytes(), &[0, 0, 0, 58], &message].concat();
    let sum = checksum(&pseudo);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    let mut ip = vec![0x60, 0, 0, 0, (len >> 8) as u8, len as u8, 58, 64];
    ip.extend(ends);
    ip.extend(message);
    ip
}
