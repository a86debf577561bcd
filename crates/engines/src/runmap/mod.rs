//! **runmap**: a direct table over 18 bits, then one record for each /18: a bitmap of its runs, directly
//! followed by their hops, usually in one cache line. Our own scheme. IPv4 only.
//!
//! # The scheme
//!
//! The addresses of a /18, a *block*, are 64 networks of length 24. Neighbouring networks with
//! the same hop form a *run*. The **record** of a block has a bitmap of 64 bits, in which the last
//! network of each run has its bit set, and a value for each run, the last run's first. The **root**
//! has a word for each of the 2^18 blocks: the place of its record.
//!
//! ```text
//!   0.0.0.0/0    → A     root            records
//!   1.2.0.0/16   → B     0.0.0           ┌ bitmap, bit 63 left ┬ values, 16 bits each ┐
//!   1.2.64.0/20  → C     ..       ─────► │ 1000...............0 │ A                    │  all of A
//!   1.2.80.0/24  → D     1.1.192         ├──────────────────────┼──────────────────────┤
//!                        1.2.0    ─────► │ 1000...............0 │ B                    │  1.2.0, .128
//!                        1.2.64   ─────► │ 1000..0 11 000...000 │ B D C                │  and .192
//!                        1.2.128  ─────► │      bit 16 ┘└ 15    │ │                    │
//!                        ..              └──────────────────────┴─│────────────────────┘
//!                                                                 └ 81 to 127 → B
//!   lookup 1.2.80.9:  root[1.2.64] is the third record; network 80 is bit 16 of its block
//!                     bitmap >> 16 has 2 bits left, so the value is the second: D
//! ```
//!
//! ```text
//!   word   = root[addr >> 14]                           a load, 1 MiB of them
//!   bitmap = 64 bits at word                            a load
//!   count  = popcount(bitmap >> (addr >> 8 & 63))       at least 1: bit 63 is always set
//!   value  = values of that record [count - 1]          a load, most often of the same line
//! ```
//!
//! A lookup has no branch, and reads only two places. A bit marks the *end* of its run because then one
//! shift leaves exactly the bits to be counted; marks at the start would take one instruction more. The
//! machine ignores the upper bits of the shift count.
//!
//! **Values** are 8, 16 or 32 bits wide, the narrowest that has a code for each hop of the table: 0 means
//! no hop, *h* + 1 means hop *h*, the 64 largest codes are *escapes*.
//!
//! **Routes longer than /24.** A network that they divide is a separate run whose value is an escape. The record's
//! first escape has the smallest of these codes, the next one the next code. The place of the network's own record is
//! stored in front of the bitmap, the first escape's place nearest to it:
//!
//! ```text
//!   │ place of 2nd │ place of 1st │ bitmap │ A  escape 1  A  escape 2  A │      the root's word points at the bitmap
//!                        │
//!                        └─► │ bitmap of 256 bits │ 4 counts │ codes, 32 bits each, the last run's first │
//! ```
//!
//! That record is read in the same way. For each of the bitmap's four words, a byte has the number of bits set in the
//! words after it, so that a lookup reads and counts one word. A batch detects escapes at the end of a stage, and looks
//! such addresses up in a stage of their own (`long.rs`): first all places, then all records. Addresses of hops for
//! which a forced width has no code are looked up in the same way. A patch of a table whose hops need a wider code
//! requests a build.
//!
//! **Places.** Equal records are stored once: two thirds of the blocks of an Internet table are one
//! run. A record that fits into a cache line (up to 28 runs with 16-bit values) does not cross the end of
//! one. Shorter records fill the gaps at the ends of lines.
//!
//! # Invariants
//!
//! - A patch writes a record in place of the old one if it is no longer and no other block has the old one. Others are
//!   added; the table consists of whole cache lines, so these begin at a new line. Replaced records remain until the
//!   table has grown by three eighths, at a copy, or by half; then the records in use are copied to a new table
//!   (`update.rs`).
//! - A root word is the place of a record's bitmap; the record lies in the table with a value for each set bit, and
//!   a place for each escape. The escapes of a record are numbered in the order of its values.
//! - Bit 63 of a bitmap is set, and bit 255 of a network's: each shift leaves at least one bit.
//! - The place of an escape is that of a network's record, which lies in the table with its counts and codes.
//! - The hops of all values and codes are below the hop count.
//!
//! `load` checks all of them, so they hold for hostile files too, and `batch.rs` may rely on them.
//!
//! # Limits and use
//!
//! It supports tables whose records fit into 4 GiB. Routes up to /24 need at most 70 MB; hundreds of
//! millions of longer routes could exceed the limit. A lookup is three loads and no search, so the worst case
//! is three cache lines, and two more below an escape. It is the default for IPv4: faster than DXR and
//! Poptrie on all traffic, long routes included, compiled from 900,000 routes in 30 ms and patched in place.
//! Where a process has 32 MB of cache for itself, DIR-24-8 with prefetching needs one load where runmap
//! needs three. See `docs/engines/runmap.md` for the numbers.
//!
//! ```
//! use fibula_core::{Engine, Hop, Lookup, Routes};
//! use fibula_engines::runmap::{Config, Runmap, Width};
//!
//! let routes: Routes<u32> = [
//!     ("1.2.0.0/16".parse()?, Hop::new(1)),
//!     ("1.2.64.0/20".parse()?, Hop::new(2)),
//!     ("1.2.80.0/24".parse()?, Hop::new(3)),
//!     ("1.2.80.9/32".parse()?, Hop::new(4)),
//! ]
//! .into_iter()
//! .collect();
//! let runmap = Runmap::build(&routes, &Config::default()).unwrap();
//! assert_eq!(runmap.width(), Width::Bits8);
//! let addrs = ["1.2.80.9", "1.2.80.10", "1.2.79.0", "1.2.128.0", "1.3.0.0"]
//!     .map(|addr| addr.parse::<std::net::Ipv4Addr>().unwrap().to_bits());
//! let mut hops = [Hop::NONE; 5];
//! runmap.lookup_batch(&addrs, &mut hops);
//! assert_eq!(hops, [Hop::new(4), Hop::new(3), Hop::new(2), Hop::new(1), Hop::NONE]);
//! # Ok::<(), fibula_core::PrefixError>(())
//! ```

mod batch;
mod build;
mod load;
mod long;
mod lookup;
mod old;
mod record;
mod space;
#[cfg(test)]
mod tests;
mod trains;
mod update;

use fibula_core::{
    BuildError, Engine, Follow, Hop, LoadError, Lookup, Memory, Patched, Persist, Prefix, Routes,
    TableRef, TableSource, narrow_batch,
};
use fibula_simd::{Isa, Level, Table};

use record::{Leaf, ROOT_BYTES};

/// Parameters of [`Runmap`].
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// The width of codes; `None` selects the narrowest that has a code for each hop of the routes.
    pub width: Option<Width>,
    /// The instruction set of batch lookups; if the machine lacks it, the best one that it has is used.
    pub isa: Isa,
}

/// The width of a table's codes. Every width supports all routes: a hop without a code of the width is stored
/// in a separate record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Width {
    /// 8 bits, for hops below 191.
    Bits8,
    /// 16 bits, for hops below 65,471.
    Bits16,
    /// 32 bits.
    Bits32,
}

impl Width {
    /// The narrowest that has a code for each hop of the routes.
    fn of(routes: &Routes<u32>) -> Self {
        Self::for_hops(routes.hop_count())
    }

    fn for_hops(hop_count: u32) -> Self {
        match hop_count {
            ..<u8 as Leaf>::ESCAPE => Self::Bits8,
            <u8 as Leaf>::ESCAPE..<u16 as Leaf>::ESCAPE => Self::Bits16,
            <u16 as Leaf>::ESCAPE.. => Self::Bits32,
        }
    }
}

/// The compiled tables; see the [module](self). Clones share the tables until one is patched.
#[derive(Clone)]
pub struct Runmap {
    form: Form,
    level: Level,
}

#[derive(Clone)]
enum Form {
    Bits8(Tables<u8>),
    Bits16(Tables<u16>),
    Bits32(Tables<u32>),
}

/// Evaluates the expression for the tables of whichever width.
macro_rules! each {
    ($form:expr, $tables:ident => $result:expr) => {
        match $form {
            Form::Bits8($tables) => $result,
            Form::Bits16($tables) => $result,
            Form::Bits32($tables) => $result,
        }
    };
}

/// If at least this share of values are escapes, it is faster that every lookup takes the step for them than that the
/// lookups that need it are listed.
const MOSTLY: f64 = 0.25;

/// The tables with codes of one width.
#[derive(Clone)]
struct Tables<V: Leaf> {
    /// The root, followed by the records.
    records: Table<u8>,
    /// Bytes of `records` in use; the rest is room for patches.
    used: usize,
    /// Bytes of `records` when they were built or loaded.
    built: usize,
    /// Whether the share of escapes is at least [`MOSTLY`].
    mostly_long: bool,
    /// A bit for each block whose record no other block shares. Empty until a patch needs it.
    alone: Vec<u64>,
    _width: std::marker::PhantomData<V>,
}

impl<V: Leaf> Tables<V> {
    fn new(records: Table<u8>) -> Self {
        let built = records.len();
        let mut tables = Self {
            records,
            used: built,
            built,
            mostly_long: false,
            alone: Vec::new(),
            _width: std::marker::PhantomData,
        };
        tables.mostly_long = tables.share_of_escapes() >= MOSTLY;
        tables
    }

    /// The words of the root.
    #[inline(always)]
    fn root(&self) -> &[u32] {
        bytemuck::cast_slice(&self.records[..ROOT_BYTES])
    }

    /// The share of escapes among the values, in a sample of the blocks with more than one run.
    fn share_of_escapes(&self) -> f64 {
        const STEP: usize = 61;
        let (mut all, mut escapes) = (0, 0);
        for at in self.root().iter().step_by(STEP).map(|&word| word as usize) {
            let runs = record::runs(&self.records, at);
            if runs > 1 {
                all += runs;
                escapes += record::escapes::<V>(&self.records, at);
            }
        }
        escapes as f64 / all.max(1) as f64
    }

    fn table_refs(&self) -> Vec<TableRef<'_>> {
        vec![TableRef { name: V::TABLE, bytes: &self.records }]
    }
}

impl Runmap {
    /// The width of its codes.
    pub fn width(&self) -> Width {
        match &self.form {
            Form::Bits8(_) => Width::Bits8,
            Form::Bits16(_) => Width::Bits16,
            Form::Bits32(_) => Width::Bits32,
        }
    }
}

impl Lookup<u32> for Runmap {
    fn lookup(&self, addr: u32) -> Hop {
        each!(&self.form, tables => self.level.run(lookup::One { tables, addr }))
    }

    fn lookup_batch(&self, addrs: &[u32], hops: &mut [Hop]) {
        assert_eq!(addrs.len(), hops.len(), "as many hops as addresses");
        each!(&self.form, tables => batch::lookup_batch(tables, self.level, addrs, hops));
    }

    fn lookup_batch16(&self, addrs: &[u32], hops: &mut [u16]) {
        assert_eq!(addrs.len(), hops.len(), "as many hops as addresses");
        match &self.form {
            Form::Bits8(tables) => batch::lookup_batch(tables, self.level, addrs, hops),
            Form::Bits16(tables) => batch::lookup_batch(tables, self.level, addrs, hops),
            // The low 16 bits of wider codes do not distinguish an escape from a hop.
            Form::Bits32(_) => narrow_batch(self, addrs, hops),
        }
    }

    fn memory(&self) -> Memory {
        Memory::of_tables(&self.tables())
    }
}

impl Engine<u32> for Runmap {
    const NAME: &'static str = "runmap";
    type Config = Config;

    fn build(routes: &Routes<u32>, config: &Config) -> Result<Self, BuildError> {
        let form = match config.width.unwrap_or_else(|| Width::of(routes)) {
            Width::Bits8 => Form::Bits8(build::build(routes)?),
            Width::Bits16 => Form::Bits16(build::build(routes)?),
            Width::Bits32 => Form::Bits32(build::build(routes)?),
        };
        Ok(Self { form, level: config.isa.level() })
    }
}

impl Follow<u32> for Runmap {
    fn follow(
        &mut self,
        routes: &Routes<u32>,
        changed: &[Prefix<u32>],
    ) -> Result<Patched, BuildError> {
        if Width::of(routes) > self.width() {
            return Ok(Patched::Rebuild);
        }
        each!(&mut self.form, tables => tables.patch(routes, changed))
    }

    fn reach(&self, changed: Prefix<u32>) -> Option<Prefix<u32>> {
        Some(update::block(changed))
    }

    fn copy(&self) -> Option<Self> {
        let mut copy = self.clone();
        each!(&mut copy.form, tables => tables.own());
        Some(copy)
    }
}

impl Persist<u32> for Runmap {
    fn tables(&self) -> Vec<TableRef<'_>> {
        each!(&self.form, tables => tables.table_refs())
    }

    fn load(tables: &dyn TableSource, hop_count: u32, config: &Config) -> Result<Self, LoadError> {
        let form = if let Some(tables) = load::load(tables, hop_count)? {
            Form::Bits8(tables)
        } else if let Some(tables) = load::load(tables, hop_count)? {
            Form::Bits16(tables)
        } else if let Some(tables) = load::load(tables, hop_count)? {
            Form::Bits32(tables)
        } else {
            let old = match Width::for_hops(hop_count) {
                Width::Bits8 => load::load_old(tables, hop_count)?.map(Form::Bits8),
                Width::Bits16 => load::load_old(tables, hop_count)?.map(Form::Bits16),
                Width::Bits32 => load::load_old(tables, hop_count)?.map(Form::Bits32),
            };
            old.ok_or_else(|| LoadError::new(<u32 as Leaf>::TABLE, "is missing"))?
        };
        Ok(Self { form, level: config.isa.level() })
    }
}
