//! Arguments that name a table or a column: one name for all rows, or one for each.

use datafusion_common::arrow::array::{Array, AsArray, StringArray};
use datafusion_common::arrow::compute::cast;
use datafusion_common::arrow::datatypes::DataType;
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::ColumnarValue;

/// The names of rows.
pub enum Names {
    /// The same for all; `None` for null.
    One(Option<String>),
    /// Of each row.
    Each(StringArray),
}

impl Names {
    /// The names of an argument, whose type is `Utf8`.
    pub fn of(argument: &ColumnarValue) -> Result<Self> {
        Ok(match argument {
            ColumnarValue::Scalar(name) => Self::One(text(name).map(str::to_owned)),
            ColumnarValue::Array(names) => {
                Self::Each(cast(names, &DataType::Utf8)?.as_string::<i32>().clone())
            }
        })
    }

    /// The name of a row.
    pub fn get(&self, row: usize) -> Option<&str> {
        match self {
            Self::One(name) => name.as_deref(),
            Self::Each(names) => names.is_valid(row).then(|| names.value(row)),
        }
    }
}

/// The text of a constant.
pub fn text(constant: &ScalarValue) -> Option<&str> {
    constant.try_as_str().flatten()
}

/// What a planned call knows of an argument: `None` if it is no constant, `Some(None)` for null.
pub fn constant<'a>(argument: Option<&Option<&'a ScalarValue>>) -> Option<Option<&'a str>> {
    argument.copied().flatten().map(text)
}
