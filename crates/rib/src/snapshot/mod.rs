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
//! The table digest covers the contents of the table (the *logical* sections), not its engines or its provenance: a
//! table has the same digest whatever engine is stored with it. The digest that commands print ([`Snapshot::digest`])
//! is not stored: it is the same hash over all sections except `provenance`. Sections with other names are checked for
//! damage and otherwise left alone.
//!
//! # Version 2: several dates
//!
//! A file of several dates ([`DatedSnapshot`], [`crate::dated`]) has version 2, so that no program takes it for one
//! table. Its sections are those of version 1, and:
//!
//! | section | logical | content |
//! |---|---|---|
//! | `dates` | yes | the tables as JSON, ascending: `[{"at":1714521600,"source":"a.csv","v4":1,"v6":0}]`, `at` in seconds since 1970 |
//! | `v4/hop`, `v6/hop` | yes | the timeline of each prefix |
//! | `v4/line/first`, `v6/...` | yes | u32, one more than timelines: where the changes of each begin |
//! | `v4/line/up` | yes | u32: the timeline of the next shorter prefix, asked where this one has no row; `ffffffff` for none |
//! | `v4/line/len` | yes | u8: the length of the timeline's prefix |
//! | `v4/line/changes` | yes | u16: of each timeline, for each change the number of the date since which it holds; then for each change the attribute row, low word first, `ffffffff` where the prefix is gone |
//!
//! # Checks
//!
//! At open, always, before anything is used:
//! - magic, byte order, version, file length, number of sections;
//! - the checksums of the header, the section table and every section, and the digest;
//! - names and places of the sections;
//! - prefixes: canonical, sorted, unique; hops: below the number of rows; parents: an earlier route,
//!   so that climbing ends; buckets: ascending from 0 to the number of routes;
//! - columns: a code for each row, below the number of values; texts: UTF-8, offsets ascending and
//!   between characters; JSON: of bounded size;
//! - of several dates: dates ascend; every timeline has a change, changes ascend by date and name dates and
//!   rows that there are; a timeline's next shorter one has a lower number, so that climbing ends; lengths are
//!   those of the family.
//!
//! An engine checks its own tables when it is loaded ([`Persist::load`](fibula_core::Persist::load)).
//!
//! So a file that is truncated or damaged is refused. A file that was forged, checksums included, can contain any
//! table, also parents, buckets or engine tables that disagree with its prefixes, and then gives wrong answers; it
//! cannot make a lookup read out of bounds, run long, or panic. Nothing is allocated by a size from the file beyond the
//! file's own size.
//!
//! No program may change a file while it is mapped. [`write()`] never does: it renames a new file over the old
//! one, and makes it read-only. Files that a user may write into are read, not mapped (ADR 13).

mod any;
#[cfg(test)]
mod any_isa;
mod dated;
mod error;
mod file;
pub(crate) mod format;
mod open;
mod routes;
mod schema;
mod sections;
mod write;

use std::fmt;
use std::path::Path;

use fibula_core::Addr;

use file::Origin;
use format::FileKind;
use open::Opened;

use crate::array::{AlignedBytes, Image};
use crate::{Columns, Provenance};

pub use any::AnySnapshot;
/// The bytes of a file can be used in place as addresses of either family.
pub use bytemuck::Pod;
pub use dated::DatedSnapshot;
pub(crate) use dated::dated_sections;
pub use error::{SnapshotError, SnapshotErrorKind};
pub use file::Loading;
pub use routes::StoredRoutes;
pub(crate) use sections::Sections;
pub use write::{EnginePart, Written, measure, to_bytes, write};
pub(crate) use write::{Parts, dated_to_bytes, to_bytes_with, write_dated};

/// An open snapshot. Everything in it has been checked, and is used in place.
pub struct Snapshot {
    opened: Opened,
    /// `None` for one in memory.
    origin: Option<Origin>,
}

impl Snapshot {
    /// Opens and checks the snapshot file.
    ///
    /// A read-only file, as [`write()`] leaves it, is mapped: processes share its memory.
    /// Other files are read into the memory of this process. See [`Snapshot::open_with`].
    ///
    /// # Errors
    /// If the file cannot be read, is no snapshot, or is damaged in any way.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, SnapshotError> {
        Self::open_with(path, Loading::Auto)
    }

    /// Opens and checks the snapshot file, mapped or read.
    ///
    /// A mapped file must not change while it is open. If its owner or root truncates it all the same, reading it kills
    /// the process (SIGBUS); if they overwrite it, lookups may panic or answer wrongly, and [`Snapshot::unchanged`]
    /// reports this afterwards. A file that was read cannot change, and one that changes while it is being read is
    /// refused by its checksums.
    ///
    /// # Errors
    /// As [`Snapshot::open`].
    pub fn open_with(path: impl AsRef<Path>, loading: Loading) -> Result<Self, SnapshotError> {
        let (opened, origin) = file::open_file(path.as_ref(), loading, Some(FileKind::Table))?;
        Ok(Self { opened, origin: Some(origin) })
    }

    /// Checks that all answers so far came from the data that were checked at opening: a mapped file still has its size
    /// and its time of the last change. Programs call it before they report success. A file that was replaced by
    /// renaming is unchanged: the old one is still mapped.
    ///
    /// # Errors
    /// If a program wrote into the file.
    pub fn unchanged(&self) -> Result<(), SnapshotError> {
        self.origin.as_ref().map_or(Ok(()), Origin::unchanged)
    }

    /// Checks a snapshot in memory, such as [`to_bytes`] makes, and keeps it. Bytes from elsewhere are
    /// copied to be aligned: `Snapshot::from_bytes(&bytes[..])`.
    ///
    /// # Errors
    /// If the bytes are no snapshot, or damaged in any way.
    pub fn from_bytes(bytes: impl Into<AlignedBytes>) -> Result<Self, SnapshotError> {
        let opened = open::open(Image::Memory(bytes.into()), FileKind::Table)?;
        Ok(Self { opened, origin: None })
    }

    /// The file, unless the snapshot is in memory.
    pub fn path(&self) -> Option<&Path> {
        self.origin.as_ref().map(|origin| &*origin.path)
    }

    /// The routes of a family: `snapshot.family::<u32>()` or `::<u128>()`.
    pub fn family<A: Addr>(&self) -> &StoredRoutes<A> {
        self.opened.families.get::<A>()
    }

    /// The attributes that hops number.
    pub fn columns(&self) -> &Columns {
        &self.opened.columns
    }

    /// The origin of the table.
    pub fn provenance(&self) -> &Provenance {
        &self.opened.provenance
    }

    /// The sections with their bytes, in file order.
    pub fn sections(&self) -> impl ExactSizeIterator<Item = (&str, u64)> {
        self.opened.sections.list.iter().map(|s| (s.name.as_str(), s.place.len() as u64))
    }

    /// The report of [`write()`] for the file.
    pub fn written(&self) -> Written {
        Written {
            bytes: self.opened.sections.list.last().map_or(0, |section| section.place.end as u64),
            digest: self.opened.digest,
            sections: self.sections().map(|(name, bytes)| (name.to_owned(), bytes)).collect(),
        }
    }

    /// The sections, for reading those that a table does not have.
    pub(crate) fn raw(&self) -> &Sections {
        &self.opened.sections
    }

    /// A digest of everything in the file that answers depend on: routes, attributes, indices, engine tables, and in a
    /// checkpoint the RIB. Equal digests are equal answers, on machines of the same byte order. The origin of the table
    /// and the time of its build are not included, so the same sources, built again by the same program, have the same
    /// digest.
    ///
    /// It distinguishes files that differ by accident. It is no authentication: an attacker who can forge a file can
    /// forge its digest (XXH3 is not a cryptographic hash).
    pub fn digest(&self) -> u128 {
        self.opened.digest
    }

    /// A digest of the table's prefixes, hops and attributes: the same whichever engine is stored
    /// with them.
    pub fn table_digest(&self) -> u128 {
        self.opened.table_digest
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("v4", &self.opened.families.v4.len())
            .field("v6", &self.opened.families.v6.len())
            .field("columns", &self.opened.columns)
            .field("digest", &format_args!("{:032x}", self.opened.digest))
            .finish()
    }
}
