//! Files of the real nfcapd: `fibula annotate` has the rows that nfdump shows, for each compression that nfdump has.
//! Debian's package `nfdump` has the programs; without them the tests say so and do nothing.

use std::collections::BTreeMap;
use std::fs;
use std::net::UdpSocket;
use std::process::{Command, Output};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::common::{Files, done, execute};
use crate::exporters::{Running, a_minute_ago, free_port, have, wait_for_port};

/// An element of a template: its number, its length, and the value in a flow.
type Element = (u16, usize, fn(u32, u64) -> Vec<u8>);

fn be(value: u64, len: usize) -> Vec<u8> {
    value.to_be_bytes()[8 - len..].to_vec()
}

fn six(subnet: u8, host: u32) -> Vec<u8> {
    let begin = [0x20, 1, 0x0d, 0xb8, subnet, 0, 0, 0, 0, 0, 0, 0];
    [&begin[..], &host.to_be_bytes()].concat()
}

fn protocol(flow: u32) -> u8 {
    [6, 17, 1, 58][flow as usize % 4]
}

/// What flows of both families have.
const BOTH: [Element; 29] = [
    (4, 1, |flow, _| vec![protocol(flow)]),
    (
        7,
        2,
        |flow, _| if matches!(protocol(flow), 1 | 58) { vec![0; 2] } else { be(flow.into(), 2) },
    ),
    (11, 2, |flow, _| if matches!(protocol(flow), 1 | 58) { be(769, 2) } else { be(443, 2) }),
    (32, 2, |flow, _| if protocol(flow) == 1 { be(769, 2) } else { be(0, 2) }),
    (6, 1, |flow, _| vec![flow as u8]),
    (5, 1, |flow, _| vec![flow as u8 & 0xfc]),
    (2, 8, |flow, _| be(u64::from(flow) + 1, 8)),
    (1, 8, |flow, _| be(u64::from(flow) * 1500 + (5 << 32), 8)),
    (152, 8, |flow, now| be(now + u64::from(flow), 8)),
    (153, 8, |flow, now| be(now + u64::from(flow) * 2, 8)),
    (10, 4, |flow, _| be(u64::from(flow % 100), 4)),
    (14, 4, |flow, _| be(100_000 + u64::from(flow % 7), 4)),
    (16, 4, |flow, _| be(4_200_000_000 + u64::from(flow), 4)),
    (17, 4, |_, _| be(64_500, 4)),
    (61, 1, |flow, _| vec![flow as u8 & 1]),
    (58, 2, |flow, _| be(u64::from(flow % 4095), 2)),
    (59, 2, |_, _| be(7, 2)),
    (234, 4, |_, _| be(3, 4)),
    (235, 4, |flow, _| be(flow.into(), 4)),
    (70, 3, |flow, _| be(u64::from(flow) << 4, 3)),
    (71, 3, |_, _| be(1000 << 4 | 2, 3)),
    (72, 3, |_, _| be(1001 << 4 | 1, 3)),
    (227, 2, |flow, _| be(u64::from(flow) % 65_536, 2)),
    (228, 2, |_, _| be(80, 2)),
    (23, 8, |flow, _| be(u64::from(flow) * 3, 8)),
    (24, 8, |flow, _| be(u64::from(flow) * 2, 8)),
    (56, 6, |_, _| vec![2, 0, 0, 0, 0, 1]),
    (80, 6, |_, _| vec![2, 0, 0, 0, 0, 2]),
    (210, 3, |_, _| vec![0; 3]),
];

const FOUR: [Element; 8] = [
    (8, 4, |flow, _| [&[10, 1][..], &be(u64::from(flow) % 65_536, 2)].concat()),
    (12, 4, |_, _| vec![192, 0, 2, 7]),
    (9, 1, |_, _| vec![16]),
    (13, 1, |_, _| vec![24]),
    (15, 4, |_, _| vec![198, 51, 100, 1]),
    (18, 4, |flow, _| if flow % 3 == 0 { vec![0; 4] } else { vec![198, 51, 100, 2] }),
    (225, 4, |_, _| vec![203, 0, 113, 1]),
    (226, 4, |flow, _| [&[203, 0][..], &be(u64::from(flow) % 65_536, 2)].concat()),
];

const SIX: [Element; 6] = [
    (27, 16, |flow, _| six(1, flow)),
    (28, 16, |_, _| six(2, 7)),
    (29, 1, |_, _| vec![32]),
    (30, 1, |_, _| vec![48]),
    (62, 16, |_, _| six(3, 1)),
    (63, 16, |_, _| six(3, 2)),
];

fn message(number: u32, sets: &[(u16, Vec<u8>)]) -> Vec<u8> {
    let sets: Vec<u8> = sets
        .iter()
        .flat_map(|(id, body)| [be((*id).into(), 2), be(body.len() as u64 + 4, 2), body.clone()])
        .flatten()
        .collect();
    let seconds = u64::from(a_minute_ago()) + 60;
    let head = [be(10, 2), be(sets.len() as u64 + 16, 2), be(seconds, 4)];
    [&head.concat()[..], &be(number.into(), 4), &be(77, 4), &sets].concat()
}

/// IPFIX with a template for each family, and so many flows.
fn exports(flows: u32) -> Vec<Vec<u8>> {
    let lists = [[&BOTH[..], &FOUR].concat(), [&BOTH[..], &SIX].concat()];
    let template = |id: u64, list: &[Element]| {
        let fields = list
            .iter()
            .flat_map(|(number, len, _)| [be((*number).into(), 2), be(*len as u64, 2)].concat());
        [be(id, 2), be(list.len() as u64, 2), fields.collect()].concat()
    };
    let templates = [template(256, &lists[0]), template(257, &lists[1])].concat();
    let mut out = vec![message(0, &[(2, templates)])];
    let now = (u64::from(a_minute_ago())) * 1000;
    for first in (0..flows).step_by(6) {
        let sets: Vec<_> = (first..(first + 6).min(flows))
            .map(|flow| {
                let at = usize::from(flow % 5 == 4);
                let values = lists[at].iter().flat_map(|(_, _, value)| value(flow, now));
                (256 + at as u16, values.collect())
            })
            .collect();
        out.push(message(first, &sets));
    }
    out
}

/// The file that nfcapd writes of datagrams.
fn stored(files: &Files, datagrams: &[Vec<u8>]) -> String {
    let folder = files.path("stored");
    fs::create_dir(&folder).unwrap();
    let port = free_port();
    let args =
        ["-w", &folder, "-p", &port.to_string(), "-b", "127.0.0.1", "-t", "3600", "-B", "4000000"];
    let collector = Running::start(&folder, "nfcapd", &args);
    wait_for_port(port);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for (at, datagram) in datagrams.iter().enumerate() {
        socket.send_to(datagram, ("127.0.0.1", port)).unwrap();
        if at % 16 == 0 {
            thread::sleep(Duration::from_millis(1));
        }
    }
    thread::sleep(Duration::from_millis(500));
    collector.end();
    let mut paths = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let path = paths.find(|path| path.to_str().unwrap().contains("/nfcapd.2")).unwrap();
    path.to_str().unwrap().to_owned()
}

fn nfdump(args: &[&str]) -> Output {
    let output = Command::new("nfdump").env("TZ", "UTC").args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
    output
}

/// Milliseconds since 1970 of a time as nfdump writes it: `2026-01-31T23:55:00.123`.
fn millis(text: &str) -> u64 {
    let numbers: Vec<u64> = text.split(['-', 'T', ':', '.']).map(|n| n.parse().unwrap()).collect();
    let [year, month, day, hour, minute, second, ms] = numbers[..] else { panic!("{text}") };
    // Years that begin in March.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days =
        year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 719_469;
    (((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + ms
}

/// A flow's members by our names.
type Row = BTreeMap<String, String>;

/// The flows that nfdump shows, with our names and our form of the values.
fn theirs(file: &str) -> Vec<Row> {
    let output = nfdump(&["-r", file, "-o", "json"]);
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    let row = |flow: &Value| {
        let mut row = Row::new();
        let mut labels = Vec::new();
        for (name, value) in flow.as_object().unwrap() {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let (name, text) = match &name[..] {
                "first" | "last" => (&name[..], millis(&text).to_string()),
                "received" => ("time", millis(&text).to_string()),
                "in_packets" => ("packets", text),
                "in_bytes" => ("bytes", text),
                "proto" => ("protocol", text),
                "tcp_flags" => {
                    let bits =
                        text.bytes().fold(0, |bits, flag| bits << 1 | u32::from(flag != b'.'));
                    ("tcp_flags", bits.to_string())
                }
                "src_port" | "dst_port" | "src_mask" | "dst_mask" | "src_as" | "dst_as"
                | "direction" => (&name[..], text),
                "icmp_type" => {
                    let code = &flow["icmp_code"];
                    ("icmp", format!("[{text},{code}]"))
                }
                "src_tos" => ("tos", text),
                "src4_addr" | "src6_addr" => ("src", text),
                "dst4_addr" | "dst6_addr" => ("dst", text),
                "input_snmp" => ("input", text),
                "output_snmp" => ("output", text),
                "out_packets" => ("reverse_packets", text),
                "out_bytes" => ("reverse_bytes", text),
                "src_vlan" => ("vlan", text),
                "dst_vlan" => ("post_vlan", text),
                "ip4_next_hop" | "ip6_next_hop" => ("next_hop", text),
                "bgp4_next_hop" | "bgp6_next_hop" => ("bgp_next_hop", text),
                "ip4_router" | "ip6_router" => ("exporter", text),
                "src4_xlt_ip" => ("nat_src", text),
                "dst4_xlt_ip" => ("nat_dst", text),
                "src_xlt_port" => ("nat_src_port", text),
                "dst_xlt_port" => ("nat_dst_port", text),
                "ingress_vrf" => ("input_vrf", text),
                "egress_vrf" => ("output_vrf", text),
                name if name.starts_with("mpls_") => {
                    let at: usize = name[5..].parse().unwrap();
                    labels.push((at, text));
                    continue;
                }
                _ => continue,
            };
            if name.ends_with("next_hop") && matches!(&text[..], "0.0.0.0" | "::") {
                continue;
            }
            row.insert(name.to_owned(), text);
        }
        labels.sort();
        // Those behind the last one are zero.
        while labels.pop_if(|(_, label)| label == "0-0-0").is_some() {}
        if !labels.is_empty() {
            let label = |(_, text): &(usize, String)| text.split('-').next().unwrap().to_owned();
            let labels: Vec<_> = labels.iter().map(label).collect();
            row.insert("mpls".to_owned(), format!("[{}]", labels.join(",")));
        }
        row
    };
    all.as_array().unwrap().iter().map(row).collect()
}

/// The rows that `fibula annotate` writes, without those that nfdump does not show.
fn ours(files: &Files, file: &str) -> Vec<Row> {
    let table = files.with("networks.csv", "prefix,site\n10.1.0.0/16,one\n2001:db8::/32,six\n");
    let output = files.path("flows.jsonl");
    done(&["annotate", "--table", &table, "--add", "site", "--strict", file, "-o", &output]);
    let text = fs::read_to_string(&output).unwrap();
    let row = |line: &str| {
        let flow: Value = serde_json::from_str(line).unwrap();
        let is_six = flow["src"].as_str().unwrap().contains(':');
        assert_eq!(flow["src_site"], if is_six { "six" } else { "one" }, "{line}");
        assert_eq!((&flow["export"], &flow["domain"]), (&"ipfix".into(), &77.into()), "{line}");
        let is_icmp = matches!(flow["protocol"].as_u64(), Some(1 | 58));
        let mut row = Row::new();
        for (name, value) in flow.as_object().unwrap() {
            let text = match &name[..] {
                "time" | "first" | "last" => {
                    ((value.as_f64().unwrap() * 1000.0).round() as u64).to_string()
                }
                "export" | "domain" | "src_site" | "dst_site" => continue,
                // nfdump leaves these out.
                "tcp_flags" if is_icmp => continue,
                _ => value.as_str().map_or_else(|| value.to_string(), str::to_owned),
            };
            row.insert(name.clone(), text);
        }
        row
    };
    text.lines().map(row).collect()
}

/// Several blocks of flows with all elements that nfcapd stores, in each compression.
#[test]
fn rows_are_those_of_nfdump() {
    if !have(&["nfcapd", "nfdump"]) {
        return;
    }
    let files = Files::new();
    let file = stored(&files, &exports(24_000));
    let expected = theirs(&file);
    assert!(expected.len() > 12_000, "nfcapd has lost most of the datagrams: {}", expected.len());
    let labels = expected.iter().filter(|row| row.contains_key("mpls")).count();
    assert_eq!(labels, expected.len());
    let mut sizes = Vec::new();
    for (at, option) in ["", "-z", "-j", "-y"].into_iter().enumerate() {
        let packed = if option.is_empty() { file.clone() } else { files.path("packed.nfcapd") };
        if !option.is_empty() {
            nfdump(&["-r", &file, "-w", &packed, option]);
        }
        let head = fs::read(&packed).unwrap();
        assert_eq!(head[16] as usize, at, "the file's compression");
        sizes.push(head.len());
        let got = ours(&files, &packed);
        assert_eq!(got.len(), expected.len(), "{option}");
        for (at, (got, expected)) in got.iter().zip(&expected).enumerate() {
            assert_eq!(got, expected, "{option}: row {at}");
        }
    }
    assert!(sizes[1..].iter().all(|size| *size < sizes[0] / 2), "{sizes:?}");
}

/// What is said of a file that is cut, and of one that cannot be read.
#[test]
fn damaged_files() {
    let files = Files::new();
    let table = files.with("networks.csv", "prefix,site\n10.1.0.0/16,one\n");
    // Layout 2 with two blocks, of which the second one is missing.
    let mut file = vec![0x0c, 0xa5, 2, 0, 1, 1, 7, 1];
    file.resize(36, 0);
    file.extend(2u32.to_le_bytes());
    file.extend([1, 0, 0, 0, 24, 0, 0, 0, 3, 0, 0, 0]);
    file.extend([11, 0, 24, 0, 1, 0, 0, 0, 0, 0, 0, 10]);
    file.extend([2, 0, 12, 0, 1, 0, 1, 10, 7, 0, 0, 192]);
    let path = files.with("nfcapd.202601312355", &file);
    let args = ["annotate", "--table", &table, "--add", "site", "--rows", "jsonl", &path];
    let said = "block 1, at byte 76: the file ends here, but its header counts 1 blocks more";
    let result = done(&args);
    assert_eq!(
        result.out,
        "{\"export\":\"ipfix\",\"src\":\"10.1.0.1\",\"dst\":\"192.0.0.7\",\"src_site\":\"one\",\"dst_site\":null}\n"
    );
    assert!(result.err.contains(said), "{}", result.err);
    assert!(result.err.contains("blocks of nfcapd: 1, with records of flows: 1"), "{}", result.err);
    let strict = execute(&[&args[..], &["--strict"]].concat());
    assert_eq!(strict.code, 2, "{}", strict.err);
    assert!(strict.err.contains(said), "{}", strict.err);
    for (at, value, said) in [
        (2, 3, "layout 3"),
        (16, 9, "compression 9"),
        (17, 1, "encrypted"),
        (47, 1, "the rest is lost"),
    ] {
        let mut changed = file.clone();
        changed[at] = value;
        let path = files.with("nfcapd.202601312355", changed);
        let result = execute(&["annotate", "--table", &table, "--strict", &path]);
        assert!(
            result.code == 2 && result.err.contains(said),
            "{at}: {} {}",
            result.out,
            result.err
        );
        assert!(at == 47 || result.out.is_empty(), "{}", result.out);
    }
}
