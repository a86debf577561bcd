//! Records a second on one core, beside `netflow_parser` and `sflow-parser`:
//!
//! ```text
//! cargo run --release -p fibula-flows --example rate
//! ```
//!
//! The best of ten runs of a fifth of a second counts. Each datagram is decoded again and again: what is measured is
//! decoding, not memory.

use std::hint::black_box;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use fibula_flows::{FlowDecoder, FlowRecord, FlowSink, FlowSource};
use netflow_parser::AutoScopedParser;

/// Elements of a template of twenty fields, with their lengths.
const FIELDS: [(u16, u16); 20] = [
    (8, 4),
    (12, 4),
    (7, 2),
    (11, 2),
    (4, 1),
    (6, 1),
    (5, 1),
    (1, 4),
    (2, 4),
    (22, 4),
    (21, 4),
    (10, 4),
    (14, 4),
    (16, 4),
    (17, 4),
    (9, 1),
    (13, 1),
    (15, 4),
    (61, 1),
    (58, 2),
];

/// Reads some fields of each record, as a table would.
#[derive(Default)]
struct Sum(u64);

impl FlowSink for Sum {
    fn flow(&mut self, record: &FlowRecord, _: &FlowSource<'_>) {
        let ends = u64::from(record.source().is_some()) + u64::from(record.destination().is_some());
        let ports = record.source_port().unwrap_or_default();
        self.0 ^= ends ^ u64::from(ports) ^ record.bytes().unwrap_or_default();
        self.0 ^= record.start_ms().unwrap_or_default();
    }
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

fn set(number: u16, body: &[u8]) -> Vec<u8> {
    [&number.to_be_bytes()[..], &(body.len() as u16 + 4).to_be_bytes(), body].concat()
}

fn v9(body: &[u8]) -> Vec<u8> {
    [&[0, 9, 0, 24][..], &words(&[1000, 1_700_000_000, 1, 1]), body].concat()
}

fn ipfix(body: &[u8]) -> Vec<u8> {
    let len = (16 + body.len() as u16).to_be_bytes();
    [&[0, 10][..], &len, &words(&[1_700_000_000, 1, 1]), body].concat()
}

/// Seven samples of TCP segments with the headers' first 128 bytes, and the switch's VLANs.
fn sflow() -> Vec<u8> {
    let ip = b"\x45\0\0\x6e\0\0\0\0\x40\x06\0\0\x0a\0\0\x01\x0a\0\0\x02\x01\xbb\xc3\x50";
    let mut frame = [&[2; 12][..], &[8, 0], ip].concat();
    frame.resize(128, 0x50);
    let sample = |number: u32| {
        let header = [words(&[1, 144, 1, 1500, 4, 128]), frame.clone()].concat();
        let head = words(&[number, 3, 1024, 4096, 0, 3, 4, 2]);
        let sample = [head, header, words(&[1001, 16, 10, 0, 20, 0])].concat();
        [words(&[1, sample.len() as u32]), sample].concat()
    };
    [words(&[5, 1, 0x0a00_0001, 0, 7, 1000, 7]), (0..7).flat_map(sample).collect()].concat()
}

/// The rate of a function that decodes so many records, in millions a second.
fn rate(name: &str, records: u64, mut decode: impl FnMut()) {
    let mut best = 0f64;
    for _ in 0..10 {
        let (begin, mut done) = (Instant::now(), 0);
        while begin.elapsed() < Duration::from_millis(200) {
            for _ in 0..64 {
                decode();
            }
            done += 64 * records;
        }
        best = best.max(done as f64 / begin.elapsed().as_secs_f64() / 1e6);
    }
    println!("{name:<28} {best:8.2} M records/s");
}

fn main() {
    let from = SocketAddr::from(([192, 0, 2, 1], 2055));
    let fields = FIELDS.iter().flat_map(|(number, len)| [number.to_be_bytes(), len.to_be_bytes()]);
    let template: Vec<u8> = [1, 0, 0, 20].into_iter().chain(fields.flatten()).collect();
    let length: usize = FIELDS.iter().map(|(_, len)| usize::from(*len)).sum();
    let records: Vec<u8> = (0..24 * length).map(|at| (at * 37 % 251) as u8).collect();
    let v5 = [&[0, 5, 0, 30][..], &[0; 20], &records[..], &records[..]].concat();
    let v5 = &v5[..24 + 30 * 48];
    let cases = [
        ("NetFlow v9", v9(&set(0, &template)), v9(&set(256, &records))),
        ("IPFIX", ipfix(&set(2, &template)), ipfix(&set(256, &records))),
    ];
    let (mut decoder, mut sum) = (FlowDecoder::default(), Sum::default());
    for (name, template, data) in &cases {
        decoder.decode(from, template, &mut sum);
        assert_eq!(decoder.decode(from, data, &mut sum).flows, 24);
        rate(&format!("{name}, fibula"), 24, || {
            decoder.decode(from, data, &mut sum);
        });
        let mut parser = AutoScopedParser::new();
        black_box(parser.parse_from_source(from, template).packets.len());
        rate(&format!("{name}, netflow_parser"), 24, || {
            black_box(parser.parse_from_source(from, data).packets.len());
        });
    }
    assert_eq!(decoder.decode(from, v5, &mut sum).flows, 30);
    rate("NetFlow v5, fibula", 30, || {
        decoder.decode(from, v5, &mut sum);
    });
    let mut parser = AutoScopedParser::new();
    rate("NetFlow v5, netflow_parser", 30, || {
        black_box(parser.parse_from_source(from, v5).packets.len());
    });
    let sflow = sflow();
    assert_eq!(decoder.decode(from, &sflow, &mut sum).flows, 7);
    rate("sFlow, fibula", 7, || {
        decoder.decode(from, &sflow, &mut sum);
    });
    rate("sFlow, sflow-parser", 7, || {
        black_box(sflow_parser::parse_datagram(&sflow).is_ok());
    });
    black_box(sum.0);
}
