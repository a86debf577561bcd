//! **BSD radix**: the routing table of the BSD kernels, with its masks and its way back up (Sklower, *A
//! Tree-Based Packet Routing Table for Berkeley UNIX*, USENIX Winter 1991; here as 4.4BSD and FreeBSD have
//! it, with which DXR was compared). IPv4 and IPv6. The engine [`radix`](fibula_engines::radix) is a simpler and
//! faster relative.
//!
//! # The scheme
//!
//! The tree has the routes' *addresses*, as bit strings of full length, in its leaves; an inner node names
//! the first bit in which the addresses below it differ. Routes of one address and several lengths are a
//! chain at its leaf, the longest first. The addresses of all zeros and of all ones are always there, with
//! or without a route.
//!
//! A lookup first goes **down** by single bits of the address to some leaf, without any comparison. Then it
//! finds the first bit in which the leaf's address differs from the one looked up: a route matches if it is
//! no longer than the bits before. If none of the leaf's own is short enough, the search goes back **up**: an
//! inner node has a list of **masks**, the lengths of the routes that hold for all that is below it, each
//! with its route. The first one that is short enough is the longest match.
//!
//! ```text
//!   10.0.0.0/8  → A                     node 0: bit 0
//!   10.1.0.0/16 → B                    /             \
//!   10.1.2.0/24 → C             node 1: bit 4        255.255.255.255
//!                              /             \
//!                       0.0.0.0      node 2: bit 15   masks: /8 A
//!                                    /            \
//!                              10.0.0.0: /8 A     node 3: bit 22   masks: /16 B
//!                                                 /            \
//!                                        10.1.0.0: /16 B     10.1.2.0: /24 C
//!
//!   lookup 10.1.3.9: bits 0, 4, 15, 22 are 0, 1, 1, 1: leaf 10.1.2.0, which differs in bit 23; /24 is too long;
//!                    up: node 3 has /16: B
//! ```
//!
//! A route is listed at the highest node above its leaf whose bit is not before the route's end; if even
//! the leaf's parent is before it, the route holds for its leaf alone and is in no list.
//! # Differences
//!
//! Masks of addresses are contiguous, which the kernels call *normal*: then a list's entry can be checked
//! by its length, and the search with the masked address, which Sklower describes for other masks, is not
//! needed. Nodes are entries of arrays: 20 bytes for an inner node, 12 for a leaf (IPv6: 24), 12 for a route
//! in a chain or list; in the kernel DXR's paper counts some 200 bytes for an entry. A table is built in one
//! pass over its sorted routes.
//!
//! **Updates** are the kernel's: a changed route is found by its address, then it is an entry more or less in the chain
//! of a leaf and in one list. A new address is a new leaf, with a node above it that tests the first bit in which it
//! differs from the leaf found in its place; when an address has no more routes, its leaf and that node are removed.
//! The cost of a change depends only on the depth of the tree, whatever the prefix covers. Free slots are used again.
//!
//! # Invariants
//!
//! - A node's bit is greater than its parent's; node 0 is the root. Chains and lists are in order of length, the
//!   longest first, no two alike.
//! - No hop is beyond the hop count.
//! - A slot that is not in use has the pattern of empty slots, and nothing in use refers to it.
//!
//! # Limits and use
//!
//! 2^31 addresses. The baseline of DXR's paper; not for use.
//!
//! ```
//! use fibula_core::{Engine, Hop, Lookup, Routes};
//! use fibula_baselines::bsd_radix::BsdRadix;
//!
//! let routes: Routes<u32> = [
//!     ("10.0.0.0/8".parse()?, Hop::new(0)),
//!     ("10.1.0.0/16".parse()?, Hop::new(1)),
//!     ("10.1.2.0/24".parse()?, Hop::new(2)),
//! ]
//! .into_iter()
//! .collect();
//! let engine = BsdRadix::build(&routes, &()).unwrap();
//! assert_eq!(engine.lookup(0x0a01_0309), Hop::new(1));
//! assert_eq!(engine.lookup(0x0b00_0000), Hop::NONE);
//! # Ok::<(), fibula_core::PrefixError>(())
//! ```

mod build;
mod load;
mod lookup;
mod slots;
#[cfg(test)]
mod tests;
mod update;

use std::marker::PhantomData;

use fibula_core::{
    Addr, BuildError, Engine, Follow, Hop, LoadError, Lookup, Memory, Patched, Persist, Prefix,
    Routes, TableRef, TableSource,
};
use fibula_simd::Table;

use fibula_engines::common::each;
use slots::Slots;

const NAME: &str = "bsd-radix";
const NODES: &str = "nodes";
const LEAVES: &str = "leaves";
const ENTRIES: &str = "entries";

/// An inner node: its bit, its children, its parent, the first entry of its list.
type Node = [u32; 5];
/// A route in a chain or list: length, code, the next entry.
type Entry = [u32; 3];

/// A child with this bit is a leaf.
const LEAF: u32 = 1 << 31;
/// No list, no chain, no entry after this one.
const NONE: u32 = u32::MAX;

/// The compiled tree; see the [module](self).
pub struct BsdRadix<A: Addr> {
    nodes: Slots<Node>,
    /// The words of the leaves: see [`leaf`].
    leaves: Slots<u32>,
    /// Of the chains of leaves and the lists of nodes.
    entries: Slots<Entry>,
    family: PhantomData<A>,
}

impl<A: Addr> BsdRadix<A> {
    fn new(nodes: Table<Node>, leaves: Table<u32>, entries: Table<Entry>) -> Self {
        // Two children that are the same leaf, a leaf without a parent, a code that no hop has.
        let mut leaf = vec![0; leaf::key_words::<A>()];
        leaf.extend([NONE, NONE]);
        Self {
            nodes: Slots::new(nodes, vec![[0, LEAF, LEAF, NONE, NONE]]),
            leaves: Slots::new(leaves, leaf),
            entries: Slots::new(entries, vec![[0, 0, NONE]]),
            family: PhantomData,
        }
    }

    /// Number of inner nodes.
    pub fn nodes(&self) -> usize {
        self.nodes.used()
    }

    /// Entries of lists: masks at inner nodes.
    pub fn masks(&self) -> usize {
        self.nodes.iter().map(|node| lookup::chain(&self.entries, node[4]).count()).sum()
    }

    /// The memory accesses of a lookup: nodes on the way down and up, the leaf, routes.
    pub fn steps(&self, addr: A) -> u32 {
        let mut steps = 0;
        lookup::lookup(self, addr, || steps += 1);
        steps
    }
}

impl<A: Addr> Lookup<A> for BsdRadix<A> {
    fn lookup(&self, addr: A) -> Hop {
        lookup::lookup(self, addr, || {})
    }

    /// One after the other.
    fn lookup_batch(&self, addrs: &[A], hops: &mut [Hop]) {
        each(addrs, hops, |addr| lookup::lookup(self, addr, || {}));
    }

    fn memory(&self) -> Memory {
        Memory::of_tables(&self.tables())
    }
}

impl<A: Addr> Engine<A> for BsdRadix<A> {
    const NAME: &'static str = NAME;
    type Config = ();

    fn build(routes: &Routes<A>, (): &()) -> Result<Self, BuildError> {
        build::build(routes)
    }
}

impl<A: Addr> Follow<A> for BsdRadix<A> {
    /// Adds or removes the routes one by one, O(bits) each.
    fn follow(&mut self, routes: &Routes<A>, changed: &[Prefix<A>]) -> Result<Patched, BuildError> {
        update::patch(self, routes, changed)
    }
}

impl<A: Addr> Persist<A> for BsdRadix<A> {
    fn tables(&self) -> Vec<TableRef<'_>> {
        vec![
            TableRef { name: NODES, bytes: self.nodes.as_bytes() },
            TableRef { name: LEAVES, bytes: self.leaves.as_bytes() },
            TableRef { name: ENTRIES, bytes: self.entries.as_bytes() },
        ]
    }

    fn load(tables: &dyn TableSource, hop_count: u32, (): &()) -> Result<Self, LoadError> {
        load::load(tables, hop_count)
    }
}

/// How a leaf lies in its words: the address, the most significant word first, its parent, the first entry of
/// its chain.
mod leaf {
    use fibula_core::Addr;

    use super::NONE;

    pub(super) const fn key_words<A: Addr>() -> usize {
        A::BITS as usize / 32
    }

    pub(super) const fn width<A: Addr>() -> usize {
        key_words::<A>() + 2
    }

    /// Address, parent, chain.
    #[inline(always)]
    pub(super) fn read<A: Addr>(leaves: &[u32], index: usize) -> (A, u32, u32) {
        let words = &leaves[index * width::<A>()..][..width::<A>()];
        let (key, rest) = words.split_at(key_words::<A>());
        let key = key.iter().fold(0, |key, &word| key << 32 | u128::from(word));
        (A::from_u128(key), rest[0], rest[1])
    }

    /// The words of a leaf without a chain.
    pub(super) fn words<A: Addr>(key: A, parent: u32) -> impl Iterator<Item = u32> {
        let key = key.to_u128();
        let words = (0..key_words::<A>()).rev();
        words.map(move |word| (key >> (32 * word)) as u32).chain([parent, NONE])
    }

    pub(super) fn parent(words: &mut [u32]) -> &mut u32 {
        let at = words.len() - 2;
        &mut words[at]
    }

    pub(super) fn chain(words: &mut [u32]) -> &mut u32 {
        words.last_mut().expect("a leaf has words")
    }
}
