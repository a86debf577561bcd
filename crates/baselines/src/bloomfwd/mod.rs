//! **Bloomfwd**: a hash table for each prefix length, with a Bloom filter before each that avoids most useless
//! lookups. Prefixes are expanded so that there are only a few lengths.
//!
//! Lucchesi, Drummond, Teodoro: *High-performance IP lookup using Intel Xeon Phi: a Bloom filters based approach*, JISA
//! 2018, on top of Dharmapurikar, Krishnamurthy, Taylor: *Longest Prefix Matching Using Bloom Filters*, SIGCOMM 2003.
//! Engines `bloomfwd` (all of the paper's optimisations), `bloomfwd-compiled` (the same with vectors by the compiler),
//! `bloomfwd-baseline` (its starting point) and `bloomfwd-naive` (a filter and a table for each length).
//!
//! # The scheme
//!
//! Prefixes are expanded to the next of a few lengths, the **levels**: a /22 becomes four /24s, without those that a
//! longer prefix already covers. A level has a **filter**, an array of bits of which each of its prefixes sets *k*,
//! and **buckets**, cache lines of keys with their codes. The shortest prefixes are expanded into the **direct lookup
//! array** (DLA), which answers addresses that no level has.
//!
//! ```text
//!   10.0.0.0/8  → A      direct, 2^20 codes     level 24                    level 32
//!   10.1.2.0/23 → B      0.0.0      none        filter  .1..1.1..           filter  ...1..
//!   10.1.3.9/32 → C      10.0.0     A           bucket  10.1.2 B            bucket  10.1.3.9 C
//!                        ..  2^12 of them               10.1.3 B
//!                        11.0.0     none
//!
//!   lookup 10.1.3.7:  10.1.3.7 fails level 32's filter (or passes by chance, and is in no bucket);
//!                     10.1.3 passes level 24's, and is in its bucket: B
//! ```
//!
//! A filter lets some of the absent keys pass, at a rate that is a parameter. It affects the cost of a lookup and
//! never its answer. The paper finds 30 % with *k* = 2 best. Each position is an access to a cache into which the
//! filter just fits, so ours has one position: at 30 % it needs 2.8 bits for each key instead of 2.5. At 10 %, the
//! default, it needs 9.5 instead of 4.8, which is little beside the buckets.
//!
//! **Buckets.** A bucket has as many keys and codes as fit into a cache line (ten for IPv4, six for IPv6, with codes
//! of 16 bits): first the keys, then the codes, then the *mark*. A search that finds no key ends at the mark: 0 means
//! that the key is absent, and all ones that the bucket was full, so that the search continues in the next one. A
//! search takes one comparison of vectors, whatever the bucket contains.
//!
//! ```text
//!   bit 0         320          480  496 512
//!   │ 10 keys ... │ 10 codes ... │mark│ │
//! ```
//!
//! **IPv6.** The lengths are chosen for the routes, see [`dpcpe`]. The DLA is reduced to an array of one code for the
//! default route. Keys are the first 64 bits. Routes longer than that are not expanded; each of their lengths has its
//! own level, with keys of 128 bits. A filter before all of them, the **gate**, contains the first 64 bits of such
//! routes. Addresses that pass it are looked up singly.
//!
//! **Batches.** A level is processed for all addresses of a block before the next one; sixteen keys are hashed and
//! tested at a time (`fibula_filter::Bits::part`), the buckets of those that pass are prefetched together, and the hash
//! of the first bit also gives the bucket. The paper's form for a CPU leaves vectors to the compiler:
//! `bloomfwd-compiled` (`compiled.rs`). Threads share the tables, each with its own part of the addresses.
//!
//! **Updates.** The expansion of a changed prefix is written again. Each bit of the filters has a counter of four bits,
//! created at the first change, which shows when the bit must be cleared.
//!
//! # Invariants
//!
//! - A key that is in a bucket passes the filter of its level, whatever came and went: no counter is
//!   lower than the number of its keys, or it is full and its bit stays.
//! - A key is in the bucket that its hash names, or that one is marked, and so on to where it is.
//! - The longest level has all bits of a key: every prefix has a level to be expanded to.
//! - No code names a hop from the hop count on.
//!
//! Only correct answers depend on the second. A search in any case stays within its level's buckets and ends after one
//! round. `load` checks what this needs, and the codes.
//!
//! # Limits and use
//!
//! Expansion is the limit: /25 to /31 make up to 128 keys each for IPv4, and few levels make millions of keys for IPv6;
//! beyond [`Config::memory_limit`] a table is refused. Patches require a build where a level is full, or where a route
//! is so much shorter than its level that it makes hundreds of thousands of keys. Use it to reproduce its paper, or on
//! machines that are best at hashing. The product's tries and range tables are faster on all known traffic, and
//! smaller.
//!
//! ```
//! use fibula_core::{Engine, Hop, Lookup, Routes};
//! use fibula_baselines::bloomfwd::{Bloomfwd, Config};
//!
//! let routes: Routes<u32> = [
//!     ("10.0.0.0/8".parse()?, Hop::new(0)),
//!     ("10.1.2.0/23".parse()?, Hop::new(1)),
//!     ("10.1.3.9/32".parse()?, Hop::new(2)),
//! ]
//! .into_iter()
//! .collect();
//! let config = Config { false_positives: 0.1, ..Config::default() };
//! let engine = Bloomfwd::build(&routes, &config).unwrap();
//! assert_eq!(engine.lengths(), [24, 32]);
//! assert_eq!(engine.lookup(0x0a01_0307), Hop::new(1));
//! # Ok::<(), fibula_core::PrefixError>(())
//! ```

mod batch;
mod bucket;
mod build;
mod compiled;
pub mod cost;
pub mod dpcpe;
mod load;
mod lookup;
mod tables;
#[cfg(test)]
mod tests;
mod update;

use fibula_core::{
    BuildError, Engine, Follow, Hop, LoadError, Lookup, Memory, Patched, Persist, Prefix, Routes,
    TableRef, TableSource,
};
use fibula_filter::Hash;
use fibula_simd::{Isa, Level};

pub use bucket::Address;
use bucket::Code;
use tables::Tables;

const NAME: &str = "bloomfwd";
const SHAPE: &str = "shape";
const FILTERS: &str = "filters";

/// Parameters of [`Bloomfwd`]. The default is what is fastest.
///
/// ```
/// use fibula_baselines::bloomfwd::{Config, Hashes, Levels};
/// use fibula_filter::Hash;
///
/// // One bar of the paper's figure 1: Murmur in the filters, H2 in the tables, 10 %.
/// let hashes = Some(Hashes { filter: Hash::Murmur, table: Hash::H2 });
/// let bar = Config { hashes, false_positives: 0.1, ..Config::default() };
/// // One of figure 7: IPv6, four levels.
/// let four = Config { levels: Levels::Dpcpe(4), ..Config::default() };
/// # let _ = (bar, four);
/// ```
#[derive(Clone, Debug)]
pub struct Config {
    /// The hash functions; `None` takes H2 twice for IPv4 and Murmur twice for IPv6.
    pub hashes: Option<Hashes>,
    /// The rate of keys that pass a filter and are not there, 0.01 to 0.9.
    pub false_positives: f64,
    /// The bits of a filter that each key sets, *k*, 1 to 32; `None` takes the paper's, with which the
    /// filter is smallest.
    pub positions: Option<u32>,
    /// The lengths to which prefixes are expanded.
    pub levels: Levels,
    /// What [`Levels::Cheapest`] weighs.
    pub costs: cost::Costs,
    /// How large filters are made.
    pub sizes: Sizes,
    /// How batches are looked up.
    pub search: FilterSearch,
    /// The maximum size of the tables in bytes. It refuses an expansion to too few levels.
    pub memory_limit: usize,
    /// The instruction set of its batch lookups; one that the machine lacks gives the best of its forms.
    pub isa: Isa,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            hashes: None,
            false_positives: 0.1,
            positions: Some(1),
            levels: Levels::Auto,
            costs: cost::Costs::default(),
            sizes: Sizes::Fitting,
            search: FilterSearch::Staged,
            memory_limit: 1 << 30,
            isa: Isa::default(),
        }
    }
}

impl Config {
    /// The naive algorithm of section 3.1: a filter and a table for each length, all filters of one
    /// size, a hash of its own for each position and for the table, one address after the other.
    pub fn naive() -> Self {
        Self { levels: Levels::Every, sizes: Sizes::Equal, ..Self::baseline() }
    }

    /// The baseline of section 3.2: filters as large as they need to be, and expansion; otherwise
    /// naive.
    pub fn baseline() -> Self {
        let hashes = Some(Hashes { filter: Hash::MurmurSeeded, table: Hash::Murmur });
        let (false_positives, positions, search) = (0.3, None, FilterSearch::Single);
        Self { hashes, false_positives, positions, search, ..Self::default() }
    }

    /// The default in plain loops: the paper's form for a CPU, whose compiler vectorises the hash functions.
    pub fn compiled() -> Self {
        Self { search: FilterSearch::Compiled, ..Self::default() }
    }

    fn hashes<A: Address>(&self) -> Hashes {
        let best = if A::BITS == 32 { Hash::H2 } else { Hash::Murmur };
        self.hashes.unwrap_or(Hashes { filter: best, table: best })
    }
}

/// A pair of hash functions. Where they are the same, a key is hashed once for both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hashes {
    /// Of the filters: [`Hash::MurmurSeeded`] hashes for each position, the others go on from one hash
    /// by double hashing.
    pub filter: Hash,
    /// Of the hash tables.
    pub table: Hash,
}

/// The lengths that prefixes are expanded to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Levels {
    /// IPv4: 24 and 32, a direct lookup array of 20 bits. IPv6: [`dpcpe`] with 5 levels, or as many
    /// more as it takes for no more than four prefixes after expansion for one before.
    Auto,
    /// As many levels as [`dpcpe`] is to choose, or fewer where more save nothing.
    Dpcpe(u8),
    /// At most so many levels, those with which the fewest prefixes come out ([`dpcpe::optimal`]).
    Fewest(u8),
    /// Those with which a lookup is expected to take the least time, by [`Config::costs`] ([`cost::Model::cheapest`]).
    Cheapest,
    /// These, ascending, the last 32 or 64; what has up to `direct` bits (24 at most) is in the direct
    /// lookup array.
    At {
        /// The first bits that index the array; 0 leaves it the default route alone.
        direct: u8,
        /// The lengths.
        lengths: Vec<u8>,
    },
    /// All lengths from 1 to 32 or 64: no expansion.
    Every,
}

/// How large the filters of the levels are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// All of them as the one of the level with the most prefixes.
    Equal,
    /// Each for its own number of prefixes: "asymmetric".
    Fitting,
}

/// How a batch is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterSearch {
    /// One address after the other.
    Single,
    /// Side by side, level by level.
    Staged,
    /// As [`FilterSearch::Staged`], in plain loops that the compiler turns into vectors; see `compiled.rs`.
    Compiled,
}

/// The compiled tables; see the [module](self). Clones share them until one is patched.
#[derive(Clone)]
pub struct Bloomfwd<A: Address> {
    form: Form<A>,
    search: FilterSearch,
    isa: Level,
}

#[derive(Clone)]
enum Form<A: Address> {
    Bits16(Tables<A, u16>),
    Bits32(Tables<A, u32>),
}

/// The same expression for the tables of each width.
macro_rules! each {
    ($form:expr, $tables:ident => $result:expr) => {
        match $form {
            Form::Bits16($tables) => $result,
            Form::Bits32($tables) => $result,
        }
    };
}

impl<A: Address> Bloomfwd<A> {
    /// The lengths that prefixes are expanded to, ascending; those of routes longer than 64 bits are
    /// not among them.
    pub fn lengths(&self) -> Vec<u8> {
        each!(&self.form, tables => tables.levels.iter().rev().map(|level| level.len).collect())
    }

    /// How many keys there are at each of the [`lengths`](Self::lengths).
    pub fn keys(&self) -> Vec<usize> {
        each!(&self.form, tables => tables.levels.iter().rev().map(|level| level.keys).collect())
    }
}

impl<A: Address> Lookup<A> for Bloomfwd<A> {
    fn lookup(&self, addr: A) -> Hop {
        each!(&self.form, tables => tables.lookup(addr))
    }

    fn lookup_batch(&self, addrs: &[A], hops: &mut [Hop]) {
        assert_eq!(addrs.len(), hops.len(), "as many hops as addresses");
        each!(&self.form, tables => match self.search {
            FilterSearch::Staged => batch::lookup_batch(tables, self.isa, addrs, hops),
            FilterSearch::Compiled => batch::lookup_batch_compiled(tables, self.isa, addrs, hops),
            FilterSearch::Single => {
                for (&addr, hop) in addrs.iter().zip(hops) {
                    *hop = tables.lookup(addr);
                }
            }
        });
    }

    fn memory(&self) -> Memory {
        let counters = each!(&self.form, tables => tables.counters.as_ref().map(|c| c.memory()));
        let tables = self.tables();
        let tables = tables.iter().map(|table| (table.name, table.bytes.len()));
        Memory::new(tables.chain(counters.map(|bytes| ("counters", bytes))))
    }
}

impl<A: Address> Engine<A> for Bloomfwd<A> {
    const NAME: &'static str = NAME;
    type Config = Config;

    fn build(routes: &Routes<A>, config: &Config) -> Result<Self, BuildError> {
        let refuse =
            |reason: &'static str| Err(BuildError::Config { engine: NAME, reason: reason.into() });
        if !(0.01..=0.9).contains(&config.false_positives) {
            return refuse("the rate of false positives must be 0.01 to 0.9");
        }
        if config.positions.is_some_and(|positions| !(1..=32).contains(&positions)) {
            return refuse("a key must have 1 to 32 positions");
        }
        let hops = routes.hop_count();
        let form = if hops <= <u16 as Code>::HOPS_MAX {
            Form::Bits16(build::build(routes, config)?)
        } else if hops <= <u32 as Code>::HOPS_MAX {
            Form::Bits32(build::build(routes, config)?)
        } else {
            return Err(BuildError::Limit {
                engine: NAME,
                what: "next hops",
                limit: <u32 as Code>::HOPS_MAX.into(),
                needed: hops.into(),
            });
        };
        Ok(Self { form, search: config.search, isa: config.isa.level() })
    }
}

impl<A: Address> Follow<A> for Bloomfwd<A> {
    fn follow(&mut self, routes: &Routes<A>, changed: &[Prefix<A>]) -> Result<Patched, BuildError> {
        each!(&mut self.form, tables => tables.patch(routes, changed))
    }
}

impl<A: Address> Persist<A> for Bloomfwd<A> {
    fn tables(&self) -> Vec<TableRef<'_>> {
        each!(&self.form, tables => tables.table_refs())
    }

    fn load(tables: &dyn TableSource, hop_count: u32, config: &Config) -> Result<Self, LoadError> {
        let form = if let Some(tables) = load::load(tables, hop_count)? {
            Form::Bits16(tables)
        } else if let Some(tables) = load::load(tables, hop_count)? {
            Form::Bits32(tables)
        } else {
            return Err(LoadError::new(<u32 as Code>::BUCKETS, "is missing"));
        };
        Ok(Self { form, search: config.search, isa: config.isa.level() })
    }
}
