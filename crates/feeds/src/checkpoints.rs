use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use fibula_rib::{Checkpoint, FeedDigest, Live};

use crate::{CheckpointFailure, Event, FeedError};

/// Writes checkpoints of a live table while its feed continues, one at a time, on a separate thread.
///
/// A failure to write a checkpoint is an [`Event`], and the next one is tried when it is due, because a full disk
/// must not stop forwarding. The existing file stays until a complete one replaces it.
pub struct Checkpoints {
    path: PathBuf,
    every: Duration,
    /// The position of the feed, in its own words.
    position: String,
    /// The names of the feed's sources, if it is named.
    names: Option<Vec<String>>,
    /// The time when the last checkpoint was begun.
    last: Duration,
    writer: Option<JoinHandle<()>>,
    /// Set when a newer one replaces the one that is being written.
    outdated: Arc<AtomicBool>,
    written: Arc<AtomicU64>,
    events: Arc<dyn Fn(Event) + Send + Sync>,
}

impl Checkpoints {
    /// Writes to this file at this interval, starting from `now`. `position` is stored with each checkpoint, see
    /// [`Live::checkpoint`].
    pub fn new(
        path: impl Into<PathBuf>,
        every: Duration,
        position: impl Into<String>,
        now: Duration,
        events: impl Fn(Event) + Send + Sync + 'static,
    ) -> Self {
        Self {
            path: path.into(),
            every,
            position: position.into(),
            names: None,
            last: now,
            writer: None,
            outdated: Arc::default(),
            written: Arc::default(),
            events: Arc::new(events),
        }
    }

    /// Stores the names of the feed's sources and a digest of the feed's events, so that
    /// [`LiveFeed::going_on`](crate::LiveFeed::going_on) can refuse another feed.
    #[must_use]
    pub fn of_feed(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.names = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Number of checkpoints written.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Sets the position of the feed, in its own words.
    pub fn set_position(&mut self, position: impl Into<String>) {
        self.position = position.into();
    }

    /// Whether the names of the feed's sources are stored.
    pub(crate) fn is_of_feed(&self) -> bool {
        self.names.is_some()
    }

    /// The time when the next checkpoint is due.
    pub(crate) fn due(&self) -> Duration {
        self.last.saturating_add(self.every)
    }

    /// Starts a checkpoint if one is due. A thread copies the RIB and writes it.
    pub fn tick(&mut self, now: Duration, live: &Live) {
        self.tick_of(now, live, &FeedDigest::default());
    }

    /// Like [`Checkpoints::tick`], with the digest of the feed. Returns whether a checkpoint was begun.
    pub(crate) fn tick_of(&mut self, now: Duration, live: &Live, digest: &FeedDigest) -> bool {
        if now < self.due() {
            return false;
        }
        self.last = now;
        // On a slow disk, some checkpoints are skipped.
        if self.writer.as_ref().is_some_and(|writer| !writer.is_finished()) {
            return false;
        }
        self.wait();
        let checkpoint = self.checkpoint(live, digest);
        let (path, written, events) =
            (self.path.clone(), self.written.clone(), self.events.clone());
        let outdated = self.outdated.clone();
        let write = move || match checkpoint.write_unless(&path, &outdated) {
            Ok(true) => {
                written.fetch_add(1, Ordering::Relaxed);
            }
            Ok(false) => {}
            Err(error) => events(failed(&path, CheckpointFailure::Write(error))),
        };
        match thread::Builder::new().name("fibula-checkpoint".to_owned()).spawn(write) {
            Ok(writer) => self.writer = Some(writer),
            Err(error) => (self.events)(failed(&self.path, CheckpointFailure::Thread(error))),
        }
        true
    }

    /// Waits for the checkpoint that is being written.
    pub fn wait(&mut self) {
        if let Some(Err(_)) = self.writer.take().map(JoinHandle::join) {
            let error = io::Error::other("the thread that writes it panicked");
            (self.events)(failed(&self.path, CheckpointFailure::Thread(error)));
        }
    }

    /// Writes the last checkpoint, and returns the number written. A checkpoint that is still being written is given
    /// up, because it would be replaced at once while the user waits for the program to end.
    ///
    /// # Errors
    /// [`FeedError::Checkpoint`] if the last one cannot be written. It is not tried again.
    pub fn finish(self, live: &Live) -> Result<u64, FeedError> {
        self.finish_of(live, &FeedDigest::default())
    }

    /// Like [`Checkpoints::finish`], with the digest of the feed.
    pub(crate) fn finish_of(mut self, live: &Live, digest: &FeedDigest) -> Result<u64, FeedError> {
        self.outdated.store(true, Ordering::Relaxed);
        let (last, path) = (self.checkpoint(live, digest), self.path.clone());
        last.write_after(&path, || self.wait()).map_err(FeedError::Checkpoint)?;
        Ok(self.written() + 1)
    }

    fn checkpoint(&self, live: &Live, digest: &FeedDigest) -> Checkpoint {
        let checkpoint = live.checkpoint(&self.position);
        match &self.names {
            Some(names) => checkpoint.of_feed(digest.mark(names)),
            None => checkpoint,
        }
    }
}

fn failed(path: &Path, failure: CheckpointFailure) -> Event {
    Event::CheckpointFailed { path: path.to_owned(), failure }
}

/// A feed that stops early leaves the last whole checkpoint.
impl Drop for Checkpoints {
    fn drop(&mut self) {
        self.wait();
    }
}
