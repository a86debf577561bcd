use std::fmt;

use fibula_core::grouped;
use fibula_ingest::ReadError;
use fibula_rib::{FeedMark, SnapshotError, TableError};

/// The reason why a feed stopped.
#[derive(Debug)]
#[non_exhaustive]
pub enum FeedError {
    /// A file could not be read.
    Read(ReadError),
    /// The table cannot store an update.
    Table(TableError),
    /// The last checkpoint, at the end of the feed, could not be written.
    Checkpoint(SnapshotError),
    /// The checkpoint is of another feed: the events of this feed differ from those in the checkpoint. The checkpoint
    /// is unchanged.
    OtherFeed {
        /// The position of the checkpoint in its feed.
        feed: FeedMark,
        /// Whether this feed ended before.
        is_short: bool,
    },
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
            Self::OtherFeed { feed, is_short } => {
                write!(f, "the checkpoint has taken in {} events of ", grouped(feed.events))?;
                match &*feed.names {
                    [] => f.write_str("a feed")?,
                    names => f.write_str(&names.join(", "))?,
                }
                f.write_str(match is_short {
                    true => ", this feed has fewer",
                    false => ", the updates of this feed differ before that point",
                })
            }
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
            Self::OtherFeed { .. }
            | Self::EmptyTable
            | Self::Misfit(_)
            | Self::Ended(_)
            | Self::TooLong { .. } => None,
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
