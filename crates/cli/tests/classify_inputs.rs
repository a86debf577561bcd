//! Inputs of `fibula classify` that several threads read, that are empty or damaged, or that change meanwhile.

use std::fs::{self, File};
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, RecordBatch, StringArray, UInt8Array, UInt16Array, UInt32Array,
};
use arrow_ipc::writer::{FileWriter, StreamWriter};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::properties::WriterProperties;

use crate::common::{Files, cuts, done, execute, execute_with, json, read};

const RULES: &str = "\
udp dport 53 -> allow label \"dns, queries\"
tcp -> mark 7 vrf blue
ip_version 6 -> drop
";

/// A capture of some MiB: the packets of the committed one, many times.
fn capture() -> Vec<u8> {
    let packets = read(cuts().join("tcpdump-tests.pcap"));
    [&packets[..24], &packets[24..].repeat(20)].concat()
}

/// The byte at which a later record begins, about in the middle.
fn middle(capture: &[u8]) -> usize {
    let mut at = 24;
    while at < capture.len() / 2 {
        let captured: [u8; 4] = capture[at + 8..at + 12].try_into().unwrap();
        at += 16 + u32::from_le_bytes(captured) as usize;
    }
    at
}

/// Rows, counts, damage and the error with `--strict` are the same for any number of threads.
#[test]
fn captures_on_several_threads() {
    let files = Files::new();
    let rules = files.with("rules.txt", RULES);
    let whole = capture();
    let (mut lost, at) = (whole.clone(), middle(&whole));
    lost[at + 11] = 0x7f;
    let cut = &whole[..whole.len() - 5];
    for (name, capture, damage) in [
        ("whole.pcap", &whole[..], None),
        ("lost.pcap", &lost, Some(format!("at byte {at}: a packet longer than any can be"))),
        ("cut.pcap", cut, Some("the capture ends within a record".to_owned())),
    ] {
        let path = files.with(name, capture);
        let run = |threads: &str| done(&["classify", &rules, &path, "--threads", threads]);
        let counts =
            |threads: &str| json(&["classify", &rules, &path, "--json", "--threads", threads]);
        let (one, counted) = (run("1"), counts("1"));
        let rows = one.out.lines().count() as u64 - 1;
        assert_eq!(counted["packets"], rows);
        assert_eq!(counted["damaged"], u64::from(damage.is_some()));
        let bytes = |of: &serde_json::Value| of["bytes"].as_u64().unwrap();
        let all = counted["rules"].as_array().unwrap().iter().map(bytes).sum::<u64>();
        assert!(all + bytes(&counted["unmatched"]) > rows * 50, "{counted}");
        for threads in ["2", "5"] {
            let (many, of_many) = (run(threads), counts(threads));
            assert!(one.out == many.out, "{name} on {threads} threads");
            for field in ["packets", "unmatched", "rules", "damaged", "unknown_links"] {
                assert_eq!(counted[field], of_many[field], "{name}: {field}");
            }
            if let Some(damage) = &damage {
                assert!(many.err.contains(damage), "{}", many.err);
            }
        }
        assert_eq!(execute_with(&["classify", &rules, "-", "-q"], capture).out, one.out);
        let Some(damage) = damage else { continue };
        let strict = |threads: &str| {
            execute(&[
                "classify",
                &rules,
                &path,
                "--strict",
                "-o",
                &files.path("o"),
                "--threads",
                threads,
            ])
        };
        let refused = strict("1");
        assert!(refused.code == 2 && refused.err.contains(&damage), "{}", refused.err);
        assert!(refused.err.contains(&format!("packet {}, at byte ", rows + 1)), "{}", refused.err);
        assert_eq!(refused.err, strict("4").err);
    }
}

/// A capture without packets has a header, and one without its header is damaged.
#[test]
fn captures_without_packets() {
    let files = Files::new();
    let rules = files.with("rules.txt", RULES);
    let capture = capture();
    for (len, damaged) in [(24, 0), (12, 1)] {
        let path = files.with("short.pcap", &capture[..len]);
        let header = "packet,src,dst,protocol,src_port,dst_port,rule_line,rule_action,rule_label\n";
        assert_eq!(done(&["classify", &rules, &path]).out, header);
        let counts = json(&["classify", &rules, &path, "--json"]);
        assert_eq!((&counts["packets"], &counts["damaged"]), (&0.into(), &damaged.into()));
    }
    let empty = files.with("empty.pcap", "");
    assert!(execute(&["classify", &rules, &empty]).err.contains("the file is empty"));
}

/// Rows with a column of each kind of addresses. If `wrong` is a row, its destination is no address.
fn batch(rows: u32, wrong: Option<u32>) -> RecordBatch {
    let text = |row: u32| std::net::Ipv4Addr::from(0x0a00_0000 + row % 700).to_string();
    let src: DictionaryArray<Int32Type> =
        (0..rows).map(text).collect::<Vec<_>>().iter().map(String::as_str).collect();
    let dst: StringArray = (0..rows)
        .map(|row| Some(if wrong == Some(row) { "x".into() } else { text(row * 7) }))
        .collect();
    let of = |number: fn(u32) -> u16| (0..rows).map(number).collect::<Vec<_>>();
    let protocol = of(|row| [6, 17, 47][row as usize % 3]).into_iter().map(|number| number as u8);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(UInt32Array::from_iter_values(0..rows))),
        ("src", Arc::new(src)),
        ("dst", Arc::new(dst)),
        ("protocol", Arc::new(UInt8Array::from_iter_values(protocol))),
        ("src_port", Arc::new(UInt16Array::from(of(|row| row as u16)))),
        ("dst_port", Arc::new(UInt16Array::from(of(|row| if row % 2 == 0 { 53 } else { 80 })))),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

/// The rows as Parquet, in groups, and as an Arrow file and stream, in batches.
fn columnar(files: &Files, batch: &RecordBatch) -> [String; 3] {
    let paths = ["flows.parquet", "flows.arrow", "flows.arrows"].map(|name| files.path(name));
    let [parquet, file, stream] = &paths;
    let groups = WriterProperties::builder().set_max_row_group_row_count(Some(7000)).build();
    let out = File::create(parquet).unwrap();
    let mut writer = ArrowWriter::try_new(out, batch.schema(), Some(groups)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    let batches = (0..batch.num_rows()).step_by(9000);
    let batches = || batches.clone().map(|at| batch.slice(at, 9000.min(batch.num_rows() - at)));
    let mut writer = FileWriter::try_new(File::create(file).unwrap(), &batch.schema()).unwrap();
    batches().for_each(|batch| writer.write(&batch).unwrap());
    writer.finish().unwrap();
    let mut writer = StreamWriter::try_new(File::create(stream).unwrap(), &batch.schema()).unwrap();
    batches().for_each(|batch| writer.write(&batch).unwrap());
    writer.finish().unwrap();
    paths
}

/// Rows, files and counts of columns are the same for any number of threads, and for all three formats.
#[test]
fn columns_on_several_threads() {
    let files = Files::new();
    let rules = files.with("rules.txt", RULES);
    let batch = batch(40_000, None);
    let mut rows = None;
    for path in columnar(&files, &batch) {
        let mut written = None;
        for threads in ["1", "2", "5"] {
            let run = |more: &[&str]| {
                done(&[&["classify", &rules, &path, "--threads", threads], more].concat())
            };
            let out = run(&["-q"]).out;
            assert_eq!(out.lines().count(), 40_001);
            assert!(rows.get_or_insert_with(|| out.clone()) == &out, "{path} on {threads} threads");
            let counts: serde_json::Value = serde_json::from_str(&run(&["--json"]).out).unwrap();
            assert_eq!(counts["packets"], 40_000);
            assert_eq!(counts["rules"][1]["packets"], out.matches(",2,mark").count());
            assert_eq!(counts["rules"].as_array().unwrap().len(), 2, "{counts}");

            let to = ["hits.parquet", "hits.arrow"].map(|name| files.path(name));
            let outputs = &to[..if path.ends_with("parquet") { 1 } else { 2 }];
            outputs.iter().for_each(|to| drop(run(&["-q", "-o", to])));
            let bytes: Vec<_> = outputs.iter().map(fs::read).map(Result::unwrap).collect();
            assert!(written.get_or_insert_with(|| bytes.clone()) == &bytes, "{path}: {threads}");
            // The columns of the input are there as they were.
            let file = File::open(&to[0]).unwrap();
            let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
            let mut at = 0;
            for read in reader.build().unwrap().map(Result::unwrap) {
                let part = batch.slice(at, read.num_rows());
                assert_eq!(read.num_columns(), 9);
                assert_eq!([read.column(0), read.column(2)], [part.column(0), part.column(2)]);
                at += read.num_rows();
            }
            assert_eq!(at, 40_000);
        }
    }
}

/// The first row that is no flow is named, and rows before it come out.
#[test]
fn the_first_wrong_row_of_columns() {
    let files = Files::new();
    let rules = files.with("rules.txt", RULES);
    for path in columnar(&files, &batch(40_000, Some(30_000))) {
        for threads in ["1", "4"] {
            let run = |more: &[&str]| {
                execute(&[&["classify", &rules, &path, "--threads", threads], more].concat())
            };
            let shown = run(&[]);
            assert_eq!(shown.out.lines().count(), 30_001, "{path} on {threads} threads");
            for result in [shown, run(&["--json"]), run(&["-o", &files.path("hits.parquet")])] {
                let what = "row 30001, column dst: \"x\" is not an address";
                assert!(result.code == 2 && result.err.contains(what), "{}", result.err);
            }
            assert!(!std::path::Path::new(&files.path("hits.parquet")).exists());
        }
    }
}

/// Files without rows have a header; damage in the middle is an error, after the rows before it.
#[test]
fn empty_and_damaged_columns() {
    let files = Files::new();
    let rules = files.with("rules.txt", RULES);
    for path in columnar(&files, &batch(0, None)) {
        let header = "row,src,dst,protocol,src_port,dst_port,rule_line,rule_action,rule_label\n";
        assert_eq!(done(&["classify", &rules, &path]).out, header);
        let to = files.path(if path.ends_with("parquet") { "hits.parquet" } else { "hits.arrow" });
        done(&["classify", &rules, &path, "-o", &to]);
        assert_eq!(done(&["classify", &rules, &to]).out, header);
    }
    let whole = batch(40_000, None);
    for path in &columnar(&files, &whole) {
        let mut bytes = fs::read(path).unwrap();
        let out = done(&["classify", &rules, path, "-q"]).out;
        let middle = bytes.len() / 2;
        // A stream ends early; in a file, pages and messages are damaged.
        if path.ends_with("arrows") {
            bytes.truncate(middle);
        } else {
            bytes[middle - middle / 4..middle + middle / 4].fill(0xff);
        }
        fs::write(path, bytes).unwrap();
        let mut errors = Vec::new();
        for threads in ["1", "3"] {
            let result = execute(&["classify", &rules, path, "-q", "--threads", threads]);
            assert_eq!(result.code, 2, "{path}");
            assert!(out.starts_with(&result.out), "{path}");
            errors.push((result.out, result.err));
        }
        assert!(errors[0] == errors[1], "{path}: {} or {}", errors[0].1, errors[1].1);
    }
}
