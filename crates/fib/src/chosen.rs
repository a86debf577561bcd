//! An engine over the routes of a family, compiled or loaded.

use std::time::Duration;

use fibula_core::{Addr, BuildError, LoadError, Routes};
use fibula_engines::{BoxedEngine, Entry, Isa, Registry, Stopwatch};
use fibula_rib::{EnginePart, Pod, StoredRoutes};

use crate::open_family::{Engine, EngineReport};

/// An engine with its name and the reason for the choice.
pub struct Chosen<A: Addr> {
    /// The engine's name, under which a snapshot stores it.
    pub name: &'static str,
    /// The instruction-set form that runs.
    pub isa: Isa,
    /// The reason for the choice, in one line.
    pub reason: String,
    /// The time it took to compile or load.
    pub time: Duration,
    /// The engine.
    pub engine: BoxedEngine<A>,
}

impl<A: Addr> Chosen<A> {
    /// Compiles the routes with this engine.
    ///
    /// # Errors
    /// If the routes exceed the engine's limits.
    pub fn named(entry: &Entry<A>, routes: &Routes<A>, isa: Isa) -> Result<Self, BuildError> {
        let started = Stopwatch::start();
        let engine = entry.build(routes, isa)?;
        Ok(Self::new(entry, isa, "requested", started, engine))
    }

    /// Compiles the routes with the engine that [`Registry::auto`] chooses.
    ///
    /// # Panics
    /// If there are 2^31 routes or more.
    pub fn auto(registry: &Registry, routes: &Routes<A>, isa: Isa) -> Self {
        let started = Stopwatch::start();
        let auto = registry.auto(routes, isa);
        Self { reason: auto.reason, ..Self::new(&auto.entry, isa, "", started, auto.engine) }
    }

    /// Loads the engine whose tables are stored with the routes, and uses them in place.
    ///
    /// # Errors
    /// If its tables are inconsistent.
    pub fn load(entry: &Entry<A>, stored: &StoredRoutes<A>, isa: Isa) -> Result<Self, LoadError>
    where
        A: Addr + Pod,
    {
        let started = Stopwatch::start();
        let engine = entry.load(stored.tables(), stored.hop_count(), isa)?;
        Ok(Self::new(entry, isa, "stored with the table", started, engine))
    }

    fn new(
        entry: &Entry<A>,
        isa: Isa,
        why: &str,
        started: Stopwatch,
        engine: BoxedEngine<A>,
    ) -> Self {
        Self {
            name: entry.name,
            isa: Self::form(entry, isa),
            reason: format!("{}: {why}", entry.name),
            time: started.elapsed(),
            engine,
        }
    }

    /// The form of an engine that runs for `isa`: the best one that needs no newer instructions.
    pub fn form(entry: &Entry<A>, isa: Isa) -> Isa {
        isa.best_of(entry.isas)
    }

    /// Adds to the reason which engines were tried before.
    pub(crate) fn into_engine(self, passed: &str) -> (Engine<A>, EngineReport)
    where
        A: Addr + Pod,
    {
        let Self { name, isa, reason, time, engine } = self;
        let report = EngineReport { name, isa, reason: reason + passed, time };
        (Engine::Compiled(engine), report)
    }
}

/// The engine in the form that a snapshot stores.
pub(crate) fn part<'a, A: Addr>(name: &'static str, engine: &'a BoxedEngine<A>) -> EnginePart<'a> {
    EnginePart::of(name, &**engine)
}
