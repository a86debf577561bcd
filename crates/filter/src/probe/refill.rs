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

use fibula_simd::{Isa, Kernel, Lanes, Level, Permutations, Simd, Word};

use super::positions::BitPositions;
use super::{Form, Job, Plan, Prefetch};
use crate::families::HashFamily;

/// Runs the loop of one of the papers' forms, and returns how many passed; `None` without vectors. Where a form needs
/// vectors of 512 bits and they are missing, it runs the 256-bit baseline.
pub fn run<T: Word, F: HashFamily>(
    job: &mut Job<'_, T>,
    plan: Plan,
    level: Level,
) -> Option<usize> {
    let is_wide = level.isa() == Isa::Avx512;
    match (plan.form, plan.prefetch != Prefetch::Off) {
        (Form::Refill, false) if is_wide => ways::<T, F, false>(job, plan.ways, level),
        (Form::Refill, true) if is_wide => ways::<T, F, true>(job, plan.ways, level),
        (Form::Naive, prefetch) if is_wide => {
            let table = ByTable(Permutations::get());
            match (plan.ways, prefetch) {
                (..=1, false) => {
                    level.run_avx512(Refill::<_, F, _, 1, false>(job, table, PhantomData))
                }
                (..=1, true) => {
                    level.run_avx512(Refill::<_, F, _, 1, true>(job, table, PhantomData))
                }
                (_, false) => {
                    level.run_avx512(Refill::<_, F, _, 2, false>(job, table, PhantomData))
                }
                (_, true) => level.run_avx512(Refill::<_, F, _, 2, true>(job, table, PhantomData)),
            }
        }
        (_, prefetch) => match (plan.ways, prefetch) {
            (..=1, false) => {
                level.run_narrow(Refill::<_, F, _, 1, false>(job, ByItself, PhantomData))
            }
            (..=1, true) => {
                level.run_narrow(Refill::<_, F, _, 1, true>(job, ByItself, PhantomData))
            }
            (_, false) => level.run_narrow(Refill::<_, F, _, 2, false>(job, ByItself, PhantomData)),
            (_, true) => level.run_narrow(Refill::<_, F, _, 2, true>(job, ByItself, PhantomData)),
        },
    }
}

fn ways<T: Word, F: HashFamily, const PREFETCH: bool>(
    job: &mut Job<'_, T>,
    ways: usize,
    level: Level,
) -> Option<usize> {
    match ways {
        ..=1 => level.run_avx512(Refill::<_, F, _, 1, PREFETCH>(job, ByItself, PhantomData)),
        2 => level.run_avx512(Refill::<_, F, _, 2, PREFETCH>(job, ByItself, PhantomData)),
        3 => level.run_avx512(Refill::<_, F, _, 3, PREFETCH>(job, ByItself, PhantomData)),
        4 => level.run_avx512(Refill::<_, F, _, 4, PREFETCH>(job, ByItself, PhantomData)),
        5 => level.run_avx512(Refill::<_, F, _, 5, PREFETCH>(job, ByItself, PhantomData)),
        6 => level.run_avx512(Refill::<_, F, _, 6, PREFETCH>(job, ByItself, PhantomData)),
        7 => level.run_avx512(Refill::<_, F, _, 7, PREFETCH>(job, ByItself, PhantomData)),
        _ => level.run_avx512(Refill::<_, F, _, 8, PREFETCH>(job, ByItself, PhantomData)),
    }
}

/// The kernel of all vector forms but the staged one; they differ in how lanes change places.
pub struct Refill<'a, 'b, T, F, M, const WAYS: usize, const PREFETCH: bool>(
    pub &'a mut Job<'b, T>,
    pub M,
    pub PhantomData<F>,
);

impl<T: Word, F: HashFamily, M: Moves, const WAYS: usize, const PREFETCH: bool> Kernel
    for Refill<'_, '_, T, F, M, WAYS, PREFETCH>
{
    type Output = usize;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> usize {
        refill::<S::Lanes<T>, F, M, WAYS, PREFETCH>(simd, self.0, self.1)
    }
}

/// How lanes change places.
pub trait Moves: Copy {
    fn pack<V: Lanes>(self, lanes: V, chosen: u16) -> V;
    fn refill<V: Lanes>(self, old: V, fresh: V, done: u16) -> V;
    fn clear<V: Lanes>(self, old: V, done: u16) -> V;
}

/// As the vectors do it: by instructions of AVX-512, or by a table of permutations, of 256 rows with AVX2 and of
/// sixteen with NEON.
#[derive(Clone, Copy)]
pub struct ByItself;

impl Moves for ByItself {
    #[inline(always)]
    fn pack<V: Lanes>(self, lanes: V, chosen: u16) -> V {
        lanes.pack(chosen)
    }
    #[inline(always)]
    fn refill<V: Lanes>(self, old: V, fresh: V, done: u16) -> V {
        old.refill(fresh, done)
    }
    #[inline(always)]
    fn clear<V: Lanes>(self, old: V, done: u16) -> V {
        old.clear(done)
    }
}

/// By a table of permutations, whatever there is: [`super::Form::Naive`].
#[derive(Clone, Copy)]
pub struct ByTable(pub &'static Permutations);

impl Moves for ByTable {
    #[inline(always)]
    fn pack<V: Lanes>(self, lanes: V, chosen: u16) -> V {
        lanes.pack_by(self.0, chosen)
    }
    #[inline(always)]
    fn refill<V: Lanes>(self, old: V, fresh: V, done: u16) -> V {
        old.refill_by(self.0, fresh, done)
    }
    #[inline(always)]
    fn clear<V: Lanes>(self, old: V, done: u16) -> V {
        old.refill_by(self.0, old.words(0), done)
    }
}

/// A vector of keys under way, and the part of the input that refills it.
#[derive(Clone, Copy)]
struct LaneSet<V> {
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
fn refill<V: Lanes, F: HashFamily, M: Moves, const WAYS: usize, const PREFETCH: bool>(
    simd: V::Simd,
    job: &mut Job<'_, V::Word>,
    moves: M,
) -> usize {
    let len = job.keys.len();
    let part = len / WAYS;
    if part < V::N {
        return job.scalar::<F>(0, len, 0);
    }
    let positions = BitPositions::new(job.bits).near(job.is_near);
    let [zero, one, last] = [0, 1, job.bits.parameters.hashes() - 1]
        .map(|number| V::splat(simd, V::Word::of_low(number)));
    let mut ways: [LaneSet<V>; WAYS] = array::from_fn(|w| {
        let at = w * part;
        let end = if w + 1 == WAYS { len } else { at + part };
        let (keys, payloads) = (V::load(simd, job.keys, at), V::load(simd, job.payloads, at));
        LaneSet { keys, payloads, index: zero, at: at + V::N, end }
    });
    let mut hashes = [zero; WAYS];
    let mut n = 0;
    while ways.iter().all(|way| way.at + V::N <= way.end) {
        if PREFETCH {
            each!(WAYS, w => {
                hashes[w] = F::nth(ways[w].keys, ways[w].index);
                positions.prefetch(hashes[w]);
            });
        }
        each!(WAYS, w => {
            let way = &mut ways[w];
            if !PREFETCH {
                hashes[w] = F::nth(way.keys, way.index);
            }
            let set = positions.test(hashes[w]);
            let ends = way.index.equal(last);
            let (stays, passes) = (set & !ends, set & ends);
            let keys = moves.pack(way.keys, passes);
            let payloads = moves.pack(way.payloads, passes);
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
            way.keys = moves.refill(way.keys, fresh.0, !stays);
            way.payloads = moves.refill(way.payloads, fresh.1, !stays);
            way.index = moves.clear(way.index.add(one), !stays);
            way.at += V::N - V::count(stays);
        });
    }
    finish::<V, F>(job, &ways, n)
}

/// Tests the keys that are in the ways or before their ends, one by one.
#[inline(always)]
fn finish<V: Lanes, F: HashFamily>(
    job: &mut Job<'_, V::Word>,
    ways: &[LaneSet<V>],
    mut n: usize,
) -> usize {
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
