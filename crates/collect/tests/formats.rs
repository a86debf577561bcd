//! All formats have the same rows.

use std::fs::{self, File};

use arrow_array::RecordBatch;
use arrow_ipc::reader::FileReader;
use fibula_collect::{Collector, FlowFormat, FlowPartition};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};

use crate::common::{Exporter, files, ipfix_flow, ipfix_template, options, rows, v5, wait};

/// What every exporter of these tests sends: 30 flows of NetFlow v5 and one of IPFIX.
fn collected(format: FlowFormat) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let collector = Collector::start(options(folder.path(), format), None).unwrap();
    let exporter = Exporter::to(&collector);
    for datagram in [v5(0, 20), v5(20, 10), ipfix_template(), ipfix_flow(0, 1 << 40)] {
        exporter.send(&datagram);
    }
    let counts = collector.stop().unwrap();
    assert_eq!((counts.datagrams, counts.exports.flows, counts.rows), (4, 31, 31));
    assert_eq!((counts.exports.faults, counts.exports.lost, counts.files), (0, 0, 1));
    let written = files(folder.path());
    assert_eq!(written.len(), 1, "{written:?}");
    assert_eq!(fs::metadata(&written[0]).unwrap().len(), counts.bytes);
    assert!(written[0].extension().unwrap() == format.name());
    folder
}

#[test]
fn json_lines_have_what_was_sent() {
    let folder = collected(FlowFormat::JsonLines);
    let rows = rows(folder.path());
    for (flow, row) in rows[..30].iter().enumerate() {
        let expected = json!({
            "exporter": "127.0.0.1", "export": "netflow5", "domain": 0, "src": format!("10.1.0.{flow}"),
            "dst": "192.0.2.7", "protocol": 17, "src_port": 0, "dst_port": 0, "tcp_flags": 0, "tos": 0, "packets": 1,
            "bytes": 100 + flow, "input": 0, "output": 0, "src_as": 0, "dst_as": 0, "src_mask": 0, "dst_mask": 0,
            "first": 1_700_000_000.0, "last": 1_700_000_000.0,
        });
        let mut row = row.clone();
        for name in ["sampling", "icmp", "next_hop"] {
            row.as_object_mut().unwrap().remove(name);
        }
        assert_eq!(row, expected, "{flow}");
    }
    let last = json!({
        "exporter": "127.0.0.1", "export": "ipfix", "domain": 7, "src": "2001:db8::1", "dst": "2001:db8::2",
        "bytes": 1u64 << 40,
    });
    assert_eq!(rows[30], last);
}

/// The rows of batches, as those of JSON lines.
fn of_batches(batches: impl Iterator<Item = RecordBatch>) -> Vec<Value> {
    use arrow_array::cast::AsArray;
    use arrow_array::types::{
        TimestampMicrosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
    };
    use arrow_array::{Array, ArrayRef};
    use arrow_schema::DataType;

    fn value(column: &ArrayRef, row: usize) -> Value {
        match column.data_type() {
            DataType::UInt8 => column.as_primitive::<UInt8Type>().value(row).into(),
            DataType::UInt16 => column.as_primitive::<UInt16Type>().value(row).into(),
            DataType::UInt32 => column.as_primitive::<UInt32Type>().value(row).into(),
            DataType::UInt64 => column.as_primitive::<UInt64Type>().value(row).into(),
            DataType::Utf8 => column.as_string::<i32>().value(row).into(),
            DataType::Timestamp(..) => {
                let micros = column.as_primitive::<TimestampMicrosecondType>().value(row);
                (micros as f64 / 1e6).into()
            }
            DataType::List(_) => {
                let list = column.as_list::<i32>().value(row);
                (0..list.len()).map(|at| value(&list, at)).collect()
            }
            other => panic!("{other}"),
        }
    }
    let mut rows = Vec::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            let mut object = serde_json::Map::new();
            for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
                if field.name() != "time" && column.is_valid(row) {
                    object.insert(field.name().clone(), value(column, row));
                }
            }
            rows.push(Value::Object(object));
        }
    }
    rows
}

#[test]
fn parquet_and_arrow_have_the_same_rows() {
    let expected = rows(collected(FlowFormat::JsonLines).path());
    let folder = collected(FlowFormat::Parquet);
    let file = File::open(&files(folder.path())[0]).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
    assert_eq!(of_batches(reader.map(Result::unwrap)), expected);
    let folder = collected(FlowFormat::Arrow);
    let file = File::open(&files(folder.path())[0]).unwrap();
    let reader = FileReader::try_new(file, None).unwrap();
    assert_eq!(of_batches(reader.map(Result::unwrap)), expected);
}

/// A reader of RowBinaryWithNamesAndTypes.
struct Binary<'a>(&'a [u8]);

impl Binary<'_> {
    fn take(&mut self, len: usize) -> &[u8] {
        let (taken, rest) = self.0.split_at(len);
        self.0 = rest;
        taken
    }

    fn int(&mut self, bytes: usize) -> u64 {
        self.take(bytes).iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
    }

    fn len(&mut self) -> usize {
        let byte = self.int(1) as usize;
        if byte < 128 { byte } else { byte - 128 + (self.len() << 7) }
    }

    fn text(&mut self) -> String {
        let len = self.len();
        String::from_utf8(self.take(len).to_vec()).unwrap()
    }

    fn value(&mut self, kind: &str) -> Value {
        if let Some(inner) = kind.strip_prefix("Array(") {
            let inner = inner.strip_suffix(')').unwrap();
            let list: Vec<_> = (0..self.len()).map(|_| self.value(inner)).collect();
            return if list.is_empty() { Value::Null } else { list.into() };
        }
        let inner = kind.strip_prefix("Nullable(").unwrap().strip_suffix(')').unwrap();
        match (self.int(1), inner) {
            (1, _) => Value::Null,
            (_, "String") => self.text().into(),
            (_, "DateTime64(6, 'UTC')") => (self.int(8) as f64 / 1e6).into(),
            (_, int) => {
                self.int(int.strip_prefix("UInt").unwrap().parse::<usize>().unwrap() / 8).into()
            }
        }
    }
}

#[test]
fn row_binary_has_the_same_rows() {
    let expected = rows(collected(FlowFormat::JsonLines).path());
    let folder = collected(FlowFormat::RowBinary);
    let bytes = fs::read(&files(folder.path())[0]).unwrap();
    let mut input = Binary(&bytes);
    let columns = input.len();
    let names: Vec<_> = (0..columns).map(|_| input.text()).collect();
    let kinds: Vec<_> = (0..columns).map(|_| input.text()).collect();
    let mut rows = Vec::new();
    while !input.0.is_empty() {
        let values: Vec<_> = kinds.iter().map(|kind| input.value(kind)).collect();
        let there =
            names.iter().zip(values).filter(|(name, value)| !value.is_null() && *name != "time");
        rows.push(there.map(|(name, value)| (name.clone(), value)).collect::<Value>());
    }
    assert_eq!(rows, expected);
}

/// Files end with their time and at their length, lie in the folders of their time, and appear when they are complete.
#[test]
fn files_end_in_time() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(folder.path(), FlowFormat::Parquet);
    options.output.partition = FlowPartition::Hour;
    options.output.rotate = std::time::Duration::from_secs(1);
    options.delay = std::time::Duration::from_millis(10);
    let collector = Collector::start(options, None).unwrap();
    let exporter = Exporter::to(&collector);
    let mut sent = 0;
    while collector.counts().files < 3 {
        exporter.send(&v5(sent, 1));
        sent += 1;
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(sent < 1000);
        let complete = |file: &std::path::PathBuf| file.extension().is_some_and(|e| e == "parquet");
        for file in files(folder.path()).iter().filter(|file| complete(file)) {
            ParquetRecordBatchReaderBuilder::try_new(File::open(file).unwrap()).unwrap();
        }
    }
    let counts = collector.stop().unwrap();
    assert_eq!(counts.rows, u64::from(sent));
    let written = files(folder.path());
    assert_eq!(written.len() as u64, counts.files);
    let mut rows = 0;
    for file in written {
        let name = file.to_str().unwrap();
        assert!(name.contains("/date=2") && name.contains("/hour="), "{name}");
        let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(&file).unwrap()).unwrap();
        rows += reader.metadata().file_metadata().num_rows() as u64;
    }
    assert_eq!(rows, counts.rows);
}

/// A file that is full ends, and the next one has another name.
#[test]
fn full_files_end() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(folder.path(), FlowFormat::JsonLines);
    options.output.rotate_bytes = 1;
    options.batch_rows = 1;
    let collector = Collector::start(options, None).unwrap();
    let exporter = Exporter::to(&collector);
    (0..5).for_each(|flow| exporter.send(&v5(flow, 1)));
    wait(&collector, |counts| counts.rows == 5);
    let counts = collector.stop().unwrap();
    assert_eq!((counts.files, files(folder.path()).len(), rows(folder.path()).len()), (5, 5, 5));
}
