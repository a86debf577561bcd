//! Combines several tables into one, so that one lookup gives the values of all.

use std::collections::HashMap;
use std::iter::Peekable;

use fibula_core::{Addr, Hop, Prefix, Route, Routes, Value};

use crate::{ColumnKind, ColumnsBuilder, Pod, Table, TableError};

/// Combines tables into one with the values of all: it has all their prefixes, and their columns side by side, named
/// `layer_column`.
///
/// ```text
///   geo  10.0.0.0/8  CH          asn  10.1.0.0/16  64500
///        10.2.0.0/16 DE
///
///        prefix       geo_country  asn_asn
///        10.0.0.0/8   CH           -
///        10.1.0.0/16  CH           64500        in geo, 10.0.0.0/8 covers it
///        10.2.0.0/16  DE           -
/// ```
///
/// A layer without columns (a plain list of prefixes) gets one column with its name: 1 for covered prefixes.
///
/// Each prefix gets, from every layer, the values of the layer's longest prefix that covers it completely. These are
/// the right values for all addresses that match it: if an address had a longer match in a layer, this longer prefix
/// would be in the combined table too, and would be found instead.
///
/// # Errors
/// [`TableError::Limit`] if there are too many different combinations of values.
pub fn layers(layers: &[(&str, &Table)]) -> Result<Table, TableError> {
    let mut columns: Vec<(String, ColumnKind)> = Vec::new();
    for (layer, table) in layers {
        let names = table.columns.names().enumerate();
        columns.extend(names.map(|(at, name)| (format!("{layer}_{name}"), table.columns.kind(at))));
        if table.columns.width() == 0 {
            columns.push(((*layer).to_owned(), ColumnKind::Int));
        }
    }
    let mut rows = ColumnsBuilder::new(&columns);
    let v4 = family(layers, &mut rows)?;
    let v6 = family(layers, &mut rows)?;
    let mut columns = rows.finish()?;
    for (layer, table) in layers {
        for (at, name) in table.columns.names().enumerate() {
            columns.set_scalar_type(&format!("{layer}_{name}"), table.columns.scalar_type(at));
        }
    }
    let mut whole = Table { v4, v6, columns, ..Table::default() };
    for (layer, table) in layers {
        let sources = table.provenance.sources.iter().cloned();
        whole.provenance.sources.extend(sources.map(|mut source| {
            source.name = format!("{layer}={}", source.name);
            source
        }));
        let replaced = table.provenance.replaced.iter().cloned();
        whole.provenance.replaced.extend(replaced.map(|mut found| {
            for mention in [&mut found.earlier, &mut found.later] {
                mention.source = format!("{layer}={}", mention.source);
            }
            found
        }));
    }
    Ok(whole)
}

/// The routes of one layer, and those that cover the current position.
struct Walk<'a, A: Addr> {
    ahead: Peekable<Box<dyn Iterator<Item = Route<A>> + 'a>>,
    open: Vec<Route<A>>,
}

impl<A: Addr> Walk<'_, A> {
    /// The hop of the longest prefix that covers this one; call it with prefixes in ascending order.
    fn covering(&mut self, prefix: Prefix<A>) -> Hop {
        while let Some(route) = self.ahead.next_if(|route| route.prefix <= prefix) {
            self.open.retain(|open| open.prefix.covers(route.prefix));
            self.open.push(route);
        }
        self.open.retain(|open| open.prefix.covers(prefix));
        self.open.last().map_or(Hop::NONE, |route| route.hop)
    }
}

fn family<A: Addr + Pod>(
    layers: &[(&str, &Table)],
    rows: &mut ColumnsBuilder,
) -> Result<Routes<A>, TableError> {
    let routes = layers.iter().flat_map(|(_, table)| table.routes::<A>().iter());
    let mut prefixes: Vec<Prefix<A>> = routes.map(|route| route.prefix).collect();
    prefixes.sort_unstable();
    prefixes.dedup();
    let mut walks: Vec<Walk<'_, A>> = layers
        .iter()
        .map(|(_, table)| {
            let routes: Box<dyn Iterator<Item = Route<A>>> = Box::new(table.routes::<A>().iter());
            Walk { ahead: routes.peekable(), open: Vec::new() }
        })
        .collect();
    let mut values: Vec<Value<'_>> = Vec::new();
    // Combinations of the layers' hops so far, and their rows: most prefixes repeat one.
    let mut known = HashMap::new();
    let mut found = Vec::with_capacity(prefixes.len());
    for prefix in prefixes {
        let hops: Vec<Hop> = walks.iter_mut().map(|walk| walk.covering(prefix)).collect();
        let row = match known.get(&hops) {
            Some(&row) => row,
            None => {
                values.clear();
                for ((_, table), hop) in layers.iter().zip(&hops) {
                    let columns = &table.columns;
                    values.extend((0..columns.width()).map(|column| {
                        hop.index().map_or(Value::Null, |row| columns.value(column, row))
                    }));
                    if columns.width() == 0 {
                        values.push(hop.index().map_or(Value::Null, |_| Value::Int(1)));
                    }
                }
                let row = rows.intern(&values)?;
                known.insert(hops, row);
                row
            }
        };
        found.push(Route { prefix, hop: Hop::new(row) });
    }
    Ok(found.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn table<A: Addr + Pod>(routes: &[(Prefix<A>, u32)], columns: bool) -> Table {
        let mut rows = ColumnsBuilder::new(&[("v", ColumnKind::Int)][..usize::from(columns)]);
        (0..9).for_each(|value| {
            rows.push(&[Value::Int(value)][..usize::from(columns)]).unwrap();
        });
        let routes: Routes<A> =
            routes.iter().map(|&(prefix, hop)| (prefix, Hop::new(hop))).collect();
        let mut table = Table { columns: rows.finish().unwrap(), ..Table::default() };
        // Both families have the same kind of test; only one of them is filled.
        for route in routes.iter() {
            let ip = route.prefix.addr().to_ip();
            match fibula_core::AnyPrefix::masked(ip, route.prefix.len()).unwrap() {
                fibula_core::AnyPrefix::V4(prefix) => table.v4 = with(&table.v4, prefix, route.hop),
                fibula_core::AnyPrefix::V6(prefix) => table.v6 = with(&table.v6, prefix, route.hop),
            }
        }
        table
    }

    fn with<A: Addr>(routes: &Routes<A>, prefix: Prefix<A>, hop: Hop) -> Routes<A> {
        routes.iter().chain([Route { prefix, hop }]).collect()
    }

    fn longest<A: Addr>(routes: &Routes<A>, addr: A) -> Option<Hop> {
        let covering = routes.iter().filter(|route| route.prefix.contains(addr));
        covering.max_by_key(|route| route.prefix.len()).map(|route| route.hop)
    }

    fn check<A: Addr + Pod>(lists: &[Vec<(Prefix<A>, u32)>; 3]) {
        let tables = [table(&lists[0], true), table(&lists[1], true), table(&lists[2], false)];
        let whole = layers(&[("a", &tables[0]), ("b", &tables[1]), ("c", &tables[2])]).unwrap();
        assert_eq!(whole.columns.names().collect::<Vec<_>>(), ["a_v", "b_v", "c"]);
        let all = lists.iter().flatten();
        let ends = all.flat_map(|(prefix, _)| {
            let (first, last) = (prefix.first(), prefix.last());
            [Some(first), Some(last), first.predecessor(), last.successor()]
        });
        for addr in ends.flatten().chain([A::MIN, A::MAX]) {
            let found = longest(whole.routes::<A>(), addr);
            for (column, table) in tables.iter().enumerate() {
                let expected = match longest(table.routes::<A>(), addr).and_then(Hop::index) {
                    Some(hop) if column < 2 => Value::Int(hop.into()),
                    Some(_) => Value::Int(1),
                    None => Value::Null,
                };
                let row = found.and_then(Hop::index);
                let got = row.map_or(Value::Null, |row| whole.columns.value(column, row));
                assert_eq!(got, expected, "{} in {column}", addr.to_string_ip());
            }
        }
    }

    proptest! {
        /// Dense and nested: few bits vary, so prefixes of the layers cover each other in all ways.
        #[test]
        fn every_layer_answers_as_alone(
            lists: [Vec<(u8, u8, u32)>; 3], far: bool,
        ) {
            let v4 = |&(bits, len, hop): &(u8, u8, u32)| {
                let addr = if far { u32::MAX - u32::from(bits) } else { u32::from(bits) << 24 };
                let len = if far { 23 + len % 10 } else { len % 10 };
                (Prefix::masked(addr, len).unwrap(), hop % 9)
            };
            check::<u32>(&lists.each_ref().map(|list| list.iter().map(v4).collect()));
            let v6 = |&(bits, len, hop): &(u8, u8, u32)| {
                let addr = if far { u128::MAX - u128::from(bits) } else { u128::from(bits) << 120 };
                let len = if far { 119 + len % 10 } else { len % 10 };
                (Prefix::masked(addr, len).unwrap(), hop % 9)
            };
            check::<u128>(&lists.each_ref().map(|list| list.iter().map(v6).collect()));
        }
    }
}
