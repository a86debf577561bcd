//! **Lulea**: the answers of all addresses as a bit vector of where they change, coded in 4.5 bytes a route
//! (Degermark, Brodnik, Carlsson, Pink, *Small Forwarding Tables for Fast Routing Lookups*, SIGCOMM 1997).
//! IPv4.
//!
//! # The scheme
//!
//! The tree of routes is cut at three levels: 16, 24 and 32 bits. In a level a node's slots are covered by
//! leaves of the tree, whose sizes are powers of two, or are roots of subtrees below the cut. Each leaf and
//! each root has one **head**, its first slot, and a **pointer**; all heads are bits of a vector, and the
//! pointer of a slot is that of the last head up to it.
//!
//! The vector is stored in groups of 16 bits, its *masks*. Because leaves are aligned blocks, there are
//! only 677 masks that are not empty, and a **map table** has a row for each: how many heads a mask has up
//! to each of its 16 slots, 4 bits each. A group is a **code word** of 16 bits: the row (10 bits), and how
//! many pointers lie between the last **base index**, which every fourth group has, and this group (6
//! bits).
//!
//! ```text
//!   pointer of slot i = base[i / 64] + offset of code[i / 16] + map[row of code[i / 16]][i % 16]
//!
//!   10.0.0.0/12  → A   level 1    10.0   one leaf, so A itself, in place of a row
//!   10.16.0.0/13 → B   (a group    10.16  mask 1000 0000 1010 1000
//!   10.26.0.0/15 → C   is a /12)          heads 10.16: B, 10.24: none, 10.26: C, 10.28: none
//!
//!   lookup 10.26.0.1: group 10.16, slot 10; its row says that 2 heads lie before the slot's: pointer 2, C
//! ```
//!
//! A group with no head, or with one leaf of 16 slots or more, has the hop itself in its code word, marked by
//! a row number of 676 or more. Then no row, pointer or base index is read. The mask with a single head
//! belongs to such groups, so 676 rows are left: 5.3 KB, shared by all levels.
//!
//! Levels 2 and 3 consist of *chunks* of 256 slots, in three forms by their number of heads:
//!
//! ```text
//!   sparse      1 to 8      the slots of the heads, 8 bits each, and 8 pointers: 24 bytes; a step of bisection, then one by one
//!   dense       9 to 64     16 code words without base indices: offsets count all pointers
//!   very dense  65 to 256   16 code words and 4 base indices
//! ```
//!
//! A pointer has 16 bits: two for the kind (hop, sparse, dense or very dense), and 14 for a hop or a chunk's
//! number.
//! # Assumptions
//!
//! The 14 bits are numbers in an array for each form and level (the paper gives the bits, not the arrays).
//! Pointers of dense chunks lie in one array for each level, and a chunk has the place of its first, 4
//! bytes. Sparse chunks repeat their last head. Hops are stored plus one, 0 is "no route", where the
//! paper's tables have a default route. Siblings with equal hops are one leaf.
//!
//! `lulea` has the paper's pointers. A current full table has more than 2^14 dense chunks at level 2;
//! `lulea-wide` supports it with pointers of 32 bits and is otherwise the same.
//!
//! # Invariants
//!
//! - Every pointer that a code word can lead to exists, and so does the chunk that it names; pointers of level
//!   3 are hops. The map table is the one that this module computes.
//! - Hops in use are below the hop count, or none.
//!
//! # Limits and use
//!
//! 16,383 hops (wide: 22,271, the most that a code word has room for); 2^14 chunks of a form and level
//! (wide: 2^30). Every change is a build. A baseline of SAIL's paper; the size is DXR's measure for small
//! tables.
//!
//! ```
//! use fibula_core::{Engine, Hop, Lookup, Routes};
//! use fibula_baselines::lulea::Lulea;
//!
//! let routes: Routes<u32> = [
//!     ("10.0.0.0/12".parse()?, Hop::new(0)),
//!     ("10.16.0.0/13".parse()?, Hop::new(1)),
//!     ("10.26.0.0/15".parse()?, Hop::new(2)),
//! ]
//! .into_iter()
//! .collect();
//! let engine = <Lulea>::build(&routes, &()).unwrap();
//! assert_eq!(engine.lookup(0x0a1a_0001), Hop::new(2));
//! assert_eq!(engine.lookup(0x0a19_0001), Hop::NONE);
//! # Ok::<(), fibula_core::PrefixError>(())
//! ```

mod build;
mod code;
mod load;
mod lookup;
mod pointer;
#[cfg(test)]
mod tests;

use fibula_core::{
    BuildError, Engine, Follow, Hop, LoadError, Lookup, Memory, Persist, Routes, TableRef,
    TableSource,
};
use fibula_simd::Table;

use fibula_engines::common::each;

pub use pointer::Pointer;

const NAME: &str = "lulea";
const MAP: &str = "map";
const CODES: &str = "code";
const BASES: &str = "base";

/// The compiled tables; see the [module](self).
pub struct Lulea<P: Pointer = u16> {
    /// How many heads each mask has up to each slot.
    map: Table<u64>,
    /// Level 1: a code word for each of 4096 groups.
    codes: Table<u16>,
    /// A base index for each four of them.
    bases: Table<u16>,
    pointers: Table<P>,
    /// Levels 2 and 3.
    levels: [Level<P>; 2],
}

/// The chunks of a level.
struct Level<P: Pointer> {
    sparse: Table<P::Sparse>,
    dense: Table<Dense>,
    very_dense: Table<VeryDense>,
    /// Those of dense chunks.
    pointers: Table<P>,
}

/// 16 code words, and the place of the first pointer in two halves, the lower first.
type Dense = [u16; 18];
/// The same, and 4 base indices of 8 bits, two in a word.
type VeryDense = [u16; 20];

impl<P: Pointer> Lulea<P> {
    /// Chunks of level 2 and of level 3: sparse, dense, very dense.
    pub fn chunks(&self) -> [[usize; 3]; 2] {
        [0, 1].map(|level: usize| {
            let Level { sparse, dense, very_dense, .. } = &self.levels[level];
            [sparse.len(), dense.len(), very_dense.len()]
        })
    }

    /// The memory accesses of a lookup: code words, base indices, map table, pointers, and
    /// for a sparse chunk its heads.
    pub fn steps(&self, addr: u32) -> u32 {
        let mut steps = 0;
        lookup::lookup(self, addr, |accesses| steps += accesses);
        steps
    }
}

impl<P: Pointer> Lookup<u32> for Lulea<P> {
    fn lookup(&self, addr: u32) -> Hop {
        lookup::lookup(self, addr, |_| {})
    }

    /// One after the other, as in the paper.
    fn lookup_batch(&self, addrs: &[u32], hops: &mut [Hop]) {
        each(addrs, hops, |addr| lookup::lookup(self, addr, |_| {}));
    }

    fn memory(&self) -> Memory {
        Memory::of_tables(&self.tables())
    }
}

impl<P: Pointer> Engine<u32> for Lulea<P> {
    const NAME: &'static str = NAME;
    type Config = ();

    fn build(routes: &Routes<u32>, (): &()) -> Result<Self, BuildError> {
        build::build(routes)
    }
}

impl<P: Pointer> Follow<u32> for Lulea<P> {}

impl<P: Pointer> Persist<u32> for Lulea<P> {
    fn tables(&self) -> Vec<TableRef<'_>> {
        let mut tables = vec![
            TableRef { name: MAP, bytes: self.map.as_bytes() },
            TableRef { name: CODES, bytes: self.codes.as_bytes() },
            TableRef { name: BASES, bytes: self.bases.as_bytes() },
            TableRef { name: P::POINTERS[0], bytes: self.pointers.as_bytes() },
        ];
        for (level, number) in self.levels.iter().zip(0..) {
            let [sparse, dense, very_dense] = level_names(number);
            tables.extend([
                TableRef { name: sparse, bytes: level.sparse.as_bytes() },
                TableRef { name: dense, bytes: level.dense.as_bytes() },
                TableRef { name: very_dense, bytes: level.very_dense.as_bytes() },
                TableRef { name: P::POINTERS[number + 1], bytes: level.pointers.as_bytes() },
            ]);
        }
        tables
    }

    fn load(tables: &dyn TableSource, hop_count: u32, (): &()) -> Result<Self, LoadError> {
        load::load(tables, hop_count)
    }
}

/// The names of a level's chunks: 0 is level 2.
fn level_names(level: usize) -> [&'static str; 3] {
    [["sparse2", "dense2", "very_dense2"], ["sparse3", "dense3", "very_dense3"]][level]
}
