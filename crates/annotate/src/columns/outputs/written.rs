//! Columns of text or bytes that are written cell by cell.

use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, StringArray};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};

use super::rows::Validity;
use super::{Grow, fits};
use crate::AnnotateError;
use crate::columns::lookup::BLOCK;
use crate::pipeline::answers::Answers;
use crate::write::MAX_PREFIX;

/// A column of text or bytes. `write` appends the value of a row, and returns whether there is one.
pub(super) struct Written<W> {
    write: W,
    bytes: Vec<u8>,
    offsets: Vec<i32>,
    valid: Vec<bool>,
    validity: Validity,
    binary: bool,
}

impl<W: Fn(&Answers, usize, &mut Vec<u8>) -> bool> Written<W> {
    /// A column of text.
    pub(super) fn text(rows: usize, write: W) -> Self {
        Self::new(rows, write, false)
    }

    /// A column of bytes.
    pub(super) fn bytes(rows: usize, write: W) -> Self {
        Self::new(rows, write, true)
    }

    fn new(rows: usize, write: W, binary: bool) -> Self {
        let mut offsets = Vec::with_capacity(rows + 1);
        offsets.push(0);
        Self {
            write,
            bytes: Vec::with_capacity(rows.saturating_mul(16)),
            offsets,
            valid: Vec::with_capacity(BLOCK),
            validity: Validity::default(),
            binary,
        }
    }
}

impl<W: Fn(&Answers, usize, &mut Vec<u8>) -> bool> Grow for Written<W> {
    fn block(&mut self, answers: &Answers) -> Result<(), AnnotateError> {
        self.valid.clear();
        // Without value columns there may be routes only, without added prefixes rows only.
        let rows = answers.rows.len().max(answers.lengths.len());
        self.bytes.reserve(rows * MAX_PREFIX);
        for i in 0..rows {
            self.valid.push((self.write)(answers, i, &mut self.bytes));
            // `fits` checks the whole block below, before the offsets are used.
            self.offsets.push(self.bytes.len() as i32);
        }
        self.validity.extend(&self.valid, |valid| valid);
        fits(&self.bytes)
    }

    fn finish(self: Box<Self>) -> Result<ArrayRef, AnnotateError> {
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.offsets));
        let (bytes, nulls) = (Buffer::from_vec(self.bytes), self.validity.finish());
        Ok(if self.binary {
            Arc::new(BinaryArray::try_new(offsets, bytes, nulls)?)
        } else {
            Arc::new(StringArray::try_new(offsets, bytes, nulls)?)
        })
    }
}
