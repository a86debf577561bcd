//! Masks, their rows of the map table, and code words.

/// Rows of the map table: masks with two heads or more.
pub(super) const ROWS: usize = 676;
/// Bits of the offset of a code word.
const OFFSET_BITS: u32 = 6;
/// The largest code of a hop that fits a code word.
pub(super) const DIRECT_MOST: u32 =
    ((((1 << (16 - OFFSET_BITS)) - ROWS) << OFFSET_BITS) - 1) as u32;

/// The masks of 2^height slots that aligned leaves can make, slot 0 in the lowest bit, in ascending order.
/// The first is the one with a single head.
pub(super) fn masks(height: u32) -> Vec<u16> {
    let Some(below) = height.checked_sub(1) else { return vec![1] };
    let halves = masks(below);
    let mut masks = vec![1];
    for upper in &halves {
        masks.extend(halves.iter().map(|lower| lower | upper << (1 << below)));
    }
    masks
}

/// For each mask with two heads or more: for each slot, the number of heads before the slot's own head, in 4 bits.
pub(super) fn map() -> Vec<u64> {
    let row = |mask: u16| {
        (0..16).fold(0, |row, slot| {
            let heads = (mask & (u16::MAX >> (15 - slot))).count_ones();
            row | u64::from(heads - 1) << (4 * slot)
        })
    };
    masks(4)[1..].iter().map(|&mask| row(mask)).collect()
}

/// A decoded code word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Code {
    /// The row of the map table, and the number of pointers between the base index and the group.
    Row { row: usize, offset: usize },
    /// The code of the hop of all slots.
    Direct(u32),
}

#[inline(always)]
pub(super) fn read(word: u16) -> Code {
    let (upper, lower) = (usize::from(word >> OFFSET_BITS), word & ((1 << OFFSET_BITS) - 1));
    if upper < ROWS {
        Code::Row { row: upper, offset: lower.into() }
    } else {
        Code::Direct(((upper - ROWS) << OFFSET_BITS) as u32 | u32::from(lower))
    }
}

pub(super) fn row(row: usize, offset: usize) -> u16 {
    debug_assert!(row < ROWS && offset < 1 << OFFSET_BITS);
    (row << OFFSET_BITS | offset) as u16
}

/// A code that is too large is truncated; the build refuses such a table.
pub(super) fn direct(code: u32) -> u16 {
    ((ROWS as u32) << OFFSET_BITS).wrapping_add(code) as u16
}

/// The number of heads before the slot's own head.
#[inline(always)]
pub(super) fn mapped(map: &[u64], row: usize, slot: usize) -> usize {
    (map[row] >> (4 * slot) & 15) as usize
}
