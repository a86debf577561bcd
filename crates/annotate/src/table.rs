//! The tables that annotation looks addresses up in.

use std::marker::PhantomData;
use std::sync::Arc;

use fibula_core::{Addr, FamilyType, Hop, Lookup, PerFamily};
use fibula_fib::{Columns, DatedFib, Fib, IndexedRoutes, OpenFamily, Pod};

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

    /// How many addresses to look up at once, if many more than suit the caches of a CPU: a table on an accelerator
    /// wants about a million. Blocks of rows are then that large, and memory with them. The output is the same.
    ///
    /// Rows of text are read in pieces of 8 MiB then, so those of a pipe that is still being written come late.
    fn batch(&self) -> Option<usize> {
        None
    }

    /// The tables of several dates, if there are any. Each row is then looked up in the table of its time
    /// ([`AnnotateOptions::time`](crate::AnnotateOptions::time)).
    fn dated(&self) -> Option<&DatedFib> {
        None
    }
}

/// One family of a [`LookupTable`].
pub trait LookupFamily<A: Addr>: Send + Sync {
    /// The lookup of hops.
    fn engine(&self) -> &dyn Lookup<A>;

    /// The routes, by number.
    fn routes(&self) -> &IndexedRoutes<A>;

    /// Looks up the numbers of the matching routes; [`Hop::NONE`] if no route matches. The default implementation
    /// searches the routes; a table may have a faster one.
    fn numbers(&self, addrs: &[A], numbers: &mut [Hop])
    where
        A: Pod,
    {
        let routes = self.routes();
        for (&addr, number) in addrs.iter().zip(numbers) {
            *number = routes.matched(addr).map_or(Hop::NONE, |index| Hop::new(index as u32));
        }
    }

    /// Looks up the lengths of the matching prefixes, which is enough to print the prefixes.
    fn lengths(&self, addrs: &[A], lengths: &mut [Hop])
    where
        A: Pod,
    {
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

impl<A: Addr + Pod> LookupFamily<A> for OpenFamily<A> {
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

// A table that several annotators share. The call through the pointer is one for each batch.
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
            fn batch(&self) -> Option<usize> {
                (**self).batch()
            }
            fn dated(&self) -> Option<&DatedFib> {
                (**self).dated()
            }
        }
    )*};
}

shared!(&T, Arc<T>);

/// The families of a table, borrowed.
struct Families<'a>(PhantomData<&'a ()>);

impl<'a> FamilyType for Families<'a> {
    type Of<A: Addr> = &'a dyn LookupFamily<A>;
}

/// The family of a table for an address type.
pub(crate) fn family_of<A: Addr>(table: &dyn LookupTable) -> &dyn LookupFamily<A> {
    *PerFamily::<Families<'_>> { v4: table.v4(), v6: table.v6() }.get::<A>()
}
