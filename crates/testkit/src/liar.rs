//! Engines that answer wrongly, for tests of the code that checks engines.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fibula_core::{
    Addr, BuildError, Engine, Follow, Hop, LoadError, Lookup, Memory, Patched, Persist, Prefix,
    Routes, TableRef, TableSource,
};

use crate::Oracle;

/// What is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// Nothing.
    Honest,
    /// The answer for one address in a single lookup.
    Singly,
    /// The answer for one address, in a batch.
    InBatches,
    /// The answer for one address, after so many lookups.
    After(usize),
    /// It reports that it has followed changes, but has not.
    Stale,
    /// Nothing, but it has to be built anew after any change.
    Rebuilt,
}

/// The memory that it reports.
pub const BYTES: usize = 12_345;

/// An oracle that answers wrongly about one address.
pub struct Liar<A: Addr> {
    right: Oracle<A>,
    lie: Lie,
    about: A,
    /// Number of lookups so far.
    lookups: Arc<AtomicUsize>,
}

impl<A: Addr> Liar<A> {
    /// A liar over these routes.
    pub fn new(routes: &Routes<A>, lie: Lie, about: A) -> Self {
        Self { right: Oracle::new(routes), lie, about, lookups: Arc::default() }
    }

    /// What is wrong with it.
    pub fn lie(&self) -> Lie {
        self.lie
    }

    /// The counter of lookups.
    pub fn lookups(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.lookups)
    }

    fn answer(&self, addr: A, is_single: bool) -> Hop {
        let lookups = self.lookups.fetch_add(1, Ordering::Relaxed);
        let lies = match self.lie {
            Lie::Singly => is_single,
            Lie::InBatches => !is_single,
            Lie::After(many) => lookups >= many,
            Lie::Honest | Lie::Stale | Lie::Rebuilt => false,
        };
        let hop = self.right.lookup(addr);
        if lies && addr == self.about { Hop::from_bits(hop.to_bits() ^ 1) } else { hop }
    }
}

impl<A: Addr> Lookup<A> for Liar<A> {
    fn lookup(&self, addr: A) -> Hop {
        self.answer(addr, true)
    }
    fn lookup_batch(&self, addrs: &[A], hops: &mut [Hop]) {
        assert_eq!(addrs.len(), hops.len());
        addrs.iter().zip(hops).for_each(|(addr, hop)| *hop = self.answer(*addr, false));
    }
    fn memory(&self) -> Memory {
        Memory::new([("all", BYTES)])
    }
}

impl<A: Addr> Engine<A> for Liar<A> {
    const NAME: &'static str = "liar";
    type Config = ();

    fn build(routes: &Routes<A>, (): &()) -> Result<Self, BuildError> {
        Ok(Self::new(routes, Lie::Honest, A::MIN))
    }
}

impl<A: Addr> Persist<A> for Liar<A> {
    fn tables(&self) -> Vec<TableRef<'_>> {
        Vec::new()
    }
    fn load(_: &dyn TableSource, _: u32, (): &()) -> Result<Self, LoadError> {
        Err(LoadError::new("all", "are not stored"))
    }
}

impl<A: Addr> Follow<A> for Liar<A> {
    fn follow(&mut self, routes: &Routes<A>, changed: &[Prefix<A>]) -> Result<Patched, BuildError> {
        match self.lie {
            Lie::Rebuilt if !changed.is_empty() => return Ok(Patched::Rebuild),
            Lie::Stale => {}
            _ => self.right = Oracle::new(routes),
        }
        Ok(Patched::Applied)
    }
}
