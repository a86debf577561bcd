//! Data through the command: annotate, gen traffic, pipes.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::process::{Command, Stdio};

use crate::common::{Files, done, execute, execute_with, read};

#[test]
fn columns_are_added_and_order_is_kept() {
    let files = Files::new();
    let fib = files.snapshot();
    let flows = files.with("flows.csv", "src,dst\n10.1.2.3,2001:db8::1\nx,10.9.9.9\n");
    let out = files.path("out.csv");
    let run = done(&[
        "annotate",
        "-t",
        &fib,
        "--column",
        "src,dst",
        "--add",
        "prefix,asn",
        &flows,
        "-o",
        &out,
    ]);
    assert!(run.out.is_empty());
    assert!(run.err.contains("2 rows (csv), 3 addresses, 100.0 % matched"), "{}", run.err);
    assert!(run.err.contains("1 cells with text that is not an address"), "{}", run.err);
    assert_eq!(
        String::from_utf8(read(&out)).unwrap(),
        "src,dst,src_prefix,src_asn,dst_prefix,dst_asn\n\
         10.1.2.3,2001:db8::1,10.1.2.0/24,64503,2001:db8::/32,64505\n\
         x,10.9.9.9,,,10.0.0.0/8,64501\n"
    );
}

#[test]
fn standard_input_is_guessed_and_the_table_may_be_text() {
    let files = Files::new();
    let csv = files.with("table.csv", crate::common::TABLE);
    let run = execute_with(
        &["annotate", "-t", &csv, "-q", "--add", "country"],
        "10.1.2.3 GET /\n10.0.0.1 PUT /\n",
    );
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    assert_eq!(run.out, "10.1.2.3 GET /\tNL\n10.0.0.1 PUT /\tDE\n");
    let json = "{\"ip\":\"10.1.2.3\"}\n";
    let run = execute_with(&["annotate", "-t", &csv, "-q", "--column", "ip", "--add", "asn"], json);
    assert_eq!(run.out, "{\"ip\":\"10.1.2.3\",\"ip_asn\":64503}\n");
}

#[test]
fn annotation_describes_the_fault() {
    let files = Files::new();
    let fib = files.snapshot();
    let flows = files.with("flows.csv", "src,dst\n10.1.2.3,x\n");
    for (args, word) in [
        (&["--column", "nope"][..], "nope"),
        (&["--add", "nope"], "country"),
        (&["--column", "dst", "--strict"], "\"x\" is not an address"),
        (&["--format", "pcap"], "neither pcap nor pcapng"),
        (&["--output", &flows], "input and output"),
    ] {
        let run = execute(&[&["annotate", "-t", &fib, &flows][..], args].concat());
        assert_eq!(run.code, 2, "{args:?}");
        assert!(run.err.contains(word), "{args:?}: {}", run.err);
    }
    assert_eq!(read(&flows), b"src,dst\n10.1.2.3,x\n");
}

#[test]
fn flows_are_generated_and_annotated() {
    let files = Files::new();
    let fib = files.snapshot();
    let flows = files.path("flows.csv");
    let args = ["gen", "traffic", "-t", &fib, "--format", "flows", "--count", "1000", "-o", &flows];
    done(&args);
    let first = read(&flows);
    done(&args);
    assert_eq!(read(&flows), first, "equal arguments, equal output");
    let text = String::from_utf8(first).unwrap();
    assert!(text.starts_with("time,src_ip,dst_ip,bytes\n2026-01-01T00:00:00."), "{}", &text[..100]);
    assert_eq!(text.lines().count(), 1001);
    assert_eq!(text.lines().filter(|line| line.contains("2001:db8")).count(), 250);
    let run = done(&["annotate", "-t", &fib, &flows, "--column", "src_ip,dst_ip"]);
    assert!(run.err.contains("1,000 rows (csv), 2,000 addresses, 100.0 % matched"), "{}", run.err);
    assert!(run.err.contains("src_ip_country"), "{}", run.err);
    assert_eq!(done(&["gen", "traffic", "-t", &fib, "--count", "0"]).out, "");
    let v6 = done(&["gen", "traffic", "-t", &fib, "--count", "9", "--family", "v6"]).out;
    assert!(v6.lines().count() == 9 && v6.lines().all(|line| line.contains(':')), "{v6}");
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let files = Files::new();
    let flows = files.with("flows.csv", format!("ip\n{}", "10.1.2.3\n".repeat(400_000)));
    for args in [
        &["annotate", "-q", "-t", "gen:v4:2024:100:1", "--threads", "3", &flows][..],
        &["gen", "traffic", "--count", "200000"],
        &["gen", "table", "v4:2024:50000:1"],
        &["bench", "--table", "gen:v4:2024:100:1", "--keys", "1000", "--runs", "1"],
        &["bench", "--help"],
    ] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_fibula"))
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let mut err = String::new();
        child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0), "{args:?}: {err}");
        assert_eq!(err, "", "{args:?}");
    }
}

/// What appends to its own input would never end.
#[cfg(unix)]
#[test]
fn input_and_output_are_compared_by_file_not_by_name() {
    let files = Files::new();
    let fib = files.snapshot();
    let flows = files.with("flows.csv", "src\n10.1.2.3\n");
    let link = files.path("link.csv");
    std::fs::hard_link(&flows, &link).unwrap();
    let append = || OpenOptions::new().append(true).open(&flows).unwrap();
    for (input, from) in [(&*flows, Stdio::null()), ("-", File::open(&flows).unwrap().into())] {
        let run = Command::new(env!("CARGO_BIN_EXE_fibula"))
            .args(["annotate", "-t", &fib, "--format", "csv", input])
            .stdin(from)
            .stdout(append())
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        let err = String::from_utf8(run.stderr).unwrap();
        assert_eq!(run.status.code(), Some(2), "{err}");
        assert!(err.contains("standard output are the same file"), "{err}");
    }
    let run = execute(&["annotate", "-t", &fib, &flows, "-o", &link]);
    assert!(run.code == 2 && run.err.contains("are the same file"), "{}", run.err);
    assert_eq!(read(&flows), b"src\n10.1.2.3\n");
}

/// A table that is not kept elsewhere would be lost.
#[test]
fn no_output_takes_the_place_of_a_table() {
    let files = Files::new();
    let fib = files.snapshot();
    let (a, b) =
        (files.with("2024-05-01.csv", "10.0.0.0/8,a\n"), files.with("b.csv", "10.0.0.0/8,b\n"));
    let flows = files.with("flows.csv", "src\n10.1.2.3\n");
    let layer = format!("x={b}");
    let vrps = files.with("vrps.csv", "ASN,IP Prefix,Max Length\nAS1,10.0.0.0/8,8\n");
    let routes = files.with("routes.csv", "10.0.0.0/8,64500\n");
    let as_one = ["--rpki", &vrps, "--origin", "value", "-o", &vrps];
    for args in [
        &["build", &a, &b, "-o", &b][..],
        &[&["build", &routes], &as_one[..]].concat(),
        &[&["annotate", "-t", &routes, &flows], &as_one[..]].concat(),
        &["rpki", &vrps, &routes, "--origin", "value", "-o", &vrps],
        &["build", "--layer", &layer, "-o", &b],
        &["build", "--as-of", &a, "-o", &a],
        &["export", &a, &b, "-o", &a],
        &["export", &fib, "--to", "csv", "-o", &fib],
        &["diff", &a, &b, "-o", &b],
        &["annotate", "-t", &a, &flows, "-o", &a],
        &["annotate", "--layer", &layer, &flows, "-o", &b],
        &["gen", "traffic", "--table", &a, "-o", &a],
    ] {
        let before = [&a, &b, &fib, &vrps].map(read);
        let run = execute(args);
        assert_eq!(run.code, 2, "{args:?}: {}", run.err);
        assert!(run.err.contains("is input and output"), "{args:?}: {}", run.err);
        assert_eq!([&a, &b, &fib, &vrps].map(read), before, "{args:?}");
    }
    // But for a snapshot that is made anew from itself.
    done(&["build", &fib, &b, "-o", &fib]);
    assert!(done(&["lookup", "-t", &fib, "10.9.9.9"]).out.ends_with("10.0.0.0/8\t-\t-\tb\n"));
    let run = execute_with(&["annotate", "-t", "-"], "10.0.0.0/8 a\n");
    assert!(run.code == 2 && run.err.contains("both the table and the data"), "{}", run.err);
}

#[test]
fn a_result_is_not_named_for_another_format() {
    let files = Files::new();
    let fib = files.snapshot();
    let flows = files.with("flows.csv", "src\n10.1.2.3\n");
    let json = files.with("flows.jsonl", "{\"src\":\"10.1.2.3\"}\n");
    for (data, name) in
        [(&flows, "x.parquet"), (&flows, "x.jsonl.gz"), (&json, "x.csv"), (&json, "x.arrow")]
    {
        let out = files.path(name);
        let run = execute(&["annotate", "-t", &fib, "--column", "src", data, "-o", &out]);
        assert!(run.code == 2 && run.err.contains("another format"), "{data} {name}: {}", run.err);
        assert!(!std::path::Path::new(&out).exists(), "{name}");
    }
    for (data, name) in [(&flows, "x.tsv"), (&flows, "x"), (&json, "x.log"), (&json, "x.json.gz")] {
        done(&["annotate", "-t", &fib, "--column", "src", data, "-o", &files.path(name)]);
    }
}

#[test]
fn damage_and_columns_are_reported_with_their_places() {
    let files = Files::new();
    let fib = files.snapshot();
    let flows = files.with("flows.csv", "src;dst\n10.1.2.3;x\n10.1.2.3;10.0.0.1\n10.0.0.1\n");
    let run = done(&["annotate", "-t", &fib, &flows, "--flows"]);
    for words in [
        "columns with addresses, by their first rows: src, dst",
        &format!("  the first: {flows}: line 2, column dst: \"x\" is not an address"),
        &format!("  the first: {flows}: record at line 4: 1 fields, the first row has 2"),
        "--flows had no effect",
    ] {
        assert!(run.err.contains(words), "{words}\n{}", run.err);
    }
    let json = files.with("a.json", "{\"ip\":\"10.1.2.3\"}\n");
    let run = execute(&["annotate", "-t", &fib, "--column", "Ip", &json]);
    assert!(run.code == 2 && run.err.contains("no row has a column Ip"), "{}", run.err);
}

#[test]
fn rows_are_compressed_as_the_file_is_called() {
    let files = Files::new();
    let fib = files.snapshot();
    let rows: String = (0..3000).map(|i| format!("10.1.2.{},{i}\n", i % 256)).collect();
    let flows = files.with("flows.csv", format!("src,n\n{rows}"));
    let plain = done(&["annotate", "-q", "-t", &fib, &flows]).out;
    for (name, magic) in [("out.csv.gz", &b"\x1f\x8b"[..]), ("out.csv.zst", b"\x28\xb5\x2f\xfd")] {
        let out = files.path(name);
        done(&["annotate", "-q", "-t", &fib, &flows, "-o", &out]);
        assert!(read(&out).starts_with(magic) && read(&out).len() * 3 < plain.len(), "{name}");
        // Read again: nothing is added but a column of the added ones' first.
        let again = done(&["annotate", "-q", "-t", &fib, "--column", "2", "--header", "no", &out]);
        assert_eq!(again.out.lines().count(), plain.lines().count(), "{name}");
    }
    let run = execute(&["annotate", "-t", &fib, &flows, "-o", &files.path("out.csv.xz")]);
    assert!(run.code == 2 && run.err.contains(".gz and .zst are written"), "{}", run.err);
}

#[test]
fn long_lines_are_shortened_in_messages() {
    let run = execute_with(&["lookup"], format!("{}\n", "x".repeat(1 << 20)));
    assert_eq!(run.code, 2);
    assert!(run.err.contains("xxx...\" is not an address") && run.err.len() < 400, "{}", run.err);
}

/// A log goes through, its lines with bad addresses come out; the summary as JSON.
#[test]
fn lines_of_a_log_are_chosen() {
    let files = Files::new();
    let fib = files.snapshot();
    let log = "a 10.1.2.3:22 x\nb [2001:db9::1]:5\nc\nd 10.9.9.9\n";
    let ask = ["annotate", "-t", &fib, "--scan", "--add", "country", "--json"];
    let matched = ["--only", "matched", "--where-not-there"];
    assert_eq!(execute_with(&[&ask[..], &matched].concat(), log).code, 2);
    // The table covers all of IPv4.
    let run = execute_with(&[&ask[..], &matched[..2]].concat(), log);
    assert_eq!((run.code, run.out.as_str()), (0, "a 10.1.2.3:22 x\tNL\nd 10.9.9.9\tDE\n"));
    let summary: serde_json::Value = serde_json::from_str(&run.err).unwrap();
    assert_eq!((&summary["rows"], &summary["left_out"]), (&4.into(), &2.into()));
    assert_eq!((&summary["matched"], &summary["empty"]), (&2.into(), &1.into()));
    assert_eq!(summary["top"][0]["column"], "1_country");
    let wrong = execute_with(&[&ask[..], &["--format", "csv"]].concat(), log);
    assert!(wrong.code == 2 && wrong.err.contains("--scan is for lines of text"), "{}", wrong.err);
}

/// Output, summary and the first error are the same with any number of threads, compressed or not, from a file or a
/// pipe.
#[test]
fn threads_do_not_matter() {
    let files = Files::new();
    let fib = files.snapshot();
    let mut csv = "ip,note\n".to_owned();
    // Several MiB: one thread reads the first.
    for i in 0..150_000u32 {
        let note = if i % 100 == 7 { "\"two\nlines, \"\"quoted\"\"\"" } else { "plain" };
        csv += &format!("10.{}.{}.{},{note}\r\n", i % 5, i / 5 % 256, i % 256);
    }
    csv += "not an address,last";
    let (path, gz) = (files.with("flows.csv", &csv), files.path("out.csv.gz"));
    let ask = ["annotate", "-t", &fib, "--column", "ip", "--json"];
    let one = done(&[&ask[..], &["--threads", "1", &path]].concat());
    let first = "line 151502, column ip: \\\"not an address\\\" is not an address";
    assert!(one.err.contains(first), "{}", one.err);
    let untimed = |err: &str| {
        let mut json: serde_json::Value = serde_json::from_str(err).unwrap();
        for key in ["seconds", "file", "output"] {
            json.as_object_mut().unwrap().remove(key);
        }
        json
    };
    for threads in ["2", "3"] {
        let several = done(&[&ask[..], &["--threads", threads, &path]].concat());
        assert!(several.out == one.out, "{threads} threads");
        assert_eq!(untimed(&several.err), untimed(&one.err));
        let piped = execute_with(
            &[&ask[..], &["--threads", threads, "--format", "csv", "-"]].concat(),
            csv.clone(),
        );
        assert!(piped.code == 0 && piped.out == one.out, "{}", piped.err);
        done(&[&ask[..], &["--threads", threads, &path, "-o", &gz]].concat());
        let again = ["annotate", "-q", "-t", &fib, "--column", "ip", "--add", "prefix", &gz];
        let (again, direct) = (done(&again), files.with("plain.csv", &one.out));
        let direct =
            done(&["annotate", "-q", "-t", &fib, "--column", "ip", "--add", "prefix", &direct]);
        assert!(again.out == direct.out, "compressed, {threads} threads");
        let strict = execute(&[&ask[..], &["--threads", threads, "--strict", &path]].concat());
        assert!(
            strict.code == 2 && strict.err.contains("line 151502, column ip"),
            "{}",
            strict.err
        );
    }
}

/// Half a download of a JSON array is no array: the command fails, and leaves no file.
#[test]
fn a_json_array_that_is_cut_off_is_a_failure() {
    let files = Files::new();
    let csv = files.with("nets.csv", "10.0.0.0/8,hq\n");
    let (json, out) = (files.with("a.json", "[{\"ip\":\"10.1.2.3\"},\n"), files.path("out.json"));
    let run = execute(&["annotate", "-t", &csv, "--column", "ip", &json, "-o", &out]);
    assert_eq!(run.code, 2, "{}", run.err);
    assert!(run.err.contains("a.json: line 2: the input ends within a JSON array"), "{}", run.err);
    assert!(!std::path::Path::new(&out).exists());
}
