//! **SAIL_L** as it runs on a CPU: three merged arrays; see the [module above](super) for the paper.
//!
//! # The scheme
//!
//! Routes are pushed to levels 16, 24 and 32, so a lookup reads one array a level and stops at the
//! first that has the answer. On a chip, level *i* has a bitmap `B_i` that says whether to stop, next
//! hops `N_i`, and `C_i` with the chunk of the next level to go on in. On a CPU they are one array:
//!
//! ```text
//!   10.0.0.0/8    → A     BCN16            BCN24, chunk 0        N32, chunk 0
//!   10.1.0.0/16   → B       ...              0: B                  0 .. 127: C
//!   10.1.2.0/24   → C       10.0: A          1: B                  128 .. 255: D
//!   10.1.2.128/25 → D       10.1: chunk 0    2: chunk 0 ───────►
//!                           10.2: A          3: B
//!                           ...              ...
//!
//!   lookup 10.2.3.4:   BCN16[10.2] says A
//!   lookup 10.1.9.9:   BCN16[10.1] says chunk 0, BCN24[0 * 256 + 9] says B
//!   lookup 10.1.2.200: BCN16[10.1], BCN24[0 * 256 + 2] say chunk 0, N32[0 * 256 + 200] says D
//! ```
//!
//! Most traffic ends at level 24, so a lookup reads 128 KB that stay in the L2 cache, and then one
//! entry of an array that is as large as the part of the space that is divided: 10 to 18 MB for a full
//! table, where DIR-24-8 has 32 MB.
//!
//! **Chunk or code.** The paper distinguishes them by the sign, which gives each half of the values: 32,768 chunks,
//! where a table of 900,000 prefixes may need more. Here the chunks take the largest values, as many as needed, and the
//! values below are codes. It costs the same comparison, with a number in place of zero.
//!
//! # The forms
//!
//! | registry | type | entries | limits |
//! |---|---|---|---|
//! | `sail-l` | [`SailL`] | 2 bytes | 65,535 hops, or hops and chunks of a level together |
//! | `sail-l-wide` | `SailL<u32>` | 4 bytes | 2^32 - 1 hops, 2^22 chunks of a level |
//! | `sail-l8` | [`SailL8`] | 1 byte (level 16: 2) | 255 hops, 65,535 chunks of a level |
//! | `sail-l-prefetch` | [`SailL`] | as `sail-l` | as `sail-l` |
//!
//! A table beyond the limits is refused with [`BuildError::Limit`]. One-byte entries leave no values for chunks: as in
//! the paper's code, code 0 in `BN24` means that the search continues, and the chunks are in a separate array `C24`.
//! The chunk of a node that no route covers is the first one, which is empty.
//!
//! `sail-l-prefetch` is the same table with another batch loop, ours: see `batch.rs`. The others look up
//! one address after the other, as the paper does.
//!
//! # What is ours
//!
//! - Chunk and code share the values as described above.
//! - A node whose addresses all have the same hop is a leaf even if it contains longer routes. That saves chunks.
//! - 0 is "no route"; the paper's tables have a default route.
//!
//! # Updates
//!
//! A change of a route repaints the entries that its prefix covers, from the routes: one entry for a /24, 256 for a /16
//! that is divided, 256 of `N32` for a longer prefix. Chunks come and go with the nodes that are divided; a patched
//! table has as many in use as a build would make. The free ones are used again, and an array without
//! any grows by a quarter. `sail-l8` does the same in its arrays, the paper's own layout; see `painter.rs`.
//!
//! # Invariants
//!
//! - `BCN16` has 2^16 entries.
//! - An entry that is not a chunk of the next array is the code of a hop of the table, or 0. Those of
//!   `N32` all are.
//!
//! # Limits and use
//!
//! Two or three fixed loads, for any traffic; the fastest of the paper's schemes on a CPU. The tables
//! are several times as large as DXR's: it lives on a large L3 cache.
//!
//! ```
//! use fibula_core::{Engine, Hop, Lookup, Routes};
//! use fibula_baselines::sail::{SailL, merged::Config};
//!
//! let routes: Routes<u32> = [
//!     ("10.0.0.0/8".parse()?, Hop::new(0)),
//!     ("10.1.0.0/16".parse()?, Hop::new(1)),
//!     ("10.1.2.0/24".parse()?, Hop::new(2)),
//!     ("10.1.2.128/25".parse()?, Hop::new(3)),
//! ]
//! .into_iter()
//! .collect();
//! let sail = <SailL>::build(&routes, &Config::default()).unwrap();
//! let addrs = [0x0a02_0304, 0x0a01_0909, 0x0a01_02c8, 0x0b00_0000];
//! let mut hops = [Hop::NONE; 4];
//! sail.lookup_batch(&addrs, &mut hops);
//! assert_eq!(hops, [Hop::new(0), Hop::new(1), Hop::new(3), Hop::NONE]);
//! # Ok::<(), fibula_core::PrefixError>(())
//! ```

mod batch;
mod build;
mod byte;
mod entry;
mod load;
mod lookup;
mod update;

use fibula_core::{
    BuildError, Engine, Follow, Hop, LoadError, Lookup, Memory, Patched, Persist, Prefix, Routes,
    TableRef, TableSource,
};
use fibula_simd::Table;

use super::division::Chunk;

pub use byte::SailL8;
pub use entry::Entry;

mod name {
    pub(super) const BCN16: &str = "BCN16";
    pub(super) const BCN24: &str = "BCN24";
    pub(super) const BN24: &str = "BN24";
    pub(super) const C24: &str = "C24";
    pub(super) const N32: &str = "N32";
}

/// Parameters of [`SailL`] and [`SailL8`].
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Whether batches go through the levels in stages (see `batch.rs`), or one address after the
    /// other as in the paper. [`SailL8`] has the paper's loop alone.
    pub staged: bool,
}

/// SAIL_L with entries of 2 bytes, or of 4 (`SailL<u32>`); see the [module](self).
pub struct SailL<E: Entry = u16> {
    bcn16: Table<E>,
    bcn24: Table<Chunk<E>>,
    n32: Table<Chunk<E>>,
    free: Free,
    staged: bool,
}

/// The chunks that no entry names, as entries.
#[derive(Default)]
struct Free {
    level24: Vec<u32>,
    level32: Vec<u32>,
}

impl<E: Entry> SailL<E> {
    /// Chunks in use at levels 24 and 32.
    pub fn chunks(&self) -> [usize; 2] {
        let Self { bcn24, n32, free, .. } = self;
        [bcn24.len() - free.level24.len(), n32.len() - free.level32.len()]
    }
}

impl<E: Entry> Lookup<u32> for SailL<E> {
    #[inline]
    fn lookup(&self, addr: u32) -> Hop {
        lookup::lookup(self, addr)
    }

    fn lookup_batch(&self, addrs: &[u32], hops: &mut [Hop]) {
        assert_eq!(addrs.len(), hops.len(), "as many hops as addresses");
        if self.staged {
            batch::staged(self, addrs, hops);
        } else {
            batch::plain(self, addrs, hops);
        }
    }

    fn memory(&self) -> Memory {
        Memory::of_tables(&self.tables())
    }
}

impl<E: Entry> Engine<u32> for SailL<E> {
    const NAME: &'static str = E::NAME;
    type Config = Config;

    fn build(routes: &Routes<u32>, config: &Config) -> Result<Self, BuildError> {
        build::build(routes, config.staged)
    }
}

impl<E: Entry> Follow<u32> for SailL<E> {
    /// Rewrites the entries that the changed prefixes cover: O(entries and routes there). [`Patched::Rebuild`] when
    /// codes and chunks, free ones included, no longer fit into the entries together.
    fn follow(
        &mut self,
        routes: &Routes<u32>,
        changed: &[Prefix<u32>],
    ) -> Result<Patched, BuildError> {
        Ok(update::patch(self, routes, changed))
    }
}

impl<E: Entry> Persist<u32> for SailL<E> {
    fn tables(&self) -> Vec<TableRef<'_>> {
        vec![
            TableRef { name: name::BCN16, bytes: self.bcn16.as_bytes() },
            TableRef { name: name::BCN24, bytes: self.bcn24.as_bytes() },
            TableRef { name: name::N32, bytes: self.n32.as_bytes() },
        ]
    }

    fn load(tables: &dyn TableSource, hop_count: u32, config: &Config) -> Result<Self, LoadError> {
        load::load(tables, hop_count, config.staged)
    }
}
