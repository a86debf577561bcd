//! `fibula classify` of Parquet and Arrow.

use std::fs::File;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{
    Array, ArrayRef, BinaryArray, DictionaryArray, FixedSizeBinaryArray, Int32Array, Int64Array,
    RecordBatch, StringArray, StringViewArray, UInt8Array, UInt16Array, UInt32Array,
};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::classify::{FLOWS, RULES, capture};
use crate::common::{Files, done, execute, execute_with, json};

/// The columns of an Arrow file and of a stream, also from standard input, have the rules of those of Parquet.
#[test]
fn arrow_rows_get_their_rules() {
    let files = Files::new();
    let rules = files.with("rules.txt", RULES);
    let text: Vec<String> = V4.iter().map(|ip| std::net::Ipv4Addr::from(*ip).to_string()).collect();
    let src: DictionaryArray<arrow_array::types::Int8Type> =
        text.iter().map(String::as_str).collect();
    let src: ArrayRef = Arc::new(src);
    let mut columns = vec![("srcaddr", src)];
    columns.push(("dstaddr", Arc::new(UInt32Array::from(vec![DST; 6]))));
    columns.extend(rest());
    let expected = done(&["classify", &rules, &parquet(&files, "f.parquet", columns.clone())]).out;
    let named = columns.into_iter().map(|(name, column)| (name, column, true));
    let batch = RecordBatch::try_from_iter_with_nullable(named).unwrap();

    let mut file = Vec::new();
    let mut writer = arrow_ipc::writer::FileWriter::try_new(&mut file, &batch.schema()).unwrap();
    (0..2).for_each(|half| writer.write(&batch.slice(3 * half, 3)).unwrap());
    writer.finish().unwrap();
    drop(writer);
    let mut stream = Vec::new();
    let mut writer =
        arrow_ipc::writer::StreamWriter::try_new(&mut stream, &batch.schema()).unwrap();
    (0..2).for_each(|half| writer.write(&batch.slice(3 * half, 3)).unwrap());
    writer.finish().unwrap();
    drop(writer);

    let path = files.with("flows.arrow", &file);
    assert_eq!(done(&["classify", &rules, &path]).out, expected);
    assert_eq!(done(&["classify", &rules, &files.with("flows.arrows", &stream)]).out, expected);
    let piped = execute_with(&["classify", &rules, "-"], stream);
    assert_eq!((piped.code, piped.out), (0, expected));
    let to = files.path("hits.parquet");
    done(&["classify", &rules, &path, "-o", &to]);
    assert_eq!(done(&["classify", &rules, &to, "--summary"]).out.lines().count(), 6);
    // Arrow becomes Arrow, with the same columns as Parquet; other inputs do not.
    let hits = files.path("hits.arrow");
    done(&["classify", &rules, &path, "-o", &hits]);
    let reader = arrow_ipc::reader::FileReader::try_new(File::open(&hits).unwrap(), None).unwrap();
    let read: Vec<RecordBatch> = reader.map(Result::unwrap).collect();
    assert_eq!(read.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), [3, 3]);
    let lines = read.iter().flat_map(|batch| {
        batch.column_by_name("rule_line").unwrap().as_primitive::<UInt32Type>().iter()
    });
    assert_eq!(lines.collect::<Vec<_>>(), LINES);
    assert_eq!(read[0].schema().fields()[..5], batch.schema().fields()[..]);
    for input in [&to, &files.with("flows.csv", FLOWS), &capture()] {
        let refused = execute(&["classify", &rules, input, "-o", &files.path("no.arrow")]);
        assert!(refused.err.contains("Arrow output needs Arrow input"), "{}", refused.err);
        assert!(!std::path::Path::new(&files.path("no.arrow")).exists());
    }
    let refused = execute_with(&["classify", &rules, "-"], file.clone());
    assert!(refused.err.contains("cannot be compressed, nor come"), "{}", refused.err);
    let cut = files.with("cut.arrow", &file[..file.len() / 2]);
    assert_eq!(execute(&["classify", &rules, &cut]).code, 2);
}

/// Writes a Parquet file of these columns, in row groups of four.
fn parquet(files: &Files, name: &str, columns: Vec<(&str, ArrayRef)>) -> String {
    let batch = RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, column)| (name, column, true)),
    )
    .unwrap();
    let path = files.path(name);
    let properties =
        parquet::file::properties::WriterProperties::builder().set_max_row_group_row_count(Some(4));
    let file = File::create(&path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties.build())).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    path
}

const V4: [u32; 6] = [0x0a00_0001, 0x0a00_0001, 0x0a09_0101, 0xc633_6401, 0x0a00_0001, 0xc633_6401];
const DST: u32 = 0xc000_0201;

/// The same flows as in `FLOWS`, but the fifth is IPv4.
fn rest() -> Vec<(&'static str, ArrayRef)> {
    vec![
        ("proto", Arc::new(UInt8Array::from(vec![17, 6, 6, 6, 6, 1]))),
        (
            "sport",
            Arc::new(UInt16Array::from(vec![
                Some(999),
                Some(40000),
                Some(40000),
                Some(40000),
                Some(40000),
                None,
            ])),
        ),
        (
            "dport",
            Arc::new(Int64Array::from(vec![
                Some(53),
                Some(80),
                Some(22),
                Some(23),
                Some(22),
                None,
            ])),
        ),
    ]
}

const LINES: [Option<u32>; 6] = [Some(2), Some(3), Some(4), Some(5), Some(3), None];

/// Addresses in all types that columns of them have.
#[test]
fn parquet_rows_get_their_rules() {
    let files = Files::new();
    let rules = files.with("rules.txt", RULES);
    let text: Vec<String> = V4.iter().map(|ip| std::net::Ipv4Addr::from(*ip).to_string()).collect();
    let bytes: Vec<[u8; 4]> = V4.iter().map(|ip| ip.to_be_bytes()).collect();
    let dictionary: DictionaryArray<arrow_array::types::Int8Type> =
        text.iter().map(String::as_str).collect();
    let fixed = FixedSizeBinaryArray::try_from_iter(bytes.iter()).unwrap();
    let sources: [ArrayRef; 6] = [
        Arc::new(StringArray::from(text.clone())),
        Arc::new(StringViewArray::from_iter_values(&text)),
        Arc::new(dictionary),
        Arc::new(UInt32Array::from(V4.to_vec())),
        Arc::new(fixed),
        Arc::new(BinaryArray::from_iter_values(&bytes)),
    ];
    for src in sources {
        let what = src.data_type().to_string();
        let note: ArrayRef = Arc::new(StringArray::from(vec!["n"; 6]));
        let mut columns = vec![("note", note), ("id.orig_h", src)];
        columns.push(("daddr", Arc::new(UInt32Array::from(vec![DST; 6]))));
        columns.extend(rest());
        let flows = parquet(&files, "flows.parquet", columns);
        let out = done(&["classify", &rules, &flows]).out;
        let mut lines = out.lines();
        let head = "row,src,dst,protocol,src_port,dst_port,rule_line,rule_action,rule_label";
        assert_eq!(lines.next(), Some(head), "{what}");
        assert_eq!(lines.next(), Some("1,10.0.0.1,192.0.2.1,17,999,53,2,allow,\"dns, queries\""));
        assert_eq!(out.lines().count(), 7, "{out}");
        assert_eq!(out.lines().last(), Some("6,198.51.100.1,192.0.2.1,1,,,,,"), "{what}");

        let to = files.path("hits.parquet");
        done(&["classify", &rules, &flows, "-o", &to]);
        let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(&to).unwrap()).unwrap();
        let all: Vec<RecordBatch> = reader.build().unwrap().map(Result::unwrap).collect();
        let [read] = &all[..] else { panic!("{} batches", all.len()) };
        let names: Vec<_> = read.schema().fields().iter().map(|f| f.name().clone()).collect();
        assert_eq!((names.len(), &*names[0], &*names[8]), (9, "note", "rule_label"));
        let lines = read.column_by_name("rule_line").unwrap().as_primitive::<UInt32Type>();
        assert_eq!(lines.iter().collect::<Vec<_>>(), LINES, "{what}");
        let actions = read.column_by_name("rule_action").unwrap().as_string::<i32>();
        assert_eq!((actions.value(2), actions.is_null(5)), ("drop", true));
        let labels = read.column_by_name("rule_label").unwrap().as_string::<i32>();
        assert_eq!((labels.value(0), labels.is_null(1)), ("dns, queries", true));
        let counts = json(&["classify", &rules, &flows, "--json"]);
        assert_eq!((&counts["packets"], &counts["unmatched"]["packets"]), (&6.into(), &1.into()));
    }
}

/// IPv6 addresses, protocols by name, a column of ports that is missing, and no ports at all.
#[test]
fn parquet_of_ipv6() {
    let files = Files::new();
    let rules = files.with("rules.txt", "src 2001:db8::/32 tcp -> drop\nicmp6 -> allow\n");
    let v6 = |last: u8| {
        let mut bytes = [0u8; 16];
        (bytes[..4]).copy_from_slice(&[0x20, 0x01, 0x0d, 0xb8]);
        bytes[15] = last;
        bytes
    };
    let src = FixedSizeBinaryArray::try_from_iter([v6(1), v6(2)].iter()).unwrap();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("src", Arc::new(src)),
        ("dst", Arc::new(StringArray::from(vec![" 2001:db9::1 ", "2001:db9::2"]))),
        ("protocol", Arc::new(StringArray::from(vec!["TCP", "icmp6"]))),
    ];
    let flows = parquet(&files, "six.parquet", columns);
    let out = done(&["classify", &rules, &flows]).out;
    let rows: Vec<&str> = out.lines().skip(1).collect();
    assert_eq!(
        rows,
        ["1,2001:db8::1,2001:db9::1,6,,,1,drop,", "2,2001:db8::2,2001:db9::2,58,,,2,allow,"]
    );
}

#[test]
fn wrong_parquet_is_refused_with_its_place() {
    let files = Files::new();
    let rules = files.with("rules.txt", RULES);
    let texts = |text: &[&str]| Arc::new(StringArray::from(text.to_vec())) as ArrayRef;
    let numbers = |all: &[Option<i32>]| Arc::new(Int32Array::from(all.to_vec())) as ArrayRef;
    let of = |column: &'static str, wrong: ArrayRef| {
        let mut columns = vec![
            ("src", texts(&["10.0.0.1", "10.0.0.2"])),
            ("dst", texts(&["10.0.0.1", "10.0.0.2"])),
            ("protocol", numbers(&[Some(6), Some(17)])),
            ("src_port", numbers(&[Some(1), Some(2)])),
            ("dst_port", numbers(&[Some(1), Some(2)])),
        ];
        columns.iter_mut().find(|(name, _)| *name == column).unwrap().1 = wrong;
        parquet(&files, "wrong.parquet", columns)
    };
    let short = FixedSizeBinaryArray::try_from_iter([[1u8; 5]; 2].iter()).unwrap();
    for (column, wrong, what) in [
        ("src", texts(&["10.0.0.1", "ten"]), "row 2, column src: \"ten\" is not an address"),
        ("dst", texts(&["::1", "::1"]), "row 1, column dst: "),
        ("dst", numbers(&[Some(7), Some(-1)]), "row 2, column dst: -1 is not an IPv4 address"),
        ("src", Arc::new(short), "row 1, column src: an address of 5 bytes"),
        ("src", numbers(&[Some(1), None]), "row 2, column src: null"),
        ("protocol", numbers(&[Some(6), Some(256)]), "row 2, column protocol: protocols are"),
        ("protocol", texts(&["tcp", "tpc"]), "row 2, column protocol: \"tpc\" is no protocol"),
        ("src_port", numbers(&[Some(1), Some(65536)]), "row 2, column src_port: ports are"),
        ("dst_port", numbers(&[None, Some(1)]), "row 1, column src_port: one port is null"),
        ("dst_port", texts(&["1", "2"]), "row 1, column dst_port: it has Utf8, not ports"),
    ] {
        let flows = of(column, wrong);
        let result = execute(&["classify", &rules, &flows]);
        assert_eq!(result.code, 2, "{}", result.err);
        assert!(result.err.contains(what), "{what}: {}", result.err);
    }
    let flows = parquet(&files, "few.parquet", vec![("src", texts(&["::1"]))]);
    assert!(execute(&["classify", &rules, &flows]).err.contains("no column is called dst"));
    let csv = files.with("flows.csv", FLOWS);
    let said_of = execute(&["classify", &rules, &csv, "-o", &files.path("x.parquet")]);
    assert!(said_of.err.contains("Parquet output needs Parquet or Arrow input"), "{}", said_of.err);
    // Whatever byte is damaged, it is an error or another row, and never a panic.
    let whole = std::fs::read(of("src", texts(&["10.0.0.1", "10.0.0.2"]))).unwrap();
    for at in (4..whole.len()).step_by(97) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x55;
        let result = execute(&["classify", &rules, &files.with("damaged.parquet", bytes)]);
        assert!(result.code == 0 || result.code == 2, "byte {at}: {}", result.err);
        assert!(!result.err.contains("panicked"), "byte {at}: {}", result.err);
    }
}
