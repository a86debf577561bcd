use alloc::vec::Vec;

use crate::{Addr, BuildError, Hop, Routes, TableRef};

/// What every compiled table answers, whatever its scheme: the object-safe half of the contract.
///
/// Invariants, for every implementation:
/// - a lookup never allocates, locks, blocks or fails; the table never changes under it;
/// - `lookup` is total: [`Hop::NONE`] where no route covers the address;
/// - `lookup_batch` equals `lookup` on every element, for every length and alignment.
pub trait Lookup<A: Addr>: Send + Sync {
    /// The hop of the longest prefix that covers `addr`, or [`Hop::NONE`].
    fn lookup(&self, addr: A) -> Hop;

    /// Looks up `addrs[i]` into `hops[i]`. This is the fast way: engines interleave the lookups of a
    /// batch so that their memory accesses overlap. 64 to 1,024 addresses are a good batch.
    ///
    /// # Panics
    /// If the slices differ in length.
    fn lookup_batch(&self, addrs: &[A], hops: &mut [Hop]);

    /// Bytes of memory by table, all of it.
    fn memory(&self) -> Memory;

    /// The scheme's name and its tables as they lie in memory, for a program that does the same lookups elsewhere: in the
    /// kernel. `None` where there is no such program.
    fn raw_tables(&self) -> Option<(&'static str, Vec<TableRef<'_>>)> {
        None
    }
}

/// A lookup scheme: how to compile [`Routes`] into a [`Lookup`].
///
/// Build state and lookup state are different things: `build` may use any amount of scratch memory,
/// its result is immutable and holds what lookups need, no more.
pub trait Engine<A: Addr>: Lookup<A> + Sized {
    /// The name by which it is chosen, reported and benchmarked: lower case, no spaces.
    const NAME: &'static str;

    /// Its parameters. The default is what its paper recommends, or what we measured to be best.
    type Config: Default;

    /// Compiles the table.
    ///
    /// # Errors
    /// [`BuildError::Limit`] if the table exceeds what the scheme can hold;
    /// [`BuildError::Config`] if a parameter is out of range.
    fn build(routes: &Routes<A>, config: &Self::Config) -> Result<Self, BuildError>;
}

impl<A: Addr, T: Lookup<A> + ?Sized> Lookup<A> for alloc::boxed::Box<T> {
    fn lookup(&self, addr: A) -> Hop {
        (**self).lookup(addr)
    }
    fn lookup_batch(&self, addrs: &[A], hops: &mut [Hop]) {
        (**self).lookup_batch(addrs, hops);
    }
    fn memory(&self) -> Memory {
        (**self).memory()
    }
    fn raw_tables(&self) -> Option<(&'static str, Vec<TableRef<'_>>)> {
        (**self).raw_tables()
    }
}

impl<A: Addr, T: Lookup<A> + ?Sized> Lookup<A> for &T {
    fn lookup(&self, addr: A) -> Hop {
        (**self).lookup(addr)
    }
    fn lookup_batch(&self, addrs: &[A], hops: &mut [Hop]) {
        (**self).lookup_batch(addrs, hops);
    }
    fn memory(&self) -> Memory {
        (**self).memory()
    }
    fn raw_tables(&self) -> Option<(&'static str, Vec<TableRef<'_>>)> {
        (**self).raw_tables()
    }
}

/// Bytes of memory by table.
///
/// ```
/// use fibula_core::Memory;
/// let memory = Memory::new([("direct", 262_144), ("ranges", 500_000)]);
/// assert_eq!(memory.total(), 762_144);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    tables: Vec<(&'static str, usize)>,
}

impl Memory {
    /// From `(table, bytes)` pairs.
    pub fn new(tables: impl IntoIterator<Item = (&'static str, usize)>) -> Self {
        Self { tables: tables.into_iter().collect() }
    }

    /// The tables with their bytes, in the scheme's order.
    pub fn tables(&self) -> &[(&'static str, usize)] {
        &self.tables
    }

    /// Bytes of all tables together.
    pub fn total(&self) -> usize {
        self.tables.iter().map(|(_, bytes)| bytes).sum()
    }
}
