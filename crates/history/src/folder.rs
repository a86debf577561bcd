//! The folder of a history, and who writes to it.

use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::JoinHandle;

use crate::error::HistoryError;
use crate::log::Log;
use crate::memory::Memory;
use crate::merge::{self, LastStates, Source};
use crate::open::{self, log_name, merged_name, part_name};
use crate::options::{HistoryNote, HistoryOptions};
use crate::pieces::{Piece, Pieces};
use crate::reader::HistoryReader;
use crate::record::{HistoryBreak, RouteKey, RouteRecord};
use crate::resync::Resync;
use crate::segment::{Segment, SegmentWriter};

/// Microseconds between two times at which the log is made last.
const SYNC: u64 = 1_000_000;
/// The same while nothing changes.
const IDLE: u64 = 10_000_000;
/// The most breaks in a log.
const BREAKS: usize = 1000;

/// What readers and the writer share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pieces: RwLock<Pieces>,
}

impl Shared {
    /// Readers hold the lock while they copy what they need. The writer holds it as a reader while it writes a sorted
    /// file, and as a writer only for changes in memory.
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Pieces> {
        self.pieces.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Pieces> {
        self.pieces.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The writer of a history. There is one for a folder.
pub struct HistoryFolder {
    folder: PathBuf,
    options: HistoryOptions,
    shared: Arc<Shared>,
    log: Log,
    _lock: File,
    merging: Option<Merging>,
    /// Until when the log says that everything is recorded.
    said: u64,
    /// When the log was made last.
    synced: u64,
    /// When merging failed.
    failed: Option<u64>,
    is_broken: bool,
    is_over: bool,
    notes: Vec<HistoryNote>,
}

/// Files that a thread merges.
struct Merging {
    thread: JoinHandle<Result<Option<Segment>, HistoryError>>,
    stop: Arc<AtomicBool>,
    /// The numbers of the files that the new one replaces.
    first: u64,
    last: u64,
}

impl HistoryFolder {
    /// Opens the folder, or makes it. Nothing is recorded from the end of the log on until [`HistoryFolder::begin`].
    ///
    /// # Errors
    /// If the folder or the log cannot be read or written, or another process writes to it. Damaged files are no error,
    /// but a [note](HistoryFolder::notes).
    pub fn open(folder: &Path, options: HistoryOptions) -> Result<Self, HistoryError> {
        let open::Opened { lock, files, log, memory, notes } = open::open(folder)?;
        let said = memory.newest;
        Ok(Self {
            folder: folder.to_owned(),
            options,
            shared: Arc::new(Shared { pieces: RwLock::new(Pieces { files, memory }) }),
            log,
            _lock: lock,
            merging: None,
            said,
            synced: said,
            failed: None,
            is_broken: false,
            is_over: false,
            notes,
        })
    }

    /// A reader. It stays valid as long as the writer.
    pub fn reader(&self) -> HistoryReader {
        HistoryReader::new(Arc::clone(&self.shared))
    }

    /// The newest time in the files, in microseconds since 1970. What is written later gets no earlier time.
    pub fn newest(&self) -> u64 {
        self.shared.read().memory.newest
    }

    /// The bytes of all files.
    pub fn bytes(&self) -> u64 {
        let pieces = self.shared.read();
        pieces.files.iter().map(Piece::bytes).sum::<u64>() + self.log.length()
    }

    /// Number of files, with the log.
    pub fn files(&self) -> usize {
        self.shared.read().files.len() + 1
    }

    /// Whether the files that are needed for answers have more bytes than the limit.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Whether a file on which new records depend is damaged. [`HistoryFolder::start_anew`] is to be called then.
    pub fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// What happened since the last call.
    pub fn notes(&mut self) -> Vec<HistoryNote> {
        std::mem::take(&mut self.notes)
    }

    /// Writes records, all or none. Times that are earlier than [`HistoryFolder::newest`] become that time.
    ///
    /// # Errors
    /// If the log cannot be written. Then changes are missing: the next records need a [`HistoryFolder::resync`].
    pub fn write(&mut self, records: &[(RouteKey, RouteRecord)]) -> Result<(), HistoryError> {
        let mut newest = self.newest();
        let timed = records.iter().map(|(key, record)| {
            newest = newest.max(record.time);
            (key.clone(), RouteRecord { time: newest, ..record.clone() })
        });
        let timed: Vec<_> = timed.collect();
        if let Err(error) = self.log.write(&timed) {
            self.end();
            return Err(error);
        }
        let memory = &mut self.shared.write().memory;
        timed.into_iter().for_each(|(key, record)| memory.insert(&key, record));
        Ok(())
    }

    /// All tables have been compared: from this time on everything is recorded.
    ///
    /// # Errors
    /// If the log cannot be written.
    pub fn begin(&mut self, from: u64, before: HistoryBreak) -> Result<(), HistoryError> {
        let from = from.max(self.newest());
        self.log.begin(from, before)?;
        self.shared.write().memory.begin(from, before);
        self.said = from;
        Ok(())
    }

    /// All changes until this time have been written, if none is missing.
    pub fn cover(&mut self, until: u64) {
        self.shared.write().memory.cover(until);
    }

    /// Changes are missing from now on.
    pub fn end(&mut self) {
        let covered = self.shared.read().memory.covered();
        if let Some(until) = covered.filter(|until| *until > self.said)
            && self.log.until(until).is_ok()
        {
            self.said = until;
        }
        self.shared.write().memory.is_open = false;
    }

    /// Begins to compare the tables with what was recorded last.
    ///
    /// # Errors
    /// If a file cannot be read or is damaged. After damage, [`HistoryFolder::start_anew`] helps.
    pub fn resync(&mut self) -> Result<Resync, HistoryError> {
        let (files, last) = {
            let pieces = self.shared.read();
            let last = pieces.memory.records.iter();
            let last = last.filter_map(|(key, all)| Some(Ok((key.clone(), all.last()?.clone()))));
            (pieces.files[pieces.chain()].to_vec(), last.collect::<Vec<_>>())
        };
        let source = |piece: &Piece| match piece {
            Piece::Good(file) => Ok(Box::new(file.all()?) as Source),
            Piece::Bad(bad) => Err(bad.error()),
        };
        let mut sources = files.iter().map(source).collect::<Result<Vec<_>, HistoryError>>()?;
        sources.push(Box::new(last.into_iter()));
        Resync::new(LastStates::new(sources))
    }

    /// Begins a log that needs no file before it. All routes have to be written to it.
    ///
    /// # Errors
    /// If files cannot be written.
    pub fn start_anew(&mut self) -> Result<(), HistoryError> {
        self.end();
        self.seal(true)?;
        self.is_broken = false;
        Ok(())
    }

    /// Makes the log last, turns a long one into a sorted file, merges files, and deletes old ones. It is to be called
    /// at least once a second.
    ///
    /// # Errors
    /// If the log or its sorted file cannot be written.
    pub fn tend(&mut self, now: u64) -> Result<(), HistoryError> {
        let covered = self.shared.read().memory.covered();
        if now >= self.synced.saturating_add(SYNC) || now < self.synced {
            self.synced = now;
            self.flush(covered.filter(|_| self.log.is_dirty()))?;
        } else if let Some(until) = covered.filter(|until| *until >= self.said.saturating_add(IDLE))
        {
            self.flush(Some(until))?;
        }
        if self.is_log_due(now) {
            self.seal(false)?;
        }
        self.end_merging(false, now);
        self.begin_merging(now);
        self.expire(now);
        Ok(())
    }

    /// Writes the rest at the end of the program.
    ///
    /// # Errors
    /// If the log cannot be written.
    pub fn close(mut self) -> Result<(), HistoryError> {
        let covered = self.shared.read().memory.covered();
        self.flush(covered)
    }

    fn flush(&mut self, until: Option<u64>) -> Result<(), HistoryError> {
        if let Some(until) = until.filter(|until| *until > self.said) {
            self.log.until(until)?;
            self.said = until;
        }
        self.log.sync()
    }

    fn is_log_due(&self, now: u64) -> bool {
        let memory = &self.shared.read().memory;
        let age = now.saturating_sub(memory.from);
        let merge_age = self.options.merge_age();
        if memory.is_empty() {
            return false;
        }
        memory.count >= self.options.log_records
            || memory.bytes >= self.options.log_bytes
            || memory.recorded.len() >= BREAKS
            || age >= merge_age
            || (memory.count > 0 && age >= merge_age / 24)
    }

    /// Turns the log into a sorted file, and begins another one.
    fn seal(&mut self, is_complete: bool) -> Result<(), HistoryError> {
        {
            // Changes are written in order: until the last one, none is missing.
            let memory = &mut self.shared.write().memory;
            memory.cover(memory.newest);
        }
        let path = self.log.path().to_owned();
        let segment = {
            // Readers may read meanwhile; this is the only writer.
            let pieces = self.shared.read();
            let memory = &pieces.memory;
            let path = self.folder.join(part_name(memory.number));
            let mut writer = SegmentWriter::create(&path, memory.summary())?;
            for (key, records) in &memory.records {
                records.iter().try_for_each(|record| writer.push(key, record))?;
            }
            writer.finish()?
        };
        let next = {
            let memory = &self.shared.read().memory;
            Memory { is_complete, ..memory.next() }
        };
        let log = Log::create(&self.folder.join(log_name(next.number)), &next)?;
        sync_folder(&self.folder)?;
        self.said = next.newest;
        self.log = log;
        {
            let mut pieces = self.shared.write();
            pieces.files.push(Piece::Good(Arc::new(segment)));
            pieces.memory = next;
        }
        self.remove(&path);
        Ok(())
    }

    fn remove(&mut self, path: &Path) {
        if let Err(error) = fs::remove_file(path) {
            self.notes.push(HistoryNote::Failed(HistoryError::io(path)(error)));
        }
    }

    /// Begins to merge the newest files, if there are many or they are old.
    fn begin_merging(&mut self, now: u64) {
        const REST: u64 = 60_000_000;
        if self.merging.is_some() || self.failed.is_some_and(|at| now < at.saturating_add(REST)) {
            return;
        }
        let files = {
            let pieces = self.shared.read();
            pieces.files[pieces.chain()].iter().map(|piece| piece.good().cloned()).collect()
        };
        let Some(files): Option<Vec<Arc<Segment>>> = files else { return };
        // What was merged before stays.
        let stays = files.first().is_some_and(|file| file.summary.is_merged);
        let parts = &files[usize::from(stays)..];
        let (Some(first), Some(last)) = (parts.first(), parts.last()) else { return };
        let age = now.saturating_sub(first.summary.from);
        if !files[0].summary.is_complete
            || (parts.len() < self.options.files && age < self.options.merge_age())
            || (parts.len() == 1 && !stays)
        {
            return;
        }
        let (first, last) = (first.summary.first, last.summary.last);
        let path = self.folder.join(merged_name(first, last));
        let stop = Arc::<AtomicBool>::default();
        let stopped = Arc::clone(&stop);
        let run = move || merge::merge(&files, stays, &path, &stopped);
        match std::thread::Builder::new().name("fibula-merge".to_owned()).spawn(run) {
            Ok(thread) => self.merging = Some(Merging { thread, stop, first, last }),
            Err(error) => {
                self.notes.push(HistoryNote::Failed(HistoryError::io(&self.folder)(error)));
                self.failed = Some(now);
            }
        }
    }

    /// Takes what was merged; if it is to `wait`, as soon as it is.
    fn end_merging(&mut self, wait: bool, now: u64) {
        let Some(merging) = self.merging.take_if(|merging| wait || merging.thread.is_finished())
        else {
            return;
        };
        self.failed = None;
        let made = match merging.thread.join() {
            Ok(Ok(Some(made))) => made,
            Ok(Ok(None)) | Err(_) => return,
            Ok(Err(error)) => {
                self.failed = Some(now);
                self.is_broken |= error.is_damage();
                self.notes.push(match error.is_damage() {
                    true => HistoryNote::Damaged(error),
                    false => HistoryNote::Failed(error),
                });
                return;
            }
        };
        let made_path = made.path.clone();
        let replaced: Vec<PathBuf> = {
            let mut pieces = self.shared.write();
            let inside =
                |piece: &Piece| merging.first <= piece.first() && piece.last() <= merging.last;
            let Some(begin) = pieces.files.iter().position(inside) else {
                drop(pieces);
                return self.remove(&made_path);
            };
            let end =
                begin + pieces.files[begin..].iter().take_while(|piece| inside(piece)).count();
            let made = Piece::Good(Arc::new(made));
            pieces.files.splice(begin..end, [made]).map(|piece| piece.path().clone()).collect()
        };
        replaced.iter().for_each(|path| self.remove(path));
    }

    /// Deletes the oldest files, as long as newer ones need none of them.
    fn expire(&mut self, now: u64) {
        let keep = u64::try_from(self.options.keep.as_micros()).unwrap_or(u64::MAX);
        loop {
            let bytes = self.bytes();
            let is_over = bytes > self.options.bytes;
            let removed: Vec<PathBuf> = {
                let mut pieces = self.shared.write();
                let starts =
                    pieces.files.iter().enumerate().filter(|(_, piece)| piece.is_complete());
                let mut starts = starts.map(|(at, _)| at).filter(|&at| at > 0);
                let end = starts.next().or(pieces.memory.is_complete.then_some(pieces.files.len()));
                let end = end.filter(|&end| end > 0);
                let Some(end) = end else {
                    if is_over && !self.is_over {
                        self.notes.push(HistoryNote::TooSmall { bytes });
                    }
                    self.is_over = is_over;
                    return;
                };
                let until = pieces.files[..end].iter().filter_map(Piece::good);
                let until = until.map(|file| file.summary.until).max().unwrap_or(0);
                if !is_over && until >= now.saturating_sub(keep) {
                    self.is_over = false;
                    return;
                }
                pieces.files.drain(..end).map(|piece| piece.path().clone()).collect()
            };
            removed.iter().filter(|path| path.exists()).for_each(|path| self.remove(path));
        }
    }
}

impl Drop for HistoryFolder {
    fn drop(&mut self) {
        if let Some(merging) = self.merging.take() {
            merging.stop.store(true, Ordering::Relaxed);
            // It reports its errors itself, and a file that is not complete is removed.
            let _ = merging.thread.join();
        }
    }
}

impl fmt::Debug for HistoryFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HistoryFolder").field("folder", &self.folder).finish_non_exhaustive()
    }
}

/// Makes names of files last.
fn sync_folder(folder: &Path) -> Result<(), HistoryError> {
    #[cfg(unix)]
    File::open(folder).and_then(|open| open.sync_all()).map_err(HistoryError::io(folder))?;
    #[cfg(not(unix))]
    let _ = folder;
    Ok(())
}
