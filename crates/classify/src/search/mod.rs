//! Searches: the order of the subtables, the exact-match cache, and the search of a batch.

mod exact;
pub(crate) mod packed;

use std::collections::HashMap;

use crate::cache::Version;
use crate::{Batch, Cache, MISS};
use exact::Exact;
use packed::Plan;

pub use exact::EXACT;

/// Parts of the search that can be left out, to measure what each gains. The answers are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// The filters in front of the subtables. Without them every packet is compared in every subtable.
    pub filters: bool,
    /// Packets that are left are moved together.
    pub packing: bool,
    /// Subtables in the lanes, where few packets are left.
    pub lanes: bool,
}

impl Default for Parts {
    /// All of them.
    fn default() -> Self {
        Self { filters: true, packing: true, lanes: true }
    }
}

/// Batches after which the subtables are ranked anew.
const RANK_EVERY: u32 = 256;

/// A subtable in the order of search.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ranked {
    /// [`Subtable::id`](crate::subtable::Subtable::id).
    id: u32,
    /// Its place in the cache.
    at: u32,
    /// Packets that had their megaflow there, of late.
    hits: u64,
    /// With packets in the lanes, of late: packets that were searched for there, and those that its filter let pass.
    tried: u64,
    found: u64,
}

/// Counts of a searcher.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets.
    pub packets: u64,
    /// Packets found in the exact-match cache.
    pub exact_hits: u64,
    /// Packets found in a subtable.
    pub hits: u64,
    /// Number of lookups in subtables, over all packets.
    pub subtables: u64,
}

/// The state of one thread that searches a cache: the order of the subtables by hits, counts, and the optional
/// exact-match cache.
#[derive(Clone, Debug, Default)]
pub struct Searcher {
    order: Vec<Ranked>,
    version: Version,
    plan: Plan,
    parts: Parts,
    exact: Option<Exact>,
    batches: u32,
    counts: Counts,
    scratch: packed::Scratch,
}

impl Searcher {
    /// Makes a searcher without an exact-match cache.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes a searcher with an exact-match cache of [`EXACT`] flows.
    pub fn with_exact() -> Self {
        Self { exact: Some(Exact::new()), ..Self::default() }
    }

    /// Makes a searcher with some of the parts, for measurements: [`Searcher::new`] has all.
    pub fn with_parts(parts: Parts) -> Self {
        Self { parts, ..Self::default() }
    }

    /// The counts.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Searches for all packets of the batch, and writes the numbers of their megaflows, or [`MISS`].
    ///
    /// # Panics
    /// If the number of results differs from the number of packets.
    pub fn search(&mut self, cache: &Cache, batch: &Batch, numbers: &mut [u32]) {
        assert_eq!(batch.len(), numbers.len(), "a number for each packet");
        self.follow(cache);
        numbers.fill(MISS);
        let Self { order, plan, parts, exact, counts, scratch, .. } = self;
        let mut search = Search { cache, batch, numbers, order, exact: None, counts };
        search.counts.packets += batch.len() as u64;
        if let Some(exact) = exact {
            exact.follow(cache);
            search.exact = Some(exact);
        }
        cache.level.run(packed::Packed { search, plan, parts: *parts, scratch });
    }

    /// Follows the changes of the cache and, from time to time, the hits.
    fn follow(&mut self, cache: &Cache) {
        let mut is_new = false;
        let old = (self.version.cache, self.version.subtables);
        if old != (cache.version.cache, cache.version.subtables) {
            let known = old.0 == cache.version.cache;
            let hits: HashMap<u32, Ranked> =
                self.order.iter().filter(|_| known).map(|rank| (rank.id, *rank)).collect();
            let tables = cache.subtables.iter().zip(0..);
            let rank = |(table, at): (&crate::subtable::Subtable, u32)| {
                let old = hits.get(&table.id);
                let new = Ranked { id: table.id, at, hits: 0, tried: 0, found: 0 };
                old.map_or(new, |rank| Ranked { at, ..*rank })
            };
            self.order = tables.map(rank).collect();
            is_new = true;
        }
        self.batches += 1;
        if is_new || self.batches >= RANK_EVERY {
            self.order.sort_by_key(|rank| std::cmp::Reverse(rank.hits));
            if self.batches >= RANK_EVERY {
                self.batches = 0;
                for rank in &mut self.order {
                    rank.hits /= 2;
                    (rank.tried, rank.found) = (rank.tried / 2, rank.found / 2);
                }
            }
            is_new = true;
        }
        if is_new || self.version.filters != cache.version.filters {
            self.plan = Plan::new(cache, &self.order);
        }
        self.version = cache.version;
    }
}

/// One search.
pub(crate) struct Search<'a> {
    cache: &'a Cache,
    batch: &'a Batch,
    numbers: &'a mut [u32],
    order: &'a mut [Ranked],
    exact: Option<&'a mut Exact>,
    counts: &'a mut Counts,
}
