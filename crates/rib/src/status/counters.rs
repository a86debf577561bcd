//! What a table that changes has done so far.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::lock_std;
use crate::log::Arrivals;

/// What happened to one table, since it began. Numbers may be read at any time.
#[derive(Debug, Default)]
pub struct Counters {
    /// Changes of best routes that came from the RIB.
    pub changes: Count,
    /// Generations that were published, the first aside.
    pub generations: Count,
    /// Of these, engines that were compiled anew.
    pub rebuilds: Count,
    /// Of these, engines that were patched.
    pub patches: Count,
    /// Times that no engine could be made; the last good generation went on serving.
    pub failures: Count,
    /// Probes that the audit made.
    pub probes: Count,
    /// Probes in which the live engine differed from the RIB.
    pub differences: Count,
    /// Milliseconds for which the compiler waited for readers that rest on old generations.
    pub stalled_ms: Count,
    /// Nanoseconds that making engines took.
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
    /// How long changes took from the RIB to the readers.
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
        self.max = self.max.max(micros);
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The latency that this share of them does not exceed, 0 to 1; rounded up.
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

    /// The largest.
    pub fn max(&self) -> Duration {
        Duration::from_micros(self.max)
    }

    /// Takes those of another table in.
    pub fn merge(&mut self, other: &Self) {
        self.steps.resize(Self::STEPS, 0);
        self.steps.iter_mut().zip(&other.steps).for_each(|(step, more)| *step += more);
        self.count += other.count;
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
        latencies.add(9_000_000, 1);
        assert_eq!((latencies.max().as_secs(), latencies.count()), (9, 101));
    }
}
