use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::{
    Addr, BuildError, Follow, Hop, Lookup, Memory, Patched, Persist, Prefix, Routes, TableRef,
};

/// An engine over a table, whichever its scheme: the object that lists of engines and published tables hold.
///
/// [`stored`] and [`unstored`] make one of an engine. The methods' defaults are those of an engine that can only look
/// addresses up.
pub trait AnyEngine<A: Addr>: Follow<A> {
    /// The name of its scheme, [`Engine::NAME`](crate::Engine::NAME), and its tables as they are stored, see
    /// [`Persist::tables`]; `None` if it has no stored form.
    ///
    /// They are all that a lookup reads, so a program elsewhere, for instance in the kernel, can look up in a copy of
    /// them.
    fn persist(&self) -> Option<(&'static str, Vec<TableRef<'_>>)> {
        None
    }

    /// As [`Follow::copy`].
    fn boxed_copy(&self) -> Option<BoxedEngine<A>> {
        None
    }
}

/// An engine over a table.
pub type BoxedEngine<A> = Box<dyn AnyEngine<A>>;

/// An engine with its stored form.
pub fn stored<A: Addr>(engine: impl Follow<A> + Persist<A> + 'static) -> BoxedEngine<A> {
    fn persist<A: Addr, E: Persist<A>>(engine: &E) -> (&'static str, Vec<TableRef<'_>>) {
        (E::NAME, engine.tables())
    }
    Box::new(Boxed { engine, persist: Some(persist::<A, _>) })
}

/// An engine without a stored form.
pub fn unstored<A: Addr>(engine: impl Follow<A> + 'static) -> BoxedEngine<A> {
    Box::new(Boxed { engine, persist: None })
}

/// [`AnyEngine::persist`] of an engine that has a stored form.
type PersistFn<E> = fn(&E) -> (&'static str, Vec<TableRef<'_>>);

/// An engine with the abilities of its scheme.
struct Boxed<E> {
    engine: E,
    /// `None` if its tables cannot be stored.
    persist: Option<PersistFn<E>>,
}

impl<A: Addr, E: Follow<A>> Lookup<A> for Boxed<E> {
    fn lookup(&self, addr: A) -> Hop {
        self.engine.lookup(addr)
    }
    fn lookup_batch(&self, addrs: &[A], hops: &mut [Hop]) {
        self.engine.lookup_batch(addrs, hops);
    }
    fn lookup_batch16(&self, addrs: &[A], hops: &mut [u16]) {
        self.engine.lookup_batch16(addrs, hops);
    }
    fn memory(&self) -> Memory {
        self.engine.memory()
    }
}

impl<A: Addr, E: Follow<A>> Follow<A> for Boxed<E> {
    fn follow(&mut self, routes: &Routes<A>, changed: &[Prefix<A>]) -> Result<Patched, BuildError> {
        self.engine.follow(routes, changed)
    }
    fn reach(&self, changed: Prefix<A>) -> Option<Prefix<A>> {
        self.engine.reach(changed)
    }
}

impl<A: Addr, E: Follow<A> + 'static> AnyEngine<A> for Boxed<E> {
    fn persist(&self) -> Option<(&'static str, Vec<TableRef<'_>>)> {
        self.persist.map(|persist| persist(&self.engine))
    }
    fn boxed_copy(&self) -> Option<BoxedEngine<A>> {
        Some(Box::new(Self { engine: self.engine.copy()?, persist: self.persist }))
    }
}
