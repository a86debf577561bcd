//! **Neurotrie**: a trie in which each node has its own stride, chosen for a small depth within a budget of memory
//! (Chen, Yang, Xu, Zhang, Liu, *Neurotrie: Deep Reinforcement Learning-based Fast Software IPv6 Lookup*, ICDCS 2022;
//! Zhu et al., *Fast Software IPv6 Lookup With Neurotrie*, IEEE/ACM ToN 2024). IPv4 and IPv6.
//!
//! **The paper learns the strides** with a neural network. It has a dynamic program as its own baseline, and
//! says that learning reduces the computation. Here a dynamic program replaces it, so measurements are of
//! the data structure with good strides, not of the learning. PlanB's paper measures the variant Neurotrie-S. How it
//! differs is in no text that was available, so it is not built.
//!
//! # The scheme
//!
//! ```text
//!   nodes     a word each: its first record and its stride s; children of a node are neighbours
//!   records   one for each 64 of the node's 2^s slots:
//!               vector    the slots that have a child       child of slot b: base1 + ones of vector before b
//!               leafvec   where a run of equal leaves begins   leaf of slot b: base0 + ones of leafvec up to b, less one
//!               base1, base0
//!   leaves    hops
//!
//!   10.0.0.0/8    → A     node 0  stride 8, records 0 to 3     node 1  stride 16, records from 4 on:
//!   10.1.2.0/24   → B       record 0: vector bit 10, base1 1     record 8: leafvec bits 0, 2, 3 (A, B, A)
//!                                     leafvec bit 0: none
//!   lookup 10.1.2.9:  slot 10 of node 0 has a child, number 1; slot 0x0102 of it is bit 2 of record 4 + 4: B
//! ```
//!
//! **The strides.** A *block*, the addresses with the same first bits, is a possible place of a node. It needs one if
//! its addresses have different hops. A node of stride s costs one step for each change of the answer in its block,
//! which is what addresses of random routes see, and λ times its bytes. From the deepest blocks up, the program takes
//! for each block the stride with the least cost, its descendants' included; that is exact for this λ. Bisection finds
//! the smallest λ whose trie fits into the budget.
//! # Assumptions
//!
//! - The paper's abstract has arbitrary strides and a memory limit, not the layout of nodes. The records
//!   are those of Poptrie, and counts are cumulative as in CP-Trie.
//! - Strides are multiples of 2 bits for IPv4 and of 4 for IPv6, up to 16: with all strides the program
//!   would take many times as long.
//! - The budget counts nodes and records, as leaves depend little on strides. λ gives the tries on the
//!   convex hull of depth and memory; between two of them the budget is not used up. So the result is near
//!   the optimum, not exactly it.
//! - The default budget is [`BUDGET`] bytes for each route: the paper's budget is not known to us. PlanB's paper
//!   finds Neurotrie 6 to 13 times as large as PlanB.
//!
//! # Invariants
//!
//! - Children come after their parents, and no path is longer than an address. All records and leaves exist,
//!   and for each slot without a child, a run begins at or before it in its record.
//! - Hops in use are below the hop count, or none.
//!
//! # Limits and use
//!
//! 2^27 records, 2^32 leaves. A baseline of PlanB's paper; a build takes seconds for a million routes.
//!
//! ```
//! use fibula_core::{Engine, Hop, Lookup, Routes};
//! use fibula_baselines::neurotrie::{Config, Neurotrie};
//!
//! let routes: Routes<u32> = [
//!     ("10.0.0.0/8".parse()?, Hop::new(0)),
//!     ("10.1.2.0/24".parse()?, Hop::new(1)),
//! ]
//! .into_iter()
//! .collect();
//! let engine = Neurotrie::build(&routes, &Config::default()).unwrap();
//! assert_eq!(engine.lookup(0x0a01_0209), Hop::new(1));
//! assert_eq!(engine.lookup(0x0a01_0309), Hop::new(0));
//! # Ok::<(), fibula_core::PrefixError>(())
//! ```

mod build;
mod load;
mod lookup;
mod strides;
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

const NAME: &str = "neurotrie";
const NODES: &str = "nodes";
const RECORDS: &str = "records";

/// The default budget: bytes of nodes and records for each route.
pub const BUDGET: f64 = 64.0;

/// The largest stride.
const MOST: u32 = 16;
/// Bits of a node's word that are its stride.
const STRIDE_BITS: u32 = 5;

/// Vector, leafvec, and both bases, `base1` in the high half.
type Record = [u64; 3];

/// Parameters of [`Neurotrie`].
#[derive(Clone, Debug)]
pub struct Config {
    /// Bytes of nodes and records for each route. If no trie is that small, the smallest one is built.
    pub budget: f64,
    /// The instruction set of lookups, which need an instruction that counts ones.
    pub isa: Isa,
}

impl Default for Config {
    fn default() -> Self {
        Self { budget: BUDGET, isa: Isa::detect() }
    }
}

/// The compiled trie; see the [module](self).
pub struct Neurotrie<A: Addr> {
    tables: Tables,
    level: Level,
    family: PhantomData<A>,
}

struct Tables {
    nodes: Table<u32>,
    records: Table<Record>,
    leaves: Values,
}

/// Records of a node.
const fn records_of(stride: u32) -> usize {
    if stride > 6 { 1 << (stride - 6) } else { 1 }
}

/// The bits of a record that are slots.
const fn slots_of(stride: u32) -> u64 {
    if stride >= 6 { !0 } else { (1 << (1 << stride)) - 1 }
}

/// A node's first record and stride.
#[inline(always)]
fn node_parts(node: u32) -> (usize, u32) {
    ((node >> STRIDE_BITS) as usize, node & ((1 << STRIDE_BITS) - 1))
}

impl<A: Addr> Neurotrie<A> {
    /// How many nodes have each stride, from 0 on.
    pub fn strides(&self) -> Vec<usize> {
        let mut strides = vec![0; MOST as usize + 1];
        for &node in self.tables.nodes.iter() {
            strides[node_parts(node).1 as usize] += 1;
        }
        strides
    }

    /// The memory accesses of a lookup: a word and a record of each node, the leaf.
    pub fn steps(&self, addr: A) -> u32 {
        let mut steps = 0;
        lookup::lookup(&self.tables, addr, || steps += 1);
        steps
    }
}

impl<A: Addr> Lookup<A> for Neurotrie<A> {
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

impl<A: Addr> Engine<A> for Neurotrie<A> {
    const NAME: &'static str = NAME;
    type Config = Config;

    fn build(routes: &Routes<A>, config: &Config) -> Result<Self, BuildError> {
        let tables = build::build(routes, config.budget)?;
        Ok(Self { tables, level: config.isa.level(), family: PhantomData })
    }
}

impl<A: Addr> Follow<A> for Neurotrie<A> {}

impl<A: Addr> Persist<A> for Neurotrie<A> {
    fn tables(&self) -> Vec<TableRef<'_>> {
        vec![
            TableRef { name: NODES, bytes: self.tables.nodes.as_bytes() },
            TableRef { name: RECORDS, bytes: self.tables.records.as_bytes() },
            self.tables.leaves.table_ref(),
        ]
    }

    fn load(tables: &dyn TableSource, hop_count: u32, config: &Config) -> Result<Self, LoadError> {
        let tables = load::load::<A>(tables, hop_count)?;
        Ok(Self { tables, level: config.isa.level(), family: PhantomData })
    }
}
