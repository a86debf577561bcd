//! Chooses the engine of a live table, and decides when to choose again.
//!
//! The best engine depends on the size of the table and on the lengths of its prefixes, and both change: a feed
//! starts with an empty table and ends with a million routes. So the candidates are determined again whenever a
//! sixteenth of the table has changed. This covers a table that doubles or halves, and one whose prefixes become
//! longer. The cost is reading sixteen routes for each change, far less than applying the change.

use fibula_core::{Addr, BoxedEngine, BuildError, FamilyType, PerFamily, Routes};

use crate::sync::Arc;

/// The function that compiles an engine.
type Build<A> = dyn Fn(&Routes<A>) -> Result<BoxedEngine<A>, BuildError> + Send + Sync;

/// An engine that a compiler can use, by name.
#[derive(Clone)]
pub struct Maker<A: Addr> {
    name: &'static str,
    build: Arc<Build<A>>,
}

impl<A: Addr> Maker<A> {
    /// Makes an engine from its name and the function that compiles it.
    pub fn new(
        name: &'static str,
        build: impl Fn(&Routes<A>) -> Result<BoxedEngine<A>, BuildError> + Send + Sync + 'static,
    ) -> Self {
        Self { name, build: Arc::new(build) }
    }

    /// The engine's name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Compiles a table.
    ///
    /// # Errors
    /// The errors of [`Engine::build`](fibula_core::Engine::build).
    pub fn build(&self, routes: &Routes<A>) -> Result<BoxedEngine<A>, BuildError> {
        (self.build)(routes)
    }
}

/// The source of engines for live tables.
pub trait EngineSource<A: Addr>: Send + Sync {
    /// The engines for these routes, the best first; each is the fallback for those before it. This method compiles
    /// nothing. It is called at the start, and again when a sixteenth of the routes has changed.
    fn candidates(&self, routes: &Routes<A>) -> Vec<Maker<A>>;
}

/// Lists of engines. As `PerFamily<Makers>`, the lists are the same for every table.
pub enum Makers {}

impl FamilyType for Makers {
    type Of<A: Addr> = Vec<Maker<A>>;
}

impl<A: Addr> EngineSource<A> for PerFamily<Makers>
where
    Self: Send + Sync,
{
    fn candidates(&self, _: &Routes<A>) -> Vec<Maker<A>> {
        self.get::<A>().clone()
    }
}

/// The engine source is called again when one route in this many has changed.
const PART: usize = 16;

/// The engines of one table.
pub(crate) struct Choice<A: Addr> {
    source: Arc<dyn EngineSource<A>>,
    makers: Vec<Maker<A>>,
    /// Number of changes since the last call of the source.
    changes: usize,
}

impl<A: Addr> Choice<A> {
    pub(crate) fn new(source: Arc<dyn EngineSource<A>>, routes: &Routes<A>) -> Self {
        let makers = source.candidates(routes);
        Self { source, makers, changes: 0 }
    }

    /// The engines, the best first.
    pub(crate) fn makers(&self) -> &[Maker<A>] {
        &self.makers
    }

    /// Counts the changes that led to these routes. Returns whether another engine is the best one now.
    pub(crate) fn review(&mut self, routes: &Routes<A>, changes: usize) -> bool {
        self.changes += changes;
        if self.changes == 0 || self.changes < routes.len() / PART {
            return false;
        }
        self.changes = 0;
        let best = |makers: &[Maker<A>]| makers.first().map(Maker::name);
        let before = best(&self.makers);
        self.makers = self.source.candidates(routes);
        best(&self.makers) != before
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use fibula_core::{Hop, Prefix};

    use super::*;

    /// Names one engine for small tables and another for the rest, and counts its calls.
    struct BySize(Arc<AtomicUsize>);

    impl EngineSource<u32> for BySize {
        fn candidates(&self, routes: &Routes<u32>) -> Vec<Maker<u32>> {
            self.0.fetch_add(1, Ordering::Relaxed);
            let name = if routes.len() < 100 { "small" } else { "large" };
            let build = move |_: &Routes<u32>| {
                Err(BuildError::Config { engine: name, reason: "not built here".into() })
            };
            vec![Maker::new(name, build)]
        }
    }

    fn routes(count: u32) -> Routes<u32> {
        (0..count).map(|i| (Prefix::host(i), Hop::new(0))).collect()
    }

    #[test]
    fn the_source_is_called_as_the_table_changes() {
        let calls = Arc::new(AtomicUsize::new(0));
        let mut choice = Choice::new(Arc::new(BySize(Arc::clone(&calls))), &routes(0));
        assert_eq!(choice.makers()[0].name(), "small");
        let mut changed_at = Vec::new();
        for count in 1..=3200 {
            if choice.review(&routes(count), 1) {
                changed_at.push(count);
            }
        }
        // The change of engine is at most a sixteenth of the table late.
        assert!(matches!(changed_at[..], [100..=107]), "{changed_at:?}");
        assert_eq!(choice.makers()[0].name(), "large");
        // The source is not called at every change, but about 16 times while a table doubles.
        let so_far = calls.load(Ordering::Relaxed);
        assert!((16 * 5..16 * 9).contains(&so_far), "{so_far}");
        assert!(!choice.review(&routes(3200), 200));
        let so_far = calls.load(Ordering::Relaxed);
        assert!(!choice.review(&routes(3200), 0) && !choice.review(&routes(3200), 199));
        assert_eq!(calls.load(Ordering::Relaxed), so_far);
        assert!(choice.review(&routes(90), 3110));
    }
}
