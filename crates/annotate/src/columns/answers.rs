//! What addresses found, as numbers by which values are found with one load.

use fibula_core::Hop;

use crate::LookupTable;
use crate::table::TableAddr;

/// Why an address, or a cell without one, has no row or route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Without {
    /// No route covers the address.
    Unmatched,
    /// A null, or text without anything in it.
    Empty,
    /// Something that is not an address.
    Unparsable,
    /// Nothing was looked up: of several dates, there is no table for the row's time.
    Untimed,
}

impl Without {
    const ALL: [Self; 4] = [Self::Unmatched, Self::Empty, Self::Unparsable, Self::Untimed];
}

/// The numbers of rows, or of routes, and behind them one for each reason to have none. A table with
/// a value for each number needs no branch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    known: u32,
}

impl Numbers {
    /// Of so many rows or routes.
    pub(super) fn new(known: u32) -> Self {
        Self { known }
    }

    /// The number of what has none.
    #[inline]
    pub(super) fn of(self, without: Without) -> u32 {
        self.known + without as u32
    }

    /// The number of a hop: its row, or that of what is unmatched. `Hop::NONE` is the largest hop.
    #[inline]
    pub(super) fn of_hop(self, hop: Hop) -> u32 {
        hop.to_bits().min(self.of(Without::Unmatched))
    }

    /// Whether it is the number of a row or route.
    #[inline]
    pub(super) fn is_known(self, number: u32) -> bool {
        number < self.known
    }

    /// What a number that is not known stands for.
    pub(super) fn without(self, number: u32) -> Option<Without> {
        Without::ALL.into_iter().find(|&without| self.of(without) == number)
    }

    /// A value for each number.
    pub(super) fn table<T>(
        self,
        known: impl Iterator<Item = T>,
        without: impl Fn(Without) -> T,
    ) -> Vec<T> {
        let table: Vec<T> = known.chain(Without::ALL.into_iter().map(without)).collect();
        debug_assert_eq!(table.len(), self.known as usize + Without::ALL.len());
        table
    }
}

/// How routes are numbered: those of IPv4, then those of IPv6.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbering {
    v4: u32,
    v6: u32,
    pub(super) by: By,
}

/// What has a number of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// Every route, as they are stored.
    Route,
    /// Every length of a route: all that it takes to write its prefix.
    Length,
}

impl Numbering {
    /// By route, as the table has them.
    pub(super) fn routes(table: &dyn LookupTable) -> Self {
        let (v4, v6) = (table.v4().routes().len(), table.v6().routes().len());
        Self { v4: v4 as u32, v6: v6 as u32, by: By::Route }
    }

    /// By length.
    pub(super) fn lengths() -> Self {
        Self { v4: 33, v6: 129, by: By::Length }
    }

    pub(super) fn numbers(self) -> Numbers {
        Numbers::new(self.v4 + self.v6)
    }

    /// The number of a route of this family, whose number among those of the family is a hop.
    #[inline]
    pub(super) fn of_family<A: TableAddr>(self) -> impl Fn(Hop) -> u32 {
        let (first, routes) = if A::BITS == 32 { (0, self.v4) } else { (self.v4, self.v6) };
        let none = self.numbers().of(Without::Unmatched);
        move |hop| if hop.to_bits() < routes { first + hop.to_bits() } else { none }
    }
}

/// What a block of addresses found.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// Rows of the table's columns.
    pub(super) rows: Vec<u32>,
    /// Its routes as they are numbered, if they were asked for.
    pub(super) routes: Vec<u32>,
    /// The addresses of rows that have an IPv4 route, then; anything for the others.
    pub(super) v4: Vec<u32>,
    /// The same for IPv6.
    pub(super) v6: Vec<u128>,
    /// The number of the table that each row was looked up in, where there are several dates.
    pub(super) dates: Vec<u16>,
}

impl Answers {
    /// Adds those of another block.
    pub(super) fn extend(&mut self, other: &Self) {
        self.rows.extend(&other.rows);
        self.routes.extend(&other.routes);
        self.v4.extend(&other.v4);
        self.v6.extend(&other.v6);
    }
}
