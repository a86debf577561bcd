//! Inputs of `fibula classify` that several threads read, that are empty or damaged, or that change meanwhile.

use crate::common::{Files, cuts, done, json, read, said, said_to};

const RULES: &str = "\
udp dport 53 -> allow label \"dns, queries\"
tcp -> mark 7 vrf blue
ip_version 6 -> drop
";

/// A capture of some MiB: the packets of the committed one, many times.
fn capture() -> Vec<u8> {
    let packets = read(cuts().join("tcpdump-tests.pcap"));
    [&packets[..24], &packets[24..].repeat(20)].concat()
}

/// The byte at which a later record begins, about in the middle.
fn middle(capture: &[u8]) -> usize {
    let mut at = 24;
    while at < capture.len() / 2 {
        let captured: [u8; 4] = capture[at + 8..at + 12].try_into().unwrap();
        at += 16 + u32::from_le_bytes(captured) as usize;
    }
    at
}

/// Rows, counts, damage and the error with `--strict` are the same for any number of threads.
#[test]
fn captures_on_several_threads() {
    let files = Files::new();
    let rules = files.with("rules.txt", RULES);
    let whole = capture();
    let (mut lost, at) = (whole.clone(), middle(&whole));
    lost[at + 11] = 0x7f;
    let cut = &whole[..whole.len() - 5];
    for (name, capture, damage) in [
        ("whole.pcap", &whole[..], None),
        ("lost.pcap", &lost, Some(format!("at byte {at}: a packet longer than any can be"))),
        ("cut.pcap", cut, Some("the capture ends within a record".to_owned())),
    ] {
        let path = files.with(name, capture);
        let run = |threads: &str| done(&["classify", &rules, &path, "--threads", threads]);
        let counts =
            |threads: &str| json(&["classify", &rules, &path, "--json", "--threads", threads]);
        let (one, counted) = (run("1"), counts("1"));
        let rows = one.out.lines().count() as u64 - 1;
        assert_eq!(counted["packets"], rows);
        assert_eq!(counted["damaged"], u64::from(damage.is_some()));
        let bytes = |of: &serde_json::Value| of["bytes"].as_u64().unwrap();
        let all = counted["rules"].as_array().unwrap().iter().map(bytes).sum::<u64>();
        assert!(all + bytes(&counted["unmatched"]) > rows * 50, "{counted}");
        for threads in ["2", "5"] {
            let (many, of_many) = (run(threads), counts(threads));
            assert!(one.out == many.out, "{name} on {threads} threads");
            for field in ["packets", "unmatched", "rules", "damaged", "unknown_links"] {
                assert_eq!(counted[field], of_many[field], "{name}: {field}");
            }
            if let Some(damage) = &damage {
                assert!(many.err.contains(damage), "{}", many.err);
            }
        }
        assert_eq!(said_to(&["classify", &rules, "-", "-q"], capture).out, one.out);
        let Some(damage) = damage else { continue };
        let strict = |threads: &str| {
            said(&[
                "classify",
                &rules,
                &path,
                "--strict",
                "-o",
                &files.path("o"),
                "--threads",
                threads,
            ])
        };
        let refused = strict("1");
        assert!(refused.code == 2 && refused.err.contains(&damage), "{}", refused.err);
        assert!(refused.err.contains(&format!("packet {}, at byte ", rows + 1)), "{}", refused.err);
        assert_eq!(refused.err, strict("4").err);
    }
}

/// A capture without packets has a header, and one without its header is damaged.
#[test]
fn captures_without_packets() {
    let files = Files::new();
    let rules = files.with("rules.txt", RULES);
    let capture = capture();
    for (len, damaged) in [(24, 0), (12, 1)] {
        let path = files.with("short.pcap", &capture[..len]);
        let header = "packet,src,dst,protocol,src_port,dst_port,rule_line,rule_action,rule_label\n";
        assert_eq!(done(&["classify", &rules, &path]).out, header);
        let counts = json(&["classify", &rules, &path, "--json"]);
        assert_eq!((&counts["packets"], &counts["damaged"]), (&0.into(), &damaged.into()));
    }
    let empty = files.with("empty.pcap", "");
    assert!(said(&["classify", &rules, &empty]).err.contains("the file is empty"));
}
