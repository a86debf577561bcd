//! Tests that captures are read alike by one thread and by several.

use fibula_classify::text::{RuleFormat, RuleOptions, read};
use fibula_classify::{Classifier, ClassifierOptions};
use proptest::prelude::*;
use proptest::sample::select;

use super::tests::{Pieces, outcome, table};
use super::{Annotator, Parting};
use crate::{AnnotateOptions, LogFormat, RuleAnnotator, RuleTotals};

/// A pcapng block in one of the byte orders.
fn block(big: bool, kind: u32, body: &[u8]) -> Vec<u8> {
    let number = |value: u32| if big { value.to_be_bytes() } else { value.to_le_bytes() };
    let mut padded = body.to_vec();
    padded.resize(body.len().next_multiple_of(4), 0);
    let total = number(padded.len() as u32 + 12);
    [&number(kind)[..], &total, &padded, &total].concat()
}

/// The numbers, in one of the byte orders.
fn numbers(big: bool, values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|v| if big { v.to_be_bytes() } else { v.to_le_bytes() }).collect()
}

fn section(big: bool) -> Vec<u8> {
    block(big, 0x0a0d_0d0a, &numbers(big, &[0x1a2b_3c4d, 1, u32::MAX, u32::MAX]))
}

fn interface(big: bool, link: u16) -> Vec<u8> {
    let link = if big { link.to_be_bytes() } else { link.to_le_bytes() };
    block(big, 1, &[&link[..], &[0; 6]].concat())
}

fn ip(host: u8) -> Vec<u8> {
    let mut ip =
        b"\x45\0\0\x1c\0\0\0\0\x40\x11\0\0\x0a\x01\0\x01\x0a\0\0\x02\0\x35\x10\0\0\x08\0\0"
            .to_vec();
    ip[15] = host;
    ip
}

fn packet(big: bool, interface: u32, host: u8) -> Vec<u8> {
    let ip = ip(host);
    let head = [interface, 0, 1_000_000 + u32::from(host), ip.len() as u32, 60];
    block(big, 6, &[numbers(big, &head), ip].concat())
}

/// A part of a pcapng file. The first interface has IP packets, the second a link type that is not known.
#[derive(Clone, Debug)]
enum Piece {
    Packets(u32, u8),
    /// A new section, in this byte order.
    Section(bool),
    /// A block without packets.
    Other(usize),
    /// A packet of an interface that is not there.
    NoInterface,
    /// A block whose two lengths differ: the rest is lost.
    Lost,
}

fn pieces() -> impl Strategy<Value = Vec<Piece>> {
    let piece = prop_oneof![
        12 => (0u32..2, 1u8..40).prop_map(|(interface, count)| Piece::Packets(interface, count)),
        2 => any::<bool>().prop_map(Piece::Section),
        2 => (0usize..500).prop_map(Piece::Other),
        1 => Just(Piece::NoInterface),
        1 => (0u32..4).prop_map(|lost| if lost == 0 { Piece::Lost } else { Piece::NoInterface }),
    ];
    proptest::collection::vec(piece, 0..40)
}

/// The capture, which begins with enough packets for one thread.
fn pcapng(pieces: &[Piece]) -> Vec<u8> {
    let begin = |big| [section(big), interface(big, 101), interface(big, 147)].concat();
    let mut big = false;
    let mut out = begin(big);
    (0..200).for_each(|host| out.extend(packet(big, 0, host)));
    for piece in pieces {
        match *piece {
            Piece::Packets(interface, count) => {
                (0..count).for_each(|host| out.extend(packet(big, interface, host)));
            }
            Piece::Section(order) => {
                big = order;
                out.extend(begin(big));
            }
            Piece::Other(len) => out.extend(block(big, 5, &vec![7; len])),
            Piece::NoInterface => out.extend(packet(big, 9, 1)),
            Piece::Lost => {
                let at = out.len();
                out.extend(packet(big, 0, 1));
                out[at + 4] ^= 0x40;
                out[at + 7] ^= 0x40;
            }
        }
    }
    out
}

fn pcap(packets: usize) -> Vec<u8> {
    let mut out = fibula_packet::capture::header(101).to_vec();
    for at in 0..packets {
        let ip = ip(at as u8);
        out.extend(fibula_packet::capture::record(100 + at as u32, 5, ip.len() as u32));
        out.extend(ip);
    }
    out
}

fn rules() -> Classifier {
    let text = "src 10.1.0.0/30 -> drop label \"a, b\"\nsrc 10.1.0.0/25 udp -> allow\n";
    let rules = read(text.as_bytes(), RuleFormat::Rules, &RuleOptions::default()).unwrap().rules;
    Classifier::new(rules, &ClassifierOptions::default())
}

/// What does not depend on the number of caches.
fn counts(totals: RuleTotals) -> (Vec<u64>, Vec<u64>, u64, u64) {
    (totals.packets, totals.bytes, totals.unmatched, totals.unmatched_bytes)
}

proptest! {
    #[test]
    fn threads_and_parts_do_not_matter(
        capture in prop_oneof![
            pieces().prop_map(|pieces| pcapng(&pieces)),
            (200usize..900).prop_map(pcap),
        ],
        cut in 0usize..60,
        sizes in proptest::collection::vec(1usize..900, 1..5),
        chunk in 1usize..2000,
        (strict, breaks, flows, writes) in any::<(bool, bool, bool, bool)>(),
        slow in select(vec![0, 50, usize::MAX]),
    ) {
        let data = &capture[..capture.len() - cut];
        let mut options =
            AnnotateOptions { strict, flows, add: vec!["org".into()], ..AnnotateOptions::default() };
        let pieces = || Pieces { data, sizes: &sizes, reads: 0, breaks };
        let (fib, classifier) = (table(), rules());
        let mut expected = None;
        for threads in [1, 2, 3, 8] {
            options.threads = threads;
            let parting = Parting { from: 0, chunk, slow, ..Parting::default() };
            let mut annotator = Annotator::new(fib.clone(), LogFormat::Pcap, &options).unwrap();
            annotator.parting = parting;
            let mut output = Vec::new();
            let result = annotator.annotate_on_threads(pieces(), &mut output, &mut |_| {});
            let annotated = outcome(output, result);

            let classifier = classifier.clone();
            let mut annotator =
                RuleAnnotator::new(classifier, LogFormat::Pcap, &options, writes).unwrap();
            annotator.parting = parting;
            let (mut output, mut found) = (Vec::new(), None);
            let result = annotator.annotate(pieces(), &mut output, &mut |_| {});
            let result = result.map(|(summary, totals)| {
                found = Some(counts(totals));
                summary
            });
            let all = (annotated, outcome(output, result), found);
            let expected = expected.get_or_insert_with(|| all.clone());
            prop_assert_eq!(&all, expected, "{} threads", threads);
        }
    }
}

/// Ensures that the test above does not pass only because one thread reads everything.
#[test]
fn captures_can_be_cut() {
    for data in [
        pcap(2000),
        pcapng(&[Piece::Packets(0, 200), Piece::Section(true), Piece::Packets(1, 200)]),
    ] {
        let options = AnnotateOptions::default();
        let annotator = RuleAnnotator::new(rules(), LogFormat::Pcap, &options, true).unwrap();
        let mut process = super::process::Process::new(&annotator).unwrap();
        let used = process.block(&data, false, &mut Vec::new()).unwrap();
        assert!(process.fork().is_some());
        assert_eq!(process.cut(&data[used..]), data.len() - used);
        let summary = annotator.annotate(&data[..], std::io::sink(), &mut |_| {}).unwrap().0;
        assert_eq!(summary.rows, if data[0] == 0x0a { 600 } else { 2000 });
    }
}
