//! Addresses where engines go wrong.
//!
//! Random keys hardly ever fall on the edge of a prefix: a public implementation of an interval tree
//! answers 2,518 of 13,545 boundary probes wrongly on a dense table, and none of 2,000 random ones.

use fibula_core::{Addr, Routes};

use crate::Rng;
use crate::traffic::{Traffic, keys};

/// For every prefix the addresses first-1, first, first+1, last-1, last and last+1, as far as they
/// exist, and both ends of the space. Equal neighbours (a host route's first and last) come once;
/// otherwise nothing is sorted or deduplicated.
///
/// ```
/// use fibula_core::{Hop, Prefix, Routes};
/// let routes: Routes<u32> = [("10.0.0.0/8".parse::<Prefix<u32>>()?, Hop::new(0))].into_iter().collect();
/// let probes: Vec<u32> = fibula_testkit::probes::boundary(&routes).collect();
/// assert_eq!(probes, [
///     0, 0x09ff_ffff, 0x0a00_0000, 0x0a00_0001, 0x0aff_fffe, 0x0aff_ffff, 0x0b00_0000, u32::MAX,
/// ]);
/// # Ok::<(), fibula_core::PrefixError>(())
/// ```
pub fn boundary<A: Addr>(routes: &Routes<A>) -> impl Iterator<Item = A> + '_ {
    let mut before = None;
    core::iter::once(A::MIN)
        .chain(routes.iter().flat_map(|route| {
            let (first, last) = (route.prefix.first(), route.prefix.last());
            [
                first.predecessor(),
                Some(first),
                first.successor(),
                last.predecessor(),
                Some(last),
                last.successor(),
            ]
            .into_iter()
            .flatten()
        }))
        .chain(core::iter::once(A::MAX))
        .filter(move |addr| before.replace(*addr) != Some(*addr))
}

/// So many random addresses: a third each over all bits, over the space in use ([`Traffic::Rnd`]), and over the table's
/// prefixes ([`Traffic::Pfx`]).
///
/// ```
/// use fibula_testkit::{probes, tables};
/// let routes = tables::dense::<u32>(1, 100);
/// assert_eq!(probes::random(&routes, 1000, 1).count(), 1000);
/// ```
pub fn random<A: Addr>(routes: &Routes<A>, count: u64, seed: u64) -> impl Iterator<Item = A> {
    /// Addresses that are made at a time, so that many need no more memory than few.
    const PIECE: u64 = 1 << 20;
    (0..count.div_ceil(PIECE)).flat_map(move |piece| {
        let count = (count - piece * PIECE).min(PIECE) as usize;
        let seed = seed.wrapping_mul(0x1_0000_0001).wrapping_add(piece);
        let mut rng = Rng::new(seed);
        let mut addrs: Vec<A> = (0..count.div_ceil(3)).map(|_| rng.addr()).collect();
        addrs.extend(keys(routes, Traffic::Rnd, count / 3, seed));
        addrs.extend(keys(routes, Traffic::Pfx, count - addrs.len(), seed));
        addrs
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fibula_core::{Hop, Prefix};

    #[test]
    fn the_empty_table_has_two() {
        let routes = Routes::<u128>::default();
        assert_eq!(boundary(&routes).collect::<Vec<_>>(), [0, u128::MAX]);
    }

    #[test]
    fn nothing_beyond_the_ends() {
        let routes: Routes<u32> =
            [(Prefix::ALL, Hop::new(0)), (Prefix::host(0), Hop::new(1))].into_iter().collect();
        let probes: Vec<u32> = boundary(&routes).collect();
        assert_eq!(probes, [0, 1, u32::MAX - 1, u32::MAX, 0, 1, 0, 1, u32::MAX]);
    }
}
