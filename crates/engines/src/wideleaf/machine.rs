use std::fmt;
use std::hint::black_box;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use fibula_core::{Hop, Prefix, Routes};
use fibula_simd::{Isa, Kernel, Level, Simd, Table};

use super::blocks::Batch;
use super::build::{Cells, build_as};
use super::record::{Codes, Half, Line, Narrow, Unit};
use super::{Shape, Tables};

// The two choices of a `Shape`, and what they depend on (the numbers are in docs/adr/0006-wideleaf.md):
//
// - The instruction that gathers sixteen words takes an Intel core (family 6) less time than sixteen loads, a Zen 4 more.
//   AVX2's gathers, of eight words, do not gain anywhere.
// - A Zen 4's second-level cache delivers half a line in a cycle, so a record in a whole line costs it nearly
//   twice as much. Others deliver a line.

impl Shape {
    /// The shape that tables have on this machine unless [`Config::shape`](super::Config::shape) says otherwise. With AVX-512 it is measured, once a
    /// process, in less than 5 ms.
    ///
    /// ```
    /// use fibula_engines::wideleaf::Shape;
    /// use fibula_simd::Isa;
    ///
    /// assert_eq!(Shape::here(Isa::Scalar).to_string(), "records in half lines, words loaded");
    /// ```
    pub fn here(isa: Isa) -> Self {
        let level = isa.level();
        Self { lines: Self::lines(level, None), gathers: Self::gathers(level, None) }
    }

    /// Whether a table that is built has records in whole lines.
    pub(super) fn lines(level: Level, shape: Option<Self>) -> bool {
        static GAIN: OnceLock<bool> = OnceLock::new();
        match shape {
            Some(shape) => shape.lines,
            None => level.isa() == Isa::Avx512 && *GAIN.get_or_init(|| lines_gain(level)),
        }
    }

    /// Whether batches gather words. This is asked by the first batch, so that a program that looks up single addresses starts
    /// without the measurement.
    #[inline]
    pub(super) fn gathers(level: Level, shape: Option<Self>) -> bool {
        static GAIN: OnceLock<bool> = OnceLock::new();
        level.isa() == Isa::Avx512
            && match shape {
                Some(shape) => shape.gathers,
                None => *GAIN.get_or_init(|| gathers_gain(level)),
            }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let records = if self.lines { "whole" } else { "half" };
        let words = if self.gathers { "gathered" } else { "loaded" };
        write!(f, "records in {records} lines, words {words}")
    }
}

impl<C: Codes> Tables<C> {
    /// Looks up a batch.
    pub(super) fn look_up(&self, level: Level, gathers: bool, addrs: &[u128], hops: &mut [Hop]) {
        if gathers {
            let batch = Batch::<C, true> { tables: self, addrs, hops: &mut *hops };
            if level.run_avx512(batch).is_some() {
                return;
            }
        }
        level.run(Batch::<C, false> { tables: self, addrs, hops });
    }
}

/// Rounds of each measurement, of which the best one counts.
const ROUNDS: usize = 9;

/// Records in whole lines are chosen if a comparison of a line takes less than so many times that of half a line: the tables
/// are a quarter smaller then. On Zen 4 it takes 1.7 times as long, and whole lines lose 5 %.
const LINE_WORTH: f64 = 1.4;

/// Whether a comparison of whole lines is cheap, measured with lines from the second-level cache.
fn lines_gain(level: Level) -> bool {
    let table: Table<Line> = Table::with(1 << 13, |lines| lines.fill([7; 32]));
    let mut best = [Duration::MAX; 2];
    for _ in 0..ROUNDS {
        let start = Instant::now();
        level.run(Compare::<Half>(bytemuck::cast_slice(&table)));
        let middle = Instant::now();
        level.run(Compare::<Line>(&table));
        let times = [middle - start, middle.elapsed()];
        best = [best[0].min(times[0]), best[1].min(times[1])];
    }
    best[1].as_secs_f64() < LINE_WORTH * best[0].as_secs_f64()
}

/// Compares a unit of each line in no order, as the stage of a batch does.
struct Compare<'a, U>(&'a [U]);

impl<U: Unit> Kernel for Compare<'_, U> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let units = self.0.len();
        let in_line = size_of::<Line>() / size_of::<U>();
        let mut verdicts = [U::Verdict::default(); 128];
        for block in 0..units / in_line / 128 {
            for (i, to) in verdicts.iter_mut().enumerate() {
                // An odd factor reaches every line once.
                let line = (block * 128 + i).wrapping_mul(0x9e37_79b1);
                *to = self.0[line * in_line % units].below(simd, (i as u32) * 0x1_0001);
            }
            black_box(&verdicts);
        }
    }
}

/// Whether gathers are faster than loads, for random addresses in a small table with tables of several strides and records: the best rounds, in turns.
fn gathers_gain(level: Level) -> bool {
    const BATCH: usize = 256;
    // Numbers without an order.
    let mixed = |i: u64| {
        i.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    };
    // Networks of /40 to /48 in a /24, dense enough for tables.
    let networks: Vec<u128> =
        (0..2000).map(|i| 0x20_010d << 104 | u128::from(mixed(i)) << 64 >> 24).collect();
    let routes: Routes<u128> = networks
        .iter()
        .zip((40..=48).cycle())
        .map(|(&addr, len)| {
            Prefix::masked(addr, len).map(|p| (p, Hop::new((addr >> 90) as u32 & 511)))
        })
        .collect::<Result<_, _>>()
        .expect("no longer than an address");
    let Ok(Some(tables)) = build_as::<Narrow>(&routes, &Cells::new::<Half>(routes.ranges())) else {
        return false;
    };
    let mut hops = [Hop::NONE; BATCH];
    let mut best = [(Duration::MAX, false), (Duration::MAX, true)];
    for _ in 0..ROUNDS {
        for (best, gathers) in &mut best {
            let start = Instant::now();
            for addrs in networks.chunks_exact(BATCH) {
                tables.look_up(level, *gathers, addrs, &mut hops);
                black_box(&hops);
            }
            *best = start.elapsed().min(*best);
        }
    }
    best[1].0 < best[0].0
}
