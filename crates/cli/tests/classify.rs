//! `fibula classify`.

use crate::common::{Files, done, json, said, said_to};

const RULES: &str = "\
# The first that matches wins.
udp dport 53 -> allow label \"dns, queries\"
src 10.0.0.0/8 tcp -> mark 7 vrf blue
priority 9 src 10.9.0.0/16 -> drop
tcp dport 22-23 -> drop
";

const FLOWS: &str = "\
id,dst,protocol,src,note,dport,sport
1,192.0.2.1,udp,10.0.0.1,\"a, b\",53,999
2,192.0.2.1,6,10.0.0.1,,80,40000
3,192.0.2.1,tcp,10.9.1.1,,22,40000
4,192.0.2.1,tcp,198.51.100.1,,23,40000
5,2001:db8::1,tcp,2001:db8::2,,22,40000
6,192.0.2.1,icmp,198.51.100.1,,,
";

fn capture() -> String {
    format!("{}/../../testdata/tcpdump-tests.pcap", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn rows_get_their_rules() {
    let files = Files::new();
    let (rules, flows) = (files.with("rules.txt", RULES), files.with("flows.csv", FLOWS));
    let said = done(&["classify", &rules, &flows]);
    let expected = "\
id,dst,protocol,src,note,dport,sport,rule_line,rule_action,rule_label
1,192.0.2.1,udp,10.0.0.1,\"a, b\",53,999,2,allow,\"dns, queries\"
2,192.0.2.1,6,10.0.0.1,,80,40000,3,mark 7 vrf blue,
3,192.0.2.1,tcp,10.9.1.1,,22,40000,4,drop,
4,192.0.2.1,tcp,198.51.100.1,,23,40000,5,drop,
5,2001:db8::1,tcp,2001:db8::2,,22,40000,5,drop,
6,192.0.2.1,icmp,198.51.100.1,,,,,,
";
    assert_eq!(said.out, expected);
    assert!(
        said.err.contains("6 packets, 1 of them without a rule; 4 rules were hit, of 4"),
        "{}",
        said.err
    );
    let counts = json(&["classify", &rules, &flows, "--json"]);
    assert_eq!(counts["packets"], 6);
    assert_eq!(counts["unmatched"]["packets"], 1);
    let by_line: Vec<_> = counts["rules"]
        .as_array()
        .unwrap()
        .iter()
        .map(|rule| (rule["line"].as_u64(), rule["packets"].as_u64()))
        .collect();
    assert_eq!(
        by_line,
        [(Some(2), Some(1)), (Some(3), Some(1)), (Some(4), Some(1)), (Some(5), Some(2))]
    );
}

#[test]
fn captures_are_counted_as_their_rows_say() {
    let files = Files::new();
    let rules =
        files.with("rules.txt", "tcp -> allow\nudp -> allow\nip_version 6 -> drop\nany -> drop\n");
    let rows = done(&["classify", &rules, &capture(), "-q"]);
    let mut lines = rows.out.lines();
    assert_eq!(
        lines.next(),
        Some("packet,src,dst,protocol,src_port,dst_port,rule_line,rule_action,rule_label")
    );
    let mut by_rule = [0u64; 5];
    for row in lines {
        let cells: Vec<&str> = row.split(',').collect();
        let expected = match (cells[3], cells[1].contains(':')) {
            ("6", _) => 1,
            ("17", _) => 2,
            (_, true) => 3,
            _ => 4,
        };
        assert_eq!(cells[6], expected.to_string(), "{row}");
        by_rule[expected] += 1;
    }
    assert_eq!(by_rule.iter().sum::<u64>(), 1235);
    let counts = json(&["classify", &rules, &capture(), "--json"]);
    for rule in counts["rules"].as_array().unwrap() {
        assert_eq!(
            rule["packets"].as_u64(),
            Some(by_rule[rule["line"].as_u64().unwrap() as usize])
        );
    }
    // Few bits decide: protocol, version and nothing of the addresses.
    assert!(counts["megaflows"].as_u64().unwrap() < 20, "{counts}");
    let table = done(&["classify", &rules, &capture(), "--summary"]);
    assert!(table.out.contains("tcp -> allow"), "{}", table.out);
}

#[test]
fn one_packet_is_explained() {
    let files = Files::new();
    let rules = files.with("rules.txt", RULES);
    let said = done(&["classify", &rules, "--explain", "10.0.0.1,192.0.2.1,tcp,40000,22"]);
    assert!(
        said.out.starts_with("rule of line 3 wins: src 10.0.0.0/8 tcp -> mark 7 vrf blue\n"),
        "{}",
        said.out
    );
    assert!(said.out.contains("2 rules would have won and do not match"), "{}", said.out);
    assert!(
        said.out.contains("line 4 (ip_src): priority 9 src 10.9.0.0/16 -> drop"),
        "{}",
        said.out
    );
    assert!(said.out.contains("it also matches these, which lose\n  line 5: "), "{}", said.out);
    let none = self::said(&["classify", &rules, "--explain", "192.0.2.1,192.0.2.2,icmp", "--json"]);
    assert_eq!(none.code, 1, "no rule matches");
    assert!(none.out.contains("\"winner\": null"), "{}", none.out);
}

#[test]
fn rules_come_from_other_tools() {
    let files = Files::new();
    let flows = files.with("flows.csv", FLOWS);
    let saved = "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD DROP [0:0]\n-A INPUT -p tcp -m tcp --dport 22 -j DROP\nCOMMIT\n";
    let said = said_to(&["classify", "--chain", "INPUT", "-", &flows, "--summary"], saved);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.out.contains("dport 22 tcp ip_version 4 -> drop"), "{}", said.out);
    let list = files.with("list.txt", "10.0.0.0/8\n2001:db8::/32 allow\n");
    let said = done(&["classify", "--source", &list, &flows, "--summary"]);
    assert!(
        said.out.contains("src 10.0.0.0/8 -> drop")
            && said.out.contains("src 2001:db8::/32 -> allow"),
        "{}",
        said.out
    );
}

/// Nothing is written unless all of it is.
#[test]
fn what_is_wrong_is_named() {
    let files = Files::new();
    let (rules, flows) = (files.with("rules.txt", RULES), files.with("flows.csv", FLOWS));
    let out = files.path("out.csv");
    let cases: &[(&str, &str, &str)] = &[
        (
            &files.with("a.txt", "any -> drop\nsrc 10.0.0.1/8 -> drop\n"),
            &flows,
            "a.txt: line 2, column 5: ",
        ),
        (
            &files.with("b.txt", "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -i eth0 -j DROP\n"),
            &flows,
            "line 3, column 12",
        ),
        (
            &rules,
            &files.with("c.csv", "src,dst\n1.1.1.1,1.1.1.2\n"),
            "line 1: no column is called protocol",
        ),
        (
            &rules,
            &files.with("d.csv", "src,dst,proto\n1.1.1.1,1.1.1.2,6\n1.1.1,1.1.1.2,6\n"),
            "line 3: \"1.1.1\" is not an address",
        ),
        (&rules, &files.with("e.csv", ""), "the file is empty"),
    ];
    for (rules, packets, what) in cases {
        let said = said(&["classify", rules, packets, "-o", &out]);
        assert_eq!(said.code, 2, "{what}");
        assert!(said.err.contains(what), "{}: {what}", said.err);
        assert!(!std::path::Path::new(&out).exists(), "{what}");
    }
    assert_eq!(said(&["classify", &rules]).code, 2, "packets are missing");
}
