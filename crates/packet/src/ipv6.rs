//! IPv6 and its chain of extension headers: RFC 8200, jumbograms: RFC 2675.

use core::net::Ipv6Addr;

use crate::bytes::{Fixed, u8_at, u32_at};

/// The fixed IPv6 header at the beginning of a slice. Fields are returned unchecked; only the 40 bytes are known to
/// exist.
///
/// ```text
/// byte 0        1             2                3
///      version  traffic class  flow label
///      payload length         next header      hop limit
///      source address, 16 bytes
///      destination address, 16 bytes
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Ipv6<'a> {
    fixed: Fixed<'a, 40>,
    rest: &'a [u8],
}

impl<'a> Ipv6<'a> {
    /// The header at the beginning of `bytes`; `None` below 40 bytes.
    #[inline]
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        Fixed::split(bytes).map(|(fixed, rest)| Self { fixed, rest })
    }

    /// The version field: 6 in a valid packet.
    #[inline]
    #[must_use]
    pub fn version(&self) -> u8 {
        self.fixed.u8::<0>() >> 4
    }

    /// DSCP (6 bits) and ECN (2 bits) in one byte.
    #[inline]
    #[must_use]
    pub fn traffic_class(&self) -> u8 {
        self.fixed.u8::<0>() << 4 | self.fixed.u8::<1>() >> 4
    }

    /// The flow label (RFC 6437), 20 bits.
    #[must_use]
    pub fn flow_label(&self) -> u32 {
        self.fixed.u32::<0>() & 0xf_ffff
    }

    /// The length field: the number of bytes after the fixed header. 0 in jumbograms.
    #[inline]
    #[must_use]
    pub fn payload_len(&self) -> u16 {
        self.fixed.u16::<4>()
    }

    /// The number of the first extension header, or of the protocol.
    #[inline]
    #[must_use]
    pub fn next_header(&self) -> u8 {
        self.fixed.u8::<6>()
    }

    /// Hop limit.
    #[must_use]
    pub fn hop_limit(&self) -> u8 {
        self.fixed.u8::<7>()
    }

    /// The source address.
    #[inline]
    #[must_use]
    pub fn source(&self) -> Ipv6Addr {
        self.fixed.array::<8, 16>().into()
    }

    /// The destination address.
    #[inline]
    #[must_use]
    pub fn destination(&self) -> Ipv6Addr {
        self.fixed.array::<24, 16>().into()
    }

    /// The number of bytes after the fixed header, also for jumbograms.
    #[must_use]
    pub fn payload(&self) -> Ipv6Payload {
        if self.payload_len() != 0 || self.next_header() != number::HOP_BY_HOP {
            return Ipv6Payload::Bytes(usize::from(self.payload_len()));
        }
        let Some(len) = self.hop_by_hop_len() else { return Ipv6Payload::Unknown };
        let options = self.rest.get(2..len.min(self.rest.len())).unwrap_or_default();
        match jumbo(options) {
            Some(jumbo) => Ipv6Payload::Jumbo(jumbo),
            None if self.rest.len() < len => Ipv6Payload::Unknown,
            None => Ipv6Payload::Bytes(0),
        }
    }

    /// The extension headers, in order. Offsets are relative to the first byte of the fixed header.
    #[must_use]
    pub fn extensions(&self) -> Extensions<'a> {
        Extensions { rest: self.rest, next: Some(self.next_header()), at: 0 }
    }

    /// The length that the hop-by-hop header claims, 0 without one. `None` if it is cut.
    pub(crate) fn hop_by_hop_len(&self) -> Option<usize> {
        if self.next_header() != number::HOP_BY_HOP {
            return Some(0);
        }
        u8_at(self.rest, 1).map(|units| (usize::from(units) + 1) * 8)
    }
}

/// The number of bytes after the fixed IPv6 header, by the packet's own fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ipv6Payload {
    /// By the length field.
    Bytes(usize),
    /// By a jumbo payload option. RFC 2675 allows no value below 65,536.
    Jumbo(u32),
    /// Unknown: the length field is zero, and the hop-by-hop header that may have the option is cut.
    Unknown,
}

/// The length in the jumbo payload option (RFC 2675, section 2), found among hop-by-hop options
/// (RFC 8200, section 4.2).
fn jumbo(mut options: &[u8]) -> Option<u32> {
    loop {
        options = match options {
            [0xc2, 4, value @ ..] => return u32_at(value, 0),
            // Pad1 has no length.
            [0, rest @ ..] => rest,
            [_, len, rest @ ..] => rest.get(usize::from(*len)..)?,
            _ => return None,
        };
    }
}

/// The numbers of extension headers, and of headers that end the chain.
pub mod number {
    #![allow(missing_docs, reason = "the names are those of the headers")]
    pub const HOP_BY_HOP: u8 = 0;
    pub const ROUTING: u8 = 43;
    pub const FRAGMENT: u8 = 44;
    /// Encrypted: nothing after it can be read (RFC 4303).
    pub const ESP: u8 = 50;
    pub const AUTHENTICATION: u8 = 51;
    /// Nothing follows (RFC 8200, section 4.7).
    pub const NO_NEXT_HEADER: u8 = 59;
    pub const DESTINATION_OPTIONS: u8 = 60;
    pub const MOBILITY: u8 = 135;
    pub const HIP: u8 = 139;
    pub const SHIM6: u8 = 140;
}

/// An extension header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extension {
    /// Its number.
    pub number: u8,
    /// Its offset from the first byte of the IPv6 header.
    pub at: usize,
    /// Its length in bytes by its own field: a multiple of 4.
    pub len: usize,
    /// The number of the next header.
    pub next: u8,
    /// The fragment, for a fragment header.
    pub fragment: Option<Fragment>,
}

/// The position of a fragment in its packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// The offset of the fragment in its packet, in bytes.
    pub offset: u16,
    /// Whether more fragments follow.
    pub more: bool,
}

/// The next header in a chain.
pub(crate) enum Step {
    Extension(Extension),
    /// This number is no extension header: the chain ends.
    End,
    /// The bytes end before the header's length and next header.
    Cut,
}

/// Whether this is the number of an extension header that the parser follows: those of RFC 7045 but
/// 50 and the experimental ones, which have no common form.
#[inline]
pub(crate) fn is_extension(number: u8) -> bool {
    use number::{
        AUTHENTICATION, DESTINATION_OPTIONS, FRAGMENT, HIP, HOP_BY_HOP, MOBILITY, ROUTING, SHIM6,
    };
    matches!(
        number,
        HOP_BY_HOP
            | ROUTING
            | FRAGMENT
            | AUTHENTICATION
            | DESTINATION_OPTIONS
            | MOBILITY
            | HIP
            | SHIM6
    )
}

/// The header `number` at an offset of the bytes behind the fixed header.
#[inline]
pub(crate) fn step(rest: &[u8], number: u8, at: usize) -> Step {
    use number::{AUTHENTICATION, FRAGMENT};
    if !is_extension(number) {
        return Step::End;
    }
    let bytes = rest.get(at..).unwrap_or_default();
    let (next, len, fragment) = match (number, bytes) {
        // RFC 4302: units of four bytes, the first two not counted.
        (AUTHENTICATION, [next, len, ..]) => (*next, (usize::from(*len) + 2) * 4, None),
        (FRAGMENT, [next, _, high, low, ..]) => {
            let field = u16::from_be_bytes([*high, *low]);
            let fragment = Fragment { offset: field & 0xfff8, more: field & 1 != 0 };
            (*next, 8, Some(fragment))
        }
        // RFC 6564: lengths in units of eight bytes, the first eight not counted.
        (_, [next, len, ..]) if number != FRAGMENT => (*next, (usize::from(*len) + 1) * 8, None),
        _ => return Step::Cut,
    };
    Step::Extension(Extension { number, at: at + 40, len, next, fragment })
}

/// The complete extension headers of a packet. After the fragment header of a later fragment there are none, because
/// the following bytes are the middle of the packet.
#[derive(Clone, Debug)]
pub struct Extensions<'a> {
    rest: &'a [u8],
    next: Option<u8>,
    at: usize,
}

impl Iterator for Extensions<'_> {
    type Item = Extension;

    fn next(&mut self) -> Option<Extension> {
        let Step::Extension(found) = step(self.rest, self.next.take()?, self.at) else {
            return None;
        };
        // Every header takes eight bytes at least, so the packet's length bounds the chain.
        self.at += found.len;
        if self.at > self.rest.len() {
            return None;
        }
        if found.fragment.is_none_or(|fragment| fragment.offset == 0) {
            self.next = Some(found.next);
        }
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn packet(payload_len: u16, next: u8, rest: &[u8]) -> Vec<u8> {
        let mut out = Vec::from([0x6b, 0x91, 0x23, 0x45]);
        out.extend(payload_len.to_be_bytes());
        out.extend([next, 64]);
        out.extend(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).octets());
        out.extend(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2).octets());
        out.extend(rest);
        out
    }

    #[test]
    fn fields() {
        let bytes = packet(8, 17, &[0; 8]);
        let ip = Ipv6::new(&bytes).unwrap();
        assert_eq!((ip.version(), ip.traffic_class(), ip.flow_label()), (6, 0xb9, 0x1_2345));
        assert_eq!((ip.payload_len(), ip.next_header(), ip.hop_limit()), (8, 17, 64));
        assert_eq!((ip.source().segments()[7], ip.destination().segments()[7]), (1, 2));
        assert_eq!(ip.payload(), Ipv6Payload::Bytes(8));
        assert!(Ipv6::new(&bytes[..39]).is_none());
    }

    #[test]
    fn jumbo_payload() {
        // Pad1, PadN of one byte, then the option: 4n + 2 from the header's start.
        let padded = [6, 1, 0, 0, 1, 0, 0xc2, 4, 0, 1, 0, 0x10, 1, 2, 0, 0];
        for (options, expected) in [
            (&[6, 0, 0xc2, 4, 0, 1, 0, 0][..], Ipv6Payload::Jumbo(65536)),
            (&padded, Ipv6Payload::Jumbo(65552)),
            // Cut within the header: the option may still come.
            (&padded[..9], Ipv6Payload::Unknown),
            (&[6], Ipv6Payload::Unknown),
            // No option in a whole header; an option that is longer than the header.
            (&[6, 0, 1, 4, 0, 0, 0, 0], Ipv6Payload::Bytes(0)),
            (&[6, 0, 5, 200, 0, 0, 0, 0], Ipv6Payload::Bytes(0)),
            (&[6, 0, 0, 0, 0, 0, 0xc2, 4], Ipv6Payload::Bytes(0)),
        ] {
            let bytes = packet(0, 0, options);
            assert_eq!(Ipv6::new(&bytes).unwrap().payload(), expected, "{options:x?}");
        }
        // A length field that is not zero is believed.
        let bytes = packet(8, 0, &[6, 0, 0xc2, 4, 0, 1, 0, 0]);
        assert_eq!(Ipv6::new(&bytes).unwrap().payload(), Ipv6Payload::Bytes(8));
    }

    #[test]
    fn a_chain() {
        let mut rest = Vec::new();
        rest.extend([43, 0, 1, 4, 0, 0, 0, 0]);
        rest.extend([44, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        rest.extend([51, 0, 0, 1, 0, 0, 0, 7]);
        rest.extend([60, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2]);
        rest.extend([17, 0, 1, 4, 0, 0, 0, 0]);
        let bytes = packet(52, 0, &rest);
        let found: Vec<_> = Ipv6::new(&bytes).unwrap().extensions().collect();
        let places: Vec<_> = found.iter().map(|e| (e.number, e.at, e.len, e.next)).collect();
        assert_eq!(
            places,
            [(0, 40, 8, 43), (43, 48, 16, 44), (44, 64, 8, 51), (51, 72, 12, 60), (60, 84, 8, 17)]
        );
        assert_eq!(found[2].fragment, Some(Fragment { offset: 0, more: true }));
        // Cut anywhere, it is the headers that are there in full.
        for len in 40..bytes.len() {
            let cut: Vec<_> = Ipv6::new(&bytes[..len]).unwrap().extensions().collect();
            let there = found.iter().take_while(|e| e.at + e.len <= len).count();
            assert_eq!(cut, found[..there]);
        }
    }

    #[test]
    fn later_fragments_end_the_chain() {
        let bytes = packet(16, 44, &[60, 0, 0, 8, 0, 0, 0, 7, 60, 0, 0, 0, 0, 0, 0, 0]);
        let found: Vec<_> = Ipv6::new(&bytes).unwrap().extensions().collect();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].fragment, Some(Fragment { offset: 8, more: false }));
    }
}
