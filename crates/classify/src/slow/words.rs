//! The words of a flow that a mask keeps.

use crate::{Flow, Mask, WORDS};

/// The words of a mask that are not 0, with their places. They are stored inline and compactly, because a search reads
/// those of many masks.
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct Words {
    len: u8,
    places: [u8; WORDS],
    masks: [u64; WORDS],
}

impl Words {
    pub(super) fn of(mask: &Mask) -> Self {
        let mut all = Self { len: 0, places: [0; WORDS], masks: [0; WORDS] };
        for (at, word) in mask.words().iter().enumerate().filter(|(_, word)| **word != 0) {
            all.places[usize::from(all.len)] = at as u8;
            all.masks[usize::from(all.len)] = *word;
            all.len += 1;
        }
        all
    }

    #[inline(always)]
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let len = self.len().min(WORDS);
        let places = self.places[..len].iter().map(|at| usize::from(*at));
        places.zip(self.masks[..len].iter().copied())
    }

    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        usize::from(self.len)
    }

    #[inline(always)]
    pub(super) fn values<'a>(&'a self, flow: &'a Flow) -> impl Iterator<Item = u64> + 'a {
        self.iter().map(|(at, mask)| flow.words()[at] & mask)
    }

    /// Adds the bits that are also in `all` to a mask.
    #[inline(always)]
    pub(super) fn add_to(&self, mask: &mut Mask, all: u64) {
        for (at, word) in self.iter() {
            mask.0[at] |= word & all;
        }
    }

    /// Multiplies and folds each word. Keys come from rules, which packets cannot choose.
    #[inline(always)]
    pub(super) fn hash(&self, flow: &Flow) -> u64 {
        self.values(flow).fold(0x9e37_79b9_7f4a_7c15, mix)
    }
}

/// Mixes a word into a hash.
#[inline(always)]
pub(super) fn mix(hash: u64, word: u64) -> u64 {
    let product = u128::from(hash ^ word) * 0xd6e8_feb8_6659_fd93;
    (product >> 64) as u64 ^ product as u64
}
