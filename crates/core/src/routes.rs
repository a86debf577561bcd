use alloc::vec::Vec;

use crate::{Addr, Hop, Prefix, Ranges};

/// A route: a prefix and the hop of the addresses that it matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Route<A: Addr> {
    /// The prefix.
    pub prefix: Prefix<A>,
    /// Its hop; never [`Hop::NONE`] inside [`Routes`].
    pub hop: Hop,
}

/// A routing table ready to be compiled: sorted by prefix, each prefix once, every hop real.
///
/// Sorted order puts a prefix right before those that it covers, which lets [`Routes::ranges`] and
/// the engines' builders work in one pass. Immutable: a changed table is a new `Routes`.
///
/// ```
/// use fibula_core::{Hop, Prefix, Routes};
/// let routes: Routes<u32> = [
///     (Prefix::masked(0x0a000000, 8)?, Hop::new(1)),
///     (Prefix::ALL, Hop::new(0)),
///     (Prefix::masked(0x0a000000, 8)?, Hop::new(2)), // a later route replaces an earlier one
/// ].into_iter().collect();
/// assert_eq!(routes.len(), 2);
/// assert_eq!(routes.hop_count(), 3); // one more than the largest hop
/// assert_eq!(routes.get(Prefix::masked(0x0a000000, 8)?), Some(Hop::new(2)));
/// # Ok::<(), fibula_core::PrefixError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routes<A: Addr> {
    routes: Vec<Route<A>>,
    hop_count: u32,
}

impl<A: Addr> Default for Routes<A> {
    fn default() -> Self {
        Self { routes: Vec::new(), hop_count: 0 }
    }
}

impl<A: Addr> Routes<A> {
    /// Sorts the routes and keeps the last of each prefix. Routes to [`Hop::NONE`] are dropped: a
    /// table that should answer "none" inside a prefix needs a hop that says so. O(n log n).
    pub fn from_unsorted(mut routes: Vec<Route<A>>) -> Self {
        routes.retain(|r| !r.hop.is_none());
        // Stable, so that of equal prefixes the last given stays last.
        if !routes.is_sorted_by(|a, b| a.prefix < b.prefix) {
            routes.sort_by_key(|r| r.prefix);
            routes.dedup_by(|next, kept| {
                let same = next.prefix == kept.prefix;
                if same {
                    kept.hop = next.hop;
                }
                same
            });
        }
        let hop_count = routes.iter().filter_map(|r| r.hop.index()).max().map_or(0, |m| m + 1);
        Self { routes, hop_count }
    }

    /// The routes in order.
    pub fn as_slice(&self) -> &[Route<A>] {
        &self.routes
    }

    /// Iterates over the routes in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Route<A>> + Clone + '_ {
        self.routes.iter().copied()
    }

    /// Number of routes.
    pub fn len(&self) -> usize {
        self.routes.len()
    }

    /// Whether there is no route.
    pub fn is_empty(&self) -> bool {
        self.routes.is_empty()
    }

    /// One more than the largest hop index, 0 for an empty table: the size of an array indexed by
    /// hop.
    pub fn hop_count(&self) -> u32 {
        self.hop_count
    }

    /// The hop of exactly this prefix. O(log n).
    pub fn get(&self, prefix: Prefix<A>) -> Option<Hop> {
        self.routes.binary_search_by_key(&prefix, |r| r.prefix).ok().map(|i| self.routes[i].hop)
    }

    /// The elementary intervals, neighbours with equal hops merged; see [`Ranges`].
    pub fn ranges(&self) -> Ranges<'_, A> {
        Ranges::new(&self.routes, true)
    }

    /// The elementary intervals as the prefixes cut them: neighbours may have equal hops.
    pub fn ranges_unmerged(&self) -> Ranges<'_, A> {
        Ranges::new(&self.routes, false)
    }
}

impl<A: Addr> FromIterator<Route<A>> for Routes<A> {
    fn from_iter<I: IntoIterator<Item = Route<A>>>(iter: I) -> Self {
        Self::from_unsorted(iter.into_iter().collect())
    }
}

impl<A: Addr> FromIterator<(Prefix<A>, Hop)> for Routes<A> {
    fn from_iter<I: IntoIterator<Item = (Prefix<A>, Hop)>>(iter: I) -> Self {
        iter.into_iter().map(|(prefix, hop)| Route { prefix, hop }).collect()
    }
}
