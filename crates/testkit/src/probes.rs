//! Addresses where engines go wrong.
//!
//! Random keys hardly ever fall on the edge of a prefix: a public implementation of an interval tree
//! answers 2,518 of 13,545 boundary probes wrongly on a dense table, and none of 2,000 random ones.

use fibula_core::{Addr, Routes};

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
