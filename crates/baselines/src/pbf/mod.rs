//! **PBF**: *parallel Bloom filters*, one for each length of prefixes, in front of hash tables
//! (Dharmapurikar, Krishnamurthy, Taylor, *Longest Prefix Matching Using Bloom Filters*, SIGCOMM 2003), in
//! the sizes that SAIL's paper computes for it. IPv4 and IPv6.
//!
//! # The scheme
//!
//! The filters are on the chip and queried in parallel. The hash tables are in memory off the chip; a lookup
//! probes those whose filter says "maybe", from the longest length on, until one has the prefix. A filter has no
//! false negatives, so the first table probed is nearly always the right one. Prefixes of up to 8 bits are
//! in an array of 256 entries.
//!
//! ```text
//!   10.0.0.0/8    → A      array     10      A
//!   10.1.0.0/16   → B      /16       filter: 19 bits, 13 for each key      table: 10.1   B
//!   10.1.2.0/24   → C      /24       filter: 38 bits                       table: 10.1.2 C, 10.1.3 D
//!   10.1.3.0/24   → D
//!
//!   lookup 10.1.2.9:  filter /24 says maybe for 10.1.2; the table has it: C      one probe
//!   lookup 10.1.9.9:  filter /24 says no for 10.1.9; /16 maybe for 10.1: B       one probe
//! ```
//!
//! SAIL's paper takes from the 2003 paper: 24 filters, for lengths 9 to 32, and 1.003 probes of tables a
//! lookup. So each filter may have 0.003 / 24 = 2^-13 false positives, which takes [`HASHES`] = 13
//! positions and [`BITS_A_KEY`] = 18.755 bits for each prefix. These are the sizes here. The tests assert
//! the 1.003 with lookups, which the paper only computes.
//! # Assumptions
//!
//! A filter for each length of 9 bits or more that has routes (in full tables that is SAIL's 24; for IPv6
//! about as many). Positions are by MurmurHash3 with 13 seeds, in place of the hardware's functions. SAIL's
//! paper assumes that two functions, combined to 13 (double hashing), are as good. But with those of
//! [`Hash::Murmur`] a lookup made 1.019 probes on the table of 245,000 prefixes for which the tests find
//! 1.002, because the filters of lengths with few prefixes are small. Software queries the filters one after
//! the other, the longest length first, and stops at the first table that has the prefix, so it probes the
//! same tables as the hardware. It computes a position only if the bits at those before it are set; for a key
//! that is not in the filter that makes two on average. Batches test position by position (`batch.rs`).
//! The later optimisations of the paper (an array of 20 bits, prefixes expanded to a few lengths) are left
//! out, as in SAIL's computation. Hash tables have at least two slots for each key; a probe may read
//! several neighbours.
//!
//! # Invariants
//!
//! - Lengths descend; the stored filters and tables are exactly those of the lengths. Hops are below the hop
//!   count, or none.
//! - Bits and keys may be arbitrary: wrong ones cause wrong answers, nothing worse.
//!
//! # Limits and use
//!
//! 2^32 slots. SAIL's paper compares its memory on the chip with that of PBF, 18.755 bits a prefix, but
//! not its rate: on a CPU the filters are queried one by one. For many prefixes in software see
//! [`bloomfwd`](crate::bloomfwd).
//!
//! ```
//! use fibula_core::{Engine, Hop, Lookup, Routes};
//! use fibula_baselines::pbf::Pbf;
//!
//! let routes: Routes<u32> = [
//!     ("10.0.0.0/8".parse()?, Hop::new(0)),
//!     ("10.1.0.0/16".parse()?, Hop::new(1)),
//!     ("10.1.2.0/24".parse()?, Hop::new(2)),
//! ]
//! .into_iter()
//! .collect();
//! let engine = Pbf::build(&routes, &()).unwrap();
//! assert_eq!(engine.lookup(0x0a01_0209), Hop::new(2));
//! assert_eq!(engine.lookup(0x0a02_0000), Hop::new(0));
//! # Ok::<(), fibula_core::PrefixError>(())
//! ```

mod batch;
mod build;
mod load;
#[cfg(test)]
mod tests;

use std::marker::PhantomData;

use fibula_core::{
    Addr, BuildError, Engine, Follow, Hop, LoadError, Lookup, Memory, Persist, Routes, TableRef,
    TableSource,
};
use fibula_filter::{Hash, Key, Parameters, fmix64};
use fibula_simd::Table;

use crate::common::{Hashed, Part, bits};
use fibula_engines::common::hop;

const NAME: &str = "pbf";
const ARRAY: &str = "array";
const LEVELS: &str = "levels";
const FILTERS: &str = "filters";
const SLOTS: &str = "slots";

/// Positions of a key in its filter.
pub const HASHES: u32 = 13;
/// Bits of a filter for each key.
pub const BITS_A_KEY: f64 = 18.755;
/// Prefixes of up to this many bits are in the array.
pub const ARRAY_BITS: u8 = 8;

const HASH: Hash = Hash::MurmurSeeded;

/// An address type whose prefixes can be keys of filters.
pub trait FilterAddr: Addr {
    /// The prefix as a filter's key.
    type Key: Key;
    /// The first bits of an address, the others clear, as a key.
    fn key(self) -> Self::Key;
}

impl FilterAddr for u32 {
    type Key = u32;
    #[inline(always)]
    fn key(self) -> u32 {
        self
    }
}

impl FilterAddr for u128 {
    type Key = u64;
    /// Mixes both halves into 64 bits, because keys of two words have only two hash functions, not thirteen.
    #[inline(always)]
    fn key(self) -> u64 {
        fmix64((self >> 64) as u64) ^ self as u64
    }
}

/// The compiled filters and tables; see the [module](self).
pub struct Pbf<A: FilterAddr> {
    /// The code of the longest route of up to 8 bits.
    array: Table<u32>,
    /// Longest first.
    levels: Vec<Level<A>>,
    /// The stored form of `levels`: length, bits of the filter, first slot, mask.
    rows: Table<[u32; 4]>,
    filters: Table<u64>,
    slots: Hashed,
    family: PhantomData<A>,
}

/// The prefixes of a length: their filter and their table.
struct Level<A> {
    /// The bits of an address that are its key.
    mask: A,
    shape: Parameters,
    /// The filter's first word.
    first: usize,
    part: Part,
}

impl<A: FilterAddr> Level<A> {
    fn new(len: u8, shape: Parameters, first: usize, part: Part) -> Self {
        Self { mask: A::netmask(len), shape, first, part }
    }

    /// Whether the bit of the filter is set.
    #[inline(always)]
    fn is_set(&self, filters: &[u64], at: u32) -> bool {
        filters[self.first + at as usize / 64] >> (at % 64) & 1 == 1
    }
}

impl<A: FilterAddr> Pbf<A> {
    /// Number of filters.
    pub fn filters(&self) -> usize {
        self.levels.len()
    }

    /// The bits of all filters, which the paper stores on the chip.
    pub fn on_chip_bits(&self) -> u64 {
        self.levels.iter().map(|level| u64::from(level.shape.bits())).sum()
    }

    /// The number of hash tables that a lookup probes.
    pub fn probes(&self, addr: A) -> u32 {
        let mut probes = 0;
        self.find(addr, || probes += 1);
        probes
    }

    /// Queries the filters from the longest length on, and probes the table of each filter that says "maybe".
    #[inline]
    fn find(&self, addr: A, mut probe: impl FnMut()) -> Hop {
        for level in &self.levels {
            let key = addr.and(level.mask);
            let mut positions = level.shape.positions(HASH, key.key());
            if positions.all(|at| level.is_set(&self.filters, at)) {
                probe();
                if let Some((code, _)) = self.slots.find(level.part, key, || {}) {
                    return hop(code);
                }
            }
        }
        hop(self.array[bits(addr, 0, ARRAY_BITS.into())])
    }
}

impl<A: FilterAddr> Lookup<A> for Pbf<A> {
    fn lookup(&self, addr: A) -> Hop {
        self.find(addr, || {})
    }

    fn lookup_batch(&self, addrs: &[A], hops: &mut [Hop]) {
        batch::lookup_batch(self, addrs, hops);
    }

    fn memory(&self) -> Memory {
        Memory::of_tables(&self.tables())
    }
}

impl<A: FilterAddr> Engine<A> for Pbf<A> {
    const NAME: &'static str = NAME;
    type Config = ();

    fn build(routes: &Routes<A>, (): &()) -> Result<Self, BuildError> {
        build::build(routes)
    }
}

impl<A: FilterAddr> Follow<A> for Pbf<A> {}

impl<A: FilterAddr> Persist<A> for Pbf<A> {
    fn tables(&self) -> Vec<TableRef<'_>> {
        vec![
            TableRef { name: ARRAY, bytes: self.array.as_bytes() },
            TableRef { name: LEVELS, bytes: self.rows.as_bytes() },
            TableRef { name: FILTERS, bytes: self.filters.as_bytes() },
            TableRef { name: SLOTS, bytes: self.slots.words.as_bytes() },
        ]
    }

    fn load(tables: &dyn TableSource, hop_count: u32, (): &()) -> Result<Self, LoadError> {
        load::load(tables, hop_count)
    }
}
