//! HPBF's loop, and that of the 256-bit baseline: they differ in how lanes are refilled.
//!
//! ```text
//!   keys      A B C D E F G H | J K L M ..   each lane: a key, its payload, the number of its test
//!   index     0 0 1 0 2 0 0 1
//!   bit set?  1 0 1 1 1 0 1 1
//!   done        x     x x       a bit not set, or (E) the last of three tests: E goes out
//!   keys      A J C D K L G H   the next keys come into the lanes that are done
//!   index     1 0 2 1 0 0 1 2
//! ```

use std::array;
use std::marker::PhantomData;

use fibula_simd::{Kernel, Lanes, Simd, Word};

use super::Job;
use super::places::Places;
use crate::families::Family;

/// The kernel of [`super::Form::Refill`] and [`super::Form::Permute`].
pub struct Refill<'a, 'b, T, F, const WAYS: usize, const PREFETCH: bool>(
    pub &'a mut Job<'b, T>,
    pub PhantomData<F>,
);

impl<T: Word, F: Family, const WAYS: usize, const PREFETCH: bool> Kernel
    for Refill<'_, '_, T, F, WAYS, PREFETCH>
{
    type Output = usize;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> usize {
        refill::<S::Lanes<T>, F, WAYS, PREFETCH>(simd, self.0)
    }
}

/// A vector of keys under way, and the part of the input that refills it.
#[derive(Clone, Copy)]
struct Way<V> {
    keys: V,
    payloads: V,
    index: V,
    /// The next key, and the end of the part.
    at: usize,
    end: usize,
}

/// Does something for each way, with the way's number known when compiling: only then the ways stay
/// in registers.
macro_rules! each {
    ($ways:expr, $w:ident => $body:expr) => {
        each!(@ $ways, $w => $body; 0 1 2 3 4 5 6 7)
    };
    (@ $ways:expr, $w:ident => $body:expr; $($number:literal)*) => { $(
        if $ways > $number {
            let $w: usize = $number;
            $body
        }
    )* };
}

/// Tests all keys; how many passed.
#[inline(always)]
fn refill<V: Lanes, F: Family, const WAYS: usize, const PREFETCH: bool>(
    simd: V::Simd,
    job: &mut Job<'_, V::Word>,
) -> usize {
    let len = job.keys.len();
    let part = len / WAYS;
    if part < V::N {
        return job.scalar::<F>(0, len, 0);
    }
    let places = Places::new(job.bits);
    let [zero, one, last] =
        [0, 1, job.bits.shape.hashes() - 1].map(|number| V::splat(simd, V::Word::of_low(number)));
    let mut ways: [Way<V>; WAYS] = array::from_fn(|w| {
        let at = w * part;
        let end = if w + 1 == WAYS { len } else { at + part };
        let (keys, payloads) = (V::load(simd, job.keys, at), V::load(simd, job.payloads, at));
        Way { keys, payloads, index: zero, at: at + V::N, end }
    });
    let mut hashes = [zero; WAYS];
    let mut n = 0;
    while ways.iter().all(|way| way.at + V::N <= way.end) {
        if PREFETCH {
            each!(WAYS, w => {
                hashes[w] = F::nth(ways[w].keys, ways[w].index);
                places.prefetch(hashes[w]);
            });
        }
        each!(WAYS, w => {
            let way = &mut ways[w];
            if !PREFETCH {
                hashes[w] = F::nth(way.keys, way.index);
            }
            let set = places.test(hashes[w]);
            let ends = way.index.equal(last);
            let (stays, passes) = (set & !ends, set & ends);
            let (keys, payloads) = (way.keys.pack(passes), way.payloads.pack(passes));
            // SAFETY: what passed before was loaded before, and is in no lane any more: at most the
            // keys loaded so far without the `N` of this way. So `n + N` is at most `len`, and the
            // outputs are as long as the keys (checked by `Job::new`).
            unsafe {
                keys.store_unchecked(job.out_keys, n);
                payloads.store_unchecked(job.out_payloads, n);
            }
            n += V::count(passes);
            // SAFETY: `at + N <= end <= len`, by the loop's condition: a way is refilled once a round.
            // There are as many payloads as keys (checked by `Job::new`).
            let fresh = unsafe {
                let keys = V::load_unchecked(simd, job.keys, way.at);
                (keys, V::load_unchecked(simd, job.payloads, way.at))
            };
            way.keys = way.keys.refill(fresh.0, !stays);
            way.payloads = way.payloads.refill(fresh.1, !stays);
            way.index = way.index.add(one).clear(!stays);
            way.at += V::N - V::count(stays);
        });
    }
    finish::<V, F>(job, &ways, n)
}

/// Tests what is in the ways or before their ends, one by one.
#[inline(always)]
fn finish<V: Lanes, F: Family>(job: &mut Job<'_, V::Word>, ways: &[Way<V>], mut n: usize) -> usize {
    for way in ways {
        let [keys, payloads, index] = [way.keys, way.payloads, way.index].map(|vector| {
            let mut lanes = [V::Word::default(); 16];
            vector.store(&mut lanes, 0);
            lanes
        });
        for ((key, payload), index) in keys.into_iter().zip(payloads).zip(index).take(V::N) {
            if job.bits.contains_from::<_, F>(key, index.low()) {
                job.pass(key, payload, &mut n);
            }
        }
        n = job.scalar::<F>(way.at, way.end, n);
    }
    n
}
