//! The cache that threads share, with the records of its megaflows.

use std::collections::{HashMap, VecDeque};
use std::mem;

use super::{ClassifierCounts, Megaflow};
use crate::rules::RuleId;
use crate::sync::{Arc, AtomicBool, AtomicU32, AtomicU64, Ordering};
use crate::{Cache, Flow, Found, MISS, Match, Reader, Writer};

/// A slot without a rule: of a megaflow whose packets hit none.
const NO_RULE: u32 = u32::MAX;

/// The data of a megaflow for readers, and their counts.
struct Slot {
    rule: AtomicU32,
    /// Packets came since the hand passed.
    recent: AtomicBool,
    packets: AtomicU64,
    used: AtomicU64,
}

/// A slot for each number of a megaflow. There are more than megaflows: a number is not used again as long as a reader
/// has a generation of the cache with it.
pub(super) struct Slots {
    slots: Box<[Slot]>,
    most: usize,
}

impl Slots {
    pub(super) fn new(most: usize) -> Self {
        let slot = |_| Slot {
            rule: AtomicU32::new(NO_RULE),
            recent: AtomicBool::new(false),
            packets: AtomicU64::new(0),
            used: AtomicU64::new(0),
        };
        Self { slots: (0..most + most / 4 + 1).map(slot).collect(), most }
    }

    /// Counts a packet of a megaflow, and returns the rule that it hits. The slot was written before the first
    /// generation with this number was published, and does not change until no reader has such a generation.
    #[inline]
    pub(super) fn hit(&self, number: u32, now: u64) -> Option<RuleId> {
        let slot = &self.slots[number as usize];
        slot.packets.fetch_add(1, Ordering::Relaxed);
        if slot.used.load(Ordering::Relaxed) != now {
            slot.used.store(now, Ordering::Relaxed);
        }
        if !slot.recent.load(Ordering::Relaxed) {
            slot.recent.store(true, Ordering::Relaxed);
        }
        let rule = slot.rule.load(Ordering::Relaxed);
        (rule != NO_RULE).then_some(RuleId(rule))
    }

    fn begin(&self, number: u32, rule: Option<RuleId>, now: u64) {
        let slot = &self.slots[number as usize];
        slot.rule.store(rule.map_or(NO_RULE, |rule| rule.0), Ordering::Relaxed);
        slot.recent.store(false, Ordering::Relaxed);
        slot.packets.store(1, Ordering::Relaxed);
        slot.used.store(now, Ordering::Relaxed);
    }

    fn rule(&self, number: u32) -> Option<RuleId> {
        let rule = self.slots[number as usize].rule.load(Ordering::Relaxed);
        (rule != NO_RULE).then_some(RuleId(rule))
    }
}

/// The megaflows of a cache that readers search. One thread at a time has it.
pub(super) struct Cached {
    writer: Writer,
    slots: Arc<Slots>,
    /// By number; those without one are free, or leave.
    megaflows: Vec<Option<Match>>,
    numbers: HashMap<Match, u32>,
    free: Vec<u32>,
    /// Numbers that go with the next generation, and numbers that went, with the generation that lacks them.
    going: Vec<u32>,
    gone: VecDeque<(u64, u32)>,
    /// The position where the search for one to evict continues.
    hand: usize,
    /// Megaflows that wait to be published.
    waiting: usize,
    counts: ClassifierCounts,
}

impl Cached {
    /// Those of an empty cache.
    pub(super) fn new(cache: Cache, slots: Arc<Slots>) -> Self {
        Self {
            writer: Writer::new(cache),
            slots,
            megaflows: Vec::new(),
            numbers: HashMap::new(),
            free: Vec::new(),
            going: Vec::new(),
            gone: VecDeque::new(),
            hand: 0,
            waiting: 0,
            counts: ClassifierCounts::default(),
        }
    }

    pub(super) fn reader(&self, exact: bool) -> Reader {
        if exact { self.writer.reader_with_exact() } else { self.writer.reader() }
    }

    pub(super) fn counts(&self) -> ClassifierCounts {
        self.counts
    }

    pub(super) fn megaflows(&self) -> Vec<Megaflow> {
        let megaflow = |(&matched, &number): (&Match, &u32)| {
            let slot = &self.slots.slots[number as usize];
            Megaflow {
                matched,
                rule: self.slots.rule(number),
                packets: slot.packets.load(Ordering::Relaxed),
                used: slot.used.load(Ordering::Relaxed),
            }
        };
        self.numbers.iter().map(megaflow).collect()
    }

    /// Puts the megaflow of a packet into the cache. Another packet may have done so, and it may still have to be
    /// published. Without a free number nothing is learned.
    pub(super) fn learn(&mut self, now: u64, flow: &Flow, found: &Found) {
        let matched = Match::new(*flow, found.mask);
        if let Some(&number) = self.numbers.get(&matched) {
            self.slots.hit(number, now);
            return;
        }
        if self.numbers.len() >= self.slots.most
            && let Some(oldest) = self.oldest()
        {
            self.remove(oldest);
            self.counts.evicted += 1;
        }
        let Some(number) = self.number() else { return };
        self.slots.begin(number, found.rule, now);
        self.megaflows[number as usize] = Some(matched);
        self.numbers.insert(matched, number);
        self.writer.insert(matched, number);
        self.waiting += 1;
    }

    /// A number that no reader can find as another megaflow's.
    fn number(&mut self) -> Option<u32> {
        if let Some(number) = self.free.pop() {
            return Some(number);
        }
        if self.megaflows.len() < self.slots.slots.len() {
            self.megaflows.push(None);
            return Some((self.megaflows.len() - 1) as u32);
        }
        let oldest = self.writer.oldest();
        while let Some(&(_, number)) = self.gone.front().filter(|gone| gone.0 <= oldest) {
            self.gone.pop_front();
            self.free.push(number);
        }
        self.free.pop()
    }

    /// One that had no packet since the hand last passed it ("clock").
    fn oldest(&mut self) -> Option<u32> {
        for _ in 0..self.megaflows.len() * 2 {
            let at = self.hand % self.megaflows.len();
            self.hand = at + 1;
            let is_there = self.megaflows[at].is_some();
            if is_there && !self.slots.slots[at].recent.swap(false, Ordering::Relaxed) {
                return Some(at as u32);
            }
        }
        None
    }

    fn remove(&mut self, number: u32) {
        if let Some(matched) = self.megaflows[number as usize].take() {
            self.numbers.remove(&matched);
            self.writer.remove(&matched);
            self.going.push(number);
        }
    }

    /// Takes megaflows out that are no longer right, by their packets and rules, before anybody searches again.
    pub(super) fn forget(&mut self, wrong: impl Fn(&Match, Option<RuleId>) -> bool) {
        let is_wrong = |(matched, number): (&Match, &u32)| {
            wrong(matched, self.slots.rule(*number)).then_some(*number)
        };
        let all: Vec<u32> = self.numbers.iter().filter_map(is_wrong).collect();
        all.iter().for_each(|number| self.remove(*number));
        self.counts.outdated += all.len() as u64;
        self.publish();
    }

    /// Takes those out that had no packet since a time.
    pub(super) fn expire(&mut self, since: u64) -> usize {
        let used = |number: u32| self.slots.slots[number as usize].used.load(Ordering::Relaxed);
        let idle = self.numbers.values().copied().filter(|number| used(*number) < since);
        let idle: Vec<u32> = idle.collect();
        idle.iter().for_each(|number| self.remove(*number));
        self.counts.expired += idle.len() as u64;
        self.publish();
        idle.len()
    }

    /// Publishes the new megaflows, if this is cheap or there are enough of them. Publishing copies the cache while a
    /// reader has an old generation. Until then, the slow path answers.
    pub(super) fn publish_soon(&mut self) {
        if self.writer.is_cheap() || self.waiting * 4 > self.numbers.len() {
            self.publish();
        }
    }

    fn publish(&mut self) {
        let generation = self.writer.publish();
        self.waiting = 0;
        self.gone.extend(mem::take(&mut self.going).into_iter().map(|number| (generation, number)));
    }
}

const _: () = assert!(NO_RULE == MISS, "no rule has this number");
