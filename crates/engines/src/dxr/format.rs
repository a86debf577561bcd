//! How the entries of the tables lie in their bits.

use fibula_core::Hop;

/// Bits of the position field of a lookup-table entry.
pub(super) const POSITION_BITS: u32 = 19;
/// Bits of its size field.
pub(super) const SIZE_BITS: u32 = 12;
/// Chunks are padded to multiples of 2^grain words at most: the paper names 2, 4 and 8.
pub(super) const GRAIN_MAX: u32 = 3;

/// Hops are stored as their index plus one, so that 0 means [`Hop::NONE`], rather than a value that depends on the
/// width of the field.
#[inline]
pub(super) fn code(hop: Hop) -> u32 {
    hop.to_bits().wrapping_add(1)
}

/// The reverse of [`code`].
#[inline]
pub(super) fn hop(code: u32) -> Hop {
    Hop::from_bits(code.wrapping_sub(1))
}

/// An entry of the lookup table: 1 bit of format, 12 bits of size, 19 bits of position.
///
/// Size 0 marks a chunk of one range, with the code of its hop in place of the position. Its format
/// bit is clear, so direct entries are those below 2^19.
#[derive(Clone, Copy)]
pub(super) struct Entry(pub(super) u32);

impl Entry {
    pub(super) const LONG: u32 = 1 << 31;
    pub(super) const DIRECT_END: u32 = 1 << POSITION_BITS;

    pub(super) fn new(long: bool, size: u32, position: u32) -> Self {
        debug_assert!(size < 1 << SIZE_BITS && position < 1 << POSITION_BITS);
        Self(u32::from(long) << 31 | size << POSITION_BITS | position)
    }

    #[inline]
    pub(super) fn direct(self) -> Option<Hop> {
        (self.0 < Self::DIRECT_END).then(|| hop(self.0))
    }

    #[inline]
    pub(super) fn is_long(self) -> bool {
        self.0 & Self::LONG != 0
    }

    /// Size of the chunk in units of 2^grain entries.
    #[inline]
    pub(super) fn size(self) -> u32 {
        self.0 >> POSITION_BITS & ((1 << SIZE_BITS) - 1)
    }

    /// Position of the chunk in units of 2^grain words.
    #[inline]
    pub(super) fn position(self) -> u32 {
        self.0 & (Self::DIRECT_END - 1)
    }
}

/// A chunk of the range table: where it is and how to read it. Both formats search alike: an entry
/// holds the start of its range above the code of its hop, so that entries compare as integers with
/// a key whose hop bits are all set.
#[derive(Clone, Copy, Default)]
pub(super) struct Chunk {
    /// The first word.
    pub(super) word: usize,
    /// Number of entries.
    pub(super) size: usize,
    pub(super) long: bool,
}

impl Chunk {
    #[inline]
    pub(super) fn new(entry: Entry, grain: u32) -> Self {
        Self {
            word: (entry.position() as usize) << grain,
            size: (entry.size() as usize) << grain,
            long: entry.is_long(),
        }
    }

    /// Words that `size` entries take.
    pub(super) fn words(size: usize, long: bool) -> usize {
        if long { size } else { size.div_ceil(2) }
    }

    /// Entry `i` of the chunk. Two short entries share a word, the first in its low half.
    #[inline]
    pub(super) fn entry(self, ranges: &[u32], i: usize) -> u32 {
        if self.long {
            ranges[self.word + i]
        } else {
            ranges[self.word + i / 2] >> (16 * (i & 1)) & 0xffff
        }
    }

    /// The value that entries are compared with, for an address whose bits after the first k are `local`.
    #[inline]
    pub(super) fn key(self, local: u32) -> u32 {
        if self.long { local << 16 | 0xffff } else { local | 0xff }
    }

    /// Where the range of an entry starts, within the chunk.
    pub(super) fn start(self, entry: u32) -> u32 {
        if self.long { entry >> 16 } else { entry & 0xff00 }
    }

    /// The code of its hop.
    #[inline]
    pub(super) fn code(self, entry: u32) -> u32 {
        if self.long { entry & 0xffff } else { entry & 0xff }
    }
}

/// Largest code that a short entry holds.
pub(super) const SHORT_CODE_MAX: u32 = 0xff;
/// Largest code that a long entry holds.
pub(super) const LONG_CODE_MAX: u32 = 0xffff;

/// An entry of the wide lookup table, 64 bits: the size above, the position (or, where the size is
/// 0, the code of the hop) below, in single ranges.
#[derive(Clone, Copy)]
pub(super) struct WideEntry(pub(super) u64);

impl WideEntry {
    pub(super) fn new(size: u32, position: u32) -> Self {
        Self(u64::from(size) << 32 | u64::from(position))
    }

    #[inline]
    pub(super) fn direct(self) -> Option<Hop> {
        (self.size() == 0).then(|| hop(self.position()))
    }

    #[inline]
    pub(super) fn size(self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[inline]
    pub(super) fn position(self) -> u32 {
        self.0 as u32
    }
}
