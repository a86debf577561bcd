use std::fmt;
use std::hint::black_box;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use fibula_core::Hop;
use fibula_simd::{Isa, Kernel, Level, Simd, Table};

use super::blocks::Batch;
use super::gathers::Gathered;
use super::record::{Codes, Half, Line, Unit};
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
        level.isa() == Isa::Avx512
            && shape.map_or_else(|| level.gathers_well(), |shape| shape.gathers)
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
            let batch = Gathered { tables: self, addrs, hops: &mut *hops };
            if level.run_avx512(batch).is_some() {
                return;
            }
        }
        level.run(Batch { tables: self, addrs, hops });
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
