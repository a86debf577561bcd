//! Reads the addresses, protocol and ports of a packet.

use std::net::IpAddr;

use fibula_packet::{FaultKind, Frame, HeaderKind, LinkType, has_ports};

/// The addresses, protocol and ports of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flow {
    /// Source and destination of the outermost IP header.
    pub(super) ends: Option<(IpAddr, IpAddr)>,
    pub(super) protocol: Protocol,
    /// Source and destination port, if the protocol has ports and the packet is not a later fragment.
    pub(super) ports: Option<(u16, u16)>,
    /// The capture ends before the addresses or the ports.
    pub(super) truncated: bool,
}

/// The outermost protocol that is neither a link nor IP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Protocol {
    /// The link type is not known, or the packet is too short.
    #[default]
    Unknown,
    /// Not IP; the Ethernet type.
    Ether(u16),
    /// Over IP; the protocol number.
    Ip(u8),
}

impl Protocol {
    /// The name of a common protocol; others are written as numbers.
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

/// Reads the headers of a packet; without a known link there are none.
pub(super) fn flow(link: Option<LinkType>, data: &[u8], wire_len: usize) -> Flow {
    let Some(link) = link else { return Flow::default() };
    let frame = Frame::parse_captured(link, data, wire_len);
    let Some(ends) = frame.ends() else { return without_addresses(frame) };
    let announced = frame.announced().map_or(Protocol::Unknown, Protocol::Ip);
    let mut flow = Flow { ends: Some(ends), protocol: announced, ..Flow::default() };
    let Some(protocol) = frame.protocol() else { return Flow { truncated: true, ..flow } };
    let later = frame.fragment().is_some_and(|fragment| fragment.offset > 0);
    let header_fits = frame.ipv4().is_none_or(|ip| ip.header_len() >= 20);
    if has_ports(protocol) && !later && header_fits {
        flow.ports = frame.ports();
        flow.truncated = flow.ports.is_none();
    }
    flow
}

/// A packet that is not IP, or cut before its addresses.
#[cold]
fn without_addresses(frame: Frame<'_>) -> Flow {
    let cut = frame.fault().filter(|fault| fault.kind != FaultKind::Malformed);
    let header = cut.map(|fault| fault.header);
    // After PPPoE, the PPP header gives the protocol, by its own numbers.
    let ppp = frame.ppp_protocol().is_some() || header == Some(HeaderKind::Ppp);
    let protocol = match frame.ether_type() {
        Some(kind) if frame.network().is_none() && !ppp => Protocol::Ether(kind),
        _ => Protocol::Unknown,
    };
    let truncated = match header {
        // It is not known whether an LLC frame has addresses, and a frame with another EtherType has
        // none. After all other headers, addresses are expected.
        Some(HeaderKind::Llc) => false,
        Some(HeaderKind::Link) => frame.ether_type().is_none(),
        header => header.is_some(),
    };
    Flow { protocol, truncated, ..Flow::default() }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn flow(link: u32, data: &[u8]) -> Flow {
        super::flow(LinkType::from_number(link), data, data.len())
    }
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
        assert_eq!(flow(101, &whole[..19]), Flow { truncated: true, ..Flow::default() });
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
