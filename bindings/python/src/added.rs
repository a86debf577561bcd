//! One added column, as a Python object.

use arrow_array::{Array, ArrayRef, UInt64Array};
use arrow_schema::FieldRef;
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::slice::PySliceIndices;
use pyo3::types::{PyCapsule, PyIterator, PyList, PySlice, PyTuple};
use pyo3_arrow::ffi::{
    ArrayIterator, to_array_pycapsules, to_schema_pycapsule, to_stream_pycapsule,
};

use crate::error::FibulaError;
use crate::result::concat;
use crate::{requested, values};

/// One added column.
///
/// To any library that speaks Arrow it is an array: `pyarrow.chunked_array(column)`,
/// `polars.Series(column)`, `pandas.Series.from_arrow(column)`. To NumPy and to others it is a sequence of values:
/// `frame["asn"] = column` of pandas takes them by place.
#[pyclass(name = "Column", module = "fibula", frozen)]
pub struct PyColumn {
    pub field: FieldRef,
    pub chunks: Vec<ArrayRef>,
    /// The index of the pandas object that was looked up.
    pub index: Option<Py<PyAny>>,
}

#[pymethods]
impl PyColumn {
    /// The column's name.
    #[getter]
    fn name(&self) -> &str {
        self.field.name()
    }

    /// The column's Arrow type, as text.
    #[getter]
    fn r#type(&self) -> String {
        self.field.data_type().to_string()
    }

    fn __len__(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.len()).sum()
    }

    fn __repr__(&self) -> String {
        let Self { field, .. } = self;
        format!(
            "<fibula.Column {:?}: {}, {} rows>",
            field.name(),
            field.data_type(),
            self.__len__()
        )
    }

    /// The value of a row, counted from 0 or, if negative, from the end; or a column of the rows of a slice.
    fn __getitem__<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (py, rows) = (key.py(), self.__len__());
        if let Ok(slice) = key.cast::<PySlice>() {
            let index = self.index.as_ref();
            let index = index.map(|index| index.bind(py).get_item(slice).map(Bound::unbind));
            let slice = slice.indices(rows.try_into()?)?;
            let (field, index) = (self.field.clone(), index.transpose()?);
            return Self { field, chunks: self.rows(&slice)?, index }.into_bound_py_any(py);
        }
        let row: isize = key.extract().map_err(|_| {
            PyTypeError::new_err(
                "a column has rows by number, column[0], and by slice, column[:10]",
            )
        })?;
        let from = if row < 0 { rows as isize } else { 0 };
        let at = usize::try_from(row + from).ok().filter(|&at| at < rows);
        let mut at = at.ok_or_else(|| PyIndexError::new_err(format!("row {row} of {rows}")))?;
        for chunk in &self.chunks {
            if at < chunk.len() {
                return values::value(py, chunk, at);
            }
            at -= chunk.len();
        }
        Ok(py.None().into_bound(py)) // not reached: `at` is less than the sum of the lengths
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.to_pylist(py)?.try_iter()
    }

    /// The values for NumPy: numbers as they are, with NaN where there is none; the rest, and integers of 64 bits with
    /// nulls, as objects.
    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, column) = (slf.py(), slf.get());
        let numbers = values::numbers(py, &column.chunks, column.field.data_type())?;
        slf.py().import("fibula._frames")?.call_method1("to_numpy", (slf, numbers, dtype, copy))
    }

    /// For each row whether it has this value, or the value of the same row, as an array of NumPy.
    fn __eq__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("fibula._frames")?.call_method1("compare", (slf, other, true))
    }

    /// The opposite of `==`, row by row.
    fn __ne__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("fibula._frames")?.call_method1("compare", (slf, other, false))
    }

    /// By identity, because `==` compares rows.
    fn __hash__(slf: &Bound<'_, Self>) -> usize {
        slf.as_ptr().addr()
    }

    /// The index of the pandas Series whose addresses were looked up, for `to_pandas`.
    #[getter]
    fn _index(&self) -> Option<&Py<PyAny>> {
        self.index.as_ref()
    }

    /// The column as an array of NumPy, as `numpy.asarray` makes it.
    fn to_numpy<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::__array__(slf, None, None)
    }

    /// The column as a `pyarrow.ChunkedArray`, without a copy.
    fn to_pyarrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("pyarrow")?.call_method1("chunked_array", (slf,))
    }

    /// The column as a `polars.Series`. Text in dictionaries becomes `Categorical`.
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let name = slf.get().name();
        slf.py().import("polars")?.call_method1("Series", (name, slf))
    }

    /// The column as a `pandas.Series` of a nullable type, with the index of the Series that was looked up.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("fibula._frames")?.call_method1("to_series", (slf,))
    }

    /// The values as a list of Python objects; None for null.
    fn to_pylist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        self.chunks.iter().try_for_each(|chunk| values::append(&list, chunk))?;
        Ok(list)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        Ok(to_schema_pycapsule(py, self.field.as_ref())?)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let (field, chunks) = self.requested(requested_schema.as_ref())?;
        let whole = concat(&chunks, field.data_type())?;
        Ok(to_array_pycapsules(py, field, &whole, None)?)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let (field, chunks) = self.requested(requested_schema.as_ref())?;
        let chunks = ArrayIterator::new(chunks.into_iter().map(Ok), field);
        Ok(to_stream_pycapsule(py, Box::new(chunks), None)?)
    }
}

impl PyColumn {
    /// The chunks of a slice's rows.
    fn rows(&self, slice: &PySliceIndices) -> PyResult<Vec<ArrayRef>> {
        let PySliceIndices { start, step, slicelength, .. } = *slice;
        if step == 1 {
            let (mut skip, mut left) = (start as usize, slicelength);
            let parts = self.chunks.iter().map(|chunk| {
                let from = skip.min(chunk.len());
                let taken = left.min(chunk.len() - from);
                (skip, left) = (skip - from, left - taken);
                chunk.slice(from, taken)
            });
            return Ok(parts.collect());
        }
        let whole = concat(&self.chunks, self.field.data_type())?;
        let rows = (0..slicelength).map(|at| (start + at as isize * step) as u64);
        let taken = arrow_select::take::take(&whole, &UInt64Array::from_iter_values(rows), None);
        Ok(vec![taken.map_err(|error| FibulaError::new_err(error.to_string()))?])
    }

    /// The column in the type that is asked for, if it has one that holds its values.
    fn requested(
        &self,
        requested: Option<&Bound<'_, PyCapsule>>,
    ) -> PyResult<(FieldRef, Vec<ArrayRef>)> {
        let wanted = requested::read(requested)?.unwrap_or_else(|| self.field.clone());
        requested::cast(&self.field, &self.chunks, wanted.data_type())
    }
}
