//! The thread that touches the file system: looks for files, reads and decompresses them. The loop never
//! waits for a disk, and has only decoding left to do.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SendError, SyncSender};
use std::time::{Duration, Instant, SystemTime};

use mio::Waker;

use super::order::Name;

/// A message of the worker to the loop.
pub(super) enum Found {
    /// A file begins.
    Begin(Name),
    /// The next bytes of the file, decompressed.
    Bytes(Vec<u8>),
    /// The end of the file, or the reason why reading stopped.
    End(io::Result<()>),
    /// A file that became complete after a later one was taken.
    Late(Name),
    /// There is no further complete file for now. The time is when a file that is still being written must be looked at
    /// again.
    Waiting(Option<Duration>),
    /// The folder cannot be read.
    Failed(io::Error),
}

/// Size of the blocks in which a file is passed on.
const BLOCK: usize = 128 << 10;

pub(super) struct Worker {
    pub(super) folder: PathBuf,
    pub(super) settle: Duration,
    /// The last file that was read, or the name after which reading starts.
    pub(super) after: Option<Name>,
    pub(super) to: SyncSender<Found>,
    pub(super) waker: std::sync::Arc<Waker>,
    /// Files that are complete according to the system's notifications.
    pub(super) complete: BTreeSet<String>,
    /// Files that may still grow: their last stamp, and since when it has not changed.
    pub(super) growing: BTreeMap<String, (Stamp, Instant)>,
    /// The stamps of the last files that were read, as of that time.
    pub(super) taken: BTreeMap<Name, Option<Stamp>>,
}

/// Maximum number of files whose stamps are kept.
const REMEMBERED: usize = 1000;

/// The properties of a file that change when it is written.
pub(super) type Stamp = (u64, Option<SystemTime>);

/// The receiver was dropped.
struct Over;

impl From<SendError<Found>> for Over {
    fn from(_: SendError<Found>) -> Self {
        Self
    }
}

impl Worker {
    /// Looks at the folder for each request, which has the names of complete files, until the other end of a channel is
    /// dropped.
    pub(super) fn run(mut self, requests: &Receiver<Vec<String>>) {
        while let Ok(complete) = requests.recv() {
            if self.look(complete).is_err() {
                return;
            }
        }
    }

    fn send(&self, found: Found) -> Result<(), Over> {
        self.to.send(found)?;
        // If the wake fails, the loop sees the message when it wakes for another reason.
        let _ = self.waker.wake();
        Ok(())
    }

    fn look(&mut self, complete: Vec<String>) -> Result<(), Over> {
        for name in complete {
            let Some(name) = Name::of(&name) else { continue };
            if self.after.as_ref().is_none_or(|after| name > *after) {
                self.complete.insert(name.0);
                continue;
            }
            // The notification may arrive after the file was found and read.
            let is_as_taken = self.taken.get(&name).is_some_and(|then| *then == self.stamp(&name));
            if !is_as_taken && !name.is_dump() {
                self.send(Found::Late(name))?;
            }
        }
        let names = match self.names() {
            Ok(names) => names,
            Err(error) => return self.send(Found::Failed(error)),
        };
        let first = match self.after {
            Some(_) => 0,
            None => names.iter().rposition(Name::is_dump).unwrap_or(0),
        };
        for name in names.into_iter().skip(first) {
            let is_later_dump = self.after.is_some() && name.is_dump();
            if !is_later_dump {
                match self.remains(&name) {
                    Ok(None) => self.take(&name)?,
                    Ok(Some(time)) => return self.send(Found::Waiting(Some(time))),
                    // The file was removed: there is nothing to read or to wait for.
                    Err(_) => continue,
                }
            }
            self.complete.remove(&name.0);
            self.growing.remove(&name.0);
            self.after = Some(name);
        }
        self.growing.clear();
        self.complete.clear();
        self.send(Found::Waiting(None))
    }

    /// The files after those that were read, in order.
    fn names(&self) -> io::Result<Vec<Name>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let name = entry?.file_name();
            let Some(name) = name.to_str().and_then(Name::of) else { continue };
            if self.after.as_ref().is_none_or(|after| name > *after) {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    /// How long the file may still grow; `None` if it is complete. Fails if it is not a file.
    fn remains(&mut self, name: &Name) -> io::Result<Option<Duration>> {
        let meta = fs::metadata(self.folder.join(&name.0))?;
        if !meta.is_file() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        if self.complete.contains(&name.0) {
            return Ok(None);
        }
        let modified = meta.modified().ok();
        let age = modified.and_then(|time| time.elapsed().ok()).unwrap_or_default();
        // The file system's clock may differ from ours, so the time without an observed change also counts.
        let stamp = (meta.len(), modified);
        let seen = self.growing.entry(name.0.clone()).or_insert((stamp, Instant::now()));
        if seen.0 != stamp {
            *seen = (stamp, Instant::now());
        }
        let quiet = age.max(seen.1.elapsed());
        Ok((quiet < self.settle).then(|| self.settle - quiet))
    }

    fn stamp(&self, name: &Name) -> Option<Stamp> {
        let meta = fs::metadata(self.folder.join(&name.0)).ok()?;
        Some((meta.len(), meta.modified().ok()))
    }

    fn take(&mut self, name: &Name) -> Result<(), Over> {
        self.taken.insert(name.clone(), self.stamp(name));
        if self.taken.len() > REMEMBERED {
            self.taken.pop_first();
        }
        self.send(Found::Begin(name.clone()))?;
        let read = self.read(&self.folder.join(&name.0))?;
        self.send(Found::End(read))
    }

    fn read(&self, path: &Path) -> Result<io::Result<()>, Over> {
        let opened = File::open(path).and_then(fibula_ingest::decompress);
        let mut input = match opened {
            Ok((_, input)) => input,
            Err(error) => return Ok(Err(error)),
        };
        loop {
            let mut block = Vec::with_capacity(BLOCK);
            let read = input.by_ref().take(BLOCK as u64).read_to_end(&mut block);
            let is_end = block.is_empty();
            if !is_end {
                self.send(Found::Bytes(block))?;
            }
            match read {
                Err(error) => return Ok(Err(error)),
                Ok(_) if is_end => return Ok(Ok(())),
                Ok(_) => {}
            }
        }
    }
}
