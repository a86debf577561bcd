//! The files of a folder, in the loop: decodes the blocks that the worker read.

mod check;
mod order;
mod watch;
mod worker;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, SystemTime};

use fibula_ingest::{Damage, Driver, Tail};
use mio::{Registry, Token, Waker};

use self::order::Name;
use self::watch::Watch;
use self::worker::{Found, Worker};
use super::cut::CutSessions;
use super::link::{Context, Shown, TURN, is_fatal};
use super::report::{OnReport, SourceEvent, SourceReport};
use super::source::Folder;
use fibula_rib::Listener;

use crate::peer_mapper::{PeerMapper, Peers};
use crate::{Event, FeedError, LogLimit, SourceState, SourceStatus};

/// Maximum number of blocks that the worker reads ahead.
const AHEAD: usize = 8;
/// How long to wait before an unreadable folder is tried again.
const RETRY: Duration = Duration::from_secs(10);
/// Maximum number of bytes without the end of a record.
const LONGEST_RECORD: usize = 64 << 20;

pub(super) struct Reader {
    pub(super) name: Arc<str>,
    shown: Shown,
    folder: Folder,
    token: Token,
    watch: Option<Watch>,
    ask: Sender<Vec<String>>,
    found: Receiver<Found>,
    /// The time when the worker has to look again.
    look: Option<Duration>,
    peers: Peers,
    file: Option<Reading>,
    damage: LogLimit,
    pub(super) state: SourceState,
    since: SystemTime,
    last: Option<Duration>,
    trouble: Option<String>,
    /// The files that the table lacks because they are damaged, and why.
    missing: BTreeMap<String, String>,
    /// The first file since the last dump of which only a part was taken, and why. What was taken of it may be wrong,
    /// and stays until the next dump even if the file is replaced.
    partial: Option<(String, String)>,
    cut: Arc<CutSessions>,
}

/// A file that is being read.
struct Reading {
    name: Name,
    driver: Driver,
    /// The numbers of updates and damaged parts in earlier files.
    before: (u64, u64),
    /// The reason why the rest of the file is skipped.
    failed: Option<String>,
}

impl Reader {
    pub(super) fn new(
        (name, shown): (Arc<str>, Shown),
        folder: Folder,
        token: Token,
        (waker, cut): (Arc<Waker>, Arc<CutSessions>),
    ) -> io::Result<Self> {
        let (ask, requests) = mpsc::channel();
        let (to, found) = mpsc::sync_channel(AHEAD);
        let worker = Worker {
            folder: folder.path.clone(),
            settle: folder.settle,
            after: folder.after.as_deref().filter(|after| !after.is_empty()).and_then(Name::of),
            to,
            waker,
            complete: Default::default(),
            growing: BTreeMap::new(),
            taken: BTreeMap::new(),
            refused: BTreeMap::new(),
            needs_dump: false,
            decoder: Arc::clone(&folder.decoder),
        };
        // The thread is not joined: a hanging disk must not block a loop that stops.
        thread::Builder::new()
            .name("fibula-folder".to_owned())
            .spawn(move || worker.run(&requests))?;
        Ok(Self {
            name,
            shown,
            folder,
            token,
            watch: None,
            ask,
            found,
            look: Some(Duration::ZERO),
            peers: Peers::default(),
            file: None,
            damage: LogLimit::of_reports(5),
            state: SourceState::Idle,
            since: SystemTime::now(),
            last: None,
            trouble: None,
            missing: BTreeMap::new(),
            partial: None,
            cut,
        })
    }

    /// Assigns a peer whose routes come from a checkpoint.
    pub(super) fn adopt(&mut self, peer: u32) {
        self.peers.all.insert(peer);
    }

    pub(super) fn deadline(&self) -> Option<Duration> {
        self.look
    }

    /// Makes the worker look at the folder. The watch is set before, so that no change is missed between the two.
    pub(super) fn tick(&mut self, cx: &mut Context<'_>) {
        if self.look.is_none_or(|look| look > cx.now) {
            return;
        }
        self.look = None;
        if let (Some(after), SourceState::Idle) = (&self.folder.after, self.state) {
            // Later checkpoints keep this position if no further file appears.
            cx.to.position(&self.name, after);
        }
        if self.watch.is_none() {
            match Watch::new(&self.folder.path, cx.registry, self.token) {
                Ok(watch) => self.watch = Some(watch),
                Err(error) => return self.unavailable(&error.to_string(), cx),
            }
        }
        self.ask(Vec::new());
    }

    fn ask(&mut self, complete: Vec<String>) {
        // The worker ends only after this receiver is dropped.
        let _ = self.ask.send(complete);
    }

    fn unavailable(&mut self, why: &str, cx: &mut Context<'_>) {
        let why = format!("cannot read the folder {}: {why}", self.folder.path.display());
        self.watch = None;
        self.look = Some(cx.now + RETRY);
        self.trouble = Some(why.clone());
        self.set(SourceState::Lost);
        self.report(cx.on_report, SourceEvent::Unavailable { why, retry: RETRY });
    }

    /// Handles events of the folder and results of the worker. Returns whether there may be more.
    pub(super) fn turn(&mut self, cx: &mut Context<'_>) -> Result<bool, FeedError> {
        if let Some(watch) = &mut self.watch {
            match watch.read() {
                Ok(seen) if seen.is_gone => self.unavailable("it is gone", cx),
                Ok(seen) if !seen.any => {}
                Ok(seen) => self.ask(seen.complete),
                Err(error) => self.unavailable(&error.to_string(), cx),
            }
        }
        let mut left = TURN;
        while left > 0 {
            let Ok(found) = self.found.try_recv() else { return Ok(false) };
            match found {
                Found::Begin(name) => self.begin(name, cx)?,
                Found::Bytes(bytes) => {
                    left = left.saturating_sub(bytes.len());
                    self.bytes(&bytes, cx)?;
                }
                Found::End(read) => self.end_file(read, cx)?,
                Found::Refused(Name(file), why) => {
                    let why = format!("{why}; nothing of it was taken");
                    self.missing.insert(file.clone(), why.clone());
                    self.set_taken();
                    self.pass_over(file, why, cx);
                }
                Found::Late(name) => self.pass_over(
                    name.0,
                    "it came, or changed, after its turn: it is not taken".to_owned(),
                    cx,
                ),
                Found::Waiting(time) => {
                    self.set_taken();
                    self.look = time.or(Watch::BLIND).map(|time| cx.now + time);
                }
                Found::Failed(error) => self.unavailable(&error.to_string(), cx),
            }
        }
        Ok(true)
    }

    fn begin(&mut self, name: Name, cx: &mut Context<'_>) -> Result<(), FeedError> {
        if matches!(self.state, SourceState::Idle | SourceState::Lost) || name.is_dump() {
            self.set(SourceState::Resync);
        }
        self.peers.forget_names();
        self.peers.open.clear();
        if name.is_dump() {
            for &peer in &self.peers.all {
                cx.to.mark_stale(peer)?;
                self.peers.open.insert(peer, true);
            }
        }
        let figures = &self.peers.figures;
        let before = (figures.announced + figures.withdrawn, figures.damaged);
        let driver = Driver::new((self.folder.decoder)(), LONGEST_RECORD);
        self.file = Some(Reading { name, driver, before, failed: None });
        Ok(())
    }

    fn bytes(&mut self, bytes: &[u8], cx: &mut Context<'_>) -> Result<(), FeedError> {
        self.last = Some(cx.now);
        self.peers.figures.bytes += bytes.len() as u64;
        self.decode(cx, |driver, mapper| driver.push(bytes, mapper).map_err(|e| e.to_string()))
    }

    fn decode(
        &mut self,
        cx: &mut Context<'_>,
        step: impl FnOnce(&mut Driver, &mut PeerMapper<'_>) -> Result<(), String>,
    ) -> Result<(), FeedError> {
        let Self { file: Some(reading), peers, folder, damage, name, cut, .. } = self else {
            return Ok(());
        };
        if reading.failed.is_some() {
            return Ok(());
        }
        let file: Arc<str> = reading.name.0.as_str().into();
        let events = |event| {
            if let Event::CutOff { session, .. } = &event {
                cut.add(session);
            }
            report_damage(event, (name, &file), damage, cx.now, cx.on_report)
        };
        let peers = (peers, reading.name.is_dump());
        let speaker = (&folder.peer, &*folder.table);
        let mut mapper = PeerMapper::new(&mut *cx.to, peers, speaker, &events);
        let stepped = step(&mut reading.driver, &mut mapper);
        reading.failed = match mapper.failed {
            Some(error) if is_fatal(&error) => return Err(error),
            Some(error) => Some(error.to_string()),
            None => stepped.err(),
        };
        Ok(())
    }

    /// Ends the file. A complete dump withdraws the routes that it does not contain.
    fn end_file(&mut self, read: io::Result<()>, cx: &mut Context<'_>) -> Result<(), FeedError> {
        let tail = if read.is_ok() { Tail::End } else { Tail::Cut };
        self.decode(cx, |driver, mapper| match driver.finish(tail, mapper) {
            Ok(0) => Ok(()),
            Ok(left) => Err(format!("its last record is cut: {left} bytes are left")),
            Err(error) => Err(error.to_string()),
        })?;
        let Some(Reading { name, driver, before, failed }) = self.file.take() else {
            return Ok(());
        };
        let failed = read.err().map(|error| error.to_string()).or(failed);
        let stale = std::mem::take(&mut self.peers.open);
        if failed.is_none() {
            for (peer, _) in stale.into_iter().filter(|&(_, is_stale)| is_stale) {
                cx.to.sweep(peer)?;
            }
        }
        match failed {
            None if name.is_dump() => (self.missing, self.partial) = Default::default(),
            None => drop(self.missing.remove(&name.0)),
            Some(_) => {}
        }
        let name = name.0;
        self.peers.figures.remarks.insert("file", name.clone());
        // After a restart, a file that is missing is found again, and what a partial one brought is replaced by a dump.
        match (&self.partial, self.missing.is_empty()) {
            _ if failed.is_some() => cx.to.position(&self.name, ""),
            (None, true) => cx.to.position(&self.name, &name),
            _ => {}
        }
        let figures = &self.peers.figures;
        let updates = figures.announced + figures.withdrawn - before.0;
        let damaged = figures.damaged - before.1;
        match failed {
            None => self.report(cx.on_report, SourceEvent::Taken { file: name, updates, damaged }),
            Some(why) => {
                let offset = driver.offset();
                let why =
                    format!("behind byte {offset}: {why}; {updates} updates of it were taken");
                self.partial.get_or_insert((name.clone(), why.clone()));
                self.pass_over(name, why, cx);
            }
        }
        Ok(())
    }

    fn pass_over(&mut self, file: String, why: String, cx: &mut Context<'_>) {
        self.trouble = Some(format!("{file}: {why}"));
        self.report(cx.on_report, SourceEvent::PassedOver { file, why });
    }

    /// Removes the source's routes.
    pub(super) fn end(&mut self, to: &mut dyn Listener) -> Result<(), FeedError> {
        while let Some(peer) = self.peers.all.pop_first() {
            to.down(peer)?;
        }
        Ok(())
    }

    /// All files that are there were read.
    fn set_taken(&mut self) {
        let partial = self.partial.as_ref().map(|(file, why)| (file, why));
        let missing = self.missing.first_key_value().or(partial);
        self.trouble = missing.map(|(file, why)| format!("{file}: {why}"));
        self.set(if missing.is_some() { SourceState::Damaged } else { SourceState::Up });
    }

    fn set(&mut self, state: SourceState) {
        if self.state != state {
            (self.state, self.since) = (state, SystemTime::now());
        }
    }

    /// The state for the board.
    pub(super) fn status(&self, now: Duration) -> SourceStatus {
        let ago = |last| SystemTime::now().checked_sub(now.saturating_sub(last));
        SourceStatus {
            name: self.name.to_string(),
            kind: self.shown.kind,
            endpoint: self.shown.endpoint.clone(),
            table: self.shown.table.clone(),
            state: self.state,
            figures: self.peers.figures.clone(),
            since: self.since,
            until: None,
            last: self.last.and_then(ago),
            trouble: self.trouble.clone(),
        }
    }

    fn report(&self, on_report: &OnReport, what: SourceEvent) {
        on_report(SourceReport { source: Arc::clone(&self.name), what });
    }

    pub(super) fn close(self, registry: &Registry) {
        if let Some(watch) = self.watch {
            watch.close(registry);
        }
    }
}

/// Reports damage with its file, and limits the number of reports.
fn report_damage(
    event: Event,
    (source, file): (&Arc<str>, &Arc<str>),
    limit: &LogLimit,
    now: Duration,
    on_report: &OnReport,
) {
    let report = |what| on_report(SourceReport { source: Arc::clone(source), what });
    let Event::Damaged(damage) = event else { return report(SourceEvent::Protocol(event)) };
    let Some(more) = limit.admit(now) else { return };
    if more > 0 {
        report(SourceEvent::More { count: more });
    }
    report(SourceEvent::Protocol(Event::Damaged(Damage { file: Arc::clone(file), ..damage })));
}
