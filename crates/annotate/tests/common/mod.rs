//! A small table, and linear scans as its engines: independent of the table's own matching.
#![allow(dead_code, reason = "not every test uses all of it")]

use std::sync::Arc;

use fibula_annotate::{
    AnnotateError, AnnotateOptions, Annotator, LogFormat, LookupFamily, LookupTable, Summary,
};
use fibula_core::{
    Addr, Attributes, Change, FamilyType, Hop, Lookup, Memory, PerFamily, Prefix, Routes, Update,
    Value,
};
use fibula_fib::{Fib, FibOptions};
use fibula_rib::{BuilderOptions, ColumnKind, Columns, IndexedRoutes, Pod, TableBuilder};

/// Prefixes with AS and organisation.
pub const TABLE: &[(&str, Option<u64>, &str)] = &[
    ("10.0.0.0/8", Some(64500), "Example, Inc."),
    ("10.1.0.0/16", Some(64501), "He said \"no\""),
    ("10.1.2.0/24", None, "tab\there"),
    ("192.0.2.0/24", Some(64500), "Example, Inc."),
    ("2001:db8::/32", Some(64502), "Zoë"),
    ("2001:db8:1::/48", Some(64503), ""),
];

/// What finds routes and lengths.
#[derive(Clone, Copy, Debug)]
pub enum SearchMethod {
    /// The trait's own search.
    Search,
    /// Scans.
    Scans,
}

/// A [`Scan`] for each family.
pub struct Scans;

impl FamilyType for Scans {
    type Of<A: Addr> = Scan<A>;
}

#[derive(Clone)]
pub struct World {
    pub columns: Columns,
    families: PerFamily<Scans>,
}

impl World {
    /// The same table, open.
    pub fn fib(&self) -> Fib {
        let (v4, v6) = (self.families.v4.list.clone(), self.families.v6.list.clone());
        let columns = self.columns.clone();
        let table = fibula_rib::Table { columns, ..fibula_rib::Table::from_routes(v4, v6) };
        Fib::of_table(table, &FibOptions::default()).unwrap()
    }

    pub fn with_ways(&self, ways: SearchMethod) -> Self {
        let (v4, v6) = (self.families.v4.clone(), self.families.v6.clone());
        let families = PerFamily { v4: Scan { ways, ..v4 }, v6: Scan { ways, ..v6 } };
        Self { columns: self.columns.clone(), families }
    }

    pub fn family<A: Addr>(&self) -> &Scan<A> {
        self.families.get::<A>()
    }
}

impl LookupTable for World {
    fn columns(&self) -> &Columns {
        &self.columns
    }
    fn v4(&self) -> &dyn LookupFamily<u32> {
        &self.families.v4
    }
    fn v6(&self) -> &dyn LookupFamily<u128> {
        &self.families.v6
    }
}

impl World {
    pub fn new() -> Self {
        Self::with(TABLE)
    }

    pub fn with(table: &[(&str, Option<u64>, &str)]) -> Self {
        let mut builder = TableBuilder::new(BuilderOptions::default());
        let columns = [("asn".into(), ColumnKind::Int), ("org".into(), ColumnKind::Str)];
        builder.begin_source("test", "text", &columns, false, None);
        for &(prefix, asn, org) in table {
            let values = [asn.map_or(Value::Null, Value::Int), Value::Str(org)];
            let change = Change::Announce(Attributes::Values(&values));
            builder.apply(&Update::new(prefix.parse().unwrap(), change));
        }
        let table = builder.finish().unwrap();
        let families = PerFamily { v4: Scan::new(table.v4), v6: Scan::new(table.v6) };
        Self { columns: table.columns, families }
    }

    pub fn run(
        &self,
        (format, options): (LogFormat, AnnotateOptions),
        input: &[u8],
    ) -> (String, Result<Summary, AnnotateError>) {
        let mut output = Vec::new();
        let result = self.run_to((format, options), input, &mut output);
        (String::from_utf8(output).unwrap(), result)
    }

    pub fn run_to(
        &self,
        (format, options): (LogFormat, AnnotateOptions),
        input: impl std::io::Read,
        output: impl std::io::Write,
    ) -> Result<Summary, AnnotateError> {
        Annotator::new(Arc::new(self.clone()), format, &options)?.annotate(input, output)
    }
}

/// A linear scan over the routes.
#[derive(Clone)]
pub struct Scan<A: Addr> {
    list: Routes<A>,
    routes: IndexedRoutes<A>,
    ways: SearchMethod,
}

impl<A: Addr + Pod> Scan<A> {
    pub fn new(list: Routes<A>) -> Self {
        Self { routes: IndexedRoutes::new(&list), list, ways: SearchMethod::Search }
    }

    pub fn matched(&self, addr: A) -> Option<(Prefix<A>, Hop)> {
        self.longest(addr).map(|(_, prefix, hop)| (prefix, hop))
    }

    fn longest(&self, addr: A) -> Option<(usize, Prefix<A>, Hop)> {
        let numbered = self.list.iter().enumerate();
        let covering = numbered.filter(|(_, route)| route.prefix.contains(addr));
        let longest = covering.max_by_key(|(_, route)| route.prefix.len());
        longest.map(|(number, route)| (number, route.prefix, route.hop))
    }
}

impl<A: Addr + Pod> LookupFamily<A> for Scan<A> {
    fn engine(&self) -> &dyn Lookup<A> {
        self
    }

    fn routes(&self) -> &IndexedRoutes<A> {
        &self.routes
    }

    fn numbers(&self, addrs: &[A], numbers: &mut [Hop]) {
        match self.ways {
            SearchMethod::Search => Searched(&self.routes).numbers(addrs, numbers),
            SearchMethod::Scans => addrs.iter().zip(numbers).for_each(|(&addr, number)| {
                let found = self.longest(addr);
                *number = found.map_or(Hop::NONE, |(number, ..)| Hop::new(number as u32));
            }),
        }
    }

    fn lengths(&self, addrs: &[A], lengths: &mut [Hop]) {
        match self.ways {
            SearchMethod::Search => Searched(&self.routes).lengths(addrs, lengths),
            SearchMethod::Scans => addrs.iter().zip(lengths).for_each(|(&addr, length)| {
                let found = self.longest(addr);
                *length = found.map_or(Hop::NONE, |(_, prefix, _)| Hop::new(prefix.len().into()));
            }),
        }
    }
}

/// The trait's own ways.
struct Searched<'a, A: Addr + Pod>(&'a IndexedRoutes<A>);

impl<A: Addr + Pod> LookupFamily<A> for Searched<'_, A> {
    fn engine(&self) -> &dyn Lookup<A> {
        self.0
    }
    fn routes(&self) -> &IndexedRoutes<A> {
        self.0
    }
}

impl<A: Addr + Pod> Lookup<A> for Scan<A> {
    fn lookup(&self, addr: A) -> Hop {
        self.matched(addr).map_or(Hop::NONE, |(_, hop)| hop)
    }

    fn lookup_batch(&self, addrs: &[A], hops: &mut [Hop]) {
        assert_eq!(addrs.len(), hops.len());
        for (addr, hop) in addrs.iter().zip(hops) {
            *hop = self.lookup(*addr);
        }
    }

    fn memory(&self) -> Memory {
        Memory::default()
    }
}
