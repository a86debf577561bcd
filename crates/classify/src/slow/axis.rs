//! One field that rules have conditions on: which prefix lengths a packet has in common with rules, and what that excludes.

use super::TOGETHER;
use super::order::{Search, Seen};
use super::trie::Trie;
use crate::{Field, Flow, Mask};

/// Values of a field, at the top of a word.
#[derive(Clone, Debug)]
enum Prefixes {
    Narrow(Trie<u64>),
    Wide(Trie<u128>),
}

/// One field that rules have conditions on, and by their lengths on it the groups, or in each group the tuples: a bit for each.
///
/// A prefix knows the groups of its rules. If a packet has a prefix of a length, and no rule of a group has this prefix, then the
/// group has no rule for the packet, and so many bits show it.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    pub(super) field: Field,
    /// The field's word, and how far its highest bit is from that of the word.
    word: usize,
    shift: u32,
    prefixes: Prefixes,
    /// The lengths that there are, ascending; 0 is not among them.
    lens: Vec<u8>,
    /// The place of each length in `lens`.
    place: Box<[u8; 129]>,
    /// How many lengths are up to each.
    within: Box<[u8; 129]>,
    /// How many words have all of them.
    words: usize,
    /// Those without a condition on the field.
    none: Vec<u64>,
    /// Those with each length: `words` of them a length.
    with: Vec<u64>,
    /// Those with a length up to each.
    up_to: Vec<u64>,
    /// The length of each.
    of: Vec<u8>,
}

/// How many of the first bits of the field are all in the mask.
pub(super) fn leading(mask: &Mask, field: Field) -> u8 {
    let bits = mask.get(field) << (128 - field.bits());
    bits.leading_ones() as u8
}

impl Axis {
    /// With `bulk`, nobody may walk before [`Axis::pack`].
    pub(super) fn new(field: Field, bulk: bool) -> Self {
        let prefixes = match field.bits() {
            bits @ 0..=64 => Prefixes::Narrow(Trie::new(bits, bulk)),
            bits => Prefixes::Wide(Trie::new(bits, bulk)),
        };
        let (word, lowest) = field.place();
        Self {
            field,
            word,
            shift: 64 - lowest - field.bits().min(64),
            prefixes,
            lens: Vec::new(),
            place: Box::new([0; 129]),
            within: Box::new([0; 129]),
            words: 0,
            none: Vec::new(),
            with: Vec::new(),
            up_to: Vec::new(),
            of: Vec::new(),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        let trie = match &self.prefixes {
            Prefixes::Narrow(trie) => trie.bytes(),
            Prefixes::Wide(trie) => trie.bytes(),
        };
        let sets = self.none.capacity() + self.with.capacity() + self.up_to.capacity();
        trie + sets * 8 + self.of.capacity()
    }

    /// One rule more of a group has the first `len` bits of the value.
    pub(super) fn insert(&mut self, value: u128, len: u8, group: u32) {
        let (bits, group) = (self.field.bits(), (group % 64) as u8);
        match &mut self.prefixes {
            Prefixes::Narrow(trie) => trie.insert((value as u64) << (64 - bits), len, group),
            Prefixes::Wide(trie) => trie.insert(value << (128 - bits), len, group),
        }
    }

    /// One rule less.
    pub(super) fn remove(&mut self, value: u128, len: u8, group: u32) {
        let (bits, group) = (self.field.bits(), (group % 64) as u8);
        match &mut self.prefixes {
            Prefixes::Narrow(trie) => trie.remove((value as u64) << (64 - bits), len, group),
            Prefixes::Wide(trie) => trie.remove(value << (128 - bits), len, group),
        }
    }

    /// Lays the trie out anew.
    pub(super) fn pack(&mut self) {
        let bits = self.field.bits() as u8;
        match &mut self.prefixes {
            Prefixes::Narrow(trie) => trie.pack(bits),
            Prefixes::Wide(trie) => trie.pack(bits),
        }
    }

    /// Takes over what there is: the length of each bit, in so many words of them. Bits that are not named are in no set.
    pub(super) fn arrange(&mut self, words: usize, of: &[(usize, u8)]) {
        self.words = words;
        self.lens = of.iter().map(|(_, len)| *len).filter(|len| *len > 0).collect();
        self.lens.sort_unstable();
        self.lens.dedup();
        for (place, &len) in self.lens.iter().enumerate() {
            self.place[usize::from(len)] = place as u8;
        }
        for (len, within) in self.within.iter_mut().enumerate() {
            *within = self.lens.partition_point(|other| usize::from(*other) <= len) as u8;
        }
        self.none = vec![0; words];
        self.with = vec![0; words * self.lens.len()];
        self.of = vec![0; words * 64];
        for &(bit, len) in of {
            self.of[bit] = len;
            let set = match len {
                0 => &mut self.none[..],
                _ => &mut self.with[usize::from(self.place[usize::from(len)]) * words..],
            };
            set[bit / 64] |= 1 << (bit % 64);
        }
        self.up_to.clone_from(&self.with);
        for at in words..self.up_to.len() {
            self.up_to[at] |= self.up_to[at - words];
        }
    }

    /// Puts the places of the lengths that the packets have into `found`, and how many bits show that they have no others.
    #[inline]
    pub(super) fn walk(&self, flows: &[Flow], searches: &mut [Search]) {
        let mut shown = [0; TOGETHER];
        let found = |number: usize, len: u8, groups: u64| {
            if len > 0 {
                searches[number].found.push((self.place[usize::from(len)], groups));
            }
        };
        match &self.prefixes {
            Prefixes::Narrow(trie) => {
                let mut values = [0u64; TOGETHER];
                for (value, flow) in values.iter_mut().zip(flows) {
                    // Other fields are behind it, which no prefix reaches.
                    *value = flow.words()[self.word] << self.shift;
                }
                trie.walk(&values[..flows.len()], &mut shown, found);
            }
            Prefixes::Wide(trie) => {
                let mut values = [0u128; TOGETHER];
                for (value, flow) in values.iter_mut().zip(flows) {
                    *value = flow.get(self.field);
                }
                trie.walk(&values[..flows.len()], &mut shown, found);
            }
        }
        for (search, shown) in searches.iter_mut().zip(shown) {
            search.axes.push((search.found.len() as u32, shown));
        }
    }

    /// How many of the first bits of the field are all in the mask.
    #[inline]
    pub(super) fn leading(&self, mask: &Mask) -> u8 {
        let ones = (mask.words()[self.word] << self.shift).leading_ones();
        match self.field.bits() {
            128 if ones == 64 => 64 + mask.words()[self.word + 1].leading_ones() as u8,
            bits => ones.min(bits) as u8,
        }
    }

    /// The groups that it does not exclude of a word, if a packet has these prefixes: the places of their lengths, and their
    /// groups.
    #[inline]
    pub(super) fn open(&self, word: usize, found: &[(u8, u64)]) -> u64 {
        let with =
            |&(at, groups): &(u8, u64)| self.with[usize::from(at) * self.words + word] & groups;
        found.iter().map(with).fold(self.none[word], |all, with| all | with)
    }

    /// The tuples that it does not exclude of each of these groups. Loops over the groups are inside, since they are longer than
    /// those over prefixes, and end as foreseen.
    #[inline]
    pub(super) fn open_of(&self, seen: &[Seen], found: &[(u8, u64)]) -> [u64; 64] {
        let mut open = [0u64; 64];
        for (open, seen) in open.iter_mut().zip(seen) {
            *open = self.none[seen.group as usize];
        }
        for &(at, groups) in found {
            let row = &self.with[usize::from(at) * self.words..][..self.words];
            for (open, seen) in open.iter_mut().zip(seen) {
                let is_in = (groups >> (seen.group % 64) & 1).wrapping_neg();
                *open |= row[seen.group as usize] & is_in;
            }
        }
        open
    }

    /// The length of a bit.
    #[inline]
    pub(super) fn len_of(&self, bit: usize) -> u8 {
        self.of[bit]
    }

    /// How many of the lengths are known to be excluded, if they are not found, by so many bits of a packet.
    #[inline]
    pub(super) fn lens_within(&self, bits: u8, shown: u8) -> usize {
        match bits < shown {
            true => usize::from(self.within[usize::from(bits)]),
            false => self.lens.len(),
        }
    }

    /// What has one of the first lengths, in one word; what has no condition is not among them.
    #[inline]
    pub(super) fn up_to(&self, lens: usize, word: usize) -> u64 {
        if lens == 0 { 0 } else { self.up_to[(lens - 1) * self.words + word] }
    }
}
