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

use super::Job;
use super::lanes::{Family, Lanes, Reduce};
use crate::Key;

/// A vector of keys under way, and the part of the input that refills it.
#[derive(Clone, Copy)]
struct Way<L: Lanes> {
    keys: L::V,
    payloads: L::V,
    index: L::V,
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
pub fn refill<L: Lanes, F: Family, const WAYS: usize, const PREFETCH: bool>(
    l: L,
    job: &mut Job<'_, L::Key>,
) -> usize {
    let len = job.keys.len();
    let part = len / WAYS;
    if part < L::N {
        return job.scalar(0, len, 0);
    }
    let reduce = Reduce::new(job.bits.shape);
    let (words, last) = (job.bits.words, l.splat_lane(job.bits.shape.hashes() - 1));
    let one = l.splat_lane(1);
    let mut ways: [Way<L>; WAYS] = array::from_fn(|w| {
        let at = w * part;
        let end = if w + 1 == WAYS { len } else { at + part };
        // SAFETY: every part has at least `N` keys, and as many payloads.
        let (keys, payloads) = unsafe { (l.load(job.keys, at), l.load(job.payloads, at)) };
        Way { keys, payloads, index: l.splat_lane(0), at: at + L::N, end }
    });
    let mut positions = [one; WAYS];
    let mut n = 0;
    while ways.iter().all(|way| way.at + L::N <= way.end) {
        if PREFETCH {
            each!(WAYS, w => {
                positions[w] = reduce.positions(l, F::nth(l, ways[w].keys, ways[w].index));
                prefetch(l, words, positions[w]);
            });
        }
        each!(WAYS, w => {
            let way = &mut ways[w];
            if !PREFETCH {
                positions[w] = reduce.positions(l, F::nth(l, way.keys, way.index));
            }
            // SAFETY: `Reduce` makes positions below the shape's bits, of which `words` has at least
            // as many (checked by `Job::new`), and there are at most 2^31.
            let set = unsafe { l.test(words, positions[w]) };
            let ends = l.equal(way.index, last);
            let (stays, passes) = (set & !ends, set & ends);
            let (keys, payloads) = (l.pack(way.keys, passes), l.pack(way.payloads, passes));
            // SAFETY: what passed before was loaded before, and is in no lane any more: at most the
            // keys loaded so far without the `N` of this way. So `n + N` is at most `len`, and the
            // outputs are as long as the keys (checked by `Job::new`).
            unsafe {
                l.store(keys, job.out_keys, n);
                l.store(payloads, job.out_payloads, n);
            }
            n += l.count(passes);
            // SAFETY: `at + N <= end <= len`, by the loop's condition: a way is refilled once a round.
            let fresh = unsafe { (l.load(job.keys, way.at), l.load(job.payloads, way.at)) };
            way.keys = l.refill(way.keys, fresh.0, !stays);
            way.payloads = l.refill(way.payloads, fresh.1, !stays);
            way.index = l.clear(l.add(way.index, one), !stays);
            way.at += L::N - l.count(stays);
        });
    }
    finish(l, job, &ways, n)
}

/// Tests what is in the ways or before their ends, one by one.
#[inline(always)]
fn finish<L: Lanes>(l: L, job: &mut Job<'_, L::Key>, ways: &[Way<L>], mut n: usize) -> usize {
    for way in ways {
        let [keys, payloads, index] = [way.keys, way.payloads, way.index].map(|vector| {
            let mut lanes = [L::Key::default(); 16];
            // SAFETY: no vector has more than 16 lanes.
            unsafe { l.store(vector, &mut lanes, 0) };
            lanes
        });
        for ((key, payload), index) in keys.into_iter().zip(payloads).zip(index).take(L::N) {
            if job.bits.contains_from(key, index.low()) {
                job.pass(key, payload, &mut n);
            }
        }
        n = job.scalar(way.at, way.end, n);
    }
    n
}

/// Asks for the words of the positions, as far as the second-level cache: where the first level's few
/// buffers for lines on their way are taken for that long, asking gains nothing.
#[inline(always)]
pub fn prefetch<L: Lanes>(l: L, words: &[u64], positions: L::V) {
    let mut at = [L::Key::default(); 16];
    // SAFETY: no vector has more than 16 lanes.
    unsafe { l.store(l.srl(positions, 6), &mut at, 0) };
    for at in &at[..L::N] {
        fibula_simd::prefetch_read_l2(words, at.low() as usize);
    }
}
