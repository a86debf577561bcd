//! **matchline**: a direct table, tables whose strides suit the routes, then a cache line of whole prefixes, all of
//! which are compared at once. Our own scheme. IPv6 only.
//!
//! # The scheme
//!
//! The **root** has a word for each block of addresses of the same size, between the first and the last prefix of the
//! table. Root and tables consist of 32-bit **words**, each of which determines the next step:
//!
//! ```text
//!   1 │ shift 6 │ width 3 │ base 22   table: index by 2 * (width + 1) address bits from bit `shift` on, at word 4 * base
//!   0 1 │ line 30                     the answer is in this line
//!   0 0 │ code 30                     all addresses have this code
//! ```
//!
//! A **line** is a cache line. It has 5, 6 or 7 prefixes of up to 64 bits, the longest first, then their codes, of 32,
//! 16 or 8 bits depending on the table, then the code of addresses that none of them covers. A prefix is a 64-bit word:
//! the address bits after the first six, and in its low bits the number of bits from the right that do not belong to
//! it. One vector operation compares all of them: an address differs from a prefix that covers it in no other bits. The
//! lowest bit of the result is the longest match. A ternary content-addressable memory works in the same way; its match
//! lines gave the engine its name.
//!
//! ```text
//!   line   │ p0 │ p1 │ p2 │ p3 │ p4 │ p5 │ c0 c1 c2 c3 c4 c5 c │     6 prefixes, 7 codes of 16 bits
//!            /64  /64  /64  /60  /48  /48
//!
//!   root        │ .. │ line 8 │ line 8 │ table, 4 bits │ code │ line 9 │ ..      blocks share lines
//!                                              │
//!   table                     │ line 9 │ line 10 │ code │ line 10 │ ..
//!
//!   lookup 2001:db8:1:7::1   root word: line 8
//!                            its bits 000101: p3 (2001:db8:1::/60) and p5 (2001:db8:1::/48) cover it
//!                            c3
//! ```
//!
//! **Lines are shared.** A line may have prefixes of several blocks, because each of them is a route of the table, and
//! true for every address: no address finds a longer prefix in a line than its longest match, which is in the line that
//! its word names. So lines are nearly full, whatever the sizes of blocks (5.7 to 6.0 prefixes of 6).
//!
//! **Tables skip bits.** If all prefixes of a block have bits in common, its table begins after them. The skipped bits
//! are not tested by tables, but lines compare whole prefixes. The lines below such a table also have the prefixes
//! around those bits, for addresses that differ in them. So 100 routes of /64 in one /48 are one table and some 17
//! lines.
//!
//! **The strides** are chosen from above, for each table the width for which its words, and a price for each prefix
//! that would be below one more table, cost least (`build.rs`).
//!
//! **Codes.** 0 means no route, *h* + 1 means hop *h*. From `blocks_from` on, codes are those of networks (/64) in
//! which longer routes lie: their intervals of low bits are bisected.
//!
//! **Batches** execute each stage for 128 addresses at a time, without a branch that depends on a single lookup:
//! `batch.rs`.
//!
//! **Updates.** The words of the smallest blocks around a changed prefix are compiled again (`site.rs` finds them,
//! `update.rs` compiles them). A line with room is changed in place, though blocks share it: a prefix matters only for
//! the addresses that it covers, and all words to which these are led are compiled. Other lines and tables are
//! appended; then the words are stored. A build is needed for another ::/0, for routes outside of the root, for more
//! hops than there are codes, and once the table has grown by half.
//!
//! # Invariants
//!
//! - A table lies behind the word that names it, so every lookup ends.
//! - The line of a word has the longest match of all addresses that are led to it, if it is longer than the first six
//!   bits.
//! - All prefixes of a line have their first six bits in common with all addresses that are led to it, because the line
//!   does not contain these bits. Routes of up to /6 are in lines as /7s.
//! - The prefixes of a line that may cover an address led to it have the code of the table's routes. After patches,
//!   lines may also have other prefixes, of addresses that are led elsewhere by now.
//! - A code is 0, that of a hop below the hop count, or that of a block. There is always line 0.
//!
//! `load` checks those on which memory safety depends, for all that a lookup can reach, and `batch.rs` relies on them.
//!
//! # Limits and use
//!
//! Up to 2^30 - 2 hops and /64s with longer routes together, and 2^24 words of tables: some ten million prefixes. It is
//! the choice of `auto` for IPv6 tables with many routes of /49 to /64: some 2.7 MB for 200,000 of them. Where routes
//! are shorter, `wideleaf` is faster and smaller; and where most are longer than /64, because each address under one
//! takes a bisection here, all in turn.
//!
//! ```
//! use fibula_core::{Engine, Hop, Lookup, Routes};
//! use fibula_engines::matchline::{Config, Matchline};
//!
//! let routes: Routes<u128> = [
//!     ("2001:db8::/32".parse()?, Hop::new(1)),
//!     ("2001:db8:1::/64".parse()?, Hop::new(2)),
//!     ("2001:db8:1::53/128".parse()?, Hop::new(3)),
//! ]
//! .into_iter()
//! .collect();
//! let matchline = Matchline::build(&routes, &Config::default()).unwrap();
//! let addrs = ["2001:db8:1::53", "2001:db8:1::54", "2001:db8:2::1", "2001:db9::"]
//!     .map(|addr| addr.parse::<std::net::Ipv6Addr>().unwrap().to_bits());
//! let mut hops = [Hop::NONE; 4];
//! matchline.lookup_batch(&addrs, &mut hops);
//! assert_eq!(hops, [Hop::new(3), Hop::new(2), Hop::new(1), Hop::NONE]);
//! # Ok::<(), fibula_core::PrefixError>(())
//! ```

mod batch;
mod build;
mod items;
mod line;
mod load;
mod lookup;
mod pack;
#[cfg(test)]
mod patch_tests;
mod site;
#[cfg(test)]
mod tests;
mod update;
mod word;

use std::marker::PhantomData;

use bytemuck::{Pod, Zeroable};
use fibula_core::{
    BuildError, Engine, Follow, Hop, LoadError, Lookup, Memory, Patched, Persist, Prefix, Routes,
    TableRef, TableSource,
};
use fibula_simd::{Isa, Level, Table};

use crate::common::Long;
use line::{Code, Line};

const NAME: &str = "matchline";
const SHAPE: &str = "shape";
const WORDS: &str = "words";

/// Parameters of [`Matchline`].
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// The instruction set of its batch lookups; one that the machine lacks gives the best of its forms.
    pub isa: Isa,
    /// Whether batches gather words by one instruction, or load them one by one; `None`: as measured on this machine,
    /// once a process, in less than 1 ms. Only AVX-512 gathers.
    pub gathers: Option<bool>,
}

/// The compiled tables; see the [module](self).
#[derive(Clone)]
pub struct Matchline {
    form: Form,
    level: Level,
    gathers: Option<bool>,
}

#[derive(Clone)]
enum Form {
    Byte(Tables<u8>),
    Narrow(Tables<u16>),
    Wide(Tables<u32>),
}

#[derive(Clone)]
struct Tables<C: Code> {
    /// The root, followed by all tables.
    words: Table<u32>,
    /// Line 0 is nobody's.
    lines: Table<Line>,
    shape: RootShape,
    long: Option<Long>,
    /// Number of words and lines in use; the others are room for patches. After loading, all are in use.
    words_used: usize,
    lines_used: usize,
    /// Bytes of words and lines after the build or load.
    built: usize,
    /// Blocks of [`Long`] without a network.
    free: Vec<usize>,
    /// Whether the next patch requires a build.
    is_outgrown: bool,
    codes: PhantomData<C>,
}

/// Where the root's blocks lie, and how codes are divided.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct RootShape {
    /// The first 32 bits of the first address that has a root entry.
    low: u32,
    /// Bits of the first 32 that addresses of an entry do not have in common.
    shift: u32,
    /// The number of entries. One word more is for all other addresses.
    entries: u32,
    /// The code of the first block of [`Long`].
    blocks_from: u32,
}

impl RootShape {
    /// The root entry of an address whose upper half this is.
    #[inline(always)]
    fn entry(&self, high: u64) -> usize {
        ((high >> 32) as u32).wrapping_sub(self.low).wrapping_shr(self.shift).min(self.entries)
            as usize
    }

    /// The first upper half of a root entry; `None` if this is the entry of all other addresses.
    fn key(&self, entry: usize) -> Option<u64> {
        let of_entry = || (u64::from(self.low) + ((entry as u64) << self.shift)) << 32;
        (entry < self.entries as usize).then(of_entry)
    }

    /// Whether some of the prefix's addresses have no root entry.
    fn is_outside(&self, prefix: Prefix<u128>) -> bool {
        let end = u64::from(self.low) + (u64::from(self.entries) << self.shift);
        prefix.first() >> 96 < self.low.into() || prefix.last() >> 96 >= end.into()
    }
}

/// Evaluates the expression for the tables of whichever form.
macro_rules! with_tables {
    ($form:expr, $tables:ident => $what:expr) => {
        match $form {
            Form::Byte($tables) => $what,
            Form::Narrow($tables) => $what,
            Form::Wide($tables) => $what,
        }
    };
}

impl<C: Code> Tables<C> {
    fn new(words: Table<u32>, lines: Table<Line>, shape: RootShape, long: Option<Long>) -> Self {
        let mut tables = Self {
            words_used: words.len(),
            lines_used: lines.len(),
            built: 0,
            free: Vec::new(),
            is_outgrown: false,
            codes: PhantomData,
            words,
            lines,
            shape,
            long,
        };
        tables.built = tables.used();
        tables
    }

    /// Bytes of words and lines, including those that patches have replaced.
    fn used(&self) -> usize {
        4 * self.words_used + size_of::<Line>() * self.lines_used
    }

    fn long_blocks(&self) -> usize {
        self.long.as_ref().map_or(0, Long::blocks)
    }

    fn table_refs(&self) -> Vec<TableRef<'_>> {
        let mut tables = vec![
            TableRef { name: SHAPE, bytes: bytemuck::bytes_of(&self.shape) },
            TableRef { name: WORDS, bytes: self.words.as_bytes() },
            TableRef { name: C::NAME, bytes: self.lines.as_bytes() },
        ];
        tables.extend(self.long.iter().flat_map(Long::tables));
        tables
    }
}

impl Lookup<u128> for Matchline {
    fn lookup(&self, addr: u128) -> Hop {
        with_tables!(&self.form, tables => self.level.run(lookup::One { tables, addr }))
    }

    fn lookup_batch(&self, addrs: &[u128], hops: &mut [Hop]) {
        assert_eq!(addrs.len(), hops.len(), "as many hops as addresses");
        let gathers = self.level.isa() == Isa::Avx512
            && self.gathers.unwrap_or_else(|| self.level.gathers_well());
        with_tables!(&self.form, tables => batch::look_up(tables, self.level, gathers, addrs, hops));
    }

    fn memory(&self) -> Memory {
        Memory::of_tables(&self.tables())
    }
}

impl Engine<u128> for Matchline {
    const NAME: &'static str = NAME;
    type Config = Config;

    fn build(routes: &Routes<u128>, config: &Config) -> Result<Self, BuildError> {
        Ok(Self { form: build::build(routes)?, level: config.isa.level(), gathers: config.gathers })
    }
}

impl Follow<u128> for Matchline {
    fn follow(
        &mut self,
        routes: &Routes<u128>,
        changed: &[Prefix<u128>],
    ) -> Result<Patched, BuildError> {
        with_tables!(&mut self.form, tables => tables.patch(routes, changed))
    }

    fn copy(&self) -> Option<Self> {
        let mut copy = self.clone();
        with_tables!(&mut copy.form, tables => tables.own());
        Some(copy)
    }
}

impl Persist<u128> for Matchline {
    fn tables(&self) -> Vec<TableRef<'_>> {
        with_tables!(&self.form, tables => tables.table_refs())
    }

    fn load(tables: &dyn TableSource, hop_count: u32, config: &Config) -> Result<Self, LoadError> {
        let is_there = |name| tables.table(name).is_some();
        let form = if is_there(u8::NAME) {
            Form::Byte(load::load(tables, hop_count)?)
        } else if is_there(u16::NAME) {
            Form::Narrow(load::load(tables, hop_count)?)
        } else {
            Form::Wide(load::load(tables, hop_count)?)
        };
        Ok(Self { form, level: config.isa.level(), gathers: config.gathers })
    }
}
