//! Where routes are among the others.
//!
//! A table of a million routes is larger than the caches, so a search waits for memory most of its time. Changes come
//! in batches in order: [`Routes::firsts`] is searched from the place of the preceding one on, and the searches for
//! several of them overlap.

use super::{GROUP, Route, Routes};
use crate::{Addr, Hop, Prefix, Ranges};

/// A route at most so far away is searched for from the place at hand.
const NEAR: usize = 8;
/// Prefixes that are searched for together.
pub(super) const TOGETHER: usize = 16;

impl<A: Addr> Routes<A> {
    /// The routes whose prefixes are covered by the prefix, itself included. O(log n).
    ///
    /// ```
    /// # use fibula_core::{Hop, Routes};
    /// let routes: Routes<u32> = [
    ///     ("10.0.0.0/8".parse()?, Hop::new(1)),
    ///     ("10.1.0.0/16".parse()?, Hop::new(2)),
    ///     ("10.1.2.0/24".parse()?, Hop::new(3)),
    ///     ("10.2.0.0/16".parse()?, Hop::new(4)),
    /// ].into_iter().collect();
    /// assert_eq!(routes.within("10.1.0.0/16".parse()?).len(), 2);
    /// assert_eq!(routes.around("10.1.0.0/16".parse()?), Hop::new(1));
    /// # Ok::<(), fibula_core::PrefixError>(())
    /// ```
    pub fn within(&self, prefix: Prefix<A>) -> &[Route<A>] {
        self.within_from(self.place(prefix), prefix)
    }

    /// The hop of the longest shorter prefix that covers the prefix; [`Hop::NONE`] if there is none. O(covering
    /// prefixes * log n).
    pub fn around(&self, prefix: Prefix<A>) -> Hop {
        self.around_at(self.place(prefix), prefix)
    }

    /// The routes that cover the prefix, that of the prefix itself included, the longest first. O(log n) for each.
    ///
    /// ```
    /// use fibula_core::{Hop, Prefix, Routes};
    /// let routes: Routes<u32> = ["10.0.0.0/8", "10.1.0.0/16", "10.1.2.0/24", "10.2.0.0/16"]
    ///     .map(|text| (text.parse().unwrap(), Hop::new(0)))
    ///     .into_iter()
    ///     .collect();
    /// let covering: Vec<u8> =
    ///     routes.covering("10.1.2.0/24".parse()?).map(|route| route.prefix.len()).collect();
    /// assert_eq!(covering, [24, 16, 8]);
    /// # Ok::<(), fibula_core::PrefixError>(())
    /// ```
    pub fn covering(&self, prefix: Prefix<A>) -> impl Iterator<Item = Route<A>> + '_ {
        let place = self.place(prefix);
        let own = self.routes.get(place).is_some_and(|route| route.prefix == prefix);
        let mut place = place + usize::from(own);
        core::iter::from_fn(move || {
            place = self.nearest(place, prefix)?;
            Some(self.routes[place])
        })
    }

    /// The elementary intervals of only the prefix's addresses, with neighbours of equal hops merged. Engines that
    /// consist of blocks compile these, also again after a change. O(log n), and the routes within.
    pub fn ranges_within(&self, prefix: Prefix<A>) -> Ranges<'_, A> {
        let place = self.place(prefix);
        Ranges::new(self.within_from(place, prefix), prefix, self.around_at(place, prefix), true)
    }

    /// As [`Routes::ranges_within`], for prefixes in ascending order: the search for each begins near the preceding
    /// one. `near` is the place where a search ended, 0 at first; any other value costs time only.
    ///
    /// ```
    /// # use fibula_core::{Hop, Routes};
    /// let routes: Routes<u32> =
    ///     [("10.1.0.0/16".parse()?, Hop::new(1)), ("10.3.0.0/16".parse()?, Hop::new(2))].into_iter().collect();
    /// let mut near = 0;
    /// for block in ["10.0.0.0/15", "10.2.0.0/15", "10.0.0.0/14"] {
    ///     let block = block.parse()?;
    ///     assert!(routes.ranges_within_near(block, &mut near).eq(routes.ranges_within(block)));
    /// }
    /// # Ok::<(), fibula_core::PrefixError>(())
    /// ```
    pub fn ranges_within_near(&self, prefix: Prefix<A>, near: &mut usize) -> Ranges<'_, A> {
        *near = self.place_near(*near, prefix);
        let around = self.around_at(*near, prefix);
        Ranges::new(self.within_from(*near, prefix), prefix, around, true)
    }

    /// Calls `each` with the [ranges](Routes::ranges_within) of each prefix. For many prefixes in ascending order this
    /// takes the least time: the searches for several of them overlap.
    ///
    /// ```
    /// # use fibula_core::{Hop, Prefix, Routes};
    /// let routes: Routes<u32> =
    ///     [("10.1.0.0/16".parse()?, Hop::new(1)), ("10.3.0.0/16".parse()?, Hop::new(2))].into_iter().collect();
    /// let blocks: [Prefix<u32>; 2] = ["10.0.0.0/15".parse()?, "10.2.0.0/15".parse()?];
    /// let mut counts = vec![];
    /// routes.each_within(&blocks, |ranges| counts.push(ranges.count()));
    /// assert_eq!(counts, [2, 2]);
    /// # Ok::<(), fibula_core::PrefixError>(())
    /// ```
    pub fn each_within(&self, prefixes: &[Prefix<A>], mut each: impl FnMut(Ranges<'_, A>)) {
        let mut near = 0;
        for prefixes in prefixes.chunks(TOGETHER) {
            let places = self.places(prefixes.iter().copied(), &mut near);
            let mut found = [(Hop::NONE, &[][..]); TOGETHER];
            for ((found, &place), &prefix) in found.iter_mut().zip(&places).zip(prefixes) {
                *found = (self.around_at(place, prefix), self.within_from(place, prefix));
            }
            for (&(around, within), &prefix) in found.iter().zip(prefixes) {
                each(Ranges::new(within, prefix, around, true));
            }
        }
    }

    /// The [places](Routes::place) of some prefixes. `near` is where to begin: 0 at first.
    pub(super) fn places(
        &self,
        prefixes: impl Iterator<Item = Prefix<A>> + Clone,
        near: &mut usize,
    ) -> [usize; TOGETHER] {
        let mut places = [0; TOGETHER];
        if self.firsts.is_empty() {
            for (place, prefix) in places.iter_mut().zip(prefixes) {
                *near = self.place_near(*near, prefix);
                *place = *near;
            }
            return places;
        }
        // First all groups, or each search would wait for the routes that the one before reads.
        for (groups, prefix) in places.iter_mut().zip(prefixes.clone()) {
            let is_before = |first: &Prefix<A>| *first < prefix;
            *near = if *near > 0 && !is_before(&self.firsts[*near - 1]) {
                self.firsts.partition_point(is_before)
            } else {
                *near + gallop(&self.firsts[*near..], is_before)
            };
            *groups = *near;
        }
        for (place, prefix) in places.iter_mut().zip(prefixes) {
            *place = self.place_in(*place, prefix);
        }
        places
    }

    /// The position of the first route that does not sort before the prefix.
    fn place(&self, prefix: Prefix<A>) -> usize {
        let groups = self.firsts.partition_point(|first| *first < prefix);
        self.place_in(groups, prefix)
    }

    /// As [`Routes::place`], wherever the prefix is. Fast if it sorts shortly after the first `near` routes.
    fn place_near(&self, near: usize, prefix: Prefix<A>) -> usize {
        let from = near.min(self.routes.len());
        if from > 0 && self.routes[from - 1].prefix >= prefix {
            self.place(prefix)
        } else {
            self.place_from(from, prefix)
        }
    }

    /// As [`Routes::place`], for a prefix that sorts after the first `from` routes.
    fn place_from(&self, from: usize, prefix: Prefix<A>) -> usize {
        let is_far = self.routes.get(from + NEAR).is_some_and(|route| route.prefix < prefix);
        if is_far && !self.firsts.is_empty() {
            let group = from / GROUP;
            let groups = group + gallop(&self.firsts[group..], |first| *first < prefix);
            return self.place_in(groups, prefix);
        }
        from + gallop(&self.routes[from..], |route| route.prefix < prefix)
    }

    /// As [`Routes::place`], if so many groups begin before the prefix. If none are listed, all routes are one.
    fn place_in(&self, groups: usize, prefix: Prefix<A>) -> usize {
        let (from, to) = self.group_before(groups);
        from + self.routes[from..to].partition_point(|route| route.prefix < prefix)
    }

    /// The positions of the last one of so many groups, or of all routes if no groups are listed.
    fn group_before(&self, groups: usize) -> (usize, usize) {
        if self.firsts.is_empty() {
            (0, self.routes.len())
        } else {
            let to = GROUP * groups;
            (to.saturating_sub(GROUP), to.min(self.routes.len()))
        }
    }

    /// The routes that the prefix covers, the first of which is at this position.
    fn within_from(&self, place: usize, prefix: Prefix<A>) -> &[Route<A>] {
        let routes = &self.routes[place..];
        &routes[..gallop(routes, |r| prefix.covers(r.prefix))]
    }

    /// Like [`Routes::around`], for a prefix that sorts after the first `place` routes.
    fn around_at(&self, place: usize, prefix: Prefix<A>) -> Hop {
        let mut before = &self.routes[..place];
        while let Some(last) = before.last() {
            if last.prefix.covers(prefix) {
                return last.hop;
            }
            // What covers both is no longer than their common part.
            if let Some(short) = &self.short
                && last.prefix.addr().common_prefix_len(prefix.addr()) < Self::SHORT
            {
                let place = short.partition_point(|route| route.prefix < prefix);
                return around_in(&short[..place], prefix);
            }
            before = &before[..self.up(before, last.prefix, prefix)];
        }
        Hop::NONE
    }

    /// The position of the longest prefix among the first `place` routes that covers the given one, which does not sort
    /// before them.
    fn nearest(&self, place: usize, prefix: Prefix<A>) -> Option<usize> {
        let mut before = &self.routes[..place];
        while let Some(last) = before.last() {
            if last.prefix.covers(prefix) {
                return Some(before.len() - 1);
            }
            before = &before[..self.up(before, last.prefix, prefix)];
        }
        None
    }

    /// The number of those routes among which a covering one is, if the `last` one does not cover the prefix.
    fn up(&self, before: &[Route<A>], last: Prefix<A>, prefix: Prefix<A>) -> usize {
        let longest = common(last, prefix);
        let is_far = before.len() > NEAR && before[before.len() - NEAR].prefix > longest;
        if is_far && !self.firsts.is_empty() {
            let firsts = &self.firsts[..before.len().div_ceil(GROUP)];
            let groups = firsts.len() - gallop_back(firsts, |first| *first > longest);
            let (from, to) = self.group_before(groups);
            let group = &before[from..to.min(before.len())];
            from + group.partition_point(|route| route.prefix <= longest)
        } else {
            before.len() - gallop_back(before, |route| route.prefix > longest)
        }
    }

    /// The routes that are shorter than this are few. They are listed in [`Routes::short`].
    pub(super) const SHORT: u8 = if A::BITS == 32 { 16 } else { 32 };
}

/// The hop of the last of these routes that covers the prefix.
fn around_in<A: Addr>(mut before: &[Route<A>], prefix: Prefix<A>) -> Hop {
    while let Some(last) = before.last() {
        if last.prefix.covers(prefix) {
            return last.hop;
        }
        let longest = common(last.prefix, prefix);
        before = &before[..before.len() - gallop_back(before, |route| route.prefix > longest)];
    }
    Hop::NONE
}

/// The longest prefix that can cover both. A prefix that covers the second one and sorts before the first covers the
/// first too: it is at most as long as their common part, and sorts before all other prefixes of that part.
fn common<A: Addr>(last: Prefix<A>, prefix: Prefix<A>) -> Prefix<A> {
    let common = last.addr().common_prefix_len(prefix.addr());
    Prefix::masked(prefix.addr(), common).unwrap_or(Prefix::ALL)
}

/// The number of leading elements with this property, which no later one has. Fast if there are few, as between
/// neighbouring changes.
fn gallop<T>(list: &[T], has: impl Fn(&T) -> bool) -> usize {
    let mut end = 1;
    while end < list.len() && has(&list[end - 1]) {
        end *= 2;
    }
    let from = end / 2;
    from + list[from..end.min(list.len())].partition_point(has)
}

/// The number of trailing elements with this property, which no earlier one has.
fn gallop_back<T>(list: &[T], has: impl Fn(&T) -> bool) -> usize {
    let mut len = 1;
    while len < list.len() && has(&list[list.len() - len]) {
        len *= 2;
    }
    let (from, to) = (list.len() - len.min(list.len()), list.len() - len / 2);
    list.len() - from - list[from..to].partition_point(|element| !has(element))
}
