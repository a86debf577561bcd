//! What is not written is counted, and errors end a collector.

use std::fs;

use fibula_collect::{CollectError, Collector, FlowFormat};

use crate::common::{Exporter, files, options, rows, v5, wait};

/// More than the smallest queue and buffer hold, as fast as it can be sent: each datagram is in the file or counted.
#[test]
fn every_datagram_is_written_or_counted() {
    const SENT: u64 = 30_000;
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(folder.path(), FlowFormat::Parquet);
    options.receive_buffer = 64 << 10;
    options.queue_bytes = 1;
    let collector = Collector::start(options, None).unwrap();
    let exporter = Exporter::to(&collector);
    (0..SENT as u32).for_each(|at| exporter.send(&v5(at * 30, 30)));
    wait(&collector, |counts| counts.datagrams + counts.dropped_by_system == SENT);
    // The socket is closed afterwards, and the system's count with it.
    let dropped_by_system = collector.counts().dropped_by_system;
    let counts = collector.stop().unwrap();
    assert!(counts.dropped + dropped_by_system > 0, "nothing was lost: {counts:?}");
    assert_eq!(counts.exports.datagrams + counts.dropped + dropped_by_system, SENT);
    assert_eq!(counts.exports.flows, 30 * counts.exports.datagrams);
    assert_eq!(counts.rows, counts.exports.flows);
    let [exporter] = *counts.exporters.values().collect::<Vec<_>>() else { panic!("{counts:?}") };
    assert_eq!((exporter.dropped, exporter.exports.flows), (counts.dropped, counts.rows));
    // The sequence numbers show what is missing between the first and the last datagram that came.
    assert!(counts.exports.lost <= 30 * (counts.dropped + dropped_by_system));
}

#[test]
fn senders_that_are_not_allowed_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(folder.path(), FlowFormat::JsonLines);
    options.allowed = vec!["192.0.2.0/24".parse().unwrap()];
    let collector = Collector::start(options.clone(), None).unwrap();
    Exporter::to(&collector).send(&v5(0, 3));
    let counts = collector.stop().unwrap();
    assert_eq!((counts.datagrams, counts.refused, counts.exports.datagrams), (1, 1, 0));
    assert_eq!((counts.files, files(folder.path()).len()), (0, 0));

    options.allowed.push("127.0.0.0/8".parse().unwrap());
    let collector = Collector::start(options, None).unwrap();
    Exporter::to(&collector).send(&v5(0, 3));
    let counts = collector.stop().unwrap();
    assert_eq!((counts.refused, counts.rows, rows(folder.path()).len()), (0, 3, 3));
}

/// Noise is counted and changes nothing.
#[test]
fn noise_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Collector::start(options(folder.path(), FlowFormat::JsonLines), None).unwrap();
    let exporter = Exporter::to(&collector);
    let whole = v5(0, 2);
    for len in 0..whole.len() {
        exporter.send(&whole[..len]);
        wait(&collector, |counts| counts.exports.datagrams == 1 + len as u64);
    }
    exporter.send(&whole);
    let counts = collector.stop().unwrap();
    assert_eq!((counts.exports.faults, counts.rows), (whole.len() as u64, 2));
    assert!(counts.last_fault.is_some());
}

/// An output that fails ends the collector, and what was complete stays.
#[test]
fn a_folder_that_goes_away() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("flows");
    let mut options = options(&place, FlowFormat::JsonLines);
    options.output.rotate_bytes = 1;
    options.batch_rows = 1;
    let collector = Collector::start(options, None).unwrap();
    let exporter = Exporter::to(&collector);
    exporter.send(&v5(0, 1));
    wait(&collector, |counts| counts.files == 1);
    let kept = folder.path().join("kept");
    fs::rename(&place, &kept).unwrap();
    fs::write(&place, "no folder").unwrap();
    exporter.send(&v5(1, 1));
    wait(&collector, |_| !collector.is_running());
    let error = collector.stop().unwrap_err();
    assert!(matches!(error, CollectError::Write { .. }), "{error}");
    assert!(error.to_string().starts_with(place.to_str().unwrap()), "{error}");
    assert_eq!(rows(&kept).len(), 1);
}

#[test]
fn an_address_in_use() {
    let folder = tempfile::tempdir().unwrap();
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut options = options(folder.path(), FlowFormat::JsonLines);
    options.listen = vec![taken.local_addr().unwrap()];
    let error = Collector::start(options, None).unwrap_err();
    assert!(error.to_string().starts_with("cannot receive at 127.0.0.1:"), "{error}");
}
