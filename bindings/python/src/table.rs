//! The table as a Python object. `fibula.Table` wraps it.

use std::path::PathBuf;

use arrow_array::ArrayRef;
use fibula::sources::{Silent, SourceSummary, open_snapshot};
use fibula_annotate::{AnnotateOptions, PrefixForm, PreparedTable, TextForm};
use fibula_core::Addr;
use fibula_fib::{Fib, FibOptions, OpenFamily, Pod};
use fibula_ingest::HostBits;
use fibula_rib::{Moment, SourceRecord};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::build::{self, Building, Layer};
use crate::bulk::Added;
use crate::offloaded::Copies;
use crate::resident::PyDeviceTable;
use crate::result::PyColumns;
use crate::wording::in_python;
use crate::{address, bulk, column, error, export, records};

/// An open table.
#[pyclass(name = "Table", module = "fibula._fibula", frozen)]
pub struct PyTable {
    opened: PreparedTable<Fib>,
    copies: Copies,
}

impl PyTable {
    pub fn new(opened: PreparedTable<Fib>) -> Self {
        Self { opened, copies: Copies::default() }
    }
}

/// How columns are added.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct AddOptions {
    add: Vec<String>,
    defaults: Vec<(String, String)>,
    strict: bool,
    /// Text as it is, not in dictionaries.
    plain: bool,
    /// Prefixes as bytes and length.
    binary: bool,
    threads: Option<usize>,
    /// The name of the device that looks up.
    device: Option<String>,
}

impl AddOptions {
    pub fn options(&self) -> AnnotateOptions {
        let mut options = AnnotateOptions::default();
        options.add = self.add.clone();
        options.defaults = self.defaults.clone();
        options.strict = self.strict;
        options.text = if self.plain { TextForm::Plain } else { TextForm::Dictionary };
        options.prefix = if self.binary { PrefixForm::Binary } else { PrefixForm::Text };
        options.threads = self.threads.unwrap_or(options.threads);
        options
    }
}

#[pymethods]
impl PyTable {
    /// Opens a snapshot file, mapped or read. Of a file of several dates the table of a time, and with VRPs a table
    /// that has their columns, too, are in memory.
    #[staticmethod]
    fn open(
        py: Python<'_>,
        path: PathBuf,
        load: &str,
        at: Option<&str>,
        rpki: Vec<PathBuf>,
        origin: &str,
    ) -> PyResult<Self> {
        let loading = build::loading(load)?;
        let options = FibOptions::default().loading(loading);
        let at: Option<Moment> =
            at.map(str::parse).transpose().map_err(PyValueError::new_err::<&str>)?;
        let fib = py.detach(|| -> PyResult<Fib> {
            let table = match at {
                None => {
                    let fib =
                        Fib::open_with(&path, &options).map_err(|error| error::fib(&error))?;
                    if rpki.is_empty() {
                        return Ok(fib);
                    }
                    fib.to_table().map_err(|error| error::fib(&error))?
                }
                at => open_snapshot(&path, loading, at, &mut Silent)
                    .map_err(|error| build::failed(&error))?,
            };
            let table = match rpki.is_empty() {
                true => table,
                false => build::validated(table, &rpki, origin, false)?,
            };
            Fib::of_table(table, &options).map_err(|error| error::fib(&error))
        });
        Ok(Self::new(PreparedTable::new(fib?)))
    }

    /// Builds a table from sources; with what happened on the way.
    #[staticmethod]
    fn build<'py>(
        py: Python<'py>,
        layers: Vec<Layer<'py>>,
        building: Building,
        output: Option<PathBuf>,
    ) -> PyResult<(Self, Bound<'py, PyDict>)> {
        let (opened, report) = build::build(py, &layers, &building, output.as_deref())?;
        let dict = PyDict::new(py);
        dict.set_item("damaged", report.damaged)?;
        dict.set_item("damage", all_in_python(&report.damage))?;
        let sources = PyList::empty(py);
        for SourceSummary { name, format, records, routes, damaged } in report.files {
            let source = PyDict::new(py);
            source.set_item("name", name)?;
            source.set_item("format", format)?;
            source.set_item("records", records)?;
            source.set_item("routes", routes)?;
            source.set_item("damaged", damaged)?;
            sources.append(source)?;
        }
        dict.set_item("sources", sources)?;
        let provenance = opened.fib.provenance();
        dict.set_item("peer", provenance.peers_text())?;
        let sum =
            |count: fn(&SourceRecord) -> u64| provenance.sources.iter().map(count).sum::<u64>();
        dict.set_item("repeated", sum(|source| source.repeated))?;
        dict.set_item("replaced", sum(|source| source.replaced))?;
        let named: Vec<_> = provenance.replaced.iter().map(ToString::to_string).collect();
        dict.set_item("replacements", named)?;
        dict.set_item("notes", all_in_python(&report.notes))?;
        Ok((Self::new(opened), dict))
    }

    fn __len__(&self) -> usize {
        self.opened.fib.len()
    }

    /// Names and kinds of the value columns.
    fn columns(&self) -> Vec<(String, &str)> {
        records::column_types(self.opened.fib.columns())
    }

    /// What the longest match says about one address: everything, or the value of one column.
    #[pyo3(signature = (address, add=None))]
    fn lookup<'py>(
        &self,
        py: Python<'py>,
        address: &Bound<'py, PyAny>,
        add: Option<&str>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let fib = &self.opened.fib;
        let found = fib.lookup(address::address(address)?.into());
        records::answer(py, found.as_ref(), fib.columns(), add)
    }

    /// The routes that cover an address or a prefix, longest first.
    fn covering<'py>(
        &self,
        py: Python<'py>,
        prefix: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        records::covering(py, &self.opened.fib, address::prefix(prefix, HostBits::Refuse)?)
    }

    /// The routes that a prefix covers, by address, then by length.
    fn covered<'py>(
        &self,
        py: Python<'py>,
        prefix: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        records::covered(py, &self.opened.fib, address::prefix(prefix, HostBits::Refuse)?)
    }

    /// What covers an address best, or the route of exactly this prefix.
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        let fib = &self.opened.fib;
        if address::is_prefix(key)? {
            let prefix = address::prefix(key, HostBits::Refuse)?;
            let found = fib.exact(prefix).map_err(|error| error::fib(&error))?;
            return found.map(|found| records::record(py, &found, fib.columns())).transpose();
        }
        let found = fib.lookup(address::address(key)?.into());
        found.map(|found| records::record(py, &found, fib.columns())).transpose()
    }

    /// Routes by their numbers, those of IPv4 first.
    fn routes<'py>(
        &self,
        py: Python<'py>,
        start: usize,
        end: usize,
    ) -> PyResult<Bound<'py, PyList>> {
        let found = self.opened.fib.routes_between(start..end);
        records::records(py, found.map_err(|error| error::fib(&error))?, self.opened.fib.columns())
    }

    /// The routes with these values.
    fn where_<'py>(
        &self,
        py: Python<'py>,
        conditions: Vec<(String, Option<String>)>,
    ) -> PyResult<Bound<'py, PyList>> {
        let conditions = records::conditions(self.opened.fib.columns(), conditions);
        let found = py.detach(|| {
            self.opened.fib.routes_with(&conditions).map(|found| found.collect::<Vec<_>>())
        });
        records::records(py, found.map_err(|error| error::fib(&error))?, self.opened.fib.columns())
    }

    /// Their prefixes, as text; the fewest that cover the same addresses.
    fn prefixes(
        &self,
        py: Python<'_>,
        conditions: Vec<(String, Option<String>)>,
        aggregate: bool,
    ) -> PyResult<Vec<String>> {
        let conditions = records::conditions(self.opened.fib.columns(), conditions);
        let found = py.detach(|| {
            let found = self.opened.fib.routes_with(&conditions)?;
            let mut prefixes: Vec<_> = found.filter_map(|route| route.prefix()).collect();
            if aggregate {
                prefixes = fibula_fib::aggregate(prefixes);
            }
            Ok(prefixes.iter().map(ToString::to_string).collect())
        });
        found.map_err(|error| error::fib(&error))
    }

    /// Writes the table in the format of another tool.
    fn export(
        &self,
        py: Python<'_>,
        path: PathBuf,
        to: &str,
        family: Option<&str>,
        mmdb_type: &str,
    ) -> PyResult<()> {
        py.detach(|| {
            let table = self.opened.fib.to_table().map_err(|error| error::fib(&error))?;
            let to = export::To::new(to, family, &table)?;
            export::write(&table, to, mmdb_type, &path)
        })
    }

    /// Looks up the addresses of a column. The added columns are named after it, if it has a name, and keep its index.
    fn lookup_many(
        &self,
        py: Python<'_>,
        name: Option<&str>,
        column: &Bound<'_, PyAny>,
        index: Option<Py<PyAny>>,
        requested: AddOptions,
    ) -> PyResult<PyColumns> {
        let chunks: Vec<ArrayRef> = column::read(column)?;
        let options = requested.options();
        let added = py.detach(|| -> PyResult<Added> {
            let there = requested.device.as_deref();
            let there = there.map(|name| self.copies.on(&self.opened.fib, name)).transpose()?;
            let annotator = match &there {
                Some(there) => there.annotator(&options),
                None => self.opened.annotator(&options),
            };
            let device = there.as_ref().map(|there| &*there.fib);
            annotator
                .and_then(|annotator| {
                    bulk::annotate(&annotator, name, &chunks, None, options.threads, device)
                })
                .map_err(|error| error::annotate(&error))
        });
        Ok(PyColumns { added: added?, index })
    }

    /// The table on the device of this name.
    fn on_device(&self, py: Python<'_>, name: &str) -> PyResult<PyDeviceTable> {
        py.detach(|| Ok(PyDeviceTable::new(self.copies.on(&self.opened.fib, name)?)))
    }

    /// Names, types and counts, as a dictionary.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let fib = &self.opened.fib;
        let stats = PyDict::new(py);
        stats.set_item("v4", family(py, fib.family::<u32>())?)?;
        stats.set_item("v6", family(py, fib.family::<u128>())?)?;
        let columns = fib.columns();
        stats.set_item("rows", columns.len())?;
        let list = PyList::empty(py);
        for (at, (name, kind)) in self.columns().into_iter().enumerate() {
            let column = PyDict::new(py);
            column.set_item("name", name)?;
            column.set_item("kind", kind)?;
            column.set_item("distinct", columns.distinct(at))?;
            list.append(column)?;
        }
        stats.set_item("columns", list)?;
        let provenance = fib.provenance();
        let sources = PyList::empty(py);
        for source in &provenance.sources {
            let dict = PyDict::new(py);
            dict.set_item("name", &source.name)?;
            dict.set_item("format", &source.format)?;
            dict.set_item("date", source.date)?;
            dict.set_item("announced", source.announced)?;
            dict.set_item("withdrawn", source.withdrawn)?;
            sources.append(dict)?;
        }
        stats.set_item("sources", sources)?;
        stats.set_item("peer", provenance.peers_text())?;
        stats.set_item("tool", &provenance.tool)?;
        stats.set_item("created", Some(provenance.created).filter(|&time| time > 0))?;
        let written = py.detach(|| fib.written()).map_err(|error| error::fib(&error))?;
        stats.set_item("digest", format!("{:032x}", written.digest))?;
        let bytes = written.sections.iter().map(|(_, bytes)| bytes).sum::<u64>();
        stats.set_item("bytes", bytes)?;
        Ok(stats)
    }

    /// Writes the table with its engines as a snapshot file.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| self.opened.fib.write(&path)).map_err(|error| error::fib(&error))?;
        Ok(())
    }
}

fn family<'py, A: Addr + Pod>(
    py: Python<'py>,
    family: &OpenFamily<A>,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("routes", family.routes().len())?;
    dict.set_item("engine", family.engine_name())?;
    dict.set_item("engine_bytes", family.engine().memory().total())?;
    Ok(dict)
}

fn all_in_python(texts: &[String]) -> Vec<String> {
    texts.iter().map(|text| in_python(text)).collect()
}
