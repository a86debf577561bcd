//! The rows of a columnar file as those of a table: each cell is an integer, text, or missing.
//!
//! A column has the kind that the same values would have in CSV: integers, fractions or booleans if all of the first
//! rows are, else text. Texts stay texts. Addresses in bytes become text, and so do dates, times and lists.

use std::fmt::Write;
use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float16Type, Float32Type, Float64Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, LargeStringArray, RecordBatch, StringArray, StringViewArray, UInt64Array,
};
use arrow_cast::{can_cast_types, cast};
use arrow_schema::{DataType, Schema};
use fibula_core::{ColumnKind, ScalarType, Value};

use super::batches::{Batches, ColumnInput};
use super::guard::guarded;
use crate::AnnotateError;
use crate::columns::{BytesForm, is_printable, uuid};

/// The name by which Arrow, and the reader of Parquet, mark columns of UUIDs.
const UUID: &str = "arrow.uuid";
/// Rows, or bytes, from which the kinds of columns are found, and which are passed on at once.
const ROWS: usize = 32 << 10;
const BYTES: usize = 64 << 20;
/// Maximum number of bytes of the texts that are made of the lists of a batch. The items may share their bytes.
const LISTS: usize = 256 << 20;

/// A column of a columnar file, as a table has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableColumn {
    /// Its name.
    pub name: String,
    /// Whether it has integers or text.
    pub kind: ColumnKind,
    /// The type of the texts, if all have it.
    pub scalar: Option<ScalarType>,
    /// Why its cells are no values; all of them are missing then.
    pub unusable: Option<String>,
}

/// Rows of a columnar file.
pub struct TableBatch {
    columns: Arc<[TableColumn]>,
    /// Parts with the number of their first row.
    parts: Vec<(usize, Vec<Cells>)>,
    rows: usize,
}

impl TableBatch {
    /// The columns, the same for all batches of a file.
    pub fn columns(&self) -> &[TableColumn] {
        &self.columns
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// A cell. In a column of integers, a value that is none is text.
    pub fn value(&self, column: usize, row: usize) -> Value<'_> {
        let part = self.parts.partition_point(|(first, _)| *first <= row) - 1;
        let (first, cells) = &self.parts[part];
        cells[column].value(row - first)
    }
}

/// Reads the rows of a columnar file for a table: calls the function with each batch, until it returns `false`. It is
/// called once at least.
///
/// # Errors
/// If the file is damaged, or changes while it is read.
pub fn read_table(
    input: ColumnInput<'_>,
    give: &mut dyn FnMut(&TableBatch) -> bool,
) -> Result<(), AnnotateError> {
    let batches = Batches::open(input)?;
    let schema = Arc::clone(batches.schema());
    let mut reader = Reader { schema, forms: Vec::new(), columns: None, waiting: Vec::new() };
    let usable: Vec<usize> = reader.usable().collect();
    let (mut rows, mut bytes, mut stopped) = (0, 0, false);
    let read = batches.each(&usable, ROWS, |batch| {
        rows += batch.num_rows();
        bytes += batch.get_array_memory_size();
        reader.waiting.push(batch);
        if rows >= ROWS || bytes >= BYTES {
            (rows, bytes) = (0, 0);
            stopped = !give(&guarded(|| reader.take())?);
        }
        // The error ends the loop, and is not seen.
        if stopped { Err(AnnotateError::File { what: String::new() }) } else { Ok(()) }
    });
    if stopped {
        return Ok(());
    }
    read?;
    if rows > 0 || reader.columns.is_none() {
        give(&guarded(|| reader.take())?);
    }
    Ok(())
}

/// What the cells of a column are made into.
#[derive(Clone, Debug)]
enum Form {
    Int,
    /// Numbers that are kept as text, of this type if all have it.
    Number(Option<ScalarType>),
    Bool,
    Text,
    Bytes(BytesForm),
    /// UUIDs, which are not addresses although they have sixteen bytes.
    Uuid,
    /// Lists of such cells, which become one text.
    List(Box<Form>),
    /// Why the cells are no values.
    Unusable(String),
}

struct Reader {
    schema: Arc<Schema>,
    forms: Vec<Form>,
    columns: Option<Arc<[TableColumn]>>,
    waiting: Vec<RecordBatch>,
}

impl Reader {
    /// The columns that are read.
    fn usable(&self) -> impl Iterator<Item = usize> {
        let fields = self.schema.fields().iter().enumerate();
        fields.filter(|(_, field)| is_usable(field.data_type())).map(|(at, _)| at)
    }

    /// The batches that wait, as one.
    fn take(&mut self) -> Result<TableBatch, AnnotateError> {
        let waiting = std::mem::take(&mut self.waiting);
        if self.columns.is_none() {
            let usable: Vec<usize> = self.usable().collect();
            let mut forms = vec![None; self.schema.fields().len()];
            for (column, &at) in usable.iter().enumerate() {
                let arrays: Vec<ArrayRef> =
                    waiting.iter().map(|batch| Arc::clone(batch.column(column))).collect();
                let field = self.schema.field(at);
                let kind = field.data_type();
                forms[at] = Some(match (kind, field.extension_type_name()) {
                    (DataType::FixedSizeBinary(_), Some(UUID)) => Form::Uuid,
                    _ => form(kind, &arrays)?,
                });
            }
            let fields = self.schema.fields().iter().zip(forms);
            let forms =
                fields.map(|(field, form)| form.unwrap_or_else(|| no_value(field.data_type())));
            self.forms = forms.collect();
        }
        let fields = self.schema.fields().iter().zip(&self.forms);
        let columns = self
            .columns
            .get_or_insert_with(|| fields.map(|(field, form)| form.column(field.name())).collect());
        let columns = Arc::clone(columns);
        let (mut parts, mut rows) = (Vec::new(), 0);
        for batch in waiting.iter().filter(|batch| batch.num_rows() > 0) {
            let mut arrays = batch.columns().iter();
            let mut cells = Vec::new();
            for (field, form) in self.schema.fields().iter().zip(&self.forms) {
                let array = is_usable(field.data_type()).then(|| arrays.next()).flatten();
                cells.push(array.map_or(Ok(Cells::Missing), |array| Cells::of(array, form))?);
            }
            parts.push((rows, cells));
            rows += batch.num_rows();
        }
        Ok(TableBatch { columns, parts, rows })
    }
}

impl Form {
    fn column(&self, name: &str) -> TableColumn {
        let (kind, scalar) = match self {
            Self::Int => (ColumnKind::Int, None),
            Self::Number(scalar) => (ColumnKind::Str, *scalar),
            Self::Bool => (ColumnKind::Str, Some(ScalarType::Bool)),
            _ => (ColumnKind::Str, None),
        };
        let unusable = if let Self::Unusable(why) = self { Some(why.clone()) } else { None };
        TableColumn { name: name.to_owned(), kind, scalar, unusable }
    }
}

/// The item of a type of lists.
fn item(kind: &DataType) -> Option<&DataType> {
    match kind {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            Some(item.data_type())
        }
        _ => None,
    }
}

/// Whether cells of this type can be values.
fn is_usable(kind: &DataType) -> bool {
    use DataType as T;
    match kind {
        T::Dictionary(_, values) => item(values).is_none() && is_usable(values),
        T::Struct(_) | T::Map(..) | T::Union(..) | T::RunEndEncoded(..) => false,
        T::ListView(_) | T::LargeListView(_) => false,
        T::Null | T::Binary | T::LargeBinary | T::BinaryView | T::FixedSizeBinary(_) => true,
        kind => match item(kind) {
            Some(item) => self::item(item).is_none() && is_usable(item),
            None => can_cast_types(kind, &T::Utf8),
        },
    }
}

fn no_value(kind: &DataType) -> Form {
    let kind: String = kind.to_string().chars().take(60).collect();
    Form::Unusable(format!("cells of the type {kind} are no values"))
}

/// The form of the cells of a column in the first batches.
fn form(kind: &DataType, arrays: &[ArrayRef]) -> Result<Form, AnnotateError> {
    use DataType as T;
    Ok(match kind {
        T::Dictionary(_, values) => {
            let arrays: Vec<ArrayRef> =
                arrays.iter().map(|array| Arc::clone(array.as_any_dictionary().values())).collect();
            form(values, &arrays)?
        }
        T::Boolean => Form::Bool,
        T::UInt8 | T::UInt16 | T::UInt32 | T::UInt64 => Form::Int,
        T::Int8 | T::Int16 | T::Int32 | T::Int64 => {
            let mut negative = false;
            for array in arrays {
                let array = cast(array, &T::Int64)?;
                negative |= array.as_primitive::<Int64Type>().iter().flatten().any(|int| int < 0);
            }
            if negative { number(arrays)? } else { Form::Int }
        }
        kind if kind.is_floating() || kind.is_decimal() => number(arrays)?,
        T::Binary | T::LargeBinary | T::BinaryView | T::FixedSizeBinary(_) => bytes_form(arrays),
        kind => match item(kind) {
            Some(kind) => {
                let arrays: Vec<ArrayRef> =
                    arrays.iter().filter_map(|array| items(array)).collect();
                Form::List(Box::new(form(kind, &arrays)?))
            }
            None => Form::Text,
        },
    })
}

/// The form of numbers: integers, fractions, or text if a number would lose digits.
fn number(arrays: &[ArrayRef]) -> Result<Form, AnnotateError> {
    let (mut any, mut ints, mut floats) = (false, true, true);
    for array in arrays {
        for text in texts(array)?.iter().flatten() {
            any = true;
            ints = ints && text.parse::<u64>().is_ok();
            floats =
                floats && text.parse::<f64>().is_ok_and(|n| n.is_finite() && n.to_string() == text);
        }
    }
    Ok(match (any && ints, any && floats) {
        (true, _) => Form::Int,
        (false, true) => Form::Number(Some(ScalarType::Double)),
        (false, false) => Form::Number(None),
    })
}

/// Bytes are addresses or text; of any length, if all are printable.
fn bytes_form(arrays: &[ArrayRef]) -> Form {
    let cells = || arrays.iter().flat_map(|array| bytes(array)).flatten();
    let is_address =
        arrays.iter().any(|array| matches!(array.data_type(), DataType::FixedSizeBinary(4 | 16)));
    if !is_address && cells().all(is_printable) {
        return Form::Bytes(BytesForm::Text);
    }
    match BytesForm::of(cells()) {
        Ok(form) => Form::Bytes(form),
        Err(error) => Form::Unusable(error.to_string()),
    }
}

/// The cells of a column of bytes.
fn bytes(array: &ArrayRef) -> Box<dyn Iterator<Item = Option<&[u8]>> + '_> {
    match array.data_type() {
        DataType::Binary => Box::new(array.as_binary::<i32>().iter()),
        DataType::LargeBinary => Box::new(array.as_binary::<i64>().iter()),
        DataType::BinaryView => Box::new(array.as_binary_view().iter()),
        _ => Box::new(array.as_fixed_size_binary().iter()),
    }
}

/// All items of a column of lists.
fn items(array: &ArrayRef) -> Option<ArrayRef> {
    Some(Arc::clone(match array.data_type() {
        DataType::List(_) => array.as_list::<i32>().values(),
        DataType::LargeList(_) => array.as_list::<i64>().values(),
        DataType::FixedSizeList(..) => array.as_fixed_size_list().values(),
        _ => return None,
    }))
}

/// The cells as text.
fn texts(array: &ArrayRef) -> Result<StringArray, AnnotateError> {
    fn floats<T: std::fmt::Display>(cells: impl Iterator<Item = Option<T>>) -> StringArray {
        let text = |number: T| number.to_string();
        cells.map(|cell| cell.map(text).filter(|text| text != "NaN")).collect()
    }
    Ok(match array.data_type() {
        DataType::Float16 => floats(array.as_primitive::<Float16Type>().iter()),
        DataType::Float32 => floats(array.as_primitive::<Float32Type>().iter()),
        DataType::Float64 => floats(array.as_primitive::<Float64Type>().iter()),
        kind if kind.is_decimal() => {
            let array = cast(array, &DataType::Utf8)?;
            let plain = |text: &str| match text.contains('.') {
                true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
                false => text.to_owned(),
            };
            array.as_string::<i32>().iter().map(|cell| cell.map(plain)).collect()
        }
        DataType::Timestamp(unit, Some(_)) => {
            // Zones by name are not known here. All times are given in UTC.
            let utc = cast(array, &DataType::Timestamp(*unit, Some("+00:00".into())))?;
            cast(&utc, &DataType::Utf8)?.as_string::<i32>().clone()
        }
        _ => cast(array, &DataType::Utf8)?.as_string::<i32>().clone(),
    })
}

/// The cells of a column in one batch.
enum Cells {
    Missing,
    /// Integers, and the texts of those that are none.
    Ints(UInt64Array, Option<StringArray>),
    Texts(StringArray),
    LargeTexts(LargeStringArray),
    TextViews(StringViewArray),
    Dictionary(Vec<Option<usize>>, Box<Cells>),
}

impl Cells {
    fn of(array: &ArrayRef, form: &Form) -> Result<Self, AnnotateError> {
        if let DataType::Dictionary(..) = array.data_type() {
            let dictionary = array.as_any_dictionary();
            if dictionary.values().is_empty() {
                return Ok(Self::Missing);
            }
            let nulls = dictionary.keys().nulls();
            let key = |(row, key)| nulls.is_none_or(|nulls| nulls.is_valid(row)).then_some(key);
            let keys = dictionary.normalized_keys().into_iter().enumerate().map(key).collect();
            return Ok(Self::Dictionary(keys, Box::new(Self::of(dictionary.values(), form)?)));
        }
        Ok(match (form, array.data_type()) {
            (Form::Unusable(_), _) | (_, DataType::Null) => Self::Missing,
            (Form::Int, kind) if kind.is_integer() => {
                let ints = cast(array, &DataType::UInt64)?;
                let is_whole = ints.null_count() == array.null_count();
                let texts = if is_whole { None } else { Some(texts(array)?) };
                Self::Ints(ints.as_primitive().clone(), texts)
            }
            (Form::Int, _) => {
                let texts = texts(array)?;
                let ints: UInt64Array =
                    texts.iter().map(|text| text.and_then(|text| text.parse().ok())).collect();
                let is_whole = ints.null_count() == texts.null_count();
                Self::Ints(ints, (!is_whole).then_some(texts))
            }
            (Form::Text, DataType::Utf8) => Self::Texts(array.as_string().clone()),
            (Form::Text, DataType::LargeUtf8) => Self::LargeTexts(array.as_string().clone()),
            (Form::Text, DataType::Utf8View) => Self::TextViews(array.as_string_view().clone()),
            (Form::Bytes(form), _) => {
                Self::Texts(bytes(array).map(|cell| Some(form.text(cell?))).collect())
            }
            (Form::Uuid, _) => Self::Texts(bytes(array).map(|cell| Some(uuid(cell?))).collect()),
            (Form::List(form), _) => Self::lists(array, form)?,
            (Form::Number(_) | Form::Bool | Form::Text, _) => Self::Texts(texts(array)?),
        })
    }

    /// Lists as texts, with semicolons between their items.
    fn lists(array: &ArrayRef, form: &Form) -> Result<Self, AnnotateError> {
        let mut out = StringBuilder::new();
        let mut text = String::new();
        let mut bytes = 0;
        for row in 0..array.len() {
            let items = match array.data_type() {
                _ if array.is_null(row) => None,
                DataType::List(_) => Some(array.as_list::<i32>().value(row)),
                DataType::LargeList(_) => Some(array.as_list::<i64>().value(row)),
                _ => Some(array.as_fixed_size_list().value(row)),
            };
            text.clear();
            if let Some(items) = items.filter(|items| !items.is_empty()) {
                let cells = Self::of(&items, form)?;
                for at in 0..items.len() {
                    let between = if text.is_empty() { "" } else { ";" };
                    let _ = match cells.value(at) {
                        Value::Null => Ok(()),
                        Value::Int(int) => write!(text, "{between}{int}"),
                        Value::Str(item) => write!(text, "{between}{item}"),
                    };
                    if bytes + text.len() > LISTS {
                        let what =
                            format!("the lists of {} rows have more than {LISTS} bytes", row + 1);
                        return Err(AnnotateError::File { what });
                    }
                }
            }
            bytes += text.len();
            out.append_option((!text.is_empty()).then_some(&*text));
        }
        Ok(Self::Texts(out.finish()))
    }

    fn value(&self, row: usize) -> Value<'_> {
        match self {
            Self::Missing => Value::Null,
            Self::Ints(ints, texts) if ints.is_null(row) => {
                texts.as_ref().map_or(Value::Null, |texts| text(texts, row))
            }
            Self::Ints(ints, _) => Value::Int(ints.value(row)),
            Self::Texts(texts) => text(texts, row),
            Self::LargeTexts(texts) if texts.is_null(row) => Value::Null,
            Self::LargeTexts(texts) => Value::Str(texts.value(row)),
            Self::TextViews(texts) if texts.is_null(row) => Value::Null,
            Self::TextViews(texts) => Value::Str(texts.value(row)),
            Self::Dictionary(keys, values) => {
                keys[row].map_or(Value::Null, |key| values.value(key))
            }
        }
    }
}

fn text(texts: &StringArray, row: usize) -> Value<'_> {
    if texts.is_null(row) { Value::Null } else { Value::Str(texts.value(row)) }
}
