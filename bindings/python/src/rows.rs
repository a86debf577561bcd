//! Rows of Python's as a source of a table.

use std::ops::ControlFlow;

use fibula::sources::{Merge, SHOWN, Settings, SourceSummary, Watch as _};
use fibula_core::{AnyPrefix, Attributes, Change, Update, Value};
use fibula_ingest::text::{AddressColumns, KeyColumns, Roles, RowFeed, Sample, roles};
use fibula_ingest::{Damage, Sink};
use fibula_rib::TableBuilder;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::address;
use crate::build::{BuildReport, failed};
use crate::cells::{Cell, ColumnType, cell, key_text};
use crate::error;

/// Rows by which the columns with the addresses are found.
const SAMPLE: usize = 100;

/// Columns with a value for each row. The prefixes of pairs are beside them, the addresses of a frame in them.
#[derive(FromPyObject)]
pub struct Rows<'py> {
    name: String,
    prefixes: Option<Bound<'py, PyList>>,
    /// Of a frame, the columns that the caller names.
    key: Vec<String>,
    columns: Vec<(String, Bound<'py, PyList>)>,
}

/// Where the addresses are.
enum Keys<'a, 'py> {
    Prefixes(&'a Bound<'py, PyList>),
    Columns(AddressColumns),
}

/// A column of values.
struct Column<'a, 'py> {
    name: &'a str,
    values: &'a Bound<'py, PyList>,
    kind: ColumnType,
}

impl<'py> Rows<'py> {
    /// Adds the rows to what is merged.
    pub fn add(
        &self,
        merge: &mut Merge,
        settings: &Settings,
        report: &mut BuildReport,
    ) -> PyResult<()> {
        let (keys, notes) = match &self.prefixes {
            Some(prefixes) => (Keys::Prefixes(prefixes), Vec::new()),
            None => {
                let Roles { key, notes } = self.roles()?;
                (Keys::Columns(key), notes)
            }
        };
        let columns = self.value_columns(&keys)?;
        let mut sink = Feeder::new(merge.builder(), &self.name, &columns);
        notes.iter().for_each(|note| sink.noted(note));
        let mut feed = RowFeed::default();
        let list = self.prefixes.as_ref().or(self.columns.first().map(|(_, list)| list));
        let (mut damaged, count) = (0, list.map_or(0, PyListMethods::len));
        for row in 0..count {
            let host_bits = settings.text.host_bits;
            let items = columns.iter().map(|column| column.values.get_item(row));
            let items: Vec<_> = items.collect::<PyResult<_>>()?;
            let cells = columns.iter().zip(&items);
            let cells = cells.map(|(column, item)| cell(column.name, column.kind, row, item));
            let cells: Vec<Cell<'_>> = cells.collect::<PyResult<_>>()?;
            let values: Vec<_> = cells.iter().map(Cell::value).collect();
            let added = match &keys {
                Keys::Prefixes(prefixes) => address::prefix(&prefixes.get_item(row)?, host_bits)
                    .map(|prefix| sink.add(row, prefix, &values))
                    .map_err(|error| error.value(prefixes.py()).to_string().into()),
                Keys::Columns(key) => {
                    let texts = self.key_texts(*key, row)?;
                    let mut fields = vec![&[][..]; self.columns.len()];
                    for (at, text) in &texts {
                        fields[*at] = text;
                    }
                    feed.row(row as u64 + 1, *key, &fields, host_bits, &values, &mut sink)
                }
            };
            let Err(what) = added else { continue };
            let what = format!("{}, row {row}: {what}", self.name);
            if settings.strict {
                return Err(error::source(what));
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

    fn value_columns<'a>(&'a self, keys: &Keys<'_, '_>) -> PyResult<Vec<Column<'a, 'py>>> {
        let is_key = |at: usize| matches!(keys, Keys::Columns(key) if key.has(at));
        let columns = self.columns.iter().enumerate().filter(|(at, _)| !is_key(*at));
        let column = |(_, (name, values)): (usize, &'a (String, Bound<'py, PyList>))| {
            Ok(Column { name, values, kind: ColumnType::of(values)? })
        };
        columns.map(column).collect()
    }

    /// The columns with the addresses of a frame, found as those of a text.
    fn roles(&self) -> PyResult<Roles> {
        let names: Vec<String> = self.columns.iter().map(|(name, _)| name.clone()).collect();
        let count = self.columns.first().map_or(0, |(_, list)| list.len());
        let texts = |row: usize| {
            let items = self.columns.iter().map(|(_, list)| key_text(&list.get_item(row)?, false));
            items.collect::<PyResult<Vec<_>>>()
        };
        let rows: Vec<_> = (0..count.min(SAMPLE)).map(texts).collect::<PyResult<_>>()?;
        let wanted = match &*self.key {
            [] => KeyColumns::Auto,
            [prefix] => KeyColumns::Prefix(prefix.clone()),
            [first, last, ..] => KeyColumns::Range(first.clone(), last.clone()),
        };
        let found = roles(Sample { rows: &rows, names: &names, delimited: true }, &wanted);
        found.map_err(|what| error::source(format!("{}: {what}", self.name)))
    }

    /// The cells of a row that hold the addresses, with the numbers of their columns.
    fn key_texts(&self, key: AddressColumns, row: usize) -> PyResult<Vec<(usize, Vec<u8>)>> {
        // A column that the caller names may have numbers; the ends of ranges are told apart by their texts.
        let numbers = self.key.len() == 1;
        let columns = [Some(key.start()), key.second()];
        let text = |at: usize| Ok((at, key_text(&self.columns[at].1.get_item(row)?, numbers)?));
        columns.into_iter().flatten().map(text).collect()
    }
}

/// Hands the rows to the table builder.
struct Feeder<'a> {
    builder: &'a mut TableBuilder,
    /// What was read otherwise than one might think, and how often.
    noted: Vec<(&'static str, u64)>,
}

impl<'a> Feeder<'a> {
    fn new(builder: &'a mut TableBuilder, name: &str, columns: &[Column<'_, '_>]) -> Self {
        let types = columns.iter().filter_map(|c| Some((c.name.to_owned(), c.kind.scalar()?)));
        builder.types_of_next(&types.collect::<Vec<_>>());
        let columns: Vec<_> = columns.iter().map(|c| (c.name.to_owned(), c.kind.kind())).collect();
        builder.begin_source(name, "python", &columns, false, None);
        Self { builder, noted: Vec::new() }
    }

    /// Adds the route of a pair.
    fn add(&mut self, row: usize, prefix: AnyPrefix, values: &[Value<'_>]) {
        self.record(row as u64 + 1, false);
        self.update(&Update::new(prefix, Change::Announce(Attributes::Values(values))));
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
