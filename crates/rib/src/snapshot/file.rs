//! Loads the bytes of a file, and detects later changes of it.

use std::fs::{self, File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::SystemTime;

use super::error::SnapshotErrorKind as Kind;
use super::format::{self, FileKind, HEADER};
use super::{SnapshotError, open, open::Opened};
use crate::array::{AlignedBytes, Image};
use crate::mapping::Mapped;

/// How the bytes of a snapshot file are loaded; see [`Snapshot::open_with`](super::Snapshot::open_with).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Loading {
    /// Mapped if the file is read-only for all users, as [`write()`](super::write()) leaves it; else read.
    #[default]
    Auto,
    /// Mapped: all processes share its memory. No program may write into the file while it is open.
    Map,
    /// Read into the memory of this process, where no other program can change it.
    Read,
}

impl FromStr for Loading {
    type Err = &'static str;

    /// `auto`, `map` or `read`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "auto" => Ok(Self::Auto),
            "map" => Ok(Self::Map),
            "read" => Ok(Self::Read),
            _ => Err("snapshots are opened by auto, map or read"),
        }
    }
}

/// The file of an open snapshot.
pub(super) struct Origin {
    pub(super) path: PathBuf,
    /// The state of a mapped file when it was opened.
    mapped: Option<(File, Stamp)>,
}

/// The values that change when a program writes into a file. Its status time is not included, because it also changes
/// with links and renames, so whenever another file replaces it.
#[derive(PartialEq, Eq)]
struct Stamp {
    len: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    fn of(meta: &Metadata) -> Self {
        Self { len: meta.len(), modified: meta.modified().ok() }
    }
}

impl Origin {
    /// Fails if a program wrote into the mapped file.
    pub(super) fn unchanged(&self) -> Result<(), SnapshotError> {
        let Some((file, stamp)) = &self.mapped else { return Ok(()) };
        let meta = file.metadata();
        let meta =
            meta.map_err(|e| SnapshotError::io(&self.path, "cannot look at the snapshot", e))?;
        if Stamp::of(&meta) != *stamp {
            let reason = "somebody wrote into the file while it was in use: answers may be wrong";
            return Err(SnapshotError::new(Kind::Changed, reason).in_file(&self.path));
        }
        Ok(())
    }
}

/// An error with the operation that the operating system refused.
const OPEN: &str = "cannot open the snapshot";

/// Opens and checks a file of this type; without one, of the type that its header has.
pub(super) fn open_file(
    path: &Path,
    loading: Loading,
    kind: Option<FileKind>,
) -> Result<(Opened, Origin), SnapshotError> {
    let io = |e| SnapshotError::io(path, OPEN, e);
    // The check precedes opening, because opening a pipe would wait for its writer.
    if !fs::metadata(path).map_err(io)?.is_file() {
        return Err(io(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")));
    }
    let mut file = File::open(path).map_err(io)?;
    let meta = file.metadata().map_err(io)?;
    let len = usize::try_from(meta.len()).map_err(|e| io(io::Error::other(e)))?;
    // The header is checked before memory is allocated by the length of a file that is not a snapshot, or is truncated.
    let kind = check_head(&mut file, len, path, kind)?;
    let map = match loading {
        Loading::Auto => meta.permissions().readonly(),
        Loading::Map => true,
        Loading::Read => false,
    };
    let image = match map {
        true => Image::Mapped(Mapped::new(&file, len).map_err(io)?),
        false => Image::Memory(read(&mut file, len).map_err(io)?),
    };
    let opened = open::open(image, kind).map_err(|e| e.in_file(path))?;
    let mapped = map.then(|| (file, Stamp::of(&meta)));
    Ok((opened, Origin { path: path.to_owned(), mapped }))
}

/// Checks header and section table, which are small, against the length of the file. Returns the file's type.
fn check_head(
    file: &mut File,
    len: usize,
    path: &Path,
    kind: Option<FileKind>,
) -> Result<FileKind, SnapshotError> {
    let mut head = Vec::new();
    let mut more = |head: &mut Vec<u8>, bytes: usize| {
        let read = file.take(bytes as u64).read_to_end(head);
        read.map_err(|e| SnapshotError::io(path, OPEN, e))
    };
    more(&mut head, HEADER)?;
    // A file that is no snapshot is refused as a table.
    let kind = kind.or_else(|| format::kind(&head)).unwrap_or(FileKind::Table);
    let head_len = format::head_len(&head, len, kind).map_err(|e| e.in_file(path))?;
    more(&mut head, head_len - HEADER)?;
    format::decode_head(&head, len).map_err(|e| e.in_file(path))?;
    Ok(kind)
}

fn read(file: &mut File, len: usize) -> io::Result<AlignedBytes> {
    file.seek(SeekFrom::Start(0))?;
    let mut bytes = AlignedBytes::zeroed(len);
    file.read_exact(bytes.as_mut())?;
    Ok(bytes)
}
