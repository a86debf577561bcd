//! One filter of several that keys go through: which pass, which go on to the next.

use std::marker::PhantomData;

use fibula_simd::{Kernel, Lanes, Level, Simd, Word};

use super::Bits;
use super::positions::BitPositions;
use crate::families::HashFamily;
use crate::hash::nth;
use crate::{Hash, WordKey};

/// A batch of keys for [`Bits::part`]. All slices have one length.
pub struct Parting<'a, K> {
    /// The significant bits of the keys: the filter is queried for `key & mask`.
    pub mask: K,
    /// The keys; those that fail come to the front, in order.
    pub keys: &'a mut [K],
    /// The payload of each key, which moves with the key.
    pub rows: &'a mut [K],
    /// Where the keys that pass go, as they were.
    pub passed: &'a mut [K],
    /// The payloads of those.
    pub passed_rows: &'a mut [K],
    /// Their first hashes, in the low 32 bits, for the table behind the filter.
    pub hashes: &'a mut [K],
}

impl<T: Word> Parting<'_, T> {
    pub(super) fn assert(&self) {
        let len = self.keys.len();
        let others =
            [self.rows.len(), self.passed.len(), self.passed_rows.len(), self.hashes.len()];
        assert!(others.iter().all(|other| *other == len), "slices of one length");
    }

    /// Parts the keys from `from` on one by one, with so many passed and failed before; how many
    /// passed then.
    fn scalar<F: HashFamily>(
        &mut self,
        bits: Bits<'_>,
        from: usize,
        mut passed: usize,
        mut failed: usize,
    ) -> usize {
        for at in from..self.keys.len() {
            let (key, row) = (self.keys[at], self.rows[at]);
            let masked = key & self.mask;
            if bits.contains_from::<T, F>(masked, 0) {
                (self.passed[passed], self.passed_rows[passed]) = (key, row);
                self.hashes[passed] = T::of_low(nth::<T, F>(masked, 0));
                passed += 1;
            } else {
                (self.keys[failed], self.rows[failed]) = (key, row);
                failed += 1;
            }
        }
        passed
    }
}

/// The kernel of [`Bits::part`], which has checked the slices.
pub(crate) struct Part<'a, 'b, T, F> {
    pub bits: Bits<'a>,
    pub job: Parting<'b, T>,
    pub family: PhantomData<F>,
}

impl<T: Word, F: HashFamily> Kernel for Part<'_, '_, T, F> {
    type Output = usize;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> usize {
        let Self { bits, mut job, .. } = self;
        if S::IS_SCALAR {
            return job.scalar::<F>(bits, 0, 0, 0);
        }
        part::<S::Lanes<T>, F>(simd, bits, &mut job)
    }
}

/// Parts all keys; how many passed.
#[inline(always)]
fn part<V: Lanes, F: HashFamily>(
    simd: V::Simd,
    bits: Bits<'_>,
    job: &mut Parting<'_, V::Word>,
) -> usize {
    let positions = BitPositions::new(bits);
    let index = |index| V::splat(simd, V::Word::of_low(index));
    let mask = V::splat(simd, job.mask);
    let whole = job.keys.len() / V::N * V::N;
    let (mut passed, mut failed) = (0, 0);
    for at in (0..whole).step_by(V::N) {
        // SAFETY: within the keys, of which there are as many rows (checked by `Bits::part`).
        let (keys, rows) = unsafe {
            let keys = V::load_unchecked(simd, job.keys, at);
            (keys, V::load_unchecked(simd, job.rows, at))
        };
        let masked = keys.and(mask);
        let first = F::nth(masked, index(0));
        let mut pass = positions.test(first);
        for i in 1..bits.parameters.hashes() {
            if V::count(pass) == 0 {
                break;
            }
            pass &= positions.test(F::nth(masked, index(i)));
        }
        // SAFETY: `passed + failed == at`, so each vector ends at `at + N` at most, within all slices,
        // which have one length (checked by `Bits::part`). And no key is written before it is read.
        unsafe {
            keys.pack(pass).store_unchecked(job.passed, passed);
            rows.pack(pass).store_unchecked(job.passed_rows, passed);
            first.pack(pass).store_unchecked(job.hashes, passed);
            keys.pack(!pass).store_unchecked(job.keys, failed);
            rows.pack(!pass).store_unchecked(job.rows, failed);
        }
        passed += V::count(pass);
        failed = at + V::N - passed;
    }
    job.scalar::<F>(bits, whole, passed, failed)
}

/// The first hash of each `key & mask`, in its low 32 bits; those of tables that are addressed by
/// another function than the filter before them.
///
/// # Panics
/// If the slices differ in length.
pub fn hash_all<T: WordKey>(hash: Hash, level: Level, mask: T, keys: &[T], hashes: &mut [T]) {
    assert_eq!(keys.len(), hashes.len(), "a hash for each key");
    T::hash_all(hash, level, mask, keys, hashes);
}

/// The kernel of [`hash_all`], which has checked the slices.
pub(crate) struct HashAll<'a, T, F> {
    pub mask: T,
    pub keys: &'a [T],
    pub hashes: &'a mut [T],
    pub family: PhantomData<F>,
}

impl<T: Word, F: HashFamily> Kernel for HashAll<'_, T, F> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { mask, keys, hashes, .. } = self;
        let lanes = S::Lanes::<T>::N;
        let whole = keys.len() / lanes * lanes;
        let (masks, index) = (S::Lanes::splat(simd, mask), S::Lanes::splat(simd, T::default()));
        for at in (0..whole).step_by(lanes) {
            // SAFETY: within the keys, of which there are as many hashes (checked by `hash_all`).
            unsafe {
                let keys = S::Lanes::load_unchecked(simd, keys, at).and(masks);
                F::nth(keys, index).store_unchecked(hashes, at);
            }
        }
        for (key, to) in keys.iter().zip(hashes).skip(whole) {
            *to = T::of_low(nth::<T, F>(*key & mask, 0));
        }
    }
}
