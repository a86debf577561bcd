use bytemuck::Pod;
use fibula_simd::Simd;

use super::word::LOW;

/// Prefixes in the words at its front, their codes packed in the words at its end; see the [module](super).
pub(super) type Line = [u64; 8];

/// Bits at the top of an address that a line's prefixes do not contain.
pub(super) const TOP_BITS: u8 = 6;

/// A prefix of at most 64 bits and its code.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    /// The upper half of the prefix's first address.
    pub(super) key: u64,
    pub(super) len: u8,
    pub(super) code: u32,
}

impl Item {
    /// Whether it contains the other prefix, which may be the same one.
    pub(super) fn covers(&self, other: &Self) -> bool {
        let first_of = |key: u64| key.checked_shr(64 - u32::from(self.len)).unwrap_or(0);
        self.len <= other.len && first_of(self.key) == first_of(other.key)
    }

    pub(super) fn is_prefix(&self, other: &Self) -> bool {
        (self.key, self.len) == (other.key, other.len)
    }

    /// Its replacement in lines of addresses that begin with the same bits as `key`, which it covers. Lines contain no
    /// prefixes as short as [`TOP_BITS`]. All addresses under the replacement have the same answer.
    pub(super) fn above(&self, key: u64) -> Self {
        let len = self.len.max(TOP_BITS + 1);
        Self { key: key >> (64 - len) << (64 - len), len, code: self.code }
    }

    /// Whether addresses that have the bits of `key` where `seen` is set may be among its own.
    pub(super) fn meets(&self, key: u64, seen: u64) -> bool {
        may_cover(self.word(), key, seen)
    }

    /// Its word in a line: the bits after the top ones, and in the low bits how many bits from the right do not belong
    /// to it.
    fn word(&self) -> u64 {
        debug_assert!(self.len > TOP_BITS, "a shift has six bits");
        self.key << TOP_BITS | u64::from(64 + TOP_BITS - self.len)
    }
}

/// Whether the prefix with this word of a line may cover an address that has the bits of `key` where `seen` is set.
pub(super) fn may_cover(word: u64, key: u64, seen: u64) -> bool {
    (key << TOP_BITS ^ word) & seen << TOP_BITS & u64::MAX << (word & 63) == 0
}

/// The width of the codes in lines.
pub(super) trait Code: Pod + Into<u32> + Send + Sync {
    /// The name of the stored lines.
    const NAME: &'static str;
    /// The most prefixes of a line. Their codes and one more fit behind them.
    const ITEMS: usize;
    /// The largest number in a code.
    const TOP: u32;
    /// The largest code of a table. Words have less than 32 bits for it.
    const TOP_CODE: u32 = if Self::TOP < LOW { Self::TOP } else { LOW - 1 };

    /// The low bits of a code.
    fn of(code: u32) -> Self;

    /// The line of these prefixes, the longest first: one to `ITEMS`. `rest` is the code of addresses that none of them
    /// covers.
    fn line(items: &[Item], rest: u32) -> Line {
        let mut line = [0; 8];
        // Free places repeat the last prefix, which is found before them.
        let last = items.len() - 1;
        for (at, word) in line[..Self::ITEMS].iter_mut().enumerate() {
            *word = items[at.min(last)].word();
        }
        let codes: &mut [Self] = bytemuck::cast_slice_mut(&mut line[Self::ITEMS..]);
        for (at, code) in codes[..Self::ITEMS].iter_mut().enumerate() {
            *code = Self::of(items[at.min(last)].code);
        }
        codes[Self::ITEMS] = Self::of(rest);
        line
    }

    /// The prefixes of a line for addresses that begin with the same bits as `key`.
    fn items(line: &Line, key: u64) -> Vec<Item> {
        let top = key >> (64 - TOP_BITS) << (64 - TOP_BITS);
        let mut items: Vec<Item> = Vec::with_capacity(Self::ITEMS);
        for (&word, &code) in line[..Self::ITEMS].iter().zip(Self::codes(line)) {
            let len = 64 + TOP_BITS - (word & 63) as u8;
            // Only a damaged file has one.
            if len > 64 {
                continue;
            }
            let key = top | word >> TOP_BITS >> (64 - len) << (64 - len);
            let item = Item { key, len, code: code.into() };
            // A prefix equal to the one before it is a free place.
            if items.last().is_none_or(|last| !last.is_prefix(&item)) {
                items.push(item);
            }
        }
        items
    }

    /// The codes of a line, that of the longest prefix first.
    #[inline(always)]
    fn codes(line: &Line) -> &[Self] {
        bytemuck::cast_slice(&line[Self::ITEMS..])
    }

    /// The place of the code for an address with this key, `ITEMS` if no prefix covers it. The key is the upper half of
    /// the address without its top bits, shifted up.
    #[inline(always)]
    fn find<S: Simd>(simd: S, line: &Line, key: u64) -> usize {
        // The words with codes may seem to cover the key, too, but they come after the bit that is added.
        (simd.covering64(line, key) | 1 << Self::ITEMS).trailing_zeros() as usize
    }
}

macro_rules! code {
    ($t:ty, $name:literal, $items:literal) => {
        impl Code for $t {
            const NAME: &'static str = $name;
            const ITEMS: usize = $items;
            const TOP: u32 = <$t>::MAX as u32;

            fn of(code: u32) -> Self {
                code as $t
            }
        }

        const _: () = assert!(8 * $items + size_of::<$t>() * ($items + 1) <= size_of::<Line>());
    };
}

code!(u8, "lines8", 7);
code!(u16, "lines16", 6);
code!(u32, "lines32", 5);
