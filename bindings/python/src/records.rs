//! Single answers: a route and its values as a dictionary.

use fibula_annotate::Address;
use fibula_core::AnyPrefix;
use fibula_fib::{Fib, Match, Typed};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::error;

/// What the longest matching prefix says about an address.
pub fn lookup<'py>(
    py: Python<'py>,
    fib: &Fib,
    address: Address,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    fib.lookup(address.into()).map(|found| record(py, &found)).transpose()
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
        match value {
            Typed::Null => record.set_item(name, py.None())?,
            Typed::Int(int) => record.set_item(name, int)?,
            Typed::Float(float) => record.set_item(name, float)?,
            Typed::Bool(is) => record.set_item(name, is)?,
            Typed::Str(text) => record.set_item(name, text)?,
        }
    }
    Ok(record)
}
