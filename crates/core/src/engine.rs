use alloc::vec::Vec;

use crate::narrow::narrow_batch;
use crate::{Addr, BuildError, Hop, Routes};

/// The lookups of every compiled table, whatever its scheme: the object-safe half of the contract.
///
/// Invariants, for every implementation:
/// - a lookup never allocates, locks, blocks or fails, and the table never changes during it;
/// - `lookup` accepts every address, and returns [`Hop::NONE`] if no route covers it;
/// - `lookup_batch` equals `lookup` on every element, for every length and alignment.
pub trait Lookup<A: Addr>: Send + Sync {
    /// The hop of the longest prefix that covers `addr`, or [`Hop::NONE`].
    fn lookup(&self, addr: A) -> Hop;

    /// Looks up `addrs[i]` into `hops[i]`. This is the fast way: engines interleave the lookups of a batch so that
    /// their memory accesses overlap. Good batches have 64 to 1,024 addresses.
    ///
    /// # Panics
    /// If the slices differ in length.
    fn lookup_batch(&self, addrs: &[A], hops: &mut [Hop]);

    /// As [`lookup_batch`](Self::lookup_batch), with the low 16 bits of each hop: the way behind
    /// [`Hops16`](crate::Hops16), for tables of fewer than 65,536 hops.
    ///
    /// # Panics
    /// If the slices differ in length.
    fn lookup_batch16(&self, addrs: &[A], hops: &mut [u16]) {
        narrow_batch(self, addrs, hops);
    }

    /// Bytes of memory by table, complete.
    fn memory(&self) -> Memory;
}

/// A lookup scheme: how to compile [`Routes`] into a [`Lookup`].
///
/// Build state and lookup state are separate: `build` may use any amount of scratch memory, and its result is immutable
/// and contains only the data for lookups.
pub trait Engine<A: Addr>: Lookup<A> + Sized {
    /// The name for choosing, reporting and benchmarking the scheme: lower case, no spaces.
    const NAME: &'static str;

    /// The scheme's parameters. The default is the paper's recommendation, or the best in our measurements.
    type Config: Default;

    /// Compiles the table.
    ///
    /// # Errors
    /// [`BuildError::Limit`] if the table exceeds the scheme's limits;
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
    fn lookup_batch16(&self, addrs: &[A], hops: &mut [u16]) {
        (**self).lookup_batch16(addrs, hops);
    }
    fn memory(&self) -> Memory {
        (**self).memory()
    }
}

impl<A: Addr, T: Lookup<A> + ?Sized> Lookup<A> for &T {
    fn lookup(&self, addr: A) -> Hop {
        (**self).lookup(addr)
    }
    fn lookup_batch(&self, addrs: &[A], hops: &mut [Hop]) {
        (**self).lookup_batch(addrs, hops);
    }
    fn lookup_batch16(&self, addrs: &[A], hops: &mut [u16]) {
        (**self).lookup_batch16(addrs, hops);
    }
    fn memory(&self) -> Memory {
        (**self).memory()
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
    /// Makes it from `(table, bytes)` pairs.
    pub fn new(tables: impl IntoIterator<Item = (&'static str, usize)>) -> Self {
        Self { tables: tables.into_iter().collect() }
    }

    /// The tables with their bytes, in the scheme's order.
    pub fn tables(&self) -> &[(&'static str, usize)] {
        &self.tables
    }

    /// Total bytes of all tables.
    pub fn total(&self) -> usize {
        self.tables.iter().map(|(_, bytes)| bytes).sum()
    }
}
