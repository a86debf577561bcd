//! The thread that touches the file system: looks for files, reads and decompresses them. The loop never
//! waits for a disk, and has only decoding left to do.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SendError, SyncSender};
use std::time::{Duration, Instant, SystemTime};

use fibula_ingest::Decoder;
use mio::Waker;

use super::check::check;
use super::order::Name;

/// A message of the worker to the loop.
pub(super) enum Found {
    /// A file begins.
    Begin(Name),
    /// The next bytes of the file, decompressed.
    Bytes(Vec<u8>),
    /// The end of the file, or the reason why reading stopped.
    End(io::Result<()>),
    /// A file that is damaged, and why. Nothing of it was passed on.
    Refused(Name, String),
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
    pub(super) waker: Arc<Waker>,
    pub(super) decoder: Arc<dyn Fn() -> Box<dyn Decoder> + Send + Sync>,
    /// Files that are complete according to the system's notifications.
    pub(super) complete: BTreeSet<String>,
    /// Files that may still grow: their last stamp, and since when it has not changed.
    pub(super) growing: BTreeMap<String, (Stamp, Instant)>,
    /// The stamps of the last files that were read, as of that time.
    pub(super) taken: BTreeMap<Name, Option<Stamp>>,
    /// The files that were refused, with their stamps: they are read again if they change while it is their turn.
    pub(super) refused: BTreeMap<Name, Option<Stamp>>,
    /// A file was damaged after it had been checked, and a part of it was passed on: only a dump corrects that.
    pub(super) needs_dump: bool,
}

/// Maximum number of files whose stamps are kept.
const REMEMBERED: usize = 1000;

/// The properties of a file that change when it is written.
pub(super) type Stamp = (u64, Option<SystemTime>);

/// How far the files of a folder were taken.
enum Walked {
    /// All of them.
    All,
    /// Up to one that may still grow for this time.
    To(Duration),
    /// The dump to begin with was refused.
    NoBegin,
}

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
        loop {
            let names = match self.names() {
                Ok(names) => names,
                Err(error) => return self.send(Found::Failed(error)),
            };
            let first = match self.after {
                Some(_) => 0,
                None => names.iter().rposition(|name| self.may_begin(name)).unwrap_or(0),
            };
            match self.take_all(names.into_iter().skip(first))? {
                Walked::All => break,
                Walked::To(time) => return self.send(Found::Waiting(Some(time))),
                Walked::NoBegin => {}
            }
        }
        self.growing.clear();
        self.complete.clear();
        self.send(Found::Waiting(None))
    }

    /// Takes the files in this order as far as they are complete.
    fn take_all(&mut self, names: impl Iterator<Item = Name>) -> Result<Walked, Over> {
        for name in names {
            if self.is_refused(&name) {
                continue;
            }
            let is_begun = self.after.is_some();
            // What a refused file would have brought, the next dump brings.
            let lacks_any = self.needs_dump || !self.refused.is_empty();
            let is_needed = !name.is_dump() || !is_begun || lacks_any;
            if is_needed {
                match self.remains(&name) {
                    Ok(None) if self.take(&name)? => {}
                    Ok(None) if !is_begun && name.is_dump() => return Ok(Walked::NoBegin),
                    Ok(None) => continue,
                    Ok(Some(time)) => return Ok(Walked::To(time)),
                    // The file was removed: there is nothing to read or to wait for.
                    Err(_) => continue,
                }
            }
            self.complete.remove(&name.0);
            self.growing.remove(&name.0);
            self.after = Some(name);
        }
        Ok(Walked::All)
    }

    /// Whether the folder may begin with this file.
    fn may_begin(&self, name: &Name) -> bool {
        name.is_dump() && !self.is_refused(name)
    }

    fn is_refused(&self, name: &Name) -> bool {
        self.refused.get(name).is_some_and(|then| *then == self.stamp(name))
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

    /// Passes the file on, unless it is damaged. Returns whether all of it was passed on.
    fn take(&mut self, name: &Name) -> Result<bool, Over> {
        let stamp = self.stamp(name);
        self.taken.insert(name.clone(), stamp);
        if self.taken.len() > REMEMBERED {
            self.taken.pop_first();
        }
        let checked = File::open(self.folder.join(&name.0))
            .and_then(|file| Ok((file.try_clone()?, fibula_ingest::decompress(file)?)))
            .map_err(|error| error.to_string())
            .and_then(|(file, input)| check(input, (self.decoder)()).map(|()| file));
        let file = match checked {
            Ok(file) => file,
            Err(why) => {
                self.refused.insert(name.clone(), stamp);
                self.send(Found::Refused(name.clone(), why))?;
                return Ok(false);
            }
        };
        self.send(Found::Begin(name.clone()))?;
        let mut read = self.read(file)?;
        if read.is_ok() && self.stamp(name) != stamp {
            read = Err(io::Error::other("it changed while it was read"));
        }
        let is_whole = read.is_ok();
        self.needs_dump = !is_whole || self.needs_dump && !name.is_dump();
        match is_whole {
            true if name.is_dump() => self.refused.clear(),
            true => drop(self.refused.remove(name)),
            false => drop(self.refused.insert(name.clone(), stamp)),
        }
        self.send(Found::End(read))?;
        Ok(is_whole)
    }

    /// Passes the content of a file on that was read once.
    fn read(&self, mut file: File) -> Result<io::Result<()>, Over> {
        let opened = file.rewind().and_then(|()| fibula_ingest::decompress(file));
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
