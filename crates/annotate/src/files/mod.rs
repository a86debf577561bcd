//! Annotation of columnar files: Parquet and Arrow IPC.
//!
//! All columns of the input are written unchanged, followed by the added columns.
//! `place` finds the columns of addresses, `chosen` leaves rows out. `work` is the trait by which files get the values
//! of a table or the rules of a packet filter.

mod batches;
mod chosen;
mod footer;
mod guard;
pub(crate) mod ipc;
mod ordered;
mod pages;
pub(crate) mod parquet;
mod place;
mod shared;
mod table;
mod thrift;
mod work;

pub(crate) use self::batches::Batches;
pub use self::batches::ColumnInput;
pub use self::guard::panic_is_caught;
pub(crate) use self::ordered::in_order;
pub(crate) use self::place::ColumnPosition;
pub use self::table::{TableBatch, TableColumn, read_table};
pub(crate) use self::work::{BatchWork, ColumnWork, FirstBatch, KeyColumns};

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};

use crate::columns::{ColumnAnnotator, keys};
use crate::formats::SAMPLE_ROWS;
use crate::pipeline::counts::Counts;
use crate::pipeline::hits::Hits;
use crate::{Address, AnnotateError, AnnotateOptions, LogFormat, Summary};

use self::place::{places, time_place};

/// Progress in a file.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Progress {
    /// Rows written so far.
    pub rows: u64,
    /// Total number of rows, if known.
    pub total: Option<u64>,
}

/// Whether columns of this type can be detected as address columns from their content.
fn is_text(kind: &DataType) -> bool {
    match kind {
        DataType::Dictionary(_, values) => is_text(values),
        kind => matches!(kind, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View),
    }
}

/// Whether a column is text, and at least half of its first non-empty cells are addresses.
fn has_addresses(batch: &RecordBatch, column: usize) -> bool {
    let array = batch.column(column);
    if !is_text(array.data_type()) {
        return false;
    }
    let array = array.slice(0, array.len().min(SAMPLE_ROWS));
    let is_null = |row: usize| {
        let keys = array.as_any_dictionary_opt().is_some_and(|found| found.keys().is_null(row));
        keys || array.is_null(row)
    };
    let (mut filled, mut addresses) = (0, 0);
    for row in (0..array.len()).filter(|&row| !is_null(row)) {
        let text = keys::text(&array, row);
        filled += usize::from(!text.trim().is_empty());
        addresses += usize::from(Address::parse_cell(text.as_bytes()).is_some());
    }
    addresses > 0 && 2 * addresses >= filled
}

/// The added fields of all address columns.
fn added_fields(
    annotator: &ColumnAnnotator,
    schema: &Schema,
    places: &[ColumnPosition],
) -> Result<Vec<Field>, AnnotateError> {
    let mut fields: Vec<Field> = Vec::new();
    for place in places {
        for field in annotator.fields_for(&place.name, &place.kind) {
            let name = field.name();
            let taken = schema.index_of(name).is_ok() || fields.iter().any(|f| f.name() == name);
            if taken {
                return Err(AnnotateError::NameTaken { name: name.clone() });
            }
            fields.push(field.as_ref().clone());
        }
    }
    Ok(fields)
}

/// Counts of one thread, or of all threads.
pub(crate) struct Found {
    counts: Counts,
    rows: u64,
    /// Counts for each address column.
    hits: Vec<Hits>,
    first_unparsable: Option<(u64, String)>,
    /// Rows that are not written.
    left_out: u64,
    first_untimed: Option<(u64, String)>,
}

impl Found {
    fn new(annotator: &ColumnAnnotator, places: usize) -> Self {
        let hits = if annotator.options().top > 0 { places } else { 0 };
        let hits = (0..hits).map(|_| annotator.new_hits()).collect();
        Self {
            counts: Counts::default(),
            rows: 0,
            hits,
            first_unparsable: None,
            first_untimed: None,
            left_out: 0,
        }
    }

    pub(crate) fn summary(self, annotator: &ColumnAnnotator, columns: &KeyColumns) -> Summary {
        let names: Vec<&str> = columns.keys.iter().map(|column| &*column.name).collect();
        let counts = self.counts;
        let (table, additions) = (annotator.table(), annotator.additions());
        let limit = annotator.options().top;
        let top = self.hits.iter().zip(&names);
        let top = top.flat_map(|(hits, name)| hits.top(table, additions, name, limit)).collect();
        Summary {
            rows: self.rows,
            addresses: counts.matched + counts.unmatched,
            v4: counts.v4,
            matched: counts.matched,
            unmatched: counts.unmatched,
            unparsable: counts.unparsable,
            empty: counts.empty,
            left_out: self.left_out,
            before: counts.before,
            untimed: counts.untimed,
            first_untimed: self.first_untimed.map(|(_, fault)| fault),
            first_unparsable: self.first_unparsable.map(|(_, fault)| fault),
            top,
            columns: names.iter().map(|&name| name.to_owned()).collect(),
            ..Summary::default()
        }
    }
}

impl ColumnWork for ColumnAnnotator {
    type Batches = Found;

    fn options(&self) -> &AnnotateOptions {
        self.options()
    }

    fn columns(
        &self,
        schema: &Schema,
        format: LogFormat,
        first: &mut FirstBatch<'_>,
    ) -> Result<KeyColumns, AnnotateError> {
        let keys = places(schema, &self.options().columns, format, first)?;
        Ok(KeyColumns { keys, time: time_place(schema, self.options().time.as_ref())? })
    }

    fn added(&self, schema: &Schema, columns: &KeyColumns) -> Result<Vec<Field>, AnnotateError> {
        added_fields(self, schema, &columns.keys)
    }

    fn batches(&self, columns: &KeyColumns) -> Found {
        Found::new(self, columns.keys.len())
    }

    fn batch_rows(&self) -> Option<usize> {
        self.table().batch()
    }
}

impl BatchWork<ColumnAnnotator> for Found {
    fn batch(
        &mut self,
        annotator: &ColumnAnnotator,
        batch: &RecordBatch,
        columns: &KeyColumns,
        first_row: u64,
        mut matched: Option<&mut [bool]>,
    ) -> Result<Vec<ArrayRef>, AnnotateError> {
        let mut added = Vec::new();
        self.rows += batch.num_rows() as u64;
        let times = columns.time.as_ref().map(|time| time.cells(batch)).transpose()?;
        for (slot, place) in columns.keys.iter().enumerate() {
            let (name, column) = (&place.name, place.cells(batch)?);
            let (hits, matched) = (self.hits.get_mut(slot), matched.as_deref_mut());
            let found = annotator.counted(name, &column, times.as_deref(), hits, matched);
            let found = found.map_err(|error| match error {
                AnnotateError::Cell { row, column, text } => {
                    AnnotateError::Cell { row: row + first_row, column, text }
                }
                AnnotateError::TimeCell { row, column, text } => {
                    AnnotateError::TimeCell { row: row + first_row, column, text }
                }
                other => other,
            })?;
            if let Some((row, text)) = found.first_unparsable {
                let row = row as u64 + first_row;
                if self.first_unparsable.as_ref().is_none_or(|(first, _)| row < *first) {
                    let (row, column) = (row + 1, name.clone());
                    let fault = AnnotateError::Cell { row, column, text };
                    self.first_unparsable = Some((row - 1, fault.to_string()));
                }
            }
            if let Some((row, text)) = found.first_untimed {
                let row = row as u64 + first_row;
                if self.first_untimed.as_ref().is_none_or(|(first, _)| row < *first) {
                    self.first_untimed = Some((row, annotator.untimed(row + 1, &text).to_string()));
                }
            }
            let mut counts = found.counts;
            if slot > 0 {
                // Counts of rows are the same for all address columns.
                (counts.before, counts.untimed) = (0, 0);
            }
            self.counts.add(&counts);
            added.extend(found.columns);
        }
        Ok(added)
    }

    fn leave_out(&mut self, rows: u64) {
        self.left_out += rows;
    }

    fn merge(&mut self, other: &Self) {
        self.counts.add(&other.counts);
        self.rows += other.rows;
        self.left_out += other.left_out;
        self.hits.iter_mut().zip(&other.hits).for_each(|(ours, theirs)| ours.merge(theirs));
        if let Some((row, _)) = &other.first_unparsable
            && self.first_unparsable.as_ref().is_none_or(|(first, _)| row < first)
        {
            self.first_unparsable.clone_from(&other.first_unparsable);
        }
        if let Some((row, _)) = &other.first_untimed
            && self.first_untimed.as_ref().is_none_or(|(first, _)| row < first)
        {
            self.first_untimed.clone_from(&other.first_untimed);
        }
    }
}
