//! The contents of the log, and the times when they are due, without threads and clock.

use std::time::Duration;

use fibula_core::{Addr, Prefix};
use hashbrown::HashMap;

use crate::Change;

/// The pace of publishing, and the limits of waiting changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pacing {
    /// How long the first change of a burst waits for more changes, unless [`Pacing::ENOUGH`] prefixes wait earlier.
    pub bucket: Duration,
    /// The age of a change at which the feed is held back.
    pub late: Duration,
    /// The number of waiting prefixes at which the feed is held back. This bounds the memory.
    pub capacity: usize,
}

impl Pacing {
    /// So many waiting prefixes are compiled at once. A batch costs some time however small it is, as much as a few
    /// hundred changes: larger batches would save little, and all of their changes would be visible later.
    pub const ENOUGH: usize = 1024;
}

impl Default for Pacing {
    /// 50 ms, 1 s, 131,072 prefixes.
    fn default() -> Self {
        let ms = Duration::from_millis;
        Self { bucket: ms(50), late: ms(1000), capacity: 1 << 17 }
    }
}

/// The changes since the last cut, the last one of each prefix.
pub(super) struct Queue<A: Addr> {
    pub(super) pacing: Pacing,
    pending: HashMap<Prefix<A>, Change<A>>,
    /// The arrival time of the first waiting change.
    oldest: Option<u64>,
    /// The arrival time of the first change that was cut and is not published.
    in_flight: Option<u64>,
    /// No cut is due before this time, unless too many prefixes wait.
    rests_until: u64,
    arrivals: Arrivals,
    sequence: u64,
}

/// The changes that are published together.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch<A: Addr> {
    /// The last change of each prefix, sorted by prefix.
    pub changes: Vec<Change<A>>,
    /// The position in the feed of the last update in these changes.
    pub sequence: u64,
    /// The arrival times of the changes.
    pub(crate) arrivals: Arrivals,
}

/// Number of changes that arrived in each millisecond: `(begin in microseconds, changes)`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Arrivals(pub(crate) Vec<(u64, u64)>);

/// The resolution of arrival times, in microseconds.
const SLOT: u64 = 1000;

impl Arrivals {
    fn add(&mut self, now: u64) {
        let slot = now / SLOT * SLOT;
        match self.0.last_mut() {
            Some((begin, count)) if *begin == slot => *count += 1,
            _ => self.0.push((slot, 1)),
        }
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

impl<A: Addr> Queue<A> {
    pub(super) fn new(pacing: Pacing, sequence: u64) -> Self {
        Self {
            pacing,
            pending: HashMap::new(),
            oldest: None,
            in_flight: None,
            rests_until: 0,
            arrivals: Arrivals::default(),
            sequence,
        }
    }

    /// Adds a change at this time, in microseconds. It replaces an earlier change of its prefix.
    pub(super) fn push(&mut self, now: u64, change: Change<A>, sequence: u64) {
        self.pending.insert(change.prefix, change);
        self.oldest.get_or_insert(now);
        self.arrivals.add(now);
        self.sequence = sequence;
    }

    /// Whether the feed must wait, because too many prefixes wait or one has waited for too long.
    pub(super) fn is_full(&self, now: u64) -> bool {
        let is_late = self.lag(now) > micros(self.pacing.late);
        is_late || self.pending.len() >= self.pacing.capacity
    }

    /// How long the oldest unpublished change has waited, in microseconds; 0 if there is none.
    pub(super) fn lag(&self, now: u64) -> u64 {
        let oldest = [self.oldest, self.in_flight].into_iter().flatten().min();
        oldest.map_or(0, |since| now.saturating_sub(since))
    }

    /// Whether a larger batch would save little.
    pub(super) fn is_enough(&self) -> bool {
        self.pending.len() >= Pacing::ENOUGH
    }

    /// Whether a cut is due, however long the compiler wants to pause.
    pub(super) fn is_due_at_once(&self) -> bool {
        self.pending.len() >= self.pacing.capacity
    }

    /// How long until a cut is due; `None` if nothing waits.
    pub(super) fn due(&self, now: u64) -> Option<Duration> {
        let since = self.oldest?;
        if self.is_due_at_once() {
            return Some(Duration::ZERO);
        }
        let wait = if self.is_enough() { 0 } else { micros(self.pacing.bucket) };
        let at = since.saturating_add(wait).max(self.rests_until);
        Some(Duration::from_micros(at.saturating_sub(now)))
    }

    /// Takes all waiting changes, which are in flight until [`Queue::done`].
    pub(super) fn cut(&mut self) -> Batch<A> {
        let mut changes: Vec<_> = self.pending.drain().map(|(_, change)| change).collect();
        changes.sort_unstable_by_key(|change| change.prefix);
        self.in_flight = self.oldest.take();
        Batch { changes, sequence: self.sequence, arrivals: std::mem::take(&mut self.arrivals) }
    }

    /// Ends a batch that is published or never will be. The next cut is not due before `rest` has passed, or half of
    /// the time that changes may wait.
    pub(super) fn done(&mut self, now: u64, rest: Duration) {
        self.in_flight = None;
        self.rests_until = now.saturating_add(micros(rest.min(self.pacing.late / 2)));
    }

    /// Whether all changes are published.
    pub(super) fn is_idle(&self) -> bool {
        self.is_empty() && self.in_flight.is_none()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.oldest.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fibula_core::{Attributes, Value};

    use crate::AttributeSet;

    const MS: u64 = 1000;

    fn change(prefix: &str, hop: u32) -> Change<u32> {
        let set = AttributeSet::new(&Attributes::Values(&[Value::Int(hop.into())]));
        Change {
            prefix: prefix.parse().unwrap(),
            peer: 0,
            best: Some((hop, set)),
            last_origin: None,
        }
    }

    #[test]
    fn bursts_become_one_batch() {
        let mut queue = Queue::new(Pacing::default(), 0);
        assert_eq!(queue.due(0), None);
        for (now, prefix, hop) in
            [(10, "11.0.0.0/8", 1), (20, "10.0.0.0/8", 2), (30, "11.0.0.0/8", 3)]
        {
            queue.push(now * MS, change(prefix, hop), now);
        }
        // The bucket counts from the first.
        assert_eq!(queue.due(30 * MS), Some(Duration::from_millis(30)));
        assert_eq!(queue.due(70 * MS), Some(Duration::ZERO));
        let batch = queue.cut();
        assert_eq!(batch.changes, [change("10.0.0.0/8", 2), change("11.0.0.0/8", 3)]);
        assert_eq!(batch.sequence, 30);
        assert_eq!(batch.arrivals.0, [(10 * MS, 1), (20 * MS, 1), (30 * MS, 1)]);
        assert_eq!(queue.due(70 * MS), None);
        assert!(!queue.is_idle());
        queue.done(0, Duration::ZERO);
        assert!(queue.is_idle());
    }

    /// Many changes do not wait for the end of the bucket, but for that of a pause.
    #[test]
    fn enough_changes_are_due() {
        let mut queue = Queue::new(Pacing::default(), 0);
        let add = |queue: &mut Queue<u32>, count: usize| {
            let prefixes = (0..count as u32).map(|i| Prefix::masked(i << 8, 24).unwrap());
            prefixes.for_each(|prefix| {
                queue.push(MS, Change { prefix, ..change("10.0.0.0/8", 1) }, 1);
            });
        };
        add(&mut queue, Pacing::ENOUGH - 1);
        assert!(!queue.is_enough() && queue.due(MS) == Some(Duration::from_millis(50)));
        add(&mut queue, Pacing::ENOUGH);
        assert!(queue.is_enough() && queue.due(MS) == Some(Duration::ZERO));
        queue.cut();
        queue.done(2 * MS, Duration::from_millis(30));
        add(&mut queue, Pacing::ENOUGH);
        assert_eq!(queue.due(2 * MS), Some(Duration::from_millis(30)));
    }

    #[test]
    fn the_feed_waits_for_late_and_for_many_changes() {
        let pacing = Pacing { capacity: 2, ..Pacing::default() };
        let mut queue = Queue::new(pacing, 0);
        queue.push(0, change("10.0.0.0/8", 1), 1);
        assert!(!queue.is_full(1000 * MS));
        assert!(queue.is_full(1000 * MS + 1), "late while it waits");
        assert_eq!(queue.lag(1000 * MS + 1), 1000 * MS + 1);
        queue.cut();
        queue.push(900 * MS, change("10.0.0.0/8", 2), 2);
        assert!(queue.is_full(1001 * MS), "late while it is in flight");
        queue.done(0, Duration::ZERO);
        assert!(!queue.is_full(1001 * MS));
        assert_eq!(queue.lag(1001 * MS), 101 * MS);
        queue.push(901 * MS, change("11.0.0.0/8", 2), 3);
        assert!(queue.is_full(902 * MS));
        assert_eq!(queue.due(902 * MS), Some(Duration::ZERO), "nothing to be gained by waiting");
    }
    #[test]
    fn a_rest_delays_the_next_cut_but_not_for_long_and_not_where_many_wait() {
        let mut queue = Queue::new(Pacing { capacity: 2, ..Pacing::default() }, 0);
        let ms = Duration::from_millis;
        queue.done(100 * MS, ms(120));
        queue.push(110 * MS, change("10.0.0.0/8", 1), 1);
        assert_eq!(queue.due(110 * MS), Some(ms(110)));
        queue.cut();
        queue.done(200 * MS, ms(5000));
        queue.push(210 * MS, change("10.0.0.0/8", 2), 2);
        assert_eq!(queue.due(210 * MS), Some(ms(490)));
        queue.push(220 * MS, change("11.0.0.0/8", 2), 3);
        assert_eq!(queue.due(220 * MS), Some(Duration::ZERO));
    }
}
