//! The names of the ways to search.

use std::fmt;
use std::str::FromStr;

/// How packets are searched for. All find the same megaflows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Form {
    /// One packet after the other, MurmurHash3: Open vSwitch without special instructions.
    Murmur,
    /// One packet after the other, CRC32C: Open vSwitch with SSE4.2.
    Crc,
    /// MurmurHash3 of many packets at once, their words gathered from the array of miniflows: what the paper
    /// advises against.
    Gather,
    /// The paper's: miniflows transposed, two rounds of 16 packets while more than 8 are left, packets of
    /// another bitmap than the majority's one by one.
    Transposed,
    /// Ours: columns by word of the flow, so that protocols mix; sums of products for a hash; a filter in front
    /// of each subtable; survivors packed, and the last of them asked of many subtables at once.
    #[default]
    Packed,
}

impl Form {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Murmur, Self::Crc, Self::Gather, Self::Transposed, Self::Packed];

    /// `"murmur"`, `"crc"`, `"gather"`, `"transposed"` or `"packed"`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Murmur => "murmur",
            Self::Crc => "crc",
            Self::Gather => "gather",
            Self::Transposed => "transposed",
            Self::Packed => "packed",
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Form {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|form| form.name() == word).ok_or_else(|| {
            format!("unknown form {word:?}: use one of {}", Self::ALL.map(Self::name).join(", "))
        })
    }
}
