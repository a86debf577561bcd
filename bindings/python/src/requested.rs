//! Columns in the types that other libraries ask for.

use arrow_array::{Array, ArrayRef};
use arrow_cast::{CastOptions, can_cast_types, cast_with_options};
use arrow_schema::{ArrowError, DataType, FieldRef};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use pyo3_arrow::PyField;

use crate::error::ColumnError;

/// The type that is asked for, if one is.
pub fn read(requested: Option<&Bound<'_, PyCapsule>>) -> PyResult<Option<FieldRef>> {
    let field = requested.map(PyField::from_arrow_pycapsule).transpose()?;
    Ok(field.map(PyField::into_inner))
}

/// The column in this type; as it is where there is no conversion, which the library that asks may have.
///
/// # Errors
/// If a value would be another one in that type, or null.
pub fn cast(
    field: &FieldRef,
    chunks: &[ArrayRef],
    wanted: &DataType,
) -> PyResult<(FieldRef, Vec<ArrayRef>)> {
    if field.data_type() == wanted || !can_cast_types(field.data_type(), wanted) {
        return Ok((field.clone(), chunks.to_vec()));
    }
    let cast: Result<Vec<ArrayRef>, _> =
        chunks.iter().map(|chunk| lossless(chunk, wanted)).collect();
    let cast = cast.map_err(|error| {
        let name = field.name();
        ColumnError::new_err(format!(
            "column {name:?} cannot be {wanted}, as was asked for: {error}; it is {}, take it without a type",
            field.data_type()
        ))
    })?;
    Ok((field.as_ref().clone().with_data_type(wanted.clone()).into(), cast))
}

fn lossless(array: &ArrayRef, wanted: &DataType) -> Result<ArrayRef, ArrowError> {
    // Without this, a value that does not fit becomes null.
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let cast = cast_with_options(array, wanted, &options)?;
    // Fractions are cut off, and large integers rounded, without an error.
    let back = cast_with_options(&cast, array.data_type(), &options)?;
    match back.to_data() == array.to_data() {
        true => Ok(cast),
        false => Err(ArrowError::CastError("values would change".to_owned())),
    }
}
