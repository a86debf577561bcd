//! Writes Parquet with the elementary intervals of a table, or with its prefixes.

use std::io::Write;
use std::sync::Arc;

use arrow_array::builder::{FixedSizeBinaryBuilder, StringDictionaryBuilder, UInt32Builder};
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use fibula_core::{Addr, Family, Hop, Range, Value};
use fibula_rib::{Columns, Pod, Table, Typed};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use crate::ExportError;

/// Rows of a batch, and of a row group: small, so that a join can pass over those that do not matter.
const BATCH: usize = 128 << 10;

impl From<ParquetError> for ExportError {
    fn from(error: ParquetError) -> Self {
        Self::Parquet(error.to_string())
    }
}

/// Writes the intervals of one family as Parquet, with the columns `start` and `end` (both inclusive) and the columns
/// of the table. Intervals do not overlap and are in address order. Addresses without a route are left out, and
/// neighbouring intervals with the same values are merged.
///
/// IPv4 addresses are `UINT_32`, for example `10.0.0.1` is 167772161. IPv6 addresses are 16 bytes in network order,
/// so they sort like addresses. Integers are `UINT_64`, fractions `DOUBLE`, booleans `BOOLEAN`, and text is
/// dictionary-encoded.
///
/// Returns the number of intervals.
///
/// # Errors
/// If writing fails.
pub fn intervals<A: Addr + Pod>(table: &Table, out: impl Write + Send) -> Result<u64, ExportError> {
    let address = match A::FAMILY {
        Family::V4 => DataType::UInt32,
        Family::V6 => DataType::FixedSizeBinary(16),
    };
    let keys = [Field::new("start", address.clone(), false), Field::new("end", address, false)];
    let (mut writer, schema) = writer(table, keys, out)?;
    let mut ranges = table.routes::<A>().ranges().filter(|range| !range.hop.is_none());
    let mut count = 0;
    loop {
        let batch: Vec<Range<A>> = ranges.by_ref().take(BATCH).collect();
        if batch.is_empty() {
            break;
        }
        count += batch.len() as u64;
        let mut arrays = vec![
            addresses(batch.iter().map(|range| range.first)),
            addresses(batch.iter().map(|range| range.last)),
        ];
        let hops: Vec<Hop> = batch.iter().map(|range| range.hop).collect();
        arrays.extend(values(&table.columns, &hops));
        let batch = RecordBatch::try_new(Arc::clone(&schema), arrays);
        writer.write(&batch.map_err(ParquetError::from)?)?;
    }
    writer.close()?;
    Ok(count)
}

/// Writes the routes of both families as Parquet, with the column `prefix` as text and the columns of the table. IPv4
/// comes first, and each family is in address order.
///
/// # Errors
/// If writing fails.
pub fn prefixes(table: &Table, out: impl Write + Send) -> Result<(), ExportError> {
    let (mut writer, schema) = writer(table, [Field::new("prefix", DataType::Utf8, false)], out)?;
    routes::<u32>(table, &schema, &mut writer)?;
    routes::<u128>(table, &schema, &mut writer)?;
    writer.close()?;
    Ok(())
}

fn routes<A: Addr + Pod>(
    table: &Table,
    schema: &Arc<Schema>,
    writer: &mut ArrowWriter<impl Write + Send>,
) -> Result<(), ExportError> {
    for routes in table.routes::<A>().as_slice().chunks(BATCH) {
        let texts = routes.iter().map(|route| route.prefix.to_string());
        let mut arrays: Vec<ArrayRef> = vec![Arc::new(StringArray::from_iter_values(texts))];
        let hops: Vec<Hop> = routes.iter().map(|route| route.hop).collect();
        arrays.extend(values(&table.columns, &hops));
        let batch = RecordBatch::try_new(Arc::clone(schema), arrays);
        writer.write(&batch.map_err(ParquetError::from)?)?;
    }
    Ok(())
}

/// A writer of these columns and of those of the table.
fn writer<W: Write + Send, const N: usize>(
    table: &Table,
    keys: [Field; N],
    out: W,
) -> Result<(ArrowWriter<W>, Arc<Schema>), ExportError> {
    let columns = &table.columns;
    let mut fields = keys.to_vec();
    let own: Vec<&str> = keys.iter().map(|key| key.name().as_str()).collect();
    for (at, name) in columns.names_beside(&own).into_iter().enumerate() {
        let kind = match type_of(columns, at) {
            "int" => DataType::UInt64,
            "float" => DataType::Float64,
            "bool" => DataType::Boolean,
            _ => DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
        };
        fields.push(Field::new(name, kind, true));
    }
    let schema = Arc::new(Schema::new(fields));
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(Default::default()))
        .set_max_row_group_row_count(Some(BATCH))
        .build();
    Ok((ArrowWriter::try_new(out, Arc::clone(&schema), Some(properties))?, schema))
}

fn addresses<A: Addr + Pod>(addrs: impl Iterator<Item = A>) -> ArrayRef {
    match A::FAMILY {
        Family::V4 => {
            let mut out = UInt32Builder::new();
            addrs.for_each(|addr| out.append_value(addr.to_u128() as u32));
            Arc::new(out.finish())
        }
        Family::V6 => {
            let mut out = FixedSizeBinaryBuilder::new(16);
            for addr in addrs {
                out.append_value(addr.to_u128().to_be_bytes()).expect("16 bytes are 16 bytes");
            }
            Arc::new(out.finish())
        }
    }
}

fn values(columns: &Columns, hops: &[Hop]) -> Vec<ArrayRef> {
    (0..columns.width()).map(|column| values_of(columns, column, hops)).collect()
}

/// The type of a column in a word. One that holds a text that is no number, or no boolean, stays one of text.
fn type_of(columns: &Columns, column: usize) -> &'static str {
    if columns.is_whole(column) { columns.type_name(column) } else { "str" }
}

fn values_of(columns: &Columns, column: usize, hops: &[Hop]) -> ArrayRef {
    let value = |hop: &Hop| hop.index().map_or(Value::Null, |row| columns.value(column, row));
    let typed = |hop| columns.typed(column, value(hop));
    match type_of(columns, column) {
        "int" => Arc::new(UInt64Array::from_iter(hops.iter().map(|hop| match value(hop) {
            Value::Int(int) => Some(int),
            _ => None,
        }))),
        "float" => Arc::new(Float64Array::from_iter(hops.iter().map(|hop| match typed(hop) {
            Typed::Float(float) => Some(float),
            _ => None,
        }))),
        "bool" => Arc::new(BooleanArray::from_iter(hops.iter().map(|hop| match typed(hop) {
            Typed::Bool(is) => Some(is),
            _ => None,
        }))),
        _ => {
            let mut out = StringDictionaryBuilder::<Int32Type>::new();
            for hop in hops {
                out.append_option(match value(hop) {
                    Value::Str(text) => Some(text),
                    _ => None,
                });
            }
            Arc::new(out.finish())
        }
    }
}
