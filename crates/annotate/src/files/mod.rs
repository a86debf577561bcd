//! Files of columns: Parquet and Arrow IPC.
//!
//! All columns of the input come out as they are, with the added ones behind them.

mod guard;
mod ipc;
mod pages;
mod parquet;
mod shared;
mod table;

pub use self::guard::panic_is_caught;
pub use self::table::ParquetRows;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_schema::{DataType, Field, Schema};

use crate::columns::{ColumnAnnotator, Counts, keys, times};
use crate::formats::SAMPLE_ROWS;
use crate::hits::Hits;
use crate::{Address, AnnotateError, Column, LogFormat, Summary};

/// How far a file has come.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Progress {
    /// Rows that were written.
    pub rows: u64,
    /// Rows that there are, if that is known.
    pub total: Option<u64>,
}

/// The places of the columns with addresses among the fields of a file.
pub(crate) fn places(
    schema: &Schema,
    columns: &[Column],
    format: LogFormat,
    first: impl FnOnce() -> Result<Option<RecordBatch>, AnnotateError>,
) -> Result<Vec<usize>, AnnotateError> {
    let mut found = Vec::new();
    for column in columns {
        let place = place(schema, column)?;
        if found.contains(&place) {
            return Err(AnnotateError::Twice { name: schema.field(place).name().clone() });
        }
        let kind = schema.field(place).data_type();
        if !keys::is_supported(kind) {
            return Err(AnnotateError::Type { kind: kind.to_string() });
        }
        found.push(place);
    }
    if columns.is_empty()
        && let Some(batch) = first()?
    {
        let named = |column: &usize| {
            batch
                .schema_ref()
                .index_of(schema.field(*column).name())
                .is_ok_and(|at| has_addresses(&batch, at))
        };
        found.extend((0..schema.fields().len()).filter(named));
    }
    if found.is_empty() {
        return Err(AnnotateError::NoColumn { format });
    }
    Ok(found)
}

/// The place of the column of times, if there is one.
pub(crate) fn time_place(
    schema: &Schema,
    time: Option<&Column>,
) -> Result<Option<usize>, AnnotateError> {
    let Some(column) = time else { return Ok(None) };
    let place = place(schema, column)?;
    times::check_type(schema.field(place).data_type())?;
    Ok(Some(place))
}

/// The place of a column among the fields of a file.
fn place(schema: &Schema, column: &Column) -> Result<usize, AnnotateError> {
    match column {
        Column::Name(name) => schema.index_of(name).map_err(|_| {
            let known = schema.fields().iter().map(|field| field.name().clone()).collect();
            AnnotateError::UnknownColumn { name: name.clone(), known }
        }),
        Column::Number(number) if (1..=schema.fields().len()).contains(number) => Ok(number - 1),
        Column::Number(number) => {
            let (number, fields) = (*number, schema.fields().len());
            Err(AnnotateError::ColumnNumber { number, fields })
        }
    }
}

/// Whether a column's type is one whose content tells that it has addresses.
pub(crate) fn is_text(kind: &DataType) -> bool {
    match kind {
        DataType::Dictionary(_, values) => is_text(values),
        kind => matches!(kind, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View),
    }
}

/// Whether a column is of text of which, in the first rows, at least half are addresses; empty cells
/// aside.
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
        addresses += usize::from(Address::parse(text.trim().as_bytes()).is_some());
    }
    addresses > 0 && 2 * addresses >= filled
}

/// The fields that are added, for all columns of addresses.
pub(crate) fn added_fields(
    annotator: &ColumnAnnotator,
    schema: &Schema,
    places: &[usize],
) -> Result<Vec<Field>, AnnotateError> {
    let mut fields: Vec<Field> = Vec::new();
    for &place in places {
        for field in annotator.fields(schema.field(place).name()) {
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

/// What is counted on the way, by one thread or by all.
pub(crate) struct Found {
    counts: Counts,
    rows: u64,
    /// By column of addresses.
    hits: Vec<Hits>,
    first_unparsable: Option<(u64, String)>,
    first_untimed: Option<(u64, String)>,
}

impl Found {
    pub(crate) fn new(annotator: &ColumnAnnotator, places: usize) -> Self {
        let hits = if annotator.options().top > 0 { places } else { 0 };
        let hits = (0..hits).map(|_| annotator.new_hits()).collect();
        Self {
            counts: Counts::default(),
            rows: 0,
            hits,
            first_unparsable: None,
            first_untimed: None,
        }
    }

    /// Annotates the columns of a batch, whose first row is `first_row`, counted from 0.
    pub(crate) fn batch(
        &mut self,
        annotator: &ColumnAnnotator,
        batch: &RecordBatch,
        places: impl Iterator<Item = usize>,
        time: Option<usize>,
        first_row: u64,
    ) -> Result<Vec<arrow_array::ArrayRef>, AnnotateError> {
        let mut added = Vec::new();
        self.rows += batch.num_rows() as u64;
        for (slot, place) in places.enumerate() {
            let schema = batch.schema_ref();
            let name = schema.field(place).name();
            let column = batch.column(place);
            let times = time.map(|place| &**batch.column(place));
            let found = annotator.counted(name, column, times, self.hits.get_mut(slot));
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
                // Rows, not cells: the same for all columns of addresses.
                (counts.before, counts.untimed) = (0, 0);
            }
            self.counts.add(&counts);
            added.extend(found.columns);
        }
        Ok(added)
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.counts.add(&other.counts);
        self.rows += other.rows;
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

    pub(crate) fn summary(self, annotator: &ColumnAnnotator, names: &[&str]) -> Summary {
        let counts = self.counts;
        let (table, additions) = (annotator.table(), annotator.additions());
        let limit = annotator.options().top;
        let top = self.hits.iter().zip(names);
        let top = top.flat_map(|(hits, name)| hits.top(table, additions, name, limit)).collect();
        Summary {
            rows: self.rows,
            addresses: counts.matched + counts.unmatched,
            v4: counts.v4,
            matched: counts.matched,
            unmatched: counts.unmatched,
            unparsable: counts.unparsable,
            empty: counts.empty,
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
