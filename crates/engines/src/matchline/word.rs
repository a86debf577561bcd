/// The top bit of a word that names a table.
const TABLE: u32 = 1 << 31;
/// The bit below it, of a word that names a line.
pub(super) const LINE: u32 = 1 << 30;
/// The largest number of a line, and the largest code.
pub(super) const LOW: u32 = LINE - 1;
/// Where a table's shift begins.
pub(super) const SHIFT_AT: u32 = 25;
/// Where a table's width begins, in steps of [`WIDTH_STEP`].
pub(super) const WIDTH_AT: u32 = 22;
/// The base of a table, counted in tables of the least width.
pub(super) const BASE: u32 = (1 << WIDTH_AT) - 1;
/// Widths are multiples of this, and the first one is it.
pub(super) const WIDTH_STEP: u32 = 2;
/// The most address bits that index a table.
pub(super) const WIDTH_MAX: u32 = WIDTH_STEP << 3;
/// Words in tables can begin below this place.
pub(super) const WORDS_MAX: usize = (1 << WIDTH_AT) << WIDTH_STEP;

/// The meaning of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// So many bits of the upper half of the address, from bit `shift` on, index the table that begins with word
    /// `base`.
    Table { base: usize, bits: u32, shift: u32 },
    /// The answer is in the line of this number.
    Line(usize),
    /// All addresses have this code.
    Code(u32),
}

impl Entry {
    #[inline(always)]
    pub(super) fn of(word: u32) -> Self {
        if word & TABLE != 0 {
            Self::Table {
                base: ((word & BASE) << WIDTH_STEP) as usize,
                bits: WIDTH_STEP * ((word >> WIDTH_AT & 7) + 1),
                shift: word >> SHIFT_AT & 63,
            }
        } else if word & LINE != 0 {
            Self::Line((word & LOW) as usize)
        } else {
            Self::Code(word)
        }
    }

    pub(super) fn word(self) -> u32 {
        match self {
            Self::Table { base, bits, shift } => {
                let width = bits / WIDTH_STEP - 1;
                TABLE | shift << SHIFT_AT | width << WIDTH_AT | (base >> WIDTH_STEP) as u32
            }
            Self::Line(number) => LINE | number as u32,
            Self::Code(code) => code,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_keep_their_contents() {
        let tables = [(0, 2, 0), (WORDS_MAX - 4, WIDTH_MAX, 63), (4, 10, 6)]
            .map(|(base, bits, shift)| Entry::Table { base, bits, shift });
        let others = [Entry::Line(0), Entry::Line(LOW as usize), Entry::Code(0), Entry::Code(LOW)];
        for entry in tables.into_iter().chain(others) {
            assert_eq!(Entry::of(entry.word()), entry);
        }
    }
}
