use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;

use fibula_rib::{Moment, SnapshotError, TableError};

use crate::sources::SourceError;

/// The error of tables of several dates.
#[derive(Debug)]
#[non_exhaustive]
pub enum DatesError {
    /// A source cannot be read.
    Source(SourceError),
    /// A folder or a file cannot be read.
    Io {
        /// Its name.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The folder has no files.
    EmptyFolder(String),
    /// There is no table with a date.
    NoTable,
    /// Two tables have the same date.
    SameDate {
        /// The name of one.
        one: String,
        /// The name of the other.
        other: String,
        /// Their date.
        at: Moment,
    },
    /// Two files have several dates each.
    TwoFiles {
        /// One of them.
        one: PathBuf,
        /// The other.
        other: String,
    },
    /// The name of a file has two dates.
    TwoDates {
        /// The file.
        path: PathBuf,
        /// One of them.
        one: String,
        /// The other.
        other: String,
    },
    /// A file has no date.
    NoDate {
        /// The file.
        path: PathBuf,
    },
    /// A table has no routes.
    NoRoutes(String),
    /// A table does not fit those before it.
    Add {
        /// Its name.
        name: String,
        /// Why not.
        error: TableError,
    },
    /// A table is not newer than those of the file that it is added to.
    NotNewer {
        /// Its name.
        name: String,
        /// Its date.
        at: Moment,
        /// The file.
        file: PathBuf,
        /// The newest date of the file.
        newest: Moment,
    },
    /// The file of several dates cannot be opened.
    Snapshot(SnapshotError),
    /// The tables cannot be compared.
    Table(TableError),
    /// A thread panicked: a bug.
    Panicked,
}

impl DatesError {
    /// A hint, if the error has one.
    pub fn hint(&self) -> Option<String> {
        let text = match self {
            Self::SameDate { at, .. } => {
                return Some(format!("leave one out, or give both as one table: {at}=FILE,FILE"));
            }
            Self::TwoDates { path, .. } | Self::NoDate { path } => {
                let path = path.display();
                return Some(format!(
                    "call it 2024-05-01.csv or rib.20240501.0000.bz2, or write 2024-05-01={path}"
                ));
            }
            Self::TwoFiles { .. } => "give one of them, and the tables to add to it",
            Self::NoRoutes(_) => "--allow-empty takes a table without routes",
            Self::Add { .. } => {
                "a column has one kind in all tables: --kind COLUMN=str makes it text, --columns leaves others out"
            }
            Self::NotNewer { .. } => {
                "tables are added at the end: build the file again from all tables"
            }
            _ => return None,
        };
        Some(text.to_owned())
    }
}

impl fmt::Display for DatesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Source(error) => error.fmt(f),
            Self::Io { path, error } => write!(f, "{}: {error}", path.display()),
            Self::EmptyFolder(name) => write!(f, "{name}: no files in this folder"),
            Self::NoTable => f.write_str("no table with a date, nothing written"),
            Self::SameDate { one, other, at } => write!(f, "{one} and {other} are both of {at}"),
            Self::TwoFiles { one, other } => {
                write!(f, "{} and {other} are both files of several dates", one.display())
            }
            Self::TwoDates { path, one, other } => {
                write!(f, "{}: its name has two dates, {one} and {other}", path.display())
            }
            Self::NoDate { path } => write!(
                f,
                "{}: no date in its name, and it is no MRT RIB, whose records have one",
                path.display()
            ),
            Self::NoRoutes(name) => write!(f, "{name}: no routes at all, nothing written"),
            Self::Add { name, error } => write!(f, "{name}: {error}"),
            Self::NotNewer { name, at, file, newest } => write!(
                f,
                "{name}: the table of {at} is not newer than the newest of {}, that of {newest}",
                file.display()
            ),
            Self::Snapshot(error) => error.fmt(f),
            Self::Table(error) => error.fmt(f),
            Self::Panicked => f.write_str("a thread ended early"),
        }
    }
}

impl Error for DatesError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Source(error) => Some(error),
            Self::Io { error, .. } => Some(error),
            Self::Add { error, .. } | Self::Table(error) => Some(error),
            Self::Snapshot(error) => Some(error),
            _ => None,
        }
    }
}

macro_rules! from_errors {
    ($($error:ty => $variant:ident),* $(,)?) => {$(
        impl From<$error> for DatesError {
            fn from(error: $error) -> Self {
                Self::$variant(error)
            }
        }
    )*};
}

from_errors!(SourceError => Source, SnapshotError => Snapshot, TableError => Table);
