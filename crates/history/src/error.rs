//! Errors.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::record::HistoryGap;

/// Why the history cannot be written, or has no answer.
#[derive(Debug)]
#[non_exhaustive]
pub enum HistoryError {
    /// A file or the folder cannot be read or written.
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// Another process writes to the folder.
    Locked {
        /// The folder.
        path: PathBuf,
    },
    /// A file is damaged. Questions that do not need this part of it are answered.
    Damaged {
        /// The file.
        path: PathBuf,
        /// The position in the file, in bytes.
        offset: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// Nothing is recorded so far.
    Empty,
    /// The time is before the oldest time that is recorded.
    Before {
        /// The oldest time, in microseconds since 1970.
        oldest: u64,
    },
    /// The time is after the newest time that is recorded.
    After {
        /// The newest time, in microseconds since 1970.
        newest: u64,
    },
    /// Of this time changes are missing.
    Missing(HistoryGap),
    /// No such table had a change up to the time.
    NoTable {
        /// The number of tables that had.
        count: usize,
    },
    /// More tables have been seen than are searched at once: the table has to be named.
    Tables {
        /// The number of tables.
        count: usize,
    },
}

impl HistoryError {
    pub(crate) fn io(path: &Path) -> impl Fn(io::Error) -> Self + '_ {
        move |error| Self::Io { path: path.to_owned(), error }
    }

    pub(crate) fn damaged(path: &Path, offset: u64, what: &'static str) -> Self {
        Self::Damaged { path: path.to_owned(), offset, what }
    }

    /// Whether a file is wrong or missing, rather than the disk or its rights.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Damaged { .. } => true,
            Self::Io { error, .. } => error.kind() == io::ErrorKind::NotFound,
            _ => false,
        }
    }
}

impl fmt::Display for HistoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, error } => write!(f, "{}: {error}", path.display()),
            Self::Locked { path } => {
                write!(f, "{}: another process writes its history there", path.display())
            }
            Self::Damaged { path, offset, what } => {
                write!(f, "{} is damaged at byte {offset}: {what}", path.display())
            }
            Self::Empty => f.write_str("nothing is recorded so far"),
            Self::Before { .. } => f.write_str("the time is before the beginning of the history"),
            Self::After { .. } => f.write_str("the time is after the end of the history"),
            Self::Missing(gap) => {
                write!(f, "changes of this time are missing: {}", gap.why.reason())
            }
            Self::NoTable { count } => {
                write!(f, "no such table had a route by then; {count} tables had")
            }
            Self::Tables { count } => write!(f, "the history has {count} tables: name one"),
        }
    }
}

impl Error for HistoryError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Io { error, .. } => Some(error),
            _ => None,
        }
    }
}
