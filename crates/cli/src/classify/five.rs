//! The five fields of a packet, as text.

use std::net::IpAddr;
use std::str::FromStr;

use fibula_classify::{Field, Flow};

/// Addresses, protocol and ports. The ports are the type and code of ICMP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Five {
    /// Source address.
    pub src: IpAddr,
    /// Destination address, of the same family.
    pub dst: IpAddr,
    /// Protocol.
    pub protocol: u8,
    /// Source and destination port, if the packet has them.
    pub ports: Option<(u16, u16)>,
}

/// The number of a protocol.
pub fn protocol(text: &str) -> Result<u8, String> {
    Ok(match text.to_ascii_lowercase().as_str() {
        "icmp" => 1,
        "tcp" => 6,
        "udp" => 17,
        "gre" => 47,
        "esp" => 50,
        "icmpv6" | "icmp6" | "ipv6-icmp" => 58,
        "sctp" => 132,
        number => {
            number.parse().map_err(|_| format!("{text:?} is no protocol: give its number"))?
        }
    })
}

impl Five {
    /// The fields of the columns' text; ports may be empty.
    pub fn of([src, dst, proto, from, to]: [&str; 5]) -> Result<Self, String> {
        let ip = |text: &str| text.parse().map_err(|_| format!("{text:?} is not an address"));
        let (src, dst): (IpAddr, IpAddr) = (ip(src)?, ip(dst)?);
        if src.is_ipv4() != dst.is_ipv4() {
            return Err(format!("{src} and {dst} are of different families"));
        }
        let port = |text: &str| text.parse().map_err(|_| format!("{text:?} is not a port"));
        let ports = match (from, to) {
            ("", "") => None,
            (from, to) => Some((port(from)?, port(to)?)),
        };
        Ok(Self { src, dst, protocol: protocol(proto)?, ports })
    }

    /// The packet's flow. Ports of a protocol without ports are ignored, but for ICMP's type and code.
    pub fn flow(&self) -> Flow {
        let mut flow = Flow::default();
        let mut set = |field, value: u128| flow.set(field, value);
        match (self.src, self.dst) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                set(Field::EthType, 0x0800);
                set(Field::IpVersion, 4);
                set(Field::Ipv4Src, src.to_bits().into());
                set(Field::Ipv4Dst, dst.to_bits().into());
            }
            (src, dst) => {
                let bits = |ip| match ip {
                    IpAddr::V6(ip) => ip.to_bits(),
                    IpAddr::V4(ip) => ip.to_ipv6_mapped().to_bits(),
                };
                set(Field::EthType, 0x86dd);
                set(Field::IpVersion, 6);
                set(Field::Ipv6Src, bits(src));
                set(Field::Ipv6Dst, bits(dst));
            }
        }
        set(Field::Protocol, self.protocol.into());
        if let Some((from, to)) = self.ports {
            match self.protocol {
                1 | 58 => {
                    set(Field::Transport, 2);
                    set(Field::IcmpType, from.into());
                    set(Field::IcmpCode, to.into());
                }
                6 | 17 | 33 | 132 | 136 => {
                    set(Field::Transport, 1);
                    set(Field::SrcPort, from.into());
                    set(Field::DstPort, to.into());
                }
                _ => {}
            }
        }
        flow
    }
}

impl FromStr for Five {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let cells: Vec<&str> = text.split(',').map(str::trim).collect();
        match cells[..] {
            [src, dst, proto] => Self::of([src, dst, proto, "", ""]),
            [src, dst, proto, from, to] => Self::of([src, dst, proto, from, to]),
            _ => Err("SRC,DST,PROTOCOL or SRC,DST,PROTOCOL,SRC_PORT,DST_PORT".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_from_text() {
        let flow = "10.0.0.1, 192.0.2.7, tcp, 40000, 22".parse::<Five>().unwrap().flow();
        let got = [Field::IpVersion, Field::Ipv4Dst, Field::Protocol, Field::DstPort];
        assert_eq!(got.map(|field| flow.get(field)), [4, 0xc000_0207, 6, 22]);
        let ping = "2001:db8::1,2001:db8::2,icmpv6,128,0".parse::<Five>().unwrap().flow();
        let got = [Field::IpVersion, Field::Transport, Field::IcmpType, Field::SrcPort];
        assert_eq!(got.map(|field| ping.get(field)), [6, 2, 128, 0]);
        let gre = "10.0.0.1,10.0.0.2,47".parse::<Five>().unwrap().flow();
        assert_eq!(gre.get(Field::Transport), 0);
        for wrong in [
            "10.0.0.1",
            "10.0.0.1,::1,tcp",
            "a,b,tcp",
            "1.1.1.1,1.1.1.2,x",
            "1.1.1.1,1.1.1.2,6,1,99999",
        ] {
            assert!(wrong.parse::<Five>().is_err(), "{wrong}");
        }
    }
}
