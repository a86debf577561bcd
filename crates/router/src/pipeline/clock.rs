//! The pipeline's clock: nanoseconds since it started.

use std::cell::Cell;
use std::time::{Duration, Instant};

#[derive(Clone)]
pub(super) struct Clock {
    started: Instant,
    last: Cell<u64>,
}

impl Clock {
    pub(super) fn new(started: Instant) -> Self {
        Self { started, last: Cell::new(0) }
    }

    /// The time, asked of the system: some 20 ns.
    #[inline]
    pub(super) fn now(&self) -> u64 {
        let now = self.started.elapsed().as_nanos() as u64;
        self.last.set(now);
        now
    }

    /// The time when this thread asked last.
    #[inline]
    pub(super) fn last(&self) -> u64 {
        self.last.get()
    }

    pub(super) fn instant(&self, nanos: u64) -> Instant {
        self.started + Duration::from_nanos(nanos)
    }
}
