//! The names of the search methods.

use std::fmt;
use std::str::FromStr;

/// The search methods. All find the same megaflows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Form {
    /// One packet after the other with MurmurHash3, like Open vSwitch without special instructions.
    Murmur,
    /// One packet after the other with CRC32C, like Open vSwitch with SSE4.2.
    Crc,
    /// MurmurHash3 of many packets at once, with words gathered from the array of miniflows. The paper advises
    /// against it.
    Gather,
    /// The paper's method: miniflows are transposed, two rounds of 16 packets as long as more than 8 are left.
    /// Packets whose bitmap differs from the majority's are searched one by one.
    Transposed,
    /// Our method: columns by word of the flow, so that protocols can be mixed, and sums of products as the hash. A
    /// filter precedes each subtable. Packets that pass are packed together, and the last of them are looked up in
    /// many subtables at once.
    #[default]
    Packed,
}

impl Form {
    /// All forms.
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
