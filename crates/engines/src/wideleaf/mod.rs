//! **wideleaf**: a direct table, at most three tables whose strides suit the routes, then a record of
//! 16-bit keys in a cache line or in half of one. Our own scheme. IPv6 only.
//!
//! # The scheme
//!
//! The first 16 bits of the address index the **root**. The next 32 are its *key*. Root and tables consist of 32-bit
//! **words**, each of which determines the next step:
//!
//! ```text
//!   1 │ bits 4 │ base 27         table: index by so many bits of the key, or 16 for 0, from this word on
//!   0 1 │ place 25 │ keys 5      record: at this multiple of four bytes, with so many keys
//!   0 0 │ code 30                constant: all addresses have this code
//! ```
//!
//! A table consumes bits from the top of the key; the next table or record uses the remaining bits. A **record**
//! distinguishes up to 17 intervals, or up to 32, depending on the machine. It has the ends of all but the last one, as
//! 16-bit keys in ascending order, followed by the intervals' codes, of 8, 16 or 32 bits depending on the table. The
//! rank of an address in a record is the number of keys below the top 16 bits of its key: one vector comparison.
//!
//! ```text
//!   words    root, 2^16                              2001::/16's table, 8 words (3 bits)
//!            │..│ 2001: table, 3 bits │..│ const │ record A, 2 keys │ table, 5 bits │ const │ ..
//!                                                          │
//!   records  A: │ k0 │ k1 │ c0 │ c1 │ c2 │  ◄──────────────┘   in a unit, beside others
//!
//!   lookup 2001:3000::1   root word 0x2001: table; the key's first 3 bits are 001: its word 1, record A
//!                         the next 16 bits are 8000: k0 = 7fff is below, k1 = ffef is not: rank 1
//!                         code c1
//! ```
//!
//! Whether a block of addresses becomes a record or a table, and of how many bits, is chosen by *dynamic
//! programming* over all strides, for the least memory: `plan.rs`. A record's keys have 16 bits, so the
//! block must be small enough that the 16 bits after its prefix distinguish the ends of its intervals.
//!
//! **The machine.** The cost of a lookup is the cost of its memory accesses. All keys of a record lie in one **unit**,
//! which is read by one comparison; so does the whole record where it fits, and larger records begin at a line. The
//! unit is a line, with which tables are a quarter smaller, or half of one, which a Zen 4's second-level cache delivers
//! in a cycle. Likewise, words are gathered by one instruction, or loaded one by one. [`Variant`] has both choices,
//! `machine.rs` times batches with each, once a process. A stored table keeps its unit and is loaded on any machine.
//!
//! **Codes.** 0 means no route, *h* + 1 means hop *h*. The codes of **deep blocks** count down from the largest
//! code. The codes in records have the smallest width that holds all of them.
//!
//! **Deep blocks** are /48s that longer routes divide, or blocks for whose intervals tables would be too large. A deep
//! block has a **window**: the addresses among which its intervals end, wherever they lie, and a word. The 32 bits that
//! distinguish the window's addresses are the new key, with which the lookup goes on from that word, as it does from
//! the root's. Addresses around the window are treated as its first or last one. So a lonely /128 takes a window of 32
//! bytes and a record of two keys, however many bits lie between it and the next route, and intervals that even a
//! window does not distinguish are deep blocks in it: `deep.rs`. A batch's addresses in deep blocks are listed once the
//! others are answered, and executed together, those in blocks within blocks with the others that are left:
//! `descend.rs`.
//!
//! **Batches** execute each stage for 64 to 256 addresses at a time, without a branch that depends on a single lookup.
//! `batch.rs` divides a batch into blocks of rows and has the stages, `whole.rs` has them for batches of 64 and more
//! with AVX-512, `steps.rs` has their computations, `hops.rs` the end of a row; `plain.rs` is the form with
//! plain loads for machines without vectors.
//!
//! **Updates.** The smallest block around a changed prefix that has its own word is compiled again and
//! appended to the tables, then the word is stored: `update.rs`. Where a changed prefix covers a few neighbouring
//! entries of a table, their blocks are compiled, not the whole table. Once half of the memory is garbage,
//! or three eighths at a copy, the parts in use are copied to new tables (`compact.rs`); a table that has grown by half
//! since it was built is rebuilt, because its strides no longer suit its routes. If the codes run out, the parts in use
//! are copied with wider ones.
//!
//! # Invariants
//!
//! - Tables follow the root and share no words. A lookup reads at most three.
//! - The keys of a record ascend and lie in one unit. One more code than keys follows them.
//! - The first unit has no record.
//! - A code is 0, that of a hop below the hop count, or that of a deep block, which has no other one.
//! - The window of a deep block within another one is narrower than that one's. So every lookup ends.
//!
//! `load` checks them for all that a lookup can reach; `batch.rs` relies on them.
//!
//! # Limits and use
//!
//! Up to 2^30 - 1 hops and deep blocks together, 2^27 words of tables and as many bytes of records: some
//! ten million prefixes. The default for IPv6: 1.5 to 3.5 MB and some 30 ms for 180,000 prefixes. It is
//! made for batches: a single lookup reads four to five cache lines one after the other, as in other
//! engines. Each address under a route longer than /48 takes another
//! stage: tables with many routes of /49 to /64 are for `matchline`, whose lines decide 64 bits.
//!
//! ```
//! use fibula_core::{Engine, Hop, Lookup, Routes};
//! use fibula_engines::wideleaf::{Config, Wideleaf};
//!
//! let routes: Routes<u128> = [
//!     ("2001:db8::/32".parse()?, Hop::new(1)),
//!     ("2001:db8:1::/48".parse()?, Hop::new(2)),
//!     ("2001:db8:1::53/128".parse()?, Hop::new(3)),
//! ]
//! .into_iter()
//! .collect();
//! let wideleaf = Wideleaf::build(&routes, &Config::default()).unwrap();
//! let addrs = ["2001:db8:1::53", "2001:db8:1::54", "2001:db8:2::1", "2001:db9::"]
//!     .map(|addr| addr.parse::<std::net::Ipv6Addr>().unwrap().to_bits());
//! let mut hops = [Hop::NONE; 4];
//! wideleaf.lookup_batch(&addrs, &mut hops);
//! assert_eq!(hops, [Hop::new(3), Hop::new(2), Hop::new(1), Hop::NONE]);
//! # Ok::<(), fibula_core::PrefixError>(())
//! ```

mod batch;
mod build;
mod compact;
mod deep;
mod descend;
mod hops;
mod load;
mod lookup;
mod machine;
mod plain;
mod plan;
mod record;
mod steps;
#[cfg(test)]
mod tests;
mod update;
mod whole;
mod word;

use fibula_core::{
    BuildError, Engine, Follow, Hop, LoadError, Lookup, Memory, Patched, Persist, Prefix, Routes,
    TableRef, TableSource,
};
use fibula_simd::{Isa, Level, Table};

use deep::Deep;
use record::{Byte, ByteLine, Codes, Narrow, NarrowLine, Wide, WideLine};

const NAME: &str = "wideleaf";
const WORDS: &str = "words";
const WINDOWS: &str = "windows";

/// Address bits that index the root.
const ROOT_BITS: u32 = 16;
/// The address bits after the root's that tables and records use.
const KEY_BITS: u32 = 32;
/// Address bits of a cell: routes longer than that divide it.
const CELL_BITS: u32 = ROOT_BITS + KEY_BITS;
/// The most tables between root and record.
const LEVELS: usize = 3;
/// Parameters of [`Wideleaf`].
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// The instruction set of batch lookups; if the machine lacks it, the best one that it has is used.
    pub isa: Isa,
    /// How to lay records out and to read words; `None`: as suits this machine ([`Variant::here`]).
    pub variant: Option<Variant>,
}

/// The choices that depend on the machine rather than on the routes.
///
/// ```
/// use fibula_core::{Engine, Routes};
/// use fibula_engines::wideleaf::{Config, Variant, Wideleaf};
///
/// let config = Config { variant: Some(Variant { lines: true, gathers: false }), ..Config::default() };
/// assert!(Wideleaf::build(&Routes::default(), &config).is_ok());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    /// Whether the keys of a record may fill a cache line, or half a line. It takes effect when a table is built.
    pub lines: bool,
    /// Whether batches gather words, or load them one by one. Only AVX-512 gathers.
    pub gathers: bool,
}

/// The compiled tables; see the [module](self).
#[derive(Clone)]
pub struct Wideleaf {
    form: Form,
    level: Level,
    variant: Option<Variant>,
}

#[derive(Clone)]
enum Form {
    Byte(Tables<Byte>),
    Narrow(Tables<Narrow>),
    Wide(Tables<Wide>),
    ByteLine(Tables<ByteLine>),
    NarrowLine(Tables<NarrowLine>),
    WideLine(Tables<WideLine>),
}

#[derive(Clone)]
struct Tables<C: Codes> {
    /// The root, followed by all tables.
    words: Table<u32>,
    /// The records; the first unit has none.
    units: Table<C::Unit>,
    /// The windows of the deep blocks.
    windows: Table<Deep>,
    /// Number of each in use; the others are room for patches. After loading, all are in use.
    words_used: usize,
    units_used: usize,
    windows_used: usize,
    /// Bytes of tables, records and windows that patches have replaced.
    garbage: usize,
    /// Bytes of those in use. Space between the records of patches is not counted.
    live: usize,
    /// Bytes of all after the build or load.
    built: usize,
    /// Whether the next patch requires a build.
    is_outgrown: bool,
}

impl Form {
    /// The same with wider codes, if there are any and the records still fit.
    fn widened(&self) -> Option<Self> {
        Some(match self {
            Self::Byte(tables) => Self::Narrow(tables.with_codes()?),
            Self::Narrow(tables) => Self::Wide(tables.with_codes()?),
            Self::ByteLine(tables) => Self::NarrowLine(tables.with_codes()?),
            Self::NarrowLine(tables) => Self::WideLine(tables.with_codes()?),
            Self::Wide(_) | Self::WideLine(_) => return None,
        })
    }
}

/// Evaluates the expression for the tables of whichever form.
macro_rules! with_tables {
    ($form:expr, $tables:ident => $what:expr) => {
        match $form {
            Form::Byte($tables) => $what,
            Form::Narrow($tables) => $what,
            Form::Wide($tables) => $what,
            Form::ByteLine($tables) => $what,
            Form::NarrowLine($tables) => $what,
            Form::WideLine($tables) => $what,
        }
    };
}

/// The root entry of an address.
#[inline(always)]
fn root(addr: u128) -> usize {
    (addr >> (128 - ROOT_BITS)) as usize
}

/// The address bits that tables and records use.
#[inline(always)]
fn key(addr: u128) -> u32 {
    (addr >> (128 - CELL_BITS)) as u32
}

impl<C: Codes> Tables<C> {
    fn new(words: Table<u32>, units: Table<C::Unit>, windows: Table<Deep>) -> Self {
        let mut tables = Self {
            words_used: words.len(),
            units_used: units.len(),
            windows_used: windows.len(),
            garbage: 0,
            live: 0,
            built: 0,
            is_outgrown: false,
            words,
            units,
            windows,
        };
        tables.live = tables.used();
        tables.built = tables.live;
        tables
    }

    /// Bytes of tables, records and windows, garbage included.
    fn used(&self) -> usize {
        4 * self.words_used.saturating_sub(1 << ROOT_BITS)
            + size_of::<C::Unit>() * self.units_used
            + size_of::<Deep>() * self.windows_used
    }

    fn used_windows(&self) -> &[Deep] {
        &self.windows[..self.windows_used]
    }

    /// The number of the deep block that the code is for. If it is for a hop, the number is too large.
    #[inline(always)]
    fn block(&self, code: u32) -> u32 {
        C::TOP.wrapping_sub(code)
    }

    /// Whether the code is that of a deep block.
    #[inline(always)]
    fn is_deep(&self, code: u32) -> bool {
        self.block(code) < self.windows_used as u32
    }

    fn table_refs(&self) -> Vec<TableRef<'_>> {
        vec![
            TableRef { name: WORDS, bytes: self.words.as_bytes() },
            TableRef { name: C::NAME, bytes: self.units.as_bytes() },
            // Each window has a code that hops cannot have, so the room behind them is left out.
            TableRef { name: WINDOWS, bytes: bytemuck::cast_slice(self.used_windows()) },
        ]
    }
}

impl Lookup<u128> for Wideleaf {
    fn lookup(&self, addr: u128) -> Hop {
        with_tables!(&self.form, tables => self.level.run(lookup::One { tables, addr }))
    }

    fn lookup_batch(&self, addrs: &[u128], hops: &mut [Hop]) {
        assert_eq!(addrs.len(), hops.len(), "as many hops as addresses");
        let gathers = Variant::gathers(self.level, self.variant);
        with_tables!(&self.form, tables => tables.look_up(self.level, gathers, addrs, hops));
    }

    fn memory(&self) -> Memory {
        Memory::of_tables(&self.tables())
    }
}

impl Engine<u128> for Wideleaf {
    const NAME: &'static str = NAME;
    type Config = Config;

    fn build(routes: &Routes<u128>, config: &Config) -> Result<Self, BuildError> {
        build::build(routes, config)
    }
}

impl Follow<u128> for Wideleaf {
    fn follow(
        &mut self,
        routes: &Routes<u128>,
        changed: &[Prefix<u128>],
    ) -> Result<Patched, BuildError> {
        // A build would choose the narrowest codes again, and the next changes would soon run out of them.
        loop {
            if let Some(patched) =
                with_tables!(&mut self.form, tables => tables.patch(routes, changed))?
            {
                return Ok(patched);
            }
            match self.form.widened() {
                Some(wider) => self.form = wider,
                None => return Ok(Patched::Rebuild),
            }
        }
    }

    fn reach(&self, changed: Prefix<u128>) -> Option<Prefix<u128>> {
        Some(with_tables!(&self.form, tables => tables.reach(changed)))
    }

    fn copy(&self) -> Option<Self> {
        let mut copy = self.clone();
        with_tables!(&mut copy.form, tables => tables.own());
        Some(copy)
    }
}

impl Persist<u128> for Wideleaf {
    fn tables(&self) -> Vec<TableRef<'_>> {
        with_tables!(&self.form, tables => tables.table_refs())
    }

    fn load(tables: &dyn TableSource, hop_count: u32, config: &Config) -> Result<Self, LoadError> {
        let is_there = |name| tables.table(name).is_some();
        let form = if is_there(Byte::NAME) {
            Form::Byte(load::load(tables, hop_count)?)
        } else if is_there(Narrow::NAME) {
            Form::Narrow(load::load(tables, hop_count)?)
        } else if is_there(ByteLine::NAME) {
            Form::ByteLine(load::load(tables, hop_count)?)
        } else if is_there(NarrowLine::NAME) {
            Form::NarrowLine(load::load(tables, hop_count)?)
        } else if is_there(WideLine::NAME) {
            Form::WideLine(load::load(tables, hop_count)?)
        } else {
            Form::Wide(load::load(tables, hop_count)?)
        };
        Ok(Self { form, level: config.isa.level(), variant: config.variant })
    }
}
