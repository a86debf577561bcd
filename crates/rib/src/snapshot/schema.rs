//! The JSON sections; [`super`] lists them.

use fibula_core::ScalarType;
use serde::{Deserialize, Serialize};

use crate::{ColumnKind, Columns};

/// The section `schema`.
#[derive(Serialize, Deserialize)]
pub(super) struct Schema {
    pub(super) rows: u32,
    pub(super) columns: Vec<ColumnSchema>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct ColumnSchema {
    pub(super) name: String,
    #[serde(with = "StoredKind")]
    pub(super) kind: ColumnKind,
    /// The original type of the texts; programs that do not know this field use them as text.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub(super) scalar: Option<Typed>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Typed(#[serde(with = "StoredType")] pub(super) ScalarType);

/// The name of a [`ScalarType`] in the schema.
#[derive(Serialize, Deserialize)]
#[serde(remote = "ScalarType", rename_all = "lowercase")]
enum StoredType {
    Bool,
    Float,
    Double,
    Int,
    Wide,
}

/// The name of a [`ColumnKind`] in the schema.
#[derive(Serialize, Deserialize)]
#[serde(remote = "ColumnKind", rename_all = "lowercase")]
enum StoredKind {
    Int,
    Str,
}

impl Schema {
    pub(super) fn of(columns: &Columns) -> Self {
        let column = |c: &crate::columns::Column| ColumnSchema {
            name: c.name.clone(),
            kind: c.dictionary.kind(),
            scalar: c.scalar.map(Typed),
        };
        Self { rows: columns.len(), columns: columns.columns.iter().map(column).collect() }
    }

    /// Rows without columns take no space in the file, so their number is bounded by the number of routes.
    ///
    /// # Errors
    /// The error, if there are more than routes.
    pub(super) fn check_rows(&self, routes: usize) -> Result<(), String> {
        if self.columns.is_empty() && self.rows as usize > routes {
            return Err(format!("{} rows without columns for {routes} routes", self.rows));
        }
        Ok(())
    }
}

/// The section `engines`.
#[derive(Serialize, Deserialize)]
pub(super) struct Engines {
    pub(super) v4: String,
    pub(super) v6: String,
}
