//! **HBS**: a binary search over the lengths of prefixes, with a hash table for each length. The scheme is that of
//! Waldvogel, Varghese, Turner, Plattner, *Scalable High Speed IP Routing Lookups*, SIGCOMM 1997; the additions of
//! *Heuristic Binary Search* (Jiang, Li, Chen, Hu, Huang, Xie, APNet 2023, doi 10.1145/3600061.3600077, and IEEE/ACM
//! ToN) follow the description in PlanB's paper. IPv4 and IPv6.
//!
//! # The scheme
//!
//! The lengths that routes have are the nodes of a binary search **tree**, and each has a **hash table** of the
//! prefixes of that length. A lookup searches the root's table for the first bits of the address. If the table has
//! them, the answer has this length or a longer one, and the search continues in the right subtree; if not, the answer
//! is shorter, and the search continues in the left one.
//!
//! For a longer route to be found, its first bits must be in the tables at which its search turns right: they are added
//! as **markers**. A marker may have no longer match, so each entry stores the best answer for its own bits, computed
//! in advance. The last answer found is the result, and there is no backtracking.
//!
//! ```text
//!   10.0.0.0/8    → A                   16            the tree of lengths
//!   10.1.0.0/16   → B                  /  \
//!   10.1.2.0/24   → C                 8    24
//!   10.9.8.0/24   → D
//!
//!   table of /8    10        A
//!   table of /16   10.1      B   origins 24..24       a route, and the marker of 10.1.2.0/24
//!                  10.9      A   origins 24..24       a marker alone, with the answer of 10.0.0.0/8
//!   table of /24   10.1.2    C
//!                  10.9.8    D
//!
//!   lookup 10.9.7.1:  /16 has 10.9: A so far, go right; /24 has no 10.9.7: the answer is A
//!   lookup 10.3.0.1:  /16 has no 10.3: go left; /8 has 10: A
//! ```
//!
//! **The heuristic.** Each entry knows the *origins* of its marker: the shortest and the longest of the
//! routes that need it. Only lengths between them can have an answer, so nodes outside are skipped
//! without reading their tables, and a search ends where there are no origins: 10.1 in a table without 10.1.2.0/24
//! would end it. **The tree** is not balanced but has the lengths with many routes near its root.
//!
//! `hbs` has both; `hbs-basic` has neither: a balanced tree, searched to its end, as in Waldvogel's paper. `hbs-batch`
//! has the tables of `hbs`, with batches whose lookups are interleaved (`batch.rs`).
//!
//! # Assumptions
//!
//! The papers on HBS were not available. PlanB says that "pre-computed information about marker origins"
//! prunes the tree: here that is a range of lengths for each entry, two bytes. It says that rotations
//! adjust the tree to the distribution of lengths: here the tree is the one with the least mean depth over
//! the routes, found by dynamic programming in each build, which rotations would approach. Hash tables are
//! built with at least two slots for each key, and a key goes to the next free slot; Waldvogel's are perfect or nearly
//! so. Interleaved lookups are ours: neither paper
//! says how it reaches its rates.
//!
//! # Updates
//!
//! A changed route changes its own entry, its markers, and the markers under it that have its answer: they belong to
//! the routes under it that no other one covers. For most routes that is nothing, for a short prefix it may be
//! thousands of entries, for the default route those of all outermost routes: still less than a build, which writes
//! all. A withdrawn route's marker stays if another route needs it; the search for one reads the routes under the
//! marker. Afterwards the tables have exactly the entries that a build over this tree would make. The tree stays as it
//! is, even where other lengths have become frequent. A build is requested for a length that the tree does not have,
//! and for a table three quarters full, which it is after half as many routes more than at the build, or later.
//!
//! # Invariants
//!
//! - A node's children come after it, and the range of ranks in which an interleaved search continues becomes smaller
//!   with each table, so a search ends.
//! - Ranks are those of 0 to below the number of nodes, and a search finds each of them.
//! - The tables follow each other and contain all slots. Hops are below the hop count, or none.
//!
//! # Limits and use
//!
//! 2^32 slots. The rival that PlanB's paper finds fastest; its rate depends on how many lengths a
//! table has.
//!
//! ```
//! use fibula_core::{Engine, Hop, Lookup, Routes};
//! use fibula_baselines::hbs::{Config, Hbs};
//!
//! let routes: Routes<u32> = [
//!     ("10.0.0.0/8".parse()?, Hop::new(0)),
//!     ("10.1.0.0/16".parse()?, Hop::new(1)),
//!     ("10.9.8.0/24".parse()?, Hop::new(3)),
//! ]
//! .into_iter()
//! .collect();
//! let engine = Hbs::build(&routes, &Config::default()).unwrap();
//! assert_eq!(engine.lookup(0x0a09_0701), Hop::new(0));
//! assert_eq!(engine.lookup(0x0a09_0801), Hop::new(3));
//! # Ok::<(), fibula_core::PrefixError>(())
//! ```

mod batch;
mod build;
mod load;
mod lookup;
#[cfg(test)]
mod tests;
mod tree;
mod update;

use std::marker::PhantomData;

use fibula_core::{
    Addr, BuildError, Engine, Follow, Hop, LoadError, Lookup, Memory, Patched, Persist, Prefix,
    Routes, TableRef, TableSource,
};
use fibula_simd::Table;

use crate::common::Hashed;
use batch::Aims;
use fibula_engines::common::each;
use tree::Node;
use update::Ranks;

const NAME: &str = "hbs";
const SHAPE: &str = "shape";
const TREE: &str = "tree";
const SLOTS: &str = "slots";
const AIMS: &str = "aims";

/// Parameters of [`Hbs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Whether origins prune the search and the tree suits the routes; otherwise it is Waldvogel's basic
    /// scheme.
    pub heuristic: bool,
    /// How a batch is taken.
    pub batch: Batch,
}

impl Default for Config {
    fn default() -> Self {
        Self { heuristic: true, batch: Batch::Plain }
    }
}

/// How a batch is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Batch {
    /// One address after the other, as in the papers.
    #[default]
    Plain,
    /// Many side by side.
    Interleaved,
}

/// The compiled tables; see the [module](self).
pub struct Hbs<A: Addr> {
    /// As it is stored: whether heuristic, the code of the route of length 0.
    shape: [u32; 2],
    tree: Table<Node>,
    slots: Hashed,
    /// Of interleaved batches alone; made anew from the tree when tables are loaded.
    aims: Option<Aims<A>>,
    /// Of patched tables alone, and not stored.
    ranks: Option<Ranks>,
    family: PhantomData<A>,
}

impl<A: Addr> Hbs<A> {
    fn new(shape: [u32; 2], tree: Table<Node>, slots: Hashed, batch: Batch) -> Self {
        let aims = (batch == Batch::Interleaved).then(|| Aims::of(&tree));
        Self { shape, tree, slots, aims, ranks: None, family: PhantomData }
    }

    fn is_heuristic(&self) -> bool {
        self.shape[0] == 1
    }

    /// Number of lengths: nodes of the tree.
    pub fn lengths(&self) -> usize {
        self.tree.len()
    }

    /// Routes and markers in the tables.
    pub fn entries(&self) -> usize {
        self.slots.used::<A>()
    }

    /// The tables that a lookup probes.
    pub fn probes(&self, addr: A) -> u32 {
        let mut probes = 0;
        lookup::lookup(self, addr, || probes += 1, || {});
        probes
    }

    /// The memory accesses of a lookup: slots of tables.
    pub fn steps(&self, addr: A) -> u32 {
        let mut steps = 0;
        lookup::lookup(self, addr, || {}, || steps += 1);
        steps
    }
}

impl<A: Addr> Lookup<A> for Hbs<A> {
    fn lookup(&self, addr: A) -> Hop {
        lookup::lookup(self, addr, || {}, || {})
    }

    fn lookup_batch(&self, addrs: &[A], hops: &mut [Hop]) {
        match &self.aims {
            None => each(addrs, hops, |addr| lookup::lookup(self, addr, || {}, || {})),
            Some(aims) => batch::lookup_batch(self, aims, addrs, hops),
        }
    }

    fn memory(&self) -> Memory {
        let tables = self.tables();
        let stored = tables.iter().map(|table| (table.name, table.bytes.len()));
        Memory::new(stored.chain(self.aims.iter().map(|aims| (AIMS, aims.bytes()))))
    }
}

impl<A: Addr> Engine<A> for Hbs<A> {
    const NAME: &'static str = NAME;
    type Config = Config;

    fn build(routes: &Routes<A>, config: &Config) -> Result<Self, BuildError> {
        build::build(routes, *config)
    }
}

impl<A: Addr> Follow<A> for Hbs<A> {
    /// Changes the entries of each prefix and of its markers, and those under it that have its answer. O(outermost
    /// routes under the prefix); if a marker is to be removed, O(routes under the marker).
    fn follow(&mut self, routes: &Routes<A>, changed: &[Prefix<A>]) -> Result<Patched, BuildError> {
        Ok(update::patch(self, routes, changed).unwrap_or(Patched::Rebuild))
    }
}

impl<A: Addr> Persist<A> for Hbs<A> {
    fn tables(&self) -> Vec<TableRef<'_>> {
        vec![
            TableRef { name: SHAPE, bytes: bytemuck::bytes_of(&self.shape) },
            TableRef { name: TREE, bytes: self.tree.as_bytes() },
            TableRef { name: SLOTS, bytes: self.slots.words.as_bytes() },
        ]
    }

    fn load(tables: &dyn TableSource, hop_count: u32, config: &Config) -> Result<Self, LoadError> {
        load::load(tables, hop_count, *config)
    }
}
