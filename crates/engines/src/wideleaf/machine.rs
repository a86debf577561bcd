use std::fmt;

use fibula_core::Hop;
use fibula_simd::{Isa, Level};

use super::batch::Batch;
use super::lookup::Few;
use super::record::Codes;
use super::{Tables, Variant};

// The two choices of a `Variant` and their reasons (the numbers are in docs/engines/wideleaf-notes.md):
//
// - The instruction that gathers sixteen words takes an Intel core (family 6) less time than sixteen loads, a Zen 4
//   more. AVX2's gathers, of eight words, do not gain anywhere.
// - Whole lines make tables a quarter smaller, and are as fast as half lines where words are gathered. Where they are
//   loaded, batches of 64 and more compare two half lines at once.

impl Variant {
    /// The variant that tables have on this machine unless [`Config::variant`](super::Config::variant) sets another.
    /// With AVX-512, the time of gathers is measured, once a process, in less than 1 ms.
    ///
    /// ```
    /// use fibula_engines::wideleaf::Variant;
    /// use fibula_simd::Isa;
    ///
    /// let variant = Variant::here(Isa::Scalar);
    /// assert_eq!(variant.to_string(), "records in half lines, words loaded");
    /// ```
    pub fn here(isa: Isa) -> Self {
        let level = isa.level();
        let gathers = level.gathers_well();
        Self { lines: gathers, gathers }
    }

    /// Whether batches gather words. The first batch calls this, so a program that looks up single addresses starts
    /// without the measurement.
    #[inline]
    pub(super) fn gathers(level: Level, variant: Option<Self>) -> bool {
        level.isa() == Isa::Avx512
            && variant.map_or_else(|| level.gathers_well(), |variant| variant.gathers)
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let records = if self.lines { "whole" } else { "half" };
        let words = if self.gathers { "gathered" } else { "loaded" };
        write!(f, "records in {records} lines, words {words}")
    }
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
