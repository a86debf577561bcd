//! Real packets: as they were captured, and made the router's business.

use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::{env, fs};

use fibula_router::Pool;

use super::model::mend;
use super::world::{Bench, SLOT, mac};

/// The Ethernet frames of a capture: the bytes kept, and the length on the wire. None if it has another link type.
fn frames(file: &[u8]) -> Vec<(&[u8], usize)> {
    let big = file[..2] == [0xa1, 0xb2];
    let number = |at: usize| {
        let bytes = file[at..at + 4].try_into().unwrap();
        if big { u32::from_be_bytes(bytes) as usize } else { u32::from_le_bytes(bytes) as usize }
    };
    let (mut found, mut at) = (Vec::new(), 24);
    let is_pcap = [0xa1b2_c3d4, 0xa1b2_3c4d].contains(&number(0));
    while is_pcap && number(20) == 1 && at + 16 <= file.len() {
        let captured = number(at + 8);
        found.push((&file[at + 16..at + 16 + captured], number(at + 12)));
        at += 16 + captured;
    }
    found
}

/// Checks bursts of a capture's frames, changed in several ways, and counts the outcomes.
fn check(bench: &mut Bench<'_>, capture: &[(&[u8], usize)], seen: &mut HashMap<&str, u32>) {
    for chunk in capture.chunks(64) {
        let ours = |port: u16, frame: &mut Vec<u8>| {
            let len = frame.len().min(6);
            frame[..len].copy_from_slice(&mac(port)[..len]);
        };
        let mut burst = Vec::new();
        for (number, (kept, wire_len)) in chunk.iter().enumerate() {
            let port = number as u16 % 3;
            burst.push((port, kept.to_vec()));
            // To the router's MAC address, with the length that it had.
            let mut whole = kept.to_vec();
            whole.resize(*wire_len.min(&9000), 0);
            ours(port, &mut whole);
            burst.push((port, whole.clone()));
            // To networks of its groups, a TTL that expires.
            let (at, group) = (if whole.get(12) == Some(&0x81) { 4 } else { 0 }, number as u8 % 22);
            match whole.get(12 + at) {
                Some(8) if whole.len() > 34 + at => {
                    whole[30 + at..33 + at].copy_from_slice(&[10, group, 0]);
                    whole[22 + at] = if number % 9 == 0 { 1 } else { 64 };
                }
                Some(0x86) if whole.len() > 54 + at => {
                    let prefix = [0x20, 0x01, 0x0d, 0xb8, 0, group];
                    whole[38 + at..44 + at].copy_from_slice(&prefix);
                    whole[21 + at] = if number % 9 == 0 { 1 } else { 64 };
                }
                _ => {}
            }
            mend(&mut whole);
            burst.push((port, whole));
        }
        let borrowed: Vec<_> = burst.iter().map(|(port, frame)| (*port, &frame[..])).collect();
        for answer in bench.check(&borrowed) {
            *seen.entry(answer.name).or_default() += 1;
        }
    }
    bench.clear();
}

#[test]
fn the_committed_capture() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tcpdump-tests.pcap");
    let file = fs::read(path).unwrap();
    let capture = frames(&file);
    assert_eq!(capture.len(), 1235);
    let pool = Pool::new(1024, SLOT);
    let mut seen = HashMap::new();
    for with_default in [false, true] {
        check(&mut Bench::new(&pool, with_default), &capture, &mut seen);
    }
    for name in
        ["forwarded_v4", "forwarded_v6", "host", "expired", "no_route", "other_mac", "too_big"]
    {
        assert!(seen.get(name).is_some_and(|count| *count >= 20), "{name}: {seen:?}");
    }
}

/// Whole captures, which are not in the repository.
#[test]
#[ignore = "needs the shared captures: ./dev check-data"]
fn whole_captures() {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let data = env::var_os("FIBULA_SHARED").map_or(beside, PathBuf::from).join("data");
    let pool = Pool::new(1024, SLOT);
    let (mut seen, mut count) = (HashMap::new(), 0);
    for folder in ["traffic", "bmp", "bmp/tcpdump-bgp"] {
        for entry in fs::read_dir(data.join(folder)).expect("the folders of captures") {
            let path = entry.unwrap().path();
            let mut file = fs::read(&path).unwrap_or_default();
            if path.extension().is_some_and(|extension| extension == "gz") {
                let packed = std::mem::take(&mut file);
                flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut file).unwrap();
            }
            if file.len() < 24 {
                continue;
            }
            let capture = frames(&file);
            count += capture.len();
            for with_default in [false, true] {
                check(&mut Bench::new(&pool, with_default), &capture, &mut seen);
            }
        }
    }
    println!("{count} frames: {seen:?}");
    assert!(count > 10_000, "{count} frames");
}
