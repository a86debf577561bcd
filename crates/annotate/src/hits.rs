//! How often values and prefixes occur.

use std::cmp::Reverse;

use fibula_core::{Addr, AnyPrefix, Hop, Prefix, Value};
use fibula_fib::Columns;

use crate::Top;
use crate::added::{Added, Addition, added_name};
use crate::table::{LookupTable, TableAddr};

/// How often rows and routes were hit, for one address column. Memory is bounded by the table, not by
/// the input.
#[derive(Default)]
pub(crate) struct Hits {
    rows: Vec<u64>,
    v4_routes: Vec<u64>,
    v6_routes: Vec<u64>,
}

impl Hits {
    pub(crate) fn new(table: &dyn LookupTable, prefixes: bool) -> Self {
        let routes = |len: usize| if prefixes { vec![0; len] } else { Vec::new() };
        Self {
            rows: vec![0; table.columns().len() as usize],
            v4_routes: routes(table.v4().routes().len()),
            v6_routes: routes(table.v6().routes().len()),
        }
    }

    #[inline]
    pub(crate) fn hop(&mut self, hop: Hop) {
        if let Some(row) = hop.index()
            && let Some(count) = self.rows.get_mut(row as usize)
        {
            *count += 1;
        }
    }

    #[inline]
    pub(crate) fn route<A: Addr>(&mut self, index: usize) {
        let routes = if A::BITS == 32 { &mut self.v4_routes } else { &mut self.v6_routes };
        if let Some(count) = routes.get_mut(index) {
            *count += 1;
        }
    }

    /// Counts rows by number. Numbers beyond the last row stand for addresses without a row and are ignored.
    pub(crate) fn rows(&mut self, rows: &[u32]) {
        for &row in rows {
            if let Some(count) = self.rows.get_mut(row as usize) {
                *count += 1;
            }
        }
    }

    /// Counts routes by number, IPv4 routes first. Numbers beyond the last route stand for addresses without a route and
    /// are ignored.
    pub(crate) fn routes(&mut self, routes: &[u32]) {
        let v4 = self.v4_routes.len();
        for &route in routes {
            let route = route as usize;
            if route < v4 { self.route::<u32>(route) } else { self.route::<u128>(route - v4) }
        }
    }

    /// Adds the counts of `other`.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (ours, theirs) in [
            (&mut self.rows, &other.rows),
            (&mut self.v4_routes, &other.v4_routes),
            (&mut self.v6_routes, &other.v6_routes),
        ] {
            ours.iter_mut().zip(theirs).for_each(|(ours, theirs)| *ours += theirs);
        }
    }

    /// The most frequent values of each column that is added for the address column `name`, except lists.
    pub(crate) fn top(
        &self,
        table: &dyn LookupTable,
        additions: &[Addition],
        name: &str,
        limit: usize,
    ) -> impl Iterator<Item = Top> {
        additions.iter().filter_map(move |addition| {
            let found = match addition.what {
                Added::Prefix => self.prefixes(table),
                Added::Value(value) => self.values(table.columns(), value),
                Added::Covering => return None,
            };
            Some(top(found, added_name(name, &addition.name), limit))
        })
    }

    fn values<'s>(&self, columns: &'s Columns, column: usize) -> Vec<(Ranked<'s>, u64)> {
        let mut counts = vec![0u64; columns.distinct(column)];
        for (row, &count) in self.rows.iter().enumerate().filter(|(_, count)| **count > 0) {
            if let Some(code) = columns.code(column, row as u32)
                && let Some(sum) = counts.get_mut(code as usize)
            {
                *sum += count;
            }
        }
        let value = |code: usize| Ranked::Value(columns.decode(column, code as u32));
        let hit = counts.iter().enumerate().filter(|(_, count)| **count > 0);
        hit.map(|(code, &count)| (value(code), count)).collect()
    }

    fn prefixes<'s>(&self, table: &dyn LookupTable) -> Vec<(Ranked<'s>, u64)> {
        fn family<A: TableAddr>(
            table: &dyn LookupTable,
            counts: &[u64],
            any: fn(Prefix<A>) -> AnyPrefix,
        ) -> Vec<(Ranked<'static>, u64)> {
            let routes = A::in_table(table).routes();
            let hit = counts.iter().enumerate().filter(|(_, count)| **count > 0);
            hit.map(|(i, &count)| (Ranked::Prefix(any(routes.get(i).prefix)), count)).collect()
        }
        let mut found = family(table, &self.v4_routes, AnyPrefix::V4);
        found.extend(family(table, &self.v6_routes, AnyPrefix::V6));
        found
    }
}

/// The `limit` most frequent of the counted values.
fn top(mut found: Vec<(Ranked<'_>, u64)>, column: String, limit: usize) -> Top {
    let distinct = found.len();
    // Equal counts are ordered by value, so that the summary does not depend on the table's order.
    let order = |a: &(Ranked<'_>, u64), b: &(Ranked<'_>, u64)| {
        (Reverse(a.1), a.0).cmp(&(Reverse(b.1), b.0))
    };
    if found.len() > limit && limit > 0 {
        found.select_nth_unstable_by(limit - 1, order);
    }
    found.truncate(limit);
    found.sort_unstable_by(order);
    let values = found.into_iter().map(|(value, count)| (value.text(), count)).collect();
    Top { column, values, distinct }
}

/// A counted value or prefix, in its natural order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Ranked<'s> {
    Value(Value<'s>),
    Prefix(AnyPrefix),
}

impl Ranked<'_> {
    fn text(self) -> String {
        match self {
            Self::Value(Value::Null) => String::new(),
            Self::Value(Value::Int(int)) => int.to_string(),
            Self::Value(Value::Str(text)) => text.to_owned(),
            Self::Prefix(prefix) => prefix.to_string(),
        }
    }
}
