//! **SAIL_B** and **SAIL_U**: a bitmap a level; see the [module above](super) for the paper.
//!
//! # The scheme
//!
//! ```text
//!   10.0.0.0/8    → A      SAIL_B                 B bit    N     C_24         N_32, chunk 1
//!   10.1.0.0/16   → B        level 24, 10.1.2     1        C      1 ───────►  │ 0 .. 127: - │
//!   10.1.2.0/24   → C        level 16, 10.1       1        B                  │ 128 .. 255: D │
//!   10.1.2.128/25 → D        level 8,  10         1        A
//!
//!   lookup 10.1.2.200: B_24 is set, there is a chunk, its byte 200 says D
//!   lookup 10.1.2.7:   B_24 is set, the chunk has nothing for byte 7, N_24 says C
//!   lookup 10.1.9.9:   B_24 is clear, so are B_23 to B_17; B_16 is set, N_16 says B
//! ```
//!
//! **SAIL_U** has bitmaps at the levels 6, 12, 18 and 24 alone. A route of another length is pushed to
//! the next of them: 10.0.0.0/8 stands in the 16 nodes of level 12 that it covers, 10.1.0.0/16 in 4
//! nodes of level 18. A lookup tests 4 bits where SAIL_B tests up to 25.
//!
//! **Updates.** Routes are not pushed into the levels below, so a change of a route of up to 24 bits concerns one
//! level. In SAIL_B it is one bit and one next hop; in SAIL_U up to 2^6 neighbouring nodes that begin at a multiple of
//! their number, so their bits lie in one 64-bit word. A change of a longer route rewrites its chunk. [`Follow`] never
//! requires a build.
//!
//! # What is ours
//!
//! - The bitmaps lie in one array, the next hops in another. In SAIL_B node *v* of level *i* is at
//!   place 2^i + *v*, so that the parent of a place is its half. In both, levels from 6 on begin at whole words.
//! - `B_24` is also set where a /24 has a chunk but no route of its own; `N_24` then has code 0.
//! - A chunk holds long routes only, so a change of a short route does not change it.
//!
//! # Invariants
//!
//! - A bit is set exactly where the level's `N` has a hop, or, at level 24, `C_24` a chunk.
//! - `C_24` names no chunk twice, and none beyond `N_32`; codes are hops of the table.
//!
//! # Limits and use
//!
//! 65,535 hops and 65,535 chunks. The next hops of all nodes take 64 MB (SAIL_U: 32 MB) and `C_24` 32 MB
//! more, whatever the table: the paper has these off the chip. The schemes are made for hardware, one
//! pipeline stage a level. On a CPU they are for tables that change with nearly every lookup, and
//! for comparison; SAIL_L looks up far faster.
//!
//! ```
//! use fibula_core::{Engine, Follow, Hop, Lookup, Patched, Prefix, Routes};
//! use fibula_baselines::sail::SailU;
//!
//! let mut table: Vec<(Prefix<u32>, Hop)> = vec![
//!     ("10.0.0.0/8".parse()?, Hop::new(0)),
//!     ("10.1.2.128/25".parse()?, Hop::new(3)),
//! ];
//! let mut sail = SailU::build(&table.iter().copied().collect(), &()).unwrap();
//! assert_eq!(sail.lookup(0x0a01_0203), Hop::new(0));
//!
//! let new: Prefix<u32> = "10.1.0.0/16".parse()?;
//! table.push((new, Hop::new(1)));
//! let routes: Routes<u32> = table.into_iter().collect();
//! assert_eq!(sail.follow(&routes, &[new]), Ok(Patched::Applied));
//! assert_eq!(sail.lookup(0x0a01_0203), Hop::new(1));
//! assert_eq!(sail.lookup(0x0a01_0280), Hop::new(3));
//! # Ok::<(), fibula_core::PrefixError>(())
//! ```

mod build;
mod load;
mod lookup;
mod update;

use core::marker::PhantomData;

use fibula_core::{
    BuildError, Engine, Follow, Hop, LoadError, Lookup, Memory, Patched, Persist, Prefix, Routes,
    TableRef, TableSource,
};
use fibula_simd::Table;

use fibula_engines::common::each;

/// SAIL_B: a bitmap at every level from 0 to 24.
pub type SailB = Bitmaps<Basic>;
/// SAIL_U: bitmaps at the levels 6, 12, 18 and 24.
pub type SailU = Bitmaps<Update>;

/// The most hops, and the most chunks: numbers of 16 bits from 1 on.
const MOST: usize = u16::MAX as usize;
/// Addresses of a /24.
const CHUNK: usize = 256;

mod name {
    pub(super) const B: &str = "B";
    pub(super) const N: &str = "N";
    pub(super) const C24: &str = "C24";
    pub(super) const N32: &str = "N32";
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Basic {}
    impl Sealed for super::Update {}
}

/// Which levels have a bitmap.
pub trait Levels: sealed::Sealed + Clone + Send + Sync + 'static {
    /// The engine's name.
    const NAME: &'static str;
    /// The levels, ascending, up to 24.
    const LEVELS: &'static [u8];
    /// Places of all levels together, a multiple of 64.
    const PLACES: usize;

    /// The place of the level's first node.
    fn start(level: u8) -> usize;

    /// The level that a route of this length, up to 24, stands at.
    fn level_of(len: u8) -> u8 {
        *Self::LEVELS.iter().find(|&&level| len <= level).expect("level 24 takes the rest")
    }
}

/// The levels of SAIL_B.
#[derive(Clone)]
pub enum Basic {}

impl Levels for Basic {
    const NAME: &'static str = "sail-b";
    const LEVELS: &'static [u8] =
        &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24];
    const PLACES: usize = 1 << 25;

    #[inline(always)]
    fn start(level: u8) -> usize {
        1 << level
    }
}

/// The levels of SAIL_U.
#[derive(Clone)]
pub enum Update {}

impl Levels for Update {
    const NAME: &'static str = "sail-u";
    const LEVELS: &'static [u8] = &[6, 12, 18, 24];
    const PLACES: usize = (1 << 6) + (1 << 12) + (1 << 18) + (1 << 24);

    #[inline(always)]
    fn start(level: u8) -> usize {
        // The bits 6, 12, 18 as far as they are below the level's: the nodes of the levels above.
        ((1 << 6) + (1 << 12) + (1 << 18)) & ((1 << level) - 1)
    }
}

/// The tables of SAIL_B or SAIL_U; see the [module](self). A clone shares them until one is patched.
#[derive(Clone)]
pub struct Bitmaps<L: Levels> {
    /// `B_i` of all levels.
    b: Table<u64>,
    /// `N_i` of all levels.
    n: Table<u16>,
    /// For each node of level 24 its chunk, counted from 1, or 0.
    c24: Table<u16>,
    /// Chunks of the codes of 256 addresses; 0 where no route longer than /24 covers the address.
    n32: Table<u16>,
    /// The chunks that `c24` does not name.
    free: Vec<u16>,
    levels: PhantomData<L>,
}

impl<L: Levels> Bitmaps<L> {
    /// Bytes of the bitmaps, which the paper keeps on the chip.
    pub fn on_chip(&self) -> usize {
        self.b.as_bytes().len()
    }
}

impl<L: Levels> Lookup<u32> for Bitmaps<L> {
    #[inline]
    fn lookup(&self, addr: u32) -> Hop {
        lookup::lookup(self, addr)
    }

    /// One after the other.
    fn lookup_batch(&self, addrs: &[u32], hops: &mut [Hop]) {
        each(addrs, hops, |addr| lookup::lookup(self, addr));
    }

    fn memory(&self) -> Memory {
        Memory::of_tables(&self.tables())
    }
}

impl<L: Levels> Engine<u32> for Bitmaps<L> {
    const NAME: &'static str = L::NAME;
    type Config = ();

    fn build(routes: &Routes<u32>, (): &()) -> Result<Self, BuildError> {
        build::build(routes)
    }
}

impl<L: Levels> Follow<u32> for Bitmaps<L> {
    fn follow(
        &mut self,
        routes: &Routes<u32>,
        changed: &[Prefix<u32>],
    ) -> Result<Patched, BuildError> {
        update::patch(self, routes, changed)
    }
}

impl<L: Levels> Persist<u32> for Bitmaps<L> {
    fn tables(&self) -> Vec<TableRef<'_>> {
        vec![
            TableRef { name: name::B, bytes: self.b.as_bytes() },
            TableRef { name: name::N, bytes: self.n.as_bytes() },
            TableRef { name: name::C24, bytes: self.c24.as_bytes() },
            TableRef { name: name::N32, bytes: self.n32.as_bytes() },
        ]
    }

    fn load(tables: &dyn TableSource, hop_count: u32, (): &()) -> Result<Self, LoadError> {
        load::load(tables, hop_count)
    }
}
