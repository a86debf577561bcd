//! How often values and prefixes occur.

use std::cmp::Reverse;

use fibula_core::{Addr, AnyPrefix, Prefix, Value};
use fibula_fib::{Columns, Pod};

use super::answers::{Numbers, RouteNumbers};
use crate::Top;
use crate::added::{Added, Addition, added_name};
use crate::table::{LookupTable, family_of};

/// How often rows and routes were hit, for one address column. Memory is bounded by the table, not by
/// the input.
#[derive(Default)]
pub(crate) struct Hits {
    rows: Vec<u64>,
    /// By number in [`RouteNumbers`]; empty if no prefixes are added.
    routes: Vec<u64>,
}

impl Hits {
    pub(crate) fn new(table: &dyn LookupTable, prefixes: bool) -> Self {
        let routes = RouteNumbers::new(table).numbers();
        Self {
            rows: vec![0; Numbers::rows(table).len()],
            routes: if prefixes { vec![0; routes.len()] } else { Vec::new() },
        }
    }

    /// Counts rows by number, and also the reasons for none, which are not reported.
    #[inline]
    pub(crate) fn rows(&mut self, rows: impl Iterator<Item = u32>) {
        count(&mut self.rows, rows);
    }

    /// Counts routes by number, as `rows` does, if prefixes are added.
    #[inline]
    pub(crate) fn routes(&mut self, routes: impl Iterator<Item = u32>) {
        if !self.routes.is_empty() {
            count(&mut self.routes, routes);
        }
    }

    /// Adds the counts of `other`.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (ours, theirs) in [(&mut self.rows, &other.rows), (&mut self.routes, &other.routes)] {
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
        let rows = self.rows.iter().take(columns.len() as usize).enumerate();
        for (row, &count) in rows.filter(|(_, count)| **count > 0) {
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
        fn family<A: Addr + Pod>(
            table: &dyn LookupTable,
            counts: &[u64],
            any: fn(Prefix<A>) -> AnyPrefix,
        ) -> Vec<(Ranked<'static>, u64)> {
            let routes = family_of::<A>(table).routes();
            let hit = counts.iter().enumerate().filter(|(_, count)| **count > 0);
            hit.map(|(i, &count)| (Ranked::Prefix(any(routes.get(i).prefix)), count)).collect()
        }
        // The counts of the reasons for no route are the last.
        let (v4, v6) = (table.v4().routes().len(), table.v6().routes().len());
        let (v4, v6) = (self.routes.get(..v4), self.routes.get(v4..v4 + v6));
        let mut found = family(table, v4.unwrap_or_default(), AnyPrefix::V4);
        found.extend(family(table, v6.unwrap_or_default(), AnyPrefix::V6));
        found
    }
}

fn count(counts: &mut [u64], numbers: impl Iterator<Item = u32>) {
    for number in numbers {
        if let Some(count) = counts.get_mut(number as usize) {
            *count += 1;
        }
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
