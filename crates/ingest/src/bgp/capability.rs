//! Capabilities (RFC 5492).

use super::cursor::{Cursor, DecodeFault};

/// An address family of routes: an AFI and a SAFI of BGP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AfiSafi {
    /// The address family: 1 is IPv4, 2 is IPv6.
    pub afi: u16,
    /// The subsequent address family: 1 is unicast, 128 VPN.
    pub safi: u8,
}

impl AfiSafi {
    /// IPv4 unicast.
    pub const IPV4: Self = Self { afi: 1, safi: 1 };
    /// IPv6 unicast.
    pub const IPV6: Self = Self { afi: 2, safi: 1 };
    /// IPv4 in VPNs (RFC 4364).
    pub const VPN_IPV4: Self = Self { afi: 1, safi: 128 };
    /// IPv6 in VPNs (RFC 4659).
    pub const VPN_IPV6: Self = Self { afi: 2, safi: 128 };
}

/// A capability of a speaker.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Capability {
    /// 1: it accepts routes of this family (RFC 4760).
    Multiprotocol(AfiSafi),
    /// 2: it sends its routes again on request (RFC 2918).
    RouteRefresh,
    /// 5: routes of this family may have next hops of another AFI (RFC 8950).
    ExtendedNextHop(Vec<(AfiSafi, u16)>),
    /// 6: messages other than OPEN and KEEPALIVE may have up to 65,535 bytes (RFC 8654).
    ExtendedMessage,
    /// 64 (RFC 4724).
    GracefulRestart {
        /// The speaker has just restarted (flag R).
        restarted: bool,
        /// Routes are also kept when a NOTIFICATION ends the session (flag N, RFC 8538).
        notification: bool,
        /// Seconds in which it expects to be back after a restart, at most 4,095.
        time: u16,
        /// The families whose forwarding state it can keep, and whether it has kept it (flag F).
        families: Vec<(AfiSafi, bool)>,
    },
    /// 65: it supports AS numbers of four bytes, and this is its own (RFC 6793).
    FourByteAsn(u32),
    /// 69: path identifiers, by family (RFC 7911).
    AddPath(Vec<(AfiSafi, AddPathMode)>),
    /// Any other capability, or one of the above with an invalid value.
    Other {
        /// Its number.
        code: u8,
        /// Its value, at most 255 bytes.
        value: Vec<u8>,
    },
}

/// Whether a speaker sends and receives path identifiers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AddPathMode {
    /// It can receive several paths for each prefix.
    pub receive: bool,
    /// It can send several paths for each prefix.
    pub send: bool,
}

impl Capability {
    /// Reads all of a list, each with its code and its length before it.
    pub(crate) fn read_all(mut list: Cursor<'_>) -> Result<Vec<Self>, DecodeFault> {
        let mut all = Vec::new();
        while !list.is_empty() {
            let code = list.u8("capability code")?;
            let len = list.u8("capability length")?;
            all.push(Self::read(code, list.part(len.into(), "capability")?));
        }
        Ok(all)
    }

    fn read(code: u8, value: Cursor<'_>) -> Self {
        Self::known(code, value)
            .unwrap_or_else(|| Self::Other { code, value: value.rest().to_vec() })
    }

    fn known(code: u8, value: Cursor<'_>) -> Option<Self> {
        let bytes = value.rest();
        Some(match (code, bytes) {
            (1, &[high, low, _, safi]) => Self::Multiprotocol(family([high, low], safi)),
            (2, []) => Self::RouteRefresh,
            (5, _) => Self::ExtendedNextHop(chunks(bytes, |&[a, b, _, safi, x, y]| {
                (family([a, b], safi), u16::from_be_bytes([x, y]))
            })?),
            (6, []) => Self::ExtendedMessage,
            (64, &[high, low, ref families @ ..]) => Self::GracefulRestart {
                restarted: high & 0x80 != 0,
                notification: high & 0x40 != 0,
                time: u16::from_be_bytes([high & 0x0f, low]),
                families: chunks(families, |&[a, b, safi, flags]| {
                    (family([a, b], safi), flags & 0x80 != 0)
                })?,
            },
            (65, &[a, b, c, d]) => Self::FourByteAsn(u32::from_be_bytes([a, b, c, d])),
            (69, _) => Self::AddPath(chunks(bytes, |&[a, b, safi, mode]| {
                let mode = AddPathMode { receive: mode & 1 != 0, send: mode & 2 != 0 };
                (family([a, b], safi), mode)
            })?),
            _ => return None,
        })
    }

    /// The code and the value.
    pub(super) fn encode(&self) -> (u8, Vec<u8>) {
        let mut value = Vec::new();
        let code = match self {
            Self::Multiprotocol(AfiSafi { afi, safi }) => {
                value.extend(afi.to_be_bytes());
                value.extend([0, *safi]);
                1
            }
            Self::RouteRefresh => 2,
            Self::ExtendedNextHop(entries) => {
                for (AfiSafi { afi, safi }, next_hop) in entries {
                    value.extend(afi.to_be_bytes());
                    value.extend([0, *safi]);
                    value.extend(next_hop.to_be_bytes());
                }
                5
            }
            Self::ExtendedMessage => 6,
            Self::GracefulRestart { restarted, notification, time, families } => {
                let flags = u16::from(*restarted) << 15 | u16::from(*notification) << 14;
                value.extend((flags | (time & 0xfff)).to_be_bytes());
                for (AfiSafi { afi, safi }, kept) in families {
                    value.extend(afi.to_be_bytes());
                    value.extend([*safi, if *kept { 0x80 } else { 0 }]);
                }
                64
            }
            Self::FourByteAsn(asn) => {
                value.extend(asn.to_be_bytes());
                65
            }
            Self::AddPath(entries) => {
                for (AfiSafi { afi, safi }, mode) in entries {
                    value.extend(afi.to_be_bytes());
                    value.extend([*safi, u8::from(mode.receive) | u8::from(mode.send) << 1]);
                }
                69
            }
            Self::Other { code, value } => return (*code, value.clone()),
        };
        (code, value)
    }
}

fn family(afi: [u8; 2], safi: u8) -> AfiSafi {
    AfiSafi { afi: u16::from_be_bytes(afi), safi }
}

/// The entries of a list; `None` if it does not come out even.
fn chunks<const N: usize, T>(bytes: &[u8], read: impl Fn(&[u8; N]) -> T) -> Option<Vec<T>> {
    let (chunks, rest) = bytes.as_chunks::<N>();
    if !rest.is_empty() {
        return None;
    }
    Some(chunks.iter().map(read).collect())
}
