//! Temporary files of this process, and those left behind by other processes.
//!
//! Each temporary file is locked by the process that writes it. The lock ends with the process, however it ends, so a
//! file that can be locked has no owner.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::NamedTempFile;

pub(super) const PREFIX: &str = ".fibula-";
pub(super) const SUFFIX: &str = ".tmp";

/// The temporary files of this process.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn unfinished() -> MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes the temporary files of every [`AtomicFile`](crate::AtomicFile) of this process. Call it just before the
/// process ends, for example because of a signal. No file can be begun or committed afterwards: a thread that tries
/// blocks until the process ends.
pub fn remove_unfinished() {
    let list = unfinished();
    for path in &*list {
        let _ = fs::remove_file(path);
    }
    // The lock is kept.
    std::mem::forget(list);
}

/// A place on the list, until it is dropped.
#[derive(Debug)]
pub(super) struct Unfinished {
    path: PathBuf,
}

impl Unfinished {
    /// Makes a temporary file that is on the list as long as it exists.
    pub(super) fn begin(
        make: impl FnOnce() -> io::Result<NamedTempFile>,
    ) -> io::Result<(Self, NamedTempFile)> {
        let mut list = unfinished();
        let file = make()?;
        let path = file.path().to_owned();
        list.push(path.clone());
        Ok((Self { path }, file))
    }

    /// Ends the entry: `last` renames the file, which cannot be removed meanwhile.
    pub(super) fn end<T, E: Into<io::Error>>(
        self,
        last: impl FnOnce() -> Result<T, E>,
    ) -> io::Result<T> {
        let list = unfinished();
        let result = last().map_err(Into::into);
        drop(list);
        result
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        unfinished().retain(|path| *path != self.path);
    }
}

/// Locks a new temporary file. Fails if another process mistook it for an abandoned one between its creation and its
/// lock: the file is then removed, or about to be.
pub(super) fn claim(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => still_there(file),
        Err(TryLockError::WouldBlock) => Ok(false),
        // On a file system without locks, no process can lock the file, so none removes it.
        Err(TryLockError::Error(_)) => Ok(true),
    }
}

#[cfg(unix)]
fn still_there(file: &File) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    Ok(file.metadata()?.nlink() > 0)
}

#[cfg(not(unix))]
fn still_there(_: &File) -> io::Result<bool> {
    Ok(true)
}

/// Removes abandoned temporary files.
pub(super) fn remove_stale(directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let bytes = name.as_encoded_bytes();
        let ours = bytes.starts_with(PREFIX.as_bytes()) && bytes.ends_with(SUFFIX.as_bytes());
        // Opening a pipe of that name would block until it has a writer.
        if ours
            && entry.file_type().is_ok_and(|kind| kind.is_file())
            && let Ok(file) = File::open(entry.path())
            && file.try_lock().is_ok()
        {
            // The lock is held until the file is gone.
            let _ = fs::remove_file(entry.path());
        }
    }
}
