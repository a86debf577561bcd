//! Single answers: a route and its values as a dictionary.
//!
//! A column of the table that is called like what answers have themselves gets a number, as in every output:
//! [`Columns::names_beside`].

use std::iter;

use fibula_core::AnyPrefix;
use fibula_fib::{Fib, Match, Typed};
use fibula_rib::Columns;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::error::{self, ColumnError};

/// What answers have themselves.
const OWN: &[&str] = &["prefix", "covering"];

/// What was found, as a record, or the one value that `add` names: of a column, or the prefix.
pub fn answer<'py>(
    py: Python<'py>,
    found: Option<&Match<'_>>,
    columns: &Columns,
    add: Option<&str>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(add) = add else {
        return found.map(|found| Ok(record(py, found, columns)?.into_any())).transpose();
    };
    if add == "prefix" {
        let prefix = found.and_then(|found| found.prefix());
        return prefix.map(|prefix| prefix.to_string().into_bound_py_any(py)).transpose();
    }
    let names = columns.names_beside(OWN);
    let column = names.iter().position(|name| name == add).ok_or_else(|| {
        let known: Vec<&str> = iter::once("prefix").chain(names.iter().map(|n| &**n)).collect();
        ColumnError::new_err(format!(
            "the table has no column {add:?}; it has: {}",
            known.join(", ")
        ))
    })?;
    let value = found.and_then(|found| found.typed().nth(column));
    value.map(|(_, value)| typed(py, value)).transpose()
}

/// Names and types of the value columns.
pub fn column_types(columns: &Columns) -> Vec<(String, &str)> {
    let names = columns.names_beside(OWN).into_iter().enumerate();
    names.map(|(at, name)| (name, columns.type_name(at))).collect()
}

/// Conditions on columns by the names that these have in the table.
pub fn conditions(
    columns: &Columns,
    mut conditions: Vec<(String, Option<String>)>,
) -> Vec<(String, Option<String>)> {
    let beside = columns.names_beside(OWN);
    for (name, _) in &mut conditions {
        if let Some((raw, _)) = columns.names().zip(&beside).find(|(_, beside)| *beside == name) {
            *name = raw.to_owned();
        }
    }
    conditions
}

/// The routes that cover the whole prefix, longest first.
pub fn covering<'py>(
    py: Python<'py>,
    fib: &Fib,
    prefix: AnyPrefix,
) -> PyResult<Bound<'py, PyList>> {
    records(py, fib.covering(prefix).map_err(|error| error::fib(&error))?, fib.columns())
}

/// The routes that the prefix covers, itself among them, by address and then by length.
pub fn covered<'py>(py: Python<'py>, fib: &Fib, prefix: AnyPrefix) -> PyResult<Bound<'py, PyList>> {
    records(py, fib.covered(prefix).map_err(|error| error::fib(&error))?, fib.columns())
}

/// Routes as a list of dictionaries.
pub fn records<'py, 'a>(
    py: Python<'py>,
    found: impl IntoIterator<Item = Match<'a>>,
    columns: &Columns,
) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for found in found {
        list.append(record(py, &found, columns)?)?;
    }
    Ok(list)
}

/// `{"prefix": "192.0.2.0/24", "country": "CH", ...}`.
pub fn record<'py>(
    py: Python<'py>,
    found: &Match<'_>,
    columns: &Columns,
) -> PyResult<Bound<'py, PyDict>> {
    let record = PyDict::new(py);
    record.set_item("prefix", found.prefix().map(|prefix| prefix.to_string()))?;
    for (at, (name, value)) in found.typed().enumerate() {
        let value = typed(py, value)?;
        match OWN.contains(&&*name) {
            true => record.set_item(&columns.names_beside(OWN)[at], value)?,
            false => record.set_item(name, value)?,
        }
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
