use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The kind of a snapshot error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SnapshotErrorKind {
    /// Reading or writing failed.
    Io,
    /// The file is not a snapshot.
    NotSnapshot,
    /// This program does not know the format version.
    Version,
    /// The file holds the tables of several dates, but one table was expected.
    Dated,
    /// The file holds one table, but the tables of several dates were expected.
    NotDated,
    /// A checkpoint has several tables, and none, or one that it does not have, was chosen.
    Choice,
    /// It was written on a machine of the other byte order.
    ByteOrder,
    /// The file is shorter than its header declares.
    Truncated,
    /// A checksum differs.
    Damaged,
    /// The checksums are right, but the content is inconsistent.
    Invalid,
    /// A program wrote into the file while it was mapped.
    Changed,
    /// The table or its engines cannot be stored.
    Unstorable,
}

/// The error of opening or writing a snapshot.
///
/// Its text names the file, the section and the byte offset, and has a hint for the user.
#[derive(Debug)]
pub struct SnapshotError {
    kind: SnapshotErrorKind,
    path: Option<PathBuf>,
    section: Option<String>,
    offset: Option<u64>,
    reason: String,
    source: Option<io::Error>,
}

impl SnapshotError {
    pub(crate) fn new(kind: SnapshotErrorKind, reason: impl Into<String>) -> Self {
        Self { kind, path: None, section: None, offset: None, reason: reason.into(), source: None }
    }

    pub(crate) fn invalid(reason: impl Into<String>) -> Self {
        Self::new(SnapshotErrorKind::Invalid, reason)
    }

    pub(crate) fn io(path: &Path, doing: &str, error: io::Error) -> Self {
        let mut this = Self::new(SnapshotErrorKind::Io, doing).in_file(path);
        this.source = Some(error);
        this
    }

    pub(crate) fn in_file(mut self, path: &Path) -> Self {
        self.path.get_or_insert_with(|| path.to_owned());
        self
    }

    pub(crate) fn in_section(mut self, name: &str, offset: usize) -> Self {
        self.section = Some(name.to_owned());
        self.at(offset)
    }

    pub(super) fn at(mut self, offset: usize) -> Self {
        self.offset.get_or_insert(offset as u64);
        self
    }

    /// The kind of the error.
    pub fn kind(&self) -> SnapshotErrorKind {
        self.kind
    }

    /// The file, unless the snapshot was in memory.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The section with the error.
    pub fn section(&self) -> Option<&str> {
        self.section.as_deref()
    }

    /// The byte offset in the file.
    pub fn offset(&self) -> Option<u64> {
        self.offset
    }

    /// The error, without position and advice.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    fn advice(&self) -> Option<&'static str> {
        Some(match self.kind {
            SnapshotErrorKind::Io | SnapshotErrorKind::Unstorable => return None,
            SnapshotErrorKind::Changed => {
                "run it again, and replace snapshots by renaming, as `fibula build` does"
            }
            SnapshotErrorKind::Choice => {
                "choose one by its name behind the file's: rib.fib#bmp/pre-policy"
            }
            SnapshotErrorKind::Dated => "choose one of its dates",
            SnapshotErrorKind::NotDated => {
                "give a file of several dates, which `fibula build --as-of` writes"
            }
            SnapshotErrorKind::NotSnapshot => "give a file that `fibula build` wrote",
            SnapshotErrorKind::Version => {
                "use the program version that wrote it, or build it again"
            }
            SnapshotErrorKind::ByteOrder => "build it again on this machine",
            SnapshotErrorKind::Truncated
            | SnapshotErrorKind::Damaged
            | SnapshotErrorKind::Invalid => "copy the file again or build it again",
        })
    }
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = &self.path {
            write!(f, "{}: ", path.display())?;
        }
        if let Some(section) = &self.section {
            write!(f, "section {section}: ")?;
        }
        f.write_str(&self.reason)?;
        if let Some(offset) = self.offset {
            write!(f, " (at byte {offset})")?;
        }
        if let Some(source) = &self.source {
            write!(f, ": {source}")?;
        }
        if let Some(advice) = self.advice() {
            write!(f, "; {advice}")?;
        }
        Ok(())
    }
}

impl std::error::Error for SnapshotError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|e| e as _)
    }
}
