//! Single answers: a route and its values as a dictionary.

use fibula_annotate::Address;
use fibula_core::{AnyPrefix, Prefix, Route, Value};
use fibula_rib::{Snapshot, StoredFamily};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// What the longest matching prefix says about an address.
pub fn lookup<'py>(
    py: Python<'py>,
    snapshot: &Snapshot,
    address: Address,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    fn one<'py, A: StoredFamily>(
        py: Python<'py>,
        snapshot: &Snapshot,
        addr: A,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        let stored = snapshot.family::<A>();
        stored.matched(addr).map(|route| record(py, snapshot, stored.get(route))).transpose()
    }
    match address {
        Address::V4(addr) => one(py, snapshot, addr),
        Address::V6(addr) => one(py, snapshot, addr),
    }
}

/// The routes that cover the whole prefix, longest first.
pub fn covering<'py>(
    py: Python<'py>,
    snapshot: &Snapshot,
    prefix: AnyPrefix,
) -> PyResult<Bound<'py, PyList>> {
    fn family<'py, A: StoredFamily>(
        py: Python<'py>,
        snapshot: &Snapshot,
        prefix: Prefix<A>,
    ) -> PyResult<Bound<'py, PyList>> {
        let stored = snapshot.family::<A>();
        let list = PyList::empty(py);
        for route in stored.covering(prefix.addr()).map(|route| stored.get(route)) {
            // Longer ones that begin at the same address do not cover the whole prefix.
            if route.prefix.covers(prefix) {
                list.append(record(py, snapshot, route)?)?;
            }
        }
        Ok(list)
    }
    match prefix {
        AnyPrefix::V4(prefix) => family(py, snapshot, prefix),
        AnyPrefix::V6(prefix) => family(py, snapshot, prefix),
    }
}

/// The routes that the prefix covers, itself among them, by address and then by length.
pub fn covered<'py>(
    py: Python<'py>,
    snapshot: &Snapshot,
    prefix: AnyPrefix,
) -> PyResult<Bound<'py, PyList>> {
    fn family<'py, A: StoredFamily>(
        py: Python<'py>,
        snapshot: &Snapshot,
        prefix: Prefix<A>,
    ) -> PyResult<Bound<'py, PyList>> {
        let stored = snapshot.family::<A>();
        let list = PyList::empty(py);
        // Sorted as prefixes are: what a prefix covers follows it without a gap.
        let (mut first, mut last) = (0, stored.len());
        while first < last {
            let middle = first + (last - first) / 2;
            if stored.get(middle).prefix < prefix {
                first = middle + 1;
            } else {
                last = middle;
            }
        }
        let routes = (first..stored.len()).map(|route| stored.get(route));
        for route in routes.take_while(|route| prefix.covers(route.prefix)) {
            list.append(record(py, snapshot, route)?)?;
        }
        Ok(list)
    }
    match prefix {
        AnyPrefix::V4(prefix) => family(py, snapshot, prefix),
        AnyPrefix::V6(prefix) => family(py, snapshot, prefix),
    }
}

/// `{"prefix": "192.0.2.0/24", "country": "CH", ...}`. A column of the table may itself be called
/// "prefix": the matched one is meant then.
fn record<'py, A: StoredFamily>(
    py: Python<'py>,
    snapshot: &Snapshot,
    route: Route<A>,
) -> PyResult<Bound<'py, PyDict>> {
    let record = PyDict::new(py);
    let columns = snapshot.columns();
    record.set_item("prefix", Prefix::to_string(&route.prefix))?;
    for (column, name) in columns.names().enumerate().filter(|(_, name)| *name != "prefix") {
        match route.hop.index().map_or(Value::Null, |row| columns.value(column, row)) {
            Value::Null => record.set_item(name, py.None())?,
            Value::Int(int) => record.set_item(name, int)?,
            Value::Str(text) => record.set_item(name, text)?,
        }
    }
    Ok(record)
}
