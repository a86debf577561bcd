use fibula_core::{Addr, BuildError, Hop, Range, Ranges, Routes};
use fibula_simd::Table;

use super::node::{LEAF, Node, STRIDE, node, slot};
use super::{NAME, Tables};
use crate::common::Values;

/// Compiles the routes in one pass over their ranges.
pub(super) fn build<A: Addr>(routes: &Routes<A>, s: u32) -> Result<Tables, BuildError> {
    check("next hops", (LEAF - 1).into(), routes.hop_count().into())?;
    let mut ranges = routes.ranges();
    let range = ranges.next().expect("the ranges cover the space");
    let mut builder = Builder {
        ranges,
        range,
        nodes: Vec::new(),
        leaves: Vec::new(),
        open_nodes: Vec::new(),
        open_leaves: Vec::new(),
    };
    let direct = builder.direct(s);
    let Builder { nodes, leaves, .. } = builder;
    check("nodes", LEAF.into(), nodes.len() as u64)?;
    check("leaves", u32::MAX.into(), leaves.len() as u64)?;
    Ok(Tables {
        s,
        direct: Table::from_vec(direct),
        nodes: Table::from_vec(nodes),
        leaves: Values::new(&leaves, routes.hop_count(), 0),
    })
}

fn check(what: &'static str, limit: u64, needed: u64) -> Result<(), BuildError> {
    if needed > limit {
        return Err(BuildError::Limit { engine: NAME, what, limit, needed });
    }
    Ok(())
}

fn code(hop: Hop) -> u32 {
    hop.to_bits().wrapping_add(1)
}

struct Builder<'a, A: Addr> {
    ranges: Ranges<'a, A>,
    /// The range of the first address that has no place yet.
    range: Range<A>,
    /// Finished nodes. A node is finished after its descendants, so it lies behind them.
    nodes: Vec<Node>,
    leaves: Vec<u32>,
    /// Children and leaves of the nodes under way, the innermost one's last: they become neighbours
    /// when their node is finished.
    open_nodes: Vec<Node>,
    open_leaves: Vec<u32>,
}

impl<A: Addr> Builder<'_, A> {
    /// The direct table, and all nodes.
    fn direct(&mut self, s: u32) -> Vec<u32> {
        let index = |addr: A| (addr.to_u128() >> (u32::from(A::BITS) - s)) as usize;
        let mut direct = Vec::with_capacity(1 << s);
        let mut next = Some(A::MIN);
        while let Some(first) = next {
            let last = last_of(first, s);
            let placed = if self.range.last < last {
                let node = self.node(first, s);
                direct.push(self.nodes.len() as u32);
                self.nodes.push(node);
                last
            } else {
                let code = LEAF | code(self.range.hop);
                let placed = self.whole_blocks(A::MAX, s);
                direct.resize(index(placed) + 1, code);
                placed
            };
            next = placed.successor();
        }
        direct
    }

    /// The node of the addresses that share their first `at` bits with `first`.
    fn node(&mut self, first: A, at: u32) -> Node {
        let last = last_of(first, at);
        let (mut vector, mut leafvec) = (0, 0);
        let (nodes_mark, leaves_mark) = (self.open_nodes.len(), self.open_leaves.len());
        let mut run = None;
        let mut next = Some(first);
        while let Some(first) = next {
            let bit = 1u64.wrapping_shl(slot(first, at));
            let slot_last = last_of(first, at + STRIDE);
            let placed = if self.range.last < slot_last {
                vector |= bit;
                let child = self.node(first, at + STRIDE);
                self.open_nodes.push(child);
                slot_last
            } else {
                // Children in between do not end a run: nobody asks for leaves at their slots.
                let code = code(self.range.hop);
                if run != Some(code) {
                    run = Some(code);
                    leafvec |= bit;
                    self.open_leaves.push(code);
                }
                self.whole_blocks(last, at + STRIDE)
            };
            next = placed.successor().filter(|_| placed < last);
        }
        let (base1, base0) = (self.nodes.len(), self.leaves.len());
        self.nodes.extend(self.open_nodes.drain(nodes_mark..));
        self.leaves.extend(self.open_leaves.drain(leaves_mark..));
        node(vector, leafvec, base1, base0)
    }

    /// Places the blocks of `len` bits that the range at hand covers whole, as far as `last`; returns
    /// the last address placed.
    fn whole_blocks(&mut self, last: A, len: u32) -> A {
        let end = self.range.last.min(last);
        // Where the last block is covered in part only, the one before it is the last whole one. There
        // is one: the caller has seen that the first block is.
        let placed = if last_of(end, len) == end {
            end
        } else {
            end.and(A::netmask(len as u8)).predecessor().expect("a block before this one")
        };
        if placed == self.range.last
            && let Some(range) = self.ranges.next()
        {
            self.range = range;
        }
        placed
    }
}

/// The last address of the block of `len` bits around an address. Lengths beyond the family's bits
/// count as full: the slots of the last level stand for single addresses.
fn last_of<A: Addr>(addr: A, len: u32) -> A {
    addr.or(A::netmask(len as u8).not())
}
