//! VRPs and ASPAs that change while routes are validated with them.

mod revalidate;
mod status;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use fibula_core::{AnyPrefix, Prefix};

pub use revalidate::{Revalidated, Revalidator, ValidityCounts};
pub use status::{CacheState, CacheStatus};

use crate::{Aspas, Vrps};

/// How many routes whose validity changed are kept to be shown.
const KEPT: usize = 10_000;
/// The most changed prefixes that wait to be validated. If more wait, everything is validated.
const WAITING: usize = 1 << 20;

/// A set of VRPs with the ASPAs beside it.
#[derive(Debug)]
pub struct VrpGeneration {
    /// Counts the sets that a [`LiveVrps`] has had, from 1.
    pub number: u64,
    /// When it was published.
    pub time: SystemTime,
    /// `None` while no VRPs are known: before the first whole set, and after the last one has expired. Routes have no
    /// validity then.
    pub vrps: Option<Arc<Vrps>>,
    /// The ASPAs. None are known while no VRPs are, and if the source has none.
    pub aspas: Arc<Aspas>,
}

/// The VRPs and ASPAs that are valid now. Readers take the newest set and keep it for as long as an answer takes; one
/// writer replaces it. A set never changes.
///
/// ```
/// use fibula_rpki::{LiveVrps, Validity, Vrp, Vrps};
///
/// let live = LiveVrps::default();
/// assert!(live.current().vrps.is_none()); // not `NotFound`: nothing is known yet
/// let vrp = Vrp::new("192.0.2.0/24".parse()?, 24, 64500)?;
/// live.replace(Some(Vrps::new([vrp])), [vrp.prefix()]);
/// let now = live.current();
/// let validity = now.vrps.as_ref().unwrap().validity("192.0.2.0/24".parse()?, Some(64500));
/// assert_eq!((now.number, validity), (1, Validity::Valid));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct LiveVrps {
    state: Mutex<State>,
    replaced: Condvar,
}

#[derive(Debug)]
struct State {
    current: Arc<VrpGeneration>,
    /// The set that was revalidated last, and the prefixes of the VRPs that came or went since then.
    validated: Arc<VrpGeneration>,
    changed: Vec<AnyPrefix>,
    caches: Vec<CacheStatus>,
    revalidated: VecDeque<Revalidated>,
    counts: ValidityCounts,
}

impl Default for LiveVrps {
    /// No VRPs are known.
    fn default() -> Self {
        let (time, aspas) = (SystemTime::UNIX_EPOCH, Arc::default());
        let none = Arc::new(VrpGeneration { number: 0, time, vrps: None, aspas });
        let state = State {
            current: Arc::clone(&none),
            validated: none,
            changed: Vec::new(),
            caches: Vec::new(),
            revalidated: VecDeque::new(),
            counts: ValidityCounts::default(),
        };
        Self { state: Mutex::new(state), replaced: Condvar::new() }
    }
}

/// What a [`Revalidator`] has to compare.
struct Step {
    before: Arc<VrpGeneration>,
    after: Arc<VrpGeneration>,
    changed: Vec<AnyPrefix>,
}

impl LiveVrps {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Each change of the state is one assignment, so a thread that panicked has left a whole one.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The newest set. O(1).
    pub fn current(&self) -> Arc<VrpGeneration> {
        Arc::clone(&self.lock().current)
    }

    /// Publishes the next set of VRPs beside the ASPAs of before, or that neither is known. `changed` are the prefixes
    /// of the VRPs in which it differs from the current one: the validity of other routes than those that they cover is
    /// the same.
    pub fn replace(&self, vrps: Option<Vrps>, changed: impl IntoIterator<Item = AnyPrefix>) {
        let aspas = vrps.is_none().then(Arc::default);
        self.publish(vrps.map(Arc::new), aspas, changed);
    }

    /// Publishes the next VRPs and ASPAs, either of which may be those of before. `changed` is as in
    /// [`LiveVrps::replace`].
    ///
    /// ```
    /// use std::sync::Arc;
    /// use fibula_rpki::{Aspas, LiveVrps};
    /// let live = LiveVrps::default();
    /// let aspas: Aspas = [(64500, vec![64501])].into_iter().collect();
    /// live.replace_with_aspas(Arc::default(), Arc::new(aspas), []);
    /// assert_eq!(live.current().aspas.len(), 1);
    /// live.replace(None, []);
    /// assert!(live.current().aspas.is_empty());
    /// ```
    pub fn replace_with_aspas(
        &self,
        vrps: Arc<Vrps>,
        aspas: Arc<Aspas>,
        changed: impl IntoIterator<Item = AnyPrefix>,
    ) {
        self.publish(Some(vrps), Some(aspas), changed);
    }

    fn publish(
        &self,
        vrps: Option<Arc<Vrps>>,
        aspas: Option<Arc<Aspas>>,
        changed: impl IntoIterator<Item = AnyPrefix>,
    ) {
        let mut state = self.lock();
        let (number, time) = (state.current.number + 1, SystemTime::now());
        let aspas = aspas.unwrap_or_else(|| Arc::clone(&state.current.aspas));
        let next = Arc::new(VrpGeneration { number, time, vrps, aspas });
        let before = std::mem::replace(&mut state.current, next);
        // Nobody may validate, and a cache may send answers faster than somebody does.
        for prefix in changed {
            if state.changed.len() == WAITING {
                state.changed = vec![AnyPrefix::V4(Prefix::ALL), AnyPrefix::V6(Prefix::ALL)];
            }
            state.changed.push(prefix);
        }
        drop(state);
        self.replaced.notify_all();
        drop(before); // a large set takes milliseconds to be freed: without the lock
    }

    /// The states of the caches that it is received from, in the order of preference.
    pub fn caches(&self) -> Vec<CacheStatus> {
        self.lock().caches.clone()
    }

    #[cfg(feature = "rtr")]
    pub(crate) fn set_cache(&self, at: usize, change: impl FnOnce(&mut CacheStatus)) {
        if let Some(cache) = self.lock().caches.get_mut(at) {
            change(cache);
        }
    }

    #[cfg(feature = "rtr")]
    pub(crate) fn set_caches(&self, caches: Vec<CacheStatus>) {
        self.lock().caches = caches;
    }

    /// The last routes whose validity changed with the VRPs, newest first, `most` at most. The last ten thousand are
    /// kept.
    pub fn revalidated(&self, most: usize) -> Vec<Revalidated> {
        self.lock().revalidated.iter().rev().take(most).cloned().collect()
    }

    /// The routes whose validity changed after the first `seen` ones, oldest first, and how many there were in all. If
    /// more changed since than are kept, the list is `None`.
    pub fn revalidated_after(&self, seen: u64) -> (Option<Vec<Revalidated>>, u64) {
        let state = self.lock();
        let changed = state.counts.changed;
        let new = usize::try_from(changed.saturating_sub(seen)).unwrap_or(usize::MAX);
        let kept = state.revalidated.len();
        let first = kept.checked_sub(new);
        (first.map(|first| state.revalidated.range(first..).cloned().collect()), changed)
    }

    /// How many routes were validated again, and how many of them changed.
    pub fn counts(&self) -> ValidityCounts {
        self.lock().counts
    }

    /// Waits until the set has changed since the last step was done. `None` once it is to stop.
    fn next_step(&self, stop: &AtomicBool) -> Option<Step> {
        let is_stopped = || stop.load(Ordering::Relaxed);
        let is_idle =
            |state: &mut State| !is_stopped() && state.current.number == state.validated.number;
        let waited = self.replaced.wait_while(self.lock(), is_idle);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        if is_stopped() {
            return None;
        }
        let changed = std::mem::take(&mut state.changed);
        let after = Arc::clone(&state.current);
        let before = std::mem::replace(&mut state.validated, Arc::clone(&after));
        Some(Step { before, after, changed })
    }

    fn found(&self, routes: Vec<Revalidated>, counts: ValidityCounts) {
        let mut state = self.lock();
        state.counts.add(&counts);
        let skipped = routes.len().saturating_sub(KEPT);
        let over = (state.revalidated.len() + routes.len() - skipped).saturating_sub(KEPT);
        state.revalidated.drain(..over);
        state.revalidated.extend(routes.into_iter().skip(skipped));
    }

    /// Ends the wait for a step.
    fn stop(&self, stop: &AtomicBool) {
        // Under the lock, so that it does not change between the waiting thread's look and its sleep.
        let state = self.lock();
        stop.store(true, Ordering::Relaxed);
        drop(state);
        self.replaced.notify_all();
    }
}
