//! An axis: a field with conditions. The lengths of the rules' prefixes that match a packet exclude groups or tuples.

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

/// A field on which rules have conditions, and for each prefix length a set of groups, or for each group a set of
/// tuples.
///
/// Each prefix has the set of groups of its rules. If a group has only prefixes of one length on the field, and no rule
/// of the group has the packet's prefix of this length, then the group has no rule for the packet, and that many bits
/// prove it.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    pub(super) field: Field,
    /// The field's word, and how far its highest bit is from that of the word.
    word: usize,
    shift: u32,
    prefixes: Prefixes,
    /// The number of different lengths, without 0.
    lens: u8,
    /// The index of each length in ascending order.
    place: Box<[u8; 129]>,
    /// For each number of bits, how many lengths are not greater.
    within: Box<[u8; 129]>,
    /// The number of words of a set.
    words: usize,
    /// The set of those without a condition on the field.
    none: Vec<u64>,
    /// For each length, the set of those with a condition of this length: `words` words each.
    with: Vec<u64>,
    /// For each number of lengths, the union of the sets of the first lengths; the first union is empty.
    up_to: Vec<u64>,
    /// The length of each bit of the sets.
    of: Vec<u8>,
    /// For an axis inside: `none` and then `with` in words of 32 bits, because a group has at most 32 tuples.
    sets: Vec<u32>,
}

/// All ones if `groups` has the group with this number modulo 64, else 0. Uses 32-bit halves, for vectors of 32-bit
/// lanes.
#[inline(always)]
fn has(groups: u64, at: usize) -> u32 {
    let half = if at < 32 { groups as u32 } else { (groups >> 32) as u32 };
    (half >> (at % 32) & 1).wrapping_neg()
}

/// The number of leading bits of the field that are set in the mask.
pub(super) fn leading(mask: &Mask, field: Field) -> u8 {
    let bits = mask.get(field) << (128 - field.bits());
    bits.leading_ones() as u8
}

impl Axis {
    /// With `bulk`, [`Axis::pack`] must be called before the first walk.
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

    /// Counts a rule of the group with the first `len` bits of the value as its prefix.
    pub(super) fn insert(&mut self, value: u128, len: u8, group: u32) {
        let (bits, group) = (self.field.bits(), (group % 64) as u8);
        match &mut self.prefixes {
            Prefixes::Narrow(trie) => trie.insert((value as u64) << (64 - bits), len, group),
            Prefixes::Wide(trie) => trie.insert(value << (128 - bits), len, group),
        }
    }

    /// Removes a rule that `insert` counted.
    pub(super) fn remove(&mut self, value: u128, len: u8, group: u32) {
        let (bits, group) = (self.field.bits(), (group % 64) as u8);
        match &mut self.prefixes {
            Prefixes::Narrow(trie) => trie.remove((value as u64) << (64 - bits), len, group),
            Prefixes::Wide(trie) => trie.remove(value << (128 - bits), len, group),
        }
    }

    /// Optimises the layout of the trie.
    pub(super) fn pack(&mut self) {
        let bits = self.field.bits() as u8;
        match &mut self.prefixes {
            Prefixes::Narrow(trie) => trie.pack(bits),
            Prefixes::Wide(trie) => trie.pack(bits),
        }
    }

    /// Computes the sets, of `words` words, from the lengths of their bits. Bits not in `of` are in no set. An axis
    /// inside has a word for each group, an axis outside a bit.
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

    /// Walks the trie as axis number `at`. Each search gets the groups, of all words, that the packet's prefixes do not
    /// exclude.
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

    /// Walks the trie as axis number `at`. Each search gets the indices of the lengths of the packet's prefixes, and
    /// their groups.
    #[inline(always)]
    pub(super) fn walk_inside(&self, at: usize, flows: &[Flow], searches: &mut [Search]) {
        self.walk(at, flows, searches, |searches, number, place, groups| {
            if groups != 0 {
                searches[number].found.push((place as u32, groups));
            }
        });
    }

    /// Calls `found` for each prefix of each packet, with the packet's number, the index of the length, and the
    /// prefix's groups.
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
                    // The lower bits are those of other fields, which no prefix reaches.
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

    /// The number of leading bits of the field that are set in the mask.
    #[inline(always)]
    pub(super) fn leading(&self, mask: &Mask) -> u8 {
        let ones = (mask.words()[self.word] << self.shift).leading_ones();
        match self.field.bits() {
            128 if ones == 64 => 64 + mask.words()[self.word + 1].leading_ones() as u8,
            bits => ones.min(bits) as u8,
        }
    }

    /// For each group of a word, the tuples that the axis does not exclude for a packet with these prefixes. All groups
    /// of the word are computed with vectors, because this is less work than selecting some.
    #[inline(always)]
    pub(super) fn open_inside(&self, word: usize, found: &[(u32, u64)], open: &mut Sets) {
        // The first prefix is combined with the tuples without a condition, which saves a pass.
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

    /// The number of lengths that are excluded by this many known bits of a packet, unless the packet has a prefix of
    /// the length.
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

    /// A word of the set of those with one of the first `lens` lengths; those without a condition are not in it.
    #[inline(always)]
    pub(super) fn up_to(&self, lens: usize, word: usize) -> u64 {
        self.up_to[lens * self.words + word]
    }
}
