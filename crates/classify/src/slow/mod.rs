//! The slow path: finds the winning rule of a packet, and a megaflow for it.
//!
//! The rules form a *tuple space* (Srinivasan, Suri and Varghese 1999): rules with equal masks share a hash table.
//! Ranges are kept: the bits that all values of a range have in common go into the mask, and the rest is compared. A
//! packet is looked up in the tuples in order of their best rules, until no remaining tuple can have a better rule.
//!
//! All bits that the search looks at go into a mask: any other packet that agrees in these bits takes the same path
//! through the search, and finds the same rule. The search must therefore look at few bits. The ideas are from Pfaff
//! et al., "The Design and Implementation of Open vSwitch", NSDI 2015, section 5:
//!
//! - A tuple is skipped if none of its rules has a prefix of the packet; the bits up to the first one in which the
//!   packet differs from the rules' prefixes prove this. Here every field has a trie. If several fields exclude a
//!   tuple, the choice between them is made at the end, when the bits that the search needs in any case are known.
//! - Tuples that differ only in protocol and transport header are first searched together, without those fields.
//! - A port is compared with a range by only the bits that decide the comparison.

mod axis;
mod buckets;
mod explain;
mod group;
mod order;
mod ranges;
mod table;
mod trie;
mod words;

use std::collections::HashMap;

use fibula_simd::{Isa, Kernel, Level, Simd};

use crate::rules::{Precedence, Rule, RuleId, Rules};
use crate::{Flow, Mask};
use buckets::kept;
use group::{Group, outside_transport};
use order::{Candidate, Member, Order, Ranked, Search, Working};
use ranges::Ranges;
use table::Tuple;

/// The rules as a tuple space.
///
/// ```
/// use fibula_classify::{Action, Condition, Field, Flow, Rule, Rules, Scratch, SlowPath};
///
/// let mut rules = Rules::new();
/// let subnet = Rule::new(Action::Drop).when(Field::Ipv4Dst, Condition::Prefix(0x0a00_0000, 8)).unwrap();
/// let drop = rules.insert(subnet).unwrap();
/// let slow = SlowPath::of(&rules);
///
/// let mut flow = Flow::default();
/// flow.set(Field::IpVersion, 4);
/// flow.set(Field::Ipv4Dst, 0x0a01_0203);
/// let found = slow.lookup(&flow, &mut Scratch::default());
/// assert_eq!(found.rule, Some(drop));
/// assert_eq!(found.mask.get(Field::Ipv4Dst), 0xff00_0000);
/// // A packet to 8.1.2.3 parts from 10.0.0.0/8 in its seventh bit.
/// flow.set(Field::Ipv4Dst, 0x0801_0203);
/// let found = slow.lookup(&flow, &mut Scratch::default());
/// assert_eq!((found.rule, found.mask.get(Field::Ipv4Dst)), (None, 0xfe00_0000));
/// ```
#[derive(Clone, Debug)]
pub struct SlowPath {
    tuples: Vec<Tuple>,
    by_mask: HashMap<Mask, u32>,
    groups: Vec<Group>,
    /// The groups of a mask: more than one if its tuples do not fit one group.
    groups_by_mask: HashMap<Mask, Vec<u32>>,
    ranges: Ranges,
    order: Order,
    level: Level,
}

/// Packets that are looked up together: each waits for memory while the others compute.
const TOGETHER: usize = 24;

/// The memory of searches, reused from one to the next.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    searches: Vec<Search>,
    working: Working,
    effort: Effort,
}

impl Scratch {
    /// The total effort of the searches.
    pub fn effort(&self) -> Effort {
        self.effort
    }
}

/// The answer of the slow path for a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The rule that wins, if one matches.
    pub rule: Option<RuleId>,
    /// The megaflow's mask: packets that agree with this one in these bits get the same answer.
    pub mask: Mask,
}

/// The effort of searches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effort {
    /// Packets.
    pub packets: usize,
    /// Tuples that could have a better rule than the winner.
    pub tuples: usize,
    /// Lookups in tables of tuples and of groups. The tries excluded the other tuples.
    pub probes: usize,
}

impl Found {
    /// No rule, whatever the packet is.
    const NOTHING: Self = Self { rule: None, mask: Mask::EMPTY };
}

impl Default for SlowPath {
    /// Without rules.
    fn default() -> Self {
        Self {
            tuples: Vec::new(),
            by_mask: HashMap::new(),
            groups: Vec::new(),
            groups_by_mask: HashMap::new(),
            ranges: Ranges::default(),
            order: Order::default(),
            level: Isa::detect().level(),
        }
    }
}

impl SlowPath {
    /// Builds the tuple space of the rules. O(rules x log rules).
    pub fn of(rules: &Rules) -> Self {
        let mut slow = Self { order: Order::bulk(), ..Self::default() };
        for (id, rule) in rules.iter() {
            slow.put(id, rule);
        }
        slow.order.pack();
        Tuple::pack(&mut slow.tuples);
        Group::pack(&mut slow.groups);
        slow.arrange();
        slow
    }

    /// Adds a rule with its number in the table. A rule with a new mask costs O(masks).
    pub fn insert(&mut self, id: RuleId, rule: &Rule) {
        let (number, best) = self.put(id, rule);
        if best != self.tuples[number as usize].best() {
            self.arrange();
        }
    }

    /// Puts a rule into its tuple; returns the tuple and its previous best rule.
    fn put(&mut self, id: RuleId, rule: &Rule) -> (u32, Option<Precedence>) {
        let matched = rule.mask_match();
        let number = match self.by_mask.get(matched.mask()) {
            Some(number) => *number,
            None => self.add_tuple(*matched.mask()),
        };
        let tuple = &mut self.tuples[number as usize];
        let best = tuple.best();
        tuple.insert(rule, Precedence::new(rule.priority, id), self.ranges.insert(rule.ranges()));
        let (group, member) = tuple.group();
        self.groups[group as usize].insert(matched.flow(), member);
        self.order.insert(matched, group);
        (number, best)
    }

    fn add_tuple(&mut self, mask: Mask) -> u32 {
        let outside = outside_transport(&mask);
        let of_mask = self.groups_by_mask.entry(outside).or_default();
        let mut joined =
            of_mask.iter().find_map(|&group| Some((group, self.groups[group as usize].join()?)));
        if joined.is_none() {
            let mut group = Group::new(outside);
            joined = group.join().map(|member| (self.groups.len() as u32, member));
            of_mask.push(self.groups.len() as u32);
            self.groups.push(group);
        }
        let number = self.tuples.len() as u32;
        self.tuples.push(Tuple::new(mask, joined.unwrap_or_default()));
        self.by_mask.insert(mask, number);
        number
    }

    /// Removes a rule that was inserted with this number.
    pub fn remove(&mut self, id: RuleId, rule: &Rule) {
        let matched = rule.mask_match();
        let Some(&number) = self.by_mask.get(matched.mask()) else { return };
        let tuple = &mut self.tuples[number as usize];
        let best = tuple.best();
        self.ranges.remove(tuple.remove(rule, Precedence::new(rule.priority, id)));
        let (group, member) = tuple.group();
        self.groups[group as usize].remove(matched.flow(), member);
        self.order.remove(matched, group);
        if tuple.len() == 0 {
            self.groups[group as usize].leave(member);
            self.by_mask.remove(matched.mask());
            self.tuples.swap_remove(number as usize);
            if let Some(moved) = self.tuples.get(number as usize) {
                self.by_mask.insert(*moved.mask(), number);
            }
        } else if tuple.best() == best {
            return;
        }
        self.arrange();
    }

    fn arrange(&mut self) {
        let member = |(number, tuple): (usize, &Tuple)| {
            let ((group, bit), best) = (tuple.group(), tuple.best()?);
            Some((Member { tuple: number as u32, group, bit, best }, *tuple.mask()))
        };
        self.order.arrange(self.tuples.iter().enumerate().filter_map(member).collect());
    }

    /// Finds the winning rule and the megaflow's mask.
    pub fn lookup(&self, flow: &Flow, scratch: &mut Scratch) -> Found {
        let mut found = [Found::NOTHING];
        self.lookup_batch(std::slice::from_ref(flow), &mut found, scratch);
        found[0]
    }

    /// Does the same for many packets, faster than one after the other.
    ///
    /// # Panics
    ///
    /// If the number of answers differs from the number of packets.
    pub fn lookup_batch(&self, flows: &[Flow], found: &mut [Found], scratch: &mut Scratch) {
        assert_eq!(flows.len(), found.len(), "an answer for each packet");
        if self.order.words() == 0 {
            found.fill(Found::NOTHING);
            return;
        }
        scratch.effort.packets += flows.len();
        scratch.searches.resize(TOGETHER, Search::default());
        self.order.prepare(&mut scratch.working);
        self.level.run(Batch { slow: self, flows, found, scratch });
    }

    /// Hashes the packet for the groups of a word that can have it, and prefetches their tables.
    #[inline(always)]
    fn ask(&self, word: usize, flow: &Flow, search: &mut Search, working: &mut Working) {
        self.order.open(word, search, working);
        for seen in search.seen[search.newest..].iter_mut().filter(|seen| seen.open != 0) {
            seen.hash = self.groups[seen.group as usize].ask(flow);
        }
    }

    /// Searches the tables of these groups, and prefetches those of the tuples that may have the packet.
    #[inline(always)]
    fn hear<S: Simd>(&self, simd: S, flow: &Flow, search: &mut Search, working: &mut Working) {
        for seen in search.seen[search.newest..].iter_mut().filter(|seen| seen.open != 0) {
            seen.has = self.groups[seen.group as usize].tuples(simd, seen.hash);
            self.order.mark(seen.group, seen.hash, seen.has & seen.open, working);
        }
        search.candidates.clear();
        self.order.marked(working, |&Ranked { best, tuple, inside, .. }, of_group| {
            let hash = kept(inside.hash(of_group, flow));
            self.tuples[tuple as usize].ask(hash);
            search.candidates.push(Candidate { best, tuple, hash, number: 0 });
        });
    }

    /// Prefetches the records of these tuples.
    #[inline(always)]
    fn fetch<S: Simd>(&self, simd: S, search: &mut Search) {
        for candidate in &mut search.candidates {
            let tuple = &self.tuples[candidate.tuple as usize];
            candidate.number = tuple.fetch(simd, candidate.hash);
        }
    }

    /// Searches the tuples that may have the packet, best first.
    #[inline(always)]
    fn finish<S: Simd>(
        &self,
        simd: S,
        flow: &Flow,
        search: &mut Search,
        working: &mut Working,
        found: &mut Found,
    ) -> Effort {
        let (mut mask, mut best, mut probes) = (Mask::EMPTY, Precedence::NONE, 0);
        for word in 0..self.order.words() {
            if word > 0 {
                // A word without a better rule is skipped.
                if self.order.best_of_word[word] < best {
                    continue;
                }
                self.ask(word, flow, search, working);
                self.hear(simd, flow, search, working);
                self.fetch(simd, search);
            }
            for candidate in &search.candidates {
                if candidate.best < best {
                    break;
                }
                probes += 1;
                let tuple = &self.tuples[candidate.tuple as usize];
                tuple.words().add_to(&mut mask, u64::MAX);
                let key = (candidate.hash, candidate.number);
                best = tuple.probe(flow, key, best, &self.ranges, &mut mask);
            }
        }
        let better = self.order.better(best);
        let limit = simd.splat32(better);
        for seen in &mut search.seen {
            probes += usize::from(seen.open != 0);
            seen.wins = self.order.winning(simd, seen.group, limit);
            let words = self.groups[seen.group as usize].words();
            words.add_to(&mut mask, seen.is_part());
        }
        self.order.explain(better, search, &mut mask);
        let rule = (best != Precedence::NONE).then(|| best.id());
        *found = Found { rule, mask };
        Effort { packets: 0, tuples: better as usize, probes }
    }

    /// Number of different masks of the rules.
    pub fn tuples(&self) -> usize {
        self.tuples.len()
    }

    /// Number of rules.
    pub fn rules(&self) -> usize {
        self.tuples.iter().map(Tuple::len).sum()
    }

    /// The memory of the slow path, in bytes.
    pub fn memory(&self) -> usize {
        self.tuples.iter().map(Tuple::bytes).sum::<usize>()
            + self.tuples.capacity() * size_of::<Tuple>()
            + self.groups.iter().map(Group::bytes).sum::<usize>()
            + self.order.bytes()
            + self.ranges.bytes()
            + self.by_mask.capacity() * (size_of::<Mask>() + 5)
    }
}

/// The lookup of many packets: compiled for each instruction set.
struct Batch<'a> {
    slow: &'a SlowPath,
    flows: &'a [Flow],
    found: &'a mut [Found],
    scratch: &'a mut Scratch,
}

impl Kernel for Batch<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { slow, flows, found, scratch } = self;
        let Scratch { searches, working, effort } = scratch;
        for (flows, found) in flows.chunks(TOGETHER).zip(found.chunks_mut(TOGETHER)) {
            let searches = &mut searches[..flows.len()];
            slow.order.locate(flows, searches);
            for (flow, search) in flows.iter().zip(&mut *searches) {
                slow.ask(0, flow, search, working);
            }
            for (flow, search) in flows.iter().zip(&mut *searches) {
                slow.hear(simd, flow, search, working);
            }
            searches.iter_mut().for_each(|search| slow.fetch(simd, search));
            for ((flow, search), found) in flows.iter().zip(searches).zip(found) {
                let Effort { tuples, probes, .. } = slow.finish(simd, flow, search, working, found);
                effort.tuples += tuples;
                effort.probes += probes;
            }
        }
    }
}

/// The positions of the set bits.
#[inline(always)]
fn bits(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = word.trailing_zeros() as usize;
        word &= word.wrapping_sub(1);
        (bit < 64).then_some(bit)
    })
}
