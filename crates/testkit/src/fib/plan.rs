//! How many roots and more-specifics of each length a table gets.

use fibula_core::Addr;

use super::profile::Profile;
use super::space::Block;

/// A length of the plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cell {
    pub(super) len: u8,
    /// Prefixes that no other covers.
    pub(super) roots: u32,
    /// Prefixes that another covers.
    pub(super) inner: u32,
}

/// The share of the space in use that roots may fill. The Internet of 2022 fills 0.82 of it in IPv4.
const FULL: f64 = 0.86;

/// Scales the profile to `prefixes` in all.
///
/// The histogram and the share of more-specifics are kept to the last prefix as long as there is
/// room. Where the roots would not fit (IPv4 beyond about a million prefixes), short roots are
/// thinned out in favour of long ones, as if their blocks had been cut up; where more-specifics of a
/// length would crowd the roots above them, they become longer.
pub(super) fn plan<A: Addr>(profile: &Profile, blocks: &[Block<A>], prefixes: u32) -> Vec<Cell> {
    let mut cells = scaled(profile, prefixes);
    thin_out(&mut cells, blocks);
    fit_roots(&mut cells, blocks);
    fit_inner(&mut cells, blocks);
    cells.retain(|cell| cell.roots + cell.inner > 0);
    cells
}

/// The histogram times prefixes / total, by largest remainder, split by the share of more-specifics.
fn scaled(profile: &Profile, prefixes: u32) -> Vec<Cell> {
    let shares = profile.cells.iter().map(|(_, count, _)| f64::from(*count));
    let counts = apportion(&shares.collect::<Vec<_>>(), prefixes);
    // The rounding error of a length is carried to the next, so that the sums stay right.
    let mut carry = 0.0;
    let cells = profile.cells.iter().zip(counts).map(|(&(len, count, inner), scaled)| {
        let exact = f64::from(scaled) * f64::from(inner) / f64::from(count) + carry;
        let inner = (exact + 0.5).clamp(0.0, f64::from(scaled)) as u32;
        carry = exact - f64::from(inner);
        Cell { len, roots: scaled - inner, inner }
    });
    cells.collect()
}

/// Whole numbers in proportion to the shares, `total` in all: largest remainders first, of equal ones
/// the later.
fn apportion(shares: &[f64], total: u32) -> Vec<u32> {
    let sum: f64 = shares.iter().sum();
    let exact: Vec<f64> = shares.iter().map(|share| share * f64::from(total) / sum).collect();
    let mut counts: Vec<u32> = exact.iter().map(|value| *value as u32).collect();
    let missing = total.saturating_sub(counts.iter().sum());
    let mut order: Vec<usize> = (0..counts.len()).collect();
    order.sort_by(|&a, &b| {
        let rest = |i: usize| exact[i] - f64::from(counts[i]);
        rest(b).total_cmp(&rest(a)).then(b.cmp(&a))
    });
    for i in order.into_iter().take(missing as usize) {
        counts[i] += 1;
    }
    counts
}

/// A block's share of the whole space.
pub(super) fn size(len: u8) -> f64 {
    let mut size = 1.0;
    for _ in 0..len {
        size *= 0.5;
    }
    size
}

/// Thins out roots until they fill no more than their part of the space: those of length q are
/// divided by 1 + lambda * size(q), and all multiplied by what keeps their number.
fn thin_out<A: Addr>(cells: &mut [Cell], blocks: &[Block<A>]) {
    let room: f64 = blocks.iter().map(|block| size(block.prefix.len())).sum::<f64>() * FULL;
    let total: u32 = cells.iter().map(|cell| cell.roots).sum();
    let shares = |lambda: f64| -> Vec<f64> {
        let thinned = |cell: &Cell| f64::from(cell.roots) / (1.0 + lambda * size(cell.len));
        cells.iter().map(thinned).collect()
    };
    let filled = |shares: &[f64]| -> f64 {
        let sum: f64 = shares.iter().sum();
        let space: f64 = shares.iter().zip(&*cells).map(|(s, cell)| s * size(cell.len)).sum();
        space * f64::from(total) / sum
    };
    if total == 0 || filled(&shares(0.0)) <= room {
        return;
    }
    let (mut low, mut high) = (0.0, 1.0);
    // A bound only for form: long before it the roots are all of the longest length.
    while filled(&shares(high)) > room && high < 1e12 {
        high *= 2.0;
    }
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if filled(&shares(middle)) > room { low = middle } else { high = middle }
    }
    let counts = apportion(&shares(high), total);
    for (cell, roots) in cells.iter_mut().zip(counts) {
        cell.roots = roots;
    }
}

/// Blocks of a length that the blocks in use hold.
fn places<A: Addr>(blocks: &[Block<A>], len: u8) -> f64 {
    let inside = blocks.iter().filter(|block| block.prefix.len() <= len);
    inside.map(|block| size(block.prefix.len()) / size(len)).sum()
}

/// Roots for which the blocks in use have no place become longer by one step.
fn fit_roots<A: Addr>(cells: &mut [Cell], blocks: &[Block<A>]) {
    let mut used = 0.0;
    let mut carry = 0;
    for cell in cells {
        let wanted = cell.roots + carry;
        let free = places(blocks, cell.len) * 0.95 - used / size(cell.len);
        cell.roots = wanted.min(free.max(0.0) as u32);
        carry = wanted - cell.roots;
        used += f64::from(cell.roots) * size(cell.len);
    }
    assert_eq!(carry, 0, "the table's size is within the limits");
}

/// More-specifics for which the roots have no place: roots while there is space, else longer.
fn fit_inner<A: Addr>(cells: &mut [Cell], blocks: &[Block<A>]) {
    let mut space: f64 = cells.iter().map(|cell| f64::from(cell.roots) * size(cell.len)).sum();
    let full: f64 = blocks.iter().map(|block| size(block.prefix.len())).sum::<f64>() * FULL;
    let mut used = 0.0;
    let mut carry = 0;
    for cell in cells {
        let wanted = cell.inner + carry;
        // Half the places: a length whose every place is taken does not occur in real tables.
        let free = used / size(cell.len) / 2.0;
        cell.inner = wanted.min(free as u32);
        let fits = ((full - space).max(0.0) / size(cell.len)) as u32;
        let fits = fits.min((places(blocks, cell.len) / 2.0) as u32);
        let as_roots = (wanted - cell.inner).min(fits);
        cell.roots += as_roots;
        space += f64::from(as_roots) * size(cell.len);
        carry = wanted - cell.inner - as_roots;
        used += f64::from(cell.roots) * size(cell.len);
    }
    assert_eq!(carry, 0, "the table's size is within the limits");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fib::profile::V4;
    use crate::fib::space::blocks;

    #[test]
    fn apportions_the_total() {
        assert_eq!(apportion(&[1.0, 1.0, 1.0], 10), [3, 3, 4]);
        assert_eq!(apportion(&[0.5, 2.5], 6), [1, 5]);
        assert_eq!(apportion(&[7.0, 3.0], 0), [0, 0]);
    }

    #[test]
    fn a_profile_at_its_own_size_is_unchanged() {
        for profile in V4 {
            let total = profile.prefixes() as u32;
            let cells = plan(profile, &blocks::<u32>(), total);
            for (cell, &(len, count, _)) in cells.iter().zip(profile.cells) {
                assert_eq!((cell.len, cell.roots + cell.inner), (len, count), "{}", profile.year);
            }
        }
    }

    #[test]
    fn roots_fit_at_any_size() {
        let blocks = blocks::<u32>();
        let room: f64 = blocks.iter().map(|block| size(block.prefix.len())).sum();
        for profile in V4 {
            for prefixes in [1, 1_000, 2_000_000, 5_000_000, 10_000_000] {
                let cells = plan(profile, &blocks, prefixes);
                assert_eq!(cells.iter().map(|c| c.roots + c.inner).sum::<u32>(), prefixes);
                let filled: f64 = cells.iter().map(|c| f64::from(c.roots) * size(c.len)).sum();
                assert!(filled <= room * (FULL + 0.01), "{} {prefixes}", profile.year);
            }
        }
    }
}
