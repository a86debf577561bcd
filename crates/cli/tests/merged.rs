//! Prefixes that sources have twice, columns that list what all of them say, and snapshots of older programs.

use fibula_core::{Attributes, Change, Update, Value};
use fibula_rib::{BuilderOptions, ColumnKind, ScalarType, TableBuilder};

use crate::common::{Files, cuts, done, execute, json, read};

#[test]
fn replaced_routes_are_reported_and_named() {
    let files = Files::new();
    let a = files.with("a.csv", "prefix,name\n10.0.0.0/8,x\n11.0.0.0/8,x\n\n10.0.0.0/8,y\n");
    let b = files.with("b.txt", "# later\n11.0.0.0/8 z\n");
    let fib = files.path("t.fib");
    let built = done(&["build", &a, &b, "-o", &fib]);
    let repeats = format!("{a}: 1 record repeats a prefix of the same source");
    let replaces = format!("{b}: 1 prefix of earlier sources replaced");
    for line in [&*repeats, &*replaces, "-v names them"] {
        assert!(built.err.contains(line), "{line:?} in {}", built.err);
    }
    assert!(!built.err.contains("line 5"), "{}", built.err);
    for command in [
        &["build", &*a, &*b, "-v", "-o", &*fib][..],
        &["lookup", "-v", "-t", &format!("{a},{b}"), "10.0.0.1"],
    ] {
        let messages = done(command).err;
        for line in [
            format!("10.0.0.0/8: line 5 of {a} replaces line 2 of {a}"),
            format!("11.0.0.0/8: line 2 of {b} replaces line 3 of {a}"),
        ] {
            assert!(messages.contains(&line), "{line:?} in {messages}");
        }
    }
    let stats = json(&["stats", "-t", &fib, "--json"]);
    assert_eq!(
        (&stats["sources"][0]["repeated"], &stats["sources"][1]["replaced"]),
        (&1.into(), &1.into())
    );
}

#[test]
fn strict_refuses_a_prefix_that_is_there_twice() {
    let files = Files::new();
    let (fib, fine) = (files.path("t.fib"), files.with("fine.csv", "10.0.0.0/8,x\n11.0.0.0/8,x\n"));
    done(&["build", &fine, &fine, "--strict", "-o", &fib]);
    for (name, text, earlier, later) in [
        ("twice.csv", "10.0.0.0/8,x\n11.0.0.0/8,y\n10.0.0.0/8,x\n", "line 1", "line 3"),
        // An address is its host route, a mapped prefix the one that it stands for.
        ("host.txt", "10.0.0.1 x\n10.0.0.1/32 y\n", "line 1", "line 2"),
        ("mapped.txt", "10.0.0.0/8 x\n#\n::ffff:10.0.0.0/104 y\n", "line 1", "line 3"),
        (
            "range.csv",
            "10.0.0.0-10.0.0.9,x\n10.0.0.2-10.0.0.3,y\n10.0.0.0-10.0.0.9,z\n",
            "line 1",
            "line 3",
        ),
        ("list.json", "[\"10.0.0.0/8\", \"11.0.0.0/8\", \"10.0.0.0/8\"]", "record 1", "record 3"),
        (
            "delegated-x",
            "apnic|AU|ipv4|1.0.0.0|256|20110811|assigned\napnic|AU|ipv4|1.0.0.0|256|20110811|assigned\n",
            "line 1",
            "line 2",
        ),
    ] {
        let file = files.with(name, text);
        let refused = execute(&["build", &file, "--strict", "-o", &fib]);
        assert_eq!(refused.code, 2, "{name}: {}", refused.err);
        let places = format!("twice, on {earlier} and on {later}");
        assert!(refused.err.contains(&places), "{name}: {}", refused.err);
        // Without it, or with a column that lists all, it is taken.
        done(&["build", &file, "-o", &fib]);
        done(&["build", &file, "--strict", "--tags", "list", "-o", &fib]);
    }
    // What is no repetition: narrower ranges, routes of a kernel, updates of peers.
    for (name, text) in [
        ("nested.csv", "10.0.0.0-10.0.0.9,x\n10.0.0.8-10.0.0.9,y\n"),
        (
            "ip-route",
            "default via 192.0.2.1 dev a metric 9\ndefault via 192.0.2.2 dev b metric 5\n",
        ),
        (
            "bgpdump",
            "BGP4MP|1|A|192.0.2.9|1|10.0.0.0/8|1|IGP|192.0.2.9|0|0||NAG||\n\
                     BGP4MP|2|A|192.0.2.9|1|10.0.0.0/8|1 2|IGP|192.0.2.9|0|0||NAG||\n",
        ),
    ] {
        let file = files.with(name, text);
        let taken = done(&["build", &file, "--strict", "-o", &fib]);
        assert!(!taken.err.contains("repeat"), "{name}: {}", taken.err);
    }
}

#[test]
fn tags_show_the_lists_of_a_prefix() {
    let files = Files::new();
    let drop = files.with("drop.txt", "10.0.0.0/8\n192.0.2.0/24\n");
    let feed =
        files.with("feed.csv", "prefix,list,score\n10.0.0.0/8,botnet,1\n10.0.0.0/8,spam,2\n");
    let fib = files.path("t.fib");
    let built = done(&["build", &drop, &feed, "--tags", "list", "-o", &fib]);
    let stands_in = format!("{drop}: no column list, its values are the file's name: drop");
    assert!(built.err.contains(&stands_in), "{}", built.err);
    let rows = "10.0.0.1\t10.0.0.0/8\tdrop;botnet;spam\t2\n192.0.2.1\t192.0.2.0/24\tdrop\t-\n";
    let ask = ["--no-header", "10.0.0.1", "192.0.2.1"];
    assert_eq!(done(&[&["lookup", "-t", &fib][..], &ask].concat()).out, rows);
    let both = format!("{drop},{feed}");
    let direct = [&["lookup", "-t", &both, "--tags", "list"][..], &ask].concat();
    assert_eq!(done(&direct).out, rows);
    let data = files.with("data.csv", "ip\n10.9.9.9\n192.0.2.9\n");
    let annotated = done(&["annotate", "-t", &both, "--tags", "list", "-q", &data]).out;
    assert_eq!(annotated, "ip,ip_list,ip_score\n10.9.9.9,drop;botnet;spam,2\n192.0.2.9,drop,\n");
    let layered = format!("l={both}");
    let annotated = done(&["annotate", "--layer", &layered, "--tags", "list", "-q", &data]).out;
    assert!(annotated.contains("10.9.9.9,drop;botnet;spam,2"), "{annotated}");
    // A snapshot is a source like others.
    let more = files.with("more.txt", "10.0.0.0/8\n");
    let three = format!("{fib},{more}");
    let out = done(&["lookup", "-t", &three, "--tags", "list", "--no-header", "10.0.0.1"]).out;
    assert_eq!(out, "10.0.0.1\t10.0.0.0/8\tdrop;botnet;spam;more\t-\n");
    let out = done(&["lookup", "-t", &fib, "--tags", "list", "--no-header", "10.0.0.1"]).out;
    assert_eq!(out, "10.0.0.1\t10.0.0.0/8\tdrop;botnet;spam\t2\n");
}

#[test]
fn all_peers_need_a_column_that_lists_their_values() {
    let files = Files::new();
    let line = |peer: u8, origin: u32| {
        format!(
            "TABLE_DUMP2|1|B|192.0.2.{peer}|{peer}|10.0.0.0/8|{peer} {origin}|IGP|192.0.2.9|0|0||NAG||\n"
        )
    };
    let rib = files.with("rib", line(1, 64500) + &line(2, 64501) + &line(3, 64500));
    let fib = files.path("t.fib");
    let refused = execute(&["build", &rib, "--peer", "all", "-o", &fib]);
    assert_eq!(refused.code, 2);
    assert!(refused.err.contains("--tags origin_as"), "{}", refused.err);
    let ask = ["lookup", "-t", &*rib, "--peer", "all", "--tags", "origin_as", "--json", "10.0.0.1"];
    let out = done(&ask).out;
    assert!(out.contains(r#""origin_as":"64500;64501""#), "{out}");
    assert!(out.contains(r#""peer":"192.0.2.1""#), "{out}");
    let data = files.with("data.txt", "10.0.0.1\n");
    let out = done(&[
        "annotate", "-t", &rib, "--peer", "all", "--tags", "peer", "--add", "peer", "-q", &data,
    ]);
    assert!(out.out.contains("192.0.2.1;192.0.2.2;192.0.2.3"), "{}", out.out);
}

#[test]
fn a_table_of_annotate_is_read_as_that_of_build() {
    let files = Files::new();
    let data = files.with("data.txt", "10.0.0.1\n");
    let empty = files.with("empty.txt", "# nothing\n");
    assert_eq!(execute(&["annotate", "-t", &empty, &data]).code, 2);
    done(&["annotate", "-t", &empty, "--allow-empty", &data]);
    let cut = cuts().join("formats/two-bits.txt.gz");
    let cut = cut.to_str().expect("a plain path");
    assert_eq!(execute(&["annotate", "-t", cut, &data]).code, 2);
    let taken = done(&["annotate", "-t", cut, "--salvage", &data]);
    assert!(taken.err.contains("damaged"), "{}", taken.err);
}

#[test]
fn snapshots_are_mapped_or_read_as_requested() {
    let files = Files::new();
    let fib = files.snapshot();
    let copy = files.with("copy.fib", read(&fib));
    let data = files.with("data.txt", "10.1.2.3\n");
    for load in ["auto", "map", "read"] {
        for table in [&fib, &copy] {
            let out = done(&["lookup", "-t", table, "--load", load, "--no-header", "10.1.2.3"]).out;
            assert_eq!(out, "10.1.2.3\t10.1.2.0/24\t64503\tNL\n", "{load}");
            done(&["annotate", "-t", table, "--load", load, "-q", &data]);
            done(&["stats", "-t", table, "--load", load]);
            done(&["verify", "--snapshot", table, "--load", load, "--random", "100"]);
        }
    }
    let wrong = execute(&["lookup", "-t", &fib, "--load", "mmap", "10.1.2.3"]);
    assert!(wrong.code == 2 && wrong.err.contains("auto, map or read"), "{}", wrong.err);
}

/// Written by the program of commit cb559f2 of 2026-11-22, from the same 710 routes.
#[test]
fn snapshots_of_an_older_program_are_opened() {
    let files = Files::new();
    for engine in ["runmap", "dxr18"] {
        let packed = cuts().join(format!("snapshots/cb559f2-{engine}.fib.xz"));
        let mut snapshot = Vec::new();
        let file = read(packed);
        std::io::Read::read_to_end(&mut lzma_rust2::XzReader::new(&file[..], true), &mut snapshot)
            .expect("xz");
        let fib = files.with(&format!("{engine}.fib"), snapshot);
        let verified = done(&["verify", "--snapshot", &fib, "--random", "1000"]).out;
        assert!(verified.contains("answers agree with its routes"), "{verified}");
        let stats = json(&["stats", "-t", &fib, "--json"]);
        assert_eq!(stats["v4"]["prefixes"], 507);
        assert_eq!(stats["v6"]["prefixes"], 203);
        assert_eq!(stats["snapshot"]["table_digest"], "f32079504021af46416e4669a70dda72");
        // With the stored engines, which annotate takes.
        let data = files.with("data.csv", "ip\n10.1.2.200\n192.0.2.7\n2001:db8:1::1\n");
        let annotated = done(&["annotate", "-t", &fib, "--add", "prefix,asn,country", &data]).out;
        assert_eq!(
            annotated,
            "ip,ip_prefix,ip_asn,ip_country\n10.1.2.200,10.1.2.128/25,64507,\n\
             192.0.2.7,192.0.2.0/24,64508,PL\n2001:db8:1::1,2001:db8:1::1/128,64507,FR\n"
        );
    }
}

/// Booleans, fractions and arrays of an mmdb file are what they were after reading and writing it.
#[test]
fn types_of_an_mmdb_file_survive() {
    let files = Files::new();
    let names = ["on", "place.latitude", "parts.0.code", "parts.1.code", "asn"];
    let columns = names.map(|name| {
        (name.to_owned(), if name == "asn" { ColumnKind::Int } else { ColumnKind::Str })
    });
    let types = [("on", ScalarType::Bool), ("place.latitude", ScalarType::Double)];
    let mut builder = TableBuilder::new(BuilderOptions::default());
    builder.types_of_next(&types.map(|(name, of)| (name.to_owned(), of)));
    builder.begin_source("made", "mmdb", &columns, false, None);
    let text = Value::Str;
    for (prefix, values) in [
        ("10.0.0.0/8", [text("true"), text("47.5"), text("a"), text("b"), Value::Int(1)]),
        ("2001:db8::/32", [text("false"), text("-0.25"), text("a"), Value::Null, Value::Int(2)]),
    ] {
        let change = Change::Announce(Attributes::Values(&values));
        builder.apply(&Update::new(prefix.parse().expect("a prefix"), change));
    }
    let mut bytes = Vec::new();
    let table = builder.finish().expect("a table");
    fibula_export::mmdb(&table, "fibula", 1, &mut bytes).expect("it can be written");
    // Up to the metadata, which has the time.
    let body = |bytes: &[u8]| {
        let mark = b"\xab\xcd\xefMaxMind.com";
        let at = bytes.windows(mark.len()).position(|part| part == mark).expect("metadata");
        bytes[..at].to_vec()
    };
    let made = files.with("made.mmdb", &bytes);
    let (fib, again) = (files.path("t.fib"), files.path("again.mmdb"));
    done(&["build", &made, "-o", &fib]);
    done(&["export", &fib, "-o", &again]);
    assert!(body(&read(&again)) == body(&bytes), "the trees and the data differ");
    let row = done(&["lookup", "-t", &fib, "--no-header", "10.0.0.1"]).out;
    assert_eq!(row, "10.0.0.1\t10.0.0.0/8\ttrue\t47.5\ta\tb\t1\n");
}
