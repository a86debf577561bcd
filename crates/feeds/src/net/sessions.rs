//! Sessions of connecting addresses, and sessions whose routes come from a checkpoint.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use fibula_rib::{FeedEvent, Listener, Peer, Rib};
use mio::Token;
use mio::net::TcpStream;

use super::cut::CutSessions;
use super::door::Door;
use super::hub::Hub;
use super::link::{Context, Link, Shown, Via};
use super::report::{OnReport, SourceEvent, SourceReport};
use super::slots::Thing;
use super::source::{ProtocolFactory, SessionContext};
use super::stream::Stream;
use crate::peer_mapper::in_parts;
use crate::{Clock, ConnectionRefusal, Event, FeedError, LogLimit, SystemClock};

/// The peers that have routes in a table, with their numbers: those of its checkpoint, for [`Hub::adopt`].
pub fn speaking(rib: &Rib) -> Vec<(u32, Peer)> {
    let has_paths = |&(number, _): &(u32, &Peer)| {
        rib.paths_of::<u32>(number) + rib.paths_of::<u128>(number) > 0
    };
    rib.peers().iter().filter(has_paths).map(|(number, peer)| (number, peer.clone())).collect()
}

impl Hub {
    /// Handles an accepted connection.
    pub(super) fn accept(
        &mut self,
        source: &Arc<str>,
        stream: TcpStream,
        address: IpAddr,
        to: &mut dyn Listener,
    ) -> Result<(), FeedError> {
        let now = self.clock.now();
        let Some(running) = self.sources.get(source) else { return Ok(()) };
        let session = running.sessions.get(&address).copied();
        let sessions = running.sessions.len();
        let Some(slot) = self.slots.get_mut(running.main) else { return Ok(()) };
        let Thing::Door(door) = &mut slot.thing else { return Ok(()) };
        let speaker = door.speaker(address).cloned();
        let refused = match (&speaker, session) {
            (None, _) => Some("it is not among the addresses that may connect"),
            (Some(_), None) if sessions >= door.limit => {
                Some("there are as many sessions as may be")
            }
            (Some(_), _) => None,
        };
        if let Some(why) = refused {
            self.refuse(source, address, why.into(), now);
            return Ok(());
        }
        let Some(speaker) = speaker else { return Ok(()) };
        let key = session.unwrap_or_else(|| self.session(source, address, &speaker));
        let Self { slots, poll, on_report, buffer, farewells, .. } = self;
        let mut cx = Context { registry: poll.registry(), now, to, on_report, buffer, farewells };
        let mut refused = None;
        if let Some(slot) = slots.get_mut(key)
            && let Thing::Link(link) = &mut slot.thing
        {
            let stream = Stream::tcp(stream);
            match link.admit(&mut cx) {
                Ok(()) => {
                    if link.attach(stream, &mut cx)? {
                        slots.queue(key);
                    }
                }
                Err(ConnectionRefusal { farewell, why }) => {
                    cx.farewells.push((stream, farewell.into()));
                    refused = Some(why);
                }
            }
        }
        match (refused, self.door_mut(source)) {
            (Some(why), _) => self.refuse(source, address, why.into(), now),
            (None, Some(door)) => door.accepted += 1,
            (None, None) => {}
        }
        self.settle(key, now);
        Ok(())
    }

    /// Reports a refused connection.
    fn refuse(&mut self, source: &str, address: IpAddr, why: Cow<'static, str>, now: Duration) {
        let on_report = Arc::clone(&self.on_report);
        let Some(main) = self.sources.get(source).map(|running| running.main) else { return };
        if let Some(door) = self.door_mut(source) {
            door.refuse(address, why, now, &on_report);
        }
        self.settle(main, now);
    }

    pub(super) fn door_mut(&mut self, source: &str) -> Option<&mut Door> {
        match &mut self.slots.get_mut(self.sources.get(source)?.main)?.thing {
            Thing::Door(door) => Some(door),
            _ => None,
        }
    }

    /// A new session of a source that listens.
    pub(super) fn session(
        &mut self,
        source: &Arc<str>,
        address: IpAddr,
        speaker: &ProtocolFactory,
    ) -> usize {
        let name: Arc<str> = format!("{source} {address}").into();
        let key = self.slots.number();
        let Some(running) = self.sources.get_mut(source) else { return key };
        running.sessions.insert(address, key);
        let shown = Shown { endpoint: address.to_string(), ..running.shown.clone() };
        let link = self.link((name, shown), Some(address), speaker, Via::Accepted, key);
        if let Some(door) = self.door(source) {
            link.reports.keep_up(&door.passing);
        }
        self.slots.insert(key, Arc::clone(source), Thing::Link(Box::new(link)));
        key
    }

    pub(super) fn link(
        &self,
        (name, shown): (Arc<str>, Shown),
        remote: Option<IpAddr>,
        speaker: &ProtocolFactory,
        via: Via,
        key: usize,
    ) -> Link {
        let reports = (Arc::clone(&self.on_report), Arc::clone(&self.cut));
        let events = events_of(Arc::clone(&name), reports, self.clock);
        let protocol =
            (speaker.protocol)(SessionContext { name: Arc::clone(&name), remote, events });
        let (settings, ahead) = (speaker.settings.clone(), Arc::clone(&self.ahead));
        Link::new((name, shown), settings, protocol, via, Token(key), ahead)
    }

    /// Creates the sessions of the addresses that are configured one by one.
    pub(super) fn name_hosts(&mut self, source: &Arc<str>) {
        let now = self.clock.now();
        for (address, speaker) in self.door(source).map(|door| door.hosts()).unwrap_or_default() {
            if !self.sources[source].sessions.contains_key(&address) {
                let key = self.session(source, address, &speaker);
                self.settle(key, now);
            }
        }
    }

    pub(super) fn door(&self, source: &str) -> Option<&Door> {
        match &self.slots.get(self.sources.get(source)?.main)?.thing {
            Thing::Door(door) => Some(door),
            _ => None,
        }
    }

    /// Whether the session exists only because its address connected.
    pub(super) fn is_stranger(&self, source: &str, key: usize) -> bool {
        let Some(running) = self.sources.get(source) else { return true };
        let Some((address, _)) = running.sessions.iter().find(|&(_, &session)| session == key)
        else {
            return false; // it is opened here
        };
        let is_named = |door: &Door| door.hosts().iter().any(|(host, _)| host == address);
        !self.door(source).is_some_and(is_named)
    }

    /// Assigns the routes of a checkpoint to the sources that they came from. They stay until the source has sent
    /// everything, or until its hold time is over. Routes of sources that are no longer configured are removed at once,
    /// and those of files stay. [Add](Hub::add) the sources before.
    ///
    /// # Errors
    /// If the table accepts nothing more.
    pub fn adopt(&mut self, peers: &[(u32, Peer)], to: &mut dyn Listener) -> Result<(), FeedError> {
        let now = self.clock.now();
        let (mut orphans, mut over) = (BTreeMap::<&str, usize>::new(), Vec::new());
        for (number, peer) in peers {
            let Some(name) = &peer.source else { continue };
            let Some(key) = self.thing_of(name) else {
                over.push(*number);
                *orphans.entry(name).or_default() += 1;
                continue;
            };
            match self.slots.get_mut(key).map(|slot| &mut slot.thing) {
                Some(Thing::Link(link)) => link.adopt(*number, now),
                Some(Thing::Folder(folder)) => folder.adopt(*number),
                _ => {}
            }
            self.settle(key, now);
        }
        in_parts(&over, to, |part, to| {
            to.event(FeedEvent::DownAll(part))?;
            part.iter().for_each(|&peer| to.release(peer));
            Ok(())
        })?;
        for (source, peers) in orphans {
            (self.on_report)(SourceReport {
                source: source.into(),
                what: SourceEvent::Orphans { peers },
            });
        }
        Ok(())
    }

    /// The key of the session or folder with this name, which a peer's view may follow.
    pub(super) fn thing_of(&mut self, name: &str) -> Option<usize> {
        let mut words = name.split(' ');
        let (source, running) = self.sources.get_key_value(words.next()?)?;
        let source = Arc::clone(source);
        let Some(door) = self.door(&source) else { return Some(running.main) };
        let address: IpAddr = words.next()?.parse().ok()?;
        if let Some(&key) = running.sessions.get(&address) {
            return Some(key);
        }
        let speaker = door.speaker(address)?.clone();
        (running.sessions.len() < door.limit).then(|| self.session(&source, address, &speaker))
    }
}

/// Receives the events of a session's protocol. There may be floods of damage, and of sessions that begin anew.
fn events_of(
    source: Arc<str>,
    (on_report, cut): (OnReport, Arc<CutSessions>),
    clock: SystemClock,
) -> Box<dyn Fn(Event) + Send> {
    let (damage, others) = (LogLimit::of_reports(5), LogLimit::of_reports(20));
    Box::new(move |event| {
        let report = |what| on_report(SourceReport { source: Arc::clone(&source), what });
        let limit = match &event {
            Event::CutOff { session, .. } => {
                cut.add(session);
                let source = Arc::clone(session);
                return on_report(SourceReport { source, what: SourceEvent::Protocol(event) });
            }
            Event::Damaged(_) => &damage,
            _ => &others,
        };
        match limit.admit(clock.now()) {
            None => return,
            Some(0) => {}
            Some(count) => report(SourceEvent::More { count }),
        }
        report(SourceEvent::Protocol(event));
    })
}
