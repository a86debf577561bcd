//! What a folder has when it is opened.
//!
//! ```text
//! 0000000001-0000000064.merged   the logs 1 to 64 as one file
//! 0000000065.part                log 65, sorted
//! 0000000066.log                 what is appended now
//! lock                           locked by the process that writes
//! ```

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::HistoryError;
use crate::log::{Cut, Log};
use crate::memory::Memory;
use crate::options::HistoryNote;
use crate::pieces::{Bad, Piece};
use crate::segment::Segment;

pub(crate) fn part_name(number: u64) -> String {
    format!("{number:010}.part")
}

pub(crate) fn merged_name(first: u64, last: u64) -> String {
    format!("{first:010}-{last:010}.merged")
}

pub(crate) fn log_name(number: u64) -> String {
    format!("{number:010}.log")
}

/// A file by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Named {
    Part(u64),
    Merged(u64, u64),
    Log(u64),
}

impl Named {
    fn of(name: &str) -> Option<Self> {
        let (stem, extension) = name.split_once('.')?;
        let named = match (extension, stem.split_once('-')) {
            ("part", None) => Self::Part(stem.parse().ok()?),
            ("log", None) => Self::Log(stem.parse().ok()?),
            ("merged", Some((first, last))) => {
                Self::Merged(first.parse().ok()?, last.parse().ok()?)
            }
            _ => return None,
        };
        // No other spelling of the same numbers.
        (named.name() == name).then_some(named)
    }

    fn name(self) -> String {
        match self {
            Self::Part(number) => part_name(number),
            Self::Merged(first, last) => merged_name(first, last),
            Self::Log(number) => log_name(number),
        }
    }

    fn range(self) -> (u64, u64) {
        match self {
            Self::Part(number) | Self::Log(number) => (number, number),
            Self::Merged(first, last) => (first, last),
        }
    }
}

/// A folder that was opened.
pub(crate) struct Opened {
    pub(crate) lock: File,
    pub(crate) files: Vec<Piece>,
    pub(crate) log: Log,
    pub(crate) memory: Memory,
    pub(crate) notes: Vec<HistoryNote>,
}

pub(crate) fn open(folder: &Path) -> Result<Opened, HistoryError> {
    fs::create_dir_all(folder).map_err(HistoryError::io(folder))?;
    let lock = lock(folder)?;
    let mut notes = Vec::new();
    let (mut files, mut logs) = list(folder, &mut notes)?;
    // A log whose sorted file is whole: the program ended before it was removed.
    logs.retain(|&number| {
        let is_sorted = files.iter().any(|piece| {
            piece.good().is_some() && piece.first() <= number && number <= piece.last()
        });
        if is_sorted {
            remove(&folder.join(log_name(number)), &mut notes);
        }
        !is_sorted
    });
    let newest = logs.pop();
    for number in logs {
        let (path, what) = (folder.join(log_name(number)), "it is a log with newer ones behind it");
        bad(&mut files, &path, (number, number), 0, what);
    }
    let last = files.iter().map(Piece::last).max().unwrap_or(0);
    let recovered = newest.filter(|number| *number > last).map(|number| {
        let path = folder.join(log_name(number));
        (
            number,
            Log::recover(&path).and_then(|(log, memory, cut)| match memory.number {
                found if found == number => Ok((log, memory, cut)),
                _ => Err(HistoryError::damaged(&path, 8, "it has the number of another log")),
            }),
            path,
        )
    });
    let (log, memory) = match recovered {
        Some((_, Ok((log, memory, cut)), path)) => {
            if let Some(Cut { bytes, why }) = cut {
                notes.push(HistoryNote::Cut { path, bytes, why });
            }
            (log, memory)
        }
        Some((number, Err(HistoryError::Damaged { offset, what, .. }), path)) => {
            let aside = path.with_extension("log.damaged");
            fs::rename(&path, &aside).map_err(HistoryError::io(&path))?;
            bad(&mut files, &aside, (number, number), offset, what);
            begin(folder, &files)?
        }
        Some((_, Err(error), _)) => return Err(error),
        None => begin(folder, &files)?,
    };
    fill(folder, &mut files, &memory);
    for piece in &files {
        if let Piece::Bad(bad) = piece {
            notes.push(HistoryNote::Damaged(bad.error()));
        }
    }
    Ok(Opened { lock, files, log, memory, notes })
}

fn lock(folder: &Path) -> Result<File, HistoryError> {
    let path = folder.join("lock");
    let lock = File::options().write(true).create(true).truncate(false).open(&path);
    let lock = lock.map_err(HistoryError::io(&path))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(HistoryError::Locked { path: folder.to_owned() }),
        // A file system without locks.
        Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => Ok(lock),
        Err(TryLockError::Error(error)) => Err(HistoryError::io(&path)(error)),
    }
}

/// The sorted files in order, and the numbers of the logs.
fn list(
    folder: &Path,
    notes: &mut Vec<HistoryNote>,
) -> Result<(Vec<Piece>, Vec<u64>), HistoryError> {
    let mut named = Vec::new();
    for entry in fs::read_dir(folder).map_err(HistoryError::io(folder))? {
        let name = entry.map_err(HistoryError::io(folder))?.file_name();
        named.extend(name.to_str().and_then(Named::of));
    }
    let of_log = |named: &Named| match named {
        Named::Log(number) => Some(*number),
        _ => None,
    };
    let mut logs: Vec<u64> = named.iter().filter_map(of_log).collect();
    logs.sort_unstable();
    named.retain(|named| of_log(named).is_none());
    // Files that were merged come first: they replace those that they were made of.
    named.sort_by_key(|named| {
        let (first, last) = named.range();
        (std::cmp::Reverse(last.saturating_sub(first)), matches!(named, Named::Part(_)), first)
    });
    let mut files: Vec<Piece> = Vec::new();
    for named in named {
        let (path, (first, last)) = (folder.join(named.name()), named.range());
        let overlaps = |piece: &&Piece| piece.first() <= last && first <= piece.last();
        if files.iter().filter(|piece| piece.good().is_some()).any(|piece| overlaps(&piece)) {
            remove(&path, notes);
            continue;
        }
        match Segment::open(&path) {
            Ok(file) if (file.summary.first, file.summary.last) == (first, last) => {
                files.retain(|piece| !overlaps(&piece));
                files.push(Piece::Good(Arc::new(file)));
            }
            Ok(_) => bad(&mut files, &path, (first, last), 0, "it has the numbers of another file"),
            Err(HistoryError::Damaged { offset, what, .. }) => {
                bad(&mut files, &path, (first, last), offset, what);
            }
            Err(error) => return Err(error),
        }
    }
    files.sort_by_key(Piece::first);
    Ok((files, logs))
}

fn bad(
    files: &mut Vec<Piece>,
    path: &Path,
    (first, last): (u64, u64),
    offset: u64,
    what: &'static str,
) {
    let bytes = path.metadata().map_or(0, |metadata| metadata.len());
    files.push(Piece::Bad(Arc::new(Bad {
        path: path.to_owned(),
        first,
        last,
        bytes,
        offset,
        what,
    })));
    files.sort_by_key(Piece::first);
}

fn remove(path: &PathBuf, notes: &mut Vec<HistoryNote>) {
    if let Err(error) = fs::remove_file(path) {
        notes.push(HistoryNote::Failed(HistoryError::io(path)(error)));
    }
}

/// Begins the log behind these files.
fn begin(folder: &Path, files: &[Piece]) -> Result<(Log, Memory), HistoryError> {
    let last = files.iter().map(Piece::last).max().unwrap_or(0);
    let newest = files.iter().filter_map(Piece::good).map(|file| file.summary.until).max();
    let memory = Memory::new(last + 1, newest.unwrap_or(0), files.is_empty());
    Ok((Log::create(&folder.join(log_name(last + 1)), &memory)?, memory))
}

/// Puts something in the place of files that are missing.
fn fill(folder: &Path, files: &mut Vec<Piece>, memory: &Memory) {
    let missing = |first: u64, last: u64| {
        let path = match first == last {
            true => folder.join(part_name(first)),
            false => folder.join(merged_name(first, last)),
        };
        let what = "it is missing";
        Piece::Bad(Arc::new(Bad { path, first, last, bytes: 0, offset: 0, what }))
    };
    let mut all = Vec::with_capacity(files.len());
    let mut next = None;
    for piece in files.drain(..) {
        let first = piece.first();
        match next {
            Some(next) if next < first => all.push(missing(next, first - 1)),
            None if piece.good().is_some() && !piece.is_complete() && first > 0 => {
                all.push(missing(first - 1, first - 1))
            }
            _ => {}
        }
        next = Some(piece.last().saturating_add(1).max(next.unwrap_or(0)));
        all.push(piece);
    }
    match next {
        Some(next) if next < memory.number => all.push(missing(next, memory.number - 1)),
        None if !memory.is_complete => {
            all.push(missing(memory.number.saturating_sub(1), memory.number.saturating_sub(1)));
        }
        _ => {}
    }
    *files = all;
}
