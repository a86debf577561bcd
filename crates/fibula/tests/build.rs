//! Tables by the names of their sources.

use std::fs;
use std::path::Path;

use fibula::rib::snapshot::SnapshotErrorKind;
use fibula::rib::{AnySnapshot, DatedBuilder, EnginePart, Loading, Table};
use fibula::sources::{Settings, SourceError, TableSources, nested_tags};
use fibula::{Fib, FibOptions, Hop, Routes, build};

fn testdata(name: &str) -> String {
    format!("{}/../../testdata/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn name(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn values(fib: &Fib, address: &str) -> Option<String> {
    fib.lookup(address.parse().unwrap()).map(|found| found.to_string())
}

#[test]
fn files_of_any_format_are_built() {
    let folder = tempfile::tempdir().unwrap();
    let (csv, text) = (folder.path().join("a.csv"), folder.path().join("b.txt"));
    fs::write(&csv, "prefix,asn\n10.0.0.0/8,1\n2001:db8::/32,2\n").unwrap();
    fs::write(&text, "192.0.2.0/24\n10.1.0.0/16\n").unwrap();

    let fib = build(name(&csv)).unwrap();
    assert_eq!(values(&fib, "10.1.2.3").unwrap(), "10.0.0.0/8 asn=1");
    assert_eq!(build(name(&text)).unwrap().len(), 2);
    let mrt = testdata("mrt/bgpkit-ripe_rrc00_2000.01_bview.20000111.0032.first-20-records.gz");
    assert!(build(&mrt).unwrap().len() > 5);
    assert_eq!(build("gen:v6:2024:100:1").unwrap().len(), 100);

    let both = build(&format!("{},{}", name(&csv), name(&text))).unwrap();
    assert_eq!(both.len(), 4);
    assert_eq!(values(&both, "10.1.2.3").unwrap(), "10.1.0.0/16");
    assert_eq!(values(&both, "2001:db8::1").unwrap(), "2001:db8::/32 asn=2");
}

#[test]
fn a_snapshot_is_used_in_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.fib");
    let options = FibOptions::default().engines(["poptrie16", "dxr18"]);
    let table = TableSources { options, ..TableSources::of(["gen:v4:2024:100:1"]) };
    table.fib().unwrap().0.write(&path).unwrap();

    let fib = build(name(&path)).unwrap();
    assert_eq!(fib.family::<u32>().engine_name(), "poptrie16");
    assert!(fib.family::<u32>().reason().contains("stored"));
}

/// A file of two tables.
fn dated(path: &Path) {
    let mut builder = DatedBuilder::default();
    for (date, prefix) in [("2024-05-01", "10.0.0.0/8"), ("2024-06-01", "10.1.0.0/16")] {
        let v4: Routes<u32> = [(prefix.parse().unwrap(), Hop::new(0))].into_iter().collect();
        let table = Table::from_routes(v4, Routes::default());
        builder.add(date.parse().unwrap(), date, &table).unwrap();
    }
    let (v4, v6) = (EnginePart::none(), EnginePart::none());
    fs::write(path, builder.finish().unwrap().to_bytes(&v4, &v6).unwrap()).unwrap();
}

#[test]
fn of_several_dates_the_newest_is_used_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("year.fib");
    dated(&path);
    assert_eq!(values(&build(name(&path)).unwrap(), "10.1.2.3").unwrap(), "10.1.0.0/16 hop=0");
    let (_, report) = TableSources::of([name(&path)]).fib().unwrap();
    assert!(report.notes[0].contains("of 2 tables, that of 2024-06-01"), "{report:?}");

    let of = |at: &str| {
        let settings = Settings { at: Some(at.parse().unwrap()), ..Settings::default() };
        TableSources { settings, ..TableSources::of([name(&path)]) }.fib()
    };
    assert_eq!(values(&of("2024-05-02").unwrap().0, "10.1.2.3").unwrap(), "10.0.0.0/8 hop=0");
    let error = of("2024-04-01").unwrap_err();
    assert!(matches!(error, SourceError::Date { .. }), "{error}");
    let one = folder.path().join("t.fib");
    build("gen:v4:2024:10:1").unwrap().write(&one).unwrap();
    let settings = Settings { at: "2024-05-02".parse().ok(), ..Settings::default() };
    let error = TableSources { settings, ..TableSources::of([name(&one)]) }.fib().unwrap_err();
    assert!(error.to_string().contains("one table without a date"), "{error}");
}

#[test]
fn a_file_is_of_the_type_of_its_header() {
    let folder = tempfile::tempdir().unwrap();
    let (year, one) = (folder.path().join("year.fib"), folder.path().join("t.fib"));
    dated(&year);
    build("gen:v4:2024:10:1").unwrap().write(&one).unwrap();
    for loading in [Loading::Auto, Loading::Map, Loading::Read] {
        let open = |path: &Path| AnySnapshot::open_with(path, loading).unwrap();
        assert!(matches!(open(&year), AnySnapshot::Dated(dated) if dated.dates().len() == 2));
        assert!(
            matches!(open(&one), AnySnapshot::Table(table) if table.family::<u32>().len() == 10)
        );
    }

    let kind = |bytes: &[u8]| {
        let path = folder.path().join("other.fib");
        fs::write(&path, bytes).unwrap();
        AnySnapshot::open_with(&path, Loading::Auto).unwrap_err().kind()
    };
    for path in [&year, &one] {
        let mut bytes = fs::read(path).unwrap();
        assert_eq!(kind(&bytes[..bytes.len() - 1]), SnapshotErrorKind::Truncated);
        *bytes.last_mut().unwrap() ^= 1;
        assert_eq!(kind(&bytes), SnapshotErrorKind::Damaged);
        bytes[12] = 9;
        assert_eq!(kind(&bytes), SnapshotErrorKind::Version);
    }
    assert_eq!(kind(b"prefix,asn\n10.0.0.0/8,1\n"), SnapshotErrorKind::NotSnapshot);
    assert_eq!(kind(b""), SnapshotErrorKind::NotSnapshot);
}

#[test]
fn what_cannot_be_read_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = |text: &str| {
        let path = folder.path().join("t.csv");
        fs::write(&path, text).unwrap();
        name(&path).to_owned()
    };
    let error = |names: &str| build(names).map(|fib| fib.len()).unwrap_err().to_string();

    assert!(error("no/such/file.csv").contains("no/such/file.csv"));
    assert!(error("10.0.0.0/8").contains("an address or a prefix"));
    let damaged = file("prefix,asn\n10.0.0.0/8,1\n10.0.0.300,2\n");
    assert!(error(&damaged).contains("record 3"), "{}", error(&damaged));
    let twice = file("prefix,asn\n10.0.0.0/8,1\n10.0.0.0/8,2\n");
    assert!(error(&twice).contains("occurs twice"), "{}", error(&twice));
    let none = build(&file("prefix,asn\n"));
    assert!(none.is_err(), "{:?}", none.map(|fib| fib.len()));
}

#[test]
fn a_lenient_build_reports_what_it_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    fs::write(&path, "prefix,asn\n10.0.0.0/8,1\n10.0.0.300,2\n::ffff:192.0.2.0/120,3\n").unwrap();
    let (fib, report) = TableSources::of([name(&path)]).fib().unwrap();
    assert_eq!((fib.len(), report.damaged, report.damage.len()), (2, 1, 1));
    assert!(report.damage[0].contains("record 3"), "{report:?}");
    assert!(report.notes.len() == 1 && report.notes[0].contains("t.csv"), "{report:?}");
    assert_eq!((report.files[0].format, report.files[0].records), ("text", 4));

    fs::write(&path, "prefix,asn\n").unwrap();
    let empty = Settings { allow_empty: true, ..Settings::default() };
    let fib = TableSources { settings: empty, ..TableSources::of([name(&path)]) }.fib().unwrap().0;
    assert!(fib.is_empty());
}

#[test]
fn an_unknown_engine_is_an_error() {
    let options = FibOptions::default().engines(["no-engine"]);
    let error =
        TableSources { options, ..TableSources::of(["gen:v4:2024:10:1"]) }.fib().unwrap_err();
    assert!(matches!(error, SourceError::Fib(_)), "{error}");
    assert!(error.to_string().contains("no-engine"));
}

#[test]
fn tags_of_prefixes_inside_of_others_are_noted() {
    let routes =
        |texts: &[&str]| texts.iter().map(|text| (text.parse().unwrap(), Hop::new(0))).collect();
    let mut table = Table::from_routes(
        routes(&["10.0.0.0/8", "10.1.0.0/16", "10.1.2.0/24", "11.0.0.0/8", "11.255.255.255/32"]),
        Routes::default(),
    );
    assert_eq!(nested_tags(&table), None, "no lists of values");
    table.provenance.tags = Some("list".to_owned());
    let note = nested_tags(&table).unwrap();
    assert!(
        note.starts_with("3 prefixes lie inside of others: a lookup has the list of"),
        "{note}"
    );
    table.v4 = routes(&["10.0.0.0/8", "11.0.0.0/8"]);
    assert_eq!(nested_tags(&table), None);
}
