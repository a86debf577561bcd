//! Tables of several peers, by the decision of a RIB; routes that are left out; and tables as sources.

use std::collections::BTreeMap;
use std::net::IpAddr;

use fibula_core::{AnyPrefix, Attributes, BgpAttributes, Change, Update, Value};
use fibula_rib::{
    BuilderOptions, ColumnKind, LeftOut, Peer, PeerChoice, Rib, Table, TableBuilder, layers,
};
use proptest::prelude::*;

fn address(n: u32) -> Option<IpAddr> {
    Some(IpAddr::from([192, 0, 2, n as u8]))
}

fn choose(peer: PeerChoice) -> BuilderOptions {
    BuilderOptions { peer, ..BuilderOptions::default() }
}

/// A collector with this number of peers, peer `n` in AS `n / 2`.
fn collector(options: BuilderOptions, peers: u32) -> TableBuilder {
    let mut builder = TableBuilder::new(options);
    session(&mut builder, "rib", peers);
    builder
}

fn session(builder: &mut TableBuilder, name: &str, peers: u32) {
    builder.begin_source(name, "mrt", &[], true, None);
    (0..peers).for_each(|n| builder.add_peer(n, address(n), n / 2));
}

fn update<'a>(peer: u32, prefix: &str, change: Change<'a>) -> Update<'a> {
    Update { peer, ..Update::new(prefix.parse().unwrap(), change) }
}

fn announce(builder: &mut TableBuilder, peer: u32, prefix: &str, as_path_len: u32) {
    let origin_as = Some(100 + peer);
    let bgp = BgpAttributes { as_path_len, origin_as, ..Default::default() };
    builder.apply(&update(peer, prefix, Change::Announce(Attributes::Bgp(&bgp))));
}

fn withdraw(builder: &mut TableBuilder, peer: u32, prefix: &str) {
    builder.apply(&update(peer, prefix, Change::Withdraw));
}

/// `prefix peer`, the peer by the last number of its address.
fn peers(table: &Table) -> Vec<String> {
    let column = table.columns.find("peer").unwrap();
    let peer = |hop: fibula_core::Hop| match table.columns.value(column, hop.index().unwrap()) {
        Value::Str(text) => text.rsplit('.').next().unwrap().to_owned(),
        other => format!("{other:?}"),
    };
    let v4 = table.v4.iter().map(|r| format!("{} {}", r.prefix, peer(r.hop)));
    v4.chain(table.v6.iter().map(|r| format!("{} {}", r.prefix, peer(r.hop)))).collect()
}

/// A dual-stack collector: IPv4 over one session, IPv6 over another, and a peer that lacks a prefix.
fn dual_stack(choice: PeerChoice) -> Table {
    let mut builder = collector(choose(choice), 4);
    announce(&mut builder, 0, "10.0.0.0/8", 3);
    announce(&mut builder, 0, "11.0.0.0/8", 3);
    announce(&mut builder, 0, "12.0.0.0/8", 3);
    announce(&mut builder, 1, "2001:db8::/32", 3);
    announce(&mut builder, 2, "10.0.0.0/8", 2);
    announce(&mut builder, 2, "13.0.0.0/8", 9);
    builder.finish().unwrap()
}

#[test]
fn the_best_paths_of_all_peers_are_the_default() {
    assert_eq!(PeerChoice::default(), PeerChoice::Best);
    let table = dual_stack(PeerChoice::Best);
    let all = ["10.0.0.0/8 2", "11.0.0.0/8 0", "12.0.0.0/8 0", "13.0.0.0/8 2", "2001:db8::/32 1"];
    assert_eq!(peers(&table), all);
    let provenance = &table.provenance;
    assert_eq!(
        (provenance.selected_peer.as_ref(), provenance.left_out),
        (None, LeftOut::default())
    );
    // The fourth peer has no routes. For the others, the number of their routes in the table.
    let taken: Vec<_> = provenance.peers.iter().map(|peer| (peer.index, peer.routes)).collect();
    assert_eq!(taken, [(0, 2), (1, 1), (2, 2)]);
    let text = provenance.peers_text().unwrap();
    assert_eq!(text, "the best paths of 3 peers, of 4");
}

#[test]
fn an_as_names_all_its_sessions() {
    // Peers 0 and 1 are in AS 0: one session for each family.
    let table = dual_stack(PeerChoice::As(0));
    let of_as = ["10.0.0.0/8 0", "11.0.0.0/8 0", "12.0.0.0/8 0", "2001:db8::/32 1"];
    assert_eq!(peers(&table), of_as);
    assert_eq!(table.provenance.left_out, LeftOut { prefixes: 0, announcements: 2 });
    let text = table.provenance.peers_text().unwrap();
    assert!(text.contains("2 peers, of 4") && text.contains("2 announcements"), "{text}");
}

#[test]
fn prefixes_that_one_peer_lacks_are_counted() {
    let table = dual_stack(PeerChoice::Most);
    assert_eq!(peers(&table), ["10.0.0.0/8 0", "11.0.0.0/8 0", "12.0.0.0/8 0"]);
    assert_eq!(table.provenance.left_out, LeftOut { prefixes: 2, announcements: 0 });
    let text = table.provenance.peers_text().unwrap();
    assert!(text.ends_with("of 4 peers; 2 prefixes that only others have are left out"), "{text}");
}

/// `build d1.fib updates`: the updates of the table's peers replace and withdraw its routes.
#[test]
fn updates_over_a_table_are_those_over_its_sources() {
    for choice in [PeerChoice::Best, PeerChoice::Most, PeerChoice::Index(0), PeerChoice::As(0)] {
        let table = dual_stack(choice.clone());
        // With the column of peers and without it.
        for kept in [None, Some(vec!["origin_as".to_owned()])] {
            let table = match &kept {
                None => table.clone(),
                Some(_) if table.provenance.peers.len() > 1 => continue, // the peers of the routes are unknown
                Some(_) => {
                    let options =
                        BuilderOptions { columns: kept.clone(), ..choose(choice.clone()) };
                    let mut builder = TableBuilder::new(options);
                    builder.add_table("t.fib", "snapshot", &table);
                    builder.finish().unwrap()
                }
            };
            let names: Vec<_> = table.columns.names().map(str::to_owned).collect();
            let mut builder = TableBuilder::new(choose(choice.clone()));
            builder.add_table("t.fib", "snapshot", &table);
            assert_eq!(builder.finish().unwrap().columns.names().collect::<Vec<_>>(), names);

            let mut builder = TableBuilder::new(choose(choice.clone()));
            builder.add_table("t.fib", "snapshot", &table);
            session(&mut builder, "updates", 4);
            withdraw(&mut builder, 0, "11.0.0.0/8");
            withdraw(&mut builder, 1, "12.0.0.0/8"); // never announced by this peer
            announce(&mut builder, 0, "14.0.0.0/8", 1);
            let after = builder.finish().unwrap();
            let prefixes: Vec<_> = after.v4.iter().map(|r| r.prefix.to_string()).collect();
            assert!(!prefixes.contains(&"11.0.0.0/8".to_owned()), "{choice:?} {prefixes:?}");
            for there in ["10.0.0.0/8", "12.0.0.0/8", "14.0.0.0/8"] {
                assert!(prefixes.contains(&there.to_owned()), "{choice:?} {there} {prefixes:?}");
            }
        }
    }
}

/// Routes of a table without a peer keep their order: later than earlier sources, earlier than later ones. No peer can
/// withdraw them.
#[test]
fn other_routes_of_a_table_are_nobodys() {
    let mut builder = collector(BuilderOptions::default(), 2);
    announce(&mut builder, 0, "10.0.0.0/8", 1);
    announce(&mut builder, 0, "11.0.0.0/8", 1);
    let note = [("note".to_owned(), ColumnKind::Str)];
    builder.begin_source("notes", "text", &note, false, None);
    let values = [Value::Str("mine")];
    let change = Change::Announce(Attributes::Values(&values));
    for prefix in ["10.0.0.0/8", "12.0.0.0/8"] {
        builder.apply(&update(0, prefix, change));
    }
    let table = builder.finish().unwrap();
    assert_eq!(peers(&table), ["10.0.0.0/8 Null", "11.0.0.0/8 0", "12.0.0.0/8 Null"]);

    let mut builder = collector(BuilderOptions::default(), 2);
    announce(&mut builder, 1, "10.0.0.0/8", 1);
    builder.add_table("t.fib", "snapshot", &table);
    session(&mut builder, "updates", 2);
    for prefix in ["10.0.0.0/8", "11.0.0.0/8", "12.0.0.0/8"] {
        withdraw(&mut builder, 0, prefix);
    }
    announce(&mut builder, 0, "12.0.0.0/8", 1);
    let after = builder.finish().unwrap();
    assert_eq!(peers(&after), ["10.0.0.0/8 Null", "12.0.0.0/8 0"]);
    // Layers have no peers.
    let side_by_side = layers(&[("a", &table)]).unwrap();
    assert!(side_by_side.provenance.peers.is_empty());
}

proptest! {
    /// The builder and the RIB make the same decisions, whatever peers announce and withdraw.
    #[test]
    fn the_table_of_all_peers_is_the_rib(
        steps in prop::collection::vec(
            (0..4u32, 0..24u8, 0..3u32, prop::option::of((0..3u32, 0..3u8, 0..3u32))), 0..200,
        )
    ) {
        let mut builder = collector(BuilderOptions::default(), 4);
        let mut rib = Rib::default();
        (0..4).for_each(|n| { rib.peer(Peer::new(address(n), n / 2)); });
        for (peer, prefix, path_id, numbers) in steps {
            let text = match prefix < 12 {
                true => format!("10.{prefix}.0.0/16"),
                false => format!("2001:db8:{prefix:x}::/48"),
            };
            let (as_path_len, origin, med) = numbers.unwrap_or_default();
            let (origin, med) = (Some(origin), Some(med));
            let bgp = BgpAttributes { as_path_len, origin, med, ..Default::default() };
            let change = match numbers {
                Some(_) => Change::Announce(Attributes::Bgp(&bgp)),
                None => Change::Withdraw,
            };
            let update = Update { path_id, ..update(peer, &text, change) };
            builder.apply(&update);
            rib.apply(&update, &mut ()).unwrap();
        }
        let table = builder.finish().unwrap();
        let best = |peer: u32| rib.peers()[peer].address.unwrap().to_string();
        let v4 = rib.iter::<u32>(0).map(|(prefix, path)| (AnyPrefix::V4(prefix), path));
        let v6 = rib.iter::<u128>(0).map(|(prefix, path)| (AnyPrefix::V6(prefix), path));
        let expected: BTreeMap<AnyPrefix, (String, u32)> = v4.chain(v6).map(|(prefix, path)| {
            (prefix, (best(path.peer), path.attributes.bgp().unwrap().as_path_len))
        }).collect();
        let column = |name| table.columns.find(name).unwrap();
        let row = |hop: fibula_core::Hop| {
            let row = hop.index().unwrap();
            let values = ["peer", "as_path_len"].map(|name| table.columns.value(column(name), row));
            let [Value::Str(peer), Value::Int(len)] = values else { panic!("{values:?}") };
            (peer.to_owned(), len as u32)
        };
        let v4 = table.v4.iter().map(|r| (AnyPrefix::V4(r.prefix), row(r.hop)));
        let v6 = table.v6.iter().map(|r| (AnyPrefix::V6(r.prefix), row(r.hop)));
        prop_assert_eq!(v4.chain(v6).collect::<BTreeMap<_, _>>(), expected);
    }
}
