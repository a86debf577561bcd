use std::ops::Range;

use super::CELL_BITS;
use super::record::Codes;
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
/// The same for a cell that longer routes divide, and its neighbouring intervals: they need a window in any case, and a
/// small record.
const WINDOW_COST: u64 = 44;
/// The assumed cost of such an interval if there are several in the block: likely its window cannot distinguish them,
/// either.
const AGAIN_COST: u64 = 20;

/// The last cells of some intervals, ascending, and for each the least number of leading bits of a block that can
/// be a record with this cell as a key.
#[derive(Clone, Copy)]
pub(super) struct Ends<'a> {
    cells: &'a [u64],
    needs: &'a [u8],
    /// For each interval, the number of preceding ones that are single cells divided by longer routes.
    divided: &'a [u32],
}

/// The arrays that [`Ends`] refers to.
pub(super) struct Needs {
    needs: Vec<u8>,
    divided: Vec<u32>,
}

impl Needs {
    /// Computes them for these cells, and records of up to so many keys; `is_divided` returns whether longer routes
    /// divide a cell.
    pub(super) fn new(cells: &[u64], keys_max: usize, is_divided: impl Fn(usize) -> bool) -> Self {
        let need = |(i, &end): (usize, &u64)| {
            // 16-bit keys must be able to express the interval's end.
            let fine = ends_at(end).saturating_sub(SEEN);
            // A record has room for the preceding ends. Where the first of them lies outside a block, this need is at
            // most the block's depth, so that it changes nothing there.
            let crowded = i.checked_sub(keys_max).map_or(0, |before| {
                let common = common(cells[before], end);
                (common + 1).min(ends_at(end))
            });
            fine.max(crowded) as u8
        };
        let mut divided = Vec::with_capacity(cells.len() + 1);
        let mut sum = 0;
        divided.push(sum);
        divided.extend((0..cells.len()).map(|i| {
            sum += u32::from(is_divided(i));
            sum
        }));
        Self { needs: cells.iter().enumerate().map(need).collect(), divided }
    }

    /// The ends of the intervals `from..to`.
    pub(super) fn ends<'a>(&'a self, cells: &'a [u64], from: usize, to: usize) -> Ends<'a> {
        Ends {
            cells: &cells[from..to],
            needs: &self.needs[from..to],
            divided: &self.divided[from..=to],
        }
    }
}

/// The smallest number of leading bits of a block that ends with this cell: the cell is not a key of such a block.
fn ends_at(end: u64) -> u32 {
    CELL_BITS - end.trailing_ones().min(CELL_BITS)
}

/// The number of leading bits that two cells share.
fn common(a: u64, b: u64) -> u32 {
    (a ^ b).leading_zeros() - (u64::BITS - CELL_BITS)
}

/// A cost in bytes. Sums of many may be inexact, but they are the same on every machine, and they cannot overflow.
type Cost = f32;

/// A cost for each number of bits that a table can have.
type Costs = [Cost; BITS_MAX as usize];

/// The bytes of tables.
const TABLES: Costs = {
    let mut tables = [0.0; BITS_MAX as usize];
    let mut bits = 1;
    while bits <= BITS_MAX {
        tables[bits as usize - 1] = (4u32 << bits) as Cost;
        bits += 1;
    }
    tables
};

/// A block of some ends, of `depth` bits.
#[derive(Clone)]
struct Block {
    ends: Range<usize>,
    depth: u32,
    /// The least number of leading bits of the block with which it is a record.
    need: u32,
    /// Only if the block is no record: for each number of bits, the costs of the blocks into which a table of so many
    /// bits divides it, with at most one more table each, and with two.
    one: Costs,
    two: Costs,
}

impl Ends<'_> {
    /// The number of keys of a block.
    fn keys(&self, ends: &Range<usize>, depth: u32) -> usize {
        ends.len() - usize::from(ends_at(self.cells[ends.end - 1]) <= depth)
    }

    /// The cost and the form of a block with keys, with at most one table. The table has as few bits as suffice for
    /// records after it.
    fn last<C: Codes>(&self, ends: &Range<usize>, depth: u32, need: u32) -> (Cost, Plan) {
        let keys = self.keys(ends, depth);
        // The size of records is nearly proportional to their keys, so one record with all keys is counted.
        let records = if keys > 0 { C::bytes(keys) as Cost } else { 0.0 };
        if need <= depth {
            return (records, Plan::Record);
        }
        let divided = (self.divided[ends.end] - self.divided[ends.start]) as usize;
        let (deep, bits) = (deep(keys, divided), need - depth);
        match TABLES.get(bits as usize - 1) {
            Some(table) if table + records < deep => (table + records, Plan::Table(bits)),
            _ => (deep, Plan::Deep),
        }
    }

    /// The costs of a block with at most one table, and with at most two.
    fn costs<C: Codes>(&self, block: &Block) -> (Cost, Cost) {
        let (one, plan) = self.last::<C>(&block.ends, block.depth, block.need);
        if plan == Plan::Record {
            return (one, one);
        }
        let two = TABLES.iter().zip(&block.one).map(|(table, after)| table + after);
        (one, two.fold(one, |least, cost| if cost < least { cost } else { least }))
    }

    /// Makes the block a larger one around the same ends.
    fn raise<C: Codes>(&self, block: &mut Block, depth: u32) {
        while block.depth > depth {
            if block.need < block.depth {
                block.depth = block.need.max(depth);
                continue;
            }
            let (one, two) = self.costs::<C>(block);
            if block.need == block.depth {
                (block.one, block.two) = ([one; _], [one; _]);
            }
            shift(&mut block.one, one);
            shift(&mut block.two, two);
            block.depth -= 1;
        }
    }

    /// Makes the left one the block of `depth` bits that both share.
    fn join<C: Codes>(&self, left: &mut Block, right: &mut Block, depth: u32) {
        self.raise::<C>(left, depth + 1);
        self.raise::<C>(right, depth + 1);
        let need = left.need.max(right.need);
        if need > depth {
            for block in [&mut *left, right] {
                let (one, two) = self.costs::<C>(block);
                if block.need <= block.depth {
                    (block.one, block.two) = ([one; _], [one; _]);
                }
                shift(&mut block.one, one);
                shift(&mut block.two, two);
            }
            left.one.iter_mut().zip(right.one).for_each(|(left, right)| *left += right);
            left.two.iter_mut().zip(right.two).for_each(|(left, right)| *left += right);
        }
        left.ends.end = right.ends.end;
        (left.depth, left.need) = (depth, need);
    }
}

/// The cost of a deep block with so many keys. So many of its intervals are cells divided by longer routes.
fn deep(keys: usize, divided: usize) -> Cost {
    let intervals = keys + 1;
    // The divided cells, and the intervals between and around them.
    let beside = if divided > 0 { 2 * divided + 1 } else { 0 }.min(intervals);
    let again = if divided > 1 { AGAIN_COST * beside as u64 } else { 0 };
    (WINDOW_COST * divided as u64 + again + DEEP_COST * (intervals - beside) as u64) as Cost
}

/// Inserts the costs after a table of one bit; the others belong to tables of one bit more than before.
fn shift(costs: &mut Costs, first: Cost) {
    let mut shifted = [first; BITS_MAX as usize];
    shifted[1..].copy_from_slice(&costs[..costs.len() - 1]);
    *costs = shifted;
}

/// Plans blocks, by dynamic programming over the strides of successive tables.
///
/// One pass over the ends, from left to right, joins the smallest blocks to larger ones, from the bottom up. Blocks
/// that can be records are only counted. Each larger block has the costs of the blocks within it, for each number of
/// bits that a table can have, which are the sums of its two halves' costs for one bit less. So the work is
/// proportional to the number of these blocks.
#[derive(Default)]
pub(super) struct Planner {
    /// The blocks that are not joined yet, and the number of bits that each shares with the preceding one. Kept between
    /// plans to reuse the memory.
    blocks: Vec<(Block, u32)>,
}

impl Planner {
    /// The cheapest form of a block of 2^(`CELL_BITS` - `depth`) cells that distinguishes its intervals, with at
    /// most `levels` successive tables, three at most. It is a deep one only if it may be, which it must without
    /// tables.
    ///
    /// `ends` has all intervals except the final one.
    pub(super) fn plan<C: Codes>(
        &mut self,
        ends: Ends<'_>,
        depth: u32,
        levels: usize,
        may_be_deep: bool,
    ) -> Plan {
        let Some(&need) = ends.needs.iter().max() else { return Plan::Constant };
        let (mut least, mut plan) = ends.last::<C>(&(0..ends.cells.len()), depth, need.into());
        match plan {
            Plan::Table(_) if levels == 0 => return Plan::Deep,
            Plan::Deep if !may_be_deep => least = Cost::INFINITY,
            Plan::Table(_) | Plan::Deep if levels > 1 => {}
            plan => return plan,
        }
        let all = self.join_all::<C>(ends, depth);
        let after = if levels > 2 { all.two } else { all.one };
        for (bits, cost) in (1..=CELL_BITS - depth).zip(TABLES.iter().zip(after)) {
            let cost = cost.0 + cost.1;
            if cost < least {
                (least, plan) = (cost, Plan::Table(bits));
            }
        }
        plan
    }

    /// The block of `depth` bits that has all ends.
    fn join_all<C: Codes>(&mut self, ends: Ends<'_>, depth: u32) -> Block {
        self.blocks.clear();
        for (i, (&cell, &need)) in ends.cells.iter().zip(ends.needs).enumerate() {
            let shared = i.checked_sub(1).map_or(depth, |before| common(ends.cells[before], cell));
            self.join_while::<C>(&ends, |with_preceding| with_preceding > shared);
            let unknown = [0.0; BITS_MAX as usize];
            let (need, depth) = (need.into(), CELL_BITS);
            let alone = Block { ends: i..i + 1, depth, need, one: unknown, two: unknown };
            self.blocks.push((alone, shared));
        }
        self.join_while::<C>(&ends, |_| true);
        let (mut all, _) = self.blocks.pop().expect("there are ends");
        ends.raise::<C>(&mut all, depth);
        all
    }

    /// Joins the last two blocks while they share so many bits.
    fn join_while<C: Codes>(&mut self, ends: &Ends<'_>, shares: impl Fn(u32) -> bool) {
        while let [.., (left, _), (right, with_left)] = &mut self.blocks[..]
            && shares(*with_left)
        {
            ends.join::<C>(left, right, *with_left);
            self.blocks.pop();
        }
    }
}

/// A number with the `bits` low bits set.
pub(super) fn low(bits: u32) -> u64 {
    (1 << bits) - 1
}
