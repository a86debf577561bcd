//! `fibula watch --until`: rules that are judged here, on the changes that a server sends.
//!
//! A thread reads the changes. This one judges them with the core that `fibula serve` uses, lets time pass, and asks
//! the server for its sources while changes wait for a session that sends its table again.

use std::io::Write;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use fibula_alarms::{AlarmEvent, AlarmLimits, Alarms, Occasion, RouteChange, WatchedRoute};
use fibula_daemon::config::ServeConfig;
use fibula_server::api::{self, Attributes, Change};
use fibula_server::client::{ChangeEvent, Client, ClientError};

use crate::failure::{Failure, Outcome};
use crate::output;
use crate::progress::note;

/// The rules, and when to stop.
pub(super) struct Until {
    /// The file with the rules.
    pub(super) rules: PathBuf,
    /// Stop after this time, or this number of changes.
    pub(super) longest: Option<Duration>,
    pub(super) changes: Option<u64>,
    pub(super) is_json: bool,
}

/// Events that wait to be judged.
const WAITING: usize = 1024;
/// How often sources are asked for their states while changes wait for them.
const ASK: Duration = Duration::from_secs(1);

/// Judges changes until an alarm begins: [`Outcome::Negative`], or there was none in time.
pub(super) fn run(
    until: &Until,
    reader: Client,
    asking: Client,
    query: String,
    since: Option<u64>,
) -> Result<Outcome, Failure> {
    let rules = ServeConfig::read(&until.rules)?.alarm_rules()?;
    if rules.is_empty() {
        let what = format!("{} has no rules", until.rules.display());
        return Err(Failure::new(what).hint("a rule is a table [[alarm]], see docs/alarms.md"));
    }
    let (sender, events) = sync_channel(WAITING);
    let thread = thread::Builder::new().name("fibula-watch".to_owned());
    thread
        .spawn(move || read(reader, &query, since, &sender))
        .map_err(|error| Failure::io("starting a thread", &error))?;
    let judge = Judge {
        alarms: Alarms::new(rules, AlarmLimits::default(), 1),
        asking,
        asked: None,
        clock: None,
        begin: Instant::now(),
    };
    judge.run(until, &events)
}

/// What the reading thread sends.
enum Read {
    Event(ChangeEvent),
    /// It failed for good.
    Failed(ClientError),
}

/// Reads changes until nobody wants them, over connections that break.
fn read(mut client: Client, query: &str, mut last: Option<u64>, to: &SyncSender<Read>) {
    let mut was_there = false;
    loop {
        let mut is_wanted = true;
        let done = client.watch(query, last, |event| {
            was_there = true;
            if let ChangeEvent::Change(change) = &event {
                last = Some(change.id);
            }
            is_wanted = to.send(Read::Event(event)).is_ok();
            is_wanted
        });
        match done {
            _ if !is_wanted => return,
            Ok(()) => note("the server ended the connection; trying again"),
            Err(error) if !was_there || matches!(error, ClientError::Refused { .. }) => {
                // Nobody waits if the other thread has ended.
                return drop(to.send(Read::Failed(error)));
            }
            Err(error) => note(format_args!("{error}; trying again")),
        }
        thread::sleep(super::watch::REST);
    }
}

struct Judge {
    alarms: Alarms,
    asking: Client,
    /// When the sources were asked for last, or something began to wait: the first routes of a connection are there a
    /// moment before the state of its source is.
    asked: Option<Instant>,
    /// The time of the last change by the server's clock, and when it came.
    clock: Option<(u64, Instant)>,
    begin: Instant,
}

impl Judge {
    fn run(mut self, until: &Until, events: &Receiver<Read>) -> Result<Outcome, Failure> {
        let mut left = until.changes.unwrap_or(u64::MAX);
        loop {
            let is_late = until.longest.is_some_and(|longest| self.begin.elapsed() >= longest);
            if left == 0 || is_late {
                return Ok(Outcome::Done);
            }
            let mut found = Vec::new();
            match events.recv_timeout(self.wait(until)) {
                Ok(Read::Event(ChangeEvent::Lost(lost))) => note(match lost.lost {
                    Some(count) => format!("{count} changes were missed, and not judged"),
                    None => "changes were missed: the server was started again".to_owned(),
                }),
                Ok(Read::Event(ChangeEvent::Change(change))) => {
                    self.change(&change, &mut found);
                    left -= 1;
                }
                Ok(Read::Failed(error)) => return Err(error.into()),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Failure::new("the thread that reads changes has ended"));
                }
            }
            self.settle(left == 0, &mut found);
            if print(&found, until.is_json)? {
                return Ok(Outcome::Negative);
            }
        }
    }

    /// The longest time until there is something to do.
    fn wait(&self, until: &Until) -> Duration {
        let mut wait = Duration::from_secs(3600);
        if let (Some(due), Some(now)) = (self.alarms.next_due(), self.now()) {
            wait = wait.min(Duration::from_micros(due.saturating_sub(now)));
        }
        if self.alarms.is_waiting() {
            wait = wait.min(ASK);
        }
        if let Some(longest) = until.longest {
            wait = wait.min(longest.saturating_sub(self.begin.elapsed()));
        }
        wait.max(Duration::from_millis(1))
    }

    /// The time by the server's clock, in microseconds since 1970; unknown before the first change.
    fn now(&self) -> Option<u64> {
        let (time, came) = self.clock?;
        Some(time.saturating_add(came.elapsed().as_micros() as u64))
    }

    fn change(&mut self, change: &Change, found: &mut Vec<AlarmEvent>) {
        let (Some(time), Ok(prefix)) = (change.micros(), change.prefix.parse()) else {
            note(format_args!("a change of {} cannot be read, and was not judged", change.prefix));
            return;
        };
        self.clock = Some((time, Instant::now()));
        let peer = change.peer.as_ref();
        let name = peer.map_or("", |peer| &*peer.name);
        let route = change.attributes.as_ref().map(|attributes| match attributes {
            Attributes::Bgp(bgp) => {
                let validity = change.validity.as_deref().and_then(|text| text.parse().ok());
                let route = WatchedRoute::bgp(name, bgp.origin_as, &bgp.as_path);
                let path_validity = change.aspa.as_deref().and_then(|text| text.parse().ok());
                WatchedRoute { validity, path_validity, ..route }
            }
            _ => WatchedRoute::other(name),
        });
        // Whether it is the session's first table is not known here: what is invalid in it is no news.
        let occasion = if change.resent { Occasion::First } else { Occasion::Live };
        let session = peer.and_then(|peer| peer.source.as_deref());
        let table = &*change.table;
        self.alarms.change(&RouteChange { time, table, prefix, session, route, occasion }, found);
    }

    /// Judges what is due, and what waits for sources that have sent their tables; `is_last`: now or never.
    fn settle(&mut self, is_last: bool, found: &mut Vec<AlarmEvent>) {
        let Some(now) = self.now() else { return };
        let is_waiting = self.alarms.is_waiting();
        let asked =
            if is_waiting { *self.asked.get_or_insert_with(Instant::now) } else { Instant::now() };
        self.asked = Some(asked);
        let is_due = is_waiting && (is_last || asked.elapsed() >= ASK);
        let sources = if is_due { self.resending() } else { None };
        let is_of = |name: &String, session: &str| {
            let view = session.strip_prefix(&**name);
            view.is_some_and(|view| view.is_empty() || view.starts_with(' '))
        };
        // An answer from before the last change says nothing about it: then all wait.
        let is_resending = |session: &str| match &sources {
            Some(sources) => sources.iter().any(|name| is_of(name, session)),
            None => true,
        };
        self.alarms.settle(now, is_resending, found);
    }

    /// The sources that have not sent their whole tables; `None` if the server does not answer. It is asked again
    /// then, and what waits is judged after a while in any case.
    fn resending(&mut self) -> Option<Vec<String>> {
        self.asked = Some(Instant::now());
        let peers = self.asking.json::<api::Peers>("/v1/peers").ok()?;
        let resending = peers.sources.into_iter().filter(|source| source.state == "resync");
        Some(resending.map(|source| source.name).collect())
    }
}

/// Prints the alarms that begin; whether there are any.
fn print(found: &[AlarmEvent], is_json: bool) -> Result<bool, Failure> {
    let mut out = output::stdout();
    let mut is_any = false;
    for event in found.iter().filter(|event| event.is_begin()) {
        is_any = true;
        match is_json {
            true => {
                serde_json::to_writer(&mut out, &api::Alarm::from(&*event.alarm))?;
                writeln!(out)?;
            }
            false => {
                let begin = api::Alarm::from(&*event.alarm).begin;
                writeln!(out, "{begin} {}", event.alarm)?;
            }
        }
    }
    out.flush()?;
    Ok(is_any)
}
