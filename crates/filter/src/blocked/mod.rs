//! A filter whose keys have all their bits in half a cache line.

mod vector;

use std::fmt;

use fibula_simd::{Isa, Level, One, Table, Word};

use crate::families::{GOLDEN, HashFamily, of_family};
use crate::hash::fmix32;
use crate::keys::in_blocks;
use crate::loops::probe_blocks_digests;
use crate::probe::{Job, PREFETCH_FROM};
use crate::{Columns, Hash, Key, WordKey};

pub(crate) use vector::run;

/// Positions of a key: one in each word of its block.
pub(crate) const WORDS: usize = 8;

/// Half a cache line.
pub(crate) type Block = [u32; WORDS];

/// The multipliers of the second hash for each word: odd numbers without a pattern.
pub(crate) static FACTORS: Block = {
    let mut factors = [0; WORDS];
    let mut word = 0;
    while word < WORDS {
        factors[word] = fmix32(GOLDEN.wrapping_mul(word as u32 + 1)) | 1;
        word += 1;
    }
    factors
};

/// A blocked Bloom filter: one hash of the key chooses a block of 256 bits, another one bit in each of
/// its eight words. Ours for filters beyond the second-level cache: a key costs one cache miss,
/// whether it passes or not, and one vector comparison.
///
/// ```text
///   block   first hash * blocks >> 32          half a cache line
///   word      0        1        2       ..      7
///   bit     h*f0>>27 h*f1>>27 h*f2>>27  ..    h*f7>>27       h: second hash, f: odd factors
///   passes  if all eight bits are set
/// ```
///
/// Keys do not spread evenly over blocks, so it takes more bits than a plain filter with the best
/// number of positions: 10.5 for each key instead of 9.6 at 1 % of false positives.
///
/// ```
/// use fibula_filter::{BlockedFilter, Hash};
/// let mut filter = BlockedFilter::for_rate(1000, 0.01, Hash::Murmur);
/// filter.insert_all(&(0..1000u32).collect::<Vec<_>>());
/// assert!((0..1000u32).all(|key| filter.contains(key)));
/// assert!((1000..11_000u32).filter(|key| filter.contains(*key)).count() < 200);
/// ```
#[derive(Clone)]
pub struct BlockedFilter {
    blocks: Table<Block>,
    hash: Hash,
    level: Level,
}

impl BlockedFilter {
    /// The most blocks: 1 GiB.
    pub const MAX_BLOCKS: usize = 1 << 25;

    /// Makes an empty filter with this number of blocks of 32 bytes, limited to 1..=[`BlockedFilter::MAX_BLOCKS`].
    pub fn new(blocks: usize, hash: Hash) -> Self {
        Self::with_isa(blocks, hash, Isa::detect())
    }

    /// [`BlockedFilter::new`], probed with this instruction set, or the best of its forms.
    pub fn with_isa(blocks: usize, hash: Hash, isa: Isa) -> Self {
        let blocks = Table::with(blocks.clamp(1, Self::MAX_BLOCKS), |_| {});
        Self { blocks, hash, level: isa.level() }
    }

    /// The smallest filter with a false-positive rate of about `rate` when `keys` keys are in it.
    pub fn for_rate(keys: usize, rate: f64, hash: Hash) -> Self {
        let (mut low, mut high) = (1, Self::MAX_BLOCKS);
        while low < high {
            let middle = low.midpoint(high);
            if Self::expected_rate(keys, middle) <= rate {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Self::new(low, hash)
    }

    /// The rate of false positives to be expected with so many keys in so many blocks: the mean over
    /// the numbers of keys that a block gets, which are Poisson's.
    pub fn expected_rate(keys: usize, blocks: usize) -> f64 {
        let mean = keys as f64 / blocks as f64;
        // Blocks so full let all pass but for rounding, and the chance of an empty one is soon below
        // the smallest number that there is.
        if mean > 600.0 {
            return 1.0;
        }
        let (mut chance, mut rate) = ((-mean).exp(), 0.0);
        for count in 0..2000 {
            rate += chance * (1.0 - (31.0f64 / 32.0).powi(count)).powi(WORDS as i32);
            chance *= mean / f64::from(count + 1);
        }
        rate
    }

    /// Inserts a key.
    pub fn insert<K: Key>(&mut self, key: K) {
        self.insert_all(&[key]);
    }

    /// Inserts keys.
    pub fn insert_all<K: Key>(&mut self, keys: &[K]) {
        let blocks = self.blocks.to_mut();
        of_family!(self.hash, F => for key in keys {
            let (block, bits) = place::<_, K::By<F>>(key.lane::<F>(), blocks.len());
            for (word, bit) in blocks[block].iter_mut().zip(bits) {
                *word |= bit;
            }
        });
    }

    /// Whether the key may have been inserted; always true if it was.
    pub fn contains<K: Key>(&self, key: K) -> bool {
        let blocks = self.blocks.len();
        let (block, bits) =
            of_family!(self.hash, F => place::<_, K::By<F>>(key.lane::<F>(), blocks));
        self.blocks[block].iter().zip(bits).all(|(word, bit)| word & bit != 0)
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
        let prefetch = self.memory() > PREFETCH_FROM;
        self.probe_with(prefetch, keys, payloads, out_keys, out_payloads)
    }

    /// Like [`BlockedFilter::probe`], with or without prefetching of blocks.
    ///
    /// # Panics
    /// As [`BlockedFilter::probe`].
    pub fn probe_with<T: WordKey>(
        &self,
        prefetch: bool,
        keys: &[T],
        payloads: &[T],
        out_keys: &mut [T],
        out_payloads: &mut [T],
    ) -> usize {
        let job = Job::new(&*self.blocks, keys, payloads, out_keys, out_payloads);
        T::probe_blocks(job, self.hash, prefetch, self.level)
    }

    /// [`BlockedFilter::probe`] of keys of several words: the digests and rows of those that pass, in
    /// order ([`Columns::digests`]).
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
        let prefetch = self.memory() > PREFETCH_FROM;
        let block = |digests: &[u64], rows: &[u64], out: &mut [u64], out_rows: &mut [u64]| {
            let job = Job::new(&*self.blocks, digests, rows, out, out_rows);
            probe_blocks_digests(job, prefetch, self.level)
        };
        in_blocks(keys, self.hash, self.level, rows, out_digests, out_rows, block)
    }

    /// The hash function.
    pub fn hash(&self) -> Hash {
        self.hash
    }

    /// The instruction set.
    pub fn isa(&self) -> Isa {
        self.level.isa()
    }

    /// The bytes of the blocks.
    pub fn memory(&self) -> usize {
        size_of_val(&*self.blocks)
    }
}

impl fmt::Debug for BlockedFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BlockedFilter({}, {}, {})", self.blocks.len(), self.hash, self.level.isa())
    }
}

/// A key's block, and its bits in it.
#[inline(always)]
fn place<T: Word, F: HashFamily>(lane: T, blocks: usize) -> (usize, Block) {
    let (first, second) = F::pair(One::new(lane));
    let block = ((u64::from(first.low()) * blocks as u64) >> 32) as usize;
    (block, FACTORS.map(|factor| 1 << (second.low().wrapping_mul(factor) >> 27)))
}
