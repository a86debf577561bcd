//! Which variant is the fastest on this machine.

use std::fmt;
use std::hint::black_box;
use std::sync::OnceLock;
use std::time::Duration;

use fibula_core::Hop;
use fibula_simd::{Isa, Level, Table};

use super::batch::Batch;
use super::lookup::Few;
use super::record::{Codes, Narrow, NarrowLine};
use super::word::Entry;
use super::{ROOT_BITS, Tables, Variant};
use crate::common::{best_times, first_of_the_best};

// The choices of a `Variant` (the numbers are in docs/adr/0024-choice.md): batches with each variant worth having are
// timed on a table that is made for it.
//
// - Whether loads or gathers of words take less time depends on what is around them: by a study on a Zen 5, gathers are
//   faster where places are loaded right after their store, and slower where they are not. So the batch is timed, not
//   the instruction.
// - Once a process, not for each table: the unit of records has to be known before a build, a table that is loaded
//   comes without routes to take addresses from, and all generations of a table that changes are equally fast.
// - Not measured: AVX2, whose gathers do not gain anywhere, NEON, and plain code.

/// The variants worth having. The first one is taken unless the other one is clearly faster.
const VARIANTS: [Variant; 2] = [
    // Zen 4, Zen 5: two half lines are compared at once.
    Variant { lines: false, gathers: false },
    // Intel: tables are a quarter smaller.
    Variant { lines: true, gathers: true },
];
/// The other variant has to take less time by this part.
const MARGIN: u32 = 32;

impl Variant {
    /// The variant that tables have on this machine unless [`Config::variant`](super::Config::variant) sets another.
    /// With AVX-512, batches of each are timed, once a process, in 2 ms. Another process may choose another one;
    /// answers do not depend on it.
    ///
    /// ```
    /// use fibula_engines::wideleaf::Variant;
    /// use fibula_simd::Isa;
    ///
    /// let variant = Variant::here(Isa::Scalar);
    /// assert_eq!(variant.to_string(), "records in half lines, words loaded");
    /// ```
    pub fn here(isa: Isa) -> Self {
        Self::at(isa.level())
    }

    fn at(level: Level) -> Self {
        static HERE: OnceLock<Variant> = OnceLock::new();
        if level.isa() != Isa::Avx512 || cfg!(miri) {
            return VARIANTS[0];
        }
        *HERE.get_or_init(|| Self::fastest(times(level)))
    }

    /// The variant to take if batches with [`VARIANTS`] need these times.
    fn fastest(times: [Duration; VARIANTS.len()]) -> Self {
        VARIANTS[first_of_the_best(times, MARGIN)]
    }

    /// Whether batches gather words. The first batch calls this, so a program that looks up single addresses starts
    /// without the measurement.
    #[inline]
    pub(super) fn gathers(level: Level, variant: Option<Self>) -> bool {
        level.isa() == Isa::Avx512 && variant.unwrap_or_else(|| Self::at(level)).gathers
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let records = if self.lines { "whole" } else { "half" };
        let words = if self.gathers { "gathered" } else { "loaded" };
        write!(f, "records in {records} lines, words {words}")
    }
}

/// Addresses that are looked up.
const ADDRS: usize = 2048;
const BATCH: usize = 256;
/// Rounds, of which the best one counts.
const ROUNDS: usize = 7;

/// The times of batches with each variant.
fn times(level: Level) -> [Duration; VARIANTS.len()] {
    let (words, records) = (words(), records());
    let half = sample::<Narrow>(&words, &records);
    let line = sample::<NarrowLine>(&words, &records);
    let addrs: Vec<u128> = (0..ADDRS as u64).map(addr).collect();
    let mut hops = [Hop::NONE; BATCH];
    best_times(ROUNDS, |variant| {
        let Variant { lines, gathers } = VARIANTS[variant];
        for addrs in addrs.chunks(BATCH) {
            if lines {
                line.look_up(level, gathers, addrs, &mut hops);
            } else {
                half.look_up(level, gathers, addrs, &mut hops);
            }
            black_box(&hops);
        }
    })
}

// The sample is a table of 1 MiB, about as much as addresses of a table of 200,000 routes read. Each root entry has a
// table; three quarters of its words name records, the others a table of records. No routes are compiled, which would
// take ten times as long.

/// Tables below the root, and those below them; a power of two, as of records.
const TABLES: [usize; 2] = [4096, 2048];
/// Bits of each of the two.
const BITS: [u32; 2] = [4, 3];
/// Records, and the keys and bytes of each.
const RECORDS: usize = 16 << 10;
const KEYS: usize = 7;
const BYTES: usize = 32;
/// The bytes before the first record: the first unit has none, however large it is.
const FIRST: usize = 64;

/// Bits that differ for each `i`.
fn mixed(i: u64) -> usize {
    (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) as usize
}

fn addr(i: u64) -> u128 {
    u128::from(i.wrapping_mul(0x9e37_79b9_7f4a_7c15)) << 64
}

/// The root, and the tables.
fn words() -> Vec<u32> {
    let root = 1 << ROOT_BITS;
    let second = root + (TABLES[0] << BITS[0]);
    let table = |from: usize, at: usize, i: usize| {
        let base = from + ((mixed(i as u64) & (TABLES[at] - 1)) << BITS[at]);
        Entry::Table { base, bits: BITS[at] }.word()
    };
    let record = |i: usize| {
        let byte = FIRST + BYTES * (mixed(i as u64) & (RECORDS - 1));
        Entry::Record { byte, keys: KEYS }.word()
    };
    let word = |i: usize| match i {
        _ if i < root => table(root, 0, i),
        _ if i < second && i.is_multiple_of(4) => table(second, 1, i),
        _ => record(i),
    };
    (0..second + (TABLES[1] << BITS[1])).map(word).collect()
}

/// The records' keys and codes.
fn records() -> Vec<u16> {
    let mut values = vec![0; (FIRST + BYTES * RECORDS) / 2];
    for record in values[FIRST / 2..].as_chunks_mut::<{ BYTES / 2 }>().0 {
        for (i, key) in (1..).zip(&mut record[..KEYS]) {
            *key = i << 13;
        }
        record[KEYS..].fill(1);
    }
    values
}

/// The table that these are in records of either unit.
fn sample<C: Codes<Code = u16>>(words: &[u32], records: &[u16]) -> Tables<C> {
    let units = Table::with(2 * records.len() / size_of::<C::Unit>(), |units: &mut [C::Unit]| {
        bytemuck::cast_slice_mut(units).copy_from_slice(records);
    });
    Tables::new(Table::from_slice(words), units, Table::from_vec(Vec::new()))
}

/// Fewer addresses are looked up one after the other: rows would be mostly empty.
const ALONE: usize = 6;

impl<C: Codes> Tables<C> {
    /// Looks up a batch.
    pub(super) fn look_up(&self, level: Level, gathers: bool, addrs: &[u128], hops: &mut [Hop]) {
        if addrs.len() < ALONE {
            return level.run(Few { tables: self, addrs, hops });
        }
        if gathers {
            let batch = Batch::<_, true> { tables: self, addrs, hops: &mut *hops };
            if level.run_avx512(batch).is_some() {
                return;
            }
        }
        level.run(Batch::<_, false> { tables: self, addrs, hops });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_variant_has_to_be_clearly_faster() {
        let fastest = |times: [u64; 2]| Variant::fastest(times.map(Duration::from_nanos));
        assert_eq!(fastest([6000, 6000]), VARIANTS[0]);
        assert_eq!(fastest([6100, 6000]), VARIANTS[0]);
        assert_eq!(fastest([6200, 6000]), VARIANTS[1]);
    }

    /// All variants give each address of the measurement the same hop, so it is their work that is timed.
    #[test]
    fn the_sample_has_an_answer_for_each_address() {
        let (words, records) = (words(), records());
        let half = sample::<Narrow>(&words, &records);
        let line = sample::<NarrowLine>(&words, &records);
        let addrs: Vec<u128> = (0..600).map(addr).collect();
        for isa in Isa::available() {
            for gathers in [false, true] {
                let mut hops = [[Hop::NONE; 600]; 2];
                half.look_up(isa.level(), gathers, &addrs, &mut hops[0]);
                line.look_up(isa.level(), gathers, &addrs, &mut hops[1]);
                assert_eq!(hops, [[Hop::new(0); 600]; 2], "{isa}, gathers: {gathers}");
            }
        }
    }

    #[test]
    fn it_is_measured_once() {
        for isa in Isa::available() {
            let variant = Variant::here(isa);
            assert_eq!(Variant::here(isa), variant);
            assert!(isa == Isa::Avx512 || variant == VARIANTS[0], "{isa}");
            assert_eq!(Variant::gathers(isa.level(), None), variant.gathers);
            let gathers = Some(Variant { lines: false, gathers: true });
            assert_eq!(Variant::gathers(isa.level(), gathers), isa == Isa::Avx512);
        }
    }
}
