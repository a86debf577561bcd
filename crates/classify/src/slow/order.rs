//! Groups of tuples in order of their best rules, and which of them a packet can be in.
//!
//! For each field, a trie gives the prefixes of rules that match the packet. A group with another length on a field has
//! no rule for the packet. With a bit for each group, the groups that remain are an AND over the fields of an OR over
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
//! The tuples of a group differ only in the protocol and the transport header. Those that can have the packet are
//! computed in the same way over these fields, with a bit for each tuple of the group.

use fibula_simd::Simd;

use super::axis::{Axis, leading};
use super::bits;
use super::group::{Inside, MEMBERS, outside_transport};
use crate::rules::Precedence;
use crate::{Field, Flow, Mask, Match};

/// A tuple as a member of its group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    /// The number of the tuple.
    pub(super) tuple: u32,
    /// Its group.
    pub(super) group: u32,
    /// Its bit in the group.
    pub(super) bit: u8,
    /// Its best rule.
    pub(super) best: Precedence,
}

/// For each of 64 groups, a bit for each tuple.
pub(super) type Sets = [u32; 64];

/// The number of fields, an upper bound of the number of axes.
pub(super) const AXES: usize = Field::ALL.len();

/// The tuples of a group, and the order of their best rules.
#[derive(Clone, Copy, Debug)]
struct Members {
    /// Their ranks among all tuples, ascending; unused entries are last.
    ranks: [[u32; 16]; MEMBERS / 16],
    /// For each number, a bit mask of that many best tuples.
    first: [u32; MEMBERS + 1],
}

/// The groups, and the order of their best rules.
#[derive(Clone, Debug, Default)]
pub(super) struct Order {
    /// The axes outside the transport header, which exclude groups, followed by those inside, which exclude tuples of a
    /// group.
    pub(super) axes: Vec<Axis>,
    /// The number of axes outside.
    pub(super) outside: usize,
    /// Whether new axes are created for a bulk build, and packed later.
    bulk: bool,
    /// For each group, a bit for each tuple with rules, padded to whole words of groups.
    pub(super) all: Vec<u32>,
    /// The same tuples, in order.
    groups: Vec<Members>,
    /// The ranks of the groups' best rules among all tuples, ascending; and in `first`, for each number, the set of
    /// that many best groups.
    by_best: Vec<u32>,
    first: Vec<u64>,
    /// The best rule of each word of groups.
    pub(super) best_of_word: Vec<Precedence>,
    /// The rank of each tuple among all: [`MEMBERS`] for each group.
    ranks: Vec<u32>,
    /// All tuples, in order.
    tuples: Vec<Ranked>,
}

/// A tuple in the order of the best rules.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ranked {
    pub(super) best: Precedence,
    pub(super) tuple: u32,
    pub(super) group: u32,
    pub(super) inside: Inside,
}

/// A group that no axis excludes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) group: u32,
    /// The packet's hash, if the group's table was searched.
    pub(super) hash: u64,
    /// The tuples that no axis excludes. If there are none, the group's table is not searched.
    pub(super) open: u32,
    /// The tuples that have rules with this hash.
    pub(super) has: u32,
    /// The tuples that could have a better rule than the winner, or that have the winner.
    pub(super) wins: u32,
}

impl Seen {
    /// All ones if the result of the group's table is part of the answer: if the table was searched for a tuple that
    /// could have a better rule than the winner, or that has the winner. Otherwise 0.
    #[inline(always)]
    pub(super) fn is_part(&self) -> u64 {
        u64::from(self.open & self.wins != 0).wrapping_neg()
    }
}

/// A tuple that may have a rule for the packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) best: Precedence,
    pub(super) tuple: u32,
    /// The hash of the packet's key.
    pub(super) hash: u32,
    /// The number that the tuple has by this hash.
    pub(super) number: u32,
}

/// The state of one packet's search. It is kept between packets to reuse its memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Search {
    /// For each axis outside, a bit for each group that it does not exclude; the words of each axis are contiguous.
    pub(super) open: Vec<u64>,
    /// For each axis inside, the packet's prefixes: the indices of their lengths, and their groups. One axis after the
    /// other.
    pub(super) found: Vec<(u32, u64)>,
    /// Where the next axis begins in `found`.
    pub(super) found_to: [u32; AXES],
    /// For each axis, how many bits prove that the packet has no other prefixes.
    pub(super) shown: [u8; AXES],
    /// The groups of all words so far that no axis excludes.
    pub(super) seen: Vec<Seen>,
    /// For each of them, the tuples that each axis inside does not exclude.
    pub(super) opens: Vec<u32>,
    /// Where those of the last word begin.
    pub(super) newest: usize,
    /// The tuples to search, best first.
    pub(super) candidates: Vec<Candidate>,
}

impl Search {
    /// The prefixes found on an axis inside, counted from 0.
    #[inline(always)]
    fn found(&self, inside: usize) -> &[(u32, u64)] {
        let start = if inside == 0 { 0 } else { self.found_to[inside - 1] };
        &self.found[start as usize..self.found_to[inside] as usize]
    }
}

/// The memory that a search needs only within one step.
#[derive(Clone, Debug)]
pub(super) struct Working {
    /// The tuples that each axis inside does not exclude.
    inside: Box<[Sets; AXES]>,
    /// A bit for each tuple, by its rank among all: set for those to search.
    marked: Vec<u64>,
    /// The hashes of the packet in the groups of a word.
    hashes: [u64; 64],
}

impl Default for Working {
    fn default() -> Self {
        Self { inside: Box::new([[0; 64]; AXES]), marked: Vec::new(), hashes: [0; 64] }
    }
}

impl Order {
    /// How many words have a bit for each group.
    #[inline(always)]
    pub(super) fn words(&self) -> usize {
        self.best_of_word.len()
    }

    /// For a bulk build: many rules are inserted, and then [`Order::pack`] is called.
    pub(super) fn bulk() -> Self {
        Self { bulk: true, ..Self::default() }
    }

    pub(super) fn bytes(&self) -> usize {
        self.axes.iter().map(Axis::bytes).sum::<usize>()
            + self.groups.capacity() * size_of::<Members>()
            + self.first.capacity() * 8
            + (self.ranks.capacity() + self.all.capacity()) * 4
            + self.tuples.capacity() * size_of::<Ranked>()
    }

    /// Adds the match of a rule of a group. A new axis is used from the next call of [`Order::arrange`] on.
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

    /// Removes the match of a rule of a group.
    pub(super) fn remove(&mut self, matched: &Match, group: u32) {
        for axis in &mut self.axes {
            let len = leading(matched.mask(), axis.field);
            if len > 0 {
                axis.remove(matched.flow().get(axis.field), len, group);
            }
        }
    }

    /// Optimises the layout of the tries.
    pub(super) fn pack(&mut self) {
        self.axes.iter_mut().for_each(Axis::pack);
        self.bulk = false;
    }

    /// Computes the order of all tuples from their masks. Tuples without rules are left out.
    pub(super) fn arrange(&mut self, mut all: Vec<(Member, Mask)>) {
        all.sort_unstable_by_key(|(member, _)| std::cmp::Reverse(member.best));
        let ranked = |(member, mask): &(Member, Mask)| {
            let Member { tuple, group, best, .. } = *member;
            Ranked { best, tuple, group, inside: Inside::of(mask) }
        };
        self.tuples = all.iter().map(ranked).collect();
        let numbers = all.iter().map(|(member, _)| member.group as usize + 1).max().unwrap_or(0);
        let words = numbers.div_ceil(64);
        self.groups =
            vec![
                Members { ranks: [[u32::MAX; 16]; MEMBERS / 16], first: [0; MEMBERS + 1] };
                numbers
            ];
        self.all = vec![0; words * 64];
        self.ranks = vec![0; numbers * MEMBERS];
        self.best_of_word = vec![Precedence::NONE; words];
        self.by_best.clear();
        self.first = vec![0; words];
        for (rank, (member, _)) in all.iter().enumerate() {
            let (group, bit) = (member.group as usize, usize::from(member.bit));
            self.ranks[group * MEMBERS + bit] = rank as u32;
            let before = self.all[group].count_ones() as usize;
            self.all[group] |= 1 << bit;
            let members = &mut self.groups[group];
            members.ranks.as_flattened_mut()[before] = rank as u32;
            members.first[before + 1..].fill(self.all[group]);
            if before == 0 {
                self.by_best.push(rank as u32);
                let best = &mut self.best_of_word[group / 64];
                *best = member.best.max(*best);
                self.first.extend_from_within(self.first.len() - words..);
                let last = self.first.len() - words;
                self.first[last + group / 64] |= 1 << (group % 64);
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
            let at = |member: &Member| match inside {
                true => member.group as usize * 64 + usize::from(member.bit),
                false => member.group as usize,
            };
            let of = |(member, mask): &(Member, Mask)| (at(member), leading(mask, axis.field));
            let lens: Vec<_> = all.iter().map(of).collect();
            axis.arrange(if inside { words * 64 } else { words }, inside, &lens);
        }
    }

    /// The number of tuples whose best rule is better than this one or equals it. They are the first ones.
    #[inline(always)]
    pub(super) fn better(&self, winner: Precedence) -> u32 {
        self.tuples.partition_point(|tuple| tuple.best >= winner) as u32
    }

    /// The tuples of a group that are among the first ones of all; `better` is their number.
    #[inline(always)]
    pub(super) fn winning<S: Simd>(&self, simd: S, group: u32, better: S::Splat32) -> u32 {
        let Members { ranks, first } = &self.groups[group as usize];
        let count: u32 = ranks.iter().map(|line| simd.rank32(line, better)).sum();
        first[count as usize]
    }

    /// The groups of a word that have one of the first `better` tuples.
    #[inline(always)]
    pub(super) fn winning_groups(&self, word: usize, better: u32) -> u64 {
        let groups = self.by_best.partition_point(|rank| *rank < better);
        self.first[groups * self.words() + word]
    }

    /// Walks the tries of all axes.
    #[inline(always)]
    pub(super) fn locate(&self, flows: &[Flow], searches: &mut [Search]) {
        for search in searches.iter_mut() {
            search.open.clear();
            search.found.clear();
            search.seen.clear();
            search.opens.clear();
        }
        let (outside, inside) = self.axes.split_at(self.outside);
        for (at, axis) in outside.iter().enumerate() {
            axis.walk_outside(at, flows, searches);
        }
        for (at, axis) in inside.iter().enumerate() {
            axis.walk_inside(self.outside + at, flows, searches);
            for search in searches.iter_mut() {
                search.found_to[at] = search.found.len() as u32;
            }
        }
    }

    /// Finds the groups of one word that can have the packet. It must be called for the words in order.
    #[inline(always)]
    pub(super) fn open(&self, word: usize, search: &mut Search, working: &mut Working) {
        let words = self.words();
        let mut open = self.first[self.by_best.len() * words + word];
        for at in 0..self.outside {
            open &= search.open[at * words + word];
        }
        let (all, _) = self.all[word * 64..].as_chunks::<64>();
        let (mut all, inside) = (all[0], &mut working.inside[..self.axes.len() - self.outside]);
        for (at, open) in inside.iter_mut().enumerate() {
            self.axes[self.outside + at].open_inside(word, search.found(at), open);
            all.iter_mut().zip(open).for_each(|(all, open)| *all &= *open);
        }
        search.newest = search.seen.len();
        for bit in bits(open) {
            let (group, open) = ((word * 64 + bit) as u32, all[bit]);
            search.seen.push(Seen { group, hash: 0, open, has: 0, wins: 0 });
        }
        search.opens.resize(search.seen.len() * inside.len(), 0);
        let opens =
            search.opens[search.newest * inside.len()..].chunks_exact_mut(inside.len().max(1));
        for (seen, opens) in search.seen[search.newest..].iter().zip(opens) {
            for (open, inside) in opens.iter_mut().zip(&*inside) {
                *open = inside[seen.group as usize % 64];
            }
        }
    }

    /// Marks tuples of a group to be searched, for a packet with this hash in the group.
    #[inline(always)]
    pub(super) fn mark(&self, group: u32, hash: u64, mut tuples: u32, working: &mut Working) {
        working.hashes[group as usize % 64] = hash;
        let ranks = &self.ranks[group as usize * MEMBERS..][..MEMBERS];
        // No tuple and one tuple are the most frequent cases, in unpredictable order, so both take one iteration.
        loop {
            let rank = ranks[tuples.trailing_zeros() as usize % MEMBERS] as usize;
            working.marked[rank / 64] |= u64::from(tuples != 0) << (rank % 64);
            tuples &= tuples.wrapping_sub(1);
            if tuples == 0 {
                break;
            }
        }
    }

    /// Clears the marks. Calls `found` with each marked tuple and the packet's hash in its group, in order of rank.
    #[inline(always)]
    pub(super) fn marked(&self, working: &mut Working, mut found: impl FnMut(&Ranked, u64)) {
        for (word, marked) in working.marked.iter_mut().enumerate() {
            for bit in bits(std::mem::take(marked)) {
                let ranked = &self.tuples[word * 64 + bit];
                found(ranked, working.hashes[ranked.group as usize % 64]);
            }
        }
    }

    /// Prepares the memory of a search.
    pub(super) fn prepare(&self, working: &mut Working) {
        working.marked.resize(self.tuples.len().div_ceil(64), 0);
    }
}
