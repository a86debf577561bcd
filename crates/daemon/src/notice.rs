//! Notices to a running server or router.

use std::fmt;
use std::sync::Arc;

/// A request to a running value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Read the configuration again (SIGHUP). If it has an error, nothing changes, and the log has the error.
    Reload,
    /// End (SIGTERM): within a second, in order.
    Stop,
}

/// Notifies a running value from another thread. Clones are for the same value.
#[derive(Clone)]
pub struct DaemonHandle(Arc<dyn Fn(Notice) + Send + Sync>);

impl DaemonHandle {
    pub(crate) fn new(obey: impl Fn(Notice) + Send + Sync + 'static) -> Self {
        Self(Arc::new(obey))
    }

    /// Notifies it. A reload is over on return; a value that has ended ignores notices.
    pub fn notify(&self, notice: Notice) {
        (self.0)(notice);
    }
}

impl fmt::Debug for DaemonHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DaemonHandle").finish_non_exhaustive()
    }
}
