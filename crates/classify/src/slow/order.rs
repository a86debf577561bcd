//! Groups of tuples in order of their best rules, and which of them a packet can be in.
//!
//! For each field a trie says which prefix lengths the packet has in common with rules. What has another length on a field has
//! no rule for the packet. With a bit for each group, the groups that are left over are an AND over the fields of an OR over
//! the lengths:
//!
//! ```text
//!                        group  0 1 2 3 4 5        the packet has /8 and /24 of ip_dst, and /32 of ip_src
//!   ip_dst    no condition      . . . 1 . .
//!             /8                1 . . . 1 .
//!             /16               . 1 . . . .        0, 2, 3, 4, 5   1 is excluded by min(16, bits known) bits
//!             /24               . . 1 . . 1
//!   ip_src    no condition      1 1 . . 1 .        0, 1, 4
//!             /16               . . 1 1 . 1
//!                                                  left: 0, 4
//! ```
//!
//! The tuples of a group differ in the fields of the transport header alone. Which of them the packet can be in is the same
//! with a bit for each tuple of the group, over these fields.

use super::axis::{Axis, leading};
use super::bits;
use super::group::outside_transport;
use crate::rules::Precedence;
use crate::{Field, Flow, Mask, Match};

/// A tuple as a member of its group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    /// The number of the tuple.
    pub(super) tuple: u32,
    /// Its group.
    pub(super) group: u32,
    /// Its bit there.
    pub(super) bit: u8,
    /// Its best rule.
    pub(super) best: Precedence,
}

/// The tuples of a group.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Members {
    /// The best rule, if there is one.
    pub(super) best: Option<Precedence>,
    /// A bit for each tuple.
    pub(super) all: u64,
}

/// The groups, and the order of their best rules.
#[derive(Clone, Debug, Default)]
pub(super) struct Order {
    /// Fields outside the transport header, which exclude groups, and behind them those that exclude tuples of a group.
    pub(super) axes: Vec<Axis>,
    /// How many are outside.
    pub(super) outside: usize,
    /// Axes that come get the first parts of their walks later.
    bulk: bool,
    /// By number.
    pub(super) groups: Vec<Members>,
    /// The best rules of the groups, in order; and for so many of them, in words, which they are.
    by_best: Vec<Precedence>,
    first: Vec<u64>,
    /// The best rule of each word of groups.
    pub(super) best_of_word: Vec<Option<Precedence>>,
    /// Number and best rule of each tuple: 64 for each group.
    members: Vec<(u32, Precedence)>,
    /// The best rules of all tuples, in order.
    best: Vec<Precedence>,
}

/// A group that no axis excludes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) group: u32,
    /// The packet's hash, if the group was asked.
    pub(super) hash: u32,
    /// What it says is part of the answer: it was asked for a tuple that could have a better rule than the winner.
    pub(super) asked: bool,
    /// The tuples that no axis excludes. Without one the group is not asked.
    pub(super) open: u64,
    /// The tuples that have rules with the hash.
    pub(super) has: u64,
}

/// A tuple that may have a rule for the packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) best: Precedence,
    pub(super) tuple: u32,
    pub(super) hash: u64,
}

/// The search of one packet, as far as it has come. It is kept between packets for its memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Search {
    /// Of each axis, the packet's prefixes: the places of their lengths, and their groups. One axis after the other.
    pub(super) found: Vec<(u8, u64)>,
    /// Where the next axis begins in `found`, and how many bits show that the packet has no other lengths.
    pub(super) axes: Vec<(u32, u8)>,
    /// The groups of all words so far that no axis excludes.
    pub(super) seen: Vec<Seen>,
    /// For each of them, the tuples that each axis inside does not exclude.
    pub(super) opens: Vec<u64>,
    /// Where those of the last word begin.
    pub(super) newest: usize,
    /// The tuples to look into, best first.
    pub(super) candidates: Vec<Candidate>,
}

impl Search {
    /// What was found on an axis.
    #[inline]
    pub(super) fn found(&self, axis: usize) -> &[(u8, u64)] {
        let start = if axis == 0 { 0 } else { self.axes[axis - 1].0 };
        &self.found[start as usize..self.axes[axis].0 as usize]
    }
}

impl Order {
    /// How many words have a bit for each group.
    pub(super) fn words(&self) -> usize {
        self.groups.len().div_ceil(64)
    }

    /// One that gets many rules, and then [`Order::pack`].
    pub(super) fn bulk() -> Self {
        Self { bulk: true, ..Self::default() }
    }

    pub(super) fn bytes(&self) -> usize {
        self.axes.iter().map(Axis::bytes).sum::<usize>()
            + self.groups.capacity() * size_of::<Members>()
            + self.first.capacity() * 8
            + self.members.capacity() * size_of::<(u32, Precedence)>()
            + self.best.capacity() * 8
    }

    /// One rule more of a group has this match. An axis that is new counts from the next call of [`Order::arrange`] on.
    pub(super) fn insert(&mut self, matched: &Match, group: u32) {
        for field in Field::ALL {
            let len = leading(matched.mask(), field);
            if len == 0 {
                continue;
            }
            let at = self.axes.iter().position(|axis| axis.field == field);
            let at = at.unwrap_or_else(|| {
                self.axes.push(Axis::new(field, self.bulk));
                self.axes.len() - 1
            });
            self.axes[at].insert(matched.flow().get(field), len, group);
        }
    }

    /// One rule less has it.
    pub(super) fn remove(&mut self, matched: &Match, group: u32) {
        for axis in &mut self.axes {
            let len = leading(matched.mask(), axis.field);
            if len > 0 {
                axis.remove(matched.flow().get(axis.field), len, group);
            }
        }
    }

    /// Lays the tries out anew.
    pub(super) fn pack(&mut self) {
        self.axes.iter_mut().for_each(Axis::pack);
        self.bulk = false;
    }

    /// Takes over all tuples, with their masks. Tuples without rules are left out.
    pub(super) fn arrange(&mut self, mut all: Vec<(Member, Mask)>) {
        all.sort_unstable_by_key(|(member, _)| std::cmp::Reverse(member.best));
        self.best = all.iter().map(|(member, _)| member.best).collect();
        let numbers = all.iter().map(|(member, _)| member.group as usize + 1).max().unwrap_or(0);
        self.groups = vec![Members::default(); numbers];
        self.members = vec![(u32::MAX, Precedence::from_bits(0)); numbers * 64];
        let words = self.words();
        self.best_of_word = vec![None; words];
        self.by_best.clear();
        self.first = vec![0; words];
        let at = |member: &Member| member.group as usize * 64 + usize::from(member.bit);
        for (member, _) in &all {
            self.members[at(member)] = (member.tuple, member.best);
            let group = &mut self.groups[member.group as usize];
            group.all |= 1 << member.bit;
            if group.best.is_none() {
                group.best = Some(member.best);
                self.by_best.push(member.best);
                let (word, bit) = (member.group as usize / 64, member.group % 64);
                self.best_of_word[word].get_or_insert(member.best);
                self.first.extend_from_within(self.first.len() - words..);
                let last = self.first.len() - words;
                self.first[last + word] |= 1 << bit;
            }
        }
        self.axes.retain(|axis| all.iter().any(|(_, mask)| leading(mask, axis.field) > 0));
        let is_inside = |axis: &Axis| {
            let all = Mask::exact(axis.field);
            outside_transport(&all) != all
        };
        self.axes.sort_unstable_by_key(|axis| (is_inside(axis), axis.field));
        self.outside = self.axes.iter().filter(|axis| !is_inside(axis)).count();
        for (number, axis) in self.axes.iter_mut().enumerate() {
            let inside = number >= self.outside;
            let bit = |member: &Member| if inside { at(member) } else { at(member) / 64 };
            let of = |(member, mask): &(Member, Mask)| (bit(member), leading(mask, axis.field));
            let lens: Vec<_> = all.iter().map(of).collect();
            axis.arrange(if inside { self.groups.len() } else { words }, &lens);
        }
    }

    /// The number and the best rule of a tuple.
    #[inline]
    pub(super) fn member(&self, group: u32, bit: usize) -> (u32, Precedence) {
        self.members[group as usize * 64 + bit]
    }

    /// How many tuples have a better rule than this one, or have it.
    pub(super) fn better(&self, winner: Option<Precedence>) -> usize {
        match winner {
            Some(winner) => self.best.partition_point(|best| *best >= winner),
            None => self.best.len(),
        }
    }

    /// Walks down all tries.
    pub(super) fn locate(&self, flows: &[Flow], searches: &mut [Search]) {
        for search in searches.iter_mut() {
            search.found.clear();
            search.axes.clear();
            search.seen.clear();
            search.opens.clear();
        }
        self.axes.iter().for_each(|axis| axis.walk(flows, searches));
    }

    /// The groups that the packet can be in, of one word of them. Words come in order.
    #[inline]
    pub(super) fn open(&self, word: usize, search: &mut Search) {
        let mut open = u64::MAX;
        for (at, axis) in self.axes[..self.outside].iter().enumerate() {
            open &= axis.open(word, search.found(at));
        }
        open &= self.with_rules(word);
        search.newest = search.seen.len();
        for bit in bits(open) {
            let group = word * 64 + bit;
            let open = self.groups[group].all;
            search.seen.push(Seen { group: group as u32, hash: 0, asked: false, open, has: 0 });
        }
        let inside = self.axes.len() - self.outside;
        search.opens.resize(search.seen.len() * inside, 0);
        for (at, axis) in self.axes.iter().enumerate().skip(self.outside) {
            let open = axis.open_of(&search.seen[search.newest..], search.found(at));
            let opens = search.opens[search.newest * inside..].chunks_mut(inside.max(1));
            for ((seen, opens), open) in
                search.seen[search.newest..].iter_mut().zip(opens).zip(open)
            {
                seen.open &= open;
                opens[at - self.outside] = open;
            }
        }
    }

    /// The groups of a word that have rules.
    #[inline]
    fn with_rules(&self, word: usize) -> u64 {
        self.first[self.by_best.len() * self.words() + word]
    }

    /// The groups of a word that have a better rule than the winner, or have it.
    #[inline]
    pub(super) fn winning_groups(&self, word: usize, winner: Option<Precedence>) -> u64 {
        let groups = match winner {
            Some(winner) => self.by_best.partition_point(|best| *best >= winner),
            None => self.by_best.len(),
        };
        self.first[groups * self.words() + word]
    }
}
