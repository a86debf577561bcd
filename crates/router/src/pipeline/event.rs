//! What happens to ports while a pipeline runs.

use std::io;

/// Something that the operator of a router may want to log.
#[derive(Debug)]
pub enum Event {
    /// A port fails: packets for it are dropped and counted, and it is asked again a little later. Said once until it works again.
    Failed {
        /// The port.
        port: String,
        /// What the system says.
        error: io::Error,
    },
    /// A port works again.
    Recovered {
        /// The port.
        port: String,
    },
    /// Nothing will come in by this port's queue any more.
    Over {
        /// The port.
        port: String,
        /// The queue.
        queue: usize,
    },
    /// A thread runs wherever the system likes, because it cannot be pinned to its core.
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
