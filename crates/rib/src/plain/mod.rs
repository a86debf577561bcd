//! A table that changes while it is read, whose routes have one number each: for data planes, whose routes are decided
//! elsewhere and whose attributes are an index of a next hop.
//!
//! ```text
//!   change ─► pending ─┬─ settle ─► Routes ─┬─ publish ─► spare engine, or a copy, patched; or one built ─► readers
//!                      └─ a few ─► recent ──┘
//! ```
//!
//! **A few changes** are kept beside the sorted routes, because each new prefix would move all routes behind it: for
//! the patch, the engine is given only the routes around the changes ([`Follow::reach`](fibula_core::Follow::reach)).
//!
//! It has neither a RIB nor a log nor threads: the routes themselves are the authoritative table, and the caller
//! decides when changes are published. So a route takes 12 bytes (IPv6: 48) beside the engine, a change may be visible
//! when the call returns, and a thousand tables need no thread. A [`Live`](crate::Live) table is for feeds: peers, best
//! paths, attributes, an audit.
//!
//! Invariants:
//! - readers see a generation whole, engine and values, and never an earlier one afterwards;
//! - the table never waits for readers: a generation that one holds is freed later, so there are at most as many old
//!   ones as readers, and the spare one;
//! - if no engine takes the routes, the last generation stays, and the next [`Plain::publish`] tries again.

mod generation;
mod numbers;
mod publish;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use fibula_core::{Addr, Hop, Prefix, Route, Routes};

use crate::EngineSource;
use crate::compiler::Tables;
use crate::publisher::Retired;
use crate::status::EngineRefusal;
use crate::sync::Arc;
use generation::PlainPublisher;
pub use generation::{PlainGeneration, PlainReader};
use numbers::Numbers;

/// A table of routes with a number each, which one writer changes and publishes, and any number of threads read.
///
/// ```
/// use std::sync::Arc;
/// use fibula_core::{BoxedEngine, BuildError, Routes};
/// use fibula_rib::{Maker, Plain};
/// # use fibula_core::*;
/// # struct First(Vec<Route<u32>>);
/// # impl Lookup<u32> for First {
/// #     fn lookup(&self, addr: u32) -> Hop {
/// #         let found = self.0.iter().rev().find(|route| route.prefix.contains(addr));
/// #         found.map_or(Hop::NONE, |route| route.hop)
/// #     }
/// #     fn lookup_batch(&self, addrs: &[u32], hops: &mut [Hop]) {
/// #         addrs.iter().zip(hops).for_each(|(addr, hop)| *hop = self.lookup(*addr));
/// #     }
/// #     fn memory(&self) -> Memory { Memory::default() }
/// # }
/// # impl Follow<u32> for First {}
/// # let build = |routes: &Routes<u32>| Ok(unstored(First(routes.iter().collect())));
/// # struct Source<F>(F);
/// # impl<F> EngineSource<u32> for Source<F>
/// # where F: Fn(&Routes<u32>) -> Result<BoxedEngine<u32>, BuildError> + Clone + Send + Sync + 'static {
/// #     fn candidates(&self, _: &Routes<u32>) -> Vec<Maker<u32>> { vec![Maker::new("first", self.0.clone())] }
/// # }
/// # use fibula_rib::EngineSource;
/// # let engines = Arc::new(Source(build));
/// let mut table = Plain::<u32>::new(engines, u64::MAX); // the value of addresses without a route
/// let mut reader = table.reader();
/// table.change([("10.0.0.0/8".parse()?, Some(7)), ("10.1.0.0/16".parse()?, Some(1 << 40))])?;
/// table.publish()?;
/// let mut values = [0; 3];
/// reader.pin().lookup(&[0x0a02_0000, 0x0a01_0000, 0x0b00_0000], &mut values);
/// assert_eq!(values, [7, 1 << 40, u64::MAX]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Plain<A: Addr> {
    /// Changes that the routes lack, in the order in which they were made.
    pending: Vec<(Prefix<A>, Option<u64>)>,
    tables: Tables<A>,
    /// Changes that the routes lack and the newest generation has: single changes do not move all routes behind them.
    recent: BTreeMap<Prefix<A>, Hop>,
    /// One more than the largest of their hops.
    recent_hops: u32,
    numbers: Numbers,
    /// Prefixes in which the routes differ from the newest generation.
    unpublished: Vec<Prefix<A>>,
    /// The next generation is built: too many prefixes differ.
    is_whole: bool,
    /// Another engine suits the routes better.
    is_rechosen: bool,
    publisher: Arc<PlainPublisher<A>>,
    retired: Retired<PlainGeneration<A>, Prefix<A>>,
    number: u64,
    /// Prefixes that were patched since the last build.
    patched: usize,
    oldest: Option<Instant>,
    counters: PlainCounters,
}

/// What happened to a table since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlainCounters {
    /// Changes that were taken.
    pub changes: u64,
    /// Published generations, without the first.
    pub generations: u64,
    /// Generations whose engine was built.
    pub builds: u64,
    /// Generations whose engine is the one before the current, patched.
    pub patches: u64,
    /// Generations whose engine is a copy of the current one, patched.
    pub copies: u64,
    /// Of these and the patched ones, those of a few changes, for which the routes were not moved.
    pub aside: u64,
    /// Number of times that no engine took the routes.
    pub failures: u64,
    /// The time in which engines were built, copied and patched.
    pub making: Duration,
}

/// The bytes of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlainMemory {
    /// Routes, and changes that wait.
    pub routes: usize,
    /// Values by number, and numbers by value.
    pub values: usize,
    /// The current engine.
    pub engine: usize,
    /// Engines of replaced generations: the spare one, and those that readers hold.
    pub old: usize,
    /// Number of replaced generations that readers hold.
    pub held: usize,
}

/// Why a table was not changed, or changes were not published.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum PlainError {
    /// There would be 2^32 - 1 routes or more.
    Full,
    /// No engine takes the routes. The last generation stays, and the next publication tries again.
    NoEngine(Vec<EngineRefusal>),
}

impl fmt::Display for PlainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str("the table would have more than 2^32 - 2 routes"),
            Self::NoEngine(refused) => {
                f.write_str("no engine takes the routes, so readers keep the table before: ")?;
                let texts: Vec<_> = refused.iter().map(ToString::to_string).collect();
                f.write_str(&texts.join("; "))
            }
        }
    }
}

impl std::error::Error for PlainError {}

/// Below this number of prefixes, neither is a build due nor are the changed prefixes forgotten for one.
const MANY: usize = 4096;

/// As many changes that the routes lack are searched one after the other.
const SCANNED: usize = 256;

impl<A: Addr> Plain<A> {
    /// A table without routes, where each address has the value `none`.
    pub fn new(engines: Arc<dyn EngineSource<A>>, none: u64) -> Self {
        let numbers = Numbers::new(none);
        let first = PlainGeneration { number: 1, engine: None, slots: Arc::clone(numbers.slots()) };
        Self {
            pending: Vec::new(),
            tables: Tables::new(engines, Routes::default()),
            recent: BTreeMap::new(),
            recent_hops: 0,
            numbers,
            unpublished: Vec::new(),
            is_whole: false,
            is_rechosen: false,
            publisher: Arc::new(PlainPublisher::new(first)),
            retired: Retired::new(),
            number: 1,
            patched: 0,
            oldest: None,
            counters: PlainCounters::default(),
        }
    }

    /// A reader, for one thread.
    pub fn reader(&self) -> PlainReader<A> {
        PlainReader::new(&self.publisher)
    }

    /// Takes changes: a value for a prefix, or `None` to remove its route. The last change of a prefix counts. Readers
    /// see them after [`Plain::publish`].
    ///
    /// # Errors
    /// [`PlainError::Full`], and then none of the changes is taken.
    pub fn change(
        &mut self,
        changes: impl IntoIterator<Item = (Prefix<A>, Option<u64>)>,
    ) -> Result<(), PlainError> {
        self.change_since(Instant::now(), changes)
    }

    /// Like [`Plain::change`], for changes that have waited elsewhere: [`Plain::lag`] counts from `since`.
    ///
    /// # Errors
    /// Those of [`Plain::change`].
    pub fn change_since(
        &mut self,
        since: Instant,
        changes: impl IntoIterator<Item = (Prefix<A>, Option<u64>)>,
    ) -> Result<(), PlainError> {
        let before = self.pending.len();
        self.pending.extend(changes);
        let count = self.pending.len() - before;
        if self.tables.routes.len() + self.pending.len() >= u32::MAX as usize {
            self.pending.truncate(before);
            return Err(PlainError::Full);
        }
        if count > 0 {
            self.oldest = Some(self.oldest.map_or(since, |oldest| oldest.min(since)));
            self.counters.changes += count as u64;
        }
        Ok(())
    }

    /// An upper bound of the number of routes, at no cost.
    pub fn len_at_most(&self) -> usize {
        self.tables.routes.len() + self.recent.len() + self.pending.len()
    }

    /// The changes that wait, the last one of each prefix, in order.
    fn changes(&mut self) -> Vec<Route<A>> {
        let mut changes = std::mem::take(&mut self.pending);
        if !changes.is_sorted_by(|a, b| a.0 < b.0) {
            changes.sort_by_key(|change| change.0); // stable: the last change of a prefix stays last
            changes.dedup_by(|next, kept| {
                let is_same = next.0 == kept.0;
                if is_same {
                    kept.1 = next.1;
                }
                is_same
            });
        }
        let numbers = &mut self.numbers;
        let mut hop = |value: Option<u64>| value.map_or(Hop::NONE, |v| Hop::new(numbers.number(v)));
        changes.iter().map(|&(prefix, value)| Route { prefix, hop: hop(value) }).collect()
    }

    /// Brings the routes up to date.
    fn settle(&mut self) {
        if !self.recent.is_empty() {
            let recent = std::mem::take(&mut self.recent).into_iter();
            let recent: Vec<_> = recent.map(|(prefix, hop)| Route { prefix, hop }).collect();
            self.apply(&recent);
            self.recent_hops = 0;
        }
        if self.pending.is_empty() {
            return;
        }
        self.numbers.tidy(&self.tables.routes);
        let changes = self.changes();
        let before = self.tables.routes.len();
        self.apply(&changes);
        self.is_rechosen |= self.tables.choice.review(&self.tables.routes, changes.len());
        if !self.is_whole {
            self.unpublished.extend(changes.iter().map(|change| change.prefix));
        }
        if self.unpublished.len() > MANY.max(before.max(self.tables.routes.len()) / 2) {
            (self.is_whole, self.unpublished) = (true, Vec::new());
        }
    }

    fn apply(&mut self, changes: &[Route<A>]) {
        let routes = &mut self.tables.routes;
        let before = routes.len();
        match before {
            0 => *routes = Routes::from_unsorted(changes.to_vec()),
            _ => routes.apply(changes),
        }
        self.tables.costs.grown(before, self.tables.routes.len());
    }

    /// How long the oldest change has waited for its publication; `None` if readers see all changes.
    pub fn lag(&self) -> Option<Duration> {
        self.oldest.map(|since| since.elapsed())
    }

    /// The counters.
    pub fn counters(&self) -> PlainCounters {
        self.counters
    }

    /// The newest generation.
    pub fn current(&self) -> Arc<PlainGeneration<A>> {
        self.publisher.load()
    }

    /// The bytes of its parts.
    pub fn memory(&mut self) -> PlainMemory {
        let changes = self.pending.capacity() * size_of::<(Prefix<A>, Option<u64>)>()
            + self.recent.len() * size_of::<(Prefix<A>, Hop)>();
        PlainMemory {
            routes: self.tables.routes.len() * size_of::<Route<A>>() + changes,
            values: self.numbers.memory(),
            engine: self.publisher.load().memory(),
            held: self.retired.in_use(),
            old: self.retired.iter().map(PlainGeneration::memory).sum(),
        }
    }

    /// Number of routes, of changes that readers do not see yet included, as in all methods from here on.
    pub fn len(&mut self) -> usize {
        self.settle();
        self.tables.routes.len()
    }

    /// Whether there are no routes.
    pub fn is_empty(&mut self) -> bool {
        self.len() == 0
    }

    /// The value of exactly this prefix.
    pub fn exact(&mut self, prefix: Prefix<A>) -> Option<u64> {
        // A program that asks before each of many changes would otherwise move the routes for each.
        if self.pending.len() <= SCANNED {
            let last = self.pending.iter().rev().find(|change| change.0 == prefix);
            if let Some(&(_, value)) = last {
                return value;
            }
        } else {
            self.settle();
        }
        let hop = match self.recent.get(&prefix) {
            Some(hop) => Some(*hop).filter(|hop| !hop.is_none())?,
            None => self.tables.routes.get(prefix)?,
        };
        Some(self.numbers.slots().value(hop.to_bits()))
    }

    /// The prefixes that cover this one, itself included, longest first, with their values.
    pub fn covering(&mut self, prefix: Prefix<A>) -> impl Iterator<Item = (Prefix<A>, u64)> {
        if !self.pending.is_empty() {
            self.settle();
        }
        let Self { recent, tables, numbers, .. } = self;
        let routes = tables.routes.covering(prefix).map(|route| (route.prefix, route.hop));
        let mut found: Vec<_> = routes.filter(|(of, _)| !recent.contains_key(of)).collect();
        if !recent.is_empty() {
            let all = (0..=prefix.len()).filter_map(|len| Prefix::masked(prefix.addr(), len).ok());
            let aside = all.filter_map(|of| Some((of, *recent.get(&of)?)));
            found.extend(aside.filter(|(_, hop)| !hop.is_none()));
            found.sort_unstable_by_key(|(of, _)| Reverse(of.len()));
        }
        let slots = numbers.slots();
        found.into_iter().map(|(of, hop)| (of, slots.value(hop.to_bits())))
    }

    /// The prefixes within this one, itself included, that sort behind `after`, in order, with their values.
    pub fn walk(
        &mut self,
        within: Prefix<A>,
        after: Option<Prefix<A>>,
    ) -> impl Iterator<Item = (Prefix<A>, u64)> {
        self.settle();
        let found = self.tables.routes.within(within);
        let first = after.map_or(0, |after| found.partition_point(|route| route.prefix <= after));
        let slots = self.numbers.slots();
        found[first..].iter().map(|route| (route.prefix, slots.value(route.hop.to_bits())))
    }
}
