//! Columns of prefixes as text.

use std::sync::Arc;

use arrow_array::{ArrayRef, StringArray};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use fibula_simd::{Isa, Kernel, Level, Simd};

use super::rows::Validity;
use super::{Grow, fits};
use crate::AnnotateError;
use crate::pipeline::answers::Answers;
use crate::pipeline::lengths::MatchedLength;
use crate::write::{MAX_PREFIX, put_v4_prefix, put_v6_prefix};

/// Prefixes as text.
pub(super) struct Prefixes {
    bytes: Vec<u8>,
    offsets: Vec<i32>,
    validity: Validity,
    level: Level,
}

/// Writes the prefixes of a block.
struct Write<'a> {
    answers: &'a Answers,
    bytes: &'a mut Vec<u8>,
    offsets: &'a mut Vec<i32>,
}

impl Kernel for Write<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        /// Rows at once: few enough that their texts stay in the first-level cache.
        const ROWS: usize = 128;
        /// Number of bytes that are always copied; longer texts are rare.
        const WHOLE: usize = 32;
        let Self { answers, bytes, offsets } = self;
        let mut texts = [[0; MAX_PREFIX]; ROWS];
        let (mut v4, mut v6) = ([0u8; ROWS], [0u8; ROWS]);
        for (block, lengths) in answers.lengths.chunks(ROWS).enumerate() {
            let first = block * ROWS;
            let mut sizes = [0; ROWS];
            // First one family, then the other, to avoid mispredicted branches.
            let (mut v4_len, mut v6_len) = (0, 0);
            for (row, &len) in (0..).zip(lengths) {
                (v4[v4_len], v6[v6_len]) = (row, row);
                v4_len += usize::from(len.is_v4());
                v6_len += usize::from(len.is_v6());
            }
            for &row in &v4[..v4_len] {
                let row = usize::from(row) % ROWS;
                let len = lengths[row].v4_len();
                sizes[row] = put_v4_prefix(answers.v4[first + row], len, &mut texts[row]);
            }
            for &row in &v6[..v6_len] {
                let row = usize::from(row) % ROWS;
                let len = lengths[row].v6_len();
                sizes[row] = put_v6_prefix(answers.v6[first + row], len, &mut texts[row]);
            }
            for (text, &size) in texts.iter().zip(&sizes[..lengths.len()]) {
                let end = bytes.len() + size;
                bytes.extend_from_slice(&text[..WHOLE]);
                if size > WHOLE {
                    bytes.extend_from_slice(&text[WHOLE..]);
                }
                bytes.truncate(end);
                offsets.push(end as i32);
            }
        }
    }
}

impl Prefixes {
    pub(super) fn new(rows: usize) -> Self {
        let mut offsets = Vec::with_capacity(rows + 1);
        offsets.push(0);
        let bytes = Vec::with_capacity(rows.saturating_mul(18) + MAX_PREFIX);
        let level = Level::new(Isa::detect());
        Self { bytes, offsets, validity: Validity::default(), level }
    }
}

impl Grow for Prefixes {
    fn block(&mut self, answers: &Answers) -> Result<(), AnnotateError> {
        // `fits` checks the whole block below, before the offsets are used.
        let (bytes, offsets) = (&mut self.bytes, &mut self.offsets);
        self.level.run(Write { answers, bytes, offsets });
        self.validity.extend(&answers.lengths, MatchedLength::is_known);
        fits(&self.bytes)
    }

    fn finish(self: Box<Self>) -> Result<ArrayRef, AnnotateError> {
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.offsets));
        let bytes = Buffer::from_vec(self.bytes);
        Ok(Arc::new(StringArray::try_new(offsets, bytes, self.validity.finish())?))
    }
}
