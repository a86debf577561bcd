//! Tables of columnar files, Parquet and Arrow: which columns hold the addresses, and the updates of their rows.
//!
//! The libraries that read such files are large, so another crate has them. It gives batches of cells to this module
//! ([`ReadOptions::columnar`](crate::ReadOptions::columnar)).

use std::borrow::Cow;
use std::fs::File;
use std::io::Read;
use std::net::Ipv4Addr;

use fibula_core::{ColumnKind, ScalarType, Value};

use crate::text::{
    AddressColumns, Column, Earlier, Key, KeyColumns, Roles, Sample, TextOptions, emit_key,
    parse_int, parse_key, roles, value_columns,
};
use crate::{Damage, HostBits, Sink, SourceInfo};

/// Rows by which the columns with the addresses are found.
const SAMPLE: usize = 100;

/// The bytes of a columnar file.
pub enum ColumnarInput {
    /// A Parquet file.
    Parquet(File),
    /// An Arrow IPC file.
    ArrowFile(File),
    /// An Arrow IPC stream.
    ArrowStream(Box<dyn Read>),
}

/// A column of a columnar file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypedColumn {
    /// Its name.
    pub name: String,
    /// Whether it has integers or text.
    pub kind: ColumnKind,
    /// The type of the texts, if all have it.
    pub scalar: Option<ScalarType>,
    /// Why the column has no values; it is left out then.
    pub unusable: Option<String>,
}

/// Rows of a columnar file.
pub trait ColumnCells {
    /// The columns, the same for all batches of a file.
    fn columns(&self) -> &[TypedColumn];
    /// Number of rows.
    fn rows(&self) -> usize;
    /// A cell. Addresses in bytes are text; a column of integers may have a text that is none.
    fn value(&self, column: usize, row: usize) -> Value<'_>;
}

/// Reads a columnar file: calls the function with its rows, batch by batch, until it returns `false`. It is called once
/// at least.
pub type ReadColumns<'a> =
    dyn Fn(ColumnarInput, &mut dyn FnMut(&dyn ColumnCells) -> bool) -> Result<(), String> + 'a;

/// The end of [`ColumnarFeed::batch`] before that of the file.
#[derive(Debug)]
pub(crate) enum ColumnarStop {
    /// The sink requested it.
    BySink,
    /// The options do not fit the columns, or the columns with the addresses are in doubt.
    Misfit(String),
}

/// Turns the rows of one file into updates.
pub(crate) struct ColumnarFeed<'o> {
    format: &'static str,
    options: &'o TextOptions,
    running: Option<Running>,
    earlier: Earlier,
    /// Rows so far.
    pub(crate) records: u64,
}

struct Running {
    key: AddressColumns,
    /// The caller names the one column with the addresses, so integers there are addresses.
    is_chosen: bool,
    columns: Vec<Column>,
}

/// A value of a column, whose kind the cell may not have.
enum Converted<'a> {
    Value(Value<'a>),
    Text(String),
}

impl<'o> ColumnarFeed<'o> {
    pub(crate) fn new(format: &'static str, options: &'o TextOptions) -> Self {
        Self { format, options, running: None, earlier: Earlier::default(), records: 0 }
    }

    /// Passes the next rows on.
    pub(crate) fn batch(
        &mut self,
        cells: &dyn ColumnCells,
        sink: &mut dyn Sink,
    ) -> Result<(), ColumnarStop> {
        if self.running.is_none() {
            self.begin(cells, sink).map_err(ColumnarStop::Misfit)?;
        }
        let Some(Running { key, is_chosen, columns }) = &self.running else { return Ok(()) };
        let mut texts = vec![Cow::Borrowed(""); cells.columns().len()];
        for row in 0..cells.rows() {
            self.records += 1;
            for at in [Some(key.start()), key.second()].into_iter().flatten() {
                texts[at] = key_text(cells.value(at, row), *is_chosen);
            }
            let fields: Vec<&[u8]> = texts.iter().map(|text| text.as_bytes()).collect();
            let earlier = &mut self.earlier;
            let added = key.read(&fields, self.options.host_bits).and_then(|key| {
                let cells = columns.iter().map(|of| convert(of, cells.value(of.field, row)));
                let cells = cells.collect::<Result<Vec<_>, _>>()?;
                let values: Vec<Value<'_>> = cells.iter().map(Converted::value).collect();
                emit_key(key, self.records, earlier, &values, sink)
            });
            if let Err(what) = added
                && sink.damage(&Damage::row(self.records, what)).is_break()
            {
                return Err(ColumnarStop::BySink);
            }
        }
        Ok(())
    }

    /// Finds the columns with the addresses, by the rule of text.
    fn begin(&mut self, cells: &dyn ColumnCells, sink: &mut dyn Sink) -> Result<(), String> {
        let options = self.options;
        let found = cells.columns();
        let names: Vec<String> = match &*options.names {
            [] => found.iter().map(|column| column.name.clone()).collect(),
            names if names.len() <= found.len() => names.to_vec(),
            names => {
                return Err(format!(
                    "{} names for {} columns; --names takes one for each column of the file, in its order",
                    names.len(),
                    found.len()
                ));
            }
        };
        let text = |row| move |at| key_text(cells.value(at, row), false).into_owned().into_bytes();
        let rows: Vec<Vec<Vec<u8>>> = (0..cells.rows().min(SAMPLE))
            .map(|row| (0..found.len()).map(text(row)).collect())
            .collect();
        let mut info = SourceInfo { format: self.format, ..SourceInfo::default() };
        if rows.is_empty() {
            sink.begin(&info);
            return Ok(());
        }
        let Roles { key, notes } =
            roles(Sample { rows: &rows, names: &names, delimited: true }, &options.key)?;
        let mut columns = value_columns(&names, key, found.len(), options);
        columns.retain(|column| found[column.field].unusable.is_none());
        for column in &mut columns {
            let of = &found[column.field];
            column.set_kind(options, (of.kind, of.scalar));
        }
        info.columns = columns.iter().map(|column| column.decl.clone()).collect();
        let scalar = |column: &Column| Some((column.decl.name.clone(), column.scalar?));
        info.types = columns.iter().filter_map(scalar).collect();
        sink.begin(&info);
        notes.iter().for_each(|note| sink.noted(note));
        for column in found {
            if let Some(why) = &column.unusable {
                sink.remark("column", &format!("column {} is left out: {why}", column.name));
            }
        }
        let has_ranges = match key {
            AddressColumns::Two { .. } | AddressColumns::Counted { .. } => true,
            AddressColumns::One(at) => rows.iter().any(|row| is_range(&row[at])),
            AddressColumns::Net { .. } => false,
        };
        if has_ranges {
            self.earlier = Earlier::with_ranges();
        }
        let is_chosen = matches!(options.key, KeyColumns::Prefix(_));
        self.running = Some(Running { key, is_chosen, columns });
        Ok(())
    }
}

impl Converted<'_> {
    fn value(&self) -> Value<'_> {
        match self {
            Self::Value(value) => *value,
            Self::Text(text) => Value::Str(text),
        }
    }
}

/// A cell as a value of its column.
fn convert<'a>(column: &Column, value: Value<'a>) -> Result<Converted<'a>, Cow<'static, str>> {
    let fits = |text: &str| match column.fits(text.as_bytes()) {
        true => Ok(()),
        false => Err(column.complain(text.as_bytes())),
    };
    match (column.decl.kind, value) {
        (ColumnKind::Str, Value::Str(text)) => fits(text)?,
        (ColumnKind::Str, Value::Int(int)) => {
            let text = int.to_string();
            fits(&text)?;
            return Ok(Converted::Text(text));
        }
        (ColumnKind::Int, Value::Str("")) => return Ok(Converted::Value(Value::Null)),
        (ColumnKind::Int, Value::Str(text)) => {
            let int = parse_int(text.as_bytes()).ok_or_else(|| column.complain(text.as_bytes()))?;
            return Ok(Converted::Value(Value::Int(int)));
        }
        (ColumnKind::Int, Value::Int(_)) | (_, Value::Null) => {}
    }
    Ok(Converted::Value(value))
}

fn is_range(text: &[u8]) -> bool {
    matches!(parse_key(text, HostBits::Mask), Ok(Key::RangeV4(..) | Key::RangeV6(..)))
}

/// The text of a cell that may hold an address. Integers are IPv4 addresses only if the caller says so.
fn key_text(value: Value<'_>, is_address: bool) -> Cow<'_, str> {
    match value {
        Value::Null => "".into(),
        Value::Str(text) => text.trim_ascii().into(),
        Value::Int(int) => match u32::try_from(int) {
            Ok(int) if is_address => Ipv4Addr::from(int).to_string().into(),
            _ => int.to_string().into(),
        },
    }
}
