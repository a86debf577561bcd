//! Answers of every kind of table at every boundary, against the oracle.

use crate::common::{Kinds, dense};
use fibula_core::{Addr, Hop, Lookup, Prefix, Routes, Value};
use fibula_fib::{Fib, FibOptions, Pod};
use fibula_rib::{ColumnKind, ColumnsBuilder, Table};
use fibula_testkit::{Oracle, Rng, probes, tables};

/// Every boundary and some addresses more.
fn addresses<A: Addr + Pod>(routes: &Routes<A>) -> Vec<A> {
    let mut rng = Rng::new(5);
    probes::boundary(routes).chain((0..500).map(|_| rng.addr())).collect()
}

/// Whether the address is one that a question turns into another family's.
fn is_mapped<A: Addr + Pod>(addr: A) -> bool {
    A::BITS == 128 && fibula_core::mapped_v4(addr.to_u128()).is_some()
}

/// The longest match by definition.
fn longest<A: Addr + Pod>(routes: &Routes<A>, addr: A) -> Option<(Prefix<A>, Hop)> {
    let covering = routes.iter().filter(|route| route.prefix.contains(addr));
    covering.max_by_key(|route| route.prefix.len()).map(|route| (route.prefix, route.hop))
}

fn agrees<A: Addr + Pod>(kinds: &Kinds, routes: &Routes<A>) {
    let oracle = Oracle::new(routes);
    let addrs = addresses(routes);
    assert!(addrs.len() > 3 * routes.len());
    let mut expected = vec![Hop::NONE; addrs.len()];
    oracle.lookup_batch(&addrs, &mut expected);
    let matched = expected.iter().filter(|hop| !hop.is_none()).count();
    assert!(matched > 0);

    for (kind, fib) in kinds.all() {
        let mut hops = vec![Hop::new(7); addrs.len()];
        fib.lookup_batch(&addrs, &mut hops);
        for ((&addr, &hop), &expected) in addrs.iter().zip(&hops).zip(&expected) {
            let place = format!("{kind}: {}", addr.to_string_ip());
            if is_mapped(addr) {
                continue;
            }
            let found = fib.lookup(addr.to_ip());
            assert_eq!(hop.is_none(), expected.is_none(), "{place}");
            assert_eq!(found.is_some(), !expected.is_none(), "{place}");
            let Some(found) = found else { continue };
            assert_eq!(found.hop(), hop, "{place}");
            // The attribute sets of a live table have other numbers, and the same values.
            let value = expected.index().map(|hop| Value::Int(hop.into()));
            assert_eq!(found.value("value"), value, "{place}");
            assert_eq!(found.value("no such"), None, "{place}");
            let prefix = longest(routes, addr).map(|(prefix, _)| prefix.to_string()).unwrap();
            let value = format!("value={}", expected.index().unwrap());
            if fib.is_live() {
                assert_eq!((found.prefix(), found.to_string()), (None, value), "{place}");
                assert!(found.attributes().is_some(), "{place}");
            } else {
                assert_eq!(hop, expected, "{place}");
                assert_eq!(found.prefix().map(|p| p.to_string()), Some(prefix.clone()), "{place}");
                assert_eq!(found.to_string(), format!("{prefix} {value}"), "{place}");
            }
        }
    }
}

#[test]
fn every_kind_equals_the_oracle_on_dense_tables() {
    for seed in 0..3 {
        let table = dense(seed);
        let kinds = Kinds::new(&table);
        agrees(&kinds, &table.v4);
        agrees(&kinds, &table.v6);
    }
}

#[test]
fn an_empty_table_has_no_answers() {
    let kinds = Kinds::new(&Table::default());
    for (kind, fib) in kinds.all() {
        for ip in ["0.0.0.0", "255.255.255.255", "::", "ffff::"] {
            assert!(fib.lookup(ip.parse().unwrap()).is_none(), "{kind} {ip}");
        }
        assert!(fib.is_empty(), "{kind}");
    }
}

/// Route numbers and lengths, searched at first and from engines later: all the same.
fn numbers_and_lengths<A: Addr + Pod>(fib: &Fib, routes: &Routes<A>) {
    let addrs = addresses(routes);
    let family = fib.family::<A>();
    let made = |name: &str| family.memory().tables().iter().any(|(table, _)| *table == name);
    let (mut asked, mut by_engine) = (0, 0);
    while by_engine < 2 {
        let (mut numbers, mut lengths) =
            (vec![Hop::new(9); addrs.len()], vec![Hop::new(9); addrs.len()]);
        by_engine += usize::from(made("numbers") && made("lengths"));
        family.numbers(&addrs, &mut numbers);
        family.lengths(&addrs, &mut lengths);
        asked += addrs.len();
        for ((&addr, &number), &length) in addrs.iter().zip(&numbers).zip(&lengths) {
            let expected = longest(routes, addr);
            let route = number.index().map(|index| family.routes().get(index as usize));
            assert_eq!(route.map(|route| (route.prefix, route.hop)), expected);
            assert_eq!(length.index(), expected.map(|(prefix, _)| prefix.len().into()));
        }
        // The policy: as many addresses as routes, and not fewer than 65,536.
        assert_eq!(made("numbers"), asked >= 1 << 16, "after {asked} addresses");
        assert_eq!(made("lengths"), asked >= 1 << 16, "after {asked} addresses");
    }
}

#[test]
fn engines_for_routes_and_lengths_come_by_need_and_change_nothing() {
    let table = dense(3);
    let fib = Fib::of_table(table.clone(), &FibOptions::default()).unwrap();
    numbers_and_lengths(&fib, &table.v4);
    numbers_and_lengths(&fib, &table.v6);
}

/// Values of both kinds, texts with special characters, and nulls.
fn with_values() -> Table {
    let mut rows = ColumnsBuilder::new(&[("n", ColumnKind::Int), ("text", ColumnKind::Str)]);
    for row in 0..251 {
        let number = if row % 3 == 0 { Value::Null } else { Value::Int(row) };
        let text = format!("Zoë, \"{row}\"");
        let text = if row % 5 == 0 { Value::Null } else { Value::Str(&text) };
        rows.push(&[number, text]).unwrap();
    }
    let columns = rows.finish().unwrap();
    Table { columns, ..Table::from_routes(tables::dense(8, 500), tables::dense(9, 500)) }
}

#[test]
fn a_table_just_built_equals_its_file() {
    let table = with_values();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.fib");
    let built = Fib::of_table(table.clone(), &FibOptions::default()).unwrap();
    let written = built.write(&path).unwrap();
    let file = Fib::open(&path).unwrap();
    assert_eq!(file.path(), Some(&*path));
    assert_eq!(written.bytes, std::fs::metadata(&path).unwrap().len());
    assert_eq!(built.written().unwrap(), written);
    assert_eq!(file.written().unwrap(), written);
    assert_eq!(file.to_table().unwrap(), table);
    assert_eq!(built.to_table().unwrap(), table);

    fn family<A: Addr + Pod>(built: &Fib, file: &Fib, routes: &Routes<A>) {
        let (one, other) = (built.family::<A>(), file.family::<A>());
        assert_eq!(one.engine_name(), other.engine_name());
        assert_eq!(one.engine().memory(), other.engine().memory());
        let addrs = addresses(routes);
        let hops = |fib: &Fib| {
            let mut hops = vec![Hop::NONE; addrs.len()];
            fib.lookup_batch(&addrs, &mut hops);
            let mut more = vec![Hop::NONE; addrs.len()];
            fib.family::<A>().numbers(&addrs, &mut more);
            hops.extend_from_slice(&more);
            fib.family::<A>().lengths(&addrs, &mut more);
            hops.extend_from_slice(&more);
            hops
        };
        assert_eq!(hops(built), hops(file));
        let mut texts = 0;
        for addr in addrs {
            let ask = |fib: &Fib| {
                let covering: Vec<_> =
                    fib.covering(addr.to_ip()).unwrap().map(|m| m.to_string()).collect();
                (fib.lookup(addr.to_ip()).map(|m| m.to_string()), covering)
            };
            let answer = ask(built);
            assert_eq!(answer, ask(file), "{}", addr.to_string_ip());
            texts += usize::from(answer.0.is_some_and(|text| text.contains("Zoë, \"")));
        }
        assert!(texts > 100);
    }
    family(&built, &file, &table.v4);
    family(&built, &file, &table.v6);
}

/// Values by name, in the order of the columns, with those that are missing.
#[test]
fn a_match_has_all_values() {
    let table = with_values();
    let fib = Fib::of_table(table.clone(), &FibOptions::default()).unwrap();
    let mut nulls = 0;
    for route in table.v6.iter() {
        let found = fib.exact(fibula_core::AnyPrefix::V6(route.prefix)).unwrap();
        let Some(found) = found.filter(|found| found.hop() == route.hop) else {
            // A mapped prefix is looked up as the IPv4 one.
            assert!(is_mapped(route.prefix.addr()), "{}", route.prefix);
            continue;
        };
        let row = route.hop.index().unwrap();
        let values: Vec<_> =
            found.values().map(|(name, value)| (name.into_owned(), value)).collect();
        let (n, text) = (table.columns.value(0, row), table.columns.value(1, row));
        assert_eq!(values, [("n".to_owned(), n), ("text".to_owned(), text)]);
        assert_eq!((found.value("n"), found.value("text")), (Some(n), Some(text)));
        nulls += usize::from(n == Value::Null);
    }
    assert!(nulls > 10);
}

/// The contents of a live table's generation: attributes by name, but no routes.
#[test]
fn contents_of_a_live_generation() {
    use fibula_core::{Attributes, BgpAttributes, Change, Update};
    use fibula_rib::Peer;
    let live = crate::common::live(&Table::default());
    let before = Fib::of_live(&live, 0).unwrap();
    let peer = live.peer(Peer::new(None, 64500));
    let bgp = BgpAttributes {
        next_hop: Some("192.0.2.1".parse().unwrap()),
        origin_as: Some(64501),
        as_path_len: 2,
        as_path: "64500 64501",
        ..BgpAttributes::default()
    };
    let change = Change::Announce(Attributes::Bgp(&bgp));
    let prefix = "10.0.0.0/8".parse().unwrap();
    live.apply(&Update { peer, ..Update::new(prefix, change) }).unwrap();
    live.flush().unwrap();
    let fib = Fib::of_live(&live, 0).unwrap();
    let ip = "10.1.2.3".parse().unwrap();
    // It stays as it was, another one sees the change.
    assert!(before.lookup(ip).is_none());
    let found = fib.lookup(ip).unwrap();
    assert_eq!(
        found.to_string(),
        "next_hop=192.0.2.1 origin_as=64501 as_path_len=2 as_path=64500 64501"
    );
    assert_eq!(found.value("next_hop"), Some(Value::Str("192.0.2.1")));
    assert_eq!(found.value("med"), Some(Value::Null));
    assert_eq!(found.attributes().and_then(|set| set.bgp()), Some(bgp));
    assert!(fib.is_live() && Fib::of_live(&live, 1).is_none());
    // Values have the names that their sources gave them, and without one a number.
    let places = live.value_places(&["site", "owner"]);
    assert_eq!(places, [0, 1]);
    let values = [Value::Str("zurich"), Value::Int(7), Value::Int(8)];
    let change = Change::Announce(Attributes::Values(&values));
    live.apply(&Update { peer, ..Update::new("11.0.0.0/8".parse().unwrap(), change) }).unwrap();
    live.flush().unwrap();
    let named = Fib::of_live(&live, 0).unwrap();
    let found = named.lookup("11.1.2.3".parse().unwrap()).unwrap();
    assert_eq!(found.to_string(), "site=zurich owner=7 value3=8");
    assert_eq!(found.value("owner"), Some(Value::Int(7)));
    assert_eq!(found.value("value2"), None);
    // Its routes are in the RIB.
    assert!(fib.is_empty());
    assert_eq!(fib.len(), 0);
    assert!(fib.family::<u32>().reason().starts_with("planb: of generation "));
    let refused = |error: fibula_fib::FibError| error.to_string().contains("ask the RIB");
    assert!(fib.covering(ip).err().is_some_and(refused));
    assert!(fib.covered(prefix).err().is_some_and(refused));
    assert!(fib.exact(prefix).err().is_some_and(refused));
    assert!(fib.to_table().err().is_some_and(refused));
    assert!(fib.written().err().is_some_and(refused));
}
