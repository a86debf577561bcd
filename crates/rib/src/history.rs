//! The last changes of best routes, for monitoring.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fibula_core::{Addr, AnyPrefix, Vrf};

use crate::status::lock_std;
use crate::{AttributeSet, Change};

/// A change of the best route of a prefix, as [`History`] keeps it.
#[derive(Clone, Debug, PartialEq)]
pub struct Changed {
    /// Its number: one more than the number of the change before.
    pub id: u64,
    /// The time of the change, in microseconds since 1970.
    pub time: u64,
    /// The VRF.
    pub vrf: Vrf,
    /// The prefix.
    pub prefix: AnyPrefix,
    /// The peer of the best path. If the route is gone, the peer of its last path.
    pub peer: u32,
    /// The attributes of the best path; `None` if the route is gone.
    pub best: Option<AttributeSet>,
    /// If the route is gone: the origin AS of its last path, if that was a BGP path.
    pub last_origin: Option<u32>,
    /// Whether a peer's session ended, and took its routes with it: not an update of one route.
    pub is_of_end: bool,
}

/// The result of [`History::since`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Since {
    /// The changes, the oldest first.
    pub changes: Vec<Changed>,
    /// The id for the next call.
    pub next: u64,
    /// Number of changes that the reader missed because they are no longer kept.
    pub lost: u64,
}

/// The last changes of best routes of a [`Live`](crate::Live) table, by id. Their number is bounded. Any number of
/// threads may read.
pub struct History {
    ring: Mutex<Ring>,
    more: Condvar,
    capacity: usize,
}

struct Ring {
    changes: VecDeque<Changed>,
    /// The id of the change that comes next.
    next: u64,
    waiting: usize,
}

impl History {
    /// A history of at most this number of changes.
    pub(crate) fn new(capacity: usize) -> Self {
        let ring = Ring { changes: VecDeque::new(), next: 1, waiting: 0 };
        Self { ring: Mutex::new(ring), more: Condvar::new(), capacity }
    }

    pub(crate) fn push<A: Addr>(&self, vrf: Vrf, change: &Change<A>, is_of_end: bool) {
        if self.capacity == 0 {
            return;
        }
        let time =
            SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros() as u64;
        let best = change.best.as_ref().map(|(_, set)| set.clone());
        let mut ring = lock_std(&self.ring);
        if ring.changes.len() == self.capacity {
            ring.changes.pop_front();
        }
        let (id, prefix) = (ring.next, AnyPrefix::from(change.prefix));
        let &Change { peer, last_origin, .. } = change;
        let changed = Changed { id, time, vrf, prefix, peer, best, last_origin, is_of_end };
        ring.changes.push_back(changed);
        ring.next += 1;
        if ring.waiting > 0 {
            self.more.notify_all();
        }
    }

    /// The id of the next change.
    pub fn next(&self) -> u64 {
        lock_std(&self.ring).next
    }

    /// The oldest changes from this id on, up to a maximum number.
    pub fn since(&self, id: u64, most: usize) -> Since {
        let ring = lock_std(&self.ring);
        let first = ring.next - ring.changes.len() as u64;
        let from = id.clamp(first, ring.next);
        let changes: Vec<_> =
            ring.changes.iter().skip((from - first) as usize).take(most).cloned().collect();
        Since { next: from + changes.len() as u64, changes, lost: from.saturating_sub(id) }
    }

    /// The newest changes for which `which` is true, up to a maximum number, newest first.
    pub fn recent(&self, most: usize, mut which: impl FnMut(&Changed) -> bool) -> Vec<Changed> {
        let ring = lock_std(&self.ring);
        ring.changes.iter().rev().filter(|change| which(change)).take(most).cloned().collect()
    }

    /// Waits for a change with this id or a later one, up to a maximum time. Returns whether there is one.
    pub fn wait(&self, id: u64, most: Duration) -> bool {
        let until = Instant::now() + most;
        let mut ring = lock_std(&self.ring);
        while ring.next <= id {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            ring.waiting += 1;
            let woken = self.more.wait_timeout(ring, left);
            ring = woken.unwrap_or_else(PoisonError::into_inner).0;
            ring.waiting -= 1;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(history: &History, prefix: &str) {
        let prefix = prefix.parse().unwrap();
        history.push(3, &Change::<u32> { prefix, peer: 7, best: None, last_origin: None }, false);
    }

    #[test]
    fn a_bounded_number_of_changes_is_kept_in_order() {
        let history = History::new(3);
        assert_eq!(history.since(1, 9), Since { next: 1, ..Since::default() });
        for prefix in ["10.0.0.0/8", "10.1.0.0/16", "10.2.0.0/16", "10.3.0.0/16"] {
            push(&history, prefix);
        }
        let ids = |since: &Since| since.changes.iter().map(|c| c.id).collect::<Vec<_>>();
        let all = history.since(1, 9);
        assert_eq!((ids(&all), all.next, all.lost), (vec![2, 3, 4], 5, 1));
        let part = history.since(3, 1);
        assert_eq!((ids(&part), part.next, part.lost), (vec![3], 4, 0));
        // An id from before a restart, which is not there yet.
        assert_eq!(history.since(99, 9).next, 5);
        let (vrf, peer) = (all.changes[0].vrf, all.changes[0].peer);
        assert_eq!((vrf, peer, all.changes[0].prefix.to_string().as_str()), (3, 7, "10.1.0.0/16"));
        let odd = history.recent(2, |change| change.id % 2 == 1);
        assert_eq!(odd.iter().map(|c| c.id).collect::<Vec<_>>(), [3]);
        assert_eq!(history.recent(2, |_| true).len(), 2);
        assert_eq!(history.next(), 5);
    }

    #[test]
    fn readers_wait_for_more() {
        let history = History::new(8);
        assert!(!history.wait(1, Duration::from_millis(1)));
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| history.wait(2, Duration::from_secs(60)));
            push(&history, "10.0.0.0/8");
            push(&history, "10.0.0.0/8");
            assert!(reader.join().unwrap());
        });
        assert!(history.wait(2, Duration::ZERO));
    }

    #[test]
    fn without_capacity_nothing_is_kept() {
        let history = History::new(0);
        push(&history, "10.0.0.0/8");
        assert_eq!(history.next(), 1);
    }
}
