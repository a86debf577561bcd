//! Flows without the words that are zero.

use fibula_classify::{Context, Flow, WORDS, words};
use fibula_packet::Frame;

/// A flow in the layout of Open vSwitch: a bitmap of the words that may differ from zero, and these words. A TCP
/// packet over IPv4 has 6 of 13 words.
///
/// ```text
///   word       0      1 2   3       4      5  6       7          8        9..12
///   Flow     in_port  . . eth_dst eth_src  . ip ends ports, ... tcp flags  .
///   bitmap     1      0 0   1       1      0  1       1          1        0
///   values     0            1       2         3       4          5
/// ```
///
/// The position of a word among the values is the number of set bits below its own bit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(align(64))] // two cache lines
pub struct Miniflow {
    values: [u64; WORDS],
    bitmap: u16,
    /// The bits of the bitmap: counting them takes long without the instruction for it.
    len: u8,
}

impl Miniflow {
    /// Extracts the miniflow of a frame.
    #[inline]
    pub fn extract(frame: &Frame<'_>, context: &Context) -> Self {
        let mut miniflow = Self::default();
        words(frame, context, |word, value| miniflow.push(word, value));
        miniflow
    }

    /// Appends a word; they come in ascending order.
    #[inline(always)]
    pub(super) fn push(&mut self, word: usize, value: u64) {
        debug_assert!(u32::from(self.bitmap) < 1 << word, "words in ascending order");
        if let Some(to) = self.values.get_mut(usize::from(self.len)) {
            *to = value;
        }
        self.bitmap |= 1 << word;
        self.len += 1;
    }

    /// The stored words as a bitmap; the lowest bit is the first word.
    #[inline]
    pub fn bitmap(&self) -> u16 {
        self.bitmap
    }

    /// The stored words.
    #[inline]
    pub fn values(&self) -> &[u64] {
        &self.values[..usize::from(self.len)]
    }

    /// A word of the flow, 0 if it is not stored.
    #[inline(always)]
    pub fn get(&self, word: usize) -> u64 {
        match self.bitmap >> word & 1 {
            0 => 0,
            _ => self.values.get(place(self.bitmap, word)).copied().unwrap_or(0),
        }
    }
}

/// The place of a word among the values.
#[inline(always)]
pub(super) fn place(bitmap: u16, word: usize) -> usize {
    (u32::from(bitmap) & ((1 << word) - 1)).count_ones() as usize
}

/// The numbers of the bits that are set.
#[inline(always)]
pub(super) fn bits(mut bitmap: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (bitmap != 0).then(|| bitmap.trailing_zeros() as usize);
        bitmap &= bitmap.wrapping_sub(1);
        bit
    })
}

impl From<&Flow> for Miniflow {
    fn from(flow: &Flow) -> Self {
        let mut miniflow = Self::default();
        let words = flow.words().iter().enumerate();
        words.filter(|(_, value)| **value != 0).for_each(|(at, value)| miniflow.push(at, *value));
        miniflow
    }
}

impl From<&Miniflow> for Flow {
    fn from(miniflow: &Miniflow) -> Self {
        Self::from_words(std::array::from_fn(|word| miniflow.get(word)))
    }
}
