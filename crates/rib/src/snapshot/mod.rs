//! The snapshot file: a table, its attributes and its compiled engines in one immutable file that is
//! mapped and used in place.
//!
//! # Format, version 1
//!
//! Numbers are in the byte order of the machine that wrote the file, so that they can be used where
//! they lie; a machine of the other order refuses the file.
//!
//! ```text
//! byte   0   8   magic: 89 'FIBULA' 0a
//!        8   4   byte order mark: 0a0b0c0d
//!       12   4   format version: 1
//!       16   8   length of the file
//!       24   8   number of sections, at most 4096
//!       32  16   table digest: XXH3-128 of (name, 00, length, checksum) of the logical sections
//!       48   8   zero
//!       56   8   checksum of header and section table, these 8 bytes taken as zero
//!       64       the section table, for each section:
//!                   0  40   name: ASCII, padded with zeros
//!                  40   8   offset of its first byte
//!                  48   8   its length
//!                  56   8   its checksum
//!                then the sections
//! ```
//!
//! Checksums are XXH3-64. Sections follow each other in the order of their table; each begins at the
//! next multiple of 64, the gaps are zero, the file ends with the last one. So a section's offset
//! follows from its predecessor, and sections that overlap, are misaligned or outside the file cannot
//! be expressed. Names are unique.
//!
//! | section | logical | content |
//! |---|---|---|
//! | `provenance` | | [`Provenance`] as JSON |
//! | `engines` | | the names of the engines as JSON: `{"v4":"dxr","v6":"planb"}`, empty if none |
//! | `schema` | yes | the number of attribute rows, names and kinds of the columns, as JSON |
//! | `column/N/code` | yes | u32 a row: an index into the column's values, `ffffffff` for none |
//! | `column/N/int` | yes | u64 a value (integer columns) |
//! | `column/N/offset`, `column/N/text` | yes | value *i* is the text from offset *i* to offset *i* + 1: u32, one more than values; UTF-8 (text columns) |
//! | `v4/addr`, `v6/addr` | yes | the address of each prefix: u32, u128; sorted by address, then by length |
//! | `v4/len`, `v6/len` | yes | the length of each prefix: u8 |
//! | `v4/hop`, `v6/hop` | yes | the attribute row of each route: u32 |
//! | `v4/parent`, `v6/parent` | | the longest prefix that covers each prefix, by index: u32, `ffffffff` for none |
//! | `v4/bucket`, `v6/bucket` | | 2^*k* + 1 u32: how many prefixes have first *k* bits below each value |
//! | `engine/FAMILY/TABLE` | | the engine's tables, as [`Persist`](fibula_core::Persist) gave them |
//! | `rib/...` | | in a [checkpoint](crate::Rib::checkpoint): every peer's routes, see `checkpoint/mod.rs` |
//!
//! The digest covers what the table says (the *logical* sections), not how it is looked up or where it
//! is from: a table has the same digest whatever engine is stored with it. Sections with other names
//! are checked for damage and otherwise left alone.
//!
//! # What is checked when
//!
//! At open, always, before anything is used:
//! - magic, byte order, version, file length, number of sections;
//! - the checksums of the header, the section table and every section, and the digest;
//! - names and places of the sections;
//! - prefixes: canonical, sorted, unique; hops: below the number of rows; parents: an earlier route,
//!   so that climbing ends; buckets: ascending from 0 to the number of routes;
//! - columns: a code for each row, below the number of values; texts: UTF-8, offsets ascending and
//!   between characters; JSON: of bounded size.
//!
//! An engine checks its own tables when it is loaded ([`Persist::load`](fibula_core::Persist::load)).
//!
//! So a file that is truncated or damaged is refused. A file that was forged, checksums included, can
//! say anything that a table can say, also give parents, buckets or engine tables that disagree with
//! its prefixes, and then gives wrong answers; it cannot make a lookup read out of bounds, run long,
//! or panic. Nothing is allocated by a size from the file beyond the file's own size.
//!
//! Not checked, because it cannot be: that nobody changes the file while it is mapped. [`write()`] never
//! does, it renames a new file over the old one; see [`Snapshot::open`].

mod error;
mod format;
mod open;
mod routes;
mod schema;
mod sections;
#[cfg(test)]
mod tests;
mod write;

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use fibula_core::{Addr, PerFamily};

use routes::Stored;

use crate::array::{AlignedBytes, Image};
use crate::mapping::Mapped;
use crate::{Columns, Provenance};

pub use error::{SnapshotError, SnapshotErrorKind};
pub use routes::{StoredFamily, StoredRoutes};
pub(crate) use sections::Sections;
pub(crate) use write::to_bytes_with;
pub use write::{EnginePart, Written, measure, to_bytes, write};

/// An open snapshot: everything in it has been checked and is used where it lies.
pub struct Snapshot {
    path: Option<PathBuf>,
    sections: Sections,
    digest: u128,
    families: PerFamily<Stored>,
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
        // Before it is opened: opening a pipe would wait for its writer.
        if !fs::metadata(path).map_err(io)?.is_file() {
            let error = io::Error::new(io::ErrorKind::InvalidInput, "not a regular file");
            return Err(io(error));
        }
        let file = File::open(path).map_err(io)?;
        let len = file.metadata().map_err(io)?.len();
        let len = usize::try_from(len).map_err(|e| io(io::Error::other(e)))?;
        let image = match len {
            0 => Image::Memory(AlignedBytes::zeroed(0)), // cannot be mapped
            _ => Image::Mapped(Mapped::new(&file, len).map_err(io)?),
        };
        let snapshot = open::open(image).map_err(|e| e.in_file(path))?;
        Ok(Self { path: Some(path.to_owned()), ..snapshot })
    }

    /// Checks a snapshot in memory, such as [`to_bytes`] makes, and keeps it. Bytes from elsewhere are
    /// copied to be aligned: `Snapshot::from_bytes(&bytes[..])`.
    ///
    /// # Errors
    /// If the bytes are no snapshot, or damaged in any way.
    pub fn from_bytes(bytes: impl Into<AlignedBytes>) -> Result<Self, SnapshotError> {
        open::open(Image::Memory(bytes.into()))
    }

    /// The file, unless the snapshot is in memory.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The routes of a family: `snapshot.family::<u32>()` or `::<u128>()`.
    pub fn family<A: Addr>(&self) -> &StoredRoutes<A> {
        self.families.get::<A>()
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
        self.sections.list.iter().map(|s| (s.name.as_str(), s.place.len() as u64))
    }

    /// What [`write()`] reported for the file.
    pub fn written(&self) -> Written {
        Written {
            bytes: self.sections.list.last().map_or(0, |section| section.place.end as u64),
            digest: self.digest,
            sections: self.sections().map(|(name, bytes)| (name.to_owned(), bytes)).collect(),
        }
    }

    /// The sections, for what lies behind those of a table.
    pub(crate) fn raw(&self) -> &Sections {
        &self.sections
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
            .field("v4", &self.families.v4.len())
            .field("v6", &self.families.v6.len())
            .field("columns", &self.columns)
            .field("digest", &format_args!("{:032x}", self.digest))
            .finish()
    }
}
