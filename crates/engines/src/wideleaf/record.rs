use bytemuck::{Pod, Zeroable};
use fibula_simd::{Row, Simd};

use super::whole::UnitRows;

/// The part of a cache line in which the keys of a record lie, and which one comparison reads.
pub(super) trait Unit: Pod + UnitRows {
    /// The most keys of a record.
    const KEYS_MAX: usize;

    /// Which keys are below the key; a bit for each, the first one's lowest. The key stands in both halves of the word.
    fn below<S: Simd>(&self, simd: S, key: u32) -> Self::Verdict;

    /// The verdicts as words; `row` is any row.
    fn verdicts<R: Row<N>, const N: usize>(row: R, verdicts: &[Self::Verdict; N]) -> R;

    /// How many of the keys `first..first + len`, which are sorted, are below the key.
    fn rank<S: Simd>(&self, simd: S, first: usize, len: usize, key: u16) -> u32;
}

/// Half a cache line: the amount that the second-level cache of a Zen 4 delivers in a cycle.
pub(super) type Half = [u16; 16];

impl Unit for Half {
    const KEYS_MAX: usize = 16;

    #[inline(always)]
    fn below<S: Simd>(&self, simd: S, key: u32) -> u16 {
        simd.below16(self, key)
    }
    #[inline(always)]
    fn verdicts<R: Row<N>, const N: usize>(row: R, verdicts: &[u16; N]) -> R {
        row.halves(verdicts)
    }
    #[inline(always)]
    fn rank<S: Simd>(&self, simd: S, first: usize, len: usize, key: u16) -> u32 {
        simd.rank16(self, first as u32, len as u32, key)
    }
}

/// A cache line.
pub(super) type Line = [u16; 32];

impl Unit for Line {
    // As many as a word of five bits can count.
    const KEYS_MAX: usize = 31;

    #[inline(always)]
    fn below<S: Simd>(&self, simd: S, key: u32) -> u32 {
        simd.below16_line(self, key)
    }
    #[inline(always)]
    fn verdicts<R: Row<N>, const N: usize>(row: R, verdicts: &[u32; N]) -> R {
        row.load(verdicts)
    }
    #[inline(always)]
    fn rank<S: Simd>(&self, simd: S, first: usize, len: usize, key: u16) -> u32 {
        let below = simd.below16_line(self, u32::from(key) * 0x1_0001);
        (below >> (first & 31) & ((1 << (len & 31)) - 1)).count_ones()
    }
}

/// A form of records: the width of their codes, and their unit.
///
/// A record has its keys, 16 bits each, in ascending order, followed by its codes, one more than keys. The keys
/// lie in one unit; the codes of large records continue in the next one.
pub(super) trait Codes: Send + Sync + Sized + Clone {
    /// The unit of records.
    type Unit: Unit;
    /// The stored form of a code.
    type Code: Pod + Into<u32>;
    /// The largest code.
    const TOP: u32;
    /// The stored table's name.
    const NAME: &'static str;

    fn code(code: u32) -> Self::Code;

    /// The place of the codes of a record that begins at this byte, counted in codes.
    #[inline(always)]
    fn codes_at(byte: usize, keys: usize) -> usize {
        (byte + 2 * keys).div_ceil(size_of::<Self::Code>())
    }

    /// The bytes of a record that begins at a multiple of four.
    fn bytes(keys: usize) -> usize {
        (Self::codes_at(0, keys) + keys + 1) * size_of::<Self::Code>()
    }
}

macro_rules! codes {
    ($name:ident, $unit:ty, $code:ty, $top:expr, $stored:literal) => {
        #[doc = concat!("Codes that are `", stringify!($code), "`, keys in a `", stringify!($unit), "`.")]
        #[derive(Clone, Copy)]
        pub(super) struct $name;

        impl Codes for $name {
            type Unit = $unit;
            type Code = $code;
            const TOP: u32 = $top;
            const NAME: &'static str = $stored;

            fn code(code: u32) -> $code {
                code as $code
            }
        }
    };
}

codes!(Byte, Half, u8, u8::MAX as u32, "records8");
codes!(Narrow, Half, u16, u16::MAX as u32, "records16");
codes!(Wide, Half, u32, super::word::CODE_MAX, "records32");
codes!(ByteLine, Line, u8, u8::MAX as u32, "lines8");
codes!(NarrowLine, Line, u16, u16::MAX as u32, "lines16");
codes!(WideLine, Line, u32, super::word::CODE_MAX, "lines32");

/// Builds the array of records.
pub(super) struct Records<C: Codes> {
    /// The place of the first unit.
    base: usize,
    units: Vec<C::Unit>,
    /// Units by their free space in units of four bytes: smaller records fill the gaps that larger ones leave. A record
    /// larger than half a line begins at a line, so that it occupies as few lines as possible.
    open: [Vec<usize>; 17],
}

impl<C: Codes> Records<C> {
    /// Records to be placed from the unit `base` on.
    pub(super) fn new(base: usize) -> Self {
        Self { base, units: Vec::new(), open: Default::default() }
    }

    /// Writes a record, and returns its first byte, counted from the start of all records.
    pub(super) fn push(&mut self, keys: &[u16], codes: &[u32]) -> usize {
        let unit = size_of::<C::Unit>();
        let bytes = C::bytes(keys.len()).next_multiple_of(4);
        let fit = (bytes / 4..=unit / 4).find_map(|left| Some((left, self.open[left].pop()?)));
        let (start, left) = match fit {
            Some((left, at)) => ((at + 1) * unit - 4 * left, 4 * left - bytes),
            None => {
                if bytes > unit && !((self.base + self.units.len()) * unit).is_multiple_of(LINE) {
                    self.open[unit / 4].push(self.units.len());
                    self.units.push(C::Unit::zeroed());
                }
                let start = self.units.len() * unit;
                let end = start + bytes;
                self.units.resize(end.div_ceil(unit), C::Unit::zeroed());
                (start, self.units.len() * unit - end)
            }
        };
        if left > 0 {
            self.open[left / 4].push((start + bytes) / unit);
        }
        let all: &mut [u16] = bytemuck::cast_slice_mut(&mut self.units);
        all[start / 2..][..keys.len()].copy_from_slice(keys);
        let all: &mut [C::Code] = bytemuck::cast_slice_mut(all);
        for (to, &code) in all[C::codes_at(start, keys.len())..].iter_mut().zip(codes) {
            *to = C::code(code);
        }
        self.base * unit + start
    }

    pub(super) fn units(&self) -> &[C::Unit] {
        &self.units
    }
}

/// Bytes of a cache line.
const LINE: usize = 64;
