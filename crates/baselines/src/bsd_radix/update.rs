//! Changes as the kernels make them, one route at a time: an entry of a leaf's chain, the same in one list of masks,
//! and at most one leaf with its parent that is added or removed.

use fibula_core::{Addr, BuildError, Patched, Prefix, Routes};

use super::slots::Slots;
use super::{BsdRadix, Entry, LEAF, NAME, NONE, leaf};

/// The places of a node's words.
const PARENT: usize = 3;
const LIST: usize = 4;

pub(super) fn patch<A: Addr>(
    engine: &mut BsdRadix<A>,
    routes: &Routes<A>,
    changed: &[Prefix<A>],
) -> Result<Patched, BuildError> {
    for &prefix in changed {
        match routes.get(prefix) {
            Some(hop) => engine.insert(prefix, hop.to_bits() + 1)?,
            None => engine.remove(prefix),
        }
    }
    Ok(Patched::Applied)
}

impl<A: Addr> BsdRadix<A> {
    /// Adds a route, or gives it another code.
    fn insert(&mut self, prefix: Prefix<A>, code: u32) -> Result<(), BuildError> {
        let (addr, len) = (prefix.addr(), prefix.len().into());
        let mut leaf = self.descend(addr);
        let (key, ..) = leaf::read::<A>(&self.leaves, leaf as usize);
        if key != addr {
            leaf = self.add_leaf(addr, key.common_prefix_len(addr).into())?;
        }
        let top = self.top(leaf, len);
        let chain = leaf::chain(self.leaves.slot_mut(leaf));
        *chain = set(&mut self.entries, *chain, len, code);
        if let Some(node) = top {
            let list = self.nodes[node as usize][LIST];
            self.nodes.slot_mut(node)[0][LIST] = set(&mut self.entries, list, len, code);
        }
        Ok(())
    }

    /// Removes a route, if it is there.
    fn remove(&mut self, prefix: Prefix<A>) {
        let (addr, len) = (prefix.addr(), prefix.len().into());
        let leaf = self.descend(addr);
        if leaf::read::<A>(&self.leaves, leaf as usize).0 != addr {
            return;
        }
        let top = self.top(leaf, len);
        let chain = leaf::chain(self.leaves.slot_mut(leaf));
        *chain = unset(&mut self.entries, *chain, len);
        let is_empty = *chain == NONE;
        if let Some(node) = top {
            let list = self.nodes[node as usize][LIST];
            self.nodes.slot_mut(node)[0][LIST] = unset(&mut self.entries, list, len);
        }
        if is_empty && addr != A::MIN && addr != A::MAX {
            self.remove_leaf(leaf);
        }
    }

    /// The leaf to which the bits of an address lead.
    fn descend(&self, addr: A) -> u32 {
        let mut at = 0;
        while at & LEAF == 0 {
            let [bit, left, right, ..] = self.nodes[at as usize];
            at = if addr.bit(bit as u8) { right } else { left };
        }
        at & !LEAF
    }

    /// The node that lists the leaf's route of this length: the highest one that is not before the route's end.
    fn top(&self, leaf: u32, len: u32) -> Option<u32> {
        let (_, parent, _) = leaf::read::<A>(&self.leaves, leaf as usize);
        let mut top = None;
        let mut at = parent;
        while at != NONE && self.nodes[at as usize][0] >= len {
            top = Some(at);
            at = self.nodes[at as usize][PARENT];
        }
        top
    }

    /// Adds the leaf of an address, and a node above it for the first bit in which it differs from the leaf that was
    /// found in its place.
    fn add_leaf(&mut self, addr: A, bit: u32) -> Result<u32, BuildError> {
        let needed = self.leaves.used() as u64 + 1;
        if needed > u64::from(LEAF) {
            let limit = LEAF.into();
            return Err(BuildError::Limit { engine: NAME, what: "addresses", limit, needed });
        }
        // The root is never below: the addresses of all zeros and of all ones differ in its bit.
        let mut parent = 0;
        let (side, child) = loop {
            let node = self.nodes[parent as usize];
            let side = 1 + usize::from(addr.bit(node[0] as u8));
            let child = node[side];
            if child & LEAF != 0 || self.nodes[child as usize][0] > bit {
                break (side, child);
            }
            parent = child;
        };
        let (node, leaf) = (self.nodes.take(), self.leaves.take());
        let words = self.leaves.slot_mut(leaf).iter_mut();
        words.zip(leaf::words(addr, node)).for_each(|(to, word)| *to = word);
        let list = self.list_above(child, self.nodes[parent as usize][0], bit);
        let mut children = [child, LEAF | leaf];
        if !addr.bit(bit as u8) {
            children.reverse();
        }
        self.nodes.slot_mut(node)[0] = [bit, children[0], children[1], parent, list];
        self.nodes.slot_mut(parent)[0][side] = node;
        self.set_parent(child, node);
        Ok(leaf)
    }

    /// The list of a new node between a child and its parent, with these bits: the routes below that end between
    /// them. A node below had them at the end of its own list; those of a leaf were not listed.
    fn list_above(&mut self, child: u32, parent_bit: u32, bit: u32) -> u32 {
        if child & LEAF == 0 {
            let list = self.nodes[child as usize][LIST];
            let (own, above) = cut(&mut self.entries, list, bit);
            self.nodes.slot_mut(child)[0][LIST] = own;
            return above;
        }
        let (_, _, mut at) = leaf::read::<A>(&self.leaves, (child & !LEAF) as usize);
        let mut list = NONE;
        while at != NONE {
            let [len, code, next] = self.entries[at as usize];
            if parent_bit < len && len <= bit {
                list = set(&mut self.entries, list, len, code);
            }
            at = next;
        }
        list
    }

    /// Removes a leaf and its parent, whose other child takes its place.
    fn remove_leaf(&mut self, leaf: u32) {
        let (_, node, _) = leaf::read::<A>(&self.leaves, leaf as usize);
        let [_, left, right, parent, list] = self.nodes[node as usize];
        let sibling = if left == LEAF | leaf { right } else { left };
        if sibling & LEAF == 0 {
            // Each of its own routes is longer than the node's.
            let own = self.nodes[sibling as usize][LIST];
            self.nodes.slot_mut(sibling)[0][LIST] = append(&mut self.entries, own, list);
        } else {
            let mut at = list;
            while at != NONE {
                let [_, _, next] = self.entries[at as usize];
                self.entries.give(at);
                at = next;
            }
        }
        let above = &mut self.nodes.slot_mut(parent)[0];
        let side = if above[1] == node { 1 } else { 2 };
        above[side] = sibling;
        self.set_parent(sibling, parent);
        self.nodes.give(node);
        self.leaves.give(leaf);
    }

    fn set_parent(&mut self, child: u32, parent: u32) {
        if child & LEAF == 0 {
            self.nodes.slot_mut(child)[0][PARENT] = parent;
        } else {
            *leaf::parent(self.leaves.slot_mut(child & !LEAF)) = parent;
        }
    }
}

/// Puts an entry into a list, whose entries lie in order of length, the longest first; returns its first entry.
fn set(entries: &mut Slots<Entry>, first: u32, len: u32, code: u32) -> u32 {
    let (before, at) = find(entries, first, len);
    if at != NONE && entries[at as usize][0] == len {
        entries.slot_mut(at)[0][1] = code;
        return first;
    }
    let new = entries.take();
    entries.slot_mut(new)[0] = [len, code, at];
    link(entries, first, before, new)
}

/// Removes the entry of this length, if there is one; returns the list's first entry.
fn unset(entries: &mut Slots<Entry>, first: u32, len: u32) -> u32 {
    let (before, at) = find(entries, first, len);
    if at == NONE || entries[at as usize][0] != len {
        return first;
    }
    let next = entries[at as usize][2];
    entries.give(at);
    link(entries, first, before, next)
}

/// The list's entries of more than this length, and the others.
fn cut(entries: &mut Slots<Entry>, first: u32, len: u32) -> (u32, u32) {
    let (before, at) = find(entries, first, len);
    (link(entries, first, before, NONE), at)
}

/// Two lists as one; the second one's entries are shorter.
fn append(entries: &mut Slots<Entry>, first: u32, second: u32) -> u32 {
    let (before, _) = find(entries, first, 0);
    link(entries, first, before, second)
}

/// The last entry of more than this length and the one after it, or [`NONE`] for either.
fn find(entries: &[Entry], first: u32, len: u32) -> (u32, u32) {
    let (mut before, mut at) = (NONE, first);
    while at != NONE && entries[at as usize][0] > len {
        (before, at) = (at, entries[at as usize][2]);
    }
    (before, at)
}

/// Makes `next` the entry after `before`, or the first one; returns the first one.
fn link(entries: &mut Slots<Entry>, first: u32, before: u32, next: u32) -> u32 {
    if before == NONE {
        return next;
    }
    entries.slot_mut(before)[0][2] = next;
    first
}
