//! From the bytes of a packet to addresses, protocol and ports.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::bytes::{u16_at, u32_at};

/// What is told of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flow {
    /// Source and destination of the outermost IP header.
    pub(super) ends: Option<(IpAddr, IpAddr)>,
    pub(super) protocol: Protocol,
    /// Source and destination port, where the protocol has some and the packet is no later fragment.
    pub(super) ports: Option<(u16, u16)>,
    /// The capture ends before the addresses or the ports.
    pub(super) truncated: bool,
}

/// The outermost protocol that is neither a link nor IP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Protocol {
    /// The link type is not known, or the packet is too short to tell.
    #[default]
    Unknown,
    /// Not IP; the Ethernet type.
    Ether(u16),
    /// Over IP; the protocol number.
    Ip(u8),
}

impl Protocol {
    /// The name of a protocol that is common; others go by number.
    pub(super) fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::Ether(0x0806) => "arp",
            Self::Ether(0x88cc) => "lldp",
            Self::Ip(1) => "icmp",
            Self::Ip(2) => "igmp",
            Self::Ip(4) => "ipip",
            Self::Ip(6) => "tcp",
            Self::Ip(17) => "udp",
            Self::Ip(33) => "dccp",
            Self::Ip(41) => "ipv6",
            Self::Ip(47) => "gre",
            Self::Ip(50) => "esp",
            Self::Ip(51) => "ah",
            Self::Ip(58) => "icmpv6",
            Self::Ip(89) => "ospf",
            Self::Ip(103) => "pim",
            Self::Ip(112) => "vrrp",
            Self::Ip(132) => "sctp",
            Self::Ip(136) => "udplite",
            _ => return None,
        })
    }
}

/// Reads the headers of a packet of this LINKTYPE.
pub(super) fn flow(link: u32, data: &[u8]) -> Flow {
    let from = |header: usize| data.get(header..).unwrap_or_default();
    match link {
        // Ethernet.
        1 => after(u16_at(data, 12, true), from(14)),
        // BSD loopback: the family in the byte order of the host that captured, or in network order.
        0 | 108 => match u32_at(data, 0, false).map(|family| family.min(family.swap_bytes())) {
            Some(2) => ipv4(from(4)),
            // AF_INET6 has a number for each BSD, and one on Linux.
            Some(10 | 24 | 28 | 30) => ipv6(from(4)),
            Some(_) => Flow::default(),
            None => cut(Protocol::Unknown),
        },
        // PPP, where address and control bytes may be left out, and Cisco HDLC.
        9 | 50 => match data {
            [0xff, 3, rest @ ..] => ppp(rest),
            _ => ppp(data),
        },
        104 => after(u16_at(data, 2, true), from(4)),
        // Raw IP, with the numbers that BSDs used for it; IPv4; IPv6.
        12 | 14 | 101 | 228 | 229 => ip(data),
        // Linux cooked capture, versions 1 and 2.
        113 => after(u16_at(data, 14, true), from(16)),
        276 => after(u16_at(data, 0, true), from(20)),
        _ => Flow::default(),
    }
}

fn cut(protocol: Protocol) -> Flow {
    Flow { protocol, truncated: true, ..Flow::default() }
}

/// What an Ethernet type announces.
fn after(ether_type: Option<u16>, data: &[u8]) -> Flow {
    let Some(mut ether_type) = ether_type else { return cut(Protocol::Unknown) };
    let mut data = data;
    // VLAN tags, in any number: each takes four bytes.
    while matches!(ether_type, 0x8100 | 0x88a8 | 0x9100 | 0x9200) {
        let Some(inner) = u16_at(data, 2, true) else { return cut(Protocol::Unknown) };
        (ether_type, data) = (inner, &data[4..]);
    }
    match ether_type {
        0x0800 => ipv4(data),
        0x86dd => ipv6(data),
        0x8847 | 0x8848 => mpls(ether_type, data),
        // PPPoE session: six bytes, then PPP.
        0x8864 => match data.get(6..) {
            Some(rest) => ppp(rest),
            None => cut(Protocol::Ether(ether_type)),
        },
        // A length, not a type: IEEE 802.3 with LLC and SNAP, or something old.
        0..0x0600 => match data {
            [0xaa, 0xaa, 3, 0, 0, 0, high, low, rest @ ..] => {
                match u16::from_be_bytes([*high, *low]) {
                    0x0800 => ipv4(rest),
                    0x86dd => ipv6(rest),
                    inner => Flow { protocol: Protocol::Ether(inner), ..Flow::default() },
                }
            }
            _ => Flow::default(),
        },
        _ => Flow { protocol: Protocol::Ether(ether_type), ..Flow::default() },
    }
}

fn ppp(data: &[u8]) -> Flow {
    match u16_at(data, 0, true) {
        Some(0x0021 | 0x0057) => ip(&data[2..]),
        Some(_) => Flow::default(),
        None => cut(Protocol::Unknown),
    }
}

/// A stack of MPLS labels. What follows the last is not said; an IP version there is taken for IP.
fn mpls(ether_type: u16, mut data: &[u8]) -> Flow {
    while let Some(label) = u32_at(data, 0, true) {
        data = &data[4..];
        if label & 0x100 != 0 {
            return match data.first().map(|byte| byte >> 4) {
                Some(4 | 6) => ip(data),
                Some(_) => Flow { protocol: Protocol::Ether(ether_type), ..Flow::default() },
                None => cut(Protocol::Ether(ether_type)),
            };
        }
    }
    cut(Protocol::Ether(ether_type))
}

fn ip(data: &[u8]) -> Flow {
    match data.first().map(|byte| byte >> 4) {
        Some(4) => ipv4(data),
        Some(6) => ipv6(data),
        Some(_) => Flow::default(),
        None => cut(Protocol::Unknown),
    }
}

fn ipv4(data: &[u8]) -> Flow {
    let (Some(source), Some(destination)) = (u32_at(data, 12, true), u32_at(data, 16, true)) else {
        return cut(Protocol::Unknown);
    };
    let mut flow = Flow {
        ends: Some((Ipv4Addr::from(source).into(), Ipv4Addr::from(destination).into())),
        protocol: Protocol::Ip(data[9]),
        ..Flow::default()
    };
    let header = usize::from(data[0] & 15) * 4;
    let later_fragment = u16::from_be_bytes([data[6], data[7]]) & 0x1fff != 0;
    if header >= 20 && !later_fragment {
        ports(data.get(header..).unwrap_or_default(), &mut flow);
    }
    flow
}

fn ipv6(data: &[u8]) -> Flow {
    let address = |at: usize| -> Option<IpAddr> {
        let bytes: [u8; 16] = data.get(at..at + 16)?.try_into().ok()?;
        Some(Ipv6Addr::from(bytes).into())
    };
    let (Some(source), Some(destination)) = (address(8), address(24)) else {
        return cut(Protocol::Unknown);
    };
    let mut flow = Flow { ends: Some((source, destination)), ..Flow::default() };
    let (mut next, mut rest) = (data[6], &data[40..]);
    loop {
        flow.protocol = Protocol::Ip(next);
        // Extension headers: length in units of eight bytes, but authentication counts four and a
        // fragment header is eight long.
        let len = match (next, rest) {
            (0 | 43 | 60 | 135 | 139 | 140, [_, len, ..]) => (usize::from(*len) + 1) * 8,
            (51, [_, len, ..]) => (usize::from(*len) + 2) * 4,
            (44, [_, _, high, low, ..]) => {
                if u16::from_be_bytes([*high, *low]) & 0xfff8 != 0 {
                    flow.protocol = Protocol::Ip(rest[0]);
                    return flow;
                }
                8
            }
            (0 | 43 | 60 | 135 | 139 | 140 | 51 | 44, _) => {
                flow.truncated = true;
                return flow;
            }
            _ => break,
        };
        next = rest[0];
        rest = rest.get(len..).unwrap_or_default();
    }
    ports(rest, &mut flow);
    flow
}

/// TCP, UDP, DCCP, SCTP and UDP-Lite begin with their ports.
fn ports(data: &[u8], flow: &mut Flow) {
    if let Protocol::Ip(6 | 17 | 33 | 132 | 136) = flow.protocol {
        flow.ports = u16_at(data, 0, true).zip(u16_at(data, 2, true));
        flow.truncated = flow.ports.is_none();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> =
            text.chars().filter_map(|c| c.to_digit(16)).map(|d| d as u8).collect();
        digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
    }

    const V4: &str = "45000028 00000000 40060000 0a000001 0a000002 01bb1f90";
    const MACS: &str = "000000000001 000000000002";

    fn v4_flow() -> Flow {
        let (a, b) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        Flow {
            ends: Some((a.into(), b.into())),
            protocol: Protocol::Ip(6),
            ports: Some((443, 8080)),
            truncated: false,
        }
    }

    #[test]
    fn links() {
        for (link, head) in [
            (1, format!("{MACS} 0800")),
            (1, format!("{MACS} 8100 0005 0800")),
            (1, format!("{MACS} 88a8 0005 8100 0006 0800")),
            (1, format!("{MACS} 8847 00010040 00020140")),
            (1, format!("{MACS} 8864 110000010000 0021")),
            (1, format!("{MACS} 0040 aaaa03000000 0800")),
            (0, "02000000".into()),
            (108, "00000002".into()),
            (9, "ff03 0021".into()),
            (50, "0021".into()),
            (104, "0f00 0800".into()),
            (101, String::new()),
            (228, String::new()),
            (113, "0000 0001 0006 0000000000000000 0800".into()),
            (276, "0800 0000 00000001 0001 00 06 0000000000000000".into()),
        ] {
            assert_eq!(flow(link, &hex(&(head.clone() + V4))), v4_flow(), "{link} {head}");
        }
        let arp = flow(1, &hex(&format!("{MACS} 0806 0001")));
        assert_eq!((arp.protocol.name(), arp.ends, arp.truncated), (Some("arp"), None, false));
        assert_eq!(flow(147, &hex(V4)), Flow::default());
    }

    #[test]
    fn fragments_and_cuts() {
        let whole = hex(V4);
        let mut later = whole.clone();
        later[7] = 1;
        assert_eq!(flow(101, &later), Flow { ports: None, ..v4_flow() });
        let no_ports = flow(101, &whole[..22]);
        assert_eq!(no_ports, Flow { ports: None, truncated: true, ..v4_flow() });
        assert_eq!(flow(101, &whole[..19]), cut(Protocol::Unknown));
    }

    #[test]
    fn ipv6_extension_headers() {
        let fixed = |next: &str| {
            format!("60000000 0030 {next} 40 {} {}", "20010db8".repeat(4), "20010db9".repeat(4))
        };
        let udp = "00350035";
        for (next, extensions) in [
            ("11", String::new()),
            ("00", "1100000000000000".into()),
            ("2c", "1100000000000000".into()),
            ("33", "1104000000000000 0000000000000000 0000000000000000".into()),
            ("3c", "2b01000000000000 0000000000000000 1100000000000000".into()),
        ] {
            let flow = flow(229, &hex(&(fixed(next) + &extensions + udp)));
            assert_eq!(flow.ports, Some((53, 53)), "{next} {extensions}");
            assert_eq!(flow.protocol, Protocol::Ip(17));
        }
        let later = flow(229, &hex(&(fixed("2c") + "1100000800000000")));
        assert_eq!((later.protocol, later.ports), (Protocol::Ip(17), None));
        assert!(!later.truncated);
        assert!(flow(229, &hex(&(fixed("00") + "11"))).truncated);
    }

    proptest! {
        #[test]
        fn any_bytes(link in prop_oneof![Just(0u32), Just(1), Just(101), Just(113), Just(276), any::<u32>()],
                     kind in prop_oneof![Just(0x0800u16), Just(0x86dd), Just(0x8100), Just(0x8847), any::<u16>()],
                     mut data in proptest::collection::vec(any::<u8>(), 0..120)) {
            for at in [0, 12, 14, 16] {
                if let Some(place) = data.get_mut(at..at + 2) {
                    place.copy_from_slice(&kind.to_be_bytes());
                }
                flow(link, &data);
            }
        }
    }
}
