//! Files of several dates: `build --as-of`, `annotate --time`, `lookup --at` and `--history`.

use std::fs;

use serde_json::Value;

use crate::common::{Files, done, execute, execute_with, json};

const MAY_1: &str = "prefix,asn\n10.0.0.0/8,64500\n10.1.0.0/16,64501\n2001:db8::/32,64502\n";
const MAY_2: &str =
    "prefix,asn,country\n10.0.0.0/8,64500,CH\n10.1.2.0/24,64503,AT\n2001:db8::/32,64502,\n";
const MAY_3: &str = "prefix,asn\n10.0.0.0/8,64500\n10.1.0.0/16,64501\n";

/// Three tables in a folder, and the file of them.
fn built() -> (Files, String) {
    let files = Files::new();
    fs::create_dir_all(files.path("tables/2024")).unwrap();
    files.with("tables/2024-05-01.csv", MAY_1);
    files.with("tables/2024/20240502-asn.csv", MAY_2);
    files.with("tables/2024/rib.20240503.0000.csv", MAY_3);
    files.with("tables/.hidden", "something else");
    let fib = files.path("year.fib");
    done(&["build", "--as-of", &files.path("tables"), "-o", &fib]);
    (files, fib)
}

const ROWS: &str = "ts,src\n\
    2024-04-30T23:59:59Z,10.1.2.3\n\
    2024-05-01,10.1.2.3\n\
    2024-05-02 01:00+02:00,10.1.2.3\n\
    1714608000,10.1.2.3\n\
    1714694400000,10.1.2.3\n\
    yesterday,10.1.2.3\n\
    ,10.1.2.3\n\
    2030-01-01,2001:db8::1\n";

#[test]
fn each_row_is_looked_up_in_the_table_of_its_time() {
    let (files, fib) = built();
    let csv = files.with("rows.csv", ROWS);
    let asked = ["annotate", "--table", &fib, "--column", "src", "--time", "ts"];
    let run = done(&[&asked[..], &["--add", "prefix,asn,country", &csv]].concat());
    assert_eq!(
        run.out,
        "ts,src,src_prefix,src_asn,src_country\n\
         2024-04-30T23:59:59Z,10.1.2.3,,,\n\
         2024-05-01,10.1.2.3,10.1.0.0/16,64501,\n\
         2024-05-02 01:00+02:00,10.1.2.3,10.1.0.0/16,64501,\n\
         1714608000,10.1.2.3,10.1.2.0/24,64503,AT\n\
         1714694400000,10.1.2.3,10.1.0.0/16,64501,\n\
         yesterday,10.1.2.3,,,\n\
         ,10.1.2.3,,,\n\
         2030-01-01,2001:db8::1,,,\n"
    );
    for line in [
        "8 rows (csv), 5 addresses, 80.0 % matched",
        "1 row before the first table, that of 2024-05-01: nothing is added to it",
        "2 rows without a time that can be read: nothing is added to them",
        "rows.csv: line 7, column ts: \"yesterday\" is not a time",
    ] {
        assert!(run.err.contains(line), "{}", run.err);
    }
    let report = done(&[&asked[..], &["--json", &csv]].concat()).err;
    let report: Value = serde_json::from_str(report.trim()).unwrap();
    assert_eq!((&report["before"], &report["untimed"]), (&1.into(), &2.into()));

    let strict = execute(&[&asked[..], &["--strict", &csv]].concat());
    assert_eq!(strict.code, 2);
    assert!(strict.err.contains("line 7, column ts"), "{}", strict.err);
    // Numbers alone, in a unit that is given.
    let micros = "ts,src\n1714608000000000,10.1.2.3\n2024-05-02,10.1.2.3\n";
    let args = [&asked[..], &["--time-format", "us", "--format", "csv", "-"]].concat();
    let run = execute_with(&args, micros);
    assert_eq!(run.out.lines().nth(1), Some("1714608000000000,10.1.2.3,64503,AT"));
    assert_eq!(run.out.lines().nth(2), Some("2024-05-02,10.1.2.3,,"));
    let lines = "{\"ts\":1714608000.5,\"src\":\"10.1.2.3\"}\n";
    let run =
        execute_with(&[&asked[..], &["--add", "asn", "--format", "jsonl", "-"]].concat(), lines);
    assert_eq!(run.out, "{\"ts\":1714608000.5,\"src\":\"10.1.2.3\",\"src_asn\":64503}\n");
}

#[test]
fn one_table_of_several_is_named() {
    let (files, fib) = built();
    let csv = files.with("rows.csv", "src\n10.1.2.3\n");
    let newest = "year.fib: the newest of 3 tables, that of 2024-05-03 (--at TIME chooses another)";
    for args in [
        &["lookup", "--table", &fib, "10.1.2.3"][..],
        &["annotate", "--table", &fib, &csv],
        &["export", &fib, "-o", &files.path("out.csv")],
        &[
            "lookup",
            "--table",
            &format!("{csv2},{fib}", csv2 = files.with("more.csv", MAY_3)),
            "10.1.2.3",
        ],
    ] {
        let run = done(args);
        assert!(run.err.contains(newest), "{args:?}: {}", run.err);
    }
    let at =
        |time: &str| execute(&["lookup", "--table", &fib, "--no-header", "--at", time, "10.1.2.3"]);
    assert_eq!(at("2024-05-01").out, "10.1.2.3\t10.1.0.0/16\t64501\t-\n");
    assert_eq!(at("2024-05-01").err, "");
    let run = at("2024-05-02T12:00:00Z");
    assert_eq!(run.out, "10.1.2.3\t10.1.2.0/24\t64503\tAT\n");
    assert!(run.err.contains("the table of 2024-05-02"), "{}", run.err);
    let run = at("2024-04-30");
    assert_eq!(run.code, 2);
    assert!(run.err.contains("its first table is that of 2024-05-01, 2024-04-30 is before it"));
    assert_eq!(at("soon").code, 2);
    // Two tables of which one has dates.
    let may = files.with("may.csv", MAY_2);
    assert_eq!(execute(&["diff", "--at", "2024-05-02", &fib, &may]).code, 0);
    assert_eq!(execute(&["diff", "--at", "2024-05-02", &may, &may]).code, 2);
    // Where there are no dates, none can be asked for.
    let one = files.snapshot();
    for table in [one.as_str(), csv.as_str(), "embedded"] {
        let run = execute(&["lookup", "--table", table, "--at", "2024-05-01", "10.1.2.3"]);
        assert_eq!(run.code, 2, "{table}: {}", run.err);
        assert!(run.err.contains("date"), "{}", run.err);
    }
    let run = execute(&["annotate", "--table", &one, "--time", "1", &csv]);
    assert_eq!(run.code, 2);
    assert!(run.err.contains("--time needs a file of several dates"), "{}", run.err);
}

#[test]
fn values_over_time() {
    let (_files, fib) = built();
    let run =
        execute(&["lookup", "--table", &fib, "--history", "10.1.2.3", "2001:db8::1", "8.8.8.8"]);
    assert_eq!(run.code, 1, "{}", run.err);
    assert_eq!(
        run.out,
        "address\tsince\tprefix\tasn\tcountry\n\
         10.1.2.3\t2024-05-01\t10.1.0.0/16\t64501\t-\n\
         10.1.2.3\t2024-05-02\t10.1.2.0/24\t64503\tAT\n\
         10.1.2.3\t2024-05-03\t10.1.0.0/16\t64501\t-\n\
         2001:db8::1\t2024-05-01\t2001:db8::/32\t64502\t-\n\
         2001:db8::1\t2024-05-03\t-\t-\t-\n\
         8.8.8.8\t2024-05-01\t-\t-\t-\n"
    );
    let run = done(&["lookup", "--table", &fib, "--history", "--json", "10.200.0.0"]);
    let lines: Vec<Value> =
        run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3);
    assert_eq!((&lines[1]["since"], &lines[1]["country"]), (&"2024-05-02".into(), &"CH".into()));
    for wrong in [
        &["10.0.0.0/8"][..],
        &["x"],
        &["--at", "2024-05-01", "10.0.0.1"],
        &["--rpki", &fib, "10.0.0.1"],
        &["--aspa", &fib, "10.0.0.1"],
    ] {
        assert_eq!(execute(&[&["lookup", "--table", &fib, "--history"], wrong].concat()).code, 2);
    }
}

#[test]
fn what_is_in_the_file() {
    let (files, fib) = built();
    let run = done(&["stats", "--table", &fib]);
    for line in
        ["tables   3, 2024-05-01 to 2024-05-03", "3 IPv4, 1 IPv6 in any, 10 changes", "timelines:"]
    {
        assert!(run.out.contains(line), "{}", run.out);
    }
    let stats = json(&["stats", "--table", &fib, "--json"]);
    assert_eq!(stats["dates"].as_array().unwrap().len(), 3);
    assert_eq!(stats["dates"][1]["at"], "2024-05-02");
    assert_eq!(stats["changes"]["ipv4"], 8);
    let of_day = json(&["stats", "--table", &fib, "--at", "2024-05-02", "--json"]);
    assert_eq!(of_day["v4"]["prefixes"], 2);
    let report = json(&["build", "--as-of", &files.path("tables"), "-o", &fib, "--json"]);
    assert_eq!(report["dates"], stats["dates"]);
    // A file of several dates is added to, and equal tables are equal files.
    let (two, three) = (files.path("two.fib"), files.path("three.fib"));
    let of = |name: &str| files.path(&format!("tables/{name}"));
    let days =
        [of("2024-05-01.csv"), of("2024/20240502-asn.csv"), of("2024/rib.20240503.0000.csv")];
    done(&["build", "--as-of", &days[1], &days[0], "-o", &two]);
    done(&["build", "--as-of", &days[2], &two, "-o", &three]);
    let digest = |fib: &str| json(&["stats", "--table", fib, "--json"])["changes"].clone();
    assert_eq!(digest(&three), digest(&fib));
    let history = |fib: &str| execute(&["lookup", "--table", fib, "--history", "10.1.2.3"]).out;
    assert_eq!(history(&three), history(&fib));
    let run = execute(&["build", "--as-of", &three, &days[1], "-o", &two]);
    assert_eq!(run.code, 2);
    assert!(run.err.contains("not newer than the newest"), "{}", run.err);
}

#[test]
fn dates_that_are_missing_or_ambiguous_are_refused() {
    let files = Files::new();
    let out = files.path("out.fib");
    let refused = |args: &[&str], parts: &[&str]| {
        let run = execute(&[&["build", "--as-of", "-o", &out], args].concat());
        assert_eq!(run.code, 2, "{args:?}: {}", run.err);
        for part in parts {
            assert!(run.err.contains(part), "{args:?}: {}", run.err);
        }
        assert!(!fs::exists(&out).unwrap());
    };
    let plain = files.with("routes.csv", MAY_1);
    refused(&[&plain], &["routes.csv: no date in its name", "2024-05-01="]);
    let several = files.with("20240501-20240531.csv", MAY_1);
    refused(&[&several], &["20240501-20240531.csv", "two dates, 20240501 and 20240531"]);
    let (one, other) =
        (files.with("2024-05-01.csv", MAY_1), files.with("x20240501.0000.csv", MAY_2));
    refused(
        &[&one, &other],
        &["2024-05-01.csv and", "are both of 2024-05-01", "2024-05-01=FILE,FILE"],
    );
    let text = files.with("2024-05-02.csv", "prefix,asn\n10.0.0.0/8,none\n10.0.0.0/9,some\n");
    refused(&[&one, &text], &["2024-05-02.csv: text in the integer column asn", "--kind"]);
    fs::create_dir(files.path("empty")).unwrap();
    refused(&[&files.path("empty")], &["no files in this folder"]);
    refused(&[&files.path("2024-05-09.csv")], &["2024-05-09.csv"]);
    refused(&[&files.with("2024-05-08.csv", "nothing\n")], &["2024-05-08.csv"]);
    // A date that is given, two files as one table, and text by decree.
    let both = format!("2024-05-02={plain},{other}");
    done(&["build", "--as-of", &one, &both, "-o", &out]);
    done(&["build", "--as-of", &one, &text, "--kind", "asn=str", "-o", &out]);
    let run = done(&["lookup", "--table", &out, "--history", "10.0.0.1", "--no-header"]);
    assert_eq!(
        run.out,
        "10.0.0.1\t2024-05-01\t10.0.0.0/8\t64500\n10.0.0.1\t2024-05-02\t10.0.0.0/9\tsome\n"
    );
    let run = execute(&["build", "--as-of", "--layer", "a=embedded", "-o", &out]);
    assert_eq!(run.code, 2);
}

/// A RIB without a date in its name has that of its first record.
#[test]
fn ribs_know_their_date() {
    let files = Files::new();
    let data =
        "/../../testdata/mrt/bgpkit-ripe_rrc00_2000.01_bview.20000111.0032.first-20-records.gz";
    let data = fs::read(format!("{}{data}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let (rib, out) = (files.with("rib.gz", data), files.path("out.fib"));
    done(&["build", "--as-of", &rib, "--columns", "origin_as", "-o", &out]);
    let stats = json(&["stats", "--table", &out, "--json"]);
    let source = json(&["stats", "--table", &rib, "--json"])["sources"][0]["date"].clone();
    let (at, date) = (stats["dates"][0]["at"].as_str().unwrap(), source.as_str().unwrap());
    assert_eq!((&at[..10], &date[..10]), ("2000-01-11", "2000-01-11"));
}

/// The first section of `docs/time.md`: each block of commands prints what the block behind it says, spaces aside.
#[cfg(unix)]
#[test]
fn the_page_describes_the_behaviour() {
    let page = include_str!("../../../docs/time.md");
    let section = page.split("\n## ").nth(1).unwrap();
    let blocks: Vec<_> = section.split("```").skip(1).step_by(2).collect();
    let files = Files::new();
    let program = assert_cmd::cargo::cargo_bin("fibula");
    let path = std::env::var("PATH").unwrap();
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let mut compared = 0;
    for (at, block) in blocks.iter().enumerate() {
        let Some(script) = block.strip_prefix("sh\n") else { continue };
        let run = std::process::Command::new("sh")
            .args(["-ec", script])
            .current_dir(files.path("."))
            .env("PATH", format!("{}:{path}", program.parent().unwrap().display()))
            .output()
            .unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let (out, err) = (text(run.stdout), text(run.stderr));
        assert!(run.status.success(), "{script}{err}");
        let mut behind = blocks[at + 1..].iter().take_while(|next| !next.starts_with("sh\n"));
        if let Some(expected) = behind.next() {
            assert_eq!(words(&out), words(expected), "{script}");
            compared += 1;
        }
        if let Some(result) = behind.next() {
            assert!(err.contains(result.trim()), "{script}{err}");
            compared += 1;
        }
    }
    assert_eq!(compared, 4);
}

/// A file that an earlier program wrote.
#[test]
fn files_of_earlier_programs_open() {
    let fib = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/snapshots/three-days.fib");
    let (_files, ours) = built();
    let history = |fib: &str| execute(&["lookup", "--table", fib, "--history", "10.1.2.3"]).out;
    assert_eq!(history(fib), history(&ours));
}

#[test]
fn damaged_files_are_reported() {
    let (files, fib) = built();
    let mut bytes = fs::read(&fib).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    let damaged = files.with("damaged.fib", &bytes);
    let cut = files.with("cut.fib", &bytes[..middle]);
    let csv = files.with("rows.csv", ROWS);
    for file in [&damaged, &cut] {
        for args in [
            &["lookup", "--table", file, "10.1.2.3"][..],
            &["lookup", "--table", file, "--history", "10.1.2.3"],
            &["annotate", "--table", file, "--time", "ts", &csv],
            &["stats", "--table", file],
            &["build", "--as-of", file, "2024-06-01=embedded", "-o", &files.path("new.fib")],
        ] {
            let run = execute(args);
            assert_eq!(run.code, 2, "{args:?}");
            assert!(run.err.contains(".fib: "), "{args:?}: {}", run.err);
        }
    }
}
