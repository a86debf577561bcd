//! **MIHT**, the *multi-index hybrid trie*: a B+ tree over the first k bits of the routes, and for each key a
//! priority trie of the remaining bits (Lin, Hsu and Hsieh, *A multi-index hybrid trie for lookup and updates*, IEEE
//! TPDS 2014). The Bloomfwd paper compares itself with it, and this module follows section 5 of that paper: (k, m) is
//! (16, 16) for IPv4 and (32, 32) for IPv6.
//!
//! # The tables
//!
//! A route of k bits or more has a *key*, its first k bits. The keys are in a **B+ tree** of order m. Its nodes
//! (`i_nodes`) have up to m - 1 keys in one or two cache lines, and up to m pointers in as many. An external node
//! points to **priority tries** (`d_nodes`), each with the routes of one key. The *keyless* routes, which are shorter
//! than k, are in a trie of their own, the paper's PT\[-1\].
//!
//! A priority trie is a binary trie whose nodes all hold a route: the longest route of a subtrie is moved up to its
//! root, so that a search may end at its first match. A route without a further bit stays at its node, and longer
//! routes are below it. A search that meets such a route remembers it and continues.
//!
//! ```text
//!   k = 16, m = 3                        i_nodes            │ 10.1 │      root: up to 10.1 left,
//!                                                           └┬────┬┘      above right
//!   10.0.0.0/8    → A  keyless                ┌──────────────┘    └───┐
//!   10.1.0.0/16   → B                      │ 10.1 │       │ 10.2 │ 192.0 │
//!   10.1.64.0/18  → C                      └───┬──┘       └───┬──────┬────┘
//!   10.1.80.0/24  → D      d_nodes, level 16:  B stays        E      F          PT[-1], level 0:  G
//!   10.2.128.0/20 → E                     17: D ┘ longest                                    1: A ┘
//!   172.16.0.0/12 → G  keyless            18:  └ C stays
//!   192.0.2.0/24  → F
//!
//!   lookup 10.1.80.9:   key 10.1; B matches but stays; bit 16 is 0; D matches and is longer than its
//!                       level: the answer
//!   lookup 10.1.100.1:  B; not D; bit 17 is 1; C matches; bit 18 is 1, no child: C
//!   lookup 10.2.1.1:    key 10.2; not E; no child; so PT[-1]: not G; bit 0 is 0; A
//!   lookup 11.0.0.1:    no such key; PT[-1]: not G; not A: none
//! ```
//!
//! Free places in a node hold the largest number, and so show how many keys it has. A key may be this number itself;
//! then the place's pointer shows whether it is free. A separator is at least the largest key to its left, and below
//! the smallest to its right.
//!
//! A d-node stores its whole prefix instead of its suffix, which needs no more space and avoids shifts: 16 bytes for
//! IPv4 (address, hop and length, two children), 32 for IPv6. No node crosses a cache line.
//! # Differences from the paper
//!
//! - The paper ends a search in the trie of the key, and does not mention keys whose trie has no match: those may still
//!   match a keyless route, as 10.2.1.1 does above, and here they do. Keys are compared with all their bits.
//! - Nodes hold m - 1 keys, so that a search stays in its lines whatever it seeks; the paper's sixteen
//!   keys and sixteen pointers have the same two lines.
//! - `miht` answers a batch one address after the other and searches nodes by bisection: the paper.
//!   `miht-batch` takes 64 lookups down together, the keys of a node compared in vectors.
//!
//! # Invariants
//!
//! - The root, and each pointer of an internal node, is the place of a node; every external node is at
//!   the same level. Nodes have less than m keys, ascending.
//! - Each pointer of an external node is the place of a d-node, the root of a trie at level k. Children
//!   are places of d-nodes a level further down; no way is longer than an address has bits.
//! - No hop is beyond the hop count.
//!
//! `load` checks all of them, so they hold for hostile files too, and `batch.rs` may rely on them. Each node has one
//! pointer to it, so a patch changes the target of one pointer.
//!
//! # Limits and use
//!
//! Up to 2^24 next hops. Each route has its own node, no other node changes with it, and nothing becomes garbage, so a
//! build is never due: a changed prefix costs about a microsecond, whatever its length; of the engines here only SAIL_B
//! and Bloomfwd without expansion take clearly less. Lookups make three or four steps down the tree and several down a
//! trie, each a cache line or two; interleaved they take an eighth of the time (900,000 generated routes, PFX, Zen 4:
//! 27 Mlps against 3.3), and still several times that of the range tables and bitmaps. An engine for tables that change
//! all the time, and the rival that Bloomfwd is measured against.
//!
//! ```
//! use fibula_core::{Engine, Follow, Hop, Lookup, Patched, Routes};
//! use fibula_baselines::miht::{Config, Miht};
//!
//! let mut routes: Routes<u32> = [
//!     ("10.0.0.0/8".parse()?, Hop::new(0)),
//!     ("10.1.0.0/16".parse()?, Hop::new(1)),
//!     ("10.1.80.0/24".parse()?, Hop::new(2)),
//! ]
//! .into_iter()
//! .collect();
//! let mut miht = Miht::build(&routes, &Config { m: Some(4), ..Config::default() }).unwrap();
//! assert_eq!(miht.lookup(0x0a01_5009), Hop::new(2));
//! assert_eq!(miht.lookup(0x0a02_0000), Hop::new(0));
//!
//! let changed = "10.2.0.0/15".parse()?;
//! routes.apply(&[fibula_core::Route { prefix: changed, hop: Hop::new(3) }]);
//! assert_eq!(miht.follow(&routes, &[changed]), Ok(Patched::Applied));
//! assert_eq!(miht.lookup(0x0a02_0000), Hop::new(3));
//! # Ok::<(), fibula_core::PrefixError>(())
//! ```

mod batch;
mod build;
mod index;
mod load;
mod lookup;
mod pool;
#[cfg(test)]
mod tests;
mod trie;
mod update;

use std::ops::RangeInclusive;

use fibula_core::{
    BuildError, Engine, Hop, LoadError, Lookup, Memory, Persist, Routes, TableRef, TableSource,
};
use fibula_simd::{Isa, Level};

use index::Index;
pub use trie::TrieAddr;
use trie::Tries;

/// A key is a word at most.
const K_RANGE: RangeInclusive<u32> = 1..=32;
/// Of fewer children no node could be half full; of more the keys take more than two lines.
const M_RANGE: RangeInclusive<u32> = 3..=32;

const SHAPE: &str = "shape";
const I_NODES: &str = "i_nodes";
const D_NODES: &str = "d_nodes";

/// Parameters of [`Miht`].
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Bits of a key, 1 to 32; `None` is 16 for IPv4, 32 for IPv6.
    pub k: Option<u32>,
    /// Order of the B+ tree, 3 to 32; `None` is 16 for IPv4, 32 for IPv6.
    pub m: Option<u32>,
    /// How a batch is taken.
    pub batch: Batch,
    /// The instruction set of interleaved batches; one that the machine lacks gives the best of its forms.
    pub isa: Isa,
}

/// How a batch is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Batch {
    /// One address after the other: the paper.
    #[default]
    Plain,
    /// Many side by side, level by level.
    Interleaved,
}

/// The compiled tables; see the [module](self). Clones share them until one is patched.
#[derive(Clone)]
pub struct Miht<A: TrieAddr> {
    k: u32,
    index: Index,
    /// The root of PT\[-1\].
    keyless: u32,
    tries: Tries<A>,
    /// As it is stored; see [`Miht::shape`].
    shape: [u32; 5],
    level: Level,
    batch: Batch,
}

impl<A: TrieAddr> Miht<A> {
    fn new(
        k: u32,
        index: Index,
        keyless: u32,
        tries: Tries<A>,
        level: Level,
        batch: Batch,
    ) -> Self {
        let mut miht = Self { k, index, keyless, tries, shape: [0; 5], level, batch };
        miht.shape = miht.shape();
        miht
    }

    /// The numbers that are no nodes: k, m, the height of the tree, the places of its root and of PT\[-1\].
    fn shape(&self) -> [u32; 5] {
        let Index { m, height, root, .. } = self.index;
        [self.k, m, height, root, self.keyless]
    }
}

impl<A: TrieAddr> Lookup<A> for Miht<A> {
    fn lookup(&self, addr: A) -> Hop {
        lookup::lookup(self, addr)
    }

    fn lookup_batch(&self, addrs: &[A], hops: &mut [Hop]) {
        assert_eq!(addrs.len(), hops.len(), "as many hops as addresses");
        match self.batch {
            Batch::Interleaved => batch::lookup_batch(self, addrs, hops),
            Batch::Plain => {
                for (hop, &addr) in hops.iter_mut().zip(addrs) {
                    *hop = lookup::lookup(self, addr);
                }
            }
        }
    }

    fn memory(&self) -> Memory {
        Memory::of_tables(&self.tables())
    }
}

impl<A: TrieAddr> Engine<A> for Miht<A> {
    const NAME: &'static str = "miht";
    type Config = Config;

    fn build(routes: &Routes<A>, config: &Config) -> Result<Self, BuildError> {
        build::build(routes, config)
    }
}

impl<A: TrieAddr> Persist<A> for Miht<A> {
    fn tables(&self) -> Vec<TableRef<'_>> {
        vec![
            TableRef { name: SHAPE, bytes: bytemuck::bytes_of(&self.shape) },
            TableRef { name: I_NODES, bytes: self.index.lines.as_bytes() },
            TableRef { name: D_NODES, bytes: self.tries.nodes.as_bytes() },
        ]
    }

    fn load(tables: &dyn TableSource, hop_count: u32, config: &Config) -> Result<Self, LoadError> {
        load::load(tables, hop_count, config)
    }
}
