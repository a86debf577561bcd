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

    /// MurmurHash3 of whole words, of any number of them.
    fn murmur3(seed: u32, bytes: &[u8]) -> u32 {
        let (words, rest) = bytes.as_chunks::<4>();
        let mut hash = words.iter().fold(seed, |h, w| murmur_block(h, u32::from_le_bytes(*w)));
        if !rest.is_empty() {
            let mut word = [0; 4];
            word[..rest.len()].copy_from_slice(rest);
            let block = u32::from_le_bytes(word).wrapping_mul(0xcc9e_2d51);
            hash ^= block.rotate_left(15).wrapping_mul(0x1b87_3593);
        }
        fmix32(hash ^ bytes.len() as u32)
    }

    #[test]
    fn murmur_as_published() {
        assert_eq!(fmix32(1), 0x514e_28b7);
        assert_eq!(fmix64(1), 0xb456_bcfc_34c2_cb2c);
        let fox = b"The quick brown fox jumps over the lazy dog";
        assert_eq!(murmur3(0x9747_b28c, fox), 0x2fa8_26cd);
        assert_eq!(u32::from_le_bytes(*b"test").murmur3(0), 0xba6b_d213);
        assert_eq!(u32::from_le_bytes(*b"test").murmur3(0x9747_b28c), 0x704b_81dc);
        assert_eq!(u32::MAX.murmur3(0), 0x7629_3b50);
        assert_eq!(0x8765_4321_u32.murmur3(0), 0xf55b_516b);
        assert_eq!(0x8765_4321_u32.murmur3(0x5082_edee), 0x2362_f9de);
        assert_eq!(0_u32.murmur3(0), 0x2362_f9de);
        for key in [0, 1, u64::MAX, 0x0123_4567_89ab_cdef] {
            assert_eq!(key.murmur3(7), murmur3(7, &key.to_le_bytes()));
        }
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

    /// Both are permutations of 32 bits; these values were computed by hand from the definitions.
    #[test]
    fn h2_and_knuth_as_defined() {
        assert_eq!(h2(0), 0);
        // 1 * c = 0x045d9f3b; ^ its high half = 0x045d9b66; * c = ...; and the last xor.
        let once = 0x045d_9f3b_u32;
        let twice = (once >> 16 ^ once).wrapping_mul(0x045d_9f3b);
        assert_eq!(h2(1), twice >> 16 ^ twice);
        assert_eq!(Hash::Knuth.nth(1_u32, 0), 2_654_435_761);
        assert_eq!(Hash::Knuth.nth(3_u32, 0), 3_668_339_987);
        assert_eq!(Hash::Knuth.nth(1_u64, 0), 0x9e37_79b9);
    }

    #[test]
    fn names_round_trip() {
        for hash in Hash::ALL {
            assert_eq!(hash.to_string().parse(), Ok(hash));
        }
        assert!("md5".parse::<Hash>().unwrap_err().contains("murmur-seeded"));
    }
}
