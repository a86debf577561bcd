//! Parquet and Arrow as tables, and every format of `fibula export` read back.

use std::fs::File;
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::types::Int8Type;
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, DictionaryArray,
    FixedSizeBinaryArray, Float64Array, Int64Array, RecordBatch, StringArray, StringViewArray,
    StructArray, TimestampMicrosecondArray, UInt8Array, UInt32Array,
};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;

use serde_json::Value;

use crate::common::{Files, TABLE, cuts, done, execute, execute_with, json};

type Named = (&'static str, ArrayRef);

fn batch(columns: Vec<Named>) -> RecordBatch {
    let named = columns.into_iter().map(|(name, column)| (name, column, true));
    RecordBatch::try_from_iter_with_nullable(named).expect("columns of one length")
}

/// A Parquet file with the rows twice, in two row groups.
fn parquet(files: &Files, name: &str, batch: &RecordBatch) -> String {
    let path = files.path(name);
    let out = File::create(&path).expect("a file can be written");
    let mut writer = ArrowWriter::try_new(out, batch.schema(), None).expect("a schema");
    writer.write(batch).expect("rows");
    writer.close().expect("an end");
    path
}

fn texts(values: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

/// The table of a source as text.
fn table(args: &[&str]) -> String {
    done(&[&["export"][..], args].concat()).out
}

const VALUES: &str = "\
prefix,asn,latitude,open,name,tags
0.0.0.0/0,64500,47.25,true,\"a, \"\"b\"\"\",x
10.0.0.0/8,,-8,false,Zürich,drop;botnet
10.1.0.0/16,4294967296,8,,\\\\N,
10.1.0.128/25,1,0.5,true,64500,y
2001:db8::/32,2,,false,,z
2001:db8:1::/48,64500,47.25,true,\"a, \"\"b\"\"\",x
";

/// UUIDs have sixteen bytes, as IPv6 addresses do.
#[test]
fn uuids_are_no_addresses() {
    let bytes = |first: u8| -> ArrayRef {
        let rows = [0u8, 1].map(|row| core::array::from_fn::<_, 16, _>(|i| first + row + i as u8));
        Arc::new(FixedSizeBinaryArray::try_from_iter(rows.iter()).expect("of one length"))
    };
    let kind = DataType::FixedSizeBinary(16);
    let id =
        Field::new("id", kind.clone(), true).with_extension_type(arrow_schema::extension::Uuid);
    let schema = Arc::new(Schema::new(vec![id, Field::new("at", kind, true)]));
    let batch = RecordBatch::try_new(schema, vec![bytes(0xe0), bytes(0x20)]).expect("a batch");
    let files = Files::new();
    assert_eq!(
        table(&[&parquet(&files, "x.parquet", &batch)]),
        "prefix\tid\n\
         2021:2223:2425:2627:2829:2a2b:2c2d:2e2f/128\te0e1e2e3-e4e5-e6e7-e8e9-eaebecedeeef\n\
         2122:2324:2526:2728:292a:2b2c:2d2e:2f30/128\te1e2e3e4-e5e6-e7e8-e9ea-ebecedeeeff0\n"
    );
}

/// Text, integers, fractions and booleans, also missing ones, come back from every format that holds both families.
#[test]
fn every_export_is_the_same_table() {
    let files = Files::new();
    for (at, content) in [TABLE, VALUES].into_iter().enumerate() {
        let source = files.with("t.csv", content);
        let expected = table(&[&source]);
        for (to, name) in
            [("tsv", "x.tsv"), ("csv", "x.csv"), ("clickhouse", "y.csv"), ("prefixes", "x.parquet")]
        {
            let path = files.path(&format!("{at}-{name}"));
            done(&["export", &source, "--to", to, "-o", &path]);
            let fib = files.path("x.fib");
            let built = done(&["build", &path, "-o", &fib]);
            assert_eq!(table(&[&fib]), expected, "{to}: {}", built.err);
            let same = execute(&["diff", &source, &path]);
            assert_eq!(same.code, 0, "{to}: {}{}", same.out, same.err);
        }
    }
}

/// Intervals are one family each, and have no prefixes; mmdb files divide those around others. The same addresses have
/// the same values.
#[test]
fn intervals_are_the_same_addresses() {
    let files = Files::new();
    let source = files.with("t.csv", VALUES);
    let mmdb = files.path("t.mmdb");
    done(&["export", &source, "-o", &mmdb]);
    for family in ["v4", "v6"] {
        let intervals = |source: &str, name: &str| {
            let path = files.path(&format!("{family}-{name}.parquet"));
            done(&["export", source, "--to", "intervals", "--family", family, "-o", &path]);
            path
        };
        let first = intervals(&source, "first");
        for source in [&first, &mmdb] {
            let second = intervals(source, "second");
            let [first, second] = [&first, &second].map(|path| std::fs::read(path).unwrap());
            assert_eq!(first, second, "{source}, {family}");
        }
    }
    let first = files.path("v4-first.parquet");
    let found = json(&["lookup", "--table", &first, "--json", "10.1.0.200"]);
    assert_eq!(
        (&found["asn"], &found["latitude"], &found["open"]),
        (&1.into(), &0.5.into(), &true.into())
    );
}

/// The same rows as Parquet, as an Arrow file and as a stream, also from standard input and compressed.
#[test]
fn arrow_is_as_parquet() {
    let files = Files::new();
    let rows = batch(vec![
        ("site", texts(&["hq", "lab", "dmz"])),
        ("Network", texts(&["10.0.0.0", "10.1.0.0", "2001:db8::"])),
        ("Prefix_Length", Arc::new(UInt8Array::from(vec![8, 16, 32]))),
    ]);
    let expected = "prefix\tsite\n10.0.0.0/8\thq\n10.1.0.0/16\tlab\n2001:db8::/32\tdmz\n";
    assert_eq!(table(&[&parquet(&files, "t.parquet", &rows)]), expected);
    let mut file = Vec::new();
    let mut writer = arrow_ipc::writer::FileWriter::try_new(&mut file, &rows.schema()).unwrap();
    (0..3).for_each(|row| writer.write(&rows.slice(row, 1)).unwrap());
    writer.finish().unwrap();
    drop(writer);
    let mut stream = Vec::new();
    let mut writer = arrow_ipc::writer::StreamWriter::try_new(&mut stream, &rows.schema()).unwrap();
    (0..3).for_each(|row| writer.write(&rows.slice(row, 1)).unwrap());
    writer.finish().unwrap();
    drop(writer);
    let path = files.with("t.arrow", &file);
    assert_eq!(table(&[&path]), expected);
    assert_eq!(table(&[&files.with("t.arrows", &stream)]), expected);
    let piped = execute_with(&["export", "-"], stream.clone());
    assert_eq!((piped.code, &*piped.out), (0, expected), "{}", piped.err);
    let packed = zstd::encode_all(&*stream, 1).unwrap();
    assert_eq!(table(&[&files.with("t.arrows.zst", packed)]), expected);
    // What is read from its end is no stream.
    for bytes in [file, std::fs::read(files.path("t.parquet")).unwrap()] {
        let refused = execute_with(&["export", "-"], bytes);
        assert_eq!(refused.code, 2);
        assert!(refused.err.contains("name the file itself"), "{}", refused.err);
    }
    // Commands that take a table take it.
    let data = files.with("data.txt", "10.1.2.3\n");
    let out = done(&["annotate", "--table", &path, &data]).out;
    assert!(out == "10.1.2.3\tlab\n", "{out}");
    done(&["stats", "--table", &path]);
}

/// Each type of values is what a CSV file with its text would have.
#[test]
fn types_of_values() {
    let files = Files::new();
    let mut lists = ListBuilder::new(StringBuilder::new());
    lists.append_value([Some("drop"), Some("botnet")]);
    lists.append_null();
    let inner: ArrayRef = texts(&["a", "b"]);
    let field = Arc::new(Field::new("x", DataType::Utf8, true));
    let words: DictionaryArray<Int8Type> = vec![Some("b"), None].into_iter().collect();
    let micros = TimestampMicrosecondArray::from(vec![Some(1_717_200_000_000_000), None]);
    let rows = batch(vec![
        ("prefix", Arc::new(StringViewArray::from(vec!["10.0.0.0/8", "2001:db8::/32"]))),
        ("count", Arc::new(Int64Array::from(vec![Some(64500), None]))),
        ("balance", Arc::new(Int64Array::from(vec![-5, 7]))),
        ("whole", Arc::new(Float64Array::from(vec![Some(64500.0), None]))),
        ("latitude", Arc::new(Float64Array::from(vec![Some(47.25), Some(f64::NAN)]))),
        (
            "price",
            Arc::new(
                Decimal128Array::from(vec![1250, 300]).with_precision_and_scale(9, 2).unwrap(),
            ),
        ),
        ("open", Arc::new(BooleanArray::from(vec![Some(true), None]))),
        ("day", Arc::new(Date32Array::from(vec![Some(19875), None]))),
        ("seen", Arc::new(micros.with_timezone("UTC"))),
        ("tags", Arc::new(lists.finish())),
        ("word", Arc::new(words)),
        ("number", texts(&["007", "1"])),
        ("gateway", Arc::new(BinaryArray::from(vec![&[192, 0, 2, 1][..], &[192, 0, 2, 2]]))),
        ("note", Arc::new(BinaryArray::from(vec![&b"hello"[..], b"four"]))),
        ("raw", Arc::new(BinaryArray::from(vec![&[1, 2, 3][..], &[0; 4]]))),
        ("inside", Arc::new(StructArray::from(vec![(field, inner)]))),
    ]);
    let path = parquet(&files, "t.parquet", &rows);
    let run = done(&["build", &path, "-o", &files.path("t.fib")]);
    let kinds = [
        "count (int",
        "balance (float",
        "whole (int",
        "latitude (float",
        "price (float",
        "open (bool",
        "day (str",
        "seen (str",
        "tags (str",
        "word (str",
        "number (str",
        "gateway (str",
        "note (str",
    ];
    for kind in kinds {
        assert!(run.out.contains(kind), "{kind}: {}", run.out);
    }
    assert!(run.err.contains("column raw is left out"), "{}", run.err);
    assert!(run.err.contains("column inside is left out: cells of the type Struct"), "{}", run.err);
    assert_eq!(
        table(&[&path]),
        "prefix\tcount\tbalance\twhole\tlatitude\tprice\topen\tday\tseen\ttags\tword\tnumber\tgateway\tnote\n\
         10.0.0.0/8\t64500\t-5\t64500\t47.25\t12.5\ttrue\t2024-06-01\t2024-06-01T00:00:00Z\tdrop;botnet\tb\t007\
         \t192.0.2.1\thello\n\
         2001:db8::/32\t\t7\t\t\t3\t\t\t\t\t\t1\t192.0.2.2\tfour\n"
    );
    // The kind can be set as for text, and columns can be chosen.
    let text = table(&[&path, "--kind", "count=str,whole=float", "--columns", "count,whole"]);
    assert_eq!(text, "prefix\tcount\twhole\n10.0.0.0/8\t64500\t64500\n2001:db8::/32\t\t\n");
}

/// Addresses are text or bytes. Integers are addresses only if `--key` says so, or two columns are ranges by name.
#[test]
fn columns_of_addresses() {
    let files = Files::new();
    let numbers: ArrayRef = Arc::new(UInt32Array::from(vec![0x0a00_0000, 0x0a00_0100]));
    let ends: ArrayRef = Arc::new(UInt32Array::from(vec![0x0a00_00ff, 0x0a00_01ff]));
    let path = parquet(
        &files,
        "n.parquet",
        &batch(vec![("ip", Arc::clone(&numbers)), ("n", texts(&["a", "b"]))]),
    );
    let refused = execute(&["build", &path, "-o", &files.path("n.fib")]);
    assert_eq!(refused.code, 2, "{}", refused.err);
    let chosen = "prefix\tn\n10.0.0.0/32\ta\n10.0.1.0/32\tb\n";
    assert_eq!(table(&[&path, "--key", "ip"]), chosen);
    let ranges = batch(vec![("start", numbers), ("end", ends), ("n", texts(&["a", "b"]))]);
    let expected = "prefix\tn\n10.0.0.0/24\ta\n10.0.1.0/24\tb\n";
    assert_eq!(table(&[&parquet(&files, "r.parquet", &ranges)]), expected);
    let bytes =
        FixedSizeBinaryArray::try_from_iter([[10, 0, 0, 0], [10, 0, 1, 0]].into_iter()).unwrap();
    let bytes = batch(vec![("ip", Arc::new(bytes)), ("n", texts(&["a", "b"]))]);
    assert_eq!(table(&[&parquet(&files, "b.parquet", &bytes)]), chosen);
    let stored = vec![&b"10.0.0.0/24"[..], b"10.0.1.0/24"];
    let stored =
        batch(vec![("cidr", Arc::new(BinaryArray::from(stored))), ("n", texts(&["a", "b"]))]);
    assert_eq!(table(&[&parquet(&files, "s.parquet", &stored)]), expected);
}

/// A row that is none is damage, with its number; a damaged file is refused.
#[test]
fn damage() {
    let files = Files::new();
    let rows = batch(vec![
        ("prefix", texts(&["10.0.0.0/8", "10.0.0.0/33", "10.1.0.0/16"])),
        ("n", Arc::new(Int64Array::from(vec![1, 2, 3]))),
    ]);
    let path = parquet(&files, "t.parquet", &rows);
    let run = done(&["build", &path, "-o", &files.path("t.fib")]);
    assert!(run.err.contains("1 of 3 records damaged"), "{}", run.err);
    assert!(run.err.contains("record 2: "), "{}", run.err);
    let strict = execute(&["build", &path, "--strict", "-o", &files.path("s.fib")]);
    assert!(strict.code == 2 && strict.err.contains("record 2: "), "{}", strict.err);
    let bytes = std::fs::read(&path).unwrap();
    let cut = files.with("cut.parquet", &bytes[..bytes.len() - 9]);
    let refused = execute(&["build", &cut, "-o", &files.path("c.fib")]);
    assert!(refused.code == 2 && refused.err.contains("cut.parquet: "), "{}", refused.err);
    // No table of updates.
    let refused = execute(&["replay", "--table", &path, "--updates", &path]);
    assert!(refused.err.contains("this is a table (format parquet)"), "{}", refused.err);
    let empty = parquet(&files, "e.parquet", &rows.slice(0, 0));
    let refused = execute(&["build", &empty, "-o", &files.path("e.fib")]);
    assert!(refused.err.contains("no routes in it"), "{}", refused.err);
}

/// The tables of `testdata/misread` with a header are read as columns as they are as text, or refused with the same
/// error.
#[test]
fn misread_tables_as_columns() {
    let files = Files::new();
    let mut count = 0;
    for entry in std::fs::read_dir(cuts().join("misread")).expect("testdata") {
        let path = entry.expect("an entry").path();
        let Ok(case) = std::fs::read(&path).map(|bytes| serde_json::from_slice::<Value>(&bytes))
        else {
            continue;
        };
        let Ok(case) = case else { continue };
        let Some(lines) = case["lines"].as_array().filter(|_| case["header"] != false) else {
            continue;
        };
        let rows: Vec<Vec<&str>> =
            lines.iter().map(|line| line.as_str().expect("a line").split(',').collect()).collect();
        let (names, rows) = rows.split_first().expect("a header");
        let is_name = |name: &&str| {
            name.starts_with(|first: char| first.is_ascii_alphabetic()) && !name.contains(':')
        };
        let is_table = case["name"] == "t.csv"
            && names.len() > 1
            && names.iter().all(is_name)
            && rows.iter().all(|row| row.len() == names.len())
            && !rows.is_empty();
        if !is_table {
            continue;
        }
        count += 1;
        let column = |at: usize| {
            let cells = rows.iter().map(|row| Some(row[at]).filter(|cell| !cell.is_empty()));
            Arc::new(cells.collect::<StringArray>()) as ArrayRef
        };
        let columns = names.iter().enumerate().map(|(at, name)| (*name, column(at), true));
        let rows = RecordBatch::try_from_iter_with_nullable(columns).expect("columns");
        let text: String =
            lines.iter().map(|line| format!("{}\n", line.as_str().unwrap())).collect();
        let as_text = execute(&["export", &files.with("t.csv", text)]);
        let as_columns = execute(&["export", &parquet(&files, "t.parquet", &rows)]);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        assert_eq!(
            (as_columns.code, &as_columns.out),
            (as_text.code, &as_text.out),
            "{name}: {}",
            as_columns.err
        );
        if let Some(refused) = case["refused"].as_str().filter(|text| !text.contains("damaged")) {
            assert!(as_columns.err.contains(refused), "{name}: {}", as_columns.err);
        }
    }
    assert!(count > 10, "{count} tables");
}
