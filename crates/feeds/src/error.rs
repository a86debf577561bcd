use std::fmt;

use fibula_ingest::ReadError;
use fibula_rib::{SnapshotError, TableError};

/// The reason why a feed stopped.
#[derive(Debug)]
#[non_exhaustive]
pub enum FeedError {
    /// A file could not be read.
    Read(ReadError),
    /// The table cannot take an event.
    Table(TableError),
    /// The last checkpoint, at the end of the feed, could not be written.
    Checkpoint(SnapshotError),
    /// Updates cannot be generated for an empty table.
    EmptyTable,
    /// A stream is not in the format that its decoder reads.
    Misfit(String),
    /// A connection has ended; the text gives the reason.
    Ended(String),
    /// A record of a stream is longer than the limit.
    TooLong {
        /// Bytes that came without the end of the record.
        bytes: usize,
    },
}

impl fmt::Display for FeedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => write!(f, "{error}"),
            Self::Table(error) => write!(f, "{error}"),
            Self::Checkpoint(error) => write!(f, "{error}"),
            Self::EmptyTable => f.write_str("churn needs a table that is not empty"),
            Self::Misfit(what) | Self::Ended(what) => f.write_str(what),
            Self::TooLong { bytes } => write!(f, "a record of more than {bytes} bytes"),
        }
    }
}

impl std::error::Error for FeedError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read(error) => Some(error),
            Self::Table(error) => Some(error),
            Self::Checkpoint(error) => Some(error),
            Self::EmptyTable | Self::Misfit(_) | Self::Ended(_) | Self::TooLong { .. } => None,
        }
    }
}

impl From<ReadError> for FeedError {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

impl From<TableError> for FeedError {
    fn from(error: TableError) -> Self {
        Self::Table(error)
    }
}
