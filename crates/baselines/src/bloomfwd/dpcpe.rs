//! DPCPE: which lengths to expand prefixes to, by how many prefixes have which length.
//!
//! The paper's choice ([`greedy`], [`Expansion::of`]) begins with the longest length, which every prefix can be
//! expanded to, and adds, one by one, the length with which the fewest prefixes come out. The count is an
//! estimate: it takes each prefix of length *i* for 2^(*q* - *i*) of length *q*, as if no two of them met
//! ("capture" is ignored), so the actual one is never larger. The paper's name says dynamic programming, but a
//! length that was chosen stays chosen, so other lengths may make fewer prefixes. [`optimal`]
//! ([`Expansion::fewest`]) finds those by dynamic programming over what expansion really makes.
//!
//! ```
//! use fibula_baselines::bloomfwd::dpcpe::Expansion;
//! use fibula_core::{Hop, Routes};
//!
//! let routes: Routes<u128> = [
//!     ("2001::/30".parse()?, Hop::new(0)),
//!     ("2001::/32".parse()?, Hop::new(1)), // one of the four that the first is expanded to
//!     ("2002::/48".parse()?, Hop::new(2)),
//! ]
//! .into_iter()
//! .collect();
//! let expansion = Expansion::of(&routes, 3);
//! assert_eq!(expansion.lengths, [32, 48, 64]);
//! assert_eq!((expansion.estimated, expansion.actual), (6, 5));
//! assert_eq!(Expansion::fewest(&routes, 3), expansion);
//! # Ok::<(), fibula_core::PrefixError>(())
//! ```

use fibula_core::{Addr, Routes};

use super::bucket::{Address, Keyed};

/// How many prefixes there are of each length.
pub type Histogram = [u64; 129];

/// The lengths that prefixes are expanded to, and how many these make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expansion {
    /// Ascending; the last is 32, or 64 for IPv6.
    pub lengths: Vec<u8>,
    /// The sum that the lengths were chosen by: prefixes after expansion, if none captures another.
    pub estimated: u64,
    /// The prefixes that there are after expansion.
    pub actual: u64,
}

impl Expansion {
    /// At most `levels` lengths, at least one, chosen for these routes. Lengths that save nothing are
    /// not added. The default route and routes longer than the last length do not count.
    pub fn of<A: Address>(routes: &Routes<A>, levels: usize) -> Self {
        let lengths = greedy(&histogram(routes), 0, <A as Keyed>::TOP, levels);
        Self::at(routes, 0, lengths)
    }

    /// At most `levels` lengths, at least one, with which the fewest prefixes come out; of equal ones the fewest
    /// lengths. Takes O(*n* · *w*) for *n* routes and *w* lengths, where [`Expansion::of`] takes O(*n*).
    pub fn fewest<A: Address>(routes: &Routes<A>, levels: usize) -> Self {
        let lengths = optimal(routes, 0, <A as Keyed>::TOP, levels);
        Self::at(routes, 0, lengths)
    }

    /// With these lengths, ascending; routes of up to `direct` bits do not count.
    pub fn at<A: Addr>(routes: &Routes<A>, direct: u8, lengths: Vec<u8>) -> Self {
        let estimated = estimate(&histogram(routes), direct, &lengths);
        let actual = counts(routes, direct, &lengths).into_iter().fold(0, u64::saturating_add);
        Self { lengths, estimated, actual }
    }
}

/// How many of the routes have which length.
pub fn histogram<A: Addr>(routes: &Routes<A>) -> Histogram {
    let mut histogram = [0; 129];
    for route in routes.iter() {
        histogram[usize::from(route.prefix.len())] += 1;
    }
    histogram
}

/// The paper's choice of at most `levels` lengths, the last of them `top`, for the prefixes longer
/// than `direct`.
pub fn greedy(histogram: &Histogram, direct: u8, top: u8, levels: usize) -> Vec<u8> {
    let mut lengths = vec![top];
    let mut best = estimate(histogram, direct, &lengths);
    while lengths.len() < levels {
        let candidates = (direct + 1..top).filter(|len| !lengths.contains(len));
        let with = |len| {
            let at = lengths.partition_point(|other| *other < len);
            let mut with = lengths.clone();
            with.insert(at, len);
            (estimate(histogram, direct, &with), with)
        };
        match candidates.map(with).min() {
            Some((cost, with)) if cost < best => (best, lengths) = (cost, with),
            _ => break,
        }
    }
    lengths
}

/// The choice of at most `levels` lengths, the last of them `top`, that makes the fewest prefixes of those longer than
/// `direct`; of equal choices one with the fewest lengths.
///
/// What one level makes does not depend on the others: the prefixes longer than the level before, up to this one, of
/// which those inside another one make nothing of their own. Whether one is inside another depends on the level
/// before alone, so for each of these one pass over the routes is enough.
pub fn optimal<A: Addr>(routes: &Routes<A>, direct: u8, top: u8, levels: usize) -> Vec<u8> {
    Bands::new(routes, direct, top).fewest(levels)
}

/// How many prefixes each possible level makes.
pub(super) struct Bands {
    first: usize,
    /// [`outermost`] for each length before a level.
    outer: Vec<Histogram>,
}

impl Bands {
    /// Of lengths above `direct` up to `top`.
    pub(super) fn new<A: Addr>(routes: &Routes<A>, direct: u8, top: u8) -> Self {
        Self {
            first: direct.into(),
            outer: (direct..top).map(|from| outermost(routes, from)).collect(),
        }
    }

    /// How many prefixes a level of length `to` has after one of length `from`.
    pub(super) fn made(&self, from: usize, to: usize) -> u64 {
        let lengths = self.outer[from - self.first][from + 1..=to].iter().zip(from + 1..);
        lengths.fold(0u64, |sum, (&count, len)| {
            let each = 1u64.checked_shl((to - len) as u32).unwrap_or(u64::MAX);
            sum.saturating_add(count.saturating_mul(each))
        })
    }

    /// At most so many lengths, those with which the fewest prefixes come out: [`optimal`].
    pub(super) fn fewest(&self, levels: usize) -> Vec<u8> {
        let (first, top) = (self.first, self.first + self.outer.len());
        let made = |from: usize, to: usize| self.made(from, to);
        // For each length the fewest prefixes of those up to it, with so many levels, and the level before.
        let start: Vec<(u64, usize)> =
            (first..=top).map(|to| (if to > first { made(first, to) } else { 0 }, first)).collect();
        let mut best = vec![start];
        for _ in 1..levels {
            let before = &best[best.len() - 1];
            let next = (first..=top).map(|to| {
                let by = (first + 1..to)
                    .map(|from| (before[from - first].0.saturating_add(made(from, to)), from));
                by.min().unwrap_or((u64::MAX, first))
            });
            let next: Vec<(u64, usize)> = next.collect();
            best.push(next);
        }
        let count = (0..best.len()).min_by_key(|&level| best[level][top - first].0).unwrap_or(0);
        let mut lengths = vec![top as u8];
        for level in (1..=count).rev() {
            let to = usize::from(lengths[lengths.len() - 1]);
            lengths.push(best[level][to - first].1 as u8);
        }
        lengths.reverse();
        lengths
    }
}

/// How many prefixes longer than `from` have which length, without those inside another one of them.
fn outermost<A: Addr>(routes: &Routes<A>, from: u8) -> Histogram {
    let mut histogram = [0; 129];
    let mut covered = None;
    for prefix in routes.iter().map(|route| route.prefix).filter(|prefix| prefix.len() > from) {
        if covered.is_none_or(|last| last < prefix.first()) {
            covered = Some(prefix.last());
            histogram[usize::from(prefix.len())] += 1;
        }
    }
    histogram
}

/// How many prefixes the expansion makes, if none captures another; at most `u64::MAX`.
pub fn estimate(histogram: &Histogram, direct: u8, lengths: &[u8]) -> u64 {
    let mut sum = 0u64;
    let mut from = usize::from(direct) + 1;
    for &to in lengths {
        for (len, &count) in histogram.iter().enumerate().take(usize::from(to) + 1).skip(from) {
            let each = 1u64.checked_shl(u32::from(to) - len as u32).unwrap_or(u64::MAX);
            sum = sum.saturating_add(count.saturating_mul(each));
        }
        from = usize::from(to) + 1;
    }
    sum
}

/// How many prefixes there are at each length after expansion, counted without expanding: those under
/// the prefixes that no other of the same level covers.
pub fn counts<A: Addr>(routes: &Routes<A>, direct: u8, lengths: &[u8]) -> Vec<u64> {
    let mut counts = vec![0u64; lengths.len()];
    // The last address that the level's prefixes cover so far.
    let mut covered = vec![None; lengths.len()];
    for prefix in routes.iter().map(|route| route.prefix).filter(|prefix| prefix.len() > direct) {
        let level = lengths.partition_point(|len| *len < prefix.len());
        if level < lengths.len() && covered[level].is_none_or(|last| last < prefix.first()) {
            covered[level] = Some(prefix.last());
            let each = 1u64.checked_shl((lengths[level] - prefix.len()).into());
            counts[level] = counts[level].saturating_add(each.unwrap_or(u64::MAX));
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use fibula_core::{Hop, Prefix};
    use std::collections::HashSet;

    /// The choices of the paper's table 4 come about one by one: those of fewer levels are among those
    /// of more.
    #[test]
    fn more_levels_keep_the_lengths_and_cost_less() {
        let mut histogram = [0; 129];
        for (len, count) in [(20, 12), (29, 2689), (32, 12_963), (36, 3015), (40, 3966)] {
            histogram[len] = count;
        }
        (histogram[44], histogram[47], histogram[48], histogram[64]) = (4663, 1434, 34_663, 20);
        let mut before = (vec![64], u64::MAX);
        for levels in 2..=9 {
            let lengths = greedy(&histogram, 0, 64, levels);
            assert_eq!(lengths.len(), levels);
            assert!(before.0.iter().all(|len| lengths.contains(len)), "{lengths:?}");
            let cost = estimate(&histogram, 0, &lengths);
            assert!(cost < before.1);
            before = (lengths, cost);
        }
        // Nine lengths are all there are.
        assert_eq!(before, (vec![20, 29, 32, 36, 40, 44, 47, 48, 64], 63_425));
        assert_eq!(greedy(&histogram, 0, 64, 20), before.0);
        assert_eq!(greedy(&histogram, 20, 64, 20)[0], 29);
        assert_eq!(greedy(&[0; 129], 0, 64, 5), [64]);
    }

    /// Counting without expanding is counting what expanding makes.
    #[test]
    fn counts_are_those_of_distinct_prefixes() {
        for seed in 0..20 {
            let routes = fibula_testkit::tables::dense::<u32>(seed, 300);
            for (direct, lengths) in [(0, &[12, 20, 32][..]), (16, &[24, 32]), (20, &[32])] {
                let mut expanded = HashSet::new();
                for route in routes.iter().filter(|route| route.prefix.len() > direct) {
                    let len = *lengths.iter().find(|len| **len >= route.prefix.len()).unwrap();
                    for i in 0..1u32 << (len - route.prefix.len()) {
                        expanded.insert((len, route.prefix.addr() | i << (32 - len)));
                    }
                }
                let got: u64 = counts(&routes, direct, lengths).iter().sum();
                assert_eq!(got, expanded.len() as u64);
                assert!(got <= estimate(&histogram(&routes), direct, lengths));
            }
        }
    }

    /// The dynamic program against all choices of up to three lengths.
    #[test]
    fn no_choice_makes_fewer_prefixes() {
        let mut better = 0;
        for seed in 0..12 {
            let routes: Routes<u32> = fibula_testkit::tables::dense::<u32>(seed, 400)
                .iter()
                .filter(|route| route.prefix.len() <= 16)
                .collect();
            for direct in [0, 6] {
                let made = |lengths: &[u8]| counts(&routes, direct, lengths).iter().sum::<u64>();
                let mut fewest = [made(&[16]); 3];
                for a in direct + 1..16 {
                    fewest[1] = fewest[1].min(made(&[a, 16]));
                    fewest[2] = (a + 1..16).map(|b| made(&[a, b, 16])).fold(fewest[2], u64::min);
                }
                fewest[2] = fewest[2].min(fewest[1]);
                for (levels, fewest) in (1..).zip(fewest) {
                    let lengths = optimal(&routes, direct, 16, levels);
                    assert!(
                        lengths.is_sorted() && lengths.len() <= levels && lengths.ends_with(&[16])
                    );
                    assert_eq!(made(&lengths), fewest, "{lengths:?}, {levels} levels, {direct}");
                    let greedy = made(&greedy(&histogram(&routes), direct, 16, levels));
                    assert!(fewest <= greedy);
                    better += u32::from(fewest < greedy);
                }
            }
        }
        assert!(better > 10, "{better} choices are better than the paper's");
    }

    #[test]
    fn nothing_overflows() {
        assert_eq!(optimal(&Routes::<u128>::default(), 0, 64, 5), [64]);
        let routes: Routes<u128> =
            (0..200u128).map(|i| (Prefix::masked(i << 120, 8).unwrap(), Hop::new(0))).collect();
        assert_eq!(Expansion::at(&routes, 0, vec![64]).actual, 200 << 56);
        let all: Routes<u128> =
            [(Prefix::masked(0u128, 1).unwrap(), Hop::new(0))].into_iter().collect();
        assert_eq!(Expansion::at(&all, 0, vec![128]).estimated, u64::MAX);
        assert_eq!(Expansion::at(&all, 0, vec![128]).actual, u64::MAX);
    }
}
