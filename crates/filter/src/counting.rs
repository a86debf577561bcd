use crate::{Counters, Filter, Hash, Key, Shape};

/// A Bloom filter that keys can be taken out of again: beside each bit a counter of 4 bits, of the
/// keys that have a position there.
///
/// Questions are answered by the bits alone, so they cost what a plain filter's do.
///
/// - **Invariant** A bit is set exactly where its counter is not zero.
/// - **Invariant** A counter is the number of positions there of all keys inserted and not removed,
///   or it is 15 for ever. So a key that was inserted is found, whatever else came and went.
///
/// That holds as long as nobody removes more often than was inserted: a key that was never put in
/// may pass the filter, and taking it out would take others' counts. Who cannot know must ask a table
/// first, as Bloomfwd does with the hash tables behind its filters.
///
/// ```
/// use fibula_filter::{CountingFilter, Hash, Shape};
/// let mut filter = CountingFilter::new(Shape::for_rate(100, 0.01), Hash::H2);
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
    /// An empty filter.
    pub fn new(shape: Shape, hash: Hash) -> Self {
        let counters = Counters::new(shape.bits() as usize);
        Self { filter: Filter::new(shape, hash), counters }
    }

    /// Puts a key in, once more if it is there.
    pub fn insert<K: Key>(&mut self, key: K) {
        for at in self.positions(key) {
            if self.counters.raise(at as usize) {
                self.filter.set(at, true);
            }
        }
    }

    /// Takes a key out that was put in, once. Says whether it can have been in: if not, nothing
    /// changes.
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

    /// Whether the key may be in: always true if it is.
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
        self.filter.shape().positions(self.filter.hash(), key)
    }
}
