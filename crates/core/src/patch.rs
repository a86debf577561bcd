use alloc::boxed::Box;

use crate::{Addr, BuildError, Lookup, Prefix, Routes};

/// An engine whose table changes while it is in use. A scheme that can patch its tables overrides
/// [`Follow::follow`]; the others keep the default, and are built anew. Object-safe, and independent of
/// [`Persist`](crate::Persist): an engine that cannot be stored can follow.
///
/// A table that others read never changes: patch one that nobody reads, a clone or one that has come
/// back from its readers, and publish it then.
pub trait Follow<A: Addr>: Lookup<A> {
    /// Brings the tables up to date with `routes`, which differ from the routes of the last build or
    /// patch at the prefixes `changed` at most: there a route came, went or got another hop. After
    /// [`Patched::Applied`] every lookup is that of an engine built from `routes`.
    ///
    /// # Errors
    /// [`BuildError::Limit`] if the routes now exceed what the scheme can hold. Then, and after
    /// [`Patched::Rebuild`], the tables are good for nothing but being dropped.
    fn follow(&mut self, routes: &Routes<A>, changed: &[Prefix<A>]) -> Result<Patched, BuildError> {
        let _ = (routes, changed);
        Ok(Patched::Rebuild)
    }

    /// A copy to be patched while this table stays as it is; `None` if the scheme has none that costs much less
    /// than a build.
    fn copy(&self) -> Option<Box<dyn Follow<A>>> {
        None
    }
}

/// What became of a [patch](Follow::follow).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the tables may have to be built anew"]
pub enum Patched {
    /// The tables are up to date.
    Applied,
    /// The change is better, or only, served by a build.
    Rebuild,
}
