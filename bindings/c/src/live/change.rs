//! Changes of a table.

use std::sync::Arc;
use std::time::Duration;

use super::Live;
use super::table::Then;
use crate::array;
use crate::error::{Outcome, guarded};
use crate::route::{Route, check};

impl Live {
    /// Adds routes, or gives them other values. If one is wrong, nothing changes.
    pub(super) fn set(&self, routes: &[Route]) -> Outcome<()> {
        check(routes, |route| route.checked(self.settings.is_wide))?;
        self.change(routes, |route| Some(route.value()))
    }

    /// Removes routes. If one is wrong, nothing changes.
    fn remove(&self, routes: &[Route]) -> Outcome<()> {
        check(routes, Route::prefix)?;
        self.change(routes, |_| None)
    }

    fn change(&self, routes: &[Route], value: impl Fn(&Route) -> Option<u64>) -> Outcome<()> {
        let then = self.table.change(routes, value, self.settings.collect)?;
        match (&self.queue, then) {
            (Some(queue), Then::Queue(at)) => queue.push(at, Arc::downgrade(&self.table)),
            (Some(_), Then::Nothing) => {}
            (None, _) | (Some(_), Then::Publish) => {
                let mut state = self.table.lock()?;
                self.table.publish(&mut state)?;
            }
        }
        Ok(())
    }
}

/// Adds routes, or gives them other values.
///
/// # Safety
/// As the header says of `fibula_live_set`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_live_set(
    live: *mut Live,
    routes: *const Route,
    count: usize,
) -> bool {
    guarded(false, || {
        // SAFETY: a table, and an array of `count`.
        let (live, routes) = unsafe { (&*live, array(routes, count)) };
        live.process.check()?;
        live.set(routes)?;
        Ok(true)
    })
}

/// Removes routes.
///
/// # Safety
/// As the header says of `fibula_live_remove`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_live_remove(
    live: *mut Live,
    routes: *const Route,
    count: usize,
) -> bool {
    guarded(false, || {
        // SAFETY: a table, and an array of `count`.
        let (live, routes) = unsafe { (&*live, array(routes, count)) };
        live.process.check()?;
        live.remove(routes)?;
        Ok(true)
    })
}

/// Makes all changes so far visible.
///
/// # Safety
/// As the header says of `fibula_live_flush`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_live_flush(live: *mut Live) -> bool {
    guarded(false, || {
        // SAFETY: a table.
        let live = unsafe { &*live };
        live.process.check()?;
        let mut state = live.table.lock()?;
        live.table.publish(&mut state)?;
        Ok(true)
    })
}

/// Number of changes taken.
///
/// # Safety
/// As the header says of `fibula_live_changes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_live_changes(live: *const Live) -> u64 {
    // SAFETY: a table.
    unsafe { &*live }.table.changes()
}

/// Number of changes that readers see.
///
/// # Safety
/// As the header says of `fibula_live_visible`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_live_visible(live: *const Live) -> u64 {
    // SAFETY: a table.
    unsafe { &*live }.table.visible()
}

/// Waits until readers see a change.
///
/// # Safety
/// As the header says of `fibula_live_wait`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_live_wait(live: *const Live, change: u64, most_ms: u32) -> bool {
    guarded(false, || {
        // SAFETY: a table.
        let live = unsafe { &*live };
        live.process.check()?;
        if live.table.wait(change, Duration::from_millis(most_ms.into()))? {
            return Ok(true);
        }
        let (taken, seen) = (live.table.changes(), live.table.visible());
        Err(format!(
            "change {change} is not visible after {most_ms} ms: readers see {seen} of {taken} changes"
        )
        .into())
    })
}
