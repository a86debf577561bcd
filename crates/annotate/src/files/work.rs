//! The work on the rows of a columnar file: the columns with keys, and the columns that are added.

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{Field, Schema};

use super::ColumnPosition;
use crate::{AnnotateError, AnnotateOptions, LogFormat};

/// The positions of the columns that are read.
pub(crate) struct KeyColumns {
    pub(crate) keys: Vec<ColumnPosition>,
    /// The column of times, if there is one.
    pub(crate) time: Option<ColumnPosition>,
}

impl KeyColumns {
    /// The top-level fields, in the file's order.
    pub(crate) fn roots(&self) -> Vec<usize> {
        let mut roots: Vec<usize> =
            self.keys.iter().chain(&self.time).map(|column| column.root).collect();
        roots.sort_unstable();
        roots.dedup();
        roots
    }

    /// The same columns in batches that have only these top-level fields.
    pub(crate) fn in_batch(&self, roots: &[usize]) -> Self {
        let place = |column: &ColumnPosition| {
            Some(column.in_batch(roots.iter().position(|&root| root == column.root)?))
        };
        let keys = self.keys.iter().filter_map(place).collect();
        Self { keys, time: self.time.as_ref().and_then(place) }
    }
}

/// Reads the first rows of a file, to detect columns by their content.
pub(crate) type FirstBatch<'f> = dyn FnMut() -> Result<Option<RecordBatch>, AnnotateError> + 'f;

/// A kind of work on columns: addresses that get the values of a table, or flows that get a rule. As for rows, it is
/// chosen when the code is compiled.
pub(crate) trait ColumnWork: Sync + Sized {
    /// Works on the batches of a thread, and counts.
    type Batches: BatchWork<Self>;

    fn options(&self) -> &AnnotateOptions;

    /// Finds the columns with keys.
    fn columns(
        &self,
        schema: &Schema,
        format: LogFormat,
        first: &mut FirstBatch<'_>,
    ) -> Result<KeyColumns, AnnotateError>;

    /// The columns that are added.
    fn added(&self, schema: &Schema, columns: &KeyColumns) -> Result<Vec<Field>, AnnotateError>;

    fn batches(&self, columns: &KeyColumns) -> Self::Batches;

    /// As [`LookupTable::batch`](crate::LookupTable::batch): how many rows to read at once, if more than usual.
    fn batch_rows(&self) -> Option<usize> {
        None
    }
}

/// The work of a thread.
pub(crate) trait BatchWork<W>: Send {
    /// The added columns of a batch, whose first row is `first_row`, counted from 0. If requested, also sets which rows
    /// have an address that a route covers.
    fn batch(
        &mut self,
        work: &W,
        batch: &RecordBatch,
        columns: &KeyColumns,
        first_row: u64,
        matched: Option<&mut [bool]>,
    ) -> Result<Vec<ArrayRef>, AnnotateError>;

    /// Counts rows that are not written.
    fn leave_out(&mut self, rows: u64) {
        let _ = rows;
    }

    /// Adds the counts of another thread.
    fn merge(&mut self, other: &Self);
}
