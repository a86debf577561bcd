//! The pointer that is swapped: `arc-swap`, and for the model check, which cannot see into that, a lock.
//!
//! `rib/src/publisher/cell.rs` is nearly the same and cannot be this one: the `cfg(test)` that chooses is that of the
//! crate whose unit tests run, and `rib` is compiled without it while those of `router` do.

use super::sync::Arc;

#[cfg(not(test))]
pub(super) struct Cell<T>(arc_swap::ArcSwap<T>);

#[cfg(not(test))]
impl<T> Cell<T> {
    pub(super) fn new(first: Arc<T>) -> Self {
        Self(arc_swap::ArcSwap::new(first))
    }
    pub(super) fn load(&self) -> Arc<T> {
        self.0.load_full()
    }
    pub(super) fn store(&self, next: Arc<T>) {
        self.0.store(next);
    }
}

#[cfg(test)]
pub(super) struct Cell<T>(super::sync::Mutex<Arc<T>>);

#[cfg(test)]
impl<T> Cell<T> {
    pub(super) fn new(first: Arc<T>) -> Self {
        Self(super::sync::Mutex::new(first))
    }
    pub(super) fn load(&self) -> Arc<T> {
        super::sync::lock(&self.0).clone()
    }
    pub(super) fn store(&self, next: Arc<T>) {
        *super::sync::lock(&self.0) = next;
    }
}
