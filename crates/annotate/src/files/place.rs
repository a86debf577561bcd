//! Finds address columns among the fields of a file: at the top level, or inside structures.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, make_array};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field, Fields, Schema};

use super::{has_addresses, keys};
use crate::columns::times;
use crate::{AnnotateError, Column, LogFormat};

/// The position of an address column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ColumnPosition {
    /// The number of the top-level field.
    pub(crate) root: usize,
    /// The numbers of the fields within structures, outermost first.
    path: Vec<usize>,
    /// The name, with dots between nested fields.
    pub(crate) name: String,
    pub(crate) kind: DataType,
}

impl ColumnPosition {
    pub(crate) fn at_top(root: usize, schema: &Schema) -> Self {
        let field = schema.field(root);
        Self { root, path: Vec::new(), name: field.name().clone(), kind: field.data_type().clone() }
    }

    /// Finds a column by its name, or by a path with dots that lead into structures.
    fn named(schema: &Schema, name: &str) -> Option<Self> {
        let (mut path, field) = find(schema.fields(), name)?;
        let root = path.remove(0);
        Some(Self { root, path, name: name.to_owned(), kind: field.data_type().clone() })
    }

    /// The same column in batches with other top-level fields.
    pub(crate) fn in_batch(&self, root: usize) -> Self {
        Self { root, ..self.clone() }
    }

    /// The cells. They are null where a structure around them is null.
    pub(crate) fn cells(&self, batch: &RecordBatch) -> Result<ArrayRef, AnnotateError> {
        let mut cells = Arc::clone(batch.column(self.root));
        for &field in &self.path {
            let outer = cells.as_struct();
            let inner = Arc::clone(outer.column(field));
            cells = match NullBuffer::union(outer.nulls(), inner.nulls()) {
                Some(nulls) if outer.nulls().is_some() && *inner.data_type() != DataType::Null => {
                    make_array(inner.to_data().into_builder().nulls(Some(nulls)).build()?)
                }
                _ => inner,
            };
        }
        Ok(cells)
    }
}

/// Finds the field with this name, or the field before a dot. A field with the whole name is preferred.
fn find<'f>(fields: &'f Fields, name: &str) -> Option<(Vec<usize>, &'f Arc<Field>)> {
    if let Some((at, field)) = fields.find(name) {
        return Some((vec![at], field));
    }
    name.match_indices('.').find_map(|(dot, _)| {
        let (at, field) = fields.find(&name[..dot])?;
        let DataType::Struct(inner) = field.data_type() else { return None };
        let (mut path, field) = find(inner, &name[dot + 1..])?;
        path.insert(0, at);
        Some((path, field))
    })
}

/// The address columns: the chosen ones, or the text columns that the batch `first` shows to have addresses.
pub(crate) fn places(
    schema: &Schema,
    columns: &[Column],
    format: LogFormat,
    first: impl FnOnce() -> Result<Option<RecordBatch>, AnnotateError>,
) -> Result<Vec<ColumnPosition>, AnnotateError> {
    let mut found: Vec<ColumnPosition> = Vec::new();
    for column in columns {
        let place = place(schema, column)?;
        if found.contains(&place) {
            return Err(AnnotateError::Twice { name: place.name });
        }
        if !keys::is_supported(&place.kind) {
            return Err(AnnotateError::Type { kind: place.kind.to_string() });
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
        let tops = (0..schema.fields().len()).filter(named);
        found.extend(tops.map(|root| ColumnPosition::at_top(root, schema)));
    }
    if found.is_empty() {
        return Err(AnnotateError::NoColumn { format });
    }
    Ok(found)
}

/// The column of times, if there is one.
pub(crate) fn time_place(
    schema: &Schema,
    time: Option<&Column>,
) -> Result<Option<ColumnPosition>, AnnotateError> {
    let Some(column) = time else { return Ok(None) };
    let place = place(schema, column)?;
    times::check_type(&place.kind)?;
    Ok(Some(place))
}

/// The position of a column.
fn place(schema: &Schema, column: &Column) -> Result<ColumnPosition, AnnotateError> {
    match column {
        Column::Name(name) => ColumnPosition::named(schema, name).ok_or_else(|| {
            let known = schema.fields().iter().map(|field| field.name().clone()).collect();
            AnnotateError::UnknownColumn { name: name.clone(), known }
        }),
        Column::Number(number) if (1..=schema.fields().len()).contains(number) => {
            Ok(ColumnPosition::at_top(number - 1, schema))
        }
        Column::Number(number) => {
            let (number, fields) = (*number, schema.fields().len());
            Err(AnnotateError::ColumnNumber { number, fields })
        }
    }
}
