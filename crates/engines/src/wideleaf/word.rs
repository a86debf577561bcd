//! The 32 bits of a root or table entry.
//!
//! ```text
//!   1 │ code 31                       constant: all addresses have this code
//!   0 1 0 │ line 29                   leaf: search this line
//!   0 1 1 │ line 29                   node: search this line, then the rank-th behind it
//!   0 0 │ base 20 │ down 5 │ from 5   table: index (key << from) >> down, from this base on
//! ```

/// The largest code of a constant.
pub(super) const CODE_MAX: u32 = (1 << 31) - 1;
/// Lines that there can be: their numbers of 16 bits are counted in 31 bits.
pub(super) const LINES_MAX: usize = 1 << 26;
/// Bases that an entry can name.
pub(super) const BASES_MAX: usize = 1 << 20;

/// Tables' words are below this, and no others.
pub(super) const TABLES: u32 = 1 << 30;
const CONSTANT: u32 = 1 << 31;
const LINE: u32 = TABLES;
/// What nodes have, and leaves have not.
pub(super) const NODE: u32 = 1 << 29;

/// What an entry says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    Constant(u32),
    Leaf(usize),
    Node(usize),
    /// `base` counts grains; the index has `32 - down` bits of the key from bit `from` on.
    Table {
        base: usize,
        from: u32,
        down: u32,
    },
}

impl Entry {
    pub(super) fn of(word: u32) -> Self {
        let line = (word & (NODE - 1)) as usize;
        if is_constant(word) {
            Self::Constant(word & CODE_MAX)
        } else if is_table(word) {
            Self::Table { base: (word >> 10) as usize, from: word & 31, down: word >> 5 & 31 }
        } else if word & NODE == 0 {
            Self::Leaf(line)
        } else {
            Self::Node(line)
        }
    }

    pub(super) fn word(self) -> u32 {
        match self {
            Self::Constant(code) => CONSTANT | code,
            Self::Leaf(line) => LINE | line as u32,
            Self::Node(line) => LINE | NODE | line as u32,
            Self::Table { base, from, down } => (base as u32) << 10 | down << 5 | from,
        }
    }
}

#[inline(always)]
pub(super) fn is_constant(word: u32) -> bool {
    word & CONSTANT != 0
}

#[inline(always)]
pub(super) fn is_table(word: u32) -> bool {
    word < TABLES
}

/// Where the key's entry stands in the table of this entry, for grains of 2^`grain` words.
#[inline(always)]
pub(super) fn next(word: u32, key: u32, grain: u32) -> u32 {
    ((word >> 10) << grain).wrapping_add((key << (word & 31)) >> (word >> 5 & 31))
}
