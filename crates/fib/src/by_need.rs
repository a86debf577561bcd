//! Engines that answer with something other than hops, made when they are worth it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use fibula_core::{Hop, Lookup, Route, Routes};
use fibula_engines::{BoxedEngine, Isa};
use fibula_rib::IndexedRoutes;

use crate::FibFamily;

/// Answers with a number of each matching route: by search at first, by an engine of its own later.
///
/// **When it is worth it.** A search takes 100 to 200 ns for an address, compiling 30 to 50 ns for a route.
/// So the engine is compiled once a quarter as many addresses were searched as there are routes,
/// [`AT_LEAST`] at the least: the two together never take much more than twice the better of them. The
/// thread whose batch reaches the number compiles, after its answers; the others go on searching meanwhile
/// and take the engine when it is there. No thread waits.
pub(crate) struct ByNeed<A: FibFamily> {
    number: Number<A>,
    isa: Isa,
    /// Addresses that were searched.
    searched: AtomicU64,
    /// A thread compiles the engine, or has done so.
    begun: AtomicBool,
    engine: OnceLock<BoxedEngine<A>>,
}

/// The number of a route with this index.
type Number<A> = fn(usize, &Route<A>) -> u32;

/// So few addresses are searched in a few milliseconds, whatever the table.
const AT_LEAST: u64 = 1 << 16;
/// More routes than this are more than engines number; they are searched.
const AT_MOST: usize = 1 << 30;

impl<A: FibFamily> ByNeed<A> {
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
        // Nobody else sets it.
        let _ = self.engine.set(engine);
    }

    /// Bytes of the engine, 0 before there is one.
    pub(crate) fn memory(&self) -> usize {
        self.engine.get().map_or(0, |engine| engine.memory().total())
    }
}
