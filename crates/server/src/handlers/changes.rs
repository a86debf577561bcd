//! Changes of best routes: past changes, and new ones as server-sent events.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::thread;
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use fibula_core::{AnyPrefix, Vrf};
use fibula_rib::{Changed, History, Peer, Since};
use hyper::Response;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Sleep, sleep};

use crate::api;
use crate::convert::Names;
use crate::http::answer::{Answer, Refusal, json, of};
use crate::http::body::{Events, Payload};
use crate::http::params::Params;
use crate::http::time::rfc3339;
use crate::site::{self, Site};
use crate::table::{TableName, table};

/// Default and maximum number of changes in an answer.
pub(crate) const LIMIT: usize = 100;
pub(crate) const MOST: u64 = 1000;

pub(crate) const VIEWS: &[&str] = &["covered", "exact"];

/// Maximum number of changes that a reader of events takes at once, and the length of a text after which it writes no
/// more of them.
const PART: usize = 256;
const TEXT: usize = 64 << 10;
/// Maximum number of changes that a reader skips before other tasks have their turn.
const SCANNED: usize = 16 * PART;
/// Interval of keep-alive comments while nothing changes.
const QUIET: Duration = Duration::from_secs(15);

pub(crate) fn history(site: &Arc<Site>, params: &Params) -> Answer {
    let which = Which::new(site, params)?;
    let limit = params.number("limit").map_or(LIMIT, |limit| limit as usize);
    let changes = site.live.history().recent(limit, |change| which.takes(change));
    // The sessions of now say nothing about changes long ago.
    let mut changes = shapes(site, &changes);
    changes.iter_mut().for_each(|change| change.resent = false);
    json(&api::History { changes })
}

/// The changes that a request selects.
struct Which {
    table: Option<SelectedTable>,
    prefix: Option<AnyPrefix>,
    is_exact: bool,
    origin_as: Option<u32>,
    peer: Option<u32>,
}

impl Which {
    fn new(site: &Site, params: &Params) -> Result<Self, Refusal> {
        let select = |name: &str| -> Result<SelectedTable, Refusal> {
            let vrf = site.live.with_rib(|rib| table(rib, Some(name)))?;
            Ok(SelectedTable { name: name.to_owned(), vrf, before: vrf })
        };
        Ok(Self {
            table: params.text("table").map(select).transpose()?,
            prefix: params.prefix("prefix")?,
            is_exact: params.text("view") == Some("exact"),
            origin_as: params.number("origin_as").map(|asn| asn as u32),
            peer: params.number("peer").map(|peer| peer as u32),
        })
    }

    /// Changes of the prefix and, unless only the prefix itself is requested, of longer ones. The origin of a withdrawn
    /// route is that of its last path.
    fn takes(&self, change: &Changed) -> bool {
        let covers = |prefix: AnyPrefix| match self.is_exact {
            true => prefix == change.prefix,
            false => prefix.covers(change.prefix),
        };
        let originates = |asn: u32| match &change.best {
            Some(set) => set.bgp().is_some_and(|bgp| bgp.origin_as == Some(asn)),
            None => change.last_origin == Some(asn),
        };
        self.table.as_ref().is_none_or(|table| [table.vrf, table.before].contains(&change.vrf))
            && self.peer.is_none_or(|peer| peer == change.peer)
            && self.prefix.is_none_or(covers)
            && self.origin_as.is_none_or(originates)
    }
}

/// A table whose changes are selected. A reader that stays sees it given up and come back, with another number.
struct SelectedTable {
    name: String,
    vrf: Vrf,
    before: Vrf,
}

impl SelectedTable {
    /// Finds the table's number again.
    fn renew(&mut self, site: &Site) {
        let found = site.live.with_rib(|rib| rib.find_vrf(&self.name));
        if let Some(vrf) = found.filter(|vrf| *vrf != self.vrf) {
            self.before = std::mem::replace(&mut self.vrf, vrf);
        }
    }
}

/// The number added to a change's number for its id, so that ids increase over restarts.
fn base(site: &Site) -> u64 {
    let since = site.started.duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_micros() as u64
}

/// What the RIB knows about a change: its table, its session, and whether the session's peer has stale routes.
type OfChange = (TableName, Option<Arc<str>>, bool);

fn shapes(site: &Site, changes: &[Changed]) -> Vec<api::Change> {
    if changes.is_empty() {
        return Vec::new();
    }
    let (names, tables) = site.live.with_rib(|rib| {
        let peers = changes.iter().map(|change| change.peer);
        let table = |change: &Changed| {
            let session = rib.peers().get(change.peer).and_then(Peer::session).map(Arc::from);
            (TableName::of(rib, change.vrf), session, rib.is_resyncing(change.peer))
        };
        (Names::of(rib, peers), changes.iter().map(table).collect::<Vec<_>>())
    });
    // After the changes: a session that began to send its table before one of them is seen to do so.
    let sessions = site.sessions();
    let names = site.validated(names);
    let base = base(site);
    let shape = |(change, (table, session, is_stale)): (&Changed, OfChange)| api::Change {
        resent: is_stale
            || change.is_of_end
            || session.is_some_and(|session| {
                !sessions.is_settled(&session, change.time, change.best.is_none())
            }),
        validity: change.best.as_ref().and_then(|set| names.validity(change.prefix, set)),
        aspa: change.best.as_ref().and_then(|set| names.aspa(change.peer, set)),
        id: base + change.id,
        time: rfc3339(site::time(change.time)),
        table: table.to_string(),
        prefix: change.prefix.to_string(),
        peer: change.best.as_ref().map(|_| names.peer(change.peer)),
        attributes: change.best.as_ref().map(|set| names.attributes(set)),
    };
    changes.iter().zip(tables).map(shape).collect()
}

pub(crate) fn events(site: &Arc<Site>, params: &Params) -> Answer {
    let which = Which::new(site, params)?;
    let last = match params.header("last-event-id") {
        Some(text) => Some(
            text.parse::<u64>()
                .map_err(|_| Refusal::bad("the header Last-Event-ID is not the id of a change"))?,
        ),
        None => params.number("since"),
    };
    let place = Arc::clone(&site.watchers)
        .try_acquire_owned()
        .map_err(|_| Refusal::busy("too many clients read changes already; try again later", 10))?;
    let (next, lost) = begin(site.live.history(), base(site), last);
    let events = ChangeEvents {
        which,
        next,
        ready: lost.map(event_lost).into_iter().collect(),
        changes: VecDeque::new(),
        newest: until_newer(site, next),
        quiet: Box::pin(sleep(QUIET)),
        is_first: true,
        _reading: site.newest.subscribe(),
        site: Arc::clone(site),
        _place: place,
    };
    site.watched.notify_one();
    let mut response: Response<Payload> =
        of("text/event-stream", Payload::Events(Box::new(events)));
    // Some proxies would otherwise hold events back.
    response
        .headers_mut()
        .insert("x-accel-buffering", hyper::header::HeaderValue::from_static("no"));
    Ok(response)
}

/// The change to begin with, and the number of lost ones before it: `Some(None)` is an unknown number.
fn begin(history: &History, base: u64, last: Option<u64>) -> (u64, Option<Option<u64>>) {
    let next = history.next();
    match last {
        None => (next, None),
        Some(last) => match last.checked_sub(base) {
            Some(known) if known < next => (known + 1, None),
            // The id is from an earlier start or unknown: sends all kept changes, and an event about the loss.
            _ => (history.since(1, 0).next, Some(None)),
        },
    }
}

/// The length of a change's event, about.
fn text_length(change: &Changed) -> usize {
    let bgp = change.best.as_ref().and_then(|set| set.bgp());
    400 + bgp.map_or(0, |bgp| bgp.as_path.len() + bgp.communities.len())
}

fn event_lost(lost: Option<u64>) -> Bytes {
    let shape = serde_json::to_string(&api::Lost { lost }).unwrap_or_default();
    format!("event: lost\ndata: {shape}\n\n").into()
}

/// Ends when there is a change of this number or a later one, or when the server ends.
fn until_newer(site: &Site, next: u64) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    let (mut newest, mut stop) = (site.newest.subscribe(), site.stop.subscribe());
    Box::pin(async move {
        tokio::select! {
            _ = newest.wait_for(|newest| *newest > next) => {}
            _ = stop.wait_for(|stop| *stop) => {}
        }
    })
}

/// The body of an answer that does not end. It holds a place in the history and no changes, so a reader that
/// is slow costs nothing, and misses changes when they leave the history.
struct ChangeEvents {
    site: Arc<Site>,
    which: Which,
    next: u64,
    ready: VecDeque<Bytes>,
    /// Changes that were read, and are not written yet: references to what the history has, not texts.
    changes: VecDeque<Changed>,
    newest: Pin<Box<dyn Future<Output = ()> + Send>>,
    quiet: Pin<Box<Sleep>>,
    /// Whether nothing was sent so far.
    is_first: bool,
    /// Shows [`follow`] that there is a reader: the subscription of `newest` ends each time that it is ready.
    _reading: watch::Receiver<u64>,
    _place: OwnedSemaphorePermit,
}

impl Events for ChangeEvents {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if std::mem::take(&mut self.is_first) {
            // The first bytes are sent at once, so that the client and proxies see the beginning.
            return Poll::Ready(Some(Bytes::from_static(b": changes of best routes\n\n")));
        }
        loop {
            if let Some(piece) = self.ready.pop_front() {
                self.quiet.as_mut().reset(tokio::time::Instant::now() + QUIET);
                return Poll::Ready(Some(piece));
            }
            if let Some(text) = self.write() {
                self.ready.push_back(text);
                continue;
            }
            if self.newest.as_mut().poll(cx).is_pending() {
                ready!(self.quiet.as_mut().poll(cx));
                self.ready.push_back(Bytes::from_static(b": nothing changed\n\n"));
                continue;
            }
            if *self.site.stop.borrow() {
                return Poll::Ready(None);
            }
            if !self.read() {
                // The request selects none of many changes: other tasks get their turn.
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
    }
}

impl ChangeEvents {
    /// The events of the next changes that were read.
    fn write(&mut self) -> Option<Bytes> {
        let mut length = 0;
        let is_short = |change: &&Changed| {
            let is_first = length == 0;
            length += text_length(change);
            is_first || length <= TEXT
        };
        let count = self.changes.iter().take_while(is_short).count();
        if count == 0 {
            return None;
        }
        let changes: Vec<Changed> = self.changes.drain(..count).collect();
        let mut text = String::with_capacity(400 * count);
        for change in shapes(&self.site, &changes) {
            let shape = serde_json::to_string(&change).unwrap_or_default();
            let _ = write!(text, "id: {}\nevent: change\ndata: {shape}\n\n", change.id);
        }
        Some(text.into())
    }

    /// Takes the next changes; false if the request selects none of many.
    fn read(&mut self) -> bool {
        let mut scanned = 0;
        let is_found = loop {
            let Since { mut changes, next, lost } = self.site.live.history().since(self.next, PART);
            self.next = next;
            scanned += changes.len();
            let is_end = changes.len() < PART;
            if let Some(table) = &mut self.which.table {
                table.renew(&self.site);
            }
            changes.retain(|change| self.which.takes(change));
            if lost > 0 {
                self.ready.push_back(event_lost(Some(lost)));
            }
            self.changes.extend(changes);
            if !self.ready.is_empty() || !self.changes.is_empty() || is_end {
                break true;
            }
            if scanned >= SCANNED {
                break false;
            }
        };
        self.newest = until_newer(&self.site, self.next);
        is_found
    }
}

/// Follows the history, on a thread of its own, while changes have readers.
pub(crate) fn follow(site: &Site) {
    /// How long to wait for a change before checking whether there are still readers.
    const LOOK: Duration = Duration::from_millis(250);
    /// The minimum interval of waking readers, however fast changes arrive.
    const REST: Duration = Duration::from_millis(2);
    let history = site.live.history();
    let mut next = history.next();
    site.newest.send_replace(next);
    while site.newest.receiver_count() > 0 && !*site.stop.borrow() {
        if history.wait(next, LOOK) {
            next = history.next();
            site.newest.send_replace(next);
            thread::sleep(REST);
        }
    }
}
