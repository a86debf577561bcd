//! Columns of floats and booleans, for table columns that have only such values.

use std::sync::Arc;

use arrow_array::types::Float64Type;
use arrow_array::{ArrayRef, BooleanArray};
use arrow_buffer::BooleanBuffer;
use fibula_core::Value;
use fibula_fib::{Columns, Typed};

use super::Grow;
use super::numbers::Gather;
use super::rows::{PerRow, Validity};
use crate::AnnotateError;
use crate::added::Substitute;
use crate::pipeline::answers::Answers;

/// The float of each row.
#[derive(Debug)]
pub(super) struct Floats(PerRow<f64>);

/// The boolean of each row.
#[derive(Debug)]
pub(super) struct Bools(PerRow<bool>);

/// The default for addresses that no route covers. Its type was already checked.
fn default(substitute: Option<&Substitute>) -> Value<'_> {
    match substitute {
        Some(Substitute::Str(text)) => Value::Str(text),
        Some(Substitute::Int(int)) => Value::Int(*int),
        None => Value::Null,
    }
}

impl Floats {
    pub(super) fn are_of(columns: &Columns, column: usize) -> bool {
        columns.type_name(column) == "float" && columns.is_whole(column)
    }

    pub(super) fn new(columns: &Columns, column: usize, substitute: Option<&Substitute>) -> Self {
        let float = |value| match columns.typed(column, value) {
            Typed::Float(float) => Some(float),
            _ => None,
        };
        let substitute = float(default(substitute));
        Self(PerRow::new(columns.len(), substitute, |row| float(columns.value(column, row))))
    }

    pub(super) fn begin(&self, rows: usize) -> Box<dyn Grow + '_> {
        Box::new(Gather::<Float64Type>::new(&self.0, rows))
    }
}

impl Bools {
    pub(super) fn are_of(columns: &Columns, column: usize) -> bool {
        columns.type_name(column) == "bool" && columns.is_whole(column)
    }

    pub(super) fn new(columns: &Columns, column: usize, substitute: Option<&Substitute>) -> Self {
        let bool = |value| match columns.typed(column, value) {
            Typed::Bool(is) => Some(is),
            _ => None,
        };
        let substitute = bool(default(substitute));
        Self(PerRow::new(columns.len(), substitute, |row| bool(columns.value(column, row))))
    }

    pub(super) fn begin(&self, rows: usize) -> Box<dyn Grow + '_> {
        let (values, validity) = (Vec::with_capacity(rows), Validity::default());
        Box::new(Growing { table: &self.0, values, validity })
    }
}

/// A column of booleans that are fetched by row number.
struct Growing<'a> {
    table: &'a PerRow<bool>,
    values: Vec<bool>,
    validity: Validity,
}

impl Grow for Growing<'_> {
    fn block(&mut self, answers: &Answers) -> Result<(), AnnotateError> {
        self.values.extend(answers.rows.iter().map(|&row| self.table.values[row as usize]));
        self.validity.block(&answers.rows, self.table);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<ArrayRef, AnnotateError> {
        let values = BooleanBuffer::from(self.values);
        Ok(Arc::new(BooleanArray::new(values, self.validity.finish())))
    }
}
