//! The history of routes in files: a thread reads the changes of the live table and writes them.
//!
//! The thread reads the history in memory, as alarms and clients do, so the feed never waits for it. If changes come
//! faster than it writes them, or the files cannot be written, it reads the tables anew and writes what differs.

mod names;
mod record;
mod scan;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use fibula_history::{HistoryOptions, HistoryReader};
use fibula_rib::Live;
use fibula_server::{HistoryOnDisk, MetricsText, Obstacle};

use crate::DaemonError;
use crate::config::HistoryConfig;
use record::Recorder;

/// A history that is written. Dropping it writes the rest.
pub struct RouteRecorder {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread and the server have in common.
#[derive(Default)]
pub(crate) struct Shared {
    stop: AtomicBool,
    /// Changes that were written, and changes that were missed.
    changes: AtomicU64,
    lost: AtomicU64,
    /// How often tables were read anew.
    scans: AtomicU64,
    state: Mutex<State>,
}

/// What is known now.
#[derive(Default)]
struct State {
    reader: Option<HistoryReader>,
    /// Why nothing is written.
    trouble: Option<String>,
    is_recording: bool,
    is_over: bool,
    bytes: u64,
    files: usize,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // A thread that panicked left a whole state: it is replaced by assignments.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// For requests about the history.
    pub(crate) fn on_disk(self: &Arc<Self>) -> HistoryOnDisk {
        let shared = Arc::clone(self);
        HistoryOnDisk(Arc::new(move || {
            let state = shared.state();
            state.reader.clone().ok_or_else(|| match &state.trouble {
                Some(trouble) => trouble.clone(),
                None => "the history is being opened; try again in a moment".to_owned(),
            })
        }))
    }

    /// For `/readyz`.
    pub(crate) fn obstacle(self: &Arc<Self>) -> Obstacle {
        let shared = Arc::clone(self);
        Obstacle(Arc::new(move || shared.state().trouble.clone()))
    }

    /// Writes the metrics.
    pub(crate) fn metrics(&self, text: &mut MetricsText) {
        let (is_recording, is_over, bytes, files) = {
            let state = self.state();
            (state.is_recording, state.is_over, state.bytes, state.files)
        };
        let help = "Whether changes are written to the history: 0 also while tables are read.";
        text.one("history_recording", "gauge", help, u8::from(is_recording));
        let help = "Bytes of the history's files.";
        text.one("history_bytes", "gauge", help, bytes);
        text.one("history_files", "gauge", "Files of the history.", files);
        let help = "Whether the newest files alone have more bytes than history.bytes.";
        text.one("history_too_small", "gauge", help, u8::from(is_over));
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let help = "Changes that were written to the history.";
        text.one("history_changes_total", "counter", help, count(&self.changes));
        let help = "Changes that came faster than they were written; tables were read anew.";
        text.one("history_lost_changes_total", "counter", help, count(&self.lost));
        let help = "How often all tables were read, because changes were missing.";
        text.one("history_scans_total", "counter", help, count(&self.scans));
    }
}

impl RouteRecorder {
    /// Starts the thread. A folder that cannot be written is tried again.
    pub(crate) fn start(
        shared: Arc<Shared>,
        config: &HistoryConfig,
        live: &Arc<Live>,
    ) -> Result<Self, DaemonError> {
        let mut options = HistoryOptions::default();
        (options.keep, options.bytes) = (config.keep.0, config.bytes);
        let recorder =
            Recorder::new(Arc::clone(live), Arc::clone(&shared), config.path.clone(), options);
        let thread = thread::Builder::new().name("fibula-history".to_owned());
        let thread = thread
            .spawn(move || recorder.run())
            .map_err(|error| DaemonError::System { what: "no thread for the history", error })?;
        Ok(Self { shared, thread: Some(thread) })
    }
}

impl Drop for RouteRecorder {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic was reported when it happened.
            let _ = thread.join();
        }
    }
}
