//! Tuples in order of their best rules, and which of them a packet can be in.
//!
//! For each field a trie says which prefix lengths the packet has in common with rules. A tuple whose length on a field is not
//! among them has no rule for the packet. With a bit for each tuple, the tuples that are left over are an AND over the fields
//! of an OR over the lengths:
//!
//! ```text
//!                          tuple  0 1 2 3 4 5        the packet has /8 and /24 of ip_dst, and no dst_port of a rule
//!   ip_dst    no condition        . . . 1 . .
//!             /8                  1 . . . 1 .
//!             /16                 . 1 . . . .         0, 2, 3, 4, 5   1 is excluded by min(16, bits known) bits
//!             /24                 . . 1 . . 1
//!   dst_port  no condition        1 1 . . 1 .         0, 1, 4
//!             /16                 . . 1 1 . 1
//!                                                     left: 0, 4
//! ```

use super::trie::Trie;
use super::{TOGETHER, bits};
use crate::rules::Precedence;
use crate::{Field, Flow, Mask, Match};

/// Values of a field, at the top of a word.
#[derive(Clone, Debug)]
enum Prefixes {
    Narrow(Trie<u64>),
    Wide(Trie<u128>),
}

/// One field that rules have conditions on.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    pub(super) field: Field,
    prefixes: Prefixes,
    /// The lengths that tuples have on it, ascending; 0 is not among them.
    pub(super) lens: Vec<u8>,
    /// The place of each length in `lens`.
    place: Box<[u8; 129]>,
    /// Tuples without a condition on the field, one bit each.
    none: Vec<u64>,
    /// Tuples with each length: `words` of them a length.
    with: Vec<u64>,
    /// Tuples with a length up to each.
    up_to: Vec<u64>,
}

/// How many of the first bits of the field are all in the mask.
pub(super) fn leading(mask: &Mask, field: Field) -> u8 {
    let bits = mask.get(field) << (128 - field.bits());
    bits.leading_ones() as u8
}

impl Axis {
    fn new(field: Field) -> Self {
        let prefixes = match field.bits() {
            0..=64 => Prefixes::Narrow(Trie::new()),
            _ => Prefixes::Wide(Trie::new()),
        };
        let (none, with, up_to) = (Vec::new(), Vec::new(), Vec::new());
        Self { field, prefixes, lens: Vec::new(), place: Box::new([0; 129]), none, with, up_to }
    }

    fn insert(&mut self, value: u128, len: u8) {
        match &mut self.prefixes {
            Prefixes::Narrow(trie) => trie.insert((value as u64) << (64 - self.field.bits()), len),
            Prefixes::Wide(trie) => trie.insert(value << (128 - self.field.bits()), len),
        }
    }

    fn remove(&mut self, value: u128, len: u8) {
        match &mut self.prefixes {
            Prefixes::Narrow(trie) => trie.remove((value as u64) << (64 - self.field.bits()), len),
            Prefixes::Wide(trie) => trie.remove(value << (128 - self.field.bits()), len),
        }
    }

    /// Puts the places of the lengths that the packets have into `found`, and how many bits show that they have no others.
    #[inline]
    fn walk(&self, flows: &[Flow], searches: &mut [Search]) {
        let (field, mut shown) = (self.field, [0; TOGETHER]);
        let found = |number: usize, len: u8| {
            if len > 0 {
                searches[number].found.push(self.place[usize::from(len)]);
            }
        };
        match &self.prefixes {
            Prefixes::Narrow(trie) => {
                let mut values = [0u64; TOGETHER];
                for (value, flow) in values.iter_mut().zip(flows) {
                    *value = (flow.get(field) as u64) << (64 - field.bits());
                }
                trie.walk(&values[..flows.len()], &mut shown, found);
            }
            Prefixes::Wide(trie) => {
                let mut values = [0u128; TOGETHER];
                for (value, flow) in values.iter_mut().zip(flows) {
                    *value = flow.get(field) << (128 - field.bits());
                }
                trie.walk(&values[..flows.len()], &mut shown, found);
            }
        }
        for (search, shown) in searches.iter_mut().zip(shown) {
            search.axes.push((search.found.len() as u32, shown));
        }
    }

    /// How many of the lengths are known to be excluded, if they are not found, by so many bits of a packet.
    #[inline]
    fn lens_within(&self, bits: u8, shown: u8) -> usize {
        match bits < shown {
            true => self.lens.partition_point(|&len| len <= bits),
            false => self.lens.len(),
        }
    }

    /// Tuples with one of the first lengths, in one word; those without a condition are not among them.
    #[inline]
    fn up_to(&self, lens: usize, word: usize, words: usize) -> u64 {
        if lens == 0 { 0 } else { self.up_to[(lens - 1) * words + word] }
    }
}

/// A tuple, and where to ask first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ranked {
    /// Its number.
    pub(super) tuple: u32,
    /// Its group.
    pub(super) group: u32,
    /// Its bit in the group.
    pub(super) member: u8,
    /// The tuples of its group in front of it, of the 64 of its word of ranks.
    earlier: u64,
}

impl Ranked {
    pub(super) fn new(tuple: u32, (group, member): (u32, u8)) -> Self {
        Self { tuple, group, member, earlier: 0 }
    }
}

/// The tuples in order: those first whose best rules win against the others'.
#[derive(Clone, Debug, Default)]
pub(super) struct Order {
    pub(super) axes: Vec<Axis>,
    pub(super) tuples: Vec<Ranked>,
    /// Their best rules.
    pub(super) best: Vec<Precedence>,
    /// The ranks of each group's members.
    ranks: Vec<u32>,
    /// Their lengths on the axes, `axes` of them a tuple.
    lens: Vec<u8>,
}

/// The search of one packet, as far as it has come. It is kept between packets for its memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Search {
    /// Of each axis, the places of its lengths, one axis after the other.
    found: Vec<u8>,
    /// Where the next axis begins in `found`, and how many bits show that the packet has no other lengths.
    axes: Vec<(u32, u8)>,
    /// For each word and axis, the tuples that the axis does not exclude.
    by_axis: Vec<u64>,
    /// The tuples of a word that no axis excludes.
    pub(super) open: u64,
    /// Of these, those whose group has the packet.
    pub(super) hits: u64,
    /// The groups that are asked, the rank of their first open tuple in the word, and the packet's hash.
    pub(super) asked: Vec<(u32, u8, u32)>,
}

impl Order {
    fn words(&self) -> usize {
        self.tuples.len().div_ceil(64)
    }

    pub(super) fn bytes(&self) -> usize {
        let axis = |axis: &Axis| {
            let trie = match &axis.prefixes {
                Prefixes::Narrow(trie) => trie.bytes(),
                Prefixes::Wide(trie) => trie.bytes(),
            };
            trie + (axis.none.capacity() + axis.with.capacity() + axis.up_to.capacity()) * 8
        };
        self.axes.iter().map(axis).sum::<usize>()
            + self.tuples.capacity() * (size_of::<Ranked>() + 8)
            + self.ranks.capacity() * 4
            + self.lens.capacity()
    }

    /// One rule more has this match. An axis that is new counts from the next call of [`Order::arrange`] on.
    pub(super) fn insert(&mut self, matched: &Match) {
        for field in Field::ALL {
            let len = leading(matched.mask(), field);
            if len == 0 {
                continue;
            }
            let at = self.axes.iter().position(|axis| axis.field == field);
            let at = at.unwrap_or_else(|| {
                self.axes.push(Axis::new(field));
                self.axes.len() - 1
            });
            self.axes[at].insert(matched.flow().get(field), len);
        }
    }

    /// One rule less has it.
    pub(super) fn remove(&mut self, matched: &Match) {
        for axis in &mut self.axes {
            let len = leading(matched.mask(), axis.field);
            if len > 0 {
                axis.remove(matched.flow().get(axis.field), len);
            }
        }
    }

    /// Lays the tries out anew.
    pub(super) fn pack(&mut self) {
        for axis in &mut self.axes {
            match &mut axis.prefixes {
                Prefixes::Narrow(trie) => trie.pack(),
                Prefixes::Wide(trie) => trie.pack(),
            }
        }
    }

    /// Takes over all tuples, with their masks and best rules. Tuples without rules are left out.
    pub(super) fn arrange(&mut self, all: Vec<(Ranked, Mask, Option<Precedence>)>) {
        let with_rules = |(ranked, mask, best): (Ranked, Mask, Option<Precedence>)| {
            best.map(|best| (ranked, mask, best))
        };
        let mut all: Vec<_> = all.into_iter().filter_map(with_rules).collect();
        all.sort_unstable_by_key(|&(_, _, best)| std::cmp::Reverse(best));
        self.tuples = all.iter().map(|&(ranked, _, _)| ranked).collect();
        self.best = all.iter().map(|&(_, _, best)| best).collect();
        for word in self.tuples.chunks_mut(64) {
            for bit in 1..word.len() {
                let of_group = |other: &(usize, &Ranked)| other.1.group == word[bit].group;
                let others = word[..bit].iter().enumerate().filter(of_group);
                word[bit].earlier = others.fold(0, |all, (other, _)| all | 1 << other);
            }
        }
        let groups = self.tuples.iter().map(|tuple| tuple.group + 1).max().unwrap_or(0);
        self.ranks = vec![u32::MAX; groups as usize * 64];
        for (tuple, rank) in self.tuples.iter().zip(0..) {
            self.ranks[tuple.group as usize * 64 + usize::from(tuple.member)] = rank;
        }
        self.axes.retain(|axis| all.iter().any(|(_, mask, _)| leading(mask, axis.field) > 0));
        // Masks do not depend on the order in which rules came.
        self.axes.sort_unstable_by_key(|axis| axis.field);
        let (axes, words) = (self.axes.len(), self.words());
        self.lens = vec![0; axes * all.len()];
        for (number, axis) in self.axes.iter_mut().enumerate() {
            let lens: Vec<u8> = all.iter().map(|(_, mask, _)| leading(mask, axis.field)).collect();
            axis.lens = lens.iter().copied().filter(|len| *len > 0).collect();
            axis.lens.sort_unstable();
            axis.lens.dedup();
            for (place, &len) in axis.lens.iter().enumerate() {
                axis.place[usize::from(len)] = place as u8;
            }
            axis.none = vec![0; words];
            axis.with = vec![0; words * axis.lens.len()];
            for (rank, &len) in lens.iter().enumerate() {
                self.lens[rank * axes + number] = len;
                let of = match len {
                    0 => &mut axis.none[..],
                    _ => &mut axis.with[usize::from(axis.place[usize::from(len)]) * words..],
                };
                of[rank / 64] |= 1 << (rank % 64);
            }
            axis.up_to.clone_from(&axis.with);
            for at in words..axis.up_to.len() {
                axis.up_to[at] |= axis.up_to[at - words];
            }
        }
    }

    /// Walks down all tries.
    pub(super) fn locate(&self, flows: &[Flow], searches: &mut [Search]) {
        for search in searches.iter_mut() {
            search.found.clear();
            search.axes.clear();
            search.by_axis.clear();
        }
        self.axes.iter().for_each(|axis| axis.walk(flows, searches));
    }

    /// The tuples that the packet can be in, of one word of them, and their groups. Words come in order.
    #[inline]
    pub(super) fn open(&self, word: usize, search: &mut Search) {
        let (words, rest) = (self.words(), self.tuples.len() - word * 64);
        let mut open = if rest >= 64 { u64::MAX } else { (1 << rest) - 1 };
        let mut start = 0;
        for (axis, &(end, _)) in self.axes.iter().zip(&search.axes) {
            let found = &search.found[start..end as usize];
            let with = |&at: &u8| axis.with[usize::from(at) * words + word];
            let of_axis = found.iter().map(with).fold(axis.none[word], |all, with| all | with);
            search.by_axis.push(of_axis);
            open &= of_axis;
            start = end as usize;
        }
        search.open = open;
        search.asked.clear();
        for bit in bits(open) {
            let tuple = &self.tuples[word * 64 + bit];
            // Its group is asked for the first of its tuples.
            if open & tuple.earlier == 0 {
                search.asked.push((tuple.group, bit as u8, 0));
            }
        }
    }

    /// Of a group's tuples, given by their bits there, those in a word of ranks.
    #[inline]
    pub(super) fn of_group(&self, word: usize, group: u32, members: u64) -> u64 {
        let ranks = &self.ranks[group as usize * 64..][..64];
        bits(members).fold(0, |of_word, member| {
            let rank = ranks[member] as usize;
            if rank / 64 == word { of_word | 1 << (rank % 64) } else { of_word }
        })
    }

    /// Adds the bits to the mask that show why the packet is in none of the first `ranks` tuples that were not looked at: of
    /// the axes that exclude a tuple, the one that excludes most others with it for each bit that it takes.
    pub(super) fn explain(&self, ranks: usize, search: &Search, mask: &mut Mask) {
        let (axes, words) = (self.axes.len(), self.words());
        let (mut known, mut lens) = ([0u8; Field::ALL.len()], [0; Field::ALL.len()]);
        for (at, axis) in self.axes.iter().enumerate() {
            known[at] = leading(mask, axis.field);
            lens[at] = axis.lens_within(known[at], search.axes[at].1);
        }
        let mut bits = known;
        for word in 0..ranks.div_ceil(64) {
            let open = &search.by_axis[word * axes..][..axes];
            let rest = ranks - word * 64;
            let all = if rest >= 64 { u64::MAX } else { (1 << rest) - 1 };
            // Those that an axis excludes by its known bits need no others.
            let mut left = 0;
            let mut free = 0;
            for ((axis, open), lens) in self.axes.iter().zip(open).zip(lens) {
                left |= !open;
                free |= axis.up_to(lens, word, words) & !open;
            }
            left &= all & !free;
            while left != 0 {
                let rank = word * 64 + left.trailing_zeros() as usize;
                let of_tuple = &self.lens[rank * axes..][..axes];
                let bit = 1 << (rank % 64);
                let (mut best, mut most) = (None, 0);
                for at in (0..axes).filter(|at| open[*at] & bit == 0) {
                    let (axis, shown) = (&self.axes[at], search.axes[at].1);
                    let to = of_tuple[at].min(shown);
                    let lens = axis.lens_within(to, shown);
                    let gone = left & axis.up_to(lens, word, words) & !open[at];
                    // What a bit more of the axis excludes of those that are left.
                    let worth = gone.count_ones() * 256 / u32::from(to - bits[at]);
                    if worth > most {
                        (best, most) = (Some((at, to, lens, gone)), worth);
                    }
                }
                let Some((at, to, of_axis, gone)) = best else { break };
                (bits[at], lens[at]) = (to, of_axis);
                left &= !gone;
            }
        }
        for ((axis, bits), known) in self.axes.iter().zip(bits).zip(known) {
            if bits > known {
                *mask |= Mask::prefix(axis.field, bits.into());
            }
        }
    }
}
