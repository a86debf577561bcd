//! The counters of a live table.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::lock_std;
use crate::log::Arrivals;

/// The counters of one table since its start. They may be read at any time.
#[derive(Debug, Default)]
pub struct Counters {
    /// Changes of best routes that came from the RIB.
    pub changes: Count,
    /// Published generations, without the first.
    pub generations: Count,
    /// Generations whose engine was built.
    pub rebuilds: Count,
    /// Generations whose engine was patched.
    pub patches: Count,
    /// Number of times that every engine failed, and the last good generation stayed in use.
    pub failures: Count,
    /// Probes of the audit.
    pub probes: Count,
    /// Probes in which the live engine differed from the RIB.
    pub differences: Count,
    /// Milliseconds for which the compiler waited for readers that hold old generations.
    pub stalled_ms: Count,
    /// Nanoseconds spent building and patching engines.
    pub making_ns: Count,
    visible: Mutex<Latencies>,
}

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// The number.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }
}

impl Counters {
    /// The latency of changes from the RIB to the readers.
    pub fn visible(&self) -> Latencies {
        lock_std(&self.visible).clone()
    }

    pub(crate) fn published(&self, now: u64, arrivals: &Arrivals) {
        let mut visible = lock_std(&self.visible);
        for &(since, changes) in &arrivals.0 {
            visible.add(now.saturating_sub(since), changes);
        }
    }
}

/// A histogram of latencies in steps of a quarter of a millisecond, up to two seconds; the largest is
/// exact.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latencies {
    steps: Vec<u64>,
    count: u64,
    sum: u64,
    max: u64,
}

impl Latencies {
    const STEP: u64 = 250;
    const STEPS: usize = 8000;

    fn add(&mut self, micros: u64, count: u64) {
        self.steps.resize(Self::STEPS, 0);
        let step = usize::try_from(micros / Self::STEP).unwrap_or(usize::MAX);
        self.steps[step.min(Self::STEPS - 1)] += count;
        self.count += count;
        self.sum += micros * count;
        self.max = self.max.max(micros);
    }

    /// Number of latencies.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The sum of all latencies.
    pub fn sum(&self) -> Duration {
        Duration::from_micros(self.sum)
    }

    /// Number of latencies up to a limit of less than two seconds, which is rounded down to a quarter of a millisecond.
    pub fn up_to(&self, limit: Duration) -> u64 {
        let steps = limit.as_micros() as usize / Self::STEP as usize;
        self.steps.iter().take(steps).sum()
    }

    /// The latency that this share (0 to 1) of changes does not exceed, rounded up.
    pub fn quantile(&self, share: f64) -> Duration {
        let rank = (self.count as f64 * share).ceil() as u64;
        let mut seen = 0;
        for (step, count) in (1..).zip(&self.steps) {
            seen += count;
            if seen >= rank && *count > 0 {
                return Duration::from_micros((step * Self::STEP).min(self.max));
            }
        }
        self.max()
    }

    /// The largest latency.
    pub fn max(&self) -> Duration {
        Duration::from_micros(self.max)
    }

    /// Adds the latencies of another table.
    pub fn merge(&mut self, other: &Self) {
        self.steps.resize(Self::STEPS, 0);
        self.steps.iter_mut().zip(&other.steps).for_each(|(step, more)| *step += more);
        self.count += other.count;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_rounded_up() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.quantile(0.5), Duration::ZERO);
        for ms in 1..=100 {
            latencies.add(ms * 1000 - 1, 1);
        }
        assert_eq!(latencies.quantile(0.5), Duration::from_millis(50));
        assert_eq!(latencies.quantile(0.99), Duration::from_millis(99));
        assert_eq!(latencies.quantile(1.0), latencies.max());
        assert_eq!(latencies.sum(), Duration::from_micros(5_050_000 - 100));
        let up_to = |ms| latencies.up_to(Duration::from_millis(ms));
        assert_eq!((up_to(0), up_to(1), up_to(50), up_to(100), up_to(1999)), (0, 1, 50, 100, 100));
        latencies.add(9_000_000, 1);
        assert_eq!((latencies.max().as_secs(), latencies.count()), (9, 101));
    }
}
