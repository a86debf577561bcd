//! Wakes a thread that waits for others.
//!
//! A thread without work announces that it sleeps, checks for work once more, and waits. A thread that adds work
//! rings afterwards, which costs a fence and a load while the other one is awake. Either the sleeper sees the work,
//! or the other thread sees that it sleeps, because both have a fence between their write and their read.

use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::os::fd::{AsFd, BorrowedFd};

use crate::sync::{AtomicBool, Ordering, fence};

/// How a thread is woken that waits.
pub(super) trait Signal {
    /// Wakes it. Called once for each [`Signal::clear`].
    fn raise(&self);
    /// Takes the signal back, once it was raised or while it is being raised.
    fn clear(&self);
}

pub(super) struct Bell<S = Pipe> {
    asleep: AtomicBool,
    signal: S,
}

impl<S: Signal> Bell<S> {
    pub(super) fn with(signal: S) -> Self {
        Self { asleep: AtomicBool::new(false), signal }
    }

    /// Wakes the sleeper, if it sleeps. Called after something was put where it looks.
    #[inline]
    pub(super) fn ring(&self) {
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) && self.asleep.swap(false, Ordering::AcqRel) {
            self.signal.raise();
        }
    }

    /// Says that the caller is going to wait. It looks once more whether there is something to do, waits for the
    /// signal if not, and calls [`Bell::wake`] in any case.
    pub(super) fn sleep(&self) {
        self.asleep.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Says that it is awake again.
    pub(super) fn wake(&self) {
        if !self.asleep.swap(false, Ordering::AcqRel) {
            self.signal.clear();
        }
    }

    #[cfg(test)]
    pub(super) fn signal(&self) -> &S {
        &self.signal
    }
}

/// A byte in a pipe, which poll(2) sees beside sockets.
pub(super) struct Pipe {
    read: PipeReader,
    write: PipeWriter,
}

impl Bell {
    pub(super) fn new() -> std::io::Result<Self> {
        let (read, write) = pipe()?;
        Ok(Self::with(Pipe { read, write }))
    }

    /// Can be read from while the signal is raised.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.signal.read.as_fd()
    }
}

impl Signal for Pipe {
    fn raise(&self) {
        // At most one byte is on its way, so there is room. Both ends are ours: neither is closed, and a
        // signal handler restarts the call.
        let _ = (&self.write).write_all(&[1]);
    }

    fn clear(&self) {
        let _ = (&self.read).read_exact(&mut [0]);
    }
}
