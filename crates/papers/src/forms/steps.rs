//! Single steps of a search, for measurements.

use std::hint::black_box;

use fibula_simd::{Kernel, Simd};

use super::batch::{BURST, Rows};
use super::miniflow::bits;
use super::rows::{Burst, Columns, Crc, Gather, Hasher, Murmur, Transposed, find};
use super::table::Table;
use super::{Batch, Cache, Form};

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
    let (cache, batch) = match (cache, batch) {
        (Cache::Packed(cache), Batch::Packed(batch)) => {
            return fibula_classify::repeat_hashes(cache, batch, visits, times);
        }
        (Cache::Rows(cache), Batch::Rows(batch)) => (cache, batch),
        _ => panic!("the form of the cache"),
    };
    assert!(batch.miniflows.len() <= BURST, "one burst");
    let tables = &cache.tables;
    macro_rules! steps {
        ($hasher:expr) => {
            cache.level.run(Steps { tables, batch, visits, step, times, hasher: $hasher })
        };
    }
    match cache.form {
        Form::Crc => steps!(Crc),
        Form::Gather => steps!(Gather),
        Form::Transposed => steps!(Transposed::default()),
        Form::Columns => steps!(Columns),
        _ => steps!(Murmur),
    }
}

struct Steps<'a, H> {
    tables: &'a [Table],
    batch: &'a Rows,
    visits: &'a [Visit],
    step: Step,
    times: usize,
    hasher: H,
}

impl<H: Hasher> Kernel for Steps<'_, H> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { tables, batch, visits, step, times, mut hasher } = self;
        if batch.miniflows.is_empty() {
            return;
        }
        hasher.begin(&batch.miniflows);
        let mut hashes = [0; BURST];
        for _ in 0..times {
            for &(at, live) in visits {
                let Some(table) = tables.get(at) else { continue };
                hasher.hash(simd, &table.words, Burst::of(batch, 0, live), &mut hashes);
                black_box(&mut hashes);
                if step == Step::Hash {
                    continue;
                }
                for packet in bits(live) {
                    if step == Step::Find {
                        black_box(table.candidates(simd, hashes[packet]));
                    } else {
                        black_box(find(simd, table, hashes[packet], &batch.miniflows[packet]));
                    }
                }
            }
        }
    }
}
