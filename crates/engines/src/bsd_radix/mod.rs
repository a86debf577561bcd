//! **BSD radix**: the routing table of the BSD kernels, with its masks and its way back up (Sklower, *A
//! Tree-Based Packet Routing Table for Berkeley UNIX*, USENIX Winter 1991; here as 4.4BSD and FreeBSD have
//! it, with which DXR was compared). IPv4 and IPv6. The engine [`radix`](crate::radix) is a simpler and
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
//!
//! # What differs
//!
//! Masks of addresses are contiguous, which the kernels call *normal*: then a list's entry can be checked
//! by its length, and the search with the masked address, which Sklower describes for other masks, is not
//! needed. Nodes are entries of arrays: 20 bytes for an inner node, 12 for a leaf (IPv6: 24), 8 for a route
//! in a chain or list; in the kernel DXR's paper counts some 200 bytes for an entry. Routes are not added
//! one by one; every change is a build.
//!
//! # Invariants
//!
//! - Children of a node come after it, parents before it; node 0 is the root. Chains end inside their table.
//! - No hop is beyond the hop count.
//!
//! # Limits and use
//!
//! 2^31 addresses. The baseline of DXR's paper; not for use.
//!
//! ```
//! use fibula_core::{Engine, Hop, Lookup, Routes};
//! use fibula_engines::bsd_radix::BsdRadix;
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
#[cfg(test)]
mod tests;

use std::marker::PhantomData;

use fibula_core::{
    Addr, BuildError, Engine, Follow, Hop, LoadError, Lookup, Memory, Persist, Routes, TableRef,
    TableSource,
};
use fibula_simd::Table;

const NAME: &str = "bsd-radix";
const NODES: &str = "nodes";
const LEAVES: &str = "leaves";
const ROUTES: &str = "routes";

/// An inner node: its bit, its children, its parent, its list in `routes`.
type Node = [u32; 5];

/// A child with this bit is a leaf.
const LEAF: u32 = 1 << 31;
/// No list, no chain.
const NONE: u32 = u32::MAX;
/// In the word of a route's length: it is the last one of its chain or list.
const LAST: u32 = 1 << 31;

/// The compiled tree; see the [module](self).
pub struct BsdRadix<A: Addr> {
    nodes: Table<Node>,
    /// The words of the leaves: see [`leaf`].
    leaves: Table<u32>,
    /// Chains of leaves and lists of nodes: length and [`LAST`], code.
    routes: Table<[u32; 2]>,
    family: PhantomData<A>,
}

impl<A: Addr> BsdRadix<A> {
    /// Number of inner nodes.
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Entries of lists: masks at inner nodes.
    pub fn masks(&self) -> usize {
        let leaves = self.leaves.chunks_exact(leaf::width::<A>());
        let chained = leaves.map(|words| {
            let start = words[words.len() - 1];
            if start == NONE { 0 } else { lookup::chain(&self.routes, start).count() }
        });
        self.routes.len() - chained.sum::<usize>()
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
        assert_eq!(addrs.len(), hops.len(), "as many hops as addresses");
        for (hop, &addr) in hops.iter_mut().zip(addrs) {
            *hop = lookup::lookup(self, addr, || {});
        }
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

impl<A: Addr> Follow<A> for BsdRadix<A> {}

impl<A: Addr> Persist<A> for BsdRadix<A> {
    fn tables(&self) -> Vec<TableRef<'_>> {
        vec![
            TableRef { name: NODES, bytes: self.nodes.as_bytes() },
            TableRef { name: LEAVES, bytes: self.leaves.as_bytes() },
            TableRef { name: ROUTES, bytes: self.routes.as_bytes() },
        ]
    }

    fn load(tables: &dyn TableSource, hop_count: u32, (): &()) -> Result<Self, LoadError> {
        load::load(tables, hop_count)
    }
}

/// How a leaf lies in its words: the address, the most significant word first, its parent, its chain in
/// `routes`.
mod leaf {
    use fibula_core::Addr;

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
}
