//! From the control thread to the workers: the newest paths.

use fibula_publish::Numbered;

use crate::Paths;
use crate::sync::{Arc, Threads};

/// Paths as workers see them.
pub(super) struct Current {
    /// One more each time.
    pub(super) number: u64,
    /// The version of the catalogue that they are made of.
    pub(super) knows: u64,
    pub(super) paths: Paths,
}

impl Numbered for Current {
    #[inline]
    fn number(&self) -> u64 {
        self.number
    }
}

pub(super) type Published = fibula_publish::Published<Current, Threads>;

/// What is published before the first paths.
pub(super) fn nothing() -> Published {
    Published::new(Current { number: 0, knows: 0, paths: Paths::default() })
}

/// Paths that were replaced, until no worker has them: they are large, and whoever drops them last takes
/// that time.
#[derive(Default)]
pub(super) struct Retired(Vec<Arc<Current>>);

impl Retired {
    pub(super) fn put(&mut self, old: Arc<Current>) {
        self.0.push(old);
        self.sweep();
    }

    /// Drops those that no worker has; returns whether others are left.
    pub(super) fn sweep(&mut self) -> bool {
        self.0.retain(|old| Arc::strong_count(old) > 1);
        !self.0.is_empty()
    }
}
