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
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use fibula_core::{Addr, AnyEngine, BoxedEngine, Hop, Patched, Prefix, Route, Routes, Vrf};

use crate::audit::{Auditor, Probe, differences};
use crate::choice::{Choice, EngineSource, Maker};
use crate::log::{Arrivals, Due, Log};
use crate::publisher::{AttributeTable, Generation, Publisher, Retired};
use crate::status::{Counters, EngineRefusal, Event, Events, lock_std};
use crate::sync::Arc;
use crate::{Change, Rib};
use costs::Costs;
pub(crate) use costs::UpdateMethod;

/// The state that a table's compiler shares with the rest of the table.
pub(crate) struct Shared<A: Addr> {
    pub(crate) vrf: Vrf,
    pub(crate) rib: Arc<Mutex<Rib>>,
    pub(crate) log: Arc<Log<A>>,
    pub(crate) publisher: Arc<Publisher<A>>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) events: Events,
}

/// Makes the generations of one table.
pub(crate) struct Compiler<A: Addr> {
    shared: Shared<A>,
    tables: Tables<A>,
    auditor: Auditor<A>,
    retired: Retired<Generation<A>, Prefix<A>>,
    /// A copy of the current engine, for the next batch.
    prepared: Option<BoxedEngine<A>>,
    /// Changed prefixes that are in no generation yet, because none could be made.
    unpublished: Vec<Prefix<A>>,
    arrivals: Arrivals,
    /// The routes are read from the RIB with the next batch: the engine was wrong.
    retake: bool,
    /// Whether another engine suits the table better than the current one, and has to be built.
    rechosen: bool,
    /// The last generation that was rebuilt from the RIB because the one before it was wrong.
    healed: u64,
    /// Prefixes that were patched since the last build.
    patched: usize,
    number: u64,
    /// Number of generations built since the last patched one.
    builds: u32,
    idle: Duration,
}

/// The routes of a table, and the engines to build from them.
pub(crate) struct Tables<A: Addr> {
    pub(crate) choice: Choice<A>,
    pub(crate) routes: Routes<A>,
    attributes: AttributeTable,
    pub(crate) costs: Costs,
    /// Engines that were wrong right after their build. They are tried last from then on.
    distrusted: Vec<&'static str>,
}

/// An engine and its name.
pub(crate) type Made<A> = (BoxedEngine<A>, &'static str);

impl<A: Addr> Tables<A> {
    /// These routes, with the engines that suit them.
    pub(crate) fn new(engines: Arc<dyn EngineSource<A>>, routes: Routes<A>) -> Self {
        Self {
            choice: Choice::new(engines, &routes),
            routes,
            attributes: AttributeTable::default(),
            costs: Costs::default(),
            distrusted: Vec::new(),
        }
    }

    /// Reads the current table of the RIB and determines its engines.
    pub(crate) fn of_rib(engines: Arc<dyn EngineSource<A>>, rib: &Rib, vrf: Vrf) -> Self {
        let mut tables = Self::new(engines, rib.routes(vrf));
        tables.take_attributes(rib);
        tables
    }

    /// Replaces the routes by the current table of the RIB.
    fn take(&mut self, rib: &Rib, vrf: Vrf) {
        self.routes = rib.routes(vrf);
        self.choice.review(&self.routes, self.routes.len());
        self.take_attributes(rib);
    }

    fn take_attributes(&mut self, rib: &Rib) {
        self.attributes.set_names(rib.value_names());
        for (number, set) in (0..).zip(rib.sets().iter()) {
            if let Some(set) = set {
                self.attributes.set(number, set);
            }
        }
    }

    /// Builds with the first engine that accepts the table, and returns the refusals of the others.
    pub(crate) fn build(&mut self) -> (Option<Made<A>>, Vec<EngineRefusal>) {
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

    /// A copy of the engine, if the engine can be copied.
    pub(crate) fn copy(&mut self, engine: &dyn AnyEngine<A>) -> Option<BoxedEngine<A>> {
        let started = Instant::now();
        let copy = engine.boxed_copy()?;
        self.costs.copied(started.elapsed());
        Some(copy)
    }

    /// Patches the engine at these prefixes; `None` if it has to be built instead. `part` are the routes that it reads,
    /// if they are not among all.
    pub(crate) fn patch(
        &mut self,
        mut engine: BoxedEngine<A>,
        part: Option<&Routes<A>>,
        at: &[Prefix<A>],
    ) -> Option<BoxedEngine<A>> {
        let routes = part.unwrap_or(&self.routes);
        let started = Instant::now();
        let patched = catch_unwind(AssertUnwindSafe(|| engine.follow(routes, at)));
        self.costs.patched(started.elapsed(), at.len());
        // A limit or panic that recurs is reported by the build.
        matches!(patched, Ok(Ok(Patched::Applied))).then_some(engine)
    }
}

/// The interval of audits and of new attempts while nothing changes.
const IDLE: Duration = Duration::from_secs(1);

/// Below this number of patched prefixes, no build is due.
const MANY: usize = 4096;

/// A table that is loaded slowly is built again and again. From this build on, the compiler pauses for eight times the
/// time of a build, and longer after each further build, up to four times that. Otherwise it takes processor time from
/// the feed and from the daemon behind it.
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
            retake: false,
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

    /// Publishes the due changes; false if readers block this while the table is being closed.
    fn step(&mut self, due: Due) -> bool {
        if !self.wait_for_readers() {
            return false;
        }
        let (changes, sequence, probes) = self.cut();
        let changed = changes.iter().map(|change| change.prefix);
        self.unpublished.extend(changed);
        let routes = self.tables.routes.len();
        if !self.retake {
            self.apply(&changes);
        }
        // The compiler pauses only while the table is loaded: otherwise a pause would make batches larger, which
        // favours builds over patches, which would cause further pauses.
        let is_loading = self.tables.routes.len() > routes + changes.len() / 2;
        let mut rest = Duration::ZERO;
        // Nothing changes any more. A table that was patched many times is larger and slower than a new one.
        let most = MANY.max(self.tables.routes.len() / 8);
        let anew = due == Due::Idle && changes.is_empty() && self.patched > most;
        if self.retake || anew || !self.unpublished.is_empty() {
            let took = self.make(sequence, anew);
            if is_loading {
                rest = REST * (self.builds + 1).saturating_sub(REST_FROM).min(RESTS) * took;
            }
        }
        // If no generation could be made, the RIB is known to be ahead of the published one, so no comparison is made.
        if self.unpublished.is_empty() && !self.retake {
            self.audit(&probes);
        }
        self.shared.log.done(rest);
        self.prepare(changes.len());
        true
    }

    /// Copies the current engine, if a batch of as many changes would be patched into a copy. So the copy, and with it
    /// the removal of garbage, takes place while the log collects that batch.
    fn prepare(&mut self, changes: usize) {
        let is_needed = changes > 0 && self.prepared.is_none() && !self.retake && !self.rechosen;
        if !is_needed || self.retired.in_use() > 1 {
            return;
        }
        let behind = self.retired.spare().map(|(_, behind)| behind.len());
        if self.tables.costs.way(changes, behind, true) == UpdateMethod::Copy {
            let started = Instant::now();
            let current = self.shared.publisher.load();
            self.prepared = self.tables.copy(&*current.engine);
            // An engine without copies keeps its spare one, because only that can be patched.
            if self.prepared.is_some() {
                drop(self.retired.take_spare());
            }
            self.shared.counters.making_ns.add(started.elapsed().as_nanos() as u64);
        }
    }

    /// Waits until one more generation may be made; false if the table is being closed.
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

    /// Takes the due changes. While the RIB is locked, its answers are those that the next generation must give.
    fn cut(&mut self) -> (Vec<Change<A>>, u64, Vec<Probe<A>>) {
        // The RIB is locked even if nothing is compared, because the end of a session is one event with many changes.
        let rib = lock_std(&self.shared.rib);
        let batch = self.shared.log.cut();
        self.tables.attributes.set_names(rib.value_names());
        if self.retake {
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

    /// Makes and publishes a generation of the current routes, by a build if `anew`. Returns how long making it took.
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
        let is_taken = std::mem::take(&mut self.retake);
        if is_taken {
            self.healed = self.number;
        }
        let attributes = self.tables.attributes.clone();
        let next = Generation { number: self.number, sequence, name, engine, attributes };
        let old = self.shared.publisher.publish(next);
        self.shared.counters.published(self.shared.log.now(), &std::mem::take(&mut self.arrivals));
        self.shared.counters.generations.add(1);
        let behind = std::mem::take(&mut self.unpublished);
        self.retired.put(old, behind);
        if is_taken {
            // It was wrong.
            drop(self.retired.take_spare());
        }
        took
    }

    /// The spare engine, or a copy of the current one, brought up to date; `None` if a build is cheaper, or another
    /// engine is to take over. An engine that gave way to another one is not patched: it would come back with the
    /// next change.
    fn patched(&mut self) -> Option<Made<A>> {
        let prepared = self.prepared.take();
        if self.retake || self.rechosen {
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
        drop(current); // only readers may hold it when it is replaced
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
        self.tables.patch(engine, None, &at).map(|engine| (engine, name))
    }

    fn built(&mut self) -> Option<Made<A>> {
        // The spare engine is dropped first, so that there are only two generations and the one being made.
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
        // A panic of an engine counts as a wrong answer.
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
        self.retake = true;
        // The engine is wrong although it was just built from the RIB, so another one is used if there is one. With
        // none left, the next change or idle second tries again.
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
