//! The protocols, and how a datagram of one is recognised.

use std::fmt;

use crate::bytes::{u16_at, u32_at};

/// A protocol of flow exports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ExportProtocol {
    /// NetFlow version 5.
    NetflowV5,
    /// NetFlow version 9 (RFC 3954).
    NetflowV9,
    /// IPFIX (RFC 7011).
    Ipfix,
    /// sFlow version 5.
    Sflow,
}

impl ExportProtocol {
    /// The name: `"netflow5"`, `"netflow9"`, `"ipfix"` or `"sflow"`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NetflowV5 => "netflow5",
            Self::NetflowV9 => "netflow9",
            Self::Ipfix => "ipfix",
            Self::Sflow => "sflow",
        }
    }

    /// The protocol by the version at the beginning of a datagram.
    #[must_use]
    pub fn of_version(datagram: &[u8]) -> Option<Self> {
        match (u16_at(datagram, 0)?, u16_at(datagram, 2)) {
            (5, _) => Some(Self::NetflowV5),
            (9, _) => Some(Self::NetflowV9),
            (10, _) => Some(Self::Ipfix),
            (0, Some(5)) => Some(Self::Sflow),
            _ => None,
        }
    }

    /// The protocol of a datagram on any port: the version, and lengths that lead exactly to the datagram's end. Of a
    /// datagram with other content this holds hardly ever.
    ///
    /// ```
    /// use fibula_flows::ExportProtocol;
    ///
    /// // An IPFIX message with an empty set of templates.
    /// let message = b"\0\x0a\0\x14\x65\0\0\0\0\0\0\0\0\0\0\x01\0\x02\0\x04";
    /// assert_eq!(ExportProtocol::recognise(message), Some(ExportProtocol::Ipfix));
    /// assert_eq!(ExportProtocol::recognise(&message[..19]), None);
    /// ```
    #[must_use]
    pub fn recognise(datagram: &[u8]) -> Option<Self> {
        let protocol = Self::of_version(datagram)?;
        let fits = match protocol {
            Self::NetflowV5 => {
                let count = usize::from(u16_at(datagram, 2)?);
                count > 0 && datagram.len() == 24 + 48 * count
            }
            Self::NetflowV9 => datagram.len() >= 24 && sets_end(datagram, 20).is_ok(),
            Self::Ipfix => {
                usize::from(u16_at(datagram, 2)?) == datagram.len()
                    && sets_end(datagram, 16) == Ok(datagram.len())
            }
            Self::Sflow => crate::sflow::ends_with_samples(datagram),
        };
        fits.then_some(protocol)
    }
}

impl fmt::Display for ExportProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Where the sets end; an error is where one begins that does not fit. Up to three bytes behind them are padding.
pub(crate) fn sets_end(data: &[u8], mut at: usize) -> Result<usize, usize> {
    while data.len().saturating_sub(at) >= 4 {
        let len = u16_at(data, at + 2).map_or(0, usize::from);
        if len < 4 || len > data.len() - at {
            return Err(at);
        }
        at += len;
    }
    Ok(at)
}

/// The length of the IPFIX message at the beginning of `data`, as in files (RFC 5655) and streams: its header says it.
/// `None` if fewer than four bytes are there.
///
/// # Errors
///
/// The data does not begin with an IPFIX message.
///
/// ```
/// assert_eq!(fibula_flows::ipfix_len(b"\0\x0a\x01\x00..."), Some(Ok(256)));
/// assert!(fibula_flows::ipfix_len(b"text").unwrap().is_err());
/// ```
#[must_use]
pub fn ipfix_len(data: &[u8]) -> Option<Result<usize, crate::ExportFault>> {
    use crate::{ExportFault, ExportFaultKind};
    let first = u32_at(data, 0)?;
    let (version, len) = ((first >> 16) as u16, first as u16);
    Some(match version {
        10 if len >= 16 => Ok(len.into()),
        10 => Err(ExportFault::new(2, ExportFaultKind::Length)),
        version => Err(ExportFault::new(0, ExportFaultKind::Version(version))),
    })
}
