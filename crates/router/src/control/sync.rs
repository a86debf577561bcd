//! The synchronisation types of workers and the control thread: from the standard library, or in the unit tests from
//! shuttle, which tries schedules (see `model.rs`). Shuttle's types work only inside its checks, so other tests are
//! in `tests/`.

#[cfg(test)]
pub(super) use shuttle::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{AtomicU64, Ordering},
};
#[cfg(not(test))]
pub(super) use std::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{AtomicU64, Ordering},
};

use std::sync::PoisonError;

/// Locks; nothing is called with a lock that can panic half-way.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
