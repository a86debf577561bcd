//! The datagrams between the thread that receives them and the one that decodes them.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use crate::sync::{Condvar, Mutex, MutexGuard, lock, wait_for};

/// Datagrams that were received one after the other.
#[derive(Debug, Default)]
pub(crate) struct Burst {
    bytes: Vec<u8>,
    heads: Vec<Head>,
}

/// Where a datagram comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) sender: SocketAddr,
    /// When it was received, in microseconds since 1970.
    pub(crate) time: u64,
    /// Where it ends in the bytes of its burst.
    end: usize,
}

/// The bytes of a burst, beyond which no datagram is added to it.
const FULL: usize = 64 << 10;
/// What a datagram counts for beside its bytes.
const HEAD: usize = size_of::<Head>();

impl Burst {
    pub(crate) fn push(&mut self, sender: SocketAddr, time: u64, datagram: &[u8]) {
        self.bytes.extend_from_slice(datagram);
        self.heads.push(Head { sender, time, end: self.bytes.len() });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.cost() >= FULL
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.heads.clear();
    }

    /// The datagrams.
    pub(crate) fn datagrams(&self) -> impl Iterator<Item = (Head, &[u8])> {
        let mut start = 0;
        self.heads.iter().map(move |&head| {
            let datagram = &self.bytes[start..head.end];
            start = head.end;
            (head, datagram)
        })
    }

    fn cost(&self) -> usize {
        self.bytes.len() + self.heads.len() * HEAD
    }
}

/// A queue of bursts with one writer and one reader, bounded by bytes.
#[derive(Debug)]
pub(crate) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    limit: usize,
}

#[derive(Debug, Default)]
struct State {
    bursts: VecDeque<Burst>,
    /// The cost of the bursts.
    bytes: usize,
    /// Bursts to be used again.
    spare: Vec<Burst>,
    closed: bool,
}

/// What came out of a queue.
#[derive(Debug)]
pub(crate) enum Taken {
    Burst(Burst),
    /// Nothing came in time.
    Nothing,
    /// Nothing will come.
    Closed,
}

impl Queue {
    /// A queue of at most this number of bytes, and at least a burst.
    pub(crate) fn new(limit: usize) -> Self {
        Self { state: Mutex::default(), changed: Condvar::new(), limit: limit.max(2 * FULL) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Puts a burst in, and leaves an empty one in its place. `false` if there is no room: the burst is unchanged.
    pub(crate) fn put(&self, burst: &mut Burst) -> bool {
        let mut state = self.state();
        let cost = burst.cost();
        if state.bytes + cost > self.limit && !state.bursts.is_empty() {
            return false;
        }
        state.bytes += cost;
        // Short bursts share one, so that each takes the memory that it counts for.
        match state.bursts.back_mut().filter(|last| last.cost() + cost <= FULL) {
            Some(last) => {
                for (Head { sender, time, .. }, datagram) in burst.datagrams() {
                    last.push(sender, time, datagram);
                }
                burst.clear();
            }
            None => {
                let spare = state.spare.pop().unwrap_or_default();
                state.bursts.push_back(std::mem::replace(burst, spare));
            }
        }
        drop(state);
        self.changed.notify_one();
        true
    }

    /// Takes the oldest burst, and waits for one no longer than this.
    pub(crate) fn take(&self, wait: Duration) -> Taken {
        let mut state = self.state();
        if state.bursts.is_empty() && !state.closed {
            state = wait_for(&self.changed, state, wait);
        }
        match state.bursts.pop_front() {
            Some(burst) => {
                state.bytes -= burst.cost();
                Taken::Burst(burst)
            }
            None if state.closed => Taken::Closed,
            None => Taken::Nothing,
        }
    }

    /// Gives a burst back, so that its memory is used again.
    pub(crate) fn recycle(&self, mut burst: Burst) {
        const SPARE: usize = 4;
        burst.clear();
        let mut state = self.state();
        if state.spare.len() < SPARE {
            state.spare.push(burst);
        }
    }

    /// Says that nothing more will come.
    pub(crate) fn close(&self) {
        self.state().closed = true;
        self.changed.notify_one();
    }
}
