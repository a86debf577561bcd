//! The status of a live table: counters, events, and errors at the start.

mod counters;
mod event;

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::sync::Arc;

pub use counters::{Count, Counters, Latencies};
pub use event::{EngineRefusal, Event, LiveError};

/// Receives the events.
pub(crate) type Events = Arc<dyn Fn(Event) + Send + Sync>;

/// Locks state that the model check need not see.
pub(crate) fn lock_std<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
