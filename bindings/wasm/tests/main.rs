//! The reader as a page uses it. `page.py` tests the module and the page in a browser.

use std::fs;
use std::io::Write;
use std::path::Path;

use fibula_rib::AlignedBytes;
use fibula_wasm::exports::{
    LARGEST_DATA, LARGEST_TEXT, page_annotate, page_data, page_lookup, page_text,
};
use fibula_wasm::{AnnotateRequest, Reader};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

const TABLE: &str = "\
prefix,asn,name
10.0.0.0/8,64500,hq
10.1.0.0/16,64501,
10.1.2.0/24,18446744073709551615,\"a, b\"
2001:db8::/32,64502,lab
";

const LOG: &str = "time,src,dst\n1,10.1.2.3,2001:db8::1\n2,192.0.2.1,x\n";

fn open(name: &str, bytes: impl AsRef<[u8]>) -> Result<Reader, String> {
    Reader::open(name, AlignedBytes::from(bytes.as_ref()))
}

fn gz(text: &str) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::default());
    out.write_all(text.as_bytes()).unwrap();
    out.finish().unwrap()
}

fn file(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name)).unwrap()
}

fn annotate(
    reader: &Reader,
    name: &str,
    bytes: &[u8],
    columns: &[&str],
) -> Result<(String, Value), String> {
    let request = AnnotateRequest {
        name: name.to_owned(),
        columns: columns.iter().map(ToString::to_string).collect(),
        add: Vec::new(),
    };
    let (rows, summary) = reader.annotate(AlignedBytes::from(bytes), &request)?;
    Ok((String::from_utf8(rows).unwrap(), summary))
}

#[test]
fn a_list_of_networks_is_a_table() {
    for (name, bytes) in [("t.csv", TABLE.into()), ("t.csv.gz", gz(TABLE)), ("t", TABLE.into())] {
        let reader = open(name, bytes).unwrap();
        let table = reader.description();
        assert_eq!((&table["name"], &table["columns"]), (&json!(name), &json!(["asn", "name"])));
        assert_eq!((&table["v4"]["routes"], &table["v6"]["routes"]), (&json!(3), &json!(1)));
        assert_eq!(table["notes"], json!([]));
        // The longest comes first, and numbers that JavaScript does not hold are whole.
        let found = reader.lookup(" 10.1.2.3\n").unwrap();
        let most = json!({"prefix": "10.1.2.0/24", "values": [["asn", "18446744073709551615"], ["name", "a, b"]]});
        assert_eq!(found["covering"][0], most);
        assert_eq!(found["covering"][1]["values"], json!([["asn", "64501"]]));
        assert_eq!(found["covering"].as_array().unwrap().len(), 3);
        for (text, prefix) in [("::ffff:10.9.9.9", "10.0.0.0/8"), ("2001:DB8::7", "2001:db8::/32")]
        {
            assert_eq!(reader.lookup(text).unwrap()["covering"][0]["prefix"], prefix);
        }
        assert_eq!(reader.lookup("192.0.2.1").unwrap()["covering"], json!([]));
    }
}

#[test]
fn a_prefix_has_routes_around_and_inside() {
    let reader = open("t.csv", TABLE).unwrap();
    let found = reader.lookup("10.1.0.0/16").unwrap();
    let prefixes = |what: &str| -> Vec<String> {
        let routes = found[what].as_array().unwrap();
        routes.iter().map(|route| route["prefix"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(prefixes("covering"), ["10.1.0.0/16", "10.0.0.0/8"]);
    assert_eq!(prefixes("inside"), ["10.1.2.0/24"]);
    assert_eq!(found["more"], false);
    // A list is cut, and says so.
    let many: String = (0..=255).map(|i| format!("10.0.{i}.0/24 {i}\n")).collect();
    let found = open("many.txt", many).unwrap().lookup("10.0.0.0/8").unwrap();
    assert_eq!((found["inside"].as_array().unwrap().len(), &found["more"]), (100, &json!(true)));
}

#[test]
fn what_is_no_question_is_a_sentence() {
    let reader = open("t.csv", TABLE).unwrap();
    for text in ["", "10.0.0", "10.0.0.0/33", "x/8", "10.0.0.1/8", &"9".repeat(10_000)] {
        let what = reader.lookup(text).unwrap_err();
        assert!(!what.is_empty() && what.len() < 300, "{text}: {what}");
    }
}

#[test]
fn snapshots_are_tables() {
    let dates = open("three-days.fib", file("snapshots/three-days.fib")).unwrap();
    let notes = dates.description()["notes"].to_string();
    assert!(notes.contains("of 3 tables"), "{notes}");
    // The same table, whichever way it comes.
    let folder = std::env::temp_dir().join(format!("fibula-wasm-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let (text, path) = (folder.join("t.csv"), folder.join("t.fib"));
    fs::write(&text, TABLE).unwrap();
    fibula::build(text.to_str().unwrap()).unwrap().write(&path).unwrap();
    let bytes = fs::read(&path).unwrap();
    fs::remove_dir_all(&folder).unwrap();
    let (stored, built) = (open("t.fib", &bytes).unwrap(), open("t.csv", TABLE).unwrap());
    for question in ["10.1.2.3", "10.0.0.0/8", "2001:db8::", "192.0.2.1"] {
        assert_eq!(stored.lookup(question), built.lookup(question), "{question}");
    }
    // Each cut of it, and a changed byte, is refused.
    for end in [0, 1, 15, 64, bytes.len() / 2, bytes.len() - 1] {
        assert!(open("t.fib", &bytes[..end]).is_err(), "{end} bytes");
    }
    let mut changed = bytes;
    let middle = changed.len() / 2;
    changed[middle] ^= 1;
    assert!(open("any name", changed).is_err());
}

#[test]
fn what_is_no_table_is_a_sentence() {
    for (name, bytes) in [
        ("empty.csv", &b""[..]),
        ("page.html", b"<!doctype html><title>502</title>"),
        ("t.parquet", b"PAR1 PAR1"),
        ("t.zip", b"PK\x03\x04\x14\0\0\0"),
        ("photo.jpg", b"\xff\xd8\xff\xe0\0\x10JFIF"),
        ("words.txt", b"this is\nno table\n"),
        ("cut.csv.gz", &gz(TABLE)[..40]),
    ] {
        let what = open(name, bytes).err().unwrap_or_else(|| panic!("{name} is a table"));
        assert!(what.contains(name), "{name}: {what}");
    }
}

#[test]
fn damage_is_noted() {
    let table = open("t.csv", format!("{TABLE}10.300.0.0/16,1,x\n")).unwrap();
    let notes = table.description()["notes"].to_string();
    assert!(notes.contains("1 damaged records") && notes.contains("record 6"), "{notes}");
}

#[test]
fn rows_get_the_values_of_the_table() {
    let reader = open("t.csv", TABLE).unwrap();
    let expected = "\
time,src,dst,src_asn,src_name,dst_asn,dst_name
1,10.1.2.3,2001:db8::1,18446744073709551615,\"a, b\",64502,lab
2,192.0.2.1,x,,,,
";
    for (name, bytes) in [("log.csv", LOG.into()), ("log.csv.gz", gz(LOG)), ("log", LOG.into())] {
        let (rows, summary) = annotate(&reader, name, &bytes, &["src", "dst"]).unwrap();
        assert_eq!(rows, expected, "{name}");
        let counts =
            ["rows", "addresses", "matched", "unparsable"].map(|key| summary[key].as_u64());
        assert_eq!(counts, [2, 3, 2, 1].map(Some));
        assert_eq!(summary["top"][3]["values"], json!([["lab", 1]]));
    }
    // Columns are detected, as the command detects them.
    let (rows, summary) = annotate(&reader, "log.csv", LOG.as_bytes(), &[]).unwrap();
    assert_eq!((rows.as_str(), &summary["columns"]), (expected, &json!(["src", "dst"])));
    let (rows, _) = annotate(&reader, "l.json", b"{\"ip\":\"10.9.0.1\"}\n", &["ip"]).unwrap();
    assert_eq!(rows, "{\"ip\":\"10.9.0.1\",\"ip_asn\":64500,\"ip_name\":\"hq\"}\n");
}

#[test]
fn what_has_no_rows_is_a_sentence() {
    let reader = open("t.csv", TABLE).unwrap();
    for (name, bytes, columns) in [
        ("flows.parquet", &b"PAR1 PAR1"[..], &[][..]),
        ("flows.arrow", b"ARROW1\0\0", &[]),
        ("flows", b"PAR1 PAR1", &[]),
        ("logs.zip", b"PK\x03\x04\x14\0\0\0", &[]),
        ("log.csv", LOG.as_bytes(), &["source"]),
        ("words.csv", b"a,b\nc,d\n", &[]),
        ("l.json", b"{\"ip\":\"10.9.0.1\"}\n", &[]),
        ("words.txt", b"this is\nno log\n", &[]),
    ] {
        let what = annotate(&reader, name, bytes, columns).unwrap_err();
        assert!(what.contains(name), "{name}: {what}");
    }
}

#[test]
fn inputs_are_bounded_before_memory_is_taken() {
    assert!(page_text(LARGEST_TEXT + 1).is_null() && page_data(LARGEST_DATA + 1).is_null());
    assert!(!page_text(LARGEST_TEXT).is_null() && !page_data(1).is_null());
    // No table is open.
    assert_eq!((page_lookup(), page_annotate()), (1, 1));
}
