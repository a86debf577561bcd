//! Routing with a policy in front of it, by one table or several.

use std::sync::Arc;
use std::time::Instant;

use super::stage::{Seen, Stage, Views};
use crate::forward::{Forwarder, Guide, Outcome, Policy, ReasonCounters};
use crate::{Packet, Pool};

/// Gets verdicts on each burst from a [`Policy`], and forwards the remaining packets by the tables that the verdicts
/// name. Without a policy, [`Routing`](super::Routing) does the same in less time.
///
/// The tables have the ports of one router: the same ones by the same numbers in the paths of all views. Packets that
/// leave by a port keep their order if they were looked up in the same table.
pub struct Guided<V, P> {
    tables: Vec<(V, Seen)>,
    guide: Guide<P>,
    forwarder: Forwarder,
    /// Kept for their memory: the packets of each table.
    spare: Vec<Vec<Packet<'static>>>,
}

impl<V: Views, P: Policy> Guided<V, P> {
    /// Forwards by these tables, by the numbers that verdicts name, of which there is one at least.
    ///
    /// # Panics
    /// Without a table.
    pub fn new(tables: impl IntoIterator<Item = V>, policy: P, forwarder: Forwarder) -> Self {
        let tables: Vec<_> = tables.into_iter().map(|views| (views, Seen::default())).collect();
        assert!(!tables.is_empty(), "a router has one table at least");
        let spare = tables.iter().map(|_| Vec::new()).collect();
        Self { tables, guide: Guide::new(policy), forwarder, spare }
    }
}

/// The memory of a vector whose packets are gone. An iterator of as large elements is collected in its place.
fn emptied<'to>(mut packets: Vec<Packet<'_>>) -> Vec<Packet<'to>> {
    packets.clear();
    packets.into_iter().map_while(|_| None).collect()
}

impl<V: Views, P: Policy> Stage for Guided<V, P> {
    fn process<'p>(
        &mut self,
        pool: &'p Pool,
        now: Instant,
        burst: &mut Vec<Packet<'p>>,
        outcome: &mut Outcome<'p>,
    ) {
        let Self { tables, guide, forwarder, spare } = self;
        let mut sorted: Vec<Vec<Packet<'p>>> =
            std::mem::take(spare).into_iter().map(emptied).collect();
        guide.sort(forwarder, now, burst, (&mut sorted, outcome));
        for ((views, _), packets) in tables.iter_mut().zip(&mut sorted) {
            if !packets.is_empty() {
                forwarder.forward(&views.view(), pool, now, packets, outcome);
            }
        }
        *spare = sorted.into_iter().map(emptied).collect();
    }

    fn fail<'p>(
        &mut self,
        pool: &'p Pool,
        now: Instant,
        packets: &mut Vec<Packet<'p>>,
        outcome: &mut Outcome<'p>,
    ) {
        // The errors come from the ports' addresses, which all tables have.
        self.forwarder.fail(&self.tables[0].0.view(), pool, now, packets, outcome);
    }

    fn is_changed(&mut self) -> bool {
        // All of them are renewed, so that none keeps old tables.
        let changed = self.tables.iter_mut().map(|(views, seen)| seen.is_changed(views));
        changed.fold(false, |any, is_changed| any | is_changed)
    }

    fn counters(&self) -> Option<Arc<ReasonCounters>> {
        Some(Arc::clone(self.forwarder.counters()))
    }
}
