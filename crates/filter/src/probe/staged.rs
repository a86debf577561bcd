//! Our loop: test by test over a block of keys, instead of key by key.
//!
//! HPBF keeps its lanes full, but a vector's next keys are known only when its tests are done: some
//! 100 cycles from one round to the next, which unrolling hides in part and at the price of
//! registers. Here every vector's address is known from the beginning, and the machine runs as many
//! ahead as it can. Lanes are full too, but for the last vector of a stage.
//!
//! ```text
//!   keys    A B C D E F G H J K L M ..     first test of all     -> A C D E G L ..
//!   output  A C D E G L ..                 second test of those  -> A D G ..
//!   output  A D G ..                       third, in place       -> D ..
//! ```

use std::marker::PhantomData;

use fibula_simd::{Kernel, Lanes, Simd, Word};

use super::Job;
use super::positions::BitPositions;
use crate::families::HashFamily;

/// The kernel of [`super::Form::Staged`]: how many passed, `None` without vectors.
pub struct Staged<'a, 'b, T, F, const PREFETCH: bool>(pub &'a mut Job<'b, T>, pub PhantomData<F>);

impl<T: Word, F: HashFamily, const PREFETCH: bool> Kernel for Staged<'_, '_, T, F, PREFETCH> {
    type Output = Option<usize>;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Option<usize> {
        if S::IS_SCALAR {
            return None;
        }
        Some(staged::<S::Lanes<T>, F, PREFETCH>(simd, self.0))
    }
}

/// Keys in a block: few enough that the keys that pass the first test are still in the first-level cache, and so many
/// that the ends of the stages, where nothing is prefetched, are rare.
const fn block(prefetch: bool) -> usize {
    if prefetch { 4096 } else { 1024 }
}

/// How many vectors ahead words are prefetched.
const LEAD: usize = 16;

/// Tests all keys; how many passed.
#[inline(always)]
fn staged<V: Lanes, F: HashFamily, const PREFETCH: bool>(
    simd: V::Simd,
    job: &mut Job<'_, V::Word>,
) -> usize {
    let mut n = 0;
    let mut from = 0;
    while from < job.keys.len() {
        let keys = block(PREFETCH).min(job.keys.len() - from);
        let mut left = stage::<V, F, PREFETCH, true>(simd, job, from, keys, n, 0);
        for index in 1..job.bits.parameters.hashes() {
            if left == 0 {
                break;
            }
            left = stage::<V, F, PREFETCH, false>(simd, job, n, left, n, index);
        }
        n += left;
        from += keys;
    }
    n
}

/// Tests `keys` keys from `from` at their `index`th position, and puts those that pass at `to` of
/// the output; how many these are. `FIRST`: the keys are the input's, otherwise the output's.
///
/// Reads are at or after the position of writes: `to <= from`, in the same numbering.
#[inline(always)]
fn stage<V: Lanes, F: HashFamily, const PREFETCH: bool, const FIRST: bool>(
    simd: V::Simd,
    job: &mut Job<'_, V::Word>,
    from: usize,
    keys: usize,
    to: usize,
    index: u32,
) -> usize {
    let positions = BitPositions::new(job.bits).near(job.is_near);
    let lane_index = V::splat(simd, V::Word::of_low(index));
    let whole = keys / V::N;
    // The hashes of the next vectors, in a ring.
    let mut ahead = [lane_index; LEAD];
    if PREFETCH {
        for (ahead, at) in ahead.iter_mut().zip((from..).step_by(V::N).take(whole)) {
            let source = if FIRST { job.keys } else { &*job.out_keys };
            // SAFETY: within the `keys` keys from `from`, which lie in the source.
            let keys = unsafe { V::load_unchecked(simd, source, at) };
            *ahead = F::nth(keys, lane_index);
            positions.prefetch(*ahead);
        }
    }
    let mut n = to;
    for (vector, at) in (from..).step_by(V::N).take(whole).enumerate() {
        let (source, source_payloads) = match FIRST {
            true => (job.keys, job.payloads),
            false => (&*job.out_keys, &*job.out_payloads),
        };
        // SAFETY: within the `keys` keys from `from`, which lie in the source; it has as many payloads.
        let (keys, payloads) = unsafe {
            let keys = V::load_unchecked(simd, source, at);
            (keys, V::load_unchecked(simd, source_payloads, at))
        };
        let hashes = match PREFETCH {
            true => {
                let now = ahead[vector % LEAD];
                if vector + LEAD < whole {
                    // SAFETY: a vector of the `keys` keys from `from`, as just seen.
                    let keys = unsafe { V::load_unchecked(simd, source, at + LEAD * V::N) };
                    ahead[vector % LEAD] = F::nth(keys, lane_index);
                    positions.prefetch(ahead[vector % LEAD]);
                }
                now
            }
            false => F::nth(keys, lane_index),
        };
        let set = positions.test(hashes);
        // SAFETY: no more keys passed than were read before these, so `n <= at`, and `at + N` is at
        // most the input's length, which the outputs have too (checked by `Job::new`). Output that
        // is still to be read lies from `at + N` on.
        unsafe {
            keys.pack(set).store_unchecked(job.out_keys, n);
            payloads.pack(set).store_unchecked(job.out_payloads, n);
        }
        n += V::count(set);
    }
    for at in from + whole * V::N..from + keys {
        let (key, payload) = match FIRST {
            true => (job.keys[at], job.payloads[at]),
            false => (job.out_keys[at], job.out_payloads[at]),
        };
        if job.bits.is_set::<_, F>(key, index) {
            job.pass(key, payload, &mut n);
        }
    }
    n - to
}
