//! Parquet and Arrow IPC files, whole: what was there stays, what is added is right.

use std::fs::File;
use std::io::{Cursor, Read};
use std::path::Path;
use std::sync::Arc;

use crate::common::World;
use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, UInt32Type};
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Int64Array, RecordBatch, StringArray, StructArray,
    UInt32Array,
};
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::{DataType, Field};
use fibula_annotate::{AnnotateError, AnnotateOptions, Column, ColumnAnnotator, Summary};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::Compression;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{FileReader as _, SerializedFileReader};

const ADDRESSES: [Option<&str>; 7] = [
    Some("10.0.0.1"),
    Some("10.1.2.3"),
    None,
    Some("2001:db8:1::1"),
    Some("x"),
    Some("8.8.8.8"),
    Some("::ffff:192.0.2.1"),
];

/// Columns of many kinds around the addresses.
fn batch(rows: usize, first: usize) -> RecordBatch {
    let numbers = Int64Array::from_iter_values((first..first + rows).map(|i| i as i64));
    let src = (first..first + rows).map(|i| ADDRESSES[i % 7]);
    let src: StringArray = src.collect();
    let dst = (first..first + rows).map(|i| (i % 3 > 0).then_some(0x0a00_0000 + (i as u32) * 251));
    let dst: UInt32Array = dst.collect();
    let mut lists = ListBuilder::new(StringBuilder::new());
    for i in 0..rows {
        (0..i % 4).for_each(|j| lists.values().append_value(format!("tag {j}")));
        lists.append(i % 5 > 0);
    }
    let inner: ArrayRef =
        Arc::new(StringArray::from_iter_values((0..rows).map(|i| format!("{i}"))));
    let nested = StructArray::from(vec![(Arc::new(Field::new("s", DataType::Utf8, false)), inner)]);
    let kinds: DictionaryArray<Int32Type> =
        (0..rows).map(|i| Some(["tcp", "udp"][i % 2])).collect();
    RecordBatch::try_from_iter_with_nullable([
        ("n", Arc::new(numbers) as ArrayRef, false),
        ("tags", Arc::new(lists.finish()), true),
        ("src", Arc::new(src), true),
        ("nested", Arc::new(nested), true),
        ("dst", Arc::new(dst), true),
        ("kind", Arc::new(kinds), true),
    ])
    .unwrap()
}

fn column(name: &str) -> Column {
    Column::Name(name.to_owned())
}

fn with<T>(
    world: &World,
    asked: &AnnotateOptions,
    add: &[&str],
    strict: bool,
    run: impl FnOnce(&ColumnAnnotator) -> T,
) -> T {
    let mut options = asked.clone();
    options.add = add.iter().map(|&name| name.to_owned()).collect();
    options.strict = strict;
    run(&ColumnAnnotator::new(world.clone(), &options).unwrap())
}

/// The columns of the input, and what the annotator says of the addresses on their own.
fn check(
    world: &World,
    before: &[RecordBatch],
    after: &[RecordBatch],
    add: &[&str],
    columns: &[&str],
) {
    let schema = after[0].schema();
    let before = arrow_select_concat(before);
    let after = arrow_select_concat(after);
    assert_eq!(after.num_rows(), before.num_rows());
    for (at, field) in before.schema().fields().iter().enumerate() {
        assert_eq!(schema.field(at).name(), field.name());
        assert_eq!(after.column(at), before.column(at), "{}", field.name());
    }
    let mut at = before.num_columns();
    for name in columns {
        let found = with(world, &AnnotateOptions::default(), add, false, |a| {
            a.annotate(name, before.column_by_name(name).unwrap()).unwrap()
        });
        for (field, expected) in found.fields.iter().zip(&found.columns) {
            assert_eq!(schema.field(at).name(), field.name());
            assert_eq!(schema.field(at).data_type(), field.data_type());
            let text = |array: &ArrayRef, row: usize| {
                array.is_valid(row).then(|| match array.data_type() {
                    DataType::UInt32 => array.as_primitive::<UInt32Type>().value(row).to_string(),
                    DataType::Utf8 => array.as_string::<i32>().value(row).to_owned(),
                    DataType::List(_) => format!("{:?}", array.as_list::<i32>().value(row)),
                    _ => {
                        let array = array.as_dictionary::<Int32Type>();
                        let values = array.downcast_dict::<StringArray>().unwrap();
                        let value = values.into_iter().nth(row).flatten();
                        value.unwrap_or("a null value").to_owned()
                    }
                })
            };
            for row in 0..after.num_rows() {
                assert_eq!(text(after.column(at), row), text(expected, row), "row {row}");
            }
            at += 1;
        }
    }
    assert_eq!(at, after.num_columns());
}

/// One batch of all.
fn arrow_select_concat(batches: &[RecordBatch]) -> RecordBatch {
    arrow_select::concat::concat_batches(&batches[0].schema(), batches).unwrap()
}

fn write_parquet(path: &Path, rows: usize, group: usize, compression: Compression) {
    // As pyarrow writes it, unless asked: pages without an index.
    let indexed = compression != Compression::SNAPPY;
    let statistics = if indexed { EnabledStatistics::Page } else { EnabledStatistics::Chunk };
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(group))
        .set_statistics_enabled(statistics)
        .set_offset_index_disabled(!indexed)
        .set_compression(compression)
        .set_bloom_filter_enabled(true)
        .set_key_value_metadata(Some(vec![KeyValue::new(
            "author".to_owned(),
            "somebody".to_owned(),
        )]))
        .build();
    let file = File::create(path).unwrap();
    let whole = batch(rows, 0);
    let mut writer = ArrowWriter::try_new(file, whole.schema(), Some(properties)).unwrap();
    writer.write(&whole).unwrap();
    writer.close().unwrap();
}

fn read_parquet(path: &Path) -> Vec<RecordBatch> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    reader.build().unwrap().map(Result::unwrap).collect()
}

#[test]
fn parquet_row_groups_keep_their_bytes() {
    let (world, folder) = (World::new(), tempfile::tempdir().unwrap());
    let (input, output) = (folder.path().join("in.parquet"), folder.path().join("out.parquet"));
    let add = ["prefix", "asn", "org", "covering"];
    for (rows, group, threads, compression) in [
        (1000, 130, 1, Compression::SNAPPY),
        (1000, 130, 3, Compression::ZSTD(Default::default())),
        (1000, 5000, 4, Compression::UNCOMPRESSED),
        (1, 1, 2, Compression::GZIP(Default::default())),
        (50_000, 49_999, 2, Compression::LZ4_RAW),
    ] {
        write_parquet(&input, rows, group, compression);
        let mut options = AnnotateOptions::default();
        options.columns = vec![column("dst"), column("src")];
        options.threads = threads;
        let mut seen = Vec::new();
        let summary = with(&world, &options, &add, false, |annotator| {
            let file = File::create(&output).unwrap();
            annotator
                .annotate_parquet(File::open(&input).unwrap(), file, &mut |at| seen.push(at.rows))
                .unwrap()
        });
        check(&world, &read_parquet(&input), &read_parquet(&output), &add, &["dst", "src"]);
        assert_eq!(seen.last(), Some(&(rows as u64)));
        assert_eq!(summary.rows, rows as u64);
        let cells = summary.addresses + summary.empty + summary.unparsable;
        assert_eq!(cells, 2 * rows as u64);
        assert_eq!(summary.top.len(), 6, "prefix, asn and org of two columns");

        let open = |path: &Path| SerializedFileReader::new(File::open(path).unwrap()).unwrap();
        let (old, new) = (open(&input), open(&output));
        let pairs = new.metadata().file_metadata().key_value_metadata().unwrap();
        assert!(pairs.iter().any(|pair| pair.key == "author"));
        assert_eq!(pairs.iter().filter(|pair| pair.key == "ARROW:schema").count(), 1);
        assert_eq!(new.num_row_groups(), old.num_row_groups());
        for (old_group, new_group) in
            old.metadata().row_groups().iter().zip(new.metadata().row_groups())
        {
            for (old_column, new_column) in old_group.columns().iter().zip(new_group.columns()) {
                assert_eq!(new_column.statistics(), old_column.statistics());
                assert_eq!(new_column.compression(), old_column.compression());
                assert_eq!(
                    new_column.column_index_offset().is_some(),
                    old_column.column_index_offset().is_some()
                );
                assert_eq!(
                    new_column.offset_index_offset().is_some(),
                    compression != Compression::SNAPPY
                );
                assert!(new_column.bloom_filter_offset().is_some());
                let bytes = |path: &Path, column: &parquet::file::metadata::ColumnChunkMetaData| {
                    let (start, len) = column.byte_range();
                    std::fs::read(path).unwrap()[start as usize..(start + len) as usize].to_vec()
                };
                assert_eq!(bytes(&output, new_column), bytes(&input, old_column));
            }
            let added = &new_group.columns()[old_group.columns().len()..];
            assert!(added.iter().all(|column| column.compression() == compression));
        }
    }
}

#[test]
fn parquet_says_what_is_wrong() {
    let (world, folder) = (World::new(), tempfile::tempdir().unwrap());
    let input = folder.path().join("in.parquet");
    write_parquet(&input, 100, 20, Compression::SNAPPY);
    let run = |columns: &[&str], add: &[&str], strict| -> Result<Summary, AnnotateError> {
        let mut options = AnnotateOptions::default();
        options.columns = columns.iter().map(|name| name.parse().unwrap()).collect();
        with(&world, &options, add, strict, |annotator| {
            annotator.annotate_parquet(File::open(&input).unwrap(), std::io::sink(), &mut |_| {})
        })
    };
    let error = |columns: &[&str], strict| run(columns, &["asn"], strict).unwrap_err().to_string();
    assert_eq!(error(&["src"], true), "row 5, column src: \"x\" is not an address");
    let known = "the header has no column \"nope\"; it has: n, tags, src, nested, dst, kind";
    assert_eq!(error(&["nope"], false), known);
    assert_eq!(error(&["9"], false), "column 9 was asked for, the first row has 6");
    assert_eq!(error(&["3", "src"], false), "\"src\" was asked for twice");
    assert!(error(&["nested"], false).starts_with("a column of type Struct"));
    let found = run(&[], &["asn"], false).unwrap();
    assert_eq!(found.top.len(), 1, "src is found out: {found:?}");
    assert_eq!(found.first_unparsable.unwrap(), "row 5, column src: \"x\" is not an address");

    // Damage is an error, wherever it is; never a panic, and no file that looks whole.
    let whole = std::fs::read(&input).unwrap();
    for cut in [0, 3, 8, whole.len() / 2, whole.len() - 9, whole.len() - 1] {
        std::fs::write(&input, &whole[..cut]).unwrap();
        assert!(matches!(run(&["src"], &["asn"], false), Err(AnnotateError::File { .. })), "{cut}");
    }
    for at in (0..whole.len()).step_by(97) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x55;
        std::fs::write(&input, &damaged).unwrap();
        let _ = run(&["src"], &["asn"], false);
    }
}

#[test]
fn ipc_files_and_streams() {
    let world = World::new();
    let batches = [batch(1000, 0), batch(3000, 1000), batch(1, 4000)];
    let add = ["asn", "prefix", "org"];
    let mut options = AnnotateOptions::default();
    options.columns = vec![column("src")];

    // A file refuses dictionaries that change; those of a stream may.
    let same = [batches[0].clone(), batches[0].slice(10, 500)];
    let mut file = Vec::new();
    let mut writer = FileWriter::try_new(&mut file, &same[0].schema()).unwrap();
    same.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap();
    drop(writer);
    let (mut output, mut last) = (Vec::new(), 0);
    let summary = with(&world, &options, &add, false, |annotator| {
        let mut progress = |at: fibula_annotate::Progress| last = at.rows;
        annotator.annotate_ipc_file(Cursor::new(&file), &mut output, &mut progress).unwrap()
    });
    let found: Vec<_> =
        FileReader::try_new(Cursor::new(&output), None).unwrap().map(Result::unwrap).collect();
    check(&world, &same, &found, &add, &["src"]);
    assert_eq!((summary.rows, last), (1500, 1500));

    let mut stream = Vec::new();
    let mut writer = StreamWriter::try_new(&mut stream, &batches[0].schema()).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap();
    drop(writer);
    /// A few bytes a read, as a pipe may give.
    struct Drip<'a>(&'a [u8]);
    impl Read for Drip<'_> {
        fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
            let n = buf.len().min(self.0.len()).min(1000);
            let (now, later) = self.0.split_at(n);
            buf[..n].copy_from_slice(now);
            self.0 = later;
            Ok(n)
        }
    }
    let mut output = Vec::new();
    let summary = with(&world, &options, &add, false, |annotator| {
        annotator.annotate_ipc_stream(Drip(&stream), &mut output, &mut |_| {}).unwrap()
    });
    let found: Vec<_> =
        StreamReader::try_new(Cursor::new(&output), None).unwrap().map(Result::unwrap).collect();
    check(&world, &batches, &found, &add, &["src"]);
    assert_eq!(summary.rows, 4001);

    // Cut anywhere: an error, or the batches that are whole.
    for cut in (0..stream.len()).step_by(1009) {
        with(&world, &options, &add, false, |annotator| {
            let _ = annotator.annotate_ipc_stream(&stream[..cut], std::io::sink(), &mut |_| {});
        });
    }
    let error = with(&world, &options, &add, true, |annotator| {
        annotator.annotate_ipc_stream(&stream[..], std::io::sink(), &mut |_| {}).unwrap_err()
    });
    assert_eq!(error.to_string(), "row 5, column src: \"x\" is not an address");
}
