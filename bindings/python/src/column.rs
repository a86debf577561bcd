//! Python objects as Arrow columns of addresses.

use std::fmt::Write as _;
use std::sync::Arc;

use arrow_array::builder::LargeStringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt8Type;
use arrow_array::{
    Array, ArrayRef, FixedSizeBinaryArray, FixedSizeListArray, LargeStringArray, UInt8Array,
};
use arrow_schema::{ArrowError, DataType};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyList, PyString};
use pyo3_arrow::input::AnyArray;

use crate::address;
use crate::error::{ACCEPTED, FibulaError};

/// The chunks of a column. Arrow data and buffers (NumPy) are taken as they lie in memory, lists are
/// copied as text.
pub fn read(object: &Bound<'_, PyAny>) -> PyResult<Vec<ArrayRef>> {
    if let Ok(list) = object.cast::<PyList>() {
        return Ok(vec![from_list(list)?]);
    }
    let column: AnyArray = object.extract()?;
    let chunks: Result<Vec<ArrayRef>, ArrowError> = column.into_reader()?.collect();
    let chunks = chunks.map_err(|error| FibulaError::new_err(error.to_string()))?;
    chunks.into_iter().map(rows_of_bytes).collect()
}

/// Rows of single bytes, as NumPy has them, are rows of bytes.
fn rows_of_bytes(chunk: ArrayRef) -> PyResult<ArrayRef> {
    let DataType::FixedSizeList(item, width) = chunk.data_type() else { return Ok(chunk) };
    if item.data_type() != &DataType::UInt8 {
        return Ok(chunk);
    }
    let list = chunk.as_fixed_size_list();
    let bytes = list.values().as_primitive::<UInt8Type>();
    if bytes.null_count() > 0 && matches!(width, 4 | 16) {
        return Ok(Arc::new(with_gaps(list, bytes, *width as usize)));
    }
    let bytes = bytes.values().inner().clone();
    let rows = FixedSizeBinaryArray::try_new(*width, bytes, list.nulls().cloned());
    Ok(Arc::new(rows.map_err(|error| FibulaError::new_err(error.to_string()))?))
}

/// Rows some of whose bytes are null, as text: without a byte a row is no address, and without all of them it is null.
fn with_gaps(list: &FixedSizeListArray, bytes: &UInt8Array, width: usize) -> LargeStringArray {
    let mut texts = LargeStringBuilder::with_capacity(list.len(), list.len() * 14);
    let mut buffer = String::new();
    for row in 0..list.len() {
        let of_row = bytes.slice(row * width, width);
        let known: Vec<u8> = of_row.iter().flatten().collect();
        if list.is_null(row) || known.is_empty() {
            texts.append_null();
        } else if let Some(address) = address::from_bytes(&known).filter(|_| known.len() == width) {
            append(&mut texts, &mut buffer, address);
        } else {
            let shown = of_row.iter().map(|byte| byte.map_or("null".into(), |b| b.to_string()));
            let shown: Vec<String> = shown.collect();
            append(&mut texts, &mut buffer, format_args!("[{}]", shown.join(", ")));
        }
    }
    texts.finish()
}

/// The items as text: what is missing (`None`, NaN, `pandas.NA`) is null.
fn from_list(list: &Bound<'_, PyList>) -> PyResult<ArrayRef> {
    let mut texts = LargeStringBuilder::with_capacity(list.len(), list.len() * 14);
    let mut ip = String::new();
    for (row, item) in list.iter().enumerate() {
        if let Ok(text) = item.cast::<PyString>() {
            // A lone surrogate, which has no UTF-8, is in no address.
            texts.append_value(text.to_string_lossy());
        } else if is_missing(&item)? {
            texts.append_null();
        } else if address::is_ip(&item)? {
            texts.append_value(item.str()?.to_str()?);
        } else if let Some(bytes) = address::bytes(&item)? {
            match address::from_bytes(&bytes) {
                Some(address) => append(&mut texts, &mut ip, address),
                None => append(&mut texts, &mut ip, format_args!("{} bytes", bytes.len())),
            }
        } else {
            match address::number(&item) {
                Ok(Some(address)) => append(&mut texts, &mut ip, address),
                Ok(None) => {
                    let kind = item.get_type();
                    return Err(PyTypeError::new_err(format!(
                        "item {row} is {}, which is no address; {ACCEPTED}",
                        kind.name()?
                    )));
                }
                // Out of range: counted and shown as what it is.
                Err(_) => append(&mut texts, &mut ip, &item),
            }
        }
    }
    Ok(Arc::new(texts.finish()))
}

fn append(texts: &mut LargeStringBuilder, buffer: &mut String, text: impl std::fmt::Display) {
    buffer.clear();
    // Writing to a string does not fail.
    let _ = write!(buffer, "{text}");
    texts.append_value(&*buffer);
}

fn is_missing(item: &Bound<'_, PyAny>) -> PyResult<bool> {
    if item.is_none() {
        return Ok(true);
    }
    if let Ok(float) = item.cast::<PyFloat>() {
        return Ok(float.extract::<f64>()?.is_nan());
    }
    // pandas.NA and pandas.NaT, without importing pandas.
    Ok(matches!(item.get_type().name()?.to_str()?, "NAType" | "NaTType"))
}
