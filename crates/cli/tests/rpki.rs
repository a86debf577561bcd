//! Route origin validation: `fibula rpki`, and `--rpki` of the commands that have a table.

use std::fs::File;

use parquet::file::reader::{FileReader, SerializedFileReader};
use serde_json::{Value, json};

use crate::common::{Files, arg, cuts, done, execute, execute_with, json};

fn data(name: &str) -> String {
    arg(&cuts().join("rpki").join(name)).to_owned()
}

/// What `testdata/rpki/routes.csv` is by the VRPs beside it, worked out by hand.
const LIST: &str = "\
prefix\torigin\trpki\tvrps
0.0.0.0/0\t-\tnot-found\t-
10.0.0.0/8\t64500\tnot-found\t-
192.0.2.0/24\t64500\tvalid\t192.0.2.0/24-24 AS64500
192.0.2.128/25\t64500\tinvalid-length\t192.0.2.0/24-24 AS64500
198.51.100.0/22\t64501\tvalid\t198.51.100.0/22-23 AS64501
198.51.100.0/24\t64501\tinvalid-length\t198.51.100.0/22-23 AS64501
198.51.101.0/24\t64500\tinvalid-origin\t198.51.100.0/22-23 AS64501
203.0.113.0/24\t64502\tinvalid-origin\t203.0.113.0/24-32 AS0
2001:db8::/32\t64500\tvalid\t2001:db8::/32-48 AS64500
2001:db8:1::/48\t64501\tinvalid-origin\t2001:db8::/32-48 AS64500
2001:db8:2::/64\t64500\tinvalid-length\t2001:db8::/32-48 AS64500
";

/// The lines of [`LIST`] with one of these words.
fn lines(words: &[&str]) -> String {
    let is_wanted = |line: &&str| words.iter().any(|word| line.contains(word));
    LIST.lines().filter(is_wanted).map(|line| format!("{line}\n")).collect()
}

#[test]
fn routes_are_listed() {
    let routes = data("routes.csv");
    for vrps in ["routinator.json", "routinator.csvcompat", "rpki-client.json", "rpki-client.csv"] {
        let run = execute(&["rpki", &data(vrps), &routes, "--list", "all"]);
        assert_eq!((run.code, run.out.as_str()), (1, LIST), "{vrps}");
    }
    let vrps = data("routinator.json");
    let run = execute(&["rpki", &vrps, &routes, "--list", "invalid"]);
    assert_eq!(run.out, lines(&["\trpki\t", "invalid"]));
    assert!(run.err.contains("AS64500"), "the report: {}", run.err);
    let run = execute(&["rpki", &vrps, &routes, "--list", "valid,not-found"]);
    assert_eq!(run.out, lines(&["\trpki\t", "\tvalid", "not-found"]));
    let run = execute(&["rpki", &vrps, &routes, "--list", "invalid-origin", "--json"]);
    let objects: Vec<Value> =
        run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(objects.len(), 3);
    assert_eq!(
        objects[1],
        json!({"prefix": "203.0.113.0/24", "origin": 64502, "rpki": "invalid-origin",
               "vrps": [{"prefix": "203.0.113.0/24", "max_length": 32, "asn": 0}]})
    );
    // Nothing is invalid: the exit code says so.
    let files = Files::new();
    let good = files.with("good.csv", "prefix,origin_as\n192.0.2.0/24,64500\n10.0.0.0/8,1\n");
    done(&["rpki", &vrps, &good]);
}

#[test]
fn the_report_counts() {
    let report = execute(&["rpki", &data("routinator.json"), &data("routes.csv"), "--json"]);
    assert_eq!((report.code, report.err.as_str()), (1, ""));
    let report: Value = serde_json::from_str(&report.out).unwrap();
    assert_eq!(report["vrps"], json!({"ipv4": 3, "ipv6": 1}));
    assert_eq!(report["files"][0]["generated"], 1_790_138_131);
    // 192.0.2.128/25 is half of 192.0.2.0/24; of 198.51.100.0/22 half is in the two longer routes. The rest of the
    // space has the validity of 0.0.0.0/0.
    let found = (1u64 << 32) - 256 - 1024 - 256;
    assert_eq!(
        report["ipv4"],
        json!({"routes": {"valid": 2, "invalid-origin": 2, "invalid-length": 2, "not-found": 2},
               "addresses": {"valid": 128 + 512, "invalid-origin": 512, "invalid-length": 128 + 256,
                             "not-found": found}})
    );
    let valid = (1u128 << 96) - (1 << 80) - (1 << 64);
    assert_eq!(report["ipv6"]["addresses"]["valid"], valid.to_string());
    assert_eq!(report["ipv6"]["addresses"]["invalid-length"], (1u128 << 64).to_string());
    let origin = |asn: u32, origin: u32, length: u32, routes: u32| {
        json!({"origin": asn, "invalid": origin + length, "invalid-origin": origin,
               "invalid-length": length, "routes": routes})
    };
    assert_eq!(
        report["origins"],
        json!([origin(64500, 1, 2, 6), origin(64501, 1, 1, 3), origin(64502, 1, 0, 1)])
    );
    let text = execute(&["rpki", &data("routinator.json"), &data("routes.csv"), "--top", "1"]).out;
    let cells = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let rows: Vec<Vec<String>> = text.lines().map(cells).collect();
    assert!(rows.contains(&cells("IPv4 valid 2 25.0 % 640")), "{text}");
    assert!(rows.contains(&cells("AS64500 3 1 2 6")) && !text.contains("AS64501"), "{text}");
    assert!(text.ends_with("and 2 more origins with invalid routes\n"), "{text}");
}

#[test]
fn one_question() {
    let vrps = data("rpki-client.csv");
    let ask = |prefix: &str, origin: &str| {
        execute(&["rpki", &vrps, "--prefix", prefix, "--origin", origin])
    };
    let run = ask("192.0.2.0/24", "AS64500");
    assert_eq!(run.code, 0);
    assert_eq!(run.out.lines().nth(1), LIST.lines().nth(3));
    let run = ask("192.0.2.0/25", "64500");
    assert_eq!(run.code, 1);
    assert!(run.out.ends_with("192.0.2.0/25\t64500\tinvalid-length\t192.0.2.0/24-24 AS64500\n"));
    assert_eq!(ask("10.0.0.0/8", "64500").code, 0);
    for (prefix, origin, what) in [
        ("192.0.2.0/24", "origin_as", "--origin \"origin_as\" is no AS number"),
        ("192.0.2.1/24", "64500", "192.0.2.1/24"),
        ("192.0.2.1", "64500", "192.0.2.1"),
    ] {
        let run = ask(prefix, origin);
        assert_eq!(run.code, 2);
        assert!(run.err.contains(what), "{}", run.err);
    }
    assert_eq!(execute(&["rpki", &vrps, "--prefix", "192.0.2.0/24"]).code, 2);
    assert_eq!(execute(&["rpki", &vrps]).code, 2);
    let run = execute_with(
        &["rpki", "-", "--prefix", "192.0.2.0/24", "--origin", "64500", "--json"],
        std::fs::read(data("routinator.json")).unwrap(),
    );
    assert_eq!(serde_json::from_str::<Value>(&run.out).unwrap()["rpki"], "valid");
}

#[test]
fn tables_get_columns() {
    let (files, vrps, routes) = (Files::new(), data("routinator.json"), data("routes.csv"));
    let fib = files.path("checked.fib");
    let built = done(&["build", &routes, "--rpki", &vrps, "-o", &fib]);
    assert!(built.out.contains("(vrps, json, 2026-09-23 04:35 UTC): 4 announced"), "{}", built.out);
    assert!(built.out.contains("rpki (str, 4 values), rpki_vrps (str, 4 values)"), "{}", built.out);
    let stored = done(&["lookup", "--table", &fib, "192.0.2.200", "2001:db8:1::1", "1.1.1.1"]).out;
    assert_eq!(
        stored.lines().skip(1).collect::<Vec<_>>(),
        [
            "192.0.2.200\t192.0.2.128/25\t64500\tinvalid-length\t192.0.2.0/24-24 AS64500",
            "2001:db8:1::1\t2001:db8:1::/48\t64501\tinvalid-origin\t2001:db8::/32-48 AS64500",
            "1.1.1.1\t0.0.0.0/0\t-\tnot-found\t-",
        ]
    );
    // The same of the table as it is opened, and of a snapshot without the columns.
    let plain = files.path("plain.fib");
    done(&["build", &routes, "-o", &plain]);
    for table in [&routes, &plain] {
        let questions = ["192.0.2.200", "2001:db8:1::1", "1.1.1.1"];
        let run = done(&[&["lookup", "--table", table, "--rpki", &vrps][..], &questions].concat());
        assert_eq!(run.out, stored, "{table}");
    }
    let found =
        done(&["lookup", "--table", &plain, "--rpki", &vrps, "--where", "rpki=invalid-origin"]);
    assert_eq!(found.out.lines().count(), 1 + 3);
    let csv = files.with("flows.csv", "src,n\n192.0.2.1,1\n203.0.113.9,2\n10.0.0.1,3\n");
    for table in [&["--table", &fib][..], &["--table", &plain, "--rpki", &vrps]] {
        let run = done(&[&["annotate", &csv, "--add", "rpki,rpki_vrps", "-q"][..], table].concat());
        let expected = "src,n,src_rpki,src_rpki_vrps\n\
            192.0.2.1,1,valid,192.0.2.0/24-24 AS64500\n\
            203.0.113.9,2,invalid-origin,203.0.113.0/24-32 AS0\n\
            10.0.0.1,3,not-found,\n";
        assert_eq!(run.out, expected);
    }
    // Built again with other VRPs: the columns are replaced.
    let none = files.with("none.csv", "AS1,1.0.0.0/8,8\n");
    let again = files.path("again.fib");
    done(&["build", &fib, "--rpki", &none, "-o", &again]);
    let found = json(&["lookup", "--table", &again, "--json", "192.0.2.200"]);
    assert_eq!((&found["rpki"], &found["rpki_vrps"]), (&json!("not-found"), &Value::Null));
}

/// A column of the table that is called as one of ours keeps its values under another name, and that is said.
#[test]
fn a_column_called_rpki_keeps_its_values() {
    let files = Files::new();
    let routes = files.with("own.csv", "prefix,origin_as,rpki\n192.0.2.0/24,64500,by hand\n");
    let (vrps, fib) = (data("routinator.json"), files.path("own.fib"));
    let run = done(&["build", &routes, "--rpki", &vrps, "-o", &fib]);
    assert!(run.err.contains("column rpki of the table is called rpki_2"), "{}", run.err);
    let found = json(&["lookup", "--table", &fib, "--json", "192.0.2.1"]);
    assert_eq!((&found["rpki"], &found["rpki_2"]), (&json!("valid"), &json!("by hand")));
    let run = done(&["lookup", "--table", &routes, "--rpki", &vrps, "192.0.2.1"]);
    assert!(run.err.contains("rpki_2"), "{}", run.err);
}

#[test]
fn routes_as_a_table() {
    let (files, vrps) = (Files::new(), data("routinator.json"));
    let text = "prefix,asn,name\n192.0.2.0/24,AS64500,a\n192.0.2.0/25,AS64500,b\n10.0.0.0/8,,c\n";
    let table = files.with("mine.csv", text);
    let checked = files.path("checked.csv");
    let run = execute(&["rpki", &vrps, &table, "--origin", "asn", "-o", &checked]);
    assert_eq!(run.code, 1);
    assert!(run.out.contains("invalid-length"), "the report is printed: {}", run.out);
    assert_eq!(
        std::fs::read_to_string(&checked).unwrap(),
        "prefix,asn,name,rpki,rpki_vrps\n\
         10.0.0.0/8,,c,not-found,\n\
         192.0.2.0/24,AS64500,a,valid,192.0.2.0/24-24 AS64500\n\
         192.0.2.0/25,AS64500,b,invalid-length,192.0.2.0/24-24 AS64500\n"
    );
    let parquet = files.path("invalid.parquet");
    execute(&["rpki", &vrps, &table, "--origin", "asn", "--list", "invalid", "-o", &parquet]);
    let reader = SerializedFileReader::new(File::open(&parquet).unwrap()).unwrap();
    assert_eq!(reader.metadata().file_metadata().num_rows(), 1);
    let run = execute(&["rpki", &vrps, &table, "--origin", "asn", "-o", &files.path("x.doc")]);
    assert!(run.err.contains("unknown file name ending"), "{}", run.err);
}

/// A RIB whose paths end in sets: those routes have no origin, whatever the set has.
#[test]
fn sets_are_no_origin() {
    let files = Files::new();
    let line = |prefix: &str, path: &str| {
        format!(
            "TABLE_DUMP2|1277971199|B|192.0.2.9|2497|{prefix}|{path}|IGP|192.0.2.9|0|0||NAG||\n"
        )
    };
    let rib = files.with(
        "rib.txt",
        [line("192.0.2.0/24", "2497 64500"), line("198.51.100.0/22", "2497 {64501}")].concat(),
    );
    let run = execute(&["rpki", &data("routinator.json"), &rib, "--list", "all"]);
    assert_eq!(
        run.out,
        [
            "prefix\torigin\trpki\tvrps",
            "192.0.2.0/24\t64500\tvalid\t192.0.2.0/24-24 AS64500",
            "198.51.100.0/22\t-\tinvalid-origin\t198.51.100.0/22-23 AS64501\n",
        ]
        .join("\n")
    );
}

#[test]
fn faults_are_reported() {
    let (files, routes) = (Files::new(), data("routes.csv"));
    let vrps = data("routinator.csv");
    let bad = files.with("bad.csv", "ASN,IP Prefix,Max Length\nAS1,192.0.2.0/24,23\n");
    let broken = files.with("bad.json", "{\"roas\": [\n{\"asn\": 1}]}");
    let empty = files.with("empty.json", "{\"roas\": []}");
    let text = files.with("text.csv", "prefix,country\n192.0.2.0/24,CH\n");
    let cases: &[(&[&str], &str)] = &[
        (
            &["rpki", &bad, &routes],
            "bad.csv, line 2: the maximum length 23 is below the length of 192.0.2.0/24",
        ),
        (&["rpki", &broken, &routes], "bad.json, line 2, byte 10: VRP 1: it has no prefix"),
        (&["rpki", &empty, &routes], "empty.json: no VRPs in it"),
        (&["rpki", "no/such.json", &routes], "no/such.json: No such file"),
        (&["rpki", &routes, &vrps], "routes.csv, line 1: \"prefix\" is no AS number"),
        (
            &["rpki", &vrps, &text],
            "no column origin_as with the origin of routes; there are: country",
        ),
        (&["rpki", &vrps, &text, "--origin", "country"], "column country: \"CH\" is no AS number"),
        (&["rpki", &vrps, &routes, "--list", "wrong"], "valid, invalid, invalid-origin"),
        (&["rpki", "-", "-"], "standard input cannot be both"),
        (&["lookup", "--rpki", &vrps, "8.8.8.8"], "no column origin_as"),
        (&["lookup", "--rpki", "-", "-"], "standard input cannot be both"),
        (&["annotate", "--rpki", "-", "-"], "standard input cannot be both"),
        (&["build", "-", "--rpki", "-", "-o", "x.fib"], "standard input cannot be both"),
        (&["build", &routes, "--origin", "x", "-o", "x.fib"], "--rpki"),
        (&["lookup", "--layer", "a=embedded", "--rpki", &vrps, "8.8.8.8"], "cannot be used with"),
    ];
    for (args, what) in cases {
        let run = execute(args);
        assert_eq!(run.code, 2, "{args:?}");
        assert!(run.err.contains(what), "{args:?}: {}", run.err);
    }
    assert!(!std::path::Path::new("x.fib").exists());
    let run = execute(&["rpki", &empty, &routes, "--allow-empty"]);
    assert_eq!(run.code, 0, "{}", run.err);
    // Old VRPs are used, and this is reported.
    let old = files.with(
        "old.csv",
        "ASN,IP Prefix,Max Length,Trust Anchor,Expires\nAS64500,192.0.2.0/24,24,ripe,1000\n",
    );
    let run = execute(&["rpki", &old, "--prefix", "192.0.2.0/24", "--origin", "64500"]);
    assert_eq!(run.code, 0);
    assert!(run.err.contains("old.csv: 1 of 1 VRPs have expired; they are used"), "{}", run.err);
}
