//! Files with records in the order of keys, which never change.
//!
//! ```text
//! magic (8) | records, records, ... | index | summary | position of the index, of the summary, checksum, magic (8 each)
//! ```
//!
//! A file is complete if it has the state of all prefixes at its beginning: then no file before it is needed.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fibula_core::AnyPrefix;
use fibula_rib::AtomicFile;
use twox_hash::XxHash3_64;

use crate::block::{self, BlockWriter};
use crate::bytes::{Flaw, Input, put, put_bytes};
use crate::error::HistoryError;
use crate::frame::{self, Frames, Kind};
use crate::record::{HistoryBreak, Recorded, RouteKey, RouteRecord};

const MAGIC: [u8; 8] = *b"fibhist1";
const END: [u8; 8] = *b"fibhend1";
const TAIL: usize = 32;
/// Bytes of a block, before it is packed.
pub(crate) const BLOCK: usize = 128 << 10;
/// zstd's level: 3 is its default.
const LEVEL: i32 = 3;
/// The most times that are recorded in a file: one more than there may be in a log.
const INTERVALS: usize = 1 << 16;

/// What is in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    /// The numbers of the logs that it was made of.
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// Whether no file before it is needed.
    pub(crate) is_complete: bool,
    /// Whether it was merged of several files.
    pub(crate) is_merged: bool,
    /// Its times: no change in it is earlier or later.
    pub(crate) from: u64,
    pub(crate) until: u64,
    pub(crate) recorded: Vec<Recorded>,
    /// Number of changes.
    pub(crate) changes: u64,
    /// The lengths of its prefixes.
    pub(crate) lengths: Lengths,
    /// Number of its tables.
    pub(crate) tables: u64,
}

/// Lengths of prefixes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lengths {
    v4: u64,
    v6: [u64; 3],
}

impl Lengths {
    pub(crate) fn add(&mut self, prefix: AnyPrefix) {
        match prefix {
            AnyPrefix::V4(prefix) => self.v4 |= 1 << prefix.len(),
            AnyPrefix::V6(prefix) => {
                self.v6[usize::from(prefix.len() / 64)] |= 1 << (prefix.len() % 64)
            }
        }
    }

    pub(crate) fn join(&mut self, other: &Self) {
        self.v4 |= other.v4;
        self.v6.iter_mut().zip(other.v6).for_each(|(to, from)| *to |= from);
    }

    /// Whether there may be prefixes of this one's family and length.
    pub(crate) fn has(&self, prefix: AnyPrefix) -> bool {
        match prefix {
            AnyPrefix::V4(prefix) => self.v4 >> prefix.len() & 1 == 1,
            AnyPrefix::V6(prefix) => {
                self.v6[usize::from(prefix.len() / 64)] >> (prefix.len() % 64) & 1 == 1
            }
        }
    }
}

impl Summary {
    fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let flags = u64::from(self.is_complete) | u64::from(self.is_merged) << 1;
        for number in
            [self.first, self.last, flags, self.from, self.until, self.changes, self.tables]
        {
            put(&mut out, number);
        }
        put(&mut out, self.lengths.v4);
        self.lengths.v6.iter().for_each(|&word| put(&mut out, word));
        put(&mut out, self.recorded.len() as u64);
        for Recorded { from, until, before } in &self.recorded {
            put(&mut out, *from);
            put(&mut out, *until);
            out.push(*before as u8);
        }
        out
    }

    fn read(bytes: &[u8]) -> Result<Self, Flaw> {
        let mut input = Input(bytes);
        let mut number = || input.number();
        let (first, last, flags) = (number()?, number()?, number()?);
        let (from, until, changes, tables) = (number()?, number()?, number()?, number()?);
        let lengths = Lengths { v4: number()?, v6: [number()?, number()?, number()?] };
        let count = input.count()?;
        if first > last || from > until || flags > 3 || count > INTERVALS {
            return Err("the summary contradicts itself");
        }
        let mut recorded = Vec::with_capacity(count);
        let mut last_until = from;
        for _ in 0..count {
            let (from, until) = (input.number()?, input.number()?);
            let before = HistoryBreak::ALL.get(usize::from(input.byte()?)).copied();
            let before = before.ok_or("the summary has an unknown reason")?;
            if from < last_until || until < from {
                return Err("the summary's times are not in order");
            }
            last_until = until;
            recorded.push(Recorded { from, until, before });
        }
        input.end()?;
        let (is_complete, is_merged) = (flags & 1 == 1, flags & 2 == 2);
        if last_until > until {
            return Err("the summary's times are not in order");
        }
        Ok(Self {
            first,
            last,
            is_complete,
            is_merged,
            from,
            until,
            recorded,
            changes,
            lengths,
            tables,
        })
    }
}

/// The first record of a block, and the block's position.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    table: usize,
    prefix: AnyPrefix,
    time: u64,
    offset: u64,
}

/// Which records are where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Index {
    pub(crate) tables: Vec<Arc<str>>,
    entries: Vec<Entry>,
}

impl Index {
    fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out, self.tables.len() as u64);
        self.tables.iter().for_each(|name| put_bytes(&mut out, name.as_bytes()));
        put(&mut out, self.entries.len() as u64);
        let mut before = 0;
        for Entry { table, prefix, time, offset } in &self.entries {
            put(&mut out, (*table as u64) << 1 | u64::from(matches!(prefix, AnyPrefix::V6(_))));
            block::put_prefix(&mut out, *prefix);
            put(&mut out, *time);
            put(&mut out, offset - before);
            before = *offset;
        }
        out
    }

    fn read(bytes: &[u8]) -> Result<Self, Flaw> {
        let mut input = Input(bytes);
        let count = input.count()?;
        let mut tables: Vec<Arc<str>> = Vec::new();
        for _ in 0..count {
            let name = input.text()?;
            if tables.last().is_some_and(|last| **last >= *name) {
                return Err("the tables of the index are not in order");
            }
            tables.push(name.into());
        }
        let count = input.count()?;
        let mut entries: Vec<Entry> = Vec::new();
        let mut offset = 0u64;
        for _ in 0..count {
            let table = input.number()?;
            let prefix = block::prefix(&mut input, table & 1 == 1)?;
            let table = usize::try_from(table >> 1).ok().filter(|&table| table < tables.len());
            let table = table.ok_or("the index has an unknown table")?;
            let time = input.number()?;
            offset = offset.checked_add(input.number()?).ok_or("the index has a wrong position")?;
            let entry = Entry { table, prefix, time, offset };
            let key = |entry: &Entry| (entry.table, entry.prefix, entry.time);
            if entries.last().is_some_and(|last| key(last) > key(&entry) || last.offset >= offset) {
                return Err("the index is not in order");
            }
            entries.push(entry);
        }
        input.end()?;
        Ok(Self { tables, entries })
    }

    /// The number of blocks.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Where the block begins.
    pub(crate) fn offset(&self, block: usize) -> Option<u64> {
        self.entries.get(block).map(|entry| entry.offset)
    }

    /// The block with the last record of the key up to this time, if there is one.
    pub(crate) fn find(&self, key: &RouteKey, time: u64) -> Option<usize> {
        let table = self.tables.binary_search(&key.table).ok()?;
        let wanted = (table, key.prefix, time);
        let after = |entry: &Entry| (entry.table, entry.prefix, entry.time) <= wanted;
        self.entries.partition_point(after).checked_sub(1)
    }

    /// Whether the block begins with this key.
    pub(crate) fn begins_with(&self, block: usize, key: &RouteKey) -> bool {
        self.entries.get(block).is_some_and(|entry| {
            entry.prefix == key.prefix && self.tables.get(entry.table) == Some(&key.table)
        })
    }
}

/// A file that is read.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) path: PathBuf,
    pub(crate) summary: Summary,
    pub(crate) bytes: u64,
    index: u64,
}

impl Segment {
    pub(crate) fn open(path: &Path) -> Result<Self, HistoryError> {
        let mut frames = Frames::open(path)?;
        let bytes = frames.length();
        let Some(tail) = bytes.checked_sub(TAIL as u64).filter(|&tail| tail >= 8) else {
            return Err(frames.damaged(bytes, "it ends early"));
        };
        if frames.bytes::<8>(0)? != MAGIC {
            return Err(frames.damaged(0, "it is no file of a history, or of another version"));
        }
        let end = frames.bytes::<TAIL>(tail)?;
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| end[at + i]));
        if end[24..] != END || word(16) != XxHash3_64::oneshot(&end[..16]) {
            return Err(frames.damaged(tail, "its end is damaged, or missing"));
        }
        let (index, at) = (word(0), word(8));
        let (kind, summary, behind) = frames.frame(at)?;
        if kind != Kind::Summary || behind != tail {
            return Err(frames.damaged(at, "a part of another kind is here"));
        }
        let summary = Summary::read(&summary).map_err(|flaw| frames.damaged(at, flaw))?;
        Ok(Self { path: path.to_owned(), summary, bytes, index })
    }

    pub(crate) fn frames(&self) -> Result<Frames, HistoryError> {
        Frames::open(&self.path)
    }

    pub(crate) fn index(&self, frames: &mut Frames) -> Result<Index, HistoryError> {
        let raw = frames.of_kind(Kind::Index, self.index)?;
        Index::read(&raw).map_err(|flaw| frames.damaged(self.index, flaw))
    }

    /// The records at this position, and the position behind them.
    pub(crate) fn records(
        &self,
        frames: &mut Frames,
        offset: u64,
    ) -> Result<(Vec<(RouteKey, RouteRecord)>, u64), HistoryError> {
        let (kind, raw, behind) = frames.frame(offset)?;
        if kind != Kind::Records {
            return Err(frames.damaged(offset, "a part of another kind is here"));
        }
        let records = block::read(&raw).map_err(|flaw| frames.damaged(offset, flaw))?;
        let order = |(key, record): &(RouteKey, RouteRecord)| (key.clone(), record.time);
        if records.is_empty() || !records.is_sorted_by_key(order) {
            return Err(frames.damaged(offset, "its records are not in order"));
        }
        Ok((records, behind))
    }

    /// All records, from the first to the last.
    pub(crate) fn all(self: &Arc<Self>) -> Result<SegmentRecords, HistoryError> {
        let frames = self.frames()?;
        let part = Vec::new().into_iter();
        Ok(SegmentRecords {
            segment: Arc::clone(self),
            frames,
            offset: MAGIC.len() as u64,
            part,
            is_over: false,
        })
    }
}

/// The records of a file, of which one block is in memory at a time.
pub(crate) struct SegmentRecords {
    segment: Arc<Segment>,
    frames: Frames,
    offset: u64,
    part: std::vec::IntoIter<(RouteKey, RouteRecord)>,
    is_over: bool,
}

impl Iterator for SegmentRecords {
    type Item = Result<(RouteKey, RouteRecord), HistoryError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(next) = self.part.next() {
                return Some(Ok(next));
            }
            if self.is_over || self.offset >= self.segment.index {
                return None;
            }
            match self.segment.records(&mut self.frames, self.offset) {
                Ok((part, behind)) => (self.part, self.offset) = (part.into_iter(), behind),
                Err(error) => {
                    self.is_over = true;
                    return Some(Err(error));
                }
            }
        }
    }
}

/// Writes a file.
pub(crate) struct SegmentWriter {
    path: PathBuf,
    file: AtomicFile,
    offset: u64,
    index: Index,
    block: BlockWriter,
    summary: Summary,
}

impl SegmentWriter {
    /// Begins a file. Of the summary, the numbers of changes, lengths and tables are counted.
    pub(crate) fn create(path: &Path, summary: Summary) -> Result<Self, HistoryError> {
        let mut file = AtomicFile::create(path).map_err(HistoryError::io(path))?;
        file.write_all(&MAGIC).map_err(HistoryError::io(path))?;
        let (index, block) = (Index::default(), BlockWriter::default());
        let offset = MAGIC.len() as u64;
        Ok(Self { path: path.to_owned(), file, offset, index, block, summary })
    }

    /// Adds the next record. Keys must ascend, and the times of a key must not descend.
    pub(crate) fn push(
        &mut self,
        key: &RouteKey,
        record: &RouteRecord,
    ) -> Result<(), HistoryError> {
        if self.index.tables.last() != Some(&key.table) {
            self.index.tables.push(Arc::clone(&key.table));
        }
        if self.block.is_empty() {
            let table = self.index.tables.len() - 1;
            let entry = Entry { table, prefix: key.prefix, time: record.time, offset: self.offset };
            self.index.entries.push(entry);
        }
        self.summary.changes += u64::from(!record.is_base);
        self.summary.lengths.add(key.prefix);
        self.block.push(key, record);
        if self.block.len() >= BLOCK {
            self.end_block()?;
        }
        Ok(())
    }

    fn end_block(&mut self) -> Result<(), HistoryError> {
        if self.block.is_empty() {
            return Ok(());
        }
        let raw = std::mem::take(&mut self.block).finish();
        self.put(Kind::Records, &raw)
    }

    fn put(&mut self, kind: Kind, raw: &[u8]) -> Result<(), HistoryError> {
        let mut out = Vec::new();
        let put = frame::put(&mut out, kind, raw, LEVEL).and_then(|()| self.file.write_all(&out));
        put.map_err(HistoryError::io(&self.path))?;
        self.offset += out.len() as u64;
        Ok(())
    }

    /// Completes the file, which is there afterwards.
    pub(crate) fn finish(mut self) -> Result<Segment, HistoryError> {
        self.end_block()?;
        let index = self.offset;
        let raw = self.index.write();
        self.put(Kind::Index, &raw)?;
        let at = self.offset;
        self.summary.tables = self.index.tables.len() as u64;
        let raw = self.summary.write();
        self.put(Kind::Summary, &raw)?;
        let mut tail = [index.to_le_bytes(), at.to_le_bytes()].concat();
        tail.extend_from_slice(&XxHash3_64::oneshot(&tail).to_le_bytes());
        tail.extend_from_slice(&END);
        let Self { path, mut file, offset, summary, .. } = self;
        let done = file.write_all(&tail).and_then(|()| file.commit());
        done.map_err(HistoryError::io(&path))?;
        Ok(Segment { path, summary, bytes: offset + TAIL as u64, index })
    }
}
