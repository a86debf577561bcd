//! The pointer that is swapped: `arc-swap`, or a lock for the model check, which cannot see inside `arc-swap`.

use crate::sync::Arc;

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
    pub(super) fn swap(&self, next: Arc<T>) -> Arc<T> {
        self.0.swap(next)
    }
}

#[cfg(test)]
pub(super) struct Cell<T>(crate::sync::Mutex<Arc<T>>);

#[cfg(test)]
impl<T> Cell<T> {
    pub(super) fn new(first: Arc<T>) -> Self {
        Self(crate::sync::Mutex::new(first))
    }
    pub(super) fn load(&self) -> Arc<T> {
        crate::sync::lock(&self.0).clone()
    }
    pub(super) fn swap(&self, next: Arc<T>) -> Arc<T> {
        std::mem::replace(&mut *crate::sync::lock(&self.0), next)
    }
}
