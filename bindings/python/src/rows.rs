//! Rows of Python's as a source of a table.

use std::borrow::Cow;
use std::net::IpAddr;
use std::ops::ControlFlow;

use fibula::sources::{Merge, SHOWN, Settings, SourceSummary, Watch as _};
use fibula_core::{AnyPrefix, Attributes, Change, ScalarType, Update, Value};
use fibula_ingest::text::RangeFeed;
use fibula_ingest::{ColumnKind, Damage, HostBits, Sink};
use fibula_rib::TableBuilder;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyList, PyString};

use crate::address;
use crate::build::{BuildReport, failed};
use crate::error::{ColumnError, SourceError};

/// Prefixes, or the first and last addresses of ranges, and for each column a value for each of them.
#[derive(FromPyObject)]
pub struct Rows<'py> {
    name: String,
    prefixes: Bound<'py, PyList>,
    ends: Option<Bound<'py, PyList>>,
    columns: Vec<(String, Bound<'py, PyList>)>,
}

/// What a row is about.
enum Key {
    Prefix(AnyPrefix),
    Range(IpAddr, IpAddr),
}

/// What a column holds.
#[derive(Clone, Copy, PartialEq)]
enum ValueKind {
    Int,
    /// `true` and `false`, which tables keep as text with a type.
    Bool,
    Str,
}

impl ValueKind {
    fn of(values: &Bound<'_, PyList>) -> Self {
        let mut bools = false;
        for value in values.iter().filter(|value| !value.is_none()) {
            if value.is_instance_of::<PyString>() {
                return Self::Str;
            }
            bools |= value.is_instance_of::<PyBool>();
        }
        if bools { Self::Bool } else { Self::Int }
    }
}

impl Rows<'_> {
    /// Adds the rows to what is merged.
    pub fn add(
        &self,
        merge: &mut Merge,
        settings: &Settings,
        report: &mut BuildReport,
    ) -> PyResult<()> {
        let kinds: Vec<ValueKind> =
            self.columns.iter().map(|(_, values)| ValueKind::of(values)).collect();
        let names = || self.columns.iter().map(|(name, _)| name.clone()).zip(&kinds);
        let stored = |kind| if kind == ValueKind::Int { ColumnKind::Int } else { ColumnKind::Str };
        let columns: Vec<_> = names().map(|(name, &kind)| (name, stored(kind))).collect();
        let bools = names().filter(|(_, kind)| **kind == ValueKind::Bool);
        let types: Vec<_> = bools.map(|(name, _)| (name, ScalarType::Bool)).collect();
        let builder = merge.builder();
        builder.types_of_next(&types);
        builder.begin_source(&self.name, "python", &columns, false, None);
        let (mut sink, mut ranges) = (Feeder { builder, noted: Vec::new() }, RangeFeed::default());
        let (mut damaged, count) = (0, self.prefixes.len());
        for row in 0..count {
            let added = match self.key(row, settings.text.host_bits)? {
                Ok(key) => {
                    let items = self.columns.iter().map(|(_, values)| values.get_item(row));
                    let items: Vec<_> = items.collect::<PyResult<_>>()?;
                    let values = self.columns.iter().zip(&kinds).zip(&items);
                    let values =
                        values.map(|(((name, _), kind), item)| value(name, *kind, row, item));
                    let values = values.collect::<PyResult<Vec<_>>>()?;
                    sink.add(&key, row, &values, &mut ranges)
                        .map_err(|what| format!("{}: {what}", self.shown(row)))
                }
                Err(what) => Err(what),
            };
            let Err(what) = added else { continue };
            let what = format!("{}, row {row}: {what}", self.name);
            if settings.strict {
                return Err(SourceError::new_err(what));
            }
            if damaged < SHOWN as u64 {
                report.damage.push(what);
            }
            damaged += 1;
        }
        let noted =
            sink.noted.iter().map(|(what, count)| format!("{}: {what}: {count}", self.name));
        report.notes.extend(noted);
        let builder = merge.builder();
        if let (Some(value), Some(column)) = (builder.stand_in(), &settings.builder.tags) {
            report.stands_in(&self.name, column, value);
        }
        merge.check_repeated().map_err(|error| failed(&error))?;
        report.damaged += damaged;
        let (records, name) = (count as u64, self.name.clone());
        let routes = records - damaged;
        report.files.push(SourceSummary { name, format: "python", records, routes, damaged });
        Ok(())
    }

    /// The prefix or range of a row, or what is wrong with it.
    fn key(&self, row: usize, host_bits: HostBits) -> PyResult<Result<Key, String>> {
        let start = self.prefixes.get_item(row)?;
        let key = match &self.ends {
            None => address::prefix(&start, host_bits).map(Key::Prefix),
            Some(ends) => {
                let end = address::ip(&ends.get_item(row)?);
                address::ip(&start).and_then(|start| Ok(Key::Range(start, end?)))
            }
        };
        Ok(key.map_err(|error| error.value(start.py()).to_string()))
    }

    /// The range of a row, for messages.
    fn shown(&self, row: usize) -> String {
        let text = |list: &Bound<'_, PyList>| list.get_item(row).map(|item| item.to_string());
        let ends = self.ends.as_ref().map(text);
        match (text(&self.prefixes), ends) {
            (Ok(start), Some(Ok(end))) => format!("{start} to {end}"),
            (start, _) => start.unwrap_or_default(),
        }
    }
}

fn value<'a>(
    name: &str,
    kind: ValueKind,
    row: usize,
    item: &'a Bound<'_, PyAny>,
) -> PyResult<Value<'a>> {
    if item.is_none() {
        return Ok(Value::Null);
    }
    if let Ok(text) = item.cast::<PyString>() {
        let refused = |_| ColumnError::new_err(format!("column {name:?}, row {row}: not UTF-8"));
        return text.to_str().map(Value::Str).map_err(refused);
    }
    match item.cast::<PyBool>() {
        Ok(is) => return Ok(Value::Str(if is.is_true() { "true" } else { "false" })),
        Err(_) if kind == ValueKind::Bool => {
            return Err(ColumnError::new_err(format!(
                "column {name:?}, row {row}: {} in a column that also has True or False: make all of them bool, \
                 int or str",
                item.repr()?
            )));
        }
        Err(_) => {}
    }
    if let Ok(int) = item.extract::<u64>() {
        return Ok(Value::Int(int));
    }
    Err(ColumnError::new_err(format!(
        "column {name:?}, row {row}: {} is neither a str nor an int from 0 to 2**64 - 1 nor a bool nor None",
        item.repr()?
    )))
}

/// Hands the rows to the table builder.
struct Feeder<'a> {
    builder: &'a mut TableBuilder,
    /// What was read otherwise than one might think, and how often.
    noted: Vec<(&'static str, u64)>,
}

impl Feeder<'_> {
    fn add(
        &mut self,
        key: &Key,
        row: usize,
        values: &[Value<'_>],
        ranges: &mut RangeFeed,
    ) -> Result<(), Cow<'static, str>> {
        let record = row as u64 + 1;
        match *key {
            Key::Range(start, end) => ranges.announce(record, start, end, values, self),
            Key::Prefix(prefix) => {
                self.record(record, false);
                self.update(&Update::new(prefix, Change::Announce(Attributes::Values(values))));
                Ok(())
            }
        }
    }
}

impl Sink for Feeder<'_> {
    fn record(&mut self, record: u64, takes: bool) {
        self.builder.at_record(record, takes);
    }

    fn update(&mut self, update: &Update<'_>) {
        self.builder.apply(update);
    }

    fn noted(&mut self, what: &'static str) {
        match self.noted.iter_mut().find(|(known, _)| *known == what) {
            Some((_, count)) => *count += 1,
            None => self.noted.push((what, 1)),
        }
    }

    fn damage(&mut self, _: &Damage) -> ControlFlow<()> {
        ControlFlow::Continue(()) // rows are counted where they are read
    }
}
