//! **dxr**: range tables behind a direct table (Zec, Rizzo, Mikuc, *DXR: Towards a Billion Routing
//! Lookups Per Second in Software*, ACM SIGCOMM CCR 42(5), 2012). IPv4 only.
//!
//! # The scheme
//!
//! The routes are cut into elementary ranges, neighbours with equal hops merged, and the ranges into
//! 2^k *chunks*, one for each value of the first k bits of an address. The **lookup table** has an
//! entry for each chunk. A chunk that is one single range is answered there and then: of random
//! addresses that is 76 % with k = 16, 86 % with k = 18 and 95 % with k = 20 by the paper's table 3 (70, 85 and
//! 94 % of a generated table of its size). Any other chunk is a piece of the **range table**, searched by bisection
//! with the remaining 32 - k bits.
//!
//! The paper's five routes with k = 16 (section 3):
//!
//! ```text
//!   0.0.0.0/0  → A     lookup                          ranges (4-byte words)
//!   1.0.0.0/8  → B      0.0  direct A
//!   1.2.0.0/16 → C      ...
//!   1.2.3.0/24 → D      1.0  direct B
//!   1.2.4.5/32 → C      1.1  direct B                  word 0        word 1
//!                       1.2  short, size 3, word 0 ──► | 0 C | 3 D | 4 C |  -  |
//!                       1.3  direct B
//!                       ...
//! ```
//!
//! 1.2.4.5/32 has vanished: its neighbours go to C as well. To look up 1.2.3.9, entry 1.2 says
//! *short*: compare byte 3 with 0, 3, 4; the last that is not larger is 3, so the hop is D.
//!
//! **Entries.** A lookup-table entry is 32 bits: 1 bit of format, 12 bits of size, 19 bits of
//! position; size 0 marks a direct entry, whose 19 bits are the hop. A *short* range entry is 16 bits
//! (start without its last 8 bits, 8 bits of hop), used where all ranges of a chunk are made of /24s
//! and go to hops that fit; a *long* one is 32 bits (16 bits of start, 16 bits of hop). Either
//! compares as an integer with a key whose hop bits are all set, so the search unpacks nothing.
//! Positions count 4-byte words: chunks of an odd number of short entries leave half a word unused,
//! as the even sums in the paper's table 1 show theirs do. That table's sizes are exactly
//! 4 * 2^k + 2 * short + 4 * long + 24 * (hops + 1); ours are the same sum without the next-hop table,
//! plus 16 bytes. The example `dxr_paper_tables` prints both, and the paper's table of search steps.
//!
//! # What is ours
//!
//! - Hops are stored plus one; 0 is "no route" ([`Hop::NONE`]). The paper's tables have a default
//!   route.
//! - *Grain*: where the range table outgrows 2^19 words, or a chunk 4,095 ranges, chunks are padded
//!   to multiples of 2, 4 or 8 words and both fields count in those, as the paper suggests in passing.
//! - *Wide form*: beyond that, or with more than 65,535 hops, lookup-table entries have 64 bits (32 of
//!   size, 32 of position or hop) and a range is a 16-bit start in one array (`starts`) and a 32-bit
//!   hop in a parallel one (`hops`). It takes any table of up to 2^31 ranges.
//! - *Batches*: direct entries are answered in a first pass without a branch, the keys that are left
//!   are gathered and searched side by side, with conditional moves in place of branches. The paper's
//!   binary search as we read it ([`RangeSearch::Branching`], `dxr18-branching`) mispredicts nearly always.
//!
//! # Invariants
//!
//! - Every chunk lies inside the range table, before a guard word at least (a vector load of the last
//!   short entry reads 4 bytes). A build lays chunks in the order of their entries; a patched chunk may
//!   lie anywhere. No two overlap.
//! - Within a chunk starts do not decrease, and the first one is 0: each address is in some range.
//! - Hops in use are below the hop count, or none.
//!
//! # Limits and use
//!
//! k is 16 to 24: larger ones search less and miss the cache more. A change of routes rebuilds the
//! chunks under the changed prefixes (`update.rs`), as the paper's section 3.4 has it. D18R (k = 18) is a full table in
//! 1.5 to 4 MB. It is the smallest of the fast IPv4 engines and builds in some 20 ms; engines with two
//! or three fixed loads beat it where addresses hit long prefixes most of the time.
//!
//! ```
//! use fibula_core::{Engine, Hop, Lookup, Routes};
//! use fibula_engines::dxr::{Config, Dxr};
//!
//! let routes: Routes<u32> = [
//!     ("1.0.0.0/8".parse()?, Hop::new(1)),
//!     ("1.2.0.0/16".parse()?, Hop::new(2)),
//!     ("1.2.3.0/24".parse()?, Hop::new(3)),
//! ]
//! .into_iter()
//! .collect();
//! let dxr = Dxr::build(&routes, &Config { k: 16, ..Config::default() }).unwrap();
//! assert_eq!(dxr.lookup(0x0102_0309), Hop::new(3));
//! assert_eq!(dxr.lookup(0x0102_0409), Hop::new(2));
//! assert_eq!(dxr.lookup(0x0200_0000), Hop::NONE);
//! assert_eq!(dxr.stats().full_chunks, 1);
//! # Ok::<(), fibula_core::PrefixError>(())
//! ```

mod batch;
mod build;
mod format;
mod load;
mod lookup;
mod stats;
#[cfg(test)]
mod tests;
mod update;

use fibula_core::{
    BuildError, Engine, Hop, LoadError, Lookup, Memory, Persist, Routes, TableRef, TableSource,
};
use fibula_simd::{Isa, Level, Table};

pub use stats::Stats;

/// The values of k that the engine takes.
pub const K_RANGE: core::ops::RangeInclusive<u8> = 16..=24;

/// How batches are looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeSearch {
    /// Many side by side, with conditional moves.
    Batched,
    /// One after the other, each by a bisection that branches and ends where it hits: our reading of the
    /// paper's "binary search". For comparison.
    Branching,
}

/// Parameters of [`Dxr`].
#[derive(Clone, Debug)]
pub struct Config {
    /// How many leading bits of the address index the lookup table: 16 to 24, 18 by default.
    pub k: u8,
    /// How batches are looked up.
    pub search: RangeSearch,
    /// The instructions that the batch lookup may use.
    pub isa: Isa,
    /// How many threads cut the ranges of a build or of a large patch into chunks, which the paper leaves open: 1 by
    /// default, for programs that have other work for their cores. The tables are the same for any number.
    pub threads: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self { k: 18, search: RangeSearch::Batched, isa: Isa::detect(), threads: 1 }
    }
}

/// The compiled tables; see the [module](self).
pub struct Dxr {
    /// 32 - k.
    shift: u32,
    /// k, grain and form, which are needed to read a stored table.
    shape: Table<u32>,
    form: Form,
    search: RangeSearch,
    level: Level,
    threads: usize,
}

enum Form {
    Compact(Compact),
    Wide(Wide),
}

/// The paper's tables.
struct Compact {
    /// log2 of the words and entries that positions and sizes count in.
    grain: u32,
    lookup: Table<u32>,
    ranges: Table<u32>,
    /// Words of the range table up to the end of the last chunk; the guard is behind.
    used: usize,
    /// How many of them belong to no chunk, since patches left them.
    holes: usize,
}

/// The tables of the wide form.
struct Wide {
    lookup: Table<u64>,
    starts: Table<u16>,
    codes: Table<u32>,
    /// As [`Compact::used`] and [`Compact::holes`], in ranges.
    used: usize,
    holes: usize,
}

/// The tables' names; the wide form's third one holds the hops, which are part of the range entries in the paper.
mod name {
    pub(super) const SHAPE: &str = "shape";
    pub(super) const LOOKUP: &str = "lookup";
    pub(super) const RANGES: &str = "ranges";
    pub(super) const STARTS: &str = "starts";
    pub(super) const HOPS: &str = "hops";
}

impl Dxr {
    fn new(k: u32, form: Form, config: &Config) -> Self {
        let shape = match &form {
            Form::Compact(tables) => [k, tables.grain, 0],
            Form::Wide(_) => [k, 0, 1],
        };
        let &Config { search, isa, threads, .. } = config;
        let (shape, level) = (Table::from_slice(&shape), isa.level());
        Self { shift: 32 - k, shape, form, search, level, threads }
    }

    /// The number of leading address bits that index the lookup table.
    pub fn k(&self) -> u8 {
        (32 - self.shift) as u8
    }

    /// The parts of the tables, for comparison with the paper's table 1.
    pub fn stats(&self) -> Stats {
        stats::stats(self)
    }

    /// How many steps of bisection the lookup of this address takes, 0 for a direct hit: the paper's
    /// table 3.
    pub fn search_steps(&self, addr: u32) -> u32 {
        stats::search_steps(self, addr)
    }
}

impl Lookup<u32> for Dxr {
    #[inline]
    fn lookup(&self, addr: u32) -> Hop {
        match &self.form {
            Form::Compact(tables) => lookup::compact(tables, self.shift, addr, || ()),
            Form::Wide(tables) => lookup::wide(tables, self.shift, addr, || ()),
        }
    }

    fn lookup_batch(&self, addrs: &[u32], hops: &mut [Hop]) {
        assert_eq!(addrs.len(), hops.len(), "as many hops as addresses");
        let shift = self.shift;
        match self.search {
            RangeSearch::Batched => {
                self.level.run(batch::Batch { form: &self.form, shift, addrs, hops })
            }
            RangeSearch::Branching => lookup::branching(&self.form, shift, addrs, hops),
        }
    }

    fn memory(&self) -> Memory {
        Memory::of_tables(&self.tables())
    }
}

impl Engine<u32> for Dxr {
    const NAME: &'static str = "dxr";
    type Config = Config;

    fn build(routes: &Routes<u32>, config: &Config) -> Result<Self, BuildError> {
        if !K_RANGE.contains(&config.k) {
            let reason = format!("k is {}, must be 16 to 24", config.k).into();
            return Err(BuildError::Config { engine: Self::NAME, reason });
        }
        let k = config.k.into();
        Ok(Self::new(k, build::build(routes, k, config.threads)?, config))
    }
}

impl Persist<u32> for Dxr {
    fn tables(&self) -> Vec<TableRef<'_>> {
        let mut tables = vec![TableRef { name: name::SHAPE, bytes: self.shape.as_bytes() }];
        match &self.form {
            Form::Compact(t) => tables.extend([
                TableRef { name: name::LOOKUP, bytes: t.lookup.as_bytes() },
                TableRef { name: name::RANGES, bytes: t.ranges.as_bytes() },
            ]),
            Form::Wide(t) => tables.extend([
                TableRef { name: name::LOOKUP, bytes: t.lookup.as_bytes() },
                TableRef { name: name::STARTS, bytes: t.starts.as_bytes() },
                TableRef { name: name::HOPS, bytes: t.codes.as_bytes() },
            ]),
        }
        tables
    }

    fn load(tables: &dyn TableSource, hop_count: u32, config: &Config) -> Result<Self, LoadError> {
        let (k, form) = load::load(tables, hop_count)?;
        if k != config.k.into() {
            let reason = format!("k is {k}, the engine's is {}", config.k);
            return Err(LoadError::new(name::SHAPE, reason));
        }
        Ok(Self::new(k, form, config))
    }
}
