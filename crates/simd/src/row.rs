use std::hint::black_box;

use crate::sealed::Sealed;

/// 32-bit words, sixteen of them or eight, with operations on all of them at once. Only an instruction set
/// ([`Simd`](crate::Simd)) makes them, so a value proves that the machine has the instructions. Masks have a bit for
/// each word, the first one's lowest.
///
/// # Safety
/// Each operation does what is documented: code that gathers relies on it.
pub unsafe trait Row<const N: usize = 16>: Sealed + Copy {
    /// The words.
    fn words(self) -> [u32; N];
    /// These words.
    fn load(self, words: &[u32; N]) -> Self;
    /// These words of 16 bits.
    fn halves(self, words: &[u16; N]) -> Self;
    /// The word in every lane.
    fn splat(self, word: u32) -> Self;
    /// The bits 0 to 31 of the numbers, counted from the top, and the bits 32 to 63.
    fn high_words(self, numbers: &[u128; N]) -> (Self, Self);
    /// Bitwise and.
    fn and(self, other: Self) -> Self;
    /// Bitwise or.
    fn or(self, other: Self) -> Self;
    /// The sums modulo 2^32.
    fn add(self, other: Self) -> Self;
    /// The differences modulo 2^32.
    fn sub(self, other: Self) -> Self;
    /// Each word shifted up by its own number of bits; by 32 and more it is anything.
    fn shl(self, by: Self) -> Self;
    /// Each word shifted down by its own number of bits, below 32.
    fn shr(self, by: Self) -> Self;
    /// The low words of numbers whose high words are `high` and whose low words are these, each number shifted down by
    /// its own number of bits, below 64.
    fn shr_long(self, high: Self, by: Self) -> Self;
    /// This word where it is below the limit, as unsigned numbers are, and the other one elsewhere.
    fn if_below(self, test: Self, limit: Self, other: Self) -> Self;
    /// This word where the test's top bit is set, and the other one elsewhere.
    fn if_top(self, test: Self, other: Self) -> Self;
    /// Which words have their top bit set; a bit for each, the first one's lowest.
    fn top_bits(self) -> u16;
    /// The words that the mask has a bit for, in their order, and zeros behind them.
    #[inline(always)]
    fn pack(self, mask: u16) -> Self {
        let (mut packed, mut len) = ([0; N], 0);
        for (i, word) in self.words().into_iter().enumerate() {
            let bit = mask >> i & 1;
            packed[len % N] |= word & u32::from(bit).wrapping_neg();
            len += usize::from(bit);
        }
        self.load(&packed)
    }
    /// The words of this row that stand at these places, modulo its length.
    fn pick(self, places: Self) -> Self;
    /// How many bits each word has up to its highest one that is set; 0 for 0.
    fn bit_lengths(self) -> Self;
    /// The words of a table at these places.
    ///
    /// # Safety
    /// The places, counted in words from `table`, can be read, and are below 2^31.
    unsafe fn gather(self, table: *const u32) -> Self;
    /// As [`gather`](Row::gather) where the test's top bit is set, and the other words elsewhere.
    ///
    /// # Safety
    /// As there for the places that are taken; and the table's first word can be read.
    unsafe fn gather_if_top(self, test: Self, table: *const u32, other: Self) -> Self;
}

/// The words of a table at these places, as [`Row::gather`] reads them, by a load for each: for machines on which that
/// takes less time.
///
/// # Safety
/// The places, counted in words from `table`, can be read.
#[inline(always)]
pub unsafe fn load_rows<R: Row<L>, const L: usize, const N: usize>(
    places: [R; N],
    table: *const u32,
) -> [R; N] {
    let mut rows = places;
    let mut lists = [[0; L]; N];
    for (list, places) in lists.iter_mut().zip(places) {
        *list = places.words();
    }
    // `black_box` hides the contents of the lists from the compiler. Otherwise it extracts each place from its vector,
    // which takes longer than to store the vector and load the place.
    for (row, list) in rows.iter_mut().zip(black_box(&lists)) {
        let mut read = [0; L];
        for (to, place) in read.iter_mut().zip(list) {
            // SAFETY: a reference can be read, and the caller guarantees that the words can. The reads are volatile so
            // that the compiler does not gather.
            *to =
                unsafe { table.add((&raw const *place).read_volatile() as usize).read_volatile() };
        }
        *row = row.load(&read);
    }
    rows
}

/// Places in a table, counted in bytes, for a row of lookups. They begin at a cache line.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
pub struct RowOffsets(pub [u32; 16]);

/// The words of a table at these places, read by a load for each. The places are loaded two at a time, so that there
/// are half as many loads. They should have lain in memory for some hundred cycles: a load right after the store of a
/// whole row waits for it.
///
/// # Safety
/// The places, counted in bytes from `table`, are multiples of four and can be read.
#[inline(always)]
pub unsafe fn read_row<R: Row>(any: R, table: *const u32, places: &RowOffsets) -> R {
    let pairs = (&raw const places.0).cast::<u64>();
    let mut read = [0; 16];
    for (i, to) in read.as_chunks_mut::<2>().0.iter_mut().enumerate() {
        // SAFETY: sixteen words at the begin of a cache line are eight numbers of 64 bits; the caller guarantees that
        // the words can be read. The reads are volatile so that the compiler neither takes the places out of a vector
        // nor gathers.
        unsafe {
            let pair = pairs.add(i).read_volatile().to_le();
            for (to, place) in to.iter_mut().zip([pair as u32, (pair >> 32) as u32]) {
                *to = table.byte_add(place as usize).read_volatile();
            }
        }
    }
    any.load(&read)
}

/// Words without vectors.
#[derive(Clone, Copy, Debug)]
pub struct ScalarRow<const N: usize = 16>(pub(crate) [u32; N]);

/// An array made place by place. A plain loop: `array::from_fn` and `map` are not always inlined.
#[inline(always)]
pub(crate) fn array<const N: usize>(each: impl Fn(usize) -> u32) -> [u32; N] {
    let mut array = [0; N];
    for (i, word) in array.iter_mut().enumerate() {
        *word = each(i);
    }
    array
}

impl<const N: usize> Sealed for ScalarRow<N> {}

// SAFETY: the operations are as they are described.
unsafe impl<const N: usize> Row<N> for ScalarRow<N> {
    #[inline(always)]
    fn words(self) -> [u32; N] {
        self.0
    }
    #[inline(always)]
    fn load(self, words: &[u32; N]) -> Self {
        Self(*words)
    }
    #[inline(always)]
    fn halves(self, words: &[u16; N]) -> Self {
        Self(array(|i| words[i].into()))
    }
    #[inline(always)]
    fn splat(self, word: u32) -> Self {
        Self([word; N])
    }
    #[inline(always)]
    fn high_words(self, numbers: &[u128; N]) -> (Self, Self) {
        let word = |by: u32| Self(array(|i| (numbers[i] >> by) as u32));
        (word(96), word(64))
    }
    #[inline(always)]
    fn and(self, other: Self) -> Self {
        Self(array(|i| self.0[i] & other.0[i]))
    }
    #[inline(always)]
    fn or(self, other: Self) -> Self {
        Self(array(|i| self.0[i] | other.0[i]))
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self(array(|i| self.0[i].wrapping_add(other.0[i])))
    }
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Self(array(|i| self.0[i].wrapping_sub(other.0[i])))
    }
    #[inline(always)]
    fn shl(self, by: Self) -> Self {
        Self(array(|i| self.0[i].wrapping_shl(by.0[i])))
    }
    #[inline(always)]
    fn shr(self, by: Self) -> Self {
        Self(array(|i| self.0[i].wrapping_shr(by.0[i])))
    }
    #[inline(always)]
    fn shr_long(self, high: Self, by: Self) -> Self {
        let long = |i: usize| u64::from(high.0[i]) << 32 | u64::from(self.0[i]);
        Self(array(|i| long(i).wrapping_shr(by.0[i]) as u32))
    }
    #[inline(always)]
    fn if_below(self, test: Self, limit: Self, other: Self) -> Self {
        // Arithmetic, or the compiler might branch.
        let mask = |i: usize| u32::from(test.0[i] < limit.0[i]).wrapping_neg();
        Self(array(|i| other.0[i] ^ (other.0[i] ^ self.0[i]) & mask(i)))
    }
    #[inline(always)]
    fn if_top(self, test: Self, other: Self) -> Self {
        let mask = |i: usize| (test.0[i] >> 31).wrapping_neg();
        Self(array(|i| other.0[i] ^ (other.0[i] ^ self.0[i]) & mask(i)))
    }
    #[inline(always)]
    fn top_bits(self) -> u16 {
        self.0.iter().enumerate().fold(0, |bits, (i, word)| bits | ((word >> 31) << i) as u16)
    }
    #[inline(always)]
    fn pick(self, places: Self) -> Self {
        Self(array(|i| self.0[places.0[i] as usize % N]))
    }
    #[inline(always)]
    fn bit_lengths(self) -> Self {
        Self(array(|i| 32 - self.0[i].leading_zeros()))
    }
    #[inline(always)]
    unsafe fn gather(self, table: *const u32) -> Self {
        // SAFETY: the caller's. Volatile, or the compiler would make vectors of the loads, and those
        // of smaller ones.
        Self(array(|i| unsafe { table.add(self.0[i] as usize).read_volatile() }))
    }
    #[inline(always)]
    unsafe fn gather_if_top(self, test: Self, table: *const u32, other: Self) -> Self {
        let places = self.if_top(test, Self([0; N]));
        // SAFETY: the caller's; other lanes read the first word.
        unsafe { places.gather(table) }.if_top(test, other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Isa, Kernel, Simd};

    /// Every operation on the words, and on words made of them, in rows and half rows.
    struct All<'a>(&'a [u32; 16], &'a [u32; 16]);

    impl Kernel for All<'_> {
        type Output = (Vec<[u32; 16]>, Vec<[u32; 8]>);
        #[inline(always)]
        fn run<S: Simd>(self, simd: S) -> Self::Output {
            let Self(a, b) = self;
            let half = |words: &[u32; 16]| *words.first_chunk::<8>().expect("sixteen words");
            (all(simd.splat_row(31), a, b), all(simd.splat_half_row(31), &half(a), &half(b)))
        }
    }

    #[inline(always)]
    fn all<R: Row<N>, const N: usize>(
        low_bits: R,
        a_words: &[u32; N],
        b_words: &[u32; N],
    ) -> Vec<[u32; N]> {
        let (a, b) = (low_bits.load(a_words), low_bits.load(b_words));
        let by = b.and(low_bits);
        let numbers: [u128; N] = core::array::from_fn(|i| {
            u128::from(a_words[i]) << 96 | u128::from(b_words[i]) << 64 | u128::from(u64::MAX)
        });
        let (high, low) = a.high_words(&numbers);
        let halves: [u16; N] = core::array::from_fn(|i| b_words[i] as u16);
        let places = a.and(a.splat(N as u32 - 1));
        // SAFETY: places are below the number of words.
        let (read, read_some) = unsafe {
            let words = b_words.as_ptr();
            let some = places.if_top(b, a).gather_if_top(b, words, a);
            (places.gather(words), some)
        };
        // SAFETY: as above.
        let [loaded] = unsafe { load_rows([places], b_words.as_ptr()) };
        vec![
            a.or(b).words(),
            a.add(b).words(),
            a.sub(b).words(),
            a.shl(by).words(),
            a.shr(by).words(),
            a.shr_long(b, b.and(a.splat(63))).words(),
            b.shr_long(a, by).words(),
            a.shr(by).bit_lengths().words(),
            a.if_below(a, b, b).words(),
            a.splat(a.top_bits().into()).words(),
            a.pack(b.top_bits()).words(),
            a.pack(u16::MAX).words(),
            a.pick(b).words(),
            high.words(),
            low.words(),
            read.words(),
            loaded.words(),
            a.halves(&halves).words(),
            read_some.words(),
            a.if_top(b, by).words(),
        ]
    }

    #[test]
    fn every_instruction_set_does_alike() {
        let mut word = 1u32;
        let mut next = || {
            word = word.wrapping_mul(0x9e37_79b1).rotate_left(7) ^ 0x1234_5678;
            // The ends and the middle of the range have their traps.
            [0, u32::MAX, 1 << 31, i32::MAX as u32, word][word as usize % 7 % 5]
        };
        for _ in 0..200 {
            let (a, b) = ([0; 16].map(|_| next()), [0; 16].map(|_| next()));
            let expected = crate::Scalar.run(All(&a, &b));
            for isa in Isa::available() {
                assert_eq!(isa.level().run(All(&a, &b)), expected, "{isa}");
            }
        }
    }

    struct Ranks<'a>(&'a [u16; 16], u32, u32, u16);

    impl Kernel for Ranks<'_> {
        type Output = (u16, u32);
        #[inline(always)]
        fn run<S: Simd>(self, simd: S) -> (u16, u32) {
            let Self(line, first, len, key) = self;
            (simd.below16(line, u32::from(key) * 0x1_0001), simd.rank16(line, first, len, key))
        }
    }

    struct BelowInLine<'a>(&'a [u16; 32], u16);

    impl Kernel for BelowInLine<'_> {
        type Output = u32;
        #[inline(always)]
        fn run<S: Simd>(self, simd: S) -> u32 {
            simd.below16_line(self.0, u32::from(self.1) * 0x1_0001)
        }
    }

    #[test]
    fn every_instruction_set_compares_lines() {
        let line: [u16; 32] = core::array::from_fn(|i| (i as u16).wrapping_mul(0x9e37));
        for key in line.iter().flat_map(|&k| [k.wrapping_sub(1), k, k.wrapping_add(1)]) {
            let below = (0..32).fold(0, |bits, i| bits | u32::from(line[i] < key) << i);
            for isa in Isa::available() {
                assert_eq!(isa.level().run(BelowInLine(&line, key)), below, "{isa} {key:#x}");
            }
        }
    }

    /// Lines, places, and keys: what the rows of places name.
    struct AtPlaces<'a>(&'a [[u16; 16]; 8], &'a RowOffsets, &'a [u16; 16]);

    impl Kernel for AtPlaces<'_> {
        type Output = ([u32; 16], [u16; 16], [u16; 8]);
        #[inline(always)]
        fn run<S: Simd>(self, simd: S) -> Self::Output {
            let Self(lines, places, keys) = self;
            let any = simd.splat_row(0);
            let keys = any.halves(keys);
            let keys = keys.or(keys.shl(any.splat(16)));
            let mut below = [7; 16];
            // SAFETY: the places are those of lines, which begin at words.
            let words = unsafe {
                simd.below16_rows(lines.as_ptr(), places, keys, &mut below);
                read_row(any, lines.as_ptr().cast(), places)
            };
            let [places, keys] = [places.0, keys.words()]
                .map(|words| *words.first_chunk::<8>().expect("sixteen words"));
            let (keys, mut eight) = (simd.splat_half_row(0).load(&keys), [7; 8]);
            // SAFETY: as above.
            unsafe { simd.below16_half_row(lines.as_ptr(), places, keys, &mut eight) };
            (words.words(), below, eight)
        }
    }

    #[test]
    fn every_instruction_set_reads_and_compares_at_places() {
        #[repr(align(4))]
        struct Lines([[u16; 16]; 8]);
        let key = |i: usize| (i as u16).wrapping_mul(0x9e37);
        let lines =
            Lines(core::array::from_fn(|line| core::array::from_fn(|i| key(16 * line + i))));
        for shift in 0..16 {
            let line = |lane: usize| (5 * lane + shift) % 8;
            let places = RowOffsets(core::array::from_fn(|lane| 32 * line(lane) as u32));
            for change in [0, 1, u16::MAX] {
                // Keys beside those of the line, in another order in each round.
                let keys: [u16; 16] = core::array::from_fn(|lane| {
                    lines.0[line(lane)][(lane + shift) % 16].wrapping_add(change)
                });
                let words = core::array::from_fn(|lane| {
                    let [low, high, ..] = lines.0[line(lane)].map(u16::to_ne_bytes);
                    u32::from_ne_bytes([low[0], low[1], high[0], high[1]])
                });
                let below: [u16; 16] = core::array::from_fn(|lane| {
                    let bit = |i: usize| u16::from(lines.0[line(lane)][i] < keys[lane]) << i;
                    (0..16).map(bit).sum()
                });
                for isa in Isa::available() {
                    let got = isa.level().run(AtPlaces(&lines.0, &places, &keys));
                    let eight = *below.first_chunk().expect("sixteen verdicts");
                    assert_eq!(got, (words, below, eight), "{isa} {shift} {change}");
                }
            }
        }
    }

    /// Ranks among some keys, whatever stands around them.
    #[test]
    fn every_instruction_set_ranks_some_keys() {
        for (first, len) in [(0, 1), (0, 15), (0, 16), (1, 15), (7, 8), (7, 9), (15, 1), (14, 0)] {
            for around in [0, 7, 1 << 15, u16::MAX] {
                let mut line = [around; 16];
                for (i, to) in line[first..first + len].iter_mut().enumerate() {
                    *to = 0x107f * i as u16 + 3;
                }
                let keys = line[first..first + len].iter();
                for key in keys.clone().flat_map(|&k| [k.wrapping_sub(1), k, k.wrapping_add(1)]) {
                    let below = (0..16).fold(0, |bits, i| bits | u16::from(line[i] < key) << i);
                    let rank = keys.clone().filter(|&&k| k < key).count() as u32;
                    for isa in Isa::available() {
                        let got = isa.level().run(Ranks(&line, first as u32, len as u32, key));
                        assert_eq!(got, (below, rank), "{isa} {first} {len} {around:#x} {key:#x}");
                    }
                }
            }
        }
    }
}
