//! Requests from other threads to a running hub.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};

use mio::Waker;

use super::source::{FeedSource, FeedSourceError};

/// A hub that runs on another thread. Calls with a result wait for the loop, which answers within one turn of its
/// sources.
#[derive(Clone)]
pub struct HubHandle {
    commands: Sender<Command>,
    shared: Arc<Shared>,
}

/// The state that a loop shares with its handles.
pub(super) struct Shared {
    pub(super) waker: Arc<Waker>,
    pub(super) is_stopped: AtomicBool,
    pub(super) turns: AtomicU64,
}

pub(super) enum Command {
    Add(Box<FeedSource>, Sender<Result<(), FeedSourceError>>),
    Remove(String, Sender<bool>),
    Reload(Vec<FeedSource>, Sender<Vec<FeedSourceError>>),
    Refresh(String, Sender<usize>),
    List(Sender<Vec<String>>),
}

/// The hub has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HubEnded;

impl fmt::Display for HubEnded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the feeds run no more")
    }
}

impl std::error::Error for HubEnded {}

impl HubHandle {
    pub(super) fn new(waker: Arc<Waker>) -> (Self, Receiver<Command>) {
        let (commands, receiver) = mpsc::channel();
        let shared = Shared { waker, is_stopped: false.into(), turns: 0.into() };
        (Self { commands, shared: Arc::new(shared) }, receiver)
    }

    pub(super) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    /// Makes the hub send its last messages, close its connections and [return](super::Hub::run), within a second
    /// unless the table holds it back. The routes stay.
    pub fn stop(&self) {
        self.shared.is_stopped.store(true, Ordering::Release);
        self.wake();
    }

    /// Adds a source.
    ///
    /// # Errors
    /// [`HubEnded`]; inside the result, the reason why the source cannot be run.
    pub fn add(&self, source: FeedSource) -> Result<Result<(), FeedSourceError>, HubEnded> {
        self.ask(|reply| Command::Add(Box::new(source), reply))
    }

    /// Removes a source with its routes. Returns whether it existed.
    ///
    /// # Errors
    /// [`HubEnded`].
    pub fn remove(&self, name: &str) -> Result<bool, HubEnded> {
        self.ask(|reply| Command::Remove(name.to_owned(), reply))
    }

    /// Replaces the sources by these. Unchanged sources continue with their connections. For a source that listens on
    /// the same address, this also holds for sessions with equal [settings](super::ProtocolFactory::settings).
    /// Everything else is removed or added. If a source cannot be run, nothing changes; returns the reasons.
    ///
    /// # Errors
    /// [`HubEnded`].
    pub fn reload(&self, sources: Vec<FeedSource>) -> Result<Vec<FeedSourceError>, HubEnded> {
        self.ask(|reply| Command::Reload(sources, reply))
    }

    /// Requests everything again from the source or session with this name, and keeps its routes meanwhile. This uses
    /// the protocol if it supports it, else a new connection. Returns the number of connections. Pipes and folders
    /// cannot send again.
    ///
    /// # Errors
    /// [`HubEnded`].
    pub fn refresh(&self, name: &str) -> Result<usize, HubEnded> {
        self.ask(|reply| Command::Refresh(name.to_owned(), reply))
    }

    /// The names of the sources. Their states are on the [board](crate::Board).
    ///
    /// # Errors
    /// [`HubEnded`].
    pub fn list(&self) -> Result<Vec<String>, HubEnded> {
        self.ask(Command::List)
    }

    /// Number of times that the loop has woken up. It sleeps while nothing happens.
    pub fn turns(&self) -> u64 {
        self.shared.turns.load(Ordering::Relaxed)
    }

    fn ask<T>(&self, command: impl FnOnce(Sender<T>) -> Command) -> Result<T, HubEnded> {
        let (reply, answer) = mpsc::channel();
        self.commands.send(command(reply)).map_err(|_| HubEnded)?;
        self.wake();
        answer.recv().map_err(|_| HubEnded)
    }

    fn wake(&self) {
        // The wake fails if the system has no memory; the loop then sees the command when it wakes for another reason.
        let _ = self.shared.waker.wake();
    }
}

impl fmt::Debug for HubHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").finish_non_exhaustive()
    }
}
