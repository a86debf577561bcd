//! Adds, removes and replaces sources, and assigns the routes of a checkpoint to them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::SystemTime;

use mio::Token;

use super::door::Door;
use super::folder::Reader;
use super::handle::Command;
use super::hub::{Hub, Running};
use super::link::{Context, Shown, Via};
use super::report::{Happened, Report};
use super::slots::Thing;
use super::source::{Endpoint, Listen, Source, SourceError};
use crate::{Clock, FeedError, Listener, SourceState};

impl Hub {
    /// Adds a source. If it listens, it does so from now on; everything else begins with [`Hub::run`].
    ///
    /// # Errors
    /// [`SourceError`].
    pub fn add(&mut self, source: Source) -> Result<(), SourceError> {
        source.check()?;
        let name: Arc<str> = source.name.as_str().into();
        if self.sources.contains_key(&name) {
            return Err(SourceError::Twice { name: source.name });
        }
        let identity = source.identity();
        let shown =
            Shown { kind: source.kind, table: source.table, endpoint: source.endpoint.text() };
        let key = self.slots.number();
        let named = (Arc::clone(&name), shown.clone());
        let (via, speaker) = match source.endpoint {
            Endpoint::Listen(listen) => {
                let thing = self.open_door(&name, listen, key)?;
                self.start(name, (identity, shown), key, thing);
                return Ok(());
            }
            Endpoint::Folder(folder) => {
                let waker = Arc::clone(&self.shared.waker);
                let reader = Reader::new(named, folder, Token(key), waker)
                    .map_err(|error| SourceError::Thread { name: source.name, error })?;
                let thing = Thing::Folder(Box::new(reader));
                self.start(name, (identity, shown), key, thing);
                return Ok(());
            }
            Endpoint::Connect { address, speaker, retry } => {
                (Via::Connect(address, retry), speaker)
            }
            Endpoint::Path { path, speaker } => (Via::Path(path), speaker),
            Endpoint::Device { open, speaker, retry, .. } => (Via::Device(open, retry), speaker),
        };
        let mut link = self.link(named, None, &speaker, via, key);
        link.begin_at(self.clock.now());
        self.start(name, (identity, shown), key, Thing::Link(Box::new(link)));
        Ok(())
    }

    fn open_door(&self, name: &Arc<str>, listen: Listen, key: usize) -> Result<Thing, SourceError> {
        let address = listen.address;
        let registry = (self.poll.registry(), Token(key));
        let door = Door::open(Arc::clone(name), listen, registry)
            .map_err(|error| SourceError::Listen { name: name.to_string(), address, error })?;
        let what = Happened::Listening { address: door.address };
        (self.hear)(Report { source: Arc::clone(name), what });
        Ok(Thing::Door(door))
    }

    fn start(
        &mut self,
        name: Arc<str>,
        (identity, shown): (super::source::Identity, Shown),
        key: usize,
        thing: Thing,
    ) {
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
        // Whoever asked may be gone.
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

    fn remove(&mut self, name: &str, to: &mut dyn Listener) -> Result<bool, FeedError> {
        let Some(running) = self.sources.get(name) else { return Ok(false) };
        let keys: Vec<usize> = running.sessions.values().copied().chain([running.main]).collect();
        for key in keys {
            self.end(key, to)?;
        }
        self.sources.remove(name);
        Ok(true)
    }

    /// The thing and its routes are no more.
    fn end(&mut self, key: usize, to: &mut dyn Listener) -> Result<(), FeedError> {
        let now = self.clock.now();
        let Self { slots, poll, hear, buffer, farewells, .. } = self;
        let mut cx = Context { registry: poll.registry(), now, to, hear, buffer, farewells };
        match slots.get_mut(key).map(|slot| &mut slot.thing) {
            Some(Thing::Link(link)) => link.end(&mut cx)?,
            Some(Thing::Folder(folder)) => folder.end(cx.to)?,
            Some(Thing::Door(_) | Thing::Farewell(_)) | None => {}
        }
        self.forget(key);
        self.bid_farewell(now);
        Ok(())
    }

    fn reload(
        &mut self,
        sources: Vec<Source>,
        to: &mut dyn Listener,
    ) -> Result<Vec<SourceError>, FeedError> {
        let mut failed = Vec::new();
        let mut names = BTreeSet::new();
        let mut wanted = Vec::new();
        for source in sources {
            match names.insert(source.name.clone()) {
                true => wanted.push(source),
                false => failed.push(SourceError::Twice { name: source.name }),
            }
        }
        // First all that goes: what comes may need its addresses.
        let stays = |name: &str, running: &Running| {
            let source = wanted.iter().find(|source| source.name == name);
            source.is_some_and(|source| source.identity() == running.identity)
        };
        let gone = self.sources.iter().filter(|(name, running)| !stays(name, running));
        for name in gone.map(|(name, _)| Arc::clone(name)).collect::<Vec<_>>() {
            self.remove(&name, to)?;
        }
        for source in wanted {
            let added = match (self.sources.contains_key(&*source.name), source.endpoint) {
                (true, Endpoint::Listen(listen)) => self.change(&source.name, listen, to)?,
                (true, _) => Ok(()),
                (false, endpoint) => self.add(Source { endpoint, ..source }),
            };
            failed.extend(added.err());
        }
        Ok(failed)
    }

    /// A source that listens on the same address has other speakers.
    fn change(
        &mut self,
        name: &str,
        listen: Listen,
        to: &mut dyn Listener,
    ) -> Result<Result<(), SourceError>, FeedError> {
        let Some((name, running)) = self.sources.get_key_value(name) else { return Ok(Ok(())) };
        let (name, main) = (Arc::clone(name), running.main);
        let sessions = running.sessions.clone();
        let address = listen.address;
        let Some(Thing::Door(door)) = self.slots.get_mut(main).map(|slot| &mut slot.thing) else {
            return Ok(Ok(()));
        };
        let changed = door.change(listen).map_err(|error| SourceError::Listen {
            name: name.to_string(),
            address,
            error,
        });
        for (address, key) in sessions {
            let speaker = self.door(&name).and_then(|door| door.speaker(address));
            let Some(Thing::Link(link)) = self.slots.get(key).map(|slot| &slot.thing) else {
                continue;
            };
            if speaker.is_none_or(|speaker| speaker.settings != link.settings) {
                self.end(key, to)?;
            }
        }
        self.name_hosts(&name);
        Ok(changed)
    }

    fn refresh(&mut self, name: &str, to: &mut dyn Listener) -> Result<usize, FeedError> {
        let now = self.clock.now();
        let is_of = |name: &str, source: &str| name.split(' ').next() == Some(source);
        let keys = self.sources.iter().filter(|(source, _)| is_of(name, source));
        let keys: Vec<usize> = keys
            .flat_map(|(_, running)| running.sessions.values().copied().chain([running.main]))
            .collect();
        let mut asked = 0;
        for key in keys {
            let Self { slots, poll, hear, buffer, farewells, .. } = self;
            let Some(slot) = slots.get_mut(key) else { continue };
            let Thing::Link(link) = &mut slot.thing else { continue };
            if name != &*slot.source && name != &*link.name {
                continue;
            }
            let to = &mut *to;
            let mut cx = Context { registry: poll.registry(), now, to, hear, buffer, farewells };
            asked += usize::from(link.refresh(&mut cx)?);
            self.settle(key, now);
        }
        Ok(asked)
    }
}
