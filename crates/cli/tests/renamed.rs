//! Inputs that other files are renamed over while they are annotated.

use std::fs::{self, File};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::{Files, done};
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_ipc::writer::{FileWriter, StreamWriter};
use parquet::arrow::ArrowWriter;

/// Rows that differ from file to file.
fn batch(of: usize) -> RecordBatch {
    let ips: StringArray = (0..500).map(|row| Some(format!("10.{of}.2.{}", row % 256))).collect();
    RecordBatch::try_from_iter([("ip", Arc::new(ips) as ArrayRef)]).unwrap()
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
    let lines = rows(3).map(|ip| format!("{ip},x\n")).collect::<String>();
    fs::write(csv, "ip,n\n".to_owned() + &lines).unwrap();
    let lines = rows(4).map(|ip| format!("{{\"ip\":\"{ip}\"}}\n")).collect::<String>();
    fs::write(json, lines).unwrap();
    paths
}

/// While a program replaces the input by files of other formats, each output is that of one of them.
#[test]
fn each_output_is_of_one_input() {
    let files = Files::new();
    let (fib, input, out) = (files.snapshot(), files.path("input"), files.path("out"));
    let annotate = |input: &str| {
        let run = ["annotate", "-q", "-t", &fib, "--column", "ip", input, "-o", &out];
        done(&run);
        fs::read(&out).unwrap()
    };
    let inputs = inputs(&files);
    let expected: Vec<Vec<u8>> = inputs.iter().map(|input| annotate(input)).collect();
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
        for run in 0..40 {
            let found = catch_unwind(AssertUnwindSafe(|| annotate(&input)));
            let is_one = found.as_ref().is_ok_and(|found| expected.contains(found));
            if !is_one {
                ended.store(true, Ordering::Relaxed);
                assert!(found.is_ok(), "run {run} failed");
                panic!("run {run} mixed two inputs");
            }
        }
        ended.store(true, Ordering::Relaxed);
    });
}
