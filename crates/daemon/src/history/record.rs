//! The thread that writes changes.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fibula_history::{
    HistoryBreak, HistoryError, HistoryFolder, HistoryOptions, RouteKey, RouteRecord,
};
use fibula_rib::{Live, Since};
use tracing::{info, warn};

use super::Shared;
use super::names::Names;

/// Changes that are read at once.
const PART: usize = 1024;
/// The longest time without looking whether to stop, and after which written changes are made last.
const LOOK: Duration = Duration::from_millis(200);
/// How long changes are gathered, to be written at once.
const GATHER: Duration = Duration::from_millis(20);
/// How long to wait after an error of the files, and after changes were missed.
const REST: Duration = Duration::from_secs(10);
const SHORT_REST: Duration = Duration::from_secs(1);
/// A change whose time is older than this is in the history in memory, although the clock was read a moment before it
/// was put there. In microseconds.
const MARGIN: u64 = 20_000;
/// By how much the clock may be set back. In microseconds.
const BACK: u64 = 1_000_000;

/// Why changes are not written at the moment.
pub enum Interruption {
    /// The history in memory no longer has them.
    Lost,
    /// The clock is behind the newest change in the files.
    Clock,
    /// The server stops.
    Stopped,
    /// The files cannot be read or written.
    Failed(HistoryError),
}

impl From<HistoryError> for Interruption {
    fn from(error: HistoryError) -> Self {
        Self::Failed(error)
    }
}

/// Reads a live table's changes and writes them.
pub struct Recorder {
    pub(super) live: Arc<Live>,
    pub(super) shared: Arc<Shared>,
    path: PathBuf,
    options: HistoryOptions,
    pub(super) names: Names,
    /// The number of the next change.
    pub(super) next: u64,
    /// Why all tables are to be read before changes are written, and not before which time.
    due: Option<(HistoryBreak, Instant)>,
    /// Whether the files could not be written: the folder is opened anew then.
    has_failed: bool,
}

pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros() as u64
}

impl Recorder {
    pub(super) fn new(
        live: Arc<Live>,
        shared: Arc<Shared>,
        path: PathBuf,
        options: HistoryOptions,
    ) -> Self {
        let (names, next) = (Names::default(), live.history().next());
        Self { live, shared, path, options, names, next, due: None, has_failed: false }
    }

    /// Writes changes until it is to stop.
    pub(super) fn run(mut self) {
        let Some(mut folder) = self.open(None) else { return };
        self.report(&mut folder);
        while !self.shared.is_stopped() {
            let done = match self.due {
                Some((_, at)) if Instant::now() < at => {
                    // Files that failed are left alone until then.
                    thread::sleep(LOOK.min(at.saturating_duration_since(Instant::now())));
                    continue;
                }
                Some((why, _)) if self.has_failed => {
                    drop(folder);
                    match self.open(Some(why)) {
                        Some(opened) => folder = opened,
                        None => return,
                    }
                    // Another one if there is nothing in the folder any more.
                    let why = self.due.map_or(why, |(why, _)| why);
                    self.begin(&mut folder, why)
                }
                Some((why, _)) => self.begin(&mut folder, why),
                None => {
                    if self.live.history().wait(self.next, LOOK) {
                        thread::sleep(GATHER);
                    }
                    self.read(&mut folder, None)
                }
            };
            let done = done.and_then(|()| Ok(folder.tend(now())?));
            if let Err(interruption) = done {
                self.interrupt(&mut folder, &interruption);
            } else if folder.is_broken() {
                folder.end();
                self.due = Some((HistoryBreak::Damage, Instant::now()));
            }
            self.report(&mut folder);
        }
        if self.due.is_none() {
            // What came since it was told to stop. Why it may fail is not news any more.
            let _ = self.read(&mut folder, None);
        }
        if let Err(error) = folder.close() {
            warn!("history: the last changes are not written: {error}");
        }
    }

    /// Opens the folder, as soon as it can be opened. Nothing was written for this reason, if it was open before.
    fn open(&mut self, before: Option<HistoryBreak>) -> Option<HistoryFolder> {
        loop {
            match HistoryFolder::open(&self.path, self.options.clone()) {
                Ok(folder) => {
                    let why = match folder.reader().recorded().0 {
                        Some(_) => before.unwrap_or(HistoryBreak::Stopped),
                        None => HistoryBreak::Begin,
                    };
                    self.due = Some((why, Instant::now()));
                    self.has_failed = false;
                    self.shared.state().reader = Some(folder.reader());
                    return Some(folder);
                }
                Err(error) => self.complain(format!("the history cannot be opened: {error}")),
            }
            let begin = Instant::now();
            while begin.elapsed() < REST {
                if self.shared.is_stopped() {
                    return None;
                }
                thread::sleep(LOOK);
            }
        }
    }

    /// Reads all tables, and records from then on.
    fn begin(&mut self, folder: &mut HistoryFolder, why: HistoryBreak) -> Result<(), Interruption> {
        if now().saturating_add(BACK) < folder.newest() {
            return Err(Interruption::Clock);
        }
        self.shared.scans.fetch_add(1, Ordering::Relaxed);
        let began = Instant::now();
        let from = match self.scan(folder) {
            Err(Interruption::Failed(error)) if error.is_damage() => {
                warn!(
                    "history: {error}; it is begun anew, and questions that need it have no answers"
                );
                folder.start_anew()?;
                self.scan(folder)?
            }
            scanned => scanned?,
        };
        folder.begin(from, why)?;
        self.due = None;
        let (was_in_trouble, time) = (self.shared.state().trouble.take(), began.elapsed());
        match was_in_trouble {
            Some(_) => {
                info!("history: changes are written again; the tables were read in {time:.1?}")
            }
            None => info!("history: changes are written; the tables were read in {time:.1?}"),
        }
        Ok(())
    }

    /// Writes the changes that there are. Their prefixes are added to `changed`.
    pub(super) fn read(
        &mut self,
        folder: &mut HistoryFolder,
        mut changed: Option<&mut HashSet<RouteKey>>,
    ) -> Result<(), Interruption> {
        loop {
            let time = now();
            let Since { changes, next, lost } = self.live.history().since(self.next, PART);
            self.next = next;
            if lost > 0 {
                self.shared.lost.fetch_add(lost, Ordering::Relaxed);
                return Err(Interruption::Lost);
            }
            let newest = folder.newest();
            if changes.iter().any(|change| change.time.saturating_add(BACK) < newest) {
                return Err(Interruption::Clock);
            }
            let is_all = changes.len() < PART;
            if !changes.is_empty() {
                self.names.learn(&self.live, &changes);
                let records: Vec<_> = changes
                    .into_iter()
                    .map(|change| {
                        let table = self.names.table(change.vrf);
                        let key = RouteKey { table, prefix: change.prefix };
                        let peer = self.names.peer(change.peer);
                        (key, RouteRecord::new(change.time, peer, change.best))
                    })
                    .collect();
                if let Some(changed) = &mut changed {
                    changed.extend(records.iter().map(|(key, _)| key.clone()));
                }
                folder.write(&records)?;
                self.shared.changes.fetch_add(records.len() as u64, Ordering::Relaxed);
            }
            if is_all {
                folder.cover(time.saturating_sub(MARGIN));
                return Ok(());
            }
            if self.shared.is_stopped() {
                return Err(Interruption::Stopped);
            }
            folder.tend(time)?;
        }
    }

    fn interrupt(&mut self, folder: &mut HistoryFolder, interruption: &Interruption) {
        folder.end();
        let (why, rest) = match interruption {
            Interruption::Stopped => return,
            Interruption::Lost => {
                if self.due.is_none() {
                    warn!(
                        "history: changes came faster than they were written; tables are read anew"
                    );
                }
                (HistoryBreak::Behind, SHORT_REST)
            }
            Interruption::Clock => {
                self.complain(
                    "the clock is behind the newest change of the history; changes are written when \
                     it is not"
                        .to_owned(),
                );
                (HistoryBreak::Clock, SHORT_REST)
            }
            Interruption::Failed(error) => {
                self.has_failed = true;
                self.complain(format!("changes are not written to the history: {error}"));
                (HistoryBreak::Unwritten, REST)
            }
        };
        // The first reason counts, until the history goes on.
        let why = self.due.map_or(why, |(first, _)| first);
        self.due = Some((why, Instant::now() + rest));
    }

    /// Warns, once, and keeps the sentence for `/readyz`.
    fn complain(&self, sentence: String) {
        let mut state = self.shared.state();
        if state.trouble.as_ref() != Some(&sentence) {
            warn!("{sentence}");
            state.trouble = Some(sentence);
        }
        state.is_recording = false;
    }

    fn report(&self, folder: &mut HistoryFolder) {
        for note in folder.notes() {
            warn!("history: {note}");
        }
        let mut state = self.shared.state();
        (state.bytes, state.files) = (folder.bytes(), folder.files());
        state.is_over = folder.is_over();
        state.is_recording = self.due.is_none();
    }
}
