//! The builder against the rules that its page states, and against a plain model.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use fibula_core::{AnyPrefix, Attributes, BgpAttributes, Change, Hop, Update, Value};
use fibula_rib::{BuilderOptions, ColumnKind, PeerChoice, Table, TableBuilder, TableError};
use proptest::prelude::*;

fn update<'a>(prefix: &str, peer: u32, path_id: u32, change: Change<'a>) -> Update<'a> {
    Update { peer, path_id, ..Update::new(prefix.parse().unwrap(), change) }
}

fn announce_values(builder: &mut TableBuilder, prefix: &str, values: &[Value<'_>]) {
    builder.apply(&update(prefix, 0, 0, Change::Announce(Attributes::Values(values))));
}

fn announce_bgp(builder: &mut TableBuilder, peer: u32, prefix: &str, bgp: &BgpAttributes<'_>) {
    builder.apply(&update(prefix, peer, 0, Change::Announce(Attributes::Bgp(bgp))));
}

fn withdraw(builder: &mut TableBuilder, peer: u32, prefix: &str) {
    builder.apply(&update(prefix, peer, 0, Change::Withdraw));
}

fn from(origin: u32) -> BgpAttributes<'static> {
    BgpAttributes {
        next_hop: Some("192.0.2.1".parse().unwrap()),
        origin_as: Some(origin),
        as_path_len: 2,
        as_path: "64500 64501",
        communities: "64500:1",
        ..BgpAttributes::default()
    }
}

/// `prefix column=value ...` for every route, values that are null left out.
fn dump(table: &Table) -> Vec<String> {
    let row = |hop: Hop| {
        let row = hop.index().unwrap();
        let names = table.columns.names().enumerate();
        let cell = |(i, name): (usize, &str)| match table.columns.value(i, row) {
            Value::Null => String::new(),
            Value::Int(v) => format!(" {name}={v}"),
            Value::Str(v) => format!(" {name}={v}"),
        };
        names.map(cell).collect::<String>()
    };
    let v4 = table.v4.iter().map(|r| format!("{}{}", r.prefix, row(r.hop)));
    v4.chain(table.v6.iter().map(|r| format!("{}{}", r.prefix, row(r.hop)))).collect()
}

fn columns(list: &[(&str, ColumnKind)]) -> Vec<(String, ColumnKind)> {
    list.iter().map(|(name, kind)| ((*name).to_owned(), *kind)).collect()
}

#[test]
fn sources_merge_in_order_and_columns_by_name() {
    let mut builder = TableBuilder::new(BuilderOptions::default());
    let first = columns(&[("asn", ColumnKind::Int), ("name", ColumnKind::Str)]);
    builder.begin_source("a", "tsv", &first, false, Some(7));
    announce_values(&mut builder, "10.0.0.0/8", &[Value::Int(1), Value::Str("one")]);
    announce_values(&mut builder, "11.0.0.0/8", &[Value::Int(2), Value::Null]);
    announce_values(&mut builder, "2001:db8::/32", &[Value::Int(1), Value::Str("one")]);
    // `asn` is text here, so it is text throughout.
    let second = columns(&[("cc", ColumnKind::Str), ("asn", ColumnKind::Str)]);
    builder.begin_source("b", "csv", &second, false, None);
    announce_values(&mut builder, "11.0.0.0/8", &[Value::Str("CH"), Value::Str("2")]);
    announce_values(&mut builder, "12.0.0.0/8", &[Value::Str("CH"), Value::Str("two")]);
    withdraw(&mut builder, 0, "12.0.0.0/8");
    let table = builder.finish().unwrap();
    assert_eq!(
        dump(&table),
        ["10.0.0.0/8 asn=1 name=one", "11.0.0.0/8 asn=2 cc=CH", "2001:db8::/32 asn=1 name=one"]
    );
    assert_eq!(table.columns.names().collect::<Vec<_>>(), ["asn", "name", "cc"]);
    assert_eq!(table.columns.kind(0), ColumnKind::Str);
    // One row for both families; replaced and withdrawn routes leave nothing behind.
    assert_eq!((table.columns.len(), table.columns.distinct(0)), (2, 2));
    assert_eq!(table.v4.as_slice()[0].hop, Hop::new(0));
    assert_eq!(table.selected_peer(), None);
    let sources = &table.provenance.sources;
    assert_eq!((sources[0].announced, sources[0].date), (3, Some(7)));
    assert_eq!((sources[1].announced, sources[1].withdrawn), (2, 1));
    assert!(table.provenance.created > 1_600_000_000);
}

#[test]
fn text_in_a_column_declared_integer_makes_it_text() {
    let mut builder = TableBuilder::new(BuilderOptions::default());
    builder.begin_source("a", "text", &columns(&[("value", ColumnKind::Int)]), false, None);
    announce_values(&mut builder, "10.0.0.0/8", &[Value::Int(u64::MAX)]);
    announce_values(&mut builder, "11.0.0.0/8", &[Value::Str("x")]);
    announce_values(&mut builder, "12.0.0.0/8", &[]);
    let table = builder.finish().unwrap();
    let expected = ["10.0.0.0/8 value=18446744073709551615", "11.0.0.0/8 value=x", "12.0.0.0/8"];
    assert_eq!(dump(&table), expected);
}

#[test]
fn without_columns_all_routes_share_one_row() {
    let mut builder = TableBuilder::new(BuilderOptions::default());
    builder.begin_source("a", "text", &[], false, None);
    announce_values(&mut builder, "10.0.0.0/8", &[]);
    announce_values(&mut builder, "::/0", &[]);
    let table = builder.finish().unwrap();
    assert_eq!((table.columns.len(), table.columns.width()), (1, 0));
    assert_eq!(dump(&table), ["10.0.0.0/8", "::/0"]);
    let empty = TableBuilder::new(BuilderOptions::default()).finish().unwrap();
    assert!(empty.v4.is_empty() && empty.v6.is_empty() && empty.columns.is_empty());
}

fn address(n: u8) -> Option<IpAddr> {
    Some(IpAddr::from([192, 0, 2, n]))
}

/// Peer 0 (AS1) has one route, peer 1 (AS2) two, peer 2 (AS2) three.
fn three_peers(options: BuilderOptions) -> TableBuilder {
    let mut builder = TableBuilder::new(options);
    builder.begin_source("rib", "mrt", &[], true, None);
    for (peer, asn) in [(0, 1), (1, 2), (2, 2)] {
        builder.add_peer(peer, address(peer as u8), asn);
        for n in 0..=peer {
            announce_bgp(&mut builder, peer, &format!("10.{n}.0.0/16"), &from(100 + peer));
        }
    }
    builder
}

fn choose(peer: PeerChoice) -> BuilderOptions {
    BuilderOptions { peer, ..BuilderOptions::default() }
}

#[test]
fn one_peer_is_selected() {
    let selected = |choice| {
        let table = three_peers(choose(choice)).finish().unwrap();
        let peer = table.selected_peer().unwrap();
        assert_eq!((peer.of, peer.routes), (3, table.v4.len() as u64));
        (peer.index, table.v4.len())
    };
    assert_eq!(selected(PeerChoice::Most), (2, 3));
    assert_eq!(selected(PeerChoice::Index(0)), (0, 1));
    assert_eq!(selected(PeerChoice::Address(address(1).unwrap())), (1, 2));
    let table = three_peers(choose(PeerChoice::As(1))).finish().unwrap();
    let row = "next_hop=192.0.2.1 origin_as=100 as_path_len=2 peer=192.0.2.0";
    assert_eq!(dump(&table), [format!("10.0.0.0/16 {row}")]);
    assert_eq!(table.selected_peer().unwrap().to_string(), "192.0.2.0 AS1, 1 route, of 3 peers");

    let error = three_peers(choose(PeerChoice::As(9))).finish().unwrap_err();
    assert!(error.to_string().starts_with("no peer in AS9; there are: 192.0.2.0 AS1"), "{error}");
    let error = TableBuilder::new(choose(PeerChoice::As(9))).finish().unwrap_err();
    assert!(error.to_string().contains("the sources have no peers"), "{error}");
}

#[test]
fn a_dump_and_its_updates_give_the_table_after_them() {
    let mut builder = three_peers(choose(PeerChoice::Index(2)));
    builder.begin_source("updates", "mrt", &[], true, None);
    builder.add_peer(0, address(2), 2); // the former peer 2
    builder.add_peer(1, address(9), 9);
    withdraw(&mut builder, 0, "10.0.0.0/16");
    withdraw(&mut builder, 1, "10.1.0.0/16"); // another peer's route
    withdraw(&mut builder, 0, "99.0.0.0/8"); // never announced
    announce_bgp(&mut builder, 0, "10.1.0.0/16", &from(7));
    let table = builder.finish().unwrap();
    let rest = "as_path_len=2 peer=192.0.2.2";
    assert_eq!(
        dump(&table),
        [
            format!("10.1.0.0/16 next_hop=192.0.2.1 origin_as=7 {rest}"),
            format!("10.2.0.0/16 next_hop=192.0.2.1 origin_as=102 {rest}"),
        ]
    );
    assert_eq!(table.selected_peer().unwrap().of, 4);
}

#[test]
fn a_withdrawal_removes_only_the_peers_own_routes() {
    let mut builder = TableBuilder::new(BuilderOptions::default());
    let note = columns(&[("note", ColumnKind::Str)]);
    builder.begin_source("rib", "mrt", &[], true, None);
    builder.add_peer(5, address(1), 1);
    for prefix in ["10.0.0.0/8", "11.0.0.0/8", "12.0.0.0/8"] {
        announce_bgp(&mut builder, 5, prefix, &from(1));
    }
    builder.begin_source("notes", "text", &note, false, None);
    announce_values(&mut builder, "10.0.0.0/8", &[Value::Str("mine")]);
    announce_values(&mut builder, "11.0.0.0/8", &[Value::Str("mine")]);
    builder.begin_source("updates", "mrt", &[], true, None);
    builder.add_peer(0, address(1), 1);
    withdraw(&mut builder, 0, "10.0.0.0/8");
    withdraw(&mut builder, 0, "12.0.0.0/8");
    announce_bgp(&mut builder, 0, "11.0.0.0/8", &from(2)); // later than the note
    let table = builder.finish().unwrap();
    let row = "next_hop=192.0.2.1 origin_as=2 as_path_len=2 peer=192.0.2.1";
    assert_eq!(dump(&table), ["10.0.0.0/8 note=mine".into(), format!("11.0.0.0/8 {row}")]);
}

#[test]
fn a_peer_that_goes_down_loses_its_routes() {
    let mut builder = three_peers(choose(PeerChoice::Most));
    builder.peer_down(2);
    builder.peer_down(7); // never seen
    announce_bgp(&mut builder, 2, "12.0.0.0/8", &from(3)); // up again
    let table = builder.finish().unwrap();
    let peer = table.selected_peer().unwrap();
    assert_eq!((peer.index, peer.routes), (1, 2));
}

#[test]
fn the_best_path_is_taken() {
    let path = |lp: Option<u32>, len, origin, med| BgpAttributes {
        as_path_len: len,
        local_pref: lp,
        origin: Some(origin),
        med: Some(med),
        ..from(len)
    };
    // From best to worst; each is better than all that follow.
    let ranked = [
        path(Some(200), 9, 2, 9),
        path(Some(150), 9, 2, 9),
        path(None, 1, 2, 9),
        path(Some(100), 2, 0, 9),
        path(None, 2, 1, 3),
        path(None, 2, 1, 4),
        path(Some(99), 0, 0, 0),
    ];
    for start in 0..ranked.len() {
        let keep = columns(&[]);
        let options = BuilderOptions {
            columns: Some(vec!["origin_as".into(), "next_hop".into()]),
            ..BuilderOptions::default()
        };
        let mut builder = TableBuilder::new(options);
        builder.begin_source("rib", "mrt", &keep, true, None);
        builder.add_peer(0, address(1), 1);
        for (i, attributes) in ranked.iter().enumerate().skip(start) {
            let path_id = (ranked.len() - 1 - i) as u32; // 0 for one of them
            let hop = Some(IpAddr::from([10, 0, 0, i as u8]));
            let attributes = BgpAttributes { next_hop: hop, ..attributes.clone() };
            let change = Change::Announce(Attributes::Bgp(&attributes));
            builder.apply(&update("10.0.0.0/8", 0, path_id, change));
        }
        let table = builder.finish().unwrap();
        let origin = ranked[start].as_path_len;
        assert_eq!(
            dump(&table),
            [format!("10.0.0.0/8 origin_as={origin} next_hop=10.0.0.{start}")]
        );
        assert_eq!(table.selected_peer().unwrap().routes, 1);
    }
}

#[test]
fn columns_are_kept_as_requested() {
    let options = BuilderOptions { as_path: true, communities: true, ..choose(PeerChoice::As(1)) };
    let table = three_peers(options.clone()).finish().unwrap();
    let names = ["next_hop", "origin_as", "as_path_len", "peer", "as_path", "communities"];
    assert_eq!(table.columns.names().collect::<Vec<_>>(), names);
    assert!(dump(&table)[0].ends_with("as_path=64500 64501 communities=64500:1"));

    let only = |names: &[&str]| BuilderOptions {
        columns: Some(names.iter().map(|&n| n.into()).collect()),
        ..options.clone()
    };
    let table = three_peers(only(&["peer", "origin_as", "peer"])).finish().unwrap();
    assert_eq!(dump(&table), ["10.0.0.0/16 peer=192.0.2.0 origin_as=100"]);
    let error = three_peers(only(&["nothing"])).finish().unwrap_err();
    assert!(matches!(&error, TableError::NoColumn { asked, .. } if asked == "nothing"), "{error}");
    assert!(error.to_string().contains("there are: next_hop, origin_as"), "{error}");
}

/// A random update: peer, prefix, path, value (`None` withdraws).
type Step = (u32, u8, u32, Option<u8>);

fn prefix_of(n: u8) -> AnyPrefix {
    let text = if n < 128 { format!("10.{n}.0.0/16") } else { format!("2001:db8:{n:x}::/48") };
    text.parse().unwrap()
}

/// The documented behaviour of the builder, as plainly as possible, for one BGP source.
fn model(steps: &[Step]) -> BTreeMap<AnyPrefix, u8> {
    let mut announced: BTreeMap<(u32, AnyPrefix, u32), u8> = BTreeMap::new();
    for &(peer, prefix, path_id, change) in steps {
        let key = (peer, prefix_of(prefix), path_id);
        match change {
            Some(value) => announced.insert(key, value),
            None => announced.remove(&key),
        };
    }
    let count = |peer: u32| {
        let prefixes = announced.keys().filter(|k| k.0 == peer).map(|k| k.1);
        prefixes.collect::<BTreeSet<_>>().len()
    };
    let most = (0..4u32).reduce(|best, p| if count(p) > count(best) { p } else { best });
    let mut best: BTreeMap<AnyPrefix, (u8, u32)> = BTreeMap::new();
    for (&(peer, prefix, path_id), &value) in &announced {
        if Some(peer) == most {
            // The value is the AS path length, so the least is best.
            let new = (value, path_id);
            best.entry(prefix).and_modify(|old| *old = (*old).min(new)).or_insert(new);
        }
    }
    best.into_iter().map(|(prefix, (value, _))| (prefix, value)).collect()
}

proptest! {
    #[test]
    fn any_sequence_of_updates_equals_the_model(
        steps in prop::collection::vec(
            (0..4u32, any::<u8>().prop_map(|n| n & 0x87), 0..3u32, prop::option::of(0..5u8)),
            0..200,
        )
    ) {
        let mut builder = TableBuilder::new(choose(PeerChoice::Most));
        builder.begin_source("rib", "mrt", &[], true, None);
        for peer in 0..4 {
            builder.add_peer(peer, address(peer as u8), peer);
        }
        for &(peer, prefix, path_id, change) in &steps {
            let value = u32::from(change.unwrap_or(0));
            let bgp = BgpAttributes { as_path_len: value, ..BgpAttributes::default() };
            let change = match change {
                Some(_) => Change::Announce(Attributes::Bgp(&bgp)),
                None => Change::Withdraw,
            };
            let prefix = prefix_of(prefix);
            builder.apply(&Update { peer, path_id, ..Update::new(prefix, change) });
        }
        let table = builder.finish().unwrap();
        let length = table.columns.find("as_path_len").unwrap();
        let value = |hop: Hop| match table.columns.value(length, hop.index().unwrap()) {
            Value::Int(v) => v as u8,
            other => panic!("{other:?}"),
        };
        let v4 = table.v4.iter().map(|r| (AnyPrefix::V4(r.prefix), value(r.hop)));
        let v6 = table.v6.iter().map(|r| (AnyPrefix::V6(r.prefix), value(r.hop)));
        prop_assert_eq!(v4.chain(v6).collect::<BTreeMap<_, _>>(), model(&steps));
        // Rows are dense, distinct, and in order of first appearance.
        let hops = table.v4.iter().map(|r| r.hop).chain(table.v6.iter().map(|r| r.hop));
        let mut next = 0;
        for hop in hops {
            let row = hop.index().unwrap();
            prop_assert!(row <= next);
            next = next.max(row + 1);
        }
        prop_assert_eq!(next, table.columns.len());
    }
}

/// The order in which routes arrive leaves no trace.
#[test]
fn the_order_of_arrival_does_not_matter() {
    let list: Vec<(String, u64)> =
        (0..500u64).map(|i| (format!("10.{}.{}.0/24", i % 7, i / 7), i % 13)).collect();
    let build = |list: &mut dyn Iterator<Item = &(String, u64)>| {
        let mut builder = TableBuilder::new(BuilderOptions::default());
        builder.begin_source("a", "text", &columns(&[("n", ColumnKind::Int)]), false, None);
        for (prefix, n) in list {
            announce_values(&mut builder, prefix, &[Value::Int(*n)]);
        }
        let mut table = builder.finish().unwrap();
        table.provenance.created = 0;
        table.provenance.sources.clear();
        table
    };
    assert_eq!(build(&mut list.iter()), build(&mut list.iter().rev()));
}

/// Routes of a forwarding table: numbers while each has one next hop, lists as soon as one has several.
#[test]
fn next_hops_become_columns() {
    use fibula_core::{NextHop, NextHops, RouteKind};
    let hop = |last: u8, interface, weight| NextHop {
        gateway: (last > 0).then(|| [192, 0, 2, last].into()),
        interface,
        weight,
    };
    let one = ("10.0.0.0/8", RouteKind::Unicast, vec![hop(1, Some(3), 1)]);
    let link = ("11.0.0.0/8", RouteKind::Local, vec![hop(0, Some(4), 1)]);
    let none = ("12.0.0.0/8", RouteKind::Prohibit, vec![]);
    let two = ("13.0.0.0/8", RouteKind::Unicast, vec![hop(2, None, 10), hop(0, Some(5), 1)]);
    let table = |routes: &[&(&str, RouteKind, Vec<NextHop>)], columns: Option<Vec<String>>| {
        let mut builder = TableBuilder::new(BuilderOptions { columns, ..Default::default() });
        builder.begin_source("kernel", "netlink", &[], false, None);
        for (prefix, kind, hops) in routes.iter().copied() {
            let next_hops = NextHops { kind: *kind, hops: hops.clone() };
            let change = Change::Announce(Attributes::NextHops(&next_hops));
            builder.apply(&update(prefix, 0, 0, change));
        }
        builder.finish().unwrap()
    };
    let rows = |table: &Table| -> Vec<Vec<String>> {
        let value = |column, row| match table.columns.value(column, row) {
            Value::Null => String::new(),
            Value::Int(number) => format!("{number}"),
            Value::Str(text) => format!("'{text}'"),
        };
        let row = |row| (0..table.columns.width()).map(|column| value(column, row)).collect();
        table.v4.iter().map(|route| row(route.hop.index().unwrap())).collect()
    };
    let single = table(&[&one, &link, &none], None);
    assert!(single.columns.names().eq(["next_hop", "interface", "weight", "kind"]));
    assert_eq!(
        rows(&single),
        [
            ["'192.0.2.1'", "3", "1", "'unicast'"],
            ["", "4", "1", "'local'"],
            ["", "", "", "'prohibit'"]
        ]
    );
    let several = table(&[&one, &two], None);
    assert_eq!(
        rows(&several),
        [
            ["'192.0.2.1'", "'3'", "'1'", "'unicast'"],
            ["'- 192.0.2.2'", "'5 -'", "'1 10'", "'unicast'"]
        ]
    );
    let kept = table(&[&one, &none], Some(vec!["kind".to_owned()]));
    assert_eq!(rows(&kept), [["'unicast'"], ["'prohibit'"]]);
}
