//! Prefixes that occur twice: counted, named, or listed.

use std::net::IpAddr;

use fibula_core::{AnyPrefix, Attributes, BgpAttributes, Change, Hop, Update, Value};
use fibula_rib::{BuilderOptions, ColumnKind, PeerChoice, Table, TableBuilder, TableError, layers};

fn builder(peer: PeerChoice, tags: Option<&str>) -> TableBuilder {
    let tags = tags.map(str::to_owned);
    TableBuilder::new(BuilderOptions { peer, tags, ..BuilderOptions::default() })
}

fn source(builder: &mut TableBuilder, name: &str, columns: &[(&str, ColumnKind)]) {
    let columns: Vec<_> = columns.iter().map(|(name, kind)| ((*name).to_owned(), *kind)).collect();
    builder.begin_source(name, "text", &columns, false, None);
}

fn announce_values(builder: &mut TableBuilder, line: u64, prefix: &str, values: &[Value<'_>]) {
    builder.at_record(line, false);
    let change = Change::Announce(Attributes::Values(values));
    builder.apply(&Update::new(prefix.parse().unwrap(), change));
}

fn peers(builder: &mut TableBuilder, name: &str) {
    builder.begin_source(name, "mrt", &[], true, None);
    for index in 0..3u8 {
        let address = IpAddr::from([192, 0, 2, index]);
        builder.add_peer(index.into(), Some(address), 64500 + u32::from(index));
    }
}

fn announce_bgp(builder: &mut TableBuilder, peer: u32, path_id: u32, prefix: &str, origin: u32) {
    let bgp =
        BgpAttributes { origin_as: Some(origin), as_path_len: 9 - peer, ..Default::default() };
    let change = Change::Announce(Attributes::Bgp(&bgp));
    let prefix: AnyPrefix = prefix.parse().unwrap();
    builder.apply(&Update { peer, path_id, ..Update::new(prefix, change) });
}

fn value(table: &Table, prefix: &str, column: &str) -> String {
    let prefix: AnyPrefix = prefix.parse().unwrap();
    let hop = match prefix {
        AnyPrefix::V4(prefix) => table.v4.iter().find(|r| r.prefix == prefix).map(|r| r.hop),
        AnyPrefix::V6(prefix) => table.v6.iter().find(|r| r.prefix == prefix).map(|r| r.hop),
    };
    let row = hop.and_then(Hop::index).expect("the prefix has a route");
    let column = table.columns.find(column).expect("the column is there");
    match table.columns.value(column, row) {
        Value::Null => "-".to_owned(),
        Value::Int(number) => format!("int {number}"),
        Value::Str(text) => text.to_owned(),
    }
}

fn named(table: &Table) -> Vec<String> {
    table.provenance.replaced.iter().map(ToString::to_string).collect()
}

#[test]
fn replaced_prefixes_are_counted_and_named() {
    let mut builder = builder(PeerChoice::Best, None);
    source(&mut builder, "a.txt", &[("value", ColumnKind::Int)]);
    announce_values(&mut builder, 1, "10.0.0.0/8", &[Value::Int(1)]);
    announce_values(&mut builder, 3, "2001:db8::/32", &[Value::Int(1)]);
    assert_eq!(builder.first_repeated(), None);
    announce_values(&mut builder, 7, "10.0.0.0/8", &[Value::Int(2)]);
    let first = builder.first_repeated().expect("line 7 repeats line 1").to_string();
    assert_eq!(first, "10.0.0.0/8: line 7 of a.txt replaces line 1 of a.txt");
    source(&mut builder, "b.txt", &[("value", ColumnKind::Int)]);
    assert_eq!(builder.first_repeated(), None, "of the current source");
    announce_values(&mut builder, 2, "2001:db8::/32", &[Value::Int(3)]);
    announce_values(&mut builder, 4, "11.0.0.0/8", &[Value::Int(3)]);
    // A record that may take prefixes from others does not repeat them, and unknown records cannot be distinguished.
    builder.at_record(5, true);
    let change = Change::Announce(Attributes::Values(&[Value::Int(4)]));
    builder.apply(&Update::new("11.0.0.0/8".parse().unwrap(), change));
    source(&mut builder, "c", &[]);
    for line in [0, 0] {
        announce_values(&mut builder, line, "12.0.0.0/8", &[]);
    }
    announce_values(&mut builder, 0, "10.0.0.0/8", &[]);
    let table = builder.finish().unwrap();
    let counts: Vec<_> =
        table.provenance.sources.iter().map(|s| (s.repeated, s.replaced)).collect();
    assert_eq!(counts, [(1, 0), (0, 1), (0, 1)]);
    assert_eq!(
        named(&table),
        [
            "10.0.0.0/8: line 7 of a.txt replaces line 1 of a.txt",
            "2001:db8::/32: line 2 of b.txt replaces line 3 of a.txt",
            "10.0.0.0/8: c replaces line 7 of a.txt",
        ]
    );
    let layered = layers(&[("x", &table), ("y", &table)]).unwrap();
    assert_eq!(layered.provenance.replaced.len(), 6);
    assert!(named(&layered)[3].contains("line 7 of y=a.txt"), "{:?}", named(&layered));
}

#[test]
fn so_many_are_named_and_all_are_counted() {
    let mut builder = builder(PeerChoice::Best, None);
    for name in ["a", "b"] {
        source(&mut builder, name, &[]);
        for line in 1..=100 {
            announce_values(&mut builder, line, &format!("10.{}.0.0/16", (line - 1) / 2), &[]);
        }
    }
    let table = builder.finish().unwrap();
    let counts: Vec<_> =
        table.provenance.sources.iter().map(|s| (s.repeated, s.replaced)).collect();
    assert_eq!(counts, [(50, 0), (50, 50)]);
    // Of each kind as many.
    assert_eq!(named(&table).len(), 40);
    assert_eq!(named(&table).iter().filter(|text| text.ends_with("of a")).count(), 40);
}

#[test]
fn peers_replace_and_are_replaced() {
    for is_text_last in [false, true] {
        let mut builder = builder(PeerChoice::Best, None);
        let text = |builder: &mut TableBuilder| {
            source(builder, "list", &[]);
            announce_values(builder, 5, "10.0.0.0/8", &[]);
            announce_values(builder, 6, "12.0.0.0/8", &[]);
        };
        if !is_text_last {
            text(&mut builder);
        }
        peers(&mut builder, "rib");
        announce_bgp(&mut builder, 0, 0, "10.0.0.0/8", 1);
        // An update is no repetition.
        announce_bgp(&mut builder, 0, 0, "10.0.0.0/8", 2);
        announce_bgp(&mut builder, 1, 0, "11.0.0.0/8", 2);
        if is_text_last {
            text(&mut builder);
        }
        let table = builder.finish().unwrap();
        let counts: Vec<_> =
            table.provenance.sources.iter().map(|s| (s.repeated, s.replaced)).collect();
        assert_eq!(counts, [(0, 0), (0, 1)]);
        let wanted = match is_text_last {
            true => "10.0.0.0/8: line 5 of list replaces rib",
            false => "10.0.0.0/8: rib replaces line 5 of list",
        };
        assert_eq!(named(&table), [wanted]);
    }
}

#[test]
fn tags_list_the_values_of_all_rows_and_sources() {
    let mut builder = builder(PeerChoice::Best, Some("list"));
    source(&mut builder, "a", &[("score", ColumnKind::Int), ("list", ColumnKind::Str)]);
    let row = |score, list| [Value::Int(score), list];
    announce_values(&mut builder, 1, "10.0.0.0/8", &row(1, Value::Str("spam")));
    announce_values(&mut builder, 2, "10.0.0.0/8", &row(2, Value::Str("botnet")));
    announce_values(&mut builder, 3, "10.0.0.0/8", &row(3, Value::Str("spam")));
    announce_values(&mut builder, 4, "11.0.0.0/8", &row(4, Value::Null));
    source(&mut builder, "b", &[("list", ColumnKind::Int)]);
    announce_values(&mut builder, 1, "10.0.0.0/8", &[Value::Int(7)]);
    announce_values(&mut builder, 2, "2001:db8::/32", &[Value::Int(7)]);
    source(&mut builder, "lists/drop.txt.gz", &[]);
    assert_eq!(builder.stand_in(), Some("drop"));
    announce_values(&mut builder, 1, "10.0.0.0/8", &[]);
    announce_values(&mut builder, 2, "2001:db8::/32", &[]);
    source(&mut builder, "c", &[("list", ColumnKind::Str)]);
    assert_eq!(builder.stand_in(), None);
    // The value is a list already.
    announce_values(&mut builder, 1, "2001:db8::/32", &[Value::Str("spam; drop;; new")]);
    let table = builder.finish().unwrap();
    assert_eq!(value(&table, "10.0.0.0/8", "list"), "spam;botnet;7;drop");
    assert_eq!(value(&table, "11.0.0.0/8", "list"), "-");
    assert_eq!(value(&table, "2001:db8::/32", "list"), "7;drop;spam;new");
    // The other columns come from the last row, whose source has none of them.
    assert_eq!(value(&table, "10.0.0.0/8", "score"), "-");
    assert_eq!(value(&table, "11.0.0.0/8", "score"), "int 4");
    assert_eq!(table.provenance.tags.as_deref(), Some("list"));

    // Such a table as a source: its lists are extended.
    let mut again = self::builder(PeerChoice::Best, Some("list"));
    again.add_table("t.fib", "snapshot", &table);
    source(&mut again, "new", &[("list", ColumnKind::Str)]);
    announce_values(&mut again, 1, "10.0.0.0/8", &[Value::Str("botnet")]);
    announce_values(&mut again, 1, "10.0.0.0/8", &[Value::Str("newest")]);
    let table = again.finish().unwrap();
    assert_eq!(value(&table, "10.0.0.0/8", "list"), "spam;botnet;7;drop;newest");
    assert_eq!(value(&table, "2001:db8::/32", "list"), "7;drop;spam;new");
}

#[test]
fn the_column_of_tags_is_kept() {
    let options = BuilderOptions {
        tags: Some("list".into()),
        columns: Some(vec!["score".into()]),
        ..Default::default()
    };
    let mut builder = TableBuilder::new(options);
    source(&mut builder, "a", &[("score", ColumnKind::Int), ("x", ColumnKind::Int)]);
    announce_values(&mut builder, 1, "10.0.0.0/8", &[Value::Int(1), Value::Int(2)]);
    let table = builder.finish().unwrap();
    assert_eq!(table.columns.names().collect::<Vec<_>>(), ["score", "list"]);
    assert_eq!(value(&table, "10.0.0.0/8", "list"), "a");
}

#[test]
fn withdrawn_prefixes_have_no_tags() {
    let mut builder = builder(PeerChoice::Best, Some("list"));
    source(&mut builder, "a", &[("list", ColumnKind::Str)]);
    announce_values(&mut builder, 1, "10.0.0.0/8", &[Value::Str("old")]);
    announce_values(&mut builder, 2, "11.0.0.0/8", &[Value::Str("old")]);
    builder.apply(&Update::new("10.0.0.0/8".parse().unwrap(), Change::Withdraw));
    announce_values(&mut builder, 3, "10.0.0.0/8", &[Value::Str("new")]);
    let table = builder.finish().unwrap();
    assert_eq!(value(&table, "10.0.0.0/8", "list"), "new");
    assert_eq!(value(&table, "11.0.0.0/8", "list"), "old");
    assert_eq!(table.provenance.sources[0].repeated, 0);
}

/// Three peers with their origins of a prefix, one of them with a second path, and a later update.
fn origins(choice: PeerChoice, tags: Option<&str>) -> TableBuilder {
    let mut builder = builder(choice, tags);
    peers(&mut builder, "rib");
    announce_bgp(&mut builder, 0, 0, "10.0.0.0/8", 1);
    announce_bgp(&mut builder, 1, 0, "10.0.0.0/8", 2);
    announce_bgp(&mut builder, 1, 8, "10.0.0.0/8", 9);
    announce_bgp(&mut builder, 2, 0, "10.0.0.0/8", 1);
    announce_bgp(&mut builder, 0, 0, "11.0.0.0/8", 5);
    announce_bgp(&mut builder, 0, 0, "11.0.0.0/8", 6);
    builder
}

#[test]
fn all_peers_list_their_origins() {
    let table = origins(PeerChoice::All, Some("origin_as")).finish().unwrap();
    assert_eq!(value(&table, "10.0.0.0/8", "origin_as"), "1;2;9");
    assert_eq!(value(&table, "11.0.0.0/8", "origin_as"), "6", "what was replaced is gone");
    // The other columns are those of the best path: that of peer 2, the shortest.
    assert_eq!(value(&table, "10.0.0.0/8", "peer"), "192.0.2.2");
    assert_eq!(value(&table, "10.0.0.0/8", "as_path_len"), "int 7");
    let table = origins(PeerChoice::Best, Some("origin_as")).finish().unwrap();
    assert_eq!(value(&table, "10.0.0.0/8", "origin_as"), "1");
    let table = origins(PeerChoice::All, Some("peer")).finish().unwrap();
    assert_eq!(value(&table, "10.0.0.0/8", "peer"), "192.0.2.0;192.0.2.1;192.0.2.2");
    assert_eq!(value(&table, "10.0.0.0/8", "origin_as"), "int 1");
    let error = origins(PeerChoice::All, None).finish().unwrap_err();
    assert_eq!(error, TableError::AllPeers);
}

#[test]
fn lists_of_peers_stay_when_their_table_is_a_source() {
    let table = origins(PeerChoice::All, Some("origin_as")).finish().unwrap();
    for tags in [None, Some("origin_as")] {
        let mut again = builder(PeerChoice::Best, tags);
        again.add_table("t.fib", "snapshot", &table);
        let table = again.finish().unwrap();
        assert_eq!(value(&table, "10.0.0.0/8", "origin_as"), "1;2;9", "{tags:?}");
    }
    // Text and peers, and a source of BGP that has no such column.
    let mut builder = builder(PeerChoice::All, Some("origin_as"));
    source(&mut builder, "list", &[("origin_as", ColumnKind::Int)]);
    announce_values(&mut builder, 1, "10.0.0.0/8", &[Value::Int(77)]);
    peers(&mut builder, "rib");
    announce_bgp(&mut builder, 0, 0, "10.0.0.0/8", 1);
    let table = builder.finish().unwrap();
    assert_eq!(value(&table, "10.0.0.0/8", "origin_as"), "77;1");
    let mut builder = self::builder(PeerChoice::Best, Some("list"));
    peers(&mut builder, "rib.20260101.0000.bz2");
    announce_bgp(&mut builder, 0, 0, "10.0.0.0/8", 1);
    source(&mut builder, "drop", &[]);
    announce_values(&mut builder, 1, "10.0.0.0/8", &[]);
    let table = builder.finish().unwrap();
    assert_eq!(value(&table, "10.0.0.0/8", "list"), "rib.20260101;drop");
}
