//! Annotation with a device that is late and fails is, byte for byte, that without one. One test for each way by which
//! addresses reach the table.

use std::fmt::Write as _;
use std::io::{Cursor, Seek};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, RecordBatch, StringArray, UInt32Array};
use arrow_ipc::writer::{FileWriter, StreamWriter};
use fibula_accel::{BatchSummary, CpuDevice, Device, DeviceError, Faults, Image};
use fibula_annotate::{
    AnnotateOptions, Annotator, Column, ColumnAnnotator, LogFormat, LookupTable, Only,
};
use fibula_core::{AnyPrefix, Attributes, Change, Family, Hop, Update, Value};
use fibula_fib::{EngineChoice, Fib, FibOptions};
use fibula_offload::{OffloadError, OnDevice, Placement, choices};
use fibula_rib::{BuilderOptions, ColumnKind, TableBuilder};
use parquet::arrow::ArrowWriter;

/// Enough that rows with a note are more than one piece of the input, which several threads take.
const ROWS: u32 = 52_000;

/// Routes of every fourth /16 and of some longer and shorter prefixes, in both families.
fn fib(engines: Vec<EngineChoice>) -> Fib {
    let mut builder = TableBuilder::new(BuilderOptions::default());
    let columns = [("asn".into(), ColumnKind::Int), ("name".into(), ColumnKind::Str)];
    builder.begin_source("test", "text", &columns, false, None);
    for i in 0..2000u64 {
        let (a, b) = (i / 8 % 250 + 1, i % 8 * 32);
        for (address, len) in [
            (format!("{a}.{b}.0.0"), 11 + i % 8),
            (format!("{a}.{b}.{}.0", i % 256), 24),
            (format!("2001:{:x}::", i * 16), 28 + i % 20),
            (format!("2001:{:x}:{:x}::", i * 16, i % 7), 48),
        ] {
            let name = format!("n{}", i % 300);
            let values = [Value::Int(i % 500), Value::Str(&name)];
            let prefix = AnyPrefix::masked(address.parse().unwrap(), len as u8).unwrap();
            builder.apply(&Update::new(prefix, Change::Announce(Attributes::Values(&values))));
        }
    }
    let options = FibOptions::default().engines(engines);
    Fib::of_table(builder.finish().unwrap(), &options).unwrap()
}

/// The address of a row: IPv4, in every third row IPv6, and in some no address.
fn address(row: u32) -> String {
    let x = row.wrapping_mul(0x9e37_79b1);
    match row % 3 {
        0 if row.is_multiple_of(1002) => "none".into(),
        0 => format!("2001:{:x}:{:x}::{row:x}", x >> 17 & 0x7ff0, x & 7),
        _ => Ipv4Addr::from(x).to_string(),
    }
}

/// A device that is late, and fails for a third of the parts.
fn device() -> Arc<dyn Device> {
    let faults = Faults { delay: Duration::from_millis(3), one_in: 3, for_good: false, seed: 7 };
    Arc::new(CpuDevice::new(faults))
}

/// What is added: values, prefixes too, lists of all covering prefixes, only the rows with a route.
fn asked() -> Vec<AnnotateOptions> {
    let with = |add: &[&str], only| {
        let mut options = AnnotateOptions::default();
        options.columns = vec![Column::Name("ip".into())];
        options.add = add.iter().map(|&name| name.to_owned()).collect();
        options.only = only;
        options
    };
    vec![
        with(&["asn", "name"], None),
        with(&["prefix", "asn"], None),
        with(&["prefix"], None),
        with(&["covering", "name"], None),
        with(&["name", "covering"], Some(Only::Matched)),
        with(&["asn"], Some(Only::Unmatched)),
    ]
}

/// Annotates an input with a table.
type Run<'r> = dyn Fn(Arc<dyn LookupTable>, &AnnotateOptions) -> Vec<u8> + 'r;

/// Runs the same input with and without the device, and compares. Returns what looked up.
fn same(run: &Run<'_>, mut options: AnnotateOptions) -> BatchSummary {
    let fib = fib(choices());
    options.threads = 1;
    let expected = run(Arc::new(fib.clone()), &options);
    let mut total = BatchSummary::default();
    for threads in [1, 3] {
        options.threads = threads;
        let table = Arc::new(OnDevice::new(fib.clone(), device()).unwrap());
        let output = run(table.clone(), &options);
        assert!(
            output == expected,
            "{options:?}: {} bytes, {} expected",
            output.len(),
            expected.len()
        );
        let summary = table.take_summary();
        assert!(summary.on_device > 0, "{options:?}: {summary:?}");
        total += summary;
    }
    total
}

/// The same for all that may be asked for, and checks that the device has failed at times.
fn all_same(run: &Run<'_>, change: &dyn Fn(&mut AnnotateOptions)) {
    let mut total = BatchSummary::default();
    for mut options in asked() {
        change(&mut options);
        total += same(run, options);
    }
    assert!(total.failures > 0 && total.on_cpu > 0, "{total:?}");
}

fn rows(format: LogFormat, input: Vec<u8>, change: &dyn Fn(&mut AnnotateOptions)) {
    let run = |table: Arc<dyn LookupTable>, options: &AnnotateOptions| {
        let annotator = Annotator::new(table, format, options).unwrap();
        let mut output = Vec::new();
        annotator.annotate_on_threads(&input[..], &mut output, &mut |_| {}).unwrap();
        output
    };
    all_same(&run, change);
}

#[test]
fn csv() {
    let note = "a note, ".repeat(30);
    let mut text = "n,ip,note\n".to_owned();
    (0..ROWS).for_each(|row| writeln!(text, "{row},{},\"{note}\"", address(row)).unwrap());
    rows(LogFormat::Csv, text.into(), &|_| {});
}

#[test]
fn json_lines() {
    let mut text = String::new();
    (0..ROWS)
        .for_each(|row| writeln!(text, "{{\"ip\":\"{}\",\"n\":{row}}}", address(row)).unwrap());
    rows(LogFormat::JsonLines, text.into(), &|_| {});
}

#[test]
fn log_lines() {
    let mut text = String::new();
    (0..ROWS).for_each(|row| writeln!(text, "{} - GET /{row}", address(row)).unwrap());
    rows(LogFormat::List, text.into(), &|options| options.columns.clear());
}

/// Packets without a link header.
#[test]
fn captures() {
    let mut data = Vec::new();
    data.extend([0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65_535, 101].map(u32::to_le_bytes).concat());
    for row in 0..ROWS {
        data.extend([row / 1000, row, 28, 28].map(u32::to_le_bytes).concat());
        data.extend([0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0]);
        data.extend(
            [row.wrapping_mul(0x9e37_79b1), row.wrapping_mul(0x85eb_ca6b)]
                .map(u32::to_be_bytes)
                .concat(),
        );
        data.extend([0, 53, 0, 53, 0, 8, 0, 0]);
    }
    rows(LogFormat::Pcap, data, &|options| options.columns.clear());
}

/// Text of both families, and numbers, which have a way of their own.
fn batch() -> RecordBatch {
    let texts: StringArray = (0..ROWS).map(|row| (row % 11 > 0).then(|| address(row))).collect();
    let numbers = UInt32Array::from_iter_values((0..ROWS).map(|row| row.wrapping_mul(0x9e37_79b1)));
    // As many values as rows, so that the device looks the values up.
    let codes: DictionaryArray<Int32Type> = (0..ROWS)
        .map(|row| Some(address(row)))
        .collect::<Vec<_>>()
        .iter()
        .map(|text| text.as_deref())
        .collect();
    RecordBatch::try_from_iter([
        ("ip", Arc::new(texts) as ArrayRef),
        ("number", Arc::new(numbers)),
        ("coded", Arc::new(codes)),
    ])
    .unwrap()
}

fn columns(options: &mut AnnotateOptions) {
    options.columns = ["ip", "number", "coded"].map(|name| Column::Name(name.into())).to_vec();
}

#[test]
fn parquet_files() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut writer = ArrowWriter::try_new(file.reopen().unwrap(), batch().schema(), None).unwrap();
    for _ in 0..2 {
        writer.write(&batch()).unwrap();
        writer.flush().unwrap();
    }
    writer.close().unwrap();
    let run = |table: Arc<dyn LookupTable>, options: &AnnotateOptions| {
        let annotator = ColumnAnnotator::new(table, options).unwrap();
        let mut output = Vec::new();
        let input = file.reopen().unwrap();
        annotator.annotate_parquet(input, &mut output, &mut |_| {}).unwrap();
        output
    };
    all_same(&run, &columns);
}

#[test]
fn arrow_files_and_streams() {
    let mut input = Cursor::new(Vec::new());
    let mut writer = FileWriter::try_new(&mut input, &batch().schema()).unwrap();
    writer.write(&batch()).unwrap();
    writer.finish().unwrap();
    drop(writer);
    let file = |table: Arc<dyn LookupTable>, options: &AnnotateOptions| {
        let annotator = ColumnAnnotator::new(table, options).unwrap();
        let (mut input, mut output) = (input.clone(), Vec::new());
        input.rewind().unwrap();
        annotator.annotate_ipc_file(input, &mut output, &mut |_| {}).unwrap();
        output
    };
    all_same(&file, &columns);

    let mut input = Vec::new();
    let mut writer = StreamWriter::try_new(&mut input, &batch().schema()).unwrap();
    writer.write(&batch()).unwrap();
    writer.finish().unwrap();
    drop(writer);
    let stream = |table: Arc<dyn LookupTable>, options: &AnnotateOptions| {
        let annotator = ColumnAnnotator::new(table, options).unwrap();
        let mut output = Vec::new();
        annotator.annotate_ipc_stream(&input[..], &mut output, &mut |_| {}).unwrap();
        output
    };
    let mut options = asked().swap_remove(0);
    columns(&mut options);
    same(&stream, options);
}

/// On a real driver, if this machine has one.
#[test]
fn an_opencl_device() {
    let device = match fibula_accel::open("opencl:0") {
        Ok(device) => device,
        Err(error) => return eprintln!("SKIPPED: {error}"),
    };
    let mut text = String::new();
    (0..ROWS).for_each(|row| writeln!(text, "{}", address(row)).unwrap());
    let fib = fib(choices());
    let mut options = AnnotateOptions::default();
    options.add = vec!["asn".into(), "prefix".into()];
    let run = |table: Arc<dyn LookupTable>| {
        let annotator = Annotator::new(table, LogFormat::List, &options).unwrap();
        let mut output = Vec::new();
        annotator.annotate(text.as_bytes(), &mut output).unwrap();
        output
    };
    let table = Arc::new(OnDevice::new(fib.clone(), device).unwrap());
    assert!(run(table.clone()) == run(Arc::new(fib)));
    let summary = table.take_summary();
    assert!(summary.on_device > ROWS as usize / 2 && summary.failures == 0, "{summary:?}");
}

/// From the first failure on all fails, and the output is whole.
#[test]
fn a_device_that_goes_away() {
    let mut text = String::new();
    (0..ROWS).for_each(|row| writeln!(text, "{}", address(row)).unwrap());
    let fib = fib(choices());
    let mut options = AnnotateOptions::default();
    options.add = vec!["asn".into()];
    let run = |table: Arc<dyn LookupTable>| {
        let annotator = Annotator::new(table, LogFormat::List, &options).unwrap();
        let mut output = Vec::new();
        annotator.annotate(text.as_bytes(), &mut output).unwrap();
        output
    };
    let faults = Faults { one_in: 1, for_good: true, ..Faults::default() };
    let table = OnDevice::new(fib.clone(), Arc::new(CpuDevice::new(faults))).unwrap();
    let table = Arc::new(table);
    assert!(run(table.clone()) == run(Arc::new(fib)));
    let summary = table.take_summary();
    assert!(summary.failures > 0 && summary.on_device == 0, "{summary:?}");
    assert!(summary.error.unwrap().to_string().contains("an injected failure"));
    // What is looked up later is not slow in silence either.
    run(table.clone());
    let summary = table.take_summary();
    assert!(summary.failures > 0 && summary.on_device == 0, "{summary:?}");
    assert!(summary.error.unwrap().to_string().contains("an injected failure"));
}

/// A table that is stored with an engine without a kernel is compiled for the device, and a table without routes of a
/// family has nothing there.
#[test]
fn engines_without_a_kernel() {
    for (engines, stored) in [(["dxr18", "radix"], true), (["runmap", "planb"], false)] {
        let fib = fib(engines.map(EngineChoice::from).to_vec());
        let table = OnDevice::new(fib, device()).unwrap();
        let [v4, v6] = &table.placements().collect::<Vec<Placement>>()[..] else {
            panic!("both families")
        };
        assert_eq!((v4.family, v4.engine), (Family::V4, "runmap"));
        assert_eq!(v4.instead_of, stored.then_some("dxr18"));
        assert!(v4.bytes > 1 << 20);
        assert_eq!((v6.family, v6.engine), (Family::V6, if stored { "wideleaf" } else { "planb" }));
        assert_eq!(v6.instead_of, stored.then_some("radix"));
    }
    let empty = TableBuilder::new(BuilderOptions::default()).finish().unwrap();
    let fib = Fib::of_table(empty, &FibOptions::default().engines(choices())).unwrap();
    let table = OnDevice::new(fib, device()).unwrap();
    assert_eq!(table.placements().count(), 0);
    table.v6().engine().lookup_batch(&[7], &mut [Hop::NONE]);
    assert_eq!(table.take_summary().on_cpu, 1);
}

/// Threads that share a table count their own lookups, whoever else looks up meanwhile.
#[test]
fn threads_take_their_own_summaries() {
    let table = OnDevice::open(fib(choices()), "cpu").unwrap();
    thread::scope(|scope| {
        for count in [20_000, 30_000, 50_000, 100] {
            let table = &table;
            scope.spawn(move || {
                let addrs: Vec<u32> = (0..count).map(|i| i * 40_000).collect();
                let mut hops = vec![Hop::NONE; addrs.len()];
                for _ in 0..5 {
                    table.v4().engine().lookup_batch(&addrs, &mut hops);
                    let BatchSummary { on_device, on_cpu, failures, .. } =
                        table.take_summary_of_thread();
                    let count = count as usize;
                    let expected = if count == 100 { (0, count) } else { (count, 0) };
                    assert_eq!(((on_device, on_cpu), failures), (expected, 0));
                }
                table.v4().engine().lookup_batch(&addrs, &mut hops);
            });
        }
    });
    let rest = table.take_summary();
    assert_eq!((rest.on_device, rest.on_cpu), (100_000, 100));
    assert_eq!(table.take_summary().on_device, 0);
}

/// A device that refuses the table is an error at once, and so is a name that is none.
#[test]
fn what_cannot_be_placed() {
    let fib = fib(choices());
    let refused = OnDevice::open(fib.clone(), "gpu").err().unwrap();
    assert_eq!(refused, OffloadError::Device(DeviceError::UnknownName { name: "gpu".into() }));
    assert!(refused.to_string().contains("opencl:0"), "{refused}");
    let gone: Arc<dyn Device> =
        Arc::new(CpuDevice::new(Faults { one_in: 1, for_good: true, ..Faults::default() }));
    let mut slot = gone.slot(Family::V4, 1).unwrap();
    let table = gone.upload(Image::of(fib.family::<u32>().engine()).unwrap().into()).unwrap();
    slot.submit(&table, 1).unwrap();
    slot.wait().unwrap_err();
    let refused = OnDevice::new(fib, gone.clone()).err().unwrap();
    assert!(refused.to_string().contains("upload a table: an injected failure"), "{refused}");
    let other = self::fib(["dxr18", "radix"].map(EngineChoice::from).to_vec());
    let refused = OnDevice::new(other, gone).err().unwrap();
    assert!(matches!(&refused, OffloadError::NoTable { engine: "dxr18", .. }), "{refused}");
    assert!(refused.to_string().contains("dxr18 has no kernel"), "{refused}");
}
