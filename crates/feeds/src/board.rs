//! The state of all sources, for display.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use crate::{Figures, SourceState};

/// The state of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceStatus {
    /// Its name in the configuration. For a listener's sources, the remote address is appended.
    pub name: String,
    /// Its protocol: `fpm`, `bmp`, `bgp`, `kernel`, `ris`, `mrt`.
    pub kind: &'static str,
    /// The address and port, or the path, from which it receives.
    pub endpoint: String,
    /// The name of its table in [`Rib::vrf`](fibula_rib::Rib::vrf). Further tables have this name, a slash and a name
    /// of their own.
    pub table: String,
    /// The state of its connection.
    pub state: SourceState,
    /// The counts so far.
    pub figures: Figures,
    /// The time when it entered this state.
    pub since: SystemTime,
    /// The time until which the routes of a lost connection stay.
    pub until: Option<SystemTime>,
    /// The time of the last data.
    pub last: Option<SystemTime>,
    /// The reason why the last connection ended, or why there is none.
    pub trouble: Option<String>,
}

impl SourceStatus {
    /// Whether a peer with this [source](fibula_rib::Peer::source) is one of this session: the name of its view may
    /// follow the session's name.
    pub fn is_of(&self, peer: &str) -> bool {
        let view = peer.strip_prefix(&*self.name);
        view.is_some_and(|view| view.is_empty() || view.starts_with(' '))
    }
}

/// The states of all sources. The sources' owner writes them; any number of threads read them.
#[derive(Debug, Default)]
pub struct Board {
    sources: Mutex<BTreeMap<String, SourceStatus>>,
}

impl Board {
    /// Sets the state of a source, by its name.
    pub fn set(&self, status: SourceStatus) {
        self.lock().insert(status.name.clone(), status);
    }

    /// Changes the state of a source, if the source exists.
    pub fn update(&self, name: &str, change: impl FnOnce(&mut SourceStatus)) {
        if let Some(status) = self.lock().get_mut(name) {
            change(status);
        }
    }

    /// Removes a source.
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
