//! Hostile files of a history: parts and logs whose checksums are right. What opens answers, with a route or an error,
//! and the changes that were listed are in order.
#![no_main]

use std::fs;

use fibula_core::AnyPrefix;
use fibula_history::{HistoryFolder, HistoryOptions, HistoryQuestion};
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use twox_hash::XxHash3_64;

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    is_log: bool,
    is_complete: bool,
    from: u64,
    frames: Vec<(u8, &'a [u8])>,
    at: u64,
}

/// A frame as the files have it, not packed.
fn frame(kind: u8, raw: &[u8]) -> Vec<u8> {
    let length = (raw.len() as u32).to_le_bytes();
    let mut head = vec![kind, 0, 0, 0];
    head.extend_from_slice(&length);
    head.extend_from_slice(&length);
    let sum = XxHash3_64::oneshot(&[&head, raw].concat());
    [&head, &sum.to_le_bytes()[..], raw].concat()
}

fn log(input: &Input<'_>) -> Vec<u8> {
    let mut file = b"fibhlog1".to_vec();
    for number in [1, input.from, input.is_complete.into()] {
        file.extend_from_slice(&number.to_le_bytes());
    }
    file.extend_from_slice(&XxHash3_64::oneshot(&file).to_le_bytes());
    input.frames.iter().for_each(|(kind, raw)| file.extend(frame(kind % 6, raw)));
    file
}

/// The last frame is the summary, the one before it the index.
fn part(input: &Input<'_>) -> Vec<u8> {
    let mut file = b"fibhist1".to_vec();
    let mut places = [8u64; 2];
    for (at, (kind, raw)) in input.frames.iter().enumerate() {
        let kind = match input.frames.len() - at {
            1 => 5,
            2 => 4,
            _ => kind % 6,
        };
        places = [places[1], file.len() as u64];
        file.extend(frame(kind, raw));
    }
    let mut tail = [places[0].to_le_bytes(), places[1].to_le_bytes()].concat();
    tail.extend_from_slice(&XxHash3_64::oneshot(&tail).to_le_bytes());
    tail.extend_from_slice(b"fibhend1");
    file.extend(tail);
    file
}

fuzz_target!(|input: Input<'_>| {
    let folder = tempfile::tempdir().expect("a folder");
    let (name, bytes) = match input.is_log {
        true => ("0000000001.log", log(&input)),
        false => ("0000000001.part", part(&input)),
    };
    fs::write(folder.path().join(name), bytes).expect("room");
    let mut history =
        HistoryFolder::open(folder.path(), HistoryOptions::default()).expect("it opens");
    history.notes();
    let reader = history.reader();
    let (recorded, _) = reader.recorded();
    for at in
        [input.at, recorded.map_or(0, |(from, _)| from), recorded.map_or(0, |(_, until)| until)]
    {
        for address in ["10.0.0.1", "2001:db8::1"] {
            let address = address.parse().expect("an address");
            if let Ok(answer) = reader.at(HistoryQuestion::Address(address), at, None) {
                let routes = answer.tables.iter().flat_map(|table| &table.routes);
                routes.for_each(|route| {
                    assert!(route.record.time <= at && route.until.is_none_or(|until| until > at))
                });
            }
            let prefix = AnyPrefix::host(address);
            if let Ok(page) = reader.changes(prefix, None, &(0..=u64::MAX), 0, 5) {
                assert!(
                    page.changes.is_sorted_by_key(|(_, record)| std::cmp::Reverse(record.time))
                );
            }
        }
    }
    // What is damaged does not keep it from going on.
    if let Ok(mut resync) = history.resync() {
        let _ = resync.compare(None, Vec::new(), input.at, |_| false);
    }
    history.start_anew().expect("room");
    assert!(history.resync().is_ok());
});
