//! The rules of one mask: a hash table of what they have under it.

use std::collections::BTreeSet;

use fibula_simd::prefetch_read;

use super::ranges::Ranges;
use super::words::Words;
use crate::rules::{Precedence, Rule};
use crate::{Flow, Mask};

const NONE: u32 = u32::MAX;

/// One rule, behind those of its key that win against it.
#[derive(Clone, Copy, Debug)]
struct Entry {
    precedence: Precedence,
    /// The number of its list of ranges.
    ranges: u32,
    /// The next rule of the same key, or [`NONE`].
    next: u32,
}

/// A tuple of the tuple space: rules whose masks are equal. What a search reads comes first, in one or two lines.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(super) struct Tuple {
    /// Hash and key number of each key, linearly probed. Empty slots have [`NONE`].
    slots: Vec<(u32, u32)>,
    /// A record for each key, one after the other: its masked words, and its first rule in two words.
    records: Vec<u64>,
    words: Words,
    others: Vec<Entry>,
    mask: Mask,
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
            slots: vec![(0, NONE); 4],
            records: Vec::new(),
            others: Vec::new(),
            free: Vec::new(),
            all: BTreeSet::new(),
            mask,
            group,
        }
    }

    pub(super) fn mask(&self) -> &Mask {
        &self.mask
    }

    /// The words of its mask.
    #[inline]
    pub(super) fn words(&self) -> &Words {
        &self.words
    }

    pub(super) fn group(&self) -> (u32, u8) {
        self.group
    }

    /// Of its rules, the one that wins against all others.
    pub(super) fn best(&self) -> Option<Precedence> {
        self.all.last().copied()
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn bytes(&self) -> usize {
        let entry = size_of::<Entry>();
        self.slots.capacity() * 8
            + self.records.capacity() * 8
            + self.others.capacity() * entry
            // Nodes of the standard library's tree are three quarters full.
            + self.all.len() * 11
    }

    /// The words of a record.
    fn stride(&self) -> usize {
        self.words.len() + 2
    }

    fn keys(&self) -> u32 {
        (self.records.len() / self.stride()) as u32
    }

    fn key(&self, number: u32) -> &[u64] {
        &self.records[number as usize * self.stride()..][..self.words.len()]
    }

    /// The first rule of a key.
    #[inline]
    fn head(&self, number: u32) -> Entry {
        let end = (number as usize + 1) * self.stride();
        let rest = self.records[end - 1];
        let precedence = Precedence::from_bits(self.records[end - 2]);
        Entry { precedence, ranges: rest as u32, next: (rest >> 32) as u32 }
    }

    fn set_head(&mut self, number: u32, entry: Entry) {
        let end = (number as usize + 1) * self.stride();
        self.records[end - 2] = entry.precedence.to_bits();
        self.records[end - 1] = u64::from(entry.next) << 32 | u64::from(entry.ranges);
    }

    /// The slot of a key, or the empty one that it would go to.
    #[inline]
    fn slot(&self, flow: &Flow, hash: u64) -> usize {
        let last = self.slots.len() - 1;
        let mut at = hash as usize & last;
        loop {
            let (signature, number) = self.slots[at];
            let is_it = number == NONE
                || signature == (hash >> 32) as u32
                    && self.words.values(flow).eq(self.key(number).iter().copied());
            if is_it {
                return at;
            }
            at = (at + 1) & last;
        }
    }

    /// Adds a rule, whose list of ranges has this number.
    pub(super) fn insert(&mut self, rule: &Rule, precedence: Precedence, ranges: u32) {
        self.all.insert(precedence);
        let flow = rule.mask_match().flow();
        let entry = Entry { precedence, ranges, next: NONE };
        let hash = self.words.hash(flow);
        let slot = self.slot(flow, hash);
        match self.slots[slot].1 {
            NONE => {
                let number = self.keys();
                self.slots[slot] = ((hash >> 32) as u32, number);
                self.records.extend(self.words.values(flow));
                self.records.extend([0; 2]);
                self.set_head(number, entry);
                if self.keys() as usize * 2 > self.slots.len() {
                    self.resize(self.slots.len() * 2);
                }
            }
            number => self.chain(number, entry),
        }
    }

    /// Puts a rule behind those of the key that win against it.
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

    /// Takes a rule out that is there; the number of its ranges.
    pub(super) fn remove(&mut self, rule: &Rule, precedence: Precedence) -> u32 {
        self.all.remove(&precedence);
        let flow = *rule.mask_match().flow();
        let slot = self.slot(&flow, self.words.hash(&flow));
        let number = self.slots[slot].1;
        let head = self.head(number);
        let gone = if head.precedence == precedence {
            match head.next {
                NONE => self.remove_key(slot),
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

    /// Closes the gaps in slots and keys: the last key takes the number of the one that goes.
    fn remove_key(&mut self, slot: usize) {
        let number = self.slots[slot].1;
        let (last, len) = (self.keys() - 1, self.stride());
        let moved = self.flow_of(last);
        let moved_slot = self.slot(&moved, self.words.hash(&moved));
        self.slots[moved_slot].1 = number;
        self.slots[slot].1 = NONE;
        self.records.copy_within(last as usize * len.., number as usize * len);
        self.records.truncate(last as usize * len);
        self.fill_gap(slot);
    }

    /// Moves those behind an empty slot forward that would have gone there.
    fn fill_gap(&mut self, mut gap: usize) {
        let last = self.slots.len() - 1;
        let mut at = gap;
        loop {
            at = (at + 1) & last;
            let number = self.slots[at].1;
            if number == NONE {
                return;
            }
            let home = self.home(number);
            // How far it is from its home, and how far the gap is.
            if at.wrapping_sub(home) & last >= at.wrapping_sub(gap) & last {
                self.slots[gap] = self.slots[at];
                self.slots[at].1 = NONE;
                gap = at;
            }
        }
    }

    fn flow_of(&self, number: u32) -> Flow {
        let mut words = *Flow::default().words();
        for ((at, _), value) in self.words.iter().zip(self.key(number)) {
            words[at] = *value;
        }
        Flow::from_words(words)
    }

    fn home(&self, number: u32) -> usize {
        self.words.hash(&self.flow_of(number)) as usize & (self.slots.len() - 1)
    }

    fn resize(&mut self, slots: usize) {
        self.slots = vec![(0, NONE); slots];
        for number in 0..self.keys() {
            let hash = self.words.hash(&self.flow_of(number));
            let mut at = hash as usize & (slots - 1);
            while self.slots[at].1 != NONE {
                at = (at + 1) & (slots - 1);
            }
            self.slots[at] = ((hash >> 32) as u32, number);
        }
    }

    /// Hashes the packet, and asks for the line of its slot.
    #[inline]
    pub(super) fn ask(&self, flow: &Flow) -> u64 {
        let hash = self.words.hash(flow);
        prefetch_read(&self.slots, hash as usize & (self.slots.len() - 1));
        hash
    }

    /// Asks for the record of the slot, if it is the packet's.
    #[inline]
    pub(super) fn fetch(&self, hash: u64) {
        let (signature, number) = self.slots[hash as usize & (self.slots.len() - 1)];
        if signature == (hash >> 32) as u32 {
            prefetch_read(&self.records, number as usize * self.stride());
        }
    }

    /// The rule that wins for a packet of this hash, if one does and wins against `best`. The mask has the tuple's
    /// bits, and gets those of ranges that show it.
    #[inline]
    pub(super) fn probe(
        &self,
        flow: &Flow,
        hash: u64,
        best: Option<Precedence>,
        all: &Ranges,
        mask: &mut Mask,
    ) -> Option<Precedence> {
        let number = self.slots[self.slot(flow, hash)].1;
        if number == NONE {
            return None;
        }
        let mut entry = self.head(number);
        loop {
            let Entry { precedence, ranges, next } = entry;
            if best.is_some_and(|best| precedence < best) {
                return None;
            }
            if all.contain(ranges, flow, mask) {
                return Some(precedence);
            }
            entry = *self.others.get(next as usize)?;
        }
    }
}
