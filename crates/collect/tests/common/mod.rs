//! Datagrams, and what collectors write.

use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use fibula_collect::{CollectCounts, CollectOptions, Collector, FlowFormat, FlowOutput, FlowPlace};
use serde_json::Value;

/// How long something may take that happens soon.
const PATIENCE: Duration = Duration::from_secs(20);

/// A datagram of NetFlow v5 with flows from 10.1.x.x to 192.0.2.7; `first` is the number of its first flow.
pub fn v5(first: u32, flows: u16) -> Vec<u8> {
    let mut out = vec![0; 24];
    out[..4].copy_from_slice(&[0, 5, (flows >> 8) as u8, flows as u8]);
    out[8..12].copy_from_slice(&1_700_000_000u32.to_be_bytes());
    out[16..20].copy_from_slice(&first.to_be_bytes());
    for flow in first..first + u32::from(flows) {
        let mut record = [0; 48];
        record[..2].copy_from_slice(&[10, 1]);
        record[2..4].copy_from_slice(&(flow as u16).to_be_bytes());
        record[4..8].copy_from_slice(&[192, 0, 2, 7]);
        record[16..20].copy_from_slice(&1u32.to_be_bytes());
        record[20..24].copy_from_slice(&(100 + flow).to_be_bytes());
        record[38] = 17;
        out.extend(record);
    }
    out
}

/// A message of IPFIX that defines template 256: both IPv6 addresses and bytes.
pub fn ipfix_template() -> Vec<u8> {
    let set = b"\0\x02\0\x14\x01\0\0\x03\0\x1b\0\x10\0\x1c\0\x10\0\x01\0\x08";
    message(set, 0)
}

/// A message of IPFIX with a flow of template 256, from 2001:db8::1 to 2001:db8::2.
pub fn ipfix_flow(sequence: u32, bytes: u64) -> Vec<u8> {
    let address = |last| [&[0x20, 1, 0x0d, 0xb8][..], &[0; 11], &[last]].concat();
    let set = [&b"\x01\0\0\x2c"[..], &address(1), &address(2), &bytes.to_be_bytes()].concat();
    message(&set, sequence)
}

fn message(set: &[u8], sequence: u32) -> Vec<u8> {
    let len = (16 + set.len()) as u16;
    let head = [&[0, 10][..], &len.to_be_bytes(), &1_700_000_000u32.to_be_bytes()].concat();
    [&head[..], &sequence.to_be_bytes(), &[0, 0, 0, 7], set].concat()
}

/// Options for a folder, at a port of loopback.
pub fn options(folder: &Path, format: FlowFormat) -> CollectOptions {
    let output = FlowOutput::new(FlowPlace::Folder(folder.to_owned()), format);
    CollectOptions::new(vec!["127.0.0.1:0".parse().unwrap()], output)
}

/// An exporter on loopback.
pub struct Exporter(UdpSocket, SocketAddr);

impl Exporter {
    pub fn to(collector: &Collector) -> Self {
        Self(UdpSocket::bind("127.0.0.1:0").unwrap(), collector.addresses()[0])
    }

    pub fn send(&self, datagram: &[u8]) {
        self.send_to(datagram, self.1);
    }

    pub fn send_to(&self, datagram: &[u8], collector: SocketAddr) {
        self.0.send_to(datagram, collector).unwrap();
    }
}

/// Waits until the counts are as expected.
pub fn wait(collector: &Collector, expected: impl Fn(&CollectCounts) -> bool) {
    let until = Instant::now() + PATIENCE;
    while !expected(&collector.counts()) {
        assert!(Instant::now() < until, "{:?}", collector.counts());
        thread::sleep(Duration::from_millis(10));
    }
}

/// All files below a folder, in order.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    found.sort();
    found
}

/// The rows of all files of JSON lines, without the time at which they were received.
pub fn rows(folder: &Path) -> Vec<Value> {
    let text: String = files(folder).iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    let row = |line| {
        let mut row: Value = serde_json::from_str(line).unwrap();
        assert!(row.as_object_mut().unwrap().remove("time").unwrap().as_f64().unwrap() > 1.7e9);
        row
    };
    text.lines().map(row).collect()
}
