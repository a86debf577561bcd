use std::hint::select_unpredictable;

use bytemuck::{Pod, Zeroable};
use fibula_core::Range;

use super::ROOT_BITS;

/// The addresses of a deep block among which its intervals end, and the word for their keys.
///
/// The **window** has 2^(112 - `shift`) addresses, from `first` on. An address that lies before it is treated as its
/// first one, one that lies behind it as its last one. Its *key* is the first 32 of the bits that distinguish the
/// window's addresses.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Deep {
    /// The first address.
    first: u128,
    /// The next step, with the key.
    pub(super) word: u32,
    /// How far to shift the place of an address in the window, so that its bits are those that follow the root's.
    shift: u32,
    /// The size of a vector, and half a line.
    unused: [u32; 2],
}

/// Address bits behind the root's.
const BITS: u32 = 128 - ROOT_BITS;
/// The largest shift: a window has at least two addresses.
const SHIFT_MAX: u32 = BITS - 1;

impl Deep {
    /// The window for at least two successive intervals of one root entry. It is the smallest aligned block that has
    /// all ends but the final one, and the addresses behind them. If these lie close together on both sides of a
    /// block's end, it is the smallest two neighbouring halves of blocks in its place.
    pub(super) fn around(intervals: &[Range<u128>]) -> Self {
        let (first_end, last_end) = match intervals {
            [first, .., before, _] => (first.last, before.last),
            [first, ..] => (first.last, first.last),
            [] => (0, 0),
        };
        let behind = last_end + 1;
        // The number of low bits that distinguish them, and the number of bits of their distance.
        let aligned = 128 - (first_end ^ behind).leading_zeros();
        let near = 129 - (behind - first_end).leading_zeros();
        let bits = aligned.min(near);
        Self {
            first: first_end >> (bits - 1) << (bits - 1),
            word: 0,
            shift: BITS - bits,
            unused: [0; 2],
        }
    }

    /// The key of an address. Without branches, which would be mispredicted, and without shifts of two registers, which
    /// are slow.
    #[inline(always)]
    pub(super) fn key(&self, addr: u128) -> u32 {
        let (place, is_before) = addr.overflowing_sub(self.first);
        let (high, low) = ((place >> 64) as u64, place as u64);
        // Shifted up, so that the window's first bit is the top bit of `bits`; what is above it is not 0 beyond the
        // window.
        let by = self.shift + ROOT_BITS;
        let carry = |word: u64| word >> 1 >> (63 - by % 64);
        let (bits, above) = select_unpredictable(
            by < 64,
            (high << (by % 64) | carry(low), carry(high)),
            (low << (by % 64), carry(low) | high),
        );
        let outside = u32::from(is_before).wrapping_sub(1);
        select_unpredictable(above == 0, (bits >> 32) as u32, outside)
    }

    /// The intervals as those of one root entry, whose bits after the root's are the window's.
    pub(super) fn unfold(&self, intervals: &[Range<u128>]) -> impl Iterator<Item = Range<u128>> {
        let place = |addr: u128| (addr - self.first) << self.shift;
        let final_one = intervals.len() - 1;
        intervals.iter().enumerate().map(move |(i, range)| Range {
            first: if i == 0 { 0 } else { place(range.first) },
            last: if i == final_one { u128::MAX >> ROOT_BITS } else { place(range.last + 1) - 1 },
            hop: range.hop,
        })
    }

    /// The first address and the number of leading bits of a block of the window; in the window it has this first
    /// address, and this number.
    pub(super) fn fold(&self, addr: u128, depth: u32) -> (u128, u32) {
        (self.first + (addr >> self.shift), depth + self.shift)
    }

    /// Whether it is a window.
    pub(super) fn is_sound(&self) -> bool {
        self.shift <= SHIFT_MAX
    }

    /// Whether it is narrower than the other window.
    pub(super) fn is_within(&self, other: &Self) -> bool {
        self.shift > other.shift
    }
}

#[cfg(test)]
mod tests {
    use fibula_core::Hop;

    use super::*;

    fn intervals(ends: &[u128]) -> Vec<Range<u128>> {
        let mut first = 0;
        let mut all: Vec<_> = (0..)
            .zip(ends)
            .map(|(i, &last)| {
                let range = Range { first, last, hop: Hop::new(i) };
                first = last + 1;
                range
            })
            .collect();
        all.push(Range { first, last: u128::MAX, hop: Hop::NONE });
        all
    }

    /// Ends keep their order and their alignment, and addresses around the window are those at its ends.
    #[test]
    fn windows_have_all_ends() {
        let at = 0x2001_0db8 << 96;
        for (ends, bits) in [
            // A block of /48 with the second of its /64s.
            (vec![at + (1 << 64) - 1, at + (2 << 64) - 1], 66),
            // All of its /64s.
            ((1..1 << 16).map(|i| at + (i << 64) - 1).collect(), 80),
            // A host, the last one before a block that is large, and the first one in it.
            (vec![at - 2, at - 1], 3),
            (vec![at - 1, at], 3),
            (vec![at + 6], 1),
            (vec![at - 1], 2),
        ] {
            let intervals = intervals(&ends);
            let window = Deep::around(&intervals);
            assert_eq!(window.shift, BITS - bits, "{:x}", ends[0]);
            let unfolded: Vec<_> = window.unfold(&intervals).collect();
            for (one, of) in unfolded.iter().zip(&intervals) {
                assert!(one.first <= one.last);
                let (first, _) = window.fold(one.first, 16);
                assert!(first == of.first || of.first == 0);
                let cell = |addr: u128| (addr >> (BITS - 32)) as u32;
                assert!(window.key(of.first) == cell(one.first));
                assert!(window.key(of.last) <= cell(one.last));
            }
            assert_eq!((window.key(0), window.key(u128::MAX)), (0, u32::MAX));
        }
    }
}
