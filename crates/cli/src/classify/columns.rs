//! Reads packets from the columns of Parquet and Arrow.

use std::fmt::Display;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray, UInt32Array};
use arrow_schema::{DataType, Field, Schema};
use fibula_annotate::{AnnotateError, ArrowRows, ParquetRows};
use fibula_classify::text::protocol;
use fibula_classify::{FiveTuple, Flow, Rule};
use parquet::arrow::ArrowWriter;

use super::packets::{COLUMNS_OF_FLOWS, PacketCounts, columns, unclassified, write_flow};
use super::{COLUMNS, Hits};
use crate::annotate::reading::Columns;
use crate::failure::Failure;
use crate::output::Output;

/// Number of rows decoded together.
const ROWS: usize = 8192;

/// An error of the file, or of one row.
enum Error {
    File(AnnotateError),
    Failed(Failure),
}

impl From<AnnotateError> for Error {
    fn from(error: AnnotateError) -> Self {
        Self::File(error)
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// The rows of a columnar input.
enum Rows {
    Parquet(ParquetRows),
    Arrow(ArrowRows<'static>),
}

impl Rows {
    fn schema(&self) -> &Arc<Schema> {
        match self {
            Self::Parquet(rows) => rows.schema(),
            Self::Arrow(rows) => rows.schema(),
        }
    }

    fn each(
        self,
        places: &[usize],
        each: impl FnMut(&RecordBatch) -> Result<(), Error>,
    ) -> Result<(), Error> {
        match self {
            Self::Parquet(rows) => rows.each(places, ROWS, each),
            Self::Arrow(rows) => rows.each(places, each),
        }
    }
}

/// Classifies all rows. If `to` is given, writes a Parquet file there with all columns and, after them, the rules'
/// columns.
pub fn rows(
    path: &Path,
    input: Columns,
    hits: &mut Hits,
    to: Option<&Path>,
) -> Result<PacketCounts, Failure> {
    let failed = |error: &dyn Display| Failure::new(format_args!("{}: {error}", path.display()));
    let file = match input {
        Columns::Parquet(file) => ParquetRows::open(file).map(Rows::Parquet),
        Columns::ArrowFile(file) => ArrowRows::file(file).map(Rows::Arrow),
        Columns::ArrowStream(data) => ArrowRows::stream(data).map(Rows::Arrow),
    };
    let file = file.map_err(|error| failed(&error))?;
    let schema = Arc::clone(file.schema());
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let columns = columns(&names).map_err(|what| failed(&what))?;
    let said = PacketCounts { without_ports: columns[3].is_none(), ..PacketCounts::default() };
    let mut places: Vec<usize> = match to {
        Some(_) => (0..names.len()).collect(),
        None => columns.iter().flatten().copied().collect(),
    };
    places.sort_unstable();
    let at = |place: usize| places.iter().position(|other| *other == place).unwrap_or(0);
    let columns = columns.map(|place| place.map(|place| (names[place], at(place))));
    hits.line(format!("row,{COLUMNS_OF_FLOWS},{COLUMNS}\n").as_bytes())?;
    if to.is_some() {
        unclassified(&names).map_err(|what| failed(&what))?;
    }
    let mut writer = to.map(|to| Added::create(to, &schema)).transpose()?;
    let mut number = 0u64;
    let done = file.each(&places, |batch| {
        let five = five(batch, &columns);
        for row in 0..batch.num_rows() {
            number += 1;
            let flow = flow(&five, row).map_err(|(column, what)| {
                failed(&format_args!("row {number}, column {column}: {what}"))
            })?;
            hits.packet(&flow, 0, |text| write_flow(text, number, &flow))?;
        }
        if let Some(writer) = &mut writer {
            hits.flush()?;
            writer.write(batch, hits)?;
        }
        Ok::<_, Error>(())
    });
    done.map_err(|error| match error {
        Error::File(error) => failed(&error),
        Error::Failed(failure) => failure,
    })?;
    if let Some(writer) = writer {
        writer.finish()?;
    }
    Ok(said)
}

/// A column of a batch. The keys of a dictionary are read once, not for each cell.
struct Column<'a> {
    name: &'a str,
    array: &'a dyn Array,
    /// The values of a dictionary, and for each row the place of its value.
    dictionary: Option<(&'a dyn Array, Vec<usize>)>,
}

impl<'a> Column<'a> {
    fn cell(&self, row: usize) -> Cell<'a, 'a> {
        match &self.dictionary {
            Some((values, keys)) if !self.array.is_null(row) => {
                Cell { name: self.name, array: *values, row: keys[row] }
            }
            _ => Cell { name: self.name, array: self.array, row },
        }
    }
}

/// The columns of the five fields.
type Five<'a> = [Option<Column<'a>>; 5];

/// The columns of a batch, by name and position.
fn five<'a>(batch: &'a RecordBatch, columns: &[Option<(&'a str, usize)>; 5]) -> Five<'a> {
    columns.map(|column| {
        column.map(|(name, at)| {
            let array = batch.column(at).as_ref();
            let dictionary = array.as_any_dictionary_opt();
            let dictionary = dictionary
                .map(|dictionary| (dictionary.values().as_ref(), dictionary.normalized_keys()));
            Column { name, array, dictionary }
        })
    })
}

fn flow<'a>(five: &Five<'a>, row: usize) -> Result<Flow, (&'a str, String)> {
    let [src, dst, proto, from, to] =
        [0, 1, 2, 3, 4].map(|at| five[at].as_ref().map(|c| c.cell(row)));
    let missing = || ("", "a column is missing".to_owned());
    let (src, dst) = (src.ok_or_else(missing)?, dst.ok_or_else(missing)?);
    let proto = proto.ok_or_else(missing)?;
    let port = |cell: Option<Cell<'a, '_>>| cell.map_or(Ok(None), Cell::port);
    let ports = match (port(from)?, port(to)?) {
        (Some(from), Some(to)) => Some((from, to)),
        (None, None) => None,
        _ => {
            let name = from.or(to).map_or("", |cell| cell.name);
            return Err((name, "one port is null, and the other is not".to_owned()));
        }
    };
    let five =
        FiveTuple { src: src.address()?, dst: dst.address()?, protocol: proto.protocol()?, ports };
    Flow::try_from(&five).map_err(|error| (dst.name, error.to_string()))
}

/// A cell of a column, with the column's name for errors.
#[derive(Clone, Copy)]
struct Cell<'a, 'b> {
    name: &'a str,
    array: &'b dyn Array,
    row: usize,
}

impl<'a, 'b> Cell<'a, 'b> {
    fn wrong<T>(self, what: impl Display) -> Result<T, (&'a str, String)> {
        Err((self.name, what.to_string()))
    }

    fn is_null(self) -> bool {
        self.array.is_null(self.row)
    }

    fn other_type<T>(self, wanted: &str) -> Result<T, (&'a str, String)> {
        match self.is_null() {
            true => self.wrong("null"),
            false => self.wrong(format_args!("it has {}, not {wanted}", self.array.data_type())),
        }
    }

    fn text(self) -> Option<&'b str> {
        let (array, row) = (self.array, self.row);
        match array.data_type() {
            _ if self.is_null() => None,
            DataType::Utf8 => Some(array.as_string::<i32>().value(row)),
            DataType::LargeUtf8 => Some(array.as_string::<i64>().value(row)),
            DataType::Utf8View => Some(array.as_string_view().value(row)),
            _ => None,
        }
    }

    fn bytes(self) -> Option<&'b [u8]> {
        let (array, row) = (self.array, self.row);
        match array.data_type() {
            _ if self.is_null() => None,
            DataType::FixedSizeBinary(_) => Some(array.as_fixed_size_binary().value(row)),
            DataType::Binary => Some(array.as_binary::<i32>().value(row)),
            DataType::LargeBinary => Some(array.as_binary::<i64>().value(row)),
            DataType::BinaryView => Some(array.as_binary_view().value(row)),
            _ => None,
        }
    }

    fn number(self) -> Option<i128> {
        let (array, row) = (self.array, self.row);
        Some(match array.data_type() {
            _ if self.is_null() => return None,
            DataType::UInt8 => array.as_primitive::<UInt8Type>().value(row).into(),
            DataType::UInt16 => array.as_primitive::<UInt16Type>().value(row).into(),
            DataType::UInt32 => array.as_primitive::<UInt32Type>().value(row).into(),
            DataType::UInt64 => array.as_primitive::<UInt64Type>().value(row).into(),
            DataType::Int8 => array.as_primitive::<Int8Type>().value(row).into(),
            DataType::Int16 => array.as_primitive::<Int16Type>().value(row).into(),
            DataType::Int32 => array.as_primitive::<Int32Type>().value(row).into(),
            DataType::Int64 => array.as_primitive::<Int64Type>().value(row).into(),
            _ => return None,
        })
    }

    /// The address of the cell: text, four or sixteen bytes, or an IPv4 address as a number.
    fn address(self) -> Result<IpAddr, (&'a str, String)> {
        if let Some(text) = self.text() {
            let parsed = text.trim().parse();
            return parsed.or_else(|_| self.wrong(format_args!("{text:?} is not an address")));
        }
        if let Some(number) = self.number() {
            let address = u32::try_from(number).map(|number| Ipv4Addr::from_bits(number).into());
            return address
                .or_else(|_| self.wrong(format_args!("{number} is not an IPv4 address")));
        }
        match self.bytes() {
            Some(&[a, b, c, d]) => Ok(Ipv4Addr::new(a, b, c, d).into()),
            Some(bytes) => match <[u8; 16]>::try_from(bytes) {
                Ok(bytes) => Ok(Ipv6Addr::from(bytes).into()),
                Err(_) => self
                    .wrong(format_args!("an address of {} bytes, which has 4 or 16", bytes.len())),
            },
            None => self.other_type("addresses"),
        }
    }

    fn protocol(self) -> Result<u8, (&'a str, String)> {
        if let Some(text) = self.text() {
            let what = || format!("{text:?} is no protocol: give its number");
            return protocol(text.trim()).ok_or_else(|| (self.name, what()));
        }
        match self.number().map(u8::try_from) {
            Some(Ok(number)) => Ok(number),
            Some(Err(_)) => self.wrong("protocols are 0 to 255"),
            None => self.other_type("protocols"),
        }
    }

    /// The port of the cell, or none for a null. A column of nulls may have any type.
    fn port(self) -> Result<Option<u16>, (&'a str, String)> {
        match self.number().map(u16::try_from) {
            Some(Ok(port)) => Ok(Some(port)),
            Some(Err(_)) => self.wrong("ports are 0 to 65535"),
            None if self.is_null() || *self.array.data_type() == DataType::Null => Ok(None),
            None => self.other_type("ports"),
        }
    }
}

/// Writes a Parquet file with the columns of the input, followed by the columns of the rules.
struct Added {
    writer: ArrowWriter<Output>,
    schema: Arc<Schema>,
}

impl Added {
    fn create(path: &Path, schema: &Schema) -> Result<Self, Failure> {
        let mut fields = schema.fields().to_vec();
        let kinds = [DataType::UInt32, DataType::Utf8, DataType::Utf8];
        for (name, kind) in COLUMNS.split(',').zip(kinds) {
            fields.push(Arc::new(Field::new(name, kind, true)));
        }
        let schema = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
        let writer = ArrowWriter::try_new(Output::create(path)?, Arc::clone(&schema), None);
        Ok(Self { writer: writer.map_err(Failure::new)?, schema })
    }

    /// Writes a batch. Its rules are the results that `hits` has collected since the last batch.
    fn write(&mut self, batch: &RecordBatch, hits: &mut Hits) -> Result<(), Failure> {
        let found = std::mem::take(&mut hits.collected);
        let rules = || found.iter().map(|id| id.and_then(|id| hits.classifier.rules().get(id)));
        let label = |rule: Option<&Rule>| rule?.label.as_deref().map(str::to_owned);
        let added: [ArrayRef; 3] = [
            Arc::new(rules().map(|rule| Some(rule?.line)).collect::<UInt32Array>()),
            Arc::new(rules().map(|rule| Some(rule?.action.to_string())).collect::<StringArray>()),
            Arc::new(rules().map(label).collect::<StringArray>()),
        ];
        let columns = batch.columns().iter().cloned().chain(added).collect();
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns);
        batch
            .map_err(|error| Failure::new(format_args!("{error}")))
            .and_then(|batch| self.writer.write(&batch).map_err(Failure::new))
    }

    fn finish(self) -> Result<(), Failure> {
        self.writer.into_inner().map_err(Failure::new)?.finish()
    }
}
