//! The values to add, from the options and the table.

use fibula_core::Value;
use fibula_fib::{Columns, Typed};

use crate::{AnnotateError, AnnotateOptions};

/// The kind of an added value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Added {
    /// The matched prefix.
    Prefix,
    /// The list of all prefixes that cover the address.
    Covering,
    /// A value column.
    Value(usize),
}

/// The default value for addresses without a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Substitute {
    Int(u64),
    Str(String),
}

/// One added column.
#[derive(Clone, Debug)]
pub(crate) struct Addition {
    /// The suffix of the column's name, after the name of the address column.
    pub(crate) name: String,
    pub(crate) what: Added,
    /// The default for addresses that no route covers; `None` for an empty value.
    pub(crate) substitute: Option<Substitute>,
}

impl Addition {
    /// The columns to add: the requested ones, or all.
    pub(crate) fn all(
        columns: &Columns,
        options: &AnnotateOptions,
    ) -> Result<Vec<Self>, AnnotateError> {
        let known = columns.names_beside(&["prefix", "covering"]);
        let mut names = options.add.clone();
        if names.is_empty() {
            names.clone_from(&known);
        }
        if names.is_empty() {
            names.push("prefix".to_owned());
        }
        if let Some(name) = first_twice(&names) {
            return Err(AnnotateError::Twice { name: name.clone() });
        }
        let addition = |name: String| {
            let what = match name.as_str() {
                "prefix" => Some(Added::Prefix),
                "covering" => Some(Added::Covering),
                name => known.iter().position(|known| known == name).map(Added::Value),
            };
            match what {
                Some(what) => Ok(Self { name, what, substitute: None }),
                None => Err(AnnotateError::UnknownValue { name, known: known.clone() }),
            }
        };
        let mut all = names.into_iter().map(addition).collect::<Result<Vec<_>, _>>()?;
        for (name, text) in &options.defaults {
            let addition = all.iter_mut().find(|addition| addition.name == *name);
            let Some((Added::Value(column), addition)) = addition.map(|found| (found.what, found))
            else {
                return Err(AnnotateError::Default { name: name.clone() });
            };
            addition.substitute = Some(substitute(columns, column, text).ok_or_else(|| {
                let (name, text) = (name.clone(), text.clone());
                AnnotateError::DefaultKind { name, text, kind: columns.type_name(column) }
            })?);
        }
        Ok(all)
    }
}

/// Parses the default of a column; `None` if the text does not have the column's type.
fn substitute(columns: &Columns, column: usize, text: &str) -> Option<Substitute> {
    let is_text = matches!(columns.typed(column, Value::Str(text)), Typed::Str(_));
    match columns.type_name(column) {
        "int" => text.parse().ok().map(Substitute::Int),
        "float" | "bool" if is_text => None,
        _ => Some(Substitute::Str(text.to_owned())),
    }
}

/// The first name that equals an earlier one.
pub(crate) fn first_twice(names: &[String]) -> Option<&String> {
    names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)).map(|(_, name)| name)
}

/// The name of the column that adds `add` for the addresses of `column`.
pub(crate) fn added_name(column: &str, add: &str) -> String {
    format!("{}_{add}", column.trim())
}
