//! The snapshot file from outside: its contents are read back, and files are replaced as a whole.

use std::collections::HashMap;
use std::fs;

use fibula_core::{Addr, Attributes, Change, Hop, Prefix, Routes, TableRef, Update, Value};
use fibula_rib::snapshot::SnapshotErrorKind;
use fibula_rib::{
    BuilderOptions, ColumnKind, Columns, ColumnsBuilder, EnginePart, Loading, Pod, Provenance,
    ScalarType, SelectedPeer, Snapshot, SourceRecord, Table, TableBuilder, layers, to_bytes, write,
};
use fibula_testkit::{Rng, probes, tables};
use proptest::prelude::*;

fn bare(table: &Table) -> Snapshot {
    let bytes = to_bytes(table, &EnginePart::none(), &EnginePart::none()).unwrap();
    Snapshot::from_bytes(bytes).unwrap()
}

/// Every covering route, longest first: a scan over all of them.
fn scan<A: Addr>(routes: &Routes<A>, addr: A) -> Vec<usize> {
    let all = routes.iter().enumerate().filter(|(_, r)| r.prefix.contains(addr));
    let mut found: Vec<_> = all.map(|(i, r)| (r.prefix.len(), i)).collect();
    found.sort_unstable_by(|a, b| b.cmp(a));
    found.into_iter().map(|(_, i)| i).collect()
}

fn agrees<A: Addr + Pod>(routes: Routes<A>, random: usize) {
    let mut table = Table::default();
    let rows = routes.hop_count();
    table.columns = Columns::numbered("hop", rows);
    match A::FAMILY {
        fibula_core::Family::V4 => {
            table.v4 = routes.iter().map(|r| (convert(r.prefix), r.hop)).collect();
        }
        fibula_core::Family::V6 => {
            table.v6 = routes.iter().map(|r| (convert(r.prefix), r.hop)).collect();
        }
    }
    let snapshot = bare(&table);
    let stored = snapshot.family::<A>();
    assert_eq!(stored.to_routes(), routes);
    let mut rng = Rng::new(11);
    let keys: Vec<A> =
        probes::boundary(&routes).chain((0..random).map(|_| rng.addr::<A>())).collect();
    for addr in keys {
        let expected = scan(&routes, addr);
        let text = addr.to_string_ip();
        assert_eq!(stored.matched(addr), expected.first().copied(), "{text}");
        assert_eq!(stored.covering(addr).collect::<Vec<_>>(), expected, "{text}");
        if let Some(index) = stored.matched(addr) {
            assert_eq!(stored.get(index), routes.as_slice()[index]);
        }
    }
}

fn convert<A: Addr, B: Addr>(prefix: Prefix<A>) -> Prefix<B> {
    Prefix::new(B::from_u128(prefix.addr().to_u128()), prefix.len()).unwrap()
}

/// The original type of texts stays with their column, if all sources agree.
#[test]
fn types_of_texts_are_stored() {
    let columns = [("on", ColumnKind::Str), ("x", ColumnKind::Str), ("y", ColumnKind::Str)];
    let columns = columns.map(|(name, kind)| (name.to_owned(), kind));
    let typed = |name: &str, of| (name.to_owned(), of);
    let mut builder = TableBuilder::new(BuilderOptions::default());
    let types = [typed("on", ScalarType::Bool), typed("x", ScalarType::Double)];
    builder.types_of_next(&[types.as_slice(), &[typed("y", ScalarType::Float)]].concat());
    builder.begin_source("a.mmdb", "mmdb", &columns, false, None);
    let values = [Value::Str("true"), Value::Str("1.5"), Value::Str("2")];
    let change = Change::Announce(Attributes::Values(&values));
    builder.apply(&Update::new("10.0.0.0/8".parse().unwrap(), change));
    builder.types_of_next(&types);
    builder.begin_source("b.mmdb", "mmdb", &columns, false, None);
    let table = bare(&builder.finish().unwrap());
    let found = |table: &Snapshot| [0, 1, 2].map(|at| table.columns().scalar_type(at));
    assert_eq!(found(&table), [Some(ScalarType::Bool), Some(ScalarType::Double), None]);
    // As a source, and beside a source without types.
    let as_table = Table { columns: table.columns().clone(), ..Table::default() };
    let layered = layers(&[("l", &as_table)]).unwrap();
    assert_eq!(layered.columns.scalar_type(1), Some(ScalarType::Double));
    let mut builder = TableBuilder::new(BuilderOptions::default());
    builder.add_table("t.fib", "snapshot", &as_table);
    builder.begin_source("c.csv", "text", &columns[1..2], false, None);
    let table = bare(&builder.finish().unwrap());
    assert_eq!(found(&table), [Some(ScalarType::Bool), None, None]);
}

#[test]
fn matched_equals_a_scan_on_dense_tables() {
    for seed in 1..4 {
        agrees(tables::dense::<u32>(seed, 700), 1000);
        agrees(tables::dense::<u128>(seed, 700), 1000);
    }
}

#[test]
fn matched_equals_a_scan_on_edge_tables() {
    for (_, routes) in tables::edge::<u32>().into_iter().filter(|(_, r)| r.len() < 1500) {
        agrees(routes, 100);
    }
    for (_, routes) in tables::edge::<u128>().into_iter().filter(|(_, r)| r.len() < 1500) {
        agrees(routes, 100);
    }
}

fn cell() -> impl Strategy<Value = Option<Result<u64, String>>> {
    prop_oneof![
        Just(None),
        any::<u64>().prop_map(|v| Some(Ok(v))),
        (0u64..4).prop_map(|v| Some(Ok(v))),
        "\\PC{0,6}".prop_map(|v| Some(Err(v))),
    ]
}

prop_compose! {
    fn any_columns()(width in 0usize..4)(
        kinds in prop::collection::vec(any::<bool>(), width),
        names in prop::collection::vec("\\PC{0,9}", width),
        rows in prop::collection::vec(prop::collection::vec(cell(), width), 1..20),
    ) -> Columns {
        let kind = |text: bool| if text { ColumnKind::Str } else { ColumnKind::Int };
        let schema: Vec<_> = names.into_iter().zip(kinds.iter().map(|&k| kind(k))).collect();
        let mut builder = ColumnsBuilder::new(&schema);
        for row in &rows {
            let values: Vec<_> = row.iter().zip(&kinds).map(|(cell, &text)| match cell {
                Some(Ok(v)) => Value::Int(*v),
                Some(Err(v)) if text => Value::Str(v),
                _ => Value::Null,
            }).collect();
            builder.intern(&values).unwrap();
        }
        builder.finish().unwrap()
    }
}

fn routes<A: Addr>(rows: u32) -> impl Strategy<Value = Routes<A>> {
    let route = (any::<u128>(), 0..=A::BITS, 0..rows.max(1));
    prop::collection::vec(route, 0..60).prop_map(move |list| {
        let prefix = |addr, len| Prefix::masked(A::from_u128(addr), len).unwrap();
        list.into_iter().map(|(addr, len, hop)| (prefix(addr, len), Hop::new(hop))).collect()
    })
}

fn any_table() -> impl Strategy<Value = Table> {
    any_columns().prop_flat_map(|columns| {
        let rows = columns.len();
        let parts = (Just(columns), routes::<u32>(rows), routes::<u128>(rows), any::<u64>());
        parts.prop_map(|(columns, v4, v6, created)| {
            let provenance = Provenance {
                created,
                sources: vec![SourceRecord { name: "ä\n".into(), ..Default::default() }],
                selected_peer: Some(SelectedPeer {
                    index: 3,
                    address: Some("2001:db8::1".parse().unwrap()),
                    asn: 64500,
                    routes: 7,
                    of: 9,
                }),
                ..Provenance::default()
            };
            Table { v4, v6, columns, provenance }
        })
    })
}

proptest! {
    #[test]
    fn a_written_table_is_read_back(table in any_table(), bytes in any::<Vec<u8>>()) {
        let refs = vec![TableRef { name: "a", bytes: &bytes }, TableRef { name: "b", bytes: &[] }];
        let part = EnginePart { name: "dxr", tables: refs };
        // Rows without columns are bounded by the routes.
        prop_assume!(table.columns.width() > 0 || table.v4.len() + table.v6.len() > 0);
        let snapshot = Snapshot::from_bytes(to_bytes(&table, &part, &EnginePart::none()).unwrap());
        let snapshot = snapshot.unwrap();
        prop_assert_eq!(snapshot.family::<u32>().to_routes(), table.v4.clone());
        prop_assert_eq!(snapshot.family::<u128>().to_routes(), table.v6.clone());
        prop_assert_eq!(snapshot.columns(), &table.columns);
        prop_assert_eq!(snapshot.provenance(), &table.provenance);
        let stored = snapshot.family::<u32>();
        prop_assert_eq!(stored.engine_name(), "dxr");
        prop_assert_eq!(stored.hop_count(), table.columns.len());
        let a = stored.tables().table("a").unwrap();
        prop_assert_eq!(a.as_slice(), &bytes[..]);
        prop_assert_eq!(a.as_slice().as_ptr() as usize % 64, 0);
        prop_assert_eq!(stored.tables().table("b").unwrap().as_slice().len(), 0);
        prop_assert!(stored.tables().table("c").is_none());
        prop_assert!(snapshot.family::<u128>().tables().table("a").is_none());
        // The table's digest does not include engines; neither digest includes provenance; both include routes and
        // values.
        let mut other = Table { provenance: Provenance::default(), ..table };
        prop_assert_eq!(bare(&other).table_digest(), snapshot.table_digest());
        prop_assert_ne!(bare(&other).digest(), snapshot.digest());
        let again = Snapshot::from_bytes(to_bytes(&other, &part, &EnginePart::none()).unwrap());
        prop_assert_eq!(again.unwrap().digest(), snapshot.digest());
        other.v4 = [(Prefix::host(1), Hop::new(0))].into_iter().chain(
            other.v4.iter().map(|r| (r.prefix, r.hop)).filter(|(p, _)| *p != Prefix::host(1))
        ).collect();
        if other.v4 != snapshot.family::<u32>().to_routes() {
            prop_assert_ne!(bare(&other).table_digest(), snapshot.table_digest());
        }
    }
}

fn one_route(hop: u32) -> Table {
    let v4: Routes<u32> = [(Prefix::ALL, Hop::new(hop))].into_iter().collect();
    Table::from_routes(v4, Routes::default())
}

fn names(directory: &std::path::Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> =
        entries.map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_file_is_replaced_whole_and_readers_keep_the_old_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.fib");
    let none = EnginePart::none();
    let first = write(&path, &one_route(1), &none, &none).unwrap();
    assert_eq!(first.bytes, fs::metadata(&path).unwrap().len());
    let old = Snapshot::open(&path).unwrap();
    assert_eq!(old.digest(), first.digest);
    let sizes: Vec<_> = old.sections().map(|(n, b)| (n.to_owned(), b)).collect();
    assert_eq!(sizes, first.sections);
    let second = write(&path, &one_route(2), &none, &none).unwrap();
    assert_ne!(first.digest, second.digest);
    let hop = |s: &Snapshot| s.family::<u32>().get(0).hop;
    assert_eq!(hop(&old), Hop::new(1));
    assert_eq!(hop(&Snapshot::open(&path).unwrap()), Hop::new(2));
    assert_eq!(names(directory.path()), ["t.fib"]);
}

/// Two tables in files of the same length, the first one's file writable or not.
fn overwritten(directory: &std::path::Path, is_writable: bool) -> (std::path::PathBuf, Vec<u8>) {
    let (path, other) = (directory.join("t.fib"), directory.join("other.fib"));
    let none = EnginePart::none();
    write(&path, &one_route(1), &none, &none).unwrap();
    let table = Table { columns: Columns::numbered("hop", 2), ..one_route(0) };
    let mut same = Table { v4: table.v4.clone(), ..one_route(1) };
    same.columns = table.columns;
    write(&other, &same, &none, &none).unwrap();
    let permissions = fs::metadata(&path).unwrap().permissions();
    assert!(permissions.readonly(), "what is written is read-only");
    if is_writable {
        make_writable(&path);
    }
    let bytes = fs::read(&other).unwrap();
    assert_eq!(bytes.len() as u64, fs::metadata(&path).unwrap().len());
    (path, bytes)
}

fn make_writable(path: &std::path::Path) {
    let mut permissions = fs::metadata(path).unwrap().permissions();
    #[expect(clippy::permissions_set_readonly_false, reason = "a file of the test's own")]
    permissions.set_readonly(false);
    fs::set_permissions(path, permissions).unwrap();
}

/// Like `cp new.fib t.fib`: the file stays, and its bytes change.
#[test]
fn a_file_that_may_be_written_into_is_read_and_cannot_change() {
    let directory = tempfile::tempdir().unwrap();
    let (path, bytes) = overwritten(directory.path(), true);
    let open = [Loading::Auto, Loading::Read].map(|l| Snapshot::open_with(&path, l).unwrap());
    fs::write(&path, bytes).unwrap();
    for snapshot in &open {
        assert_eq!(snapshot.family::<u32>().get(0).hop, Hop::new(1));
        snapshot.unchanged().unwrap();
    }
    fs::write(&path, b"").unwrap(); // this kills a process that has it mapped
    assert_eq!(open[0].family::<u32>().get(0).hop, Hop::new(1));
}

#[test]
fn a_write_into_a_mapped_file_is_detected() {
    let directory = tempfile::tempdir().unwrap();
    let (path, bytes) = overwritten(directory.path(), false);
    let open = [Loading::Auto, Loading::Map].map(|l| Snapshot::open_with(&path, l).unwrap());
    open.iter().for_each(|snapshot| snapshot.unchanged().unwrap());
    // Replacing the file by another one is not a change: the old file stays unchanged.
    let none = EnginePart::none();
    write(&path, &one_route(3), &none, &none).unwrap();
    open.iter().for_each(|snapshot| snapshot.unchanged().unwrap());

    let new = Snapshot::open(&path).unwrap();
    new.unchanged().unwrap();
    make_writable(&path);
    new.unchanged().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(20)); // times of files are coarse
    fs::write(&path, [&bytes[..], &[0; 64]].concat()).unwrap();
    let error = new.unchanged().unwrap_err();
    assert_eq!((error.kind(), error.path()), (SnapshotErrorKind::Changed, Some(&*path)));
    assert!(error.to_string().contains("by renaming"), "{error}");
}

/// A file's length alone causes no allocation: the header is checked first.
#[test]
fn a_large_file_without_content_is_refused_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.fib");
    let none = EnginePart::none();
    write(&path, &one_route(1), &none, &none).unwrap();
    make_writable(&path);
    let empty = directory.path().join("empty.fib");
    fs::File::create(&empty).unwrap();
    for (path, kind) in
        [(path, SnapshotErrorKind::Damaged), (empty, SnapshotErrorKind::NotSnapshot)]
    {
        fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
        for loading in [Loading::Read, Loading::Map] {
            let error = Snapshot::open_with(&path, loading).unwrap_err();
            assert_eq!(error.kind(), kind, "{error}");
        }
    }
}

#[test]
fn a_failure_leaves_the_old_file_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.fib");
    let none = EnginePart::none();
    write(&path, &one_route(1), &none, &none).unwrap();
    let before = fs::read(&path).unwrap();

    let unsound = Table { columns: Columns::numbered("hop", 1), ..one_route(5) };
    let error = write(&path, &unsound, &none, &none).unwrap_err();
    assert_eq!(error.kind(), SnapshotErrorKind::Unstorable);
    assert!(error.to_string().contains("need 6 attribute rows, there are 1"), "{error}");
    for tables in
        [vec!["a", "a"], vec!["with space"], vec!["a-name-that-is-too-long-for-a-section"]]
    {
        let refs = tables.iter().map(|name| TableRef { name, bytes: b"" }).collect();
        let part = EnginePart { name: "e", tables: refs };
        let error = write(&path, &one_route(1), &part, &none).unwrap_err();
        assert_eq!(error.kind(), SnapshotErrorKind::Unstorable, "{error}");
    }
    let error = write(directory.path(), &one_route(1), &none, &none).unwrap_err();
    assert_eq!(error.kind(), SnapshotErrorKind::Io);
    let missing = directory.path().join("no/t.fib");
    let error = write(&missing, &one_route(1), &none, &none).unwrap_err();
    assert!(error.to_string().starts_with(&*missing.to_string_lossy()), "{error}");

    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(names(directory.path()), ["t.fib"]);
}

#[test]
fn other_files_are_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x");
    for (content, kind) in [
        (&b""[..], SnapshotErrorKind::NotSnapshot),
        (b"1.0.0.0/8 7\n", SnapshotErrorKind::NotSnapshot),
        (b"\x89FIBULA\n", SnapshotErrorKind::Truncated),
    ] {
        fs::write(&path, content).unwrap();
        let error = Snapshot::open(&path).unwrap_err();
        assert_eq!((error.kind(), error.path()), (kind, Some(&*path)));
    }
    let error = Snapshot::open(directory.path()).unwrap_err();
    assert!(error.to_string().contains("not a regular file"), "{error}");
    let error = Snapshot::open(directory.path().join("none")).unwrap_err();
    assert_eq!(error.kind(), SnapshotErrorKind::Io);
}

#[cfg(unix)]
#[test]
fn links_are_followed_and_devices_written_to() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let directory = tempfile::tempdir().unwrap();
    let (real, link) = (directory.path().join("real.fib"), directory.path().join("link.fib"));
    let none = EnginePart::none();
    write(&real, &one_route(1), &none, &none).unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    symlink("real.fib", &link).unwrap();
    write(&link, &one_route(2), &none, &none).unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(Snapshot::open(&real).unwrap().family::<u32>().get(0).hop, Hop::new(2));
    assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o440);

    write("/dev/null".as_ref(), &one_route(1), &none, &none).unwrap();
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
    if fs::metadata("/dev/full").is_ok() {
        let error = write("/dev/full".as_ref(), &one_route(1), &none, &none).unwrap_err();
        assert_eq!(error.kind(), SnapshotErrorKind::Io);
    }
}

/// Equal rows and values keep their numbers, whatever engine is stored: two builds, one digest.
#[test]
fn values_come_back_by_route() {
    let mut rows = ColumnsBuilder::new(&[("city", ColumnKind::Str)]);
    let cities = ["Zürich", "Ōsaka", "", "Zürich"];
    let hops: Vec<u32> = cities.iter().map(|c| rows.intern(&[Value::Str(c)]).unwrap()).collect();
    assert_eq!(hops, [0, 1, 2, 0]);
    let v6: Routes<u128> = (0u128..)
        .zip(&hops)
        .map(|(i, &hop)| (Prefix::new(i << 64, 64).unwrap(), Hop::new(hop)))
        .collect();
    let table = Table { v6, columns: rows.finish().unwrap(), ..Table::default() };
    let snapshot = bare(&table);
    let stored = snapshot.family::<u128>();
    let found: HashMap<u128, String> = (0..4u128)
        .map(|i| {
            let hop = stored.get(stored.matched((i << 64) + 17).unwrap()).hop;
            let value = snapshot.columns().value(0, hop.index().unwrap());
            let Value::Str(text) = value else { panic!("{value:?}") };
            (i, text.to_owned())
        })
        .collect();
    for (i, city) in cities.iter().enumerate() {
        assert_eq!(found[&(i as u128)], *city);
    }
}
