//! The lengths of matched prefixes.

use super::answers::{Numbers, Without};

/// The family and length of a matched prefix, or the reason why there is none, in one byte, so that a table of them
/// stays in the caches.
///
/// A table's prefixes do not fit the caches, and fetching them takes longer than all other work. With an address that
/// the prefix covers, the length is enough: the prefix is the address without the bits beyond the length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MatchedLength(u8);

/// A decoded [`MatchedLength`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    V4(u8),
    V6(u8),
}

impl MatchedLength {
    const FIRST_V6: u8 = 33;
    const KNOWN: u8 = Self::FIRST_V6 + 129;

    /// How lengths are numbered.
    pub(crate) const NUMBERS: Numbers = Numbers::new(Self::KNOWN as u32);

    #[inline(always)]
    pub(crate) fn new(bits: u8, len: u8) -> Self {
        if bits == 32 { Self(len) } else { Self(Self::FIRST_V6 + len) }
    }

    #[inline(always)]
    pub(crate) fn without(why: Without) -> Self {
        Self(Self::KNOWN + why as u8)
    }

    /// The number in [`MatchedLength::NUMBERS`].
    #[inline(always)]
    pub(crate) fn number(self) -> u32 {
        self.0.into()
    }

    #[inline(always)]
    pub(crate) fn is_known(self) -> bool {
        self.0 < Self::KNOWN
    }

    #[inline(always)]
    pub(crate) fn is_v4(self) -> bool {
        self.0 < Self::FIRST_V6
    }

    #[inline(always)]
    pub(crate) fn is_v6(self) -> bool {
        (Self::FIRST_V6..Self::KNOWN).contains(&self.0)
    }

    /// The length, which must be one of IPv4.
    #[inline(always)]
    pub(crate) fn v4_len(self) -> u8 {
        self.0
    }

    /// The length, which must be one of IPv6.
    #[inline(always)]
    pub(crate) fn v6_len(self) -> u8 {
        self.0 - Self::FIRST_V6
    }

    #[inline]
    pub(crate) fn get(self) -> Option<Length> {
        match self {
            length if length.is_v4() => Some(Length::V4(length.v4_len())),
            length if length.is_v6() => Some(Length::V6(length.v6_len())),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_reads_back() {
        for len in 0..=32 {
            let length = MatchedLength::new(32, len);
            assert!(length.is_known() && length.is_v4() && !length.is_v6());
            assert_eq!(length.get(), Some(Length::V4(len)));
        }
        for len in 0..=128 {
            let length = MatchedLength::new(128, len);
            assert!(length.is_known() && length.is_v6() && !length.is_v4());
            assert_eq!(length.get(), Some(Length::V6(len)));
        }
        for why in Without::ALL {
            let none = MatchedLength::without(why);
            assert!(!none.is_known() && !none.is_v4() && !none.is_v6() && none.get().is_none());
            assert_eq!(none.number(), MatchedLength::NUMBERS.of(why));
        }
    }
}
