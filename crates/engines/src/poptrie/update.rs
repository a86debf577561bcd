//! Changes in place, as in the paper's section 3.5: the part of the trie below a change is built again from the routes,
//! and takes the old one's place under the node or direct entry that remains. Neighbours are allocated by a [buddy
//! system](super::buddies).

use std::ops::Range;

use fibula_core::{Addr, Patched, Prefix, Routes};
use fibula_simd::Table;

use super::Tables;
use super::build::{Builder, NodeStore, Slot};
use super::node::{LEAF, Node, STRIDE, node, slot};

/// Slots of a node.
const SLOTS: usize = 1 << STRIDE;

pub(super) fn patch<A: Addr>(
    tables: &mut Tables,
    routes: &Routes<A>,
    changed: &[Prefix<A>],
) -> Patched {
    if routes.hop_count() >= LEAF || routes.hop_count() > tables.leaves.most_hops() {
        return Patched::Rebuild;
    }
    let mut patcher = Patcher { routes, arrays: Arrays { tables, full: false } };
    for &prefix in changed {
        patcher.direct(prefix);
        if patcher.arrays.full {
            return Patched::Rebuild;
        }
    }
    Patched::Applied
}

struct Patcher<'a, A: Addr> {
    routes: &'a Routes<A>,
    arrays: Arrays<'a>,
}

impl<A: Addr> Patcher<'_, A> {
    /// Patches the direct entries that a prefix covers, or the nodes under the entry that covers it.
    fn direct(&mut self, prefix: Prefix<A>) {
        let s = self.arrays.tables.s;
        let block = Prefix::masked(prefix.addr(), prefix.len().min(s as u8));
        let block = block.expect("s is a prefix length");
        let index = |addr: A| (addr.to_u128() >> (u32::from(A::BITS) - s)) as usize;
        let first = index(block.first());
        let old = self.arrays.tables.direct[first];
        if old & LEAF == 0 && u32::from(prefix.len()) > s {
            let place = old as usize;
            let node = self.arrays.tables.nodes[place];
            match self.below(node, s, prefix) {
                Slot::Child(new) => self.arrays.tables.nodes.to_mut()[place] = new,
                Slot::Leaf(code) => {
                    self.arrays.tables.free_nodes.give(place..place + 1);
                    self.arrays.tables.direct.to_mut()[first] = LEAF | code;
                }
            }
            return;
        }
        for entry in first..=index(block.last()) {
            let entry = self.arrays.tables.direct[entry];
            if entry & LEAF == 0 {
                let place = entry as usize;
                self.arrays.free(self.arrays.tables.nodes[place]);
                self.arrays.tables.free_nodes.give(place..place + 1);
            }
        }
        let mut builder = Builder::new(self.routes.ranges_within(block), &mut self.arrays);
        let mut next = Some(block.first());
        while let Some(at) = next {
            let (new, placed) = builder.next(at, block.last(), s);
            let entry = match new {
                Slot::Leaf(code) => LEAF | code,
                Slot::Child(node) => builder.place.nodes(&[node]) as u32,
            };
            builder.place.tables.direct.to_mut()[index(at)..=index(placed)].fill(entry);
            next = placed.successor().filter(|_| placed < block.last());
        }
    }

    /// The new contents of the slot of a node, which decides the bits from `at` on, after a change of a longer prefix
    /// in its block.
    fn below(&mut self, old: Node, at: u32, prefix: Prefix<A>) -> Slot {
        let len = u32::from(prefix.len());
        if len < at + STRIDE {
            let mut slots = self.arrays.slots(&old);
            self.repaint(&mut slots, at, prefix);
            return self.arrays.close(old, &slots);
        }
        let at_slot = slot(prefix.addr(), at) as usize % SLOTS;
        let child = at + STRIDE;
        let new = match self.arrays.slot(&old, at_slot) {
            Slot::Child(node) if len > child => self.below(node, child, prefix),
            slot => {
                self.arrays.free_slot(slot);
                let block =
                    Prefix::masked(prefix.addr(), child as u8).expect("no longer than the prefix");
                let ranges = self.routes.ranges_within(block);
                Builder::new(ranges, &mut self.arrays).next(block.first(), block.last(), child).0
            }
        };
        let has_child = old[0] >> at_slot & 1 != 0;
        match new {
            Slot::Child(node) if has_child => {
                let place = child_place(&old, at_slot);
                self.arrays.tables.nodes.to_mut()[place] = node;
                Slot::Child(old)
            }
            Slot::Leaf(_) if !has_child && new == self.arrays.slot(&old, at_slot) => {
                Slot::Child(old)
            }
            _ => {
                let mut slots = self.arrays.slots(&old);
                slots[at_slot] = new;
                self.arrays.close(old, &slots)
            }
        }
    }

    /// Replaces the slots that a prefix covers, of a node that decides the bits from `at` on.
    fn repaint(&mut self, slots: &mut [Slot; SLOTS], at: u32, prefix: Prefix<A>) {
        let slot_of = |addr: A| slot(addr, at) as usize % SLOTS;
        // The slots of the last level have bits beyond the end of an address: each address has several of them.
        let last_slot =
            |addr: A| slot_of(addr) + (1 << (at + STRIDE).saturating_sub(A::BITS.into())) - 1;
        for slot in &slots[slot_of(prefix.first())..=last_slot(prefix.last())] {
            self.arrays.free_slot(*slot);
        }
        let mut builder = Builder::new(self.routes.ranges_within(prefix), &mut self.arrays);
        let mut next = Some(prefix.first());
        while let Some(first) = next {
            let (new, placed) = builder.next(first, prefix.last(), at + STRIDE);
            slots[slot_of(first)..=last_slot(placed)].fill(new);
            next = placed.successor().filter(|_| placed < prefix.last());
        }
    }
}

/// The place of the child of a slot that has one.
fn child_place(node: &Node, slot: usize) -> usize {
    (node[2] >> 32) as usize + (node[0] & ((1 << slot) - 1)).count_ones() as usize
}

fn children(node: &Node) -> Range<usize> {
    let base = (node[2] >> 32) as usize;
    base..base + node[0].count_ones() as usize
}

fn leaves(node: &Node) -> Range<usize> {
    let base = node[2] as u32 as usize;
    base..base + node[1].count_ones() as usize
}

/// The arrays of a poptrie as they are patched.
struct Arrays<'a> {
    tables: &'a mut Tables,
    /// Whether an array would exceed the range of its indices, so that a build is needed.
    full: bool,
}

impl Arrays<'_> {
    fn slot(&self, node: &Node, slot: usize) -> Slot {
        if node[0] >> slot & 1 != 0 {
            return Slot::Child(self.tables.nodes[child_place(node, slot)]);
        }
        let runs = (node[1] & (!0 >> (63 - slot))).count_ones() as usize;
        Slot::Leaf(self.tables.leaves.code(leaves(node).start + runs - 1))
    }

    fn slots(&self, node: &Node) -> [Slot; SLOTS] {
        std::array::from_fn(|slot| self.slot(node, slot))
    }

    /// The node with these slots, in place of an old one, whose places they take as far as they fit.
    fn close(&mut self, old: Node, slots: &[Slot; SLOTS]) -> Slot {
        let (mut nodes, mut codes) = (Vec::with_capacity(SLOTS), Vec::with_capacity(SLOTS));
        let (mut vector, mut leafvec) = (0, 0);
        for (slot, of_slot) in slots.iter().enumerate() {
            match *of_slot {
                Slot::Child(node) => {
                    vector |= 1 << slot;
                    nodes.push(node);
                }
                Slot::Leaf(code) if codes.last() != Some(&code) => {
                    leafvec |= 1 << slot;
                    codes.push(code);
                }
                Slot::Leaf(_) => {}
            }
        }
        let (old_nodes, old_leaves) = (children(&old), leaves(&old));
        if let ([], [code]) = (&nodes[..], &codes[..]) {
            self.tables.free_nodes.give(old_nodes);
            self.free_leaves(old_leaves);
            return Slot::Leaf(*code);
        }
        let base1 = if nodes.len() == old_nodes.len() {
            self.tables.nodes.to_mut()[old_nodes.clone()].copy_from_slice(&nodes);
            old_nodes.start
        } else {
            self.tables.free_nodes.give(old_nodes);
            self.nodes(&nodes)
        };
        let base0 = if codes.len() == old_leaves.len() {
            self.tables.leaves.write(old_leaves.start, &codes);
            old_leaves.start
        } else {
            self.free_leaves(old_leaves);
            self.leaves(&codes)
        };
        Slot::Child(node(vector, leafvec, base1, base0))
    }

    /// Frees everything below a slot.
    fn free_slot(&mut self, slot: Slot) {
        if let Slot::Child(node) = slot {
            self.free(node);
        }
    }

    /// Frees everything below a node, but not the node, whose place is not known here.
    fn free(&mut self, node: Node) {
        for child in children(&node) {
            self.free(self.tables.nodes[child]);
        }
        self.tables.free_nodes.give(children(&node));
        self.free_leaves(leaves(&node));
    }

    /// Stored leaves are codes of the table, whether they are in use or not.
    fn free_leaves(&mut self, places: Range<usize>) {
        self.tables.leaves.write(places.start, &[0; SLOTS][..places.len()]);
        self.tables.free_leaves.give(places);
    }

    /// The length of an array that grows, or none if it would be too long.
    fn grown(&mut self, len: usize, limit: u32) -> Option<usize> {
        let new = len + len / 4 + 8 * SLOTS;
        self.full |= new > limit as usize;
        (!self.full).then_some(new)
    }
}

impl NodeStore for Arrays<'_> {
    fn nodes(&mut self, nodes: &[Node]) -> usize {
        if nodes.is_empty() || self.full {
            return 0;
        }
        let at = match self.tables.free_nodes.take(nodes.len()) {
            Some(at) => at,
            None => {
                let len = self.tables.nodes.len();
                let Some(new) = self.grown(len, LEAF) else { return 0 };
                let old = &self.tables.nodes;
                self.tables.nodes = Table::with(new, |new| new[..len].copy_from_slice(old));
                self.tables.free_nodes.give(len..new);
                self.tables.free_nodes.take(nodes.len()).expect("the array has grown")
            }
        };
        self.tables.nodes.to_mut()[at..at + nodes.len()].copy_from_slice(nodes);
        at
    }

    fn leaves(&mut self, codes: &[u32]) -> usize {
        if codes.is_empty() || self.full {
            return 0;
        }
        let at = match self.tables.free_leaves.take(codes.len()) {
            Some(at) => at,
            None => {
                let len = self.tables.leaves.len();
                let Some(new) = self.grown(len, u32::MAX) else { return 0 };
                self.tables.leaves.grow(new);
                self.tables.free_leaves.give(len..new);
                self.tables.free_leaves.take(codes.len()).expect("the array has grown")
            }
        };
        self.tables.leaves.write(at, codes);
        at
    }
}
