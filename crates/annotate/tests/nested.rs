//! Columns of files: rows that are left out, values of all covering prefixes, addresses in structures and lists.

use std::fs::File;
use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

use crate::common::World;
use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, UInt32Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, Int64Array, ListArray, RecordBatch,
    StringArray, StructArray,
};
use arrow_buffer::NullBuffer;
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::{DataType, Field};
use arrow_select::concat::concat_batches;
use arrow_select::filter::filter_record_batch;
use fibula_annotate::{AnnotateError, AnnotateOptions, ColumnAnnotator, Only, Summary, TextForm};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::properties::WriterProperties;

fn options(columns: &[&str], add: &[&str]) -> AnnotateOptions {
    let mut options = AnnotateOptions::default();
    options.columns = columns.iter().map(|column| column.parse().unwrap()).collect();
    options.add = add.iter().map(|&name| name.to_owned()).collect();
    options.threads = 2;
    options
}

const SRC: [Option<&str>; 5] =
    [Some("10.1.2.3"), None, Some("8.8.8.8"), Some("x"), Some("2001:db8:1::1")];

/// Flows: a number, addresses at the top, in structures and in lists.
fn flows(rows: usize) -> RecordBatch {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows as i64));
    let src: ArrayRef = Arc::new((0..rows).map(|i| SRC[i % 5]).collect::<StringArray>());
    let ip: ArrayRef = Arc::new((0..rows).map(|i| SRC[(i + 1) % 5]).collect::<StringArray>());
    let port: ArrayRef = Arc::new(Int64Array::from_iter_values((0..rows as i64).map(|i| i % 7)));
    let end = |nulls: usize, fields: Vec<(&str, &ArrayRef)>| -> ArrayRef {
        let valid: NullBuffer = (0..rows).map(|i| i % nulls > 0).collect();
        let fields = fields.into_iter().map(|(name, array)| {
            (Arc::new(Field::new(name, array.data_type().clone(), true)), Arc::clone(array))
        });
        let (fields, arrays): (Vec<_>, Vec<_>) = fields.unzip();
        Arc::new(StructArray::new(fields.into(), arrays, Some(valid)))
    };
    let inner = end(3, vec![("port", &port), ("ip", &ip)]);
    let flow = end(4, vec![("kind", &port), ("dst", &inner)]);
    let mut hops = ListBuilder::new(StringBuilder::new());
    for i in 0..rows {
        (0..i % 4).for_each(|j| hops.values().append_option(SRC[(i + j) % 5]));
        hops.append(i % 6 > 0);
    }
    let kinds: DictionaryArray<Int32Type> =
        (0..rows).map(|i| Some(["tcp", "udp"][i % 2])).collect();
    RecordBatch::try_from_iter_with_nullable([
        ("n", numbers, false),
        ("flow", flow, true),
        ("src", src, true),
        ("hops", Arc::new(hops.finish()), true),
        ("kind", Arc::new(kinds), true),
    ])
    .unwrap()
}

/// What a file form does with rows.
type Form = fn(&AnnotateOptions, &RecordBatch, &Path) -> (Summary, RecordBatch);

fn annotator(options: &AnnotateOptions) -> ColumnAnnotator {
    ColumnAnnotator::new(World::new(), options).unwrap()
}

fn all(batches: Vec<RecordBatch>) -> RecordBatch {
    concat_batches(&batches[0].schema(), &batches).unwrap()
}

fn parquet(options: &AnnotateOptions, rows: &RecordBatch, folder: &Path) -> (Summary, RecordBatch) {
    let (input, output) = (folder.join("in.parquet"), folder.join("out.parquet"));
    let groups = WriterProperties::builder().set_max_row_group_row_count(Some(99)).build();
    let file = File::create(&input).unwrap();
    let mut writer = ArrowWriter::try_new(file, rows.schema(), Some(groups)).unwrap();
    writer.write(rows).unwrap();
    writer.close().unwrap();
    let (from, to) = (File::open(&input).unwrap(), File::create(&output).unwrap());
    let summary = annotator(options).annotate_parquet(from, to, &mut |_| {}).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(&output).unwrap()).unwrap();
    let schema = Arc::clone(reader.schema());
    let batches: Vec<_> = reader.build().unwrap().map(Result::unwrap).collect();
    (summary, concat_batches(&schema, &batches).unwrap())
}

fn ipc_file(options: &AnnotateOptions, rows: &RecordBatch, _: &Path) -> (Summary, RecordBatch) {
    let (mut input, mut output) = (Vec::new(), Vec::new());
    let mut writer = FileWriter::try_new(&mut input, &rows.schema()).unwrap();
    let half = rows.num_rows() / 2;
    writer.write(&rows.slice(0, half)).unwrap();
    writer.write(&rows.slice(half, rows.num_rows() - half)).unwrap();
    writer.finish().unwrap();
    drop(writer);
    let annotator = annotator(options);
    let summary = annotator.annotate_ipc_file(Cursor::new(input), &mut output, &mut |_| {});
    let reader = FileReader::try_new(Cursor::new(output), None).unwrap();
    (summary.unwrap(), all(reader.map(Result::unwrap).collect()))
}

fn ipc_stream(options: &AnnotateOptions, rows: &RecordBatch, _: &Path) -> (Summary, RecordBatch) {
    let (mut input, mut output) = (Vec::new(), Vec::new());
    let mut writer = StreamWriter::try_new(&mut input, &rows.schema()).unwrap();
    writer.write(rows).unwrap();
    writer.finish().unwrap();
    drop(writer);
    let summary = annotator(options).annotate_ipc_stream(&input[..], &mut output, &mut |_| {});
    let reader = StreamReader::try_new(Cursor::new(output), None).unwrap();
    (summary.unwrap(), all(reader.map(Result::unwrap).collect()))
}

const FORMS: [(&str, Form); 3] = [("parquet", parquet), ("file", ipc_file), ("stream", ipc_stream)];

/// With all other columns, nested ones among them, as they were.
#[test]
fn rows_that_match_and_those_that_do_not() {
    let (folder, rows) = (tempfile::tempdir().unwrap(), flows(1000));
    for (form, run) in FORMS {
        for columns in [&["src"][..], &["src", "flow.dst.ip"], &["hops"]] {
            let mut options = options(columns, &["prefix", "asn"]);
            let (summary, whole) = run(&options, &rows, folder.path());
            assert_eq!((summary.left_out, whole.num_rows()), (0, 1000), "{form}");
            let has_match = |row: usize| {
                columns.iter().any(|name| {
                    let found = whole.column_by_name(&format!("{name}_prefix")).unwrap();
                    match found.data_type() {
                        DataType::List(_) => {
                            let list = found.as_list::<i32>();
                            list.is_valid(row)
                                && list.value(row).null_count() < list.value(row).len()
                        }
                        _ => found.is_valid(row),
                    }
                })
            };
            for only in [Only::Matched, Only::Unmatched] {
                options.only = Some(only);
                let keep: BooleanArray =
                    (0..1000).map(|row| Some(has_match(row) == (only == Only::Matched))).collect();
                let expected = filter_record_batch(&whole, &keep).unwrap();
                let (summary, found) = run(&options, &rows, folder.path());
                assert!(expected.num_rows() > 100, "{form} {columns:?} {only:?}");
                assert_eq!(found.schema().fields(), expected.schema().fields());
                assert_eq!(found.columns(), expected.columns(), "{form} {columns:?} {only:?}");
                assert_eq!(summary.left_out as usize, 1000 - expected.num_rows());
                assert_eq!(summary.rows, 1000);
            }
        }
    }
}

fn texts(array: &ArrayRef) -> Vec<Option<String>> {
    match array.data_type() {
        DataType::Dictionary(..) => {
            let texts = array.as_dictionary::<Int32Type>();
            let texts = texts.downcast_dict::<StringArray>().unwrap();
            texts.into_iter().map(|text| text.map(str::to_owned)).collect()
        }
        _ => array.as_string::<i32>().iter().map(|text| text.map(str::to_owned)).collect(),
    }
}

#[test]
fn values_of_all_covering_prefixes() {
    let (folder, rows) = (tempfile::tempdir().unwrap(), flows(1000));
    for text in [TextForm::Dictionary, TextForm::Plain] {
        for (form, run) in FORMS {
            let mut options = options(&["src"], &["asn", "org", "covering", "prefix"]);
            (options.all_covering, options.text) = (true, text);
            options.defaults = vec![("asn".into(), "7".into())];
            let (_, found) = run(&options, &rows, folder.path());
            let list = |name: &str| found.column_by_name(name).unwrap().as_list::<i32>().clone();
            let (asn, org, covering) = (list("src_asn"), list("src_org"), list("src_covering"));
            for row in 0..1000 {
                if matches!(row % 5, 1 | 3) {
                    assert!(asn.is_null(row) && org.is_null(row) && covering.is_null(row));
                    continue;
                }
                let (numbers, names): (&[Option<u32>], &[&str]) = match row % 5 {
                    // Its own prefix has no AS.
                    0 => (
                        &[None, Some(64501), Some(64500)],
                        &["tab\there", "He said \"no\"", "Example, Inc."],
                    ),
                    2 => (&[Some(7)], &[]),
                    _ => (&[Some(64503), Some(64502)], &["", "Zoë"]),
                };
                let value: Vec<_> = asn.value(row).as_primitive::<UInt32Type>().iter().collect();
                assert_eq!(value, numbers, "{form}, row {row}");
                let named: Vec<_> = names.iter().map(|&name| Some(name.to_owned())).collect();
                assert_eq!(texts(&org.value(row)), named, "{form}, row {row}");
                assert_eq!(covering.value(row).len(), names.len());
            }
            assert_eq!(found.num_rows(), 1000);
        }
    }
}

#[test]
fn addresses_in_structures() {
    let (folder, rows) = (tempfile::tempdir().unwrap(), flows(500));
    let flat: StringArray =
        (0..500).map(|i| SRC[(i + 1) % 5].filter(|_| i % 3 > 0 && i % 4 > 0)).collect();
    for (form, run) in FORMS {
        let options = options(&["flow.dst.ip", "src"], &["prefix", "asn"]);
        let (summary, found) = run(&options, &rows, folder.path());
        let expected = annotator(&options).annotate("flow.dst.ip", &flat).unwrap();
        for (field, column) in expected.fields.iter().zip(&expected.columns) {
            assert_eq!(found.column_by_name(field.name()).unwrap(), column, "{form}");
        }
        assert_eq!(&found.columns()[..5], rows.columns(), "{form}");
        assert_eq!(summary.columns, ["flow.dst.ip", "src"]);
        assert!(found.schema().index_of("src_asn").is_ok());
    }
    // A literal name comes before a path.
    let literal: ArrayRef = Arc::new(StringArray::from(vec!["10.0.0.1"; 500]));
    let mut columns = vec![("flow.dst.ip", literal)];
    columns.extend(
        rows.schema_ref()
            .fields()
            .iter()
            .map(|field| field.name().as_str())
            .zip(rows.columns().iter().cloned()),
    );
    let both = RecordBatch::try_from_iter(columns).unwrap();
    let (summary, _) = ipc_stream(&options(&["flow.dst.ip"], &["asn"]), &both, folder.path());
    assert_eq!(summary.matched, 500);
    let error = |columns: &[&str]| -> AnnotateError {
        let mut input = Vec::new();
        let mut writer = StreamWriter::try_new(&mut input, &rows.schema()).unwrap();
        writer.write(&rows).unwrap();
        writer.finish().unwrap();
        drop(writer);
        let annotator = annotator(&options(columns, &["asn"]));
        annotator.annotate_ipc_stream(&input[..], std::io::sink(), &mut |_| {}).unwrap_err()
    };
    assert!(error(&["flow.dst"]).to_string().starts_with("a column of type Struct"));
    assert!(matches!(error(&["flow.dst.name"]), AnnotateError::UnknownColumn { .. }));
    assert!(matches!(error(&["flow.dst.ip", "flow.dst.ip"]), AnnotateError::Twice { .. }));
}

#[test]
fn lists_of_addresses() {
    let (folder, rows) = (tempfile::tempdir().unwrap(), flows(500));
    let lists = rows.column_by_name("hops").unwrap().as_list::<i32>().clone();
    let check = |found: &ListArray, lists: &ListArray| {
        assert_eq!(found.len(), lists.len());
        for row in 0..lists.len() {
            assert_eq!(found.is_null(row), lists.is_null(row), "row {row}");
            if lists.is_null(row) {
                continue;
            }
            let cells: Vec<_> = texts(&lists.value(row));
            let expected: Vec<Option<u32>> = cells
                .iter()
                .map(|cell| (cell.as_deref() == Some("2001:db8:1::1")).then_some(64503))
                .collect();
            let found: Vec<_> = found.value(row).as_primitive::<UInt32Type>().iter().collect();
            assert_eq!(found, expected, "row {row}");
        }
    };
    for (form, run) in FORMS {
        let (summary, found) = run(&options(&["hops"], &["asn"]), &rows, folder.path());
        check(found.column_by_name("hops_asn").unwrap().as_list::<i32>(), &lists);
        assert_eq!(
            found.column_by_name("hops").unwrap(),
            rows.column_by_name("hops").unwrap(),
            "{form}"
        );
        // The first row with "x" is the third: its list has "8.8.8.8" and "x".
        assert_eq!(
            summary.first_unparsable.unwrap(),
            "row 3, column hops: \"x\" is not an address"
        );
    }
    // A part of a column has offsets that do not begin at 0.
    let part = lists.slice(7, 100);
    let asked = options(&["hops"], &["asn"]);
    let found = annotator(&asked).annotate("hops", &part).unwrap();
    assert_eq!(found.fields[0].name(), "hops_asn");
    check(found.columns[0].as_list::<i32>(), &part);
    let mut strict = asked;
    strict.strict = true;
    let error = annotator(&strict).annotate("hops", &lists.slice(1, 100)).unwrap_err();
    assert_eq!(error.to_string(), "row 2, column hops: \"x\" is not an address");
}
