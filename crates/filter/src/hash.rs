//! The names of the hash functions, and their values for one key. `families.rs` has the functions.

use std::fmt;
use std::str::FromStr;

use fibula_simd::{Lanes, One, Scalar, Word};

use crate::Key;
use crate::families::{HashFamily, of_family};

/// How the positions of a key come about.
///
/// All but the first hash a key once, to `h1` and `h2`, and go on by double hashing: the `i`th hash
/// is `h1 + i * h2`. Where a function has 32 bits, `h2` is `h1` turned by half: the position is taken
/// from a hash's high bits, so the two depend on different halves. A key of several words is hashed to
/// 64 bits by a form of the function that takes words in one after the other; `h1` and `h2` are their
/// halves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Hash {
    /// MurmurHash3 (x86, 32 bits) of the key's bytes, with another seed for each position: HPBF's choice.
    /// Keys of several words: with the first two of the seeds.
    MurmurSeeded,
    /// The finaliser of MurmurHash3, which alone mixes one word well. Keys of several words: the first half
    /// of MurmurHash3 (x64, 128 bits).
    #[default]
    Murmur,
    /// Knuth's multiplicative method: one multiplication. Keys in regular steps fall on regular
    /// positions, so rates of false positives hold for irregular keys only.
    Knuth,
    /// H2, the function that Bloomfwd likes best for IPv4. Keys of several words: word by word, from two
    /// beginnings.
    H2,
    /// CRC32 with Castagnoli's polynomial, ended as Open vSwitch does: one instruction a word, but of
    /// scalar registers.
    Crc32c,
}

impl Hash {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::MurmurSeeded, Self::Murmur, Self::Knuth, Self::H2, Self::Crc32c];

    /// `"murmur-seeded"`, `"murmur"`, `"knuth"`, `"h2"` or `"crc32c"`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::MurmurSeeded => "murmur-seeded",
            Self::Murmur => "murmur",
            Self::Knuth => "knuth",
            Self::H2 => "h2",
            Self::Crc32c => "crc32c",
        }
    }

    /// The `index`th hash of the key.
    #[inline]
    pub fn nth<K: Key>(self, key: K, index: u32) -> u32 {
        of_family!(self, F => nth::<_, K::By<F>>(key.lane::<F>(), index))
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Hash {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|hash| hash.name() == word).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|hash| hash.name()).collect();
            format!("unknown hash function {word:?}: use one of {}", names.join(", "))
        })
    }
}

/// The `index`th hash of one lane.
#[inline(always)]
pub(crate) fn nth<T: Word, F: HashFamily>(lane: T, index: u32) -> u32 {
    F::nth(One::new(lane), One::splat(Scalar, T::of_low(index))).low()
}

/// The finaliser of MurmurHash3 for 32 bits.
#[inline]
pub const fn fmix32(mut x: u32) -> u32 {
    x = (x ^ x >> 16).wrapping_mul(0x85eb_ca6b);
    x = (x ^ x >> 13).wrapping_mul(0xc2b2_ae35);
    x ^ x >> 16
}

/// The finaliser of MurmurHash3 for 64 bits.
#[inline]
pub const fn fmix64(mut x: u64) -> u64 {
    x = (x ^ x >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    x = (x ^ x >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ x >> 33
}

/// H2 (Bloomfwd's algorithm 3).
#[inline]
pub fn h2(x: u32) -> u32 {
    crate::families::h2(One::new(x)).low()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crc32c;
    use crate::families::{Crc32c, H2, murmur3};

    const NARROW: u32 = 0xc000_0207; // 192.0.2.7
    const WIDE: u64 = 0x2001_0db8_0000_0001;

    /// MurmurHash3_x86_32 by the reference implementation (Python's package mmh3 5), of the keys' bytes, least
    /// significant first: `mmh3.hash(key.to_bytes(4, "little"), seed, signed=False)`.
    #[test]
    fn murmur_of_keys() {
        for (seed, narrow, wide) in [
            (
                0,
                [0x2362_f9de, 0xfbf1_402a, 0xa87e_0538, 0x7629_3b50],
                [0x6385_2afc, 0x5307_5d44, 0x7b22_014d, 0x6275_64e8],
            ),
            (
                1,
                [0x78ed_212d, 0x5e11_e574, 0x7e28_b279, 0x36c6_fa09],
                [0xea95_647d, 0xdf08_7715, 0x9860_704b, 0x9769_f0c6],
            ),
            (
                0x9747_b28c,
                [0xa366_817d, 0xf354_e7bc, 0x1396_1f03, 0x9de6_72fb],
                [0x2e1d_9bd8, 0x24e8_1313, 0xfc24_65d9, 0x7584_c82b],
            ),
            (
                0xdead_beef,
                [0x2d37_50b3, 0x21dc_ad82, 0xca91_9198, 0xc328_9efb],
                [0x3aeb_0c1f, 0x1f48_87b8, 0xee8e_589f, 0x75c2_fc1e],
            ),
        ] {
            let got =
                [0, 1, NARROW, u32::MAX].map(|key| murmur3(One::new(key), One::new(seed)).low());
            assert_eq!(got, narrow, "{seed:#x}");
            let seeds = One::new(u64::from(seed));
            let got = [0, 1, WIDE, u64::MAX].map(|key| murmur3(One::new(key), seeds).low());
            assert_eq!(got, wide, "{seed:#x}");
        }
    }

    /// The finalisers, by the reference implementation. MurmurHash3_x86_32 of no bytes is the finaliser of the
    /// seed. MurmurHash3_x64_128 of none has `fmix64(2 * seed)` and `fmix64(3 * seed)` in it: the difference of
    /// its halves is the latter, and that less than the lower half is the former.
    #[test]
    fn finalisers_of_murmur() {
        for (seed, hash) in [
            (1, 0x514e_28b7),
            (2, 0x30f4_c306),
            (0x1234_5678, 0xe37c_d1bc),
            (u32::MAX, 0x81f1_6f39),
        ] {
            assert_eq!(fmix32(seed), hash, "{seed:#x}");
        }
        for (seed, two, three) in [
            (1, 0x3abf_2a20_6506_83e7, 0x0b51_81c5_09f8_d8ce),
            (2, 0x4790_0468_a8f0_1875, 0xe8b4_b3b1_c77c_4573),
            (0x1234_5678, 0x772f_a2b1_2931_63b3, 0x6e46_f93b_32c6_27fa),
            (0xffff_ffff, 0x506f_9d89_1b91_4f6d, 0x1a82_41c4_81aa_7a7f),
        ] {
            assert_eq!([fmix64(2 * seed), fmix64(3 * seed)], [two, three], "{seed:#x}");
        }
        // All 64 bits in use: Python's integers, from the definition.
        assert_eq!(fmix64(0x0123_4567_89ab_cdef), 0x87cb_fbfe_8902_2cea);
        assert_eq!(fmix64(u64::MAX), 0x64b5_720b_4b82_5f21);
    }

    /// The register after the bytes of a key, from 0 and without complements, and the result of Open vSwitch's
    /// `hash_finish`: eight bytes more with the number of bytes, times 0x805204f3, and the high half into the low one.
    /// Computed in Python bit by bit, from the polynomial 0x1edc6f41 and reflection.
    #[test]
    fn crc_of_keys_ended_as_open_vswitch_does() {
        for (key, bytes, register, hash) in [
            (0, 4, 0, 0x2bf6_aa81),
            (1, 4, 0xdd45_aab8, 0x71f9_1fbe),
            (NARROW.into(), 4, 0x95e2_cc03, 0x7681_9bb9),
            (0, 8, 0, 0x57ed_5503),
            (1, 8, 0x493c_7d27, 0x0dea_30c6),
            (WIDE, 8, 0xe348_6c40, 0x138b_3613),
        ] {
            assert_eq!(crc32c(0, key, bytes), register, "{key:#x}");
            let got = match bytes {
                4 => nth::<_, Crc32c>(key as u32, 0),
                _ => nth::<_, Crc32c>(key, 0),
            };
            assert_eq!(got, hash, "{key:#x}");
        }
    }

    /// The values were computed with Python's integers from the definition. The inverse of the multiplier modulo 2^32
    /// is published with the function (Mueller, 2012): it maps every value back to its origin, so H2 is a permutation.
    #[test]
    fn h2_and_its_inverse() {
        const INVERSE: u32 = 0x119d_e1f3;
        assert_eq!(H2.wrapping_mul(INVERSE), 1);
        let back = |mut x: u32| {
            x = (x >> 16 ^ x).wrapping_mul(INVERSE);
            x = (x >> 16 ^ x).wrapping_mul(INVERSE);
            x >> 16 ^ x
        };
        for (key, hash) in [
            (0, 0),
            (1, 0x3125_1ba7),
            (2, 0x66a7_9298),
            (0x1234_5678, 0x055c_cace),
            (0x8000_0000, 0x3d5a_6175),
            (0xdead_beef, 0x5353_e2e9),
            (u32::MAX, 0x2028_884f),
        ] {
            assert_eq!(h2(key), hash, "{key:#x}");
        }
        for key in (0..=u32::MAX).step_by(65_521) {
            assert_eq!(back(h2(key)), key);
        }
    }

    /// The first four hashes of both keys. By the reference implementation: the seeded ones, with 0, 1, 2 and 3
    /// times 0x9e3779b9 for a seed, and the finaliser of the narrow key, as above. By Python's integers: the
    /// others' first hash, from the definitions (Knuth's multipliers are 2,654,435,761 and
    /// 11,400,714,819,323,198,485), and the steps of double hashing.
    #[test]
    fn hashes_of_a_key() {
        let narrow = [
            (Hash::MurmurSeeded, [0xa87e_0538, 0x2768_ea37, 0xc14f_db67, 0x483d_bba5]),
            (Hash::Murmur, [0x141a_42df, 0x56f9_56fa, 0x99d8_6b15, 0xdcb7_7f30]),
            (Hash::Knuth, [0x8277_b5d7, 0x384f_384e, 0xee26_bac5, 0xa3fe_3d3c]),
            (Hash::H2, [0x5cde_86a3, 0xe381_e382, 0x6a25_4061, 0xf0c8_9d40]),
            (Hash::Crc32c, [0x7681_9bb9, 0x123b_123a, 0xadf4_88bb, 0x49ad_ff3c]),
        ];
        let wide = [
            (Hash::MurmurSeeded, [0x7b22_014d, 0xc472_fb43, 0xfb9e_7140, 0x8bbe_c05f]),
            (Hash::Murmur, [0x87f8_76cd, 0xb145_ef56, 0xda93_67df, 0x03e0_e068]),
            (Hash::Knuth, [0x0022_b9d1, 0x7f6d_35e6, 0xfeb7_b1fb, 0x7e02_2e10]),
            (Hash::H2, [0x0577_b919, 0xbe90_be90, 0x77a9_c407, 0x30c2_c97e]),
            (Hash::Crc32c, [0x138b_3613, 0x499e_499e, 0x7fb1_5d29, 0xb5c4_70b4]),
        ];
        for (hash, expected) in narrow {
            assert_eq!([0, 1, 2, 3].map(|i| hash.nth(NARROW, i)), expected, "{hash}");
        }
        for (hash, expected) in wide {
            assert_eq!([0, 1, 2, 3].map(|i| hash.nth(WIDE, i)), expected, "{hash} of 64 bits");
        }
        assert_eq!(narrow.map(|(hash, _)| hash), Hash::ALL);
        assert_eq!(wide.map(|(hash, _)| hash), Hash::ALL);
    }

    #[test]
    fn names_round_trip() {
        for hash in Hash::ALL {
            assert_eq!(hash.to_string().parse(), Ok(hash));
        }
        assert!("md5".parse::<Hash>().unwrap_err().contains("murmur-seeded"));
    }
}
