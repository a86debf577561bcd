//! **wideleaf**: a direct table, at most two tables whose strides suit the routes, then leaves of a whole
//! cache line. Our own; IPv6.
//!
//! # The scheme
//!
//! The first 16 bits of the address index the **root**. The next 32, its *key*, are what tables and
//! lines see. Root and tables consist of 32-bit **words**, each of which says what to do next:
//!
//! ```text
//!   1 │ code 31                       constant: all addresses have this code
//!   0 1 0 │ line 29                   leaf: search this line
//!   0 1 1 │ line 29                   node: search this line, then the rank-th leaf behind it
//!   0 0 │ base 20 │ down 5 │ from 5   table: index (key << from) >> down, from this base on
//! ```
//!
//! A **leaf** is a cache line: ten 32-bit keys, the ends of its intervals but for the last one, and
//! behind them eleven 16-bit codes. A **node** is a line of sixteen keys: the ends of the seventeen
//! leaves, or fewer, that stand behind it, but for the last one's. Places without a key are all ones.
//! The rank of an address in a line is the number of keys below its own: one vector comparison.
//!
//! ```text
//!   words  root, 2^16                                 2001::/16's table, 8 words (stride 3)
//!          │..│ 2001: table, base, from 0, 3 bits │..│ const │ leaf 5 │ node 7 │ const │ ..
//!                                                              │         ╲
//!   lines  0: no keys   ..  5: leaf  ◄─────────────────────────┘          ╲
//!                              │ e0 e1 e2 - - - - - - - │ c0 c1 c2 c3 ..│   ╲
//!                           7: node  ◄──────────────────────────────────────┘
//!                              │ e10 e21 - - - - - - - - - - - - - - │       ends of leaves 8 and 9
//!                           8: leaf │ e0 .. e9   │ c0 .. c10  │
//!                           9: leaf │ e11 .. e20 │ c11 .. c21 │
//!                          10: leaf │ e22 e23 -  │ c22 c23 c24│
//!
//!   lookup 2001:5000::1   root word 0x2001: table; the key's first 3 bits are 010: its word 2, node 7
//!                         rank of the key in line 7 is 1 (e10 < key <= e21): leaf 7 + 1 + 1 = 9
//!                         rank of the key in line 9 is 4: code c15
//! ```
//!
//! Where a block of addresses has up to 11 intervals it is a leaf, and up to 187 a node with leaves;
//! larger ones become tables. How many bits these resolve is chosen by *dynamic programming* over all
//! strides, for the least memory: `plan.rs`. Nodes are what keeps tables small, since routes lie in
//! clusters: without nodes the tables have to grow until no cell has more than 11 intervals, to ten
//! times the memory in all, or to twice with a third table (measured).
//!
//! **Codes.** 0 is no route, *h* + 1 is hop *h*. Counted down from the largest code come the **deep
//! blocks**: the intervals of whole addresses in a block that lines cannot tell apart, searched by
//! bisection. That is a /48 that longer routes divide, or a block whose intervals lie so badly that
//! tables for them would be too large; so any table is taken, in bounded memory. Codes that 16 bits do
//! not hold make the **wide form**: leaves of seven keys and eight 32-bit codes.
//!
//! **Batches** go through the stages side by side, 128 at a time, without a branch that depends on the
//! data of one: `batch.rs`.
//!
//! **Updates.** What lies under one root word is compiled anew behind all that is there, then the word
//! is stored: `update.rs`.
//!
//! # Invariants
//!
//! - Tables stand behind the root, at multiples of the grain, and share no words. A lookup goes through
//!   at most two.
//! - The keys of a line ascend, and only all-ones follow the last one: no rank is larger than the
//!   number of keys, and a mask of the keys below has its bits together, at the low end.
//! - Behind a node stand as many leaves as it has keys, and one more. A leaf has a code for each key,
//!   and one more.
//! - Line 0 has no keys.
//! - Codes are below the hop count, or 0, or those of deep blocks.
//!
//! `load` checks them for all that a lookup can reach; `batch.rs` relies on them.
//!
//! # Limits and use
//!
//! Up to 2^31 - 2 hops and deep blocks together. The default for IPv6:
//! 2 to 3 MB and some 40 ms for 180,000 prefixes. It is made for batches: a single lookup goes through four
//! to five cache lines one after the other, as elsewhere, and batches below 32 do not fill the stages.
//! Addresses under routes longer than /48 take a bisection each: tables that consist of such routes are
//! better served by PlanB, which decides 64 bits before it bisects.
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
mod deep;
mod leaf;
mod load;
mod lookup;
mod plan;
#[cfg(test)]
mod tests;
mod update;
mod word;

use std::marker::PhantomData;

use fibula_core::{
    BuildError, Engine, Hop, LoadError, Lookup, Memory, Patch, Patched, Persist, Prefix, Routes,
    TableRef, TableSource,
};
use fibula_simd::{Isa, Level, Table};

use deep::Deep;
use leaf::{Leaf, Line, Narrow, Wide};

const NAME: &str = "wideleaf";
const SHAPE: &str = "shape";
const WORDS: &str = "words";

/// Address bits that index the root.
const ROOT_BITS: u32 = 16;
/// Address bits behind the root's that tables and leaves see.
const KEY_BITS: u32 = 32;
/// Address bits of a cell: routes longer than that divide it.
const CELL_BITS: u32 = ROOT_BITS + KEY_BITS;
/// Tables between root and leaf, at most.
const LEVELS: usize = 2;
/// Grains (as powers of two) in which entries count words, tried in order.
const GRAINS: core::ops::RangeInclusive<u32> = 2..=6;

/// Parameters of [`Wideleaf`].
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// The instruction set of its batch lookups; one that the machine lacks gives the best below it.
    pub isa: Isa,
}

/// The compiled tables; see the [module](self).
#[derive(Clone)]
pub struct Wideleaf {
    form: Form,
    level: Level,
}

#[derive(Clone)]
enum Form {
    Narrow(Tables<Narrow>),
    Wide(Tables<Wide>),
}

#[derive(Clone)]
struct Tables<L> {
    form: PhantomData<L>,
    /// The root, and behind it all tables.
    words: Table<u32>,
    /// The leaves and nodes; the first is nobody's.
    lines: Table<Line>,
    deep: Deep,
    /// Entries count words in 2^grain.
    grain: u32,
    /// The grain, stored.
    shape: Table<u32>,
    /// How many words and lines are in use: behind them patches have room. After loading, all are.
    words_used: usize,
    lines_used: usize,
    /// Bytes that patches have left behind.
    garbage: usize,
}

/// The root entry of an address.
#[inline(always)]
fn root(addr: u128) -> usize {
    (addr >> (128 - ROOT_BITS)) as usize
}

/// The bits behind the root's.
#[inline(always)]
fn key(addr: u128) -> u32 {
    (addr >> (128 - CELL_BITS)) as u32
}

impl<L: Leaf> Tables<L> {
    fn new(words: Table<u32>, lines: Table<Line>, deep: Deep, grain: u32) -> Self {
        Self {
            form: PhantomData,
            words_used: words.len(),
            lines_used: lines.len(),
            garbage: 0,
            words,
            lines,
            deep,
            grain,
            shape: Table::from_slice(&[grain]),
        }
    }

    fn table_refs(&self) -> Vec<TableRef<'_>> {
        let mut tables = vec![
            TableRef { name: SHAPE, bytes: self.shape.as_bytes() },
            TableRef { name: WORDS, bytes: self.words.as_bytes() },
            TableRef { name: L::NAME, bytes: self.lines.as_bytes() },
        ];
        tables.extend(self.deep.tables());
        tables
    }
}

impl Wideleaf {
    /// As [`Persist::load`], for this instruction set.
    ///
    /// # Errors
    /// [`LoadError`] names the table and what is wrong with it.
    pub fn load_for(tables: &dyn TableSource, hop_count: u32, isa: Isa) -> Result<Self, LoadError> {
        let form = if tables.table(Narrow::NAME).is_some() {
            Form::Narrow(load::load(tables, hop_count)?)
        } else {
            Form::Wide(load::load(tables, hop_count)?)
        };
        Ok(Self { form, level: isa.level() })
    }
}

impl Lookup<u128> for Wideleaf {
    fn lookup(&self, addr: u128) -> Hop {
        match &self.form {
            Form::Narrow(tables) => self.level.run(lookup::One { tables, addr }),
            Form::Wide(tables) => self.level.run(lookup::One { tables, addr }),
        }
    }

    fn lookup_batch(&self, addrs: &[u128], hops: &mut [Hop]) {
        assert_eq!(addrs.len(), hops.len(), "as many hops as addresses");
        match &self.form {
            Form::Narrow(tables) => self.level.run(batch::Batch { tables, addrs, hops }),
            Form::Wide(tables) => self.level.run(batch::Batch { tables, addrs, hops }),
        }
    }

    fn memory(&self) -> Memory {
        Memory::of_tables(&self.tables())
    }
}

impl Engine<u128> for Wideleaf {
    const NAME: &'static str = NAME;
    type Config = Config;

    fn build(routes: &Routes<u128>, config: &Config) -> Result<Self, BuildError> {
        build::build(routes, config.isa)
    }
}

impl Patch<u128> for Wideleaf {
    fn patch(
        &mut self,
        routes: &Routes<u128>,
        changed: &[Prefix<u128>],
    ) -> Result<Patched, BuildError> {
        match &mut self.form {
            Form::Narrow(tables) => tables.patch(routes, changed),
            Form::Wide(tables) => tables.patch(routes, changed),
        }
    }
}

impl Persist<u128> for Wideleaf {
    fn tables(&self) -> Vec<TableRef<'_>> {
        match &self.form {
            Form::Narrow(tables) => tables.table_refs(),
            Form::Wide(tables) => tables.table_refs(),
        }
    }

    fn load(tables: &dyn TableSource, hop_count: u32) -> Result<Self, LoadError> {
        Self::load_for(tables, hop_count, Isa::detect())
    }
}
