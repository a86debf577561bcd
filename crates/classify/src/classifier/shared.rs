//! One set of rules for several threads.

use std::fmt;
use std::sync::PoisonError;

use super::batch::{Missed, Tally};
use super::cached::{Cached, Slots};
use super::{ClassifierCounts, ClassifierOptions, Megaflow};
use crate::rules::Precedence;
use crate::sync::{Arc, Mutex, RwLock, lock};
use crate::{Batch, Cache, MISS, NoNumber, Reader, Rule, RuleId, Rules, SlowPath};

/// A classifier for several threads, whose rules may change while they classify.
///
/// Each thread has a [`ClassifierReader`]. All of them share one cache of megaflows, so a megaflow that one thread
/// adds serves all threads. Packets with a megaflow in the cache are classified without a lock. For other packets,
/// threads share a read lock on the rules, and take turns to add megaflows to the cache.
///
/// ```text
///   reader ── batch ──► newest generation of the cache ──► megaflow: its rule
///                          ▲           │ none
///                  publish │           ▼
///                       megaflows ◄── slow path, read by several ◄── insert, remove: by one, while nobody reads
/// ```
///
/// **Every answer was right at some time between the beginning and the end of the batch.** A change is complete when
/// [`insert`](Self::insert) or [`remove`](Self::remove) returns: batches that begin later are classified by the new
/// rules.
///
/// ```
/// use fibula_classify::{Action, Batch, Flow, Rule, Rules, SharedClassifier};
///
/// let shared = SharedClassifier::new(Rules::new(), &Default::default());
/// let mut reader = shared.reader();
/// let thread = std::thread::spawn(move || {
///     let mut batch = Batch::new();
///     batch.push(&Flow::default());
///     let mut found = [None];
///     while found == [None] {
///         reader.classify(0, &batch, &mut found);
///     }
///     found[0]
/// });
/// let drop = shared.insert(Rule::new(Action::Drop)).unwrap();
/// assert_eq!(thread.join().unwrap(), Some(drop));
/// ```
#[derive(Clone)]
pub struct SharedClassifier {
    inner: Arc<Inner>,
}

struct Inner {
    /// Held for reading from a packet's search to the end of what is learned from it: a megaflow that goes into the
    /// cache is one of these rules.
    state: RwLock<State>,
    /// Taken behind `state`, never before it.
    cached: Mutex<Cached>,
    slots: Arc<Slots>,
    /// What each reader counted. That of readers that went is added to the first.
    tallies: Mutex<Vec<Arc<Mutex<Tally>>>>,
    exact: bool,
}

struct State {
    rules: Rules,
    slow: SlowPath,
}

impl SharedClassifier {
    /// Makes a classifier with these rules.
    pub fn new(rules: Rules, options: &ClassifierOptions) -> Self {
        Self::with(rules, Cache::new(), options)
    }

    /// With an empty cache.
    pub(crate) fn with(rules: Rules, cache: Cache, options: &ClassifierOptions) -> Self {
        let slots = Arc::new(Slots::new(options.megaflows.clamp(1, MISS as usize / 2)));
        let cached = Cached::new(cache, Arc::clone(&slots));
        let inner = Inner {
            state: RwLock::new(State { slow: SlowPath::of(&rules), rules }),
            cached: Mutex::new(cached),
            slots,
            tallies: Mutex::default(),
            exact: options.exact,
        };
        Self { inner: Arc::new(inner) }
    }

    /// Makes a reader, for one thread.
    pub fn reader(&self) -> ClassifierReader {
        let reader = lock(&self.inner.cached).reader(self.inner.exact);
        let tally = Arc::new(Mutex::new(Tally::default()));
        let mut tallies = lock(&self.inner.tallies);
        tallies.push(Arc::clone(&tally));
        let mut at = 1;
        while at < tallies.len() {
            // No reader has it any more.
            if Arc::strong_count(&tallies[at]) == 1 && Arc::strong_count(&tallies[0]) == 1 {
                let gone = tallies.swap_remove(at);
                lock(&tallies[0]).add(&lock(&gone));
            } else {
                at += 1;
            }
        }
        drop(tallies);
        ClassifierReader { shared: self.clone(), reader, tally, missed: Missed::default() }
    }

    /// Calls the function with the rules, which cannot change during the call.
    pub fn with_rules<T>(&self, look: impl FnOnce(&Rules) -> T) -> T {
        look(&self.inner.state.read().unwrap_or_else(PoisonError::into_inner).rules)
    }

    /// Adds a rule. Megaflows with packets for which the new rule wins are removed. Batches that begin after this
    /// call are classified with the rule.
    ///
    /// # Errors
    ///
    /// All rule numbers of the table are used. Nothing has changed.
    pub fn insert(&self, rule: Rule) -> Result<RuleId, NoNumber> {
        let mut state = self.inner.state.write().unwrap_or_else(PoisonError::into_inner);
        let State { rules, slow } = &mut *state;
        let id = rules.insert(rule.clone())?;
        slow.insert(id, &rule);
        let precedence = Precedence::new(rule.priority, id);
        let loses = |old: Option<RuleId>| {
            old.and_then(|old| Some(Precedence::new(rules.get(old)?.priority, old)))
                .is_none_or(|old| old < precedence)
        };
        lock(&self.inner.cached).forget(|matched, old| rule.meets(matched) && loses(old));
        Ok(id)
    }

    /// Removes a rule, if it exists, with the megaflows whose packets hit it. No batch that begins after this call
    /// gets it as an answer.
    pub fn remove(&self, id: RuleId) -> Option<Rule> {
        let mut state = self.inner.state.write().unwrap_or_else(PoisonError::into_inner);
        let rule = state.rules.remove(id)?;
        state.slow.remove(id, &rule);
        lock(&self.inner.cached).forget(|_, rule| rule == Some(id));
        Some(rule)
    }

    /// Removes megaflows without a packet since the time `since`, and returns their number.
    pub fn expire(&self, since: u64) -> usize {
        lock(&self.inner.cached).expire(since)
    }

    /// Removes all megaflows.
    pub fn clear(&self) {
        lock(&self.inner.cached).forget(|_, _| true);
    }

    /// The megaflows, in no particular order.
    pub fn megaflows(&self) -> Vec<Megaflow> {
        lock(&self.inner.cached).megaflows()
    }

    /// Number of packets that hit a rule, over all readers; with `None`, of packets that hit no rule.
    pub fn packets(&self, rule: Option<RuleId>) -> u64 {
        let of = |tally: &Arc<Mutex<Tally>>| lock(tally).of(rule);
        lock(&self.inner.tallies).iter().map(of).sum()
    }

    /// The counts of all readers.
    pub fn counts(&self) -> ClassifierCounts {
        let mut counts = lock(&self.inner.cached).counts();
        for tally in lock(&self.inner.tallies).iter() {
            let tally = lock(tally);
            counts.packets += tally.packets;
            counts.misses += tally.misses;
        }
        counts
    }
}

impl fmt::Debug for SharedClassifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedClassifier({} rules)", self.with_rules(Rules::len))
    }
}

/// Classifies by the rules of a [`SharedClassifier`], in one thread.
pub struct ClassifierReader {
    shared: SharedClassifier,
    reader: Reader,
    tally: Arc<Mutex<Tally>>,
    missed: Missed,
}

impl ClassifierReader {
    /// Finds for each packet the rule that it hits. `now` is a time in any unit, which must not decrease.
    ///
    /// # Panics
    ///
    /// If the number of answers differs from the number of packets.
    pub fn classify(&mut self, now: u64, batch: &Batch, found: &mut [Option<RuleId>]) {
        let Self { shared: SharedClassifier { inner }, reader, tally, missed } = self;
        let search = |batch: &Batch, numbers: &mut [u32]| reader.search(batch, numbers);
        // The reader still has the generation with these numbers: they are no other megaflows'.
        missed.search(batch, found, search, |number| inner.slots.hit(number, now));
        if missed.len() > 0 {
            let state = inner.state.read().unwrap_or_else(PoisonError::into_inner);
            missed.look_up(&state.slow, found);
            let mut cached = lock(&inner.cached);
            for (flow, by_rules) in missed.learned() {
                cached.learn(now, flow, by_rules);
            }
            cached.publish_soon();
        }
        lock(tally).count(found, missed.len());
    }

    /// Releases the cache of the last batch. Idle threads should call this: while a thread holds an old cache, each
    /// change of the cache costs a copy.
    pub fn release(&mut self) {
        self.reader.release();
    }

    /// The classifier of this reader.
    pub fn classifier(&self) -> &SharedClassifier {
        &self.shared
    }
}

impl fmt::Debug for ClassifierReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClassifierReader({:?})", self.reader)
    }
}
