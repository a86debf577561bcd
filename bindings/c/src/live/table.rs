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
    type Of<A: Addr> = Waiting<A>;
}

/// Changes of a family, and when the first of them was made.
struct Waiting<A: Addr> {
    changes: Vec<(Prefix<A>, Option<u64>)>,
    since: Option<Instant>,
}

impl<A: Addr> Default for Waiting<A> {
    fn default() -> Self {
        Self { changes: Vec::new(), since: None }
    }
}

impl<A: Addr> Waiting<A> {
    fn add(&mut self, routes: &[Route], value: impl Fn(&Route) -> Option<u64>, now: Instant) {
        self.changes.extend(routes.iter().filter_map(|route| Some((route.of()?, value(route)))));
        if !self.changes.is_empty() {
            self.since.get_or_insert(now);
        }
    }

    /// Makes the changes part of the routes. Their age is still that of the first.
    fn settle(self, table: &mut Plain<A>) -> Result<(), PlainError> {
        self.since.map_or(Ok(()), |since| table.change_since(since, self.changes))
    }
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
    /// For the condition that `visible` has grown. It is locked for no longer than that takes, so who waits for a
    /// change waits for no build.
    shown: Mutex<()>,
    is_shown: Condvar,
}

/// Routes and engines, and the number of changes that they include.
pub(super) struct State {
    pub(super) tables: PerFamily<Tables>,
    taken: u64,
}

/// Changes that the routes do not include.
#[derive(Default)]
struct Pending {
    changes: PerFamily<Changes>,
    /// Whether the queue has the table. Only the queue clears it, so that it has a table once, however often others
    /// take the changes before it does.
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

const STOPPED: &str =
    "an earlier panic in fibula has stopped this table; readers keep what they have";

impl Table {
    pub(super) fn new(settings: &Settings) -> Self {
        let v4 = Plain::<u32>::new(Arc::<_>::clone(&settings.engines) as _, settings.none);
        let v6 = Plain::<u128>::new(Arc::<_>::clone(&settings.engines) as _, settings.none);
        let readers = PerFamily { v4: v4.reader(), v6: v6.reader() };
        let tables = PerFamily { v4, v6 };
        Self {
            state: Mutex::new(State { tables, taken: 0 }),
            pending: Mutex::default(),
            readers,
            changes: AtomicU64::new(0),
            visible: AtomicU64::new(0),
            shown: Mutex::default(),
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
        let mut state = self.state.lock().map_err(|_| STOPPED)?;
        let mut pending = self.lock_pending();
        if pending.changes.v4.since.is_some() || pending.changes.v6.since.is_some() {
            let PerFamily { v4, v6 } = std::mem::take(&mut pending.changes);
            pending.routes = pending.routes.saturating_add(v4.changes.len() + v6.changes.len());
            state.taken = self.changes();
            drop(pending);
            v4.settle(&mut state.tables.v4)?;
            v6.settle(&mut state.tables.v6)?;
        }
        Ok(state)
    }

    /// Notes that the queue no longer has the table. Call it before the table is locked: a change behind that must be
    /// queued again.
    pub(super) fn unqueued(&self) {
        self.lock_pending().is_queued = false;
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
        if self.state.is_poisoned() {
            return Err(STOPPED.into());
        }
        let mut pending = self.lock_pending();
        let Pending { changes: PerFamily { v4, v6 }, is_queued, routes: known, rest } =
            &mut *pending;
        let waiting = v4.changes.len() + v6.changes.len() + routes.len();
        if known.saturating_add(waiting) >= u32::MAX as usize {
            return Err(PlainError::Full.into());
        }
        let now = Instant::now();
        v4.add(routes, &value, now);
        v6.add(routes, &value, now);
        self.changes.fetch_add(routes.len() as u64, Ordering::Release);
        Ok(match waiting {
            ENOUGH.. => Then::Publish,
            _ if std::mem::replace(is_queued, true) => Then::Nothing,
            _ => Then::Queue(now + collect.max(*rest)),
        })
    }

    /// Makes all changes visible that the routes include.
    pub(super) fn publish(&self, state: &mut State) -> Result<(), PlainError> {
        let (started, before) = (Instant::now(), state.generations());
        let (v4, v6) = (state.tables.v4.publish(), state.tables.v6.publish());
        v4.and(v6)?;
        let took = started.elapsed();
        self.visible.fetch_max(state.taken, Ordering::Release);
        // Who has read the number before waits by now.
        drop(self.shown.lock());
        self.is_shown.notify_all();
        let routes = state.tables.v4.len_at_most() + state.tables.v6.len_at_most();
        let mut pending = self.lock_pending();
        pending.routes = routes;
        if state.generations() > before {
            pending.rest = took * RESTS;
        }
        Ok(())
    }

    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    pub(super) fn visible(&self) -> u64 {
        self.visible.load(Ordering::Acquire)
    }

    /// Waits until readers see a change; whether they do.
    pub(super) fn wait(&self, change: u64, most: Duration) -> Outcome<bool> {
        let end = Instant::now() + most;
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        while self.visible() < change {
            if self.state.is_poisoned() {
                return Err(STOPPED.into());
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            let waited = self.is_shown.wait_timeout(shown, left);
            shown = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(true)
    }
}

impl State {
    /// Number of published generations of both families.
    fn generations(&self) -> u64 {
        self.tables.v4.counters().generations + self.tables.v6.counters().generations
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;
    use crate::live::Live;

    const MINUTE: Duration = Duration::from_secs(60);

    /// A table whose changes wait for a minute.
    fn table() -> Live {
        Live::new(Settings::collecting(MINUTE.as_millis() as u32)).unwrap()
    }

    fn route(prefix: &str) -> Route {
        Route::new(prefix.parse().unwrap(), 7)
    }

    /// Whoever takes the changes before they are due, the queue has the table once.
    #[test]
    fn the_queue_has_a_table_once() {
        let live = table();
        let queue = live.queue.as_ref().unwrap();
        for _ in 0..100 {
            live.set(&[route("10.0.0.0/8"), route("2001:db8::/32")]).unwrap();
            let mut state = live.table.lock().unwrap();
            assert_eq!(state.tables.v4.len(), 1);
            live.table.publish(&mut state).unwrap();
        }
        assert_eq!(queue.len(), 1);
        // Once the queue gave it up, the next change puts it there again.
        live.table.unqueued();
        live.set(&[route("11.0.0.0/8")]).unwrap();
        assert_eq!(queue.len(), 2);
    }

    #[test]
    fn a_publication_without_changes_says_nothing_of_the_next() {
        let live = table();
        live.set(&[route("10.0.0.0/8")]).unwrap();
        let mut state = live.table.lock().unwrap();
        live.table.publish(&mut state).unwrap();
        let rest = live.table.lock_pending().rest;
        assert!(!rest.is_zero());
        live.table.publish(&mut state).unwrap();
        assert_eq!(live.table.lock_pending().rest, rest);
    }

    #[test]
    fn questions_make_no_change_younger() {
        let live = table();
        let ms = Duration::from_millis;
        live.set(&[route("10.0.0.0/8")]).unwrap();
        thread::sleep(ms(30));
        live.set(&[route("2001:db8::/32")]).unwrap();
        for _ in 0..2 {
            let state = live.table.lock().unwrap();
            let (v4, v6) = (state.tables.v4.lag().unwrap(), state.tables.v6.lag().unwrap());
            assert!(v4 >= v6 + ms(30), "{v4:?} and {v6:?}");
        }
        live.set(&[route("11.0.0.0/8")]).unwrap();
        let mut state = live.table.lock().unwrap();
        assert!(state.tables.v4.lag().unwrap() >= ms(30), "the oldest counts");
        live.table.publish(&mut state).unwrap();
        assert_eq!((state.tables.v4.lag(), state.tables.v6.lag()), (None, None));
    }

    /// While another thread builds or walks, who waits for a change waits no longer than it wants.
    #[test]
    fn a_wait_ends_while_the_table_is_locked() {
        let live = table();
        live.set(&[route("10.0.0.0/8")]).unwrap();
        let state = live.table.lock().unwrap();
        let (table, (ended, end)) = (Arc::clone(&live.table), mpsc::channel());
        let waits = thread::spawn(move || {
            ended.send(table.wait(1, Duration::ZERO).unwrap()).unwrap();
            table.wait(1, MINUTE).unwrap()
        });
        assert_eq!(end.recv_timeout(MINUTE), Ok(false));
        drop(state);
        let mut state = live.table.lock().unwrap();
        live.table.publish(&mut state).unwrap();
        drop(state);
        assert!(waits.join().unwrap(), "woken by the publication");
    }

    #[test]
    fn a_table_that_a_panic_has_stopped_takes_no_changes() {
        let live = table();
        live.set(&[route("10.0.0.0/8")]).unwrap();
        let table = Arc::clone(&live.table);
        let panics = thread::spawn(move || {
            let _state = table.lock().unwrap();
            panic!("as an engine would");
        });
        assert!(panics.join().is_err());
        let refused = live.set(&[route("11.0.0.0/8")]).unwrap_err();
        assert!(refused.to_string().contains("an earlier panic"), "{refused}");
        assert_eq!(live.table.changes(), 1);
        assert!(live.table.wait(1, MINUTE).is_err());
    }
}
