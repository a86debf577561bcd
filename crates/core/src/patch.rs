use crate::{Addr, BuildError, Lookup, Prefix, Routes};

/// An engine whose tables can be updated. A scheme that can patch its tables overrides [`Follow::follow`]; the
/// default requests a new build. The trait is object-safe and independent of [`Persist`](crate::Persist): an engine
/// that cannot be stored can still be patched.
///
/// A table that readers use never changes. Patch a copy that has no readers, either a clone or an older table that
/// its readers have released, and publish it afterwards.
pub trait Follow<A: Addr>: Lookup<A> {
    /// Updates the tables to `routes`, which differ from the routes of the last build or patch at most at the
    /// prefixes `changed`: there, a route was added, removed or got another hop. After [`Patched::Applied`], every
    /// lookup gives the same answer as an engine built from `routes`.
    ///
    /// # Errors
    /// [`BuildError::Limit`] if the routes now exceed the scheme's limits. After an error, and after
    /// [`Patched::Rebuild`], the tables are unusable and must be dropped.
    fn follow(&mut self, routes: &Routes<A>, changed: &[Prefix<A>]) -> Result<Patched, BuildError> {
        let _ = (routes, changed);
        Ok(Patched::Rebuild)
    }

    /// The block that [`Follow::follow`] reads for this changed prefix: of `routes`, it asks for nothing but the routes
    /// within the block, those that cover it, and [`Routes::hop_count`]. So a caller with a few changes may give it
    /// these alone ([`Routes::part_of`]). `None` if it reads more, or that is not known.
    fn reach(&self, changed: Prefix<A>) -> Option<Prefix<A>> {
        let _ = changed;
        None
    }

    /// A copy to patch while this table stays unchanged; `None` if a copy would not be much cheaper than a build.
    /// The copy may omit the garbage of patches.
    fn copy(&self) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }
}

/// The outcome of a [patch](Follow::follow).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the tables may have to be built anew"]
pub enum Patched {
    /// The tables are up to date.
    Applied,
    /// A build is faster for this change, or is the only way.
    Rebuild,
}
