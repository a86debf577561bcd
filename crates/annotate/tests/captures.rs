//! Captures: the committed real one, and the same packets in every other container.

use std::path::PathBuf;

use crate::common::World;
use fibula_annotate::{AnnotateError, AnnotateOptions, LogFormat, Summary};

fn real_capture() -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tcpdump-tests.pcap");
    std::fs::read(path).unwrap()
}

fn run(capture: &[u8], strict: bool) -> (String, Result<Summary, AnnotateError>) {
    let mut options = AnnotateOptions::default();
    options.add = vec!["prefix".into(), "asn".into()];
    options.strict = strict;
    World::new().run((LogFormat::Pcap, options), capture)
}

/// The records of a little-endian microsecond pcap: seconds, microseconds, data, length on the wire.
fn records(capture: &[u8]) -> Vec<(u32, u32, &[u8], u32)> {
    let number = |at: usize| u32::from_le_bytes(capture[at..at + 4].try_into().unwrap());
    let (mut found, mut at) = (Vec::new(), 24);
    while at < capture.len() {
        let captured = number(at + 8) as usize;
        let data = &capture[at + 16..at + 16 + captured];
        found.push((number(at), number(at + 4), data, number(at + 12)));
        at += 16 + captured;
    }
    found
}

/// Writes integers in either byte order.
struct Writer {
    big: bool,
    out: Vec<u8>,
}

impl Writer {
    fn u16(&mut self, value: u16) {
        self.out.extend(if self.big { value.to_be_bytes() } else { value.to_le_bytes() });
    }

    fn u32(&mut self, value: u32) {
        self.out.extend(if self.big { value.to_be_bytes() } else { value.to_le_bytes() });
    }

    /// A pcapng block around `body`.
    fn block(&mut self, kind: u32, body: impl FnOnce(&mut Self)) {
        self.u32(kind);
        let at = self.out.len();
        self.u32(0);
        body(self);
        self.out.resize(self.out.len().next_multiple_of(4), 0);
        let total = (self.out.len() - at + 8) as u32;
        let bytes = if self.big { total.to_be_bytes() } else { total.to_le_bytes() };
        self.out[at..at + 4].copy_from_slice(&bytes);
        self.u32(total);
    }

    /// A section and an Ethernet interface whose clock begins 1000 seconds early.
    fn section(&mut self) {
        self.block(0x0a0d_0d0a, |w| {
            w.u32(0x1a2b_3c4d);
            w.u16(1);
            w.u16(0);
            w.u32(u32::MAX);
            w.u32(u32::MAX);
        });
        self.block(1, |w| {
            w.u16(1);
            w.u16(0);
            w.u32(0);
            // if_tsresol, padded, then if_tsoffset, then the end of options.
            w.u16(9);
            w.u16(1);
            w.out.extend([6, 0, 0, 0]);
            w.u16(14);
            w.u16(8);
            let (high, low) = (u32::MAX, 1000u32.wrapping_neg());
            if w.big {
                w.u32(high);
                w.u32(low);
            } else {
                w.u32(low);
                w.u32(high);
            }
            w.u32(0);
        });
    }
}

fn pcapng(capture: &[u8], big: bool) -> Vec<u8> {
    let mut w = Writer { big, out: Vec::new() };
    for (i, (seconds, micros, data, length)) in records(capture).into_iter().enumerate() {
        // A new section now and then; blocks that say nothing about packets between them.
        if i % 500 == 0 {
            w.section();
            w.block(5, |w| w.u32(7));
            w.block(0xbad, |w| w.u32(7));
        }
        let units = (u64::from(seconds) + 1000) * 1_000_000 + u64::from(micros);
        let obsolete = i % 3 == 0;
        w.block(if obsolete { 2 } else { 6 }, |w| {
            if obsolete {
                w.u16(0);
                w.u16(0xffff);
            } else {
                w.u32(0);
            }
            w.u32((units >> 32) as u32);
            w.u32(units as u32);
            w.u32(data.len() as u32);
            w.u32(length);
            w.out.extend_from_slice(data);
        });
    }
    w.out
}

#[test]
fn the_real_capture() {
    let (output, summary) = run(&real_capture(), true);
    let summary = summary.unwrap();
    let mut lines = output.lines();
    assert_eq!(
        lines.next(),
        Some(
            "time,src,dst,protocol,src_port,dst_port,length,src_prefix,src_asn,dst_prefix,dst_asn"
        )
    );
    assert_eq!(summary.rows, lines.clone().count() as u64);
    assert_eq!(summary.rows, records(&real_capture()).len() as u64);
    assert!(summary.addresses > summary.rows);
    for line in lines {
        assert_eq!(line.matches(',').count(), 10, "{line}");
    }
}

#[test]
fn containers_do_not_matter() {
    let capture = real_capture();
    let expected = run(&capture, true).0;
    for big in [false, true] {
        let (output, summary) = run(&pcapng(&capture, big), true);
        summary.unwrap();
        assert!(output == expected, "pcapng, big-endian {big}");
    }
    // Big-endian pcap with nanoseconds: the same rows with three more decimals.
    let mut w = Writer { big: true, out: Vec::new() };
    w.u32(0xa1b2_3c4d);
    w.out.extend([0; 16]);
    w.u32(1);
    for (seconds, micros, data, length) in records(&capture) {
        for field in [seconds, micros * 1000, data.len() as u32, length] {
            w.u32(field);
        }
        w.out.extend_from_slice(data);
    }
    let output = run(&w.out, true).0;
    for (line, expected) in output.lines().zip(expected.lines()).skip(1) {
        let (time, rest) = line.split_once(',').unwrap();
        let (expected_time, expected_rest) = expected.split_once(',').unwrap();
        assert_eq!(time, format!("{expected_time}000"));
        assert_eq!(rest, expected_rest);
    }
    assert_eq!(output.lines().count(), expected.lines().count());
}

#[test]
fn simple_packets_have_no_time() {
    let capture = real_capture();
    let (_, _, data, length) = records(&capture)[0];
    let mut w = Writer { big: false, out: Vec::new() };
    w.section();
    w.block(3, |w| {
        w.u32(length);
        w.out.extend_from_slice(data);
    });
    let (output, summary) = run(&w.out, true);
    assert_eq!(summary.unwrap().rows, 1);
    assert!(output.lines().nth(1).unwrap().starts_with(','));
}

#[test]
fn a_damaged_block_is_skipped_and_a_lost_one_ends_the_capture() {
    let capture = real_capture();
    let (_, _, data, length) = records(&capture)[0];
    let packet = |w: &mut Writer, interface: u32| {
        w.block(6, |w| {
            for field in [interface, 0, 0, data.len() as u32, length] {
                w.u32(field);
            }
            w.out.extend_from_slice(data);
        });
    };
    let mut w = Writer { big: true, out: Vec::new() };
    w.section();
    packet(&mut w, 0);
    let at = w.out.len();
    packet(&mut w, 9);
    packet(&mut w, 0);
    let summary = run(&w.out, false).1.unwrap();
    assert_eq!((summary.rows, summary.damaged), (2, 1));
    let error = run(&w.out, true).1.unwrap_err();
    assert_eq!(error.to_string(), format!("packet 2, at byte {at}: a damaged packet block"));
    w.u32(6);
    w.u32(3);
    packet(&mut w, 0);
    let summary = run(&w.out, false).1.unwrap();
    assert_eq!((summary.rows, summary.damaged), (2, 2));
    assert_eq!(summary.bytes_read, w.out.len() as u64);
}

#[test]
fn every_cut_of_a_capture_is_counted_or_clean() {
    let capture = real_capture();
    let short = &capture[..3000];
    let whole = run(short, false).0;
    for cut in 24..short.len() {
        let (output, summary) = run(&short[..cut], false);
        let summary = summary.unwrap();
        assert!(summary.damaged <= 1);
        assert!(whole.starts_with(&output));
    }
}

#[test]
fn flows_sum_packets_up() {
    let capture = real_capture();
    let mut options = AnnotateOptions::default();
    options.add = vec!["asn".into()];
    let world = World::new();
    let (packets, one) = world.run((LogFormat::Pcap, options.clone()), &capture);
    options.flows = true;
    let (flows, two) = world.run((LogFormat::Pcap, options), &capture);
    // Summed up here, from the rows of the packets.
    let mut expected: Vec<(String, (u64, u64))> = Vec::new();
    for line in packets.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let (key, length) = (fields[1..6].join(","), fields[6].parse::<u64>().unwrap());
        match expected.iter_mut().find(|(other, _)| *other == key) {
            Some((_, (count, bytes))) => (*count, *bytes) = (*count + 1, *bytes + length),
            None => expected.push((key, (1, length))),
        }
    }
    let mut lines = flows.lines();
    let header = "first,last,src,dst,protocol,src_port,dst_port,packets,bytes,src_asn,dst_asn";
    assert_eq!(lines.next(), Some(header));
    let found = lines.map(|line| {
        let fields: Vec<&str> = line.split(',').collect();
        assert!(fields[0] <= fields[1] && !fields[0].is_empty(), "{line}");
        (fields[2..7].join(","), (fields[7].parse().unwrap(), fields[8].parse().unwrap()))
    });
    assert_eq!(found.collect::<Vec<_>>(), expected);
    let (one, two) = (one.unwrap(), two.unwrap());
    assert_eq!(two.rows, expected.len() as u64);
    assert!(two.rows < one.rows);
}
