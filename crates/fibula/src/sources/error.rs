use std::fmt;
use std::io;

use fibula_fib::FibError;
use fibula_ingest::ReadError;
use fibula_rib::{Replacement, SnapshotError, TableError};

/// The error of reading a source, or a table of several sources.
#[derive(Debug)]
#[non_exhaustive]
pub enum SourceError {
    /// The specification of a generated table is invalid.
    Generated(String),
    /// The name is not the name of a source.
    Name {
        /// The name.
        name: String,
        /// The kind of name, and what to give instead.
        what: &'static str,
    },
    /// The file cannot be opened.
    Io {
        /// Its name.
        name: String,
        /// The system's error.
        error: io::Error,
    },
    /// The file cannot be read, or is damaged (strict).
    Read(ReadError),
    /// The source has a prefix twice (strict).
    Repeated(Replacement),
    /// The snapshot cannot be used.
    Snapshot(SnapshotError),
    /// The file has no table of the requested time.
    Date {
        /// Its name.
        name: String,
        /// The dates that it has instead.
        what: String,
    },
    /// The sources cannot be merged into a table.
    Table(TableError),
    /// There is not one route.
    NoRoutes {
        /// The names of the sources.
        names: String,
        /// The first damaged record, if one was skipped.
        first: Option<String>,
    },
    /// No engine takes the table, or the engines of a snapshot cannot be used.
    Fib(FibError),
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Generated(text) => f.write_str(text),
            Self::Name { name, what } => write!(f, "{name}: {what}"),
            Self::Date { name, what } => write!(f, "{name}: {what}"),
            Self::Io { name, error } => write!(f, "{name}: {error}"),
            Self::Read(error) => error.fmt(f),
            Self::Repeated(Replacement { prefix, earlier, later }) => write!(
                f,
                "{}: {prefix} occurs twice, on {} and on {}; leave out one of them, or let the later one count \
                 (without --strict), or list the values of both (--tags COLUMN)",
                later.source, earlier.place, later.place
            ),
            Self::Snapshot(error) => error.fmt(f),
            Self::Table(error) => error.fmt(f),
            Self::NoRoutes { names, first: Some(first) } => {
                write!(f, "{names}: no routes at all, for instance because of: {first}")
            }
            Self::NoRoutes { names, first: None } => write!(f, "{names}: no routes at all"),
            Self::Fib(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SourceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Generated(_)
            | Self::Name { .. }
            | Self::Date { .. }
            | Self::NoRoutes { .. }
            | Self::Repeated(_) => None,
            Self::Io { error, .. } => Some(error),
            Self::Read(error) => Some(error),
            Self::Snapshot(error) => Some(error),
            Self::Table(error) => Some(error),
            Self::Fib(error) => Some(error),
        }
    }
}

impl From<ReadError> for SourceError {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

impl From<SnapshotError> for SourceError {
    fn from(error: SnapshotError) -> Self {
        Self::Snapshot(error)
    }
}

impl From<FibError> for SourceError {
    fn from(error: FibError) -> Self {
        Self::Fib(error)
    }
}

impl From<TableError> for SourceError {
    fn from(error: TableError) -> Self {
        Self::Table(error)
    }
}
