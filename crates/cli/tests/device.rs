//! `fibula annotate --device` through the command. The back end of threads stands for a device.

use std::fmt::Write as _;
use std::net::Ipv4Addr;

use crate::common::{Files, done, execute};

#[test]
fn annotates_as_without_a_device() {
    let files = Files::new();
    let mut text = "n,src\n".to_owned();
    for row in 0..40_000u32 {
        writeln!(text, "{row},{}", Ipv4Addr::from(row.wrapping_mul(0x9e37_79b1))).unwrap();
    }
    let input = files.with("in.csv", &text);
    // A table stored with an engine without a kernel, one stored with one, and one without any.
    for (engine, said) in [
        (Some("dxr18"), "IPv4 by runmap, "),
        (Some("sail-l"), "IPv4 by sail-l, "),
        (None, "IPv4 by runmap, "),
    ] {
        let table = "gen:v4:2024:3000:1".to_owned();
        let table = match engine {
            Some(engine) => {
                let fib = files.path(&format!("{engine}.fib"));
                done(&["build", &table, "--engine", engine, "-o", &fib]);
                fib
            }
            None => table,
        };
        let args = ["annotate", "-t", &table, &input, "--add", "prefix"];
        let expected = done(&args);
        let run = done(&[&args[..], &["--device", "cpu"]].concat());
        assert!(run.out == expected.out, "{engine:?}");
        assert!(run.err.contains(&format!("cpu: {said}")), "{}", run.err);
        assert!(run.err.contains("cpu: 40,000 lookups, 0 on the CPU"), "{}", run.err);
        assert_eq!(run.err.contains("has no kernel"), engine == Some("dxr18"), "{}", run.err);
        let run = done(&[&args[..], &["--device", "cpu", "--json"]].concat());
        let summary: serde_json::Value = serde_json::from_str(&run.err).unwrap();
        assert_eq!(
            (&summary["on_device"], &summary["device_failures"], &summary["device_error"]),
            (&40_000.into(), &0.into(), &serde_json::Value::Null)
        );
        let run = done(&[&args[..], &["--device", "cpu", "--quiet"]].concat());
        assert!(run.err.is_empty() && run.out == expected.out, "{}", run.err);
    }
}

/// Nothing is written then, and the exit code is that of wrong arguments.
#[test]
fn devices_that_are_not_there() {
    let files = Files::new();
    let (fib, input) = (files.snapshot(), files.with("in.csv", "src\n10.0.0.1\n"));
    for (name, reason) in [("gpu", "is no device"), ("opencl:99", "opencl")] {
        let run = execute(&["annotate", "-t", &fib, &input, "--device", name]);
        assert_eq!((run.code, &*run.out), (2, ""), "{}", run.err);
        assert!(run.err.contains(reason), "{}", run.err);
    }
    let run = execute(&["annotate", "-t", &fib, &input, "--device", "cpu", "--time", "ts"]);
    assert_eq!(run.code, 2);
    assert!(run.err.contains("--time"), "{}", run.err);
}

/// `fibula bench --device` beyond lookups: shares, slots, reads at random places, and tables that change.
#[test]
fn measures_what_a_device_is_sent_and_reads() {
    let json = |args: &str| {
        let args: Vec<&str> = args.split_whitespace().collect();
        let value: serde_json::Value = serde_json::from_str(&done(&args).out).unwrap();
        value["rows"].as_array().unwrap().clone()
    };
    let rows = json(
        "bench -t gen:v4:2024:2000:1 --device cpu --runs 1 --engines runmap --keys 10000 --batch 3000 \
         --traffic PFX --slots 1,3 --shares 0,40,100 --passes 3 --json",
    );
    let slots: Vec<u64> = rows.iter().map(|row| row["slots"].as_u64().unwrap()).collect();
    assert_eq!(slots, [1, 3]);
    for row in &rows {
        let split = row["split"].as_array().unwrap();
        let percents: Vec<u64> = split.iter().map(|s| s["percent"].as_u64().unwrap()).collect();
        assert_eq!(percents, [0, 40, 100]);
        assert!(split.iter().all(|s| s["mlps"].as_f64().unwrap() > 0.0), "{row}");
        assert_eq!(row["passes"], 3);
    }

    let rows = json("bench --device cpu --gather 4,256 --batch 5000 --runs 2 --json");
    let bytes: Vec<u64> = rows.iter().map(|row| row["bytes"].as_u64().unwrap()).collect();
    assert_eq!(bytes, [4 << 10, 256 << 10]);
    assert!(rows.iter().all(|row| row["mreads_per_s"].as_f64().unwrap() > 0.0), "{rows:?}");

    let rows = json(
        "bench -t gen:v4:2024:20000:1,gen:v6:2024:20000:1 --device cpu --updates 1,100 --runs 1 \
         --engines runmap,wideleaf --json",
    );
    let sent = |at: usize| rows[at]["sent"].as_u64().unwrap();
    let kernels: Vec<&str> = rows.iter().map(|row| row["kernel"].as_str().unwrap()).collect();
    assert_eq!(kernels, ["runmap16", "runmap16", "wideleaf16", "wideleaf16"]);
    for row in &rows {
        let (sent, bytes) = (row["sent"].as_u64().unwrap(), row["bytes"].as_u64().unwrap());
        assert!(sent > 0 && sent < bytes && sent % 64 == 0, "{row}");
        assert!(row["upload_us"].as_f64().unwrap() > 0.0, "{row}");
    }
    assert!(sent(0) < sent(1) && sent(2) < sent(3), "{rows:?}");
    let table = done(&["bench", "--device", "cpu", "--gather", "4", "--batch", "500"]).out;
    assert!(table.contains("million reads/s"), "{table}");
}
