//! What annotation counted.

use std::cmp::Reverse;

use fibula_core::{Addr, AnyPrefix, Hop, Prefix, Value};
use fibula_fib::Columns;

use crate::columns::values::Answers;
use crate::render::Added;
use crate::table::{Family, Table};

/// What was annotated, in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Data rows: lines, records or packets; not headers, comments and empty lines.
    pub rows: u64,
    /// Addresses looked up; a row has one for each address column, less those below.
    pub addresses: u64,
    /// Of these, IPv4 addresses, v4-mapped IPv6 ones included.
    pub v4: u64,
    /// Addresses that a route covers.
    pub matched: u64,
    /// Addresses that no route covers.
    pub unmatched: u64,
    /// Cells with text that is not an address.
    pub unparsable: u64,
    /// Cells without text: empty, missing, `null`, packets without addresses.
    pub empty: u64,
    /// Damaged records: rows of another width than the first, lines that are not JSON objects, damage
    /// in a capture.
    pub damaged: u64,
    /// Packets that were captured too short to tell addresses or ports.
    pub truncated: u64,
    /// The first that is unparsable or damaged, with its line.
    pub first_fault: Option<String>,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Whether the reader of the output went away before the end (a closed pipe). The counts end there.
    pub output_closed: bool,
    /// The most frequent values, by added column in output order.
    pub top: Vec<Top>,
}

/// The most frequent values of an added column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Top {
    /// The added column's name.
    pub column: String,
    /// Values with the number of addresses that have them, most frequent first.
    pub values: Vec<(String, u64)>,
    /// Number of distinct values that occurred.
    pub distinct: usize,
}

/// How often rows and routes were hit, for one address column. Memory is bounded by the table, not by
/// the input.
#[derive(Default)]
pub(crate) struct Hits {
    rows: Vec<u64>,
    v4_routes: Vec<u64>,
    v6_routes: Vec<u64>,
}

impl Hits {
    pub(crate) fn new(table: &dyn Table, prefixes: bool) -> Self {
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

    /// All answers of a block of columns.
    pub(crate) fn block(&mut self, table: &dyn Table, answers: &Answers) {
        for &row in &answers.rows {
            if let Some(count) = self.rows.get_mut(row as usize) {
                *count += 1;
            }
        }
        let v4 = table.v4().routes().len();
        for &route in &answers.routes {
            let route = route as usize;
            if route < v4 { self.route::<u32>(route) } else { self.route::<u128>(route - v4) }
        }
    }

    /// Adds what another one counted.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (ours, theirs) in [
            (&mut self.rows, &other.rows),
            (&mut self.v4_routes, &other.v4_routes),
            (&mut self.v6_routes, &other.v6_routes),
        ] {
            ours.iter_mut().zip(theirs).for_each(|(ours, theirs)| *ours += theirs);
        }
    }

    /// The most frequent values of an added column.
    pub(crate) fn top(&self, table: &dyn Table, added: Added, column: String, limit: usize) -> Top {
        let mut found = match added {
            Added::Prefix => self.prefixes(table),
            Added::Value(value) => self.values(table.columns(), value),
        };
        let distinct = found.len();
        // Equal counts in order of value, so that the summary does not depend on the table's order.
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

    fn prefixes<'s>(&self, table: &dyn Table) -> Vec<(Ranked<'s>, u64)> {
        fn family<A: Family>(
            table: &dyn Table,
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

/// Something that occurred, in its natural order.
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
