//! The search tree.

use fibula_core::{Addr, Hop, Prefix, Route, Routes};
use fibula_rib::Table;

use crate::ExportError;

/// The block of IPv4-mapped addresses, which are IPv4 addresses ([`fibula_core::mapped_v4`]).
const MAPPED: (u128, u8) = (0xffff << 32, 96);

/// Teredo and 6to4: they lead to the IPv4 addresses if the table has no routes for them.
const ALIASES: [(u128, u8); 2] = [(0x2001 << 112, 32), (0x2002 << 112, 16)];

/// The hop of an alias's route. Rows are numbered from 0 on, and the highest is no route.
const ALIAS: Hop = Hop::from_bits(u32::MAX - 1);

/// Where a record of the tree leads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Record {
    /// A node, numbered in the order in which they were made: children before parents.
    Node(u32),
    /// The end of the search: a row, or nothing.
    Leaf(Hop),
}

pub(super) const TOO_MANY_NODES: ExportError =
    ExportError::Limit { what: "nodes of a search tree" };

/// The routes, and those of the aliases.
fn with_aliases(routes: &Routes<u128>) -> Vec<Route<u128>> {
    let alias = |(addr, len)| Some(Route { prefix: Prefix::new(addr, len).ok()?, hop: ALIAS });
    let mapped = alias(MAPPED);
    let is_mapped = |route: &Route<u128>| mapped.is_some_and(|to| to.prefix.covers(route.prefix));
    let free = ALIASES
        .into_iter()
        .filter_map(alias)
        .filter(|to| routes.within(to.prefix).is_empty() && routes.around(to.prefix) == Hop::NONE);
    let mut all: Vec<_> = routes.iter().filter(|route| !is_mapped(route)).collect();
    all.extend(mapped.into_iter().chain(free));
    all.sort_unstable_by_key(|route| route.prefix);
    all
}

/// The search tree.
pub(super) struct Tree {
    /// Children before parents, the root last.
    pub(super) nodes: Vec<[Record; 2]>,
    /// Where the IPv4 addresses are.
    v4: Record,
}

impl Tree {
    /// The tree of both families.
    pub(super) fn of(table: &Table) -> Result<Self, ExportError> {
        let mut tree = Self { nodes: Vec::new(), v4: Record::Leaf(Hop::NONE) };
        let v4: Vec<_> = table.v4.iter().collect();
        tree.v4 = tree.below(&v4, 0, Hop::NONE)?;
        let mut root = tree.v6(&with_aliases(&table.v6), 0, Hop::NONE, tree.v4)?;
        if let Record::Leaf(_) = root {
            root = tree.node(root, root)?;
        }
        debug_assert!(root == Record::Node(tree.nodes.len() as u32 - 1), "the root is made last");
        Ok(tree)
    }

    /// A node; none is needed if both sides are equal.
    fn join(&mut self, left: Record, right: Record) -> Result<Record, ExportError> {
        match (left, right) {
            (Record::Leaf(a), Record::Leaf(b)) if a == b => Ok(left),
            _ => self.node(left, right),
        }
    }

    fn node(&mut self, left: Record, right: Record) -> Result<Record, ExportError> {
        let number = u32::try_from(self.nodes.len()).map_err(|_| TOO_MANY_NODES)?;
        self.nodes.push([left, right]);
        Ok(Record::Node(number))
    }

    /// What the first `depth` bits of these routes, which they share, lead to; `around` is the hop of
    /// the addresses there that none of them covers.
    fn below<A: Addr>(
        &mut self,
        routes: &[Route<A>],
        depth: u8,
        around: Hop,
    ) -> Result<Record, ExportError> {
        let (around, routes) = here(routes, depth, around);
        if routes.is_empty() {
            return Ok(if around == ALIAS { self.v4 } else { Record::Leaf(around) });
        }
        let (zeros, ones) = split(routes, depth);
        let left = self.below(zeros, depth + 1, around)?;
        let right = self.below(ones, depth + 1, around)?;
        self.join(left, right)
    }

    /// As [`Tree::below`] for the path of zeros that leads to the IPv4 addresses.
    fn v6(
        &mut self,
        routes: &[Route<u128>],
        depth: u8,
        around: Hop,
        v4: Record,
    ) -> Result<Record, ExportError> {
        if depth == 96 {
            return Ok(v4);
        }
        let (around, routes) = here(routes, depth, around);
        let (zeros, ones) = split(routes, depth);
        // The right side first: the node on the left side of the root must be the one made last.
        let right = self.below(ones, depth + 1, around)?;
        let left = self.v6(zeros, depth + 1, around, v4)?;
        self.join(left, right)
    }
}

/// Takes the route that ends at this depth, if there is one.
fn here<A: Addr>(routes: &[Route<A>], depth: u8, around: Hop) -> (Hop, &[Route<A>]) {
    match routes.split_first() {
        Some((route, rest)) if route.prefix.len() == depth => (route.hop, rest),
        _ => (around, routes),
    }
}

/// Those whose next bit is 0, and those whose next bit is 1.
fn split<A: Addr>(routes: &[Route<A>], depth: u8) -> (&[Route<A>], &[Route<A>]) {
    routes.split_at(routes.partition_point(|route: &Route<A>| !route.prefix.addr().bit(depth)))
}
