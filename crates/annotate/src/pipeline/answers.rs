//! The results of lookups, as numbers that index the added values with a single load.

use fibula_core::{Addr, AnyPrefix, Hop};
use fibula_fib::prefix_of;

use super::lengths::{Length, MatchedLength};
use crate::LookupTable;

/// Why an address, or a cell without one, has no row or route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Without {
    /// No route covers the address.
    Unmatched,
    /// The cell is null or empty text.
    Empty,
    /// The cell is not an address.
    Unparsable,
    /// The address was not looked up: its row has no time, or one before the first of several tables.
    Untimed,
}

impl Without {
    pub(crate) const ALL: [Self; 4] =
        [Self::Unmatched, Self::Empty, Self::Unparsable, Self::Untimed];
}

/// The numbers of rows or routes, followed by one number for each reason to have none. With a value for each of them, a
/// lookup by number needs no branch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbers {
    known: u32,
}

impl Numbers {
    /// The numbers for `known` rows or routes.
    pub(crate) const fn new(known: u32) -> Self {
        Self { known }
    }

    /// The numbers of a table's rows.
    pub(crate) fn rows(table: &dyn LookupTable) -> Self {
        Self::new(table.columns().len())
    }

    /// How many numbers there are, with those of the reasons.
    pub(crate) fn len(self) -> usize {
        self.known as usize + Without::ALL.len()
    }

    /// The number of an address or cell without a row or route.
    #[inline]
    pub(crate) fn of(self, without: Without) -> u32 {
        self.known + without as u32
    }

    /// The number of a hop: its row, or the number of [`Without::Unmatched`]. `Hop::NONE` is the largest hop.
    #[inline]
    pub(crate) fn of_hop(self, hop: Hop) -> u32 {
        hop.to_bits().min(self.of(Without::Unmatched))
    }

    /// Whether the number is that of a row or route.
    #[inline]
    pub(crate) fn is_known(self, number: u32) -> bool {
        number < self.known
    }

    /// Whether the number is that of an address that no route covers.
    #[inline]
    pub(crate) fn is_unmatched(self, number: u32) -> bool {
        number == self.of(Without::Unmatched)
    }

    /// A table with a value for each number.
    pub(crate) fn table<T>(
        self,
        known: impl Iterator<Item = T>,
        without: impl Fn(Without) -> T,
    ) -> Vec<T> {
        let table: Vec<T> = known.chain(Without::ALL.into_iter().map(without)).collect();
        debug_assert_eq!(table.len(), self.len());
        table
    }
}

/// How routes are numbered: IPv4 routes first, then IPv6 routes, each in the order in which they are stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RouteNumbers {
    v4: u32,
    all: Numbers,
}

impl RouteNumbers {
    pub(crate) fn new(table: &dyn LookupTable) -> Self {
        let (v4, v6) = (table.v4().routes().len(), table.v6().routes().len());
        Self { v4: v4 as u32, all: Numbers::new((v4 + v6) as u32) }
    }

    pub(crate) fn numbers(self) -> Numbers {
        self.all
    }

    /// The number of a family's first route.
    pub(crate) fn first<A: Addr>(self) -> u32 {
        if A::BITS == 32 { 0 } else { self.v4 }
    }
}

/// The results of looking up a block: one for each cell.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    /// The numbers of the rows in the table's columns, if they were requested.
    pub(crate) rows: Vec<u32>,
    /// The lengths of the matched prefixes, if they were requested.
    pub(crate) lengths: Vec<MatchedLength>,
    /// The numbers of the routes in [`RouteNumbers`], if they were requested.
    pub(crate) routes: Vec<u32>,
    /// If lengths or routes were requested: the address of each cell with an IPv4 address. Other cells have arbitrary
    /// values.
    pub(crate) v4: Vec<u32>,
    /// The same for IPv6.
    pub(crate) v6: Vec<u128>,
    /// With several dates, the number of the table in which each cell was looked up.
    pub(crate) dates: Vec<u16>,
}

impl Answers {
    /// Appends the results of another block.
    pub(crate) fn extend(&mut self, other: &Self) {
        self.rows.extend(&other.rows);
        self.lengths.extend(&other.lengths);
        self.routes.extend(&other.routes);
        self.v4.extend(&other.v4);
        self.v6.extend(&other.v6);
    }

    /// The matched prefix of a cell, if lengths were requested.
    #[inline(always)]
    pub(crate) fn prefix(&self, cell: usize) -> Option<AnyPrefix> {
        match self.lengths.get(cell)?.get()? {
            Length::V4(len) => Some(prefix_of(self.v4[cell], len).into()),
            Length::V6(len) => Some(prefix_of(self.v6[cell], len).into()),
        }
    }
}
