//! **CP-Trie**: a trie of long strides whose nodes count bits with the help of stored counts (Islam, Khan,
//! *CP-Trie: Cumulative PopCount based Trie for IPv6 Routing Table Lookup in Software and ASIC*, IEEE HPSR
//! 2021). IPv4 and IPv6.
//!
//! # The scheme
//!
//! Poptrie finds children and leaves by counting ones in a word of 64 bits, so its nodes decide 6 bits.
//! CP-Trie stores beside each word how many ones lie before it, so a node may have several words: the root
//! decides 16 bits, every other node 8, its **chunk** of 4 words. There are two bitmaps, each word with its
//! count:
//!
//! ```text
//!   children  a one for each slot that longer routes divide      count + ones before: the number of its chunk
//!   leaves    a one for each other slot that a route covers      count + ones before: the place of its hop
//!
//!   words     root: 0 .. 1023 (a bit for each /16)   chunk 0: 1024 .. 1027   chunk 1: 1028 .. 1031   ...
//!
//!   10.0.0.0/15  → A     children  word 40, bit 1: 10.1           count 0: chunk 0
//!   10.1.0.0/18  → B     leaves    word 40, bit 0: 10.0           count 0: hops[0] = A
//!   10.1.64.0/24 → C               word 1024, bits 0 to 63        count 1: hops[1..65] = B
//!                                  word 1025, bits 0 to 63        count 65: hops[65] = C, hops[66..] = A
//!                                  words 1026, 1027               A
//!
//!   lookup 10.1.65.1:  children[40] has bit 1, no ones before it: chunk 0; slot 65 is bit 1 of word 1025, which is no child;
//!                      leaves[1025] has it, one before: hops[65 + 1] = A
//! ```
//!
//! Routes are pushed down, and every slot that a route covers is a separate leaf: equal neighbours are not merged,
//! unlike in Poptrie. A slot in neither bitmap has no route.
//! # Assumptions
//!
//! Levels (16, then 8 each), both bitmaps, counts of 32 bits in records of 16 bytes, and unmerged leaves are those of
//! the authors' program. There the children's counts restart at each level; here chunks lie level by level in one
//! array, so one count serves all of them and no level needs its own table. The default route is pushed down like all
//! others, where the program keeps it separately. A slot whose addresses all have the same hop is a leaf even where
//! longer routes lie in it. The program inserts routes one by one; here every change is a build.
//!
//! # Invariants
//!
//! - Each count is the number of ones in all words before its own. There are as many chunks as children,
//!   and as many hops as leaves.
//! - A lookup descends no further than the bits of an address.
//! - Hops in use are below the hop count, or none.
//!
//! # Limits and use
//!
//! 2^32 leaves and chunks. A baseline of PlanB's paper; it reads fewer nodes than Poptrie and takes more
//! memory.
//!
//! ```
//! use fibula_core::{Engine, Hop, Lookup, Routes};
//! use fibula_baselines::cp_trie::{Config, CpTrie};
//!
//! let routes: Routes<u32> = [
//!     ("10.0.0.0/15".parse()?, Hop::new(0)),
//!     ("10.1.0.0/18".parse()?, Hop::new(1)),
//!     ("10.1.64.0/24".parse()?, Hop::new(2)),
//! ]
//! .into_iter()
//! .collect();
//! let engine = CpTrie::build(&routes, &Config::default()).unwrap();
//! assert_eq!((engine.chunks(), engine.leaves()), (1, 257));
//! assert_eq!(engine.lookup(0x0a01_4101), Hop::new(0));
//! # Ok::<(), fibula_core::PrefixError>(())
//! ```

mod build;
mod load;
mod lookup;
#[cfg(test)]
mod tests;

use std::marker::PhantomData;

use fibula_core::{
    Addr, BuildError, Engine, Follow, Hop, LoadError, Lookup, Memory, Persist, Routes, TableRef,
    TableSource,
};
use fibula_simd::{Isa, Level, Table};

use crate::common::{many, one};
use fibula_engines::common::Values;

const NAME: &str = "cp-trie";
const CHILDREN: &str = "children";
const LEAVES: &str = "leaves";

/// Bits that the root decides.
const ROOT: u32 = 16;
/// Bits that a chunk decides.
const STRIDE: u32 = 8;
/// Words of the root.
const ROOT_WORDS: usize = 1 << (ROOT - 6);
/// Words of a chunk.
const CHUNK_WORDS: usize = 1 << (STRIDE - 6);

/// 64 bits, and the number of ones in all preceding words.
type Word = [u64; 2];

/// Parameters of [`CpTrie`].
#[derive(Clone, Debug)]
pub struct Config {
    /// The instruction set of lookups, which need an instruction that counts ones.
    pub isa: Isa,
}

impl Default for Config {
    fn default() -> Self {
        Self { isa: Isa::detect() }
    }
}

/// The compiled bitmaps; see the [module](self).
pub struct CpTrie<A: Addr> {
    tables: Tables,
    level: Level,
    family: PhantomData<A>,
}

struct Tables {
    children: Table<Word>,
    leaves: Table<Word>,
    hops: Values,
}

impl<A: Addr> CpTrie<A> {
    /// Number of nodes, without the root.
    pub fn chunks(&self) -> usize {
        (self.tables.children.len() - ROOT_WORDS) / CHUNK_WORDS
    }

    /// Number of leaves.
    pub fn leaves(&self) -> usize {
        self.tables.hops.len()
    }

    /// The memory accesses of a lookup: a word of each node's children, one of leaves, the hop.
    pub fn steps(&self, addr: A) -> u32 {
        let mut steps = 0;
        lookup::lookup(&self.tables, addr, || steps += 1);
        steps
    }
}

impl<A: Addr> Lookup<A> for CpTrie<A> {
    fn lookup(&self, addr: A) -> Hop {
        one(self.level, &self.tables, addr)
    }

    /// One after the other, as in the paper.
    fn lookup_batch(&self, addrs: &[A], hops: &mut [Hop]) {
        many(self.level, &self.tables, addrs, hops);
    }

    fn memory(&self) -> Memory {
        Memory::of_tables(&self.tables())
    }
}

impl<A: Addr> Engine<A> for CpTrie<A> {
    const NAME: &'static str = NAME;
    type Config = Config;

    fn build(routes: &Routes<A>, config: &Config) -> Result<Self, BuildError> {
        let tables = build::build(routes)?;
        Ok(Self { tables, level: config.isa.level(), family: PhantomData })
    }
}

impl<A: Addr> Follow<A> for CpTrie<A> {}

impl<A: Addr> Persist<A> for CpTrie<A> {
    fn tables(&self) -> Vec<TableRef<'_>> {
        vec![
            TableRef { name: CHILDREN, bytes: self.tables.children.as_bytes() },
            TableRef { name: LEAVES, bytes: self.tables.leaves.as_bytes() },
            self.tables.hops.table_ref(),
        ]
    }

    fn load(tables: &dyn TableSource, hop_count: u32, config: &Config) -> Result<Self, LoadError> {
        let tables = load::load(tables, hop_count)?;
        Ok(Self { tables, level: config.isa.level(), family: PhantomData })
    }
}
