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

use super::Job;
use super::lanes::{Family, Lanes, Reduce};
use super::refill::prefetch;

/// Keys in a block: few enough that what passes the first test is still in the first-level cache, and
/// so many that the ends of the stages, where nothing more is asked for ahead, are rare.
const fn block(prefetch: bool) -> usize {
    if prefetch { 4096 } else { 1024 }
}

/// How many vectors ahead words are asked for.
const LEAD: usize = 16;

/// Tests all keys; how many passed.
#[inline(always)]
pub fn staged<L: Lanes, F: Family, const PREFETCH: bool>(l: L, job: &mut Job<'_, L::Key>) -> usize {
    let mut n = 0;
    let mut from = 0;
    while from < job.keys.len() {
        let keys = block(PREFETCH).min(job.keys.len() - from);
        let mut left = stage::<L, F, PREFETCH, true>(l, job, from, keys, n, 0);
        for index in 1..job.bits.shape.hashes() {
            if left == 0 {
                break;
            }
            left = stage::<L, F, PREFETCH, false>(l, job, n, left, n, index);
        }
        n += left;
        from += keys;
    }
    n
}

/// Tests `keys` keys from `from` at their `index`th position, and puts those that pass at `to` of
/// the output; how many these are. `FIRST`: the keys are the input's, otherwise the output's.
///
/// What is read lies at or behind what is written: `to <= from`, both of the same numbering.
#[inline(always)]
fn stage<L: Lanes, F: Family, const PREFETCH: bool, const FIRST: bool>(
    l: L,
    job: &mut Job<'_, L::Key>,
    from: usize,
    keys: usize,
    to: usize,
    index: u32,
) -> usize {
    let reduce = Reduce::new(job.bits.shape);
    let words = job.bits.words;
    let lane_index = l.splat_lane(index);
    let whole = keys / L::N;
    // The positions of the next vectors, in a ring.
    let mut ahead = [lane_index; LEAD];
    if PREFETCH {
        for (ahead, at) in ahead.iter_mut().zip((from..).step_by(L::N).take(whole)) {
            let source = if FIRST { job.keys } else { &*job.out_keys };
            // SAFETY: within the `keys` keys from `from`, which lie in the source.
            let keys = unsafe { l.load(source, at) };
            *ahead = reduce.positions(l, F::nth(l, keys, lane_index));
            prefetch(l, words, *ahead);
        }
    }
    let mut n = to;
    for (vector, at) in (from..).step_by(L::N).take(whole).enumerate() {
        let (source, source_payloads) = match FIRST {
            true => (job.keys, job.payloads),
            false => (&*job.out_keys, &*job.out_payloads),
        };
        // SAFETY: within the `keys` keys from `from`, which lie in the source.
        let (keys, payloads) = unsafe { (l.load(source, at), l.load(source_payloads, at)) };
        let positions = match PREFETCH {
            true => {
                let now = ahead[vector % LEAD];
                if vector + LEAD < whole {
                    let source = if FIRST { job.keys } else { &*job.out_keys };
                    // SAFETY: a vector of the `keys` keys from `from`, as just seen.
                    let keys = unsafe { l.load(source, at + LEAD * L::N) };
                    ahead[vector % LEAD] = reduce.positions(l, F::nth(l, keys, lane_index));
                    prefetch(l, words, ahead[vector % LEAD]);
                }
                now
            }
            false => reduce.positions(l, F::nth(l, keys, lane_index)),
        };
        // SAFETY: `Reduce` makes positions below the shape's bits, of which `words` has at least as
        // many (checked by `Job::new`), and there are at most 2^31.
        let set = unsafe { l.test(words, positions) };
        // SAFETY: no more keys passed than were read before these, so `n <= at`, and `at + N` is at
        // most the input's length, which the outputs have too (checked by `Job::new`). Output that
        // is still to be read lies from `at + N` on.
        unsafe {
            l.store(l.pack(keys, set), job.out_keys, n);
            l.store(l.pack(payloads, set), job.out_payloads, n);
        }
        n += l.count(set);
    }
    for at in from + whole * L::N..from + keys {
        let (key, payload) = match FIRST {
            true => (job.keys[at], job.payloads[at]),
            false => (job.out_keys[at], job.out_payloads[at]),
        };
        if job.bits.is_set(key, index) {
            job.pass(key, payload, &mut n);
        }
    }
    n - to
}
