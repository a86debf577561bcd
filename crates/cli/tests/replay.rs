//! `fibula replay`: updates into a table that is read, checked by plain maps, and what goes wrong.

use std::path::Path;

use crate::common::{Files, archives, arg, cuts, done, execute, json, mrt_files, name};
use serde_json::Value;

const QUICK: [&str; 2] = ["--measure", "20"];

fn replay(args: &[&str]) -> Value {
    json(&[&["replay", "--json"], args, &QUICK].concat())
}

fn int(value: &Value, field: &str) -> u64 {
    value[field].as_u64().unwrap_or_else(|| panic!("{field}: {value}"))
}

#[test]
fn churn_is_followed_and_nothing_is_wrong() {
    let table = ["--table", "gen:v4:2024:20000:1", "--updates", "churn:30000:1", "--repeat", "2"];
    for more in [&["--audit", "full"][..], &["--bucket", "5", "--rate", "200000"]] {
        let report = replay(&[&table, more].concat());
        assert_eq!(int(&report, "updates"), 60_000);
        assert_eq!(int(&report, "wrong"), 0, "{report}");
        assert_eq!(int(&report, "audit_differences"), 0);
        assert!(int(&report, "checked") > 40_000);
        assert!(int(&report, "rebuilds") + int(&report, "patches") > 0);
        for field in [
            "updates_per_second",
            "visible_p50_ms",
            "visible_p99_ms",
            "visible_max_ms",
            "mlps_before",
            "mlps_during",
            "mlps_after",
        ] {
            assert!(report[field].as_f64().unwrap() > 0.0, "{field}: {report}");
        }
        assert!(!cfg!(target_os = "linux") || int(&report, "memory_bytes") > 1 << 20);
    }
    let report = replay(&[
        "--table",
        "gen:v6:2024:20000:1",
        "--updates",
        "churn:20000:2",
        "--engine",
        "planb",
    ]);
    assert_eq!((int(&report, "wrong"), &report["engine_v6"]), (0, &"planb".into()));
    let text = done(&[&["replay"], &table[..], &QUICK].concat()).out;
    assert!(text.contains("0 wrong") && text.contains("bytes a route"), "{text}");
}

#[test]
fn mistakes_are_reported() {
    let files = Files::new();
    let binary = files.with("binary", [0u8, 1, 2, 3]);
    let table = files.with("table.txt", "10.0.0.0/8 a\n");
    let named_as_snapshot = files.with("table.fib", "10.0.0.0/8 a\n");
    for (args, what) in [
        (&["--updates", "no-such-file"][..], "no-such-file"),
        (&["--updates", "churn:x"], "churn:COUNT:SEED"),
        (&["--updates", "churn:10"], "not empty"),
        (&["--updates", "-"], "read twice"),
        (&["--table", "-", "--updates", "churn:1"], "read twice"),
        (&["--updates", "churn:1", "--speed", "0"], "real time"),
        (&["--updates", "churn:1", "--audit", "some"], "off, sampling or full"),
        (&["--table", "embedded", "--updates", "churn:1", "--engine", "no-such"], "no engine"),
        (&["--updates", &binary], "this is no text: byte 0 is 0x00"),
        (&["--updates", &table], "this is a table (format text); updates are MRT"),
        (&["--updates", &named_as_snapshot], "this is a table (format text); updates are MRT"),
    ] {
        let result = execute(&[&["replay"], args, &QUICK].concat());
        assert_eq!(result.code, 2, "{args:?}: {}", result.err);
        assert!(result.err.contains(what), "{args:?}: {}", result.err);
    }
    // Without --strict it is counted, reported and skipped.
    // An announcement, and one whose message says that it is longer than its record.
    let record = |message_len: u8| {
        [
            &[0x56, 0x29, 0x78, 0x80, 0, 16, 0, 1, 0, 0, 0, 61][..],
            &[0xfb, 0xf4, 0xfd, 0xe8, 0, 0, 0, 1, 192, 0, 2, 1, 192, 0, 2, 2],
            &[0xff; 16],
            &[0, message_len, 2, 0, 0, 0, 18, 0x40, 1, 1, 0, 0x40, 2, 4, 2, 1, 0xfb, 0xf4],
            &[0x40, 3, 4, 192, 0, 2, 1, 24, 198, 51, 100],
        ]
        .concat()
    };
    let damaged = files.with("damaged.mrt", [record(45), record(90), record(45)].concat());
    let strict = execute(&["replay", "--updates", &damaged, "--strict", "--measure", "20"]);
    assert_eq!(strict.code, 2);
    assert!(strict.err.contains("record 2"), "{}", strict.err);
    let result = execute(&["replay", "--updates", &damaged, "--json", "--measure", "20"]);
    assert_eq!(result.code, 0, "{}", result.err);
    assert!(result.err.contains("damaged"), "{}", result.err);
    assert_eq!(serde_json::from_str::<Value>(&result.out).unwrap()["damaged"], 1);
}

#[test]
fn stats_report_the_cost_of_a_route() {
    let stats =
        json(&["stats", "--table", "gen:v4:2024:50000:1", "--engines", "radix", "--rib", "--json"]);
    let cost = stats["rib"]["bytes_per_route"].as_f64().unwrap();
    assert!(cost > 10.0 && cost < 100.0, "{cost}");
    assert_eq!(stats["rib"]["routes"], 50_000);
}

/// Replays a file of updates: what is read meanwhile and the table at the end are those of plain maps.
/// Returns the report.
fn replay_audited(updates: &Path) -> Value {
    let report = replay(&["--updates", arg(updates), "--audit", "full"]);
    assert_eq!(int(&report, "wrong"), 0, "{}: {report}", updates.display());
    assert_eq!(int(&report, "audit_differences"), 0, "{}", updates.display());
    report
}

/// The numbers of updates are those that bgpdump prints, the numbers of prefixes those that its lines
/// leave (those of the second file come from a walk over the messages: bgpdump misreads it).
#[test]
fn real_updates_give_the_table_of_plain_maps() {
    for (file, updates, prefixes) in [
        ("bgpkit-ripe_rrc00_1999.09_updates.19990903.1041.first-1500-records.gz", 3512, 3508),
        ("bgpkit-ripe_rrc00_2000.01_updates.20000102.2014.gz", 6343, 450),
        ("bgpkit-ripe_rrc15_2010.02_updates.20100227.1610.gz", 7469, 2182),
        ("et-of-rrc15_2010.02_updates.20100227.1600.first-1500-records.gz", 6981, 2631),
    ] {
        let report = replay_audited(&cuts().join("mrt").join(file));
        assert_eq!(int(&report, "updates"), updates, "{file}");
        assert_eq!(int(&report["rib"], "prefixes"), prefixes, "{file}");
    }
    // In these, sessions end, and with them their routes.
    for (file, updates) in [
        ("bgpkit-ripe_rrc01_2000.11_updates.20001104.0124.gz", 519),
        ("bgpkit-ripe_rrc03_2010.02_updates.20100227.1600.first-796-records.gz", 1359),
        ("mrtparse-samples/openbgpd_bgp", 93),
        ("mrtparse-samples/quagga_bgp", 18),
        ("mrtparse-samples/bird-mrtdump_bgp", 12),
        ("mrtparse-samples/bird6-mrtdump_bgp", 12),
    ] {
        let report = replay_audited(&cuts().join("mrt").join(file));
        assert_eq!(int(&report, "updates"), updates, "{file}");
    }
}

#[test]
#[ignore = "real archives: ./dev check-data"]
fn archived_updates_give_the_table_of_plain_maps() {
    let mut files = 0;
    for path in mrt_files(&archives()).iter().filter(|path| name(path).contains("updates")) {
        let (name, report) = (name(path), replay_audited(path));
        if name.contains("20160811") {
            assert_eq!(int(&report, "updates"), 39_256 + 1_956);
        }
        if name.contains("et-header") {
            assert_eq!(int(&report["rib"], "prefixes"), 577_703);
        }
        files += 1;
    }
    assert!(files >= 12, "{files} files of updates");
}

/// A replay that continues from a checkpoint ends in the same state as one without.
fn goes_on_from_a_checkpoint(table: &Path, updates: &Path) {
    let files = Files::new();
    let checkpoint = files.path("rib.fib");
    let args = ["--table", arg(table), "--updates", arg(updates), "--checkpoint", &checkpoint];
    let first = replay(&args);
    assert!(int(&first, "checkpoints") > 0 && int(&first, "wrong") == 0);
    // All was taken in: with twice as many updates, the second half is left.
    let second = replay(&[&args[..], &["--repeat", "2"]].concat());
    assert_eq!((int(&second, "wrong"), int(&second, "updates")), (0, int(&first, "updates")));
    assert!(
        int(&second, "restored_events") >= int(&first, "updates"),
        "ends of sessions count, too"
    );
    let stats = json(&["stats", "--table", &checkpoint, "--json"]);
    assert_eq!(
        int(&stats["v4"], "prefixes") + stats["v6"]["prefixes"].as_u64().unwrap_or(0),
        int(&second["rib"], "prefixes")
    );
}

#[test]
fn a_checkpoint_is_gone_on_from() {
    let mrt = cuts().join("mrt");
    goes_on_from_a_checkpoint(
        &mrt.join("bgpkit-ripe_rrc00_2000.01_bview.20000111.0032.first-20-records.gz"),
        &mrt.join("bgpkit-ripe_rrc15_2010.02_updates.20100227.1610.gz"),
    );
}

/// It knows what it has taken in: other updates are refused, and it stays as it was.
#[test]
fn a_checkpoint_refuses_another_feed() {
    let (files, mrt) = (Files::new(), cuts().join("mrt"));
    let checkpoint = files.path("rib.fib");
    let [first, second] = [
        "bgpkit-ripe_rrc15_2010.02_updates.20100227.1610.gz",
        "bgpkit-ripe_rrc00_2000.01_updates.20000102.2014.gz",
    ]
    .map(|name| arg(&mrt.join(name)).to_owned());
    replay(&["--updates", &first, "--checkpoint", &checkpoint]);
    let before = std::fs::read(&checkpoint).unwrap();
    let args = ["replay", "--updates", &second, "--checkpoint", &checkpoint, "--measure", "20"];
    let result = execute(&args);
    assert_eq!(result.code, 2, "{}", result.out);
    assert!(result.err.contains("updates.20100227.1610"), "{}", result.err);
    assert!(result.err.contains("another file to --checkpoint"), "{}", result.err);
    assert_eq!(std::fs::read(&checkpoint).unwrap(), before);
}

/// A checkpoint that cannot be written does not end the replay: it is tried again, and at the end the report
/// comes before the error.
#[test]
fn a_report_comes_without_its_checkpoint() {
    let files = Files::new();
    let checkpoint = files.path("missing/rib.fib");
    let table = ["--table", "gen:v4:2024:1000:1", "--updates", "churn:400:1", "--rate", "1000"];
    let every = ["--checkpoint", &checkpoint, "--checkpoint-every", "0.1", "--measure", "20"];
    let result = execute(&[&["replay", "--json"], &table[..], &every].concat());
    assert_eq!(result.code, 2, "{}", result.out);
    let report: Value = serde_json::from_str(&result.out).unwrap();
    assert_eq!((int(&report, "updates"), int(&report, "wrong")), (400, 0), "{report}");
    assert_eq!(int(&report, "checkpoints"), 0);
    assert!(result.err.matches("tried when it is due").count() > 1, "{}", result.err);
}

/// To other commands a checkpoint is the table that it was: columns by their names, and a date.
#[test]
fn a_checkpoint_keeps_names_and_date() {
    let files = Files::new();
    let table = files.with("sites.csv", "prefix,site,owner\n10.0.0.0/8,a,x\n2001:db8::/32,b,y\n");
    let checkpoint = files.path("rib.fib");
    replay(&["--table", &table, "--updates", "churn:1:1", "--checkpoint", &checkpoint]);
    let stats = json(&["stats", "--table", &checkpoint, "--json"]);
    let columns = stats["columns"].as_array().unwrap();
    assert!(columns.iter().map(|c| &c["name"]).eq(["site", "owner"]), "{stats}");
    assert!(!stats["snapshot"]["created"].as_str().unwrap().starts_with("1970"), "{stats}");
}

#[test]
#[ignore = "real archives: ./dev check-data"]
fn a_checkpoint_of_archives_is_gone_on_from() {
    let mrt = archives().join("mrt");
    goes_on_from_a_checkpoint(
        &mrt.join("ripencc-bgpdump-bview.20020722.2337.gz"),
        &mrt.join("ripencc-bgpdump-updates.20160811.1600.gz"),
    );
}

/// BMP and FPM have several routing instances: one is followed, the others are counted.
#[test]
fn one_routing_instance_is_followed() {
    let [bmp, fpm] =
        ["bmp/netgauze-upa-2.bmp.xz", "fpm/small-nhg.c1.fpm.xz"].map(|file| cuts().join(file));
    let (bmp, fpm) = (arg(&bmp), arg(&fpm));
    for (vrf, updates, (other, left_out)) in
        [("pre-policy", 2, ("loc-rib", 8)), ("loc-rib", 8, ("pre-policy", 2))]
    {
        let report = replay(&["--updates", bmp, "--vrf", vrf]);
        assert_eq!((int(&report, "updates"), int(&report, "wrong")), (updates, 0), "{report}");
        assert_eq!(report["left_out"], serde_json::json!({ other: left_out }));
    }
    // Without a choice it is the main one, which BMP has not.
    let refused = execute(&[&["replay", "--updates", bmp][..], &QUICK].concat());
    assert_eq!(refused.code, 2, "{}", refused.err);
    let why =
        "no updates of the main routing instance; of others there are: loc-rib 8, pre-policy 2";
    assert!(refused.err.contains(why) && refused.err.contains("--vrf loc-rib"), "{}", refused.err);
    // FPM has it, and table 100 beside it.
    let report = replay(&["--updates", fpm]);
    assert!(
        int(&report, "updates") > 900 && report["left_out"]["100"].as_u64().unwrap() > 0,
        "{report}"
    );
    let report = replay(&["--updates", fpm, "--vrf", "100"]);
    assert!(
        int(&report, "updates") > 0 && report["left_out"][""].as_u64().unwrap() > 900,
        "{report}"
    );
    let text = done(&[&["replay", "--updates", fpm][..], &QUICK].concat()).out;
    assert!(text.contains("left out updates of other routing instances: 100 "), "{text}");
}
