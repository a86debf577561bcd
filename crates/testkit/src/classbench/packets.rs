//! Packets for sets of filters.

use fibula_core::Prefix;

use super::{Filter, Packet};
use crate::Rng;

/// The packets on the boundaries of a filter: each end of each field, the values before and behind it, while the other
/// fields lie inside; and all fields at their first, and at their last values.
pub fn probes(filter: &Filter) -> Vec<Packet> {
    let (low, high) = (corner(filter, true), corner(filter, false));
    let mut packets = vec![low, high];
    for inside in [low, high] {
        for src in ends(filter.src) {
            packets.push(Packet { src, ..inside });
        }
        for dst in ends(filter.dst) {
            packets.push(Packet { dst, ..inside });
        }
        for src_port in around(filter.src_port) {
            packets.push(Packet { src_port, ..inside });
        }
        for dst_port in around(filter.dst_port) {
            packets.push(Packet { dst_port, ..inside });
        }
        let protocol = filter.protocol.unwrap_or(6);
        for protocol in [protocol.wrapping_sub(1), protocol.wrapping_add(1)] {
            packets.push(Packet { protocol, ..inside });
        }
    }
    packets
}

fn corner(filter: &Filter, low: bool) -> Packet {
    Packet {
        src: if low { filter.src.first() } else { filter.src.last() },
        dst: if low { filter.dst.first() } else { filter.dst.last() },
        src_port: if low { filter.src_port.0 } else { filter.src_port.1 },
        dst_port: if low { filter.dst_port.0 } else { filter.dst_port.1 },
        protocol: filter.protocol.unwrap_or(17),
    }
}

fn ends(prefix: Prefix<u32>) -> [u32; 6] {
    let (first, last) = (prefix.first(), prefix.last());
    let next = |end: u32| [end.wrapping_sub(1), end, end.wrapping_add(1)];
    let ([a, b, c], [d, e, f]) = (next(first), next(last));
    [a, b, c, d, e, f]
}

fn around((first, last): (u16, u16)) -> [u16; 6] {
    let next = |end: u16| [end.wrapping_sub(1), end, end.wrapping_add(1)];
    let ([a, b, c], [d, e, f]) = (next(first), next(last));
    [a, b, c, d, e, f]
}

/// Packets that filters of the set match: for each a filter is drawn, and a value in each of its fields.
pub fn traffic(filters: &[Filter], count: usize, seed: u64) -> Vec<Packet> {
    let mut rng = Rng::new(seed);
    let within = |rng: &mut Rng, (first, last): (u16, u16)| {
        first + rng.below(u64::from(last - first) + 1) as u16
    };
    let mut packet = || {
        let filter = rng.choose(filters)?;
        Some(Packet {
            src: rng.addr_in(filter.src),
            dst: rng.addr_in(filter.dst),
            src_port: within(&mut rng, filter.src_port),
            dst_port: within(&mut rng, filter.dst_port),
            protocol: filter.protocol.unwrap_or(6),
        })
    };
    (0..count).map_while(|_| packet()).collect()
}
