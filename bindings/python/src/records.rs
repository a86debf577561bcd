//! Single answers: a route and its values as a dictionary.

use std::iter;

use fibula_core::AnyPrefix;
use fibula_fib::{Fib, Match, Typed};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::error::{self, ColumnError};

/// What was found, as a record, or the one value that `add` names: of a column of `names`, or the prefix.
pub fn answer<'py, 'a>(
    py: Python<'py>,
    found: Option<&Match<'_>>,
    names: impl Iterator<Item = &'a str>,
    add: Option<&str>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(add) = add else {
        return found.map(|found| Ok(record(py, found)?.into_any())).transpose();
    };
    let known: Vec<&str> =
        iter::once("prefix").chain(names.filter(|&name| name != "prefix")).collect();
    if !known.contains(&add) {
        let text = format!("the table has no column {add:?}; it has: {}", known.join(", "));
        return Err(ColumnError::new_err(text));
    }
    let Some(found) = found else { return Ok(None) };
    if add == "prefix" {
        return found.prefix().map(|prefix| prefix.to_string().into_bound_py_any(py)).transpose();
    }
    let value = found.typed().find(|(name, _)| name == add);
    value.map(|(_, value)| typed(py, value)).transpose()
}

/// The routes that cover the whole prefix, longest first.
pub fn covering<'py>(
    py: Python<'py>,
    fib: &Fib,
    prefix: AnyPrefix,
) -> PyResult<Bound<'py, PyList>> {
    records(py, fib.covering(prefix).map_err(|error| error::fib(&error))?)
}

/// The routes that the prefix covers, itself among them, by address and then by length.
pub fn covered<'py>(py: Python<'py>, fib: &Fib, prefix: AnyPrefix) -> PyResult<Bound<'py, PyList>> {
    records(py, fib.covered(prefix).map_err(|error| error::fib(&error))?)
}

/// Routes as a list of dictionaries.
pub fn records<'py, 'a>(
    py: Python<'py>,
    found: impl IntoIterator<Item = Match<'a>>,
) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for found in found {
        list.append(record(py, &found)?)?;
    }
    Ok(list)
}

/// `{"prefix": "192.0.2.0/24", "country": "CH", ...}`. A column of the table may itself be called
/// "prefix": the matched one is meant then.
pub fn record<'py>(py: Python<'py>, found: &Match<'_>) -> PyResult<Bound<'py, PyDict>> {
    let record = PyDict::new(py);
    record.set_item("prefix", found.prefix().map(|prefix| prefix.to_string()))?;
    for (name, value) in found.typed().filter(|(name, _)| name != "prefix") {
        record.set_item(name, typed(py, value)?)?;
    }
    Ok(record)
}

fn typed<'py>(py: Python<'py>, value: Typed<'_>) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Typed::Null => Ok(py.None().into_bound(py)),
        Typed::Int(int) => int.into_bound_py_any(py),
        Typed::Float(float) => float.into_bound_py_any(py),
        Typed::Bool(is) => is.into_bound_py_any(py),
        Typed::Str(text) => text.into_bound_py_any(py),
    }
}
