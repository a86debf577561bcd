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

/// Source and destination are of different families.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MixedFamilies;

impl std::fmt::Display for MixedFamilies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("source and destination are of different families")
    }
}

impl std::error::Error for MixedFamilies {}

/// As an Ethernet frame without a tag would have it.
impl TryFrom<&FiveTuple> for Flow {
    type Error = MixedFamilies;

    fn try_from(five: &FiveTuple) -> Result<Self, MixedFamilies> {
        let mut flow = Self::default();
        let mut set = |field, value: u128| flow.set(field, value);
        match (five.src, five.dst) {
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
            _ => return Err(MixedFamilies),
        }
        set(Field::Protocol, five.protocol.into());
        if let Some((from, to)) = five.ports {
            let fields = match five.protocol {
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
