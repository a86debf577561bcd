use std::fmt;

use fibula_simd::{Isa, Level, Table, Word};

use crate::keys::in_blocks;
use crate::loops::probe_digests;
use crate::probe::{Bits, Job};
use crate::{Columns, Hash, Key, Parameters, Plan, WordKey};

/// A plain Bloom filter: inserted keys are always found, and nearly all other keys are not.
///
/// ```
/// use fibula_filter::{Filter, Hash, Parameters};
///
/// let mut filter = Filter::new(Parameters::for_rate(1000, 0.01), Hash::Murmur);
/// filter.insert_all(&(0..1000u32).collect::<Vec<_>>());
/// assert!((0..1000u32).all(|key| filter.contains(key)));
/// assert!((1000..11_000u32).filter(|key| filter.contains(*key)).count() < 200);
///
/// // Many at once: the keys that pass, with their payloads.
/// let (keys, rows) = ([7, 3_000_000, 8, 3_000_001u32], [0, 1, 2, 3u32]);
/// let (mut passed, mut passed_rows) = ([0; 4], [0; 4]);
/// let n = filter.probe(&keys, &rows, &mut passed, &mut passed_rows);
/// assert_eq!((&passed[..n], &passed_rows[..n]), (&[7, 8][..], &[0, 2][..]));
/// ```
#[derive(Clone)]
pub struct Filter {
    parameters: Parameters,
    hash: Hash,
    words: Table<u64>,
    level: Level,
}

impl Filter {
    /// Makes an empty filter that uses the best instructions of this machine.
    pub fn new(parameters: Parameters, hash: Hash) -> Self {
        Self::with_isa(parameters, hash, Isa::detect())
    }

    /// Makes an empty filter that uses this instruction set, or the best of its forms.
    pub fn with_isa(parameters: Parameters, hash: Hash, isa: Isa) -> Self {
        let words = Table::with(parameters.words(), |_| {});
        Self { parameters, hash, words, level: isa.level() }
    }

    /// Inserts a key.
    pub fn insert<K: Key>(&mut self, key: K) {
        self.insert_all(&[key]);
    }

    /// Inserts keys.
    pub fn insert_all<K: Key>(&mut self, keys: &[K]) {
        let words = self.words.to_mut();
        for &key in keys {
            for at in self.parameters.positions(self.hash, key) {
                words[at as usize / 64] |= 1 << (at % 64);
            }
        }
    }

    /// Whether the key may have been inserted; always true if it was.
    pub fn contains<K: Key>(&self, key: K) -> bool {
        self.bits().contains(key)
    }

    /// Tests many keys, and writes those that pass with their payloads to the front of the outputs, in order. Returns
    /// their number. The contents of the outputs after them are unspecified.
    ///
    /// # Panics
    /// If the number of payloads differs from the number of keys, or the outputs have less room.
    pub fn probe<T: WordKey>(
        &self,
        keys: &[T],
        payloads: &[T],
        out_keys: &mut [T],
        out_payloads: &mut [T],
    ) -> usize {
        let plan = Plan::best(self.memory(), self.level.isa());
        self.probe_with(plan, keys, payloads, out_keys, out_payloads)
    }

    /// [`Filter::probe`] as planned. Where the instructions for the form are missing it is a lesser
    /// one. The papers' forms mix the order.
    ///
    /// # Panics
    /// As [`Filter::probe`].
    pub fn probe_with<T: WordKey>(
        &self,
        plan: Plan,
        keys: &[T],
        payloads: &[T],
        out_keys: &mut [T],
        out_payloads: &mut [T],
    ) -> usize {
        let job = Job::new(self.bits(), keys, payloads, out_keys, out_payloads);
        T::probe(job, plan, self.level)
    }

    /// [`Filter::probe`] of keys of several words, with a row for each: writes the digests
    /// ([`Columns::digests`]) and rows of those that pass to the front of the outputs, in order.
    ///
    /// # Panics
    /// If there are not as many rows as keys, or less room than keys.
    pub fn probe_columns<T: Word, const W: usize>(
        &self,
        keys: Columns<'_, T, W>,
        rows: &[u64],
        out_digests: &mut [u64],
        out_rows: &mut [u64],
    ) -> usize {
        let plan = Plan::best(self.memory(), self.level.isa());
        self.probe_columns_with(plan, keys, rows, out_digests, out_rows)
    }

    /// [`Filter::probe_columns`] as planned: see [`Filter::probe_with`].
    ///
    /// # Panics
    /// As [`Filter::probe_columns`].
    pub fn probe_columns_with<T: Word, const W: usize>(
        &self,
        plan: Plan,
        keys: Columns<'_, T, W>,
        rows: &[u64],
        out_digests: &mut [u64],
        out_rows: &mut [u64],
    ) -> usize {
        let block = |digests: &[u64], rows: &[u64], out: &mut [u64], out_rows: &mut [u64]| {
            probe_digests(Job::new(self.bits(), digests, rows, out, out_rows), plan, self.level)
        };
        in_blocks(keys, self.hash, self.level, rows, out_digests, out_rows, block)
    }

    /// The size and the number of positions.
    pub fn parameters(&self) -> Parameters {
        self.parameters
    }

    /// The hash function.
    pub fn hash(&self) -> Hash {
        self.hash
    }

    /// The instruction set.
    pub fn isa(&self) -> Isa {
        self.level.isa()
    }

    /// Number of bits that are set.
    pub fn ones(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The bytes of the bits.
    pub fn memory(&self) -> usize {
        self.words.len() * 8
    }

    /// The bits, the shape and the hash function.
    pub fn bits(&self) -> Bits<'_> {
        Bits { words: &self.words, parameters: self.parameters, hash: self.hash }
    }

    /// Sets or clears a bit.
    pub(crate) fn set(&mut self, at: u32, bit: bool) {
        let word = &mut self.words.to_mut()[at as usize / 64];
        *word = *word & !(1 << (at % 64)) | u64::from(bit) << (at % 64);
    }
}

impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Filter({:?}, {}, {})", self.parameters, self.hash, self.level.isa())
    }
}
