//! The file to which records are appended as they come.
//!
//! ```text
//! magic, number, time, flags, checksum (8 each) | records, until, begin, ... in the order of time
//! ```
//!
//! A part that is not whole, because the program or the machine ended in the middle of it, is cut off with everything
//! behind it.

use std::fs::{self, File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use twox_hash::XxHash3_64;

use crate::block::{self, BlockWriter};
use crate::bytes::{Flaw, Input, put};
use crate::error::HistoryError;
use crate::frame::{self, Frames, Kind};
use crate::memory::Memory;
use crate::record::{HistoryBreak, RouteKey, RouteRecord};
use crate::segment::BLOCK;

const MAGIC: [u8; 8] = *b"fibhlog1";
const HEAD: u64 = 40;
/// zstd's level: logs are short-lived.
const LEVEL: i32 = 1;
/// The most records of a log that is read: more than are ever written.
const MOST: usize = 1 << 20;

/// A log that is written.
#[derive(Debug)]
pub(crate) struct Log {
    path: PathBuf,
    file: File,
    /// The bytes that are whole.
    length: u64,
    /// Whether bytes may follow that are not whole.
    is_torn: bool,
    is_dirty: bool,
}

/// What was cut off the end of a log.
#[derive(Debug)]
pub(crate) struct Cut {
    pub(crate) bytes: u64,
    pub(crate) why: HistoryError,
}

impl Log {
    /// Begins a log of what the memory has, which has no records.
    pub(crate) fn create(path: &Path, memory: &Memory) -> Result<Self, HistoryError> {
        let mut head = MAGIC.to_vec();
        for number in [memory.number, memory.from, u64::from(memory.is_complete)] {
            head.extend_from_slice(&number.to_le_bytes());
        }
        head.extend_from_slice(&XxHash3_64::oneshot(&head).to_le_bytes());
        // Under another name first: a log is there with its head, or not at all.
        let unnamed = path.with_extension("new");
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true);
        let file = options.open(&unnamed).map_err(HistoryError::io(&unnamed))?;
        let path = path.to_owned();
        let mut log = Self { path, file, length: 0, is_torn: false, is_dirty: true };
        log.append(&head)?;
        if let Some(open) = memory.recorded.last().filter(|_| memory.is_open) {
            log.begin(open.from, open.before)?;
        }
        log.sync()?;
        fs::rename(&unnamed, &log.path).map_err(HistoryError::io(&log.path))?;
        Ok(log)
    }

    /// Reads a log, and cuts off what is not whole. Nothing is recorded since its end.
    pub(crate) fn recover(path: &Path) -> Result<(Self, Memory, Option<Cut>), HistoryError> {
        let (memory, length, why) = read(path)?;
        let file = OpenOptions::new().read(true).write(true).open(path);
        let file = file.map_err(HistoryError::io(path))?;
        let all = file.metadata().map_err(HistoryError::io(path))?.len();
        let cut = why.map(|why| Cut { bytes: all - length, why });
        let is_torn = cut.is_some();
        let mut log = Self { path: path.to_owned(), file, length, is_torn, is_dirty: is_torn };
        log.whole()?;
        log.sync()?;
        Ok((log, memory, cut))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Whether something was written since it was made last.
    pub(crate) fn is_dirty(&self) -> bool {
        self.is_dirty
    }

    /// Cuts off what a failed write has left.
    fn whole(&mut self) -> Result<(), HistoryError> {
        if self.is_torn {
            self.file.set_len(self.length).map_err(HistoryError::io(&self.path))?;
        }
        let end = self.file.seek(SeekFrom::Start(self.length));
        end.map_err(HistoryError::io(&self.path))?;
        self.is_torn = false;
        Ok(())
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), HistoryError> {
        if self.is_torn {
            self.whole()?;
        }
        self.is_torn = true;
        self.file.write_all(bytes).map_err(HistoryError::io(&self.path))?;
        self.is_torn = false;
        self.is_dirty = true;
        self.length += bytes.len() as u64;
        Ok(())
    }

    fn put(&mut self, kind: Kind, raw: &[u8]) -> Result<(), HistoryError> {
        let mut out = Vec::new();
        frame::put(&mut out, kind, raw, LEVEL).map_err(HistoryError::io(&self.path))?;
        self.append(&out)
    }

    /// Appends all records, or none.
    pub(crate) fn write(
        &mut self,
        records: &[(RouteKey, RouteRecord)],
    ) -> Result<(), HistoryError> {
        let before = self.length;
        let written = self.put_all(records);
        if written.is_err() {
            (self.length, self.is_torn) = (before, true);
        }
        written
    }

    fn put_all(&mut self, records: &[(RouteKey, RouteRecord)]) -> Result<(), HistoryError> {
        let mut block = BlockWriter::default();
        for (key, record) in records {
            block.push(key, record);
            if block.len() >= BLOCK {
                self.put(Kind::Records, &std::mem::take(&mut block).finish())?;
            }
        }
        match block.is_empty() {
            true => Ok(()),
            false => self.put(Kind::Records, &block.finish()),
        }
    }

    pub(crate) fn until(&mut self, until: u64) -> Result<(), HistoryError> {
        let mut raw = Vec::new();
        put(&mut raw, until);
        self.put(Kind::Until, &raw)
    }

    pub(crate) fn begin(&mut self, from: u64, before: HistoryBreak) -> Result<(), HistoryError> {
        let mut raw = vec![before as u8];
        put(&mut raw, from);
        self.put(Kind::Begin, &raw)
    }

    /// Makes what was written last.
    pub(crate) fn sync(&mut self) -> Result<(), HistoryError> {
        if self.is_dirty {
            self.file.sync_data().map_err(HistoryError::io(&self.path))?;
            self.is_dirty = false;
        }
        Ok(())
    }
}

/// What a log has, how many of its bytes are whole, and why the others are not.
fn read(path: &Path) -> Result<(Memory, u64, Option<HistoryError>), HistoryError> {
    let mut frames = Frames::open(path)?;
    let head = frames.bytes::<{ HEAD as usize }>(0)?;
    let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| head[at + i]));
    if head[..8] != MAGIC || word(32) != XxHash3_64::oneshot(&head[..32]) || word(24) > 1 {
        return Err(frames.damaged(0, "it is no log of a history, or of another version"));
    }
    let mut memory = Memory::new(word(8), word(16), word(24) == 1);
    let mut offset = HEAD;
    while offset < frames.length() {
        let applied = frames.frame(offset).and_then(|(kind, raw, behind)| {
            apply(kind, &raw, &mut memory).map_err(|flaw| frames.damaged(offset, flaw))?;
            Ok(behind)
        });
        match applied {
            Ok(behind) => offset = behind,
            Err(error @ HistoryError::Damaged { .. }) => {
                memory.is_open = false;
                return Ok((memory, offset, Some(error)));
            }
            Err(error) => return Err(error),
        }
    }
    memory.is_open = false;
    Ok((memory, offset, None))
}

fn apply(kind: Kind, raw: &[u8], memory: &mut Memory) -> Result<(), Flaw> {
    match kind {
        Kind::Records => {
            let records = block::read(raw)?;
            if memory.count + records.len() > MOST {
                return Err("it has too many records");
            }
            if records.iter().any(|(_, record)| record.time < memory.newest) {
                return Err("its times are not in order");
            }
            records.into_iter().for_each(|(key, record)| memory.insert(&key, record));
        }
        Kind::Until => {
            let mut input = Input(raw);
            let until = input.number()?;
            input.end()?;
            memory.cover(until);
        }
        Kind::Begin => {
            let mut input = Input(raw);
            let before = HistoryBreak::ALL.get(usize::from(input.byte()?)).copied();
            let (before, from) = (before.ok_or("it has an unknown reason")?, input.number()?);
            input.end()?;
            memory.begin(from, before);
        }
        Kind::Index | Kind::Summary => return Err("a part of another kind is here"),
    }
    Ok(())
}
