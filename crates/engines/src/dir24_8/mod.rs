//! **dir24-8**: a direct table over 24 bits, behind it chunks of 256 (Gupta, Lin, McKeown, *Routing
//! Lookups in Hardware at Memory Access Speeds*, INFOCOM 1998: DIR-24-8-BASIC). IPv4 only.
//!
//! # The scheme
//!
//! `tbl24` has an entry for each *block* of 256 addresses: its hop or, where routes longer than /24
//! divide it, the number of a *chunk* of `tbllong`, which has an entry for each address of the block.
//!
//! ```text
//!   10.0.0.0/8    → A        tbl24                      tbllong
//!   10.1.2.128/26 → B         ...                        chunk 0
//!                             10.1.1   A                  0 .. 127    A
//!                             10.1.2   chunk 0 ─────────► 128 .. 191  B
//!                             10.1.3   A                  192 .. 255  A
//!                             ...
//!
//!   entry      │ chunk? 1 bit │ number of the chunk, or code of the hop: 15 or 31 bits │
//! ```
//!
//! 10.1.2.130: entry 10.1.2 names chunk 0, whose entry 130 is B. 10.1.3.130: A, in one load. Few routes
//! are longer than /24, so nearly every lookup is one load, but of 32 MB: most of it misses the caches
//! if addresses are spread evenly. The comparison in the DXR paper (section 4.3) is with this scheme
//! and these 16-bit entries; the original's second table has 8-bit entries.
//!
//! # What is ours
//!
//! - Hops are stored plus one; 0 is "no route" ([`Hop::NONE`]).
//! - *Wide*: entries of 32 bits, where hops or chunks exceed 15 bits.
//! - [`Batch::Prefetch`]: the entries of a batch are first prefetched into the second-level cache; see `batch.rs` for
//!   measurements. With AVX-512, on machines that gather words faster than they load them, a batch is looked up by
//!   gathers.
//! - [`Follow`]: a change rewrites the entries under its prefix from the routes there. Chunks are taken from a list
//!   of free ones, and returned to it.
//!
//! # Invariants
//!
//! - An entry of `tbl24` with a chunk number refers to an existing chunk of `tbllong`, and no two entries refer to
//!   the same.
//! - Entries of chunks in use are codes of hops, and the hops are below the hop count, or none. Free chunks are never
//!   read.
//!
//! # Limits and use
//!
//! 16 bits: 32,767 hops and 32,768 chunks. 32 bits: 2^31 - 1 hops, and no limit of chunks, as there are
//! only 2^24 blocks. Builds in 20 to 40 ms. With prefetching it is the fastest where a core has
//! the memory and the last-level cache to itself; it takes both from all others on the machine, and
//! lookups that wait for one another take a trip to memory each.
//!
//! ```
//! use fibula_core::{Engine, Follow, Hop, Lookup, Patched, Routes};
//! use fibula_engines::dir24_8::{Config, Dir24_8};
//!
//! let mut list = vec![
//!     ("10.0.0.0/8".parse()?, Hop::new(1)),
//!     ("10.1.2.128/26".parse()?, Hop::new(2)),
//! ];
//! let routes: Routes<u32> = list.iter().copied().collect();
//! let mut dir = Dir24_8::build(&routes, &Config::default()).unwrap();
//! assert_eq!((dir.chunks(), dir.lookup(0x0a01_0282)), (1, Hop::new(2)));
//! assert_eq!(dir.lookup(0x0a01_02c0), Hop::new(1));
//!
//! let (gone, _) = list.pop().unwrap();
//! let routes: Routes<u32> = list.into_iter().collect();
//! assert_eq!(dir.follow(&routes, &[gone]), Ok(Patched::Applied));
//! assert_eq!((dir.chunks(), dir.lookup(0x0a01_0282)), (0, Hop::new(1)));
//! # Ok::<(), fibula_core::PrefixError>(())
//! ```

mod batch;
mod build;
mod entry;
mod load;
mod lookup;
#[cfg(test)]
mod tests;
mod update;

use fibula_core::{
    BuildError, Engine, Follow, Hop, LoadError, Lookup, Memory, Patched, Persist, Prefix, Routes,
    TableRef, TableSource,
};
use fibula_simd::{Isa, Level, Table};

use entry::Entry;

/// Entries of `tbl24`: blocks of 256 addresses.
const BLOCKS: usize = 1 << 24;
/// Entries of a chunk of `tbllong`: addresses of a block.
const CHUNK_LEN: usize = 256;

/// How wide the entries are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Width {
    /// 16 bits, the paper's: 32 MB, up to 32,767 hops and 32,768 chunks.
    #[default]
    Bits16,
    /// 32 bits: 64 MB, up to 2^31 - 1 hops.
    Bits32,
}

/// How a batch is looked up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Batch {
    /// The paper's loop, an address after the other.
    #[default]
    Plain,
    /// Entries are prefetched some dozens of addresses ahead.
    Prefetch,
}

/// Parameters of [`Dir24_8`].
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// How wide the entries are.
    pub width: Width,
    /// How a batch is looked up.
    pub batch: Batch,
    /// The instruction set of batches that are prefetched; if the machine lacks it, the best one that it has is used.
    pub isa: Isa,
}

/// The compiled tables; see the [module](self). Clones share the tables until one is patched.
#[derive(Clone)]
pub struct Dir24_8 {
    form: Form,
    batch: Batch,
    level: Level,
}

#[derive(Clone)]
enum Form {
    Narrow(Tables<u16>),
    Wide(Tables<u32>),
}

/// The paper's tables, of entries of either width.
#[derive(Clone)]
struct Tables<E: Entry> {
    /// TBL24: for each block of 256 addresses its hop, or the chunk that has their hops.
    tbl24: Table<E>,
    /// TBLlong: the chunks.
    tbl_long: Table<E>,
    /// The chunks that no block has. They are not stored, because `tbl24` shows which they are.
    free: Vec<u32>,
}

impl<E: Entry> Tables<E> {
    /// Copies the tables to memory that no clone shares.
    fn own(&mut self) {
        self.tbl24.to_mut();
        self.tbl_long.to_mut();
    }

    fn table_refs(&self) -> Vec<TableRef<'_>> {
        vec![
            TableRef { name: E::TBL24, bytes: self.tbl24.as_bytes() },
            TableRef { name: E::TBL_LONG, bytes: self.tbl_long.as_bytes() },
        ]
    }
}

impl Dir24_8 {
    /// How many blocks of 256 addresses longer routes divide: chunks in use.
    pub fn chunks(&self) -> usize {
        match &self.form {
            Form::Narrow(tables) => tables.chunks() - tables.free.len(),
            Form::Wide(tables) => tables.chunks() - tables.free.len(),
        }
    }
}

impl Lookup<u32> for Dir24_8 {
    #[inline]
    fn lookup(&self, addr: u32) -> Hop {
        match &self.form {
            Form::Narrow(tables) => lookup::lookup(tables, addr),
            Form::Wide(tables) => lookup::lookup(tables, addr),
        }
    }

    fn lookup_batch(&self, addrs: &[u32], hops: &mut [Hop]) {
        assert_eq!(addrs.len(), hops.len(), "as many hops as addresses");
        match (&self.form, self.batch) {
            (Form::Narrow(tables), Batch::Plain) => batch::plain(tables, addrs, hops),
            (Form::Narrow(tables), Batch::Prefetch) => {
                batch::prefetching(tables, self.level, addrs, hops)
            }
            (Form::Wide(tables), Batch::Plain) => batch::plain(tables, addrs, hops),
            (Form::Wide(tables), Batch::Prefetch) => {
                batch::prefetching(tables, self.level, addrs, hops)
            }
        }
    }

    fn memory(&self) -> Memory {
        Memory::of_tables(&self.tables())
    }
}

impl Engine<u32> for Dir24_8 {
    const NAME: &'static str = "dir24-8";
    type Config = Config;

    fn build(routes: &Routes<u32>, config: &Config) -> Result<Self, BuildError> {
        let form = match config.width {
            Width::Bits16 => Form::Narrow(build::build(routes)?),
            Width::Bits32 => Form::Wide(build::build(routes)?),
        };
        Ok(Self { form, batch: config.batch, level: config.isa.level() })
    }
}

impl Follow<u32> for Dir24_8 {
    fn follow(
        &mut self,
        routes: &Routes<u32>,
        changed: &[Prefix<u32>],
    ) -> Result<Patched, BuildError> {
        match &mut self.form {
            Form::Narrow(tables) => tables.patch(routes, changed)?,
            Form::Wide(tables) => tables.patch(routes, changed)?,
        }
        Ok(Patched::Applied)
    }

    fn copy(&self) -> Option<Self> {
        let mut copy = self.clone();
        match &mut copy.form {
            Form::Narrow(tables) => tables.own(),
            Form::Wide(tables) => tables.own(),
        }
        Some(copy)
    }
}

impl Persist<u32> for Dir24_8 {
    fn tables(&self) -> Vec<TableRef<'_>> {
        match &self.form {
            Form::Narrow(tables) => tables.table_refs(),
            Form::Wide(tables) => tables.table_refs(),
        }
    }

    fn load(tables: &dyn TableSource, hop_count: u32, config: &Config) -> Result<Self, LoadError> {
        let form = match config.width {
            Width::Bits16 => Form::Narrow(load::load(tables, hop_count)?),
            Width::Bits32 => Form::Wide(load::load(tables, hop_count)?),
        };
        Ok(Self { form, batch: config.batch, level: config.isa.level() })
    }
}
