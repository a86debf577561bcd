//! Adds and removes sources, and does what handles ask for.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use mio::Token;

use super::door::Door;
use super::folder::Reader;
use super::handle::Command;
use super::hub::{Hub, Running};
use super::link::{Context, Shown, Via};
use super::report::{SourceEvent, SourceReport};
use super::slots::Thing;
use super::source::{Endpoint, FeedSource, FeedSourceError, Identity, ProtocolFactory};
use fibula_rib::Listener;

use crate::{Clock, FeedError, SourceState};

/// A source that is open but does not run yet.
pub(super) struct Made {
    name: Arc<str>,
    identity: Identity,
    shown: Shown,
    key: usize,
    pub(super) thing: Thing,
}

impl Hub {
    /// Adds a source. If it listens, it does so from now on; everything else begins with [`Hub::run`].
    ///
    /// # Errors
    /// [`FeedSourceError`].
    pub fn add(&mut self, source: FeedSource) -> Result<(), FeedSourceError> {
        source.check()?;
        let name: Arc<str> = source.name.as_str().into();
        if self.sources.contains_key(&name) {
            return Err(FeedSourceError::Twice { name: source.name });
        }
        let made = self.make(source)?;
        self.start(made);
        Ok(())
    }

    /// Opens a source without showing it on the board.
    pub(super) fn make(&mut self, source: FeedSource) -> Result<Made, FeedSourceError> {
        let name: Arc<str> = source.name.as_str().into();
        let identity = source.identity();
        let shown =
            Shown { kind: source.kind, table: source.table, endpoint: source.endpoint.text() };
        let key = self.slots.number();
        let named = (Arc::clone(&name), shown.clone());
        let to_open = |via, speaker: &ProtocolFactory| {
            let mut link = self.link(named.clone(), None, speaker, via, key);
            link.begin_at(self.clock.now());
            Thing::Link(Box::new(link))
        };
        let thing = match source.endpoint {
            Endpoint::Listen(listen) => {
                let address = listen.address;
                let registry = (self.poll.registry(), Token(key));
                let door = Door::open(Arc::clone(&name), listen, registry).map_err(|error| {
                    FeedSourceError::Listen { name: source.name, address, error }
                })?;
                Thing::Door(Box::new(door))
            }
            Endpoint::Folder(folder) => {
                let shared = (Arc::clone(&self.shared.waker), Arc::clone(&self.cut));
                let reader = Reader::new(named, folder, Token(key), shared)
                    .map_err(|error| FeedSourceError::Thread { name: source.name, error })?;
                Thing::Folder(Box::new(reader))
            }
            Endpoint::Connect { address, speaker, retry } => {
                to_open(Via::Connect(address, retry), &speaker)
            }
            Endpoint::Path { path, speaker } => to_open(Via::Path(path), &speaker),
            Endpoint::Device { open, speaker, retry, .. } => {
                to_open(Via::Device(open, retry), &speaker)
            }
        };
        Ok(Made { name, identity, shown, key, thing })
    }

    pub(super) fn start(&mut self, made: Made) {
        let Made { name, identity, shown, key, thing } = made;
        if let Thing::Door(door) = &thing {
            let what = SourceEvent::Listening { address: door.address };
            (self.on_report)(SourceReport { source: Arc::clone(&name), what });
        }
        let state = (SourceState::Idle, SystemTime::now());
        let running = Running { identity, shown, main: key, sessions: BTreeMap::new(), state };
        self.sources.insert(Arc::clone(&name), running);
        self.slots.insert(key, Arc::clone(&name), thing);
        self.name_hosts(&name);
        self.settle(key, self.clock.now());
    }

    pub(super) fn obey(
        &mut self,
        command: Command,
        to: &mut dyn Listener,
    ) -> Result<(), FeedError> {
        // The thread that sent the request may have ended.
        match command {
            Command::Add(source, reply) => drop(reply.send(self.add(*source))),
            Command::Remove(name, reply) => drop(reply.send(self.remove(&name, to)?)),
            Command::Reload(sources, reply) => drop(reply.send(self.reload(sources, to)?)),
            Command::Refresh(name, reply) => drop(reply.send(self.refresh(&name, to)?)),
            Command::List(reply) => {
                drop(reply.send(self.sources.keys().map(ToString::to_string).collect()));
            }
        }
        Ok(())
    }

    pub(super) fn remove(&mut self, name: &str, to: &mut dyn Listener) -> Result<bool, FeedError> {
        let Some(running) = self.sources.get(name) else { return Ok(false) };
        let keys: Vec<usize> = running.sessions.values().copied().chain([running.main]).collect();
        for key in keys {
            self.end(key, to)?;
        }
        self.sources.remove(name);
        Ok(true)
    }

    /// Removes the thing and its routes.
    pub(super) fn end(&mut self, key: usize, to: &mut dyn Listener) -> Result<(), FeedError> {
        let now = self.clock.now();
        let Self { slots, poll, on_report, buffer, farewells, .. } = self;
        let mut cx = Context { registry: poll.registry(), now, to, on_report, buffer, farewells };
        match slots.get_mut(key).map(|slot| &mut slot.thing) {
            Some(Thing::Link(link)) => link.end(&mut cx)?,
            Some(Thing::Folder(folder)) => folder.end(cx.to)?,
            Some(Thing::Door(_) | Thing::Farewell(_)) | None => {}
        }
        self.forget(key);
        self.bid_farewell(now);
        Ok(())
    }

    fn refresh(&mut self, name: &str, to: &mut dyn Listener) -> Result<usize, FeedError> {
        let now = self.clock.now();
        let is_of = |name: &str, source: &str| name.split(' ').next() == Some(source);
        let keys = self.sources.iter().filter(|(source, _)| is_of(name, source));
        let keys: Vec<usize> = keys
            .flat_map(|(_, running)| running.sessions.values().copied().chain([running.main]))
            .collect();
        let mut requested = 0;
        for key in keys {
            let Self { slots, poll, on_report, buffer, farewells, .. } = self;
            let Some(slot) = slots.get_mut(key) else { continue };
            let Thing::Link(link) = &mut slot.thing else { continue };
            if name != &*slot.source && name != &*link.name {
                continue;
            }
            let to = &mut *to;
            let mut cx =
                Context { registry: poll.registry(), now, to, on_report, buffer, farewells };
            requested += usize::from(link.refresh(&mut cx)?);
            self.settle(key, now);
        }
        Ok(requested)
    }
}
