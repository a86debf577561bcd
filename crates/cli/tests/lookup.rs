//! `fibula lookup`: prefixes, values, lines as they come. Expected answers come from a scan of all routes.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::common::{Files, TABLE, done, execute, execute_with};

/// A prefix of the scan: the address at the top of 128 bits, its length, and whether it is IPv6.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Scanned(bool, u128, u8);

impl Scanned {
    fn covers(self, other: Self) -> bool {
        let mask = if self.2 == 0 { 0 } else { u128::MAX << (128 - self.2) };
        self.0 == other.0 && self.2 <= other.2 && other.1 & mask == self.1
    }

    fn text(self) -> String {
        let Self(is_v6, top, len) = self;
        let ip: IpAddr = match is_v6 {
            false => Ipv4Addr::from((top >> 96) as u32).into(),
            true => Ipv6Addr::from(top).into(),
        };
        format!("{ip}/{len}")
    }
}

/// Nested routes, six bits of which vary at the top and at the bottom of the space, with a value each.
fn routes() -> Vec<(Scanned, u32)> {
    let mut state = 7u64;
    let mut next = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as u32
    };
    let mut known = BTreeSet::new();
    let mut routes = Vec::new();
    while routes.len() < 120 {
        let (is_v6, is_low) = (next() % 2 == 1, next() % 2 == 1);
        let (len, bits) = ((next() % 7) as u8, u128::from(next() % 64));
        let len = if !is_low {
            len
        } else if is_v6 {
            122 + len
        } else {
            26 + len
        };
        let top = match (is_low, is_v6) {
            (false, _) => bits << 122,
            (true, true) => u128::MAX - bits,
            (true, false) => u128::from(u32::MAX - bits as u32) << 96,
        };
        let mask = if len == 0 { 0 } else { u128::MAX << (128 - len) };
        let prefix = Scanned(is_v6, top & mask, len);
        if known.insert(prefix) {
            routes.push((prefix, next() % 5));
        }
    }
    routes
}

fn text(routes: &[(Scanned, u32)]) -> String {
    let mut text = "prefix,origin_as,name\n".to_owned();
    for (prefix, value) in routes {
        let _ = writeln!(text, "{},{value},n{}", prefix.text(), value % 3);
    }
    text
}

/// `address`, `prefix` and `match` of the rows.
fn rows(out: &str) -> Vec<Vec<String>> {
    out.lines().map(|line| line.split('\t').take(3).map(str::to_owned).collect()).collect()
}

#[test]
fn prefixes_are_answered_as_by_a_scan() {
    let files = Files::new();
    let routes = routes();
    let table = files.with("table.csv", text(&routes));
    let mut asked: Vec<Scanned> = routes.iter().map(|(prefix, _)| *prefix).collect();
    // Neighbours, shorter ones and longer ones of some.
    for (Scanned(is_v6, top, len), _) in &routes[..40] {
        let bits = if *is_v6 { 128 } else { 32 };
        let mask = |len: u8| if len == 0 { 0 } else { u128::MAX << (128 - len) };
        asked.push(Scanned(*is_v6, top & mask(len / 2), len / 2));
        asked.push(Scanned(*is_v6, *top, bits.min(len + 1)));
    }
    let questions: Vec<String> = asked.iter().map(|prefix| prefix.text()).collect();
    for view in ["longest", "exact", "covering", "covered", "all"] {
        let mut expected = Vec::new();
        for asked in &asked {
            let mut covering: Vec<_> =
                routes.iter().map(|(p, _)| *p).filter(|p| p.covers(*asked)).collect();
            covering.sort_by_key(|prefix| std::cmp::Reverse(prefix.2));
            let mut covered: Vec<_> =
                routes.iter().map(|(p, _)| *p).filter(|p| asked.covers(*p)).collect();
            covered.sort();
            let found = match view {
                "longest" => covering.into_iter().take(1).collect(),
                "exact" => covering.into_iter().filter(|p| p == asked).collect(),
                "covering" => covering,
                "covered" => covered,
                _ => {
                    covering.extend(covered.into_iter().filter(|p| p != asked));
                    covering
                }
            };
            if found.is_empty() {
                expected.push(vec![asked.text(), "-".into(), "-".into()]);
            }
            for prefix in found {
                let matched = match prefix.2.cmp(&asked.2) {
                    std::cmp::Ordering::Less => "covering",
                    std::cmp::Ordering::Equal => "exact",
                    std::cmp::Ordering::Greater => "covered",
                };
                expected.push(vec![asked.text(), prefix.text(), matched.to_owned()]);
            }
        }
        let ask = ["lookup", "-t", &table, "--no-header", "--view", view];
        let run = execute_with(&[&ask[..], &["-"]].concat(), questions.join("\n"));
        assert_eq!(rows(&run.out), expected, "{view}");
        let missing = expected.iter().any(|row| row[1] == "-");
        assert_eq!(run.code, i32::from(missing), "{view}: {}", run.err);
        // As arguments: the same.
        let words: Vec<&str> = questions.iter().map(String::as_str).collect();
        assert_eq!(execute(&[&ask[..], &words].concat()).out, run.out, "{view}");
    }
}

#[test]
fn routes_are_found_by_value() {
    let files = Files::new();
    let routes = routes();
    let table = files.with("table.csv", text(&routes));
    type Has = fn(u32) -> bool;
    let cases: [(&[&str], Has); 5] = [
        (&["origin_as=3"], |value| value == 3),
        (&["origin_as=AS3"], |value| value == 3),
        (&["origin_as=3", "origin_as=1"], |value| value == 3 || value == 1),
        (&["origin_as=3", "name=n0"], |value| value == 3),
        (&["name=n1", "origin_as=4", "origin_as=2"], |value| value == 4),
    ];
    for (conditions, has) in cases {
        let mut expected: Vec<_> =
            routes.iter().filter(|(_, value)| has(*value)).map(|(prefix, _)| *prefix).collect();
        expected.sort();
        assert!(!expected.is_empty(), "{conditions:?}");
        let expected: Vec<String> = expected.into_iter().map(Scanned::text).collect();
        let asked = conditions.iter().flat_map(|condition| ["--where", condition]);
        let ask: Vec<&str> = ["lookup", "-t", &table].into_iter().chain(asked).collect();
        let out = done(&ask).out;
        assert!(out.starts_with("prefix\torigin_as\tname\n"), "{out}");
        let found: Vec<&str> =
            out.lines().skip(1).filter_map(|line| line.split('\t').next()).collect();
        assert_eq!(found, expected, "{conditions:?}");
        let lines = done(&[&ask[..], &["--json"]].concat()).out;
        let first: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
        assert_eq!(first["prefix"], json!(expected[0]));
        assert!(first.get("address").is_none() && first["origin_as"].is_u64());
    }
    let none = execute(&["lookup", "-t", &table, "--where", "origin_as=9", "--no-header"]);
    assert_eq!((none.code, none.out.as_str()), (1, ""));
    for (condition, what) in [
        ("origin=3", "no column \"origin\"; there are: origin_as, name"),
        ("origin_as=x", "the column origin_as has integers, \"x\" is none"),
        ("origin_as", "COLUMN=VALUE"),
        ("=3", "COLUMN=VALUE"),
    ] {
        let bad = execute(&["lookup", "-t", &table, "--where", condition]);
        assert_eq!(bad.code, 2, "{condition}");
        assert!(bad.err.contains(what), "{condition}: {}", bad.err);
    }
    assert_eq!(execute(&["lookup", "-t", &table, "--where", "name=n1", "10.0.0.1"]).code, 2);
    assert_eq!(execute(&["lookup", "-t", &table, "--aggregate", "10.0.0.1"]).code, 2);
}

/// The aggregated prefixes cover the same of the addresses that vary, none of them twice.
#[test]
fn found_prefixes_are_merged() {
    let files = Files::new();
    let routes = routes();
    let table = files.with("table.csv", text(&routes));
    for value in 0..5 {
        let condition = format!("origin_as={value}");
        let ask = ["lookup", "-t", &table, "--where", &condition, "--no-header"];
        let all = done(&ask).out;
        let merged = done(&[&ask[..], &["--aggregate"]].concat()).out;
        let parse = |out: &str| -> Vec<Scanned> {
            let prefix = |line: &str| {
                let (ip, len) = line.split('\t').next().unwrap().split_once('/').unwrap();
                match ip.parse().unwrap() {
                    IpAddr::V4(ip) => {
                        Scanned(false, u128::from(u32::from(ip)) << 96, len.parse().unwrap())
                    }
                    IpAddr::V6(ip) => Scanned(true, u128::from(ip), len.parse().unwrap()),
                }
            };
            out.lines().map(prefix).collect()
        };
        let (all, merged) = (parse(&all), parse(&merged));
        assert!(merged.len() <= all.len());
        for is_v6 in [false, true] {
            let bits = if is_v6 { 128 } else { 32 };
            for n in 0..64u128 {
                let low = if is_v6 { u128::MAX - n } else { u128::from(u32::MAX - n as u32) << 96 };
                for top in [n << 122, low] {
                    let host = Scanned(is_v6, top, bits);
                    let is_in = |list: &[Scanned]| list.iter().filter(|p| p.covers(host)).count();
                    assert_eq!(is_in(&all) > 0, is_in(&merged) > 0, "{}", host.text());
                    assert!(is_in(&merged) < 2, "{}", host.text());
                }
            }
        }
    }
    let halves =
        files.with("halves.csv", "prefix,asn\n10.0.0.0/9,1\n10.128.0.0/9,1\n10.2.0.0/16,1\n");
    let out = done(&["lookup", "-t", &halves, "--where", "asn=1", "--aggregate"]).out;
    assert_eq!(out, "prefix\n10.0.0.0/8\n");
}

#[test]
fn lists_and_missing_values_are_found() {
    let files = Files::new();
    let a = files.with("drop.txt", "192.0.2.0/24\n198.51.100.0/24\n");
    let b = files.with("botnet.txt", "192.0.2.0/24\n");
    let both = format!("{a},{b}");
    let ask = ["lookup", "-t", &both, "--tags", "list", "--no-header", "--where"];
    assert_eq!(done(&[&ask[..], &["list=botnet"]].concat()).out, "192.0.2.0/24\tdrop;botnet\n");
    let dropped = done(&[&ask[..], &["list=drop", "--aggregate"]].concat()).out;
    assert_eq!(dropped, "192.0.2.0/24\n198.51.100.0/24\n");
    assert_eq!(execute(&[&ask[..], &["list=drop;botnet"]].concat()).code, 1);
    let holes = files.with("holes.csv", "prefix,asn,name\n10.0.0.0/8,1,a\n11.0.0.0/8,,b\n");
    let out = done(&["lookup", "-t", &holes, "--where", "asn=", "--no-header"]).out;
    assert_eq!(out, "11.0.0.0/8\t-\tb\n");
}

#[test]
fn layers_are_looked_up_together() {
    let files = Files::new();
    let (geo, asn) = (files.with("geo.csv", TABLE), files.with("asn.txt", "10.1.2.0/25 7\n"));
    let (geo, asn) = (format!("geo={geo}"), format!("asn={asn}"));
    let ask = ["lookup", "--layer", &geo, "--layer", &asn, "--no-header"];
    let out = done(&[&ask[..], &["10.1.2.3", "10.1.2.200"]].concat()).out;
    assert_eq!(out, "10.1.2.3\t10.1.2.0/25\t64503\tNL\t7\n10.1.2.200\t10.1.2.0/24\t64503\tNL\t-\n");
    assert_eq!(execute(&["lookup", "--layer", &geo, "-t", "embedded", "10.1.2.3"]).code, 2);
}

/// A program that asks line by line gets each answer before it asks again, whatever it asks.
#[test]
fn another_program_asks_line_by_line() {
    let files = Files::new();
    let fib = files.snapshot();
    let mut child = Command::new(env!("CARGO_BIN_EXE_fibula"))
        .args(["lookup", "-t", &fib, "--no-header", "10.0.0.0/8", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut answer = String::new();
    output.read_line(&mut answer).unwrap();
    assert_eq!(answer, "10.0.0.0/8\t10.0.0.0/8\texact\t64501\tDE\n");
    for (question, expected) in [
        ("10.1.2.3", "10.1.2.3\t10.1.2.0/24\tcovering\t64503\tNL\n"),
        ("nothing", "nothing\t-\t-\t-\t-\n"),
        ("", "-\t-\t-\t-\t-\n"),
        ("2001:db8:1::/64 x", "2001:db8:1::/64\t2001:db8:1::/48\tcovering\t64506\tDE\n"),
    ] {
        writeln!(input, "{question}").unwrap();
        answer.clear();
        output.read_line(&mut answer).unwrap();
        assert_eq!(answer, expected);
    }
    drop(input);
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(2));
    let err = String::from_utf8(ended.stderr).unwrap();
    assert!(err.contains("line 2: \"nothing\" is not an address"), "{err}");
}

#[test]
fn json_describes_the_fault() {
    let files = Files::new();
    let fib = files.snapshot();
    let run = execute_with(&["lookup", "-t", &fib, "--json"], "10.0.0.0/7\n1.2.3.4\n\nx\n");
    assert_eq!(run.code, 2);
    let lines: Vec<Value> =
        run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        lines,
        [
            json!({"address": "10.0.0.0/7", "prefix": "0.0.0.0/0", "match": "covering", "asn": 64500, "country": "CH"}),
            json!({"address": "1.2.3.4", "prefix": "0.0.0.0/0", "asn": 64500, "country": "CH"}),
            json!({"address": null, "prefix": null, "asn": null, "country": null}),
            json!({"address": "x", "prefix": null, "asn": null, "country": null, "error": "\"x\" is not an address"}),
        ]
    );
}

/// A table may have columns with the names of an answer's own.
#[test]
fn columns_keep_their_values_beside_those_of_the_answer() {
    let files = Files::new();
    let csv = files.with("t.csv", "cidr,prefix,address,address_2\n10.0.0.0/8,p,Main St 1,x\n");
    let run = done(&["lookup", "-t", &csv, "--key", "cidr", "--json", "10.1.1.1"]);
    assert_eq!(
        serde_json::from_str::<Value>(&run.out).unwrap(),
        json!({"address": "10.1.1.1", "prefix": "10.0.0.0/8", "prefix_2": "p", "address_3": "Main St 1", "address_2": "x"})
    );
    let run = done(&["lookup", "-t", &csv, "--key", "cidr", "10.1.1.1"]);
    assert!(
        run.out.starts_with("address\tprefix\tprefix_2\taddress_3\taddress_2\n"),
        "{}",
        run.out
    );
}
