//! The snapshot file: a table, its attributes and its compiled engines in one immutable file that is
//! mapped and used in place.
//!
//! (format page follows)

mod error;
mod format;
mod mapping;
mod open;
mod routes;
mod write;

use std::fmt;
use std::fs::File;
use std::io;
use std::path::Path;

use format::Section;

use crate::array::{AlignedBytes, Image};
use crate::{Columns, Provenance};

pub use error::{SnapshotError, SnapshotErrorKind};
pub(crate) use mapping::Mapped;
pub use routes::{StoredFamily, StoredRoutes};
pub use write::{EnginePart, Written, to_bytes, write};

/// An open snapshot: everything in it has been checked and is used where it lies.
pub struct Snapshot {
    sections: Vec<Section>,
    digest: u128,
    v4: StoredRoutes<u32>,
    v6: StoredRoutes<u128>,
    columns: Columns,
    provenance: Provenance,
}

impl Snapshot {
    /// Opens and checks the snapshot file.
    ///
    /// The file is mapped, so it must not change while it is open. [`write()`] never changes a file, it
    /// replaces it. If somebody else truncates the file, reading it kills the process (SIGBUS); if
    /// somebody overwrites it, lookups may panic or answer wrongly. Replace snapshots by renaming.
    ///
    /// # Errors
    /// If the file cannot be read, is no snapshot, or is damaged in any way.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, SnapshotError> {
        let path = path.as_ref();
        let io = |e| SnapshotError::io(path, "cannot open the snapshot", e);
        let file = File::open(path).map_err(io)?;
        let metadata = file.metadata().map_err(io)?;
        if !metadata.is_file() {
            let error = io::Error::new(io::ErrorKind::InvalidInput, "not a regular file");
            return Err(io(error));
        }
        let len = usize::try_from(metadata.len()).map_err(|e| io(io::Error::other(e)))?;
        let image = match len {
            0 => Image::Memory(AlignedBytes::zeroed(0)), // cannot be mapped
            _ => Image::Mapped(Mapped::new(&file, len).map_err(io)?),
        };
        open::open(image).map_err(|e| e.in_file(path))
    }

    /// Checks a snapshot in memory, such as [`to_bytes`] makes, and keeps it. Bytes from elsewhere are
    /// copied to be aligned: `Snapshot::from_bytes(&bytes[..])`.
    ///
    /// # Errors
    /// If the bytes are no snapshot, or damaged in any way.
    pub fn from_bytes(bytes: impl Into<AlignedBytes>) -> Result<Self, SnapshotError> {
        open::open(Image::Memory(bytes.into()))
    }

    /// The routes of a family: `snapshot.family::<u32>()` or `::<u128>()`.
    pub fn family<A: StoredFamily>(&self) -> &StoredRoutes<A> {
        A::of(self)
    }

    /// The attributes that hops number.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// Where the table comes from.
    pub fn provenance(&self) -> &Provenance {
        &self.provenance
    }

    /// The sections with their bytes, in file order.
    pub fn sections(&self) -> impl ExactSizeIterator<Item = (&str, u64)> {
        self.sections.iter().map(|s| (s.name.as_str(), s.place.len() as u64))
    }

    /// A digest of what the table says: prefixes, hops and attributes, not engines or provenance.
    /// Equal tables have equal digests (on machines of the same byte order). It tells tables apart; it
    /// is no defence against forgery.
    pub fn digest(&self) -> u128 {
        self.digest
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("v4", &self.v4.len())
            .field("v6", &self.v6.len())
            .field("columns", &self.columns)
            .field("digest", &format_args!("{:032x}", self.digest))
            .finish()
    }
}
