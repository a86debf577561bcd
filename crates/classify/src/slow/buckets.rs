//! Numbers by hash: a cache line holds the hashes of eight keys, which are compared at once, and their numbers.
//!
//! ```text
//!   bucket, 64 bytes   | hash 0 | hash 1 |  ...  | hash 7 | number 0 | number 1 |  ...  | number 7 |
//! ```
//!
//! A full bucket overflows into the next one. A search ends when it finds the hash, or at the first bucket that is
//! not full. This is mostly the first bucket, and the branches are well predicted.

use std::hint::select_unpredictable;

use fibula_simd::{Scalar, Simd, Table, prefetch_read};

const LANES: usize = 8;

/// The hash of a lane whose key was removed from a full bucket. Hashes of keys have their highest bit set.
const GONE: u32 = 1;

/// Hashes in the order in which they came, 0 where there is none, and their numbers.
type Bucket = [u32; 2 * LANES];

#[inline(always)]
fn is_full(bucket: &Bucket) -> bool {
    bucket[LANES - 1] != 0
}

/// Where a key is: its bucket and its lane there.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyPosition(usize, usize);

/// Numbers by hash. Numbers are not 0; several keys may have the same hash.
#[derive(Clone, Debug)]
pub(super) struct Buckets {
    buckets: Table<Bucket>,
    /// Lanes that are not empty.
    used: usize,
}

impl Default for Buckets {
    fn default() -> Self {
        Self { buckets: Table::with(1, |_| {}), used: 0 }
    }
}

/// The half of a hash that is stored. It never equals the mark of an empty lane.
#[inline(always)]
pub(super) fn kept(hash: u64) -> u32 {
    (hash >> 32) as u32 | 1 << 31
}

impl Buckets {
    pub(super) fn bytes(&self) -> usize {
        size_of_val::<[Bucket]>(&self.buckets)
    }

    /// Moves the buckets of all these into few pages.
    pub(super) fn pack<'b>(all: impl IntoIterator<Item = &'b mut Self>) {
        Table::pack(all.into_iter().map(|one| &mut one.buckets));
    }

    #[inline(always)]
    fn home(&self, hash: u32) -> usize {
        hash as usize & (self.buckets.len() - 1)
    }

    /// Prefetches the line of a hash.
    #[inline(always)]
    pub(super) fn ask(&self, hash: u32) {
        prefetch_read(&self.buckets, self.home(hash));
    }

    /// The number of the first key with this hash; 0 if there is none.
    #[inline(always)]
    pub(super) fn get<S: Simd>(&self, simd: S, hash: u32) -> u32 {
        let mut at = self.home(hash);
        loop {
            let line = &self.buckets[at];
            let equal = simd.equal32(line, hash) & 0xff;
            let number = line[LANES + (equal.trailing_zeros() as usize & (LANES - 1))];
            // Whether the key exists is unpredictable.
            let number = select_unpredictable(equal != 0, number, 0);
            if equal | u32::from(line[LANES - 1] == 0) != 0 {
                return number;
            }
            at = (at + 1) & (self.buckets.len() - 1);
        }
    }

    /// The key with this hash whose number is the right one.
    pub(super) fn find(
        &self,
        hash: u32,
        mut is_it: impl FnMut(u32) -> bool,
    ) -> Option<KeyPosition> {
        let mut at = self.home(hash);
        loop {
            let bucket = &self.buckets[at];
            let mut equal = Scalar.equal32(bucket, hash) as u8;
            while equal != 0 {
                let lane = equal.trailing_zeros() as usize;
                if is_it(bucket[LANES + lane]) {
                    return Some(KeyPosition(at, lane));
                }
                equal &= equal - 1;
            }
            if !is_full(bucket) {
                return None;
            }
            at = (at + 1) & (self.buckets.len() - 1);
        }
    }

    pub(super) fn number(&self, KeyPosition(at, lane): KeyPosition) -> u32 {
        self.buckets[at][LANES + lane]
    }

    pub(super) fn set(&mut self, KeyPosition(at, lane): KeyPosition, number: u32) {
        self.buckets.to_mut()[at][LANES + lane] = number;
    }

    /// Adds a key that is not there.
    pub(super) fn insert(&mut self, hash: u32, number: u32) {
        if self.used >= self.buckets.len() * (LANES * 5 / 8) {
            self.resize();
        }
        self.put(hash, number);
    }

    fn put(&mut self, hash: u32, number: u32) {
        let mut at = self.home(hash);
        let buckets = self.buckets.to_mut();
        loop {
            let line = &mut buckets[at];
            if let Some(lane) = line[..LANES].iter().position(|hash| *hash <= GONE) {
                self.used += usize::from(line[lane] == 0);
                (line[lane], line[LANES + lane]) = (hash, number);
                return;
            }
            at = (at + 1) & (buckets.len() - 1);
        }
    }

    /// Removes a key.
    pub(super) fn remove(&mut self, KeyPosition(at, lane): KeyPosition) {
        let bucket = &mut self.buckets.to_mut()[at];
        if is_full(bucket) {
            // Searches for other keys must continue after this bucket.
            (bucket[lane], bucket[LANES + lane]) = (GONE, 0);
            return;
        }
        let last = bucket[..LANES].iter().rposition(|hash| *hash != 0).unwrap_or(lane);
        for at in [0, LANES] {
            bucket[at + lane] = bucket[at + last];
            bucket[at + last] = 0;
        }
        self.used -= 1;
    }

    /// Rebuilds the table with room for twice as many keys as there are.
    fn resize(&mut self) {
        let old = std::mem::take(&mut self.buckets);
        let keys = || {
            let lanes = old.iter().flat_map(|line| {
                let (hashes, numbers) = line.split_at(LANES);
                hashes.iter().copied().zip(numbers.iter().copied())
            });
            lanes.filter(|(hash, _)| *hash > GONE)
        };
        let buckets = (keys().count() * 2 + 2).div_ceil(LANES * 5 / 8).next_power_of_two();
        self.buckets = Table::with(buckets, |_| {});
        self.used = 0;
        keys().for_each(|(hash, number)| self.put(hash, number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Keys come and go, some with equal hashes, many of one bucket.
    #[test]
    fn keys_are_found_until_they_go() {
        let mut buckets = Buckets::default();
        let mut there: BTreeMap<u32, u32> = BTreeMap::new();
        let mut state = 1u64;
        for step in 0..20_000u32 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let number = (state >> 33) as u32 % 600 + 1;
            // Three numbers share a hash, and four hashes a bucket however many there are.
            let hash_of = |number: u32| {
                let (bucket, rest) = (number / 3 % 50, number / 3);
                kept(u64::from(bucket + rest * 4096) << 32)
            };
            let hash = hash_of(number);
            let place = buckets.find(hash, |other| other == number);
            assert_eq!(place.is_some(), there.contains_key(&number));
            // In the second half of each round, more keys are removed than added.
            match place {
                Some(place) if (step / 2000) % 2 == 1 || state >> 63 == 1 => {
                    buckets.remove(place);
                    there.remove(&number);
                }
                None if (step / 2000) % 2 == 0 => {
                    buckets.insert(hash, number);
                    there.insert(number, hash);
                }
                _ => {}
            }
            let first = buckets.get(Scalar, hash);
            let same = there.iter().any(|(_, other)| *other == hash);
            assert_eq!(first != 0, same);
            assert!(first == 0 || there.get(&first) == Some(&hash));
        }
        assert!(buckets.buckets.len() <= 256, "{} buckets", buckets.buckets.len());
    }
}
