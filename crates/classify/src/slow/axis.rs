//! One field with conditions: the prefix lengths that a packet shares with rules, and the tuples that this excludes.

use std::hint::select_unpredictable;

use super::TOGETHER;
use super::order::{Search, Sets};
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
    /// How many lengths there are; 0 is not among them.
    lens: u8,
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
    /// Those with one of the first lengths, none of them first.
    up_to: Vec<u64>,
    /// The length of each.
    of: Vec<u8>,
    /// Of an axis inside, `none` and then `with` in half the width: a group has no more tuples.
    sets: Vec<u32>,
}

/// All ones if the group is among these, of whose numbers 64 are told apart. In two halves, for vectors of 32 bits.
#[inline(always)]
fn has(groups: u64, at: usize) -> u32 {
    let half = if at < 32 { groups as u32 } else { (groups >> 32) as u32 };
    (half >> (at % 32) & 1).wrapping_neg()
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
            lens: 0,
            place: Box::new([0; 129]),
            within: Box::new([0; 129]),
            words: 0,
            none: Vec::new(),
            with: Vec::new(),
            up_to: Vec::new(),
            of: Vec::new(),
            sets: Vec::new(),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        let trie = match &self.prefixes {
            Prefixes::Narrow(trie) => trie.bytes(),
            Prefixes::Wide(trie) => trie.bytes(),
        };
        let sets = self.none.capacity() + self.with.capacity() + self.up_to.capacity();
        trie + sets * 8 + self.sets.capacity() * 4 + self.of.capacity()
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
    /// Axes inside have a word for each group, outside a bit.
    pub(super) fn arrange(&mut self, words: usize, is_inside: bool, of: &[(usize, u8)]) {
        self.words = words;
        let mut lens: Vec<u8> = of.iter().map(|(_, len)| *len).filter(|len| *len > 0).collect();
        lens.sort_unstable();
        lens.dedup();
        self.lens = lens.len() as u8;
        self.place.fill(0);
        for (place, &len) in lens.iter().enumerate() {
            self.place[usize::from(len)] = place as u8;
        }
        for (len, within) in self.within.iter_mut().enumerate() {
            *within = lens.partition_point(|other| usize::from(*other) <= len) as u8;
        }
        self.none = vec![0; words];
        self.with = vec![0; words * lens.len()];
        self.of = vec![0; words * 64];
        for &(bit, len) in of {
            self.of[bit] = len;
            let set = match len {
                0 => &mut self.none[..],
                _ => &mut self.with[usize::from(self.place[usize::from(len)]) * words..],
            };
            set[bit / 64] |= 1 << (bit % 64);
        }
        let sets = self.none.iter().chain(&self.with).map(|set| *set as u32);
        self.sets = if is_inside { sets.collect() } else { Vec::new() };
        self.up_to = vec![0; words];
        self.up_to.extend(&self.with);
        for at in words..self.up_to.len() {
            self.up_to[at] |= self.up_to[at - words];
        }
    }

    /// Walks down the trie as axis number `at`. Each search gets the groups that the packet's prefixes leave open, of all words.
    #[inline(always)]
    pub(super) fn walk_outside(&self, at: usize, flows: &[Flow], searches: &mut [Search]) {
        if let [none] = self.none[..] {
            let mut open = [none; TOGETHER];
            self.walk(at, flows, searches, |_, number, place, groups| {
                open[number] |= self.with[place] & groups;
            });
            searches.iter_mut().zip(open).for_each(|(search, open)| search.open.push(open));
            return;
        }
        for search in searches.iter_mut() {
            search.open.extend_from_slice(&self.none);
        }
        self.walk(at, flows, searches, |searches, number, place, groups| {
            let open = searches[number].open[at * self.words..].iter_mut();
            let with = &self.with[place * self.words..][..self.words];
            open.zip(with).for_each(|(open, with)| *open |= with & groups);
        });
    }

    /// Walks down the trie as axis number `at`. Each search gets the places of the lengths that the packet has, and their groups.
    #[inline(always)]
    pub(super) fn walk_inside(&self, at: usize, flows: &[Flow], searches: &mut [Search]) {
        self.walk(at, flows, searches, |searches, number, place, groups| {
            if groups != 0 {
                searches[number].found.push((place as u32, groups));
            }
        });
    }

    /// Calls `found` for each prefix of each packet, with the packet's number, the place of the length and the prefix's groups.
    #[inline(always)]
    fn walk(
        &self,
        at: usize,
        flows: &[Flow],
        searches: &mut [Search],
        mut found: impl FnMut(&mut [Search], usize, usize, u64),
    ) {
        let mut shown = [0; TOGETHER];
        let found = |number: usize, len: u8, groups: u64| {
            found(searches, number, self.place[usize::from(len)].into(), groups);
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
            search.shown[at] = shown;
        }
    }

    /// How many of the first bits of the field are all in the mask.
    #[inline(always)]
    pub(super) fn leading(&self, mask: &Mask) -> u8 {
        let ones = (mask.words()[self.word] << self.shift).leading_ones();
        match self.field.bits() {
            128 if ones == 64 => 64 + mask.words()[self.word + 1].leading_ones() as u8,
            bits => ones.min(bits) as u8,
        }
    }

    /// Of each group of a word, the tuples that it does not exclude, if a packet has these prefixes. All groups of the word are
    /// computed, with what vectors there are: that is less work than to pick some.
    #[inline(always)]
    pub(super) fn open_inside(&self, word: usize, found: &[(u32, u64)], open: &mut Sets) {
        // The first of them with those that have no condition: it saves a pass.
        let (&(place, groups), others) = found.split_first().unwrap_or((&(0, 0), &[]));
        let (none, with) = (self.sets(0, word), self.sets(place + 1, word));
        for (at, (open, (none, with))) in open.iter_mut().zip(none.iter().zip(with)).enumerate() {
            *open = none | with & has(groups, at);
        }
        for &(place, groups) in others {
            let with = self.sets(place + 1, word);
            for (at, (open, with)) in open.iter_mut().zip(with).enumerate() {
                *open |= with & has(groups, at);
            }
        }
    }

    /// A row of `sets`, for the groups of a word.
    #[inline(always)]
    fn sets(&self, row: u32, word: usize) -> &Sets {
        let (rows, _) = self.sets[row as usize * self.words + word * 64..].as_chunks();
        &rows[0]
    }

    /// The length of a bit.
    #[inline(always)]
    pub(super) fn len_of(&self, bit: usize) -> u8 {
        self.of[bit]
    }

    /// How many of the lengths are known to be excluded, if they are not found, by so many bits of a packet.
    #[inline(always)]
    pub(super) fn lens_within(&self, bits: u8, shown: u8) -> usize {
        let within = self.within[usize::from(bits)];
        usize::from(select_unpredictable(bits < shown, within, self.lens))
    }

    /// Adds the first bits of the field to a mask.
    #[inline(always)]
    pub(super) fn add_prefix(&self, mask: &mut Mask, bits: u8) {
        let first = |bits: u32| !u64::MAX.checked_shr(bits).unwrap_or(0);
        mask.0[self.word] |= first(bits.into()) >> self.shift;
        if bits > 64 {
            mask.0[self.word + 1] |= first(u32::from(bits) - 64);
        }
    }

    /// What has one of the first lengths, in one word; what has no condition is not among them.
    #[inline(always)]
    pub(super) fn up_to(&self, lens: usize, word: usize) -> u64 {
        self.up_to[lens * self.words + word]
    }
}
