//! The tables with changes that wait for others, and the thread that publishes them.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use super::table::Table;

/// The tables with changes, in the order in which they are due.
#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    is_changed: Condvar,
}

#[derive(Default)]
struct State {
    /// By time and a number of their own.
    due: BTreeMap<(Instant, u64), Weak<Table>>,
    number: u64,
    is_closed: bool,
}

impl Queue {
    /// Nothing in here panics while it is locked.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a table that is not in the queue.
    pub(super) fn push(&self, at: Instant, table: Weak<Table>) {
        let mut state = self.lock();
        state.number += 1;
        let key = (at, state.number);
        state.due.insert(key, table);
        if state.due.first_key_value().is_some_and(|(first, _)| *first == key) {
            self.is_changed.notify_one();
        }
    }

    /// Number of entries.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.lock().due.len()
    }

    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.is_changed.notify_one();
    }

    /// The next table that is due; `None` once the queue is closed.
    fn next(&self) -> Option<Weak<Table>> {
        let mut state = self.lock();
        loop {
            if state.is_closed {
                return None;
            }
            let first = state.due.first_key_value();
            let left = first.map(|((at, _), _)| at.saturating_duration_since(Instant::now()));
            state = match left {
                Some(left) if left.is_zero() => return state.due.pop_first().map(|(_, of)| of),
                Some(left) => {
                    let waited = self.is_changed.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.is_changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Publishes tables until the queue is closed.
    pub(super) fn run(&self) {
        while let Some(table) = self.next() {
            let Some(table) = table.upgrade() else { continue };
            table.unqueued();
            // A panic leaves the table's lock poisoned, and its next call says so.
            let _ = catch_unwind(AssertUnwindSafe(|| {
                if let Ok(mut state) = table.lock() {
                    // An error is one of the next call, too, which tries again.
                    let _ = table.publish(&mut state);
                }
            }));
        }
    }
}
