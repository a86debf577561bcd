//! Batches as rows of text or bytes: JSON lines, and ClickHouse's RowBinaryWithNamesAndTypes.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float64Type, Int32Type, TimestampMicrosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int32Array, ListArray, RecordBatch, StringArray,
    TimestampMicrosecondArray, UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use arrow_schema::{ArrowError, DataType, FieldRef, Schema};
use serde::Serialize;

/// The values of a column, by their type.
pub(crate) enum Values<'a> {
    U8(&'a UInt8Array),
    U16(&'a UInt16Array),
    U32(&'a UInt32Array),
    U64(&'a UInt64Array),
    F64(&'a Float64Array),
    Bool(&'a BooleanArray),
    Time(&'a TimestampMicrosecondArray),
    Text(&'a StringArray),
    Coded(&'a Int32Array, &'a StringArray),
    List(&'a ListArray, Box<Self>),
}

impl<'a> Values<'a> {
    fn of(column: &'a ArrayRef) -> Result<Self, ArrowError> {
        Ok(match column.data_type() {
            DataType::UInt8 => Self::U8(column.as_primitive::<UInt8Type>()),
            DataType::UInt16 => Self::U16(column.as_primitive::<UInt16Type>()),
            DataType::UInt32 => Self::U32(column.as_primitive::<UInt32Type>()),
            DataType::UInt64 => Self::U64(column.as_primitive::<UInt64Type>()),
            DataType::Float64 => Self::F64(column.as_primitive::<Float64Type>()),
            DataType::Boolean => Self::Bool(column.as_boolean()),
            DataType::Timestamp(..) => {
                Self::Time(column.as_primitive::<TimestampMicrosecondType>())
            }
            DataType::Utf8 => Self::Text(column.as_string()),
            DataType::Dictionary(..) => {
                let coded = column.as_dictionary::<Int32Type>();
                Self::Coded(coded.keys(), coded.values().as_string())
            }
            DataType::List(_) => {
                let lists = column.as_list::<i32>();
                Self::List(lists, Box::new(Self::of(lists.values())?))
            }
            other => return Err(ArrowError::NotYetImplemented(format!("rows of {other}"))),
        })
    }

    pub(crate) fn is_null(&self, row: usize) -> bool {
        match self {
            Self::U8(values) => values.is_null(row),
            Self::U16(values) => values.is_null(row),
            Self::U32(values) => values.is_null(row),
            Self::U64(values) => values.is_null(row),
            Self::F64(values) => values.is_null(row),
            Self::Bool(values) => values.is_null(row),
            Self::Time(values) => values.is_null(row),
            Self::Text(values) => values.is_null(row),
            Self::Coded(codes, texts) => {
                codes.is_null(row) || texts.is_null(codes.value(row) as usize)
            }
            Self::List(lists, _) => lists.is_null(row),
        }
    }

    /// The text of a row, which is not null.
    pub(crate) fn text(&self, row: usize) -> Option<&'a str> {
        match self {
            Self::Text(values) => Some(values.value(row)),
            Self::Coded(codes, texts) => Some(texts.value(codes.value(row) as usize)),
            _ => None,
        }
    }

    /// The number of a row, which is not null, or those of its list.
    pub(crate) fn integers(&self, row: usize) -> impl Iterator<Item = u64> + '_ {
        let (values, range) = match self {
            Self::List(lists, values) => (&**values, Self::range(lists, row)),
            other => (other, row..row + 1),
        };
        range.filter_map(move |at| match values {
            Self::U8(values) => Some(values.value(at).into()),
            Self::U16(values) => Some(values.value(at).into()),
            Self::U32(values) => Some(values.value(at).into()),
            Self::U64(values) => Some(values.value(at)),
            Self::Time(values) => u64::try_from(values.value(at)).ok(),
            _ => None,
        })
    }

    /// The text of a row, which is not null; of a list the texts of its items, between semicolons.
    pub(crate) fn joined(&self, row: usize) -> String {
        match self {
            Self::List(lists, values) => {
                let items = Self::range(lists, row);
                let text = |at| if values.is_null(at) { String::new() } else { values.joined(at) };
                items.map(text).collect::<Vec<_>>().join(";")
            }
            other => match other.text(row) {
                Some(text) => text.to_owned(),
                None => {
                    let mut out = Vec::new();
                    other.json(row, &mut out);
                    String::from_utf8(out).unwrap_or_default()
                }
            },
        }
    }

    fn range(lists: &ListArray, row: usize) -> std::ops::Range<usize> {
        let ends = lists.value_offsets();
        ends[row] as usize..ends[row + 1] as usize
    }

    /// Appends the value of a row, which is not null, as JSON.
    fn json(&self, row: usize, out: &mut Vec<u8>) {
        match self {
            Self::U8(values) => integer(values.value(row), out),
            Self::U16(values) => integer(values.value(row), out),
            Self::U32(values) => integer(values.value(row), out),
            Self::U64(values) => integer(values.value(row), out),
            Self::F64(values) => json(&values.value(row), out),
            Self::Bool(values) => json(&values.value(row), out),
            Self::Time(values) => {
                let micros = values.value(row);
                integer(micros.div_euclid(1_000_000), out);
                // The leading 1 keeps the zeros, and becomes the point.
                let point = out.len();
                integer(1_000_000 + micros.rem_euclid(1_000_000), out);
                out[point] = b'.';
            }
            Self::Text(values) => json(values.value(row), out),
            Self::Coded(codes, texts) => json(texts.value(codes.value(row) as usize), out),
            Self::List(lists, values) => {
                out.push(b'[');
                let range = Self::range(lists, row);
                for at in range.clone() {
                    if at > range.start {
                        out.push(b',');
                    }
                    match values.is_null(at) {
                        true => out.extend_from_slice(b"null"),
                        false => values.json(at, out),
                    }
                }
                out.push(b']');
            }
        }
    }

    /// Appends the value of a row as a nullable value of RowBinary.
    fn binary(&self, row: usize, out: &mut Vec<u8>) {
        if let Self::List(lists, values) = self {
            // Arrays cannot be null there.
            let range = if lists.is_null(row) { 0..0 } else { Self::range(lists, row) };
            length(range.len(), out);
            return range.for_each(|at| values.binary(at, out));
        }
        let is_null = self.is_null(row);
        out.push(u8::from(is_null));
        if is_null {
            return;
        }
        match self {
            Self::U8(values) => out.push(values.value(row)),
            Self::U16(values) => out.extend(values.value(row).to_le_bytes()),
            Self::U32(values) => out.extend(values.value(row).to_le_bytes()),
            Self::U64(values) => out.extend(values.value(row).to_le_bytes()),
            Self::F64(values) => out.extend(values.value(row).to_le_bytes()),
            Self::Bool(values) => out.push(values.value(row).into()),
            Self::Time(values) => out.extend(values.value(row).to_le_bytes()),
            Self::Text(values) => text(values.value(row), out),
            Self::Coded(codes, texts) => text(texts.value(codes.value(row) as usize), out),
            Self::List(..) => {}
        }
    }
}

fn integer(value: impl itoa::Integer, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

fn json(value: &(impl Serialize + ?Sized), out: &mut Vec<u8>) {
    // Numbers and text become JSON without an error, and so do writes into memory.
    let _ = serde_json::to_writer(out, value);
}

/// A length of RowBinary: seven bits a byte, the lowest first.
fn length(mut len: usize, out: &mut Vec<u8>) {
    while len >= 0x80 {
        out.push(len as u8 | 0x80);
        len >>= 7;
    }
    out.push(len as u8);
}

fn text(text: &str, out: &mut Vec<u8>) {
    length(text.len(), out);
    out.extend_from_slice(text.as_bytes());
}

/// The columns of a batch.
pub(crate) fn columns(batch: &RecordBatch) -> Result<Vec<Values<'_>>, ArrowError> {
    batch.columns().iter().map(Values::of).collect()
}

/// Appends the rows as JSON objects, one a line, without what is null.
pub(crate) fn json_lines(batch: &RecordBatch, out: &mut Vec<u8>) -> Result<(), ArrowError> {
    let columns = columns(batch)?;
    let schema = batch.schema_ref();
    let name = |field: &FieldRef| {
        let mut name = Vec::new();
        json(field.name().as_str(), &mut name);
        name.push(b':');
        name
    };
    let names: Vec<_> = schema.fields().iter().map(name).collect();
    for row in 0..batch.num_rows() {
        let mut before = b'{';
        for (column, name) in columns.iter().zip(&names).filter(|(column, _)| !column.is_null(row))
        {
            out.push(before);
            before = b',';
            out.extend_from_slice(name);
            column.json(row, out);
        }
        if before == b'{' {
            out.push(b'{');
        }
        out.extend_from_slice(b"}\n");
    }
    Ok(())
}

/// Appends the names and types of the columns.
pub(crate) fn binary_head(schema: &Schema, out: &mut Vec<u8>) -> Result<(), ArrowError> {
    let fields = schema.fields();
    length(fields.len(), out);
    fields.iter().for_each(|field| text(field.name(), out));
    for field in fields {
        text(&type_name(field.data_type())?, out);
    }
    Ok(())
}

/// Appends the rows.
pub(crate) fn binary_rows(batch: &RecordBatch, out: &mut Vec<u8>) -> Result<(), ArrowError> {
    let columns = columns(batch)?;
    for row in 0..batch.num_rows() {
        columns.iter().for_each(|column| column.binary(row, out));
    }
    Ok(())
}

/// ClickHouse's name of a type.
fn type_name(kind: &DataType) -> Result<String, ArrowError> {
    Ok(match kind {
        DataType::List(field) => return Ok(format!("Array({})", type_name(field.data_type())?)),
        DataType::UInt8 => "Nullable(UInt8)",
        DataType::UInt16 => "Nullable(UInt16)",
        DataType::UInt32 => "Nullable(UInt32)",
        DataType::UInt64 => "Nullable(UInt64)",
        DataType::Float64 => "Nullable(Float64)",
        DataType::Boolean => "Nullable(Bool)",
        DataType::Timestamp(..) => "Nullable(DateTime64(6, 'UTC'))",
        DataType::Utf8 | DataType::Dictionary(..) => "Nullable(String)",
        other => return Err(ArrowError::NotYetImplemented(format!("rows of {other}"))),
    }
    .to_owned())
}
