//! A snapshot file of either type, which its header determines.

use std::path::Path;

use super::file::{self, Loading};
use super::format::{self, FileKind};
use super::{DatedSnapshot, Snapshot, SnapshotError};
use crate::array::AlignedBytes;

/// An open file: one table, or the tables of several dates.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "callers match on it at once")]
pub enum AnySnapshot {
    /// One table.
    Table(Snapshot),
    /// The tables of several dates.
    Dated(DatedSnapshot),
}

impl AnySnapshot {
    /// Whether a file that begins so is a snapshot, of whatever version, sound or not.
    ///
    /// ```
    /// use fibula_rib::AnySnapshot;
    /// assert!(AnySnapshot::begins(b"\x89FIBULA\n"));
    /// assert!(!AnySnapshot::begins(b"prefix,asn\n"));
    /// ```
    pub fn begins(head: &[u8]) -> bool {
        head.starts_with(&format::MAGIC)
    }

    /// Checks a snapshot of either type in memory, and keeps it; see [`Snapshot::from_bytes`].
    ///
    /// # Errors
    /// If the bytes are no snapshot, or damaged in any way; the error of [`Snapshot::chosen`].
    pub fn from_bytes(bytes: impl Into<AlignedBytes>) -> Result<Self, SnapshotError> {
        let bytes = bytes.into();
        Ok(match format::kind(bytes.as_ref()) {
            Some(FileKind::Dated) => Self::Dated(DatedSnapshot::from_bytes(bytes)?),
            Some(FileKind::Table) | None => Self::Table(Snapshot::from_bytes(bytes)?.chosen()?),
        })
    }

    /// Opens and checks a file of either type, mapped or read as for [`Snapshot::open_with`]. It is opened once, so
    /// that the type and the bytes are of one file, even if a program renames another over it meanwhile.
    ///
    /// # Errors
    /// If the file cannot be read, is no snapshot, or is damaged in any way; the error of [`Snapshot::chosen`].
    pub fn open_with(path: impl AsRef<Path>, loading: Loading) -> Result<Self, SnapshotError> {
        let (opened, origin) = file::open_file(path.as_ref(), loading, None)?;
        Ok(match opened.dated {
            Some(_) => Self::Dated(DatedSnapshot::of(opened, Some(origin))?),
            None => Self::Table(
                Snapshot { opened, origin: Some(origin) }
                    .chosen()
                    .map_err(|error| error.in_file(path.as_ref()))?,
            ),
        })
    }
}
