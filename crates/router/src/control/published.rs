//! From the control thread to the workers: the newest paths.

use super::cell::Cell;
use super::sync::{Arc, AtomicU64, Ordering};
use crate::Paths;

/// Paths as workers see them.
pub(super) struct Current {
    /// One more each time.
    pub(super) number: u64,
    /// The version of the catalogue that they are made of.
    pub(super) knows: u64,
    pub(super) paths: Paths,
}

/// On a line of its own: workers look at the number all the time.
#[repr(align(64))]
pub(super) struct Published {
    number: AtomicU64,
    cell: Cell<Current>,
}

impl Published {
    pub(super) fn new() -> Self {
        let first = Current { number: 0, knows: 0, paths: Paths::default() };
        Self { number: AtomicU64::new(0), cell: Cell::new(Arc::new(first)) }
    }

    pub(super) fn publish(&self, next: Arc<Current>) {
        let number = next.number;
        self.cell.store(next);
        // After the swap: who sees the number finds at least these paths.
        self.number.store(number, Ordering::Release);
    }

    pub(super) fn load(&self) -> Arc<Current> {
        self.cell.load()
    }

    /// Brings what a worker holds up to date: one load while nothing is new.
    #[inline]
    pub(super) fn renew(&self, held: &mut Arc<Current>) {
        if self.number.load(Ordering::Acquire) != held.number {
            *held = self.load();
        }
    }
}

/// Paths that were replaced, until no worker has them: they are large, and whoever drops them last takes
/// that time.
#[derive(Default)]
pub(super) struct Retired(Vec<Arc<Current>>);

impl Retired {
    pub(super) fn put(&mut self, old: Arc<Current>) {
        self.0.push(old);
        self.sweep();
    }

    /// Drops those that no worker has; returns whether others are left.
    pub(super) fn sweep(&mut self) -> bool {
        self.0.retain(|old| Arc::strong_count(old) > 1);
        !self.0.is_empty()
    }
}
