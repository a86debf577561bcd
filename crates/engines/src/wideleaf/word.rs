//! The 32 bits of a root or table entry.
//!
//! ```text
//!   1 │ bits 4 │ base 27         table: index by so many bits of the key, or 16 for 0, from this word on
//!   0 1 │ place 25 │ keys 5      record: at this multiple of four bytes, with so many keys
//!   0 0 │ code 30                constant: all addresses have this code
//! ```
//!
//! A table's number of bits is stored as 32 minus the number; the top bit of that also marks the word as a table.

/// The largest code of a constant.
pub(super) const CODE_MAX: u32 = RECORD - 1;
/// Words that tables can name.
pub(super) const WORDS_MAX: usize = 1 << 27;
/// Bytes that records can take.
pub(super) const BYTES_MAX: usize = 1 << 27;
/// The most bits that a table resolves.
pub(super) const BITS_MAX: u32 = 16;

/// The record without keys at place 0; words below this are constants.
pub(super) const RECORD: u32 = 1 << 30;
const TABLE: u32 = 1 << 31;
/// The number of bits of a table's base; the number of the table's bits is stored above it.
pub(super) const BITS_AT: u32 = 27;
/// The mask of a table's base in its word.
pub(super) const BASE: u32 = (1 << BITS_AT) - 1;
/// The mask of a record's byte in its word shifted right by three.
pub(super) const BYTE: u32 = BYTES_MAX as u32 - 4;

/// A decoded entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    Constant(u32),
    Record { byte: usize, keys: usize },
    Table { base: usize, bits: u32 },
}

impl Entry {
    #[inline(always)]
    pub(super) fn of(word: u32) -> Self {
        if word & TABLE != 0 {
            Self::Table { base: (word & BASE) as usize, bits: 32 - (word >> BITS_AT) }
        } else if word & RECORD != 0 {
            Self::Record { byte: (word >> 3 & BYTE) as usize, keys: (word & 31) as usize }
        } else {
            Self::Constant(word)
        }
    }

    pub(super) fn word(self) -> u32 {
        match self {
            Self::Constant(code) => code,
            Self::Record { byte, keys } => RECORD | (byte as u32) << 3 | keys as u32,
            Self::Table { base, bits } => (32 - bits) << BITS_AT | base as u32,
        }
    }
}
