//! Flows of each VRF are looked up in its own table.

use std::sync::Arc;
use std::time::Duration;

use fibula_annotate::{AnnotateError, AnnotateOptions};
use fibula_collect::{Collector, FlowFormat, FlowTable};
use serde_json::Value;

use crate::common::{Exporter, files, options, rows, wait};
use crate::tables::table;

/// A message of IPFIX with sets.
fn message(sets: &[(u16, Vec<u8>)]) -> Vec<u8> {
    let sets: Vec<u8> = sets
        .iter()
        .flat_map(|(id, body)| {
            [&id.to_be_bytes()[..], &(body.len() as u16 + 4).to_be_bytes(), body].concat()
        })
        .collect();
    let len = (16 + sets.len()) as u16;
    let head = [&[0, 10][..], &len.to_be_bytes(), &1_700_000_000u32.to_be_bytes()].concat();
    [&head[..], &[0, 0, 0, 0, 0, 0, 0, 7], &sets].concat()
}

fn halves(halves: &[u16]) -> Vec<u8> {
    halves.iter().flat_map(|half| half.to_be_bytes()).collect()
}

/// Templates of flows with both VRFs, with the egress alone, and with none; the names of VRFs 1 and 2.
fn announced() -> Vec<u8> {
    let names = [&1u32.to_be_bytes()[..], b"blue\0\0\0\0", &2u32.to_be_bytes(), b"red\0\0\0\0\0"];
    message(&[
        (2, halves(&[256, 4, 8, 4, 12, 4, 234, 4, 235, 4])),
        (2, halves(&[257, 3, 8, 4, 12, 4, 235, 4])),
        (2, halves(&[258, 2, 8, 4, 12, 4])),
        (3, halves(&[300, 2, 1, 234, 4, 236, 8])),
        (300, names.concat()),
    ])
}

/// A flow from 10.1.0.HOST to 192.0.2.7, in VRFs.
fn flow(host: u8, vrfs: &[u32]) -> (u16, Vec<u8>) {
    let vrfs_bytes: Vec<u8> = vrfs.iter().flat_map(|vrf| vrf.to_be_bytes()).collect();
    let template = 258 - vrfs.len() as u16;
    (template, [&[10, 1, 0, host, 192, 0, 2, 7][..], &vrfs_bytes].concat())
}

/// A table with one prefix, whose value names it.
fn prepared(column: &str, value: &str, format: FlowFormat) -> Arc<FlowTable> {
    let mut options = AnnotateOptions::default();
    options.add = vec!["prefix".into(), column.into()];
    let fib = table(column, &[("10.1.0.0/16", value)]);
    Arc::new(FlowTable::new(fib, &options, format).unwrap())
}

fn by_vrf(
    main: Option<&Arc<FlowTable>>,
    vrfs: &[(&str, Option<&Arc<FlowTable>>)],
) -> Arc<FlowTable> {
    let vrfs: Vec<_> =
        vrfs.iter().map(|(vrf, table)| ((*vrf).to_owned(), table.cloned())).collect();
    Arc::new(FlowTable::by_vrf(main.cloned(), &vrfs).unwrap())
}

#[test]
fn flows_have_the_values_of_their_vrf() {
    let json = FlowFormat::JsonLines;
    let [main, blue, red] = ["main", "blue", "red"].map(|site| prepared("site", site, json));
    let other = prepared("owner", "other", json);
    let tables = by_vrf(
        Some(&main),
        &[
            ("blue", Some(&blue)),
            ("red", Some(&red)),
            ("7", Some(&other)),
            ("8", Some(&blue)),
            ("9", None),
        ],
    );
    let folder = tempfile::tempdir().unwrap();
    let collector = Collector::start(options(folder.path(), json), Some(tables)).unwrap();
    let exporter = Exporter::to(&collector);
    exporter.send(&announced());
    let expected = [
        // By the ingress, whose name is known.
        (&[1, 2][..], Some("blue"), None),
        (&[2, 1], Some("red"), None),
        // No VRF.
        (&[], Some("main"), None),
        // By a number: of the ingress, before all else; of the egress, behind the name.
        (&[7, 1], None, Some("other")),
        (&[8, 2], Some("blue"), None),
        (&[3, 7], None, Some("other")),
        (&[7], None, Some("other")),
        // By the name of the egress, since the ingress has none.
        (&[3, 2], Some("red"), None),
        (&[2], Some("red"), None),
        // A VRF that is not given, and one without a table.
        (&[3, 4], Some("main"), None),
        (&[9, 1], None, None),
        (&[1, 1], Some("blue"), None),
    ];
    let sets: Vec<_> =
        expected.iter().zip(1..).map(|((vrfs, ..), host)| flow(host, vrfs)).collect();
    exporter.send(&message(&sets));
    wait(&collector, |counts| counts.exports.flows == 12);
    let counts = collector.stop().unwrap();
    // Sources and destinations of all flows but that without a table.
    assert_eq!((counts.rows, counts.addresses, counts.matched), (12, 22, 11));
    let rows = rows(folder.path());
    for (at, (row, (vrfs, site, owner))) in rows.iter().zip(&expected).enumerate() {
        let text = |name: &str| row.get(name).and_then(Value::as_str);
        assert_eq!(text("src"), Some(&*format!("10.1.0.{}", at + 1)), "the order of rows");
        let found = (text("src_site"), text("src_owner"));
        assert_eq!(found, (*site, *owner), "{vrfs:?}: {row}");
        let is_found = site.is_some() || owner.is_some();
        assert_eq!(text("src_prefix"), is_found.then_some("10.1.0.0/16"), "{vrfs:?}");
        assert_eq!((text("dst_site"), text("dst_prefix")), (None, None));
    }
}

/// Each batch has the values of one generation of each table; rows keep their order, and none is lost.
#[test]
fn a_table_is_replaced() {
    let json = FlowFormat::JsonLines;
    let [main, old, new] = ["main", "old", "new"].map(|site| prepared("site", site, json));
    let tables = [&old, &new].map(|blue| by_vrf(Some(&main), &[("blue", Some(blue))]));
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(folder.path(), json);
    options.batch_rows = 60;
    options.delay = Duration::from_millis(1);
    let collector = Collector::start(options, Some(Arc::clone(&tables[0]))).unwrap();
    let exporter = Exporter::to(&collector);
    exporter.send(&announced());
    for at in 0..300u32 {
        let sets: Vec<_> = (0..30u32)
            .map(|flow_at| {
                flow((at + flow_at) as u8, [&[1u32, 2][..], &[2, 2]][flow_at as usize % 2])
            })
            .collect();
        exporter.send(&message(&sets));
        if at == 150 {
            wait(&collector, |counts| counts.rows > 0);
            collector.replace(Some(Arc::clone(&tables[1])));
        }
    }
    let counts = collector.stop().unwrap();
    assert_eq!((counts.rows, counts.dropped), (9000, 0));
    let rows = rows(folder.path());
    let mut first = None;
    for (at, row) in rows.iter().enumerate() {
        let (message, flow) = (at as u32 / 30, at as u32 % 30);
        assert_eq!(row["src"], format!("10.1.0.{}", (message + flow) as u8));
        match &row["src_site"] {
            site if flow % 2 == 1 => assert_eq!(site, "main", "row {at}"),
            site if first.is_some() => assert_eq!(site, "new", "row {at}"),
            site if site == "new" => first = Some(at),
            site => assert_eq!(site, "old", "row {at}"),
        }
    }
    let first = first.expect("the new table was used");
    // A batch has whole messages.
    assert!(first > 0 && first % 30 == 0, "a batch with two generations: row {first}");
}

/// Texts are plain in Parquet, too, where a table alone has a dictionary.
#[test]
fn parquet() {
    let format = FlowFormat::Parquet;
    let [main, blue] = ["main", "blue"].map(|site| prepared("site", site, format));
    let kind = |table: &FlowTable| {
        let field = table.schema().field_with_name("src_site").unwrap();
        field.data_type().to_string()
    };
    assert!(kind(&main).starts_with("Dictionary"), "{}", kind(&main));
    let tables = by_vrf(Some(&main), &[("blue", Some(&blue))]);
    assert_eq!(kind(&tables), "Utf8");
    let folder = tempfile::tempdir().unwrap();
    let collector = Collector::start(options(folder.path(), format), Some(tables)).unwrap();
    let exporter = Exporter::to(&collector);
    exporter.send(&announced());
    exporter.send(&message(&[flow(1, &[1]), flow(2, &[]), flow(3, &[9, 9])]));
    wait(&collector, |counts| counts.exports.flows == 3);
    collector.stop().unwrap();
    let [file] = &files(folder.path())[..] else { panic!("one file") };
    let file = std::fs::File::open(file).unwrap();
    let reader = parquet::arrow::arrow_reader::ParquetRecordBatchReader::try_new(file, 100);
    let batch = reader.unwrap().next().unwrap().unwrap();
    let column = batch.column_by_name("src_site").unwrap();
    let sites: Vec<_> = arrow_array::cast::AsArray::as_string::<i32>(column).iter().collect();
    assert_eq!(sites, [Some("blue"), Some("main"), Some("main")]);
}

/// Columns of one name and two types cannot be one column.
#[test]
fn types_that_differ() {
    let json = FlowFormat::JsonLines;
    let text = prepared("site", "blue", json);
    let mut options = AnnotateOptions::default();
    let numbers = crate::tables::numbers("site", &[("10.0.0.0/8", 8)]);
    options.add = vec!["site".into()];
    let number = Arc::new(FlowTable::new(numbers, &options, json).unwrap());
    let result = FlowTable::by_vrf(Some(text), &[("blue".to_owned(), Some(number))]);
    let Err(AnnotateError::File { what }) = result else { panic!("one column of two types") };
    assert!(what.contains("src_site") && what.contains("Utf8"), "{what}");
    // Integers of other widths can.
    let wide = crate::tables::numbers("length", &[("10.0.0.0/8", 1 << 40)]);
    let narrow = crate::tables::numbers("length", &[("10.0.0.0/8", 8)]);
    options.add = vec!["length".into()];
    let [wide, narrow] = [wide, narrow].map(|fib| FlowTable::new(fib, &options, json).unwrap());
    let kind = |table: &FlowTable| {
        let field = table.schema().field_with_name("dst_length").unwrap();
        field.data_type().to_string()
    };
    let [wide, narrow] = [wide, narrow].map(Arc::new);
    assert_ne!(kind(&wide), kind(&narrow));
    let vrfs = [("blue".to_owned(), Some(Arc::clone(&wide)))];
    assert_eq!(kind(&FlowTable::by_vrf(Some(narrow), &vrfs).unwrap()), kind(&wide));
}
