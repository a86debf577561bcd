//! A small table, and a linear scan as its engine: independent of the snapshot's own matching.
#![allow(dead_code, reason = "not every test uses all of it")]

use fibula_annotate::{AnnotateError, AnnotateOptions, Annotator, Summary};
use fibula_core::{Addr, Attributes, Change, Hop, Lookup, Memory, Prefix, Routes, Update, Value};
use fibula_rib::{
    BuilderOptions, ColumnKind, EnginePart, Snapshot, StoredFamily, TableBuilder, to_bytes,
};

/// Prefixes with AS and organisation.
pub const TABLE: &[(&str, Option<u64>, &str)] = &[
    ("10.0.0.0/8", Some(64500), "Example, Inc."),
    ("10.1.0.0/16", Some(64501), "He said \"no\""),
    ("10.1.2.0/24", None, "tab\there"),
    ("192.0.2.0/24", Some(64500), "Example, Inc."),
    ("2001:db8::/32", Some(64502), "Zoë"),
    ("2001:db8:1::/48", Some(64503), ""),
];

pub struct World {
    pub snapshot: Snapshot,
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
        let bytes = to_bytes(&table, &EnginePart::none(), &EnginePart::none()).unwrap();
        Self { snapshot: Snapshot::from_bytes(bytes).unwrap() }
    }

    pub fn run(
        &self,
        options: AnnotateOptions,
        input: &[u8],
    ) -> (String, Result<Summary, AnnotateError>) {
        let mut output = Vec::new();
        let result = self.run_to(options, input, &mut output);
        (String::from_utf8(output).unwrap(), result)
    }

    pub fn run_to(
        &self,
        options: AnnotateOptions,
        input: impl std::io::Read,
        output: impl std::io::Write,
    ) -> Result<Summary, AnnotateError> {
        let (v4, v6) = (Scan::<u32>::new(&self.snapshot), Scan::<u128>::new(&self.snapshot));
        Annotator::new(&self.snapshot, &v4, &v6, options)?.annotate(input, output)
    }
}

/// A linear scan over the routes.
pub struct Scan<A: Addr>(Routes<A>);

impl<A: StoredFamily> Scan<A> {
    pub fn new(snapshot: &Snapshot) -> Self {
        let stored = snapshot.family::<A>();
        Self((0..stored.len()).map(|i| stored.get(i)).collect())
    }

    pub fn matched(&self, addr: A) -> Option<(Prefix<A>, Hop)> {
        let covering = self.0.iter().filter(|route| route.prefix.contains(addr));
        covering.max_by_key(|route| route.prefix.len()).map(|route| (route.prefix, route.hop))
    }
}

impl<A: StoredFamily> Lookup<A> for Scan<A> {
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

/// A linear scan that answers with the numbers of routes, or with their lengths.
pub struct RouteScan<A: Addr> {
    prefixes: Vec<Prefix<A>>,
    lengths: bool,
}

impl<A: StoredFamily> RouteScan<A> {
    pub fn new(snapshot: &Snapshot) -> Self {
        let stored = snapshot.family::<A>();
        let prefixes = (0..stored.len()).map(|i| stored.get(i).prefix).collect();
        Self { prefixes, lengths: false }
    }

    pub fn of_lengths(snapshot: &Snapshot) -> Self {
        Self { lengths: true, ..Self::new(snapshot) }
    }
}

impl<A: Addr> Lookup<A> for RouteScan<A> {
    fn lookup(&self, addr: A) -> Hop {
        let covering = (0..self.prefixes.len()).filter(|&i| self.prefixes[i].contains(addr));
        covering.max_by_key(|&i| self.prefixes[i].len()).map_or(Hop::NONE, |i| {
            Hop::new(if self.lengths { self.prefixes[i].len().into() } else { i as u32 })
        })
    }

    fn lookup_batch(&self, addrs: &[A], hops: &mut [Hop]) {
        for (addr, hop) in addrs.iter().zip(hops) {
            *hop = self.lookup(*addr);
        }
    }

    fn memory(&self) -> Memory {
        Memory::default()
    }
}
