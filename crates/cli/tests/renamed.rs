//! Inputs that other files are renamed over while they are annotated or classified.

use std::fs::{self, File};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::{Files, cuts, done};
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_ipc::writer::{FileWriter, StreamWriter};
use parquet::arrow::ArrowWriter;

/// Rows that differ from file to file.
fn batch(of: usize) -> RecordBatch {
    let ips: StringArray = (0..500).map(|row| Some(format!("10.{of}.2.{}", row % 256))).collect();
    let ips: ArrayRef = Arc::new(ips);
    let protocol: ArrayRef = Arc::new(StringArray::from(vec!["gre"; 500]));
    let columns = [("ip", Arc::clone(&ips)), ("src", Arc::clone(&ips)), ("dst", ips)];
    RecordBatch::try_from_iter(columns.into_iter().chain([("proto", protocol)])).unwrap()
}

/// Writes a file of each format whose content is enough to find the format.
fn inputs(files: &Files) -> Vec<String> {
    let paths: Vec<String> =
        ["a.parquet", "b.arrow", "c.arrows", "d.csv", "e.json"].map(|name| files.path(name)).into();
    let [parquet, file, stream, csv, json] = &paths[..] else { unreachable!() };
    let mut writer =
        ArrowWriter::try_new(File::create(parquet).unwrap(), batch(0).schema(), None).unwrap();
    writer.write(&batch(0)).unwrap();
    writer.close().unwrap();
    let mut writer = FileWriter::try_new(File::create(file).unwrap(), &batch(1).schema()).unwrap();
    writer.write(&batch(1)).unwrap();
    writer.finish().unwrap();
    let mut writer =
        StreamWriter::try_new(File::create(stream).unwrap(), &batch(2).schema()).unwrap();
    writer.write(&batch(2)).unwrap();
    writer.finish().unwrap();
    let rows = |of: usize| (0..500).map(move |row| format!("10.{of}.2.{}", row % 256));
    let lines = rows(3).map(|ip| format!("{ip},{ip},{ip},gre\n")).collect::<String>();
    fs::write(csv, "ip,src,dst,proto\n".to_owned() + &lines).unwrap();
    let lines = rows(4).map(|ip| {
        format!("{{\"ip\":\"{ip}\",\"src\":\"{ip}\",\"dst\":\"{ip}\",\"proto\":\"gre\"}}\n")
    });
    fs::write(json, lines.collect::<String>()).unwrap();
    paths
}

/// Runs a command again and again while a program replaces its input by other files. Each output is that of one of
/// them.
fn outputs_are_of_one_input(files: &Files, inputs: &[String], run: impl Fn(&str) -> Vec<u8>) {
    let input = files.path("input");
    let expected: Vec<Vec<u8>> = inputs.iter().map(|input| run(input)).collect();
    fs::hard_link(&inputs[0], &input).unwrap();
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let new = files.path("new");
            for replacement in inputs.iter().cycle().skip(1) {
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                fs::hard_link(replacement, &new).unwrap();
                fs::rename(&new, &input).unwrap();
            }
        });
        for time in 0..40 {
            let found = catch_unwind(AssertUnwindSafe(|| run(&input)));
            let is_one = found.as_ref().is_ok_and(|found| expected.contains(found));
            if !is_one {
                ended.store(true, Ordering::Relaxed);
                assert!(found.is_ok(), "run {time} failed");
                panic!("run {time} mixed two inputs");
            }
        }
        ended.store(true, Ordering::Relaxed);
    });
}

/// The inputs are files of other formats.
#[test]
fn each_output_is_of_one_input() {
    let files = Files::new();
    let (fib, out) = (files.snapshot(), files.path("out"));
    outputs_are_of_one_input(&files, &inputs(&files), |input| {
        done(&["annotate", "-q", "-t", &fib, "--column", "ip", input, "-o", &out]);
        fs::read(&out).unwrap()
    });
}

/// The same for `classify`, and for captures.
#[test]
fn each_packet_is_of_one_input() {
    let files = Files::new();
    let rules = files.with("rules.txt", "src 10.0.0.0/15 -> drop\nsrc 10.2.0.0/15 -> allow\n");
    let mut all = inputs(&files);
    all.push(files.path("f.pcap"));
    fs::copy(cuts().join("tcpdump-tests.pcap"), &all[5]).unwrap();
    outputs_are_of_one_input(&files, &all, |input| {
        done(&["classify", "-q", &rules, input, "--threads", "3"]).out.into_bytes()
    });
}
