//! Tables from sources: files as the command reads them, and rows that Python has.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use fibula::sources::BuildReport;
use fibula::sources::{Merge, Settings, Source, SourceError as Failed, Watch as _};
use fibula_annotate::PreparedTable;
use fibula_fib::{EngineChoice, Fib, FibError, FibOptions};
use fibula_ingest::text::{HeaderLine, KeyColumns, TextOptions};
use fibula_ingest::{ColumnKind, HostBits};
use fibula_rib::{BuilderOptions, Loading, ScalarType, Table};
use fibula_rpki::Vrps;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::{self, ColumnError};
use crate::rows::Rows;

/// How a table is built.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Building {
    format: String,
    strict: bool,
    salvage: bool,
    allow_empty: bool,
    peer: String,
    columns: Option<Vec<String>>,
    tags: Option<String>,
    load: String,
    as_path: bool,
    communities: bool,
    delimiter: Option<String>,
    header: Option<bool>,
    names: Vec<String>,
    key: Vec<String>,
    kinds: Vec<(String, String)>,
    mask_host_bits: bool,
    engine: String,
    rpki: Vec<PathBuf>,
    origin: String,
}

/// A source: what the command would take, or rows of Python's.
#[derive(FromPyObject)]
pub enum Given<'py> {
    Named(String),
    Rows(Rows<'py>),
}

/// A layer's name, if there are layers, and what is merged into it.
pub type Layer<'py> = (Option<String>, Vec<Given<'py>>);

/// Reads and merges the sources, compiles the table, and opens it, in memory or in its file.
pub fn build(
    py: Python<'_>,
    layers: &[Layer<'_>],
    building: &Building,
    output: Option<&Path>,
) -> PyResult<(PreparedTable<Fib>, BuildReport)> {
    let settings = settings(building)?;
    let mut report = BuildReport::default();
    let mut tables = Vec::new();
    for (name, sources) in layers {
        tables.push((name.as_deref(), merged(py, sources, &settings, &mut report)?));
    }
    let opened = py.detach(|| -> PyResult<PreparedTable<Fib>> {
        let table = match &*tables {
            [(None, _)] => tables.remove(0).1,
            named => {
                let named: Vec<_> =
                    named.iter().map(|(name, table)| (name.unwrap_or_default(), table)).collect();
                fibula_rib::layers(&named).map_err(error::source)?
            }
        };
        if table.v4.is_empty() && table.v6.is_empty() && !building.allow_empty {
            return Err(error::source(match report.damage.first() {
                Some(first) => format!(
                    "no routes at all: {} of {} records are damaged, the first: {first}",
                    report.damaged,
                    report.files.iter().map(|file| file.records).sum::<u64>()
                ),
                None if report.files.iter().all(|file| file.format == "python") => {
                    "no routes at all: the source has no rows; allow_empty=True takes a table without any"
                        .to_owned()
                }
                None => "no routes at all; name the format if the source is a table: \
                         format=\"text\""
                    .to_owned(),
            }));
        }
        if !building.rpki.is_empty() {
            let renamed = fibula_rpki::renamed_columns(&table.columns).into_iter();
            report.notes.extend(renamed.map(|(before, after)| {
                format!("column {before} of the table is called {after} beside the validity")
            }));
        }
        let table = validated(table, &building.rpki, &building.origin, building.allow_empty)?;
        let fib = compiled(table, &building.engine, output, settings.loading);
        Ok(PreparedTable::new(fib.map_err(|error| error::fib(&error))?))
    })?;
    Ok((opened, report))
}

fn merged(
    py: Python<'_>,
    sources: &[Given<'_>],
    settings: &Settings,
    report: &mut BuildReport,
) -> PyResult<Table> {
    let mut merge = Merge::new(settings.clone());
    for source in sources {
        match source {
            Given::Named(name) => py
                .detach(|| merge.add(name, &Source::parse(name)?, report))
                .map_err(|error| failed(&error))?,
            Given::Rows(rows) => rows.add(&mut merge, settings, report)?,
        }
    }
    let table = py.detach(|| merge.finish()).map_err(|error| failed(&error))?;
    report.merged(&table);
    Ok(table)
}

/// The table with the validity of its routes by the VRPs in these files, if there are any.
pub fn validated(
    mut table: Table,
    files: &[PathBuf],
    origin: &str,
    allow_empty: bool,
) -> PyResult<Table> {
    if files.is_empty() {
        return Ok(table);
    }
    let mut vrps = Vec::new();
    for path in files {
        let file = fibula_rpki::read(path, allow_empty).map_err(|error| error::rpki(&error))?;
        table.provenance.sources.push(file.record());
        vrps.extend(file);
    }
    fibula_rpki::add_columns(&table, &Vrps::new(vrps), origin).map_err(|error| error::rpki(&error))
}

/// Compiles the engines and opens the table with them, from its file if it is to have one.
fn compiled(
    table: Table,
    engine: &str,
    output: Option<&Path>,
    loading: Loading,
) -> Result<Fib, FibError> {
    let choice = match engine {
        "auto" => EngineChoice::Auto,
        name => EngineChoice::Named(name.to_owned()),
    };
    let fib = Fib::of_table(table, &FibOptions::default().engines([choice]))?;
    match output {
        Some(path) => {
            fib.write(path)?;
            Fib::open_with(path, &FibOptions::default().loading(loading))
        }
        None => Ok(fib),
    }
}

fn settings(building: &Building) -> PyResult<Settings> {
    let wrong = ColumnError::new_err::<String>;
    let key = match &*building.key {
        [] => KeyColumns::Auto,
        [prefix] => KeyColumns::Prefix(prefix.clone()),
        [first, last] => KeyColumns::Range(first.clone(), last.clone()),
        more => return Err(wrong(format!("key is one or two columns, not {}", more.len()))),
    };
    let delimiter = match building.delimiter.as_deref().map(str::as_bytes) {
        None => None,
        Some([byte]) => Some(*byte),
        Some(_) => return Err(wrong("a delimiter is one ASCII character".to_owned())),
    };
    let kinds = building.kinds.iter().map(|(name, kind)| match kind.as_str() {
        "int" => Ok((name.clone(), ColumnKind::Int)),
        "str" | "float" | "bool" => Ok((name.clone(), ColumnKind::Str)),
        other => {
            Err(wrong(format!("column {name:?}: a kind is int, float, bool or str, not {other}")))
        }
    });
    let types = building.kinds.iter().filter_map(|(name, kind)| match kind.as_str() {
        "float" => Some((name.clone(), ScalarType::Double)),
        "bool" => Some((name.clone(), ScalarType::Bool)),
        _ => None,
    });
    Ok(Settings {
        format: building.format.parse().map_err(wrong)?,
        strict: building.strict,
        salvage: building.salvage,
        allow_empty: building.allow_empty,
        builder: BuilderOptions {
            peer: fibula::sources::parse_peer(&building.peer).map_err(wrong)?,
            columns: building.columns.clone(),
            as_path: building.as_path,
            communities: building.communities,
            tags: building.tags.clone(),
        },
        loading: loading(&building.load)?,
        at: None,
        names: BTreeMap::new(),
        text: TextOptions {
            delimiter,
            header: match building.header {
                None => HeaderLine::Auto,
                Some(true) => HeaderLine::Present,
                Some(false) => HeaderLine::Absent,
            },
            names: building.names.clone(),
            key,
            columns: None, // the table builder chooses, over all sources
            kinds: kinds.collect::<PyResult<_>>()?,
            types: types.collect(),
            host_bits: if building.mask_host_bits { HostBits::Mask } else { HostBits::Refuse },
        },
    })
}

/// How a snapshot comes into memory.
pub fn loading(text: &str) -> PyResult<Loading> {
    text.parse().map_err(PyValueError::new_err::<&str>)
}

pub fn failed(error: &Failed) -> PyErr {
    match error {
        Failed::Io { name, error } => error::io_error(&PathBuf::from(name), error),
        Failed::Read(fibula_ingest::ReadError::Io { file, error }) => {
            error::io_error(&PathBuf::from(file), error)
        }
        Failed::Snapshot(error) => error::snapshot(error),
        error => error::source(error),
    }
}
