use crate::families::of_family;
use crate::hash::nth;
use crate::{Hash, Key, Parameters};

/// Largest count. A saturated counter is never decremented, because its true count is unknown.
const FULL: u64 = 15;

/// Counters of 4 bits, one for each bit of a filter: the number of keys with a position there. For callers that store
/// the bits themselves; [`CountingFilter`](crate::CountingFilter) has both.
///
/// - **Invariant** A counter is the number of increments that were not undone by decrements, or it is saturated and
///   stays 15.
#[derive(Clone, Debug)]
pub struct Counters {
    /// Sixteen counters a word.
    words: Vec<u64>,
}

impl Counters {
    /// Makes this number of counters, all zero.
    pub fn new(bits: usize) -> Self {
        Self { words: vec![0; bits.div_ceil(16)] }
    }

    /// Increments the counter of this bit, and returns whether it was zero before.
    #[inline]
    pub fn raise(&mut self, bit: usize) -> bool {
        let (word, shift) = place(bit);
        let counter = self.words[word] >> shift & FULL;
        if counter < FULL {
            self.words[word] += 1 << shift;
        }
        counter == 0
    }

    /// Decrements the counter of this bit, and returns whether it is now zero. A counter that is zero or full does
    /// not change.
    #[inline]
    pub fn lower(&mut self, bit: usize) -> bool {
        let (word, shift) = place(bit);
        let counter = self.words[word] >> shift & FULL;
        if (1..FULL).contains(&counter) {
            self.words[word] -= 1 << shift;
        }
        counter == 1
    }

    /// The bytes of the counters.
    pub fn memory(&self) -> usize {
        self.words.len() * 8
    }
}

/// A counter's word, and by how much it is shifted there.
fn place(bit: usize) -> (usize, usize) {
    (bit / 16, bit % 16 * 4)
}

impl Parameters {
    /// The key's bits in a filter of this shape, which may repeat.
    pub fn positions<K: Key>(self, hash: Hash, key: K) -> impl Iterator<Item = u32> + use<K> {
        // A key of several words is hashed here, once.
        let lane = of_family!(hash, F => key.lane::<F>());
        (0..self.hashes())
            .map(move |index| self.position(of_family!(hash, F => nth::<_, K::By<F>>(lane, index))))
    }
}
