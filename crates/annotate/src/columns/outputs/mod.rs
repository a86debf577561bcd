//! The added columns. Their values are prepared, so that the number of a row is enough to find its value. One file for
//! each kind of column.

mod all_values;
mod covering;
mod numbers;
mod prefix_bytes;
mod prefixes;
mod rows;
mod scalars;
mod texts;
mod written;

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_schema::{DataType, Field};
use fibula_fib::{ColumnKind, Columns};

use self::all_values::AllValues;
use self::covering::Lists;
use self::numbers::Ints;
use self::prefix_bytes::PrefixLengths;
use self::prefixes::Prefixes;
use self::scalars::{Bools, Floats};
use self::texts::Texts;
use crate::added::{Added, Addition};
use crate::pipeline::answers::Answers;
use crate::{AnnotateError, AnnotateOptions, LookupTable, PrefixForm};

/// One added column.
#[derive(Debug)]
pub(super) struct Output {
    /// The suffix of its name, after the name of the address column.
    pub(super) name: String,
    pub(super) kind: DataType,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Prefix,
    PrefixBytes,
    PrefixLength,
    Covering,
    Ints(Ints),
    Floats(Floats),
    Bools(Bools),
    Texts(Texts),
    /// Lists of the values in `each`.
    All {
        each: Box<Content>,
        has_default: bool,
    },
}

/// A column that is being built.
pub(super) trait Grow {
    /// Adds the values of a block of [`BLOCK`](super::lookup::BLOCK) rows, or of another multiple of 64; only the last
    /// block may have any number.
    fn block(&mut self, answers: &Answers) -> Result<(), AnnotateError>;
    fn finish(self: Box<Self>) -> Result<ArrayRef, AnnotateError>;
}

impl Output {
    /// The columns of an addition: one, or two for a prefix in binary.
    pub(super) fn of(
        addition: &Addition,
        columns: &Columns,
        options: &AnnotateOptions,
    ) -> Result<Vec<Self>, AnnotateError> {
        let Addition { name, what, substitute } = addition;
        let output = |name: &str, kind, content| Self { name: name.to_owned(), kind, content };
        Ok(match (what, options.prefix) {
            (Added::Prefix, PrefixForm::Text) => {
                vec![output(name, DataType::Utf8, Content::Prefix)]
            }
            (Added::Prefix, PrefixForm::Binary) => vec![
                output(name, DataType::Binary, Content::PrefixBytes),
                output("prefix_len", DataType::UInt8, Content::PrefixLength),
            ],
            (Added::Covering, _) => {
                let item = Field::new_list_field(DataType::Utf8, true);
                vec![output(name, DataType::List(Arc::new(item)), Content::Covering)]
            }
            (&Added::Value(column), _) => vec![match columns.kind(column) {
                ColumnKind::Int => {
                    let ints = Ints::new(columns, column, substitute.as_ref());
                    output(name, ints.kind(), Content::Ints(ints))
                }
                ColumnKind::Str if Floats::are_of(columns, column) => {
                    let floats = Floats::new(columns, column, substitute.as_ref());
                    output(name, DataType::Float64, Content::Floats(floats))
                }
                ColumnKind::Str if Bools::are_of(columns, column) => {
                    let bools = Bools::new(columns, column, substitute.as_ref());
                    output(name, DataType::Boolean, Content::Bools(bools))
                }
                ColumnKind::Str => {
                    let texts = Texts::new(columns, column, substitute.as_ref(), options.text)?;
                    output(name, texts.kind(), Content::Texts(texts))
                }
            }],
        }
        .into_iter()
        .map(|output| match (what, options.all_covering) {
            (Added::Value(_), true) => output.all(substitute.is_some()),
            _ => output,
        })
        .collect())
    }

    /// Converts the output to lists, with the values of all prefixes that cover an address.
    fn all(self, has_default: bool) -> Self {
        let item = Field::new_list_field(self.kind, true);
        let content = Content::All { each: Box::new(self.content), has_default };
        Self { name: self.name, kind: DataType::List(Arc::new(item)), content }
    }

    /// A new column to be filled.
    pub(super) fn begin<'a>(
        &'a self,
        table: &'a dyn LookupTable,
        rows: usize,
    ) -> Box<dyn Grow + 'a> {
        self.content.begin(table, rows)
    }
}

impl Content {
    fn begin<'a>(&'a self, table: &'a dyn LookupTable, rows: usize) -> Box<dyn Grow + 'a> {
        match self {
            Self::Prefix => Box::new(Prefixes::new(rows)),
            Self::PrefixBytes => prefix_bytes::bytes(rows),
            Self::PrefixLength => Box::new(PrefixLengths::new(rows)),
            Self::Covering => Box::new(Lists::new(table)),
            Self::Ints(ints) => ints.begin(rows),
            Self::Floats(floats) => floats.begin(rows),
            Self::Bools(bools) => bools.begin(rows),
            Self::Texts(texts) => texts.begin(rows),
            Self::All { each, has_default } => {
                Box::new(AllValues::new(table, each.begin(table, rows), *has_default))
            }
        }
    }
}

/// Checks that 32-bit offsets reach all bytes of a column.
fn fits(bytes: &[u8]) -> Result<(), AnnotateError> {
    match i32::try_from(bytes.len()) {
        Ok(_) => Ok(()),
        Err(_) => Err(AnnotateError::Limit { what: "bytes of text in a column of one batch" }),
    }
}
