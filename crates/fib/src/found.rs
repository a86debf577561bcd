//! The result of a lookup.

use std::borrow::Cow;
use std::fmt;

use fibula_core::{AnyPrefix, Hop, Value};
use fibula_rib::{AttributeSet, Columns, SetTexts, Typed, ValueNames};

/// A route that matches: its prefix and its values.
///
/// The text form is the prefix and the non-null values by name: `10.1.0.0/16 asn=64501 country=CH`.
#[derive(Clone)]
pub struct Match<'a> {
    prefix: Option<AnyPrefix>,
    hop: Hop,
    values: Values<'a>,
}

#[derive(Clone)]
enum Values<'a> {
    /// A row of the table's columns.
    Row(&'a Columns),
    /// An attribute set of a live table, its texts, and the names of its values.
    Set(&'a AttributeSet, SetTexts, &'a ValueNames),
}

impl<'a> Match<'a> {
    pub(crate) fn row(prefix: AnyPrefix, hop: Hop, columns: &'a Columns) -> Self {
        Self { prefix: Some(prefix), hop, values: Values::Row(columns) }
    }

    pub(crate) fn set(hop: Hop, set: &'a AttributeSet, names: &'a ValueNames) -> Self {
        Self { prefix: None, hop, values: Values::Set(set, set.texts(), names) }
    }

    /// The matched prefix. `None` for a generation of a live table, whose engine does not know the prefix.
    pub fn prefix(&self) -> Option<AnyPrefix> {
        self.prefix
    }

    /// The hop: the row number in the table's columns, or the number of the attribute set.
    pub fn hop(&self) -> Hop {
        self.hop
    }

    /// The attributes, for a generation of a live table.
    pub fn attributes(&self) -> Option<&'a AttributeSet> {
        match self.values {
            Values::Set(set, ..) => Some(set),
            Values::Row(_) => None,
        }
    }

    /// The value of the column with this name; `None` if there is no such column.
    pub fn value(&self, name: &str) -> Option<Value<'_>> {
        match &self.values {
            Values::Row(columns) => {
                let column = columns.find(name)?;
                Some(self.hop.index().map_or(Value::Null, |row| columns.value(column, row)))
            }
            Values::Set(set, texts, names) => {
                let named = set.named(texts, names);
                named.into_iter().find(|(known, _)| known == name).map(|(_, value)| value)
            }
        }
    }

    /// All values with their column names, in the order of the columns; [`Value::Null`] if the route has no value.
    pub fn values(&self) -> impl Iterator<Item = (Cow<'_, str>, Value<'_>)> {
        let (columns, named) = match &self.values {
            Values::Row(columns) => (Some(*columns), Vec::new()),
            Values::Set(set, texts, names) => (None, set.named(texts, names)),
        };
        let row = self.hop.index();
        let value = move |columns: &'a Columns, column: usize| {
            row.map_or(Value::Null, |row| columns.value(column, row))
        };
        let of_columns = columns.into_iter().flat_map(move |columns| {
            let names = columns.names().enumerate();
            names.map(move |(column, name)| (Cow::Borrowed(name), value(columns, column)))
        });
        of_columns.chain(named)
    }
}

impl Match<'_> {
    /// Like [`Match::values`], but with typed values: booleans and fractions are not texts.
    pub fn typed(&self) -> impl Iterator<Item = (Cow<'_, str>, Typed<'_>)> {
        let columns = match self.values {
            Values::Row(columns) => Some(columns),
            Values::Set(..) => None,
        };
        self.values().enumerate().map(move |(column, (name, value))| {
            let scalar = columns.and_then(|columns| columns.scalar_type(column));
            (name, Typed::new(value, scalar))
        })
    }
}

impl fmt::Display for Match<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        parts.extend(self.prefix.map(|prefix| prefix.to_string()));
        parts.extend(self.values().filter_map(|(name, value)| match value {
            Value::Null => None,
            Value::Int(int) => Some(format!("{name}={int}")),
            Value::Str(text) => Some(format!("{name}={text}")),
        }));
        f.write_str(&parts.join(" "))
    }
}

impl fmt::Debug for Match<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Match({self}, {:?})", self.hop)
    }
}
