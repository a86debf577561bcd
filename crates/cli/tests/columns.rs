//! Files of columns, several files, layers and exports through the command.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use crate::common::{Files, done, execute, read};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, UInt32Type};
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_ipc::reader::FileReader;
use arrow_ipc::writer::FileWriter;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::properties::WriterProperties;

fn batch() -> RecordBatch {
    let ips = [Some("10.1.2.3"), None, Some("2001:db8::1"), Some("x"), Some("fe80::1")];
    let ips: StringArray = ips.into_iter().cycle().take(1000).collect();
    let numbers = Int64Array::from_iter_values(0..1000);
    let columns = [("n", Arc::new(numbers) as ArrayRef), ("ip", Arc::new(ips))];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn parquet(path: &str) {
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(130)).build();
    let file = File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch().schema(), Some(properties)).unwrap();
    writer.write(&batch()).unwrap();
    writer.close().unwrap();
}

fn read_parquet(path: impl AsRef<Path>) -> Vec<RecordBatch> {
    let file = File::open(path).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    reader.build().unwrap().map(Result::unwrap).collect()
}

fn check(batch: &RecordBatch) {
    let asns = batch.column_by_name("ip_asn").unwrap().as_primitive::<UInt32Type>();
    let got: Vec<_> = asns.iter().take(5).collect();
    assert_eq!(got, [Some(64503), None, Some(64505), None, Some(7)]);
    let prefixes = batch.column_by_name("ip_prefix").unwrap().as_string::<i32>();
    let got: Vec<_> = prefixes.iter().take(5).collect();
    assert_eq!(got, [Some("10.1.2.0/24"), None, Some("2001:db8::/32"), None, None]);
    let countries = batch.column_by_name("ip_country").unwrap().as_dictionary::<Int32Type>();
    let countries = countries.downcast_dict::<StringArray>().unwrap();
    let got: Vec<_> = countries.into_iter().take(5).collect();
    assert_eq!(got, [Some("NL"), None, Some("CH"), None, None]);
}

#[test]
fn parquet_and_arrow() {
    let files = Files::new();
    let (fib, input, out) = (files.snapshot(), files.path("in.parquet"), files.path("out.parquet"));
    parquet(&input);
    let add = ["--add", "asn,prefix,country", "--default", "asn=7"];
    let run = done(&[&["annotate", "-t", &fib, &input, "-o", &out][..], &add].concat());
    assert!(run.err.contains("1,000 rows (parquet), 600 addresses, 66.7 % matched"), "{}", run.err);
    assert!(run.err.contains("200 cells with text that is not an address"), "{}", run.err);
    assert!(run.err.contains("ip_country"), "{}", run.err);
    let found = read_parquet(&out);
    assert_eq!(found.iter().map(RecordBatch::num_rows).sum::<usize>(), 1000);
    check(&found[0]);

    let (input, out) = (files.path("in.arrow"), files.path("out.arrow"));
    let mut writer = FileWriter::try_new(File::create(&input).unwrap(), &batch().schema()).unwrap();
    writer.write(&batch()).unwrap();
    writer.finish().unwrap();
    done(&[&["annotate", "-t", &fib, &input, "-o", &out][..], &add].concat());
    let mut reader = FileReader::try_new(File::open(&out).unwrap(), None).unwrap();
    check(&reader.next().unwrap().unwrap());
}

#[test]
fn a_failing_run_leaves_nothing() {
    let files = Files::new();
    let (fib, input, out) = (files.snapshot(), files.path("in.parquet"), files.path("o/out"));
    parquet(&input);
    fs::create_dir(files.path("o")).unwrap();
    for (args, words) in [
        (&["--strict"][..], "row 4, column ip: \"x\" is not an address"),
        (&["--column", "nope"], "no column \"nope\"; it has: n, ip"),
        (&["--add", "nope"], "it has: asn, country"),
        (&["--add", "asn", "--default", "asn=x"], "holds integers"),
        (&["--format", "arrow"], "--format names it"),
    ] {
        let run = execute(&[&["annotate", "-t", &fib, &input, "-o", &out][..], args].concat());
        assert_eq!(run.code, 2, "{args:?}: {}", run.err);
        assert!(run.err.contains(words) && run.err.contains("in.parquet"), "{args:?}: {}", run.err);
        assert_eq!(fs::read_dir(files.path("o")).unwrap().count(), 0, "{args:?}");
    }
    let run = execute(&["annotate", "-t", &fib, "--format", "parquet"]);
    assert!(run.code == 2 && run.err.contains("standard input"), "{}", run.err);
}

#[test]
fn several_files_go_to_a_directory() {
    let files = Files::new();
    let fib = files.snapshot();
    fs::create_dir_all(files.path("logs/deep")).unwrap();
    parquet(&files.path("logs/a.parquet"));
    files.with("logs/deep/b.csv", "ip\n10.1.2.3\n");
    files.with("logs/c.log", "10.0.0.1 x\n");
    files.with("logs/ignored.bin", "?");
    let (logs, out) = (files.path("logs"), files.path("out/"));
    let run = done(&["annotate", "-t", &fib, "--add", "asn", &logs, "-o", &out]);
    assert!(run.err.contains("3 files, 1,002 rows"), "{}", run.err);
    assert_eq!(read(files.path("out/deep/b.csv")), b"ip,ip_asn\n10.1.2.3,64503\n");
    assert_eq!(read(files.path("out/c.log")), b"10.0.0.1 x\t64501\n");
    assert_eq!(read_parquet(files.path("out/a.parquet"))[0].num_columns(), 3);
    assert!(!Path::new(&files.path("out/ignored.bin")).exists());

    let pattern = files.path("logs/*.log");
    done(&["annotate", "-q", "-t", &fib, "--add", "asn", &pattern, "-o", &files.path("again/")]);
    assert_eq!(read(files.path("again/c.log")), b"10.0.0.1 x\t64501\n");
    for (args, words) in [
        (&[&*pattern, &logs][..], "need a directory"),
        (&[&files.path("logs/*.nope")], "no file is called like that"),
    ] {
        let run = execute(&[&["annotate", "-t", &fib][..], args].concat());
        assert!(run.code == 2 && run.err.contains(words), "{args:?}: {}", run.err);
    }
    let twice = [&*files.path("logs/c.log"), &pattern];
    let run = execute(&[&["annotate", "-t", &fib, "-o", &out][..], &twice].concat());
    assert!(run.code == 2 && run.err.contains("would both become"), "{}", run.err);
}

#[test]
fn layers_stand_beside_each_other() {
    let files = Files::new();
    let geo =
        files.with("geo.csv", "prefix,country\n10.0.0.0/8,CH\n10.2.0.0/16,DE\n2001:db8::/32,FR\n");
    let asn = files.with("asn.csv", "prefix,asn\n10.1.0.0/16,64500\n2001:db8:1::/48,64501\n");
    let (geo, asn) = (format!("geo={geo}"), format!("as={asn}"));
    let layers = ["--layer", &geo, "--layer", &asn];
    let fib = files.path("both.fib");
    let run = done(&[&["build", "-o", &fib][..], &layers].concat());
    assert!(run.out.contains("geo_country (str, 3 values), as_asn (int, 2 values)"), "{}", run.out);
    let ips = files
        .with("ips.csv", "ip\n10.1.0.1\n10.2.0.1\n10.3.0.1\n2001:db8:1::1\n2001:db8::1\n8.8.8.8\n");
    let expected = "ip,ip_geo_country,ip_as_asn\n10.1.0.1,CH,64500\n10.2.0.1,DE,\n10.3.0.1,CH,\n\
        2001:db8:1::1,FR,64501\n2001:db8::1,FR,\n8.8.8.8,,\n";
    assert_eq!(done(&["annotate", "-q", "-t", &fib, &ips]).out, expected);
    assert_eq!(done(&[&["annotate", "-q", &ips][..], &layers].concat()).out, expected);
    done(&["verify", "--table", &fib, "--random", "1000"]);
    let run = execute(&["build", "-o", &fib, "--layer", "geo.csv"]);
    assert!(run.code == 2 && run.err.contains("NAME=TABLE"), "{}", run.err);
}

#[test]
fn exports_are_read_again() {
    let files = Files::new();
    let fib = files.snapshot();
    let columns = |path: &str| done(&["export", path, "--to", "csv"]).out;
    let whole = columns(&fib);
    assert!(whole.starts_with("prefix,asn,country\n0.0.0.0/0,64500,CH\n"), "{whole}");
    for name in ["t.csv", "t.tsv"] {
        let (path, again) = (files.path(name), files.path("again.fib"));
        done(&["export", &fib, "-o", &path]);
        done(&["build", &path, "-o", &again]);
        assert_eq!(columns(&again), whole, "{name}");
    }
    let (mmdb, again) = (files.path("t.mmdb"), files.path("again.fib"));
    done(&["export", &fib, "-o", &mmdb]);
    done(&["build", &mmdb, "-o", &again]);
    for ip in ["10.1.2.3", "10.9.9.9", "255.255.255.255", "2001:db8::1", "2001:db8:1::1", "1.1.1.1"]
    {
        let values = |fib: &str| {
            let found = done(&["lookup", "--table", fib, "--json", ip]).out;
            let found: serde_json::Value = serde_json::from_str(&found).unwrap();
            (found["asn"].clone(), found["country"].clone())
        };
        assert_eq!(values(&again), values(&fib), "{ip}");
    }
    let run = execute(&["export", &fib, "-o", &files.path("t.parquet")]);
    assert!(run.code == 2 && run.err.contains("--family v4"), "{}", run.err);
    let path = files.path("t.parquet");
    done(&["export", &fib, "--family", "v4", "-o", &path]);
    let batch = &read_parquet(&path)[0];
    let starts = batch.column_by_name("start").unwrap().as_primitive::<UInt32Type>();
    let ends = batch.column_by_name("end").unwrap().as_primitive::<UInt32Type>();
    assert_eq!((starts.value(0), ends.value(batch.num_rows() - 1)), (0, u32::MAX));
    assert!(done(&["export", &fib, "--to", "clickhouse"]).out.starts_with("prefix,asn,country\n"));
}
