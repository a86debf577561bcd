//! The log: collects changes for the compiler until they are due, and keeps only the last change of each prefix.
//!
//! ```text
//!   feed ── push ──► prefix → change, prefix → change, ..  ── cut, 50 ms after the first ──► compiler
//!     ▲                                                        or when 1,024 wait              │
//!     └──── waits while too many prefixes wait, or one for longer than a second ◄──── done ────┘
//! ```
//!
//! Invariants:
//! - for each prefix, the last change is published after all earlier ones or instead of them;
//! - memory is bounded by the capacity in prefixes, and by what one update can change;
//! - the compiler never waits for the feed, and the feed never waits for the compiler while it holds the RIB.

mod queue;

use std::time::{Duration, Instant};

use fibula_core::Addr;

pub(crate) use queue::Arrivals;
pub use queue::{Batch, Pacing};

use crate::Change;
use crate::sync::{AtomicU64, Condvar, Mutex, MutexGuard, Ordering, lock, wait, wait_for};
use queue::Queue;

/// The log of one table.
pub(crate) struct Log<A: Addr> {
    state: Mutex<State<A>>,
    /// 0 while there was room at the last push or cut; then the feed need not lock the state.
    is_full: AtomicU64,
    to_compiler: Condvar,
    to_feed: Condvar,
    start: Instant,
}

struct State<A: Addr> {
    queue: Queue<A>,
    /// Whether a thread waits until all changes are published.
    hurry: bool,
    /// A rebuild was requested.
    wake: bool,
    closed: bool,
    /// Whether the compiler ended too early.
    stopped: bool,
}

/// A locked log, which changes are added to. They count as arrived when it was locked.
pub(crate) struct Writer<'a, A: Addr> {
    log: &'a Log<A>,
    state: MutexGuard<'a, State<A>>,
    now: u64,
}

impl<A: Addr> Writer<'_, A> {
    /// Adds a change.
    pub(crate) fn push(&mut self, change: Change<A>, sequence: u64) {
        let Self { log, state, now } = self;
        if state.stopped {
            return; // the compiler has ended and takes no change
        }
        let (was_empty, was_enough) = (state.queue.is_empty(), state.queue.is_enough());
        state.queue.push(*now, change, sequence);
        if state.queue.is_full(*now) {
            log.set_full(state);
        }
        let is_due = state.queue.is_enough() != was_enough || state.queue.is_due_at_once();
        if was_empty || is_due {
            log.to_compiler.notify_one();
        }
    }
}

/// The reason why the compiler was woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Changes are due to be cut.
    Changes,
    /// The wait timed out, or a rebuild was requested.
    Idle,
    /// No further changes will arrive, and all were cut.
    Closed,
}

impl<A: Addr> Log<A> {
    /// A log for a table that includes the feed up to `sequence`.
    pub(crate) fn new(pacing: Pacing, sequence: u64) -> Self {
        let queue = Queue::new(pacing, sequence);
        let state = State { queue, hurry: false, wake: false, closed: false, stopped: false };
        Self {
            state: Mutex::new(state),
            is_full: AtomicU64::new(0),
            to_compiler: Condvar::new(),
            to_feed: Condvar::new(),
            start: Instant::now(),
        }
    }

    /// Microseconds since the log began.
    pub(crate) fn now(&self) -> u64 {
        self.start.elapsed().as_micros() as u64
    }

    /// How long the oldest unpublished change has waited; zero if there is none.
    pub(crate) fn lag(&self) -> Duration {
        // The lock is taken before the time, so that no change has a later time than this one.
        let state = lock(&self.state);
        Duration::from_micros(state.queue.lag(self.now()))
    }

    /// Whether to wait for room before a push. A change that becomes late while none is pushed does not count yet.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Acquire) != 0
    }

    fn set_full(&self, state: &State<A>) {
        let is_full = state.stopped || (!state.closed && state.queue.is_full(self.now()));
        self.is_full.store(is_full.into(), Ordering::Release);
    }

    /// Waits until changes may be pushed; false if the compiler ended. Call it without the RIB's lock.
    pub(crate) fn wait_for_room(&self) -> bool {
        let mut state = lock(&self.state);
        while !state.closed && state.queue.is_full(self.now()) {
            self.to_compiler.notify_one();
            state = wait(&self.to_feed, state);
        }
        self.set_full(&state);
        !state.stopped
    }

    /// Locks the log for changes. The caller holds the RIB's lock, so that each batch matches one exact RIB state.
    pub(crate) fn writer(&self) -> Writer<'_, A> {
        let state = lock(&self.state);
        Writer { log: self, state, now: self.now() }
    }

    /// Waits until a cut is due.
    pub(crate) fn wait_until_due(&self, idle: Duration) -> Due {
        let mut state = lock(&self.state);
        let since = Instant::now();
        loop {
            let due = state.queue.due(self.now());
            let hurry = state.hurry || state.closed;
            match due {
                Some(time) if hurry || time.is_zero() => return Due::Changes,
                None if state.closed => return Due::Closed,
                _ if std::mem::take(&mut state.wake) => return Due::Idle,
                due => {
                    let left = idle.saturating_sub(since.elapsed());
                    if due.is_none() && left.is_zero() {
                        return Due::Idle;
                    }
                    state = wait_for(&self.to_compiler, state, due.unwrap_or(left));
                }
            }
        }
    }

    /// Takes all waiting changes. The caller holds the RIB's lock, so the batch matches one exact RIB state.
    pub(crate) fn cut(&self) -> Batch<A> {
        let mut state = lock(&self.state);
        let batch = state.queue.cut();
        self.set_full(&state);
        // The number of pending changes is bounded again; their age counts until they are published.
        self.to_feed.notify_all();
        batch
    }

    /// Ends a batch that was published or given up. The compiler asks for a pause of `rest` before the next one.
    pub(crate) fn done(&self, rest: Duration) {
        let mut state = lock(&self.state);
        state.queue.done(self.now(), rest);
        self.set_full(&state);
        self.to_feed.notify_all();
    }

    /// Waits until all changes pushed before are published or given up; false if the compiler ended.
    pub(crate) fn flush(&self) -> bool {
        let mut state = lock(&self.state);
        while !state.queue.is_idle() && !state.closed {
            state.hurry = true;
            self.to_compiler.notify_one();
            state = wait(&self.to_feed, state);
        }
        state.hurry = false;
        !state.stopped
    }

    /// Notes that the compiler ended and that nothing will be published any more.
    pub(crate) fn stop(&self) {
        let mut state = lock(&self.state);
        state.stopped = true;
        self.set_full(&state);
        drop(state);
        self.close();
    }

    /// Wakes the compiler although nothing changed.
    pub(crate) fn wake(&self) {
        lock(&self.state).wake = true;
        self.to_compiler.notify_one();
    }

    /// Whether no more changes come.
    pub(crate) fn is_closed(&self) -> bool {
        lock(&self.state).closed
    }

    /// No more changes come.
    pub(crate) fn close(&self) {
        lock(&self.state).closed = true;
        self.to_compiler.notify_all();
        self.to_feed.notify_all();
    }
}
