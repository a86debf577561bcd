//! Values indexed by the number of a row, and the validity bits of a column.

use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};

use crate::pipeline::answers::{Numbers, Without};

/// A value for every row of the table, and for each reason to have no row.
#[derive(Debug)]
pub(super) struct PerRow<T> {
    pub(super) values: Vec<T>,
    pub(super) valid: Vec<bool>,
    /// The number of leading valid rows, if all rows after them are invalid.
    limit: Option<u32>,
}

impl<T: Copy + Default> PerRow<T> {
    /// `substitute` is the value of addresses that no route covers.
    pub(super) fn new(rows: u32, substitute: Option<T>, value: impl Fn(u32) -> Option<T>) -> Self {
        let values = Numbers::new(rows).table((0..rows).map(value), |without| match without {
            Without::Unmatched => substitute,
            Without::Empty | Without::Unparsable | Without::Untimed => None,
        });
        let values = values.into_iter();
        let (values, valid): (Vec<T>, Vec<bool>) =
            values.map(|value| (value.unwrap_or_default(), value.is_some())).unzip();
        let limit = valid.iter().position(|valid| !valid).unwrap_or(valid.len());
        let whole = valid[limit..].iter().all(|valid| !valid);
        Self { values, valid, limit: whole.then_some(limit as u32) }
    }
}

/// The validity bits of a column.
#[derive(Default)]
pub(super) struct Validity {
    words: Vec<u64>,
    rows: usize,
}

impl Validity {
    #[inline]
    pub(super) fn block<T>(&mut self, rows: &[u32], table: &PerRow<T>) {
        match table.limit {
            Some(limit) => self.extend(rows, |row| row < limit),
            None => self.extend(rows, |row| table.valid[row as usize]),
        }
    }

    #[inline]
    pub(super) fn extend<T: Copy>(&mut self, rows: &[T], valid: impl Fn(T) -> bool) {
        debug_assert!(self.rows.is_multiple_of(64), "a block behind the last");
        self.words.extend(rows.chunks(64).map(|rows| {
            rows.iter().enumerate().fold(0, |word, (i, &row)| word | u64::from(valid(row)) << i)
        }));
        self.rows += rows.len();
    }

    pub(super) fn finish(self) -> Option<NullBuffer> {
        let bits = BooleanBuffer::new(Buffer::from_vec(self.words), 0, self.rows);
        Some(NullBuffer::new(bits)).filter(|nulls| nulls.null_count() > 0)
    }
}
