//! Columns of prefixes as bytes, and of their lengths.

use std::sync::Arc;

use arrow_array::types::UInt8Type;
use arrow_array::{ArrayRef, PrimitiveArray};
use fibula_core::Addr;

use super::Grow;
use super::written::Written;
use crate::AnnotateError;
use crate::pipeline::answers::Answers;
use crate::pipeline::lengths::{Length, MatchedLength};

/// A column of the addresses of prefixes, as four or sixteen bytes in network order.
pub(super) fn bytes(rows: usize) -> Box<dyn Grow> {
    Box::new(Written::bytes(rows, |answers: &Answers, i: usize, out: &mut Vec<u8>| {
        match answers.lengths[i].get() {
            None => return false,
            Some(Length::V4(len)) => out.extend((answers.v4[i] & u32::netmask(len)).to_be_bytes()),
            Some(Length::V6(len)) => out.extend((answers.v6[i] & u128::netmask(len)).to_be_bytes()),
        }
        true
    }))
}

/// A column of the lengths of prefixes.
pub(super) struct PrefixLengths {
    found: Vec<Option<u8>>,
}

impl PrefixLengths {
    pub(super) fn new(rows: usize) -> Self {
        Self { found: Vec::with_capacity(rows) }
    }
}

impl Grow for PrefixLengths {
    fn block(&mut self, answers: &Answers) -> Result<(), AnnotateError> {
        let length = |length: &MatchedLength| match length.get() {
            None => None,
            Some(Length::V4(len) | Length::V6(len)) => Some(len),
        };
        self.found.extend(answers.lengths.iter().map(length));
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<ArrayRef, AnnotateError> {
        Ok(Arc::new(PrimitiveArray::<UInt8Type>::from(self.found)))
    }
}
