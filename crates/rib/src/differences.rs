//! The differences between two tables.

use std::collections::HashMap;
use std::fmt;
use std::iter::Peekable;

use fibula_core::{Addr, Hop, Prefix, Range, Route, Value};

use crate::intern::Interner;
use crate::{ColumnKind, Columns, ColumnsBuilder, Pod, Table, TableError, Typed};

/// Compares two tables: finds the prefixes that only one of them has, the prefixes whose values differ, and the
/// addresses whose values differ.
///
/// Columns are compared by name, and values by their text: the number 1 and the text `1` are equal. A missing column
/// counts as null. So two tables with different [`Differences::columns`] are equal if the columns that one of them
/// lacks are all null.
///
/// ```
/// use fibula_core::{Hop, Routes};
/// use fibula_rib::{Differences, Table};
/// let table = |list: &[(&str, u32)]| {
///     let routes: Routes<u32> =
///         list.iter().map(|(prefix, hop)| (prefix.parse().unwrap(), Hop::new(*hop))).collect();
///     Table::from_routes(routes, Routes::default())
/// };
/// let before = table(&[("10.0.0.0/8", 0), ("10.1.0.0/16", 1)]);
/// let after = table(&[("10.0.0.0/8", 2), ("10.1.0.0/16", 1), ("10.2.0.0/16", 2)]);
/// let differences = Differences::new(&before, &after)?;
/// let changed: Vec<String> = differences.prefixes::<u32>().map(|d| d.prefix.to_string()).collect();
/// assert_eq!(changed, ["10.0.0.0/8", "10.2.0.0/16"]);
/// assert_eq!(differences.addresses::<u32>().get(), Some((1 << 24) - (1 << 16)));
/// # Ok::<(), fibula_rib::TableError>(())
/// ```
pub struct Differences<'a> {
    before: &'a Table,
    after: &'a Table,
    columns: Vec<Pair>,
    /// By row of each table: rows with equal values have equal numbers.
    before_rows: Vec<u32>,
    after_rows: Vec<u32>,
}

/// A column of two tables.
struct Pair {
    name: String,
    before: Option<usize>,
    after: Option<usize>,
}

/// A prefix whose values differ between two tables, or that only one of them has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference<A: Addr> {
    /// The prefix.
    pub prefix: Prefix<A>,
    /// The row of its values before; [`Hop::NONE`] if it did not exist.
    pub before: Hop,
    /// The row of its values after; [`Hop::NONE`] if it does not exist.
    pub after: Hop,
}

impl<A: Addr> Difference<A> {
    /// The kind: `added`, `gone` or `changed`.
    pub fn kind(&self) -> &'static str {
        match (self.before.is_none(), self.after.is_none()) {
            (true, _) => "added",
            (_, true) => "gone",
            _ => "changed",
        }
    }
}

/// A number of addresses, up to 2^128, which does not fit into a `u128`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AddressCount {
    low: u128,
    is_all: bool,
}

impl AddressCount {
    /// The number; `None` for 2^128.
    pub fn get(self) -> Option<u128> {
        (!self.is_all).then_some(self.low)
    }

    /// Adds the addresses of an interval that was not counted before.
    pub fn add<A: Addr>(&mut self, first: A, last: A) {
        let more = last.to_u128() - first.to_u128();
        match self.low.checked_add(more).and_then(|low| low.checked_add(1)) {
            Some(low) => self.low = low,
            // Intervals are counted once, so there cannot be more than all.
            None => *self = Self { low: 0, is_all: true },
        }
    }
}

impl fmt::Display for AddressCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_all {
            true => f.write_str("340282366920938463463374607431768211456"),
            false => self.low.fmt(f),
        }
    }
}

impl<'a> Differences<'a> {
    /// Compares the values of two tables, row by row. Routes are compared later, during iteration.
    ///
    /// # Errors
    /// [`TableError::Rows`] if a route has no row; [`TableError::Limit`] if the two tables have 2^32 different rows or
    /// values.
    pub fn new(before: &'a Table, after: &'a Table) -> Result<Self, TableError> {
        before.check()?;
        after.check()?;
        let names = before
            .columns
            .names()
            .chain(after.columns.names().filter(|name| before.columns.find(name).is_none()));
        let pair = |name: &str| Pair {
            name: name.to_owned(),
            before: before.columns.find(name),
            after: after.columns.find(name),
        };
        let columns: Vec<Pair> = names.map(pair).collect();
        let mut rows = Interner::default();
        let (before_codes, after_codes): (Vec<_>, Vec<_>) = columns
            .iter()
            .map(|pair| {
                let mut texts = HashMap::new();
                let before = pair.before.map(|at| codes(&before.columns, at, &mut texts));
                (before, pair.after.map(|at| codes(&after.columns, at, &mut texts)))
            })
            .unzip();
        let (earlier, later) = (columns.iter().map(|p| p.before), columns.iter().map(|p| p.after));
        let before_rows = number(&before.columns, earlier.zip(&before_codes), &mut rows)?;
        let after_rows = number(&after.columns, later.zip(&after_codes), &mut rows)?;
        Ok(Self { before, after, columns, before_rows, after_rows })
    }

    /// The names of the columns: first those of the table before, then those that only the other one has.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|pair| pair.name.as_str())
    }

    /// The values before and after, for each column.
    pub fn values<A: Addr>(
        &self,
        difference: &Difference<A>,
    ) -> impl Iterator<Item = (&str, Value<'a>, Value<'a>)> {
        let (before, after) = (difference.before, difference.after);
        self.columns.iter().map(move |pair| {
            let earlier = value(&self.before.columns, pair.before, before);
            (pair.name.as_str(), earlier, value(&self.after.columns, pair.after, after))
        })
    }

    /// Like [`Differences::values`], but with typed values: booleans and fractions are not texts.
    pub fn typed<A: Addr>(
        &self,
        difference: &Difference<A>,
    ) -> impl Iterator<Item = (&str, Typed<'a>, Typed<'a>)> {
        let typed = |columns: &Columns, at: Option<usize>, value| {
            Typed::new(value, at.and_then(|at| columns.scalar_type(at)))
        };
        self.values(difference).zip(&self.columns).map(move |((name, earlier, later), pair)| {
            let earlier = typed(&self.before.columns, pair.before, earlier);
            (name, earlier, typed(&self.after.columns, pair.after, later))
        })
    }

    /// The prefixes of a family with differences, in order.
    pub fn prefixes<A: Addr + Pod>(&self) -> impl Iterator<Item = Difference<A>> {
        let (before, after) = (self.before.routes::<A>(), self.after.routes::<A>());
        Prefixes { before: before.iter().peekable(), after: after.iter().peekable() }
            .filter(|found| !self.is_equal(found.before, found.after))
    }

    /// Number of addresses of a family whose values differ, or that a route covers in only one of the tables. It is
    /// exact, because both tables' elementary intervals are compared. The matched prefixes are not compared.
    pub fn addresses<A: Addr + Pod>(&self) -> AddressCount {
        let mut count = AddressCount::default();
        let (mut before, mut after) =
            (self.before.routes::<A>().ranges(), self.after.routes::<A>().ranges());
        let (mut earlier, mut later) = (before.next(), after.next());
        let mut first = A::MIN;
        // Both cover the whole space, so they end together.
        while let (Some(a), Some(b)) = (earlier, later) {
            let last = a.last.min(b.last);
            if !self.is_equal(a.hop, b.hop) {
                count.add(first, last);
            }
            let Some(next) = last.successor() else { break };
            first = next;
            let go_on = |range: Range<A>| range.last == last;
            if go_on(a) {
                earlier = before.next();
            }
            if go_on(b) {
                later = after.next();
            }
        }
        count
    }

    fn is_equal(&self, before: Hop, after: Hop) -> bool {
        let number =
            |rows: &[u32], hop: Hop| hop.index().and_then(|row| rows.get(row as usize).copied());
        number(&self.before_rows, before) == number(&self.after_rows, after)
    }

    /// The differences as a table with the column `change` ([`Difference::kind`]), and `NAME_before` and `NAME_after`
    /// for each column.
    ///
    /// # Errors
    /// [`TableError::Limit`] if there are too many different combinations of values.
    pub fn to_table(&self) -> Result<Table, TableError> {
        let mut names = vec![("change".to_owned(), ColumnKind::Str)];
        for Pair { name, before, after } in &self.columns {
            let kind = |columns: &Columns, at: &Option<usize>| {
                at.map_or(ColumnKind::Str, |at| columns.kind(at))
            };
            names.push((format!("{name}_before"), kind(&self.before.columns, before)));
            names.push((format!("{name}_after"), kind(&self.after.columns, after)));
        }
        let mut rows = ColumnsBuilder::new(&names);
        let v4 = self.family(&mut rows)?;
        let v6 = self.family(&mut rows)?;
        Ok(Table { v4, v6, columns: rows.finish()?, ..Table::default() })
    }

    fn family<A: Addr + Pod>(
        &self,
        rows: &mut ColumnsBuilder,
    ) -> Result<fibula_core::Routes<A>, TableError> {
        let mut routes = Vec::new();
        for difference in self.prefixes::<A>() {
            let mut row = vec![Value::Str(difference.kind())];
            row.extend(self.values(&difference).flat_map(|(_, before, after)| [before, after]));
            let hop = Hop::new(rows.intern(&row)?);
            routes.push(Route { prefix: difference.prefix, hop });
        }
        Ok(routes.into_iter().collect())
    }
}

/// The prefixes of two tables, each with its rows.
struct Prefixes<I: Iterator> {
    before: Peekable<I>,
    after: Peekable<I>,
}

impl<A: Addr, I: Iterator<Item = Route<A>>> Iterator for Prefixes<I> {
    type Item = Difference<A>;

    fn next(&mut self) -> Option<Difference<A>> {
        let earlier = self.before.peek().map(|route| route.prefix);
        let later = self.after.peek().map(|route| route.prefix);
        let prefix = earlier.into_iter().chain(later).min()?;
        let hop = |route: Option<Route<A>>| route.map_or(Hop::NONE, |route| route.hop);
        let before = hop(self.before.next_if(|route| route.prefix == prefix));
        Some(Difference { prefix, before, after: hop(self.after.next_if(|r| r.prefix == prefix)) })
    }
}

/// By code of a column: the same number for the same text.
fn codes<'t>(columns: &'t Columns, column: usize, texts: &mut HashMap<Text<'t>, u32>) -> Vec<u32> {
    let code = |code: usize| {
        let next = texts.len() as u32;
        let text = match columns.decode(column, code as u32) {
            // A number as text, where the other table has text.
            Value::Str(text) => match text.parse::<u64>() {
                Ok(int) if int.to_string() == text => Text::Int(int),
                _ => Text::Str(text),
            },
            Value::Int(int) => Text::Int(int),
            Value::Null => return u32::MAX,
        };
        *texts.entry(text).or_insert(next)
    };
    (0..columns.distinct(column)).map(code).collect()
}

/// A value by its text.
#[derive(PartialEq, Eq, Hash)]
enum Text<'a> {
    Int(u64),
    Str(&'a str),
}

/// By row of a table: the same number for the same values.
fn number<'c>(
    columns: &Columns,
    codes: impl Iterator<Item = (Option<usize>, &'c Option<Vec<u32>>)>,
    rows: &mut Interner<u32>,
) -> Result<Vec<u32>, TableError> {
    let codes: Vec<_> = codes.collect();
    let mut key = Vec::with_capacity(codes.len());
    let limit = TableError::Limit { what: "attribute rows of two tables" };
    (0..columns.len())
        .map(|row| {
            key.clear();
            key.extend(codes.iter().map(|(column, codes)| {
                let code = column.and_then(|column| columns.code(column, row));
                let known = code.zip(codes.as_ref());
                known
                    .and_then(|(code, codes)| codes.get(code as usize).copied())
                    .unwrap_or(u32::MAX)
            }));
            rows.intern(&key).ok_or_else(|| limit.clone())
        })
        .collect()
}

fn value<'a>(columns: &'a Columns, column: Option<usize>, hop: Hop) -> Value<'a> {
    let cell = column.zip(hop.index());
    cell.map_or(Value::Null, |(column, row)| columns.value(column, row))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fibula_core::Routes;
    use proptest::prelude::*;

    /// A table of IPv4 routes whose values are numbers, or the same numbers as text.
    fn table(list: &[(u8, u8, u8)], as_text: bool) -> Table {
        let kind = if as_text { ColumnKind::Str } else { ColumnKind::Int };
        let mut rows = ColumnsBuilder::new(&[("v", kind)]);
        // In reverse: equal values have unequal rows.
        for value in 0..4u64 {
            rows.push(&[Value::Int(if as_text { 3 - value } else { value })]).unwrap();
        }
        let hop = |value: u8| u32::from(if as_text { 3 - value % 4 } else { value % 4 });
        let route = |&(bits, len, value): &(u8, u8, u8)| {
            let prefix = Prefix::masked(u32::from(bits) << 24, len % 9).unwrap();
            (prefix, Hop::new(hop(value)))
        };
        let v4 = list.iter().map(route).collect();
        Table { v4, columns: rows.finish().unwrap(), ..Table::default() }
    }

    /// The value of the last route of this prefix.
    fn of(table: &Table, prefix: Prefix<u32>) -> Option<String> {
        let hop = table.v4.get(prefix)?;
        match table.columns.value(0, hop.index()?) {
            Value::Int(int) => Some(int.to_string()),
            Value::Str(text) => Some(text.to_owned()),
            Value::Null => None,
        }
    }

    fn longest(table: &Table, addr: u32) -> Option<String> {
        let prefixes = (0..=8).rev().map(|len| Prefix::masked(addr, len).unwrap());
        prefixes.into_iter().find_map(|prefix| of(table, prefix))
    }

    proptest! {
        /// Beside a comparison of every prefix and every block of addresses that can differ.
        #[test]
        fn as_one_by_one(
            before in prop::collection::vec(any::<(u8, u8, u8)>(), 0..30),
            after in prop::collection::vec(any::<(u8, u8, u8)>(), 0..30),
            shared: bool,
        ) {
            let after = if shared { [&before[..], &after[..]].concat() } else { after };
            let (before, after) = (table(&before, false), table(&after, true));
            let differences = Differences::new(&before, &after).unwrap();
            let found: Vec<_> = differences
                .prefixes::<u32>()
                .map(|found| (found.prefix, found.kind()))
                .collect();
            let mut expected = Vec::new();
            for len in 0..=8 {
                for bits in 0..1u32 << len {
                    let top = bits.checked_shl(32 - u32::from(len)).unwrap_or(0);
                    let prefix = Prefix::new(top, len).unwrap();
                    match (of(&before, prefix), of(&after, prefix)) {
                        (None, Some(_)) => expected.push((prefix, "added")),
                        (Some(_), None) => expected.push((prefix, "gone")),
                        (a, b) if a != b => expected.push((prefix, "changed")),
                        _ => {}
                    }
                }
            }
            expected.sort();
            prop_assert_eq!(&found, &expected);
            let blocks = (0..=255u32).map(|bits| bits << 24);
            let differ = blocks.filter(|&addr| longest(&before, addr) != longest(&after, addr));
            prop_assert_eq!(differences.addresses::<u32>().get(), Some((differ.count() as u128) << 24));
            let as_table = differences.to_table().unwrap();
            prop_assert_eq!(as_table.v4.len(), found.len());
            prop_assert_eq!(Differences::new(&after, &after).unwrap().prefixes::<u32>().count(), 0);
        }
    }

    #[test]
    fn the_whole_space_is_counted() {
        let everything: Routes<u128> = [(Prefix::ALL, Hop::new(0))].into_iter().collect();
        let table = Table::from_routes(Routes::default(), everything);
        let empty = Table::default();
        let differences = Differences::new(&empty, &table).unwrap();
        assert_eq!(differences.addresses::<u128>().get(), None);
        assert_eq!(
            differences.addresses::<u128>().to_string(),
            "340282366920938463463374607431768211456"
        );
        assert_eq!(differences.addresses::<u32>().get(), Some(0));
        let host: Routes<u128> =
            [(Prefix::ALL, Hop::new(0)), (Prefix::host(7), Hop::new(1))].into_iter().collect();
        let host = Table::from_routes(Routes::default(), host);
        assert_eq!(Differences::new(&table, &host).unwrap().addresses::<u128>().get(), Some(1));
        // All but one address: the largest number that is one.
        let most = Differences::new(&empty, &table).unwrap();
        assert_eq!(most.prefixes::<u128>().count(), 1);
    }

    #[test]
    fn columns_are_compared_by_name() {
        let table = |columns: &[(&str, ColumnKind)], row: &[Value<'_>]| {
            let mut rows = ColumnsBuilder::new(columns);
            rows.push(row).unwrap();
            let v4 = [("10.0.0.0/8".parse().unwrap(), Hop::new(0))].into_iter().collect();
            Table { v4, columns: rows.finish().unwrap(), ..Table::default() }
        };
        let (int, str) = (ColumnKind::Int, ColumnKind::Str);
        let before = table(&[("asn", int), ("name", str)], &[Value::Int(1), Value::Str("a")]);
        let turned = table(&[("name", str), ("asn", str)], &[Value::Str("a"), Value::Str("1")]);
        let count =
            |a: &Table, b: &Table| Differences::new(a, b).unwrap().prefixes::<u32>().count();
        assert_eq!(count(&before, &turned), 0);
        let padded = table(&[("name", str), ("asn", str)], &[Value::Str("a"), Value::Str("01")]);
        assert_eq!(count(&before, &padded), 1);
        let less = table(&[("asn", int)], &[Value::Int(1)]);
        assert_eq!(count(&before, &less), 1);
        let more =
            table(&[("asn", int), ("name", str), ("x", int)], &[Value::Int(1), Value::Str("a")]);
        assert_eq!(count(&before, &more), 0);
        let differences = Differences::new(&before, &less).unwrap();
        let found = differences.prefixes::<u32>().next().unwrap();
        let values: Vec<_> = differences.values(&found).collect();
        assert_eq!(
            values,
            [("asn", Value::Int(1), Value::Int(1)), ("name", Value::Str("a"), Value::Null)]
        );
        let none = Table { columns: Columns::default(), ..before.clone() };
        assert!(matches!(Differences::new(&none, &less), Err(TableError::Rows { .. })));
    }
}
