//! The compiler: turns batches of changes into generations, on a thread of its own.
//!
//! ```text
//!   due ─► a generation may be made? ─► RIB held: cut, the RIB's answers for the audit ─► RIB let go
//!       ─► routes and attributes changed ─► spare engine patched, or an engine built ─► published ─► audited
//! ```
//!
//! **Patch or build.** A published engine never changes, so a patch needs another one. This is the engine before
//! the current one, once its last reader has released it. It lacks the last batch and
//! the present one, and gets both. Or a copy of the current engine is patched, which lacks only the present batch:
//! that is cheaper for batches of some hundred changes and more, and the only possible patch while readers still have
//! the engine before. After such a batch the copy for the next one is made at once, while the log collects changes. A
//! build compiles the whole table. The compiler measures the cost of all three and takes the cheapest. See ADR 0007.
//!
//! **Which engine.** As the table changes, another engine may suit it better ([`choice`](crate::choice)):
//! then the next generation is built by that one.
//!
//! **Failures.** If an engine refuses the table (a limit), panics, or is found wrong by the audit right after it was
//! built, the next one in the list is tried. If none is left, the last
//! good generation stays in use, and the compiler tries again with the next batch or in the next idle second.
//!
//! Invariants:
//! - the routes here are the RIB's at the time of the last batch;
//! - a generation is published whole: engine, attributes and position in the feed belong together.

mod costs;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::{Duration, Instant};

use fibula_core::{Addr, AnyEngine, BoxedEngine, Hop, Patched, Prefix, Route, Routes, Vrf};

use crate::audit::{Auditor, Probe, differences};
use crate::choice::{Choice, EngineSource, Maker};
use crate::live::SharedRib;
use crate::log::{Arrivals, Due, Log};
use crate::publisher::{AttributeTable, Generation, Publisher, Retired};
use crate::status::{Counters, EngineRefusal, Event, Events};
use crate::sync::Arc;
use crate::{Change, Rib};
use costs::{Costs, UpdateMethod};

/// What the compiler of a table shares with the rest of it.
pub(crate) struct Shared<A: Addr> {
    pub(crate) vrf: Vrf,
    pub(crate) rib: Arc<SharedRib>,
    pub(crate) log: Arc<Log<A>>,
    pub(crate) publisher: Arc<Publisher<A>>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) events: Events,
}

/// What makes the generations of one table.
pub(crate) struct Compiler<A: Addr> {
    shared: Shared<A>,
    tables: Tables<A>,
    auditor: Auditor<A>,
    retired: Retired<A>,
    /// A copy of the current engine, for the next batch.
    prepared: Option<BoxedEngine<A>>,
    /// Changed, but in no generation yet since none could be made.
    unpublished: Vec<Prefix<A>>,
    arrivals: Arrivals,
    heal: bool,
    /// Another engine suits the table better than the one that serves: it is to be built.
    rechosen: bool,
    /// The last generation that was made from the RIB anew since the one before it was wrong.
    healed: u64,
    /// Prefixes that were patched since the last build.
    patched: usize,
    number: u64,
    /// How many generations were built since one was patched.
    builds: u32,
    idle: Duration,
}

/// What engines are made from, and how.
pub(crate) struct Tables<A: Addr> {
    choice: Choice<A>,
    routes: Routes<A>,
    attributes: AttributeTable,
    costs: Costs,
    /// Engines that were wrong right after they were built: they come last from then on.
    distrusted: Vec<&'static str>,
}

type Made<A> = (BoxedEngine<A>, &'static str);

impl<A: Addr> Tables<A> {
    /// The table of the RIB as it is, and the engines that suit it.
    pub(crate) fn of_rib(engines: Arc<dyn EngineSource<A>>, rib: &Rib, vrf: Vrf) -> Self {
        let routes = rib.routes(vrf);
        let mut tables = Self {
            choice: Choice::new(engines, &routes),
            routes,
            attributes: AttributeTable::default(),
            costs: Costs::default(),
            distrusted: Vec::new(),
        };
        tables.take_attributes(rib);
        tables
    }

    /// The table of the RIB as it is, in place of what is here.
    fn take(&mut self, rib: &Rib, vrf: Vrf) {
        self.routes = rib.routes(vrf);
        self.choice.review(&self.routes, self.routes.len());
        self.take_attributes(rib);
    }

    fn take_attributes(&mut self, rib: &Rib) {
        for (number, set) in (0..).zip(rib.sets().iter()) {
            if let Some(set) = set {
                self.attributes.set(number, set);
            }
        }
    }

    /// Builds with the first engine that takes the table; says which do not.
    fn build(&mut self) -> (Option<Made<A>>, Vec<EngineRefusal>) {
        let mut refused = Vec::new();
        let is_trusted = |maker: &&Maker<A>| !self.distrusted.contains(&maker.name());
        let (trusted, others): (Vec<_>, Vec<_>) = self.choice.makers().iter().partition(is_trusted);
        for maker in trusted.into_iter().chain(others) {
            let started = Instant::now();
            let error = match catch_unwind(AssertUnwindSafe(|| maker.build(&self.routes))) {
                Ok(Ok(engine)) => {
                    self.costs.built(started.elapsed());
                    return (Some((engine, maker.name())), refused);
                }
                Ok(Err(error)) => Some(error),
                Err(_) => None,
            };
            refused.push(EngineRefusal { engine: maker.name(), error });
        }
        (None, refused)
    }

    /// A copy of the engine, if it makes any.
    fn copy(&mut self, engine: &dyn AnyEngine<A>) -> Option<BoxedEngine<A>> {
        let started = Instant::now();
        let copy = engine.boxed_copy()?;
        self.costs.copied(started.elapsed());
        Some(copy)
    }

    /// Patches the engine at these prefixes; `None` if it has to be built instead.
    fn patch(&mut self, mut engine: BoxedEngine<A>, at: &[Prefix<A>]) -> Option<BoxedEngine<A>> {
        let started = Instant::now();
        let patched = catch_unwind(AssertUnwindSafe(|| engine.follow(&self.routes, at)));
        self.costs.patched(started.elapsed(), at.len());
        // A limit or panic that recurs is reported by the build.
        matches!(patched, Ok(Ok(Patched::Applied))).then_some(engine)
    }
}

/// What may be said when nothing changes: how often an audit and a new attempt are due.
const IDLE: Duration = Duration::from_secs(1);

/// So few patched prefixes are no reason for a build.
const MANY: usize = 4096;

/// A table that is loaded slowly is built again and again. From the build of this number on it rests for eight times as
/// long as a build takes, and longer after each of the next builds, up to four times that. The processor's time is what
/// the feed lacks then, and the daemon behind it.
const REST_FROM: u32 = 5;
const REST: u32 = 8;
const RESTS: u32 = 4;

impl<A: Addr> Compiler<A> {
    pub(crate) fn new(shared: Shared<A>, tables: Tables<A>, auditor: Auditor<A>) -> Self {
        Self {
            shared,
            tables,
            auditor,
            retired: Retired::new(),
            prepared: None,
            unpublished: Vec::new(),
            arrivals: Arrivals::default(),
            heal: false,
            rechosen: false,
            healed: 0,
            patched: 0,
            number: 1,
            builds: 0,
            idle: IDLE,
        }
    }

    /// Follows the log until it is closed.
    pub(crate) fn run(mut self) {
        loop {
            match self.shared.log.wait_until_due(self.idle) {
                Due::Closed => return,
                due if !self.step(due) => return,
                _ => {}
            }
        }
    }

    /// Publishes what is due; false if readers keep it from that, and the table is being closed.
    fn step(&mut self, due: Due) -> bool {
        if !self.wait_for_readers() {
            return false;
        }
        let (changes, sequence, probes) = self.cut();
        let changed = changes.iter().map(|change| change.prefix);
        self.unpublished.extend(changed);
        let routes = self.tables.routes.len();
        if !self.heal {
            self.apply(&changes);
        }
        // Otherwise a rest would make batches larger, for which builds are better than patches, and so on.
        let is_loading = self.tables.routes.len() > routes + changes.len() / 2;
        let mut rest = Duration::ZERO;
        // Nothing changes any more. What many patches have made of the tables is larger and slower than what a build
        // makes.
        let most = MANY.max(self.tables.routes.len() / 8);
        let anew = due == Due::Idle && changes.is_empty() && self.patched > most;
        if self.heal || anew || !self.unpublished.is_empty() {
            let took = self.make(sequence, anew);
            if is_loading {
                rest = REST * (self.builds + 1).saturating_sub(REST_FROM).min(RESTS) * took;
            }
        }
        // Where no generation could be made, the RIB is ahead of what serves, and known to be.
        if self.unpublished.is_empty() {
            self.audit(&probes);
        }
        self.shared.log.done(rest);
        self.prepare(changes.len());
        true
    }

    /// Copies the current engine, if a batch of as many changes would be patched into a copy. So the copy, and with it
    /// the removal of garbage, takes place while the log collects that batch.
    fn prepare(&mut self, changes: usize) {
        let is_needed = changes > 0 && self.prepared.is_none() && !self.heal && !self.rechosen;
        if !is_needed || self.retired.in_use() > 1 {
            return;
        }
        let behind = self.retired.spare().map(|(_, behind)| behind.len());
        if self.tables.costs.way(changes, behind, true) == UpdateMethod::Copy {
            let started = Instant::now();
            let current = self.shared.publisher.load();
            self.prepared = self.tables.copy(&*current.engine);
            // An engine that makes no copies keeps its spare one, which is all that can be patched.
            if self.prepared.is_some() {
                drop(self.retired.take_spare());
            }
            self.shared.counters.making_ns.add(started.elapsed().as_nanos() as u64);
        }
    }

    /// Waits until one more generation may come to be; false if the table is being closed.
    fn wait_for_readers(&mut self) -> bool {
        let mut waited = 0;
        while self.retired.in_use() > 1 {
            if self.shared.log.is_closed() {
                return false;
            }
            thread::sleep(Duration::from_millis(1));
            self.shared.counters.stalled_ms.add(1);
            waited += 1;
            if waited == 1000 {
                (self.shared.events)(Event::Stalled);
            }
        }
        true
    }

    /// Takes the changes that are due. While the RIB is held, its answers are those that the next
    /// generation has to give.
    fn cut(&mut self) -> (Vec<Change<A>>, u64, Vec<Probe<A>>) {
        // Held also where nothing is compared: the end of a session is many changes and one event.
        let rib = self.shared.rib.lock();
        let batch = self.shared.log.cut();
        if self.heal {
            self.tables.take(&rib, self.shared.vrf);
        }
        let probes =
            self.auditor.probes(&rib, self.shared.vrf, &batch.changes, &self.tables.routes);
        drop(rib);
        self.arrivals.0.extend(batch.arrivals.0);
        (batch.changes, batch.sequence, probes)
    }

    fn apply(&mut self, changes: &[Change<A>]) {
        let routes: Vec<Route<A>> = changes
            .iter()
            .map(|change| Route { prefix: change.prefix, hop: change.hop() })
            .collect();
        let before = self.tables.routes.len();
        self.tables.routes.apply(&routes);
        self.tables.costs.grown(before, self.tables.routes.len());
        for (number, set) in changes.iter().filter_map(|change| change.best.as_ref()) {
            self.tables.attributes.set(*number, set);
        }
        self.rechosen |= self.tables.choice.review(&self.tables.routes, changes.len());
    }

    /// Makes and publishes a generation of what the tables are now, by a build if `anew`; says how long the making
    /// took.
    fn make(&mut self, sequence: u64, anew: bool) -> Duration {
        let started = Instant::now();
        let made = match (!anew).then(|| self.patched()).flatten() {
            Some(made) => {
                self.shared.counters.patches.add(1);
                self.builds = 0;
                self.patched += self.unpublished.len();
                Some(made)
            }
            None => {
                self.builds += 1;
                self.patched = 0;
                self.built()
            }
        };
        let took = started.elapsed();
        self.shared.counters.making_ns.add(took.as_nanos() as u64);
        let Some((engine, name)) = made else { return took };
        self.number += 1;
        self.rechosen = false;
        if std::mem::take(&mut self.heal) {
            self.healed = self.number;
        }
        let attributes = self.tables.attributes.clone();
        let next = Generation { number: self.number, sequence, name, engine, attributes };
        let old = self.shared.publisher.publish(next);
        self.shared.counters.published(self.shared.log.now(), &std::mem::take(&mut self.arrivals));
        self.shared.counters.generations.add(1);
        self.retired.put(old, std::mem::take(&mut self.unpublished));
        took
    }

    /// The spare engine, or a copy of the current one, brought up to date; `None` if a build is cheaper, or another
    /// engine is to take over. An engine that gave way to another one is not patched: it would come back with the
    /// next change.
    fn patched(&mut self) -> Option<Made<A>> {
        let prepared = self.prepared.take();
        if self.heal || self.rechosen {
            return None;
        }
        let current = self.shared.publisher.load();
        let name = current.name;
        let spare = self.retired.spare().filter(|(spare, _)| spare.name == name);
        let behind = spare.map(|(_, behind)| behind.len());
        let (costs, changed) = (self.tables.costs, self.unpublished.len());
        let copy = match prepared {
            Some(_) if costs.way(changed, Some(0), false) == UpdateMethod::Build => return None,
            None if costs.way(changed, behind, true) == UpdateMethod::Copy => {
                self.tables.copy(&*current.engine)
            }
            prepared => prepared,
        };
        drop(current); // nobody but readers has it when it is replaced
        let (engine, mut at) = match copy {
            Some(copy) => (copy, self.unpublished.clone()),
            None if costs.way(changed, behind, false) == UpdateMethod::Spare => {
                let (old, mut at) = self.retired.take_spare()?;
                at.extend_from_slice(&self.unpublished);
                (old.engine, at)
            }
            None => return None,
        };
        at.sort_unstable();
        at.dedup();
        self.tables.patch(engine, &at).map(|engine| (engine, name))
    }

    fn built(&mut self) -> Option<Made<A>> {
        // What could have been patched goes first: two generations, and this one in the making.
        drop((self.retired.take_spare(), self.prepared.take()));
        let (made, refused) = self.tables.build();
        match &made {
            Some((_, name)) => {
                self.shared.counters.rebuilds.add(1);
                if self.shared.publisher.load().name != *name {
                    (self.shared.events)(Event::Engine { now: name, refused });
                }
            }
            None => {
                self.shared.counters.failures.add(1);
                (self.shared.events)(Event::Failed { refused });
            }
        }
        made
    }

    fn audit(&mut self, probes: &[Probe<A>]) {
        if probes.is_empty() {
            return;
        }
        let live = self.shared.publisher.load();
        // An engine that panics is as wrong as one that lies.
        let wrong = catch_unwind(AssertUnwindSafe(|| differences(&live, probes)));
        let wrong =
            wrong.unwrap_or_else(|_| probes.iter().map(|probe| (probe, Hop::NONE)).collect());
        self.shared.counters.probes.add(probes.len() as u64);
        let Some(&(probe, found)) = wrong.first() else { return };
        self.shared.counters.differences.add(wrong.len() as u64);
        (self.shared.events)(Event::Difference {
            prefix: probe.prefix.to_string(),
            addr: probe.addr.to_string_ip(),
            expected: probe.expected,
            found,
            differences: wrong.len() as u64,
        });
        self.heal = true;
        // Wrong although it was just built from the RIB: another engine, if there is one. With none left,
        // the next change or idle second tries again.
        if live.number == self.healed && !self.tables.distrusted.contains(&live.name) {
            self.tables.distrusted.push(live.name);
        }
        if self.tables.distrusted.len() < self.tables.choice.makers().len() {
            self.shared.log.wake();
        }
    }
}

/// The first generation.
pub(crate) fn first<A: Addr>(
    tables: &mut Tables<A>,
    sequence: u64,
) -> Result<(Generation<A>, Vec<EngineRefusal>), Vec<EngineRefusal>> {
    let (made, refused) = tables.build();
    let Some((engine, name)) = made else { return Err(refused) };
    let attributes = tables.attributes.clone();
    Ok((Generation { number: 1, sequence, name, engine, attributes }, refused))
}
