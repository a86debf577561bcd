//! lower-bound
use std::hint::black_box;

use fibula_core::{
    BuildError, Engine, Hop, LoadError, Lookup, Memory, Persist, Routes, TableRef, TableSource,
};
use fibula_simd::{Isa, Table};

use crate::common::{Answer, Intervals, Long, SearchAddr, SearchKey, Values, hop, table};

const LASTS: &str = "lasts";

/// Parameters of [`LowerBound`].
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Taken so that every engine is configured alike; there is one form, for every ISA.
    pub isa: Isa,
}

/// The compiled array; see the [module](self).
pub struct LowerBound<A: SearchAddr> {
    lasts: Table<A::Key>,
    values: Values,
    long: Option<Long>,
}

impl<A: SearchAddr> Lookup<A> for LowerBound<A> {
    fn lookup(&self, addr: A) -> Hop {
        let interval = lower_bound(&self.lasts, addr.high());
        match (self.values.get(interval, self.long.as_ref().map_or(0, Long::blocks)), &self.long) {
            (Answer::Block(block), Some(long)) => hop(long.find(block, addr.low())),
            (Answer::Hop(hop), _) => hop,
            (Answer::Block(_), None) => unreachable!("no blocks, no answer that names one"),
        }
    }

    /// One after the other.
    fn lookup_batch(&self, addrs: &[A], hops: &mut [Hop]) {
        assert_eq!(addrs.len(), hops.len(), "as many hops as addresses");
        for (hop, &addr) in hops.iter_mut().zip(addrs) {
            *hop = self.lookup(addr);
        }
    }

    fn memory(&self) -> Memory {
        Memory::of_tables(&self.tables())
    }
}

/// How many of the sorted keys are below this one.
fn lower_bound<K: SearchKey>(lasts: &[K], key: K) -> usize {
    let (mut from, mut len) = (0, lasts.len());
    while len > 0 {
        let half = len / 2;
        if lasts[from + half] < key {
            black_box(());
            from += half + 1;
            len -= half + 1;
        } else {
            len = half;
        }
    }
    from
}

impl<A: SearchAddr> Engine<A> for LowerBound<A> {
    const NAME: &'static str = "lower-bound";
    type Config = Config;

    fn build(routes: &Routes<A>, _: &Config) -> Result<Self, BuildError> {
        let Intervals { lasts, codes, long } = Intervals::new(routes, Self::NAME)?;
        let blocks = long.as_ref().map_or(0, Long::blocks);
        let values = Values::new(&codes, routes.hop_count(), blocks);
        Ok(Self { lasts: Table::from_vec(lasts), values, long })
    }
}

impl<A: SearchAddr> Persist<A> for LowerBound<A> {
    fn tables(&self) -> Vec<TableRef<'_>> {
        let mut tables =
            vec![TableRef { name: LASTS, bytes: self.lasts.as_bytes() }, self.values.table_ref()];
        tables.extend(self.long.iter().flat_map(Long::tables));
        tables
    }

    fn load(tables: &dyn TableSource, hop_count: u32) -> Result<Self, LoadError> {
        let lasts = table::<A::Key>(tables, LASTS)?;
        let long = if A::LOW_MAX == 0 { None } else { Long::load(tables, hop_count)? };
        let values = Values::load(tables, hop_count, long.as_ref().map_or(0, Long::blocks))?;
        if !lasts.is_sorted_by(|a, b| a < b) || lasts.last() != Some(&A::Key::MAX) {
            return Err(LoadError::new(LASTS, "is not sorted or does not end at the top"));
        }
        if values.len() != lasts.len() {
            return Err(LoadError::new(LASTS, "is not as long as the values"));
        }
        Ok(Self { lasts, values, long })
    }
}
