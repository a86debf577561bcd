use super::CELL_BITS;
use super::leaf::{Leaf, Line, lines};

/// What becomes of a block of cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    Constant,
    /// A leaf, or a node and its leaves.
    Lines,
    /// A table over so many bits.
    Table(u32),
    /// A search over whole addresses.
    Deep,
}

/// Bits that a table resolves, at most.
const BITS_MAX: u32 = 16;
/// What an interval of a deep block is taken to cost: its bytes, and its slowness in bytes. It bounds
/// what tables spend on intervals that lie badly.
const DEEP_COST: u64 = 1000;

/// The cheapest way to tell apart the intervals of a block of 2^(`CELL_BITS` - `depth`) cells, with
/// at most `levels` tables one behind the other: dynamic programming over their strides.
///
/// `ends` are the last cells of the intervals, but for the final one's.
pub(super) fn plan<L: Leaf>(ends: &[u64], depth: u32, levels: usize) -> Plan {
    best::<L>(ends, depth, levels, u64::MAX).1
}

/// The cost in bytes, and how; a cost over `most` need not be exact.
fn best<L: Leaf>(ends: &[u64], depth: u32, levels: usize, most: u64) -> (u64, Plan) {
    if ends.is_empty() {
        return (0, Plan::Constant);
    }
    let mut found = match lines::<L>(ends.len()) {
        Some(1) => return (size_of::<Line>() as u64, Plan::Lines),
        Some(lines) => ((size_of::<Line>() * lines) as u64, Plan::Lines),
        None => (DEEP_COST * (ends.len() as u64 + 1), Plan::Deep),
    };
    if levels > 0 {
        for bits in 1..=BITS_MAX.min(CELL_BITS - depth) {
            let cost = table::<L>(ends, depth, levels, bits, found.0.min(most));
            if cost < found.0 {
                found = (cost, Plan::Table(bits));
            }
        }
    }
    found
}

/// The cost of a table over so many bits and of all behind it.
fn table<L: Leaf>(ends: &[u64], depth: u32, levels: usize, bits: u32, most: u64) -> u64 {
    let mut cost = (4 << bits).max(16);
    let below = CELL_BITS - depth - bits;
    let inside = |end: u64| end & low(below) != low(below);
    let mut rest = ends;
    while cost < most {
        // The next child with an interval that ends inside.
        let Some(skip) = rest.iter().position(|&end| inside(end)) else { break };
        rest = &rest[skip..];
        let child = rest[0] >> below;
        let mut len = rest.iter().position(|&end| end >> below != child).unwrap_or(rest.len());
        let (ends, after) = rest.split_at(len);
        rest = after;
        len -= usize::from(!inside(ends[len - 1]));
        cost += best::<L>(&ends[..len], depth + bits, levels - 1, most - cost).0;
    }
    cost
}

/// So many low bits set.
pub(super) fn low(bits: u32) -> u64 {
    (1 << bits) - 1
}
