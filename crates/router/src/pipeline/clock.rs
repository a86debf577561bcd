//! The pipeline's clock: nanoseconds since it started.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// The clock is read once a burst, and between the stages of one in this many bursts. The number is odd, so that ports
/// that take turns are timed equally.
const TIMED: u64 = 17;

#[derive(Clone)]
pub(super) struct Clock {
    started: Instant,
    last: Cell<u64>,
    bursts: Cell<u64>,
    is_timed: Cell<bool>,
}

impl Clock {
    pub(super) fn new(started: Instant) -> Self {
        let (last, bursts, is_timed) = (Cell::new(0), Cell::new(0), Cell::new(true));
        Self { started, last, bursts, is_timed }
    }

    /// The time, read from the system, which takes some 20 ns.
    #[inline]
    pub(super) fn now(&self) -> u64 {
        let now = self.started.elapsed().as_nanos() as u64;
        self.last.set(now);
        now
    }

    /// The time of this thread's last read.
    #[inline]
    pub(super) fn last(&self) -> u64 {
        self.last.get()
    }

    /// Packets of another burst are here. The stages of the first one are timed.
    #[inline]
    pub(super) fn begin(&self) {
        self.is_timed.set(self.bursts.replace(self.bursts.get() + 1).is_multiple_of(TIMED));
    }

    /// A stage that began at that time ends. Returns the time to count for it, such that the sum over all bursts is an
    /// estimate.
    #[inline]
    pub(super) fn stage(&self, began: u64) -> u64 {
        if self.is_timed.get() { TIMED * self.now().saturating_sub(began) } else { 0 }
    }

    pub(super) fn instant(&self, nanos: u64) -> Instant {
        self.started + Duration::from_nanos(nanos)
    }
}
