//! Requests to resolve neighbours, and their rate limit.

use std::collections::{HashMap, HashSet, VecDeque};
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Resolves MAC addresses.
pub trait Resolve: Send + Sync {
    /// Reports that packets wait for the neighbour with this address on the link of this port. Repeated calls are
    /// cheap: the neighbour is requested at once, and then once a second as long as it is wanted. When it is
    /// resolved, a new egress table has it.
    fn want(&self, port: u16, address: IpAddr);
}

/// Maximum number of wanted neighbours. Requests for others are dropped until these are found or given up.
const MOST_WANTED: usize = 4096;
/// Minimum time between two requests for the same neighbour.
const PAUSE: Duration = Duration::from_secs(1);
/// Maximum number of requests a second.
const RATE: u32 = 1000;

/// The neighbours that workers want, for the control thread.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    /// Not taken yet.
    all: Mutex<HashSet<(u16, IpAddr)>>,
}

impl Wanted {
    /// Whether the control thread has to be called: it was not called for this one yet.
    pub(super) fn add(&self, port: u16, address: IpAddr) -> bool {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.len() < MOST_WANTED && all.insert((port, address))
    }

    pub(super) fn take(&self) -> HashSet<(u16, IpAddr)> {
        std::mem::take(&mut *self.all.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Decides when requests are sent to the kernel.
#[derive(Debug, Default)]
pub(super) struct Questions {
    queue: VecDeque<(u32, IpAddr)>,
    queued: HashSet<(u32, IpAddr)>,
    /// The time of the last request for each neighbour, kept for the pause.
    asked: HashMap<(u32, IpAddr), Duration>,
    /// The number of allowed requests, in units of time, as of `at`.
    credit: Duration,
    at: Duration,
    pub(super) count: u64,
}

const EACH: Duration = Duration::from_nanos(1_000_000_000 / RATE as u64);

impl Questions {
    /// This neighbour is wanted, or stale.
    pub(super) fn add(&mut self, now: Duration, interface: u32, address: IpAddr) {
        let key = (interface, address);
        let is_early = self.asked.get(&key).is_some_and(|&at| now < at + PAUSE);
        if !is_early && self.queue.len() < 2 * MOST_WANTED && self.queued.insert(key) {
            self.queue.push_back(key);
        }
    }

    /// The next neighbour to request, if it is time.
    pub(super) fn next(&mut self, now: Duration) -> Option<(u32, IpAddr)> {
        let passed = now.saturating_sub(self.at);
        // At most a quarter of a second's questions at once.
        self.credit = (self.credit + passed).min(EACH * (RATE / 4));
        self.at = now;
        let left = self.credit.checked_sub(EACH)?;
        let key = self.queue.pop_front()?;
        self.credit = left;
        self.queued.remove(&key);
        if self.asked.len() >= 2 * MOST_WANTED {
            self.asked.retain(|_, at| now < *at + PAUSE);
        }
        self.asked.insert(key, now);
        self.count += 1;
        Some(key)
    }

    /// When [`Questions::next`] may have one; `None` if nothing is wanted.
    pub(super) fn deadline(&self) -> Option<Duration> {
        let missing = EACH.saturating_sub(self.credit);
        (!self.queue.is_empty()).then(|| self.at + missing)
    }
}
