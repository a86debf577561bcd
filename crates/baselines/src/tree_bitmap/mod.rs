//! **Tree Bitmap**: a multi-bit trie whose nodes keep the routes that end in them and their children
//! in two bitmaps (Eatherton, Varghese, Dittia, *Tree Bitmap: Hardware/Software IP Lookups with
//! Incremental Updates*, ACM SIGCOMM CCR 34(2), 2004). IPv4 and IPv6.
//!
//! # The scheme
//!
//! A node decides k bits of the address, its *stride*. Routes are not pushed down: a node has a bit for
//! each of the 2^k - 1 prefixes of 0 to k - 1 bits that can end inside it (the **internal** bitmap), and a
//! bit for each of its 2^k possible children (the **external** bitmap). All children of a node are
//! neighbours, and so are all results, so one pointer to each is enough; a bit's place among the ones
//! before it is the distance from there.
//!
//! Both bitmaps together are one heap: the prefix of l bits with value v has place 2^l + v, the child of
//! slot v has place 2^k + v, and half of a place is the place of the prefix one bit shorter.
//!
//! ```text
//!   10.0.0.0/8    → A      array, 8 bits     nodes, stride 4                            results
//!   10.64.0.0/10  → B       9   none          0  places 5 (01: B), 20 (slot 4)           B
//!   10.66.0.0/15  → C       10  A, node 0       child 1, results 0
//!   10.66.66.0/24 → D       11  none          1  places 9 (001: C), 18 (slot 2)          C
//!                                               child 2, results 1
//!                                             2  place 20 (slot 4), child 3
//!                                             3  end node: place 18 (0010: D), results 2   D
//! ```
//!
//! 10.66.67.7 takes slots 4, 2 and 4 of nodes 0, 1 and 2. On the way it notes places 5 (its bits from 8 on
//! begin with 01) and 9. In node 3 its slot is 3, and neither place 19 nor 9, 4, 2, 1 are set: the answer
//! is the last one noted, C.
//!
//! A lookup descends while the external bit of its slot is set. At each node it notes the longest prefix in the
//! internal bitmap, the highest of the bits at the slot's place halved again and again; only the last one noted is
//! fetched from the results.
//!
//! The optimisations of the paper that are here:
//!
//! - **Initial array** ([`Config::root`]): the first bits index an array, each entry has the longest route
//!   of at most this many bits and the node that follows.
//! - **End nodes**: a node without children uses its external bitmap for routes of k bits, which
//!   saves the children that would hold nothing but a prefix of no bits.
//! - **Split** ([`Config::split`]): a node on the way has the external bitmap, the pointer to its children, and a
//!   pointer to an *inner* node that has the internal bitmap and the pointer to the results. A bit in each child shows
//!   whether its parent has a match for it, so a lookup reads one inner node, or two: that of the last node, and, if
//!   nothing matches there, that of the last parent that did.
//! # Assumptions
//!
//! The paper leaves strides open. `tree-bitmap` has an initial array of 8 bits and strides of 4, which end
//! at bit 32, for both families. `tree-bitmap-split` is for IPv6: an array of 16 bits and strides of 6 (the
//! array of IPv4 has 8). Pointers have 32 bits, where the paper packs 20 and more beside the bitmaps: a
//! node takes 12 bytes with stride 4, 16 with 5, 24 with 6; split 12, 12 and 16, and 8, 8 and 12 for an
//! inner node. How split nodes and end nodes combine is ours: an end node keeps both bitmaps where they
//! are. The paper finds the longest prefix of a bitmap in hardware; here a mask and the machine's instruction
//! for counting zeros find it. Left out are its segmented bitmaps and CAM nodes, which save memory of chips,
//! and its updates in place: every change is a build.
//!
//! # Invariants
//!
//! - All children and results that bitmaps count exist, and so do the nodes that the array names, and the
//!   inner nodes. An end node has an inner node.
//! - A lookup visits at most as many nodes as there are strides in the bits after the array's.
//! - Hops in use are below the hop count, or none.
//!
//! # Limits and use
//!
//! 2^30 nodes, 2^32 results. A baseline of SAIL's paper; its size does not depend on how hops are
//! distributed, because nothing is expanded behind the array.
//!
//! ```
//! use fibula_core::{Engine, Hop, Lookup, Routes};
//! use fibula_baselines::tree_bitmap::{Config, TreeBitmap};
//!
//! let routes: Routes<u32> = [
//!     ("10.0.0.0/8".parse()?, Hop::new(0)),
//!     ("10.64.0.0/10".parse()?, Hop::new(1)),
//!     ("10.66.66.0/24".parse()?, Hop::new(3)),
//! ]
//! .into_iter()
//! .collect();
//! let engine = TreeBitmap::build(&routes, &Config::default()).unwrap();
//! assert_eq!(engine.lookup(0x0a42_4207), Hop::new(3));
//! assert_eq!(engine.lookup(0x0a42_4307), Hop::new(1));
//! # Ok::<(), fibula_core::PrefixError>(())
//! ```

mod build;
mod load;
mod lookup;
mod node;
#[cfg(test)]
mod tests;

use std::marker::PhantomData;
use std::ops::RangeInclusive;

use fibula_core::{
    Addr, BuildError, Engine, Follow, Hop, LoadError, Lookup, Memory, Persist, Routes, TableRef,
    TableSource,
};
use fibula_simd::{Isa, Table};

use fibula_engines::common::Values;

const NAME: &str = "tree-bitmap";
const SHAPE: &str = "shape";
const ROOT: &str = "root";
const NODES: &str = "nodes";
const INNER: &str = "inner";

/// Bits of the initial array: none, up to 2^20 entries.
pub const ROOTS: RangeInclusive<u32> = 0..=20;
/// The strides for which there is a node layout.
pub const STRIDES: RangeInclusive<u32> = 4..=6;

/// Parameters of [`TreeBitmap`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Bits that index the initial array, see [`ROOTS`].
    pub root: u32,
    /// Bits that a node decides, see [`STRIDES`].
    pub stride: u32,
    /// Whether internal bitmaps are stored in separate inner nodes.
    pub split: bool,
    /// The instruction set of lookups, which need instructions that count ones and zeros.
    pub isa: Isa,
}

impl Default for Config {
    /// Strides of 4 behind 8 bits.
    fn default() -> Self {
        Self { root: 8, stride: 4, split: false, isa: Isa::detect() }
    }
}

/// The compiled trie; see the [module](self).
pub struct TreeBitmap<A: Addr> {
    tables: Tables,
    family: PhantomData<A>,
}

struct Tables {
    config: Config,
    /// As it is stored: root, stride, split.
    shape: [u32; 3],
    /// For each value of the first bits, the node that follows, or none, and the code of the longest route
    /// of at most this many bits.
    root: Table<[u32; 2]>,
    /// The nodes' words, see [`node`].
    nodes: Table<u32>,
    /// The inner nodes' words, none unless split.
    inner: Table<u32>,
    results: Values,
}

impl Tables {
    fn new(
        config: Config,
        root: Table<[u32; 2]>,
        nodes: Table<u32>,
        inner: Table<u32>,
        results: Values,
    ) -> Self {
        let shape = [config.root, config.stride, config.split.into()];
        Self { config, shape, root, nodes, inner, results }
    }
}

impl<A: Addr> TreeBitmap<A> {
    /// Number of nodes, without inner ones.
    pub fn nodes(&self) -> usize {
        self.tables.nodes.len() / node::width(self.tables.config)
    }

    /// Number of results: routes longer than the initial array's bits.
    pub fn results(&self) -> usize {
        self.tables.results.len()
    }

    /// The memory accesses of a lookup: the array, each node, each inner node, the result.
    pub fn steps(&self, addr: A) -> u32 {
        let mut steps = 0;
        lookup::lookup(&self.tables, addr, || steps += 1);
        steps
    }
}

impl<A: Addr> Lookup<A> for TreeBitmap<A> {
    fn lookup(&self, addr: A) -> Hop {
        lookup::one(&self.tables, addr)
    }

    /// One after the other, as in the paper.
    fn lookup_batch(&self, addrs: &[A], hops: &mut [Hop]) {
        lookup::lookup_batch(&self.tables, addrs, hops);
    }

    fn memory(&self) -> Memory {
        Memory::of_tables(&self.tables())
    }
}

impl<A: Addr> Engine<A> for TreeBitmap<A> {
    const NAME: &'static str = NAME;
    type Config = Config;

    fn build(routes: &Routes<A>, config: &Config) -> Result<Self, BuildError> {
        if !ROOTS.contains(&config.root) || !STRIDES.contains(&config.stride) {
            let reason = format!(
                "root is {}, must be {} to {}; stride is {}, must be {} to {}",
                config.root,
                ROOTS.start(),
                ROOTS.end(),
                config.stride,
                STRIDES.start(),
                STRIDES.end()
            );
            return Err(BuildError::Config { engine: NAME, reason: reason.into() });
        }
        Ok(Self { tables: build::build(routes, *config)?, family: PhantomData })
    }
}

impl<A: Addr> Follow<A> for TreeBitmap<A> {}

impl<A: Addr> Persist<A> for TreeBitmap<A> {
    fn tables(&self) -> Vec<TableRef<'_>> {
        let Tables { shape, root, nodes, inner, results, .. } = &self.tables;
        let mut tables = vec![
            TableRef { name: SHAPE, bytes: bytemuck::bytes_of(shape) },
            TableRef { name: ROOT, bytes: root.as_bytes() },
            TableRef { name: NODES, bytes: nodes.as_bytes() },
            results.table_ref(),
        ];
        if self.tables.config.split {
            tables.push(TableRef { name: INNER, bytes: inner.as_bytes() });
        }
        tables
    }

    fn load(tables: &dyn TableSource, hop_count: u32, config: &Config) -> Result<Self, LoadError> {
        let tables = load::load(tables, hop_count, *config)?;
        Ok(Self { tables, family: PhantomData })
    }
}
