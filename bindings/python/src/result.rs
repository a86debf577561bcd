//! The columns that were added, as a Python object. They have the Arrow PyCapsule interface, so pyarrow,
//! Polars, pandas, DuckDB and others take them without a copy, and none of them is needed.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, StructArray, new_empty_array};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields, Schema};
use pyo3::exceptions::{PyIndexError, PyKeyError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyIterator, PyList, PyTuple};
use pyo3_arrow::ffi::{
    ArrayIterator, to_array_pycapsules, to_schema_pycapsule, to_stream_pycapsule,
};

use crate::added::PyColumn;
use crate::bulk::Added;
use crate::error::FibulaError;
use crate::{requested, values};

/// The added columns of a lookup, in the order of the addresses.
///
/// To any library that speaks Arrow it is a table: `pyarrow.table(columns)`,
/// `polars.DataFrame(columns)`, `pandas.DataFrame.from_arrow(columns)`, and DuckDB finds it by its
/// variable's name.
#[pyclass(name = "Columns", module = "fibula", frozen)]
pub struct PyColumns {
    pub added: Added,
    /// The index of the pandas object that was looked up.
    pub index: Option<Py<PyAny>>,
}

#[pymethods]
impl PyColumns {
    /// The names of the columns.
    #[getter]
    fn names(&self) -> Vec<&str> {
        self.added.fields.iter().map(|field| field.name().as_str()).collect()
    }

    /// Addresses that a route covers.
    #[getter]
    fn matched(&self) -> u64 {
        self.added.matched
    }

    /// Addresses that no route covers.
    #[getter]
    fn unmatched(&self) -> u64 {
        self.added.unmatched
    }

    /// Cells that are not an address.
    #[getter]
    fn unparsable(&self) -> u64 {
        self.added.unparsable
    }

    /// Nulls, and text that is empty.
    #[getter]
    fn empty(&self) -> u64 {
        self.added.empty
    }

    /// Of the tables of several dates: rows whose time lies before the first one.
    #[getter]
    fn before(&self) -> u64 {
        self.added.before
    }

    /// Of the tables of several dates: rows without a time, or with one that cannot be read.
    #[getter]
    fn untimed(&self) -> u64 {
        self.added.untimed
    }

    /// Lookups that the device did. An address has one for all values and one for the prefix; 0 without a device.
    #[getter]
    fn on_device(&self) -> usize {
        self.added.lookups.on_device
    }

    /// Of a lookup with a device, the lookups that the CPU did: small batches, and those that the device failed to do.
    #[getter]
    fn on_cpu(&self) -> usize {
        self.added.lookups.on_cpu
    }

    /// Parts of the column that the device failed to look up; the CPU did.
    #[getter]
    fn device_failures(&self) -> usize {
        self.added.lookups.failures
    }

    /// What the device said at the first failure; None if there was none.
    #[getter]
    fn device_error(&self) -> Option<String> {
        self.added.lookups.error.as_ref().map(ToString::to_string)
    }

    /// Row, counted from 0, and text of the first cell that is not an address; None if all are.
    #[getter]
    fn first_unparsable(&self) -> Option<(usize, String)> {
        self.added.first_unparsable.clone()
    }

    /// Row, counted from 0, and text of the first time that cannot be read; None if all can, or are null.
    #[getter]
    fn first_untimed(&self) -> Option<(usize, String)> {
        self.added.first_untimed.clone()
    }

    fn __len__(&self) -> usize {
        self.added.rows
    }

    fn __repr__(&self) -> String {
        format!(
            "<fibula.Columns {:?}, {} rows, {} matched>",
            self.names(),
            self.added.rows,
            self.added.matched
        )
    }

    /// A column, by its name or its place.
    fn __getitem__(&self, key: &Bound<'_, PyAny>) -> PyResult<PyColumn> {
        let Added { fields, columns, .. } = &self.added;
        let place = match key.extract::<String>() {
            Ok(name) => fields.iter().position(|field| *field.name() == name).ok_or_else(|| {
                PyKeyError::new_err(format!("{name:?}; there are {:?}", self.names()))
            })?,
            Err(_) => {
                let at: isize = key.extract()?;
                let from = if at < 0 { fields.len() as isize } else { 0 };
                usize::try_from(at + from).ok().filter(|&at| at < fields.len()).ok_or_else(
                    || PyIndexError::new_err(format!("{at} of {} columns", fields.len())),
                )?
            }
        };
        let index = self.index.as_ref().map(|index| index.clone_ref(key.py()));
        Ok(PyColumn { field: fields[place].clone(), chunks: columns[place].clone(), index })
    }

    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyIterator>> {
        let columns = (0..slf.get().added.fields.len()).map(|at| slf.get_item(at));
        PyList::new(slf.py(), columns.collect::<PyResult<Vec<_>>>()?)?.try_iter()
    }

    /// The rows for NumPy, with two dimensions: numbers if all columns have the same type there, otherwise objects.
    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("fibula._frames")?.call_method1("rows_to_numpy", (slf, dtype, copy))
    }

    /// The columns as a dictionary of lists.
    fn to_pydict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (field, chunks) in self.added.fields.iter().zip(&self.added.columns) {
            let list = PyList::empty(py);
            chunks.iter().try_for_each(|chunk| values::append(&list, chunk))?;
            dict.set_item(field.name(), list)?;
        }
        Ok(dict)
    }

    /// The columns as a `pyarrow.Table`, without a copy.
    fn to_pyarrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("pyarrow")?.call_method1("table", (slf,))
    }

    /// The columns as a `polars.DataFrame`. Text in dictionaries becomes `Categorical`.
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("polars")?.call_method1("DataFrame", (slf,))
    }

    /// The index of the pandas Series whose addresses were looked up, for `to_pandas`.
    #[getter]
    fn _index(&self) -> Option<&Py<PyAny>> {
        self.index.as_ref()
    }

    /// The columns as a `pandas.DataFrame` of nullable types: `UInt32` or `UInt64`, `str`, and
    /// `category` for text in dictionaries. It has the index of the Series that was looked up.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("fibula._frames")?.call_method1("to_pandas", (slf,))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        Ok(to_schema_pycapsule(py, Schema::new(self.added.fields.clone()))?)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let (fields, columns) = self.requested(requested_schema.as_ref())?;
        let whole = columns.iter().zip(&fields).map(|(c, field)| concat(c, field.data_type()));
        let whole = whole.collect::<PyResult<_>>()?;
        let whole = structs(&fields, whole, self.added.rows).map_err(refused)?;
        Ok(to_array_pycapsules(py, of_structs(fields), &whole, None)?)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let (fields, columns) = self.requested(requested_schema.as_ref())?;
        let chunks = columns.first().map_or(0, Vec::len);
        let chunks = (0..chunks).map(|at| {
            let columns: Vec<_> = columns.iter().map(|column| column[at].clone()).collect();
            let rows = columns.first().map_or(0, |column| column.len());
            Ok(Arc::new(structs(&fields, columns, rows)?) as ArrayRef)
        });
        let chunks: Vec<Result<ArrayRef, ArrowError>> = chunks.collect();
        let chunks = ArrayIterator::new(chunks, of_structs(fields));
        Ok(to_stream_pycapsule(py, Box::new(chunks), None)?)
    }
}

impl PyColumns {
    /// The columns in the types that are asked for, if it is these columns that are asked for.
    fn requested(
        &self,
        requested: Option<&Bound<'_, PyCapsule>>,
    ) -> PyResult<(Vec<FieldRef>, Vec<Vec<ArrayRef>>)> {
        let Added { fields, columns, .. } = &self.added;
        let wanted = match requested::read(requested)?.map(|field| field.data_type().clone()) {
            Some(DataType::Struct(wanted)) if same_names(&wanted, fields) => wanted,
            _ => return Ok((fields.clone(), columns.clone())),
        };
        let cast = fields.iter().zip(columns).zip(&wanted);
        let cast = cast.map(|((field, chunks), to)| requested::cast(field, chunks, to.data_type()));
        Ok(cast.collect::<PyResult<Vec<_>>>()?.into_iter().unzip())
    }
}

fn same_names(one: &[FieldRef], other: &[FieldRef]) -> bool {
    one.iter().map(|field| field.name()).eq(other.iter().map(|field| field.name()))
}

/// The field of a table's rows.
fn of_structs(fields: Vec<FieldRef>) -> FieldRef {
    Arc::new(Field::new_struct("", Fields::from(fields), false))
}

fn structs(
    fields: &[FieldRef],
    columns: Vec<ArrayRef>,
    rows: usize,
) -> Result<StructArray, ArrowError> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    let schema = Arc::new(Schema::new(fields.to_vec()));
    RecordBatch::try_new_with_options(schema, columns, &options).map(StructArray::from)
}

fn refused(error: ArrowError) -> PyErr {
    FibulaError::new_err(error.to_string())
}

/// The chunks as one array.
pub fn concat(chunks: &[ArrayRef], kind: &DataType) -> PyResult<ArrayRef> {
    match chunks {
        [] => Ok(new_empty_array(kind)),
        [chunk] => Ok(chunk.clone()),
        chunks => {
            let chunks: Vec<&dyn Array> = chunks.iter().map(|chunk| chunk.as_ref()).collect();
            arrow_select::concat::concat(&chunks).map_err(refused)
        }
    }
}
