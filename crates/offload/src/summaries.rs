//! What looked addresses up, by the thread that asked.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use fibula_accel::BatchSummary;

/// The summaries of all threads.
#[derive(Default)]
pub(crate) struct Summaries(Mutex<HashMap<ThreadId, BatchSummary>>);

impl Summaries {
    /// Adds to the summary of the calling thread.
    pub(crate) fn add(&self, summary: BatchSummary) {
        *self.locked().entry(thread::current().id()).or_default() += summary;
    }

    /// Takes those of all threads, as one.
    pub(crate) fn take_all(&self) -> BatchSummary {
        let mut all = BatchSummary::default();
        self.locked().drain().for_each(|(_, summary)| all += summary);
        all
    }

    /// Takes that of the calling thread.
    pub(crate) fn take_own(&self) -> BatchSummary {
        self.locked().remove(&thread::current().id()).unwrap_or_default()
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<ThreadId, BatchSummary>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
