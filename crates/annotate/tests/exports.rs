//! Exports of flows: captures with their datagrams, and files of IPFIX messages.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use fibula_annotate::{
    AnnotateError, AnnotateOptions, ExportRows, LogFormat, Only, RuleAnnotator, Summary,
};
use fibula_packet::capture;

use crate::common::World;

fn run(input: &[u8], change: impl FnOnce(&mut AnnotateOptions)) -> (String, Summary) {
    let (output, summary) = try_run(input, change);
    (output, summary.unwrap())
}

fn try_run(
    input: &[u8],
    change: impl FnOnce(&mut AnnotateOptions),
) -> (String, Result<Summary, AnnotateError>) {
    let mut options = AnnotateOptions::default();
    options.add = vec!["asn".into()];
    change(&mut options);
    World::new().run((LogFormat::Flows, options), input)
}

/// A capture of raw IP whose packets are UDP datagrams: destination port and content. All are from 192.0.2.77.
fn pcap(datagrams: &[(u16, &[u8])]) -> Vec<u8> {
    let mut out = capture::header(101).to_vec();
    for (at, (port, content)) in datagrams.iter().enumerate() {
        let packet = udp(*port, content);
        out.extend(capture::record(1_700_000_000 + at as u32, 250_000, packet.len() as u32));
        out.extend(packet);
    }
    out
}

fn udp(port: u16, content: &[u8]) -> Vec<u8> {
    let len = content.len() as u16;
    let (from, to) = (Ipv4Addr::new(192, 0, 2, 77).octets(), Ipv4Addr::new(10, 9, 9, 9).octets());
    let ip = [&[0x45, 0][..], &(28 + len).to_be_bytes(), &[0, 0, 0, 0, 64, 17, 0, 0], &from, &to];
    let head = [&[0x80, 0][..], &port.to_be_bytes(), &(8 + len).to_be_bytes(), &[0, 0]];
    [ip.concat(), head.concat(), content.to_vec()].concat()
}

/// NetFlow v5 with one record of 10.1.2.3 to 192.0.2.9, TCP from 443 to 50000.
fn v5(sequence: u32) -> Vec<u8> {
    let head =
        [&[0, 5, 0, 1][..], &1000u32.to_be_bytes(), &1_700_000_000u32.to_be_bytes()].concat();
    let head = [head, vec![0; 4], sequence.to_be_bytes().to_vec(), vec![0, 7, 0x40, 100]].concat();
    let ends = [[10, 1, 2, 3], [192, 0, 2, 9], [0, 0, 0, 0], [0, 1, 0, 2]].concat();
    let counts = [5u32, 700, 100, 900].map(u32::to_be_bytes).concat();
    let ports = [443u16, 50_000].map(u16::to_be_bytes).concat();
    let rest = [0, 0x1b, 6, 0, 0xfb, 0xf0, 0, 0, 24, 0, 0, 0];
    [&head[..], &ends, &counts, &ports, &rest].concat()
}

/// IPFIX: sets behind a header.
fn ipfix(sequence: u32, sets: &[&[u8]]) -> Vec<u8> {
    let body = sets.concat();
    let len = (16 + body.len() as u16).to_be_bytes();
    let head = [&[0, 10][..], &len, &1_700_000_000u32.to_be_bytes(), &sequence.to_be_bytes()];
    [head.concat(), 9u32.to_be_bytes().to_vec(), body].concat()
}

/// Template 256: source of IPv6, bytes in two bytes, input interface.
const TEMPLATE: &[u8] = b"\0\x02\0\x14\x01\0\0\x03\0\x1b\0\x10\0\x01\0\x02\0\x0a\0\x02";
/// Options template 300: interface and its name.
const OPTIONS: &[u8] = b"\0\x03\0\x12\x01\x2c\0\x02\0\x01\0\x0a\0\x04\0\x52\0\x10";

fn data() -> Vec<u8> {
    let source = [&[0x20, 0x01, 0x0d, 0xb8, 0, 1][..], &[0; 9], &[7]].concat();
    [&[1, 0, 0, 24][..], &source, &[0x05, 0xdc, 0, 3]].concat()
}

fn name() -> Vec<u8> {
    [&[1, 0x2c, 0, 24, 0, 0, 0, 3][..], b"Gi0/3, \"up\"\0\0\0\0\0"].concat()
}

/// The members of a CSV row by the names of its header.
fn cells(output: &str, row: usize) -> Vec<(&str, &str)> {
    let mut lines = output.lines();
    let header = lines.next().unwrap().split(',');
    header.zip(lines.nth(row).unwrap().split(',')).filter(|(_, cell)| !cell.is_empty()).collect()
}

#[test]
fn a_row_for_each_record() {
    let input = pcap(&[(2055, &v5(7)), (53, b"\0\x0a no export"), (7777, &v5(10))]);
    let (output, summary) = run(&input, |_| {});
    assert_eq!(
        cells(&output, 0),
        [
            ("time", "1700000000.250000"),
            ("exporter", "192.0.2.77"),
            ("export", "netflow5"),
            ("domain", "7"),
            ("first", "1699999999.100000"),
            ("last", "1699999999.900000"),
            ("src", "10.1.2.3"),
            ("dst", "192.0.2.9"),
            ("protocol", "6"),
            ("src_port", "443"),
            ("dst_port", "50000"),
            ("tcp_flags", "27"),
            ("tos", "0"),
            ("packets", "5"),
            ("bytes", "700"),
            ("sampling", "100"),
            ("input", "1"),
            ("output", "2"),
            ("src_as", "64496"),
            ("dst_as", "0"),
            ("src_mask", "24"),
            ("dst_mask", "0"),
            ("dst_asn", "64500"),
        ]
    );
    assert_eq!((summary.rows, summary.addresses, summary.matched), (2, 4, 4));
    let exports = &summary.exports;
    assert_eq!((exports.datagrams, exports.flows, exports.lost, exports.faults), (2, 2, 2, 0));
    assert_eq!((summary.other_packets, summary.fragments, summary.damaged), (1, 0, 0));
}

#[test]
fn forms_of_rows() {
    let sets = [TEMPLATE, OPTIONS, &name(), &data()];
    let input = ipfix(0, &sets);
    let (csv, summary) = run(&input, |options| options.columns = vec!["src".parse().unwrap()]);
    let row = csv.lines().nth(1).unwrap();
    assert!(row.contains(",3,,\"Gi0/3, \"\"up\"\"\",,"), "{row}");
    assert!(row.ends_with(",64503"), "{row}");
    assert_eq!((summary.exports.options, summary.exports.templates), (1, 2));
    let (tsv, _) = run(&input, |options| options.export_rows = ExportRows::Tsv);
    let header: Vec<_> = tsv.lines().next().unwrap().split('\t').collect();
    assert_eq!((header[0], header[6], header.last()), ("time", "src", Some(&"dst_asn")));
    assert_eq!(tsv.lines().nth(1).unwrap().split('\t').count(), header.len());
    let (json, _) = run(&input, |options| options.export_rows = ExportRows::JsonLines);
    assert_eq!(
        json,
        "{\"time\":1700000000.000000,\"export\":\"ipfix\",\"domain\":9,\"src\":\"2001:db8:1::7\",\"bytes\":1500,\
         \"input\":3,\"input_name\":\"Gi0/3, \\\"up\\\"\",\"src_asn\":64503,\"dst_asn\":null}\n"
    );
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["input_name"], "Gi0/3, \"up\"");
}

#[test]
fn templates_that_come_later_or_never() {
    let before = ipfix(0, &[&data(), &data()]);
    let (output, summary) = run(&pcap(&[(4739, &before), (4739, &ipfix(2, &[TEMPLATE]))]), |_| {});
    assert_eq!((output.lines().count(), summary.rows), (3, 2));
    assert_eq!((summary.exports.held, summary.exports.released), (2, 2));
    let (output, summary) = run(&pcap(&[(4739, &before)]), |_| {});
    assert_eq!((output.lines().count(), summary.rows, summary.exports.held), (1, 0, 2));
}

#[test]
fn damage_is_counted_and_named() {
    let whole = v5(1);
    let input = pcap(&[(2055, &whole[..60]), (2055, &whole), (7777, &whole[..60])]);
    let (output, summary) = run(&input, |_| {});
    assert_eq!((output.lines().count(), summary.damaged, summary.other_packets), (2, 1, 1));
    let named = "export 1, in the record at byte 24: at byte 2: the message claims more bytes than the datagram has";
    assert_eq!(summary.first_damaged.as_deref(), Some(named));
    let (_, result) = try_run(&input, |options| options.strict = true);
    assert_eq!(result.unwrap_err().to_string(), named);
    // A file that ends within a message.
    let file = [ipfix(0, &[TEMPLATE, &data()]), ipfix(1, &[&data()])].concat();
    let (output, summary) = run(&file[..file.len() - 1], |_| {});
    assert_eq!((output.lines().count(), summary.damaged), (2, 1));
    let (_, summary) = run(&[&file[..], b"text behind it"].concat(), |_| {});
    assert_eq!((summary.rows, summary.damaged), (2, 1));
    // Fragments.
    let mut packet = udp(2055, &whole);
    packet[6] = 0x20;
    let mut input = capture::header(101).to_vec();
    input.extend(capture::record(1, 0, packet.len() as u32));
    input.extend(&packet);
    assert_eq!(run(&input, |_| {}).1.fragments, 1);
}

#[test]
fn refused_inputs_and_options() {
    let text = |result: Result<Summary, AnnotateError>| result.unwrap_err().to_string();
    assert_eq!(
        text(try_run(b"10.0.0.1\n10.0.0.2\n", |_| {}).1),
        "the input is neither a capture (pcap, pcapng) nor a file of IPFIX messages or of nfcapd"
    );
    let column = |name: &str| {
        let name = name.to_owned();
        try_run(&ipfix(0, &[]), |options| options.columns = vec![name.parse().unwrap()]).1
    };
    assert!(column("dst").is_ok());
    assert!(text(column("next_hop")).contains("next_hop"));
    let (_, summary) = run(&pcap(&[(53, b"a question")]), |_| {});
    assert_eq!(
        summary.unfit(LogFormat::Flows, false).as_deref(),
        Some("none of 1 packets is an export of flows")
    );
    let rules = fibula_classify::Classifier::new(Default::default(), &Default::default());
    let options = AnnotateOptions::default();
    assert!(RuleAnnotator::new(rules, LogFormat::Flows, &options, true).is_err());
}

#[test]
fn only_rows_that_match() {
    let input = pcap(&[(2055, &v5(1)), (4739, &ipfix(0, &[TEMPLATE, &data()]))]);
    let only = |only| run(&input, |options| options.only = Some(only)).0.lines().count();
    assert_eq!((only(Only::Matched), only(Only::Unmatched)), (3, 1));
}

/// However the input arrives, and however large a block is, the rows are the same.
#[test]
fn pieces() {
    let records: Vec<u8> =
        [&[1, 0][..], &60_004u16.to_be_bytes(), &data()[4..].repeat(3000)].concat();
    let file = [ipfix(0, &[TEMPLATE, &records]), ipfix(3000, &[&records]), ipfix(6000, &[&data()])]
        .concat();
    let (output, summary) = run(&file, |_| {});
    assert_eq!((summary.rows, summary.exports.lost, output.lines().count()), (6001, 0, 6002));
    for len in [1, 7, 1000] {
        let mut out = Vec::new();
        let mut options = AnnotateOptions::default();
        options.add = vec!["asn".into()];
        let pieces = Pieces(&file, len);
        World::new().run_to((LogFormat::Flows, options), pieces, &mut out).unwrap();
        assert!(out == output.as_bytes(), "in pieces of {len}");
    }
}

struct Pieces<'a>(&'a [u8], usize);

impl std::io::Read for Pieces<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let len = self.1.min(out.len()).min(self.0.len());
        let (now, later) = self.0.split_at(len);
        out[..len].copy_from_slice(now);
        self.0 = later;
        Ok(len)
    }
}

/// A real file, whose records `crates/flows` compares with another decoder.
#[test]
fn a_real_file() {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let shared = std::env::var_os("FIBULA_SHARED").map_or(beside, PathBuf::from);
    let path = shared.join("data/flows/cesnet-example_flows.ipfix");
    let Ok(file) = std::fs::read(&path) else {
        return eprintln!("no file at {} (set FIBULA_SHARED): without it", path.display());
    };
    let (output, summary) = run(&file, |options| options.strict = true);
    assert_eq!(summary.rows, summary.exports.flows);
    assert_eq!(output.lines().count() as u64, summary.rows + 1);
    assert!(summary.rows > 100 && summary.exports.faults == 0, "{summary:?}");
}
