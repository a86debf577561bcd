//! Own tables win.

use std::sync::Arc;

use fibula_annotate::{AnnotateError, AnnotateOptions};
use fibula_collect::{CollectCounts, Collector, FlowFormat, FlowTable};
use fibula_fib::Fib;
use serde_json::Value;

use crate::common::{Exporter, files, options, rows, v5};
use crate::tables::{numbers, table};

fn prepared(fib: Fib, add: &[&str], format: FlowFormat) -> Arc<FlowTable> {
    let mut options = AnnotateOptions::default();
    options.add = add.iter().map(|&name| name.to_owned()).collect();
    Arc::new(FlowTable::new(fib, &options, format).unwrap())
}

/// Collects flows from 10.1.0.0 to 10.1.3.255, each to 192.0.2.7.
fn collected(table: FlowTable, format: FlowFormat) -> (tempfile::TempDir, CollectCounts) {
    let folder = tempfile::tempdir().unwrap();
    let table = Some(Arc::new(table));
    let collector = Collector::start(options(folder.path(), format), table).unwrap();
    let exporter = Exporter::to(&collector);
    (0..64).for_each(|at| exporter.send(&v5(at * 16, 16)));
    let counts = collector.stop().unwrap();
    assert_eq!(counts.rows, 1024);
    (folder, counts)
}

/// Prefixes with values. Those of the main table are the longest ones, and yet the own ones win.
const FIRST: [(&str, &str); 2] = [("10.1.1.0/24", "first"), ("10.1.2.16/28", "first")];
const SECOND: [(&str, &str); 2] = [("10.1.0.0/23", "second"), ("10.1.2.0/25", "second")];
const MAIN: [(&str, &str); 3] =
    [("10.0.0.0/8", "main"), ("10.1.1.7/32", "main"), ("10.1.2.16/29", "main")];

/// The longest of these prefixes for 10.1.0.0 and so many addresses behind it, and its value.
fn longest(
    table: &[(&'static str, &'static str)],
    at: u32,
) -> Option<(&'static str, &'static str)> {
    let covers = |prefix: &str| {
        let (network, len) = prefix.split_once('/').unwrap();
        let network = u32::from(network.parse::<std::net::Ipv4Addr>().unwrap());
        let len: u32 = len.parse().unwrap();
        (0x0a01_0000 + at) >> (32 - len) == network >> (32 - len)
    };
    let covering = table.iter().filter(|(prefix, _)| covers(prefix)).copied();
    covering.max_by_key(|(prefix, _)| prefix.split_once('/').unwrap().1.parse::<u8>().unwrap())
}

#[test]
fn each_value_is_of_the_first_table_that_has_it() {
    let json = FlowFormat::JsonLines;
    let own =
        [FIRST, SECOND].map(|routes| prepared(table("site", &routes), &["site", "prefix"], json));
    let owners = prepared(table("owner", &[("10.1.3.0/24", "us")]), &["owner"], json);
    let main = prepared(table("site", &MAIN), &["prefix", "site"], json);
    let own = [&own[0], &owners, &own[1]].map(Arc::clone);
    let (folder, counts) = collected(FlowTable::with_own(&own, Some(main)).unwrap(), json);
    let rows = rows(folder.path());
    for (at, row) in rows.iter().enumerate() {
        let at = at as u32;
        let all = [&FIRST[..], &SECOND, &MAIN];
        let (prefix, site) = all.iter().find_map(|table| longest(table, at)).unwrap();
        assert_eq!((&row["src_prefix"], &row["src_site"]), (&prefix.into(), &site.into()), "{row}");
        let owner = if at >= 768 { "us".into() } else { Value::Null };
        assert_eq!(row.get("src_owner").unwrap_or(&Value::Null), &owner, "{row}");
        assert_eq!(row.get("dst_site").unwrap_or(&Value::Null), &Value::Null, "{row}");
    }
    assert_eq!((counts.addresses, counts.matched), (2048, 1024));
}

/// An address counts once, whatever number of tables has it, and without a table behind the own ones.
#[test]
fn addresses_are_counted_once() {
    let json = FlowFormat::JsonLines;
    let own = [FIRST, SECOND].map(|routes| prepared(table("site", &routes), &["site"], json));
    let found = |at: &u32| longest(&FIRST, *at).is_some() || longest(&SECOND, *at).is_some();
    let expected = (0..1024).filter(found).count() as u64;
    let (_, counts) = collected(FlowTable::with_own(&own, None).unwrap(), json);
    assert_eq!((counts.addresses, counts.matched), (2048, expected));
    // In the table of a VRF, too.
    let main = prepared(table("site", &MAIN), &["site"], json);
    let by_vrf = FlowTable::by_vrf(Some(main), &[("7".to_owned(), None)]).unwrap();
    let whole = FlowTable::with_own(&own, Some(Arc::new(by_vrf))).unwrap();
    let (_, counts) = collected(whole, json);
    assert_eq!((counts.addresses, counts.matched), (2048, 1024));
}

/// A column that one table alone has keeps its dictionary in Parquet, one of several tables is plain.
#[test]
fn parquet() {
    let format = FlowFormat::Parquet;
    let own = prepared(table("site", &FIRST), &["site"], format);
    let owners = prepared(table("owner", &SECOND), &["owner"], format);
    let main = prepared(table("site", &MAIN), &["site"], format);
    let whole = FlowTable::with_own(&[own, owners], Some(main)).unwrap();
    let kind = |name: &str| whole.schema().field_with_name(name).unwrap().data_type().to_string();
    assert_eq!(kind("src_site"), "Utf8");
    assert!(kind("src_owner").starts_with("Dictionary"), "{}", kind("src_owner"));
    let (folder, _) = collected(whole, format);
    let [file] = &files(folder.path())[..] else { panic!("one file") };
    let file = std::fs::File::open(file).unwrap();
    let reader = parquet::arrow::arrow_reader::ParquetRecordBatchReader::try_new(file, 2000);
    let batch = reader.unwrap().next().unwrap().unwrap();
    let column = batch.column_by_name("src_site").unwrap();
    let sites = arrow_array::cast::AsArray::as_string::<i32>(column).iter();
    let expected = |at: u32| longest(&FIRST, at).or_else(|| longest(&MAIN, at)).unwrap().1;
    assert!(sites.eq((0..1024).map(|at| Some(expected(at)))));
}

/// Integers of other widths are one column; texts and integers are not.
#[test]
fn types() {
    let json = FlowFormat::JsonLines;
    let wide = prepared(numbers("length", &[("10.1.0.0/24", 1 << 40)]), &["length"], json);
    let narrow = prepared(numbers("length", &[("10.0.0.0/8", 8)]), &["length"], json);
    let whole = FlowTable::with_own(&[wide], Some(Arc::clone(&narrow))).unwrap();
    let (folder, _) = collected(whole, json);
    let lengths: Vec<_> =
        rows(folder.path()).iter().map(|row| row["src_length"].as_u64().unwrap()).collect();
    assert!(lengths[..256].iter().all(|&length| length == 1 << 40));
    assert!(lengths[256..].iter().all(|&length| length == 8));
    let text = prepared(table("length", &FIRST), &["length"], json);
    let result = FlowTable::with_own(&[text], Some(narrow));
    let Err(AnnotateError::File { what }) = result else { panic!("one column of two types") };
    assert!(what.contains("src_length") && what.contains("Utf8"), "{what}");
}
