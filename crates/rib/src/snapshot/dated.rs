//! The file of several dates: the sections of a snapshot, whose hops number timelines, and those of the timelines.
//! [`super`] describes both.

use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use fibula_core::{Addr, Family, PerFamily};

use super::file::{self, Loading, Origin};
use super::format::{self, FileKind};
use super::open::{self, Opened};
use super::sections::Sections;
use super::{Pod, SnapshotError, StoredRoutes, Written};
use crate::array::{AlignedBytes, Image};
use crate::columns::NULL;
use crate::dated::{
    Dates, Lines, Moment, NO_TIMELINE, TableDate, Timelines, WORDS, parted, row_at,
};
use crate::{Columns, Provenance, Table};

/// The parts of a file of several dates that a table's file does not have.
pub(super) struct Dated {
    dates: Dates,
    timelines: PerFamily<Lines>,
}

impl Dated {
    /// Number of timelines of each family.
    pub(super) fn timelines(&self) -> [u32; 2] {
        [self.timelines.v4.len() as u32, self.timelines.v6.len() as u32]
    }
}

/// An open file of several dates. Everything in it has been checked, and is used in place.
pub struct DatedSnapshot {
    opened: Opened,
    dated: Dated,
    origin: Option<Origin>,
}

impl DatedSnapshot {
    /// Opens and checks the file, mapped or read as for [`Snapshot::open_with`](super::Snapshot::open_with).
    ///
    /// # Errors
    /// If the file cannot be read, has no tables of several dates, or is damaged in any way.
    pub fn open_with(path: impl AsRef<Path>, loading: Loading) -> Result<Self, SnapshotError> {
        let (opened, origin) = file::open_file(path.as_ref(), loading, Some(FileKind::Dated))?;
        Self::of(opened, Some(origin))
    }

    /// Whether a file has the type of a file of several dates, sound or not. `false` if it cannot be read.
    pub fn is_one(path: impl AsRef<Path>) -> bool {
        let mut head = Vec::new();
        let read = File::open(path).and_then(|file| file.take(16).read_to_end(&mut head));
        read.is_ok() && format::kind(&head) == Some(FileKind::Dated)
    }

    /// Checks such a file in memory and keeps it.
    ///
    /// # Errors
    /// If the bytes are no such file, or damaged in any way.
    pub fn from_bytes(bytes: impl Into<AlignedBytes>) -> Result<Self, SnapshotError> {
        Self::of(open::open(Image::Memory(bytes.into()), FileKind::Dated)?, None)
    }

    pub(super) fn of(mut opened: Opened, origin: Option<Origin>) -> Result<Self, SnapshotError> {
        let missing = || SnapshotError::invalid("there are no dates");
        let dated = opened.dated.take().ok_or_else(missing)?;
        Ok(Self { opened, dated, origin })
    }

    /// The dates, with the source of each table.
    pub fn dates(&self) -> &Dates {
        &self.dated.dates
    }

    /// The prefixes of all dates of a family; hops number [`DatedSnapshot::timelines`].
    pub fn routes<A: Addr>(&self) -> &StoredRoutes<A> {
        self.opened.families.get::<A>()
    }

    /// The timelines of a family.
    pub fn timelines<A: Addr>(&self) -> &Timelines {
        self.dated.timelines.get::<A>()
    }

    /// The values of all dates, whose rows the timelines name.
    pub fn columns(&self) -> &Columns {
        &self.opened.columns
    }

    /// The program that wrote the file, and the time.
    pub fn provenance(&self) -> &Provenance {
        &self.opened.provenance
    }

    /// The file, unless it is in memory.
    pub fn path(&self) -> Option<&Path> {
        self.origin.as_ref().map(|origin| &*origin.path)
    }

    /// As [`Snapshot::unchanged`](super::Snapshot::unchanged).
    ///
    /// # Errors
    /// If a program wrote into the file.
    pub fn unchanged(&self) -> Result<(), SnapshotError> {
        self.origin.as_ref().map_or(Ok(()), Origin::unchanged)
    }

    /// Bytes, digest and sections of the file.
    pub fn written(&self) -> Written {
        let list = &self.opened.sections.list;
        Written {
            bytes: list.last().map_or(0, |section| section.place.end as u64),
            digest: self.opened.digest,
            sections: list.iter().map(|s| (s.name.clone(), s.place.len() as u64)).collect(),
        }
    }

    /// The table of a date by its number, copied; empty if there is no such date.
    pub fn table(&self, date: u16) -> Table {
        fn family<A: Addr + Pod>(dated: &DatedSnapshot, date: u16) -> fibula_core::Routes<A> {
            let (routes, ask) = (dated.routes::<A>(), dated.timelines::<A>().ask());
            let all = (0..routes.len()).map(|index| routes.get(index));
            let of_date = all.filter_map(|route| {
                let hop = ask.own(route.hop, date)?;
                Some(fibula_core::Route { hop, ..route })
            });
            fibula_core::Routes::from_unsorted(of_date.collect())
        }
        let mut provenance = self.provenance().clone();
        if let Some(table) = self.dates().tables().get(usize::from(date)) {
            provenance.sources = vec![crate::SourceRecord {
                name: table.source.clone(),
                format: "snapshot".to_owned(),
                date: table.at.unix().try_into().ok(),
                announced: table.v4 + table.v6,
                ..Default::default()
            }];
        }
        let (v4, v6) = (family::<u32>(self, date), family::<u128>(self, date));
        Table { v4, v6, columns: self.columns().clone(), provenance }
    }
}

impl fmt::Debug for DatedSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DatedSnapshot")
            .field("dates", &self.dates().len())
            .field("v4", &self.opened.families.v4.len())
            .field("v6", &self.opened.families.v6.len())
            .field("digest", &format_args!("{:032x}", self.opened.digest))
            .finish()
    }
}

/// The sections that only a file of several dates has.
pub(crate) fn dated_sections<'a>(
    dates: &Dates,
    timelines: &'a PerFamily<Lines>,
) -> Result<super::Parts<'a>, SnapshotError> {
    let mut parts = vec![("dates".to_owned(), super::write::json(&dates.tables())?)];
    for (family, lines) in [(Family::V4, &timelines.v4), (Family::V6, &timelines.v6)] {
        let mut put = |what: &str, bytes: &'a [u8]| {
            parts.push((format!("{family}/line/{what}"), Cow::Borrowed(bytes)));
        };
        put("first", lines.first.as_bytes());
        put("up", lines.up.as_bytes());
        put("len", lines.len.as_bytes());
        put("changes", lines.changes.as_bytes());
    }
    Ok(parts)
}

/// Reads and checks these sections; `rows` is the number of attribute rows.
pub(super) fn open(sections: &Sections, rows: u32) -> Result<Dated, SnapshotError> {
    let tables: Vec<TableDate> = sections.json("dates")?;
    let blame = |reason: &str| Err(sections.blame("dates", reason));
    if tables.is_empty() {
        return blame("there is no date");
    }
    if tables.len() >= usize::from(u16::MAX) {
        return blame("there are too many dates");
    }
    if !tables.is_sorted_by(|a, b| a.at < b.at) {
        return blame("the dates do not ascend");
    }
    if tables.iter().any(|table| !Moment::RANGE.contains(&table.at)) {
        return blame("a date is before the year 1 or after 9999");
    }
    let dates = tables.len() as u16;
    let timelines = PerFamily {
        v4: family::<u32>(sections, dates, rows)?,
        v6: family::<u128>(sections, dates, rows)?,
    };
    Ok(Dated { dates: Dates::new(tables), timelines })
}

fn family<A: Addr>(sections: &Sections, dates: u16, rows: u32) -> Result<Timelines, SnapshotError> {
    let name = |what: &str| format!("{}/line/{what}", A::FAMILY);
    let up = sections.array::<u32>(&name("up"))?;
    let count = up.len();
    if count >= NO_TIMELINE as usize {
        return Err(sections.blame(&name("up"), format!("{count} timelines are too many")));
    }
    let first = sections.array_of::<u32>(&name("first"), count + 1)?;
    let len = sections.array_of::<u8>(&name("len"), count)?;
    let changes = sections.array::<u16>(&name("changes"))?;
    let ends = (first.first().copied(), first.last().map(|&last| WORDS * last as usize));
    if ends != (Some(0), Some(changes.len())) || !first.is_sorted_by(|a, b| a < b) {
        let reason = "timelines do not ascend from 0 to the number of changes";
        return Err(sections.blame(&name("first"), reason));
    }
    if let Some(at) = (0..).zip(up.iter()).position(|(i, &up)| up != NO_TIMELINE && up >= i) {
        let reason = format!("timeline {} is not an earlier one", up[at]);
        return Err(sections.blame_item::<u32>(&name("up"), at, reason));
    }
    if let Some(at) = len.iter().position(|&len| len > A::BITS) {
        let reason = format!("length {} of a prefix", len[at]);
        return Err(sections.blame_item::<u8>(&name("len"), at, reason));
    }
    for bounds in first.windows(2) {
        let (start, end) = (WORDS * bounds[0] as usize, WORDS * bounds[1] as usize);
        let (from, words) = parted(&changes[start..end]);
        let blame = |reason: String| sections.blame_item::<u16>(&name("changes"), start, reason);
        if !from.is_sorted_by(|a, b| a < b) {
            return Err(blame("the changes of a timeline do not ascend".to_owned()));
        }
        if let Some(last) = from.last().filter(|&&last| last >= dates) {
            return Err(blame(format!("date {last} of {dates}")));
        }
        let wrong = |row: &u32| *row != NULL && *row >= rows;
        if let Some(row) = (0..from.len()).filter_map(|at| row_at(words, at)).find(wrong) {
            return Err(blame(format!("row {row} is not below the {rows} rows")));
        }
    }
    Ok(Timelines { first, up, len, changes })
}
