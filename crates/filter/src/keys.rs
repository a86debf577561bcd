//! Keys: of one word, which filters take as they are, and of several, which are hashed to 64 bits first.

use std::array;
use std::fmt::Debug;
use std::marker::PhantomData;

use fibula_simd::{Kernel, Lanes, Level, One, Scalar, Simd, Word};

use crate::Hash;
use crate::families::{Digested, HashFamily, KeyWords, of_family};

/// A key of a filter: `u32`, `u64`, or several words of either, up to 512 bits: `[u32; 1]` to
/// `[u32; 16]`, `[u64; 1]` to `[u64; 8]`. Another length does not compile.
///
/// A key of several words is hashed once, to 64 bits, and double hashing continues from their halves,
/// with [`Hash::MurmurSeeded`] too. Words of 32 bits are hashed as their bytes are, so that `[u32; 2 * n]`
/// and the `[u64; n]` of the same little-endian bytes are the same key; `[u64; 1]` and `u64` are not.
#[expect(private_bounds, reason = "sealed: the vector forms know these keys")]
pub trait Key: Hashed + Copy + Ord + Debug + Send + Sync {}

/// The input of positions.
pub(crate) trait Hashed: Copy {
    /// The key itself, or the digest of its words.
    type Lane: Word;
    /// The hash family of the lane.
    type By<F: HashFamily>: HashFamily;
    fn lane<F: HashFamily>(self) -> Self::Lane;
}

macro_rules! words {
    ($($t:ty),*) => { $(
        impl Key for $t {}
        impl Hashed for $t {
            type Lane = $t;
            type By<F: HashFamily> = F;
            #[inline(always)]
            fn lane<F: HashFamily>(self) -> $t {
                self
            }
        }
        impl<const W: usize> Key for [$t; W] {}
        impl<const W: usize> Hashed for [$t; W] {
            type Lane = u64;
            type By<F: HashFamily> = Digested;
            #[inline(always)]
            fn lane<F: HashFamily>(self) -> u64 {
                F::digest(Alone(&self)).to_u64()
            }
        }
    )* };
}

words!(u32, u64);

/// The bytes of a key of this number of words.
const fn bytes<T: Word, const W: usize>() -> usize {
    let bytes = W * size_of::<T>();
    assert!(bytes > 0 && bytes <= 64, "keys have 1 to 512 bits");
    bytes
}

/// One key.
#[derive(Clone, Copy)]
struct Alone<'a, T, const W: usize>(&'a [T; W]);

impl<T: Word, const W: usize> KeyWords for Alone<'_, T, W> {
    type Lanes = One<u64>;
    const BYTES: usize = bytes::<T, W>();

    #[inline(always)]
    fn word(self, index: usize) -> One<u64> {
        if T::WIDE {
            return One::new(self.0[index].to_u64());
        }
        let high = self.0.get(2 * index + 1).map_or(0, |word| word.to_u64());
        One::new(self.0[2 * index].to_u64() | high << 32)
    }
    #[inline(always)]
    fn splat(self, number: u64) -> One<u64> {
        One::new(number)
    }
}

/// Many keys of `W` words, transposed: a slice with the first word of each key, one with the second, and so on, and a
/// mask of the bits that count. So the headers of a batch of packets are transposed once, and every filter selects
/// the bits that it needs.
///
/// ```
/// use fibula_filter::{Columns, Filter, Hash, Parameters};
///
/// // Addresses of source and destination, and ports, of three packets.
/// let [sources, destinations, ports] =
///     [[0x0a00_0001, 0x0a00_0002, 7], [0xc000_0207; 3], [80, 443, 9u32]];
/// let mut filter = Filter::new(Parameters::for_rate(1000, 1e-6), Hash::Murmur);
/// filter.insert([0x0a00_0000, 0xc000_0207, 0u32]);
///
/// // The first 24 bits of the source, the destination, and no port.
/// let keys = Columns::new([&sources, &destinations, &ports], [0xffff_ff00, u32::MAX, 0]);
/// let (mut digests, mut packets) = ([0; 3], [0; 3]);
/// let n = filter.probe_columns(keys, &[100, 101, 102], &mut digests, &mut packets);
/// assert_eq!(packets[..n], [100, 101]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Columns<'a, T, const W: usize> {
    words: [&'a [T]; W],
    mask: [T; W],
}

impl<'a, T: Word, const W: usize> Columns<'a, T, W> {
    /// The keys whose `w`th words are in `words[w]`.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn new(words: [&'a [T]; W], mask: [T; W]) -> Self {
        let () = const { assert!(bytes::<T, W>() > 0) };
        assert!(words.iter().all(|column| column.len() == words[0].len()), "columns of one length");
        Self { words, mask }
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.words[0].len()
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The key in this row, under the mask.
    pub fn key(&self, row: usize) -> [T; W] {
        array::from_fn(|w| self.words[w][row] & self.mask[w])
    }

    /// The keys in these rows.
    pub(crate) fn rows(self, from: usize, to: usize) -> Self {
        Self { words: self.words.map(|column| &column[from..to]), ..self }
    }

    /// The 64 bits that each key is hashed to, for a table behind a filter: their high half is the key's
    /// first hash, [`Hash::nth`] of 0.
    ///
    /// # Panics
    /// If there are not as many digests as keys.
    pub fn digests(self, hash: Hash, level: Level, digests: &mut [u64]) {
        assert_eq!(self.len(), digests.len(), "a digest for each key");
        of_family!(hash, F => level.run(Digests { keys: self, digests, family: PhantomData::<F> }));
    }
}

/// The kernel of [`Columns::digests`].
struct Digests<'a, T, const W: usize, F> {
    keys: Columns<'a, T, W>,
    digests: &'a mut [u64],
    family: PhantomData<F>,
}

impl<T: Word, const W: usize, F: HashFamily> Kernel for Digests<'_, T, W, F> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { keys, digests, .. } = self;
        let whole = keys.len() / S::Lanes::<u64>::N * S::Lanes::<u64>::N;
        for at in (0..whole).step_by(S::Lanes::<u64>::N) {
            F::digest(Rows { simd, keys: &keys, at }).store(digests, at);
        }
        for at in whole..keys.len() {
            F::digest(Rows { simd: Scalar, keys: &keys, at }).store(digests, at);
        }
    }
}

/// The keys from a row on, as many as a vector has lanes.
#[derive(Clone, Copy)]
struct Rows<'a, S, T, const W: usize> {
    simd: S,
    keys: &'a Columns<'a, T, W>,
    at: usize,
}

impl<S: Simd, T: Word, const W: usize> Rows<'_, S, T, W> {
    /// The words of one column under the mask.
    #[inline(always)]
    fn column(self, index: usize) -> S::Lanes<u64> {
        let words = S::Lanes::<u64>::load_long(self.simd, self.keys.words[index], self.at);
        words.and(self.splat(self.keys.mask[index].to_u64()))
    }
}

impl<S: Simd, T: Word, const W: usize> KeyWords for Rows<'_, S, T, W> {
    type Lanes = S::Lanes<u64>;
    const BYTES: usize = bytes::<T, W>();

    #[inline(always)]
    fn word(self, index: usize) -> S::Lanes<u64> {
        if T::WIDE {
            return self.column(index);
        }
        let low = self.column(2 * index);
        if 2 * index + 1 < W { low.or(self.column(2 * index + 1).sll64(32)) } else { low }
    }
    #[inline(always)]
    fn splat(self, number: u64) -> S::Lanes<u64> {
        S::Lanes::<u64>::splat(self.simd, number)
    }
}

/// Keys that are hashed at a time: their digests stay in the first-level cache.
const BLOCK: usize = 1024;

/// Hashes keys block by block, and has `probe` test the digests: digests and rows in, those that pass
/// out, how many. How many passed in all.
pub(crate) fn in_blocks<T: Word, const W: usize>(
    keys: Columns<'_, T, W>,
    hash: Hash,
    level: Level,
    rows: &[u64],
    out_digests: &mut [u64],
    out_rows: &mut [u64],
    probe: impl Fn(&[u64], &[u64], &mut [u64], &mut [u64]) -> usize,
) -> usize {
    assert_eq!(keys.len(), rows.len(), "a row for each key");
    let mut digests = [0; BLOCK];
    let mut n = 0;
    for (from, rows) in (0..).step_by(BLOCK).zip(rows.chunks(BLOCK)) {
        let digests = &mut digests[..rows.len()];
        keys.rows(from, from + rows.len()).digests(hash, level, digests);
        n += probe(digests, rows, &mut out_digests[n..], &mut out_rows[n..]);
    }
    n
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest<const W: usize>(hash: Hash) -> u64 {
        let words: [u32; W] =
            array::from_fn(|i| (i as u32 + 1).wrapping_mul(0x2001_0db8) ^ 0xc000_0207);
        let mut digest = [0];
        let keys = Columns::new(array::from_fn(|w| &words[w..=w]), [u32::MAX; W]);
        keys.digests(hash, fibula_simd::Isa::Scalar.level(), &mut digest);
        digest[0]
    }

    /// Of keys of 1 to 16 words, by Python's package mmh3 5.3: MurmurHash3_x86_32 with the seeds 0 and
    /// 0x9e3779b9, and the first half of MurmurHash3_x64_128, of the words' bytes, least significant
    /// first. By Python's integers, from the definitions: Knuth's, H2, and the CRC bit by bit.
    #[test]
    fn digests_by_other_implementations() {
        type Digest = fn(Hash) -> u64;
        let digests: [Digest; 7] = [
            digest::<1>,
            digest::<2>,
            digest::<3>,
            digest::<4>,
            digest::<5>,
            digest::<13>,
            digest::<16>,
        ];
        let expected = [
            (
                1,
                [
                    0x6cdb_1a2c_9f73_ff1c,
                    0xdf0d_2b3c_6d7d_df00,
                    0x14a0_5bb8_31ec_ceab,
                    0xe2a2_0df5_3002_bbb1,
                    0xcbca_29c6_29c6_cbcb,
                ],
            ),
            (
                2,
                [
                    0x7e80_4537_720f_e362,
                    0xdab4_7ae2_f59b_bbd5,
                    0xfe88_167b_31ec_ceab,
                    0x208f_8f19_2cf7_a0d4,
                    0xd12a_3a02_3a02_d12b,
                ],
            ),
            (
                3,
                [
                    0xbbf6_980b_88de_8b2f,
                    0x289d_b4b0_8270_bcf8,
                    0xb5a0_633a_9968_b7e4,
                    0x8a9c_131d_97b2_df0f,
                    0x9b29_965e_965e_9b29,
                ],
            ),
            (
                4,
                [
                    0xcd82_7928_16d1_31f7,
                    0x1091_f75f_2dc0_d960,
                    0x95fb_f36f_9968_b7e4,
                    0x435a_6870_5245_007f,
                    0x44d5_9d2a_9d2a_44d5,
                ],
            ),
            (
                5,
                [
                    0x4009_8979_4fe0_2c97,
                    0xf87f_6bf9_2788_8964,
                    0x6c82_5f42_3565_2cb0,
                    0xa0b2_70aa_3598_5b56,
                    0x45cc_0773_0773_45cd,
                ],
            ),
            (
                13,
                [
                    0x9afc_ff1f_a94c_205c,
                    0xa98b_9d12_a4dd_5c4b,
                    0x6c55_bee0_4b17_ed77,
                    0xd790_16be_6a83_06b9,
                    0x9b41_cade_cade_9b41,
                ],
            ),
            (
                16,
                [
                    0xf282_f846_e6c3_8d85,
                    0xe113_d5fc_fb36_89e2,
                    0x0aff_a96c_1feb_76c4,
                    0x4e91_86d5_ae86_6199,
                    0x6921_5a6c_5a6c_6921,
                ],
            ),
        ];
        for (digest, (words, expected)) in digests.into_iter().zip(expected) {
            assert_eq!(Hash::ALL.map(digest), expected, "{words} words");
        }
    }
}
