//! **poptrie**: a 64-ary trie whose nodes find children and leaves by counting bits (Asai, Ohara,
//! *Poptrie: A Compressed Trie with Population Count for Fast and Scalable Software IP Routing Table
//! Lookup*, SIGCOMM 2015). IPv4 and IPv6.
//!
//! # The scheme
//!
//! The first s bits of an address index the **direct table**: an entry is a hop, or a node of the trie
//! behind it. A node decides six more bits. For each of its 64 *slots* it has a child, or a leaf: the
//! routes are pushed down to the leaves, so there is nothing to come back for. Children are neighbours
//! in the array of **nodes** and leaves are neighbours in the array of **leaves**, so two bit vectors
//! and two bases are the whole node, 24 bytes:
//!
//! ```text
//!   vector   64 bits   the slots that have a child
//!   leafvec  64 bits   the slots at which a run of equal leaves begins; children do not end a run
//!   base1    32 bits   the first child          child of slot v  base1 + ones(vector, 0..=v) - 1
//!   base0    32 bits   the first leaf           leaf of slot v   base0 + ones(leafvec, 0..=v) - 1
//! ```
//!
//! Three routes with s = 16:
//!
//! ```text
//!   10.1.0.0/16  → A     direct         nodes                                      leaves
//!   10.1.64.0/18 → B      10.0   none    0  vector -   leafvec 0 32 48  base0 0     0  B C B
//!   10.1.66.0/24 → C      10.1   1 ──►   1  vector 16  leafvec 0 17 32  base0 3     3  A B A
//!                         10.2   none       base1 0
//! ```
//!
//! Slots of node 1 are bits 16 to 21, blocks of /22. 10.1.66.7 is in slot 16, which has a child: the
//! only one, node 0. Its slots are bits 22 to 27; the address is in slot 32, which has none. Two runs
//! have begun up to there, so the leaf is 0 + 2 - 1: C. 10.1.68.1 is in slot 17 of node 1: leaf
//! 3 + 2 - 1, B.
//!
//! **The last level.** 32 - s and 128 - s are not multiples of 6: the bits after the end of an address are zeros, so a
//! node there uses 4 or 16 of its slots, and runs cover the slots between them.
//!
//! # What is ours
//!
//! - Hops are stored plus one; 0 is "no route" ([`Hop::NONE`]). Leaves have 16 bits or, where hops
//!   exceed those, 32.
//! - Tables are written in one pass over the elementary intervals, children before their parents. The
//!   paper adds routes one by one.
//! - [`Config::by_level`]: a batch descends together, level by level. The faithful form is the paper's loop; an
//!   out-of-order core overlaps its lookups as far as it predicts their depth.
//!
//! # Updates
//!
//! As in the paper, a change replaces a part of the trie, and the rest stays where it is. That part is the smallest
//! that contains the whole changed prefix: some slots of one node with everything below them, or direct entries. It is
//! built again from the routes. If the node then has another number of children or leaves, these move to other places,
//! which a buddy system gives; if all its addresses have one hop, it becomes a leaf of its parent. A patched trie has
//! the nodes and leaves that a build makes, in other places. The paper's threads read the arrays while they are
//! patched, so it changes a pointer last; ours have tables that do not change (see `Follow` in `fibula-core`).
//!
//! # Invariants
//!
//! - The nodes that direct entries name exist, and so do all children and leaves of a node. Each slot without a child
//!   has a run that begins at or before it.
//! - Each node has one parent, or one direct entry, and there are no more levels than an address has bits. So no lookup
//!   loops. Each leaf belongs to one node.
//! - Hops in use are below the hop count, or none.
//!
//! # Limits and use
//!
//! s is 16 or 18. 2^31 - 1 hops, 2^31 nodes, 2^32 leaves. A full IPv4 table takes 2 to 3 MB with some
//! dozens of next hops, where neighbours often agree, and 5 MB with 256 that have nothing in common; it
//! builds in 25 ms. By level it is faster than DXR where addresses hit long prefixes. IPv6 prefixes
//! are five levels deep, one cache miss each, which PlanB does not have to pay.
//!
//! ```
//! use fibula_core::{Engine, Hop, Lookup, Routes};
//! use fibula_engines::poptrie::{Config, Poptrie};
//!
//! let routes: Routes<u32> = [
//!     ("10.1.0.0/16".parse()?, Hop::new(0)),
//!     ("10.1.64.0/18".parse()?, Hop::new(1)),
//!     ("10.1.66.0/24".parse()?, Hop::new(2)),
//! ]
//! .into_iter()
//! .collect();
//! let poptrie = Poptrie::build(&routes, &Config { s: 16, ..Config::default() }).unwrap();
//! assert_eq!((poptrie.nodes(), poptrie.leaves()), (2, 6));
//! let mut hops = [Hop::NONE; 4];
//! poptrie.lookup_batch(&[0x0a01_4207, 0x0a01_4401, 0x0a01_0000, 0x0a02_0000], &mut hops);
//! assert_eq!(hops, [Hop::new(2), Hop::new(1), Hop::new(0), Hop::NONE]);
//! # Ok::<(), fibula_core::PrefixError>(())
//! ```

mod batch;
mod buddies;
mod build;
mod load;
mod lookup;
mod node;
#[cfg(test)]
mod tests;
mod update;

use std::marker::PhantomData;

use fibula_core::{
    Addr, BuildError, Engine, Follow, Hop, LoadError, Lookup, Memory, Patched, Persist, Prefix,
    Routes, TableRef, TableSource,
};
use fibula_simd::{Isa, Level, Table};

use crate::common::Values;
use buddies::Buddies;
use node::Node;

const NAME: &str = "poptrie";
const DIRECT: &str = "direct";
const NODES: &str = "nodes";

/// The values of s that the engine takes: the paper's.
pub const S_VALUES: [u32; 2] = [16, 18];

/// Parameters of [`Poptrie`].
#[derive(Clone, Debug)]
pub struct Config {
    /// How many leading bits of the address index the direct table: 16 or 18, the default.
    pub s: u32,
    /// Whether a batch goes down together, level by level, which is ours; the paper looks up one
    /// address after the other.
    pub by_level: bool,
    /// The instructions that lookups may use.
    pub isa: Isa,
}

impl Default for Config {
    fn default() -> Self {
        Self { s: 18, by_level: true, isa: Isa::detect() }
    }
}

/// The compiled tables; see the [module](self).
pub struct Poptrie<A: Addr> {
    tables: Tables,
    by_level: bool,
    level: Level,
    family: PhantomData<A>,
}

/// The paper's tables.
struct Tables {
    s: u32,
    /// For each value of the first s bits a hop or a node: "direct pointing".
    direct: Table<u32>,
    /// N.
    nodes: Table<Node>,
    /// L: codes of hops.
    leaves: Values,
    /// The places of both that patches have left, or added when an array grew.
    free_nodes: Buddies,
    free_leaves: Buddies,
}

impl<A: Addr> Poptrie<A> {
    fn new(tables: Tables, by_level: bool, isa: Isa) -> Self {
        Self { tables, by_level, level: isa.level(), family: PhantomData }
    }

    /// The number of leading address bits that index the direct table.
    pub fn s(&self) -> u32 {
        self.tables.s
    }

    /// Number of nodes: the paper's "inodes".
    pub fn nodes(&self) -> usize {
        self.tables.nodes.len() - self.tables.free_nodes.places()
    }

    /// Number of leaves.
    pub fn leaves(&self) -> usize {
        self.tables.leaves.len() - self.tables.free_leaves.places()
    }
}

impl<A: Addr> Lookup<A> for Poptrie<A> {
    fn lookup(&self, addr: A) -> Hop {
        self.level.run(lookup::One { tables: &self.tables, addr })
    }

    fn lookup_batch(&self, addrs: &[A], hops: &mut [Hop]) {
        assert_eq!(addrs.len(), hops.len(), "as many hops as addresses");
        batch::lookup_batch(&self.tables, self.level, self.by_level, addrs, hops);
    }

    fn memory(&self) -> Memory {
        Memory::of_tables(&self.tables())
    }
}

impl<A: Addr> Engine<A> for Poptrie<A> {
    const NAME: &'static str = NAME;
    type Config = Config;

    fn build(routes: &Routes<A>, config: &Config) -> Result<Self, BuildError> {
        if !S_VALUES.contains(&config.s) {
            let reason = format!("s is {}, must be 16 or 18", config.s).into();
            return Err(BuildError::Config { engine: NAME, reason });
        }
        Ok(Self::new(build::build(routes, config.s)?, config.by_level, config.isa))
    }
}

impl<A: Addr> Follow<A> for Poptrie<A> {
    /// Replaces the parts of the trie below the changed prefixes: O(nodes and routes there). [`Patched::Rebuild`] when
    /// hops no longer fit the leaves, or an array its indices.
    fn follow(&mut self, routes: &Routes<A>, changed: &[Prefix<A>]) -> Result<Patched, BuildError> {
        Ok(update::patch(&mut self.tables, routes, changed))
    }
}

impl<A: Addr> Persist<A> for Poptrie<A> {
    fn tables(&self) -> Vec<TableRef<'_>> {
        let Tables { direct, nodes, leaves, .. } = &self.tables;
        vec![
            TableRef { name: DIRECT, bytes: direct.as_bytes() },
            TableRef { name: NODES, bytes: nodes.as_bytes() },
            leaves.table_ref(),
        ]
    }

    fn load(tables: &dyn TableSource, hop_count: u32, config: &Config) -> Result<Self, LoadError> {
        let tables = load::load::<A>(tables, hop_count)?;
        if tables.s != config.s {
            let reason = format!("is indexed by {} bits, the engine's by {}", tables.s, config.s);
            return Err(LoadError::new(DIRECT, reason));
        }
        Ok(Self::new(tables, config.by_level, config.isa))
    }
}
