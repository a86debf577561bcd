//! The loops over many keys of one word, compiled in this crate: there are hundreds of them, and crates that probe
//! would compile each one again.

use std::marker::PhantomData;

use fibula_simd::{Level, Word};

use crate::blocked::{self, Block};
use crate::families::{Digested, of_family};
use crate::probe::{HashAll, Job, Part, Parting};
use crate::{Bits, Hash, Key, Plan};

/// A key of one word: `u32` or `u64`. Filters test many of them at once.
///
/// ```
/// use fibula_filter::{Filter, Hash, Parameters, WordKey};
///
/// fn passing<K: WordKey>(filter: &Filter, keys: &[K]) -> Vec<K> {
///     let (mut passed, mut payloads) = (keys.to_vec(), keys.to_vec());
///     let n = filter.probe(keys, keys, &mut passed, &mut payloads);
///     passed.truncate(n);
///     passed
/// }
///
/// let mut filter = Filter::new(Parameters::for_rate(100, 1e-6), Hash::Murmur);
/// filter.insert_all(&[3u32, 5]);
/// assert_eq!(passing(&filter, &[1u32, 3, 4, 5]), [3, 5]);
/// ```
#[expect(private_bounds, reason = "sealed: the loops are compiled for these keys")]
pub trait WordKey: Key + Word + Loops {}

/// The loops of [`WordKey`]s for the filters. The hash functions are chosen here.
pub(crate) trait Loops: Sized {
    /// Tests a batch by a plain filter; how many passed.
    fn probe(job: Job<'_, Self>, plan: Plan, level: Level) -> usize;
    /// Tests a batch by a blocked filter; how many passed.
    fn probe_blocks(
        job: Job<'_, Self, &[Block]>,
        hash: Hash,
        prefetch: bool,
        level: Level,
    ) -> usize;
    /// Parts a batch; how many passed.
    fn part(bits: Bits<'_>, job: Parting<'_, Self>, level: Level) -> usize;
    /// The first hash of each `key & mask`.
    fn hash_all(hash: Hash, level: Level, mask: Self, keys: &[Self], hashes: &mut [Self]);
}

macro_rules! loops {
    ($($word:ty),*) => { $(
        impl WordKey for $word {}

        impl Loops for $word {
            fn probe(job: Job<'_, $word>, plan: Plan, level: Level) -> usize {
                of_family!(job.bits.hash, F => job.run::<F>(plan, level))
            }
            fn probe_blocks(
                job: Job<'_, $word, &[Block]>,
                hash: Hash,
                prefetch: bool,
                level: Level,
            ) -> usize {
                of_family!(hash, F => blocked::run::<_, F>(job, prefetch, level))
            }
            fn part(bits: Bits<'_>, job: Parting<'_, $word>, level: Level) -> usize {
                of_family!(bits.hash, F => level.run(Part { bits, job, family: PhantomData::<F> }))
            }
            fn hash_all(hash: Hash, level: Level, mask: $word, keys: &[$word], hashes: &mut [$word]) {
                of_family!(hash, F => level.run(HashAll { mask, keys, hashes, family: PhantomData::<F> }));
            }
        }
    )* };
}

loops!(u32, u64);

/// [`Loops::probe`] for the digests of keys of several words.
pub(crate) fn probe_digests(job: Job<'_, u64>, plan: Plan, level: Level) -> usize {
    job.run::<Digested>(plan, level)
}

/// [`Loops::probe_blocks`] for the digests of keys of several words.
pub(crate) fn probe_blocks_digests(
    job: Job<'_, u64, &[Block]>,
    prefetch: bool,
    level: Level,
) -> usize {
    blocked::run::<_, Digested>(job, prefetch, level)
}
