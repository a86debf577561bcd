//! Verification of AS paths: `fibula rpki --aspa`, and `--aspa` of the commands that have a table.

use std::collections::{BTreeMap, BTreeSet};

use fibula_rpki::{Aspas, ReceivedFrom};
use serde_json::{Value, json};

use crate::common::{Files, arg, cuts, done, execute, execute_with, json};

const ASPAS: &str = r#"{"aspas": [
    {"customer_asid": 1, "providers": [10, 20]},
    {"customer_asid": 2, "providers": [10]},
    {"customer_asid": 10, "providers": [0]},
    {"customer_asid": 20, "providers": [0]}
]}"#;

/// From a provider; a leak; up and down; a set; no path; ASes without ASPAs.
const ROUTES: &str = "prefix,origin_as,as_path\n\
    10.0.0.0/24,2,10 2\n\
    10.0.1.0/24,2,20 1 10 2\n\
    10.0.2.0/24,1,2 10 1\n\
    10.0.3.0/24,,10 {2}\n\
    10.0.4.0/24,5,\n\
    2001:db9::/32,9,40 9\n";

fn vrps() -> String {
    arg(&cuts().join("rpki/routinator.json")).to_owned()
}

/// The files of a test: ASPAs, routes.
fn files() -> (Files, String, String) {
    let files = Files::new();
    let (aspas, routes) = (files.with("aspas.json", ASPAS), files.with("routes.csv", ROUTES));
    (files, aspas, routes)
}

#[test]
fn routes_are_listed_with_their_paths() {
    let (files, aspas, routes) = files();
    let relations = files.with("relations", "# peers\nAS2 provider\n");
    let list = |more: &[&str]| {
        let vrps = vrps();
        let args = [&["rpki", &vrps, &routes, "--aspa", &aspas][..], more].concat();
        let run = execute(&args);
        assert_eq!(run.code, 1, "{}", run.err);
        run.out
    };
    let states = |more: &[&str]| {
        let out = list(&[&["--list", "all"][..], more].concat());
        let state = |line: &str| line.split('\t').nth(4).unwrap().to_owned();
        out.lines().skip(1).map(state).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(states(&[]), "valid invalid unknown invalid - unknown");
    assert_eq!(states(&["--received-from", "unknown"]), states(&[]));
    assert_eq!(states(&["--received-from", "provider"]), "valid invalid valid invalid - valid");
    for upstream in ["peer", "customer", "route-server"] {
        let found = states(&["--received-from", upstream]);
        assert_eq!(found, "valid invalid invalid invalid - unknown", "{upstream}");
    }
    let found = states(&["--received-from", "peer", "--relations", &relations]);
    assert_eq!(found, "valid invalid valid invalid - unknown");

    assert_eq!(
        list(&["--list", "aspa-invalid"]),
        "prefix\torigin\trpki\tvrps\taspa\tas_path\n\
         10.0.1.0/24\t2\tnot-found\t-\tinvalid\t20 1 10 2\n\
         10.0.3.0/24\t-\tnot-found\t-\tinvalid\t10 {2}\n"
    );
    let one = list(&["--list", "aspa-valid", "--json"]);
    let one: Value = serde_json::from_str(&one).unwrap();
    assert_eq!(
        one,
        json!({"prefix": "10.0.0.0/24", "origin": 2, "rpki": "not-found", "vrps": [],
               "aspa": "valid", "as_path": "10 2"})
    );
    let checked = files.path("checked.csv");
    list(&["--list", "aspa-unknown", "-o", &checked]);
    assert_eq!(
        std::fs::read_to_string(&checked).unwrap(),
        "prefix,origin_as,as_path,rpki,rpki_vrps,aspa\n\
         10.0.2.0/24,1,2 10 1,not-found,,unknown\n\
         2001:db9::/32,9,40 9,not-found,,unknown\n"
    );
    // Nothing is invalid, by origin or by path.
    let good = files.with("good.csv", "prefix,origin_as,as_path\n10.0.0.0/24,2,10 2\n");
    done(&["rpki", &vrps(), &good, "--aspa", &aspas]);
}

#[test]
fn the_report_counts_paths() {
    let (_files, aspas, routes) = files();
    let args = ["rpki", &vrps(), &routes, "--aspa", &aspas];
    let report: Value =
        serde_json::from_str(&execute(&[&args[..], &["--json"]].concat()).out).unwrap();
    let part = &report["aspa"];
    assert_eq!(part["ipv4"], json!({"valid": 1, "invalid": 2, "unknown": 1, "without": 1}));
    assert_eq!(part["ipv6"], json!({"valid": 0, "invalid": 0, "unknown": 1, "without": 0}));
    assert_eq!((&part["customers"], &part["files"][0]["aspas"]), (&json!(4), &json!(4)));
    assert_eq!(report["ipv4"]["routes"]["not-found"], 5);
    let text = execute(&args).out;
    let cells = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let rows: Vec<Vec<String>> = text.lines().map(cells).collect();
    for row in ["IPv4 invalid 2 40.0 %", "IPv4 no path 1 20.0 %", "IPv6 unknown 1 100.0 %"] {
        assert!(rows.contains(&cells(row)), "{row}: {text}");
    }
    assert!(text.contains("aspas.json (aspas, json): 4 ASPAs\n4 customers with ASPAs\n"), "{text}");
    let without = execute(&["rpki", &vrps(), &routes, "--json"]);
    let report: Value = serde_json::from_str(&without.out).unwrap();
    assert_eq!((without.code, report.get("aspa")), (0, None));
}

#[test]
fn tables_get_the_column() {
    let (files, aspas, routes) = files();
    let fib = files.path("checked.fib");
    done(&["build", &routes, "--aspa", &aspas, "--rpki", &vrps(), "-o", &fib]);
    let stored = done(&["lookup", "--table", &fib, "10.0.1.1", "10.0.4.1"]).out;
    assert_eq!(
        stored,
        "address\tprefix\torigin_as\tas_path\trpki\trpki_vrps\taspa\n\
         10.0.1.1\t10.0.1.0/24\t2\t20 1 10 2\tnot-found\t-\tinvalid\n\
         10.0.4.1\t10.0.4.0/24\t5\t-\tnot-found\t-\t-\n"
    );
    let found = done(&["lookup", "--table", &routes, "--aspa", &aspas, "--where", "aspa=invalid"]);
    assert_eq!(found.out.lines().count(), 1 + 2, "{}", found.out);
    let args = ["annotate", "--table", &routes, "--aspa", &aspas, "--received-from", "provider"];
    let run = execute_with(
        &[&args[..], &["--column", "a", "--add", "aspa", "-q"]].concat(),
        "a,n\n10.0.2.1,1\n10.0.1.1,2\n",
    );
    assert_eq!(run.out, "a,n,a_aspa\n10.0.2.1,1,valid\n10.0.1.1,2,invalid\n", "{}", run.err);
    // Built again: the column is replaced.
    let (again, none) = (files.path("again.fib"), files.with("none.json", "{\"aspas\": []}"));
    done(&["build", &fib, "--aspa", &none, "--allow-empty", "-o", &again]);
    let found = json(&["lookup", "--table", &again, "--json", "10.0.1.1"]);
    assert_eq!((&found["aspa"], &found["rpki"]), (&json!("unknown"), &json!("not-found")));
}

/// An archive: its paths are kept for this, and each is verified as the library does it, which is compared with the
/// draft's text elsewhere.
#[test]
fn an_archive_of_updates() {
    let archive = cuts().join("mrt/bgpkit-ripe_rrc15_2010.02_updates.20100227.1610.gz");
    let (archive, files) = (arg(&archive), Files::new());
    let paths = files.path("paths.jsonl");
    done(&["export", archive, "--paths", "-o", &paths]);
    let mut above = BTreeMap::<u32, BTreeSet<u32>>::new();
    for line in std::fs::read_to_string(&paths).unwrap().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let path = line["as_path"].as_str().unwrap_or_default();
        let ases: Vec<u32> = path.split(' ').map_while(|asn| asn.parse().ok()).collect();
        for pair in ases.windows(2).filter(|pair| pair[0] != pair[1] && pair[1] % 3 > 0) {
            let providers = above.entry(pair[1]).or_default();
            if pair[0] % 5 > 0 || providers.is_empty() {
                providers.insert(pair[0]);
            }
        }
    }
    let list: Vec<Value> = above
        .iter()
        .map(|(customer, providers)| json!({"customer": customer, "providers": providers}))
        .collect();
    let aspas = files.with("aspas.json", json!({ "aspas": list }).to_string());
    let set: Aspas = above.into_iter().map(|(of, all)| (of, all.into_iter().collect())).collect();
    let mut seen = BTreeMap::<String, u32>::new();
    for from in ReceivedFrom::ALL {
        let run = execute(&[
            "rpki",
            &vrps(),
            archive,
            "--aspa",
            &aspas,
            "--received-from",
            from.name(),
            "--list",
            "all",
            "--json",
        ]);
        assert!(run.code < 2, "{}", run.err);
        for line in run.out.lines() {
            let route: Value = serde_json::from_str(line).unwrap();
            let path = route["as_path"].as_str().unwrap_or_default();
            let expected = set.verify_text(path, from).map(|validity| validity.name());
            assert_eq!(route["aspa"].as_str(), expected, "{line} from {from}");
            *seen.entry(expected.unwrap_or("none").to_owned()).or_default() += 1;
        }
    }
    let has = |state: &str| seen.get(state).is_some_and(|&count| count > 100);
    assert!(["valid", "invalid", "unknown"].into_iter().all(has), "all kinds occur: {seen:?}");
}

#[test]
fn what_cannot_be_verified_is_refused() {
    let (files, aspas, routes) = files();
    let vrps = vrps();
    let csv = arg(&cuts().join("rpki/routinator.csv")).to_owned();
    let (empty, broken) = (
        files.with("empty.json", "{\"roas\": [], \"aspas\": []}"),
        files.with("broken.json", "{\"aspas\": [\n{\"customer\": \"AS1\"}]}"),
    );
    let plain = files.with("plain.csv", "prefix,origin_as\n10.0.0.0/8,1\n");
    let odd = files.with("odd.csv", "prefix,origin_as,as_path\n10.0.0.0/8,1,1 two\n");
    let bad = files.with("relations", "64500,provider\n64501,sibling\n");
    let line = "TABLE_DUMP2|1277971199|B|192.0.2.9|2497|192.0.2.0/24|2497 64500|IGP|192.0.2.9|0|0||NAG||\n";
    let (rib, fib) = (files.with("rib.txt", line), files.path("rib.fib"));
    done(&["build", &rib, "-o", &fib]);
    let cases: &[(&[&str], &str)] = &[
        (&["rpki", &vrps, &routes, "--aspa", &csv], "routinator.csv, line 1: not JSON: only JSON"),
        (&["rpki", &vrps, &routes, "--aspa", &empty], "empty.json: no ASPAs in it"),
        (
            &["rpki", &vrps, &routes, "--aspa", &broken],
            "line 2, byte 19: ASPA 1: it has no providers",
        ),
        (&["rpki", &vrps, &plain, "--aspa", &aspas], "no column as_path"),
        (&["rpki", &vrps, &fib, "--aspa", &aspas], "--as-path"),
        (&["lookup", "--table", &odd, "--aspa", &aspas, "10.0.0.1"], "\"1 two\" is no AS path"),
        (&["rpki", &vrps, &routes, "--list", "aspa-invalid"], "--aspa names the file"),
        (&["rpki", &vrps, &routes, "--aspa", &aspas, "--list", "aspa-good"], "aspa-unknown"),
        (
            &["rpki", &vrps, &routes, "--aspa", &aspas, "--relations", &bad],
            "line 2: \"sibling\" is no relation",
        ),
        (&["rpki", &vrps, &routes, "--aspa", &aspas, "--received-from", "me"], "route-server"),
        (&["rpki", &vrps, &routes, "--received-from", "peer"], "--aspa"),
        (&["rpki", "-", &routes, "--aspa", "-"], "standard input cannot be both"),
        (&["lookup", "--layer", "a=embedded", "--aspa", &aspas, "8.8.8.8"], "--layer"),
        (&["build", &routes, "--aspa", &aspas, "-o", &aspas], "aspas.json"),
    ];
    for (args, what) in cases {
        let run = execute(args);
        assert_eq!(run.code, 2, "{args:?}: {}", run.out);
        assert!(run.err.contains(what), "{args:?}: {}", run.err);
    }
    assert_eq!(std::fs::read_to_string(&aspas).unwrap(), ASPAS);
    // The archive itself has paths.
    let run = done(&["rpki", &vrps, &rib, "--aspa", &aspas, "--list", "all"]);
    assert!(
        run.out.ends_with(
            "192.0.2.0/24\t64500\tvalid\t192.0.2.0/24-24 AS64500\tunknown\t2497 64500\n"
        )
    );
    // Old ASPAs are used, and this is reported.
    let old = files.with(
        "old.json",
        "{\"aspas\": [{\"customer_asid\": 64500, \"providers\": [2497], \"expires\": 1000}]}",
    );
    let run = done(&["rpki", &vrps, &rib, "--aspa", &old, "--list", "aspa-valid"]);
    assert!(run.err.contains("old.json: 1 of 1 ASPAs have expired; they are used"), "{}", run.err);
    assert_eq!(run.out.lines().count(), 2);
}
