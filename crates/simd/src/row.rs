/// Sixteen 32-bit words, an operation on all of them at a time. They are made by an instruction set
/// ([`Simd`](crate::Simd)), so that having some is the proof that the machine has the instructions.
pub trait Row: Copy {
    /// The words.
    fn words(self) -> [u32; 16];
    /// Bitwise and.
    fn and(self, other: Self) -> Self;
    /// Bitwise or.
    fn or(self, other: Self) -> Self;
    /// The sums modulo 2^32.
    fn add(self, other: Self) -> Self;
    /// Each word shifted up by its own number of bits, below 32.
    fn shl(self, by: Self) -> Self;
    /// Each word shifted down by its own number of bits, below 32.
    fn shr(self, by: Self) -> Self;
    /// This word where it is below the limit, as unsigned numbers are, and the other one elsewhere.
    fn if_below(self, test: Self, limit: Self, other: Self) -> Self;
    /// Which words have their top bit set; a bit for each, the first one's lowest.
    fn top_bits(self) -> u16;
    /// The words for which `keep` has a bit, moved together; what follows them is anything.
    fn compress(self, keep: u16) -> Self;
    /// The reverse of [`compress`](Row::compress): the first words go where `keep` has its bits, the
    /// other places have what is in `rest`.
    fn expand(self, keep: u16, rest: Self) -> Self;
    /// The words of a table at these places.
    ///
    /// # Safety
    /// The places, counted in words from `table`, can be read, and are below 2^31.
    unsafe fn gather(self, table: *const u32) -> Self;
    /// The 16-bit numbers of a table at these places.
    ///
    /// # Safety
    /// The places, counted in numbers from `table`, and two bytes behind each can be read, and they
    /// are below 2^31.
    unsafe fn gather16(self, table: *const u16) -> Self;
}

/// Words without vectors.
#[derive(Clone, Copy, Debug)]
pub struct ScalarRow(pub(crate) [u32; 16]);

/// An array made place by place. A plain loop: what arrays have for it is not always inlined.
#[inline(always)]
pub(crate) fn array(each: impl Fn(usize) -> u32) -> [u32; 16] {
    let mut array = [0; 16];
    for (i, word) in array.iter_mut().enumerate() {
        *word = each(i);
    }
    array
}

impl Row for ScalarRow {
    #[inline(always)]
    fn words(self) -> [u32; 16] {
        self.0
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
    fn shl(self, by: Self) -> Self {
        Self(array(|i| self.0[i].wrapping_shl(by.0[i])))
    }
    #[inline(always)]
    fn shr(self, by: Self) -> Self {
        Self(array(|i| self.0[i].wrapping_shr(by.0[i])))
    }
    #[inline(always)]
    fn if_below(self, test: Self, limit: Self, other: Self) -> Self {
        // Arithmetic, or the compiler might branch.
        let mask = |i: usize| u32::from(test.0[i] < limit.0[i]).wrapping_neg();
        Self(array(|i| other.0[i] ^ (other.0[i] ^ self.0[i]) & mask(i)))
    }
    #[inline(always)]
    fn top_bits(self) -> u16 {
        self.0.iter().enumerate().fold(0, |bits, (i, word)| bits | ((word >> 31) << i) as u16)
    }
    #[inline(always)]
    fn compress(self, keep: u16) -> Self {
        let (mut kept, mut at) = ([0; 16], 0);
        for (i, &word) in self.0.iter().enumerate() {
            kept[at & 15] = word;
            at += usize::from(keep >> i & 1);
        }
        Self(kept)
    }
    #[inline(always)]
    fn expand(self, keep: u16, rest: Self) -> Self {
        let (mut row, mut at) = (rest.0, 0);
        for (i, to) in row.iter_mut().enumerate() {
            let mask = u32::from(keep >> i & 1).wrapping_neg();
            *to ^= (*to ^ self.0[at & 15]) & mask;
            at += usize::from(keep >> i & 1);
        }
        Self(row)
    }
    #[inline(always)]
    unsafe fn gather(self, table: *const u32) -> Self {
        // SAFETY: the caller's. Volatile, or the compiler would make vectors of the loads, and those
        // of smaller ones.
        Self(array(|i| unsafe { table.add(self.0[i] as usize).read_volatile() }))
    }
    #[inline(always)]
    unsafe fn gather16(self, table: *const u16) -> Self {
        // SAFETY: the caller's; volatile as above.
        Self(array(|i| unsafe { table.add(self.0[i] as usize).read_volatile() }.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Isa, Kernel, Simd};

    /// Every operation on the words, and on words made of them.
    struct All<'a>(&'a [u32; 16], &'a [u32; 16], u16);

    impl Kernel for All<'_> {
        type Output = Vec<[u32; 16]>;
        #[inline(always)]
        fn run<S: Simd>(self, simd: S) -> Vec<[u32; 16]> {
            let (a, b) = (simd.row(self.0), simd.row(self.1));
            let by = b.and(simd.splat_row(31));
            // What follows the words that were kept may be anything.
            let kept = a.compress(self.2).words();
            let kept = array(|i| if i < self.2.count_ones() as usize { kept[i] } else { 0 });
            let numbers: [u128; 16] = core::array::from_fn(|i| {
                u128::from(self.0[i]) << 96 | u128::from(self.1[i]) << 64 | u128::from(u64::MAX)
            });
            let (high, low) = simd.high_words(&numbers);
            let halves: &[u16; 32] = bytemuck::cast_ref(self.1);
            let places = a.and(simd.splat_row(15));
            // SAFETY: places are below 16, and so many words are there, and more halves.
            let (read, read16) =
                unsafe { (places.gather(self.1.as_ptr()), places.gather16(halves.as_ptr())) };
            vec![
                a.or(b).words(),
                a.add(b).words(),
                a.shl(by).words(),
                a.shr(by).words(),
                a.if_below(a, b, b).words(),
                simd.splat_row(a.top_bits().into()).words(),
                kept,
                a.expand(self.2, b).words(),
                high.words(),
                low.words(),
                read.words(),
                read16.words(),
            ]
        }
    }

    #[test]
    fn every_instruction_set_does_alike() {
        let mut word = 1u32;
        let mut next = || {
            word = word.wrapping_mul(0x9e37_79b1).rotate_left(7) ^ 0x1234_5678;
            // The ends and the middle of the range have their traps.
            [0, u32::MAX, 1 << 31, i32::MAX as u32, word][word as usize % 7 % 5]
        };
        for round in 0..200u16 {
            let (a, b): ([u32; 16], [u32; 16]) =
                (array(|_| 0).map(|_| next()), [0; 16].map(|_| next()));
            let keep =
                [0, u16::MAX, 1, 1 << 15, round.wrapping_mul(0x9e37)][usize::from(round) % 5];
            let expected = crate::Scalar.run(All(&a, &b, keep));
            for isa in Isa::available() {
                assert_eq!(isa.level().run(All(&a, &b, keep)), expected, "{isa} {keep:#x}");
            }
        }
    }

    struct Ranks<'a>(&'a [u32; 16], u32);

    impl Kernel for Ranks<'_> {
        type Output = [[u32; 2]; 3];
        #[inline(always)]
        fn run<S: Simd>(self, simd: S) -> [[u32; 2]; 3] {
            let key = simd.splat32(self.1);
            let last = |row: S::Row| row.words()[15];
            let mut verdicts = [S::Verdict::default(); 16];
            verdicts[15] = simd.below32::<16>(self.0, key);
            let whole = last(simd.ranks::<16>(&verdicts));
            verdicts[15] = simd.below32::<10>(self.0, key);
            let ten = last(simd.ranks::<10>(&verdicts));
            verdicts[15] = simd.below32::<7>(self.0, key);
            let seven = last(simd.ranks::<7>(&verdicts));
            [
                [simd.rank32(self.0, key), whole],
                [simd.rank32_first::<10>(self.0, key), ten],
                [simd.rank32_first::<7>(self.0, key), seven],
            ]
        }
    }

    /// Ranks among the first keys, whatever follows them.
    #[test]
    fn every_instruction_set_ranks_the_first_keys() {
        for keys in [7, 10, 16] {
            for behind in [0, 7, 1 << 31, u32::MAX] {
                let line = array(|i| if i < keys { 0x1010_1010 * i as u32 + 3 } else { behind });
                for key in line.iter().flat_map(|&k| [k.wrapping_sub(1), k, k.wrapping_add(1)]) {
                    let below = line[..keys].iter().filter(|&&k| k < key).count() as u32;
                    for isa in Isa::available() {
                        let ranks = isa.level().run(Ranks(&line, key));
                        let [whole, ten, seven] = ranks;
                        let got = [(7, seven), (10, ten), (16, whole)];
                        let (_, got) =
                            got.into_iter().find(|(n, _)| *n == keys).expect("one of them");
                        assert_eq!(got, [below; 2], "{isa} {keys} {behind:#x} {key:#x}");
                    }
                }
            }
        }
    }
}
