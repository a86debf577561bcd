//! Sessions that are cut off, because the table is full and they have the most routes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use fibula_rib::Listener;

use super::hub::Hub;
use super::link::Context;
use super::slots::Thing;
use crate::{Clock, FeedError};

/// The names of sessions that have to be closed. Their routes are removed already, by the session for which there was
/// no room, and which has no way to reach the others.
#[derive(Default)]
pub(super) struct CutSessions {
    has_some: AtomicBool,
    names: Mutex<Vec<Arc<str>>>,
}

impl CutSessions {
    pub(super) fn add(&self, session: &Arc<str>) {
        self.names.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(session));
        self.has_some.store(true, Ordering::Release);
    }

    fn take(&self) -> Vec<Arc<str>> {
        match self.has_some.swap(false, Ordering::AcqRel) {
            true => std::mem::take(&mut *self.names.lock().unwrap_or_else(PoisonError::into_inner)),
            false => Vec::new(),
        }
    }
}

impl Hub {
    /// Closes the sessions that were cut off.
    pub(super) fn cut_off(&mut self, to: &mut dyn Listener) -> Result<(), FeedError> {
        for name in self.cut.take() {
            let Some(key) = self.thing_of(&name) else { continue };
            let now = self.clock.now();
            let Self { slots, poll, on_report, buffer, farewells, .. } = self;
            let to = &mut *to;
            let mut cx =
                Context { registry: poll.registry(), now, to, on_report, buffer, farewells };
            match slots.get_mut(key).map(|slot| &mut slot.thing) {
                Some(Thing::Link(link)) => link.cut_off(&mut cx)?,
                Some(Thing::Folder(folder)) => folder.end(cx.to)?,
                Some(Thing::Door(_) | Thing::Farewell(_)) | None => {}
            }
            self.settle(key, now);
        }
        Ok(())
    }
}
