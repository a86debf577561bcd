//! The lengths of routes.

use crate::LookupTable;
use crate::columns::answers::{By, Numbering};

/// The family and prefix length of a route, or no route, in one byte, so that a table of them stays in the caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RouteLength(u8);

/// A decoded [`RouteLength`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    V4(u8),
    V6(u8),
}

impl RouteLength {
    const FIRST_V6: u8 = 64;
    pub(super) const NONE: Self = Self(u8::MAX);

    const fn v4(len: u8) -> Self {
        Self(len)
    }

    const fn v6(len: u8) -> Self {
        Self(Self::FIRST_V6 + len)
    }

    #[inline(always)]
    pub(super) fn is_v4(self) -> bool {
        self.0 < Self::FIRST_V6
    }

    #[inline(always)]
    pub(super) fn is_v6(self) -> bool {
        self.0 >= Self::FIRST_V6 && self != Self::NONE
    }

    /// The length, which must be one of IPv4.
    #[inline(always)]
    pub(super) fn v4_len(self) -> u8 {
        self.0
    }

    /// The length, which must be one of IPv6.
    #[inline(always)]
    pub(super) fn v6_len(self) -> u8 {
        self.0 - Self::FIRST_V6
    }

    #[inline]
    pub(super) fn get(self) -> Option<Length> {
        match self {
            Self::NONE => None,
            length if length.is_v4() => Some(Length::V4(length.v4_len())),
            length => Some(Length::V6(length.v6_len())),
        }
    }
}

/// The prefix lengths of routes. With an address that the route covers, the length is enough to write its prefix.
///
/// A table's prefixes do not fit the caches, and fetching them takes longer than all other work. Therefore the prefix
/// is made from the address by clearing the bits beyond the length, and only one byte per route is fetched.
#[derive(Debug)]
pub(in crate::columns) struct Lengths {
    /// Indexed by the route's number.
    pub(super) by_route: Vec<RouteLength>,
}

impl Lengths {
    /// For outputs that do not need routes.
    pub(super) const NO_ROUTES: &'static Self = &Self { by_route: Vec::new() };

    /// The lengths of a table's routes in this numbering.
    pub(in crate::columns) fn new(table: &dyn LookupTable, numbering: Numbering) -> Self {
        let none = |_| RouteLength::NONE;
        let by_route = match numbering.by {
            By::Length => {
                let all = (0..=32).map(RouteLength::v4).chain((0..=128).map(RouteLength::v6));
                numbering.numbers().table(all, none)
            }
            By::Route => {
                let (v4, v6) = (table.v4().routes(), table.v6().routes());
                let v4 = (0..v4.len()).map(|route| RouteLength::v4(v4.get(route).prefix.len()));
                let v6 = (0..v6.len()).map(|route| RouteLength::v6(v6.get(route).prefix.len()));
                numbering.numbers().table(v4.chain(v6), none)
            }
        };
        Self { by_route }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_reads_back() {
        for len in 0..=32 {
            let length = RouteLength::v4(len);
            assert!(length.is_v4() && !length.is_v6());
            assert_eq!(length.get(), Some(Length::V4(len)));
        }
        for len in 0..=128 {
            let length = RouteLength::v6(len);
            assert!(length.is_v6() && !length.is_v4());
            assert_eq!(length.get(), Some(Length::V6(len)));
        }
        let none = RouteLength::NONE;
        assert!(!none.is_v4() && !none.is_v6() && none.get().is_none());
    }
}
