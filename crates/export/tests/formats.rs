//! Written files, read back by the libraries that other programs use.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, UInt32Type, UInt64Type};
use arrow_array::{Array, StringArray};
use fibula_core::{Addr, AnyPrefix, Hop, Routes, Value};
use fibula_export::{TextFormat, intervals, text};
use fibula_rib::{ColumnKind, Columns, ColumnsBuilder, Pod, Table};
use fibula_testkit::fib::GenSpec;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

/// Rows with all kinds of values: none, empty, long, wide, with characters that formats quote.
fn columns(rows: u32) -> Columns {
    let mut builder = ColumnsBuilder::new(&[
        ("n", ColumnKind::Int),
        ("wide", ColumnKind::Int),
        ("s", ColumnKind::Str),
    ]);
    for row in 0..rows {
        let n = if row % 7 == 3 {
            Value::Null
        } else {
            Value::Int(u64::from(row % 300) * 1_000_003 % 70_000)
        };
        let wide = Value::Int(if row % 5 == 0 { u64::MAX - u64::from(row) } else { row.into() });
        let long = format!("{row} {}", "x".repeat(row as usize % 700));
        let text = ["", "a,b", "say \"no\"", "Zoë", "tab\there\nand there", "\\N", &long];
        let s = if row % 11 == 5 { Value::Null } else { Value::Str(text[row as usize % 7]) };
        builder.push(&[n, wide, s]).unwrap();
    }
    builder.finish().unwrap()
}

pub fn generated() -> Table {
    let routes = |spec: &str| spec.parse::<GenSpec>().unwrap();
    let v4: Routes<u32> = routes("gen:v4:2024:20000:1")
        .with_hops(fibula_testkit::fib::HopModel::Hash(900))
        .generate();
    let v6: Routes<u128> = routes("gen:v6:2024:20000:1")
        .with_hops(fibula_testkit::fib::HopModel::Hash(900))
        .generate();
    Table { v4, v6, columns: columns(900), ..Table::default() }
}

pub fn table(v4: &[(&str, u32)], v6: &[(&str, u32)]) -> Table {
    fn routes<A: Addr>(list: &[(&str, u32)]) -> Routes<A>
    where
        fibula_core::Prefix<A>: std::str::FromStr<Err: std::fmt::Debug>,
    {
        list.iter().map(|(prefix, hop)| (prefix.parse().unwrap(), Hop::new(*hop))).collect()
    }
    Table { v4: routes(v4), v6: routes(v6), columns: columns(20), ..Table::default() }
}

pub fn nested() -> Table {
    table(
        &[
            ("0.0.0.0/0", 1),
            ("10.0.0.0/8", 2),
            ("10.1.0.0/16", 1),
            ("10.1.2.3/32", 3),
            ("255.255.255.255/32", 4),
            ("0.0.0.0/32", 5),
        ],
        &[
            ("::/0", 6),
            ("2001:db8::/32", 7),
            ("2001:db8::1/128", 8),
            ("ffff::/16", 6),
            ("8000::/1", 9),
            ("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128", 10),
        ],
    )
}

fn longest<A: Addr + Pod>(table: &Table, addr: A) -> Option<u32> {
    let covering = table.routes::<A>().iter().filter(|route| route.prefix.contains(addr));
    covering.max_by_key(|route| route.prefix.len())?.hop.index()
}

fn check_intervals<A: Addr + Pod>(table: &Table) {
    let folder =
        std::env::temp_dir().join(format!("fibula-intervals-{}-{}", std::process::id(), A::FAMILY));
    let file = std::fs::File::create(&folder).unwrap();
    let count = intervals::<A>(table, file).unwrap();
    let reader =
        ParquetRecordBatchReaderBuilder::try_new(std::fs::File::open(&folder).unwrap()).unwrap();
    let mut expected = table.routes::<A>().ranges().filter(|range| !range.hop.is_none());
    let mut rows = 0;
    for batch in reader.build().unwrap() {
        let batch = batch.unwrap();
        let address =
            |column: usize, row: usize| match batch.column(column).as_primitive_opt::<UInt32Type>()
            {
                Some(numbers) => u128::from(numbers.value(row)),
                None => u128::from_be_bytes(
                    batch.column(column).as_fixed_size_binary().value(row).try_into().unwrap(),
                ),
            };
        let strings = batch.column(4).as_dictionary::<Int32Type>();
        let strings: Vec<_> = strings.downcast_dict::<StringArray>().unwrap().into_iter().collect();
        for (row, text) in strings.into_iter().enumerate() {
            let range = expected.next().unwrap();
            assert_eq!(
                (address(0, row), address(1, row)),
                (range.first.to_u128(), range.last.to_u128())
            );
            let hop = range.hop.index().unwrap();
            for column in 0..2 {
                let numbers = batch.column(2 + column).as_primitive::<UInt64Type>();
                let got = numbers.is_valid(row).then(|| numbers.value(row));
                let expected = match table.columns.value(column, hop) {
                    Value::Int(int) => Some(int),
                    _ => None,
                };
                assert_eq!(got, expected);
            }
            let expected = match table.columns.value(2, hop) {
                Value::Str(text) => Some(text),
                _ => None,
            };
            assert_eq!(text, expected);
            rows += 1;
        }
    }
    assert!(expected.next().is_none());
    assert_eq!(rows, count);
    std::fs::remove_file(&folder).unwrap();
}

#[test]
fn intervals_are_the_elementary_ones() {
    for table in [nested(), generated(), table(&[], &[])] {
        check_intervals::<u32>(&table);
        check_intervals::<u128>(&table);
    }
}

#[test]
fn text_has_every_route() {
    let table = table(
        &[("10.0.0.0/8", 1), ("10.1.0.0/16", 2), ("0.0.0.0/0", 4)],
        &[("::/0", 5), ("2001:db8::/32", 0)],
    );
    let write = |form| {
        let mut out = Vec::new();
        text(&table, form, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    assert_eq!(
        write(TextFormat::Csv),
        "prefix,n,wide,s\n\
         0.0.0.0/0,10012,4,\"tab\there\nand there\"\n\
         10.0.0.0/8,20003,1,\"a,b\"\n\
         10.1.0.0/16,40006,2,\"say \"\"no\"\"\"\n\
         ::/0,30015,18446744073709551610,\n\
         2001:db8::/32,0,18446744073709551615,\"\"\n"
    );
    assert!(write(TextFormat::Tsv).contains("0.0.0.0/0\t10012\t4\ttab here and there\n"));
    assert!(write(TextFormat::ClickHouse).contains("::/0,30015,18446744073709551610,\\N\n"));
    let prefixes = |line: &str| line.split('\t').next().unwrap().parse::<AnyPrefix>().is_ok();
    assert_eq!(write(TextFormat::Tsv).lines().filter(|line| prefixes(line)).count(), 5);
}

#[test]
fn nested_oracle_agrees() {
    // The intervals that the checks above rely on, against a scan.
    let table = nested();
    for range in table.v4.ranges() {
        let row = |hop: Hop| hop.index();
        assert_eq!(longest(&table, range.first), row(range.hop));
        assert_eq!(longest(&table, range.last), row(range.hop));
    }
}

/// Columns of the table that have the names of the output's own ones get numbers, as in lookups.
#[test]
fn names_that_are_ours() {
    let mut builder =
        ColumnsBuilder::new(&[("prefix", ColumnKind::Str), ("first", ColumnKind::Str)]);
    builder.push(&[Value::Str("p"), Value::Str("f")]).unwrap();
    let v4: Routes<u32> = [("10.0.0.0/8".parse().unwrap(), Hop::new(0))].into_iter().collect();
    let mut table = Table::from_routes(v4, Routes::default());
    table.columns = builder.finish().unwrap();
    let mut out = Vec::new();
    text(&table, TextFormat::Csv, &mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), "prefix,prefix_2,first\n10.0.0.0/8,p,f\n");
}
