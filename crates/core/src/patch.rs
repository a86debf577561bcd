use crate::{Addr, BuildError, Engine, Persist, Prefix, Routes};

/// A scheme whose tables can follow a change of the routes, without being compiled anew.
///
/// A table that others read never changes: patch one that nobody reads, a clone or one that has come
/// back from its readers, and publish it then.
pub trait Patch<A: Addr>: Engine<A> {
    /// Brings the tables up to date with `routes`, which differ from the routes of the last build or
    /// patch at the prefixes `changed` at most: there a route came, went or got another hop. Afterwards
    /// every lookup is that of an engine built from `routes`.
    ///
    /// # Errors
    /// [`BuildError::Limit`] if the routes now exceed what the scheme can hold. Then, and after
    /// [`Patched::Rebuild`], the tables are good for nothing but being dropped.
    fn patch(&mut self, routes: &Routes<A>, changed: &[Prefix<A>]) -> Result<Patched, BuildError>;
}

/// What became of a [patch](Patch::patch).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the tables may have to be built anew"]
pub enum Patched {
    /// The tables are up to date.
    Applied,
    /// The change is better, or only, served by a build.
    Rebuild,
}

/// The object-safe face of an engine whose table changes while it is in use: whatever can
/// [`Patch`] does, whatever cannot says so, and is built anew.
pub trait Follow<A: Addr>: Persist<A> {
    /// As [`Patch::patch`]; [`Patched::Rebuild`], the tables untouched, where the scheme cannot.
    ///
    /// # Errors
    /// As [`Patch::patch`].
    fn follow(&mut self, routes: &Routes<A>, changed: &[Prefix<A>]) -> Result<Patched, BuildError> {
        let _ = (routes, changed);
        Ok(Patched::Rebuild)
    }
}
