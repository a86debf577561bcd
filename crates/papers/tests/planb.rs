//! PlanB's paper: its router on a tiny table. Every row was compared with the oracle.

use assert_cmd::Command;

const HEAD: &str = "table,family,prefixes,isa,engine,threads,burst,flows,bytes,mpps,mpps_min,mpps_max,of_io_only,dropped,\
receive_ns,lookup_ns,transmit_ns,latency_us,latency_99_us,memory_bytes,ports";

fn run(args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::cargo_bin("planb").expect("the binary is built");
    let output = command.env_remove("FIBULA_ISA").args(args).output().expect("it starts");
    let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn both_families_in_all_forms() {
    let forms = ["fused:1", "fused:2", "1-1", "1-1-1", "2-2-1"];
    for (family, engines) in [
        ("v4", ["none", "runmap", "dxr18", "dir24-8", "radix"]),
        ("v6", ["none", "planb", "wideleaf", "poptrie18", "radix"]),
    ] {
        let table = format!("gen:{family}:2024:800:1");
        let threads = forms.join(",");
        let args = ["--family", family, "-t", &table, "--flows", "600", "--seconds", "0.002"];
        let args = [&args[..], &["--runs", "2", "--threads", &threads]].concat();
        let (code, out, err) = run(&args);
        assert_eq!(code, Some(0), "{out}{err}");
        // A form with more threads than there are cores is named, and nothing else.
        assert!(err.lines().all(|line| line.contains("threads share")), "{err}");
        let cores = std::thread::available_parallelism().unwrap().get();
        assert_eq!(err.contains("2-2-1: 5 threads share"), cores < 5, "{err}");
        let mut lines = out.lines();
        assert_eq!(lines.next(), Some(HEAD));
        let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
        let named: Vec<_> = rows.iter().map(|row| (row[5], row[4])).collect();
        let all = forms.iter().flat_map(|form| engines.map(|engine| (*form, engine)));
        assert_eq!(named, all.collect::<Vec<_>>());
        for row in rows {
            assert_eq!((row[0], row[1], row[2], row[8]), (&*table, family, "800", "64"));
            assert_eq!(row[4] == "none", row[19].is_empty(), "{row:?}");
            let number = |at: usize| row[at].parse::<f64>().unwrap();
            assert!(number(10) <= number(9) && number(9) <= number(11), "{row:?}");
            assert!((0.0..=1.0).contains(&number(13)), "{row:?}");
        }
    }
}

#[test]
fn the_help_explains_the_columns() {
    let (_, help, _) = run(&["--help"]);
    let (_, columns) = help.split_once("\nColumns:\n").expect("columns");
    let measured =
        HEAD.split(',').skip_while(|name| *name != "mpps").filter(|name| *name != "ports");
    for name in measured {
        assert!(columns.split([' ', ',', '\n']).any(|word| word == name), "{name}");
    }
}

/// Frames of all lengths that `--bytes` takes fit the router's slots.
#[test]
fn long_frames() {
    for bytes in ["62", "320", "321", "1500"] {
        let args = "-t gen:v6:2024:800:1 --flows 600 --seconds 0.002 --runs 1 --threads fused:1";
        let args: Vec<&str> =
            args.split(' ').chain(["--engines", "planb", "--bytes", bytes]).collect();
        let (code, out, err) = run(&args);
        assert_eq!((code, err.as_str()), (Some(0), ""), "{bytes}: {out}");
        let rows: Vec<Vec<&str>> =
            out.lines().skip(1).map(|line| line.split(',').collect()).collect();
        assert_eq!(
            rows.iter().map(|row| (row[4], row[8])).collect::<Vec<_>>(),
            [("none", bytes), ("planb", bytes)]
        );
    }
}

#[test]
fn wrong_options() {
    for (args, reason) in [
        (&["--threads", "fused:0"][..], "1 to 64 threads"),
        (&["--threads", "1-2-3-4"], "fused:N, R-L or R-L-T"),
        (&["--engines", "nonesuch", "-t", "gen:v6:2024:100:1"], "no engine nonesuch for IPv6"),
        (&["--family", "v4", "-t", "gen:v6:2024:100:1"], "no IPv4 routes"),
        (&["--seconds", "0"], "0.001 to 3600"),
        (&["--burst", "257"], "257 is not in"),
        // Without a flow for each queue the sample would be empty, and nothing compared with the oracle.
        (
            &["-t", "gen:v6:2024:100:1", "--flows", "10", "--threads", "fused:16"],
            "fused:16 needs 16 flows for each port",
        ),
        #[cfg(not(feature = "dpdk"))]
        (&["--ports", "memory,null"], "a build with the feature dpdk"),
        (&["--ports", "eth1"], "memory, null, pcap"),
    ] {
        let (code, _, err) = run(args);
        assert_eq!(code, Some(2), "{args:?}");
        assert!(err.contains(reason), "{args:?}: {err}");
    }
}
