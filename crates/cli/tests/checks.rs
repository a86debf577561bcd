//! Verifying and measuring: verify, bench.

use std::collections::HashMap;

use crate::common::{Files, execute, fibula, json};

#[test]
fn every_engine_and_isa_is_verified() {
    let files = Files::new();
    let fib = files.snapshot();
    let rows = json(&["verify", "--table", &fib, "--engines", "all", "--random", "3000", "--json"]);
    let rows = rows.as_array().unwrap();
    for row in rows {
        let keys: Vec<&str> = row.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, ["engine", "isa", "family", "probes", "wrong"]);
        assert_eq!(row["wrong"], 0);
        assert!(row["probes"].as_u64().unwrap() > 3000, "{row}");
    }
    let has = |engine: &str, isa: &str, family: &str| {
        rows.iter().any(|r| r["engine"] == engine && r["isa"] == isa && r["family"] == family)
    };
    for (engine, family) in [
        ("dxr16", "v4"),
        ("dxr20", "v4"),
        ("radix", "v4"),
        ("planb", "v4"),
        ("planb", "v6"),
        ("lower-bound", "v6"),
        ("snapshot:runmap", "v4"),
        ("snapshot:wideleaf", "v6"),
        ("snapshot:routes", "v6"),
    ] {
        assert!(has(engine, "scalar", family), "{engine} {family}");
    }
}

#[test]
fn a_snapshot_is_verified_in_one_line() {
    let files = Files::new();
    let fib = files.snapshot();
    let verify = ["verify", "--snapshot", &fib, "--random", "3000"];
    let good = execute(&verify);
    assert_eq!((good.code, good.out.lines().count()), (0, 1), "{}{}", good.out, good.err);
    assert!(good.out.contains("checksums agree") && good.out.contains("answers agree"));
    let digest = good.out.split("digest ").nth(1).unwrap().split(',').next().unwrap();
    let same = execute(&[&verify[..], &["--digest", digest]].concat());
    assert!(same.code == 0 && same.out.contains("as expected"), "{}", same.out);
    let other = execute(&[&verify[..], &["--digest", &"0".repeat(32)]].concat());
    assert!(other.code == 1 && other.out.contains("EXPECTED 0000"), "{}", other.out);
    let rows = json(&[&verify[..], &["--json"]].concat());
    assert_eq!((&rows["digest"], &rows["agrees"]), (&digest.into(), &true.into()));

    let mut bytes = std::fs::read(&fib).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    let damaged = execute(&["verify", "--snapshot", &files.with("damaged.fib", bytes)]);
    assert!(damaged.code == 2 && damaged.err.contains("checksum differs"), "{}", damaged.err);
    assert_eq!(execute(&["verify", "--snapshot", &fib, "--digest", "12"]).code, 2);
}

#[test]
fn forced_and_chosen_instruction_sets() {
    let verify =
        ["verify", "-t", "gen:v6:2024:500:1", "--engines", "planb", "--random", "10", "--json"];
    let isas = |args: &[&str], forced: Option<&str>| -> Vec<String> {
        let mut command = fibula(args);
        if let Some(isa) = forced {
            command.env("FIBULA_ISA", isa);
        }
        let out = command.output().unwrap().stdout;
        let rows: serde_json::Value = serde_json::from_slice(&out).unwrap();
        rows.as_array().unwrap().iter().map(|row| row["isa"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(isas(&verify, Some("scalar")), ["scalar"]);
    assert_eq!(isas(&[&verify[..], &["--isa", "scalar"]].concat(), None), ["scalar"]);
    assert_eq!(isas(&verify, None)[0], "scalar");

    let output = fibula(&["lookup", "1.1.1.1"]).env("FIBULA_ISA", "mmx").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("FIBULA_ISA"));
}

#[test]
fn an_empty_family_is_verified_on_request() {
    let rows =
        json(&["verify", "-t", "gen:v4:2024:100:1", "--family", "v6", "--random", "30", "--json"]);
    assert!(rows.as_array().unwrap().iter().all(|row| row["wrong"] == 0 && row["probes"] == 32));
}

/// The bytes of an engine over a table, as `stats` reports them.
fn bytes(table: &str, family: &str, engine: &str) -> u64 {
    let stats = json(&["stats", "-t", table, "--engines", engine, "--json"]);
    stats[family]["engines"][0]["bytes"].as_u64().expect("the engine takes the table")
}

/// Whether `a` / `b` is `ratio`, three numbers of which at most three decimals are printed.
fn is_ratio(a: f64, b: f64, ratio: f64) -> bool {
    let half = 0.0005;
    ((a - half) / (b + half) - half..=(a + half) / (b - half) + half).contains(&ratio)
}

#[test]
fn bench_gives_the_agreed_fields() {
    let args = [
        "bench",
        "--table",
        "gen:v4:2024:2000:1,gen:v6:2024:1000:1",
        "--engines",
        "planb,auto",
        "--traffic",
        "RND,PFX,ZIPF,REP,SEQ,WORST,MATCH50",
        "--batch",
        "64",
        "--threads",
        "2",
        "--runs",
        "2",
        "--keys",
        "3000",
        "--json",
    ];
    let record = json(&args);
    let stamp: Vec<&str> =
        record["stamp"].as_object().unwrap().keys().map(String::as_str).collect();
    let agreed = "date command commit processor caches huge_pages kernel load";
    assert_eq!(stamp, agreed.split_whitespace().collect::<Vec<_>>());
    assert!(record["stamp"]["command"].as_str().unwrap().ends_with("--keys 3000 --json"));
    let rows = record["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2 * 7 * 2);
    let tables = ["gen:v4:2024:2000:1", "gen:v6:2024:1000:1"];
    let engines = [("v4", "planb"), ("v4", "auto"), ("v6", "planb"), ("v6", "auto")];
    let of = |family| if family == "v4" { tables[0] } else { tables[1] };
    let known: HashMap<_, _> =
        engines.into_iter().map(|(f, engine)| ((f, engine), bytes(of(f), f, engine))).collect();
    for row in rows {
        let keys = row.as_object().unwrap().keys().map(String::as_str);
        // Not every system says it.
        let keys: Vec<&str> = keys.filter(|&key| key != "huge_bytes").collect();
        assert_eq!(
            keys,
            [
                "engine",
                "isa",
                "family",
                "table",
                "prefixes",
                "traffic",
                "batch",
                "mlps",
                "mlps_min",
                "mlps_max",
                "dependent_ns",
                "bytes",
                "build_ms",
                "threads",
                "spread",
                "one_thread_mlps",
                "ratio",
            ]
        );
        let number = |key: &str| row[key].as_f64().unwrap();
        // The median of two runs is the mean of them.
        let mean = (number("mlps_min") + number("mlps_max")) / 2.0;
        assert!(number("mlps_min") > 0.0 && (number("mlps") - mean).abs() <= 0.0011, "{row}");
        assert!(number("dependent_ns") > 0.0, "{row}");
        assert_eq!((&row["threads"], &row["spread"]), (&2.into(), &"own".into()));
        assert!(is_ratio(number("mlps"), number("one_thread_mlps"), number("ratio")), "{row}");
        let table = if row["family"] == "v4" { tables[0] } else { tables[1] };
        let prefixes = if row["family"] == "v4" { 2000 } else { 1000 };
        assert_eq!((&row["table"], &row["prefixes"]), (&table.into(), &prefixes.into()));
        let engine = (row["family"].as_str().unwrap(), row["engine"].as_str().unwrap());
        assert_eq!(row["bytes"], known[&engine], "{row}");
        let huge = row["huge_bytes"].as_u64();
        assert!(huge.is_none_or(|huge| huge <= row["bytes"].as_u64().unwrap()), "{row}");
        assert_eq!(row["batch"], if row["traffic"] == "SEQ" { 1 } else { 64 });
    }
}

#[test]
fn bench_dispatches_to_threads() {
    let args = "bench -t gen:v4:2024:2000:1 --engines dxr18,radix --spread dispatch --runs 1 \
                --keys 10000 --batch 1,256,4096";
    let args: Vec<&str> = args.split_whitespace().collect();
    let record = json(&[&args[..], &["--threads", "3", "--json"]].concat());
    let rows = record["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2 * 2 * 3);
    for row in rows {
        assert_eq!((&row["threads"], &row["spread"]), (&3.into(), &"dispatch".into()));
        let number = |key: &str| row[key].as_f64().unwrap();
        assert!(number("mlps") > 0.0 && number("one_thread_mlps") > 0.0, "{row}");
        // One run is the least, the median and the most.
        assert!(number("mlps") == number("mlps_min") && number("mlps") == number("mlps_max"));
        assert!(is_ratio(number("mlps"), number("one_thread_mlps"), number("ratio")), "{row}");
        assert_eq!(row["prefixes"], 2000);
    }
    let run = execute(&[&args[..], &["--threads", "16"]].concat());
    assert!(run.err.contains("17 threads, one of which dispatches, share"), "{}", run.err);
    let table = crate::common::done(&args).out;
    assert!(table.contains("threads 1, spread dispatch") && table.contains("ratio"), "{table}");
    let serial = execute(&[&args[..], &["--traffic", "RND,SEQ"]].concat());
    assert!(serial.code == 2 && serial.err.contains("SEQ"), "{}", serial.err);
}

/// The back end of threads stands for a device: its hops are compared with the oracle's, and engines without a kernel
/// are passed over.
#[test]
fn bench_measures_a_device() {
    let args = "bench -t gen:v4:2024:2000:1,gen:v6:2024:2000:1 --device cpu --with-cpu --runs 1 \
                --keys 20000 --batch 3000 --traffic PFX";
    let args: Vec<&str> = args.split_whitespace().collect();
    let record = json(&[&args[..], &["--json", "--threads", "2"]].concat());
    let rows = record["rows"].as_array().unwrap();
    let kernels: Vec<&str> = rows.iter().map(|row| row["kernel"].as_str().unwrap()).collect();
    let expected = ["runmap16", "wideleaf16", "planb16", "planb16_lanes"];
    assert!(expected.iter().all(|kernel| kernels.contains(kernel)), "{kernels:?}");
    for row in rows {
        for rate in [
            "cpu_mlps",
            "kernel_mlps",
            "device_mlps",
            "resident_mlps",
            "together_mlps",
            "shares_mlps",
            "batch_us",
        ] {
            assert!(row[rate].as_f64().unwrap() > 0.0, "{row}");
        }
        assert_eq!(
            (&row["batch"], &row["slots"], &row["failures"]),
            (&3000.into(), &3.into(), &0.into())
        );
    }
    let table = crate::common::done(&[&args[..], &["--engines", "auto"]].concat()).out;
    assert!(table.contains("with CPU") && table.contains("runmap16"), "{table}");
    let without = execute(&[&args[..], &["--engines", "radix"]].concat());
    assert!(without.code == 2 && without.err.contains("no kernel"), "{}", without.err);
}

#[test]
fn bench_measures_updates() {
    let args = "bench -t gen:v4:2024:3000:1,gen:v6:2024:3000:1 --updates 1,10,2000 --runs 1 \
                --engines dxr18,sail-u,runmap,wideleaf,planb";
    let args: Vec<&str> = args.split_whitespace().collect();
    let run = execute(&[&args[..], &["--json"]].concat());
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(run.err.contains("planb is not patched") && run.err.contains("2,000"), "{}", run.err);
    let record: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    let rows = record["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2 * 3 + 2);
    for row in rows {
        let keys: Vec<&str> = row.as_object().unwrap().keys().map(String::as_str).collect();
        let expected = "engine isa family table prefixes burst us_per_change us_p50 us_p99 \
                        changes_per_s rebuilds bytes build_ms";
        assert_eq!(keys, expected.split_whitespace().collect::<Vec<_>>());
        let number = |key: &str| row[key].as_f64().unwrap();
        let (mean, rate) = (number("us_per_change"), number("changes_per_s"));
        assert!(
            mean > 0.0
                && (1e6 / (mean + 0.0005) - 1.0..=1e6 / (mean - 0.0005) + 1.0).contains(&rate)
        );
        // Bursts leave the table about as large as it was, and each is one patch.
        assert!((2000..=3000).contains(&row["prefixes"].as_u64().unwrap()), "{row}");
        let burst = row["burst"].as_u64().unwrap();
        assert!(row["rebuilds"].as_u64().unwrap() <= 2048_u64.div_ceil(burst).max(8), "{row}");
        if row["engine"] == "runmap" && burst == 1 {
            // At most 192 bytes a change, and room for half of 1 MiB.
            assert_eq!((&row["prefixes"], &row["rebuilds"]), (&3000.into(), &0.into()));
        }
        assert!(row["us_p99"].as_f64() >= row["us_p50"].as_f64(), "{row}");
    }
    let table = crate::common::done(&args).out;
    assert!(
        table.contains("us/prefix") && table.contains("10 changed prefixes a patch"),
        "{table}"
    );
    for more in [["--traffic", "RND"], ["--threads", "2"]] {
        assert_eq!(execute(&[&args[..], &more].concat()).code, 2, "{more:?}");
    }
}

#[test]
fn bench_replays_a_file_and_prints_for_people() {
    let files = Files::new();
    let fib = files.snapshot();
    let addresses = files.with("addresses.txt", "10.1.2.3\n2001:db8::1\n");
    let file = format!("file:{addresses}");
    let args = [
        "bench",
        "-t",
        &fib,
        "--engines",
        "all",
        "--runs",
        "1",
        "--keys",
        "100",
        "--batch",
        "1,16",
    ];
    let out = crate::common::done(&[&args[..], &["--traffic", &file]].concat()).out;
    assert!(out.contains("radix") && out.contains("dependent ns") && out.contains("UTC"), "{out}");
    assert!(out.contains("batch 16") && out.contains("batch 1,"), "{out}");
}

#[test]
fn a_table_without_values_gets_synthetic_hops() {
    let files = Files::new();
    let plain = files.with("plain.txt", "10.0.0.0/8\n10.1.0.0/16\n11.0.0.0/8\n");
    let args =
        ["bench", "-t", &plain, "--runs", "1", "--keys", "100", "--engines", "radix", "--json"];
    let run = execute(&args);
    assert_eq!(run.code, 0);
    assert!(run.err.contains("hash:256"), "{}", run.err);
    let asked = execute(&[&args[..], &["--synthetic-hops", "near:2"]].concat());
    assert!(asked.code == 0 && !asked.err.contains("hash:256"), "{}", asked.err);
}

#[test]
fn wrong_names_are_usage_errors() {
    for args in [
        &["bench", "--engines", "nope"][..],
        &["verify", "--engines", "nope"],
        &["bench", "--traffic", "NOPE"],
        &["bench", "--batch", "0"],
        &["bench", "--threads", "0"],
        &["bench", "--spread", "evenly"],
        &["bench", "--device", "gpu"],
        &["bench", "--device", "opencl:99"],
        &["bench", "--with-cpu"],
        &["bench", "--family", "v5"],
        &["bench", "--synthetic-hops", "hash:0"],
        &["stats", "--table", "gen:v4:2024"],
    ] {
        let run = execute(args);
        assert_eq!(run.code, 2, "{args:?}");
        assert!(!run.err.is_empty() && run.out.is_empty(), "{args:?}");
    }
}

/// A measurement or a check of nothing is no success: a script that names the wrong engine or family learns of it.
#[test]
fn nothing_measured_or_verified_is_a_failure() {
    let v4 = "gen:v4:2024:300:1";
    let bench =
        |more: &[&str]| execute(&[&["bench", "--runs", "1", "--keys", "100"], more].concat());
    let updates =
        |more: &[&str]| execute(&[&["bench", "--runs", "1", "--updates", "200"], more].concat());
    let verify = |more: &[&str]| execute(&[&["verify", "--random", "100"], more].concat());
    for (run, reason) in [
        (bench(&["-t", v4, "--engines", "wideleaf"]), "nothing was measured"),
        (bench(&["-t", v4, "--engines", "wideleaf", "--json"]), "nothing was measured"),
        (bench(&["-t", v4, "--family", "v6"]), "no IPv6 routes"),
        (bench(&["-t", "gen:v4:2024:3000:1", "--engines", "sail-l8"]), "next hops"),
        (bench(&["-t", "gen:v4:2024:0:1"]), "nothing was measured"),
        (updates(&["-t", v4, "--engines", "dxr18"]), "fewer than 400 prefixes"),
        (updates(&["-t", v4, "--engines", "planb"]), "no engine here is patched"),
        (verify(&["-t", v4, "--engines", "wideleaf"]), "nothing was verified"),
        (verify(&["-t", v4, "--engines", "dxr18", "--family", "v6"]), "nothing was verified"),
        (verify(&["-t", v4, "--engines", "wideleaf", "--json"]), "nothing was verified"),
    ] {
        assert_eq!(run.code, 2, "{}{}", run.out, run.err);
        assert!(run.err.contains(reason) && run.err.contains("nothing was "), "{}", run.err);
    }
    // An engine of the other family beside one that is measured is no mistake.
    assert_eq!(bench(&["-t", v4, "--engines", "wideleaf,radix"]).code, 0);
}

/// The rows of one size of filters; a fifth of 3,000 keys are members.
fn right_filters(size: u64, options: &str, rows: &[serde_json::Value]) {
    let (wide, exact) = (options.contains("wide"), options.contains("exact"));
    let bits = size * 8 - if exact { size * 8 / 10 } else { 0 };
    let (bits_per_key, hashes) = if exact { (9.6, 7) } else { (10.0, 3) };
    let members = (bits as f64 / bits_per_key).floor();
    let rate = (1.0 - (-f64::from(hashes) * members / bits as f64).exp()).powi(hashes);
    for row in rows {
        let number = |key: &str| row[key].as_f64().unwrap();
        assert!(number("mops") > 0.0 && number("mops_min") == number("mops_max"), "{row}");
        // Few of the others pass; the unit tests count them.
        assert!((500..900).contains(&row["passed"].as_u64().unwrap()), "{row}");
        let key_bits = if wide { 64 } else { 32 };
        assert_eq!((&row["key_bits"], &row["hits_percent"]), (&key_bits.into(), &20.into()));
        assert_eq!((number("bits_per_key"), &row["hashes"]), (bits_per_key, &hashes.into()));
        assert!((number("expected_rate") - rate).abs() < 1e-6, "{row}");
        if row["variant"] != "blocked" {
            assert_eq!(row["bytes"], bits.div_ceil(64) * 8);
        }
        for (ways, column) in [(1, "ratio_permute_1"), (2, "ratio_permute_2")] {
            let is_base = |row: &&serde_json::Value| {
                row["variant"] == "permute" && row["ways"] == ways && row["prefetch"] == "off"
            };
            match rows.iter().find(is_base) {
                Some(base) => {
                    let base = base["mops"].as_f64().unwrap();
                    assert!(is_ratio(number("mops"), base, number(column)), "{row}");
                }
                None => assert_eq!(number(column), 0.0, "machines without AVX2"),
            }
        }
    }
}

#[test]
fn bench_measures_filters() {
    let small = "--sizes 4K,5000 --runs 1 --keys 3000 --hits 20 --prefetch";
    for more in ["", "--wide --hash h2", "--exact --hash crc32c --hashes 7 --bits 9.6"] {
        let args = format!("bench filter {small} {more} --json");
        let record = json(&args.split_whitespace().collect::<Vec<_>>());
        let rows = record["rows"].as_array().unwrap();
        let keys: Vec<&str> = rows[0].as_object().unwrap().keys().map(String::as_str).collect();
        let agreed = "variant isa ways prefetch bytes hash hashes bits_per_key key_bits hits_percent \
                      expected_rate passed mops mops_min mops_max mops_mean ratio_permute_1 ratio_permute_2";
        assert_eq!(keys, agreed.split_whitespace().collect::<Vec<_>>());
        // The scalar form is the first of each size.
        let second = rows.iter().rposition(|row| row["variant"] == "scalar").unwrap();
        right_filters(4096, more, &rows[..second]);
        right_filters(5000, more, &rows[second..]);
        for variant in ["scalar", "blocked"] {
            assert!(rows.iter().any(|row| row["variant"] == variant), "{variant}");
        }
    }
    let text =
        crate::common::done(&["bench", "filter", "--sizes", "1K", "--runs", "1", "--keys", "100"])
            .out;
    assert!(text.contains("1.0 KiB (within L1), murmur-seeded, 3 positions"), "{text}");
    assert!(text.contains("/permute 2"), "{text}");
    assert_eq!(execute(&["bench", "filter", "--sizes", "1G"]).code, 2);
    assert_eq!(execute(&["bench", "--json", "filter"]).code, 2);
}
