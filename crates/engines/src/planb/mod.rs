//! planb
mod batch;
mod build;
mod load;
mod lookup;
mod shape;

use fibula_core::{
    BuildError, Engine, Hop, LoadError, Lookup, Memory, Persist, Routes, TableRef, TableSource,
};
use fibula_simd::{Isa, Level, Table};

use crate::common::{Long, SearchAddr, SearchKey, Values};
use shape::Shape;

const KEYS: &str = "keys";

/// Parameters of [`PlanB`].
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// The instruction set of its batch lookups; one that the machine lacks gives the best below it.
    pub isa: Isa,
}

/// The keys of a node.
type Line<A> = <<A as SearchAddr>::Key as SearchKey>::Line;

/// The compiled tree; see the [module](self).
pub struct PlanB<A: SearchAddr> {
    keys: Table<Line<A>>,
    values: Values,
    long: Option<Long>,
    shape: Shape,
    level: Level,
}

impl<A: SearchAddr> PlanB<A> {
    /// As [`Persist::load`], for this instruction set.
    ///
    /// # Errors
    /// [`LoadError`] names the table and what is wrong with it.
    pub fn load_for(tables: &dyn TableSource, hop_count: u32, isa: Isa) -> Result<Self, LoadError> {
        load::load(tables, hop_count, isa)
    }

    /// Number of elementary intervals, where a network that longer routes divide counts once.
    pub fn intervals(&self) -> usize {
        self.values.len()
    }

    /// Levels of the tree, the leaves included: the cache lines of keys that every lookup reads.
    pub fn levels(&self) -> usize {
        self.shape.levels()
    }
}

impl<A: SearchAddr> Lookup<A> for PlanB<A> {
    fn lookup(&self, addr: A) -> Hop {
        self.level.run(lookup::One { tree: self, addr })
    }

    fn lookup_batch(&self, addrs: &[A], hops: &mut [Hop]) {
        assert_eq!(addrs.len(), hops.len(), "as many hops as addresses");
        batch::lookup_batch(self, addrs, hops);
    }

    fn memory(&self) -> Memory {
        Memory::of_tables(&self.tables())
    }
}

impl<A: SearchAddr> Engine<A> for PlanB<A> {
    const NAME: &'static str = "planb";
    type Config = Config;

    fn build(routes: &Routes<A>, config: &Config) -> Result<Self, BuildError> {
        build::build(routes, config.isa)
    }
}

impl<A: SearchAddr> Persist<A> for PlanB<A> {
    fn tables(&self) -> Vec<TableRef<'_>> {
        let mut tables =
            vec![TableRef { name: KEYS, bytes: self.keys.as_bytes() }, self.values.table_ref()];
        tables.extend(self.long.iter().flat_map(Long::tables));
        tables
    }

    fn load(tables: &dyn TableSource, hop_count: u32) -> Result<Self, LoadError> {
        Self::load_for(tables, hop_count, Isa::detect())
    }
}
