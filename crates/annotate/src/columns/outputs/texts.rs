//! Columns of text: codes of a dictionary, or the text itself.

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, StringArray};
use arrow_schema::DataType;
use fibula_core::Value;
use fibula_fib::Columns;

use super::Grow;
use super::numbers::Gather;
use super::rows::PerRow;
use super::written::Written;
use crate::added::Substitute;
use crate::pipeline::answers::Answers;
use crate::{AnnotateError, TextForm};

/// The text of each row.
#[derive(Debug)]
pub(super) struct Texts {
    codes: PerRow<i32>,
    texts: Arc<StringArray>,
    form: TextForm,
}

impl Texts {
    pub(super) fn new(
        columns: &Columns,
        column: usize,
        substitute: Option<&Substitute>,
        form: TextForm,
    ) -> Result<Self, AnnotateError> {
        let text = |code: usize| match columns.decode(column, code as u32) {
            Value::Str(text) => text.to_owned(),
            Value::Int(int) => int.to_string(),
            Value::Null => String::new(),
        };
        let mut texts: Vec<String> = (0..columns.distinct(column)).map(text).collect();
        let substitute = match substitute {
            Some(Substitute::Str(substitute)) => {
                Some(texts.iter().position(|text| text == substitute).unwrap_or_else(|| {
                    texts.push(substitute.clone());
                    texts.len() - 1
                }))
            }
            _ => None,
        };
        let bytes: usize = texts.iter().map(String::len).sum();
        if bytes > i32::MAX as usize || texts.len() > i32::MAX as usize {
            return Err(AnnotateError::Limit { what: "bytes of text in a column of the table" });
        }
        let codes = PerRow::new(columns.len(), substitute.map(|code| code as i32), |row| {
            columns.code(column, row).map(|code| code as i32)
        });
        Ok(Self { codes, texts: Arc::new(StringArray::from_iter_values(texts)), form })
    }

    pub(super) fn kind(&self) -> DataType {
        match self.form {
            TextForm::Plain => DataType::Utf8,
            TextForm::Dictionary => {
                DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
            }
        }
    }

    pub(super) fn begin(&self, rows: usize) -> Box<dyn Grow + '_> {
        let Self { codes, texts, form } = self;
        match form {
            TextForm::Dictionary => Box::new(Codes { codes: Gather::new(codes, rows), texts }),
            TextForm::Plain => Box::new(Written::text(rows, |answers, i, out| {
                let row = answers.rows[i] as usize;
                if codes.valid[row] {
                    out.extend_from_slice(texts.value(codes.values[row] as usize).as_bytes());
                }
                codes.valid[row]
            })),
        }
    }
}

/// A column of codes, which index the dictionary's texts.
struct Codes<'a> {
    codes: Gather<'a, Int32Type>,
    texts: &'a Arc<StringArray>,
}

impl Grow for Codes<'_> {
    fn block(&mut self, answers: &Answers) -> Result<(), AnnotateError> {
        self.codes.add(answers);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<ArrayRef, AnnotateError> {
        let texts = Arc::clone(self.texts);
        Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(self.codes.array(), texts)?))
    }
}
