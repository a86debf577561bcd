//! Values with their original types.

use fibula_core::{ScalarType, Value};

use crate::{ColumnKind, Columns};

/// A typed value: texts of columns of booleans and fractions have their real type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Typed<'a> {
    /// No value.
    Null,
    /// An unsigned integer.
    Int(u64),
    /// A fraction, always finite.
    Float(f64),
    /// `true` or `false`.
    Bool(bool),
    /// Text, including values that cannot be parsed as their column's type.
    Str(&'a str),
}

impl<'a> Typed<'a> {
    /// Converts a value of a column of this type.
    ///
    /// ```
    /// use fibula_core::Value;
    /// use fibula_rib::{ScalarType, Typed};
    /// let of = |text, scalar| Typed::new(Value::Str(text), scalar);
    /// assert_eq!(of("47.5", Some(ScalarType::Double)), Typed::Float(47.5));
    /// assert_eq!(of("true", Some(ScalarType::Bool)), Typed::Bool(true));
    /// assert_eq!(of("n/a", Some(ScalarType::Double)), Typed::Str("n/a"));
    /// assert_eq!(of("true", None), Typed::Str("true"));
    /// ```
    pub fn new(value: Value<'a>, scalar: Option<ScalarType>) -> Self {
        let text = match value {
            Value::Null => return Self::Null,
            Value::Int(int) => return Self::Int(int),
            Value::Str(text) => text,
        };
        let typed = match scalar {
            Some(ScalarType::Bool) => text.parse().ok().map(Self::Bool),
            Some(ScalarType::Float | ScalarType::Double) => float(text).map(Self::Float),
            // Signed integers and 128-bit integers stay text.
            Some(ScalarType::Int | ScalarType::Wide) | None => None,
        };
        typed.unwrap_or(Self::Str(text))
    }
}

/// A finite number. `inf` and `nan` are text.
fn float(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

impl Columns {
    /// The typed value of a cell.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn typed<'a>(&self, column: usize, value: Value<'a>) -> Typed<'a> {
        Typed::new(value, self.scalar_type(column))
    }

    /// The name of the column's type: `int`, `float`, `bool` or `str`.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn type_name(&self, column: usize) -> &'static str {
        match (self.kind(column), self.scalar_type(column)) {
            (ColumnKind::Int, _) => "int",
            (_, Some(ScalarType::Float | ScalarType::Double)) => "float",
            (_, Some(ScalarType::Bool)) => "bool",
            (_, Some(ScalarType::Int | ScalarType::Wide) | None) => "str",
        }
    }

    /// Whether all values of the column have its type, so that they can be stored in it.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn is_whole(&self, column: usize) -> bool {
        let is_text = |code| matches!(self.typed(column, self.decode(column, code)), Typed::Str(_));
        self.type_name(column) == "str" || !(0..self.distinct(column) as u32).any(is_text)
    }
}
