//! The format of the entries of both tables.

use bytemuck::Pod;
use fibula_core::Hop;

/// An entry, 16 or 32 bits wide. The top bit is set in entries of `tbl24` that name a chunk; the
/// other bits are the chunk's number, or the code of a hop.
pub(super) trait Entry: Pod + Into<u32> + Send + Sync {
    /// The engine's name, for errors.
    const ENGINE: &'static str;
    /// The names under which the tables are stored.
    const TBL24: &'static str;
    const TBL_LONG: &'static str;
    /// The bit of entries that name a chunk.
    const CHUNK: u32;
    /// The largest chunk number, and the largest code.
    const MAX: u32 = Self::CHUNK - 1;

    /// The entry of these bits, of which those that exceed the width are clear.
    fn new(bits: u32) -> Self;
}

impl Entry for u16 {
    const ENGINE: &'static str = "dir24-8";
    const TBL24: &'static str = "tbl24";
    const TBL_LONG: &'static str = "tbllong";
    const CHUNK: u32 = 1 << 15;

    #[inline(always)]
    fn new(bits: u32) -> Self {
        bits as Self
    }
}

impl Entry for u32 {
    const ENGINE: &'static str = "dir24-8-wide";
    const TBL24: &'static str = "tbl24-wide";
    const TBL_LONG: &'static str = "tbllong-wide";
    const CHUNK: Self = 1 << 31;

    #[inline(always)]
    fn new(bits: u32) -> Self {
        bits
    }
}

/// A hop as the tables store it: 0 is none, *h* + 1 is hop *h*.
pub(super) fn code(hop: Hop) -> u32 {
    hop.to_bits().wrapping_add(1)
}
