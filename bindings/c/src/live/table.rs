//! The state of one table.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use fibula_core::{Addr, FamilyType, PerFamily, Prefix};
use fibula_rib::{Plain, PlainError, PlainReader};

use super::options::Settings;
use crate::error::Outcome;
use crate::route::Route;

/// A table of each family.
pub(super) struct Tables;

impl FamilyType for Tables {
    type Of<A: Addr> = Plain<A>;
}

/// A reader of each family.
pub(super) struct Readers;

impl FamilyType for Readers {
    type Of<A: Addr> = PlainReader<A>;
}

/// Changes of each family.
struct Changes;

impl FamilyType for Changes {
    type Of<A: Addr> = Vec<(Prefix<A>, Option<u64>)>;
}

/// One table: its routes and engines behind a lock, and changes that were made meanwhile behind another one, so that
/// who changes the table does not wait for who publishes it.
pub(super) struct Table {
    state: Mutex<State>,
    pending: Mutex<Pending>,
    /// Readers that were never used, so that a new one needs no lock.
    readers: PerFamily<Readers>,
    changes: AtomicU64,
    visible: AtomicU64,
    is_shown: Condvar,
}

/// Routes and engines, and the number of changes that they include.
pub(super) struct State {
    pub(super) tables: PerFamily<Tables>,
    taken: u64,
    /// How long the last publication took.
    took: Duration,
}

/// Changes that the routes do not include.
#[derive(Default)]
struct Pending {
    changes: PerFamily<Changes>,
    since: Option<Instant>,
    /// Whether the queue has the table.
    is_queued: bool,
    /// An upper bound of the number of routes, and for how long the next changes should wait for others: those of the
    /// last publication.
    routes: usize,
    rest: Duration,
}

/// What is to be done after a change.
pub(super) enum Then {
    /// The table is to be published now: so many changes wait that their memory must be bounded.
    Publish,
    /// The table is to be published at this time.
    Queue(Instant),
    /// It was to be published already.
    Nothing,
}

/// Number of changes that are published although they might wait for others.
const ENOUGH: usize = 1 << 18;

/// The compiler of a loaded table rests for as many times as a publication took, so that the caller, who needs the
/// same caches and perhaps the same core, comes to change it.
const RESTS: u32 = 2;

impl Table {
    pub(super) fn new(settings: &Settings) -> Self {
        let v4 = Plain::<u32>::new(Arc::<_>::clone(&settings.engines) as _, settings.none);
        let v6 = Plain::<u128>::new(Arc::<_>::clone(&settings.engines) as _, settings.none);
        let readers = PerFamily { v4: v4.reader(), v6: v6.reader() };
        let tables = PerFamily { v4, v6 };
        Self {
            state: Mutex::new(State { tables, taken: 0, took: Duration::ZERO }),
            pending: Mutex::default(),
            readers,
            changes: AtomicU64::new(0),
            visible: AtomicU64::new(0),
            is_shown: Condvar::new(),
        }
    }

    pub(super) fn readers(&self) -> PerFamily<Readers> {
        self.readers.clone()
    }

    /// Lists of changes are whole between any two statements.
    fn lock_pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the routes, which include all changes so far.
    pub(super) fn lock(&self) -> Outcome<MutexGuard<'_, State>> {
        let mut state = self.state.lock().map_err(
            |_| "an earlier panic in fibula has stopped this table; readers keep what they have",
        )?;
        let mut pending = self.lock_pending();
        if pending.since.is_some() {
            let changes = std::mem::take(&mut pending.changes);
            pending.routes = pending.routes.saturating_add(changes.v4.len() + changes.v6.len());
            (pending.since, pending.is_queued) = (None, false);
            state.taken = self.changes();
            drop(pending);
            state.tables.v4.change(changes.v4)?;
            state.tables.v6.change(changes.v6)?;
        }
        Ok(state)
    }

    pub(super) fn is_unlocked(&self) -> bool {
        let is_locked = matches!(self.state.try_lock(), Err(TryLockError::WouldBlock))
            || matches!(self.pending.try_lock(), Err(TryLockError::WouldBlock));
        !is_locked
    }

    /// Takes changes, which wait for others until `collect` is over.
    pub(super) fn change(
        &self,
        routes: &[Route],
        value: impl Fn(&Route) -> Option<u64>,
        collect: Duration,
    ) -> Outcome<Then> {
        if routes.is_empty() {
            return Ok(Then::Nothing);
        }
        let mut pending = self.lock_pending();
        let waiting = pending.changes.v4.len() + pending.changes.v6.len() + routes.len();
        if pending.routes.saturating_add(waiting) >= u32::MAX as usize {
            return Err(PlainError::Full.into());
        }
        fn family<A: Addr>(
            changes: &mut PerFamily<Changes>,
            routes: &[Route],
            value: impl Fn(&Route) -> Option<u64>,
        ) {
            let of = |route: &Route| Some((route.of()?, value(route)));
            changes.get_mut::<A>().extend(routes.iter().filter_map(of));
        }
        family::<u32>(&mut pending.changes, routes, &value);
        family::<u128>(&mut pending.changes, routes, &value);
        self.changes.fetch_add(routes.len() as u64, Ordering::Release);
        let since = *pending.since.get_or_insert_with(Instant::now);
        Ok(match waiting {
            ENOUGH.. => Then::Publish,
            _ if std::mem::replace(&mut pending.is_queued, true) => Then::Nothing,
            _ => Then::Queue(since + collect.max(pending.rest)),
        })
    }

    /// Makes all changes visible that the routes include.
    pub(super) fn publish(&self, state: &mut State) -> Result<(), PlainError> {
        let started = Instant::now();
        let (v4, v6) = (state.tables.v4.publish(), state.tables.v6.publish());
        v4.and(v6)?;
        state.took = started.elapsed();
        self.visible.fetch_max(state.taken, Ordering::Release);
        self.is_shown.notify_all();
        let routes = state.tables.v4.len_at_most() + state.tables.v6.len_at_most();
        let mut pending = self.lock_pending();
        (pending.routes, pending.rest) = (routes, state.took * RESTS);
        Ok(())
    }

    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    pub(super) fn visible(&self) -> u64 {
        self.visible.load(Ordering::Acquire)
    }

    /// How long the oldest change has waited that the routes do not include.
    pub(super) fn lag(&self) -> Option<Duration> {
        self.lock_pending().since.map(|since| since.elapsed())
    }

    /// Waits until readers see a change; whether they do.
    pub(super) fn wait(&self, change: u64, most: Duration) -> Outcome<bool> {
        let end = Instant::now() + most;
        let mut state =
            self.state.lock().map_err(|_| "a panic in fibula has stopped this table")?;
        while self.visible() < change {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            let waited = self.is_shown.wait_timeout(state, left);
            state = waited.map_err(|_| "a panic in fibula has stopped this table")?.0;
        }
        Ok(true)
    }
}
