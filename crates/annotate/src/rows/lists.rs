//! Writes the prefixes that cover an address, and their values, as lists.

use fibula_core::{Addr, AnyPrefix, Hop, Prefix, ScalarType, Value};
use fibula_fib::Pod;

use super::render::{labels, write_matched, write_value};
use crate::LookupTable;
use crate::added::{Added, Addition, Substitute};
use crate::formats::Style;
use crate::formats::csv::scan::write_field;
use crate::pipeline::answers::{Answers, Numbers};
use crate::table::family_of;

/// The separator between the items of a list in a field.
const SEPARATOR: u8 = b';';

/// Writes the added values if some of them are lists: the prefixes that cover an address, longest first, and with
/// `all` the values of each.
pub(super) struct Lists<'r> {
    table: &'r dyn LookupTable,
    additions: &'r [Addition],
    style: Style,
    all: bool,
    /// For each address column and added column, the bytes before the value.
    labels: Vec<Vec<Vec<u8>>>,
    /// The routes that cover the current address.
    chain: Vec<(AnyPrefix, Hop)>,
    /// A buffer for a list in a field, which may need quotes.
    field: Vec<u8>,
}

impl<'r> Lists<'r> {
    /// `None` if no list is added.
    pub(super) fn new(
        table: &'r dyn LookupTable,
        additions: &'r [Addition],
        style: Style,
        names: &[Vec<String>],
        all: bool,
    ) -> Option<Self> {
        let is_list = |addition: &Addition| match addition.what {
            Added::Covering => true,
            Added::Value(_) => all,
            Added::Prefix => false,
        };
        additions.iter().any(is_list).then(|| Self {
            table,
            additions,
            style,
            all,
            labels: labels(style, names),
            chain: Vec::new(),
            field: Vec::new(),
        })
    }

    /// Appends the added values of a cell in the address column `slot`.
    pub(super) fn values(
        &mut self,
        slot: usize,
        answers: &Answers,
        cell: usize,
        out: &mut Vec<u8>,
    ) {
        let (date, row) = (answers.dates.get(cell).copied(), answers.rows[cell]);
        let (prefix, numbers) = (answers.prefix(cell), Numbers::rows(self.table));
        self.chain.clear();
        match prefix {
            Some(AnyPrefix::V4(prefix)) => covering(self.table, date, prefix, &mut self.chain),
            Some(AnyPrefix::V6(prefix)) => covering(self.table, date, prefix, &mut self.chain),
            None => {}
        }
        for (addition, label) in self.additions.iter().zip(&self.labels[slot]) {
            out.extend_from_slice(label);
            let columns = self.table.columns();
            let of = |hop: Hop, column| {
                hop.index().map_or(Value::Null, |row| columns.value(column, row))
            };
            let substitute = match &addition.substitute {
                Some(Substitute::Int(int)) => Some(Value::Int(*int)),
                Some(Substitute::Str(text)) => Some(Value::Str(text)),
                None => None,
            };
            // An address was looked up, but no route covers it.
            let is_unmatched = numbers.is_unmatched(row);
            match addition.what {
                Added::Prefix => write_matched(self.style, prefix, out),
                Added::Value(column) if !self.all => {
                    let value = substitute.filter(|_| is_unmatched);
                    // Numbers beyond the last row have no values.
                    let value = value.unwrap_or_else(|| columns.value(column, row));
                    write_value(self.style, value, columns.scalar_type(column), out);
                }
                _ if !numbers.is_known(row) && !is_unmatched => {
                    write_matched(self.style, None, out);
                }
                Added::Value(column) => {
                    let values = self.chain.iter().map(|(_, hop)| of(*hop, column));
                    let values = values.chain(substitute.filter(|_| is_unmatched));
                    let scalar = columns.scalar_type(column);
                    let write = |style, value: Value<'_>, out: &mut Vec<u8>| {
                        write_item(style, value, scalar, out);
                    };
                    list(self.style, values, &mut self.field, out, write);
                }
                Added::Covering => {
                    let prefixes = self.chain.iter().map(|(prefix, _)| Some(*prefix));
                    list(self.style, prefixes, &mut self.field, out, write_matched);
                }
            }
        }
    }
}

/// Appends the route of this prefix and the routes that cover it, longest first.
fn covering<A: Addr + Pod>(
    table: &dyn LookupTable,
    date: Option<u16>,
    prefix: Prefix<A>,
    chain: &mut Vec<(AnyPrefix, Hop)>,
) {
    let routes = family_of::<A>(table).routes();
    // Longer routes that begin at the same address do not cover the whole prefix.
    let found = routes.covering(prefix.addr()).map(|index| routes.get(index));
    let found = found.filter(|route| route.prefix.covers(prefix));
    match (table.dated(), date) {
        (Some(fib), Some(date)) => {
            let ask = fib.timelines::<A>().ask();
            chain.extend(
                found.filter_map(|route| Some((route.prefix.into(), ask.own(route.hop, date)?))),
            );
        }
        _ => chain.extend(found.map(|route| (route.prefix.into(), route.hop))),
    }
}

/// Appends an item of a list. In a field, items are not quoted, because the field is quoted as a whole.
fn write_item(style: Style, value: Value<'_>, scalar: Option<ScalarType>, out: &mut Vec<u8>) {
    match (style, value) {
        (Style::Fields(_), Value::Str(text)) => out.extend_from_slice(text.as_bytes()),
        _ => write_value(style, value, scalar, out),
    }
}

/// Appends a list: an array in JSON, else a field with separators.
fn list<T>(
    style: Style,
    items: impl Iterator<Item = T>,
    field: &mut Vec<u8>,
    out: &mut Vec<u8>,
    write: impl Fn(Style, T, &mut Vec<u8>),
) {
    match style {
        Style::Members => {
            out.push(b'[');
            for (i, item) in items.enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                write(style, item, out);
            }
            out.push(b']');
        }
        Style::Fields(dialect) => {
            field.clear();
            for (i, item) in items.enumerate() {
                if i > 0 {
                    field.push(SEPARATOR);
                }
                write(style, item, field);
            }
            write_field(field, dialect, out);
        }
        // Streams of these forms have no lists: `StreamOptions` refuses them.
        Style::Wire(_) => {}
    }
}
