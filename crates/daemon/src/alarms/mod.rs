//! Alarms on the changes of a live table: a thread judges them and reports to the log, the metrics and a webhook.
//!
//! The thread reads the history of changes, as clients of the server do, so the feed never waits for it. If changes
//! come faster than it judges them, it reads the routes under rules anew.

mod figures;
mod follow;
mod sessions;
mod webhook;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use fibula_alarms::{Alarm, AlarmCounts, AlarmEvent, AlarmKind, AlarmLimits, AlarmRule, Alarms};
use fibula_feeds::{Board, LogLimit};
use fibula_rib::Live;
use fibula_rpki::{LiveVrps, Relations};

use crate::DaemonError;
use follow::{Follower, Paths};
use sessions::Sessions;
pub(crate) use webhook::Webhook;
use webhook::{WebhookCounts, WebhookQueue};

/// Lines of the log for alarms in a minute. The others are counted.
const LINES: u32 = 100;

/// The rules of a server, at work. Dropping it ends the thread.
pub struct AlarmDesk {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread and the server have in common.
pub(crate) struct Shared {
    rules: Vec<AlarmRule>,
    stop: AtomicBool,
    /// Changes that were read, and changes that were missed.
    changes: AtomicU64,
    lost: AtomicU64,
    state: Mutex<State>,
    /// What was sent, if there is a webhook.
    sent: Option<Arc<WebhookCounts>>,
    lines: LogLimit,
    begin: Instant,
}

/// What is known now.
#[derive(Default)]
struct State {
    active: Vec<Arc<Alarm>>,
    counts: Vec<AlarmCounts>,
    forgotten: u64,
}

impl AlarmDesk {
    /// The figures of these rules, before the thread is started.
    pub(crate) fn shared(rules: Vec<AlarmRule>, has_webhook: bool) -> Arc<Shared> {
        let counts = vec![AlarmCounts::default(); rules.len()];
        Arc::new(Shared {
            rules,
            stop: AtomicBool::new(false),
            changes: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            state: Mutex::new(State { counts, ..State::default() }),
            sent: has_webhook.then(Arc::default),
            lines: LogLimit::new(LINES),
            begin: Instant::now(),
        })
    }

    /// Starts the thread.
    pub(crate) fn start(
        shared: Arc<Shared>,
        live: &Arc<Live>,
        board: &Arc<Board>,
        rpki: Option<(Arc<LiveVrps>, Arc<Relations>)>,
        webhook: Option<Webhook>,
    ) -> Result<Self, DaemonError> {
        let webhook = webhook.zip(shared.sent.clone());
        let webhook = webhook.map(|(webhook, counts)| webhook.start(counts)).transpose()?;
        let micros = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
        let rules = shared.rules.clone();
        let is_of_paths = rules.iter().any(|rule| matches!(rule.kind, AlarmKind::Leak { .. }));
        let (vrps, relations) = rpki.unzip();
        let paths = relations.filter(|_| is_of_paths).map(Paths::new);
        let follower = Follower {
            next: live.history().next(),
            live: Arc::clone(live),
            board: Arc::clone(board),
            vrps,
            alarms: Alarms::new(rules, AlarmLimits::default(), micros as u64),
            shared: Arc::clone(&shared),
            sessions: Sessions::default(),
            validated: 0,
            paths,
            webhook,
        };
        let thread = thread::Builder::new().name("fibula-alarms".to_owned());
        let thread = thread
            .spawn(move || follower.run())
            .map_err(|error| DaemonError::System { what: "no thread for alarms", error })?;
        Ok(Self { shared, thread: Some(thread) })
    }
}

impl Drop for AlarmDesk {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic was reported when it happened.
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// The alarms that have not ended, the oldest first.
    pub(crate) fn active(&self) -> Vec<Arc<Alarm>> {
        self.state().active.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A thread that panicked left a whole state: it is replaced by assignments.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Publishes the state, and reports what begins and ends.
    fn report(&self, alarms: &Alarms, events: Vec<AlarmEvent>, webhook: Option<&WebhookQueue>) {
        if !events.is_empty() || self.state().forgotten != alarms.forgotten() {
            let state = State {
                active: alarms.active().cloned().collect(),
                counts: alarms.counts().to_vec(),
                forgotten: alarms.forgotten(),
            };
            *self.state() = state;
        }
        for event in events {
            self.log(&event);
            if let Some(webhook) = webhook {
                webhook.send(&event.alarm);
            }
        }
    }

    fn log(&self, event: &AlarmEvent) {
        let Some(more) = self.lines.admit(self.begin.elapsed()) else { return };
        if more > 0 {
            tracing::warn!("alarms: and {more} more");
        }
        let (alarm, id) = (&*event.alarm, event.alarm.id);
        match event.is_begin() {
            true => tracing::warn!(id, "alarm: {alarm}"),
            false => {
                let Alarm { rule, kind, table, prefix, .. } = alarm;
                tracing::info!(id, "alarm over: {rule} ({kind}): {table} {prefix}");
            }
        }
    }
}
