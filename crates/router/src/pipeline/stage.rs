//! The work of lookup threads on bursts.

use std::ptr;
use std::sync::Arc;
use std::time::Instant;

use crate::forward::{Forwarder, Outcome, ReasonCounters, View};
use crate::{Packet, Paths, Pool};

/// A worker's own handle for the tables.
pub trait Views: Send {
    /// The tables for one burst. The pipeline calls this at least every few milliseconds, also without bursts.
    fn view(&mut self) -> View<'_>;
}

/// The work of a lookup thread on bursts. [`Routing`] routes them.
pub trait Stage: Send {
    /// Processes all packets of the burst and adds them to the outcome.
    fn process<'p>(
        &mut self,
        pool: &'p Pool,
        now: Instant,
        burst: &mut Vec<Packet<'p>>,
        outcome: &mut Outcome<'p>,
    );

    /// Drops packets that waited for a neighbour in vain.
    fn fail<'p>(
        &mut self,
        pool: &'p Pool,
        now: Instant,
        packets: &mut Vec<Packet<'p>>,
        outcome: &mut Outcome<'p>,
    ) {
        let _ = (pool, now);
        outcome.dropped.append(packets);
    }

    /// Whether neighbours may have been resolved since the last call. Called at least every few milliseconds.
    fn is_changed(&mut self) -> bool {
        false
    }

    /// Its counters, by reason.
    fn counters(&self) -> Option<Arc<ReasonCounters>> {
        None
    }
}

/// Forwards by the tables that are current for each burst.
pub struct Routing<V> {
    views: V,
    forwarder: Forwarder,
    seen: Seen,
}

/// The paths that were seen last. A number, since they may be gone.
#[derive(Default)]
pub(super) struct Seen(usize);

impl Seen {
    /// Whether the paths are others now. Others may come to be where these are: then a change is seen late, when
    /// packets are tried again anyway.
    pub(super) fn is_changed(&mut self, views: &mut impl Views) -> bool {
        let now = ptr::from_ref::<Paths>(views.view().egress).addr();
        std::mem::replace(&mut self.0, now) != now
    }
}

impl<V: Views> Routing<V> {
    /// Makes a stage that forwards by these tables.
    pub fn new(views: V, forwarder: Forwarder) -> Self {
        Self { views, forwarder, seen: Seen::default() }
    }
}

impl<V: Views> Stage for Routing<V> {
    fn process<'p>(
        &mut self,
        pool: &'p Pool,
        now: Instant,
        burst: &mut Vec<Packet<'p>>,
        outcome: &mut Outcome<'p>,
    ) {
        self.forwarder.forward(&self.views.view(), pool, now, burst, outcome);
    }

    fn fail<'p>(
        &mut self,
        pool: &'p Pool,
        now: Instant,
        packets: &mut Vec<Packet<'p>>,
        outcome: &mut Outcome<'p>,
    ) {
        self.forwarder.fail(&self.views.view(), pool, now, packets, outcome);
    }

    fn is_changed(&mut self) -> bool {
        self.seen.is_changed(&mut self.views)
    }

    fn counters(&self) -> Option<Arc<ReasonCounters>> {
        Some(Arc::clone(self.forwarder.counters()))
    }
}
