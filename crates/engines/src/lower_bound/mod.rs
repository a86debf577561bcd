//! **lower-bound**: elementary intervals in a sorted array, found by binary search. The baseline of
//! PlanB's paper (Zhang et al., NSDI 2026, section 4.5), there `std::lower_bound`; IPv6 and IPv4.
//!
//! # The scheme
//!
//! ```text
//!   lasts     9     19     29     MAX      the last address of each interval, ascending
//!   values    -     A      B      -        the hop of each interval, - for none
//!
//!   lookup 15:  one last is below it (9)   interval 1: A
//! ```
//!
//! The interval of an address is the number of lasts below it, which is the final position of the binary search. Each
//! step has a *branch*, as in the paper's baseline, and half of these branches are mispredicted. PlanB's tree avoids
//! this, and the cache miss of each step at large strides. The values, and the blocks of routes longer than /64, are
//! the same as in [`planb`](crate::planb).
//!
//! # Invariants, limits, use
//!
//! Lasts ascend strictly and end with the largest key, so every address has an interval. There is one value for each.
//! The engine accepts every table that `planb` accepts. It is for comparisons, not for use.
//!
//! ```
//! use fibula_core::{Engine, Hop, Lookup, Routes};
//! use fibula_engines::lower_bound::LowerBound;
//!
//! let routes: Routes<u32> = [("10.0.0.0/8".parse()?, Hop::new(5))].into_iter().collect();
//! let engine = LowerBound::build(&routes, &()).unwrap();
//! assert_eq!(engine.lookup(0x0aff_ffff), Hop::new(5));
//! assert_eq!(engine.lookup(0x0b00_0000), Hop::NONE);
//! # Ok::<(), fibula_core::PrefixError>(())
//! ```

use std::hint::black_box;

use fibula_core::{
    BuildError, Engine, Follow, Hop, LoadError, Lookup, Memory, Persist, Routes, TableRef,
    TableSource,
};
use fibula_simd::Table;

use crate::common::{Answer, Intervals, Long, SearchAddr, SearchKey, Values, each, hop, table};

const LASTS: &str = "lasts";

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
        each(addrs, hops, |addr| self.lookup(addr));
    }

    fn memory(&self) -> Memory {
        Memory::of_tables(&self.tables())
    }
}

/// How many of the sorted keys are below this one, one branch a halving.
fn lower_bound<K: SearchKey>(lasts: &[K], key: K) -> usize {
    let (mut from, mut len) = (0, lasts.len());
    while len > 0 {
        let half = len / 2;
        if lasts[from + half] < key {
            // Without this the compiler takes conditional moves, and it is another algorithm.
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
    type Config = ();

    fn build(routes: &Routes<A>, (): &()) -> Result<Self, BuildError> {
        let Intervals { lasts, codes, long } = Intervals::new(routes, Self::NAME)?;
        let blocks = long.as_ref().map_or(0, Long::blocks);
        let values = Values::new(&codes, routes.hop_count(), blocks);
        Ok(Self { lasts: Table::from_vec(lasts), values, long })
    }
}

impl<A: SearchAddr> Follow<A> for LowerBound<A> {}

impl<A: SearchAddr> Persist<A> for LowerBound<A> {
    fn tables(&self) -> Vec<TableRef<'_>> {
        let mut tables =
            vec![TableRef { name: LASTS, bytes: self.lasts.as_bytes() }, self.values.table_ref()];
        tables.extend(self.long.iter().flat_map(Long::tables));
        tables
    }

    fn load(tables: &dyn TableSource, hop_count: u32, (): &()) -> Result<Self, LoadError> {
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
