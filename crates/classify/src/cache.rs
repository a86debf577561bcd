//! The cache of all megaflows, by mask.

use std::collections::HashMap;
use std::fmt;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};

use fibula_simd::{Isa, Level, Scalar};

use crate::hash::{Hashed, Keys, keys};
use crate::subtable::{Span, Subtable, fill};
use crate::{Flow, Mask, Match};

/// The result of a search for a packet that no megaflow matches. No megaflow has this number.
pub const MISS: u32 = u32::MAX;

/// Counters of changes of a cache, by which searchers detect which of their data are outdated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Version {
    /// Different for each new cache; a clone has that of its original.
    pub(crate) cache: u64,
    /// Subtables that came and went.
    pub(crate) subtables: u64,
    /// Filters that moved.
    pub(crate) filters: u64,
    /// Changes of megaflows.
    pub(crate) outdated: u64,
}

/// Megaflows, each with the number of its record in the slow path. A packet is looked up in the subtables, one for
/// each mask, until one has a megaflow that matches.
///
/// If several megaflows match a packet, the result is one of them. The slow path makes megaflows so that all of them
/// are right.
///
/// ```
/// use fibula_classify::{Batch, Cache, Field, Flow, MISS, Mask, Match, Searcher};
///
/// let mut cache = Cache::new();
/// let mut flow = Flow::default();
/// flow.set(Field::DstPort, 80);
/// cache.insert(Match::new(flow, Mask::exact(Field::DstPort)), 7);
///
/// let mut batch = Batch::new();
/// flow.set(Field::InPort, 3);
/// batch.push(&flow);
/// batch.push(&Flow::default());
/// let mut numbers = [0; 2];
/// Searcher::new().search(&cache, &batch, &mut numbers);
/// assert_eq!(numbers, [7, MISS]);
/// ```
#[derive(Clone)]
pub struct Cache {
    pub(crate) level: Level,
    pub(crate) keys: Keys,
    pub(crate) subtables: Vec<Subtable>,
    by_mask: HashMap<Mask, usize>,
    next_id: u32,
    /// The filters of all subtables, after a word that no packet passes. The length is a power of two.
    pub(crate) filters: Vec<u64>,
    /// The position of the next filter.
    filters_end: usize,
    pub(crate) version: Version,
    len: usize,
}

impl Default for Cache {
    fn default() -> Self {
        Self::new()
    }
}

impl Cache {
    /// Makes an empty cache with the best instruction set (`FIBULA_ISA` can force another one) and random hash keys.
    pub fn new() -> Self {
        let seed = std::hash::RandomState::new().hash_one(0);
        Self::with(Isa::detect(), seed)
    }

    /// Makes an empty cache with this instruction set, and with hash keys from this seed. Anyone who knows the seed
    /// can make flows whose hashes collide.
    pub fn with(isa: Isa, seed: u64) -> Self {
        static CACHES: AtomicU64 = AtomicU64::new(1);
        let cache = CACHES.fetch_add(1, Ordering::Relaxed);
        Self {
            level: isa.level(),
            keys: keys(seed),
            subtables: Vec::new(),
            by_mask: HashMap::new(),
            next_id: 0,
            filters: vec![0],
            filters_end: 1,
            version: Version { cache, ..Version::default() },
            len: 0,
        }
    }

    /// The instruction set.
    pub fn isa(&self) -> Isa {
        self.level.isa()
    }

    /// Number of megaflows.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the cache is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of masks.
    pub fn subtables(&self) -> usize {
        self.subtables.len()
    }

    /// Bytes of all megaflows and filters.
    pub fn memory(&self) -> usize {
        let tables = self.subtables.iter().map(Subtable::memory).sum::<usize>();
        tables + size_of_val(&*self.filters)
    }

    /// The number of a megaflow.
    pub fn get(&self, megaflow: &Match) -> Option<u32> {
        let table = &self.subtables[*self.by_mask.get(megaflow.mask())?];
        table.get(Scalar, self.hash(table, megaflow.flow()), megaflow.flow())
    }

    /// The megaflows with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (Match, u32)> + '_ {
        self.subtables.iter().flat_map(|table| {
            table.iter().map(|(flow, number)| (Match::new(flow, table.mask), number))
        })
    }

    fn hash(&self, table: &Subtable, flow: &Flow) -> Hashed {
        table.hash(&self.keys, flow)
    }

    /// Inserts a megaflow. If it exists, it gets the new number, and the old one is returned.
    ///
    /// # Panics
    /// If the number is [`MISS`].
    pub fn insert(&mut self, megaflow: Match, number: u32) -> Option<u32> {
        assert_ne!(number, MISS, "the number of packets without a megaflow");
        let (mask, flow) = (megaflow.mask(), megaflow.flow());
        let at = match self.by_mask.get(mask) {
            Some(at) => *at,
            None => self.add(*mask),
        };
        let hashed = self.hash(&self.subtables[at], flow);
        if self.subtables[at].is_full() {
            self.subtables[at].grow(Scalar, &self.keys);
            self.place_filter(at);
        }
        let table = &mut self.subtables[at];
        let old = table.insert(Scalar, hashed, flow, number);
        if old.is_some() {
            self.version.outdated += u64::from(old != Some(number));
            return old;
        }
        let Span { start, len } = table.filter;
        fill(&mut self.filters[start..start + len], [hashed.whole].into_iter());
        self.len += 1;
        None
    }

    /// Removes a megaflow, and returns its number.
    pub fn remove(&mut self, megaflow: &Match) -> Option<u32> {
        let at = *self.by_mask.get(megaflow.mask())?;
        let hashed = self.hash(&self.subtables[at], megaflow.flow());
        let table = &mut self.subtables[at];
        let number = table.remove(Scalar, hashed, megaflow.flow())?;
        let is_stale = table.stale > table.len / 2 + 16;
        self.len -= 1;
        self.version.outdated += 1;
        if self.subtables[at].len == 0 {
            self.drop_subtable(at);
        } else if is_stale {
            self.fill_filter(at);
        }
        Some(number)
    }

    /// Removes all megaflows.
    pub fn clear(&mut self) {
        self.subtables.clear();
        self.by_mask.clear();
        self.len = 0;
        self.version.subtables += 1;
        self.version.outdated += 1;
        (self.filters, self.filters_end) = (vec![0], 1);
    }

    /// A subtable more.
    fn add(&mut self, mask: Mask) -> usize {
        self.subtables.push(Subtable::new(self.next_id, mask, &self.keys));
        self.next_id = self.next_id.wrapping_add(1);
        self.version.subtables += 1;
        self.by_mask.insert(mask, self.subtables.len() - 1);
        self.place_filter(self.subtables.len() - 1);
        self.subtables.len() - 1
    }

    fn drop_subtable(&mut self, at: usize) {
        self.by_mask.remove(&self.subtables[at].mask);
        self.subtables.swap_remove(at);
        if let Some(moved) = self.subtables.get(at) {
            self.by_mask.insert(moved.mask, at);
        }
        self.version.subtables += 1;
    }

    /// Gives a subtable that is new or has grown the room for its filter.
    fn place_filter(&mut self, at: usize) {
        self.version.filters += 1;
        let len = self.subtables[at].filter_words();
        self.subtables[at].filter.len = 0;
        if self.filters_end + len > self.filters.len() {
            // All move together, into an array with room for as much again.
            let all = 1 + len + self.subtables.iter().map(|table| table.filter.len).sum::<usize>();
            let mut filters = vec![0; (2 * all).next_power_of_two()];
            self.filters_end = 1;
            for Span { start, len } in self.subtables.iter_mut().map(|table| &mut table.filter) {
                let old = &self.filters[*start..*start + *len];
                filters[self.filters_end..self.filters_end + *len].copy_from_slice(old);
                (*start, self.filters_end) = (self.filters_end, self.filters_end + *len);
            }
            self.filters = filters;
        }
        self.subtables[at].filter = Span { start: self.filters_end, len };
        self.filters_end += len;
        self.fill_filter(at);
    }

    fn fill_filter(&mut self, at: usize) {
        let table = &mut self.subtables[at];
        table.stale = 0;
        let Span { start, len } = table.filter;
        let filter = &mut self.filters[start..start + len];
        filter.fill(0);
        let (keys, table) = (&self.keys, &*table);
        fill(filter, table.iter().map(|(flow, _)| table.hash(keys, &flow).whole));
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (isa, tables) = (self.isa(), self.subtables());
        write!(f, "Cache({isa}, {} megaflows of {tables} masks)", self.len)
    }
}
