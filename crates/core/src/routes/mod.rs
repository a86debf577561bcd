mod search;

use alloc::vec::Vec;
use core::ops::Range;

use crate::{Addr, Hop, Prefix, Ranges};
use search::TOGETHER;

/// A route: a prefix and the hop of its addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Route<A: Addr> {
    /// The prefix.
    pub prefix: Prefix<A>,
    /// Its hop; never [`Hop::NONE`] inside [`Routes`].
    pub hop: Hop,
}

/// A routing table ready to be compiled: sorted by prefix, without duplicate prefixes and without [`Hop::NONE`].
///
/// A prefix sorts right before the prefixes that it covers, so [`Routes::ranges`] and the engines' builders need only
/// one pass. [`Routes::apply`] makes many changes in one pass.
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
#[derive(Clone, Debug)]
pub struct Routes<A: Addr> {
    routes: Vec<Route<A>>,
    hop_count: u32,
    /// The prefix of every [`GROUP`]th route, or nothing. The changes of a large batch are far from each other, and so
    /// few prefixes stay in a cache.
    firsts: Vec<Prefix<A>>,
    /// The routes shorter than [`Routes::SHORT`], from the first large batch on: most routes that cover others, in so
    /// little memory that they stay in a cache.
    short: Option<Vec<Route<A>>>,
}

/// Routes for each of [`Routes::firsts`].
const GROUP: usize = 32;
/// From this number of changes on, [`Routes::apply`] lists the first prefixes of groups if they are not listed.
const MANY: usize = 256;

impl<A: Addr> PartialEq for Routes<A> {
    fn eq(&self, other: &Self) -> bool {
        self.routes == other.routes
    }
}

impl<A: Addr> Eq for Routes<A> {}

impl<A: Addr> Default for Routes<A> {
    fn default() -> Self {
        Self { routes: Vec::new(), hop_count: 0, firsts: Vec::new(), short: None }
    }
}

impl<A: Addr> Routes<A> {
    /// Sorts the routes and keeps the last one of each prefix. Routes to [`Hop::NONE`] are dropped: a table that must
    /// answer "none" inside a prefix needs a hop with that meaning. O(n log n).
    pub fn from_unsorted(mut routes: Vec<Route<A>>) -> Self {
        routes.retain(|r| !r.hop.is_none());
        // The sort is stable, so the last route given for a prefix stays last.
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
        let hop_count = hop_count(&routes);
        Self { routes, hop_count, firsts: Vec::new(), short: None }
    }

    /// A part of a larger table, for [`Follow::reach`](crate::Follow::reach): its [`Routes::hop_count`] is at least
    /// that of the table, since engines choose by it how they store hops.
    #[must_use]
    pub fn part_of(mut self, hop_count: u32) -> Self {
        self.hop_count = self.hop_count.max(hop_count);
        self
    }

    /// Applies changes, which are sorted by prefix, with each prefix once. A route replaces the route of its prefix
    /// or is inserted; a route to [`Hop::NONE`] removes it. The change is made in place. It takes O(changes * log n)
    /// if no prefix is inserted or removed; otherwise the routes behind the first such position move, each once.
    ///
    /// ```
    /// # use fibula_core::{Hop, Prefix, Route, Routes};
    /// let p = |text: &str| text.parse::<Prefix<u32>>().unwrap();
    /// let mut routes: Routes<u32> =
    ///     [(p("10.0.0.0/8"), Hop::new(1)), (p("11.0.0.0/8"), Hop::new(2))].into_iter().collect();
    /// routes.apply(&[
    ///     Route { prefix: p("10.0.0.0/8"), hop: Hop::NONE },
    ///     Route { prefix: p("10.1.0.0/16"), hop: Hop::new(0) },
    ///     Route { prefix: p("11.0.0.0/8"), hop: Hop::new(0) },
    /// ]);
    /// let expected = [(p("10.1.0.0/16"), Hop::new(0)), (p("11.0.0.0/8"), Hop::new(0))];
    /// assert_eq!(routes, expected.into_iter().collect());
    /// ```
    ///
    /// # Panics
    /// If the changes are not sorted.
    pub fn apply(&mut self, changes: &[Route<A>]) {
        assert!(changes.is_sorted_by(|a, b| a.prefix < b.prefix), "changes in order of prefixes");
        let (mut near, mut edits) = (0, Vec::new());
        let (mut highest_left, mut highest) = (false, 0);
        if self.firsts.is_empty() && changes.len() >= MANY {
            self.list_firsts();
            let is_short = |route: &Route<A>| route.prefix.len() < Self::SHORT;
            let routes = &self.routes;
            self.short.get_or_insert_with(|| routes.iter().copied().filter(is_short).collect());
        }
        self.apply_short(changes);
        for changes in changes.chunks(TOGETHER) {
            let places = self.places(changes.iter().map(|change| change.prefix), &mut near);
            for (change, at) in changes.iter().zip(places) {
                highest = highest.max(change.hop.index().map_or(0, |hop| hop + 1));
                match self.routes.get_mut(at) {
                    Some(route) if route.prefix == change.prefix => {
                        highest_left |= route.hop.index() == self.hop_count.checked_sub(1);
                        route.hop = change.hop;
                        if change.hop.is_none() {
                            edits.push((at, None));
                        }
                    }
                    _ if change.hop.is_none() => {}
                    _ => edits.push((at, Some(*change))),
                }
            }
        }
        if !edits.is_empty() {
            self.edit(&edits);
            self.firsts.clear();
            if changes.len() >= MANY {
                self.list_firsts();
            }
        }
        self.hop_count = if highest_left && highest < self.hop_count {
            hop_count(&self.routes)
        } else {
            self.hop_count.max(highest)
        };
    }

    /// Applies the changes to the list of short routes.
    fn apply_short(&mut self, changes: &[Route<A>]) {
        let Some(short) = &mut self.short else { return };
        for change in changes.iter().filter(|change| change.prefix.len() < Self::SHORT) {
            match short.binary_search_by_key(&change.prefix, |route| route.prefix) {
                Ok(at) if change.hop.is_none() => drop(short.remove(at)),
                Ok(at) => short[at].hop = change.hop,
                Err(_) if change.hop.is_none() => {}
                Err(at) => short.insert(at, *change),
            }
        }
    }

    fn list_firsts(&mut self) {
        self.firsts.extend(self.routes.iter().step_by(GROUP).map(|route| route.prefix));
    }

    /// Removes the route at each of these ascending positions, or inserts one before it. The routes between two
    /// positions move at most once: first those that move to the left, in their order, and a sequence of those that
    /// move to the right from its end. Neighbours that move apart do not overwrite each other.
    fn edit(&mut self, edits: &[(usize, Option<Route<A>>)]) {
        let Some(&(mut to, first)) = edits.first() else { return };
        let old = self.routes.len();
        let come = edits.iter().filter(|(_, route)| route.is_some()).count();
        let new = old + 2 * come - edits.len();
        if let Some(filler) = first.or(self.routes.first().copied()) {
            self.routes.resize(new.max(old), filler); // each of the new ones is written below
        }
        let mut later = Vec::new();
        let ends = edits[1..].iter().map(|&(at, _)| at).chain([old]);
        for (&(at, come), end) in edits.iter().zip(ends) {
            let from = at + usize::from(come.is_none());
            let behind = to + usize::from(come.is_some());
            if behind > from {
                later.push((from..end, behind, come));
            } else {
                later.drain(..).rev().for_each(|each| self.put(each));
                self.put((from..end, behind, come));
            }
            to = behind + end - from;
        }
        later.drain(..).rev().for_each(|each| self.put(each));
        self.routes.truncate(new);
    }

    /// Moves routes to this position, and puts one before them.
    fn put(&mut self, (from, to, before): (Range<usize>, usize, Option<Route<A>>)) {
        if from.start != to {
            self.routes.copy_within(from, to);
        }
        if let Some(route) = before {
            self.routes[to - 1] = route;
        }
    }

    /// The routes in sorted order.
    pub fn as_slice(&self) -> &[Route<A>] {
        &self.routes
    }

    /// Iterates over the routes in sorted order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Route<A>> + Clone + '_ {
        self.routes.iter().copied()
    }

    /// Number of routes.
    pub fn len(&self) -> usize {
        self.routes.len()
    }

    /// Whether there are no routes.
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
        Ranges::new(&self.routes, Prefix::ALL, Hop::NONE, true)
    }

    /// The elementary intervals before merging: neighbours may have equal hops.
    pub fn ranges_unmerged(&self) -> Ranges<'_, A> {
        Ranges::new(&self.routes, Prefix::ALL, Hop::NONE, false)
    }
}

/// One more than the largest hop.
fn hop_count<A: Addr>(routes: &[Route<A>]) -> u32 {
    routes.iter().filter_map(|r| r.hop.index()).max().map_or(0, |m| m + 1)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Range;

    /// Applying changes gives the routes that a map would have.
    #[test]
    fn changes_are_those_of_a_map() {
        use alloc::collections::BTreeMap;
        let (mut routes, mut map, mut listed) = (Routes::<u32>::default(), BTreeMap::new(), 0);
        let mut state = 7u32;
        let mut next = |below: u32| {
            state = state.wrapping_mul(0x915f_77f5).wrapping_add(1);
            (state >> 8) % below
        };
        for round in 0..300 {
            let mut changes = BTreeMap::new();
            for _ in 0..next(if round % 10 == 0 { 4 * MANY as u32 } else { 6 }) {
                let longest = if round % 4 < 2 { 13 } else { 21 };
                let addr = next(4096) << 20 | next(4) << 12;
                let prefix = Prefix::masked(addr, next(longest) as u8).unwrap();
                let hop = if next(3) == 0 { Hop::NONE } else { Hop::new(next(50)) };
                changes.insert(prefix, hop);
            }
            let list: Vec<_> =
                changes.iter().map(|(&prefix, &hop)| Route { prefix, hop }).collect();
            routes.apply(&list);
            for (prefix, hop) in changes {
                if hop.is_none() {
                    map.remove(&prefix)
                } else {
                    map.insert(prefix, hop)
                };
            }
            let anew: Routes<u32> = map.iter().map(|(&prefix, &hop)| (prefix, hop)).collect();
            assert_eq!((&routes, routes.hop_count()), (&anew, anew.hop_count()));
            // Whether or not the first prefixes of groups are listed.
            let mut near = 0;
            let mut block =
                |i: u32| Prefix::masked(i << 26 | next(64) << 20, 6 + next(14) as u8).unwrap();
            let mut blocks: Vec<_> = (0..64).map(&mut block).collect();
            for &block in &blocks {
                assert_eq!(routes.around(block), anew.around(block), "{block}");
                assert_eq!(routes.within(block), anew.within(block), "{block}");
                let ranges = routes.ranges_within_near(block, &mut near);
                assert!(ranges.eq(anew.ranges_within(block)), "{block}");
            }
            // In order, and in no order.
            for _ in 0..2 {
                let mut expected = blocks.iter();
                routes.each_within(&blocks, |ranges| {
                    let block = *expected.next().unwrap();
                    assert!(ranges.eq(anew.ranges_within(block)), "{block}");
                });
                assert!(expected.next().is_none());
                blocks.rotate_left(next(64) as usize);
                blocks.swap(7, 50);
            }
            listed += usize::from(!routes.firsts.is_empty());
        }
        assert!((5..250).contains(&listed), "{listed}");
    }

    /// `around` gives the hop of the longest covering prefix, in nested and in sparse tables.
    #[test]
    fn around_is_the_longest_covering_route() {
        let mut state = 3u32;
        let mut next = || {
            state = state.wrapping_mul(0x915f_77f5).wrapping_add(1);
            state >> 7
        };
        for round in 0..200u32 {
            let mask = if round % 2 == 0 { 0xff00_0300 } else { u32::MAX };
            let mut prefix = || {
                Prefix::masked(next().wrapping_mul(0x9e37_79b1) & mask, (next() % 33) as u8)
                    .unwrap()
            };
            let routes: Routes<u32> = (0..round).map(|i| (prefix(), Hop::new(i))).collect();
            for _ in 0..50 {
                let of = prefix();
                let covering = routes.iter().filter(|r| r.prefix.covers(of) && r.prefix != of);
                let longest = covering.max_by_key(|r| r.prefix.len());
                assert_eq!(routes.around(of), longest.map_or(Hop::NONE, |r| r.hop), "{of}");
                let within: Vec<_> = routes.iter().filter(|r| of.covers(r.prefix)).collect();
                assert_eq!(routes.within(of), within, "{of}");
                let mut covering: Vec<_> = routes.iter().filter(|r| r.prefix.covers(of)).collect();
                covering.reverse();
                assert!(routes.covering(of).eq(covering), "{of}");
            }
        }
    }

    /// Blocks of any size give exactly the whole table's intervals, cut at the block.
    #[test]
    fn the_ranges_of_blocks_are_those_of_the_table_cut() {
        let mut routes = Vec::new();
        for i in 0..400u32 {
            let mixed = i.wrapping_mul(0x9e37_79b1);
            let prefix = Prefix::masked(mixed & 0xff00_00ff | 0x3000, (mixed >> 8 & 31) as u8 + 1);
            routes.push(Route { prefix: prefix.unwrap(), hop: Hop::new(mixed >> 20 & 3) });
        }
        let routes = Routes::from_unsorted(routes);
        let all: Vec<_> = routes.ranges().collect();
        let mut near = 0;
        for len in [0u8, 1, 4, 5, 30, 32] {
            for i in 0..64u32.min(1 << len.min(6)) {
                let block = Prefix::masked(i.reverse_bits() | 0x30ff, len).unwrap();
                let cut = all.iter().filter(|r| r.last >= block.first() && r.first <= block.last());
                let cut = cut.map(|r| Range {
                    first: r.first.max(block.first()),
                    last: r.last.min(block.last()),
                    hop: r.hop,
                });
                assert!(routes.ranges_within(block).eq(cut.clone()), "{block}");
                assert!(routes.ranges_within_near(block, &mut near).eq(cut), "{block}");
            }
        }
    }
}
