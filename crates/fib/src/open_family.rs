//! One family of an open table: its routes, its engine, and its lookups.

use std::sync::Arc;
use std::time::Duration;

use fibula_core::{Addr, AnyEngine, FamilyType, Hop, Memory, Route};
use fibula_engines::{BoxedEngine, Isa};
use fibula_rib::{EnginePart, Generation, IndexedRoutes, Pod};

use crate::by_need::ByNeed;
use crate::chosen;

/// The part that answers with hops.
pub(crate) enum Engine<A: Addr> {
    Compiled(BoxedEngine<A>),
    /// A search in the sorted routes.
    Search,
    Live(Arc<Generation<A>>),
}

/// The name of the engine, and the reason for the choice.
#[derive(Clone, Debug)]
pub(crate) struct EngineReport {
    pub(crate) name: &'static str,
    pub(crate) isa: Isa,
    pub(crate) reason: String,
    pub(crate) time: Duration,
}

/// One family of a [`Fib`](crate::Fib).
pub struct OpenFamily<A: Addr> {
    /// Empty for a generation of a live table.
    routes: IndexedRoutes<A>,
    engine: Engine<A>,
    report: EngineReport,
    numbers: ByNeed<A>,
    lengths: ByNeed<A>,
}

/// An [`OpenFamily`] for each family.
pub(crate) struct OpenFamilies;

impl FamilyType for OpenFamilies {
    type Of<A: Addr> = OpenFamily<A>;
}

impl<A: Addr + Pod> OpenFamily<A> {
    /// `isa` is for the engines that are compiled on demand.
    pub(crate) fn new(
        routes: IndexedRoutes<A>,
        (engine, report): (Engine<A>, EngineReport),
        isa: Isa,
    ) -> Self {
        // Hops can number more routes than a table can have.
        let number = |index: usize, _: &Route<A>| index as u32;
        let length = |_: usize, route: &Route<A>| -> u32 { route.prefix.len().into() };
        let (numbers, lengths) = (ByNeed::new(isa, number), ByNeed::new(isa, length));
        Self { routes, engine, report, numbers, lengths }
    }

    /// The lookup that answers with hops: rows of [`Fib::columns`](crate::Fib::columns), or numbers of attribute sets
    /// for a generation. Keep the reference for a whole batch: it saves the check for the kind of engine, and a lookup
    /// is one virtual call.
    #[inline]
    pub fn engine(&self) -> &dyn AnyEngine<A> {
        match &self.engine {
            Engine::Compiled(engine) => &**engine,
            Engine::Search => &self.routes,
            Engine::Live(generation) => generation.engine(),
        }
    }

    /// The engine's name; `search` if addresses are searched in the routes.
    pub fn engine_name(&self) -> &'static str {
        self.report.name
    }

    /// The instruction-set form of the engine that runs.
    pub fn isa(&self) -> Isa {
        self.report.isa
    }

    /// One line with the engine in use and the reason.
    pub fn reason(&self) -> &str {
        &self.report.reason
    }

    /// The time it took to compile or load the engine.
    pub fn time(&self) -> Duration {
        self.report.time
    }

    /// The routes, with a search for the longest match. Empty for a generation of a live table.
    pub fn routes(&self) -> &IndexedRoutes<A> {
        &self.routes
    }

    /// Looks up route numbers: the number of the route that matches `addrs[i]` ([`IndexedRoutes::get`]) is written to
    /// `numbers[i]`, [`Hop::NONE`] if no route matches. The first addresses are searched in the routes. Once their
    /// number reaches a quarter of the number of routes, and at least 65,536, the calling thread compiles an engine
    /// for route numbers, while other threads go on searching.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn numbers(&self, addrs: &[A], numbers: &mut [Hop]) {
        self.numbers.answer(&self.routes, addrs, numbers);
    }

    /// Like [`OpenFamily::numbers`], with the lengths of the matching prefixes instead. The engine for lengths is a
    /// third the size of the one for numbers, and lengths are enough to print the prefixes.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn lengths(&self, addrs: &[A], lengths: &mut [Hop]) {
        self.lengths.answer(&self.routes, addrs, lengths);
    }

    /// Bytes of memory by table, with the engines for route numbers and lengths if they were compiled.
    pub fn memory(&self) -> Memory {
        let engine = self.engine().memory();
        let more = [("numbers", self.numbers.memory()), ("lengths", self.lengths.memory())];
        let made = more.into_iter().filter(|(_, bytes)| *bytes > 0);
        Memory::new(engine.tables().iter().copied().chain(made))
    }

    /// The engine in the form that a snapshot stores.
    pub(crate) fn part(&self) -> EnginePart<'_> {
        match &self.engine {
            Engine::Compiled(engine) => chosen::part(self.report.name, engine),
            Engine::Search | Engine::Live(_) => EnginePart::none(),
        }
    }

    pub(crate) fn generation(&self) -> Option<&Generation<A>> {
        match &self.engine {
            Engine::Live(generation) => Some(generation),
            _ => None,
        }
    }
}
