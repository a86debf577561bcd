//! One family of an open table: its routes, its engine, and the questions about them.

use std::sync::Arc;
use std::time::Duration;

use fibula_core::{AnyPrefix, Hop, Lookup, Memory, Prefix, Route};
use fibula_engines::{BoxedEngine, EngineFamily, Isa};
use fibula_rib::{EnginePart, Generation, IndexedRoutes, Pod};

use crate::by_need::ByNeed;
use crate::{Fib, chosen};

/// The families of an open table: `u32` and `u128`.
pub trait FibFamily: EngineFamily + Pod {
    #[doc(hidden)]
    fn open_family(fib: &Fib) -> &OpenFamily<Self>;
    #[doc(hidden)]
    fn any_prefix(prefix: Prefix<Self>) -> AnyPrefix;
}

impl FibFamily for u32 {
    fn open_family(fib: &Fib) -> &OpenFamily<Self> {
        fib.v4()
    }
    fn any_prefix(prefix: Prefix<Self>) -> AnyPrefix {
        AnyPrefix::V4(prefix)
    }
}

impl FibFamily for u128 {
    fn open_family(fib: &Fib) -> &OpenFamily<Self> {
        fib.v6()
    }
    fn any_prefix(prefix: Prefix<Self>) -> AnyPrefix {
        AnyPrefix::V6(prefix)
    }
}

/// What answers with hops.
pub(crate) enum Engine<A: EngineFamily> {
    Compiled(BoxedEngine<A>),
    /// The search in the sorted routes.
    Search,
    Live(Arc<Generation<A>>),
}

/// Which engine it is, and why.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    pub(crate) name: &'static str,
    pub(crate) isa: Isa,
    pub(crate) reason: String,
    pub(crate) time: Duration,
}

/// One family of a [`Fib`].
pub struct OpenFamily<A: FibFamily> {
    /// Empty for a generation of a live table.
    routes: IndexedRoutes<A>,
    engine: Engine<A>,
    report: Report,
    numbers: ByNeed<A>,
    lengths: ByNeed<A>,
}

impl<A: FibFamily> OpenFamily<A> {
    /// `isa` is for the engines that are compiled by need.
    pub(crate) fn new(
        routes: IndexedRoutes<A>,
        (engine, report): (Engine<A>, Report),
        isa: Isa,
    ) -> Self {
        // There are fewer routes than hops can number.
        let number = |index: usize, _: &Route<A>| index as u32;
        let length = |_: usize, route: &Route<A>| -> u32 { route.prefix.len().into() };
        let (numbers, lengths) = (ByNeed::new(isa, number), ByNeed::new(isa, length));
        Self { routes, engine, report, numbers, lengths }
    }

    /// What answers with hops: the rows of [`Fib::columns`], or the numbers of the attribute sets of a
    /// generation. Keep the reference for a batch; it is one virtual call from the engine.
    #[inline]
    pub fn engine(&self) -> &dyn Lookup<A> {
        match &self.engine {
            Engine::Compiled(engine) => &**engine,
            Engine::Search => &self.routes,
            Engine::Live(generation) => generation.engine(),
        }
    }

    /// The engine's name; `search` where addresses are searched in the routes.
    pub fn engine_name(&self) -> &'static str {
        self.report.name
    }

    /// The form of the engine that runs.
    pub fn isa(&self) -> Isa {
        self.report.isa
    }

    /// Why this engine answers, in a line that begins with its name.
    pub fn reason(&self) -> &str {
        &self.report.reason
    }

    /// How long it took to compile or to load the engine.
    pub fn time(&self) -> Duration {
        self.report.time
    }

    /// The routes with the search for the matching one; none of a generation of a live table.
    pub fn routes(&self) -> &IndexedRoutes<A> {
        &self.routes
    }

    /// Answers `addrs[i]` with the number of the matching route ([`IndexedRoutes::get`]) in `numbers[i]`,
    /// [`Hop::NONE`] where there is none. Few addresses are searched; once there were a quarter
    /// as many as the table has routes, 65,536 at the least, an engine is compiled for them by the thread that asks, while
    /// others go on searching.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn numbers(&self, addrs: &[A], numbers: &mut [Hop]) {
        self.numbers.answer(&self.routes, addrs, numbers);
    }

    /// As [`OpenFamily::numbers`], with the lengths of the matching prefixes. An engine for lengths is a
    /// third the size of one for numbers, and all that it takes to write prefixes.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn lengths(&self, addrs: &[A], lengths: &mut [Hop]) {
        self.lengths.answer(&self.routes, addrs, lengths);
    }

    /// Bytes of the engine by table, those for route numbers and lengths included if they were made.
    pub fn memory(&self) -> Memory {
        let engine = self.engine().memory();
        let more = [("numbers", self.numbers.memory()), ("lengths", self.lengths.memory())];
        let made = more.into_iter().filter(|(_, bytes)| *bytes > 0);
        Memory::new(engine.tables().iter().copied().chain(made))
    }

    /// The engine as a snapshot stores it.
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
