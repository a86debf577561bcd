//! The tables of several dates as a Python object. `fibula.DatedTable` wraps it.

use std::path::PathBuf;

use arrow_array::ArrayRef;
use arrow_schema::DataType;
use fibula_annotate::{Column, PreparedTable};
use fibula_fib::{DatedFib, Dates, Fib, FibOptions, Moment};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::error::{FibulaError, SourceError};
use crate::result::{PyColumns, concat};
use crate::table::{AddOptions, PyTable};
use crate::{address, build, bulk, column, error, records};

/// The open tables of several dates.
#[pyclass(name = "DatedTable", module = "fibula._fibula", frozen)]
pub struct PyDatedTable {
    opened: PreparedTable<DatedFib>,
}

#[pymethods]
impl PyDatedTable {
    /// Opens a file of several dates, mapped or read.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf, load: &str) -> PyResult<Self> {
        let options = FibOptions::default().loading(build::loading(load)?);
        let fib = py.detach(|| DatedFib::open_with(&path, &options));
        Ok(Self { opened: PreparedTable::new(fib.map_err(|error| error::fib(&error))?) })
    }

    /// Of each table: seconds since 1970, its source, and its number of routes.
    fn dates(&self) -> Vec<(i64, &str, u64)> {
        let tables = self.opened.fib.dates().tables().iter();
        tables.map(|table| (table.at.unix(), &*table.source, table.v4 + table.v6)).collect()
    }

    /// Names and kinds of the value columns.
    fn columns(&self) -> Vec<(String, &str)> {
        records::column_types(self.opened.fib.columns())
    }

    /// A copy of the table of a time.
    fn at(&self, py: Python<'_>, time: &str) -> PyResult<PyTable> {
        let time = moment(time)?;
        let dates = self.opened.fib.dates();
        let date = dates.number(time);
        if date == Dates::NONE {
            return Err(SourceError::new_err(match dates.tables().first() {
                Some(first) => format!("no table of {time}: the first is that of {}", first.at),
                None => "there are no tables".to_owned(),
            }));
        }
        let fib = py.detach(|| Fib::of_table(self.opened.fib.table(date), &FibOptions::default()));
        Ok(PyTable::new(PreparedTable::new(fib.map_err(|error| error::fib(&error))?)))
    }

    /// What the longest match of a time says about one address: everything, or the value of one column.
    #[pyo3(signature = (address, time, add=None))]
    fn lookup<'py>(
        &self,
        py: Python<'py>,
        address: &Bound<'py, PyAny>,
        time: &str,
        add: Option<&str>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let fib = &self.opened.fib;
        let found = fib.lookup(address::address(address)?.into(), moment(time)?);
        records::answer(py, found.as_ref(), fib.columns(), add)
    }

    /// The matches of an address over time, each with the seconds since 1970 from which it holds.
    fn history<'py>(
        &self,
        py: Python<'py>,
        address: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        let fib = &self.opened.fib;
        let list = PyList::empty(py);
        for (date, found) in fib.history(address::address(address)?.into()) {
            let since = fib.dates().tables()[usize::from(date)].at.unix();
            let found =
                found.map(|found| records::record(py, &found, fib.columns())).transpose()?;
            list.append((since, found))?;
        }
        Ok(list)
    }

    /// Looks up the addresses of a column, each at the time in the other one.
    #[allow(clippy::too_many_arguments, reason = "they are those of the method")]
    fn lookup_many(
        &self,
        py: Python<'_>,
        name: Option<&str>,
        column: &Bound<'_, PyAny>,
        times: &Bound<'_, PyAny>,
        index: Option<Py<PyAny>>,
        time_format: &str,
        requested: AddOptions,
    ) -> PyResult<PyColumns> {
        let chunks: Vec<ArrayRef> = column::read(column)?;
        // One array, so that it can be cut as the addresses are.
        let times = concat(&column::read(times)?, &DataType::Null)?;
        let rows: usize = chunks.iter().map(|chunk| chunk.len()).sum();
        if times.len() != rows {
            let lengths = format!("{} times for {rows} addresses", times.len());
            return Err(FibulaError::new_err(lengths));
        }
        let mut options = requested.options();
        options.time_format = time_format.parse().map_err(PyValueError::new_err::<&str>)?;
        // Which tables are meant; the times are given as an array.
        options.time = Some(Column::Number(1));
        let added = py.detach(|| {
            let annotator = self.opened.annotator(&options)?;
            bulk::annotate(&annotator, name, &chunks, Some(&times), options.threads, None)
        });
        Ok(PyColumns { added: added.map_err(|error| error::annotate(&error))?, index })
    }
}

fn moment(text: &str) -> PyResult<Moment> {
    text.parse().map_err(PyValueError::new_err::<&str>)
}
