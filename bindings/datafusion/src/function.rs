//! The functions of rows.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion_common::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, UInt32Array, new_null_array,
};
use datafusion_common::arrow::compute::{cast, interleave, nullif, take};
use datafusion_common::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion_common::{Result, ScalarValue, internal_err};
use datafusion_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

use crate::answer::{Question, answer, plan, type_of};
use crate::names::{Names, constant};

/// One of the functions.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Function {
    question: Question,
    signature: Signature,
}

impl Function {
    /// What the functions ask.
    pub const ALL: [Question; 5] =
        [Question::Record, Question::Prefix, Question::Value, Question::Number, Question::Covering];

    /// The function that asks this.
    pub fn new(question: Question) -> Self {
        // The file may be replaced between two queries.
        Self { question, signature: Signature::user_defined(Volatility::Stable) }
    }
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        match self.question {
            Question::Record => "fibula",
            Question::Prefix => "fibula_prefix",
            Question::Value => "fibula_value",
            Question::Number => "fibula_number",
            Question::Covering => "fibula_covering",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        let expected = if self.question.has_column() {
            "(table, address, column)"
        } else {
            "(table, address)"
        };
        let (tables, address, column) = match (given, self.question.has_column()) {
            ([tables, address], false) => (tables, address, None),
            ([tables, address, column], true) => (tables, address, Some(column)),
            _ => return Err(plan(&format!("{} takes {expected}", self.name()))),
        };
        if let Some(other) = [Some(tables), column].into_iter().flatten().find(|of| !is_text(of)) {
            return Err(plan(&format!(
                "{} takes {expected}, and the names of a table and a column are text, not {other}",
                self.name()
            )));
        }
        let names = [Some(DataType::Utf8), column.map(|_| DataType::Utf8)];
        let [tables, column] = names;
        Ok(tables.into_iter().chain([addresses(address)]).chain(column).collect())
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        internal_err!("the type depends on the table: ask return_field_from_args")
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let named = args.scalar_arguments;
        let column = constant(named.get(2));
        let of = match (self.question, constant(named.first())) {
            (Question::Record, Some(Some(table))) => type_of(self.question, table, None)?,
            (Question::Record, _) => {
                return Err(plan(
                    "fibula needs the path of a table as a constant, whose columns are the fields of its result; \
                     fibula_prefix and fibula_value take a column of paths",
                ));
            }
            (Question::Value, Some(Some(table))) if matches!(column, Some(Some(_))) => {
                type_of(self.question, table, column.flatten())?
            }
            (question, _) => match question.plain_type() {
                Some(of) => of,
                None => return internal_err!("{question:?} has no type of its own"),
            },
        };
        Ok(Arc::new(Field::new(self.name(), of, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_constant = args.args.iter().all(|of| matches!(of, ColumnarValue::Scalar(_)));
        let rows = if is_constant { 1 } else { args.number_rows };
        let tables = Names::of(&args.args[0])?;
        let columns = args.args.get(2).map_or(Ok(Names::One(None)), Names::of)?;
        let addresses = of_length(args.args[1].to_array(rows)?)?;
        let planned = args.return_field.data_type();
        let found = match (&tables, &columns) {
            (Names::One(table), Names::One(column)) => {
                self.of_one(table.as_deref(), column.as_deref(), &addresses, planned)?
            }
            _ => self.of_several(&tables, &columns, &addresses, planned)?,
        };
        Ok(match is_constant {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&found, 0)?),
            false => ColumnarValue::Array(found),
        })
    }
}

impl Function {
    /// The answers for rows of one table and one column; nulls if a name is null.
    fn of_one(
        &self,
        table: Option<&str>,
        column: Option<&str>,
        addresses: &ArrayRef,
        planned: &DataType,
    ) -> Result<ArrayRef> {
        match table {
            Some(table) if column.is_some() || !self.question.has_column() => {
                answer(self.question, table, column, addresses, planned)
            }
            _ => Ok(new_null_array(planned, addresses.len())),
        }
    }

    /// The answers for rows of several: those of the same names together, then each at its row.
    fn of_several(
        &self,
        tables: &Names,
        columns: &Names,
        addresses: &ArrayRef,
        planned: &DataType,
    ) -> Result<ArrayRef> {
        let mut rows_of: HashMap<(Option<&str>, Option<&str>), Vec<u32>> = HashMap::new();
        for row in 0..addresses.len() {
            let rows = rows_of.entry((tables.get(row), columns.get(row))).or_default();
            rows.push(u32::try_from(row).map_err(|_| plan("a batch has 2^32 rows or more"))?);
        }
        let mut places = vec![(0, 0); addresses.len()];
        let mut found = Vec::with_capacity(rows_of.len());
        for ((table, column), rows) in rows_of {
            for (at, &row) in rows.iter().enumerate() {
                places[row as usize] = (found.len(), at);
            }
            let addresses = take(addresses, &UInt32Array::from(rows), None)?;
            found.push(self.of_one(table, column, &addresses, planned)?);
        }
        if found.is_empty() {
            return Ok(new_null_array(planned, 0));
        }
        let found: Vec<&dyn Array> = found.iter().map(AsRef::as_ref).collect();
        Ok(interleave(&found, &places)?)
    }
}

fn is_text(of: &DataType) -> bool {
    match of {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null => true,
        DataType::Dictionary(_, of) => is_text(of),
        _ => false,
    }
}

/// Bytes that are 4 or 16 long: others are no address, and null.
fn of_length(addresses: ArrayRef) -> Result<ArrayRef> {
    let addresses = match addresses.data_type() {
        DataType::BinaryView | DataType::LargeBinary => cast(&addresses, &DataType::Binary)?,
        DataType::Binary => addresses,
        _ => return Ok(addresses),
    };
    let cells = addresses.as_binary::<i32>().iter();
    let is_none = |bytes: Option<&[u8]>| bytes.is_some_and(|bytes| !matches!(bytes.len(), 4 | 16));
    let others: BooleanArray = cells.map(|bytes| Some(is_none(bytes))).collect();
    Ok(nullif(&addresses, &others)?)
}

/// The type in which addresses are looked up: numbers without a sign, or of few bits, are IPv4 addresses too.
fn addresses(given: &DataType) -> DataType {
    match given {
        DataType::Null => DataType::Utf8,
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::UInt8 | DataType::UInt16 => {
            DataType::Int64
        }
        of => of.clone(),
    }
}
