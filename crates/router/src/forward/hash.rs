//! The hash of a flow, by which equal-cost paths share packets.

use std::net::IpAddr;

use fibula_packet::{Fragmentation, Frame, LinkType, extension, has_ports, ports};

/// The hash of a frame's flow: the same for both directions. The frame ends with its packet.
///
/// An end of the flow is its address and its port (0 if there is none).
/// `hash = mix(mix(end ^ seed) + mix(other end ^ seed) + protocol)`, the upper half of it: a sum, so that the order of
/// the ends makes no difference. The ports of fragments are not used: all fragments of a packet must take the same
/// path, but only the first has ports. The protocol of an IPv6 fragment is 44, because later fragments do not contain
/// the header after their destination options. For packets that end within their headers only the addresses are used.
pub(super) fn of_frame(seed: u64, frame: &Frame<'_>) -> u32 {
    let Some((source, destination)) = frame.ends() else { return 0 };
    let key = frame.flow_key();
    let whole = key.fragment == Fragmentation::Whole;
    let protocol = match source {
        IpAddr::V6(_) if !whole => extension::FRAGMENT,
        _ => key.protocol.unwrap_or_default(),
    };
    let ports = key.ports.filter(|_| whole).unwrap_or_default();
    of(seed, source, destination, protocol, ports)
}

/// As [`of_frame`], of an ordinary IP packet: it has no IPv4 options, and no hop-by-hop options.
#[inline]
pub(super) fn of_ordinary(seed: u64, ip: &[u8]) -> u32 {
    let ports_at = |at: usize, protocol| ports(protocol, ip.get(at..).unwrap_or_default());
    if let Some(header) = ip.first_chunk::<20>().filter(|header| header[0] >> 4 == 4) {
        let [_, _, _, _, _, _, high, low, _, protocol, _, _, ends @ ..] = header;
        let [s0, s1, s2, s3, d0, d1, d2, d3] = *ends;
        let is_fragment = u16::from_be_bytes([*high, *low]) & 0x3fff != 0;
        let ports = ports_at(20, *protocol).filter(|_| !is_fragment).unwrap_or_default();
        return of(seed, [s0, s1, s2, s3].into(), [d0, d1, d2, d3].into(), *protocol, ports);
    }
    match ip.first_chunk::<40>() {
        Some(header) if has_ports(header[6]) => {
            let address = |at: usize| -> IpAddr {
                let mut octets = [0; 16];
                octets.copy_from_slice(&header[at..at + 16]);
                octets.into()
            };
            let ports = ports_at(40, header[6]).unwrap_or_default();
            of(seed, address(8), address(24), header[6], ports)
        }
        _ => of_frame(seed, &Frame::parse(LinkType::RawIp, ip)),
    }
}

/// The hash of a flow.
#[inline]
pub(super) fn of(
    seed: u64,
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    (from, to): (u16, u16),
) -> u32 {
    let ends = end(seed, source, from).wrapping_add(end(seed, destination, to));
    (mix(ends.wrapping_add(u64::from(protocol))) >> 32) as u32
}

#[inline]
fn end(seed: u64, address: IpAddr, port: u16) -> u64 {
    match address {
        IpAddr::V4(v4) => mix(seed ^ (u64::from(v4.to_bits()) << 16 | u64::from(port))),
        IpAddr::V6(v6) => {
            let bits = v6.to_bits();
            mix(mix(seed ^ (bits >> 64) as u64) ^ bits as u64 ^ u64::from(port).rotate_right(16))
        }
    }
}

/// The finalizer of splitmix64 (Steele, Lea, Flood 2014): every bit of the word changes half of the bits.
#[inline]
fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}
