//! The headers after the IP headers: ports, TCP (RFC 9293), UDP (RFC 768), type and code of ICMP.

use crate::bytes::{Fixed, u16_at};

/// Numbers of protocols over IP.
pub mod protocol {
    #![allow(missing_docs, reason = "the names are those of the protocols")]
    pub const ICMP: u8 = 1;
    pub const TCP: u8 = 6;
    pub const UDP: u8 = 17;
    pub const DCCP: u8 = 33;
    pub const ICMPV6: u8 = 58;
    pub const SCTP: u8 = 132;
    pub const UDP_LITE: u8 = 136;
}
use protocol::{DCCP, ICMP, ICMPV6, SCTP, TCP, UDP, UDP_LITE};

/// Whether the header of this protocol begins with source and destination port.
#[inline]
#[must_use]
pub fn has_ports(protocol: u8) -> bool {
    matches!(protocol, TCP | UDP | DCCP | SCTP | UDP_LITE)
}

/// Source and destination port of a protocol that has some, from the beginning of its header.
#[inline]
#[must_use]
pub fn ports(protocol: u8, header: &[u8]) -> Option<(u16, u16)> {
    if !has_ports(protocol) {
        return None;
    }
    u16_at(header, 0).zip(u16_at(header, 2))
}

/// Type and code of ICMP and ICMPv6, from the beginning of the header.
#[inline]
#[must_use]
pub fn icmp(protocol: u8, header: &[u8]) -> Option<(u8, u8)> {
    match (protocol, header) {
        (ICMP | ICMPV6, [kind, code, ..]) => Some((*kind, *code)),
        _ => None,
    }
}

/// The bytes that the header of a known protocol takes without options.
pub(crate) fn least_len(protocol: u8) -> usize {
    match protocol {
        TCP => 20,
        UDP | UDP_LITE => 8,
        DCCP | SCTP => 12,
        ICMP | ICMPV6 => 4,
        _ => 0,
    }
}

/// The TCP header at the beginning of some bytes.
#[derive(Clone, Copy, Debug)]
pub struct Tcp<'a>(Fixed<'a, 20>);

impl<'a> Tcp<'a> {
    /// The header at the beginning of `bytes`; `None` below 20 bytes.
    #[inline]
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        Fixed::split(bytes).map(|(fixed, _)| Self(fixed))
    }

    /// Source port.
    #[must_use]
    pub fn source_port(&self) -> u16 {
        self.0.u16::<0>()
    }

    /// Destination port.
    #[must_use]
    pub fn destination_port(&self) -> u16 {
        self.0.u16::<2>()
    }

    /// Sequence number.
    #[must_use]
    pub fn sequence(&self) -> u32 {
        self.0.u32::<4>()
    }

    /// Acknowledgement number.
    #[must_use]
    pub fn acknowledgement(&self) -> u32 {
        self.0.u32::<8>()
    }

    /// The header length in bytes that the data offset claims; below 20 if it is malformed.
    #[must_use]
    pub fn header_len(&self) -> usize {
        usize::from(self.0.u8::<12>() >> 4) * 4
    }

    /// Twelve bits: four reserved ones and CWR, ECE, URG, ACK, PSH, RST, SYN, FIN (the lowest).
    #[inline]
    #[must_use]
    pub fn flags(&self) -> u16 {
        self.0.u16::<12>() & 0xfff
    }

    /// Window, unscaled.
    #[must_use]
    pub fn window(&self) -> u16 {
        self.0.u16::<14>()
    }
}

/// The UDP header at the beginning of some bytes.
#[derive(Clone, Copy, Debug)]
pub struct Udp<'a>(Fixed<'a, 8>);

impl<'a> Udp<'a> {
    /// The header at the beginning of `bytes`; `None` below 8 bytes.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        Fixed::split(bytes).map(|(fixed, _)| Self(fixed))
    }

    /// Source port.
    #[must_use]
    pub fn source_port(&self) -> u16 {
        self.0.u16::<0>()
    }

    /// Destination port.
    #[must_use]
    pub fn destination_port(&self) -> u16 {
        self.0.u16::<2>()
    }

    /// The length of header and payload that the datagram claims.
    #[must_use]
    pub fn len(&self) -> u16 {
        self.0.u16::<4>()
    }

    /// Whether the datagram claims no more than its header.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() <= 8
    }

    /// The checksum field; 0 over IPv4 means that there is none.
    #[must_use]
    pub fn checksum(&self) -> u16 {
        self.0.u16::<6>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tcp_and_udp() {
        let bytes = *b"\0\x50\x1f\x90\0\0\0\x01\0\0\0\x02\x60\x12\x10\0\xab\xcd\0\0";
        let tcp = Tcp::new(&bytes).unwrap();
        assert_eq!((tcp.source_port(), tcp.destination_port()), (80, 8080));
        assert_eq!((tcp.sequence(), tcp.acknowledgement(), tcp.header_len()), (1, 2, 24));
        assert_eq!((tcp.flags(), tcp.window()), (0x12, 4096));
        assert!(Tcp::new(&bytes[..19]).is_none());
        let udp = Udp::new(b"\0\x35\x10\0\0\x08\xab\xcd").unwrap();
        assert_eq!((udp.source_port(), udp.destination_port()), (53, 4096));
        assert_eq!((udp.len(), udp.is_empty(), udp.checksum()), (8, true, 0xabcd));
        assert!(Udp::new(&bytes[..7]).is_none());
    }

    #[test]
    fn who_has_ports() {
        let header = [1, 2, 3, 4];
        for protocol in 0..=255 {
            let ported = [6, 17, 33, 132, 136].contains(&protocol);
            assert_eq!(ports(protocol, &header), ported.then_some((0x0102, 0x0304)));
            assert_eq!(ports(protocol, &header[..3]), None);
            let types = [1, 58].contains(&protocol);
            assert_eq!(icmp(protocol, &header), types.then_some((1, 2)));
        }
    }
}
