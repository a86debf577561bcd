//! The rules of one mask: a hash table of what they have under it.

use std::collections::BTreeSet;

use fibula_simd::prefetch_read;

use super::words::Words;
use crate::rules::{Precedence, Range, Rule};
use crate::{Flow, Mask};

const NONE: u32 = u32::MAX;

/// One rule, behind those of its key that win against it.
#[derive(Clone, Copy, Debug)]
struct Entry {
    precedence: Precedence,
    /// The number of its ranges, or [`NONE`].
    ranges: u32,
    /// The next rule of the same key, or [`NONE`].
    next: u32,
}

/// A tuple of the tuple space: rules whose masks are equal.
#[derive(Clone, Debug)]
pub(super) struct Tuple {
    mask: Mask,
    /// Its group, and its number there.
    group: (u32, u8),
    words: Words,
    /// Hash and key number of each key, linearly probed. Empty slots have [`NONE`].
    slots: Vec<(u32, u32)>,
    /// The masked words of each key, one key after the other.
    keys: Vec<u64>,
    /// The first rule of each key.
    heads: Vec<Entry>,
    others: Vec<Entry>,
    free: Vec<u32>,
    ranges: Vec<Box<[Range]>>,
    free_ranges: Vec<u32>,
    all: BTreeSet<Precedence>,
}

impl Tuple {
    /// A tuple without rules, which is a member of a group.
    pub(super) fn new(mask: Mask, group: (u32, u8)) -> Self {
        Self {
            words: Words::of(&mask),
            slots: vec![(0, NONE); 4],
            keys: Vec::new(),
            heads: Vec::new(),
            others: Vec::new(),
            free: Vec::new(),
            ranges: Vec::new(),
            free_ranges: Vec::new(),
            all: BTreeSet::new(),
            mask,
            group,
        }
    }

    pub(super) fn mask(&self) -> &Mask {
        &self.mask
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
            + self.keys.capacity() * 8
            + (self.heads.capacity() + self.others.capacity()) * entry
            + self.ranges.iter().map(|ranges| 16 + size_of_val(&**ranges)).sum::<usize>()
            // Nodes of the standard library's tree are three quarters full.
            + self.all.len() * 11
    }

    fn key(&self, number: u32) -> &[u64] {
        let len = self.words.0.len();
        &self.keys[number as usize * len..][..len]
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

    pub(super) fn insert(&mut self, rule: &Rule, precedence: Precedence) {
        self.all.insert(precedence);
        let flow = rule.mask_match().flow();
        let ranges = match rule.ranges() {
            [] => NONE,
            ranges => match self.free_ranges.pop() {
                Some(at) => {
                    self.ranges[at as usize] = ranges.into();
                    at
                }
                None => {
                    self.ranges.push(ranges.into());
                    (self.ranges.len() - 1) as u32
                }
            },
        };
        let entry = Entry { precedence, ranges, next: NONE };
        let hash = self.words.hash(flow);
        let slot = self.slot(flow, hash);
        match self.slots[slot].1 {
            NONE => {
                self.slots[slot] = ((hash >> 32) as u32, self.heads.len() as u32);
                self.keys.extend(self.words.values(flow));
                self.heads.push(entry);
                if self.heads.len() * 2 > self.slots.len() {
                    self.resize(self.slots.len() * 2);
                }
            }
            number => self.chain(number, entry),
        }
    }

    /// Puts a rule behind those of the key that win against it.
    fn chain(&mut self, number: u32, mut entry: Entry) {
        let head = &mut self.heads[number as usize];
        if entry.precedence > head.precedence {
            entry.next = head.next;
            std::mem::swap(head, &mut entry);
            let second = self.other(entry);
            self.heads[number as usize].next = second;
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
            NONE => self.heads[number as usize].next = new,
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

    /// Takes a rule out that is there.
    pub(super) fn remove(&mut self, rule: &Rule, precedence: Precedence) {
        self.all.remove(&precedence);
        let flow = *rule.mask_match().flow();
        let slot = self.slot(&flow, self.words.hash(&flow));
        let number = self.slots[slot].1;
        let head = self.heads[number as usize];
        let gone = if head.precedence == precedence {
            match head.next {
                NONE => self.remove_key(slot),
                second => {
                    self.heads[number as usize] = self.others[second as usize];
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
                NONE => self.heads[number as usize].next = entry.next,
                _ => self.others[before as usize].next = entry.next,
            }
            self.free.push(at);
            entry
        };
        if gone.ranges != NONE {
            self.ranges[gone.ranges as usize] = Box::default();
            self.free_ranges.push(gone.ranges);
        }
    }

    /// Closes the gaps in slots and keys: the last key takes the number of the one that goes.
    fn remove_key(&mut self, slot: usize) {
        let number = self.slots[slot].1;
        let (last, len) = (self.heads.len() as u32 - 1, self.words.0.len());
        let moved = self.flow_of(last);
        let moved_slot = self.slot(&moved, self.words.hash(&moved));
        self.slots[moved_slot].1 = number;
        self.slots[slot].1 = NONE;
        self.keys.copy_within(last as usize * len.., number as usize * len);
        self.keys.truncate(last as usize * len);
        self.heads.swap_remove(number as usize);
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
        for (&(at, _), value) in self.words.0.iter().zip(self.key(number)) {
            words[usize::from(at)] = *value;
        }
        Flow::from_words(words)
    }

    fn home(&self, number: u32) -> usize {
        self.words.hash(&self.flow_of(number)) as usize & (self.slots.len() - 1)
    }

    fn resize(&mut self, slots: usize) {
        self.slots = vec![(0, NONE); slots];
        for number in 0..self.heads.len() as u32 {
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
    pub(super) fn ask(&self, flow: &Flow) {
        prefetch_read(&self.slots, self.words.hash(flow) as usize & (self.slots.len() - 1));
    }

    /// The rule that wins for a packet, if one does and wins against `best`. `bits` gets the bits of ranges that show it, if
    /// the bits of the mask are known.
    #[inline]
    pub(super) fn probe(
        &self,
        flow: &Flow,
        best: Option<Precedence>,
        bits: &mut Mask,
    ) -> Option<Precedence> {
        let mut entry =
            self.heads.get(self.slots[self.slot(flow, self.words.hash(flow))].1 as usize);
        while let Some(Entry { precedence, ranges, next }) = entry {
            if best.is_some_and(|best| *precedence < best) {
                return None;
            }
            if *ranges == NONE || within(&self.ranges[*ranges as usize], flow, bits) {
                return Some(*precedence);
            }
            entry = self.others.get(*next as usize);
        }
        None
    }
}

/// Whether the packet is in all ranges, and the bits that show it.
fn within(ranges: &[Range], flow: &Flow, bits: &mut Mask) -> bool {
    let mut shown = Mask::EMPTY;
    for range in ranges {
        let (len, inside) = range.bits_that_show(flow.get(range.field));
        let mask = Mask::prefix(range.field, len);
        if !inside {
            // One range that it is not in is enough.
            *bits |= mask;
            return false;
        }
        shown |= mask;
    }
    *bits |= shown;
    true
}
