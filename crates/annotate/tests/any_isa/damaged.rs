//! Damaged Parquet and Arrow files: an error or rows, never a panic, never the end of the process.

use std::fs::{self, File};
use std::io::{Cursor, Write};
use std::path::Path;
use std::sync::{Arc, Once};

use crate::common::World;
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Int32Array, Int64Array, RecordBatch, StringArray, StringViewArray,
};
use arrow_ipc::CompressionType;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::{DictionaryHandling, FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::{DataType, Field, Schema};
use fibula_annotate::{
    AnnotateError, AnnotateOptions, Column, ColumnAnnotator, Summary, panic_is_caught,
};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

/// Small, and with what has lengths of its own: text, views, a dictionary, nulls.
fn batch(first: usize) -> RecordBatch {
    let ips = ["10.0.0.1", "10.1.2.3", "2001:db8::1", "x", "a text that is not inlined"];
    let cell = |i: usize| (!i.is_multiple_of(4)).then_some(ips[(first + i) % ips.len()]);
    let src: StringArray = (0..9).map(cell).collect();
    let dst: DictionaryArray<Int32Type> = (0..9).map(cell).collect();
    let seen: StringViewArray = (0..9).map(cell).collect();
    let numbers = Int64Array::from_iter_values((0..9).map(|i| (first + i) as i64));
    let columns = [
        ("src", Arc::new(src) as ArrayRef),
        ("dst", Arc::new(dst)),
        ("seen", Arc::new(seen)),
        ("n", Arc::new(numbers)),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true)))
        .unwrap()
}

fn annotator() -> ColumnAnnotator {
    let mut options = AnnotateOptions::default();
    options.columns = ["src", "dst", "seen"].map(|name| Column::Name(name.into())).to_vec();
    options.threads = 2;
    ColumnAnnotator::new(World::new(), &options).unwrap()
}

/// Panics that become errors are not reported; all others are.
fn quiet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let default = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !panic_is_caught() {
                default(panic);
            }
        }));
    });
}

fn stream(compression: Option<CompressionType>) -> Vec<u8> {
    let options = IpcWriteOptions::default().try_with_compression(compression).unwrap();
    let schema = batch(0).schema();
    let mut writer = StreamWriter::try_new_with_options(Vec::new(), &schema, options).unwrap();
    writer.write(&batch(1)).unwrap();
    writer.finish().unwrap();
    writer.into_inner().unwrap()
}

fn file(compression: Option<CompressionType>) -> Vec<u8> {
    let options = IpcWriteOptions::default().try_with_compression(compression).unwrap();
    let schema = batch(0).schema();
    let mut writer = FileWriter::try_new_with_options(Vec::new(), &schema, options).unwrap();
    writer.write(&batch(5)).unwrap();
    writer.finish().unwrap();
    writer.into_inner().unwrap()
}

fn of_stream(annotator: &ColumnAnnotator, bytes: &[u8]) -> Result<Summary, AnnotateError> {
    annotator.annotate_ipc_stream(bytes, std::io::sink(), &mut |_| {})
}

fn of_file(annotator: &ColumnAnnotator, bytes: &[u8]) -> Result<Summary, AnnotateError> {
    annotator.annotate_ipc_file(Cursor::new(bytes), std::io::sink(), &mut |_| {})
}

/// Every byte changed in these ways; every cut.
fn damage(
    whole: &[u8],
    changes: &[u8],
    cut_is_error: bool,
    run: impl Fn(&[u8]) -> Result<Summary, AnnotateError>,
) {
    quiet();
    assert_eq!(run(whole).unwrap().rows % 9, 0);
    let mut bytes = whole.to_vec();
    for at in 0..whole.len() {
        for change in changes {
            bytes[at] = whole[at] ^ change;
            // Data may be as good as what it was; what matters is that this returns.
            let _ = run(&bytes);
        }
        bytes[at] = whole[at];
    }
    for cut in 0..whole.len() {
        assert!(run(&whole[..cut]).is_err() || !cut_is_error, "cut at {cut}");
    }
}

#[test]
fn arrow_streams() {
    let annotator = annotator();
    let run = |bytes: &[u8]| of_stream(&annotator, bytes);
    damage(&stream(None), &[0x01, 0xff], false, run);
    damage(&stream(Some(CompressionType::ZSTD)), &[0x80], false, run);
}

#[test]
fn arrow_files() {
    let annotator = annotator();
    let run = |bytes: &[u8]| of_file(&annotator, bytes);
    damage(&file(None), &[0x01, 0xff], true, run);
    damage(&file(Some(CompressionType::LZ4_FRAME)), &[0x80], true, run);
}

/// Lengths that a file of these few bytes cannot have are refused before memory is asked for.
#[test]
fn announced_lengths_are_not_believed() {
    let annotator = annotator();
    let refused = |found: Result<Summary, AnnotateError>, words: &str| {
        let error = found.unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    };
    let eight = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
    refused(of_stream(&annotator, &eight), "2147483647 bytes of metadata");
    refused(of_stream(&annotator, &[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 2]), "early");
    let mut footer = b"ARROW1\0\0".to_vec();
    footer.extend([0xff, 0xff, 0xff, 0x7f]);
    footer.extend(b"ARROW1");
    refused(of_file(&annotator, &footer), "a footer of 2147483647 bytes");
    refused(of_file(&annotator, b"ARROW1"), "6 bytes are no Arrow file");
}

/// Columns of zeros are a few kilobytes that are unpacked to 320 MiB.
#[test]
fn batches_are_not_unpacked_beyond_their_bound() {
    let mut options = AnnotateOptions::default();
    options.columns = vec![Column::Name("n0".into())];
    let annotator = ColumnAnnotator::new(World::new(), &options).unwrap();
    let batches = [9, 8 << 20].map(|rows| {
        let zeros: ArrayRef = Arc::new(Int64Array::from_value(0, rows));
        let columns = (0..5).map(|at| (format!("n{at}"), Arc::clone(&zeros)));
        RecordBatch::try_from_iter(columns).unwrap()
    });
    let schema = batches[0].schema();
    let options =
        |compression| IpcWriteOptions::default().try_with_compression(Some(compression)).unwrap();
    let zstd = options(CompressionType::ZSTD);
    let mut writer = StreamWriter::try_new_with_options(Vec::new(), &schema, zstd).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    let stream = writer.into_inner().unwrap();
    assert!(stream.len() < 32 << 10, "{}", stream.len());
    let lz4 = options(CompressionType::LZ4_FRAME);
    let mut writer = FileWriter::try_new_with_options(Vec::new(), &schema, lz4).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap();
    let file = writer.into_inner().unwrap();
    for found in [of_stream(&annotator, &stream), of_file(&annotator, &file)] {
        let error = found.unwrap_err().to_string();
        assert!(error.contains("record batch 2 takes 335544320 bytes"), "{error}");
        assert!(error.contains("more than 268435456; write smaller batches"), "{error}");
    }
}

/// A frame of LZ4 is unpacked to its end by the library, also if it declares less.
#[test]
fn declared_lengths_of_lz4_are_checked() {
    let annotator = annotator();
    let mut bytes = stream(Some(CompressionType::LZ4_FRAME));
    assert!(of_stream(&annotator, &bytes).is_ok());
    let magic = 0x184d_2204_u32.to_le_bytes();
    let at = bytes.windows(4).position(|four| four == magic).expect("a frame of LZ4");
    bytes[at - 8] ^= 1;
    let error = of_stream(&annotator, &bytes).unwrap_err().to_string();
    assert!(error.contains("declares"), "{error}");
}

/// Dictionaries count together, and so do their deltas.
#[test]
fn dictionaries_count_until_they_are_replaced() {
    let mut options = AnnotateOptions::default();
    options.columns = vec![Column::Name("src".into())];
    options.batch_bytes = Some(1 << 20);
    let annotator = ColumnAnnotator::new(World::new(), &options).unwrap();
    let batch = |values: usize| {
        let texts = (0..values).map(|at| format!("{at}{}", "x".repeat(300_000)));
        let dst: DictionaryArray<Int32Type> = DictionaryArray::new(
            Int32Array::from(vec![0]),
            Arc::new(StringArray::from_iter_values(texts)),
        );
        let src = StringArray::from(vec!["10.0.0.1"]);
        RecordBatch::try_from_iter([("src", Arc::new(src) as ArrayRef), ("dst", Arc::new(dst))])
            .unwrap()
    };
    let written = |handling: DictionaryHandling, counts: &[usize]| {
        let options = IpcWriteOptions::default().with_dictionary_handling(handling);
        let schema = batch(1).schema();
        let mut writer = StreamWriter::try_new_with_options(Vec::new(), &schema, options).unwrap();
        counts.iter().for_each(|&count| writer.write(&batch(count)).unwrap());
        writer.into_inner().unwrap()
    };
    let (resend, delta) = (DictionaryHandling::Resend, DictionaryHandling::Delta);
    assert_eq!(of_stream(&annotator, &written(resend, &[1, 2, 1, 2])).unwrap().rows, 4);
    assert_eq!(of_stream(&annotator, &written(delta, &[1, 2, 3])).unwrap().rows, 3);
    let error = of_stream(&annotator, &written(delta, &[1, 2, 3, 4])).unwrap_err().to_string();
    assert!(error.contains("dictionary batch 4 takes 12000"), "{error}");
}

/// A batch of many rows is written as several.
#[test]
fn long_batches_are_written_in_parts() {
    let mut options = AnnotateOptions::default();
    options.columns = vec![Column::Name("src".into())];
    options.batch_rows = Some(4);
    let annotator = ColumnAnnotator::new(World::new(), &options).unwrap();
    let mut written = Vec::new();
    let summary =
        annotator.annotate_ipc_stream(&stream(None)[..], &mut written, &mut |_| {}).unwrap();
    let read = StreamReader::try_new(&written[..], None).unwrap();
    let rows: Vec<_> = read.map(|batch| batch.unwrap().num_rows()).collect();
    assert_eq!((summary.rows, rows), (9, vec![4, 4, 1]));
}

fn parquet(path: &Path, first: usize, groups: usize) -> Vec<u8> {
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(9))
        .set_compression(Compression::SNAPPY)
        .build();
    let mut writer =
        ArrowWriter::try_new(File::create(path).unwrap(), batch(0).schema(), Some(properties))
            .unwrap();
    (0..groups).for_each(|_| writer.write(&batch(first)).unwrap());
    writer.close().unwrap();
    fs::read(path).unwrap()
}

#[test]
fn parquet_files() {
    let (annotator, folder) = (annotator(), tempfile::tempdir().unwrap());
    let path = folder.path().join("in.parquet");
    let whole = parquet(&path, 0, 1);
    let run = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        annotator.annotate_parquet(File::open(&path).unwrap(), std::io::sink(), &mut |_| {})
    };
    damage(&whole, &[0x80, 0xff], true, run);
}

/// A page that says that it unpacks to 2 GiB.
#[test]
fn page_sizes_are_not_believed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.parquet");
    let mut bytes = parquet(&path, 0, 1);
    // The first page: its kind, then its size, of which any byte but the last has the highest bit.
    assert_eq!((&bytes[..5], bytes[6]), (&b"PAR1\x15"[..], 0x15));
    let end = 7 + bytes[7..].iter().position(|&byte| byte < 0x80).unwrap();
    let footer = bytes.len() - 8;
    let grown = [0xfe, 0xff, 0xff, 0xff, 0x0f];
    let data = bytes.split_off(end + 1);
    bytes.truncate(7);
    bytes.extend(grown);
    // As many bytes less in the page, so that all that the footer says stays where it is.
    let more = bytes.len() - (end + 1);
    bytes.extend(&data[..40]);
    bytes.extend(&data[40 + more..]);
    assert_eq!(bytes.len(), footer + 8);
    fs::write(&path, &bytes).unwrap();
    let found =
        annotator().annotate_parquet(File::open(&path).unwrap(), std::io::sink(), &mut |_| {});
    let error = found.unwrap_err().to_string();
    assert!(error.contains("the page at byte 4 has") && error.contains("2147483647"), "{error}");
}

/// A Parquet file without rows whose schema has this many groups, each with one element. `extra` is in each of them.
fn nested(groups: usize, extra: &[u8]) -> Vec<u8> {
    let mut elements = Vec::new();
    for at in 0..groups {
        // The repetition if it is not the root, the name, the number of children.
        elements.extend(if at == 0 { &b"\x48\x01a"[..] } else { b"\x35\x00\x18\x01a" });
        elements.extend(b"\x15\x02");
        elements.extend(extra);
        elements.push(0);
    }
    elements.extend(b"\x15\x0c\x25\x02\x18\x02ip\x00");
    let mut footer = b"\x15\x02\x19\xfc".to_vec();
    let mut count = groups + 1;
    while count > 0x7f {
        footer.push(count as u8 | 0x80);
        count >>= 7;
    }
    footer.push(count as u8);
    footer.extend(elements);
    // No rows in no row groups.
    footer.extend(b"\x16\x00\x19\x0c\x00");
    let len = (footer.len() as u32).to_le_bytes();
    [b"PAR1", &footer[..], &len, b"PAR1"].concat()
}

/// The library reads a group within a group by calling itself.
#[test]
fn nested_groups_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.parquet");
    let error = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        let input = File::open(&path).unwrap();
        let found = annotator().annotate_parquet(input, std::io::sink(), &mut |_| {});
        found.unwrap_err().to_string()
    };
    assert!(error(&nested(50, b"")).contains("no column \"src\""), "{}", error(&nested(50, b"")));
    for groups in [101, 5_000, 1_000_000] {
        assert_eq!(
            error(&nested(groups, b"")),
            "the schema has more than 100 groups within each other"
        );
    }
    // More children than there are, and a number where the library reads the text of a name.
    for extra in [&b"\x05\x0a\xfe\xff\xff\x0f"[..], b"\x05\x08\x00"] {
        let error = error(&nested(5_000, extra));
        assert_eq!(error, "the file is damaged: its footer does not begin with a schema");
    }
}

#[test]
fn nested_fields_of_arrow_are_counted() {
    let mut kind = DataType::Utf8;
    for _ in 0..100 {
        kind = DataType::Struct(vec![Field::new("a", kind, true)].into());
    }
    let schema = Schema::new(vec![Field::new("src", kind, true)]);
    let mut stream = StreamWriter::try_new(Vec::new(), &schema).unwrap();
    stream.finish().unwrap();
    let error = of_stream(&annotator(), &stream.into_inner().unwrap()).unwrap_err().to_string();
    assert!(error.to_lowercase().contains("depth"), "{error}");
}

/// The errors of the libraries say which version found what.
#[test]
fn errors_name_the_version_of_the_library() {
    let found = of_file(&annotator(), &[&b"ARROW1\0\0"[..], &[0; 40]].concat());
    let error = found.unwrap_err().to_string();
    assert!(error.contains("(read with arrow-rs 59."), "{error}");
}

/// A file that takes the place of the one that is read is another file.
#[test]
fn a_parquet_file_may_be_replaced_while_it_is_read() {
    let (annotator, folder) = (annotator(), tempfile::tempdir().unwrap());
    let path = |name: &str| folder.path().join(name);
    let (input, other, out) = (path("in.parquet"), path("other.parquet"), path("out.parquet"));
    parquet(&input, 0, 20);
    let mut expected = Vec::new();
    annotator.annotate_parquet(File::open(&input).unwrap(), &mut expected, &mut |_| {}).unwrap();
    parquet(&other, 3, 20);
    let opened = File::open(&input).unwrap();
    let mut replace = |_| {
        if other.exists() {
            fs::rename(&other, &input).unwrap();
        }
    };
    annotator.annotate_parquet(opened, File::create(&out).unwrap(), &mut replace).unwrap();
    assert!(!other.exists());
    assert_eq!(fs::read(&out).unwrap(), expected);
}

/// One that is written to is an error: its rows would be of two files.
#[test]
fn a_parquet_file_must_not_change_while_it_is_read() {
    let (annotator, folder) = (annotator(), tempfile::tempdir().unwrap());
    let input = folder.path().join("in.parquet");
    parquet(&input, 0, 20);
    let opened = File::open(&input).unwrap();
    let mut append = |_| {
        let mut file = fs::OpenOptions::new().append(true).open(&input).unwrap();
        file.write_all(b"more").unwrap();
    };
    let found = annotator.annotate_parquet(opened, std::io::sink(), &mut append);
    assert!(found.is_err_and(|error| error.to_string().contains("changed while it was read")));
}
