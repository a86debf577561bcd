//! The RIB of a live table, behind its lock.

use std::sync::{Mutex, MutexGuard};

use crate::Rib;
use crate::status::lock_std;

/// A RIB that the feed changes and other threads read between the changes.
///
/// A thread that applies many updates locks it for a chunk of them and at once again for the next. The standard mutex
/// would give it the lock each time, however many threads wait. So each thread takes the gate before it locks the RIB,
/// and keeps it until the RIB is locked: a thread between two chunks waits at the gate until the waiting thread has the
/// RIB.
pub(crate) struct SharedRib {
    gate: Mutex<()>,
    rib: Mutex<Rib>,
}

impl SharedRib {
    pub(crate) fn new(rib: Rib) -> Self {
        Self { gate: Mutex::new(()), rib: Mutex::new(rib) }
    }

    /// Locks the RIB, after the thread that has waited at the gate.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Rib> {
        let _gate = lock_std(&self.gate);
        self.lock_now()
    }

    /// Locks the RIB without the gate, for the feed's single events: between two of them, other threads can lock it.
    pub(crate) fn lock_now(&self) -> MutexGuard<'_, Rib> {
        lock_std(&self.rib)
    }
}
