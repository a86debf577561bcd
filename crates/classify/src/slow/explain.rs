//! Which bits show that a packet is in none of the tuples that were not looked at.

use std::ops::Range;

use super::bits;
use super::order::{Order, Search};
use crate::rules::Precedence;
use crate::{Field, Mask};

/// What is known of a packet, and what it excludes.
struct Known {
    /// How many bits of each axis.
    bits: [u8; Field::ALL.len()],
    /// How many of its lengths they exclude, if they are not found.
    lens: [usize; Field::ALL.len()],
}

impl Order {
    /// Of a group's tuples, those that have a better rule than the winner, or have it.
    #[inline]
    pub(super) fn winning(&self, group: u32, members: u64, winner: Option<Precedence>) -> u64 {
        let Some(winner) = winner else { return members };
        let wins = |bit: &usize| self.member(group, *bit).1 >= winner;
        bits(members).filter(wins).fold(0, |all, bit| all | 1 << bit)
    }

    /// Adds the bits to the mask that show why the packet is in none of the tuples that could have a better rule and were not
    /// looked at. The mask has the words of the groups that were asked.
    pub(super) fn explain(&self, winner: Option<Precedence>, search: &Search, mask: &mut Mask) {
        let mut known = Known { bits: [0; Field::ALL.len()], lens: [0; Field::ALL.len()] };
        for (at, axis) in self.axes.iter().enumerate() {
            known.bits[at] = axis.leading(mask);
            known.lens[at] = axis.lens_within(known.bits[at], search.axes[at].1);
        }
        let before = known.bits;
        for word in 0..self.words() {
            let all = self.winning_groups(word, winner);
            let open = |at: usize| self.axes[at].open(word, search.found(at));
            self.cover(0..self.outside, (word, all), search, &mut known, open);
        }
        let inside = self.axes.len() - self.outside;
        for (number, seen) in search.seen.iter().enumerate() {
            let members = &self.groups[seen.group as usize];
            // The group's table has shown that it does not have the others.
            let left = !seen.open & if seen.asked { seen.has } else { members.all };
            let left = self.winning(seen.group, left, winner);
            if left != 0 {
                let (axes, group) = (self.outside..self.axes.len(), seen.group as usize);
                let open = |at: usize| search.opens[number * inside + at - self.outside];
                self.cover(axes, (group, left), search, &mut known, open);
            }
        }
        for (at, axis) in self.axes.iter().enumerate() {
            if known.bits[at] > before[at] {
                *mask |= Mask::prefix(axis.field, known.bits[at].into());
            }
        }
    }

    /// Learns what it takes to show that these of a word are excluded, those that some axis excludes: of the axes that exclude
    /// the first one, the one that excludes most others with it for each bit that it takes.
    #[inline]
    fn cover(
        &self,
        axes: Range<usize>,
        (word, all): (usize, u64),
        search: &Search,
        known: &mut Known,
        open_on: impl Fn(usize) -> u64,
    ) {
        let (mut open, mut left, mut free) = ([0; Field::ALL.len()], 0, 0);
        for at in axes.clone() {
            open[at] = open_on(at);
            left |= !open[at];
            // Those that an axis excludes by its known bits need no others.
            free |= self.axes[at].up_to(known.lens[at], word) & !open[at];
        }
        left &= all & !free;
        while left != 0 {
            let first = left.trailing_zeros() as usize;
            let (mut best, mut most) = (None, 0);
            for at in axes.clone().filter(|at| open[*at] >> first & 1 == 0) {
                let (axis, shown) = (&self.axes[at], search.axes[at].1);
                let to = axis.len_of(word * 64 + first).min(shown);
                let lens = axis.lens_within(to, shown);
                let gone = left & axis.up_to(lens, word) & !open[at];
                // What a bit more of the axis excludes of those that are left.
                let worth = gone.count_ones() * 256 / u32::from(to - known.bits[at]);
                if worth > most {
                    (best, most) = (Some((at, to, lens, gone)), worth);
                }
            }
            let Some((at, to, lens, gone)) = best else { break };
            (known.bits[at], known.lens[at]) = (to, lens);
            left &= !gone;
        }
    }
}
