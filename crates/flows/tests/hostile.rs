//! Every byte of every datagram changed: no panic, bounded memory, and nothing of another exporter changes.

use std::net::{IpAddr, SocketAddr};

use fibula_flows::{FlowDecoder, FlowLimits};
use proptest::prelude::*;

use crate::common::{Keep, captures, ipfix, set, template, text, v5, v9};
use crate::sflow::{datagram, flow_sample, frame, header};

/// Captured datagrams, and built ones of the protocols that the captures lack.
fn all() -> Vec<Vec<(SocketAddr, Vec<u8>)>> {
    let from = SocketAddr::from(([192, 0, 2, 1], 2055));
    let list = [(8, 4, 0), (82, 65_535, 0), (1, 8, 0), (1, 4, 29305), (315, 65_535, 0)];
    let record =
        [&[10, 0, 0, 1, 3][..], b"abc", &[1; 12], &[60], &frame(None, 1, (1, 2)), &[0; 6]].concat();
    // 110 repeats the datagrams of 100 to 102.
    let captures = captures().into_iter().filter(|(name, _)| !name.contains("tests_110"));
    let mut all: Vec<_> = captures.map(|(_, datagrams)| datagrams).collect();
    let sample = flow_sample(1, 10, &[header(&frame(Some(3), 7, (1, 2)), 100)]);
    all.push(vec![
        (from, ipfix(0, 1, &[set(2, &template(256, &list)), set(256, &record)])),
        (from, v9(0, 1, &[set(0, &template(256, &[(8, 4, 0), (21, 4, 0)])), set(256, &[9; 32])])),
        (from, v5(7, &[vec![3; 48], vec![4; 48]])),
        (from, datagram(1, &[sample.clone(), sample])),
    ]);
    all
}

#[test]
fn every_byte_changed() {
    let limits = {
        let mut limits = FlowLimits::default();
        (limits.exporter_bytes, limits.bytes) = (256 << 10, 512 << 10);
        limits
    };
    let victim = IpAddr::from([203, 0, 113, 1]);
    let mut changes = 0u64;
    for datagrams in all() {
        // The same datagrams of another exporter, whose records must stay the same throughout.
        let mut expected = Keep::default();
        let mut alone = FlowDecoder::new(limits);
        let mut decoder = FlowDecoder::new(limits);
        for (from, bytes) in &datagrams {
            alone.decode(SocketAddr::new(victim, from.port()), bytes, &mut expected);
            let mut keep = Keep::default();
            decoder.decode(SocketAddr::new(victim, from.port()), bytes, &mut keep);
            for at in 0..bytes.len() {
                let mut changed = bytes.clone();
                for value in [0, 0xff, bytes[at] ^ 1, bytes[at] ^ 0x80] {
                    changed[at] = value;
                    let counts = decoder.decode(*from, &changed, &mut Keep::default());
                    assert_eq!(counts.datagrams, 1);
                    assert!(decoder.memory() <= limits.bytes + (256 << 10), "{}", decoder.memory());
                    changes += 1;
                }
                // Also cut there.
                decoder.decode(*from, &bytes[..at], &mut Keep::default());
            }
        }
        // Once more, with what the decoder keeps now: of templates the last definitions count.
        let (mut again, mut keep) = (Keep::default(), Keep::default());
        for (from, bytes) in &datagrams {
            let from = SocketAddr::new(victim, from.port());
            alone.decode(from, bytes, &mut again);
            decoder.decode(from, bytes, &mut keep);
        }
        let texts = |keep: &Keep| keep.flows.iter().map(text).collect::<Vec<_>>();
        assert_eq!(texts(&keep), texts(&again));
    }
    assert!(changes > 2000, "{changes}");
    println!("{changes} changed datagrams");
}

/// Bytes that are lengths and counts more often than others.
fn datagram_bytes() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![Just(0u8), Just(1), Just(4), Just(16), any::<u8>()];
    proptest::collection::vec(byte, 4..200)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes(version in prop_oneof![Just(5u8), Just(9), Just(10), Just(0)],
                 mut datagrams in proptest::collection::vec(datagram_bytes(), 1..4)) {
        let mut decoder = FlowDecoder::default();
        for bytes in &mut datagrams {
            (bytes[0], bytes[1]) = (0, version);
            if version == 10 {
                let len = bytes.len() as u16;
                bytes[2..4].copy_from_slice(&len.to_be_bytes());
            }
            decoder.decode(SocketAddr::from(([1, 2, 3, 4], 5)), bytes, &mut Keep::default());
            let saved = decoder.save();
            FlowDecoder::default().load(&saved).unwrap();
        }
    }
}
