//! Cells of Python's rows: as values of a column, and as the text of an address.

use std::borrow::Cow;

use fibula_core::{ScalarType, Value};
use fibula_ingest::ColumnKind;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyList, PyString};

use crate::address;
use crate::error::ColumnError;

/// What a column holds, by the rule of text: integers, fractions and booleans if all values are, else text. Text stays
/// text, also if it looks like a number.
#[derive(Clone, Copy, PartialEq)]
pub enum ColumnType {
    Int,
    /// Fractions and negative integers, which tables keep as text with a type, as they keep booleans.
    Double,
    Bool,
    Str,
}

impl ColumnType {
    pub fn of(values: &Bound<'_, PyList>) -> PyResult<Self> {
        let (mut bools, mut fractions, mut rounded) = (false, false, false);
        for value in values.iter().filter(|value| !value.is_none()) {
            if value.is_instance_of::<PyString>() {
                return Ok(Self::Str);
            } else if value.is_instance_of::<PyBool>() {
                bools = true;
            } else if let Ok(int) = value.extract::<u64>() {
                rounded |= int as f64 as u64 != int;
            } else if let Some(text) = number(&value)? {
                // As text, it would be text.
                if !text.parse::<f64>().is_ok_and(|n| n.is_finite() && n.to_string() == text) {
                    return Ok(Self::Str);
                }
                fractions = true;
            }
        }
        Ok(match (bools, fractions) {
            (true, _) => Self::Bool,
            (false, true) if rounded => Self::Str,
            (false, true) => Self::Double,
            (false, false) => Self::Int,
        })
    }

    pub fn kind(self) -> ColumnKind {
        if self == Self::Int { ColumnKind::Int } else { ColumnKind::Str }
    }

    pub fn scalar(self) -> Option<ScalarType> {
        match self {
            Self::Double => Some(ScalarType::Double),
            Self::Bool => Some(ScalarType::Bool),
            Self::Int | Self::Str => None,
        }
    }
}

/// The value of a cell.
pub enum Cell<'a> {
    Null,
    Int(u64),
    Text(Cow<'a, str>),
}

impl Cell<'_> {
    pub fn value(&self) -> Value<'_> {
        match self {
            Self::Null => Value::Null,
            Self::Int(int) => Value::Int(*int),
            Self::Text(text) => Value::Str(text),
        }
    }
}

/// The value of a cell of a column.
///
/// # Errors
/// If it is no value that a column can have.
pub fn cell<'a>(
    name: &str,
    kind: ColumnType,
    row: usize,
    item: &'a Bound<'_, PyAny>,
) -> PyResult<Cell<'a>> {
    if item.is_none() {
        return Ok(Cell::Null);
    }
    if let Ok(text) = item.cast::<PyString>() {
        let refused = |_| ColumnError::new_err(format!("column {name:?}, row {row}: not UTF-8"));
        return text.to_str().map(|text| Cell::Text(text.into())).map_err(refused);
    }
    match item.cast::<PyBool>() {
        Ok(is) => return Ok(Cell::Text(if is.is_true() { "true" } else { "false" }.into())),
        Err(_) if kind == ColumnType::Bool => {
            return Err(ColumnError::new_err(format!(
                "column {name:?}, row {row}: {} in a column that also has True or False: make all of them bool, \
                 int or str",
                item.repr()?
            )));
        }
        Err(_) => {}
    }
    if let Ok(int) = item.extract::<u64>() {
        return Ok(Cell::Int(int));
    }
    match number(item)? {
        Some(text) => Ok(Cell::Text(text.into())),
        None => Err(ColumnError::new_err(format!(
            "column {name:?}, row {row}: {} is neither a str nor a number nor a bool nor a date nor None",
            item.repr()?
        ))),
    }
}

/// A number as text; `None` for what is none.
fn number(item: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    if let Ok(float) = item.cast::<PyFloat>() {
        return Ok(Some(float.value().to_string()));
    }
    Ok(if item.is_instance_of::<PyInt>() { Some(item.str()?.to_string()) } else { None })
}

/// A cell as text that may hold addresses. Bytes are addresses; numbers are only if a caller says so.
pub fn key_text(item: &Bound<'_, PyAny>, numbers: bool) -> PyResult<Vec<u8>> {
    if let Ok(text) = item.cast::<PyString>() {
        return Ok(text.to_string_lossy().trim_ascii().as_bytes().to_vec());
    }
    if item.is_none() {
        return Ok(Vec::new());
    }
    let number = if numbers { address::number(item).ok().flatten() } else { None };
    let address = match address::bytes(item)? {
        Some(bytes) => address::from_bytes(&bytes),
        None => number,
    };
    let text = match address {
        Some(address) => address.to_string(),
        None => item.str()?.to_string_lossy().into_owned(),
    };
    Ok(text.into_bytes())
}
