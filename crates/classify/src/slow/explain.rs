//! Finds the bits that prove that a packet is in none of the tuples that were skipped.

use std::ops::Range;

use super::bits;
use super::order::{AXES, Order, Search};
use crate::Mask;

/// The known bits of a packet, and the lengths that they exclude.
struct Known {
    /// The number of known leading bits on each axis.
    bits: [u8; AXES],
    /// The number of the axis's lengths that these bits exclude, if the packet has no prefix of the length.
    lens: [usize; AXES],
}

/// 2^24 divided by each number, to avoid a division.
const SHARES: [u32; 129] = {
    let (mut shares, mut of) = ([0; 129], 1);
    while of < shares.len() {
        shares[of] = (1 << 24) / of as u32;
        of += 1;
    }
    shares
};

impl Order {
    /// Adds bits to the mask that prove that the packet is in none of the first `better` tuples that were skipped. The
    /// mask already has the words of the groups whose tables were searched.
    #[inline(always)]
    pub(super) fn explain(&self, better: u32, search: &Search, mask: &mut Mask) {
        let mut known = Known { bits: [0; AXES], lens: [0; AXES] };
        for (at, axis) in self.axes.iter().enumerate() {
            known.bits[at] = axis.leading(mask);
            known.lens[at] = axis.lens_within(known.bits[at], search.shown[at]);
        }
        let words = self.words();
        for word in 0..words {
            let all = self.winning_groups(word, better);
            let open = |at: usize| search.open[at * words + word];
            self.cover(0..self.outside, (word, all), search, &mut known, open);
        }
        let inside = self.axes.len() - self.outside;
        for (part, all) in search.seen.chunks(64).enumerate() {
            // Only few groups need an explanation, unpredictably, so these are collected first.
            let (mut lefts, mut some) = ([0; 64], 0);
            for (at, seen) in all.iter().enumerate() {
                // If the group's table was searched, it has excluded the tuples that are not in `has`.
                let has = seen.has | !seen.is_part() as u32;
                lefts[at] = !seen.open & seen.wins & has;
                some |= u64::from(lefts[at] != 0) << at;
            }
            for at in bits(some) {
                let (axes, group) = (self.outside..self.axes.len(), all[at].group as usize);
                let opens = &search.opens[(part * 64 + at) * inside..][..inside];
                let open = |axis: usize| opens[axis - self.outside].into();
                self.cover(axes, (group, lefts[at].into()), search, &mut known, open);
            }
        }
        for (axis, bits) in self.axes.iter().zip(known.bits) {
            axis.add_prefix(mask, bits);
        }
    }

    /// Extends the known bits until they prove the exclusion of all bits in `all` that some axis excludes. For the
    /// first one left, it takes from the axes that exclude it the axis that excludes the most others for each
    /// additional bit.
    #[inline(always)]
    fn cover(
        &self,
        axes: Range<usize>,
        (word, all): (usize, u64),
        search: &Search,
        known: &mut Known,
        open_on: impl Fn(usize) -> u64,
    ) {
        let (mut open, mut left, mut free) = ([0; AXES], 0, 0);
        for at in axes.clone() {
            open[at] = open_on(at);
            left |= !open[at];
            // Those that an axis excludes by its known bits need no further bits.
            free |= self.axes[at].up_to(known.lens[at], word) & !open[at];
        }
        left &= all & !free;
        while left != 0 {
            let first = left.trailing_zeros() as usize;
            let (mut best, mut most) = (None, 0);
            for at in axes.clone().filter(|at| open[*at] >> first & 1 == 0) {
                let (axis, shown) = (&self.axes[at], search.shown[at]);
                let to = axis.len_of(word * 64 + first).min(shown);
                let lens = axis.lens_within(to, shown);
                let gone = left & axis.up_to(lens, word) & !open[at];
                // The number of those left that the axis excludes for each additional bit.
                let worth = gone.count_ones() * SHARES[usize::from(to - known.bits[at])];
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
