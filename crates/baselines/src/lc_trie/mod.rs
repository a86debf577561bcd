//! **LC-trie**: a trie with its paths and its levels compressed, in nodes of 32 bits (Nilsson, Karlsson,
//! *IP-Address Lookup Using LC-Tries*, IEEE JSAC 17(6), 1999). IPv4 and IPv6.
//!
//! # The scheme
//!
//! Routes that no other route lies in are the leaves: they are sorted in the **base vector**, each with its
//! address, its length, its hop, and the next shorter route around it. The other routes, which have longer
//! ones inside, are in the **prefix vector**: length, hop, and the next shorter one again. A lookup finds
//! one entry of the base vector, compares it, and if it does not match tries the shorter
//! routes around it: all bits that they need are in the entry.
//!
//! The **trie** finds that entry. A node is a word:
//!
//! ```text
//!   branch, 5 bits    the node has 2^branch children, neighbours in the array; 0: it is a leaf
//!   skip, 7 bits      bits of the address that are passed over: all routes below agree in them
//!   address, 20 bits  the first child; of a leaf, the entry of the base vector
//! ```
//!
//! *Path compression* is the skip. *Level compression* is the branch: a node takes the most bits for which
//! at least half of its children, the **fill factor**, have routes; of two routes it takes one. A child
//! without routes is a leaf, too: it names its neighbour in the base vector that shares the longest route
//! with it. The root takes 16 bits, however many children they leave empty.
//!
//! Five routes, and a root of 2 bits in place of 16:
//!
//! ```text
//!   base vector                      prefix vector         trie
//!   0  10.0.0.0/16     A  in p0      p0  10.0.0.0/8  B     0  branch 2, skip 0,  child 1
//!   1  10.128.0.0/16   C  in p0                            1  branch 1, skip 6,  child 5
//!   2  64.0.0.0/2      D                                   2  leaf 2            (01)
//!   3  192.0.2.0/24    E                                   3  leaf 2            (10: no route)
//!                                                          4  leaf 3            (11)
//!                                                          5  leaf 0            (00....., 0)
//!                                                          6  leaf 1            (00....., 1)
//! ```
//!
//! 10.3.0.1: the root's slot is 00, node 1; it passes over 6 bits and takes bit 8, a 0: node 5, base entry
//! 0. 10.0.0.0/16 does not cover the address, but p0 does with 8 bits: hop B. 128.0.0.1 comes to base entry
//! 2, which does not match, and no route is around it: none.
//! # Assumptions
//!
//! The fill factor 0.5 and the 16 bits of the root are those of the paper's measurements, as we know them
//! from descriptions of its program; so is the rule for two routes. According to the
//! paper, a child without routes needs an entry to be compared with; it follows from the order that the
//! neighbour with the longest common route is right. The paper packs hops as indices of a table; here they are codes, a
//! word each. A base entry has 16 bytes (IPv6: 28), a prefix entry 12.
//!
//! `lc-trie` has the paper's nodes. `lc-trie-wide` is the same in nodes of 64 bits, with addresses of 32 bits,
//! because current tables exceed 2^20 nodes.
//!
//! # Invariants
//!
//! - Children come after their parents, and no path uses more bits than an address has.
//! - A leaf names an entry of the base vector, unless that is empty. The covering routes that entries name
//!   exist, and in the prefix vector a covering route precedes the routes inside it.
//! - No hop is beyond the hop count.
//!
//! # Limits and use
//!
//! 2^20 nodes of the trie and 2^20 base entries (wide: 2^32): a table of more is refused. A baseline of
//! SAIL's paper; a form of it is the IPv4 routing table of Linux.
//!
//! ```
//! use fibula_core::{Engine, Hop, Lookup, Routes};
//! use fibula_baselines::lc_trie::{Config, LcTrie};
//!
//! let routes: Routes<u32> = [
//!     ("10.0.0.0/8".parse()?, Hop::new(1)),
//!     ("10.0.0.0/16".parse()?, Hop::new(0)),
//!     ("64.0.0.0/2".parse()?, Hop::new(3)),
//! ]
//! .into_iter()
//! .collect();
//! let engine = <LcTrie<u32>>::build(&routes, &Config::default()).unwrap();
//! assert_eq!(engine.lookup(0x0a03_0001), Hop::new(1));
//! assert_eq!(engine.lookup(0x8000_0001), Hop::NONE);
//! # Ok::<(), fibula_core::PrefixError>(())
//! ```

mod build;
mod load;
mod lookup;
mod node;
#[cfg(test)]
mod tests;

use std::marker::PhantomData;

use fibula_core::{
    Addr, BuildError, Engine, Follow, Hop, LoadError, Lookup, Memory, Persist, Routes, TableRef,
    TableSource,
};
use fibula_simd::Table;

use fibula_engines::common::each;

pub use node::Node;

const NAME: &str = "lc-trie";
const BASE: &str = "base";
const PREFIXES: &str = "prefixes";

/// Parameters of [`LcTrie`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Bits of the root's branch, 1 to 24.
    pub root: u32,
    /// The part of a node's children that must have routes, above 0 and up to 1.
    pub fill: f64,
}

impl Default for Config {
    /// The paper's: 16 bits, one half.
    fn default() -> Self {
        Self { root: 16, fill: 0.5 }
    }
}

/// The compiled trie, in nodes of 32 bits or of 64 (`LcTrie<A, u64>`); see the [module](self).
pub struct LcTrie<A: Addr, N: Node = u32> {
    trie: Table<N>,
    /// The words of the base vector: see [`base`].
    base: Table<u32>,
    /// Length, the next shorter one or [`NONE`], code.
    prefixes: Table<[u32; 3]>,
    family: PhantomData<A>,
}

/// No route around.
const NONE: u32 = u32::MAX;

impl<A: Addr, N: Node> LcTrie<A, N> {
    /// Nodes of the trie.
    pub fn nodes(&self) -> usize {
        self.trie.len()
    }

    /// Entries of the base vector: routes that no other lies in.
    pub fn base_entries(&self) -> usize {
        self.base.len() / base::width::<A>()
    }

    /// Entries of the prefix vector.
    pub fn prefix_entries(&self) -> usize {
        self.prefixes.len()
    }

    /// The memory accesses of a lookup: nodes, the base entry, entries of the prefix vector.
    pub fn steps(&self, addr: A) -> u32 {
        let mut steps = 0;
        lookup::lookup(self, addr, || steps += 1);
        steps
    }
}

impl<A: Addr, N: Node> Lookup<A> for LcTrie<A, N> {
    fn lookup(&self, addr: A) -> Hop {
        lookup::lookup(self, addr, || {})
    }

    /// One after the other, as in the paper.
    fn lookup_batch(&self, addrs: &[A], hops: &mut [Hop]) {
        each(addrs, hops, |addr| lookup::lookup(self, addr, || {}));
    }

    fn memory(&self) -> Memory {
        Memory::of_tables(&self.tables())
    }
}

impl<A: Addr, N: Node> Engine<A> for LcTrie<A, N> {
    const NAME: &'static str = NAME;
    type Config = Config;

    fn build(routes: &Routes<A>, config: &Config) -> Result<Self, BuildError> {
        let Config { root, fill } = config;
        // NaN is not above 0 either.
        let is_part = *fill > 0.0 && *fill <= 1.0;
        if !(1..=24).contains(root) || !is_part {
            let reason = format!(
                "root is {root}, must be 1 to 24; fill is {fill}, must be above 0 and up to 1"
            );
            return Err(BuildError::Config { engine: NAME, reason: reason.into() });
        }
        build::build(routes, *config)
    }
}

impl<A: Addr, N: Node> Follow<A> for LcTrie<A, N> {}

impl<A: Addr, N: Node> Persist<A> for LcTrie<A, N> {
    fn tables(&self) -> Vec<TableRef<'_>> {
        vec![
            TableRef { name: N::TRIE, bytes: self.trie.as_bytes() },
            TableRef { name: BASE, bytes: self.base.as_bytes() },
            TableRef { name: PREFIXES, bytes: self.prefixes.as_bytes() },
        ]
    }

    /// `config` is not used: a lookup finds all that it needs in the stored trie.
    fn load(tables: &dyn TableSource, hop_count: u32, _config: &Config) -> Result<Self, LoadError> {
        load::load(tables, hop_count)
    }
}

/// How an entry of the base vector lies in its words: the address, the most significant word first, its
/// length, the place of the next shorter route, the code of its hop.
mod base {
    use fibula_core::Addr;

    pub(super) const fn key_words<A: Addr>() -> usize {
        A::BITS as usize / 32
    }

    pub(super) const fn width<A: Addr>() -> usize {
        key_words::<A>() + 3
    }

    #[derive(Clone, Copy)]
    pub(super) struct Entry<A> {
        pub key: A,
        pub len: u32,
        pub around: u32,
        pub code: u32,
    }

    #[inline(always)]
    pub(super) fn read<A: Addr>(base: &[u32], index: usize) -> Entry<A> {
        let words = &base[index * width::<A>()..][..width::<A>()];
        let (key, rest) = words.split_at(key_words::<A>());
        let key = A::from_u128(key.iter().fold(0, |key, &word| key << 32 | u128::from(word)));
        Entry { key, len: rest[0], around: rest[1], code: rest[2] }
    }

    pub(super) fn push<A: Addr>(base: &mut Vec<u32>, entry: Entry<A>) {
        let key = entry.key.to_u128();
        base.extend((0..key_words::<A>()).rev().map(|word| (key >> (32 * word)) as u32));
        base.extend([entry.len, entry.around, entry.code]);
    }
}
