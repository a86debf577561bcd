//! Columns of numbers.

use std::sync::Arc;

use arrow_array::types::{ArrowPrimitiveType, UInt32Type, UInt64Type};
use arrow_array::{ArrayRef, PrimitiveArray};
use arrow_buffer::ScalarBuffer;
use arrow_schema::DataType;
use fibula_core::Value;
use fibula_fib::Columns;

use super::Grow;
use super::rows::{PerRow, Validity};
use crate::AnnotateError;
use crate::added::Substitute;
use crate::pipeline::answers::Answers;

/// The integer of each row, in the narrower type that fits all of them.
#[derive(Debug)]
pub(super) enum Ints {
    Narrow(PerRow<u32>),
    Wide(PerRow<u64>),
}

impl Ints {
    pub(super) fn new(columns: &Columns, column: usize, substitute: Option<&Substitute>) -> Self {
        let substitute = match substitute {
            Some(Substitute::Int(int)) => Some(*int),
            _ => None,
        };
        let int = |value| match value {
            Value::Int(int) => Some(int),
            _ => None,
        };
        let codes = 0..columns.distinct(column);
        let mut values = codes.filter_map(|code| int(columns.decode(column, code as u32)));
        let (rows, value) = (columns.len(), |row| int(columns.value(column, row)));
        let is_narrow = |int: u64| int <= u64::from(u32::MAX);
        if values.all(is_narrow) && substitute.is_none_or(is_narrow) {
            let narrow = |int: u64| int as u32;
            Self::Narrow(PerRow::new(rows, substitute.map(narrow), |row| value(row).map(narrow)))
        } else {
            Self::Wide(PerRow::new(rows, substitute, value))
        }
    }

    pub(super) fn kind(&self) -> DataType {
        match self {
            Self::Narrow(_) => DataType::UInt32,
            Self::Wide(_) => DataType::UInt64,
        }
    }

    pub(super) fn begin(&self, rows: usize) -> Box<dyn Grow + '_> {
        match self {
            Self::Narrow(table) => Box::new(Gather::<UInt32Type>::new(table, rows)),
            Self::Wide(table) => Box::new(Gather::<UInt64Type>::new(table, rows)),
        }
    }
}

/// A column of values that are fetched by row number.
pub(super) struct Gather<'a, T: ArrowPrimitiveType> {
    table: &'a PerRow<T::Native>,
    values: Vec<T::Native>,
    validity: Validity,
}

impl<'a, T: ArrowPrimitiveType> Gather<'a, T> {
    pub(super) fn new(table: &'a PerRow<T::Native>, rows: usize) -> Self {
        Self { table, values: Vec::with_capacity(rows), validity: Validity::default() }
    }

    pub(super) fn add(&mut self, answers: &Answers) {
        let values = self.table.values.as_slice();
        self.values.extend(answers.rows.iter().map(|&row| values[row as usize]));
        self.validity.block(&answers.rows, self.table);
    }

    pub(super) fn array(self) -> PrimitiveArray<T> {
        PrimitiveArray::new(ScalarBuffer::from(self.values), self.validity.finish())
    }
}

impl<T: ArrowPrimitiveType> Grow for Gather<'_, T> {
    fn block(&mut self, answers: &Answers) -> Result<(), AnnotateError> {
        self.add(answers);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<ArrayRef, AnnotateError> {
        Ok(Arc::new(self.array()))
    }
}
