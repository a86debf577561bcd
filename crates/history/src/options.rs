//! What is kept, and what the operator should know.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::error::HistoryError;

/// How much is kept, and when files are made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HistoryOptions {
    /// Files are deleted when everything in them is older than this.
    pub keep: Duration,
    /// The oldest files are deleted when all files have more bytes than this.
    pub bytes: u64,
    /// A log that has this number of records becomes a sorted file.
    pub log_records: usize,
    /// The same for the bytes of memory that its records take, about.
    pub log_bytes: usize,
    /// Sorted files are merged when there are this many, or when the oldest is a day old.
    pub files: usize,
}

impl Default for HistoryOptions {
    /// 30 days, 10 GB, logs of 65,536 records or 32 MiB, 64 files.
    fn default() -> Self {
        Self {
            keep: Duration::from_secs(30 * 86_400),
            bytes: 10_000_000_000,
            log_records: 1 << 16,
            log_bytes: 32 << 20,
            files: 64,
        }
    }
}

impl HistoryOptions {
    /// After how many microseconds files are merged: a day, or less if less is kept.
    pub(crate) fn merge_age(&self) -> u64 {
        let keep = u64::try_from(self.keep.as_micros()).unwrap_or(u64::MAX);
        (keep / 8).clamp(1, 86_400_000_000)
    }
}

/// Something that the operator should know.
#[derive(Debug)]
#[non_exhaustive]
pub enum HistoryNote {
    /// The end of the log was cut off: the program ended while it wrote.
    Cut {
        /// The log.
        path: PathBuf,
        /// How many bytes were cut off.
        bytes: u64,
        /// Why they could not be used.
        why: HistoryError,
    },
    /// A file is damaged or missing. Questions that need it have no answers.
    Damaged(HistoryError),
    /// Files could not be merged or deleted. It is tried again.
    Failed(HistoryError),
    /// The files that are needed for answers have more bytes than there may be.
    TooSmall {
        /// Their bytes.
        bytes: u64,
    },
}

impl fmt::Display for HistoryNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cut { bytes, why, .. } => {
                write!(f, "{why}; {bytes} bytes of its end were cut off")
            }
            Self::Damaged(error) => write!(f, "{error}; questions that need it have no answers"),
            Self::Failed(error) => write!(f, "{error}; it is tried again"),
            Self::TooSmall { bytes } => {
                write!(f, "the newest files alone have {bytes} bytes, more than the limit")
            }
        }
    }
}
