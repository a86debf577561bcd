//! Header and section table as bytes; [`super`] describes them.

use std::ops::Range;

use twox_hash::{XxHash3_64, XxHash3_128};

use super::SnapshotError;
use super::error::SnapshotErrorKind as Kind;

/// The high bit and the line end catch transfers that are not binary, as PNG's magic does.
pub(crate) const MAGIC: [u8; 8] = *b"\x89FIBULA\n";
/// The type of a file. Each has its own version of the format, so that no program mistakes one for the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// One table.
    Table = 1,
    /// The tables of several dates.
    Dated = 2,
}
/// Written in the machine's byte order; on a machine of the other order, another number is read.
const BYTE_ORDER: u32 = 0x0a0b_0c0d;

pub(super) const HEADER: usize = 64;
/// Bytes of an entry of the section table.
pub(super) const ENTRY: usize = 64;
pub(super) const NAME: usize = 40;
/// Sections begin at multiples of this: a cache line, and every item's own alignment.
pub(super) const ALIGN: usize = 64;
/// More sections than any table needs (six fixed ones, ten for the families, three a column and a few
/// for each engine); bounds the work that a hostile header can cause.
pub(super) const MAX_SECTIONS: usize = 4096;
/// The longest name of an engine.
const MAX_ENGINE_NAME: usize = 64;

/// Whether this can be stored as an engine's name.
pub(super) fn is_engine_name(name: &str) -> bool {
    name.len() <= MAX_ENGINE_NAME && name.bytes().all(|b| b.is_ascii_graphic())
}

/// Maximum size of a JSON section.
pub(super) const MAX_JSON: usize = 16 << 20;

/// One section: a name, a place, a checksum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) name: String,
    pub(super) place: Range<usize>,
    pub(super) checksum: u64,
}

pub(super) fn checksum(bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot(bytes)
}

/// The first place at or after `offset` where a section may begin.
pub(super) fn align(offset: usize) -> Option<usize> {
    offset.checked_next_multiple_of(ALIGN)
}

/// Whether a section has content of the table, rather than its engines or its provenance.
fn is_logical(name: &str) -> bool {
    let derived = name.ends_with("/parent") || name.ends_with("/bucket");
    let is_other = ["engine/", "rib/"].iter().any(|prefix| name.starts_with(prefix));
    !(derived || is_other || name == "engines" || name == "provenance")
}

/// The table digest: over name, length and checksum of the logical sections. These are the same
/// whichever engine is stored beside them, so equal tables have equal digests.
pub(super) fn table_digest(sections: &[Section]) -> u128 {
    digest_of(sections.iter().filter(|s| is_logical(&s.name)))
}

/// The digest of all that an answer depends on: the table, its indices, engines and, in a checkpoint,
/// the RIB. The builder, the sources' paths and the time are left out, so the same sources give the same digest.
pub(super) fn digest(sections: &[Section]) -> u128 {
    digest_of(sections.iter().filter(|s| s.name != "provenance"))
}

fn digest_of<'a>(sections: impl Iterator<Item = &'a Section>) -> u128 {
    let mut summary = Vec::new();
    for section in sections {
        summary.extend_from_slice(section.name.as_bytes());
        summary.push(0);
        // Little-endian whatever the machine; the checksums themselves differ by byte order.
        summary.extend_from_slice(&(section.place.len() as u64).to_le_bytes());
        summary.extend_from_slice(&section.checksum.to_le_bytes());
    }
    XxHash3_128::oneshot(&summary)
}

/// Header and section table of a file of `file_len` bytes.
pub(super) fn encode(kind: FileKind, sections: &[Section], file_len: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER + sections.len() * ENTRY);
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&BYTE_ORDER.to_ne_bytes());
    out.extend_from_slice(&(kind as u32).to_ne_bytes());
    out.extend_from_slice(&(file_len as u64).to_ne_bytes());
    out.extend_from_slice(&(sections.len() as u64).to_ne_bytes());
    out.extend_from_slice(&table_digest(sections).to_ne_bytes());
    out.resize(HEADER, 0); // 8 bytes to spare, and the checksum
    for section in sections {
        let mut name = [0; NAME];
        name[..section.name.len()].copy_from_slice(section.name.as_bytes());
        out.extend_from_slice(&name);
        out.extend_from_slice(&(section.place.start as u64).to_ne_bytes());
        out.extend_from_slice(&(section.place.len() as u64).to_ne_bytes());
        out.extend_from_slice(&section.checksum.to_ne_bytes());
    }
    seal(&mut out);
    out
}

/// Puts the checksum of header and section table in its place. The checksum's own bytes count as
/// zero.
pub(super) fn seal(head: &mut [u8]) {
    head[HEADER - 8..HEADER].fill(0);
    let sum = checksum(head);
    head[HEADER - 8..HEADER].copy_from_slice(&sum.to_ne_bytes());
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk().map_or(0, |b| u32::from_ne_bytes(*b))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..].first_chunk().map_or(0, |b| u64::from_ne_bytes(*b))
}

/// Bytes of header and section table, from the first [`HEADER`] bytes of a file of `file_len` bytes (all
/// of them where it is shorter).
pub(super) fn head_len(
    start: &[u8],
    file_len: usize,
    kind: FileKind,
) -> Result<usize, SnapshotError> {
    Ok(HEADER + decode_header(start, file_len, kind)? * ENTRY)
}

/// Reads header and section table, which are all of `head`; checks everything about them, and that all
/// sections are inside the file. Neither their content nor the gaps between them are looked at.
pub(super) fn decode_head(
    head: &[u8],
    file_len: usize,
) -> Result<(Vec<Section>, u128), SnapshotError> {
    let mut zeroed = head.to_vec();
    seal(&mut zeroed);
    if zeroed != head {
        return Err(SnapshotError::new(Kind::Damaged, "the checksum of the header differs"));
    }
    let mut sections = Vec::with_capacity(head.len() / ENTRY);
    let mut end = head.len();
    for (i, entry) in head[HEADER..].chunks_exact(ENTRY).enumerate() {
        let section = decode_entry(entry, end, file_len).map_err(|e| e.at(HEADER + i * ENTRY))?;
        end = section.place.end;
        sections.push(section);
    }
    if end != file_len {
        return Err(SnapshotError::invalid("there are bytes after the last section").at(end));
    }
    if let Some(twice) = duplicate(&sections) {
        return Err(SnapshotError::invalid(format!("two sections are named {twice}")));
    }
    let stored = head[32..].first_chunk().map_or(0, |b| u128::from_ne_bytes(*b));
    if table_digest(&sections) != stored {
        return Err(SnapshotError::invalid("the table digest differs from its sections").at(32));
    }
    Ok((sections, stored))
}

/// Reads header and section table of a complete file, and checks the gaps between its sections.
pub(super) fn decode(file: &[u8], kind: FileKind) -> Result<(Vec<Section>, u128), SnapshotError> {
    let head = head_len(file, file.len(), kind)?;
    let (sections, table_digest) = decode_head(&file[..head], file.len())?;
    let mut end = head;
    for section in &sections {
        if let Some(gap) = file[end..section.place.start].iter().position(|&b| b != 0) {
            let error = SnapshotError::new(Kind::Damaged, "a gap between sections is not zero");
            return Err(error.at(end + gap));
        }
        end = section.place.end;
    }
    Ok((sections, table_digest))
}

/// A name that two sections have.
pub(super) fn duplicate(sections: &[Section]) -> Option<&str> {
    let mut names: Vec<&str> = sections.iter().map(|s| s.name.as_str()).collect();
    names.sort_unstable();
    names.windows(2).find(|w| w[0] == w[1]).map(|w| w[0])
}

/// The type of a file with this beginning, on a machine of this byte order.
pub(super) fn kind(start: &[u8]) -> Option<FileKind> {
    let is_ours = start.len() >= 16 && start.starts_with(&MAGIC) && u32_at(start, 8) == BYTE_ORDER;
    let known = [FileKind::Table, FileKind::Dated];
    known.into_iter().find(|&kind| is_ours && u32_at(start, 12) == kind as u32)
}

/// The number of sections; their table is inside the file.
fn decode_header(start: &[u8], file_len: usize, kind: FileKind) -> Result<usize, SnapshotError> {
    let magic = start.len().min(MAGIC.len());
    if start[..magic] != MAGIC[..magic] || start.is_empty() {
        return Err(SnapshotError::new(Kind::NotSnapshot, "not a fibula snapshot"));
    }
    let truncated = |needed: u64| {
        let reason = format!("truncated: {needed} bytes needed, {} there", file_len);
        SnapshotError::new(Kind::Truncated, reason)
    };
    if file_len < HEADER || start.len() < HEADER {
        return Err(truncated(HEADER as u64));
    }
    match u32_at(start, 8) {
        BYTE_ORDER => {}
        order if order.swap_bytes() == BYTE_ORDER => {
            let reason = "written on a machine of the other byte order";
            return Err(SnapshotError::new(Kind::ByteOrder, reason).at(8));
        }
        _ => return Err(SnapshotError::new(Kind::Damaged, "the byte order mark differs").at(8)),
    }
    let version = u32_at(start, 12);
    if version != kind as u32 {
        let (error, reason) = match (kind, version) {
            (FileKind::Table, 2) => {
                (Kind::Dated, "it holds the tables of several dates".to_owned())
            }
            (FileKind::Dated, 1) => {
                (Kind::NotDated, "it holds one table, without a date".to_owned())
            }
            _ => {
                let known = "this program reads versions 1 and 2";
                (Kind::Version, format!("format version {version}, {known}"))
            }
        };
        return Err(SnapshotError::new(error, reason).at(12));
    }
    let len = u64_at(start, 16);
    if len > file_len as u64 {
        return Err(truncated(len));
    }
    if len < file_len as u64 {
        let reason = format!("{} bytes, the header declares {len}", file_len);
        return Err(SnapshotError::new(Kind::Damaged, reason).at(16));
    }
    let count = usize::try_from(u64_at(start, 24)).unwrap_or(usize::MAX);
    if count > MAX_SECTIONS {
        let reason = format!("{count} sections, at most {MAX_SECTIONS} are allowed");
        return Err(SnapshotError::invalid(reason).at(24));
    }
    if HEADER + count * ENTRY > file_len {
        return Err(truncated((HEADER + count * ENTRY) as u64));
    }
    Ok(count)
}

/// One entry of the section table. Between sections there is only alignment: `end` is where the one before ends, and
/// the only place allowed follows from it. So no two can overlap, and none can be misaligned.
fn decode_entry(entry: &[u8], end: usize, file_len: usize) -> Result<Section, SnapshotError> {
    let (name, numbers) = entry.split_at(NAME);
    let len = name.iter().position(|&b| b == 0).unwrap_or(NAME);
    let (name, padding) = name.split_at(len);
    let plain = !name.is_empty() && name.iter().all(u8::is_ascii_graphic);
    if !plain || padding.iter().any(|&b| b != 0) {
        return Err(SnapshotError::invalid("a section's name is not plain ASCII"));
    }
    let name = String::from_utf8_lossy(name).into_owned();
    let (offset, len, checksum) = (u64_at(numbers, 0), u64_at(numbers, 8), u64_at(numbers, 16));
    let outside = || {
        let reason = format!("section {name}: {len} bytes at {offset} are outside the file");
        SnapshotError::invalid(reason)
    };
    let start = usize::try_from(offset).map_err(|_| outside())?;
    if align(end) != Some(start) {
        let reason = format!("section {name} begins at {offset}, its predecessor ends at {end}");
        return Err(SnapshotError::invalid(reason));
    }
    let end = usize::try_from(len).ok().and_then(|len| start.checked_add(len));
    let end = end.filter(|&end| end <= file_len).ok_or_else(outside)?;
    Ok(Section { name, place: start..end, checksum })
}
