//! Writes a table to a file.

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::Path;

use fibula_core::{Addr, AnyEngine, Family, TableRef};
use serde::Serialize;

use super::error::SnapshotErrorKind as Kind;
use super::format::{self, FileKind, Section};
use super::schema::{Engines, Schema};
use super::{Pod, SnapshotError};
use crate::array::AlignedBytes;
use crate::columns::Dictionary;
use crate::{AtomicFile, IndexedRoutes, Table};

/// A compiled engine, to be stored with the table.
#[derive(Clone, Default)]
pub struct EnginePart<'a> {
    /// The engine's name, by which a program chooses the code for its tables.
    pub name: &'a str,
    /// Its tables.
    pub tables: Vec<TableRef<'a>>,
}

impl EnginePart<'_> {
    /// No engine: the engine is compiled from the routes when the file is opened.
    pub fn none() -> Self {
        Self::default()
    }
}

impl<'a> EnginePart<'a> {
    /// The engine with this name and its tables, or none if it has no stored form.
    pub fn of<A: Addr>(name: &'a str, engine: &'a dyn AnyEngine<A>) -> Self {
        engine.persist().map_or_else(Self::none, |(_, tables)| Self { name, tables })
    }
}

/// The result of writing a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Bytes of the file.
    pub bytes: u64,
    /// The file's digest; see [`Snapshot::digest`](super::Snapshot::digest).
    pub digest: u128,
    /// The sections with their bytes.
    pub sections: Vec<(String, u64)>,
}

/// Writes the table with its engines as the snapshot `path`.
///
/// The file is written completely or not at all, see [`AtomicFile`], and is read-only, so that
/// [`Snapshot::open`](super::Snapshot::open) maps it. To replace it, write or rename another file over it.
///
/// # Errors
/// If an I/O operation fails, or the table cannot be stored because a hop is not a row or a name is too long.
pub fn write(
    path: &Path,
    table: &Table,
    v4: &EnginePart<'_>,
    v6: &EnginePart<'_>,
) -> Result<Written, SnapshotError> {
    Plan::new(table, v4, v6, Vec::new()).map_err(|e| e.in_file(path))?.write(path)
}

/// Writes a table whose hops number timelines, with the sections of these, as the file `path`.
pub(crate) fn write_dated(
    path: &Path,
    table: &Table,
    engines: [&EnginePart<'_>; 2],
    more: Parts<'_>,
) -> Result<Written, SnapshotError> {
    let plan = Plan::laid_out(FileKind::Dated, table, engines, more);
    plan.map_err(|e| e.in_file(path))?.write(path)
}

/// Like [`write_dated`], but returns the bytes.
pub(crate) fn dated_to_bytes(
    table: &Table,
    engines: [&EnginePart<'_>; 2],
    more: Parts<'_>,
) -> Result<AlignedBytes, SnapshotError> {
    Ok(Plan::laid_out(FileKind::Dated, table, engines, more)?.to_bytes())
}

impl Plan<'_> {
    fn write(&self, path: &Path) -> Result<Written, SnapshotError> {
        let written = AtomicFile::create_read_only(path, &format::MAGIC).and_then(|mut file| {
            self.write_to(&mut file)?;
            file.commit()
        });
        written.map_err(|e| SnapshotError::io(path, "cannot write the snapshot", e))?;
        Ok(self.written())
    }

    fn to_bytes(&self) -> AlignedBytes {
        let mut bytes = AlignedBytes::zeroed(self.file_len);
        let out = bytes.as_mut();
        out[..self.head.len()].copy_from_slice(&self.head);
        for (section, part) in self.sections.iter().zip(&self.parts) {
            out[section.place.clone()].copy_from_slice(&part.1);
        }
        bytes
    }
}

/// The result that [`write()`] would return for the table: digest and sizes.
///
/// # Errors
/// If the table cannot be stored because a hop is not a row or a name is too long.
pub fn measure(
    table: &Table,
    v4: &EnginePart<'_>,
    v6: &EnginePart<'_>,
) -> Result<Written, SnapshotError> {
    Ok(Plan::new(table, v4, v6, Vec::new())?.written())
}

/// The snapshot of the table in memory, as [`write()`] would write it.
///
/// # Errors
/// If the table cannot be stored because a hop is not a row or a name is too long.
pub fn to_bytes(
    table: &Table,
    v4: &EnginePart<'_>,
    v6: &EnginePart<'_>,
) -> Result<AlignedBytes, SnapshotError> {
    to_bytes_with(table, v4, v6, Vec::new())
}

/// Like [`to_bytes`], with additional sections after the table's own.
pub(crate) fn to_bytes_with(
    table: &Table,
    v4: &EnginePart<'_>,
    v6: &EnginePart<'_>,
    more: Vec<(String, Vec<u8>)>,
) -> Result<AlignedBytes, SnapshotError> {
    let more = more.into_iter().map(|(name, bytes)| (name, Cow::Owned(bytes))).collect();
    Ok(Plan::new(table, v4, v6, more)?.to_bytes())
}

/// Sections by name.
pub(crate) type Parts<'a> = Vec<(String, Cow<'a, [u8]>)>;

/// The parts of the file, with their positions.
struct Plan<'a> {
    parts: Parts<'a>,
    sections: Vec<Section>,
    head: Vec<u8>,
    file_len: usize,
}

impl<'a> Plan<'a> {
    fn new(
        table: &'a Table,
        v4: &'a EnginePart<'a>,
        v6: &'a EnginePart<'a>,
        more: Parts<'a>,
    ) -> Result<Self, SnapshotError> {
        let unstorable = |reason: String| SnapshotError::new(Kind::Unstorable, reason);
        table.check().map_err(|e| unstorable(e.to_string()))?;
        Self::laid_out(FileKind::Table, table, [v4, v6], more)
    }

    fn laid_out(
        kind: FileKind,
        table: &'a Table,
        [v4, v6]: [&'a EnginePart<'a>; 2],
        more: Parts<'a>,
    ) -> Result<Self, SnapshotError> {
        let unstorable = |reason: String| SnapshotError::new(Kind::Unstorable, reason);
        let mut parts = Vec::new();
        for name in [v4.name, v6.name] {
            if !format::is_engine_name(name) {
                return Err(unstorable(format!("{name:?} cannot name an engine")));
            }
        }
        let engines = Engines { v4: v4.name.to_owned(), v6: v6.name.to_owned() };
        parts.push(("provenance".to_owned(), json(&table.provenance)?));
        parts.push(("engines".to_owned(), json(&engines)?));
        columns(table, &mut parts)?;
        family::<u32>(table, &mut parts)?;
        family::<u128>(table, &mut parts)?;
        for (family, engine) in [(Family::V4, v4), (Family::V6, v6)] {
            for part in &engine.tables {
                let name = format!("engine/{family}/{}", part.name);
                parts.push((name, Cow::Borrowed(part.bytes)));
            }
        }
        parts.extend(more);
        Self::lay_out(kind, parts)
    }

    fn lay_out(kind: FileKind, parts: Parts<'a>) -> Result<Self, SnapshotError> {
        let unstorable = |reason: String| SnapshotError::new(Kind::Unstorable, reason);
        if parts.len() > format::MAX_SECTIONS {
            return Err(unstorable(format!("{} sections are too many", parts.len())));
        }
        let mut end = format::HEADER + parts.len() * format::ENTRY;
        let mut sections = Vec::with_capacity(parts.len());
        for (name, bytes) in &parts {
            if name.len() > format::NAME || !name.bytes().all(|b| b.is_ascii_graphic()) {
                return Err(unstorable(format!("{name:?} cannot name a section")));
            }
            let too_large = || unstorable("the table exceeds the address space".to_owned());
            let start = format::align(end).ok_or_else(too_large)?;
            end = start.checked_add(bytes.len()).ok_or_else(too_large)?;
            let checksum = format::checksum(bytes);
            sections.push(Section { name: name.clone(), place: start..end, checksum });
        }
        if let Some(twice) = format::duplicate(&sections) {
            return Err(unstorable(format!("two tables of an engine are named {twice}")));
        }
        let head = format::encode(kind, &sections, end);
        Ok(Self { parts, sections, head, file_len: end })
    }

    fn write_to(&self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(&self.head)?;
        let mut at = self.head.len();
        for (section, (_, bytes)) in self.sections.iter().zip(&self.parts) {
            out.write_all(&[0; format::ALIGN][..section.place.start - at])?;
            out.write_all(bytes)?;
            at = section.place.end;
        }
        out.flush()
    }

    fn written(&self) -> Written {
        let size = |s: &Section| (s.name.clone(), s.place.len() as u64);
        Written {
            bytes: self.file_len as u64,
            digest: format::digest(&self.sections),
            sections: self.sections.iter().map(size).collect(),
        }
    }
}

pub(super) fn json(value: &impl Serialize) -> Result<Cow<'static, [u8]>, SnapshotError> {
    let unstorable = |reason: String| SnapshotError::new(Kind::Unstorable, reason);
    let bytes = serde_json::to_vec(value).map_err(|e| unstorable(e.to_string()))?;
    if bytes.len() > format::MAX_JSON {
        return Err(unstorable(format!("{} bytes of names are too many", bytes.len())));
    }
    Ok(Cow::Owned(bytes))
}

fn columns<'a>(
    table: &'a Table,
    parts: &mut Vec<(String, Cow<'a, [u8]>)>,
) -> Result<(), SnapshotError> {
    let columns = &table.columns;
    let schema = Schema::of(columns);
    schema
        .check_rows(table.v4.len() + table.v6.len())
        .map_err(|reason| SnapshotError::new(Kind::Unstorable, reason))?;
    parts.push(("schema".to_owned(), json(&schema)?));
    for (i, column) in columns.columns.iter().enumerate() {
        let mut put = |what: &str, bytes: &'a [u8]| {
            parts.push((format!("column/{i}/{what}"), Cow::Borrowed(bytes)));
        };
        put("code", column.codes.as_bytes());
        match &column.dictionary {
            Dictionary::Int(values) => put("int", values.as_bytes()),
            Dictionary::Str { offsets, text } => {
                put("offset", offsets.as_bytes());
                put("text", text.as_bytes());
            }
        }
    }
    Ok(())
}

fn family<A: Addr + Pod>(
    table: &Table,
    parts: &mut Vec<(String, Cow<'_, [u8]>)>,
) -> Result<(), SnapshotError> {
    let list = table.routes::<A>();
    // Indices have 32 bits, and the largest means "no parent".
    if list.len() >= u32::MAX as usize {
        let reason = format!("{} routes are too many", list.len());
        return Err(SnapshotError::new(Kind::Unstorable, reason));
    }
    let routes = IndexedRoutes::new(list);
    let mut put = |what: &str, bytes: &[u8]| {
        parts.push((format!("{}/{what}", A::FAMILY), Cow::Owned(bytes.to_vec())));
    };
    put("addr", routes.addrs.as_bytes());
    put("len", routes.lens.as_bytes());
    put("hop", routes.hops.as_bytes());
    put("parent", routes.parents.as_bytes());
    put("bucket", routes.buckets.as_bytes());
    Ok(())
}
