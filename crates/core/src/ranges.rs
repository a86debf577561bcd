use alloc::vec::Vec;

use crate::{Addr, Hop, Prefix, Route};

/// An elementary interval: every address in `first..=last` has the same longest match.
///
/// Inclusive at both ends: an exclusive end would overflow at the top of the space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range<A> {
    /// The first address.
    pub first: A,
    /// The last address, included.
    pub last: A,
    /// The hop of its addresses; [`Hop::NONE`] if no route covers them.
    pub hop: Hop,
}

/// Iterator over the elementary intervals of a table, in address order.
///
/// The intervals cover the whole space, or the requested [block](crate::Routes::ranges_within), without gaps or
/// overlaps: the first begins at [`Addr::MIN`], each next one right after its predecessor, and the last ends at
/// [`Addr::MAX`]. A table of *n* routes has at most *2n + 1* of them. The iterator makes one pass over the sorted
/// routes with a stack of the prefixes that cover the current address: O(n) time and O(bits) memory.
///
/// ```
/// use fibula_core::{Hop, Prefix, Range, Routes};
/// let routes: Routes<u32> = [(Prefix::host(u32::MAX), Hop::new(0))].into_iter().collect();
/// let ranges: Vec<_> = routes.ranges().collect();
/// assert_eq!(ranges, [
///     Range { first: 0, last: u32::MAX - 1, hop: Hop::NONE },
///     Range { first: u32::MAX, last: u32::MAX, hop: Hop::new(0) },
/// ]);
/// ```
#[derive(Clone, Debug)]
pub struct Ranges<'a, A: Addr> {
    routes: &'a [Route<A>],
    /// Prefixes that cover `at`, shortest first; the first is the block.
    open: Vec<(Prefix<A>, Hop)>,
    /// The first address not yet returned; `None` once the block is exhausted.
    at: Option<A>,
    merge: bool,
    /// An interval that was computed to end the merging of its predecessor, and is not yet returned.
    ahead: Option<Range<A>>,
}

impl<'a, A: Addr> Ranges<'a, A> {
    /// The intervals of the addresses in `block`, which has these routes. `around` is the hop of the addresses that
    /// none of the routes covers.
    pub(crate) fn new(routes: &'a [Route<A>], block: Prefix<A>, around: Hop, merge: bool) -> Self {
        let mut open = Vec::with_capacity(8);
        open.push((block, around));
        Self { routes, open, at: Some(block.first()), merge, ahead: None }
    }

    /// The next interval as the prefixes cut it.
    fn cut(&mut self) -> Option<Range<A>> {
        let first = self.at?;
        while let Some((route, rest)) = self.routes.split_first()
            && route.prefix.first() == first
        {
            self.open.push((route.prefix, route.hop));
            self.routes = rest;
        }
        let &(prefix, hop) = self.open.last()?;
        let end = prefix.last();
        // Routes are sorted and nested: if the next route begins inside, it ends the interval early.
        let next_start = self.routes.first().map(|r| r.prefix.first());
        let last = match next_start.and_then(A::predecessor) {
            Some(before) if before < end => before,
            _ => end,
        };
        while let Some((prefix, _)) = self.open.last()
            && prefix.last() == last
        {
            self.open.pop();
        }
        self.at = if self.open.is_empty() { None } else { last.successor() };
        Some(Range { first, last, hop })
    }
}

impl<A: Addr> Iterator for Ranges<'_, A> {
    type Item = Range<A>;

    fn next(&mut self) -> Option<Range<A>> {
        let mut range = match self.ahead.take() {
            Some(range) => range,
            None => self.cut()?,
        };
        while self.merge {
            match self.cut() {
                Some(next) if next.hop == range.hop => range.last = next.last,
                other => {
                    self.ahead = other;
                    break;
                }
            }
        }
        Some(range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Routes;

    fn routes(list: &[(&str, u32)]) -> Routes<u32> {
        list.iter().map(|(p, h)| (p.parse().unwrap(), Hop::new(*h))).collect()
    }

    fn text(routes: &Routes<u32>, merged: bool) -> Vec<alloc::string::String> {
        let ranges = if merged { routes.ranges() } else { routes.ranges_unmerged() };
        ranges
            .map(|r| alloc::format!("{}-{} {:?}", r.first.to_ip(), r.last.to_ip(), r.hop.index()))
            .collect()
    }

    /// The worked example of the DXR paper, section 3.1: hops A=0, B=1, C=2, D=3.
    #[test]
    fn dxr_papers_example() {
        let table = routes(&[
            ("0.0.0.0/0", 0),
            ("1.0.0.0/8", 1),
            ("1.2.0.0/16", 2),
            ("1.2.3.0/24", 3),
            ("1.2.4.5/32", 2),
        ]);
        assert_eq!(table.ranges_unmerged().count(), 9);
        assert_eq!(
            text(&table, true),
            [
                "0.0.0.0-0.255.255.255 Some(0)",
                "1.0.0.0-1.1.255.255 Some(1)",
                "1.2.0.0-1.2.2.255 Some(2)",
                "1.2.3.0-1.2.3.255 Some(3)",
                "1.2.4.0-1.2.255.255 Some(2)",
                "1.3.0.0-1.255.255.255 Some(1)",
                "2.0.0.0-255.255.255.255 Some(0)",
            ]
        );
    }

    #[test]
    fn empty_table_is_one_gap() {
        let table = Routes::<u128>::default();
        let all: Vec<_> = table.ranges().collect();
        assert_eq!(all, [Range { first: 0, last: u128::MAX, hop: Hop::NONE }]);
    }

    #[test]
    fn both_ends_of_the_space() {
        let table = routes(&[("0.0.0.0/32", 1), ("255.255.255.255/32", 2), ("128.0.0.0/1", 3)]);
        assert_eq!(
            text(&table, false),
            [
                "0.0.0.0-0.0.0.0 Some(1)",
                "0.0.0.1-127.255.255.255 None",
                "128.0.0.0-255.255.255.254 Some(3)",
                "255.255.255.255-255.255.255.255 Some(2)",
            ]
        );
    }

    #[test]
    fn a_gap_between_equal_hops_is_kept() {
        let table = routes(&[("10.0.0.0/8", 1), ("12.0.0.0/8", 1)]);
        assert_eq!(table.ranges().count(), 5);
        // Nested equal hops merge away entirely.
        let table = routes(&[("10.0.0.0/8", 1), ("10.1.0.0/16", 1), ("11.0.0.0/8", 1)]);
        assert_eq!(
            text(&table, true),
            [
                "0.0.0.0-9.255.255.255 None",
                "10.0.0.0-11.255.255.255 Some(1)",
                "12.0.0.0-255.255.255.255 None",
            ]
        );
    }
}
