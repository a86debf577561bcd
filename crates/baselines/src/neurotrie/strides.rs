//! The strides: the dynamic program that replaces the paper's neural network.

use fibula_core::{Addr, Range};

use super::{MOST, Record, records_of};

/// Strides are multiples of this many bits.
pub(super) const fn step<A: Addr>() -> u32 {
    if A::BITS == 32 { 2 } else { 4 }
}

/// The blocks of each length that need a node: for each the first range that ends inside it, before its
/// last address. Level n is that of n steps.
pub(super) type Levels = Vec<Vec<u32>>;

pub(super) fn levels<A: Addr>(ranges: &[Range<A>]) -> Levels {
    let lengths = (0..u32::from(A::BITS)).step_by(step::<A>() as usize);
    let level = |len: u32| {
        let mask = A::netmask(len as u8);
        let mut blocks = Vec::new();
        let mut last_block = None;
        for (range, number) in ranges.iter().zip(0u32..) {
            let block = range.last.and(mask);
            let divides = range.last != block.or(mask.not());
            if divides && last_block != Some(block) {
                blocks.push(number);
                last_block = Some(block);
            }
        }
        blocks
    };
    lengths.map(level).collect()
}

/// The stride of each block, in steps.
pub(super) type Strides = Vec<Vec<u8>>;

/// Of the tries that are optimal for some λ, the strides of the one with the least depth within the budget; if
/// none fits, those of the smallest trie.
pub(super) fn choose(levels: &Levels, step: u32, ranges: usize, budget: f64) -> Strides {
    // First without weight on memory, then with so much that a byte costs more than all steps.
    let (mut strides, bytes) = best(levels, step, ranges, 0.0);
    if bytes <= budget {
        return strides;
    }
    let (mut low, mut high) = (1e-6, ranges as f64 + 1.0);
    (strides, _) = best(levels, step, ranges, high);
    for _ in 0..24 {
        let middle = (low * high).sqrt();
        let (candidate, bytes) = best(levels, step, ranges, middle);
        if bytes <= budget {
            (strides, high) = (candidate, middle);
        } else {
            low = middle;
        }
        if high / low < 1.02 {
            break;
        }
    }
    strides
}

/// The cost of a subtree.
#[derive(Clone, Copy, Default)]
struct Cost {
    all: f64,
    bytes: f64,
}

/// Bytes of a node.
fn bytes_of(stride: u32) -> f64 {
    (size_of::<u32>() + records_of(stride) * size_of::<Record>()) as f64
}

/// The best strides where a byte costs λ steps of one range, and the bytes of that trie.
pub(super) fn best(levels: &Levels, step: u32, ranges: usize, lambda: f64) -> (Strides, f64) {
    let most = (MOST / step) as usize;
    // For each level, prefix sums of the blocks' costs, so that the cost of a block's descendants is a
    // difference.
    let mut sums: Vec<Vec<Cost>> = vec![Vec::new(); levels.len()];
    let mut strides: Strides = vec![Vec::new(); levels.len()];
    for level in (0..levels.len()).rev() {
        let blocks = &levels[level];
        let mut sum = Cost::default();
        let mut level_sums = Vec::with_capacity(blocks.len() + 1);
        level_sums.push(sum);
        // The first descendant of the current block in each of the next levels.
        let mut at = [0usize; MOST as usize];
        for (i, &first) in blocks.iter().enumerate() {
            let end = blocks.get(i + 1).map_or(ranges as u32, |next| *next);
            let steps = f64::from(end - first);
            let mut least = (Cost { all: f64::INFINITY, bytes: 0.0 }, 0);
            for s in 1..=most.min(levels.len() - level) {
                let bytes = bytes_of(s as u32 * step);
                let mut cost = Cost { all: steps + lambda * bytes, bytes };
                if let Some(below) = levels.get(level + s) {
                    let from = at[s - 1];
                    let to = from + below[from..].iter().take_while(|&&b| b < end).count();
                    at[s - 1] = to;
                    let (before, up_to) = (sums[level + s][from], sums[level + s][to]);
                    cost.all += up_to.all - before.all;
                    cost.bytes += up_to.bytes - before.bytes;
                }
                if cost.all < least.0.all {
                    least = (cost, s as u8);
                }
            }
            sum = Cost { all: sum.all + least.0.all, bytes: sum.bytes + least.0.bytes };
            level_sums.push(sum);
            strides[level].push(least.1);
        }
        sums[level] = level_sums;
    }
    (strides, sums[0].last().map_or(0.0, |cost| cost.bytes))
}
