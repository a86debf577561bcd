//! Batches in the memory layouts of the paper's forms.

use fibula_classify::{Context, Flow, WORDS, words};
use fibula_packet::Frame;

use super::miniflow::bits;
use super::{Form, Miniflow};

/// The packets that are searched for together.
pub(super) const BURST: usize = 32;
/// Words of 32 bits in a row of [`Rows::pairs`]: the last one stays 0.
pub(super) const PAIRS: usize = 32;

const _: () = assert!(2 * WORDS < PAIRS, "a row with a word that is 0");

/// Up to [`Rows::MAX`] packets as miniflows.
///
/// ```text
///   miniflows   packet 0: bitmap, values    packet 1: bitmap, values    ...     all forms
///   pairs       the values in words of 32 bits                                  gather
///   halves      v_0 low of 32 packets, v_0 high of them, v_1 low, ...           transposed: by place in the miniflow
///                                                                               columns: by word of the flow
/// ```
#[derive(Clone, Debug)]
pub struct Rows {
    form: Form,
    pub(super) miniflows: Vec<Miniflow>,
    /// For [`Form::Gather`]: [`PAIRS`] words for a packet.
    pub(super) pairs: Vec<u32>,
    /// For [`Form::Transposed`]: for each burst and place in a miniflow the low halves of 32 packets, then the
    /// high ones. For [`Form::Columns`] the same by the word of the flow.
    pub(super) halves: Vec<u32>,
    /// Words that some packet had. In the columns of the others all is 0.
    seen: u16,
}

impl Rows {
    pub(super) const MAX: usize = fibula_classify::Batch::MAX;

    pub(super) fn new(form: Form) -> Self {
        let room = |is_used: bool, words: usize| if is_used { words } else { 0 };
        let halves = Self::MAX / BURST * WORDS * 2 * BURST;
        Self {
            form,
            miniflows: Vec::with_capacity(Self::MAX),
            pairs: vec![0; room(form == Form::Gather, Self::MAX * PAIRS)],
            halves: vec![0; room(matches!(form, Form::Transposed | Form::Columns), halves)],
            seen: 0,
        }
    }

    pub(super) fn form(&self) -> Form {
        self.form
    }

    #[inline]
    pub(super) fn clear(&mut self) {
        self.miniflows.clear();
    }

    #[inline(always)]
    pub(super) fn push_frame(&mut self, frame: &Frame<'_>, context: &Context) {
        let at = self.miniflows.len();
        assert!(at < Self::MAX, "room in the batch");
        // Filled where it stays.
        self.miniflows.push(Miniflow::default());
        let miniflow = &mut self.miniflows[at];
        words(frame, context, |word, value| miniflow.push(word, value));
        self.lay_out(at);
    }

    pub(super) fn push(&mut self, flow: &Flow) {
        let at = self.miniflows.len();
        assert!(at < Self::MAX, "room in the batch");
        self.miniflows.push(Miniflow::from(flow));
        self.lay_out(at);
    }

    /// Copies a miniflow into the form's own layout.
    #[inline(always)]
    fn lay_out(&mut self, at: usize) {
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
            Form::Columns => {
                let miniflow = &self.miniflows[at];
                self.seen |= miniflow.bitmap();
                let burst = &mut self.halves[at / BURST * (WORDS * 2 * BURST)..];
                for word in bits(self.seen.into()) {
                    let (to, value) = (&mut burst[word * 2 * BURST..], miniflow.get(word));
                    to[at % BURST] = value as u32;
                    to[at % BURST + BURST] = (value >> 32) as u32;
                }
            }
            _ => {}
        }
    }
}
