//! Building and asking: build, lookup, stats, gen table.

use crate::common::{Files, TABLE, done, execute, execute_with, json, read};

#[test]
fn a_table_is_built_and_queried() {
    let files = Files::new();
    let csv = files.with("table.csv", TABLE);
    let fib = files.path("table.fib");
    let built = done(&["build", &csv, "-o", &fib]).out;
    for line in
        ["5 IPv4, 3 IPv6", "asn (int, 8 values)", "runmap", "wideleaf", "bytes a prefix", "digest"]
    {
        assert!(built.contains(line), "{line:?} in {built}");
    }

    let rows = done(&["lookup", "-t", &fib, "10.1.2.3", "2001:db8:1::1", "::ffff:10.1.9.9"]).out;
    assert_eq!(
        rows,
        "address\tprefix\tasn\tcountry\n\
         10.1.2.3\t10.1.2.0/24\t64503\tNL\n\
         2001:db8:1::1\t2001:db8:1::1/128\t64507\tFR\n\
         ::ffff:10.1.9.9\t10.1.0.0/16\t64502\tFR\n"
    );
    // The same from the text, without a snapshot.
    assert_eq!(
        done(&["lookup", "-t", &csv, "10.1.2.3", "--no-header"]).out,
        "10.1.2.3\t10.1.2.0/24\t64503\tNL\n"
    );
}

#[test]
fn all_covering_prefixes_longest_first() {
    let files = Files::new();
    let fib = files.snapshot();
    let out = done(&["lookup", "-t", &fib, "--all", "--json", "10.1.2.3"]).out;
    let prefixes: Vec<String> = out
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["prefix"].to_string())
        .collect();
    assert_eq!(prefixes, ["\"10.1.2.0/24\"", "\"10.1.0.0/16\"", "\"10.0.0.0/8\"", "\"0.0.0.0/0\""]);
    assert!(out.starts_with(
        r#"{"address":"10.1.2.3","prefix":"10.1.2.0/24","asn":64503,"country":"NL"}"#
    ));
}

#[test]
fn exit_codes_of_lookups() {
    let files = Files::new();
    let fib = files.snapshot();
    let missed = execute(&["lookup", "-t", &fib, "--json", "10.0.0.1", "2001:db9::1"]);
    assert_eq!(missed.code, 1);
    assert!(
        missed.out.contains(r#"{"address":"2001:db9::1","prefix":null,"asn":null"#),
        "{}",
        missed.out
    );
    let bad = execute_with(
        &["lookup", "-t", &fib],
        b"10.0.0.1 x\n# no\n\nhost.example\n\xff\xfe\n255.255.255.255\n".to_vec(),
    );
    assert_eq!(bad.code, 2);
    assert_eq!(
        bad.out,
        "address\tprefix\tasn\tcountry\n\
         10.0.0.1\t10.0.0.0/8\t64501\tDE\n\
         -\t-\t-\t-\n\
         -\t-\t-\t-\n\
         host.example\t-\t-\t-\n\
         \u{fffd}\u{fffd}\t-\t-\t-\n\
         255.255.255.255\t255.255.255.255/32\t64504\tSE\n"
    );
    assert!(bad.err.contains("line 4: \"host.example\" is not an address"), "{}", bad.err);
}

#[test]
fn sources_merge_in_order() {
    let files = Files::new();
    let csv = files.with("table.csv", TABLE);
    let more = files.with("more.txt", "10.1.0.0/16 changed\n11.0.0.0/8 new\n");
    let fib = files.path("merged.fib");
    done(&["build", &csv, &more, "-o", &fib]);
    let out = done(&["lookup", "-t", &fib, "--no-header", "10.1.9.9", "11.0.0.1", "10.1.2.3"]).out;
    assert!(out.contains("10.1.9.9\t10.1.0.0/16\t-\t-\tchanged\n"), "{out}");
    assert!(out.contains("11.0.0.1\t11.0.0.0/8\t-\t-\tnew\n"), "{out}");
    assert!(out.contains("10.1.2.3\t10.1.2.0/24\t64503\tNL\t-\n"), "{out}");
    // The same as a list of tables, a snapshot among them.
    let both = format!("{},{more}", files.snapshot());
    assert_eq!(
        done(&["lookup", "-t", &both, "--no-header", "10.1.9.9", "11.0.0.1", "10.1.2.3"]).out,
        out
    );
}

#[test]
fn columns_are_chosen_and_text_is_read_as_set() {
    let files = Files::new();
    let odd = files.with("odd.txt", "64500;10.0.0.0;10.0.0.255;A\n64501;10.0.1.0;10.0.2.255;B\n");
    let fib = files.path("odd.fib");
    let args = ["build", &odd, "-o", &fib, "--delimiter", ";", "--key", "2,3", "--header", "no"];
    let names = ["--names", "asn,first,last,name", "--columns", "name"];
    done(&[&args[..], &names[..]].concat());
    let out = done(&["lookup", "-t", &fib, "10.0.2.9"]).out;
    assert_eq!(out, "address\tprefix\tname\n10.0.2.9\t10.0.2.0/24\tB\n");
    let missing = execute(&[&args[..], &["--columns", "nope"]].concat());
    assert_eq!(missing.code, 2);
    assert!(missing.err.contains("nope"), "{}", missing.err);
}

#[test]
fn engines_are_requested() {
    let files = Files::new();
    let csv = files.with("table.csv", TABLE);
    let fib = files.path("radix.fib");
    done(&["build", &csv, "-o", &fib, "--engine", "dxr16,planb"]);
    let stats = json(&["stats", "-t", &fib, "--json"]);
    assert_eq!(stats["v4"]["engines"][0]["engine"], "snapshot:dxr16");
    assert_eq!(stats["v6"]["engines"][0]["engine"], "snapshot:planb");
    let all = execute(&["build", &csv, "-o", &fib, "--engine", "all"]);
    assert_eq!(all.code, 2);
    assert!(all.err.contains("one engine for each family"), "{}", all.err);
    done(&["build", &csv, "-o", &fib, "--engine", "radix"]);
    let stats = json(&["stats", "-t", &fib, "--json"]);
    assert_eq!(stats["v4"]["engines"][0]["engine"], "snapshot:radix");
    // A snapshot is a source like any other.
    let again = files.path("again.fib");
    done(&["build", &fib, "-o", &again, "--engine", "planb"]);
    let digest =
        |path: &str, which: &str| json(&["stats", "-t", path, "--json"])["snapshot"][which].clone();
    assert_eq!(digest(&fib, "table_digest"), digest(&again, "table_digest"));
    assert_ne!(digest(&fib, "digest"), digest(&again, "digest"));
}

/// As where a table is opened: the next engine of the list follows one that refuses the table, and the reason says so.
#[test]
fn the_next_engine_follows_one_that_refuses() {
    let files = Files::new();
    let (table, fib) = ("gen:v4:2024:3000:1", files.path("next.fib"));
    let built = json(&["build", table, "-o", &fib, "--engine", "sail-l8,dxr18", "--json"]);
    let engine = &built["engines"]["ipv4"];
    assert_eq!(engine["name"], "dxr18");
    let reason = engine["reason"].as_str().expect("the reason");
    assert!(reason.starts_with("dxr18: requested; engine sail-l8: "), "{reason}");
    let refused = execute(&["build", table, "-o", &files.path("none.fib"), "--engine", "sail-l8"]);
    assert_eq!(refused.code, 2);
    let parts = ["IPv4: engine sail-l8: ", "auto takes an engine that can hold the table"];
    assert!(parts.iter().all(|part| refused.err.contains(part)), "{}", refused.err);
}

#[test]
fn stats_count() {
    let files = Files::new();
    let fib = files.snapshot();
    let stats = json(&["stats", "-t", &fib, "--json", "--engines", "all"]);
    assert_eq!(stats["v4"]["prefixes"], 5);
    assert_eq!(stats["v4"]["lengths"]["24"], 1);
    assert_eq!(stats["v4"]["more_specific_share"], 0.8);
    assert_eq!(stats["v6"]["prefixes"], 3);
    assert_eq!(stats["v6"]["hops"]["distinct"], 3);
    assert_eq!(stats["columns"][1]["name"], "country");
    assert!(stats["v6"]["engines"].as_array().unwrap().len() > 2);
    let text = done(&["stats", "-t", &fib]).out;
    assert!(text.contains("IPv6: 3 prefixes") && text.contains('█'), "{text}");
}

#[test]
fn generated_tables_are_tables() {
    let files = Files::new();
    let tsv = files.path("gen.tsv");
    done(&["gen", "table", "v6:2024:2000:7", "--synthetic-hops", "near:8", "-o", &tsv]);
    let lines = String::from_utf8(read(&tsv)).unwrap();
    assert_eq!(lines.lines().count(), 2001);
    assert_eq!(json(&["stats", "-t", &tsv, "--json"])["v6"]["prefixes"], 2000);
    let same = done(&["gen", "table", "gen:v6:2024:2000:7", "--synthetic-hops", "near:8"]).out;
    assert_eq!(same, lines);
    let bad = execute(&["gen", "table", "v4:2024:99999999:1"]);
    assert_eq!(bad.code, 2);
    assert!(bad.err.contains("10000000"), "{}", bad.err);
}

#[test]
fn the_embedded_table_is_the_default() {
    let out = done(&["lookup", "193.0.6.139", "2001:67c:2e8::1"]).out;
    assert!(out.starts_with("address\tprefix\tcountry\n"), "{out}");
    assert!(out.lines().skip(1).all(|line| line.ends_with("\tNL")), "{out}");
}

#[test]
fn builds_are_reported_as_json() {
    let files = Files::new();
    let csv = files.with("table.csv", TABLE);
    let fib = files.path("table.fib");
    let report = json(&["build", &csv, "-o", &fib, "--json"]);
    assert_eq!((&report["routes"]["ipv4"], &report["routes"]["ipv6"]), (&5.into(), &3.into()));
    assert_eq!(report["columns"][0]["name"], "asn");
    assert_eq!(
        (&report["columns"][0]["kind"], &report["columns"][0]["values"]),
        (&"int".into(), &8.into())
    );
    assert_eq!(report["sources"][0]["announced"], 8);
    let stats = json(&["stats", "-t", &fib, "--json"]);
    let name = report["engines"]["ipv4"]["name"].as_str().unwrap();
    assert_eq!(stats["v4"]["engines"][0]["engine"], format!("snapshot:{name}"));
    assert_eq!(report["file"]["bytes"], read(&fib).len());
    assert_eq!(report["file"]["digest"], stats["snapshot"]["digest"]);
}

/// Every command has a page, and shells know its options.
#[test]
fn manuals_and_completions() {
    let files = Files::new();
    let folder = files.path("man");
    done(&["man", &folder]);
    let pages: Vec<String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|page| page.unwrap().file_name().into_string().unwrap())
        .collect();
    for name in ["fibula.1", "fibula-lookup.1", "fibula-diff.1", "fibula-bench-filter.1"] {
        assert!(pages.iter().any(|page| page == name), "{name} in {pages:?}");
    }
    let page = std::fs::read_to_string(format!("{folder}/fibula-lookup.1")).unwrap();
    assert!(page.contains(".TH") && page.contains("aggregate"), "{page}");
    for shell in ["bash", "zsh", "fish"] {
        let script = done(&["completions", shell]).out;
        assert!(script.contains("lookup") && script.contains("aggregate"), "{shell}");
    }
    assert_eq!(execute(&["completions", "tcsh"]).code, 2);
}

/// Fractions and booleans are what they are in JSON, and written as they were in text.
#[test]
fn fractions_and_booleans() {
    let files = Files::new();
    let text = "prefix,lat,on,version\n10.0.0.0/8,47.25,true,1.10\n10.1.0.0/16,-8,false,2.0\n";
    let csv = files.with("table.csv", text);
    let fib = files.path("table.fib");
    let report = json(&["build", &csv, "-o", &fib, "--json"]);
    let kinds: Vec<_> = (0..3).map(|i| report["columns"][i]["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["float", "bool", "str"]);
    for table in [&csv, &fib] {
        let found = done(&["lookup", "-t", table, "--json", "10.1.2.3"]).out;
        assert_eq!(
            found,
            "{\"address\":\"10.1.2.3\",\"prefix\":\"10.1.0.0/16\",\"lat\":-8.0,\"on\":false,\"version\":\"2.0\"}\n"
        );
        assert_eq!(
            done(&["lookup", "-t", table, "--no-header", "10.0.0.1"]).out.trim_end(),
            "10.0.0.1\t10.0.0.0/8\t47.25\ttrue\t1.10"
        );
        let annotate =
            ["annotate", "-q", "-t", table, "--column", "a", "--default", "lat=0.5,on=true"];
        let rows = execute_with(
            &[&annotate[..], &["--format", "jsonl"]].concat(),
            "{\"a\":\"10.0.0.1\"}\n{\"a\":\"9.9.9.9\"}\n",
        )
        .out;
        assert_eq!(
            rows,
            "{\"a\":\"10.0.0.1\",\"a_lat\":47.25,\"a_on\":true,\"a_version\":\"1.10\"}\n\
             {\"a\":\"9.9.9.9\",\"a_lat\":0.5,\"a_on\":true,\"a_version\":null}\n"
        );
        let rows =
            execute_with(&[&annotate[..], &["--format", "csv"]].concat(), "a\n10.0.0.1\n").out;
        assert_eq!(rows, "a,a_lat,a_on,a_version\n10.0.0.1,47.25,true,1.10\n");
        let wrong = execute_with(&["annotate", "-t", table, "--default", "lat=x"], "10.0.0.1\n");
        assert!(wrong.code == 2 && wrong.err.contains("holds numbers"), "{}", wrong.err);
    }
    // What is told is checked, with its place.
    let built = execute(&["build", &csv, "-o", &fib, "--kind", "on=float", "--strict"]);
    assert_eq!(built.code, 2);
    assert!(
        built.err.contains("column on is not a number: \"true\"") && built.err.contains("record 2"),
        "{}",
        built.err
    );
    let built = json(&["build", &csv, "-o", &fib, "--kind", "version=float,lat=str", "--json"]);
    assert_eq!(
        (&built["columns"][0]["kind"], &built["columns"][2]["kind"]),
        (&"str".into(), &"float".into())
    );
}

/// A quote at the beginning of a value opens a field that may have several lines.
#[test]
fn quotes_come_back_from_every_text_format() {
    let files = Files::new();
    let rows =
        "prefix,n\n10.0.0.0/8,\"\"\"a\"\n11.0.0.0/8,b\n12.0.0.0/8,\"c\"\"\"\n13.0.0.0/8,\"\"\"\"\n";
    let csv = files.with("t.csv", rows);
    for name in ["t.tsv", "again.csv"] {
        let (out, fib) = (files.path(name), files.path("t.fib"));
        done(&["export", &csv, "-o", &out]);
        done(&["build", &out, "-o", &fib]);
        assert_eq!(done(&["export", &fib, "--to", "csv"]).out, rows, "{name}");
    }
}

#[test]
fn kinds_of_columns_that_are_not_there_are_named() {
    let files = Files::new();
    let csv = files.with("t.csv", "prefix,asn\n10.0.0.0/8,7\n");
    let note = "--kind nsa=... had no effect";
    let run = done(&["build", &csv, "--kind", "nsa=str,asn=str", "-o", &files.path("t.fib")]);
    assert!(run.err.contains(note) && !run.err.contains("asn="), "{}", run.err);
    assert!(run.out.contains("asn (str"), "{}", run.out);
}
