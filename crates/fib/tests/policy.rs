//! Which engine answers: stored, auto, a list with fallbacks, none; and the error where none can.

use std::fs;

use crate::common::{dense, table};
use fibula_core::{Addr, Family, Follow, Hop, Lookup, Memory, PerFamily, Prefix, Routes, TableRef};
use fibula_engines::{BoxedEngine, Entry, Isa, Registry};
use fibula_fib::{EngineChoice, Fib, FibError, FibOptions, Pod};
use fibula_rib::{EnginePart, Snapshot, Table};
use fibula_testkit::{Oracle, probes};

/// More hops than SAIL_L with hops of one byte holds.
fn many_hops() -> Table {
    let route = |i: u32| (Prefix::masked(i << 20, 24).unwrap(), Hop::new(i));
    let v4: Routes<u32> = (0..300).map(route).collect();
    table(v4, [(Prefix::ALL, Hop::new(0))].into_iter().collect())
}

fn open(table: &Table, names: &[&str]) -> Result<Fib, FibError> {
    let options = FibOptions::default().registry(fibula_baselines::registry().clone());
    Fib::of_table(table.clone(), &options.engines(names.iter().copied()))
}

/// It answers as the oracle does.
fn check(fib: &Fib, table: &Table) {
    fn family<A: Addr + Pod>(fib: &Fib, routes: &Routes<A>) {
        let report = fibula_testkit::check::check(
            fib.family::<A>().engine(),
            &Oracle::new(routes),
            &mut probes::boundary(routes),
            3,
        );
        assert!(report.is_ok() && report.probes > 1, "{report}");
    }
    family(fib, &table.v4);
    family(fib, &table.v6);
}

#[test]
fn a_list_gives_way_at_limits() {
    let table = many_hops();
    let refusal = "engine sail-l8: the table needs 300 ";
    for (list, engine) in [
        (&["sail-l8", "dxr18"][..], "dxr18"),
        (&["sail-l8", "sail-l8", "planb", "dxr18"], "planb"),
        (&["sail-l8", "auto"], "runmap"),
        (&["sail-l8", "search"], "search"),
    ] {
        let fib = open(&table, list).unwrap();
        let (v4, v6) = (fib.family::<u32>(), fib.family::<u128>());
        assert_eq!(v4.engine_name(), engine);
        assert!(v4.reason().starts_with(&format!("{engine}: ")), "{}", v4.reason());
        assert!(v4.reason().contains(refusal), "{}", v4.reason());
        assert!(!v6.reason().contains("sail"), "{}", v6.reason());
        check(&fib, &table);
    }
    // IPv6 does not have the first: it takes the next that it has, and auto after the last.
    assert_eq!(
        open(&table, &["sail-l8", "planb"]).unwrap().family::<u128>().engine_name(),
        "planb"
    );
    assert_eq!(open(&table, &["dxr18"]).unwrap().family::<u128>().engine_name(), "wideleaf");
    assert_eq!(open(&table, &[]).unwrap().family::<u32>().engine_name(), "runmap");

    let error = open(&table, &["planb", "no-such"]).unwrap_err();
    assert!(matches!(&error, FibError::Unknown { engine, .. } if engine == "no-such"));
    assert!(error.to_string().contains("radix, ") && error.to_string().contains("no-such"));
    let error = open(&table, &["sail-l8"]).unwrap_err();
    assert!(
        matches!(&error, FibError::Refused { family: Family::V4, errors } if errors.len() == 1)
    );
    let text = error.to_string();
    assert!(text.starts_with("IPv4: engine sail-l8: ") && text.contains("auto takes"), "{text}");
}

#[test]
fn auto_is_the_same_as_everywhere() {
    let table = dense(20);
    let fib = open(&table, &["auto"]).unwrap();
    let auto = fibula_engines::auto(&table.v6, Isa::detect());
    assert_eq!(fib.family::<u128>().engine_name(), auto.entry.name);
    assert_eq!(fib.family::<u128>().reason(), auto.reason);
    check(&fib, &table);
}

#[test]
fn a_search_needs_no_engine() {
    let table = dense(21);
    let fib = open(&table, &["search"]).unwrap();
    assert_eq!(fib.family::<u32>().engine_name(), "search");
    check(&fib, &table);
}

#[test]
fn instruction_sets_are_forced() {
    let table = dense(22);
    for isa in Isa::available() {
        let options = FibOptions::default().engines(["planb", "auto"]).isa(isa);
        let fib = Fib::of_table(table.clone(), &options).unwrap();
        assert_eq!(fib.family::<u128>().isa(), isa);
        check(&fib, &table);
    }
    let options = FibOptions::default().engines(["radix"]);
    let fib = Fib::of_table(table, &options).unwrap();
    assert_eq!(fib.family::<u32>().isa(), Isa::Scalar);
}

fn built<A: Addr>(routes: &Routes<A>, name: &str) -> BoxedEngine<A> {
    fibula_baselines::registry().find::<A>(name).unwrap().build(routes, Isa::detect()).unwrap()
}

#[test]
fn the_stored_engine_comes_first() {
    let table = dense(23);
    let (v4, v6) = (built(&table.v4, "dxr18"), built(&table.v6, "poptrie16"));
    let part4 = EnginePart::of("dxr18", &*v4);
    let part6 = EnginePart::of("poptrie16", &*v6);
    let snapshot = |v4: &EnginePart<'_>, v6: &EnginePart<'_>| {
        Snapshot::from_bytes(fibula_rib::to_bytes(&table, v4, v6).unwrap()).unwrap()
    };
    let names = |fib: &Fib| (fib.family::<u32>().engine_name(), fib.family::<u128>().engine_name());

    let fib = Fib::of_snapshot(snapshot(&part4, &part6), &FibOptions::default()).unwrap();
    assert_eq!(names(&fib), ("dxr18", "poptrie16"));
    assert_eq!(fib.family::<u32>().reason(), "dxr18: stored with the table");
    check(&fib, &table);
    // Others are compiled from the stored routes on request.
    let options = FibOptions::default().engines(["planb", "stored"]);
    let fib = Fib::of_snapshot(snapshot(&part4, &part6), &options).unwrap();
    assert_eq!(names(&fib), ("planb", "planb"));
    check(&fib, &table);
    // None is stored, or one that a later version wrote.
    let (none, strange) =
        (EnginePart::none(), EnginePart { name: "of-tomorrow", tables: Vec::new() });
    let fib = Fib::of_snapshot(snapshot(&none, &strange), &FibOptions::default()).unwrap();
    let auto4 = fibula_engines::auto(&table.v4, Isa::detect()).entry.name;
    let auto6 = fibula_engines::auto(&table.v6, Isa::detect()).entry.name;
    assert_eq!(names(&fib), (auto4, auto6));
    assert!(!fib.family::<u32>().reason().contains("stored"));
    let reason = fib.family::<u128>().reason();
    assert!(reason.ends_with("; not of-tomorrow, which is stored and not known here"), "{reason}");
    check(&fib, &table);
    let options = FibOptions::default().engines([EngineChoice::Stored, EngineChoice::Search]);
    let fib = Fib::of_snapshot(snapshot(&part4, &strange), &options).unwrap();
    assert_eq!(names(&fib), ("dxr18", "search"));
    check(&fib, &table);
}

/// A table of the engine loses its second half.
fn cut<'a, A: Addr>(engine: &'a BoxedEngine<A>, name: &'a str, table: usize) -> EnginePart<'a> {
    let mut tables = engine.persist().unwrap().1;
    let TableRef { name: table_name, bytes } = tables[table];
    tables[table] = TableRef { name: table_name, bytes: &bytes[..bytes.len() / 2] };
    EnginePart { name, tables }
}

/// Tables of every engine, cut off: family and engine are named, and no other engine takes over from a
/// damaged one.
fn hostile<A: Addr + Pod>(table: &Table, routes: &Routes<A>) {
    let mut refused = 0;
    for entry in fibula_baselines::registry().engines::<A>() {
        let engine = built(routes, entry.name);
        let tables = engine.persist().unwrap().1;
        for at in (0..tables.len()).filter(|&at| !tables[at].bytes.is_empty()) {
            let (mut v4, mut v6) = (EnginePart::none(), EnginePart::none());
            *(if A::BITS == 32 { &mut v4 } else { &mut v6 }) = cut(&engine, entry.name, at);
            let bytes = fibula_rib::to_bytes(table, &v4, &v6).unwrap();
            let snapshot = Snapshot::from_bytes(bytes).unwrap();
            let options = FibOptions::default().registry(fibula_baselines::registry().clone());
            let Err(error) = Fib::of_snapshot(snapshot, &options) else {
                panic!("{}: half of its table {at}", entry.name);
            };
            let FibError::Stored { file: None, family, engine, .. } = &error else {
                panic!("{error}");
            };
            assert_eq!((*family, *engine), (A::FAMILY, entry.name));
            let text = error.to_string();
            let words = format!("its engine {} for IP{}: table ", entry.name, A::FAMILY);
            assert!(text.contains(&words) && text.contains("build it again"), "{text}");
            refused += 1;
        }
    }
    assert!(refused > 20, "{refused}");
}

#[test]
fn hostile_tables_are_named() {
    let table = dense(24);
    hostile(&table, &table.v4);
    hostile(&table, &table.v6);
    // The file, where there is one.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hostile.fib");
    let engine = built(&table.v6, "radix");
    fibula_rib::write(&path, &table, &EnginePart::none(), &cut(&engine, "radix", 0)).unwrap();
    let error = Fib::open(&path).unwrap_err();
    assert!(matches!(&error, FibError::Stored { file: Some(file), .. } if *file == path));
    let text = error.to_string();
    assert!(
        text.starts_with(&format!("{}: its engine radix for IPv6: ", path.display())),
        "{text}"
    );
    // A damaged stored engine does not matter if it is not requested.
    let fib = Fib::open_with(&path, &FibOptions::default().engines(["auto"])).unwrap();
    check(&fib, &table);
}

#[test]
fn files_and_tables_that_are_wrong_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.fib");
    let text = Fib::open(&path).unwrap_err().to_string();
    assert!(text.contains("t.fib") && text.contains("cannot open"), "{text}");
    fs::write(&path, "10.0.0.0/8 CH\n").unwrap();
    let error = Fib::open(&path).unwrap_err();
    assert!(
        matches!(error, FibError::Snapshot(_)) && error.to_string().contains("t.fib"),
        "{error}"
    );

    let mut table = dense(25);
    table.columns = fibula_rib::Columns::numbered("value", 1);
    let error = Fib::of_table(table, &FibOptions::default()).unwrap_err();
    assert!(matches!(error, FibError::Table(_)), "{error}");
    assert!(error.to_string().contains("attribute rows"), "{error}");
}

/// A program's own engine, whose tables cannot be stored: the oracle.
fn own<A: Addr>() -> Entry<A> {
    let build = |routes: &Routes<A>, _| Ok(Own(Oracle::new(routes)));
    Entry::unstored("own", "a program's own engine", &[Isa::Scalar], build)
}

struct Own<A: Addr>(Oracle<A>);

impl<A: Addr> Lookup<A> for Own<A> {
    fn lookup(&self, addr: A) -> Hop {
        self.0.lookup(addr)
    }
    fn lookup_batch(&self, addrs: &[A], hops: &mut [Hop]) {
        self.0.lookup_batch(addrs, hops);
    }
    fn memory(&self) -> Memory {
        self.0.memory()
    }
}

impl<A: Addr> Follow<A> for Own<A> {}

/// The registry of the options has the names, in errors too; the file of an engine without stored tables opens with
/// another one.
#[test]
fn a_program_has_engines_of_its_own() {
    let table = dense(9);
    let own = Registry::product().with(PerFamily { v4: vec![own()], v6: vec![own()] });
    let options = FibOptions::default().engines(["own"]);
    let Err(FibError::Unknown { engine, known }) = Fib::of_table(table.clone(), &options) else {
        panic!("the product has no such engine");
    };
    assert!(engine == "own" && known.contains(&"runmap") && !known.contains(&"own"));

    let fib = Fib::of_table(table.clone(), &options.registry(own.clone())).unwrap();
    let (v4, v6) = (fib.family::<u32>(), fib.family::<u128>());
    assert_eq!((v4.engine_name(), v6.engine_name()), ("own", "own"));
    assert_eq!(v4.reason(), "own: requested");

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("own.fib");
    fib.write(&path).unwrap();
    for registry in [own, Registry::product()] {
        let opened = Fib::open_with(&path, &FibOptions::default().registry(registry)).unwrap();
        assert_eq!(
            opened.family::<u32>().engine_name(),
            "runmap",
            "{}",
            opened.family::<u32>().reason()
        );
        for addr in probes::boundary(&table.v4) {
            assert_eq!(opened.family::<u32>().engine().lookup(addr), v4.engine().lookup(addr));
        }
    }
}
