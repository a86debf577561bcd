//! **planb**: elementary intervals in a linearised B+-tree, one cache line and one vector comparison
//! a level (Zhang et al., *PlanB: Efficient Software IPv6 Lookup with Linearized B+-Tree*, NSDI 2026).
//! IPv6; IPv4 through the same code.
//!
//! # The scheme
//!
//! The routes are cut into elementary intervals, neighbours with equal hops merged. LPM is then the
//! search of a one-dimensional sorted array: in which interval is the address? The array becomes the
//! leaf level of a B+-tree whose nodes are cache lines: 8 keys of 64 bits for IPv6 (9 children), 16 of
//! 32 bits for IPv4 (17 children). There are no pointers. The levels lie one behind the other in one
//! array, each node's place follows from its parent's.
//!
//! We key an interval by its **last** address. Its number is then *how many keys are below the
//! address*, and so is the number of the child to go to, in every node of every level:
//!
//! ```text
//!   rank(node, key) = number of the node's keys < key       one vpcmpuq, one popcnt
//!
//!   the leaves' keys are the lasts of the intervals         20 intervals, keys 10, 20, .. 190, MAX
//!
//!   level 0    node 0 │ 80 160 MAX MAX MAX MAX MAX MAX │
//!                       ╱     │     ╲          slot s: the final last under child s,
//!   level 1    node 1 ╱       │ 2     ╲ 3              MAX if the leaves end before
//!   │10 20 30 .. 80│ │90 100 .. 160│ │170 180 190 MAX MAX MAX MAX MAX│
//!
//!   values     v0 v1 v2 ... v19                    one for each interval, no padding
//!
//!   lookup 95:   rank(node 0) = 1 (80)        child 1 of the root is the second leaf
//!                rank(that leaf) = 1 (90)     interval 1 * 8 + 1 = 9: the 10th, 91 to 100
//! ```
//!
//! A level with *n* nodes has ⌈*n* / 9⌉ parents and no more: the padding that the paper drops for the leaves is dropped
//! on every level. An interval costs 8 bytes of leaf key, 1 of inner keys and 2 or 4 of value. The paper's 18 bytes are
//! those of a prefix, without values: two intervals of 8 and 1. Merging equal neighbours saves memory here (0.6
//! intervals a prefix for a real table).
//!
//! **Routes longer than /64.** A key has the 64 high bits. A network that is divided by longer routes keeps one
//! interval, whose value refers to a *block*: the intervals of its low 64 bits, which are searched by bisection. In a
//! table without such routes there are no blocks, and lookups do not even test for them.
//!
//! **Vectors and nodes.** A node of 64 bytes is one comparison with AVX-512, two with AVX2 and four with NEON, whose
//! verdicts are added up. [`PlanB128`] has nodes of 128 bytes, which the paper suggests for cache lines of 128 bytes
//! (Apple's processors): fewer levels, twice the comparisons in each. The paper's form for SSE is that of NEON on an
//! x86-64 without AVX2, for which we have no vectors: servers have AVX2 since 2013.
//!
//! # What is ours
//!
//! - Lasts in place of starts. The final last is the largest key, so every key has an interval, and
//!   padding with the largest key is never counted, not even for that key itself: nothing is special
//!   at the top of the space, where a public implementation is wrong.
//! - Batches go down level by level, some dozens of lookups together, where the paper unrolls the whole tree: see
//!   `batch.rs` for measurements. Nodes and keys are prefetched.
//! - Values are 16 bits where hops and blocks fit, else 32; 0 is "no route".
//!
//! # Invariants
//!
//! - Leaf keys ascend strictly; the final one is the largest key. All padding is the largest key.
//! - The key of slot *s* of an inner node is the final last under its child *s*, or the largest key if
//!   the leaves end before that. So a search never goes right of the first child that ends at the
//!   largest key: the nodes that it visits exist, and it ends at an interval, not at padding.
//! - There are as many values as intervals; a value names no hop from the hop count on, and no block that does not
//!   exist.
//!
//! `load` recomputes every key of a stored tree from its leaves, so the invariants hold for hostile
//! files too, and `batch.rs` may rely on them.
//!
//! # Limits and use
//!
//! Takes any table: up to 2^32 - 1 hops and blocks together. The search depth is fixed, 6 levels up to
//! 472,392 IPv6 intervals, so the rate hardly depends on the traffic. Builds in O(n), a few
//! milliseconds for a full IPv6 table, in 1 to 3 MB. An engine that answers most addresses from one
//! direct table is faster where traffic favours short prefixes.
//!
//! ```
//! use fibula_core::{Engine, Hop, Lookup, Routes};
//! use fibula_engines::planb::{Config, PlanB};
//!
//! let routes: Routes<u128> = [
//!     ("2001:db8::/32".parse()?, Hop::new(1)),
//!     ("2001:db8:1::/48".parse()?, Hop::new(2)),
//!     ("2001:db8:1::53/128".parse()?, Hop::new(3)),
//! ]
//! .into_iter()
//! .collect();
//! let planb = PlanB::build(&routes, &Config::default()).unwrap();
//! let addrs = ["2001:db8:1::53", "2001:db8:1::54", "2001:db8:2::1", "2001:db9::"]
//!     .map(|addr| addr.parse::<std::net::Ipv6Addr>().unwrap().to_bits());
//! let mut hops = [Hop::NONE; 4];
//! planb.lookup_batch(&addrs, &mut hops);
//! assert_eq!(hops, [Hop::new(3), Hop::new(2), Hop::new(1), Hop::NONE]);
//! # Ok::<(), fibula_core::PrefixError>(())
//! ```

mod batch;
mod build;
mod load;
mod lookup;
mod shape;

use fibula_core::{
    BuildError, Engine, Follow, Hop, LoadError, Lookup, Memory, Persist, Routes, TableRef,
    TableSource,
};
use fibula_simd::{Isa, Level, Table};

use crate::common::{Long, SearchAddr, SearchKey, Values};
use shape::LevelLayout;

const KEYS: &str = "keys";

/// Parameters of [`PlanB`].
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// The instruction set of its batch lookups; one that the machine lacks gives the best of its forms.
    pub isa: Isa,
    /// How a batch is searched.
    pub search: TreeSearch,
}

/// How a batch is searched: the steps of the paper's ablation (its section 4.5). The tree is the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TreeSearch {
    /// Dozens of lookups level by level.
    #[default]
    Batched,
    /// One lookup after the other; with the scalar form the paper's tree without vectors.
    Single,
    /// As `Single`, a node's keys counted by a plain loop that the compiler makes vectors of.
    Compiled,
}

/// The keys of a node.
type Line<A> = <<A as SearchAddr>::Key as SearchKey>::Line;

/// The compiled tree with nodes of a cache line; see the [module](self).
pub type PlanB<A> = Tree<A, 1>;

/// The compiled tree with nodes of 128 bytes, the paper's form for machines whose cache lines have as many: a 17-ary
/// tree for IPv6, a 33-ary one for IPv4, with fewer levels.
pub type PlanB128<A> = Tree<A, 2>;

/// The compiled tree, each node so many lines of 64 bytes; see the [module](self).
pub struct Tree<A: SearchAddr, const LINES: usize> {
    keys: Table<Line<A>>,
    values: Values,
    long: Option<Long>,
    shape: LevelLayout,
    level: Level,
    search: TreeSearch,
}

impl<A: SearchAddr, const LINES: usize> Tree<A, LINES> {
    /// Keys in a node.
    const LANES: usize = A::Key::LANES * LINES;

    /// Number of elementary intervals, where a network that longer routes divide counts once.
    pub fn intervals(&self) -> usize {
        self.values.len()
    }

    /// Levels of the tree, the leaves included: the nodes that every lookup reads.
    pub fn levels(&self) -> usize {
        self.shape.levels()
    }
}

impl<A: SearchAddr, const LINES: usize> Lookup<A> for Tree<A, LINES> {
    fn lookup(&self, addr: A) -> Hop {
        let mut hops = [Hop::NONE];
        self.level.run(lookup::Each { tree: self, addrs: &[addr], hops: &mut hops });
        hops[0]
    }

    fn lookup_batch(&self, addrs: &[A], hops: &mut [Hop]) {
        assert_eq!(addrs.len(), hops.len(), "as many hops as addresses");
        match self.search {
            TreeSearch::Batched => batch::lookup_batch(self, addrs, hops),
            TreeSearch::Single | TreeSearch::Compiled => {
                self.level.run(lookup::Each { tree: self, addrs, hops });
            }
        }
    }

    fn memory(&self) -> Memory {
        Memory::of_tables(&self.tables())
    }
}

impl<A: SearchAddr, const LINES: usize> Engine<A> for Tree<A, LINES> {
    // The stored tables of one are not those of the other.
    const NAME: &'static str = if LINES == 1 { "planb" } else { "planb-128" };
    type Config = Config;

    fn build(routes: &Routes<A>, config: &Config) -> Result<Self, BuildError> {
        build::build(routes, config)
    }
}

impl<A: SearchAddr, const LINES: usize> Follow<A> for Tree<A, LINES> {}

impl<A: SearchAddr, const LINES: usize> Persist<A> for Tree<A, LINES> {
    fn tables(&self) -> Vec<TableRef<'_>> {
        let mut tables =
            vec![TableRef { name: KEYS, bytes: self.keys.as_bytes() }, self.values.table_ref()];
        tables.extend(self.long.iter().flat_map(Long::tables));
        tables
    }

    fn load(tables: &dyn TableSource, hop_count: u32, config: &Config) -> Result<Self, LoadError> {
        load::load(tables, hop_count, config)
    }
}
