//! The synchronisation types: from the standard library, or in the unit tests from shuttle, which tries schedules
//! (see `model.rs`).
//!
//! Shuttle's types work only inside its checks. So unit tests of the log and the publisher belong in `model.rs`, and
//! tests of whole tables in `tests/`, which link the library with the standard types.

#[cfg(test)]
pub(crate) use shuttle::sync::{
    Arc, Condvar, Mutex, MutexGuard,
    atomic::{AtomicU64, Ordering},
};
#[cfg(not(test))]
pub(crate) use std::sync::{
    Arc, Condvar, Mutex, MutexGuard,
    atomic::{AtomicU64, Ordering},
};

use std::sync::PoisonError;
use std::time::Duration;

/// Locks; the state that a panicked thread has left is complete, since engines are the only strangers, and
/// they are called without locks.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn wait<'a, T>(condvar: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condvar.wait(guard).unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn wait_for<'a, T>(
    condvar: &Condvar,
    guard: MutexGuard<'a, T>,
    time: Duration,
) -> MutexGuard<'a, T> {
    condvar.wait_timeout(guard, time).unwrap_or_else(PoisonError::into_inner).0
}
