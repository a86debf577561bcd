use std::fmt;

#[cfg(target_arch = "aarch64")]
use crate::Neon;
use crate::crc::crc32c;
use crate::sealed::Sealed;
#[cfg(target_arch = "x86_64")]
use crate::{Avx2, Avx512};
use crate::{Isa, Lanes, One, Row, RowOffsets, ScalarRow, Word};

/// The vector operations for kernels. A value of an implementing type proves that the machine has the instructions.
///
/// # Safety
/// A value can only be made if the machine has the instructions of [`Simd::ISA`], and each operation does exactly what
/// is documented: kernels index tables by ranks and masks without bounds checks.
pub unsafe trait Simd: Sealed + Copy + Send + Sync + 'static {
    /// A 64-bit key in every lane.
    type Splat64: Copy;
    /// A 32-bit key in every lane.
    type Splat32: Copy;

    /// Sixteen words, made by this value alone.
    type Row: Row;
    /// Eight words, made by this value alone.
    type HalfRow: Row<8>;
    /// A register of words, made by this value alone.
    type Lanes<T: Word>: Lanes<Word = T, Simd = Self>;

    /// The instruction set.
    const ISA: Isa;
    /// Whether these are plain integer instructions. Branches on this constant are resolved at compile time.
    const IS_SCALAR: bool = matches!(Self::ISA, Isa::Scalar);
    /// Whether a [`Row`] is one vector, which a single instruction gathers.
    const ROWS_WHOLE: bool;

    /// Puts the key in every lane.
    fn splat64(self, key: u64) -> Self::Splat64;
    /// Puts the key in every lane.
    fn splat32(self, key: u32) -> Self::Splat32;

    /// How many of the line's keys, which are sorted, are below the splat key. Branch-free.
    fn rank64(self, line: &[u64; 8], key: Self::Splat64) -> u32;
    /// How many of the line's keys, which are sorted, are below the splat key. Branch-free.
    fn rank32(self, line: &[u32; 16], key: Self::Splat32) -> u32;

    /// Which of the line's keys are this one; a bit for each, the first one's lowest.
    fn equal64(self, line: &[u64; 8], key: u64) -> u32;
    /// Which of the line's keys are this one; a bit for each, the first one's lowest.
    fn equal32(self, line: &[u32; 16], key: u32) -> u32;

    /// Which of the line's words differ from the key in no bit from a place on that the word's own low six bits number;
    /// a bit for each, the first one's lowest.
    fn covering64(self, line: &[u64; 8], key: u64) -> u32;

    /// Which of the line's keys are below the key; a bit for each, the first one's lowest. The key
    /// stands in both halves of the word.
    fn below16(self, line: &[u16; 16], key: u32) -> u16;
    /// As [`below16`](Simd::below16), for a whole cache line.
    fn below16_line(self, line: &[u16; 32], key: u32) -> u32;
    /// [`below16`](Simd::below16) for each of the half lines at these places, with the key of the same number.
    ///
    /// # Safety
    /// The places, counted in bytes from `lines`, are multiples of 32, and the half lines can be read.
    #[inline(always)]
    unsafe fn below16_rows(
        self,
        lines: *const [u16; 16],
        places: &RowOffsets,
        keys: Self::Row,
        verdicts: &mut [u16; 16],
    ) {
        let keys = keys.words();
        for ((to, place), key) in verdicts.iter_mut().zip(places.0).zip(keys) {
            // SAFETY: the caller's.
            *to = self.below16(unsafe { &*lines.byte_add(place as usize) }, key);
        }
    }
    /// As [`below16_rows`](Simd::below16_rows) for eight half lines, whose places are taken as they are.
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    unsafe fn below16_half_row(
        self,
        lines: *const [u16; 16],
        places: [u32; 8],
        keys: Self::HalfRow,
        verdicts: &mut [u16; 8],
    ) {
        let keys = keys.words();
        for ((to, place), key) in verdicts.iter_mut().zip(places).zip(keys) {
            // SAFETY: the caller's.
            *to = self.below16(unsafe { &*lines.byte_add(place as usize) }, key);
        }
    }
    /// How many of the line's keys `first..first + len`, which are sorted, are below the key. Within
    /// the line. Branch-free.
    #[inline(always)]
    fn rank16(self, line: &[u16; 16], first: u32, len: u32, key: u16) -> u32 {
        let below = self.below16(line, u32::from(key) * 0x1_0001);
        (u32::from(below) >> (first & 15) & ((1 << (len & 31)) - 1)).count_ones()
    }
    /// Sixteen words.
    fn row(self, words: &[u32; 16]) -> Self::Row;
    /// The word in every lane.
    fn splat_row(self, word: u32) -> Self::Row;
    /// The word in every lane.
    fn splat_half_row(self, word: u32) -> Self::HalfRow;
    /// Takes the bytes of the word, the lowest first, into a CRC32 with Castagnoli's polynomial, as the
    /// machine's instruction does: without the complements before and after.
    fn crc32c<T: Word>(self, crc: u32, word: T) -> u32;
    /// Whether each word of the block has the bit that the five top bits of `hash * factor` name, with the
    /// word's own factor.
    fn has_bits(self, block: &[u32; 8], hash: u32, factors: &[u32; 8]) -> bool;

    /// Runs the kernel, compiled with the features of this instruction set.
    fn run<K: Kernel>(self, kernel: K) -> K::Output;
}

/// A loop that is compiled once for each instruction set.
pub trait Kernel {
    /// The result of the loop.
    type Output;

    /// The loop. Mark the implementation `#[inline(always)]`, and all generic functions that it calls on its hot path:
    /// only code that is inlined into the instruction set's entry function is compiled with its features.
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

/// Plain integer instructions.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scalar;

impl Sealed for Scalar {}

// SAFETY: every machine has plain integer instructions, and the operations are as they are described.
unsafe impl Simd for Scalar {
    type Splat64 = u64;
    type Splat32 = u32;
    type Row = ScalarRow;
    type HalfRow = ScalarRow<8>;
    type Lanes<T: Word> = One<T>;

    const ISA: Isa = Isa::Scalar;
    const ROWS_WHOLE: bool = false;

    #[inline(always)]
    fn splat64(self, key: u64) -> u64 {
        key
    }
    #[inline(always)]
    fn splat32(self, key: u32) -> u32 {
        key
    }
    #[inline(always)]
    fn rank64(self, line: &[u64; 8], key: u64) -> u32 {
        rank(line, key)
    }
    #[inline(always)]
    fn rank32(self, line: &[u32; 16], key: u32) -> u32 {
        rank(line, key)
    }
    #[inline(always)]
    fn equal64(self, line: &[u64; 8], key: u64) -> u32 {
        line.iter().enumerate().map(|(i, &other)| u32::from(other == key) << i).sum()
    }
    #[inline(always)]
    fn equal32(self, line: &[u32; 16], key: u32) -> u32 {
        line.iter().enumerate().map(|(i, &other)| u32::from(other == key) << i).sum()
    }
    #[inline(always)]
    fn covering64(self, line: &[u64; 8], key: u64) -> u32 {
        let covers = |other: u64| (other ^ key) >> (other & 63) == 0;
        line.iter().enumerate().map(|(i, &other)| u32::from(covers(other)) << i).sum()
    }
    #[inline(always)]
    fn below16(self, line: &[u16; 16], key: u32) -> u16 {
        let bit = |(i, &other): (usize, &u16)| u16::from(other < key as u16) << i;
        line.iter().enumerate().map(bit).sum()
    }
    #[inline(always)]
    fn below16_line(self, line: &[u16; 32], key: u32) -> u32 {
        let bit = |(i, &other): (usize, &u16)| u32::from(other < key as u16) << i;
        line.iter().enumerate().map(bit).sum()
    }
    #[inline(always)]
    fn rank16(self, line: &[u16; 16], first: u32, len: u32, key: u16) -> u32 {
        let counts = |(i, &other): (u16, &u16)| {
            u16::from(other < key) & u16::from(i.wrapping_sub(first as u16) < len as u16)
        };
        (0..).zip(line).map(counts).sum::<u16>().into()
    }
    #[inline(always)]
    fn row(self, words: &[u32; 16]) -> ScalarRow {
        ScalarRow(*words)
    }
    #[inline(always)]
    fn splat_row(self, word: u32) -> ScalarRow {
        ScalarRow([word; 16])
    }
    #[inline(always)]
    fn splat_half_row(self, word: u32) -> ScalarRow<8> {
        ScalarRow([word; 8])
    }
    #[inline(always)]
    fn crc32c<T: Word>(self, crc: u32, word: T) -> u32 {
        crc32c(crc, word.to_u64(), size_of::<T>() as u32)
    }
    #[inline(always)]
    fn has_bits(self, block: &[u32; 8], hash: u32, factors: &[u32; 8]) -> bool {
        let mut words = block.iter().zip(factors);
        words.all(|(word, factor)| word >> (hash.wrapping_mul(*factor) >> 27) & 1 == 1)
    }
    #[inline(always)]
    fn run<K: Kernel>(self, kernel: K) -> K::Output {
        kernel.run(self)
    }
}

/// How many of the line's sorted keys are below the key, by halving: four or five compares and no
/// branch. Counting all of them is the plainer code, but LLVM packs the verdicts into vectors bit by
/// bit and spends 40 instructions on adding them up.
#[inline(always)]
fn rank<K: Copy + Ord, const N: usize>(line: &[K; N], key: K) -> u32 {
    const { assert!(N.is_power_of_two()) };
    let (mut from, mut half) = (0, N / 2);
    while half > 0 {
        from += half * usize::from(line[from + half - 1] < key);
        half /= 2;
    }
    from as u32 + u32::from(line[from] < key)
}

/// A chosen instruction set with the proof that the machine has it. Engines get one when they are built, so that
/// lookups need not check again.
#[derive(Clone, Copy)]
pub struct Level(Proof);

#[derive(Clone, Copy)]
enum Proof {
    Scalar(Scalar),
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
    #[cfg(target_arch = "aarch64")]
    Neon(Neon),
}

impl Proof {
    /// The proof, if the machine has the instruction set.
    fn new(isa: Isa) -> Option<Self> {
        match isa {
            Isa::Scalar => Some(Self::Scalar(Scalar)),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => Avx2::new().map(Self::Avx2),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => Avx512::new().map(Self::Avx512),
            #[cfg(not(target_arch = "x86_64"))]
            Isa::Avx2 | Isa::Avx512 => None,
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => Neon::new().map(Self::Neon),
            #[cfg(not(target_arch = "aarch64"))]
            Isa::Neon => None,
        }
    }
}

impl Level {
    /// The wanted instruction set, or the best of its [`Isa::forms`] that the machine has.
    pub fn new(wanted: Isa) -> Self {
        Self(
            wanted
                .forms()
                .iter()
                .find_map(|form| Proof::new(*form))
                .unwrap_or(Proof::Scalar(Scalar)),
        )
    }

    /// The instruction set.
    pub fn isa(self) -> Isa {
        match self.0 {
            Proof::Scalar(_) => Isa::Scalar,
            #[cfg(target_arch = "x86_64")]
            Proof::Avx2(_) => Isa::Avx2,
            #[cfg(target_arch = "x86_64")]
            Proof::Avx512(_) => Isa::Avx512,
            #[cfg(target_arch = "aarch64")]
            Proof::Neon(_) => Isa::Neon,
        }
    }

    /// Runs the kernel's form for this instruction set.
    #[inline]
    pub fn run<K: Kernel>(self, kernel: K) -> K::Output {
        match self.0 {
            Proof::Scalar(simd) => simd.run(kernel),
            #[cfg(target_arch = "x86_64")]
            Proof::Avx2(simd) => simd.run(kernel),
            #[cfg(target_arch = "x86_64")]
            Proof::Avx512(simd) => simd.run(kernel),
            #[cfg(target_arch = "aarch64")]
            Proof::Neon(simd) => simd.run(kernel),
        }
    }

    /// Runs the kernel's form for vectors of up to 256 bits, AVX2 or NEON, and compiles only this form; `None` on a
    /// machine without vectors.
    #[inline]
    pub fn run_narrow<K: Kernel>(self, kernel: K) -> Option<K::Output> {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Proof::Avx2(simd) => Some(simd.run(kernel)),
            #[cfg(target_arch = "x86_64")]
            Proof::Avx512(simd) => Some(simd.avx2().run(kernel)),
            #[cfg(target_arch = "aarch64")]
            Proof::Neon(simd) => Some(simd.run(kernel)),
            Proof::Scalar(_) => {
                let _ = kernel;
                None
            }
        }
    }

    /// Runs the kernel's form for AVX-512, and compiles only this form; `None` on a machine without it.
    #[inline]
    pub fn run_avx512<K: Kernel>(self, kernel: K) -> Option<K::Output> {
        #[cfg(target_arch = "x86_64")]
        if let Proof::Avx512(simd) = self.0 {
            return Some(simd.run(kernel));
        }
        let _ = kernel;
        None
    }
}

impl fmt::Debug for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Level({})", self.isa())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Ranks<'a>(&'a [u64; 8], &'a [u32; 16], u64, u32);

    impl Kernel for Ranks<'_> {
        type Output = [u32; 4];
        #[inline(always)]
        fn run<S: Simd>(self, simd: S) -> [u32; 4] {
            let (a, b) = (simd.splat64(self.2), simd.splat32(self.3));
            let equal = [simd.equal64(self.0, self.2), simd.equal32(self.1, self.3)];
            [simd.rank64(self.0, a), simd.rank32(self.1, b), equal[0], equal[1]]
        }
    }

    struct Covering<'a>(&'a [u64; 8], u64);

    impl Kernel for Covering<'_> {
        type Output = u32;
        #[inline(always)]
        fn run<S: Simd>(self, simd: S) -> u32 {
            simd.covering64(self.0, self.1)
        }
    }

    /// Every shift, with a key that differs in the lowest bit that counts, in the one below, and at the top.
    #[test]
    fn every_instruction_set_finds_covering_prefixes() {
        for shift in 0..64u64 {
            let word = 0xfedc_ba98_7654_3210 & !63 | shift;
            let line = [word, word ^ 1 << 63, !word & !63 | shift, shift, 63, 6, word, u64::MAX];
            for key in [word, word ^ 1 << shift, word ^ (1 << shift) >> 1, !word, 0, u64::MAX] {
                let covers = |i: usize| (line[i] ^ key) >> (line[i] & 63) == 0;
                let expected = (0..8).map(|i| u32::from(covers(i)) << i).sum::<u32>();
                for isa in Isa::available() {
                    assert_eq!(isa.level().run(Covering(&line, key)), expected, "{isa} {shift}");
                }
            }
        }
    }

    /// Unsigned order has its traps at the sign bit and at both ends.
    #[test]
    fn every_instruction_set_ranks_alike() {
        let wide = [0, 1, u64::MAX >> 1, 1 << 63, (1 << 63) + 1, u64::MAX - 1, u64::MAX, u64::MAX];
        let mut narrow = [u32::MAX; 16];
        for (i, key) in narrow.iter_mut().take(14).enumerate() {
            *key = (i as u32) * 0x1249_2492;
        }
        for isa in Isa::available() {
            for key in wide.into_iter().flat_map(|k| [k.wrapping_sub(1), k, k.wrapping_add(1)]) {
                for small in
                    narrow.into_iter().flat_map(|k| [k.wrapping_sub(1), k, k.wrapping_add(1)])
                {
                    let expected = [
                        wide.iter().filter(|&&k| k < key).count() as u32,
                        narrow.iter().filter(|&&k| k < small).count() as u32,
                        (0..8).filter(|&i| wide[i] == key).map(|i| 1 << i).sum(),
                        (0..16).filter(|&i| narrow[i] == small).map(|i| 1 << i).sum(),
                    ];
                    let got = isa.level().run(Ranks(&wide, &narrow, key, small));
                    assert_eq!(got, expected, "{isa} {key:#x} {small:#x}");
                }
            }
        }
    }
}
