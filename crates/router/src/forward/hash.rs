//! The hash of a flow, by which equal-cost paths share packets.

use std::net::IpAddr;

use fibula_packet::{Fragmentation, Frame, extension};

/// The hash of a frame's flow: the same for both directions.
///
/// An end of the flow is its address and its port (0 if there is none). `hash = mix(mix(end, seed) + mix(other end, seed)
/// + protocol)`: a sum, so that the order of the ends makes no difference. Ports are left out of fragments, of which all
/// must take the same way but only the first has ports; the protocol of an IPv6 fragment is 44, because later ones do
/// not tell what follows their destination options.
pub(super) fn of_frame(seed: u64, frame: &Frame<'_>) -> u32 {
    let key = frame.flow_key();
    let Some((source, destination)) = key.ends else { return 0 };
    let whole = key.fragment == Fragmentation::Whole;
    let protocol = match source {
        IpAddr::V6(_) if !whole => extension::FRAGMENT,
        _ => key.protocol.unwrap_or_default(),
    };
    let ports = key.ports.filter(|_| whole).unwrap_or_default();
    of(seed, source, destination, protocol, ports)
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
