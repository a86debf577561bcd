//! Events of ports while a pipeline runs.

use std::io;

/// Something that the operator of a router may want to log.
#[derive(Debug)]
pub enum Event {
    /// A port fails: packets for it are dropped and counted, and it is tried again a little later. Reported once
    /// until it works again.
    Failed {
        /// The port.
        port: String,
        /// The system's error.
        error: io::Error,
    },
    /// A port works again.
    Recovered {
        /// The port.
        port: String,
    },
    /// This port's queue will receive nothing more.
    Over {
        /// The port.
        port: String,
        /// The queue.
        queue: usize,
        /// The reason for an early end: a truncated capture.
        error: Option<io::Error>,
    },
    /// A thread cannot be pinned to its core and runs on any core.
    NotPinned {
        /// The thread.
        worker: String,
        /// The core.
        core: usize,
    },
}

/// Receives them.
pub(super) struct Events<'r> {
    pub(super) to: &'r (dyn Fn(Event) + Sync),
}
