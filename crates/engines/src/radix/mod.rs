//! **radix**: a path-compressed binary trie, a relative of the BSD routing table (Sklower, *A tree-based packet routing
//! table for Berkeley UNIX*, USENIX Winter 1991), but not its scheme: see below. That one is `bsd-radix` of the crate
//! `fibula-baselines`.
//!
//! It is the engine to compare others with, and the last resort, since it takes any table of either family. Each
//! step of a lookup looks at one more bit of the address and loads one more node, so it makes 20 to 30 dependent loads
//! where the other engines make two or three.
//!
//! # The table
//!
//! A trie node represents a prefix. Nodes that neither hold a route nor have two children are left out (*path
//! compression*), so *n* routes need at most *2n* nodes: one a route, one a fork, and the root. Four routes and their
//! nodes, written `prefix → hop`:
//!
//! ```text
//!   10.0.0.0/8  → 0            node 0  0.0.0.0/0   no hop   left 1   (the root is always there)
//!   10.1.0.0/16 → 1            node 1  10.0.0.0/8  hop 0    left 2
//!   10.1.2.0/24 → 2            node 2  10.0.0.0/14 no hop   left 3  right 5   (a fork: bit 14)
//!   10.2.0.0/16 → 3            node 3  10.1.0.0/16 hop 1    left 4
//!                              node 4  10.1.2.0/24 hop 2
//!                              node 5  10.2.0.0/16 hop 3
//! ```
//!
//! The nodes lie in one flat array of 32-bit words (`nodes`), in preorder: the address of the prefix
//! (1 or 4 words, the most significant first), its length, its hop (all bits set: none), the left and
//! the right child (0: none; the root is nobody's child). 20 bytes a node for IPv4, 32 for IPv6; the
//! BSD original spends about 200.
//!
//! Looking up 10.1.9.9: nodes 0, 1, 2 and 3 cover it, the last hop seen is 1; bit 16 of the address
//! is 0, so the next is node 4, whose prefix does not cover the address: the answer is hop 1.
//! # Differences from BSD's code
//!
//! BSD tests only single bits on the way down, compares the whole address once at the leaf, and then
//! climbs back up through the masks kept at the nodes until one matches. Here every node's prefix is
//! compared on the way down, and the last hop seen is the answer: the same nodes, without the way
//! back. An address that leaves the trie early stops early.
//!
//! # Invariants
//!
//! - A child's index is larger than its parent's, and its prefix is longer: every walk ends.
//! - Lengths are at most 32 or 128, hops are below the hop count or none.
//!
//! # Limits and use
//!
//! No limit short of 2^32 nodes. Use it as the reference that a real router would have had, and as
//! the engine of last resort for a table that everything else refuses.
//!
//! ```
//! use fibula_core::{Engine, Hop, Lookup, Routes};
//! use fibula_engines::radix::Radix;
//!
//! let routes: Routes<u32> =
//!     [("10.0.0.0/8".parse()?, Hop::new(0)), ("10.1.0.0/16".parse()?, Hop::new(1))]
//!         .into_iter()
//!         .collect();
//! let radix = Radix::build(&routes, &Default::default()).unwrap();
//! assert_eq!(radix.lookup(0x0a01_0000), Hop::new(1));
//! assert_eq!(radix.lookup(0x0aff_0000), Hop::new(0));
//! assert_eq!(radix.lookup(0x0b00_0000), Hop::NONE);
//! # Ok::<(), fibula_core::PrefixError>(())
//! ```

mod build;
mod load;
mod lookup;
#[cfg(test)]
mod tests;

use core::marker::PhantomData;

use fibula_core::{
    Addr, BuildError, Engine, Follow, Hop, LoadError, Lookup, Memory, Persist, Routes, TableRef,
    TableSource,
};
use fibula_simd::Table;

use crate::common::each;

const NODES: &str = "nodes";

/// The compiled trie; see the [module](self).
pub struct Radix<A: Addr> {
    nodes: Table<u32>,
    family: PhantomData<A>,
}

impl<A: Addr> Radix<A> {
    /// Nodes of the trie, the root included.
    pub fn node_count(&self) -> usize {
        self.nodes.len() / node::stride::<A>()
    }
}

impl<A: Addr> Lookup<A> for Radix<A> {
    fn lookup(&self, addr: A) -> Hop {
        lookup::lookup(&self.nodes, addr)
    }

    /// One after the other: the loop that the other engines are measured against.
    fn lookup_batch(&self, addrs: &[A], hops: &mut [Hop]) {
        each(addrs, hops, |addr| lookup::lookup(&self.nodes, addr));
    }

    fn memory(&self) -> Memory {
        Memory::of_tables(&self.tables())
    }
}

impl<A: Addr> Engine<A> for Radix<A> {
    const NAME: &'static str = "radix";
    type Config = ();

    fn build(routes: &Routes<A>, (): &()) -> Result<Self, BuildError> {
        Ok(Self { nodes: Table::from_vec(build::build(routes)?), family: PhantomData })
    }
}

impl<A: Addr> Follow<A> for Radix<A> {}

impl<A: Addr> Persist<A> for Radix<A> {
    fn tables(&self) -> Vec<TableRef<'_>> {
        vec![TableRef { name: NODES, bytes: self.nodes.as_bytes() }]
    }

    fn load(tables: &dyn TableSource, hop_count: u32, (): &()) -> Result<Self, LoadError> {
        Ok(Self { nodes: load::load::<A>(tables, hop_count)?, family: PhantomData })
    }
}

/// How a node lies in its words.
mod node {
    use fibula_core::Addr;

    /// Words of the address.
    pub(super) const fn key_words<A: Addr>() -> usize {
        A::BITS as usize / 32
    }

    /// Words of a node: the address, then length, hop, left and right child.
    pub(super) const fn stride<A: Addr>() -> usize {
        key_words::<A>() + 4
    }

    pub(super) const LEN: usize = 0;
    pub(super) const HOP: usize = 1;
    pub(super) const LEFT: usize = 2;

    pub(super) fn key<A: Addr>(words: &[u32]) -> A {
        A::from_u128(words.iter().fold(0, |key, &word| key << 32 | u128::from(word)))
    }
}
