//! A capture, one packet or block after the other.

use alloc::vec::Vec;

use crate::capture::bytes::{u16_at, u32_at};

/// Maximum number of bytes in a packet or block.
pub const LIMIT: usize = (16 << 20) - 64;

/// Interfaces at most in a section, so that a hostile file cannot claim memory with them.
const MAX_INTERFACES: usize = 1 << 16;

const SECTION: u32 = 0x0a0d_0d0a;

/// The length of the header of a pcap.
const HEADER: usize = 24;

/// A captured packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The time of the capture; `None` in simple packet blocks of pcapng, which have no time.
    pub time: Option<Time>,
    /// LINKTYPE of the first header.
    pub link: u32,
    /// Its bytes, as far as they were captured.
    pub data: &'a [u8],
    /// Length on the wire; `data` may be shorter.
    pub length: u32,
}

/// Seconds since 1970 (UTC) and nanoseconds, displayed with the precision of the capture's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time {
    /// Seconds since 1970.
    pub seconds: i64,
    /// The fraction of the second, in nanoseconds.
    pub nanos: u32,
    /// Whether the clock counts only microseconds.
    pub micros_only: bool,
}

/// The next item of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// A packet, of this many bytes with its header.
    Packet(usize, Packet<'a>),
    /// This many bytes without a packet, to be skipped.
    Skip(usize),
    /// This many bytes are damaged, for this reason. The data after them are valid.
    Damaged(usize, &'static str),
    /// Nothing can be read from here on.
    Lost(&'static str),
    /// More data is needed.
    Incomplete,
}

/// A capture after its beginning was read.
#[derive(Clone, Debug)]
pub enum Container {
    /// pcap.
    Pcap {
        /// Numbers are big-endian.
        big: bool,
        /// Times are in nanoseconds.
        nanos: bool,
        /// Bytes before each packet.
        header: usize,
        /// LINKTYPE of all packets, once the header was read.
        link: u32,
    },
    /// pcapng.
    PcapNg {
        /// Numbers of this section are big-endian.
        big: bool,
        /// The section's interfaces so far.
        interfaces: Vec<Interface>,
    },
}

/// The properties that all packets of an interface share.
#[derive(Clone, Copy, Debug)]
pub struct Interface {
    link: u32,
    snaplen: u32,
    resolution: u8,
    offset: i64,
}

impl Container {
    /// Detects a capture by its magic number; `None` for other data.
    pub fn recognise(data: &[u8]) -> Option<Self> {
        let (big, magic) = match (u32_at(data, 0, false)?, u32_at(data, 0, true)?) {
            (SECTION, _) => {
                let big = match (u32_at(data, 8, false)?, u32_at(data, 8, true)?) {
                    (0x1a2b_3c4d, _) => false,
                    (_, 0x1a2b_3c4d) => true,
                    _ => return None,
                };
                return Some(Self::PcapNg { big, interfaces: Vec::new() });
            }
            (magic @ (0xa1b2_c3d4 | 0xa1b2_3c4d | 0xa1b2_cd34), _) => (false, magic),
            (_, magic @ (0xa1b2_c3d4 | 0xa1b2_3c4d | 0xa1b2_cd34)) => (true, magic),
            _ => return None,
        };
        // The third magic number is of a patched libpcap whose record headers are longer.
        let header = if magic == 0xa1b2_cd34 { 24 } else { 16 };
        Some(Self::Pcap { big, nanos: magic == 0xa1b2_3c4d, header, link: u32::MAX })
    }

    /// Reads the next packet or block. `first` is true only at the very beginning of the capture. Another capture may
    /// begin where a packet ends, as in files that were joined with `cat`.
    pub fn next<'a>(&mut self, data: &'a [u8], first: bool) -> Step<'a> {
        if !first && begins_pcap(data) {
            if data.len() < HEADER {
                return Step::Incomplete;
            }
            if let Some(other) = Self::recognise(data) {
                *self = other;
                return self.next(data, true);
            }
        }
        match self {
            Self::Pcap { big, link, .. } if first => match u32_at(data, 20, *big) {
                Some(network) => {
                    // The upper bits are for a frame check sequence.
                    *link = network & 0xffff;
                    Step::Skip(HEADER)
                }
                None => Step::Incomplete,
            },
            Self::Pcap { big, nanos, header, link } => {
                let step = pcap_packet(data, *big, *nanos, *header, *link);
                // The byte order of a section is where a packet has its length.
                if let Some(Step::Lost(_)) = step
                    && let Some(other @ Self::PcapNg { .. }) = Self::recognise(data)
                {
                    *self = other;
                    return self.next(data, false);
                }
                step.unwrap_or(Step::Incomplete)
            }
            Self::PcapNg { big, interfaces } => {
                block(data, big, interfaces).unwrap_or(Step::Incomplete)
            }
        }
    }
}

/// Whether the header of a pcap of version 2.4 is here. A packet would have been captured in 2055 or later, and in a
/// certain microsecond, to look like it.
#[inline]
fn begins_pcap(data: &[u8]) -> bool {
    let Some((magic, rest)) = data.split_first_chunk::<4>() else { return false };
    matches!(rest, [2, 0, 4, 0, ..] | [0, 2, 0, 4, ..])
        && [0xa1b2_c3d4u32, 0xa1b2_3c4d, 0xa1b2_cd34]
            .iter()
            .any(|known| *magic == known.to_le_bytes() || *magic == known.to_be_bytes())
}

fn pcap_packet(data: &[u8], big: bool, nanos: bool, header: usize, link: u32) -> Option<Step<'_>> {
    let fraction = u32_at(data, 4, big)?;
    let (captured, length) = (u32_at(data, 8, big)? as usize, u32_at(data, 12, big)?);
    if captured > LIMIT {
        return Some(Step::Lost("a packet longer than any can be"));
    }
    let bytes = data.get(header..header + captured)?;
    // A fraction beyond a second is damage of the clock alone; it carries.
    let per_second = if nanos { 1_000_000_000 } else { 1_000_000 };
    let time = Time {
        seconds: i64::from(u32_at(data, 0, big)?) + i64::from(fraction / per_second),
        nanos: fraction % per_second * (1_000_000_000 / per_second),
        micros_only: !nanos,
    };
    Some(Step::Packet(header + captured, Packet { time: Some(time), link, data: bytes, length }))
}

/// A pcapng block; `None` if it is not complete.
fn block<'a>(data: &'a [u8], big: &mut bool, interfaces: &mut Vec<Interface>) -> Option<Step<'a>> {
    let kind = u32_at(data, 0, *big)?;
    if kind == SECTION {
        // Every section has its own byte order and interfaces.
        *big = match (u32_at(data, 8, false)?, u32_at(data, 8, true)?) {
            (0x1a2b_3c4d, _) => false,
            (_, 0x1a2b_3c4d) => true,
            _ => return Some(Step::Lost("a section without byte order")),
        };
        interfaces.clear();
    }
    let big = *big;
    let total = u32_at(data, 4, big)? as usize;
    if !(12..=LIMIT).contains(&total) {
        return Some(Step::Lost("a block shorter or longer than any can be"));
    }
    let body = data.get(8..total)?;
    let (body, tail) = body.split_at(body.len() - 4);
    if u32_at(tail, 0, big)? as usize != total {
        return Some(Step::Lost("a block whose two lengths differ"));
    }
    let packet = match kind {
        1 => {
            let interface =
                if interfaces.len() < MAX_INTERFACES { interface(body, big) } else { None };
            let Some(interface) = interface else {
                return Some(Step::Damaged(total, "a damaged interface description"));
            };
            interfaces.push(interface);
            return Some(Step::Skip(total));
        }
        2 | 6 => enhanced(body, kind, big, interfaces),
        3 => simple(body, big, interfaces),
        _ => return Some(Step::Skip(total)),
    };
    Some(match packet {
        Some(packet) => Step::Packet(total, packet),
        None => Step::Damaged(total, "a damaged packet block"),
    })
}

fn interface(body: &[u8], big: bool) -> Option<Interface> {
    let link = u16_at(body, 0, big)?.into();
    let mut found = Interface { link, snaplen: u32_at(body, 4, big)?, resolution: 6, offset: 0 };
    let mut options = body.get(8..)?;
    while let (Some(code), Some(len)) = (u16_at(options, 0, big), u16_at(options, 2, big)) {
        let len = usize::from(len);
        let Some(value) = options.get(4..4 + len) else { break };
        match (code, value) {
            (0, _) => break,
            (9, &[resolution]) => found.resolution = resolution,
            (14, value) => {
                if let Ok(bytes) = <[u8; 8]>::try_from(value) {
                    found.offset =
                        if big { i64::from_be_bytes(bytes) } else { i64::from_le_bytes(bytes) };
                }
            }
            _ => {}
        }
        options = options.get(4 + len.next_multiple_of(4)..).unwrap_or_default();
    }
    Some(found)
}

/// Enhanced packet blocks, and the obsolete packet blocks (kind 2), whose interface has 16 bits.
fn enhanced<'a>(body: &'a [u8], kind: u32, big: bool, known: &[Interface]) -> Option<Packet<'a>> {
    let index =
        if kind == 2 { u16_at(body, 0, big)?.into() } else { u32_at(body, 0, big)? as usize };
    let interface = known.get(index)?;
    let units = u64::from(u32_at(body, 4, big)?) << 32 | u64::from(u32_at(body, 8, big)?);
    let captured = u32_at(body, 12, big)? as usize;
    Some(Packet {
        time: Some(time(units, interface)),
        link: interface.link,
        data: body.get(20..20usize.checked_add(captured)?)?,
        length: u32_at(body, 16, big)?,
    })
}

/// Simple packet blocks have neither time nor captured length.
fn simple<'a>(body: &'a [u8], big: bool, known: &[Interface]) -> Option<Packet<'a>> {
    let interface = known.first()?;
    let length = u32_at(body, 0, big)?;
    let limit = if interface.snaplen == 0 { u32::MAX } else { interface.snaplen };
    let captured = length.min(limit) as usize;
    let data = body.get(4..)?;
    let data = data.get(..captured).unwrap_or(data);
    Some(Packet { time: None, link: interface.link, data, length })
}

/// The time of a packet: units of 10^-n or, with the highest bit set, 2^-n seconds.
fn time(units: u64, interface: &Interface) -> Time {
    const NANOS: u128 = 1_000_000_000;
    let units = u128::from(units);
    let exponent = u32::from(interface.resolution & 0x7f);
    let binary = interface.resolution & 0x80 != 0;
    let (seconds, nanos) = if binary {
        // The exponent is below 128; 64 bits of units times 10^9 fit 128.
        let seconds = units >> exponent;
        (seconds, ((units - (seconds << exponent)) * NANOS) >> exponent)
    } else {
        match 10u128.checked_pow(exponent) {
            Some(per_second) => {
                // At most 2^64 times 10^9.
                (units / per_second, units % per_second * NANOS / per_second)
            }
            None => (0, 0),
        }
    };
    Time {
        seconds: i64::try_from(seconds).unwrap_or(i64::MAX).saturating_add(interface.offset),
        nanos: nanos as u32,
        micros_only: !binary && exponent <= 6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(units: u64, resolution: u8, offset: i64) -> (i64, u32) {
        let time = time(units, &Interface { link: 1, snaplen: 0, resolution, offset });
        (time.seconds, time.nanos)
    }

    #[test]
    fn clocks() {
        assert_eq!(at(1_500_000, 6, 0), (1, 500_000_000));
        assert_eq!(at(1_500_000_001, 9, 10), (11, 500_000_001));
        assert_eq!(at(7, 0, 0), (7, 0));
        assert_eq!(at(3 << 31, 0x80 | 32, 0), (1, 500_000_000));
        assert_eq!(at(u64::MAX, 0x7f, 0), (0, 0));
        assert_eq!(at(u64::MAX, 0xff, -1), (-1, 0));
        assert_eq!(at(u64::MAX, 0x80, 1), (i64::MAX, 0));
    }

    proptest! {
        /// No input makes it panic, and every step makes progress.
        #[test]
        fn any_bytes(magic in 0usize..5, tail in proptest::collection::vec(any::<u8>(), 0..300), small in any::<[u8; 8]>()) {
            let mut data = [
                &b"\xd4\xc3\xb2\xa1"[..], b"\xa1\xb2\x3c\x4d", b"\x34\xcd\xb2\xa1",
                b"\x0a\x0d\x0d\x0a\x1c\0\0\0\x4d\x3c\x2b\x1a\x01\0\0\0\0\0\0\0\0\0\0\0\x1c\0\0\0",
                b"\x0a\x0d\x0d\x0a\0\0\0\x1c\x1a\x2b\x3c\x4d\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x1c",
            ][magic].to_vec();
            // Blocks with small numbers get further than random ones.
            data.extend(small.iter().map(|b| b % 8));
            data.extend_from_slice(&tail);
            let Some(mut container) = Container::recognise(&data) else { return Ok(()) };
            let (mut rest, mut first) = (&data[..], true);
            loop {
                let len = match container.next(rest, first) {
                    Step::Packet(len, packet) => {
                        prop_assert!(packet.data.len() <= len);
                        len
                    }
                    Step::Skip(len) | Step::Damaged(len, _) => len,
                    Step::Lost(_) | Step::Incomplete => break,
                };
                prop_assert!(len > 0 && len <= rest.len());
                rest = &rest[len..];
                first = false;
            }
        }
    }
}
