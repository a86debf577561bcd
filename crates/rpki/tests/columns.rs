//! Validity as columns, and its report, compared with one lookup for each route.

use std::collections::HashMap;

use fibula_core::{AnyPrefix, Hop, Prefix, Routes, Value};
use fibula_rib::{ColumnKind, ColumnsBuilder, Table};
use fibula_rpki::{RpkiError, Validity, ValidityReport, Vrp, Vrps, add_columns};
use proptest::prelude::*;

/// Routes of both families from the same bits, with their origins, and a column beside these.
fn table(routes: &[(u8, u8, u8)]) -> Table {
    let mut rows =
        ColumnsBuilder::new(&[("name", ColumnKind::Str), ("origin_as", ColumnKind::Int)]);
    let mut hops = Vec::new();
    for &(_, _, origin) in routes {
        let origin = origin % 5;
        let value = if origin == 4 { Value::Null } else { Value::Int(origin.into()) };
        hops.push(Hop::new(rows.intern(&[Value::Str("x"), value]).unwrap()));
    }
    let list = || routes.iter().zip(&hops);
    let v4: Routes<u32> = list()
        .map(|(&(bits, len, _), &hop)| {
            (Prefix::masked(u32::from(bits) << 24, len % 9).unwrap(), hop)
        })
        .collect();
    let v6: Routes<u128> = list()
        .map(|(&(bits, len, _), &hop)| {
            (Prefix::masked(u128::from(bits) << 120, len % 9).unwrap(), hop)
        })
        .collect();
    Table { v4, v6, columns: rows.finish().unwrap(), ..Table::default() }
}

fn vrps(list: &[(u8, u8, u8, u8)], is_v6: bool) -> Vec<Vrp> {
    let vrp = |&(bits, len, more, asn): &(u8, u8, u8, u8)| {
        let len = len % 9;
        let prefix = match is_v6 {
            false => AnyPrefix::from(Prefix::masked(u32::from(bits) << 24, len).unwrap()),
            true => AnyPrefix::from(Prefix::masked(u128::from(bits) << 120, len).unwrap()),
        };
        Vrp::new(prefix, u64::from(len + more % 4), u32::from(asn % 4)).unwrap()
    };
    list.iter().map(vrp).collect()
}

fn text<'a>(table: &'a Table, hop: Hop, column: &str) -> Option<&'a str> {
    let at = table.columns.find(column).unwrap();
    match table.columns.value(at, hop.index().unwrap()) {
        Value::Str(text) => Some(text),
        _ => None,
    }
}

proptest! {
    #[test]
    fn as_route_by_route(
        routes in prop::collection::vec(any::<(u8, u8, u8)>(), 0..60),
        v4 in prop::collection::vec(any::<(u8, u8, u8, u8)>(), 0..30),
        v6 in prop::collection::vec(any::<(u8, u8, u8, u8)>(), 0..30),
    ) {
        let old = table(&routes);
        let set = Vrps::new(vrps(&v4, false).into_iter().chain(vrps(&v6, true)));
        let new = add_columns(&old, &set, "origin_as").unwrap();
        prop_assert_eq!(new.columns.names().collect::<Vec<_>>(), ["name", "origin_as", "rpki", "rpki_vrps"]);
        new.check().unwrap();
        let mut counts: [HashMap<Validity, u64>; 2] = Default::default();
        let mut each = |prefix: AnyPrefix, before: Hop, after: Hop| {
            let origin = match old.columns.value(1, before.index().unwrap()) {
                Value::Int(int) => Some(int as u32),
                _ => None,
            };
            let of_new = new.columns.value(1, after.index().unwrap());
            assert_eq!(of_new, old.columns.value(1, before.index().unwrap()));
            assert_eq!(text(&new, after, "name"), Some("x"));
            let validity = set.validity(prefix, origin);
            assert_eq!(text(&new, after, "rpki"), Some(validity.name()), "{prefix}");
            let covering: Vec<String> = set.covering(prefix).map(|vrp| vrp.to_string()).collect();
            let expected = (!covering.is_empty()).then(|| covering.join(";"));
            assert_eq!(text(&new, after, "rpki_vrps"), expected.as_deref(), "{prefix}");
            *counts[usize::from(matches!(prefix, AnyPrefix::V6(_)))].entry(validity).or_default() += 1;
        };
        prop_assert_eq!((old.v4.len(), old.v6.len()), (new.v4.len(), new.v6.len()));
        old.v4.iter().zip(new.v4.iter()).for_each(|(a, b)| each(a.prefix.into(), a.hop, b.hop));
        old.v6.iter().zip(new.v6.iter()).for_each(|(a, b)| each(a.prefix.into(), a.hop, b.hop));

        let report = ValidityReport::new(&new, "origin_as").unwrap();
        for validity in Validity::ALL {
            let count = |family: usize| counts[family].get(&validity).copied().unwrap_or(0);
            prop_assert_eq!(report.v4.routes[validity as usize], count(0));
            prop_assert_eq!(report.v6.routes[validity as usize], count(1));
            // Blocks of the first 8 bits: each has the validity of its longest match.
            let blocks = (0..=255u32).filter(|bits| {
                let matching = new.v4.iter().filter(|route| route.prefix.contains(bits << 24));
                let longest = matching.max_by_key(|route| route.prefix.len());
                longest.is_some_and(|route| text(&new, route.hop, "rpki") == Some(validity.name()))
            });
            let expected = (blocks.count() as u128) << 24;
            prop_assert_eq!(report.v4.addresses[validity as usize].get(), Some(expected));
        }
        let invalid: u64 = report.origins.iter().map(|origin| origin.invalid()).sum();
        prop_assert_eq!(invalid, report.invalid());
        prop_assert!(report.origins.is_sorted_by(|a, b| a.invalid() >= b.invalid()));

        // Once more, with fewer VRPs: the columns are replaced.
        let again = add_columns(&new, &Vrps::new([]), "origin_as").unwrap();
        prop_assert_eq!(again.columns.width(), 4);
        prop_assert!(again.v4.iter().all(|route| text(&again, route.hop, "rpki") == Some("not-found")));
    }
}

/// Routes that shared a row have rows of their own where validity differs, and share one where it does not.
#[test]
fn rows_are_split_as_far_as_needed() {
    let old = table(&[(0, 8, 1), (1, 8, 1), (2, 8, 1), (3, 8, 1)]);
    assert_eq!(old.columns.len(), 1);
    let set = Vrps::new(vrps(&[(0, 7, 1, 1)], false)); // covers the first two
    let new = add_columns(&old, &set, "origin_as").unwrap();
    // Two kinds of IPv4; IPv6 has a row of its own.
    assert_eq!(new.columns.len(), 3);
}

/// Columns that the table has by itself keep their values; those of an earlier validation are replaced.
#[test]
fn own_columns_keep_their_values() {
    let named = |values: [&[Value<'_>]; 1]| {
        let names = [("rpki", ColumnKind::Str), ("origin_as", ColumnKind::Int)];
        let mut rows = ColumnsBuilder::new(&names);
        let hop = Hop::new(rows.push(values[0]).unwrap());
        let v4 = [(Prefix::masked(10 << 24, 8).unwrap(), hop)].into_iter().collect();
        Table { v4, columns: rows.finish().unwrap(), ..Table::default() }
    };
    let set = Vrps::new(vrps(&[(10, 8, 0, 1)], false));
    for own in ["checked by hand", "valid"] {
        let old = named([&[Value::Str(own), Value::Int(1)]]);
        let mut new = add_columns(&old, &set, "origin_as").unwrap();
        // Once more: the columns that were added are replaced, and the table's own stays.
        for _ in 0..2 {
            let names: Vec<&str> = new.columns.names().collect();
            assert_eq!(names, ["rpki_2", "origin_as", "rpki", "rpki_vrps"]);
            assert_eq!(text(&new, Hop::new(0), "rpki_2"), Some(own));
            assert_eq!(text(&new, Hop::new(0), "rpki"), Some("valid"));
            new = add_columns(&new, &set, "origin_as").unwrap();
        }
    }
}

#[test]
fn columns_that_hold_no_origins() {
    let with = |values: &[Value<'_>]| {
        let mut rows = ColumnsBuilder::new(&[("as", ColumnKind::Str)]);
        let v4 = values.iter().enumerate().map(|(at, value)| {
            let hop = Hop::new(rows.push(&[*value]).unwrap());
            (Prefix::masked((at as u32) << 24, 8).unwrap(), hop)
        });
        let v4 = v4.collect();
        Table { v4, columns: rows.finish().unwrap(), ..Table::default() }
    };
    let set =
        Vrps::new(vrps(&[(0, 0, 0, 1)], false).into_iter().chain(vrps(&[(0, 0, 3, 1)], true)));
    let values = ["AS1", "1", " as1 ", "{1}", "{1,2}", "", "0"].map(Value::Str);
    let good = add_columns(&with(&values), &set, "as").unwrap();
    let found: Vec<_> =
        good.v4.iter().map(|route| text(&good, route.hop, "rpki").unwrap()).collect();
    let (length, origin) = ("invalid-length", "invalid-origin");
    assert_eq!(found, [length, length, length, origin, origin, origin, origin]);
    for bad in ["CH", "1;2", "1 2", "4294967296", "-1"] {
        let error = add_columns(&with(&[Value::Str(bad)]), &set, "as").unwrap_err();
        assert_eq!(error.to_string(), format!("column as: {bad:?} is no AS number"));
    }
    let error = add_columns(&with(&values), &set, "origin_as").unwrap_err();
    assert_eq!(error.to_string(), "no column origin_as with the origin of routes; there are: as");
    assert!(matches!(ValidityReport::new(&with(&values), "as"), Err(RpkiError::NoColumn { .. })));
}
