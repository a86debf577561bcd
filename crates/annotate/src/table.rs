//! The tables that annotation looks addresses up in.

use std::sync::Arc;

use fibula_core::{Addr, Hop, Lookup};
use fibula_fib::{
    Ask, Columns, DatedFamily, DatedFib, Fib, FibFamily, IndexedRoutes, OpenFamily, Pod,
};

/// A table for annotation. Every [`Fib`] is one, except a generation of a live table.
pub trait LookupTable: Send + Sync {
    /// The value columns, whose rows are numbered by hops.
    fn columns(&self) -> &Columns;

    /// The IPv4 routes and their lookups.
    fn v4(&self) -> &dyn LookupFamily<u32>;

    /// The IPv6 routes and their lookups.
    fn v6(&self) -> &dyn LookupFamily<u128>;

    /// Whether hops are row numbers in [`LookupTable::columns`]. A generation of a live table has attribute sets
    /// instead, and cannot be used for annotation.
    fn has_columns(&self) -> bool {
        true
    }

    /// The tables of several dates, if there are any. Each row is then looked up in the table of its time
    /// ([`AnnotateOptions::time`](crate::AnnotateOptions::time)).
    fn dated(&self) -> Option<&DatedFib> {
        None
    }
}

/// One family of a [`LookupTable`].
pub trait LookupFamily<A: Addr + Pod>: Send + Sync {
    /// The lookup of hops.
    fn engine(&self) -> &dyn Lookup<A>;

    /// The routes, by number.
    fn routes(&self) -> &IndexedRoutes<A>;

    /// Looks up the numbers of the matching routes; [`Hop::NONE`] if no route matches. The default implementation searches
    /// the routes; a table may have a faster one.
    fn numbers(&self, addrs: &[A], numbers: &mut [Hop]) {
        let routes = self.routes();
        for (&addr, number) in addrs.iter().zip(numbers) {
            *number = routes.matched(addr).map_or(Hop::NONE, |index| Hop::new(index as u32));
        }
    }

    /// Looks up the lengths of the matching prefixes, which is enough to print the prefixes.
    fn lengths(&self, addrs: &[A], lengths: &mut [Hop]) {
        let routes = self.routes();
        for (&addr, length) in addrs.iter().zip(lengths) {
            *length = routes
                .matched(addr)
                .map_or(Hop::NONE, |index| Hop::new(routes.get(index).prefix.len().into()));
        }
    }
}

impl LookupTable for Fib {
    fn columns(&self) -> &Columns {
        Fib::columns(self)
    }
    fn v4(&self) -> &dyn LookupFamily<u32> {
        self.family::<u32>()
    }
    fn v6(&self) -> &dyn LookupFamily<u128> {
        self.family::<u128>()
    }
    fn has_columns(&self) -> bool {
        !self.is_live()
    }
}

impl LookupTable for DatedFib {
    fn columns(&self) -> &Columns {
        DatedFib::columns(self)
    }
    fn v4(&self) -> &dyn LookupFamily<u32> {
        self.family::<u32>()
    }
    fn v6(&self) -> &dyn LookupFamily<u128> {
        self.family::<u128>()
    }
    fn dated(&self) -> Option<&DatedFib> {
        Some(self)
    }
}

impl<A: FibFamily> LookupFamily<A> for OpenFamily<A> {
    fn engine(&self) -> &dyn Lookup<A> {
        OpenFamily::engine(self)
    }
    fn routes(&self) -> &IndexedRoutes<A> {
        OpenFamily::routes(self)
    }
    fn numbers(&self, addrs: &[A], numbers: &mut [Hop]) {
        OpenFamily::numbers(self, addrs, numbers);
    }
    fn lengths(&self, addrs: &[A], lengths: &mut [Hop]) {
        OpenFamily::lengths(self, addrs, lengths);
    }
}

macro_rules! shared {
    ($($pointer:ty),*) => {$(
        impl<T: LookupTable + ?Sized> LookupTable for $pointer {
            fn columns(&self) -> &Columns {
                (**self).columns()
            }
            fn v4(&self) -> &dyn LookupFamily<u32> {
                (**self).v4()
            }
            fn v6(&self) -> &dyn LookupFamily<u128> {
                (**self).v6()
            }
            fn has_columns(&self) -> bool {
                (**self).has_columns()
            }
            fn dated(&self) -> Option<&DatedFib> {
                (**self).dated()
            }
        }
    )*};
}

shared!(&T, Arc<T>);

/// The family of a table for an address type.
pub(crate) trait TableAddr: DatedFamily {
    fn in_table(table: &dyn LookupTable) -> &dyn LookupFamily<Self>;

    /// Looks up the numbers of the matching routes, or with `by_length` the lengths of their prefixes.
    fn routes_of(table: &dyn LookupTable, by_length: bool, addrs: &[Self], found: &mut [Hop]) {
        let family = Self::in_table(table);
        if by_length { family.lengths(addrs, found) } else { family.numbers(addrs, found) }
    }

    /// Looks up the hops of addresses, each at its date; [`Hop::NONE`] if no route matches.
    fn hops_at(
        table: &DatedFib,
        addrs: &[Self],
        dates: impl Iterator<Item = u16>,
        hops: &mut [Hop],
    ) {
        found_at(table, addrs, dates, hops, |(row, _)| row);
    }

    /// Like `routes_of`, but looks up each address at its date.
    fn routes_at(
        table: &DatedFib,
        by_length: bool,
        addrs: &[Self],
        dates: impl Iterator<Item = u16>,
        found: &mut [Hop],
    ) {
        if !by_length {
            table.family::<Self>().numbers(addrs, found);
            return table.of_dates::<Self>(found, dates);
        }
        found_at(table, addrs, dates, found, |(_, len)| Hop::new(len.into()));
    }
}

/// Looks up each address at its date. `of` selects the result from the row and the prefix length.
fn found_at<A: TableAddr>(
    table: &DatedFib,
    addrs: &[A],
    mut dates: impl Iterator<Item = u16>,
    hops: &mut [Hop],
    of: impl Fn((Hop, u8)) -> Hop,
) {
    table.family::<A>().engine().lookup_batch(addrs, hops);
    let ask = table.timelines::<A>().ask();
    for hops in hops.chunks_mut(Ask::AT_ONCE) {
        ask.fetch(hops);
        for (hop, date) in hops.iter_mut().zip(&mut dates) {
            *hop = ask.find(*hop, date).map_or(Hop::NONE, &of);
        }
    }
}

impl TableAddr for u32 {
    fn in_table(table: &dyn LookupTable) -> &dyn LookupFamily<Self> {
        table.v4()
    }
}

impl TableAddr for u128 {
    fn in_table(table: &dyn LookupTable) -> &dyn LookupFamily<Self> {
        table.v6()
    }
}
