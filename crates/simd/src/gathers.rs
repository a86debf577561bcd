use std::hint::black_box;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::{Isa, Kernel, Level, Row, Simd};

impl Level {
    /// Whether this machine takes less time for the instruction that gathers sixteen words than for sixteen loads.
    /// Intel's cores do, Zen 4 does not. It is measured once a process, in less than 1 ms; without AVX-512 it is false.
    /// The loads take their places from memory, where they have been for long, as those of DIR-24-8 do: kernels that
    /// compute places just before may be faster with gathers all the same, and are better timed themselves.
    ///
    /// ```
    /// use fibula_simd::Isa;
    /// assert!(!Isa::Scalar.level().gathers_well());
    /// ```
    pub fn gathers_well(self) -> bool {
        static GAIN: OnceLock<bool> = OnceLock::new();
        self.isa() == Isa::Avx512 && *GAIN.get_or_init(|| gathers_gain(self))
    }
}

/// Rounds of each measurement, of which the best one counts.
const ROUNDS: usize = 9;
/// Words of the table: half of a first-level cache.
const WORDS: usize = 4096;

fn gathers_gain(level: Level) -> bool {
    let mut table = [0; WORDS];
    for (i, word) in (0u32..).zip(&mut table) {
        *word = i.wrapping_mul(0x9e37_79b1) >> 20;
    }
    let mut best = [Duration::MAX; 2];
    for _ in 0..ROUNDS {
        let start = Instant::now();
        black_box(level.run_avx512(Reads::<false>(&table)));
        let middle = Instant::now();
        black_box(level.run_avx512(Reads::<true>(&table)));
        let times = [middle - start, middle.elapsed()];
        best = [best[0].min(times[0]), best[1].min(times[1])];
    }
    best[1] < best[0]
}

/// Reads the words that the table's words name, and adds them up.
struct Reads<'a, const GATHERS: bool>(&'a [u32; WORDS]);

impl<const GATHERS: bool> Kernel for Reads<'_, GATHERS> {
    type Output = [u32; 16];

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> [u32; 16] {
        let table = self.0.as_ptr();
        let mut sum = simd.splat_row(0);
        for places in self.0.as_chunks::<16>().0 {
            let read = if GATHERS {
                // SAFETY: all words are below the number of words.
                unsafe { simd.row(places).gather(table) }
            } else {
                let mut read = [0; 16];
                for (to, place) in read.iter_mut().zip(places) {
                    // SAFETY: as above. The reads are volatile so that the compiler does not gather.
                    *to = unsafe {
                        let place = (&raw const *place).read_volatile();
                        table.add(place as usize).read_volatile()
                    };
                }
                simd.row(&read)
            };
            sum = sum.add(read);
        }
        sum.words()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_read_the_same() {
        let table: [u32; WORDS] = core::array::from_fn(|i| (i as u32).wrapping_mul(77) % 4096);
        let expected = Isa::Scalar.level().run(Reads::<false>(&table));
        for isa in Isa::available() {
            assert_eq!(isa.level().run(Reads::<false>(&table)), expected, "{isa}");
            assert_eq!(isa.level().run(Reads::<true>(&table)), expected, "{isa}");
            assert!(isa == Isa::Avx512 || !isa.level().gathers_well());
        }
    }
}
