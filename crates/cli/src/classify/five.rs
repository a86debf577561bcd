//! The five fields of a packet, as text.

use std::net::IpAddr;
use std::str::FromStr;

use fibula_classify::text::protocol;
use fibula_classify::{FiveTuple, Flow};

/// The packet of `--explain`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExplainedPacket(pub Flow);

/// Makes a flow of the texts of the five columns. Both ports may be empty.
pub fn flow([src, dst, proto, from, to]: [&str; 5]) -> Result<Flow, String> {
    let ip = |text: &str| text.parse().map_err(|_| format!("{text:?} is not an address"));
    let (src, dst): (IpAddr, IpAddr) = (ip(src)?, ip(dst)?);
    let port = |text: &str| text.parse().map_err(|_| format!("{text:?} is not a port"));
    let ports = match (from, to) {
        ("", "") => None,
        (from, to) => Some((port(from)?, port(to)?)),
    };
    let protocol =
        protocol(proto).ok_or_else(|| format!("{proto:?} is no protocol: give its number"))?;
    let five = FiveTuple { src, dst, protocol, ports };
    Flow::try_from(&five).map_err(|error| error.to_string())
}

impl FromStr for ExplainedPacket {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let cells: Vec<&str> = text.split(',').map(str::trim).collect();
        match cells[..] {
            [src, dst, proto] => flow([src, dst, proto, "", ""]),
            [src, dst, proto, from, to] => flow([src, dst, proto, from, to]),
            _ => Err("SRC,DST,PROTOCOL or SRC,DST,PROTOCOL,SRC_PORT,DST_PORT".to_owned()),
        }
        .map(Self)
    }
}

#[cfg(test)]
mod tests {
    use fibula_classify::Field;

    use super::*;

    #[test]
    fn packets_from_text() {
        let ExplainedPacket(flow) = "10.0.0.1, 192.0.2.7, TCP, 40000, 22".parse().unwrap();
        let got = [Field::IpVersion, Field::Ipv4Dst, Field::Protocol, Field::DstPort];
        assert_eq!(got.map(|field| flow.get(field)), [4, 0xc000_0207, 6, 22]);
        let ExplainedPacket(ping) = "2001:db8::1,2001:db8::2,icmpv6,128,0".parse().unwrap();
        let got = [Field::IpVersion, Field::Transport, Field::IcmpType, Field::SrcPort];
        assert_eq!(got.map(|field| ping.get(field)), [6, 2, 128, 0]);
        let ExplainedPacket(gre) = "10.0.0.1,10.0.0.2,47".parse().unwrap();
        assert_eq!(gre.get(Field::Transport), 0);
        let ExplainedPacket(mapped) = "::ffff:10.0.0.1,192.0.2.7,tcp,40000,22".parse().unwrap();
        let got = [Field::IpVersion, Field::Ipv4Src].map(|field| mapped.get(field));
        assert_eq!(got, [4, 0x0a00_0001]);
        let ExplainedPacket(six) = "::ffff:10.0.0.1,2001:db8::1,tcp,40000,22".parse().unwrap();
        assert_eq!(six.get(Field::IpVersion), 6);
        for wrong in [
            // Type and code as NetFlow has them: 256 times the type, in the destination's port.
            "10.0.0.1,10.0.0.2,icmp,0,2048",
            "10.0.0.1",
            "10.0.0.1,::1,tcp",
            "a,b,tcp",
            "1.1.1.1,1.1.1.2,x",
            "1.1.1.1,1.1.1.2,6,1,99999",
        ] {
            assert!(wrong.parse::<ExplainedPacket>().is_err(), "{wrong}");
        }
    }
}
