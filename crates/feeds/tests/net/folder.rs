//! Folders in which files appear.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fibula_core::AnyPrefix;
use fibula_feeds::SourceState;
use fibula_feeds::net::{Endpoint, FeedSource, Folder};
use fibula_ingest::Decoder;
use fibula_ingest::bgp::BgpOptions;
use fibula_ingest::mrt::MrtDecoder;
use fibula_rib::Peer;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::{LIMIT, Net, ms, source, table};
use crate::common::Lines;

pub fn folder(path: &Path, settle: Duration, after: Option<&str>) -> FeedSource {
    source(
        "mrt",
        Endpoint::Folder(Folder {
            path: path.to_owned(),
            after: after.map(str::to_owned),
            settle,
            settings: String::new(),
            decoder: Arc::new(|| Box::new(Lines::default()) as Box<dyn Decoder>),
            peer: Peer { source: Some("mrt".into()), ..Peer::default() },
            table: String::new(),
        }),
    )
}

/// Makes a complete file appear.
fn put(folder: &Path, name: &str, text: &str) {
    let unfinished = folder.join(".unfinished");
    match name.ends_with(".gz") {
        true => {
            let mut file = GzEncoder::new(File::create(&unfinished).unwrap(), Compression::fast());
            file.write_all(text.as_bytes()).unwrap();
            file.finish().unwrap();
        }
        false => fs::write(&unfinished, text).unwrap(),
    }
    fs::rename(unfinished, folder.join(name)).unwrap();
}

/// Makes a complete file with these bytes appear.
fn put_bytes(folder: &Path, name: &str, bytes: &[u8]) {
    fs::write(folder.join(".unfinished"), bytes).unwrap();
    fs::rename(folder.join(".unfinished"), folder.join(name)).unwrap();
}

/// Whether this file was taken.
fn taken_of(net: &Net, file: &str) -> bool {
    net.has_report(&format!("mrt: {file}: 1 updates"))
}

/// The files that were taken, in order.
fn taken(net: &Net) -> Vec<String> {
    let of_report = |report: &String| {
        let (file, _) = report.strip_prefix("mrt: ")?.split_once(": ")?;
        report.ends_with("updates").then(|| file.to_owned())
    };
    net.reports().iter().filter_map(of_report).collect()
}

fn is_up(net: &Net) -> bool {
    net.state("mrt") == Some(SourceState::Up)
}

#[test]
fn files_are_taken_in_order_as_they_appear() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    // A dump in the middle of an archive: earlier files are old.
    put(path, "updates.20221122.1555.gz", "peer 0 1\n+ 0 9.0.0.0/8 9\n");
    put(path, "bview.20221122.1600.gz", "peer 0 1\n+ 0 10.0.0.0/8 1\n+ 0 11.0.0.0/8 1\n");
    put(path, "updates.20221122.1600.gz", "peer 5 1\n- 5 11.0.0.0/8\n+ 5 12.0.0.0/8 1\n");
    put(path, "updates.20221122.1605", "peer 0 1\n+ 0 13.0.0.0/8 1\n");
    let net = Net::start(vec![folder(path, Duration::ZERO, None)]);
    net.wait("what is there", |net| is_up(net) && taken(net).len() == 3);
    assert_eq!(net.paths(), table(&["10.0.0.0/8", "12.0.0.0/8", "13.0.0.0/8"], 1));

    put(path, "updates.20221122.1610.gz", "peer 0 1\n- 0 13.0.0.0/8\n");
    net.wait("the next", |net| taken(net).len() == 4);
    // Later dumps repeat the updates, and a late file would be out of order.
    put(path, "bview.20221122.2400.gz", "peer 0 1\n+ 0 99.0.0.0/8 1\n");
    put(path, "updates.20221122.1607.gz", "peer 0 1\n+ 0 99.0.0.0/8 1\n");
    net.wait("the late one", |net| {
        net.has_report("mrt: updates.20221122.1607.gz: it came, or changed, after its turn")
    });
    put(path, "updates.20221123.0005.gz", "peer 0 1\n+ 0 14.0.0.0/8 1\n");
    net.wait("the last", |net| taken(net).len() == 5);
    assert_eq!(net.paths(), table(&["10.0.0.0/8", "12.0.0.0/8", "14.0.0.0/8"], 1));
    let expected = [
        "bview.20221122.1600.gz",
        "updates.20221122.1600.gz",
        "updates.20221122.1605",
        "updates.20221122.1610.gz",
        "updates.20221123.0005.gz",
    ];
    assert_eq!(taken(&net), expected);
    let remark = |net: &Net| net.status("mrt").unwrap().figures.remarks["file"].clone();
    net.wait("the remark", |net| remark(net) == "updates.20221123.0005.gz");
    // An idle folder is not looked at.
    net.wait("silence", |net| {
        let before = net.handle.turns();
        std::thread::sleep(ms(300));
        net.handle.turns() == before
    });
}

#[test]
fn files_that_grow_are_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let net = Net::start(vec![folder(path, LIMIT * 100, None)]);
    net.wait("the empty folder", is_up);
    let mut growing = File::create(path.join("updates.20221122.1600")).unwrap();
    growing.write_all(b"peer 0 1\n+ 0 10.0.0.0/8 1\n").unwrap();
    growing.sync_all().unwrap();
    // The next file is complete, but an earlier one is not.
    put(path, "updates.20221122.1605", "peer 0 1\n+ 0 10.0.0.0/8 2\n");
    growing.write_all(b"+ 0 11.0.0.0/8 1\n").unwrap();
    assert!(taken(&net).is_empty());
    drop(growing); // closed by its writer
    net.wait("both", |net| taken(net).len() == 2);
    let mut expected = table(&["10.0.0.0/8"], 2);
    expected.extend(table(&["11.0.0.0/8"], 1));
    assert_eq!(net.paths(), expected);
    drop(net);

    // Without a notification (the watch did not exist), a file that has not changed for a while is complete.
    let half =
        OpenOptions::new().append(true).create(true).open(path.join("updates.3000")).unwrap();
    let net = Net::start(vec![folder(path, ms(50), Some("updates.20221122.1605"))]);
    net.wait("the settled one", |net| taken(net) == ["updates.3000"]);
    drop(half);
}

#[test]
fn a_damaged_file_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let net = Net::start(vec![folder(path, Duration::ZERO, None)]);
    net.wait("the empty folder", is_up);
    // An archive that is cut, and one with a flipped bit: what can be read of them may be wrong.
    let text: String =
        (0..50_000).map(|i| format!("+ 0 10.{}.{}.0/24 1\n", i / 250, i % 250)).collect();
    let mut archive = GzEncoder::new(Vec::new(), Compression::none());
    archive.write_all(b"peer 0 1\n").unwrap();
    archive.write_all(text.as_bytes()).unwrap();
    let whole = archive.finish().unwrap();
    put_bytes(path, "updates.1000.gz", &whole[..whole.len() / 2]);
    let mut flipped = whole.clone();
    let value = flipped.windows(6).rposition(|bytes| bytes == b"/24 1\n").unwrap() + 4;
    flipped[value] ^= 1;
    put_bytes(path, "updates.1000a.gz", &flipped);
    let is_damaged = |net: &Net| net.state("mrt") == Some(SourceState::Damaged);
    net.wait("the cut one", |net| net.has_report("mrt: updates.1000.gz: "));
    net.wait("the flipped one", |net| net.has_report("mrt: updates.1000a.gz: ") && is_damaged(net));
    for report in net.reports().iter().filter(|report| report.contains("updates.1000")) {
        assert!(report.contains(": behind byte "), "{report}");
        assert!(report.contains(": the gzip archive is damaged or cut short: "), "{report}");
        assert!(report.ends_with("; nothing of it was taken"), "{report}");
    }
    let trouble = net.status("mrt").unwrap().trouble.unwrap();
    assert!(trouble.starts_with("updates.1000.gz: behind byte "), "{trouble}");
    assert!(net.paths().is_empty());

    put(path, "updates.1001", "what\nis\nthis\n");
    put(path, "updates.1002", "peer 0 1\n+ 0 192.0.2.0/24 1\nbinary\n+ 0 198.51.100.0/24 1\n");
    fs::create_dir(path.join("updates.1003")).unwrap();
    put(path, "updates.1004", "peer 0 1\n+ 0 203.0.113.0/24 1\n+ 0 1.0.0.0/8 ");
    put(path, "updates.1005", "peer 0 1\n+ 0 2001:db8::/32 1\nwhat\n");
    net.wait("the last", |net| taken_of(net, "updates.1005"));
    assert_eq!(net.paths(), table(&["2001:db8::/32"], 1));
    // Another start would begin before the first file that is missing.
    assert_eq!(net.position(), "");
    for report in [
        "mrt: updates.1001: 3 of 3 records are damaged; the first is record 1, byte 0: no such word; nothing of it",
        "mrt: updates.1002: behind byte 0: not lines; nothing of it was taken",
        "mrt: updates.1004: behind byte 30: its last record is cut: 14 bytes are left; nothing of it was taken",
        "mrt: updates.1005: record 3, byte 0: no such word",
        "mrt: updates.1005: 1 updates; 1 damaged parts were skipped",
    ] {
        assert!(net.has_report(report), "{report}: {:#?}", net.reports());
    }
    // The next dump has what is missing.
    net.wait("the state", is_damaged);
    put(path, "rib.1006", "peer 0 1\n+ 0 192.0.2.0/24 1\n");
    net.wait("the dump", |net| is_up(net) && taken_of(net, "rib.1006"));
    assert_eq!(net.paths(), table(&["192.0.2.0/24"], 1));
    assert_eq!(net.status("mrt").unwrap().trouble, None);
    put(path, "rib.1007", "peer 0 1\n+ 0 198.51.100.0/24 1\n");
    put(path, "updates.1008", "peer 0 1\n+ 0 203.0.113.0/24 1\n");
    net.wait("the next", |net| taken_of(net, "updates.1008"));
    assert_eq!(net.paths(), table(&["192.0.2.0/24", "203.0.113.0/24"], 1));
    // The folder is removed and created again.
    fs::rename(path, path.with_extension("away")).unwrap();
    net.wait("its absence", |net| net.has_report("it is gone; the next attempt is made in 10s"));
    net.wait("the state", |net| net.state("mrt") == Some(SourceState::Lost));
    fs::rename(path.with_extension("away"), path).unwrap();
}

/// A file that is damaged after it was checked, while it is read: what was taken of it may be wrong, so that only a
/// dump makes the table whole, and not the file itself.
#[test]
fn a_file_that_is_damaged_while_it_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    put(path, "rib.1000", "peer 0 1\n+ 0 1.0.0.0/8 1\n");
    // More than is read ahead.
    let text: String =
        (0..200_000).map(|i| format!("+ 0 10.{}.{}.0/24 1\n", i / 250 % 250, i % 250)).collect();
    let mut archive = GzEncoder::new(Vec::new(), Compression::none());
    archive.write_all(b"peer 0 1\n").unwrap();
    archive.write_all(text.as_bytes()).unwrap();
    let whole = archive.finish().unwrap();
    let (damaged, file) = (whole.clone(), path.join("updates.1005.gz"));
    // A decoder of the worker checks each file, then one of the loop takes it: the fourth is about to take this one.
    let (made, at_work) = (Arc::new(AtomicUsize::new(0)), file.clone());
    let decoder = move || {
        if made.fetch_add(1, Ordering::SeqCst) == 3 {
            let mut damaged = damaged.clone();
            let value = damaged.windows(6).rposition(|bytes| bytes == b"/24 1\n").unwrap() + 4;
            damaged[value] ^= 1;
            let mut open = OpenOptions::new().write(true).open(&at_work).unwrap();
            open.write_all(&damaged).unwrap();
        }
        Box::new(Lines::default()) as Box<dyn Decoder>
    };
    let mut source = folder(path, Duration::ZERO, None);
    if let Endpoint::Folder(folder) = &mut source.endpoint {
        folder.decoder = Arc::new(decoder);
    }
    let net = Net::start(vec![source]);
    net.wait("the dump", |net| is_up(net) && taken_of(net, "rib.1000"));
    put_bytes(path, "updates.1005.gz", &whole);
    let is_damaged = |net: &Net| net.state("mrt") == Some(SourceState::Damaged);
    net.wait("the damage", |net| is_damaged(net) && net.has_report("mrt: updates.1005.gz: behind"));
    assert!(net.has_report(" updates of it were taken"), "{:#?}", net.reports());
    // A sound file in its place is taken, but what the damaged one brought is still there.
    put(path, "updates.1005.gz", "peer 0 1\n+ 0 2.0.0.0/8 1\n");
    net.wait("the sound one", |net| taken_of(net, "updates.1005.gz"));
    net.wait("its end", |net| net.paths().len() > 2 && is_damaged(net));
    // Another start would begin with the dump.
    assert_eq!(net.position(), "");
    put(path, "rib.1010", "peer 0 1\n+ 0 3.0.0.0/8 1\n");
    net.wait("the dump", |net| is_up(net) && taken_of(net, "rib.1010"));
    assert_eq!(net.paths(), table(&["3.0.0.0/8"], 1));
}

/// Archives of MRT with a flipped bit, at many places: nothing that the sound file does not have is in the table.
#[test]
fn archives_with_flipped_bits() {
    let recorded_bytes = |name| {
        let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
        fs::read(testdata.join(name)).unwrap()
    };
    let sound = recorded_bytes("mrt/mrtparse-samples/quagga_bgp");
    let mut archive = GzEncoder::new(Vec::new(), Compression::best());
    archive.write_all(&sound).unwrap();
    let sound = archive.finish().unwrap();
    let bview = recorded_bytes("mrt/pyasn-bview.20140112.1600_3samples.bz2");
    let of = |files: &[(String, Vec<u8>)]| {
        let directory = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            put_bytes(directory.path(), name, bytes);
        }
        let mut source = folder(directory.path(), Duration::ZERO, None);
        if let Endpoint::Folder(folder) = &mut source.endpoint {
            let options = BgpOptions { as_path: true, communities: true, ..BgpOptions::default() };
            folder.decoder = Arc::new(move || Box::new(MrtDecoder::new(options)));
        }
        let net = Net::start(vec![source]);
        net.wait("all", |net| is_up(net) || net.state("mrt") == Some(SourceState::Damaged));
        let (state, rib) = (net.state("mrt").unwrap(), net.table.0.lock().unwrap());
        let mut paths = BTreeSet::new();
        for prefix in fibula_feeds::prefixes(&rib, 0) {
            let of_prefix = match prefix {
                AnyPrefix::V4(prefix) => rib.paths::<u32>(0, prefix),
                AnyPrefix::V6(prefix) => rib.paths::<u128>(0, prefix),
            };
            for path in of_prefix {
                let peer = &rib.peers()[path.peer];
                paths.insert(format!("{prefix} {peer:?} {} {:?}", path.path_id, path.attributes));
            }
        }
        (state, paths)
    };
    let files = |of: &[u8], end: &str| vec![(format!("updates.1000{end}"), of.to_vec())];
    let mut random = 1u64;
    for (bytes, end) in [(sound, ".gz"), (bview, ".bz2")] {
        let (_, wanted) = of(&files(&bytes, end));
        assert!(!wanted.is_empty());
        let flipped = |i: u32| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let (mut bytes, bit) = (bytes.clone(), random as usize % (bytes.len() * 8));
            bytes[bit / 8] ^= 1 << (bit % 8);
            (format!("updates.{i}{end}"), bytes)
        };
        let (state, paths) = of(&(1000..1200).map(flipped).collect::<Vec<_>>());
        assert_eq!(state, SourceState::Damaged);
        assert!(paths.is_subset(&wanted), "{:#?}", paths.difference(&wanted).next());
    }
}

#[test]
fn a_damaged_dump_is_no_beginning() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    put(path, "rib.1000", "peer 0 1\n+ 0 10.0.0.0/8 1\n");
    put(path, "updates.1005", "peer 0 1\n+ 0 11.0.0.0/8 1\n");
    put(path, "rib.2000", "peer 0 1\n+ 0 12.0.0.0/8 ");
    let net = Net::start(vec![folder(path, Duration::ZERO, None)]);
    net.wait("the older dump", |net| is_up(net) && taken_of(net, "updates.1005"));
    assert!(
        net.has_report("mrt: rib.2000: behind byte 9: its last record is cut: 15 bytes are left")
    );
    assert_eq!(net.paths(), table(&["10.0.0.0/8", "11.0.0.0/8"], 1));
    drop(net);

    // Without another dump the table has no beginning, until the file is replaced.
    fs::remove_file(path.join("rib.1000")).unwrap();
    fs::remove_file(path.join("updates.1005")).unwrap();
    let net = Net::start(vec![folder(path, Duration::ZERO, None)]);
    net.wait("the state", |net| net.state("mrt") == Some(SourceState::Damaged));
    assert!(net.paths().is_empty());
    put(path, "rib.2000", "peer 0 1\n+ 0 12.0.0.0/8 1\n");
    net.wait("the whole one", |net| is_up(net) && taken_of(net, "rib.2000"));
    assert_eq!(net.paths(), table(&["12.0.0.0/8"], 1));
    // So with updates: the damaged file is replaced before a later one is taken.
    put(path, "updates.2005", "peer 0 1\n+ 0 13.0.0.0/8 ");
    net.wait("the state", |net| net.state("mrt") == Some(SourceState::Damaged));
    put(path, "updates.2005", "peer 0 1\n+ 0 13.0.0.0/8 1\n");
    net.wait("the whole one", |net| is_up(net) && taken_of(net, "updates.2005"));
    assert_eq!(net.paths(), table(&["12.0.0.0/8", "13.0.0.0/8"], 1));
    assert_eq!(net.position(), "updates.2005");
    put(path, "updates.2010", "peer 0 1\n+ 0 14.0.0.0/8 ");
    put(path, "updates.2015", "peer 0 1\n+ 0 15.0.0.0/8 1\n");
    net.wait("the later one", |net| taken_of(net, "updates.2015"));
    net.wait("the state", |net| net.state("mrt") == Some(SourceState::Damaged));
    // Another start finds the damaged file again.
    let position = net.position();
    assert_eq!(position, "updates.2005");
    drop(net);
    let net = Net::start(vec![folder(path, Duration::ZERO, Some(&position))]);
    net.wait("the state", |net| net.state("mrt") == Some(SourceState::Damaged));
    net.wait("the later one again", |net| taken_of(net, "updates.2015"));
}

#[test]
fn a_dump_withdraws_what_it_does_not_name() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    put(path, "updates.1000", "peer 0 1\n+ 0 10.0.0.0/8 1\n+ 0 11.0.0.0/8 1\n");
    let net = Net::start(vec![folder(path, Duration::ZERO, None)]);
    net.wait("the first", |net| net.paths().len() == 2);
    let rib = fibula_rib::Rib::from_snapshot(
        &fibula_rib::Snapshot::from_bytes(
            net.table.0.lock().unwrap().checkpoint("").to_bytes().unwrap(),
        )
        .unwrap(),
        Default::default(),
    )
    .unwrap()
    .rib;
    drop(net);
    // Another start, with the routes of a checkpoint but not its position: it begins with the dump.
    put(path, "rib.2000", "peer 3 1\n+ 3 11.0.0.0/8 2\n");
    let net = Net::with(rib, vec![folder(path, Duration::ZERO, None)]);
    assert_eq!(net.paths().len(), 2);
    net.wait("the dump", |net| net.paths() == table(&["11.0.0.0/8"], 2));
    assert_eq!(taken(&net), ["rib.2000"]);
    assert_eq!(net.handle.remove("mrt"), Ok(true));
    assert!(net.paths().is_empty());
}
