//! Hash functions of 32- and 64-bit keys, one key at a time: the statement that the vector forms
//! are compared with, bit for bit.

use std::fmt;
use std::str::FromStr;

/// 2^32 divided by the golden ratio: far apart seeds, and (being odd) a multiplier.
pub(crate) const GOLDEN: u32 = 0x9e37_79b9;
/// The prime next to it, Knuth's multiplier.
pub(crate) const KNUTH: u32 = 0x9e37_79b1;
/// The same for 64 bits: 2^64 divided by the golden ratio.
pub(crate) const KNUTH64: u64 = 0x9e37_79b9_7f4a_7c15;
/// The multiplier of H2.
pub(crate) const H2: u32 = 0x045d_9f3b;
/// The multiplier that Open vSwitch ends a CRC hash with. A CRC is linear, and this is what is not.
pub(crate) const OVS: u32 = 0x8052_04f3;

/// How the positions of a key come about.
///
/// All but the first hash a key once, to `h1` and `h2`, and go on by double hashing: the `i`th hash
/// is `h1 + i * h2`. Where a function has 32 bits, `h2` is `h1` turned by half: the position is taken
/// from a hash's high bits, so the two depend on different halves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Hash {
    /// MurmurHash3 of the key's bytes, with another seed for each position: HPBF's choice.
    MurmurSeeded,
    /// The finaliser of MurmurHash3, which alone mixes one word well.
    #[default]
    Murmur,
    /// Knuth's multiplicative method: one multiplication. Keys in regular steps fall on regular
    /// positions, so rates of false positives hold for irregular keys only.
    Knuth,
    /// H2, the function that Bloomfwd likes best for IPv4.
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
        match self {
            Self::MurmurSeeded => key.murmur3(index.wrapping_mul(GOLDEN)),
            _ => {
                let (first, second) = key.pair(self);
                first.wrapping_add(index.wrapping_mul(second))
            }
        }
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

/// A key of a filter: `u32` or `u64`.
#[expect(private_bounds, reason = "sealed: the vector forms know these two widths")]
pub trait Key: crate::probe::Lanewise + Copy + Default + Ord + fmt::Debug + Send + Sync {
    /// The key, without its high half if it has 64 bits.
    fn low(self) -> u32;
    /// The key that this is the low half of.
    fn of_low(low: u32) -> Self;
    /// Bitwise and.
    fn and(self, other: Self) -> Self;
    /// MurmurHash3 (x86, 32 bits) of the key's bytes, least significant first.
    fn murmur3(self, seed: u32) -> u32;
    /// The two numbers that double hashing goes on from. The second is odd, so that positions in a
    /// filter of a power of two do not repeat.
    fn pair(self, hash: Hash) -> (u32, u32);
}

impl Key for u32 {
    #[inline]
    fn low(self) -> u32 {
        self
    }
    #[inline]
    fn of_low(low: u32) -> Self {
        low
    }
    #[inline]
    fn and(self, other: Self) -> Self {
        self & other
    }
    #[inline]
    fn murmur3(self, seed: u32) -> u32 {
        fmix32(murmur_block(seed, self) ^ 4)
    }
    #[inline]
    fn pair(self, hash: Hash) -> (u32, u32) {
        let first = match hash {
            Hash::MurmurSeeded => self.murmur3(0),
            Hash::Murmur => fmix32(self),
            Hash::Knuth => self.wrapping_mul(KNUTH),
            Hash::H2 => h2(self),
            Hash::Crc32c => crc_finish(crc32c(0, self.into(), 4), 4),
        };
        (first, first.rotate_left(16) | 1)
    }
}

impl Key for u64 {
    #[inline]
    fn low(self) -> u32 {
        self as u32
    }
    #[inline]
    fn of_low(low: u32) -> Self {
        low.into()
    }
    #[inline]
    fn and(self, other: Self) -> Self {
        self & other
    }
    #[inline]
    fn murmur3(self, seed: u32) -> u32 {
        let hash = murmur_block(murmur_block(seed, self as u32), (self >> 32) as u32);
        fmix32(hash ^ 8)
    }
    #[inline]
    fn pair(self, hash: Hash) -> (u32, u32) {
        let first = match hash {
            Hash::Murmur => return halves(fmix64(self)),
            Hash::Knuth => return halves(self.wrapping_mul(KNUTH64)),
            Hash::MurmurSeeded => self.murmur3(0),
            // H2 has 32 bits: the high half goes through it first, and is mixed into the low one.
            Hash::H2 => h2(h2((self >> 32) as u32) ^ self as u32),
            Hash::Crc32c => crc_finish(crc32c(0, self, 8), 8),
        };
        (first, first.rotate_left(16) | 1)
    }
}

fn halves(hash: u64) -> (u32, u32) {
    ((hash >> 32) as u32, hash as u32 | 1)
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

/// Takes four bytes more into a MurmurHash3.
#[inline]
fn murmur_block(hash: u32, block: u32) -> u32 {
    let block = block.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
    (hash ^ block).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64)
}

/// H2 (Bloomfwd's algorithm 3).
#[inline]
pub fn h2(mut x: u32) -> u32 {
    x = (x >> 16 ^ x).wrapping_mul(H2);
    x = (x >> 16 ^ x).wrapping_mul(H2);
    x >> 16 ^ x
}

/// Takes the `bytes` low bytes of `data` into a CRC32 with Castagnoli's polynomial, as the machine's
/// instruction does: without the complements before and after.
#[inline]
pub fn crc32c(crc: u32, data: u64, bytes: u32) -> u32 {
    (0..bytes).fold(crc, |crc, byte| {
        let at = (crc ^ (data >> (8 * byte)) as u32) & 0xff;
        CRC[at as usize] ^ crc >> 8
    })
}

/// Ends a CRC hash over `bytes` bytes as Open vSwitch does.
#[inline]
fn crc_finish(crc: u32, bytes: u64) -> u32 {
    let hash = crc32c(crc, bytes, 8).wrapping_mul(OVS);
    hash ^ hash >> 16
}

/// The CRC of each byte.
static CRC: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = crc >> 1 ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!([0, 1, NARROW, u32::MAX].map(|key| key.murmur3(seed)), narrow, "{seed:#x}");
            assert_eq!([0, 1, WIDE, u64::MAX].map(|key| key.murmur3(seed)), wide, "{seed:#x}");
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

    /// The check value of the catalogue of CRCs, and those of RFC 3720, appendix B.4.
    #[test]
    fn crc_as_published() {
        let crc = |bytes: &[u8]| !bytes.iter().fold(!0, |crc, b| crc32c(crc, (*b).into(), 1));
        assert_eq!(crc(b"123456789"), 0xe306_9283);
        assert_eq!(crc(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc(&[0xff; 32]), 0x62a8_ab43);
        let up: Vec<u8> = (0..32).collect();
        assert_eq!(crc(&up), 0x46dd_794e);
        let words = up.as_chunks::<8>().0;
        let by_words = words.iter().fold(!0, |crc, w| crc32c(crc, u64::from_le_bytes(*w), 8));
        assert_eq!(!by_words, 0x46dd_794e);
    }

    /// The register after the bytes of a key, from 0 and without complements, and what Open vSwitch's
    /// `hash_finish` makes of it: eight bytes more with the number of bytes, times 0x805204f3, and the high
    /// half into the low one. Computed in Python bit by bit, from the polynomial 0x1edc6f41 and reflection.
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
            assert_eq!(crc_finish(register, bytes.into()), hash, "{key:#x}");
        }
    }

    /// The values were computed with Python's integers from the definition. The inverse of the multiplier
    /// modulo 2^32 is published with the function (Mueller, 2012): with it every value goes back to where it
    /// came from, so H2 is a permutation.
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
