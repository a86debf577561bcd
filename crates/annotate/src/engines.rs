//! What answers for the addresses.

use fibula_core::Lookup;

/// The compiled engines of a snapshot.
#[derive(Clone, Copy)]
pub struct Engines<'a> {
    pub(crate) v4: &'a dyn Lookup<u32>,
    pub(crate) v6: &'a dyn Lookup<u128>,
    pub(crate) routes: Option<Pair<'a>>,
    pub(crate) lengths: Option<Pair<'a>>,
}

/// An engine for each family.
type Pair<'a> = (&'a dyn Lookup<u32>, &'a dyn Lookup<u128>);

impl<'a> Engines<'a> {
    /// Engines that answer with the snapshot's hops: loaded from it, or built from its routes.
    pub fn new(v4: &'a dyn Lookup<u32>, v6: &'a dyn Lookup<u128>) -> Self {
        Self { v4, v6, routes: None, lengths: None }
    }

    /// With a second pair, whose hops are the numbers of the snapshot's routes in their stored order
    /// (hop `i` is route `i`). Matched prefixes are then found as fast as hops; without, by a binary
    /// search.
    #[must_use]
    pub fn with_routes(self, v4: &'a dyn Lookup<u32>, v6: &'a dyn Lookup<u128>) -> Self {
        Self { routes: Some((v4, v6)), ..self }
    }

    /// With a pair whose hops are the lengths of the matching prefixes. They are a third the size of
    /// those for routes and all it takes to write prefixes; [`ColumnAnnotator`](crate::ColumnAnnotator)
    /// takes them where nothing else about a route is asked for.
    #[must_use]
    pub fn with_lengths(self, v4: &'a dyn Lookup<u32>, v6: &'a dyn Lookup<u128>) -> Self {
        Self { lengths: Some((v4, v6)), ..self }
    }
}
