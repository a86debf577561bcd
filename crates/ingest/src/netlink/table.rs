//! Turns messages into updates: the shared code of FPM and the kernel's socket.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::mem;

use fibula_core::{AnyPrefix, Attributes, Change, NextHop, NextHops, RouteKind, Update, Vrf};

use super::next_hop;
use super::objects::Objects;
use super::route::{self, MAIN, Parsed, Route, RouteType};
use super::users::Key;
use super::wire::{HEADER, Header, Part, flag, kind};
use crate::Sink;
use crate::bgp::DecodeFault;

/// The writer of messages, which determines their meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Writer {
    /// A daemon that has one route for a prefix of a table. A route with another metric replaces it.
    #[default]
    Daemon,
    /// A kernel, which has several of different metrics.
    Kernel,
}

/// The state of a forwarding table's decoder: next-hop objects, and withdrawals that are held back.
#[derive(Debug, Default)]
pub(crate) struct Table {
    writer: Writer,
    objects: Objects,
    /// A withdrawal that the next message may turn into a replacement.
    held: Option<Key>,
    declared: HashSet<Vrf>,
    last_declared: Option<Vrf>,
    /// The next hops of the message that is read.
    scratch: NextHops,
    /// IPv6 routes with several inline next hops: the kernel deletes one of these with a message that
    /// looks as if it deleted the route.
    sets: HashMap<Key, Vec<NextHop>>,
    /// The last route of a dump.
    dumped: Option<Key>,
    /// Routes behind which others of the same metric wait.
    hiding: HashSet<Key>,
    /// A message cannot be understood without another dump.
    is_unsure: bool,
    /// Whether a dump is in progress.
    is_dumping: bool,
    /// The routes and objects in notifications during the dump.
    notified: HashSet<Key>,
    notified_objects: HashSet<u32>,
}

impl Table {
    pub(crate) fn new(writer: Writer, is_dumping: bool) -> Self {
        Self { writer, is_dumping, ..Self::default() }
    }

    /// Applies a message about routes or next hops; others are no business of this. The fault's place is in
    /// the message.
    pub(crate) fn message(
        &mut self,
        header: Header,
        message: &[u8],
        sink: &mut dyn Sink,
    ) -> Result<(), DecodeFault> {
        let body = Part { data: message.get(HEADER..).unwrap_or_default(), base: HEADER };
        match header.kind {
            kind::NEWROUTE | kind::DELROUTE => {
                self.settle(sink);
                let result = self.route(header, body, sink);
                // A withdrawal that this message did not turn into a replacement is one.
                if header.kind == kind::NEWROUTE || result.is_err() {
                    self.release(sink);
                }
                result
            }
            // These may stand between a withdrawal and its replacement, which still belong together.
            kind::NEWNEXTHOP => {
                let (id, content) = next_hop::read(body)?;
                if self.is_dumping && is_older(&mut self.notified_objects, id, header) {
                    return Ok(());
                }
                self.objects.set(id, content).map_err(|what| body.fault(what))
            }
            kind::DELNEXTHOP => {
                let (id, _) = next_hop::read(body)?;
                if self.is_dumping {
                    self.notified_objects.insert(id);
                }
                for key in self.objects.remove(id).unwrap_or_default() {
                    withdraw(key, sink);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn route(
        &mut self,
        header: Header,
        body: Part<'_>,
        sink: &mut dyn Sink,
    ) -> Result<(), DecodeFault> {
        match route::read(body, &mut self.scratch.hops)? {
            Parsed::Ignored(what) => sink.ignored(what),
            Parsed::Route(route) => {
                let key = self.key(&route, sink);
                let is_part = header.kind == kind::DELROUTE
                    && matches!(route.prefix, AnyPrefix::V6(_))
                    && self.scratch.hops.len() == 1;
                // If a part of a set that was not dumped yet is deleted, the dump contains the rest.
                if self.is_dumping && !is_part && is_older(&mut self.notified, key, header) {
                    return Ok(());
                }
                if header.kind == kind::DELROUTE {
                    self.gone(key, &route, sink);
                } else {
                    self.came(key, &route, header.flags, sink).map_err(|what| body.fault(what))?;
                }
            }
        }
        Ok(())
    }

    /// Whether [`Table::flush`] has something to give.
    pub(crate) fn is_holding(&self) -> bool {
        self.held.is_some() || self.objects.is_unsettled()
    }

    /// Passes on the changes that were held back.
    pub(crate) fn flush(&mut self, sink: &mut dyn Sink) {
        self.settle(sink);
        self.release(sink);
    }

    /// Whether a message needs another dump to be understood. Resets this state.
    pub(crate) fn take_unsure(&mut self) -> bool {
        mem::take(&mut self.is_unsure)
    }

    /// A dump ended: the next one begins anew, unless that was the last.
    pub(crate) fn end_of_dump(&mut self, is_last: bool) {
        self.dumped = None;
        if is_last {
            self.is_dumping = false;
            (self.notified, self.notified_objects) = Default::default();
        }
    }

    fn release(&mut self, sink: &mut dyn Sink) {
        if let Some(key) = self.held.take() {
            withdraw(key, sink);
        }
    }

    /// Announces the routes whose next hops were replaced.
    fn settle(&mut self, sink: &mut dyn Sink) {
        self.objects.settle(|key, next_hops| announce(key, next_hops, sink));
    }

    fn key(&mut self, route: &Route, sink: &mut dyn Sink) -> Key {
        let vrf = if route.table == MAIN { 0 } else { route.table };
        if self.last_declared != Some(vrf) {
            self.last_declared = Some(vrf);
            if self.declared.insert(vrf) {
                let name = if vrf == 0 { String::new() } else { vrf.to_string() };
                sink.vrf(vrf, &name);
            }
        }
        let path_id = if self.writer == Writer::Kernel { route.priority } else { 0 };
        Key { vrf, path_id, prefix: route.prefix }
    }

    /// A route is deleted.
    fn gone(&mut self, key: Key, route: &Route, sink: &mut dyn Sink) {
        self.release(sink);
        if route.kind == RouteType::Other {
            sink.ignored(OTHER_KIND);
            return;
        }
        if self.hiding.remove(&key) {
            // One of several: the next dump says which one is used now. Until then the route is as it was.
            self.doubt(key);
            self.forget(key);
            return;
        }
        if let Some(set) = self.sets.get_mut(&key) {
            let gone = &self.scratch.hops;
            let is_part = gone.len() < set.len() && !gone.is_empty();
            if is_part {
                let same =
                    |a: &NextHop, b: &NextHop| (a.gateway, a.interface) == (b.gateway, b.interface);
                set.retain(|hop| !gone.iter().any(|gone| same(gone, hop)));
                self.scratch = NextHops { kind: RouteKind::Unicast, hops: set.clone() };
                if set.len() < 2 {
                    self.sets.remove(&key);
                }
                announce(key, &self.scratch, sink);
                return;
            }
            self.sets.remove(&key);
        }
        self.objects.unused(key);
        self.held = Some(key);
    }

    /// A route comes, or takes the place of an earlier one.
    fn came(
        &mut self,
        key: Key,
        route: &Route,
        flags: u16,
        sink: &mut dyn Sink,
    ) -> Result<(), &'static str> {
        if self.writer == Writer::Kernel && self.is_hidden(key, route, flags) {
            if self.held == Some(key) {
                // What was deleted was not the only one.
                self.held = None;
                self.is_unsure = true;
            }
            sink.ignored("routes that another of the same metric hides");
            return Ok(());
        }
        let is_replaced = self.held == Some(key);
        self.held = self.held.filter(|_| !is_replaced);
        self.release(sink);
        let next_hops = &mut self.scratch;
        match route.kind {
            RouteType::Known(kind @ (RouteKind::Unicast | RouteKind::Local)) => {
                next_hops.kind = kind
            }
            RouteType::Known(kind) => {
                next_hops.kind = kind;
                next_hops.hops.clear();
            }
            RouteType::Unspecified | RouteType::Other => {
                sink.ignored(OTHER_KIND);
                if is_replaced || flags & flag::REPLACE != 0 {
                    self.forget(key);
                    withdraw(key, sink);
                }
                return Ok(());
            }
        }
        let is_forwarded = matches!(next_hops.kind, RouteKind::Unicast | RouteKind::Local);
        if let Some(id) = route.next_hop {
            // Kernels write the content of an object beside its number: its next hops, or that it is a blackhole.
            let is_known = self.objects.has(id);
            if is_known || (is_forwarded && next_hops.hops.is_empty()) {
                self.sets.remove(&key);
                let next_hops = self.objects.used(key, id)?;
                if !is_known && self.is_dumping {
                    return Ok(());
                }
                announce(key, next_hops, sink);
                return match is_known {
                    true => Ok(()),
                    false => {
                        Err("the route's next hop was never announced: the route is withdrawn")
                    }
                };
            }
        }
        self.forget(key);
        if self.writer == Writer::Kernel && is_v6_set(key, &self.scratch) {
            self.sets.insert(key, self.scratch.hops.clone());
        }
        if is_useless(&self.scratch) {
            sink.noted("a route without a next hop that is up counts as withdrawn");
        }
        announce(key, &self.scratch, sink);
        Ok(())
    }

    /// Whether the kernel keeps this route behind another one of the same prefix and metric.
    fn is_hidden(&mut self, key: Key, route: &Route, flags: u16) -> bool {
        if flags & flag::MULTI != 0 {
            let is_hidden = self.dumped.replace(key) == Some(key);
            if is_hidden {
                self.hiding.insert(key);
            }
            return is_hidden;
        }
        let is_one_of_several = flags & (flag::CREATE | flag::EXCL | flag::REPLACE) == flag::CREATE;
        if !is_one_of_several {
            if self.hiding.remove(&key) {
                self.is_unsure = true;
            }
            return false;
        }
        let has_gateway = self.scratch.hops.iter().any(|hop| hop.gateway.is_some());
        let is_hidden = match key.prefix {
            // Without APPEND it stands in front of them.
            AnyPrefix::V4(_) => flags & flag::APPEND != 0,
            // The kernel adds next hops with a gateway to those that are there, and says the whole set. All else stands
            // behind what is there.
            AnyPrefix::V6(_) => {
                route.next_hop.is_some() || !has_gateway || self.objects.is_user(key)
            }
        };
        if is_hidden || matches!(key.prefix, AnyPrefix::V4(_)) {
            self.hiding.insert(key);
        } else if self.scratch.hops.len() < 2 {
            // A list of one next hop, or one behind a route that has no gateway.
            self.is_unsure = true;
        }
        if is_hidden && self.is_dumping {
            self.doubt(key);
        }
        is_hidden
    }

    /// Another dump is needed to understand this route.
    fn doubt(&mut self, key: Key) {
        self.is_unsure = true;
        self.notified.remove(&key);
    }

    /// The route has no next-hop object and no set of next hops any more.
    fn forget(&mut self, key: Key) {
        self.objects.unused(key);
        if !self.sets.is_empty() {
            self.sets.remove(&key);
        }
    }
}

/// Whether a message of a dump is older than a notification. Stores the keys of notifications.
fn is_older<K: Eq + Hash>(notified: &mut HashSet<K>, key: K, header: Header) -> bool {
    if header.flags & flag::MULTI == 0 {
        notified.insert(key);
        return false;
    }
    notified.contains(&key)
}

const OTHER_KIND: &str = "routes of other types (multicast, anycast, broadcast, throw)";

fn is_v6_set(key: Key, next_hops: &NextHops) -> bool {
    next_hops.hops.len() > 1 && matches!(key.prefix, AnyPrefix::V6(_))
}

/// Whether this forwards nothing.
fn is_useless(next_hops: &NextHops) -> bool {
    next_hops.kind == RouteKind::Unicast && next_hops.hops.is_empty()
}

/// Announces a route; one that forwards and has no next hop is withdrawn.
fn announce(key: Key, next_hops: &NextHops, sink: &mut dyn Sink) {
    let announced = Change::Announce(Attributes::NextHops(next_hops));
    change(key, if is_useless(next_hops) { Change::Withdraw } else { announced }, sink);
}

fn withdraw(key: Key, sink: &mut dyn Sink) {
    change(key, Change::Withdraw, sink);
}

fn change(key: Key, change: Change<'_>, sink: &mut dyn Sink) {
    let Key { vrf, path_id, prefix } = key;
    sink.update(&Update { vrf, path_id, ..Update::new(prefix, change) });
}
