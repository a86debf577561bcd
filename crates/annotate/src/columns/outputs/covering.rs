//! Columns of lists: all prefixes that cover an address.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::{ListBuilder, StringBuilder};
use fibula_core::{Addr, AnyPrefix, Hop, Prefix};
use fibula_fib::Pod;

use super::Grow;
use crate::pipeline::answers::{Answers, RouteNumbers};
use crate::table::family_of;
use crate::write::write_prefix;
use crate::{AnnotateError, LookupTable};

/// All prefixes that cover an address, longest first.
pub(super) struct Lists<'a> {
    table: &'a dyn LookupTable,
    lists: ListBuilder<StringBuilder>,
}

impl<'a> Lists<'a> {
    pub(super) fn new(table: &'a dyn LookupTable) -> Self {
        Self { table, lists: ListBuilder::new(StringBuilder::new()) }
    }
}

impl Grow for Lists<'_> {
    fn block(&mut self, answers: &Answers) -> Result<(), AnnotateError> {
        let numbers = RouteNumbers::new(self.table).numbers();
        let mut text = Vec::new();
        for (row, &route) in answers.routes.iter().enumerate() {
            for (prefix, _) in covering(self.table, route, answers.dates.get(row).copied()) {
                text.clear();
                write_prefix(prefix, &mut text);
                self.lists.values().append_value(String::from_utf8_lossy(&text));
            }
            // An address that no route covers has an empty list; a cell without an address has null.
            self.lists.append(numbers.is_known(route) || numbers.is_unmatched(route));
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<ArrayRef, AnnotateError> {
        Ok(Arc::new(self.lists.finish()))
    }
}

/// The prefix of a route, IPv4 routes first.
fn prefix(table: &dyn LookupTable, route: u32) -> Option<AnyPrefix> {
    let (v4, v6) = (table.v4().routes(), table.v6().routes());
    let route = route as usize;
    if route < v4.len() {
        return Some(AnyPrefix::V4(v4.get(route).prefix));
    }
    let route = route - v4.len();
    (route < v6.len()).then(|| AnyPrefix::V6(v6.get(route).prefix))
}

/// The prefix of a route and the prefixes that cover it, longest first, with their rows. With several dates, only those
/// of `date`.
pub(super) fn covering(
    table: &dyn LookupTable,
    route: u32,
    date: Option<u16>,
) -> Vec<(AnyPrefix, Hop)> {
    fn family<A: Addr + Pod>(
        table: &dyn LookupTable,
        date: Option<u16>,
        prefix: Prefix<A>,
        any: fn(Prefix<A>) -> AnyPrefix,
    ) -> Vec<(AnyPrefix, Hop)> {
        let routes = family_of::<A>(table).routes();
        let all = routes.covering(prefix.addr()).map(|route| routes.get(route));
        let row = |hop| match (table.dated(), date) {
            (Some(fib), Some(date)) => fib.timelines::<A>().ask().own(hop, date),
            _ => Some(hop),
        };
        // Longer prefixes that begin at the same address do not cover the whole prefix.
        let all = all.filter(|other| other.prefix.len() <= prefix.len());
        all.filter_map(|other| Some((any(other.prefix), row(other.hop)?))).collect()
    }
    match prefix(table, route) {
        Some(AnyPrefix::V4(prefix)) => family(table, date, prefix, AnyPrefix::V4),
        Some(AnyPrefix::V6(prefix)) => family(table, date, prefix, AnyPrefix::V6),
        None => Vec::new(),
    }
}
