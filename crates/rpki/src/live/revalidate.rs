//! Finds the routes of a live table whose validity changes with the VRPs.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::{self, JoinHandle};
use std::time::SystemTime;

use fibula_core::{Addr, AnyPrefix, Prefix, Vrf};
use fibula_rib::{AttributeSet, Live};

use super::{LiveVrps, Step};
use crate::{Validity, Vrps};

/// Routes that are read under one lock of the RIB.
const PART: usize = 1024;

/// A route whose validity changed because the VRPs did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revalidated {
    /// When this was found.
    pub time: SystemTime,
    /// The VRF of the route.
    pub vrf: Vrf,
    /// Its prefix.
    pub prefix: AnyPrefix,
    /// The AS that originates it; `None` if it has no origin.
    pub origin: Option<u32>,
    /// The validity by the VRPs before; `None` if none were known.
    pub before: Option<Validity>,
    /// The validity now; `None` if no VRPs are known any more.
    pub after: Option<Validity>,
}

/// How much was validated again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ValidityCounts {
    /// Sets of VRPs that were compared with the one before.
    pub sets: u64,
    /// Routes that VRPs cover which came or went: only these are validated.
    pub validated: u64,
    /// Those of them whose validity changed.
    pub changed: u64,
    /// Those of the changed ones that are invalid now and were not before.
    pub newly_invalid: u64,
}

impl ValidityCounts {
    pub(super) fn add(&mut self, other: &Self) {
        self.sets += other.sets;
        self.validated += other.validated;
        self.changed += other.changed;
        self.newly_invalid += other.newly_invalid;
    }
}

/// The validity of a route with these attributes; `None` if they are not of BGP.
pub(crate) fn validity_of<A: Addr>(
    vrps: &Vrps,
    prefix: Prefix<A>,
    set: &AttributeSet,
) -> Option<Validity> {
    Some(vrps.validity(A::any(prefix), set.bgp()?.origin_as))
}

/// A thread that validates the routes of a live table again as VRPs come and go: those that a changed VRP covers, no
/// others. Dropping it ends the thread. A [`LiveVrps`] has one at a time.
pub struct Revalidator {
    vrps: Arc<LiveVrps>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Revalidator {
    /// Starts the thread.
    ///
    /// # Errors
    /// If the system has no thread.
    pub fn start(vrps: Arc<LiveVrps>, table: Arc<Live>) -> std::io::Result<Self> {
        let (shared, stop) = (Arc::clone(&vrps), Arc::<AtomicBool>::default());
        let stopped = Arc::clone(&stop);
        let thread = thread::Builder::new().name("revalidate".to_owned()).spawn(move || {
            while let Some(step) = shared.next_step(&stopped) {
                let found = Found::of(&step, &table);
                shared.found(found.routes, found.counts);
            }
        })?;
        Ok(Self { vrps, stop, thread: Some(thread) })
    }
}

impl Drop for Revalidator {
    fn drop(&mut self) {
        self.vrps.stop(&self.stop);
        if let Some(thread) = self.thread.take() {
            // A panic was reported when it happened.
            let _ = thread.join();
        }
    }
}

/// What a step changed.
struct Found<'a> {
    step: &'a Step,
    time: SystemTime,
    routes: Vec<Revalidated>,
    counts: ValidityCounts,
}

impl<'a> Found<'a> {
    fn of(step: &'a Step, table: &Live) -> Self {
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for prefix in &step.changed {
            match prefix.unmapped() {
                AnyPrefix::V4(prefix) => v4.push(prefix),
                AnyPrefix::V6(prefix) => v6.push(prefix),
            }
        }
        let (v4, v6) = (disjoint(v4), disjoint(v6));
        let counts = ValidityCounts { sets: 1, ..ValidityCounts::default() };
        let mut found = Self { step, time: SystemTime::now(), routes: Vec::new(), counts };
        for vrf in table.with_rib(|rib| rib.vrfs().collect::<Vec<_>>()) {
            found.family(table, vrf, &v4);
            found.family(table, vrf, &v6);
        }
        found
    }

    /// Validates the routes that these prefixes cover, some at a time, so that the feed never waits for long.
    fn family<A: Addr>(&mut self, table: &Live, vrf: Vrf, changed: &[Prefix<A>]) {
        for &block in changed {
            let mut after = None;
            loop {
                let last = table.with_rib(|rib| {
                    let (mut read, mut last) = (0, None);
                    for (prefix, set) in rib.part_with_attributes(vrf, after.unwrap_or(block), PART)
                    {
                        if !block.covers(prefix) {
                            return None;
                        }
                        if Some(prefix) != after {
                            self.route(vrf, prefix, set);
                        }
                        (read, last) = (read + 1, Some(prefix));
                    }
                    last.filter(|_| read == PART)
                });
                match last {
                    Some(last) => after = Some(last),
                    None => break,
                }
            }
        }
    }

    fn route<A: Addr>(&mut self, vrf: Vrf, prefix: Prefix<A>, set: &AttributeSet) {
        let validity = |vrps: &Option<Arc<Vrps>>| validity_of(vrps.as_ref()?, prefix, set);
        let (before, after) = (validity(&self.step.before.vrps), validity(&self.step.after.vrps));
        self.counts.validated += 1;
        if before == after {
            return;
        }
        self.counts.changed += 1;
        let is_invalid = |validity: Option<Validity>| validity.is_some_and(Validity::is_invalid);
        self.counts.newly_invalid += u64::from(is_invalid(after) && !is_invalid(before));
        let origin = set.bgp().and_then(|bgp| bgp.origin_as);
        let (time, prefix) = (self.time, A::any(prefix));
        // The first sets of a large table change all routes: only those that can be kept are collected.
        if self.routes.len() == 2 * super::KEPT {
            self.routes.drain(..super::KEPT);
        }
        self.routes.push(Revalidated { time, vrf, prefix, origin, before, after });
    }
}

/// The prefixes in order, without those that others of them cover.
fn disjoint<A: Addr>(mut prefixes: Vec<Prefix<A>>) -> Vec<Prefix<A>> {
    prefixes.sort_unstable();
    prefixes.dedup_by(|next, kept| kept.covers(*next));
    prefixes
}
