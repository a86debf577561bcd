//! The errors of opening a table and of lookups.

use std::fmt;
use std::path::PathBuf;

use fibula_core::{BuildError, Family, LoadError};
use fibula_rib::{SnapshotError, TableError};

/// The error of opening a table or of a lookup. The text names the file, family and engine, if there are any, and
/// what the user can do.
#[derive(Debug)]
#[non_exhaustive]
pub enum FibError {
    /// The snapshot could not be opened or written.
    Snapshot(SnapshotError),
    /// The tables of a stored engine are inconsistent.
    Stored {
        /// The snapshot file; `None` for a snapshot in memory.
        file: Option<PathBuf>,
        /// The family.
        family: Family,
        /// The engine.
        engine: &'static str,
        /// The error in its tables.
        error: LoadError,
    },
    /// No family has an engine with this name.
    Unknown {
        /// The name.
        engine: String,
        /// The existing names.
        known: Vec<&'static str>,
    },
    /// Every engine of the list refuses the table.
    Refused {
        /// The family.
        family: Family,
        /// The error of each engine.
        errors: Vec<BuildError>,
    },
    /// The table is inconsistent.
    Table(TableError),
    /// A lookup needs the routes, which a generation of a live table does not have.
    NoRoutes,
    /// The table has no such column.
    NoColumn {
        /// The name.
        column: String,
        /// The existing columns.
        known: Vec<String>,
    },
    /// The value for a column of integers is not a number.
    NoNumber {
        /// The column.
        column: String,
        /// The given text.
        text: String,
    },
}

impl fmt::Display for FibError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Snapshot(error) => error.fmt(f),
            Self::Stored { file, family, engine, error } => {
                match file {
                    Some(file) => write!(f, "{}: ", file.display())?,
                    None => f.write_str("the snapshot: ")?,
                }
                write!(
                    f,
                    "its engine {engine} for IP{family}: {error}; the file is damaged or was written \
                     by another version: build it again"
                )
            }
            Self::Unknown { engine, known } => {
                write!(f, "no engine is called {engine:?}; there are {}, auto", known.join(", "))
            }
            Self::Refused { family, errors } => {
                write!(f, "IP{family}: ")?;
                errors.iter().try_for_each(|error| write!(f, "{error}; "))?;
                f.write_str("auto takes an engine that can hold the table")
            }
            Self::Table(error) => error.fmt(f),
            Self::NoRoutes => f.write_str(
                "a generation of a live table has an engine and no list of routes; ask the RIB",
            ),
            Self::NoColumn { column, known } if known.is_empty() => {
                write!(f, "no column {column:?}: the table has no columns")
            }
            Self::NoColumn { column, known } => {
                write!(f, "no column {column:?}; there are: {}", known.join(", "))
            }
            Self::NoNumber { column, text } => {
                write!(f, "the column {column} has integers, {text:?} is none")
            }
        }
    }
}

impl std::error::Error for FibError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Snapshot(error) => error.source(),
            Self::Stored { error, .. } => Some(error),
            Self::Refused { errors, .. } => errors.last().map(|error| error as _),
            Self::Table(error) => Some(error),
            Self::Unknown { .. }
            | Self::NoRoutes
            | Self::NoColumn { .. }
            | Self::NoNumber { .. } => None,
        }
    }
}

impl From<SnapshotError> for FibError {
    fn from(error: SnapshotError) -> Self {
        Self::Snapshot(error)
    }
}

impl From<TableError> for FibError {
    fn from(error: TableError) -> Self {
        Self::Table(error)
    }
}
