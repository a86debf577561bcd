//! Ranges that overlap: finds the range that each address belongs to.
//!
//! **The rule.** An address belongs to the narrowest range that contains it; among equally narrow ones, to the last.
//! For prefixes this is longest-prefix match, and for nested ranges it is the usual meaning.
//!
//! A range becomes several prefixes. Prefixes of two overlapping ranges nest by their alignment, which differs from
//! the rule. So a range that overlaps earlier ones announces only the part where it wins, cut at the ends of that
//! part. It also announces, with its own values, each prefix that earlier ranges announced inside this part, because
//! a longer prefix wins over a shorter one:
//!
//! ```text
//!   earlier   |----------- 0 to 9 -----------|      0/29  8/31
//!   now                 |-- 3 to 6 --|              3/32  4/31  6/32
//!   earlier   |- 0 to 2 -|                          0/31  2/32
//!   now       |----- 0 to 5 -----|                  wins 3 to 5: 3/32  4/31
//! ```
//!
//! The ends of the announced pieces are kept: 8 bytes for an IPv4 range that comes after all others, as in sorted
//! files, and about 30 for any other. Prefixes before the first range need no such search, as the longest applies in
//! any case. They are listed, 8 bytes for an IPv4 one, and become ranges if a range comes.

use std::collections::BTreeMap;

use fibula_core::{Addr, AnyPrefix, Prefix};

/// The announcements of a file, as far as later ranges need them.
#[derive(Default)]
pub(crate) struct Earlier {
    /// Prefixes before the first range.
    v4: Vec<Prefix<u32>>,
    v6: Vec<Prefix<u128>>,
    ranges: Option<Box<Overlaps>>,
}

/// The ranges of a file, by family.
#[derive(Default)]
pub(crate) struct Overlaps {
    pub(crate) v4: Ranges<u32>,
    pub(crate) v6: Ranges<u128>,
}

impl Earlier {
    /// For a file in which there are ranges.
    pub(crate) fn with_ranges() -> Self {
        Self { ranges: Some(Box::default()), ..Self::default() }
    }

    /// Keeps a prefix if no range came before. Returns whether it did.
    #[inline]
    pub(crate) fn keep(&mut self, prefix: AnyPrefix) -> bool {
        if self.ranges.is_some() {
            return false;
        }
        match prefix {
            AnyPrefix::V4(prefix) => self.v4.push(prefix),
            AnyPrefix::V6(prefix) => self.v6.push(prefix),
        }
        true
    }

    /// The ranges so far, and the prefixes before them as ranges.
    pub(crate) fn ranges(&mut self) -> &mut Overlaps {
        self.ranges.get_or_insert_with(|| {
            let mut overlaps = Box::<Overlaps>::default();
            overlaps.v4.add_announced(std::mem::take(&mut self.v4));
            overlaps.v6.add_announced(std::mem::take(&mut self.v6));
            overlaps
        })
    }
}

/// A first and a last address.
type Span<A> = (A, A);

/// The announcements of one family.
pub(crate) struct Ranges<A> {
    /// Ranges that came behind all before them: disjoint and sorted.
    ordered: Vec<Span<A>>,
    /// The other pieces and their ranges, by the logarithm of their size.
    others: Vec<BTreeMap<Span<A>, Span<A>>>,
    /// The last address of all.
    end: Option<A>,
    /// Ranges that are not in `ordered`, and pieces that were looked at for them: a hostile file can make
    /// every range overlap all others.
    rows: u64,
    spent: u64,
}

/// The pieces that a range overlaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overlap {
    /// Nothing, or only ranges that it lies in or that lie in it.
    Nested,
    /// A part of an earlier range.
    Partial,
    /// More than is credible; nothing was announced.
    TooMuch,
}

impl<A> Default for Ranges<A> {
    fn default() -> Self {
        Self { ordered: Vec::new(), others: Vec::new(), end: None, rows: 0, spent: 0 }
    }
}

impl<A: Addr> Ranges<A> {
    /// Pieces that each range may look at, on average, and pieces that may be looked at in any case.
    const CREDIBLE: u64 = 32;
    const BASE: u64 = 1 << 20;

    /// Announces the prefixes that the range from `first` to `last` wins, each with whether the same range was
    /// there before.
    #[inline]
    pub(crate) fn add(
        &mut self,
        first: A,
        last: A,
        announce: &mut dyn FnMut(Prefix<A>, bool),
    ) -> Overlap {
        if self.end.is_none_or(|end| end < first) {
            self.end = Some(last);
            self.ordered.push((first, last));
            Prefix::split_range(first, last).for_each(|prefix| announce(prefix, false));
            return Overlap::Nested;
        }
        self.add_among_others((first, last), announce)
    }

    /// Adds prefixes that were announced as they are.
    fn add_announced(&mut self, mut prefixes: Vec<Prefix<A>>) {
        // Prefixes after those around them: then each meets no more than these, and their number needs no bound.
        prefixes.sort_unstable();
        prefixes.dedup();
        for prefix in prefixes {
            self.spent = 0;
            self.add(prefix.first(), prefix.last(), &mut |_, _| {});
        }
    }

    fn add_among_others(
        &mut self,
        range: Span<A>,
        announce: &mut dyn FnMut(Prefix<A>, bool),
    ) -> Overlap {
        self.end = self.end.max(Some(range.1));
        let met = self.met(range);
        self.rows += 1;
        self.spent += met.len() as u64;
        if self.spent > Self::BASE + Self::CREDIBLE * (self.ordered.len() as u64 + self.rows) {
            return Overlap::TooMuch;
        }
        let is_partial = met.iter().any(|&(_, owner)| !holds(owner, range) && !holds(range, owner));
        let is_again = met.iter().any(|&(_, owner)| owner == range);
        let mut announce = |prefix| announce(prefix, is_again);
        let narrower: Vec<Span<A>> = met
            .iter()
            .filter(|(_, owner)| width(*owner) < width(range))
            .map(|&(piece, _)| piece)
            .collect();
        for won in without(range, narrower) {
            Prefix::split_range(won.0, won.1).for_each(&mut announce);
            for &(piece, _) in &met {
                // Most ranges lie in wider ones, of which few prefixes begin in them.
                let inside = |p: &Prefix<A>| holds(won, (p.first(), p.last()));
                if piece.0 <= won.1 && won.0 <= piece.1 {
                    Prefix::split_range(piece.0, piece.1).filter(inside).for_each(&mut announce);
                }
            }
            self.bucket(won).insert(won, range);
        }
        if is_partial { Overlap::Partial } else { Overlap::Nested }
    }

    /// The pieces that have an address of the range, with the ranges that they belong to.
    fn met(&self, (first, last): Span<A>) -> Vec<(Span<A>, Span<A>)> {
        let start = self.ordered.partition_point(|piece| piece.1 < first);
        let ordered = self.ordered[start..].iter().take_while(|piece| piece.0 <= last);
        let mut met: Vec<_> = ordered.map(|&piece| (piece, piece)).collect();
        for (log, pieces) in self.others.iter().enumerate().filter(|(_, p)| !p.is_empty()) {
            let longest = u128::MAX.checked_shr(127 - log as u32).unwrap_or(u128::MAX);
            let from = A::from_u128(first.to_u128().saturating_sub(longest));
            let near = pieces.range((from, A::MIN)..=(last, A::MAX));
            met.extend(
                near.filter(|(piece, _)| piece.1 >= first).map(|(&piece, &owner)| (piece, owner)),
            );
        }
        met
    }

    /// Where a piece is kept: those of 2^n to 2^(n + 1) - 1 addresses, less one, together.
    fn bucket(&mut self, piece: Span<A>) -> &mut BTreeMap<Span<A>, Span<A>> {
        let log = width(piece).checked_ilog2().unwrap_or(0) as usize;
        if self.others.len() <= log {
            self.others.resize_with(log + 1, BTreeMap::new);
        }
        &mut self.others[log]
    }
}

/// Addresses of a range, less one.
fn width<A: Addr>((first, last): Span<A>) -> u128 {
    last.to_u128() - first.to_u128()
}

fn holds<A: Addr>(outer: Span<A>, inner: Span<A>) -> bool {
    outer.0 <= inner.0 && inner.1 <= outer.1
}

/// The parts of a range without these.
fn without<A: Addr>(range: Span<A>, mut holes: Vec<Span<A>>) -> Vec<Span<A>> {
    holes.sort_unstable();
    let mut left = Vec::new();
    let mut next = Some(range.0);
    for (first, last) in holes {
        let Some(start) = next else { break };
        if start < first
            && let Some(end) = first.predecessor()
        {
            left.push((start, end));
        }
        next = last.successor().map(|after| after.max(start));
    }
    if let Some(start) = next
        && start <= range.1
    {
        left.push((start, range.1));
    }
    left
}

#[cfg(test)]
mod any_isa {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    /// By longest-prefix match over the announcements, and by the rule itself.
    fn answers(ranges: &[(u32, u32)], space: u32) -> [Vec<Option<usize>>; 2] {
        answers_after(&[], ranges, space)
    }

    /// The same for a file with prefixes before the first range.
    fn answers_after(
        prefixes: &[Prefix<u32>],
        ranges: &[(u32, u32)],
        space: u32,
    ) -> [Vec<Option<usize>>; 2] {
        let mut earlier = Earlier::default();
        assert!(prefixes.iter().all(|&prefix| earlier.keep(prefix.into())));
        let mut routes: HashMap<_, _> = prefixes.iter().enumerate().map(|(i, &p)| (p, i)).collect();
        let before = prefixes.iter().map(|prefix| (prefix.first(), prefix.last()));
        let ranges: Vec<_> = before.chain(ranges.iter().copied()).collect();
        for (i, &(first, last)) in ranges.iter().enumerate().skip(prefixes.len()) {
            let overlap = earlier.ranges().v4.add(first, last, &mut |prefix, _| {
                routes.insert(prefix, i);
            });
            assert_ne!(overlap, Overlap::TooMuch);
        }
        let longest = |addr| {
            (0..=32).rev().find_map(|len| routes.get(&Prefix::masked(addr, len).unwrap()).copied())
        };
        let narrowest = |addr| {
            let holders = ranges.iter().enumerate().filter(|(_, r)| r.0 <= addr && addr <= r.1);
            holders.min_by_key(|(i, r)| (r.1 - r.0, std::cmp::Reverse(*i))).map(|(i, _)| i)
        };
        [(0..space).map(longest).collect(), (0..space).map(narrowest).collect()]
    }

    #[test]
    fn the_narrower_range_wins_whatever_the_alignment() {
        let [found, wanted] = answers(&[(0, 5), (3, 9)], 12);
        assert_eq!(found, wanted);
        assert_eq!(found[..4], [Some(0); 4], "0 to 5 is the narrower one");
        let mut ranges = Ranges::<u32>::default();
        let mut add = |first, last| ranges.add(first, last, &mut |_, _| {});
        assert_eq!(add(0, 5), Overlap::Nested);
        assert_eq!(add(3, 9), Overlap::Partial);
        assert_eq!(add(3, 4), Overlap::Nested);
        assert_eq!(add(20, 29), Overlap::Nested);
    }

    #[test]
    fn repeated_ranges_are_noted() {
        let mut ranges = Ranges::<u32>::default();
        let mut again = |first, last| {
            let mut told = Vec::new();
            ranges.add(first, last, &mut |_, again| told.push(again));
            told.contains(&true)
        };
        let tried = [(0, 9), (8, 9), (0, 9), (8, 9), (20, 29), (0, 5), (20, 29)];
        let found = tried.map(|(first, last)| again(first, last));
        // 8 to 9 takes a prefix of 0 to 9, which is not the same range.
        assert_eq!(found, [false, false, true, true, false, false, true]);
    }

    #[test]
    fn the_ends_of_the_space() {
        let mut ranges = Ranges::<u128>::default();
        let mut all = Vec::new();
        assert_eq!(ranges.add(0, u128::MAX, &mut |p, _| all.push(p)), Overlap::Nested);
        assert_eq!(ranges.add(u128::MAX, u128::MAX, &mut |p, _| all.push(p)), Overlap::Nested);
        assert_eq!(ranges.add(0, u128::MAX, &mut |p, _| all.push(p)), Overlap::Nested);
        // The second time, all but the last address.
        assert_eq!((all[0].len(), all[1].len(), all.len()), (0, 128, 2 + 128));
    }

    #[test]
    fn what_overlaps_everything_is_refused() {
        let mut ranges = Ranges::<u32>::default();
        let refused = (0..1 << 17).any(|i| {
            let (first, last) = (i * 2, i * 2 + (1 << 20));
            ranges.add(first, last, &mut |_, _| {}) == Overlap::TooMuch
        });
        assert!(refused);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn every_address_has_its_narrowest_range(
            ranges in proptest::collection::vec((0u32..64, 0u32..20), 1..12)
        ) {
            let ranges: Vec<_> = ranges.iter().map(|&(first, more)| (first, first + more)).collect();
            let [found, wanted] = answers(&ranges, 90);
            prop_assert_eq!(found, wanted);
        }

        #[test]
        fn prefixes_before_them_are_ranges_too(
            prefixes in proptest::collection::vec((0u32..64, 26u8..=32), 0..8),
            ranges in proptest::collection::vec((0u32..64, 0u32..20), 1..6),
        ) {
            let prefix = |&(addr, len): &(u32, u8)| Prefix::masked(addr, len).unwrap();
            let prefixes: Vec<_> = prefixes.iter().map(prefix).collect();
            let ranges: Vec<_> = ranges.iter().map(|&(first, more)| (first, first + more)).collect();
            let [found, wanted] = answers_after(&prefixes, &ranges, 90);
            prop_assert_eq!(found, wanted);
        }
    }
}
