//! The state of all sources, for display.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use crate::{Figures, SourceState};

/// A source as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceStatus {
    /// Its name: that of the configuration, and of a listener's sources the remote address behind it.
    pub name: String,
    /// What it speaks: `fpm`, `bmp`, `bgp`, `kernel`, `ris`, `mrt`.
    pub kind: &'static str,
    /// Where it is heard: an address and port, a path.
    pub endpoint: String,
    /// The table that it feeds, as [`Rib::vrf`](fibula_rib::Rib::vrf) knows it; further ones are called so with a slash and
    /// a name behind.
    pub table: String,
    /// Where it stands.
    pub state: SourceState,
    /// What has come so far.
    pub figures: Figures,
    /// Since when it has been in this state.
    pub since: SystemTime,
    /// When something came last.
    pub last: Option<SystemTime>,
    /// Why the last connection ended, or why there is none.
    pub trouble: Option<String>,
}

/// The owner of the sources writes their state here; any number of threads read it.
#[derive(Debug, Default)]
pub struct Board {
    sources: Mutex<BTreeMap<String, SourceStatus>>,
}

impl Board {
    /// Sets how a source stands, by its name.
    pub fn set(&self, status: SourceStatus) {
        self.lock().insert(status.name.clone(), status);
    }

    /// Changes what is known of a source, if it is known.
    pub fn update(&self, name: &str, change: impl FnOnce(&mut SourceStatus)) {
        if let Some(status) = self.lock().get_mut(name) {
            change(status);
        }
    }

    /// The source is no more.
    pub fn remove(&self, name: &str) {
        self.lock().remove(name);
    }

    /// All sources, by name.
    pub fn all(&self) -> Vec<SourceStatus> {
        self.lock().values().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, SourceStatus>> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
