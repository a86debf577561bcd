use crate::{Counters, Filter, Hash, Key, Parameters};

/// A Bloom filter from which keys can be removed: each bit has a counter of 4 bits for the keys with a position
/// there.
///
/// Queries use only the bits, so they cost the same as in a plain filter.
///
/// - **Invariant** A bit is set exactly where its counter is not zero.
/// - **Invariant** A counter is the number of positions there of all keys inserted and not removed, or it is saturated
///   and stays 15. So an inserted key passes, whatever other keys were inserted and removed.
///
/// This holds as long as keys are removed no more often than they were inserted. A key that was never inserted may
/// pass the filter, and removing it would decrement the counters of other keys. A caller that cannot know this must
/// look in a table first, as Bloomfwd does with the hash tables behind its filters.
///
/// ```
/// use fibula_filter::{CountingFilter, Hash, Parameters};
/// let mut filter = CountingFilter::new(Parameters::for_rate(100, 0.01), Hash::H2);
/// filter.insert(7u32);
/// filter.insert(7u32);
/// assert!(filter.remove(7u32) && filter.contains(7u32), "it was there twice");
/// assert!(filter.remove(7u32) && !filter.contains(7u32));
/// assert!(!filter.remove(7u32));
/// ```
#[derive(Clone, Debug)]
pub struct CountingFilter {
    filter: Filter,
    counters: Counters,
}

impl CountingFilter {
    /// Makes an empty filter.
    pub fn new(parameters: Parameters, hash: Hash) -> Self {
        let counters = Counters::new(parameters.bits() as usize);
        Self { filter: Filter::new(parameters, hash), counters }
    }

    /// Inserts a key; repeated insertions are counted.
    pub fn insert<K: Key>(&mut self, key: K) {
        for at in self.positions(key) {
            if self.counters.raise(at as usize) {
                self.filter.set(at, true);
            }
        }
    }

    /// Removes one insertion of a key. Returns false, without a change, if the key cannot be in the filter.
    pub fn remove<K: Key>(&mut self, key: K) -> bool {
        if !self.contains(key) {
            return false;
        }
        for at in self.positions(key) {
            // A position that a key has twice may come to zero in between only if the key was not in.
            if self.counters.lower(at as usize) {
                self.filter.set(at, false);
            }
        }
        true
    }

    /// Whether the key may be in the filter; always true if it is.
    pub fn contains<K: Key>(&self, key: K) -> bool {
        self.filter.contains(key)
    }

    /// The plain filter of the same keys, which answers batches.
    pub fn filter(&self) -> &Filter {
        &self.filter
    }

    /// The bytes of the bits and of the counters.
    pub fn memory(&self) -> usize {
        self.filter.memory() + self.counters.memory()
    }

    fn positions<K: Key>(&self, key: K) -> impl Iterator<Item = u32> + use<K> {
        self.filter.parameters().positions(self.filter.hash(), key)
    }
}
