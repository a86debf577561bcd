//! Single steps of a search, for measurements.

use std::hint::black_box;

use fibula_simd::{Kernel, Simd};

use crate::batch::{BURST, PAIRS};
use crate::hash::Hashed;
use crate::search::packed::Hashes;
use crate::search::rows::{Burst, Crc, Gather, Hasher, Murmur, Transposed, find};
use crate::{Batch, Cache, Form, WORDS};

/// The steps of a search to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Only hashes.
    Hash,
    /// Hashes, and the comparison with the signatures of their buckets.
    Find,
    /// Hashes, signatures, and the comparison of words where signatures are equal.
    Compare,
}

/// A subtable, by its position in the cache, and the packets of a burst to look up in it, one bit each.
pub type Visit = (usize, u32);

/// Repeats the same steps for the first 32 packets of the batch, in each of the subtables. [`Form::Packed`] has only
/// [`Step::Hash`], for the first packets of the batch, as many as there are bits.
///
/// # Panics
/// If the batch has another form than the cache, or more than 32 packets.
pub fn repeat(cache: &Cache, batch: &Batch, visits: &[Visit], step: Step, times: usize) {
    assert_eq!(cache.form, batch.form(), "the form of the cache");
    assert!(batch.len() <= BURST, "one burst");
    macro_rules! steps {
        ($hasher:expr) => {
            cache.level.run(Steps { cache, batch, visits, step, times, hasher: $hasher })
        };
    }
    match cache.form {
        Form::Murmur => steps!(Murmur),
        Form::Crc => steps!(Crc),
        Form::Gather => steps!(Gather),
        Form::Transposed => steps!(Transposed::default()),
        Form::Packed => cache.level.run(Hashes { cache, batch, visits, times }),
    }
}

struct Steps<'a, H> {
    cache: &'a Cache,
    batch: &'a Batch,
    visits: &'a [Visit],
    step: Step,
    times: usize,
    hasher: H,
}

impl<H: Hasher> Kernel for Steps<'_, H> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { cache, batch, visits, step, times, mut hasher } = self;
        if batch.is_empty() {
            return;
        }
        hasher.begin(&batch.miniflows);
        let mut hashes = [0; BURST];
        for _ in 0..times {
            for &(at, live) in visits {
                let Some(table) = cache.subtables.get(at) else { continue };
                let burst = Burst {
                    miniflows: &batch.miniflows,
                    pairs: batch.pairs.get(..BURST * PAIRS).unwrap_or_default(),
                    halves: batch.halves.get(..2 * WORDS * BURST).unwrap_or_default(),
                    live,
                };
                hasher.hash(simd, &table.words, burst, &mut hashes);
                black_box(&mut hashes);
                if step == Step::Hash {
                    continue;
                }
                for packet in crate::miniflow::bits(live) {
                    let hashed = Hashed::of_word(hashes[packet]);
                    if step == Step::Find {
                        black_box(table.candidates(simd, hashed));
                    } else {
                        black_box(find(simd, table, hashed, &batch.miniflows[packet]));
                    }
                }
            }
        }
    }
}
