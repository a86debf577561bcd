//! Values of added columns as Python objects.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, UInt8Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyList};

use crate::error::FibulaError;

/// Appends the values of an array of one of the types that are added.
pub fn append(list: &Bound<'_, PyList>, array: &ArrayRef) -> PyResult<()> {
    for row in 0..array.len() {
        list.append(value(list.py(), array, row)?)?;
    }
    Ok(())
}

pub fn value<'py>(py: Python<'py>, array: &ArrayRef, row: usize) -> PyResult<Bound<'py, PyAny>> {
    if array.is_null(row) {
        return Ok(py.None().into_bound(py));
    }
    match array.data_type() {
        DataType::UInt8 => array.as_primitive::<UInt8Type>().value(row).into_bound_py_any(py),
        DataType::UInt32 => array.as_primitive::<UInt32Type>().value(row).into_bound_py_any(py),
        DataType::UInt64 => array.as_primitive::<UInt64Type>().value(row).into_bound_py_any(py),
        DataType::Float64 => array.as_primitive::<Float64Type>().value(row).into_bound_py_any(py),
        DataType::Boolean => array.as_boolean().value(row).into_bound_py_any(py),
        DataType::Utf8 => array.as_string::<i32>().value(row).into_bound_py_any(py),
        DataType::Binary => array.as_binary::<i32>().value(row).into_bound_py_any(py),
        DataType::Dictionary(..) => {
            let dictionary = array.as_dictionary::<Int32Type>();
            let code = dictionary.keys().value(row) as usize;
            dictionary.values().as_string::<i32>().value(code).into_bound_py_any(py)
        }
        DataType::List(_) => {
            let list = PyList::empty(py);
            append(&list, &array.as_list::<i32>().value(row))?;
            Ok(list.into_any())
        }
        DataType::LargeList(_) => {
            let list = PyList::empty(py);
            append(&list, &array.as_list::<i64>().value(row))?;
            Ok(list.into_any())
        }
        kind => Err(FibulaError::new_err(format!("no Python values for type {kind}"))),
    }
}

/// The values of chunks of numbers as memory of NumPy's, and its name of their type: nulls make fractions of integers,
/// with NaN. `None` for what NumPy has in objects: text, lists, 64-bit integers and booleans with nulls.
pub fn numbers<'py>(
    py: Python<'py>,
    chunks: &[ArrayRef],
    kind: &DataType,
) -> PyResult<Option<(Bound<'py, PyByteArray>, &'static str)>> {
    let nulls = chunks.iter().any(|chunk| chunk.null_count() > 0);
    macro_rules! bytes {
        ($kind:ty, $name:literal) => {{
            let values = chunks.iter().map(|chunk| chunk.as_primitive::<$kind>());
            (
                collected(
                    py,
                    values.flat_map(|chunk| chunk.values().iter().map(|v| v.to_ne_bytes())),
                )?,
                $name,
            )
        }};
    }
    macro_rules! fractions {
        ($kind:ty) => {{
            let values = chunks.iter().map(|chunk| chunk.as_primitive::<$kind>());
            let values = values.flat_map(|chunk| chunk.iter());
            (collected(py, values.map(|v| v.map_or(f64::NAN, f64::from).to_ne_bytes()))?, "float64")
        }};
    }
    Ok(Some(match (kind, nulls) {
        (DataType::UInt8, false) => bytes!(UInt8Type, "uint8"),
        (DataType::UInt32, false) => bytes!(UInt32Type, "uint32"),
        (DataType::UInt64, false) => bytes!(UInt64Type, "uint64"),
        (DataType::UInt8, true) => fractions!(UInt8Type),
        (DataType::UInt32, true) => fractions!(UInt32Type),
        (DataType::Float64, _) => fractions!(Float64Type),
        (DataType::Boolean, false) => {
            let values = chunks.iter().map(|chunk| chunk.as_boolean());
            (
                collected(
                    py,
                    values.flat_map(|chunk| chunk.values().iter().map(|is| [u8::from(is)])),
                )?,
                "bool",
            )
        }
        _ => return Ok(None),
    }))
}

fn collected<const N: usize>(
    py: Python<'_>,
    values: impl Iterator<Item = [u8; N]>,
) -> PyResult<Bound<'_, PyByteArray>> {
    Ok(PyByteArray::new(py, &values.flatten().collect::<Vec<u8>>()))
}
