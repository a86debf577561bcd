//! The time of one thread.

use std::time::Duration;

/// The processor time that this thread has used. Differences of it do not count what other threads of a shared machine
/// take. Elsewhere than on Unix it is the time since the first call.
#[cfg(unix)]
pub fn thread_time() -> Duration {
    use rustix::time::{ClockId, clock_gettime};

    let time = clock_gettime(ClockId::ThreadCPUTime);
    // The kernel's numbers are not negative, and its nanoseconds are fewer than a second's.
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

/// The time since the first call.
#[cfg(not(unix))]
pub fn thread_time() -> Duration {
    use std::sync::OnceLock;
    use std::time::Instant;

    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}

/// How long this thread computes for a call.
pub fn timed<T>(call: impl FnOnce() -> T) -> (T, Duration) {
    let start = thread_time();
    let result = call();
    (result, thread_time().saturating_sub(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The clock goes on while the thread computes, and hardly while it sleeps.
    #[test]
    #[cfg(unix)]
    fn sleep_does_not_count() {
        let ((), asleep) = timed(|| std::thread::sleep(Duration::from_millis(50)));
        let sum = |n: u64| (0..n).fold(1, |sum: u64, i| std::hint::black_box(sum ^ i));
        let (_, busy) = timed(|| sum(2_000_000));
        assert!(asleep < Duration::from_millis(40), "{asleep:?}");
        assert!(busy > Duration::from_micros(200), "{busy:?}");
    }
}
