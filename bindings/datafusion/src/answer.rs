//! What the functions return, for the addresses of one table and one column.

use std::sync::Arc;

use datafusion_common::arrow::array::{Array, ArrayRef, StructArray};
use datafusion_common::arrow::compute::cast;
use datafusion_common::arrow::datatypes::{DataType, Field, FieldRef, Fields};
use datafusion_common::{DataFusionError, Result};
use fibula_annotate::{AnnotateOptions, Annotated, ColumnAnnotator, PreparedTable, TextForm};
use fibula_core::ColumnKind;
use fibula_fib::Fib;

use crate::open;

/// What is asked about addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Question {
    /// The longest prefix, and its values by name.
    Record,
    /// The longest prefix.
    Prefix,
    /// The value of one column.
    Value,
    /// The value of one column of integers.
    Number,
    /// All prefixes, longest first.
    Covering,
}

impl Question {
    /// Whether it takes the name of a column.
    pub fn has_column(self) -> bool {
        matches!(self, Self::Value | Self::Number)
    }

    /// The type of its answers where it is the same for all tables; of values, as text.
    pub fn plain_type(self) -> Option<DataType> {
        match self {
            Self::Record => None,
            Self::Prefix | Self::Value => Some(DataType::Utf8),
            Self::Number => Some(DataType::UInt64),
            Self::Covering => {
                Some(DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true))))
            }
        }
    }
}

/// The type of the answers from the table that is there now.
pub fn type_of(question: Question, table: &str, column: Option<&str>) -> Result<DataType> {
    let annotator = annotator(question, &*open(table)?, column)?;
    Ok(match question {
        Question::Record => DataType::Struct(fields(&annotator)),
        _ => wide(annotator.fields(NAME)[0].data_type()),
    })
}

/// The answers about these addresses, in the type that was planned.
pub fn answer(
    question: Question,
    table: &str,
    column: Option<&str>,
    addresses: &ArrayRef,
    planned: &DataType,
) -> Result<ArrayRef> {
    let annotator = annotator(question, &*open(table)?, column)?;
    let Annotated { mut columns, .. } = annotator.annotate(NAME, addresses).map_err(failed)?;
    let found = match question {
        Question::Record => {
            let fields = fields(&annotator);
            let values = columns.iter().zip(&fields);
            let values = values.map(|(column, field)| cast(column, field.data_type()));
            let values = values.collect::<Result<Vec<_>, _>>()?;
            // Each match has a prefix, the first of the columns.
            let nulls = values[0].nulls().cloned();
            Arc::new(StructArray::try_new(fields, values, nulls)?) as ArrayRef
        }
        _ => {
            let column = columns.swap_remove(0);
            let to = wide(column.data_type());
            cast(&column, if *planned == DataType::Utf8 { planned } else { &to })?
        }
    };
    match found.data_type() == planned {
        true => Ok(found),
        false => Err(DataFusionError::Execution(format!(
            "fibula: the file {table} was replaced by a table with other columns: the query was planned for {planned}, \
             and now it is {}; send the query again",
            found.data_type()
        ))),
    }
}

/// What the added columns are called after; the name is taken away again.
const NAME: &str = "a";

/// What finds the answers to a question.
fn annotator(
    question: Question,
    table: &PreparedTable<Fib>,
    column: Option<&str>,
) -> Result<Arc<ColumnAnnotator>> {
    let names = table.fib.columns().names_beside(&["prefix", "covering"]);
    let mut options = AnnotateOptions::default();
    options.text = TextForm::Plain;
    options.add = match question {
        Question::Record => ["prefix".to_owned()].into_iter().chain(names).collect(),
        Question::Prefix => vec!["prefix".to_owned()],
        Question::Covering => vec!["covering".to_owned()],
        Question::Value | Question::Number => {
            let column = column.ok_or_else(|| plan("the name of a column is missing"))?;
            let columns = table.fib.columns();
            let at = columns.find(column).ok_or_else(|| unknown(&table.fib, column))?;
            if question == Question::Number && columns.kind(at) != ColumnKind::Int {
                return Err(plan(&format!(
                    "the column {column:?} has no integers: use fibula_value"
                )));
            }
            vec![names[at].clone()]
        }
    };
    table.annotator(&options).map_err(failed)
}

/// The fields of a record. An integer is `UInt64` whatever the table's largest is, so a file that replaces it fits.
fn fields(annotator: &ColumnAnnotator) -> Fields {
    let field = |field: &FieldRef| {
        // The name of the column and an underscore stand before it.
        let name = &field.name()[NAME.len() + 1..];
        Arc::new(Field::new(name, wide(field.data_type()), true))
    };
    annotator.fields(NAME).iter().map(field).collect()
}

fn wide(of: &DataType) -> DataType {
    match of {
        DataType::UInt32 => DataType::UInt64,
        DataType::List(_) => DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true))),
        of => of.clone(),
    }
}

/// An error of the query itself.
pub fn plan(what: &str) -> DataFusionError {
    DataFusionError::Plan(format!("fibula: {what}"))
}

fn failed(error: fibula_annotate::AnnotateError) -> DataFusionError {
    DataFusionError::Execution(format!("fibula: {error}"))
}

fn unknown(table: &Fib, column: &str) -> DataFusionError {
    let names: Vec<_> = table.columns().names().collect();
    plan(&match names.is_empty() {
        true => format!("the table has no column {column:?}, nor any other"),
        false => format!("the table has no column {column:?}, but {}", names.join(", ")),
    })
}
