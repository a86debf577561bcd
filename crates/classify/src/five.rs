//! Flows from the five fields of flow records.

use std::net::IpAddr;

use crate::{Field, Flow};

/// The fields of a packet in a flow record.
///
/// ```
/// use fibula_classify::{Field, FiveTuple, Flow};
///
/// let five = FiveTuple {
///     src: "10.0.0.1".parse().unwrap(),
///     dst: "192.0.2.7".parse().unwrap(),
///     protocol: 6,
///     ports: Some((40_000, 22)),
/// };
/// assert_eq!(Flow::try_from(&five).unwrap().get(Field::DstPort), 22);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FiveTuple {
    /// Source address.
    pub src: IpAddr,
    /// Destination address, of the same family.
    pub dst: IpAddr,
    /// Protocol.
    pub protocol: u8,
    /// Source and destination port, or type and code of ICMP. Ignored for other protocols.
    pub ports: Option<(u16, u16)>,
}

/// Why five fields are no packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FiveTupleError {
    /// Source and destination have different families.
    Families,
    /// These are no type and code of ICMP, which have eight bits. NetFlow has both in one port.
    Icmp(u16, u16),
}

impl std::fmt::Display for FiveTupleError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Families => f.write_str("source and destination are of different families"),
            Self::Icmp(kind, code) => write!(
                f,
                "the ports of an ICMP packet are its type and code, up to 255, not {kind} and {code}"
            ),
        }
    }
}

impl std::error::Error for FiveTupleError {}

/// As an Ethernet frame without a tag would have it. IPv4 addresses that are written as IPv6 are IPv4, if both are.
impl TryFrom<&FiveTuple> for Flow {
    type Error = FiveTupleError;

    fn try_from(five: &FiveTuple) -> Result<Self, FiveTupleError> {
        let mut flow = Self::default();
        let mut set = |field, value: u128| flow.set(field, value);
        let (src, dst) = match (five.src.to_canonical(), five.dst.to_canonical()) {
            (src @ IpAddr::V4(_), dst @ IpAddr::V4(_)) => (src, dst),
            _ => (five.src, five.dst),
        };
        match (src, dst) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                set(Field::EthType, 0x0800);
                set(Field::IpVersion, 4);
                set(Field::Ipv4Src, src.to_bits().into());
                set(Field::Ipv4Dst, dst.to_bits().into());
            }
            (IpAddr::V6(src), IpAddr::V6(dst)) => {
                set(Field::EthType, 0x86dd);
                set(Field::IpVersion, 6);
                set(Field::Ipv6Src, src.to_bits());
                set(Field::Ipv6Dst, dst.to_bits());
            }
            _ => return Err(FiveTupleError::Families),
        }
        set(Field::Protocol, five.protocol.into());
        if let Some((from, to)) = five.ports {
            let fields = match five.protocol {
                1 | 58 if from.max(to) > 255 => return Err(FiveTupleError::Icmp(from, to)),
                1 | 58 => Some((2, Field::IcmpType, Field::IcmpCode)),
                6 | 17 | 33 | 132 | 136 => Some((1, Field::SrcPort, Field::DstPort)),
                _ => None,
            };
            if let Some((transport, first, second)) = fields {
                set(Field::Transport, transport);
                set(first, from.into());
                set(second, to.into());
            }
        }
        Ok(flow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_and_icmp() {
        let flow = |src: &str, dst: &str, protocol, ports| {
            let (src, dst) = (src.parse().unwrap(), dst.parse().unwrap());
            Flow::try_from(&FiveTuple { src, dst, protocol, ports })
        };
        let mapped = flow("::ffff:10.0.0.1", "192.0.2.7", 6, Some((40_000, 22)));
        assert_eq!(mapped, flow("10.0.0.1", "192.0.2.7", 6, Some((40_000, 22))));
        let six = flow("::ffff:10.0.0.1", "2001:db8::1", 6, None).unwrap();
        assert_eq!(six.get(Field::IpVersion), 6);
        assert_eq!(flow("10.0.0.1", "::1", 6, None), Err(FiveTupleError::Families));
        assert!(flow("10.0.0.1", "192.0.2.7", 1, Some((8, 255))).is_ok());
        for ports in [(0, 2048), (256, 0)] {
            let refused = Err(FiveTupleError::Icmp(ports.0, ports.1));
            assert_eq!(flow("10.0.0.1", "192.0.2.7", 1, Some(ports)), refused);
            assert!(flow("10.0.0.1", "192.0.2.7", 47, Some(ports)).is_ok());
        }
    }
}
