//! Published tables, and their readers.

use fibula_core::{Addr, BoxedEngine, Hop};
use fibula_publish::{Numbered, Pinned, Published};

use super::numbers::Slots;
use crate::sync::{Arc, Threads};

/// A published table of a [`Plain`](super::Plain): an engine, and the values of its hops.
pub struct PlainGeneration<A: Addr> {
    pub(super) number: u64,
    /// The engine and its name; `None` without routes.
    pub(super) engine: Option<(BoxedEngine<A>, &'static str)>,
    pub(super) slots: Arc<Slots>,
}

impl<A: Addr> PlainGeneration<A> {
    /// Its number: 1 for the first, which has no routes, then increasing by one.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The engine's name; `None` without routes.
    pub fn engine_name(&self) -> Option<&'static str> {
        self.engine.as_ref().map(|(_, name)| *name)
    }

    /// Bytes of the engine.
    pub fn memory(&self) -> usize {
        self.engine.as_ref().map_or(0, |(engine, _)| engine.memory().total())
    }

    fn find(&self, addrs: &[A], hops: &mut [Hop]) {
        match &self.engine {
            Some((engine, _)) => engine.lookup_batch(addrs, hops),
            None => hops.fill(Hop::NONE),
        }
    }

    /// Looks up `addrs[i]` into `values[i]`: the low 32 bits of its value, as the bits of a hop.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn lookup_low(&self, addrs: &[A], values: &mut [Hop]) {
        assert_eq!(addrs.len(), values.len(), "as many values as addresses");
        self.find(addrs, values);
        for value in values {
            *value = Hop::from_bits(self.slots.value(value.to_bits()) as u32);
        }
    }

    /// Looks up `addrs[i]` into `values[i]`.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn lookup(&self, addrs: &[A], values: &mut [u64]) {
        const BLOCK: usize = 256;
        assert_eq!(addrs.len(), values.len(), "as many values as addresses");
        let mut hops = [Hop::NONE; BLOCK];
        for (addrs, values) in addrs.chunks(BLOCK).zip(values.chunks_mut(BLOCK)) {
            let hops = &mut hops[..addrs.len()];
            self.find(addrs, hops);
            for (value, hop) in values.iter_mut().zip(hops) {
                *value = self.slots.value(hop.to_bits());
            }
        }
    }
}

impl<A: Addr> Numbered for PlainGeneration<A> {
    #[inline]
    fn number(&self) -> u64 {
        self.number
    }
}

pub(super) type PlainPublisher<A> = Published<PlainGeneration<A>, Threads>;

/// One thread's view of a [`Plain`](super::Plain) table. It keeps at most one generation from being freed.
#[derive(Clone)]
pub struct PlainReader<A: Addr>(Pinned<PlainGeneration<A>, Threads>);

impl<A: Addr> PlainReader<A> {
    pub(super) fn new(publisher: &Arc<PlainPublisher<A>>) -> Self {
        Self(Pinned::new(publisher))
    }

    /// The newest generation, for one batch.
    #[inline]
    pub fn pin(&mut self) -> &PlainGeneration<A> {
        self.0.pin()
    }

    /// The generation of the last [`PlainReader::pin`], or the newest if it was released.
    #[inline]
    pub fn keep(&mut self) -> &PlainGeneration<A> {
        if self.0.held().is_none() {
            self.0.pin();
        }
        self.0.held().expect("a generation was just taken")
    }

    /// Releases the generation. Readers that pause should call this, or an old table stays in memory.
    pub fn release(&mut self) {
        self.0.release();
    }
}
