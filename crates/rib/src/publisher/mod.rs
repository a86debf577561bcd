//! Passes generations from the compiler to the readers: [`Published`] swaps one pointer, and a [`Reader`] takes it anew
//! if the number differs, once a batch.
//!
//! Invariants, besides those of `fibula-publish`:
//! - a published generation never changes; once no reader holds it, its last owner may reuse its engine;
//! - there are at most two generations and one that is being made ([`Retired`]).
//!
//! An idle reader should therefore [release](Reader::release) its generation: two idle readers on different
//! generations block the compiler until one releases, looks up again or is dropped.

mod attributes;

use fibula_core::{Addr, AnyEngine, BoxedEngine, Hop};
use fibula_publish::{Numbered, Pinned, Published};

pub use attributes::{AttributeChunk, AttributeTable};

use crate::AttributeSet;
use crate::sync::{Arc, Threads};

/// A published table: an engine, the attributes of its hops, and its number in the sequence of tables.
pub struct Generation<A: Addr> {
    pub(crate) number: u64,
    pub(crate) sequence: u64,
    pub(crate) name: &'static str,
    pub(crate) engine: BoxedEngine<A>,
    pub(crate) attributes: AttributeTable,
}

impl<A: Addr> Generation<A> {
    /// Its number: 1 for the first, then increasing by one.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Number of the feed's updates that it includes; see [`Rib::sequence`](crate::Rib::sequence).
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The engine's name.
    pub fn engine_name(&self) -> &'static str {
        self.name
    }

    /// The engine.
    pub fn engine(&self) -> &dyn AnyEngine<A> {
        &*self.engine
    }

    /// Looks up a batch; see [`Lookup::lookup_batch`](fibula_core::Lookup::lookup_batch).
    pub fn lookup_batch(&self, addrs: &[A], hops: &mut [Hop]) {
        self.engine.lookup_batch(addrs, hops);
    }

    /// The attributes of this generation's hops.
    pub fn attribute_table(&self) -> &AttributeTable {
        &self.attributes
    }

    /// The attributes of a hop of this generation.
    pub fn attributes(&self, hop: Hop) -> Option<&AttributeSet> {
        hop.index().and_then(|number| self.attributes.get(number))
    }
}

impl<A: Addr> Numbered for Generation<A> {
    #[inline]
    fn number(&self) -> u64 {
        self.number
    }
}

/// The state that readers and the compiler share.
pub(crate) type Publisher<A> = Published<Generation<A>, Threads>;

/// One thread's view of a changing table.
///
/// ```no_run
/// # use fibula_core::Hop;
/// # fn example(mut reader: fibula_rib::Reader<u32>, batches: &[Vec<u32>]) {
/// let mut hops = [Hop::NONE; 256];
/// for addrs in batches {
///     let table = reader.pin(); // one generation for the whole batch
///     table.lookup_batch(addrs, &mut hops[..addrs.len()]);
///     let attributes = table.attributes(hops[0]);
/// }
/// reader.release(); // before a pause
/// # }
/// ```
#[derive(Clone)]
pub struct Reader<A: Addr>(Pinned<Generation<A>, Threads>);

impl<A: Addr> Reader<A> {
    pub(crate) fn new(publisher: &Arc<Publisher<A>>) -> Self {
        Self(Pinned::new(publisher))
    }

    /// The newest generation, for one batch.
    #[inline]
    pub fn pin(&mut self) -> &Generation<A> {
        self.0.pin()
    }

    /// The last pinned generation, if it was not released. There may be newer ones.
    #[inline]
    pub fn held(&self) -> Option<&Generation<A>> {
        self.0.held()
    }

    /// Whether [`Reader::pin`] would return the generation that is held.
    #[inline]
    pub fn is_newest(&self) -> bool {
        self.0.is_newest()
    }

    /// Releases the generation. Idle readers should call this.
    pub fn release(&mut self) {
        self.0.release();
    }
}

/// A generation, and the prefixes that have changed since.
type Spare<T, P> = (Arc<T>, Vec<P>);

/// The replaced generations that readers still hold. `P` is a prefix.
pub(crate) struct Retired<T, P> {
    /// The one before the current.
    spare: Option<Spare<T, P>>,
    /// Older ones.
    held: Vec<Arc<T>>,
}

impl<T, P> Retired<T, P> {
    pub(crate) fn new() -> Self {
        Self { spare: None, held: Vec::new() }
    }

    /// Number of generations that readers still hold, without the current one. One more may be made while this is at
    /// most one.
    pub(crate) fn in_use(&mut self) -> usize {
        self.held.retain(|old| Arc::strong_count(old) > 1);
        let spare = self.spare.iter().filter(|(old, _)| Arc::strong_count(old) > 1);
        self.held.len() + spare.count()
    }

    /// The generations that were replaced and are not freed: the spare one, and those that readers hold.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        let spare = self.spare.iter().map(|(old, _)| old);
        spare.chain(&self.held).map(|old| &**old)
    }

    /// The spare generation if no reader holds it any more, and the prefixes in which it differs from the current one.
    pub(crate) fn spare(&self) -> Option<(&T, &[P])> {
        let (old, behind) = self.spare.as_ref()?;
        (Arc::strong_count(old) == 1).then_some((&**old, &**behind))
    }

    /// Takes the spare generation for patching if no reader holds it any more, with the prefixes in which it differs
    /// from the current one.
    pub(crate) fn take_spare(&mut self) -> Option<(T, Vec<P>)> {
        let (old, behind) = self.spare.take()?;
        match Arc::try_unwrap(old) {
            Ok(old) => Some((old, behind)),
            Err(old) => {
                self.held.push(old);
                None
            }
        }
    }

    /// The generation that was just replaced, and the changes from it to the current one.
    pub(crate) fn put(&mut self, old: Arc<T>, behind: Vec<P>) {
        let before = self.spare.replace((old, behind));
        self.held.extend(before.map(|(old, _)| old));
        self.in_use();
    }
}
