//! `fibula diff`, beside what a reader of both texts would say.

use std::collections::BTreeMap;
use std::fs::File;

use arrow_array::cast::AsArray;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};

use crate::common::{Files, TABLE, cuts, done, execute};

const AFTER: &str = "\
prefix,asn,country
0.0.0.0/0,64500,CH
10.0.0.0/8,64501,AT
10.1.0.0/16,64502,FR
10.1.2.0/25,64503,NL
255.255.255.255/32,64504,SE
2001:db8::/32,64505,CH
2001:db8:1::/48,,DE
2001:db8:1::1/128,64507,FR
::/0,1,CH
";

#[test]
fn differences_are_listed() {
    let files = Files::new();
    let (before, after) = (files.with("a.csv", TABLE), files.with("b.csv", AFTER));
    let run = execute(&["diff", &before, &after]);
    assert_eq!(run.code, 1);
    assert_eq!(
        run.out,
        "~ 10.0.0.0/8  country DE -> AT\n\
         - 10.1.2.0/24  asn 64503, country NL\n\
         + 10.1.2.0/25  asn 64503, country NL\n\
         + ::/0  asn 1, country CH\n\
         ~ 2001:db8:1::/48  asn 64506 -> -\n"
    );
    // 10.0.0.0/8 but for 10.1.0.0/16, and half of 10.1.2.0/24. Of IPv6 all but 2001:db8::/32 and one
    // address, and 2001:db8:1::/48 but for that address.
    let v4 = (1u64 << 24) - (1 << 16) + (1 << 7);
    let v6 = u128::MAX - (1 << 96) + 1 + (1 << 80) - 1;
    let summary = done_summary(&before, &after);
    let line = |family: &str| -> Vec<String> {
        let line = summary.lines().find(|line| line.starts_with(family)).unwrap();
        line.split_whitespace().map(|cell| cell.replace(',', "")).collect()
    };
    assert_eq!(line("IPv4"), ["IPv4", "5", "5", "1", "1", "1", &v4.to_string()]);
    assert_eq!(line("IPv6"), ["IPv6", "3", "4", "1", "0", "1", &v6.to_string()]);
    assert!(run.err.contains(summary.trim_end()), "{}", run.err);

    let run = execute(&["diff", "--json", &before, &after]);
    assert_eq!(run.code, 1);
    let lines: Vec<Value> =
        run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        lines,
        [
            json!({"change": "changed", "prefix": "10.0.0.0/8",
                   "before": {"asn": 64501, "country": "DE"}, "after": {"asn": 64501, "country": "AT"}}),
            json!({"change": "gone", "prefix": "10.1.2.0/24", "before": {"asn": 64503, "country": "NL"}}),
            json!({"change": "added", "prefix": "10.1.2.0/25", "after": {"asn": 64503, "country": "NL"}}),
            json!({"change": "added", "prefix": "::/0", "after": {"asn": 1, "country": "CH"}}),
            json!({"change": "changed", "prefix": "2001:db8:1::/48",
                   "before": {"asn": 64506, "country": "DE"}, "after": {"asn": null, "country": "DE"}}),
            json!({"change": "summary",
                   "ipv4": {"before": 5, "after": 5, "added": 1, "gone": 1, "changed": 1, "addresses": v4},
                   "ipv6": {"before": 3, "after": 4, "added": 1, "gone": 0, "changed": 1,
                            "addresses": v6.to_string()}}),
        ]
    );
}

fn done_summary(before: &str, after: &str) -> String {
    let run = execute(&["diff", "--summary", before, after]);
    assert_eq!((run.code, run.err.as_str()), (1, ""));
    run.out
}

#[test]
fn equal_tables_are_equal_whatever_their_kind() {
    let files = Files::new();
    let (csv, fib) = (files.with("a.csv", TABLE), files.snapshot());
    let other = files.with("other.csv", AFTER);
    for (before, after) in [(&csv, &fib), (&fib, &csv), (&fib, &fib)] {
        let run = execute(&["diff", before, after]);
        assert_eq!((run.code, run.out.as_str()), (0, ""), "{}", run.err);
    }
    // The columns that are asked for count alone, and tables merge as elsewhere.
    let countries = ["diff", &csv, &other, "--columns", "country"];
    assert_eq!(execute(&countries).out.lines().count(), 4);
    assert_eq!(
        done(&["diff", &format!("{csv},{other}"), &format!("{other},{csv},{other}")]).out,
        ""
    );
    assert_eq!(execute(&["diff", &csv, "no/such/file"]).code, 2);
    assert_eq!(execute(&["diff", &csv]).code, 2);
}

#[test]
fn differences_are_a_table() {
    let files = Files::new();
    let (before, after) = (files.with("a.csv", TABLE), files.with("b.csv", AFTER));
    let path = files.path("changes.csv");
    assert_eq!(execute(&["diff", &before, &after, "-o", &path]).code, 1);
    let written = std::fs::read_to_string(&path).unwrap();
    assert_eq!(
        written,
        "prefix,change,asn_before,asn_after,country_before,country_after\n\
         10.0.0.0/8,changed,64501,64501,DE,AT\n\
         10.1.2.0/24,gone,64503,,NL,\n\
         10.1.2.0/25,added,,64503,,NL\n\
         ::/0,added,,1,,CH\n\
         2001:db8:1::/48,changed,64506,,DE,DE\n"
    );
    let path = files.path("changes.parquet");
    assert_eq!(execute(&["diff", &before, &after, "-o", &path]).code, 1);
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(&path).unwrap()).unwrap();
    let batches: Vec<_> = reader.build().unwrap().collect::<Result<_, _>>().unwrap();
    let mut asns = BTreeMap::new();
    for batch in &batches {
        let prefixes = batch.column_by_name("prefix").unwrap().as_string::<i32>();
        let before = batch.column_by_name("asn_before").unwrap();
        let before = before.as_primitive::<arrow_array::types::UInt64Type>();
        for (prefix, asn) in prefixes.iter().zip(before.iter()) {
            asns.insert(prefix.unwrap().to_owned(), asn);
        }
    }
    assert_eq!(asns.len(), 5);
    assert_eq!((asns["10.1.2.0/24"], asns["::/0"]), (Some(64503), None));
    let unnamed = execute(&["diff", &before, &after, "-o", &files.path("changes")]);
    assert!(unnamed.code == 2 && unnamed.err.contains("--to"), "{}", unnamed.err);
}

/// The fewest routes are a table in which no address has other values.
#[test]
fn a_compressed_table_has_the_same_answers() {
    let files = Files::new();
    let small = files.path("small.csv");
    let tables =
        [("ipasn_20140513-41-61.dat.xz", 25_260), ("pyasn-rib6.20151101-v6-asn.tsv.xz", 6_870)];
    for (table, routes) in tables {
        let table = cuts().join("tables").join(table).display().to_string();
        let run = done(&["export", "--compress", &table, "-o", &small]);
        assert!(run.err.contains("are enough"), "{}", run.err);
        let summary = done_summary(&table, &small);
        let lines = summary.lines().filter(|line| line.starts_with("IPv"));
        let counts: Vec<Vec<u128>> = lines
            .map(|line| {
                let cells = line.split_whitespace().skip(1);
                cells.map(|cell| cell.replace(',', "").parse().unwrap()).collect()
            })
            .filter(|counts: &Vec<u128>| counts[0] > 0)
            .collect();
        let [counts] = &counts[..] else { panic!("{summary}") };
        assert!(counts[0] == routes && counts[1] < routes * 2 / 3, "{summary}");
        assert_eq!(counts.last(), Some(&0), "addresses with other values: {summary}");
    }
}
