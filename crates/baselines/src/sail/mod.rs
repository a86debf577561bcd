//! **sail**: splitting lookup into finding the length and finding the next hop (Yang et al.,
//! *Guarantee IP Lookup Performance with FIB Explosion*, SIGCOMM 2014). IPv4 only.
//!
//! # The two splits
//!
//! *By step.* A lookup first finds the length of the longest match, then its next hop. Lengths need
//! one bit a trie node: the bitmap `B_i` has 2^i bits, one for each node of level i, set where the node
//! holds a route. The next hops lie beside it, in `N_i`. The bits are few enough for the memory on a
//! chip (or a cache); only the one access to `N_i` is slow.
//!
//! *By length.* Nearly all routes are of 24 bits or fewer, and nearly all traffic matches them. Levels 0 to 24 are
//! bitmaps and arrays over all nodes. Longer routes are pushed to level 32, in *chunks*: the 256 addresses of a /24
//! that has some, which `C_24` names.
//!
//! | scheme | registry | levels | purpose |
//! |---|---|---|---|
//! | SAIL_B, [`SailB`] | `sail-b` | 0, 1, .. 24, 32 | the basic scheme: a short route is one bit and one hop |
//! | SAIL_U, [`SailU`] | `sail-u` | 6, 12, 18, 24, 32 | updates: a short route is bits of one 64-bit word |
//! | SAIL_L, [`SailL`] | `sail-l`, `sail-l-wide`, `sail-l-prefetch` | 16, 24, 32 | lookups: the fast one on a CPU |
//! | SAIL_L, [`SailL8`] | `sail-l8` | 16, 24, 32 | the same with next hops of one byte |
//! | SAIL_M, [`SailM`] | `sail-m` | 16, 24, 32 | many tables (VRFs) over one set of bitmaps |
//!
//! [`bitmaps`] draws the first two, [`merged`] SAIL_L, [`multi`] SAIL_M, each with the same example. [`on_chip`] has
//! the paper's model of what each keeps on the chip, and that of its rival PBF. The examples `sail_on_chip` and
//! `sail_many_fibs` print the paper's figures and ours.
//!
//! # Codes
//!
//! Everywhere a stored hop is the hop plus one, and 0 is "no route".

pub mod bitmaps;
mod division;
pub mod merged;
pub mod multi;
pub mod on_chip;
mod painter;
#[cfg(test)]
mod tests;

use fibula_core::{BuildError, Hop};

pub use bitmaps::{SailB, SailU};
pub use merged::{SailL, SailL8};
pub use multi::SailM;
pub use on_chip::OnChip;

/// The hop of a code.
#[inline(always)]
fn hop(code: impl Into<u32>) -> Hop {
    Hop::from_bits(code.into().wrapping_sub(1))
}

/// The code of a hop.
fn code(hop: Hop) -> u32 {
    hop.to_bits().wrapping_add(1)
}

/// An error if more is needed than there is room for.
fn at_most(
    engine: &'static str,
    what: &'static str,
    limit: usize,
    needed: usize,
) -> Result<(), BuildError> {
    if needed <= limit {
        return Ok(());
    }
    Err(BuildError::Limit { engine, what, limit: limit as u64, needed: needed as u64 })
}
