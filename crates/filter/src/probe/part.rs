//! One filter of several that keys go through: which pass, which go on to the next.

use fibula_simd::Level;

use super::Bits;
#[cfg(target_arch = "x86_64")]
use super::dispatch;
#[cfg(target_arch = "x86_64")]
use super::lanes::{Family, Lanes, Reduce};
use crate::{Hash, Key};

/// A batch of keys for [`Bits::part`]. All slices have one length.
pub struct Parting<'a, K> {
    /// The bits of the keys that count here: what is asked for is `key & mask`.
    pub mask: K,
    /// The keys; those that fail come to the front, in order.
    pub keys: &'a mut [K],
    /// What belongs to each key; goes where the key goes.
    pub rows: &'a mut [K],
    /// Where the keys that pass go, as they were.
    pub passed: &'a mut [K],
    /// What belongs to those.
    pub passed_rows: &'a mut [K],
    /// Their first hashes, in the low 32 bits, for the table behind the filter.
    pub hashes: &'a mut [K],
}

impl<K: Key> Parting<'_, K> {
    fn assert(&self) {
        let len = self.keys.len();
        let others =
            [self.rows.len(), self.passed.len(), self.passed_rows.len(), self.hashes.len()];
        assert!(others.iter().all(|other| *other == len), "slices of one length");
    }

    /// Parts the keys from `from` on one by one, with so many passed and failed before; how many
    /// passed then.
    fn scalar(
        &mut self,
        bits: Bits<'_>,
        from: usize,
        mut passed: usize,
        mut failed: usize,
    ) -> usize {
        for at in from..self.keys.len() {
            let (key, row) = (self.keys[at], self.rows[at]);
            let masked = key.and(self.mask);
            if bits.contains_from(masked, 0) {
                (self.passed[passed], self.passed_rows[passed]) = (key, row);
                self.hashes[passed] = K::of_low(bits.hash.nth(masked, 0));
                passed += 1;
            } else {
                (self.keys[failed], self.rows[failed]) = (key, row);
                failed += 1;
            }
        }
        passed
    }
}

pub(super) fn run<K: Key>(bits: Bits<'_>, mut job: Parting<'_, K>, level: Level) -> usize {
    job.assert();
    #[cfg(target_arch = "x86_64")]
    if let Some(passed) = dispatch::part(bits, &mut job, level) {
        return passed;
    }
    let _ = level;
    job.scalar(bits, 0, 0, 0)
}

/// Parts all keys; how many passed.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn part<L: Lanes, F: Family>(l: L, bits: Bits<'_>, job: &mut Parting<'_, L::Key>) -> usize {
    let reduce = Reduce::new(bits.shape);
    let whole = job.keys.len() / L::N * L::N;
    // SAFETY: no vector has more than 16 lanes.
    let mask = unsafe { l.load(&[job.mask; 16], 0) };
    let (mut passed, mut failed) = (0, 0);
    for at in (0..whole).step_by(L::N) {
        // SAFETY: within the keys, of which there are as many rows (checked by `run`).
        let (keys, rows) = unsafe { (l.load(job.keys, at), l.load(job.rows, at)) };
        let masked = l.and(keys, mask);
        let first = F::nth(l, masked, l.splat_lane(0));
        // SAFETY: `Reduce` makes positions below the shape's bits, of which `words` has at least as
        // many (checked by `Bits::new`), and there are at most 2^31.
        let mut pass = unsafe { l.test(bits.words, reduce.positions(l, first)) };
        for index in 1..bits.shape.hashes() {
            if l.count(pass) == 0 {
                break;
            }
            let hash = F::nth(l, masked, l.splat_lane(index));
            // SAFETY: as above.
            pass = pass & unsafe { l.test(bits.words, reduce.positions(l, hash)) };
        }
        // SAFETY: `passed + failed == at`, so each vector ends at `at + N` at most, within all slices,
        // which have one length. Keys behind that are not written before they are read.
        unsafe {
            l.store(l.pack(keys, pass), job.passed, passed);
            l.store(l.pack(rows, pass), job.passed_rows, passed);
            l.store(l.pack(first, pass), job.hashes, passed);
            l.store(l.pack(keys, !pass), job.keys, failed);
            l.store(l.pack(rows, !pass), job.rows, failed);
        }
        passed += l.count(pass);
        failed = at + L::N - passed;
    }
    job.scalar(bits, whole, passed, failed)
}

/// The first hash of each `key & mask`, in its low 32 bits; those of tables that are addressed by
/// another function than the filter before them.
///
/// # Panics
/// If the slices differ in length.
pub fn hash_all<K: Key>(hash: Hash, level: Level, mask: K, keys: &[K], hashes: &mut [K]) {
    assert_eq!(keys.len(), hashes.len(), "a hash for each key");
    #[cfg(target_arch = "x86_64")]
    let done = dispatch::hash_all(hash, level, mask, keys, hashes);
    #[cfg(not(target_arch = "x86_64"))]
    let done = 0;
    let _ = level;
    for (key, to) in keys.iter().zip(hashes).skip(done) {
        *to = K::of_low(hash.nth(key.and(mask), 0));
    }
}

/// [`hash_all`] for whole vectors; how many keys these are.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn hashes<L: Lanes, F: Family>(
    l: L,
    mask: L::Key,
    keys: &[L::Key],
    hashes: &mut [L::Key],
) -> usize {
    assert_eq!(keys.len(), hashes.len());
    let whole = keys.len() / L::N * L::N;
    // SAFETY: no vector has more than 16 lanes.
    let mask = unsafe { l.load(&[mask; 16], 0) };
    for at in (0..whole).step_by(L::N) {
        // SAFETY: within the keys, of which there are as many hashes, as just seen.
        unsafe {
            let keys = l.and(l.load(keys, at), mask);
            l.store(F::nth(l, keys, l.splat_lane(0)), hashes, at);
        }
    }
    whole
}
