use std::ops::Range;

use super::CELL_BITS;
use super::record::{Codes, Unit};
use super::word::BITS_MAX;

/// The form of a block of cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    Constant,
    Record,
    /// A table over this many bits.
    Table(u32),
    /// A search over whole addresses.
    Deep,
}

/// Bits of a record's keys: those after the prefix of its block.
const SEEN: u32 = 16;
/// The assumed cost of an interval of a deep block: its bytes, and its slowness expressed in bytes. It bounds
/// the memory that tables spend on intervals that are expensive to separate.
const DEEP_COST: u64 = 1000;
/// The assumed cost of each step of a search, used in place of [`DEEP_COST`] for cells that longer routes divide and for the
/// intervals beside them: such cells are deep blocks in any case.
const STEP_COST: u64 = 10;

/// The last cells of some intervals, ascending, and for each the least number of leading bits of a block that can
/// be a record with this cell as a key.
#[derive(Clone, Copy)]
pub(super) struct Ends<'a> {
    cells: &'a [u64],
    /// For the cell alone: 16-bit keys must be able to express the interval's end.
    fine: &'a [u8],
    /// Together with the preceding ends, if these are more than a record has room for.
    crowded: &'a [u8],
    /// For each interval, the number of preceding ones that are single cells divided by longer routes.
    divided: &'a [u32],
}

/// The arrays that [`Ends`] refers to.
pub(super) struct Needs {
    fine: Vec<u8>,
    crowded: Vec<u8>,
    divided: Vec<u32>,
}

impl Needs {
    /// Computes them for these cells, and records of up to so many keys; `is_divided` tells which are divided by longer routes.
    pub(super) fn new(cells: &[u64], keys_max: usize, is_divided: impl Fn(usize) -> bool) -> Self {
        // The last cell of a block is not a key of the block.
        let ends_at = |end: u64| CELL_BITS - end.trailing_ones().min(CELL_BITS);
        let fine = cells.iter().map(|&end| ends_at(end).saturating_sub(SEEN) as u8).collect();
        let crowded = |(i, &end): (usize, &u64)| match i.checked_sub(keys_max) {
            Some(before) => {
                let common = (cells[before] ^ end).leading_zeros() - (64 - CELL_BITS);
                (common + 1).min(ends_at(end)) as u8
            }
            None => 0,
        };
        let mut divided = Vec::with_capacity(cells.len() + 1);
        let mut sum = 0;
        divided.push(sum);
        divided.extend((0..cells.len()).map(|i| {
            sum += u32::from(is_divided(i));
            sum
        }));
        Self { fine, crowded: cells.iter().enumerate().map(crowded).collect(), divided }
    }

    /// The ends of the intervals `from..to`.
    pub(super) fn ends<'a>(&'a self, cells: &'a [u64], from: usize, to: usize) -> Ends<'a> {
        Ends {
            cells: &cells[from..to],
            fine: &self.fine[from..to],
            crowded: &self.crowded[from..to],
            divided: &self.divided[from..=to],
        }
    }
}

/// A block that has keys.
struct Keyed {
    ends: Range<usize>,
    keys: usize,
    /// The least number of leading bits of the block with which it is a record.
    need: u32,
    /// The number of its intervals that are cells divided by longer routes.
    divided: usize,
}

impl Keyed {
    /// Its cost as a deep block.
    fn deep(&self) -> u64 {
        let intervals = self.keys + 1;
        // The divided cells, and the intervals between and around them.
        let beside = if self.divided > 0 { 2 * self.divided + 1 } else { 0 }.min(intervals);
        let steps = u64::from(usize::BITS - self.keys.leading_zeros());
        STEP_COST * steps * beside as u64 + DEEP_COST * (intervals - beside) as u64
    }
}

impl Ends<'_> {
    /// Calls `each` with each block of `depth` bits that has keys, until it returns `false`.
    fn each_block<U: Unit>(self, depth: u32, mut each: impl FnMut(Keyed) -> bool) {
        let below = CELL_BITS - depth;
        let mut from = 0;
        while from < self.cells.len() {
            let block = self.cells[from] >> below;
            let (mut to, mut need) = (from, 0);
            while to < self.cells.len() && self.cells[to] >> below == block {
                need = need.max(self.fine[to]);
                if to - from >= U::KEYS_MAX {
                    need = need.max(self.crowded[to]);
                }
                to += 1;
            }
            let keys = to - from - usize::from(self.cells[to - 1] & low(below) == low(below));
            let divided = (self.divided[to] - self.divided[from]) as usize;
            if keys > 0 && !each(Keyed { ends: from..to, keys, need: need.into(), divided }) {
                return;
            }
            from = to;
        }
    }
}

/// Plans blocks, by dynamic programming over the strides of successive tables.
#[derive(Default)]
pub(super) struct Planner {
    /// For each number of bits that blocks after a second table can have, the prefix sums over the ends of the
    /// blocks' costs with at most one table each, modulo 2^32. Kept between plans to reuse its memory.
    sums: Vec<u32>,
}

impl Planner {
    /// The cheapest form of a block of 2^(`CELL_BITS` - `depth`) cells that distinguishes its intervals, with at
    /// most `levels` successive tables, three at most.
    ///
    /// `ends` has all intervals except the final one.
    pub(super) fn plan<C: Codes>(&mut self, ends: Ends<'_>, depth: u32, levels: usize) -> Plan {
        let mut found = (0, Plan::Constant);
        ends.each_block::<C::Unit>(depth, |block| {
            found = last::<C>(&block, depth, levels);
            true
        });
        if levels < 2 || matches!(found.1, Plan::Constant | Plan::Record) {
            return found.1;
        }
        if levels > 2 {
            self.sum_up::<C>(ends, depth + 2);
        }
        for bits in 1..=BITS_MAX.min(CELL_BITS - depth) {
            let (mut cost, below) = (table(bits), depth + bits);
            ends.each_block::<C::Unit>(below, |block| {
                let (one, plan) = last::<C>(&block, below, levels - 1);
                cost += if levels > 2 && plan != Plan::Record {
                    one.min(self.second(ends.cells.len(), block.ends, bits))
                } else {
                    one
                };
                cost < found.0
            });
            if cost < found.0 {
                found = (cost, Plan::Table(bits));
            }
        }
        found.1
    }

    /// Computes `sums` for blocks of `first` bits and more.
    fn sum_up<C: Codes>(&mut self, ends: Ends<'_>, first: u32) {
        let len = ends.cells.len() + 1;
        self.sums.resize(self.sums.len().max(len * (CELL_BITS + 1 - first) as usize), 0);
        for (depth, sums) in (first..=CELL_BITS).zip(self.sums.chunks_exact_mut(len)) {
            let (mut sum, mut at) = (0u32, 0);
            ends.each_block::<C::Unit>(depth, |block| {
                sums[at..=block.ends.start].fill(sum);
                sum = sum.wrapping_add(last::<C>(&block, depth, 1).0 as u32);
                at = block.ends.start + 1;
                true
            });
            sums[at..].fill(sum);
        }
    }

    /// The least cost of a block after a first table of `first_bits` bits, if the block is a table itself. `len` is the
    /// number of all ends.
    fn second(&self, len: usize, block: Range<usize>, first_bits: u32) -> u64 {
        let sums = self.sums.chunks_exact(len + 1).skip(first_bits as usize - 1);
        let behind = sums.map(|sums| sums[block.end].wrapping_sub(sums[block.start]));
        (1..=BITS_MAX)
            .zip(behind)
            .map(|(bits, behind)| table(bits) + u64::from(behind))
            .min()
            .unwrap_or(u64::MAX)
    }
}

/// The cost in bytes and the form of a block that has keys, with at most one table, and none if `levels` is 0. The
/// table has as few bits as suffice for records after it.
fn last<C: Codes>(block: &Keyed, depth: u32, levels: usize) -> (u64, Plan) {
    let Keyed { keys, need, .. } = *block;
    let deep = (block.deep(), Plan::Deep);
    if need <= depth {
        return (C::bytes(keys) as u64, Plan::Record);
    }
    let bits = need - depth;
    if levels == 0 || bits > BITS_MAX {
        return deep;
    }
    // The size of records is nearly proportional to their keys, so one record with all keys is counted.
    let cost = table(bits) + C::bytes(keys) as u64;
    if cost < deep.0 { (cost, Plan::Table(bits)) } else { deep }
}

/// The bytes of a table over `bits` bits.
fn table(bits: u32) -> u64 {
    4 << bits
}

/// A number with the `bits` low bits set.
pub(super) fn low(bits: u32) -> u64 {
    (1 << bits) - 1
}
