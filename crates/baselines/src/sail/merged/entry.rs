use bytemuck::Pod;
use fibula_core::Hop;

use crate::sail::hop;

mod sealed {
    pub trait Sealed {}
    impl Sealed for u16 {}
    impl Sealed for u32 {}
}

/// An entry of a merged array: the code of a hop, or a chunk of the next array. The chunks take the largest values, as
/// many as needed; the values below are codes.
pub trait Entry: sealed::Sealed + Pod + Into<u32> + Send + Sync {
    /// The engine's name.
    const NAME: &'static str;
    /// The largest value, that of the last chunk.
    const MAX: u32;
    /// The most chunks of a level. In 32 bits there is room for more, but not in memory.
    const CHUNKS: usize;

    /// The entry with these low bits.
    #[doc(hidden)]
    fn cut(bits: u32) -> Self;

    /// The entry of a code.
    fn of_code(code: u32) -> Self {
        Self::cut(code)
    }

    /// The entry of a chunk, one of so many.
    fn of_chunk(chunk: usize, chunks: usize) -> Self {
        Self::cut(Self::MAX - (chunks - 1 - chunk) as u32)
    }

    /// The place in the next array, which has so many chunks; beyond its end for a code.
    #[inline(always)]
    fn chunk(self, chunks: usize) -> usize {
        let first = Self::MAX.wrapping_add(1).wrapping_sub(chunks as u32);
        self.into().wrapping_sub(first) as usize
    }

    /// The hop, if it is not a chunk.
    #[inline(always)]
    fn hop(self) -> Hop {
        hop(self)
    }
}

impl Entry for u16 {
    const NAME: &'static str = "sail-l";
    const MAX: u32 = u16::MAX as u32;
    const CHUNKS: usize = 1 << 16;

    fn cut(bits: u32) -> Self {
        bits as Self
    }
}

impl Entry for u32 {
    const NAME: &'static str = "sail-l-wide";
    const MAX: u32 = u32::MAX;
    const CHUNKS: usize = 1 << 22;

    fn cut(bits: u32) -> Self {
        bits
    }
}
