use fibula_core::{Addr, BuildError, Hop, Range, Ranges, Routes};
use fibula_simd::Table;

use super::buddies::Buddies;
use super::node::{LEAF, Node, STRIDE, node, slot};
use super::{NAME, Tables};
use crate::common::Values;

/// Compiles the routes in one pass over their ranges.
pub(super) fn build<A: Addr>(routes: &Routes<A>, s: u32) -> Result<Tables, BuildError> {
    check("next hops", (LEAF - 1).into(), routes.hop_count().into())?;
    let mut builder = Builder::new(routes.ranges(), Vecs::default());
    let direct = builder.direct(s);
    let Vecs { nodes, leaves } = builder.place;
    check("nodes", LEAF.into(), nodes.len() as u64)?;
    check("leaves", u32::MAX.into(), leaves.len() as u64)?;
    Ok(Tables {
        s,
        direct: Table::from_vec(direct),
        nodes: Table::from_vec(nodes),
        leaves: Values::new(&leaves, routes.hop_count(), 0),
        free_nodes: Buddies::default(),
        free_leaves: Buddies::default(),
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

/// The contents of a slot of a node or of the direct table.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Slot {
    /// The code of a hop.
    Leaf(u32),
    /// A node, whose place depends on its neighbours.
    Child(Node),
}

/// Where children and leaves of a node go: neighbours in their arrays, of which the first one's place is returned.
pub(super) trait NodeStore {
    fn nodes(&mut self, nodes: &[Node]) -> usize;
    fn leaves(&mut self, codes: &[u32]) -> usize;
}

impl<P: NodeStore> NodeStore for &mut P {
    fn nodes(&mut self, nodes: &[Node]) -> usize {
        (**self).nodes(nodes)
    }
    fn leaves(&mut self, codes: &[u32]) -> usize {
        (**self).leaves(codes)
    }
}

/// One behind the other. A node is placed after its descendants, so it lies behind them.
#[derive(Default)]
struct Vecs {
    nodes: Vec<Node>,
    leaves: Vec<u32>,
}

impl NodeStore for Vecs {
    fn nodes(&mut self, nodes: &[Node]) -> usize {
        self.nodes.extend(nodes);
        self.nodes.len() - nodes.len()
    }

    fn leaves(&mut self, codes: &[u32]) -> usize {
        self.leaves.extend(codes);
        self.leaves.len() - codes.len()
    }
}

pub(super) struct Builder<'a, A: Addr, P> {
    ranges: Ranges<'a, A>,
    /// The range of the first address that has no place yet.
    range: Range<A>,
    pub(super) place: P,
    /// Children and leaves of the nodes under way, the innermost one's last: they become neighbours
    /// when their node is finished.
    open_nodes: Vec<Node>,
    open_leaves: Vec<u32>,
}

impl<'a, A: Addr, P: NodeStore> Builder<'a, A, P> {
    pub(super) fn new(mut ranges: Ranges<'a, A>, place: P) -> Self {
        let range = ranges.next().expect("the ranges cover a block");
        Self { ranges, range, place, open_nodes: Vec::new(), open_leaves: Vec::new() }
    }

    /// The direct table, and all nodes.
    fn direct(&mut self, s: u32) -> Vec<u32> {
        let index = |addr: A| (addr.to_u128() >> (u32::from(A::BITS) - s)) as usize;
        let mut direct = Vec::with_capacity(1 << s);
        let mut next = Some(A::MIN);
        while let Some(first) = next {
            let (slot, placed) = self.next(first, A::MAX, s);
            let entry = match slot {
                Slot::Leaf(code) => LEAF | code,
                Slot::Child(node) => self.place.nodes(&[node]) as u32,
            };
            direct.resize(index(placed) + 1, entry);
            next = placed.successor();
        }
        direct
    }

    /// The block of `len` bits that begins at `first`, the first address that has no place yet, and the last address
    /// placed: that block's or, if it is a leaf, that of the last block in the same range, up to `last`.
    pub(super) fn next(&mut self, first: A, last: A, len: u32) -> (Slot, A) {
        let block_last = last_of(first, len);
        if self.range.last < block_last {
            return (Slot::Child(self.node(first, len)), block_last);
        }
        let code = code(self.range.hop);
        (Slot::Leaf(code), self.whole_blocks(last, len))
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
            let (slot, placed) = self.next(first, last, at + STRIDE);
            match slot {
                Slot::Child(child) => {
                    vector |= bit;
                    self.open_nodes.push(child);
                }
                // Children in between do not end a run, because lookups read no leaves at their slots.
                Slot::Leaf(code) if run != Some(code) => {
                    run = Some(code);
                    leafvec |= bit;
                    self.open_leaves.push(code);
                }
                Slot::Leaf(_) => {}
            }
            next = placed.successor().filter(|_| placed < last);
        }
        let base1 = self.place.nodes(&self.open_nodes[nodes_mark..]);
        let base0 = self.place.leaves(&self.open_leaves[leaves_mark..]);
        self.open_nodes.truncate(nodes_mark);
        self.open_leaves.truncate(leaves_mark);
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

/// The last address of the block of `len` bits around an address. Lengths beyond the family's bits count as full: the
/// slots of the last level are single addresses.
fn last_of<A: Addr>(addr: A, len: u32) -> A {
    addr.or(A::netmask(len as u8).not())
}
