//! The loop of a hub.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::time::{Duration, SystemTime};

use mio::{Events, Poll, Token, Waker};

use super::farewell::{Farewell, LAST_WORDS};
use super::handle::{Command, HubHandle, Shared};
use super::link::{Context, Shown, TURN};
use super::outbox::Outbox;
use super::report::{Hear, SourceReport};
use super::slots::{Slots, Thing};
use super::source::Identity;
use super::stream::Stream;
use fibula_rib::Listener;

use crate::{Board, Clock, FeedError, SourceState, SystemClock};

/// The sources without an end, their connections and their timers: all input of a table, on the one thread that calls
/// [`Hub::run`]. See [the module](super).
pub struct Hub {
    pub(super) poll: Poll,
    pub(super) clock: SystemClock,
    pub(super) hear: Hear,
    pub(super) board: Arc<Board>,
    pub(super) slots: Slots,
    pub(super) sources: BTreeMap<Arc<str>, Running>,
    handle: HubHandle,
    pub(super) shared: Arc<Shared>,
    commands: Receiver<Command>,
    pub(super) buffer: Vec<u8>,
    pub(super) farewells: Vec<(Stream, Outbox)>,
    /// Things whose figures on the board are old, and when they are written.
    pub(super) dirty: BTreeSet<usize>,
    pub(super) write_at: Option<Duration>,
}

/// A source that runs.
pub(super) struct Running {
    pub(super) identity: Identity,
    pub(super) shown: Shown,
    /// The door, the folder, or the session that is opened here.
    pub(super) main: usize,
    /// The sessions of those who came in by the door.
    pub(super) sessions: BTreeMap<IpAddr, usize>,
    /// Where it stands if it listens, and since when.
    pub(super) state: (SourceState, SystemTime),
}

const WAKER: Token = Token(usize::MAX);
/// Events that the system gives at a time.
const EVENTS: usize = 256;
/// How old the figures of a source on the board may be. Changes of its state are there at once.
const BOARD: Duration = Duration::from_millis(100);
/// Connections on which something is left to be said; beyond that it is left unsaid.
const MOST_FAREWELLS: usize = 64;

impl Hub {
    /// Makes a hub without sources, which shows its sources on this board.
    ///
    /// `hear` is called with information for the operator, on the hub's thread. It must not block.
    ///
    /// # Errors
    /// If the system cannot create a poll.
    pub fn new(
        board: Arc<Board>,
        hear: impl Fn(SourceReport) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
        let (handle, commands) = HubHandle::new(waker);
        Ok(Self {
            poll,
            clock: SystemClock::default(),
            hear: Arc::new(hear),
            board,
            slots: Slots::default(),
            sources: BTreeMap::new(),
            shared: handle.shared(),
            handle,
            commands,
            buffer: vec![0; TURN],
            farewells: Vec::new(),
            dirty: BTreeSet::new(),
            write_at: None,
        })
    }

    /// A handle for other threads.
    pub fn handle(&self) -> HubHandle {
        self.handle.clone()
    }

    /// Feeds this table until it is [stopped](HubHandle::stop).
    ///
    /// # Errors
    /// If the table accepts nothing more. The sources are then closed.
    pub fn run(mut self, to: &mut dyn Listener) -> Result<(), FeedError> {
        let ran = self.turns(to);
        let left = self.leave(to);
        ran.and(left)
    }

    fn turns(&mut self, to: &mut dyn Listener) -> Result<(), FeedError> {
        let mut events = Events::with_capacity(EVENTS);
        loop {
            let idle = to.idle();
            let now = self.clock.now();
            let timers = self.slots.first_timer().into_iter().chain(self.write_at);
            let waits = timers.map(|at| at.saturating_sub(now)).chain(idle);
            let wait = if self.slots.waiting() > 0 { Some(Duration::ZERO) } else { waits.min() };
            self.poll(&mut events, wait);
            self.shared.turns.fetch_add(1, Ordering::Relaxed);
            for event in &events {
                match event.token() {
                    WAKER => self.slots.folders().into_iter().for_each(|key| self.slots.queue(key)),
                    Token(key) => self.slots.queue(key),
                }
            }
            while let Ok(command) = self.commands.try_recv() {
                self.obey(command, to)?;
            }
            let now = self.clock.now();
            while let Some(key) = self.slots.due(now) {
                self.tick(key, to)?;
            }
            // Those that have more get their next turn behind all others.
            for _ in 0..self.slots.waiting() {
                if self.shared.is_stopped.load(Ordering::Acquire) {
                    return Ok(());
                }
                if let Some(key) = self.slots.pop() {
                    self.turn(key, to)?;
                }
            }
            if self.shared.is_stopped.load(Ordering::Acquire) {
                return Ok(());
            }
            if self.write_at.is_some_and(|at| at <= self.clock.now()) {
                self.write_board();
            }
        }
    }

    fn poll(&mut self, events: &mut Events, wait: Option<Duration>) {
        // A signal interrupts it; other failures are those of a poll that is not there.
        if self.poll.poll(events, wait).is_err() {
            events.clear();
        }
    }

    /// The thing's sockets have something to do.
    fn turn(&mut self, key: usize, to: &mut dyn Listener) -> Result<(), FeedError> {
        let now = self.clock.now();
        let Self { slots, poll, hear, buffer, farewells, .. } = self;
        let Some(slot) = slots.get_mut(key) else { return Ok(()) };
        let mut cx = Context { registry: poll.registry(), now, to, hear, buffer, farewells };
        let mut accepted = Vec::new();
        let mut is_over = false;
        let has_more = match &mut slot.thing {
            Thing::Link(link) => link.turn(&mut cx)?,
            Thing::Folder(folder) => folder.turn(&mut cx)?,
            Thing::Door(door) => door.turn(now, hear, &mut accepted),
            Thing::Farewell(farewell) => match farewell.turn(cx.buffer) {
                Some(over) => {
                    is_over = over;
                    false
                }
                None => true,
            },
        };
        if has_more {
            slots.queue(key);
        }
        let source = slots.get(key).map(|slot| Arc::clone(&slot.source));
        for (stream, address) in accepted {
            if let Some(source) = &source {
                self.accept(source, stream, address, to)?;
            }
        }
        if is_over {
            self.forget(key)
        } else {
            self.settle(key, now)
        }
        Ok(())
    }

    /// The thing's time has come.
    fn tick(&mut self, key: usize, to: &mut dyn Listener) -> Result<(), FeedError> {
        let now = self.clock.now();
        let Self { slots, poll, hear, buffer, farewells, .. } = self;
        let Some(slot) = slots.get_mut(key) else { return Ok(()) };
        let mut cx = Context { registry: poll.registry(), now, to, hear, buffer, farewells };
        let is_over = matches!(slot.thing, Thing::Farewell(_));
        let is_ready = match &mut slot.thing {
            Thing::Link(link) => link.tick(&mut cx)?,
            Thing::Folder(folder) => {
                folder.tick(&mut cx);
                true
            }
            Thing::Door(door) => {
                door.reopen(cx.registry, now, hear);
                true
            }
            Thing::Farewell(_) => false,
        };
        if is_ready {
            slots.queue(key);
        }
        if is_over {
            self.forget(key)
        } else {
            self.settle(key, now)
        }
        Ok(())
    }

    /// After something happened to a thing: its timer, its place on the board, its last words.
    pub(super) fn settle(&mut self, key: usize, now: Duration) {
        self.bid_farewell(now);
        self.slots.time(key, now);
        let Some(slot) = self.slots.get(key) else { return };
        if let Thing::Link(link) = &slot.thing {
            let source = Arc::clone(&slot.source);
            let is_over = link.is_over() && self.is_stranger(&source, key);
            if is_over {
                let reports = link.reports.clone();
                if let Some(door) = self.door_mut(&source) {
                    door.passing.keep_up(&reports);
                }
                return self.forget(key);
            }
        }
        self.dirty.insert(key);
        match self.has_changed(key) {
            true => self.write_board(),
            false => self.write_at = Some(self.write_at.unwrap_or(now + BOARD)),
        }
    }

    /// What is left to be said gets a thing of its own.
    pub(super) fn bid_farewell(&mut self, now: Duration) {
        for words in std::mem::take(&mut self.farewells) {
            if self.slots.farewells() >= MOST_FAREWELLS {
                continue;
            }
            let key = self.slots.number();
            let registry = (self.poll.registry(), Token(key));
            if let Some(farewell) = Farewell::new(words, now, registry) {
                self.slots.insert(key, "".into(), Thing::Farewell(farewell));
                self.slots.time(key, now);
                self.slots.queue(key);
            }
        }
    }

    /// The thing is no more.
    pub(super) fn forget(&mut self, key: usize) {
        let Some(slot) = self.slots.remove(key) else { return };
        self.dirty.remove(&key);
        match slot.thing {
            Thing::Link(link) => {
                self.board.remove(&link.name);
                if let Some(running) = self.sources.get_mut(&slot.source) {
                    running.sessions.retain(|_, session| *session != key);
                    let main = running.main;
                    self.dirty.insert(main);
                }
            }
            Thing::Folder(folder) => {
                self.board.remove(&folder.name);
                folder.close(self.poll.registry());
            }
            Thing::Door(_) => self.board.remove(&slot.source),
            Thing::Farewell(farewell) => farewell.close(self.poll.registry()),
        }
    }

    /// The loop ends: connections get their last words, and the time to take them.
    fn leave(&mut self, to: &mut dyn Listener) -> Result<(), FeedError> {
        for key in self.slots.keys() {
            let now = self.clock.now();
            let Self { slots, poll, hear, buffer, farewells, .. } = self;
            let mut cx =
                Context { registry: poll.registry(), now, to: &mut *to, hear, buffer, farewells };
            match slots.get_mut(key).map(|slot| &mut slot.thing) {
                Some(Thing::Link(link)) => link.leave(&mut cx),
                Some(Thing::Farewell(_)) | None => continue,
                Some(Thing::Door(_) | Thing::Folder(_)) => {}
            }
            self.forget(key);
        }
        let now = self.clock.now();
        self.bid_farewell(now);
        let mut events = Events::with_capacity(EVENTS);
        let until = now + LAST_WORDS;
        while self.slots.farewells() > 0 && self.clock.now() < until {
            for _ in 0..self.slots.waiting() {
                if let Some(key) = self.slots.pop() {
                    self.turn(key, to)?;
                }
            }
            if self.slots.farewells() == 0 {
                break;
            }
            let wait = match self.slots.waiting() {
                0 => until.saturating_sub(self.clock.now()),
                _ => Duration::ZERO,
            };
            self.poll(&mut events, Some(wait));
            events.iter().for_each(|event| self.slots.queue(event.token().0));
        }
        Ok(())
    }
}
