//! What a mask leaves of a flow.

use crate::{Flow, Mask};

/// Words of a mask that are not 0.
#[derive(Clone, Debug)]
pub(super) struct Words(pub(super) Vec<(u8, u64)>);

impl Words {
    pub(super) fn of(mask: &Mask) -> Self {
        let words = mask.words().iter().enumerate().filter(|(_, word)| **word != 0);
        Self(words.map(|(at, word)| (at as u8, *word)).collect())
    }

    #[inline]
    pub(super) fn values<'a>(&'a self, flow: &'a Flow) -> impl Iterator<Item = u64> + 'a {
        self.0.iter().map(|&(at, mask)| flow.words()[usize::from(at)] & mask)
    }

    /// Adds them to a mask.
    #[inline]
    pub(super) fn add_to(&self, mask: &mut Mask) {
        for &(at, word) in &self.0 {
            mask.0[usize::from(at)] |= word;
        }
    }

    /// Multiplies and folds each word. Keys come from rules, which packets cannot choose.
    #[inline]
    pub(super) fn hash(&self, flow: &Flow) -> u64 {
        self.values(flow).fold(0x9e37_79b9_7f4a_7c15, |hash, word| {
            let product = u128::from(hash ^ word) * 0xd6e8_feb8_6659_fd93;
            (product >> 64) as u64 ^ product as u64
        })
    }
}
