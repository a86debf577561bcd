//! Batches of packets, which are searched for together.

use fibula_packet::Frame;

use crate::miniflow::bits;
use crate::{Context, Flow, Form, Miniflow, WORDS, extract};

/// The packets that the paper's forms search for together.
pub(crate) const BURST: usize = 32;
/// What a column has room for: the packets, and the last vector.
pub(crate) const STRIDE: usize = Batch::MAX + 8;
/// Words of 32 bits in a row of [`Batch::pairs`]: the last one stays 0.
pub(crate) const PAIRS: usize = 32;

const _: () = assert!(2 * WORDS < PAIRS, "a row with a word that is 0");

/// Up to [`Batch::MAX`] packets, in the memory layout of one [`Form`].
///
/// ```text
///   miniflows   packet 0: bitmap, values    packet 1: bitmap, values    ...     murmur, crc, gather, transposed
///   halves      v_0 low of 32 packets, v_0 high of them, v_1 low, ...           transposed: by place in the miniflow
///   columns     word 0 of all packets, word 1 of all, ...                       packed: by word of the flow
/// ```
#[derive(Clone, Debug)]
pub struct Batch {
    form: Form,
    len: usize,
    pub(crate) miniflows: Vec<Miniflow>,
    /// For [`Form::Gather`]: the miniflows' values in words of 32 bits, [`PAIRS`] for a packet.
    pub(crate) pairs: Vec<u32>,
    /// For [`Form::Transposed`]: for each burst and place in a miniflow the low halves of 32 packets, then the
    /// high ones.
    pub(crate) halves: Vec<u32>,
    /// For [`Form::Packed`]: for each word of the flow that of all packets, in [`STRIDE`] words.
    pub(crate) columns: Vec<u64>,
    /// For [`Form::Packed`]: words that some packet has.
    pub(crate) used: u16,
}

impl Batch {
    /// The maximum number of packets.
    pub const MAX: usize = 256;

    /// Makes an empty batch.
    pub fn new(form: Form) -> Self {
        let room = |is_used: bool, words: usize| if is_used { words } else { 0 };
        let bursts = Self::MAX / BURST;
        let halves = room(form == Form::Transposed, bursts * WORDS * 2 * BURST);
        let pairs = room(form == Form::Gather, Self::MAX * PAIRS);
        let miniflows = room(form != Form::Packed, Self::MAX);
        Self {
            form,
            len: 0,
            miniflows: Vec::with_capacity(miniflows),
            pairs: vec![0; pairs],
            halves: vec![0; halves],
            columns: vec![0; room(form == Form::Packed, WORDS * STRIDE)],
            used: 0,
        }
    }

    /// The form that the batch is laid out for.
    pub fn form(&self) -> Form {
        self.form
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
        self.miniflows.clear();
    }

    /// Appends the packet in a frame.
    ///
    /// # Panics
    /// If the batch is full.
    #[inline(always)]
    pub fn push_frame(&mut self, frame: &Frame<'_>, context: &Context) {
        assert!(self.len < Self::MAX, "room in the batch");
        match self.form {
            Form::Packed => {
                let (columns, at) = self.next_row();
                let mut used = 0u16;
                extract::words(frame, context, |word, value| {
                    used |= 1 << word;
                    columns[word * STRIDE + at] = value;
                });
                self.used |= used;
            }
            _ => {
                // Where it stays.
                self.miniflows.push(Miniflow::default());
                let miniflow = &mut self.miniflows[self.len];
                extract::words(frame, context, |word, value| miniflow.push(word, value));
                self.lay_out();
            }
        }
    }

    /// Appends a packet, given as a flow.
    ///
    /// # Panics
    /// If the batch is full.
    pub fn push(&mut self, flow: &Flow) {
        assert!(self.len < Self::MAX, "room in the batch");
        match self.form {
            Form::Packed => {
                let (columns, at) = self.next_row();
                let mut used = 0u16;
                for (word, value) in flow.words().iter().enumerate().filter(|(_, v)| **v != 0) {
                    used |= 1 << word;
                    columns[word * STRIDE + at] = *value;
                }
                self.used |= used;
            }
            _ => {
                self.miniflows.push(Miniflow::from(flow));
                self.lay_out();
            }
        }
    }

    #[inline(always)]
    fn next_row(&mut self) -> (&mut [u64], usize) {
        self.len += 1;
        (&mut self.columns[..WORDS * STRIDE], self.len - 1)
    }

    /// Copies the miniflow that was pushed to where the form has it, too.
    #[inline(always)]
    fn lay_out(&mut self) {
        let at = self.len;
        self.len += 1;
        let pairs = self.miniflows[at].values().iter();
        let pairs = pairs.map(|value| [*value as u32, (value >> 32) as u32]);
        match self.form {
            Form::Gather => {
                let row = &mut self.pairs[at * PAIRS..][..PAIRS];
                row.as_chunks_mut::<2>().0.iter_mut().zip(pairs).for_each(|(to, pair)| *to = pair);
            }
            Form::Transposed => {
                let burst = &mut self.halves[at / BURST * (WORDS * 2 * BURST)..];
                for (to, [low, high]) in burst.chunks_exact_mut(2 * BURST).zip(pairs) {
                    (to[at % BURST], to[at % BURST + BURST]) = (low, high);
                }
            }
            _ => {}
        }
    }

    /// A word of a packet.
    #[inline(always)]
    pub(crate) fn word(&self, packet: usize, word: usize) -> u64 {
        match self.form {
            Form::Packed => self.columns[word * STRIDE + packet],
            _ => self.miniflows[packet].get(word),
        }
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
