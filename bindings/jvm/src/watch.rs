//! When a table's file is looked at again.

use std::sync::atomic::{AtomicU64, Ordering};

/// Nanoseconds for which a file counts as the one that was opened: rows are much quicker than a look at a file.
const SURE: u64 = 100_000_000;

/// Tells one of the threads that use a table, every [`SURE`], that it is time to look at the file.
pub struct Watch(AtomicU64);

impl Watch {
    /// The first look is due after [`SURE`].
    pub fn new() -> Self {
        Self(AtomicU64::new(now() + SURE))
    }

    /// Whether the caller has to look now. The others go on with the table meanwhile.
    pub fn is_due(&self) -> bool {
        let now = now();
        let due = self.0.load(Ordering::Relaxed);
        now >= due
            && self
                .0
                .compare_exchange(due, now + SURE, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }
}

/// Nanoseconds of a clock that never goes back. It is read for each row, so it is the one that the kernel sets at its
/// ticks, some milliseconds apart, which takes a quarter of the time of an exact one.
#[cfg(target_os = "linux")]
fn now() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::MonotonicCoarse);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(not(target_os = "linux"))]
fn now() -> u64 {
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    START.get_or_init(std::time::Instant::now).elapsed().as_nanos() as u64
}
