//! The thread that reads changes and judges them.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fibula_alarms::{AlarmEvent, Alarms, Occasion, RouteChange, WatchedRoute};
use fibula_core::{Addr, AnyPrefix, Prefix, Vrf};
use fibula_feeds::Board;
use fibula_rib::{AttributeSet, Live, Pod, Rib, Since};
use fibula_rpki::{Aspas, LiveVrps, Relations, Validity, VrpGeneration};
use fibula_server::peer_name;

use super::Shared;
use super::sessions::{Sessions, When};
use super::webhook::WebhookQueue;

/// Changes that are read at once.
const PART: usize = 1024;
/// Routes that are read under one lock of the RIB.
const SCANNED: usize = 1024;
/// The longest time without looking at the sessions, at VRPs and whether to stop.
const LOOK: Duration = Duration::from_millis(200);
/// The same while changes wait for sessions that resend their tables.
const WAITING: Duration = Duration::from_millis(50);
/// How soon routes are read again for ASPAs that change again and again.
const REVERIFY: Duration = Duration::from_secs(10);

/// Reads a live table's changes.
pub(super) struct Follower {
    pub(super) live: Arc<Live>,
    pub(super) board: Arc<Board>,
    pub(super) vrps: Option<Arc<LiveVrps>>,
    pub(super) alarms: Alarms,
    pub(super) shared: Arc<Shared>,
    pub(super) sessions: Sessions,
    /// The number of the next change.
    pub(super) next: u64,
    /// How many routes whose validity changed were passed in.
    pub(super) validated: u64,
    /// Verifies paths, if a rule is about them.
    pub(super) paths: Option<Paths>,
    pub(super) webhook: Option<WebhookQueue>,
}

/// How paths are verified.
pub(super) struct Paths {
    relations: Arc<Relations>,
    /// The ASPAs by which the routes under rules were judged, and when these came.
    aspas: Arc<Aspas>,
    since: Option<Instant>,
}

impl Paths {
    pub(super) fn new(relations: Arc<Relations>) -> Self {
        Self { relations, aspas: Arc::default(), since: None }
    }
}

/// A route or its loss, copied while the RIB was locked.
struct Copied {
    time: u64,
    table: String,
    prefix: AnyPrefix,
    peer: Option<(u32, fibula_rib::Peer)>,
    best: Option<AttributeSet>,
    is_stale: bool,
    is_of_end: bool,
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros() as u64
}

fn table_name(rib: &Rib, vrf: Vrf) -> String {
    rib.vrf_name(vrf).map_or_else(|| vrf.to_string(), |name| name.to_string())
}

impl Follower {
    /// Reads the table, and then its changes, until it is to stop.
    pub(super) fn run(mut self) {
        self.scan(Some(Occasion::First));
        while !self.shared.stop.load(Ordering::Relaxed) {
            let longest = if self.alarms.is_waiting() { WAITING } else { LOOK };
            let due = self.alarms.next_due().map(|due| due.saturating_sub(now()));
            let wait = due.map_or(longest, |due| longest.min(Duration::from_micros(due)));
            self.live.history().wait(self.next, wait.max(Duration::from_millis(1)));
            let is_all = self.read();
            self.revalidated();
            self.reverified();
            let now = now();
            if is_all {
                self.sessions.passed(now);
            }
            let mut events = Vec::new();
            let sessions = &self.sessions;
            self.alarms.settle(now, |session| sessions.is_resending(session, now), &mut events);
            self.report(events);
        }
    }

    /// Passes in the next changes; whether these were all.
    fn read(&mut self) -> bool {
        let Since { changes, next, lost } = self.live.history().since(self.next, PART);
        self.next = next;
        self.sessions.read(&self.board);
        if lost > 0 {
            // A reader that is too slow reads the table anew, from the newest change on.
            self.shared.lost.fetch_add(lost, Ordering::Relaxed);
            tracing::warn!(
                lost,
                "alarms: changes came too fast; the routes under rules are read anew"
            );
            self.scan(None);
            return false;
        }
        let (sessions, now) = (&mut self.sessions, now());
        self.live.with_rib(|rib| sessions.appeared(rib, now));
        let is_all = changes.len() < PART;
        self.shared.changes.fetch_add(changes.len() as u64, Ordering::Relaxed);
        let watched: Vec<_> =
            changes.into_iter().filter(|change| self.alarms.watches(change.prefix)).collect();
        if watched.is_empty() {
            return is_all;
        }
        let copied: Vec<Copied> = self.live.with_rib(|rib| {
            let copy = |change: fibula_rib::Changed| Copied {
                time: change.time,
                table: table_name(rib, change.vrf),
                prefix: change.prefix,
                peer: rib.peers().get(change.peer).map(|peer| (change.peer, peer.clone())),
                is_stale: rib.is_resyncing(change.peer),
                is_of_end: change.is_of_end,
                best: change.best,
            };
            watched.into_iter().map(copy).collect()
        });
        self.pass(&copied, None);
        is_all
    }

    /// Judges routes, on this occasion or that of their sessions.
    fn pass(&mut self, all: &[Copied], occasion: Option<Occasion>) {
        let vrps = self.vrps.as_ref().map(|vrps| vrps.current());
        let relations = self.paths.as_ref().map(|paths| Arc::clone(&paths.relations));
        let judged = Judged { vrps: vrps.as_deref(), relations: relations.as_deref() };
        let mut events = Vec::new();
        for copied in all {
            let Copied { time, table, prefix, peer, best, is_stale, is_of_end } = copied;
            let name =
                peer.as_ref().map_or(String::new(), |(number, peer)| peer_name(*number, peer));
            let session = peer.as_ref().and_then(|(_, peer)| peer.session());
            let occasion = occasion.unwrap_or_else(|| {
                self.sessions.occasion(When {
                    peer: peer.as_ref().map_or(u32::MAX, |(number, _)| *number),
                    session,
                    time: *time,
                    is_stale: *is_stale,
                    is_gone: best.is_none(),
                    is_of_end: *is_of_end,
                })
            });
            let route = best.as_ref().map(|set| {
                let asn = peer.as_ref().map(|(_, peer)| peer.asn).filter(|&asn| asn != 0);
                judged.route((&name, asn), *prefix, set)
            });
            let change =
                RouteChange { time: *time, table, prefix: *prefix, session, route, occasion };
            self.alarms.change(&change, &mut events);
        }
        self.report(events);
    }

    /// Reads all routes under rules, as on this occasion.
    fn scan(&mut self, occasion: Option<Occasion>) {
        // Changes that happen meanwhile are passed in afterwards.
        self.next = self.live.history().next();
        let occasion = occasion.unwrap_or(Occasion::Resent);
        self.sessions.read(&self.board);
        self.alarms.begin_scan();
        let (v4, v6) = (self.alarms.roots::<u32>(), self.alarms.roots::<u128>());
        for vrf in self.live.with_rib(|rib| rib.vrfs().collect::<Vec<_>>()) {
            v4.iter().for_each(|&root| self.scan_block(vrf, root, occasion));
            v6.iter().for_each(|&root| self.scan_block(vrf, root, occasion));
        }
        let mut events = Vec::new();
        self.alarms.end_scan(now(), &mut events);
        self.report(events);
    }

    /// Reads the routes that the prefix covers, some at a time, so that the feed never waits for long.
    fn scan_block<A: Addr + Pod>(&mut self, vrf: Vrf, block: Prefix<A>, occasion: Occasion) {
        let mut after = None;
        while !self.shared.stop.load(Ordering::Relaxed) {
            let (copied, last) = self.live.with_rib(|rib| {
                let part = rib.part(vrf, after.unwrap_or(block), SCANNED);
                let is_end = part.len() < SCANNED;
                let last = part.last().copied().filter(|last| !is_end && block.covers(*last));
                let inside = part.into_iter().filter(|&prefix| block.covers(prefix));
                let new = inside.filter(|&prefix| Some(prefix) != after);
                let copied = new.filter_map(|prefix| copied(rib, vrf, prefix));
                (copied.collect::<Vec<_>>(), last)
            });
            self.pass(&copied, Some(occasion));
            match last {
                Some(last) => after = Some(last),
                None => break,
            }
        }
    }

    /// Passes in the routes whose validity changed with the VRPs.
    fn revalidated(&mut self) {
        let Some(vrps) = &self.vrps else { return };
        let before = self.validated;
        let (found, changed) = vrps.revalidated_after(before);
        self.validated = changed;
        let Some(found) = found else {
            // More than are kept. The first VRPs at all change the validity of most routes, which is no news.
            self.scan(Some(if before == 0 { Occasion::First } else { Occasion::Resent }));
            return;
        };
        for route in found {
            if !self.alarms.watches(route.prefix) {
                continue;
            }
            // The route as it is now: it may have changed since it was validated.
            let copied = self.live.with_rib(|rib| match route.prefix {
                AnyPrefix::V4(prefix) => copied(rib, route.vrf, prefix),
                AnyPrefix::V6(prefix) => copied(rib, route.vrf, prefix),
            });
            // Invalid by the first VRPs is no news. Those of now may be newer ones, by which it is.
            let is_known = route.before.is_none() && route.after.is_some_and(Validity::is_invalid);
            let occasion = if is_known { Occasion::First } else { Occasion::Resent };
            self.pass(copied.as_slice(), Some(occasion));
        }
    }

    /// Reads the routes under rules again when the ASPAs have changed: any path may have the ASes of a changed one.
    fn reverified(&mut self) {
        let (Some(vrps), Some(paths)) = (&self.vrps, &mut self.paths) else { return };
        if paths.since.is_some_and(|since| since.elapsed() < REVERIFY) {
            return;
        }
        let aspas = Arc::clone(&vrps.current().aspas);
        let is_same = Arc::ptr_eq(&aspas, &paths.aspas) || aspas == paths.aspas;
        paths.aspas = aspas;
        if !is_same {
            paths.since = Some(Instant::now());
            self.scan(Some(Occasion::Resent));
        }
    }

    fn report(&self, events: Vec<AlarmEvent>) {
        self.shared.report(&self.alarms, events, self.webhook.as_ref());
    }
}

/// The best route of a prefix.
fn copied<A: Addr>(rib: &Rib, vrf: Vrf, prefix: Prefix<A>) -> Option<Copied> {
    let path = rib.exact(vrf, prefix)?;
    Some(Copied {
        time: now(),
        table: table_name(rib, vrf),
        prefix: A::any(prefix),
        peer: rib.peers().get(path.peer).map(|peer| (path.peer, peer.clone())),
        is_stale: false,
        is_of_end: false,
        best: Some(path.attributes),
    })
}

/// By what the routes of rules are judged.
struct Judged<'a> {
    vrps: Option<&'a VrpGeneration>,
    /// Given if paths are verified.
    relations: Option<&'a Relations>,
}

impl Judged<'_> {
    /// What rules judge of the route of a peer with this name and AS.
    fn route<'a>(
        &self,
        (peer, asn): (&'a str, Option<u32>),
        prefix: AnyPrefix,
        set: &'a AttributeSet,
    ) -> WatchedRoute<'a> {
        let Some(bgp) = set.bgp() else { return WatchedRoute::other(peer) };
        let vrps = self.vrps.and_then(|now| now.vrps.as_deref());
        let aspas = self.vrps.map(|now| &*now.aspas).filter(|aspas| !aspas.is_empty());
        WatchedRoute {
            validity: vrps.map(|vrps| vrps.validity(prefix, bgp.origin_as)),
            path_validity: aspas
                .zip(self.relations)
                .and_then(|(aspas, relations)| aspas.verify_route(bgp.as_path, asn, relations)),
            ..WatchedRoute::bgp(peer, bgp.origin_as, bgp.as_path)
        }
    }
}
