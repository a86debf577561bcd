//! Captures as ports.

use std::fs;
use std::path::{Path, PathBuf};

use fibula_packet::capture::{Container, Step as Record_, header, record};
use fibula_router::port::pcap::{self, Pace, PcapOptions};

use super::*;

/// The frames of a capture, and their times in microseconds.
fn read(path: &Path) -> Vec<(u64, Vec<u8>)> {
    let bytes = fs::read(path).unwrap();
    let mut container = Container::recognise(&bytes).unwrap();
    let (mut at, mut frames) = (0, Vec::new());
    while at < bytes.len() {
        at += match container.next(&bytes[at..], at == 0) {
            Record_::Packet(len, packet) => {
                let time = packet
                    .time
                    .map_or(0, |t| t.seconds as u64 * 1_000_000 + u64::from(t.nanos / 1000));
                frames.push((time, packet.data.to_vec()));
                len
            }
            Record_::Skip(len) => len,
            other => panic!("{other:?}"),
        };
    }
    frames
}

fn only_frames(path: &Path) -> Vec<Vec<u8>> {
    read(path).into_iter().map(|(_, frame)| frame).collect()
}

fn file(folder: &tempfile::TempDir, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    path
}

/// What it took from a file: the frames, and the errors.
fn through(input: &Path, pace: Pace, output: Option<PathBuf>) -> (Vec<Vec<u8>>, Vec<String>, u64) {
    let pool = Pool::new(64, 2048);
    let input = Some(input.to_owned());
    let mut port =
        pcap::open("file", &PcapOptions { input, pace, output, mtu: 1500, ..Default::default() })
            .unwrap();
    let Queue { receive, transmit } = &mut port.queues[0];
    let (mut frames, mut errors) = (Vec::new(), Vec::new());
    while !receive.is_over() {
        let mut burst = Vec::new();
        if let Err(error) = receive.receive(&pool, &mut burst, 7) {
            errors.push(error.to_string());
        }
        assert!(burst.len() <= 7);
        frames.extend(burst.iter().map(|packet| packet.bytes().to_vec()));
        transmit.transmit(&pool, &mut burst).unwrap();
        assert!(burst.is_empty());
        receive.wait(Duration::from_millis(5)).unwrap();
    }
    transmit.close(&pool).unwrap();
    assert_eq!(pool.free(), 64);
    (frames, errors, receive.lost())
}

#[test]
fn a_real_capture_comes_out_as_it_went_in() {
    let folder = tempfile::tempdir().unwrap();
    let input = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tcpdump-tests.pcap");
    let expected = only_frames(&input);
    assert_eq!(expected.len(), 1235);
    let output = folder.path().join("out.pcap");
    let before = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let (frames, errors, lost) = through(&input, Pace::Full, Some(output.clone()));
    assert!(frames == expected && errors.is_empty() && lost == 0);
    let written = read(&output);
    assert!(written.iter().map(|(_, frame)| frame).eq(&expected));
    let since = before.as_micros() as u64 - 1_000_000;
    assert!(written.iter().all(|(time, _)| *time > since), "times are those of sending");

    // The same by a pipeline.
    let output = folder.path().join("pipeline.pcap");
    let pool = Pool::new(4096, 2048);
    let options_of = PcapOptions {
        input: Some(input),
        output: Some(output.clone()),
        mtu: 1500,
        ..Default::default()
    };
    let port = pcap::open("file", &options_of).unwrap();
    let shape = ThreadLayout::Staged { receive: 1, lookup: 1, transmit: 1 };
    let end = run(&pool, vec![port.into()], options(shape), || Through).unwrap();
    assert_conserved(&pool, &end);
    assert_eq!(only_frames(&output), expected);
}

/// A section of pcapng with an Ethernet interface, and these packets, one simple block each.
fn pcapng(frames: &[&[u8]]) -> Vec<u8> {
    let block = |kind: u32, body: &[u8]| {
        let mut padded = body.to_vec();
        padded.resize(body.len().next_multiple_of(4), 0);
        let len = (padded.len() as u32 + 12).to_le_bytes();
        [&kind.to_le_bytes()[..], &len, &padded, &len].concat()
    };
    let section = [&0x1a2b_3c4du32.to_le_bytes()[..], &1u32.to_le_bytes(), &[0xff; 8]].concat();
    let simple =
        |frame: &&[u8]| block(3, &[&(frame.len() as u32).to_le_bytes()[..], frame].concat());
    let packets: Vec<u8> = frames.iter().flat_map(simple).collect();
    [block(0x0a0d_0d0a, &section), block(1, &[1, 0, 0, 0, 0, 0, 0, 0]), packets].concat()
}

#[test]
fn pcapng_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder, "a.pcapng", &pcapng(&[b"first frame", b"another one"]));
    let (frames, errors, _) = through(&path, Pace::Times, None);
    assert_eq!(frames, [b"first frame", b"another one"]);
    assert!(errors.is_empty());
}

#[test]
fn damage_names_file_record_and_byte() {
    let folder = tempfile::tempdir().unwrap();
    let one = [&record(1, 0, 4)[..], b"abcd"].concat();
    let good = [&header(1)[..], &one, &one].concat();
    let long = [&record(1, 0, 5000)[..], &[1; 5000]].concat();
    for (name, bytes, frames, error) in [
        (
            "cut.pcap",
            &good[..good.len() - 1],
            1,
            "cut.pcap: record 2 at byte 44: the file ends within a record",
        ),
        (
            "ppp.pcap",
            &[&header(9)[..], &one].concat(),
            0,
            "ppp.pcap: record 1 at byte 24: its link type is 9, and only Ethernet",
        ),
        (
            "huge.pcap",
            &[&good[..], &record(1, 0, u32::MAX)].concat(),
            2,
            "huge.pcap: record 3 at byte 64: a packet longer",
        ),
    ] {
        let (found, errors, _) = through(&file(&folder, name, bytes), Pace::Full, None);
        assert_eq!(found.len(), frames, "{name}");
        assert!(errors.len() == 1 && errors[0].contains(error), "{errors:?}");
    }
    // Longer than a slot: lost, and counted.
    let path = file(&folder, "long.pcap", &[&good[..], &long, &one].concat());
    let (frames, errors, lost) = through(&path, Pace::Full, None);
    assert_eq!((frames.len(), errors.len(), lost), (3, 0, 1));

    let open = |input: &Path, output: Option<PathBuf>| {
        let input = Some(input.to_owned());
        pcap::open("file", &PcapOptions { input, output, ..Default::default() }).map(|_| ())
    };
    let text = file(&folder, "text.txt", b"this is a text of more than 24 bytes");
    let error = open(&text, None).unwrap_err().to_string();
    assert!(error.contains("text.txt: this is not a capture"), "{error}");
    let error = open(&folder.path().join("none.pcap"), None).unwrap_err().to_string();
    assert!(error.contains("none.pcap"), "{error}");
    let good = file(&folder, "good.pcap", &good);
    let error = open(&good, Some(folder.path().join("no/such.pcap"))).unwrap_err().to_string();
    assert!(error.contains("such.pcap"), "{error}");
}

/// The second packet is 30 ms behind the first, the third before both.
#[test]
fn times_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let packet = |micros, byte| [&record(7, micros, 1)[..], &[byte]].concat();
    let bytes = [&header(1)[..], &packet(5, 1), &packet(30_005, 2), &packet(0, 3)].concat();
    let path = file(&folder, "times.pcap", &bytes);
    let started = Instant::now();
    let (frames, ..) = through(&path, Pace::Times, None);
    assert_eq!(frames, [[1], [2], [3]]);
    assert!(started.elapsed() >= Duration::from_millis(30));
    // A pipeline waits for it, and does not take the wait for the end.
    let pool = Pool::new(16, 512);
    let options_of = PcapOptions { input: Some(path), pace: Pace::Times, ..Default::default() };
    let ports = vec![pcap::open("times", &options_of).unwrap().into()];
    let end = run(&pool, ports, options(ThreadLayout::Fused { threads: 1 }), || Through).unwrap();
    assert_eq!(end.ports[0].sent.packets, 3);
}
