//! Batches of packets, which are searched for together.

use fibula_packet::Frame;

use crate::{Context, Flow, WORDS, extract};

/// The length of a column: the packets, and the rest of the last vector.
pub(crate) const STRIDE: usize = Batch::MAX + 8;

/// Up to [`Batch::MAX`] packets, in columns: word 0 of all packets, word 1 of all, and so on. Packets of other
/// protocols have zeros where they lack a field, so protocols can be mixed.
#[derive(Clone, Debug)]
pub struct Batch {
    len: usize,
    /// For each word of the flow that of all packets, in [`STRIDE`] words.
    pub(crate) columns: Vec<u64>,
    /// Words that some packet has.
    pub(crate) used: u16,
}

impl Default for Batch {
    fn default() -> Self {
        Self::new()
    }
}

impl Batch {
    /// The maximum number of packets.
    pub const MAX: usize = 256;

    /// Makes an empty batch.
    pub fn new() -> Self {
        Self { len: 0, columns: vec![0; WORDS * STRIDE], used: 0 }
    }

    /// Number of packets.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the batch is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Removes all packets.
    #[inline]
    pub fn clear(&mut self) {
        for word in bits(self.used.into()) {
            self.columns[word * STRIDE..][..self.len].fill(0);
        }
        (self.len, self.used) = (0, 0);
    }

    /// Appends the packet in a frame.
    ///
    /// # Panics
    /// If the batch is full.
    #[inline(always)]
    pub fn push_frame(&mut self, frame: &Frame<'_>, context: &Context) {
        let (columns, at) = self.next_row();
        let mut used = 0u16;
        extract::words(frame, context, |word, value| {
            used |= 1 << word;
            columns[word * STRIDE + at] = value;
        });
        self.used |= used;
    }

    /// Appends a packet, given as a flow.
    ///
    /// # Panics
    /// If the batch is full.
    pub fn push(&mut self, flow: &Flow) {
        let (columns, at) = self.next_row();
        let mut used = 0u16;
        for (word, value) in flow.words().iter().enumerate().filter(|(_, v)| **v != 0) {
            used |= 1 << word;
            columns[word * STRIDE + at] = *value;
        }
        self.used |= used;
    }

    #[inline(always)]
    fn next_row(&mut self) -> (&mut [u64], usize) {
        assert!(self.len < Self::MAX, "room in the batch");
        self.len += 1;
        (&mut self.columns[..WORDS * STRIDE], self.len - 1)
    }

    /// A word of a packet.
    #[inline(always)]
    pub(crate) fn word(&self, packet: usize, word: usize) -> u64 {
        self.columns[word * STRIDE + packet]
    }

    /// The flow of a packet.
    ///
    /// # Panics
    /// If the batch has fewer packets.
    pub fn flow(&self, packet: usize) -> Flow {
        assert!(packet < self.len, "packet {packet} of {}", self.len);
        Flow::from_words(std::array::from_fn(|word| self.word(packet, word)))
    }
}

/// The numbers of the bits that are set.
#[inline(always)]
pub(crate) fn bits(mut bitmap: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (bitmap != 0).then(|| bitmap.trailing_zeros() as usize);
        bitmap &= bitmap.wrapping_sub(1);
        bit
    })
}
