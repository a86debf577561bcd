//! The rules of one mask: a hash table of their values under it.

use std::collections::BTreeSet;

use fibula_simd::{Simd, Table, prefetch_read};

use super::buckets::{Buckets, KeyPosition, kept};
use super::group::{Inside, outside_transport};
use super::ranges::{NO_RANGES, Ranges};
use super::words::Words;
use crate::rules::{Precedence, Rule};
use crate::{Flow, Mask};

const NONE: u32 = u32::MAX;

/// One rule in the list of its key, after the rules that win against it.
#[derive(Clone, Copy, Debug)]
struct Entry {
    precedence: Precedence,
    /// The number of its list of ranges.
    ranges: u32,
    /// The next rule of the same key, or [`NONE`].
    next: u32,
}

/// A tuple of the tuple space: rules whose masks are equal. The fields that a search reads come first, in one or two
/// cache lines.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(super) struct Tuple {
    /// The number of each key plus 1.
    numbers: Buckets,
    /// A record for each key, one after the other: its masked words, and its first rule in two words.
    records: Table<u64>,
    /// The number of keys.
    keys: u32,
    words: Words,
    others: Vec<Entry>,
    mask: Mask,
    /// The part of the mask that the group has, and the rest.
    outside: Words,
    inside: Inside,
    /// Its group, and its number there.
    group: (u32, u8),
    free: Vec<u32>,
    all: BTreeSet<Precedence>,
}

impl Tuple {
    /// A tuple without rules, which is a member of a group.
    pub(super) fn new(mask: Mask, group: (u32, u8)) -> Self {
        Self {
            words: Words::of(&mask),
            numbers: Buckets::default(),
            records: Table::default(),
            keys: 0,
            others: Vec::new(),
            free: Vec::new(),
            all: BTreeSet::new(),
            mask,
            outside: Words::of(&outside_transport(&mask)),
            inside: Inside::of(&mask),
            group,
        }
    }

    pub(super) fn mask(&self) -> &Mask {
        &self.mask
    }

    /// The words of its mask.
    #[inline(always)]
    pub(super) fn words(&self) -> &Words {
        &self.words
    }

    pub(super) fn group(&self) -> (u32, u8) {
        self.group
    }

    /// The rule of the tuple that wins against all others.
    pub(super) fn best(&self) -> Option<Precedence> {
        self.all.last().copied()
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn bytes(&self) -> usize {
        let entry = size_of::<Entry>();
        self.numbers.bytes()
            + self.records.len() * 8
            + self.others.capacity() * entry
            // Nodes of the standard library's tree are three quarters full.
            + self.all.len() * 11
    }

    /// The words of a record.
    fn stride(&self) -> usize {
        self.words.len() + 2
    }

    fn key(&self, number: u32) -> &[u64] {
        &self.records[number as usize * self.stride()..][..self.words.len()]
    }

    /// The first rule of a key.
    #[inline(always)]
    fn head(&self, number: u32) -> Entry {
        let end = (number as usize + 1) * self.stride();
        let rest = self.records[end - 1];
        let precedence = Precedence::from_bits(self.records[end - 2]);
        Entry { precedence, ranges: rest as u32, next: (rest >> 32) as u32 }
    }

    fn set_head(&mut self, number: u32, entry: Entry) {
        let end = (number as usize + 1) * self.stride();
        let records = self.records.to_mut();
        records[end - 2] = entry.precedence.to_bits();
        records[end - 1] = u64::from(entry.next) << 32 | u64::from(entry.ranges);
    }

    fn hash(&self, flow: &Flow) -> u32 {
        kept(self.inside.hash(self.outside.hash(flow), flow))
    }

    /// Whether this is the packet's key.
    #[inline(always)]
    fn is_key_of(&self, number: u32, flow: &Flow) -> bool {
        self.words.values(flow).eq(self.key(number).iter().copied())
    }

    /// The place and the number of the packet's key.
    fn find(&self, flow: &Flow, hash: u32) -> Option<(KeyPosition, u32)> {
        let place = self.numbers.find(hash, |number| self.is_key_of(number - 1, flow))?;
        Some((place, self.numbers.number(place) - 1))
    }

    /// Adds a rule, whose list of ranges has this number.
    pub(super) fn insert(&mut self, rule: &Rule, precedence: Precedence, ranges: u32) {
        self.all.insert(precedence);
        let flow = rule.mask_match().flow();
        let entry = Entry { precedence, ranges, next: NONE };
        let hash = self.hash(flow);
        if let Some((_, number)) = self.find(flow, hash) {
            self.chain(number, entry);
            return;
        }
        let (number, stride) = (self.keys, self.stride());
        self.numbers.insert(hash, number + 1);
        let start = number as usize * stride;
        if start + stride > self.records.len() {
            self.resize();
        }
        let records = &mut self.records.to_mut()[start..start + stride];
        self.words.values(flow).zip(records).for_each(|(word, place)| *place = word);
        self.keys += 1;
        self.set_head(number, entry);
    }

    /// Makes room for twice as many records.
    fn resize(&mut self) {
        let old = std::mem::take(&mut self.records);
        let len = (old.len() * 2).max(4 * self.stride());
        self.records = Table::with(len, |records| records[..old.len()].copy_from_slice(&old));
    }

    /// Moves the parts of many tuples that searches read into few pages.
    pub(super) fn pack(tuples: &mut [Self]) {
        Buckets::pack(tuples.iter_mut().map(|tuple| &mut tuple.numbers));
        Table::pack(tuples.iter_mut().map(|tuple| &mut tuple.records));
    }

    /// Puts a rule into the list of its key, after those that win against it.
    fn chain(&mut self, number: u32, mut entry: Entry) {
        let head = self.head(number);
        if entry.precedence > head.precedence {
            entry.next = self.other(head);
            self.set_head(number, entry);
            return;
        }
        let mut before = NONE;
        let mut at = head.next;
        while at != NONE && self.others[at as usize].precedence > entry.precedence {
            (before, at) = (at, self.others[at as usize].next);
        }
        entry.next = at;
        let new = self.other(entry);
        match before {
            NONE => self.set_head(number, Entry { next: new, ..head }),
            _ => self.others[before as usize].next = new,
        }
    }

    fn other(&mut self, entry: Entry) -> u32 {
        match self.free.pop() {
            Some(at) => {
                self.others[at as usize] = entry;
                at
            }
            None => {
                self.others.push(entry);
                (self.others.len() - 1) as u32
            }
        }
    }

    /// Removes an existing rule, and returns the number of its list of ranges.
    pub(super) fn remove(&mut self, rule: &Rule, precedence: Precedence) -> u32 {
        self.all.remove(&precedence);
        let flow = *rule.mask_match().flow();
        let Some((place, number)) = self.find(&flow, self.hash(&flow)) else {
            return NO_RANGES;
        };
        let head = self.head(number);
        let gone = if head.precedence == precedence {
            match head.next {
                NONE => self.remove_key(place, number),
                second => {
                    self.set_head(number, self.others[second as usize]);
                    self.free.push(second);
                }
            }
            head
        } else {
            let (mut before, mut at) = (NONE, head.next);
            while self.others[at as usize].precedence != precedence {
                (before, at) = (at, self.others[at as usize].next);
            }
            let entry = self.others[at as usize];
            match before {
                NONE => self.set_head(number, Entry { next: entry.next, ..head }),
                _ => self.others[before as usize].next = entry.next,
            }
            self.free.push(at);
            entry
        };
        gone.ranges
    }

    /// Removes a key. The last key gets its number.
    fn remove_key(&mut self, place: KeyPosition, number: u32) {
        self.numbers.remove(place);
        let (last, len) = (self.keys - 1, self.stride());
        let hash = self.hash(&self.flow_of(last));
        if let Some(place) = self.numbers.find(hash, |number| number == last + 1) {
            self.numbers.set(place, number + 1);
        }
        let from = last as usize * len;
        self.records.to_mut().copy_within(from..from + len, number as usize * len);
        self.keys = last;
    }

    fn flow_of(&self, number: u32) -> Flow {
        let mut words = *Flow::default().words();
        for ((at, _), value) in self.words.iter().zip(self.key(number)) {
            words[at] = *value;
        }
        Flow::from_words(words)
    }

    /// Prefetches the line of a key.
    #[inline(always)]
    pub(super) fn ask(&self, hash: u32) {
        self.numbers.ask(hash);
    }

    /// The number plus 1 of the first key with this hash; 0 if there is none. Prefetches its record.
    #[inline(always)]
    pub(super) fn fetch<S: Simd>(&self, simd: S, hash: u32) -> u32 {
        let number = self.numbers.get(simd, hash);
        prefetch_read(&self.records, number.saturating_sub(1) as usize * self.stride());
        number
    }

    /// The rule that wins for a packet, or `best` if none wins against it. `hash` and `number` are those from
    /// [`Self::fetch`]. The mask already has the tuple's bits; the bits that decide ranges are added.
    #[inline(always)]
    pub(super) fn probe(
        &self,
        flow: &Flow,
        (hash, number): (u32, u32),
        best: Precedence,
        all: &Ranges,
        mask: &mut Mask,
    ) -> Precedence {
        if number == 0 {
            return best;
        }
        let mut number = number - 1;
        if !self.is_key_of(number, flow) {
            // The first key with this hash is another one.
            match self.find(flow, hash) {
                Some((_, other)) => number = other,
                None => return best,
            }
        }
        let mut entry = self.head(number);
        loop {
            let Entry { precedence, ranges, next } = entry;
            if precedence < best {
                return best;
            }
            if all.contain(ranges, flow, mask) {
                return precedence;
            }
            match self.others.get(next as usize) {
                Some(next) => entry = *next,
                None => return best,
            }
        }
    }
}
