//! `fibula classify`.

use crate::common::{Files, done, execute, execute_with, json};

pub const RULES: &str = "\
# The first that matches wins.
udp dport 53 -> allow label \"dns, queries\"
src 10.0.0.0/8 tcp -> mark 7 vrf blue
priority 9 src 10.9.0.0/16 -> drop
tcp dport 22-23 -> drop
";

pub const FLOWS: &str = "\
id,dst,protocol,src,note,dport,sport
1,192.0.2.1,udp,10.0.0.1,\"a, b\",53,999
2,192.0.2.1,6,10.0.0.1,,80,40000
3,192.0.2.1,tcp,10.9.1.1,,22,40000
4,192.0.2.1,tcp,198.51.100.1,,23,40000
5,2001:db8::1,tcp,2001:db8::2,,22,40000
6,192.0.2.1,icmp,198.51.100.1,,,
";

pub fn capture() -> String {
    format!("{}/../../testdata/tcpdump-tests.pcap", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn rows_get_their_rules() {
    let files = Files::new();
    let (rules, flows) = (files.with("rules.txt", RULES), files.with("flows.csv", FLOWS));
    let result = done(&["classify", &rules, &flows]);
    let expected = "\
id,dst,protocol,src,note,dport,sport,rule_line,rule_action,rule_label
1,192.0.2.1,udp,10.0.0.1,\"a, b\",53,999,2,allow,\"dns, queries\"
2,192.0.2.1,6,10.0.0.1,,80,40000,3,mark 7 vrf blue,
3,192.0.2.1,tcp,10.9.1.1,,22,40000,4,drop,
4,192.0.2.1,tcp,198.51.100.1,,23,40000,5,drop,
5,2001:db8::1,tcp,2001:db8::2,,22,40000,5,drop,
6,192.0.2.1,icmp,198.51.100.1,,,,,,
";
    assert_eq!(result.out, expected);
    assert!(
        result.err.contains("6 packets, 1 of them without a rule; 4 rules were hit, of 4"),
        "{}",
        result.err
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

/// The rows of `FLOWS` in other formats: each keeps its bytes, and the same rules are added.
#[test]
fn rows_of_other_formats_get_their_rules() {
    let files = Files::new();
    let rules = files.with("rules.txt", RULES);
    let lines =
        ["2,allow,\"dns, queries\"", "3,mark 7 vrf blue,", "4,drop,", "5,drop,", "5,drop,", ",,"];

    let tsv = FLOWS.replace("\"a, b\"", "a b").replace(',', "\t");
    let out = done(&["classify", &rules, &files.with("flows.tsv", &tsv)]).out;
    for ((row, before), added) in out.lines().skip(1).zip(tsv.lines().skip(1)).zip(lines) {
        let added = added.replace("\"dns, queries\"", "dns; queries").replace(',', "\t");
        assert_eq!(row, format!("{before}\t{}", added.replace(';', ",")));
    }
    // The delimiter of a table with another name is found out.
    let semicolons = FLOWS.replace("\"a, b\"", "ab").replace(',', ";");
    let out = done(&["classify", &rules, &files.with("flows.csv", &semicolons)]).out;
    assert!(out.contains("\n2;192.0.2.1;6;10.0.0.1;;80;40000;3;mark 7 vrf blue;\n"), "{out}");

    let json = "\
{\"id.orig_h\": \"10.0.0.1\", \"id.resp_h\": \"192.0.2.1\", \"proto\": \"udp\", \"id.orig_p\": 999, \"id.resp_p\": 53}
{\"id.orig_h\": \"10.0.0.1\", \"id.resp_h\": \"192.0.2.1\", \"proto\": 6, \"id.orig_p\": 40000, \"id.resp_p\": 80}

{\"id.orig_h\": \"198.51.100.1\", \"id.resp_h\": \"192.0.2.1\", \"proto\": \"icmp\"}
";
    let out = done(&["classify", &rules, &files.with("conn.json", json)]).out;
    let expected = "\
{\"id.orig_h\": \"10.0.0.1\", \"id.resp_h\": \"192.0.2.1\", \"proto\": \"udp\", \"id.orig_p\": 999, \"id.resp_p\": 53,\
\"rule_line\":2,\"rule_action\":\"allow\",\"rule_label\":\"dns, queries\"}
{\"id.orig_h\": \"10.0.0.1\", \"id.resp_h\": \"192.0.2.1\", \"proto\": 6, \"id.orig_p\": 40000, \"id.resp_p\": 80,\
\"rule_line\":3,\"rule_action\":\"mark 7 vrf blue\",\"rule_label\":null}

{\"id.orig_h\": \"198.51.100.1\", \"id.resp_h\": \"192.0.2.1\", \"proto\": \"icmp\",\
\"rule_line\":null,\"rule_action\":null,\"rule_label\":null}
";
    assert_eq!(out, expected);
    let counts = self::json(&["classify", &rules, &files.path("conn.json"), "--json"]);
    assert_eq!((&counts["packets"], &counts["unmatched"]["packets"]), (&3.into(), &1.into()));
    let result =
        execute(&["classify", &rules, &files.with("other.json", "{\"src\":\"10.0.0.1\"}\n")]);
    assert!(result.err.contains("line 1: no column is called dst"), "{}", result.err);
    let twice = execute_with(&["classify", &rules, "-"], expected);
    assert_eq!(twice.code, 2);
    assert!(twice.err.contains("already has a column"), "{}", twice.err);
}

/// Quotes as `annotate` reads them: doubled ones, delimiters and line ends within; a row of several MiB is one row.
#[test]
fn quotes_and_long_rows() {
    let files = Files::new();
    let rules = files.with("rules.txt", RULES);
    let long = "x".repeat(3 << 20);
    let flows = format!(
        "note,src,dst,proto,sport,dport\r\n\"say \"\"a, b\"\"\n and more\",\"10.0.0.1\", 192.0.2.1 ,\"tcp\",1,2\r\n\
         {long},10.9.0.1,192.0.2.1,tcp,1,2\r\n"
    );
    let out = done(&["classify", &rules, &files.with("flows.csv", &flows)]).out;
    let expected = format!(
        "note,src,dst,proto,sport,dport,rule_line,rule_action,rule_label\r\n\
         \"say \"\"a, b\"\"\n and more\",\"10.0.0.1\", 192.0.2.1 ,\"tcp\",1,2,3,mark 7 vrf blue,\r\n\
         {long},10.9.0.1,192.0.2.1,tcp,1,2,4,drop,\r\n"
    );
    assert!(out == expected, "{} and {} bytes", out.len(), expected.len());
}

/// Damaged rows are counted, or an error with `--strict`; a row without a flow is an error in any case.
#[test]
fn damage_is_counted_or_an_error() {
    let files = Files::new();
    let rules = files.with("rules.txt", RULES);
    let flows = files
        .with("flows.csv", "src,dst,proto\n10.0.0.1,192.0.2.1,tcp,more\n10.0.0.1,192.0.2.1,6\n");
    let counted = done(&["classify", &rules, &flows, "--json"]);
    let counts: serde_json::Value = serde_json::from_str(&counted.out).unwrap();
    assert_eq!((&counts["packets"], &counts["damaged"]), (&2.into(), &1.into()));
    let strict = execute(&["classify", &rules, &flows, "--strict"]);
    assert_eq!(strict.code, 2);
    assert!(
        strict.err.contains("record at line 2: 4 fields, the first row has 3"),
        "{}",
        strict.err
    );
    for (row, what) in [
        ("10.0.0.1,192.0.2.1,tpc,1,2", "line 2: \"tpc\" is no protocol: give its number"),
        ("10.0.0.1,192.0.2.1,tcp,1,70000", "line 2: \"70000\" is not a port"),
        ("10.0.0.1,192.0.2.1,tcp,1,", "line 2: \"\" is not a port"),
        ("10.0.0.1,::1,tcp,1,2", "line 2: source and destination are of different families"),
        ("10.0.0.1,,tcp,1,2", "line 2: \"\" is not an address"),
        ("10.0.0.1,6,tcp,1,2", "line 2: \"6\" is not an address"),
        ("10.0.0.1,192.0.2.1,192.0.2.1,1,2", "line 2: \"192.0.2.1\" is no protocol"),
        (
            "10.0.0.1,192.0.2.1,icmp,0,2048",
            "line 2: the ports of an ICMP packet are its type and code",
        ),
        ("10.0.0.1,\"192.0.2.1,tcp,1,2\n1,2", "line 2: a quote in this record is never closed"),
    ] {
        let flows =
            files.with("flows.csv", format!("src,dst,proto,sport,dport\n{row}\n1.1.1.1,x,6,1,2\n"));
        let result = execute(&["classify", &rules, &flows]);
        assert_eq!(result.code, 2, "{row}");
        assert!(result.err.contains(what), "{row}: {}", result.err);
    }
    let bytes = std::fs::read(capture()).unwrap();
    let cut = files.with("cut.pcap", &bytes[..bytes.len() - 5]);
    assert!(done(&["classify", &rules, &cut, "--summary"]).err.contains("1 damaged places"));
    let strict = execute(&["classify", &rules, &cut, "--summary", "--strict"]);
    assert_eq!(strict.code, 2);
    assert!(strict.err.contains("the capture ends within"), "{}", strict.err);
}

/// Several threads write what one writes, count the same, and name the first error.
#[test]
fn threads_change_nothing() {
    let files = Files::new();
    let rules = files.with("rules.txt", RULES);
    let mut flows = String::from("src,dst,protocol,src_port,dst_port,note\n");
    let mut json = String::new();
    for i in 0..60_000u32 {
        let (src, port) = (0x0a00_0000 + i * 7919 % 0x00ff_ffff, i % 65_536);
        let src = std::net::Ipv4Addr::from(src);
        let note = if i % 11 == 0 { "\"two\nlines, \"\"quoted\"\"\"" } else { "one" };
        flows += &format!(
            "{src},192.0.2.1,{},{port},{},{note}\n",
            [6, 17, 6][i as usize % 3],
            22 + i % 40
        );
        json += &format!(
            "{{\"src\":\"{src}\",\"dst\":\"192.0.2.1\",\"protocol\":{},\"sport\":{port},\"dport\":{}}}\n",
            [6, 17, 6][i as usize % 3],
            22 + i % 40
        );
    }
    let wrong = flows.clone() + "x,192.0.2.1,6,1,2,\n" + &flows[39..] + "y,192.0.2.1,6,1,2,\n";
    for (name, text) in [("flows.csv", &flows), ("flows.jsonl", &json)] {
        let path = files.with(name, text);
        let one = done(&["classify", &rules, &path, "--threads", "1", "-q"]).out;
        assert_eq!(one.lines().count(), text.lines().count());
        for threads in ["2", "5"] {
            let many = done(&["classify", &rules, &path, "--threads", threads, "-q"]).out;
            assert!(one == many, "{name} on {threads} threads");
        }
        let counts = |threads: &str| {
            self::json(&["classify", &rules, &path, "--json", "--threads", threads])
        };
        let (one, many) = (counts("1"), counts("4"));
        assert_eq!((&one["rules"], &one["packets"]), (&many["rules"], &many["packets"]));
        assert_eq!(one["unmatched"], many["unmatched"]);
    }
    let wrong = files.with("wrong.csv", &wrong);
    let line = flows.lines().count() + 1;
    for threads in ["1", "3"] {
        let result =
            execute(&["classify", &rules, &wrong, "--threads", threads, "-o", &files.path("o")]);
        assert!(
            result.err.contains(&format!("line {line}: \"x\" is not an address")),
            "{}",
            result.err
        );
    }
}

/// Packets that a host captured before its network card divided them have an IP length of 0. `annotate` and `classify`
/// read the same of them.
#[test]
fn packets_without_a_length() {
    let tcp = b"\x9c\x40\0\x16\0\0\0\x01\0\0\0\x02\x50\x18\x10\0\0\0\0\0data";
    let v4 = [&b"\x45\0\0\0\0\x01\x40\0\x40\x06\0\0\x0a\0\0\x01\xc0\0\x02\x01"[..], tcp].concat();
    let mut v6 = b"\x60\0\0\0\0\0\x06\x40".to_vec();
    for host in [1, 2] {
        v6.extend([&b"\x20\x01\x0d\xb8"[..], &[0; 11], &[host]].concat());
    }
    v6.extend(tcp);
    let mut pcap = b"\xd4\xc3\xb2\xa1\x02\0\x04\0\0\0\0\0\0\0\0\0\xff\xff\0\0\x65\0\0\0".to_vec();
    for packet in [&v4, &v6] {
        for field in [100u32, 5, packet.len() as u32, 30_000] {
            pcap.extend(field.to_le_bytes());
        }
        pcap.extend(packet);
    }
    let files = Files::new();
    let rules = files.with("rules.txt", "tcp sport 40000 dport 22 -> allow\nany -> drop\n");
    let capture = files.with("offload.pcap", &pcap);
    let hits = done(&["classify", &rules, &capture]).out;
    let expected = "\
packet,src,dst,protocol,src_port,dst_port,rule_line,rule_action,rule_label
1,10.0.0.1,192.0.2.1,6,40000,22,1,allow,
2,2001:db8::1,2001:db8::2,6,40000,22,1,allow,
";
    assert_eq!(hits, expected);
    let table = files.with("table.txt", "10.0.0.0/8 ten\n2001:db8::/32 doc\n");
    let rows = done(&["annotate", "--table", &table, &capture]);
    assert!(rows.out.contains(",10.0.0.1,192.0.2.1,tcp,40000,22,30000,"), "{}", rows.out);
    assert!(rows.out.contains(",2001:db8::1,2001:db8::2,tcp,40000,22,30000,"), "{}", rows.out);
}

#[test]
fn one_packet_is_explained() {
    let files = Files::new();
    let rules = files.with("rules.txt", RULES);
    let result = done(&["classify", &rules, "--explain", "10.0.0.1,192.0.2.1,tcp,40000,22"]);
    assert!(
        result.out.starts_with("rule of line 3 wins: src 10.0.0.0/8 tcp -> mark 7 vrf blue\n"),
        "{}",
        result.out
    );
    assert!(result.out.contains("2 rules would have won and do not match"), "{}", result.out);
    assert!(
        result.out.contains("line 4 (ip_src): priority 9 src 10.9.0.0/16 -> drop"),
        "{}",
        result.out
    );
    assert!(result.out.contains("it also matches these, which lose\n  line 5: "), "{}", result.out);
    let none = execute(&["classify", &rules, "--explain", "192.0.2.1,192.0.2.2,icmp", "--json"]);
    assert_eq!(none.code, 1, "no rule matches");
    assert!(none.out.contains("\"winner\": null"), "{}", none.out);
}

#[test]
fn rules_come_from_other_tools() {
    let files = Files::new();
    let flows = files.with("flows.csv", FLOWS);
    let saved = "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD DROP [0:0]\n-A INPUT -p tcp -m tcp --dport 22 -j DROP\nCOMMIT\n";
    let result = execute_with(&["classify", "--chain", "INPUT", "-", &flows, "--summary"], saved);
    assert_eq!(result.code, 0, "{}", result.err);
    assert!(result.out.contains("dport 22 tcp ip_version 4 -> drop"), "{}", result.out);
    let list = files.with("list.txt", "10.0.0.0/8\n2001:db8::/32 allow\n");
    let result = done(&["classify", "--source", &list, &flows, "--summary"]);
    assert!(
        result.out.contains("src 10.0.0.0/8 -> drop")
            && result.out.contains("src 2001:db8::/32 -> allow"),
        "{}",
        result.out
    );
}

/// Rules and packets are not overwritten, whatever they are called.
#[test]
fn an_input_is_no_output() {
    let files = Files::new();
    let (rules, flows) = (files.with("rules.txt", RULES), files.with("flows.csv", FLOWS));
    let again = flows.replace("flows.csv", "./flows.csv");
    for output in [&rules, &flows, &again] {
        for more in [&[][..], &["--json"], &["--summary"]] {
            let result = execute(&[&["classify", &rules, &flows, "-o", output], more].concat());
            assert_eq!(result.code, 2, "{output}");
            assert!(result.err.contains("input and output"), "{}", result.err);
        }
    }
    assert_eq!(std::fs::read_to_string(&rules).unwrap(), RULES);
    assert_eq!(std::fs::read_to_string(&flows).unwrap(), FLOWS);
}

/// A table without columns of ports is not silently one of packets without ports.
#[test]
fn missing_ports_are_said() {
    let files = Files::new();
    let rules = files.with("rules.txt", RULES);
    let flows = files.with("flows.csv", "\u{feff}src,dst,proto\n10.0.0.1,192.0.2.1,tcp\n");
    let result = done(&["classify", &rules, &flows, "--json"]);
    assert!(result.err.contains("no columns of ports"), "{}", result.err);
    let aws = "dstaddr,srcaddr,protocol,srcport,dstport\n192.0.2.1,::ffff:8.8.8.8,6,40000,22\n";
    let result = done(&["classify", &rules, &files.with("aws.csv", aws)]);
    assert!(result.out.ends_with(",5,drop,\n"), "{}", result.out);
    assert!(!result.err.contains("no columns"), "{}", result.err);
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
            &files.with("p.txt", "10.0.0.0/8 dorp\n"),
            &flows,
            "it was read as prefixes, by its first line; --format names another format",
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
        (
            &rules,
            &files.with("g.csv", "src,dst,proto,rule_line\n1.1.1.1,1.1.1.2,6,7\n"),
            "already has a column rule_line",
        ),
        (&files.with("f.txt", "# any -> drop\n"), &flows, "it has no rules"),
    ];
    for (rules, packets, what) in cases {
        let result = execute(&["classify", rules, packets, "-o", &out]);
        assert_eq!(result.code, 2, "{what}");
        assert!(result.err.contains(what), "{}: {what}", result.err);
        assert!(!std::path::Path::new(&out).exists(), "{what}");
    }
    assert_eq!(execute(&["classify", &rules]).code, 2, "packets are missing");
}
