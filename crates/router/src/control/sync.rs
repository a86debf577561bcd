//! The primitives by which workers and the control thread meet: the standard library's, or in the unit tests those of
//! shuttle, which tries schedules (see `model.rs`). Shuttle's work only within its checks, so other tests are in `tests/`.

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
