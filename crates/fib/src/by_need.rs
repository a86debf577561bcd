//! Engines that answer with route numbers or prefix lengths instead of hops, compiled on demand.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use fibula_core::{Addr, Hop, Lookup, Route, Routes};
use fibula_engines::{BoxedEngine, Isa};
use fibula_rib::{IndexedRoutes, Pod};

/// Answers with a number for each matching route: at first by a search, later by a separate engine.
///
/// **When the engine is compiled.** A search takes 100 to 200 ns for an address, and compiling takes 30 to 50 ns for
/// a route. The engine is compiled once the number of searched addresses reaches a quarter of the number of routes,
/// and at least [`AT_LEAST`]. The total time is then never much more than twice that of the better way. The thread
/// whose batch reaches this number compiles the engine after it has answered. Other threads search meanwhile and use
/// the engine once it is there. No thread waits.
pub(crate) struct ByNeed<A: Addr> {
    number: Number<A>,
    isa: Isa,
    /// Number of addresses searched so far.
    searched: AtomicU64,
    /// Set by the thread that compiles the engine, and never cleared.
    begun: AtomicBool,
    engine: OnceLock<BoxedEngine<A>>,
}

/// The number of the route with this index.
type Number<A> = fn(usize, &Route<A>) -> u32;

/// Searching this many addresses takes only a few milliseconds for any table.
const AT_LEAST: u64 = 1 << 16;
/// Larger tables are always searched, because an engine cannot number more routes.
const AT_MOST: usize = 1 << 30;

impl<A: Addr + Pod> ByNeed<A> {
    pub(crate) fn new(isa: Isa, number: Number<A>) -> Self {
        let (searched, begun) = (AtomicU64::new(0), AtomicBool::new(false));
        Self { number, isa, searched, begun, engine: OnceLock::new() }
    }

    /// Answers `addrs[i]` into `numbers[i]`, [`Hop::NONE`] where no route matches.
    pub(crate) fn answer(&self, routes: &IndexedRoutes<A>, addrs: &[A], numbers: &mut [Hop]) {
        assert_eq!(addrs.len(), numbers.len(), "as many numbers as addresses");
        if let Some(engine) = self.engine.get() {
            return engine.lookup_batch(addrs, numbers);
        }
        for (&addr, number) in addrs.iter().zip(numbers) {
            *number = routes
                .matched(addr)
                .map_or(Hop::NONE, |index| Hop::new((self.number)(index, &routes.get(index))));
        }
        let count = addrs.len() as u64;
        let searched = self.searched.fetch_add(count, Ordering::Relaxed) + count;
        let worth = AT_LEAST.max(routes.len() as u64 / 4);
        if searched >= worth && routes.len() <= AT_MOST && !self.begun.swap(true, Ordering::Relaxed)
        {
            self.compile(routes);
        }
    }

    #[cold]
    fn compile(&self, routes: &IndexedRoutes<A>) {
        let numbered = (0..routes.len()).map(|index| {
            let route = routes.get(index);
            Route { hop: Hop::new((self.number)(index, &route)), ..route }
        });
        let numbered: Routes<A> = numbered.collect();
        let engine = fibula_engines::auto(&numbered, self.isa).engine;
        // Only the thread that set `begun` gets here.
        let _ = self.engine.set(engine);
    }

    /// Bytes of the engine; 0 before it is compiled.
    pub(crate) fn memory(&self) -> usize {
        self.engine.get().map_or(0, |engine| engine.memory().total())
    }
}
