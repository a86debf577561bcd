//! The on-chip memory of each scheme as the paper counts it: the model behind its figures 6 and 7, which the example
//! `sail_on_chip` prints. No engine needs it.

use fibula_core::Routes;

/// Bytes on the chip for a table, or for several that SAIL_M lays over each other.
///
/// ```
/// use fibula_core::{Hop, Routes};
/// use fibula_baselines::sail::OnChip;
///
/// let routes: Routes<u32> = [("10.1.2.0/24".parse()?, Hop::new(0))].into_iter().collect();
/// let on_chip = OnChip::of(&[&routes]);
/// // B_16 and C_16 are always there, and one /16 has longer routes: a chunk of B_24.
/// assert_eq!(on_chip.sail_l, (1 << 16) / 8 + 2 * (1 << 16) + 256 / 8);
/// # Ok::<(), fibula_core::PrefixError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnChip {
    /// SAIL_B: the bitmaps `B_0` to `B_24`, whatever the table.
    pub sail_b: usize,
    /// SAIL_U: the bitmaps `B_6`, `B_12`, `B_18`, `B_24`, whatever the table.
    pub sail_u: usize,
    /// SAIL_L, and SAIL_M for several tables: `B_16`, `C_16` of two bytes, and `B_24` in chunks of 256
    /// bits for the nodes of level 16 that have longer routes.
    pub sail_l: usize,
    /// PBF (Dharmapurikar et al., 2003), by the formula in SAIL's text: see [`PBF_BITS`]. For several
    /// tables the sum, as it shares nothing.
    pub pbf: usize,
}

/// Bits a prefix of PBF's Bloom filters. According to the paper, PBF needs 1.003 off-chip probes a lookup, so its 24
/// filters together err in 0.003 of the lookups and each in 0.003 / 24 = 0.5^k: k = 13 hash functions. A filter at its
/// best has m / n = k / ln 2 bits an element.
pub const PBF_BITS: f64 = 13.0 / core::f64::consts::LN_2;

impl OnChip {
    /// The most that SAIL_L takes: every node of level 16 has longer routes. 2.13 MB, of 2^20 bytes.
    pub const SAIL_L_MOST: usize = Self::sail_l(1 << 16);

    /// For these tables together.
    pub fn of(fibs: &[&Routes<u32>]) -> Self {
        let mut divided = vec![false; 1 << 16];
        for route in fibs.iter().flat_map(|fib| fib.iter()).filter(|r| r.prefix.len() > 16) {
            divided[(route.prefix.addr() >> 16) as usize] = true;
        }
        let chunks = divided.iter().filter(|&&divided| divided).count();
        let prefixes: usize = fibs.iter().map(|fib| fib.len()).sum();
        Self {
            sail_b: (1 << 25) / 8,
            sail_u: ((1 << 6) + (1 << 12) + (1 << 18) + (1 << 24)) / 8,
            sail_l: Self::sail_l(chunks),
            pbf: (PBF_BITS * prefixes as f64 / 8.0) as usize,
        }
    }

    const fn sail_l(chunks: usize) -> usize {
        let (b16, c16) = ((1 << 16) / 8, 2 * (1 << 16));
        b16 + c16 + chunks * 256 / 8
    }
}
