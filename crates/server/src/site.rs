//! The state of a server: the table, the status of the sources, and the counters.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fibula_core::Vrf;
use fibula_feeds::{Board, SourceState, SourceStatus};
use fibula_rib::{Live, Rib};
use fibula_rpki::VrpGeneration;
use hyper::StatusCode;
use tokio::sync::{Notify, Semaphore, watch};

use crate::ServerOptions;
use crate::api;
use crate::convert::Names;
use crate::counts::{Counts, Route};
use crate::frozen::{Frozen, FrozenTables};
use crate::http::answer::Refusal;
use crate::http::sending::AnswerMemory;
use crate::http::time::rfc3339;
use crate::logs::Logs;
use crate::table::table;

/// The state that all requests share.
pub(crate) struct Site {
    pub(crate) live: Arc<Live>,
    board: Arc<Board>,
    pub(crate) options: ServerOptions,
    pub(crate) started: SystemTime,
    frozen: FrozenTables,
    pub(crate) counts: Counts,
    pub(crate) logs: Logs,
    /// The memory of answers that clients have not taken yet.
    pub(crate) answers: Arc<AnswerMemory>,
    /// Whether a table has been complete since the server began.
    pub(crate) was_ready: AtomicBool,
    pub(crate) bulk: Arc<Semaphore>,
    pub(crate) slow: Arc<Semaphore>,
    pub(crate) watchers: Arc<Semaphore>,
    /// Notifies the follower thread that a reader of changes began.
    pub(crate) watched: Notify,
    /// The id of the next change, updated as changes arrive.
    pub(crate) newest: watch::Sender<u64>,
    /// True once the server is stopping.
    pub(crate) stop: watch::Sender<bool>,
}

impl Site {
    /// `endpoints` are the endpoints whose answers are counted.
    pub(crate) fn new(
        live: Arc<Live>,
        board: Arc<Board>,
        options: ServerOptions,
        endpoints: impl Iterator<Item = Route>,
    ) -> Self {
        let limits = &options.limits;
        let places = |count: usize| Arc::new(Semaphore::new(count));
        Self {
            answers: Arc::new(AnswerMemory::new(
                limits.answer_bytes,
                limits.connection_answer_bytes,
            )),
            bulk: places(limits.bulk),
            slow: places(limits.slow),
            watchers: places(limits.watchers),
            newest: watch::Sender::new(live.history().next()),
            live,
            board,
            options,
            started: SystemTime::now(),
            frozen: FrozenTables::default(),
            counts: Counts::new(endpoints),
            logs: Logs::default(),
            was_ready: AtomicBool::new(false),
            watched: Notify::new(),
            stop: watch::Sender::new(false),
        }
    }

    /// All sources, in the form of answers.
    pub(crate) fn sources(&self) -> Vec<api::SourceStatus> {
        self.board.all().into_iter().map(source).collect()
    }

    /// The sessions whose connection is lost and whose routes are kept for a while.
    pub(crate) fn lost(&self) -> Vec<SourceStatus> {
        let mut all = self.board.all();
        all.retain(|source| source.state == SourceState::Lost && source.until.is_some());
        all
    }

    /// The states of the sessions at this moment.
    pub(crate) fn sessions(&self) -> SessionStates {
        let state = |status: SourceStatus| {
            let since = status.since.duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
            let is_up = matches!(status.state, SourceState::Up | SourceState::Damaged);
            (status.name, is_up.then_some(since as u64))
        };
        SessionStates(self.board.all().into_iter().map(state).collect())
    }

    /// The first source whose table lacks what a damaged file has, with the reason.
    pub(crate) fn damaged(&self) -> Option<String> {
        let all = self.board.all();
        let source = all.iter().find(|source| source.state == SourceState::Damaged)?;
        let why = source.trouble.as_deref().unwrap_or("a file is damaged");
        Some(format!("{}: {why}", source.name))
    }

    /// The VRPs of an answer, if a validator is followed.
    pub(crate) fn vrps(&self) -> Option<Arc<VrpGeneration>> {
        self.options.vrps.as_ref().map(|vrps| vrps.current())
    }

    /// With the validity of routes by the VRPs and ASPAs of now.
    pub(crate) fn validated(&self, names: Names) -> Names {
        names.validated(self.vrps(), &self.options.relations)
    }

    /// The names of VRFs that are followed or have had routes, by number.
    pub(crate) fn tables(&self) -> Vec<Vrf> {
        let mut all = self.live.with_rib(|rib| rib.vrfs().collect::<Vec<_>>());
        all.extend(self.live.followed());
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Which tables are complete now.
    pub(crate) fn completeness(&self) -> Completeness {
        let mut of_sources = HashMap::<String, FedBy>::new();
        for source in self.board.all() {
            of_sources.entry(source.table).or_default().add(source.state);
        }
        let is_resyncing = !self.live.with_rib(Rib::resyncing).is_empty();
        Completeness { of_sources, is_resyncing }
    }

    /// The times of the newest changes of these tables, if known.
    pub(crate) fn newest_changes(&self, tables: usize) -> BTreeMap<Vrf, SystemTime> {
        let mut newest = BTreeMap::new();
        self.live.history().recent(tables, |change| {
            let is_first = !newest.contains_key(&change.vrf);
            if is_first {
                newest.insert(change.vrf, time(change.time));
            }
            is_first
        });
        newest
    }

    /// A copy of the requested table, or of the only one.
    pub(crate) fn frozen_table(&self, params: Option<&str>) -> Result<Arc<Frozen>, Refusal> {
        let vrf = self.live.with_rib(|rib| table(rib, params))?;
        self.frozen(vrf)
    }

    fn frozen(&self, vrf: Vrf) -> Result<Arc<Frozen>, Refusal> {
        let vrps = self.vrps();
        let rpki = vrps.as_deref().map(|vrps| (vrps, &*self.options.relations));
        self.frozen.get(&self.live, vrf, rpki).map_err(|error| {
            self.logs.failed_copy.line(|| tracing::error!(error, "cannot copy a table"));
            Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error)
        })
    }

    /// Frees copies of tables that no request has used for this time.
    pub(crate) fn forget_frozen(&self, unused: Duration) {
        self.frozen.forget(unused);
    }
}

/// The sessions, and since when they are up, in microseconds since 1970; `None` if they are not.
pub(crate) struct SessionStates(HashMap<String, Option<u64>>);

impl SessionStates {
    /// Whether the session was up and had sent its whole table at the time of a change. A session that is not on the
    /// board is one that starts over only if it lost a route.
    pub(crate) fn is_settled(&self, session: &str, time: u64, is_gone: bool) -> bool {
        match self.0.get(session) {
            Some(since) => since.is_some_and(|since| since <= time),
            None => !is_gone,
        }
    }
}

/// Which tables are complete, by the states of the sources at one moment.
pub(crate) struct Completeness {
    /// The states of the sources that are configured to feed a table.
    of_sources: HashMap<String, FedBy>,
    /// Whether a peer is sending everything again.
    is_resyncing: bool,
}

/// The states of the sources of a table.
#[derive(Clone, Copy, Default)]
struct FedBy {
    /// Whether there is a source, one has sent everything, and one is sending everything.
    some: bool,
    said: bool,
    resync: bool,
}

impl FedBy {
    fn add(&mut self, state: SourceState) {
        self.some = true;
        self.said |= matches!(state, SourceState::Up | SourceState::Lost);
        self.resync |= state == SourceState::Resync;
    }
}

impl Completeness {
    /// Whether the sources of a table have sent everything; for a table without sources, whether no peer is sending
    /// everything again. A source feeds the table that it is configured for, and those below: `bmp` and `bmp/65000:1`.
    pub(crate) fn is_complete(&self, name: &str, has_routes: bool) -> bool {
        let above = name.match_indices('/').map(|(at, _)| &name[..at]);
        let mut all = FedBy::default();
        for fed in above.chain([name]).filter_map(|table| self.of_sources.get(table)) {
            all.some |= fed.some;
            all.said |= fed.said;
            all.resync |= fed.resync;
        }
        match all.some {
            true => all.said && !all.resync,
            false => has_routes && !self.is_resyncing,
        }
    }
}

/// A time in microseconds since 1970.
pub(crate) fn time(micros: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_micros(micros)
}

fn source(status: SourceStatus) -> api::SourceStatus {
    let figures = status.figures;
    let remark = |(name, text): (&str, String)| (name.to_owned(), text);
    api::SourceStatus {
        name: status.name,
        kind: status.kind.to_owned(),
        endpoint: status.endpoint,
        table: status.table,
        state: status.state.name().to_owned(),
        since: rfc3339(status.since),
        until: status.until.map(rfc3339),
        last: status.last.map(rfc3339),
        connections: figures.connections,
        bytes: figures.bytes,
        announced: figures.announced,
        withdrawn: figures.withdrawn,
        damaged: figures.damaged,
        ignored: figures.ignored,
        noted: figures.noted.into_iter().map(|(what, count)| (what.to_owned(), count)).collect(),
        remarks: figures.remarks.into_iter().map(remark).collect(),
        trouble: status.trouble,
    }
}
