//! Flows with the values of a table, which is replaced while flows come.

use std::sync::Arc;

use fibula_annotate::AnnotateOptions;
use fibula_collect::{Collector, FlowFormat, FlowTable};
use fibula_core::{Attributes, Change, Update, Value};
use fibula_fib::{Fib, FibOptions};
use fibula_rib::{BuilderOptions, ColumnKind, TableBuilder};

use crate::common::{Exporter, ipfix_flow, ipfix_template, options, rows, v5, wait};

/// A table whose column has a text for each prefix.
pub fn table(column: &str, routes: &[(&str, &str)]) -> Fib {
    let mut builder = TableBuilder::new(BuilderOptions::default());
    builder.begin_source("t", "text", &[(column.into(), ColumnKind::Str)], false, None);
    for (prefix, value) in routes {
        let values = [Value::Str(value)];
        let change = Change::Announce(Attributes::Values(&values));
        builder.apply(&Update::new(prefix.parse().unwrap(), change));
    }
    Fib::of_table(builder.finish().unwrap(), &FibOptions::default()).unwrap()
}

/// A table whose column has a number for each prefix.
pub fn numbers(column: &str, routes: &[(&str, u64)]) -> Fib {
    let mut builder = TableBuilder::new(BuilderOptions::default());
    builder.begin_source("t", "text", &[(column.into(), ColumnKind::Int)], false, None);
    for (prefix, value) in routes {
        let values = [Value::Int(*value)];
        let change = Change::Announce(Attributes::Values(&values));
        builder.apply(&Update::new(prefix.parse().unwrap(), change));
    }
    Fib::of_table(builder.finish().unwrap(), &FibOptions::default()).unwrap()
}

fn prepared(fib: Fib) -> Arc<FlowTable> {
    let mut options = AnnotateOptions::default();
    options.add = vec!["prefix".into(), "site".into()];
    Arc::new(FlowTable::new(fib, &options, FlowFormat::JsonLines).unwrap())
}

#[test]
fn both_ends_are_looked_up() {
    let folder = tempfile::tempdir().unwrap();
    let fib = table(
        "site",
        &[("10.1.0.0/16", "one"), ("10.1.0.2/31", "two"), ("2001:db8::2/128", "six")],
    );
    let options = options(folder.path(), FlowFormat::JsonLines);
    let collector = Collector::start(options, Some(prepared(fib))).unwrap();
    let exporter = Exporter::to(&collector);
    for datagram in [v5(1, 2), ipfix_template(), ipfix_flow(0, 5)] {
        exporter.send(&datagram);
    }
    let counts = collector.stop().unwrap();
    assert_eq!((counts.rows, counts.addresses, counts.matched), (3, 6, 3));
    let rows = rows(folder.path());
    let of = |row: usize, name: &str| {
        rows[row].get(name).and_then(|value| value.as_str().map(str::to_owned))
    };
    let found =
        |row| ["src_prefix", "src_site", "dst_prefix", "dst_site"].map(|name| of(row, name));
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(found(0), [text("10.1.0.0/16"), text("one"), None, None]);
    assert_eq!(found(1), [text("10.1.0.2/31"), text("two"), None, None]);
    assert_eq!(found(2), [None, None, text("2001:db8::2/128"), text("six")]);
}

/// Each row has the values of one table, as it was from some moment on; no row is lost.
#[test]
fn a_table_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let tables = ["old", "new"]
        .map(|site| prepared(table("site", &[("10.1.0.0/16", site), ("192.0.2.0/24", site)])));
    let mut options = options(folder.path(), FlowFormat::JsonLines);
    options.batch_rows = 64;
    options.delay = std::time::Duration::from_millis(1);
    let collector = Collector::start(options, Some(Arc::clone(&tables[0]))).unwrap();
    let exporter = Exporter::to(&collector);
    for at in 0..400 {
        exporter.send(&v5(at * 30, 30));
        if at == 200 {
            wait(&collector, |counts| counts.rows > 0);
            collector.replace(Some(Arc::clone(&tables[1])));
        }
    }
    let counts = collector.stop().unwrap();
    assert_eq!((counts.rows, counts.dropped), (12_000, 0));
    let rows = rows(folder.path());
    assert!(rows.iter().all(|row| row["src_site"] == row["dst_site"]));
    let first = rows.iter().position(|row| row["src_site"] == "new").unwrap();
    assert!(first > 0 && rows[first..].iter().all(|row| row["src_site"] == "new"));
}

/// A column of the table that would be called as one of flows is refused.
#[test]
fn names_that_are_taken() {
    let mut options = AnnotateOptions::default();
    options.add = vec!["port".into()];
    let fib = table("port", &[("10.0.0.0/8", "80")]);
    let error = FlowTable::new(fib, &options, FlowFormat::Parquet).err().unwrap();
    assert!(error.to_string().contains("src_port"), "{error}");
}
