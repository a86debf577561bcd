//! Classifiers: rules, the slow path and the megaflow cache together.

mod batch;
mod cached;
mod megaflows;
mod shared;

use batch::{Missed, Tally};
pub use megaflows::Megaflow;
use megaflows::Megaflows;
pub use shared::{ClassifierReader, SharedClassifier};

use crate::rules::Precedence;
use crate::{
    Batch, Cache, Flow, Found, MISS, Match, NoNumber, Rule, RuleId, Rules, Searcher, SlowPath,
};

/// Options of a [`Classifier`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClassifierOptions {
    /// Maximum number of megaflows. When it is reached, a new megaflow replaces one without recent packets.
    pub megaflows: usize,
    /// Whether an exact-match cache is in front of the megaflows.
    pub exact: bool,
}

impl Default for ClassifierOptions {
    fn default() -> Self {
        Self { megaflows: 65_536, exact: false }
    }
}

/// Counts of a [`Classifier`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassifierCounts {
    /// Packets.
    pub packets: u64,
    /// Packets without a megaflow in the cache.
    pub misses: u64,
    /// Megaflows evicted to make room for others.
    pub evicted: u64,
    /// Megaflows removed because they had no packets.
    pub expired: u64,
    /// Megaflows removed because rules changed.
    pub outdated: u64,
}

/// Finds the rule that each packet hits: from the cache if it has a megaflow for the packet, else by the slow path,
/// which adds a megaflow for the following packets.
///
/// When a rule is added or removed, exactly the megaflows that are no longer right are removed before the next packet
/// is classified. A `Classifier` has one owner; [`SharedClassifier`] is for several threads.
///
/// ```
/// use fibula_classify::{Action, Batch, Classifier, Field, Flow, Rule, Rules};
///
/// let mut rules = Rules::new();
/// let all = rules.insert(Rule::new(Action::Drop)).unwrap();
/// let mut classifier = Classifier::new(rules, &Default::default());
/// let mut batch = Batch::new();
/// for port in 0..100 {
///     let mut flow = Flow::default();
///     flow.set(Field::DstPort, port);
///     batch.push(&flow);
/// }
/// let mut found = [None; 100];
/// classifier.classify(0, &batch, &mut found);
/// assert_eq!(found, [Some(all); 100]);
/// assert_eq!(classifier.megaflows().count(), 1);
/// ```
#[derive(Clone, Debug)]
pub struct Classifier {
    rules: Rules,
    slow: SlowPath,
    cache: Cache,
    searcher: Searcher,
    megaflows: Megaflows,
    most: usize,
    tally: Tally,
    counts: ClassifierCounts,
    missed: Missed,
}

impl Classifier {
    /// Makes a classifier with these rules.
    pub fn new(rules: Rules, options: &ClassifierOptions) -> Self {
        Self {
            slow: SlowPath::of(&rules),
            rules,
            cache: Cache::new(),
            searcher: if options.exact { Searcher::with_exact() } else { Searcher::new() },
            megaflows: Megaflows::default(),
            most: options.megaflows.clamp(1, MISS as usize - 1),
            tally: Tally::default(),
            counts: ClassifierCounts::default(),
            missed: Missed::default(),
        }
    }

    /// The rules.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The slow path.
    pub fn slow_path(&self) -> &SlowPath {
        &self.slow
    }

    /// The counts.
    pub fn counts(&self) -> ClassifierCounts {
        let Tally { packets, misses, .. } = self.tally;
        ClassifierCounts { packets, misses, ..self.counts }
    }

    /// Number of packets that hit a rule; with `None`, of packets that hit no rule.
    pub fn packets(&self, rule: Option<RuleId>) -> u64 {
        self.tally.of(rule)
    }

    /// The megaflows of the cache, in no particular order.
    pub fn megaflows(&self) -> impl Iterator<Item = &Megaflow> {
        self.megaflows.iter().map(|(_, megaflow)| megaflow)
    }

    /// Number of masks of the megaflows.
    pub fn subtables(&self) -> usize {
        self.cache.subtables()
    }

    /// Finds for each packet the rule that it hits. `now` is a time in any unit, which must not decrease.
    ///
    /// # Panics
    ///
    /// If the number of answers differs from the number of packets.
    pub fn classify(&mut self, now: u64, batch: &Batch, found: &mut [Option<RuleId>]) {
        let mut missed = std::mem::take(&mut self.missed);
        let Self { cache, searcher, megaflows, .. } = self;
        let search = |batch: &Batch, numbers: &mut [u32]| searcher.search(cache, batch, numbers);
        missed.search(batch, found, search, |number| megaflows.hit(number, now));
        missed.look_up(&self.slow, found);
        for (flow, by_rules) in missed.learned() {
            self.learn(now, flow, by_rules);
        }
        self.tally.count(found, missed.len());
        self.missed = missed;
    }

    /// Puts the megaflow of a packet into the cache. Another packet of the batch may have done so.
    fn learn(&mut self, now: u64, flow: &Flow, found: &Found) {
        let matched = Match::new(*flow, found.mask);
        if let Some(number) = self.cache.get(&matched) {
            self.megaflows.hit(number, now);
            return;
        }
        if self.megaflows.len() >= self.most
            && let Some(oldest) = self.megaflows.oldest()
        {
            self.forget(oldest);
            self.counts.evicted += 1;
        }
        let megaflow = Megaflow { matched, rule: found.rule, packets: 1, used: now };
        let number = self.megaflows.insert(megaflow);
        self.cache.insert(matched, number);
    }

    fn forget(&mut self, number: u32) {
        if let Some(megaflow) = self.megaflows.remove(number) {
            self.cache.remove(&megaflow.matched);
        }
    }

    /// Adds a rule. Megaflows with packets for which the new rule wins are removed.
    ///
    /// # Errors
    ///
    /// All rule numbers of the table are used. Nothing has changed.
    pub fn insert(&mut self, rule: Rule) -> Result<RuleId, NoNumber> {
        let id = self.rules.insert(rule.clone())?;
        self.slow.insert(id, &rule);
        let precedence = Precedence::new(rule.priority, id);
        let loses = |old: Option<RuleId>| {
            old.and_then(|old| Some(Precedence::new(self.rules.get(old)?.priority, old)))
                .is_none_or(|old| old < precedence)
        };
        let wrong = |(_, megaflow): &(u32, &Megaflow)| {
            rule.meets(&megaflow.matched) && loses(megaflow.rule)
        };
        let wrong: Vec<u32> =
            self.megaflows.iter().filter(wrong).map(|(number, _)| number).collect();
        self.counts.outdated += wrong.len() as u64;
        wrong.into_iter().for_each(|number| self.forget(number));
        Ok(id)
    }

    /// Removes a rule, if it exists, with the megaflows whose packets hit it.
    pub fn remove(&mut self, id: RuleId) -> Option<Rule> {
        let rule = self.rules.remove(id)?;
        self.slow.remove(id, &rule);
        while let Some(number) = self.megaflows.of_rule(Some(id)) {
            self.forget(number);
            self.counts.outdated += 1;
        }
        Some(rule)
    }

    /// Removes megaflows without a packet since the time `since`, and returns their number.
    pub fn expire(&mut self, since: u64) -> usize {
        let idle = self.megaflows.iter().filter(|(_, megaflow)| megaflow.used < since);
        let idle: Vec<u32> = idle.map(|(number, _)| number).collect();
        self.counts.expired += idle.len() as u64;
        idle.iter().for_each(|number| self.forget(*number));
        idle.len()
    }

    /// Removes all megaflows.
    pub fn clear(&mut self) {
        self.cache.clear();
        self.megaflows.clear();
    }
}
