//! IPv4: RFC 791, with the DS field of RFC 2474 and ECN of RFC 3168.

use core::net::Ipv4Addr;

use crate::bytes::Fixed;
use crate::checksum;

/// The IPv4 header at the beginning of a slice. Fields are returned unchecked; only the first 20 bytes are known to
/// exist.
///
/// ```text
/// byte 0        1             2                3
///      version  dscp     ecn  total length
///      ihl
///      identification         DF MF  fragment offset
///      ttl      protocol      checksum
///      source address
///      destination address
///      options, 4 x ihl - 20 bytes
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Ipv4<'a> {
    fixed: Fixed<'a, 20>,
    rest: &'a [u8],
}

impl<'a> Ipv4<'a> {
    /// The header at the beginning of `bytes`; `None` below 20 bytes.
    #[inline]
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        Fixed::split(bytes).map(|(fixed, rest)| Self { fixed, rest })
    }

    /// The version field: 4 in a valid packet.
    #[inline]
    #[must_use]
    pub fn version(&self) -> u8 {
        self.fixed.u8::<0>() >> 4
    }

    /// The header length in bytes by IHL: 0 to 60, and below 20 if it is malformed.
    #[inline]
    #[must_use]
    pub fn header_len(&self) -> usize {
        usize::from(self.fixed.u8::<0>() & 15) * 4
    }

    /// DSCP (6 bits) and ECN (2 bits) in one byte.
    #[inline]
    #[must_use]
    pub fn traffic_class(&self) -> u8 {
        self.fixed.u8::<1>()
    }

    /// The length of header and payload by the length field.
    #[inline]
    #[must_use]
    pub fn total_len(&self) -> u16 {
        self.fixed.u16::<2>()
    }

    /// The identification, which all fragments of a packet share.
    #[must_use]
    pub fn identification(&self) -> u16 {
        self.fixed.u16::<4>()
    }

    /// The DF bit: routers must not fragment the packet.
    #[must_use]
    pub fn dont_fragment(&self) -> bool {
        self.fixed.u8::<6>() & 0x40 != 0
    }

    /// The MF bit: this is not the last fragment.
    #[inline]
    #[must_use]
    pub fn more_fragments(&self) -> bool {
        self.fixed.u8::<6>() & 0x20 != 0
    }

    /// The offset of this fragment in its packet, in bytes.
    #[inline]
    #[must_use]
    pub fn fragment_offset(&self) -> u16 {
        (self.fixed.u16::<6>() & 0x1fff) * 8
    }

    /// Time to live.
    #[must_use]
    pub fn ttl(&self) -> u8 {
        self.fixed.u8::<8>()
    }

    /// The protocol of the payload.
    #[inline]
    #[must_use]
    pub fn protocol(&self) -> u8 {
        self.fixed.u8::<9>()
    }

    /// The checksum field.
    #[must_use]
    pub fn checksum(&self) -> u16 {
        self.fixed.u16::<10>()
    }

    /// The source address.
    #[inline]
    #[must_use]
    pub fn source(&self) -> Ipv4Addr {
        self.fixed.array::<12, 4>().into()
    }

    /// The destination address.
    #[inline]
    #[must_use]
    pub fn destination(&self) -> Ipv4Addr {
        self.fixed.array::<16, 4>().into()
    }

    /// Whether the header has options by IHL.
    #[must_use]
    pub fn has_options(&self) -> bool {
        self.header_len() > 20
    }

    /// The options, if the header has some and they are complete.
    #[must_use]
    pub fn options(&self) -> Option<&'a [u8]> {
        self.rest.get(..self.header_len().checked_sub(20)?).filter(|options| !options.is_empty())
    }

    /// Whether the checksum is right. Also `false` if the header is malformed or cut.
    #[must_use]
    pub fn checksum_is_right(&self) -> bool {
        let options = self.header_len().checked_sub(20).and_then(|len| self.rest.get(..len));
        options.is_some_and(|options| checksum::sum_of_two(self.fixed.bytes(), options) == 0xffff)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The header of the worked example on the crate's page, with four bytes of options.
    const HEADER: [u8; 24] =
        *b"\x46\xb9\0\x20\x12\x34\x60\x03\x40\x11\xbe\xef\xc0\0\x02\x01\xc6\x33\x64\x02\x94\x04\0\0";

    #[test]
    fn fields() {
        let ip = Ipv4::new(&HEADER).unwrap();
        assert_eq!((ip.version(), ip.header_len(), ip.total_len()), (4, 24, 32));
        assert_eq!((ip.traffic_class() >> 2, ip.traffic_class() & 3), (46, 1));
        assert_eq!((ip.identification(), ip.ttl(), ip.protocol()), (0x1234, 64, 17));
        assert!(ip.dont_fragment() && ip.more_fragments());
        assert_eq!((ip.fragment_offset(), ip.checksum()), (24, 0xbeef));
        assert_eq!(ip.source(), Ipv4Addr::new(192, 0, 2, 1));
        assert_eq!(ip.destination(), Ipv4Addr::new(198, 51, 100, 2));
        assert_eq!(ip.options(), Some(&HEADER[20..]));
        assert!(ip.has_options() && !ip.checksum_is_right());
        assert!(Ipv4::new(&HEADER[..19]).is_none());
    }

    #[test]
    fn checksums_need_the_whole_header() {
        let mut header = HEADER;
        header[10..12].fill(0);
        let right = checksum::compute(&header);
        header[10..12].copy_from_slice(&right.to_be_bytes());
        assert!(Ipv4::new(&header).unwrap().checksum_is_right());
        assert!(!Ipv4::new(&header[..22]).unwrap().checksum_is_right());
        assert_eq!(Ipv4::new(&header[..22]).unwrap().options(), None);
        // IHL 4: shorter than any header.
        header[0] = 0x44;
        let short = Ipv4::new(&header).unwrap();
        assert!(!short.checksum_is_right() && !short.has_options() && short.options().is_none());
        assert_eq!(short.header_len(), 16);
    }
}
