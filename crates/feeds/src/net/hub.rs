//! The loop of a hub.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::time::{Duration, SystemTime};

use mio::{Events, Poll, Token, Waker};

use super::ahead::AheadTotal;
use super::cut::CutSessions;
use super::farewell::{Farewell, LAST_WORDS};
use super::handle::{Command, HubHandle, Shared};
use super::link::{Context, Shown, TURN};
use super::outbox::Outbox;
use super::report::{OnReport, SourceReport};
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
    pub(super) on_report: OnReport,
    pub(super) board: Arc<Board>,
    pub(super) slots: Slots,
    pub(super) sources: BTreeMap<Arc<str>, Running>,
    handle: HubHandle,
    pub(super) shared: Arc<Shared>,
    commands: Receiver<Command>,
    pub(super) buffer: Vec<u8>,
    pub(super) farewells: Vec<(Stream, Outbox)>,
    /// The memory of what was read ahead from all connections.
    pub(super) ahead: Arc<AheadTotal>,
    /// The sessions whose routes were removed because the table is full.
    pub(super) cut: Arc<CutSessions>,
    /// Things whose counts on the board are outdated, and the time when they are written.
    pub(super) dirty: BTreeSet<usize>,
    pub(super) write_at: Option<Duration>,
}

/// A running source.
pub(super) struct Running {
    pub(super) identity: Identity,
    pub(super) shown: Shown,
    /// The door, the folder, or the session that is opened here.
    pub(super) main: usize,
    /// The sessions of accepted connections, by remote address.
    pub(super) sessions: BTreeMap<IpAddr, usize>,
    /// The board's state of a listening source, and since when.
    pub(super) state: (SourceState, SystemTime),
}

const WAKER: Token = Token(usize::MAX);
/// Maximum number of events for each poll.
const EVENTS: usize = 256;
/// Maximum age of a source's counts on the board. Changes of its state are written at once.
const BOARD: Duration = Duration::from_millis(100);
/// Maximum number of closing connections with unsent data; further ones are closed without sending it.
const MOST_FAREWELLS: usize = 64;

impl Hub {
    /// Makes a hub without sources, which shows its sources on this board.
    ///
    /// `on_report` is called with information for the operator, on the hub's thread. It must not block.
    ///
    /// # Errors
    /// If the system cannot create a poll.
    pub fn new(
        board: Arc<Board>,
        on_report: impl Fn(SourceReport) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
        let (handle, commands) = HubHandle::new(waker);
        Ok(Self {
            poll,
            clock: SystemClock::default(),
            on_report: Arc::new(on_report),
            board,
            slots: Slots::default(),
            sources: BTreeMap::new(),
            shared: handle.shared(),
            handle,
            commands,
            buffer: vec![0; TURN],
            farewells: Vec::new(),
            ahead: Arc::default(),
            cut: Arc::default(),
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
            // Things with more to do get their next turn after all others.
            for _ in 0..self.slots.waiting() {
                if self.shared.is_stopped.load(Ordering::Acquire) {
                    return Ok(());
                }
                if let Some(key) = self.slots.pop() {
                    self.turn(key, to)?;
                    self.cut_off(to)?;
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
        // A signal may interrupt the poll; other errors mean that the poll is unusable.
        if self.poll.poll(events, wait).is_err() {
            events.clear();
        }
    }

    /// Handles readiness of a thing's sockets.
    fn turn(&mut self, key: usize, to: &mut dyn Listener) -> Result<(), FeedError> {
        let now = self.clock.now();
        let Self { slots, poll, on_report, buffer, farewells, .. } = self;
        let Some(slot) = slots.get_mut(key) else { return Ok(()) };
        let mut cx = Context { registry: poll.registry(), now, to, on_report, buffer, farewells };
        let mut accepted = Vec::new();
        let mut is_over = false;
        let has_more = match &mut slot.thing {
            Thing::Link(link) => link.turn(&mut cx)?,
            Thing::Folder(folder) => folder.turn(&mut cx)?,
            Thing::Door(door) => door.turn(now, on_report, &mut accepted),
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

    /// Handles an expired deadline of a thing.
    fn tick(&mut self, key: usize, to: &mut dyn Listener) -> Result<(), FeedError> {
        let now = self.clock.now();
        let Self { slots, poll, on_report, buffer, farewells, .. } = self;
        let Some(slot) = slots.get_mut(key) else { return Ok(()) };
        let mut cx = Context { registry: poll.registry(), now, to, on_report, buffer, farewells };
        let is_over = matches!(slot.thing, Thing::Farewell(_));
        let is_ready = match &mut slot.thing {
            Thing::Link(link) => link.tick(&mut cx)?,
            Thing::Folder(folder) => {
                folder.tick(&mut cx);
                true
            }
            Thing::Door(door) => {
                door.reopen(cx.registry, now, on_report);
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

    /// Updates the deadline, the board and the closing connections after a thing has run.
    pub(super) fn settle(&mut self, key: usize, now: Duration) {
        self.bid_farewell(now);
        self.slots.time(key, now);
        let Some(slot) = self.slots.get(key) else { return };
        if let Thing::Link(link) = &slot.thing {
            let source = Arc::clone(&slot.source);
            let is_over = link.is_over() && self.is_stranger(&source, key);
            if is_over {
                let reports = Arc::clone(&link.reports);
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

    /// Each connection with unsent data becomes a thing of its own.
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

    /// Removes the thing.
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

    /// Ends the loop: sends the remaining data of all connections and waits for them for a limited time.
    fn leave(&mut self, to: &mut dyn Listener) -> Result<(), FeedError> {
        for key in self.slots.keys() {
            let now = self.clock.now();
            let Self { slots, poll, on_report, buffer, farewells, .. } = self;
            let mut cx = Context {
                registry: poll.registry(),
                now,
                to: &mut *to,
                on_report,
                buffer,
                farewells,
            };
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
