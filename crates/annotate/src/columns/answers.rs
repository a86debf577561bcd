//! The results of lookups, as numbers that index the added values with a single load.

use fibula_core::Hop;

use crate::LookupTable;
use crate::table::TableAddr;

/// Why an address, or a cell without one, has no row or route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Without {
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
    const ALL: [Self; 4] = [Self::Unmatched, Self::Empty, Self::Unparsable, Self::Untimed];
}

/// The numbers of rows or routes, followed by one number for each reason to have none. With a value for each of them, a
/// lookup by number needs no branch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    known: u32,
}

impl Numbers {
    /// The numbers for `known` rows or routes.
    pub(super) fn new(known: u32) -> Self {
        Self { known }
    }

    /// The number of an address or cell without a row or route.
    #[inline]
    pub(super) fn of(self, without: Without) -> u32 {
        self.known + without as u32
    }

    /// The number of a hop: its row, or the number of [`Without::Unmatched`]. `Hop::NONE` is the largest hop.
    #[inline]
    pub(super) fn of_hop(self, hop: Hop) -> u32 {
        hop.to_bits().min(self.of(Without::Unmatched))
    }

    /// Whether the number is that of a row or route.
    #[inline]
    pub(super) fn is_known(self, number: u32) -> bool {
        number < self.known
    }

    /// The reason that a number stands for, if it is not the number of a row or route.
    pub(super) fn without(self, number: u32) -> Option<Without> {
        Without::ALL.into_iter().find(|&without| self.of(without) == number)
    }

    /// A table with a value for each number.
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

/// How routes are numbered: IPv4 routes first, then IPv6 routes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbering {
    v4: u32,
    v6: u32,
    pub(super) by: By,
}

/// Whether routes or prefix lengths are numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// Each route has a number, in the order in which routes are stored.
    Route,
    /// Each prefix length has a number. With the address, the length is enough to write the prefix.
    Length,
}

impl Numbering {
    /// Numbers the routes of a table.
    pub(super) fn routes(table: &dyn LookupTable) -> Self {
        let (v4, v6) = (table.v4().routes().len(), table.v6().routes().len());
        Self { v4: v4 as u32, v6: v6 as u32, by: By::Route }
    }

    /// Numbers the prefix lengths.
    pub(super) fn lengths() -> Self {
        Self { v4: 33, v6: 129, by: By::Length }
    }

    pub(super) fn numbers(self) -> Numbers {
        Numbers::new(self.v4 + self.v6)
    }

    /// Converts a number within the family, which is given as a hop, to the number in this numbering.
    #[inline]
    pub(super) fn of_family<A: TableAddr>(self) -> impl Fn(Hop) -> u32 {
        let (first, routes) = if A::BITS == 32 { (0, self.v4) } else { (self.v4, self.v6) };
        let none = self.numbers().of(Without::Unmatched);
        move |hop| if hop.to_bits() < routes { first + hop.to_bits() } else { none }
    }
}

/// The results of looking up a block of addresses.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// The numbers of the rows in the table's columns.
    pub(super) rows: Vec<u32>,
    /// The numbers of the routes in the [`Numbering`], if they were requested.
    pub(super) routes: Vec<u32>,
    /// If routes were requested: the address of each row with an IPv4 route. Other rows have arbitrary values.
    pub(super) v4: Vec<u32>,
    /// The same for IPv6.
    pub(super) v6: Vec<u128>,
    /// With several dates, the number of the table in which each row was looked up.
    pub(super) dates: Vec<u16>,
}

impl Answers {
    /// Appends the results of another block.
    pub(super) fn extend(&mut self, other: &Self) {
        self.rows.extend(&other.rows);
        self.routes.extend(&other.routes);
        self.v4.extend(&other.v4);
        self.v6.extend(&other.v6);
    }
}
