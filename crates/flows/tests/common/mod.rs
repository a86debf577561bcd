//! Datagrams: built, and of real captures.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::{env, fs};

use fibula_flows::{
    ExportCounts, ExportFault, ExportProtocol, FlowDecoder, FlowRecord, FlowSink, FlowSource,
};
use fibula_packet::capture::{Container, Step};
use fibula_packet::{Frame, LinkType};

/// A record and its source.
#[derive(Clone, Debug)]
pub struct Kept {
    pub record: FlowRecord,
    pub exporter: IpAddr,
    pub protocol: ExportProtocol,
    pub domain: u32,
    pub input_name: Option<String>,
    pub vrf_name: Option<String>,
}

/// Keeps everything.
#[derive(Debug, Default)]
pub struct Keep {
    pub flows: Vec<Kept>,
    pub faults: Vec<ExportFault>,
}

impl FlowSink for Keep {
    fn flow(&mut self, record: &FlowRecord, source: &FlowSource<'_>) {
        let name = |number: Option<u32>| Some(source.interface_name(number?)?.to_owned());
        let vrf = |number: Option<u32>| Some(source.vrf_name(number?)?.to_owned());
        self.flows.push(Kept {
            record: record.clone(),
            exporter: source.exporter(),
            protocol: source.protocol(),
            domain: source.domain(),
            input_name: name(record.input()),
            vrf_name: vrf(record.input_vrf()),
        });
    }

    fn fault(&mut self, fault: &ExportFault) {
        self.faults.push(*fault);
    }
}

/// Decodes a datagram alone in its call.
pub fn decode(decoder: &mut FlowDecoder, from: &str, datagram: &[u8]) -> (Vec<Kept>, ExportCounts) {
    let mut keep = Keep::default();
    let counts = decoder.decode(from.parse().unwrap(), datagram, &mut keep);
    assert_eq!(counts.flows, keep.flows.len() as u64);
    assert_eq!(counts.faults, keep.faults.len() as u64);
    (keep.flows, counts)
}

/// A record as text: all fields that are there.
pub fn text(kept: &Kept) -> String {
    format!("{} {} {} {:?}", kept.exporter, kept.protocol, kept.domain, kept.record)
}

pub fn be(value: u64, len: usize) -> Vec<u8> {
    value.to_be_bytes()[8 - len..].to_vec()
}

pub fn set(number: u16, body: &[u8]) -> Vec<u8> {
    [&be(number.into(), 2)[..], &be(body.len() as u64 + 4, 2), body].concat()
}

/// A field of a template: number, length, enterprise.
pub type Field = (u16, u16, u32);

pub fn fields(fields: &[Field]) -> Vec<u8> {
    let field = |(number, len, enterprise): &Field| match enterprise {
        0 => [be((*number).into(), 2), be((*len).into(), 2)].concat(),
        _ => [be(u64::from(number | 0x8000), 2), be((*len).into(), 2), be((*enterprise).into(), 4)]
            .concat(),
    };
    fields.iter().flat_map(field).collect()
}

pub fn template(number: u16, list: &[Field]) -> Vec<u8> {
    [be(number.into(), 2), be(list.len() as u64, 2), fields(list)].concat()
}

/// A message of IPFIX.
pub fn ipfix(sequence: u32, domain: u32, sets: &[Vec<u8>]) -> Vec<u8> {
    let body = sets.concat();
    let len = be(body.len() as u64 + 16, 2);
    let times = [be(1_700_000_000, 4), be(sequence.into(), 4), be(domain.into(), 4)].concat();
    [vec![0, 10], len, times, body].concat()
}

/// A datagram of NetFlow v9; the uptime is 1,000 s.
pub fn v9(sequence: u32, domain: u32, sets: &[Vec<u8>]) -> Vec<u8> {
    let times = [be(1_000_000, 4), be(1_700_000_000, 4), be(sequence.into(), 4)].concat();
    [vec![0, 9, 0, 1], times, be(domain.into(), 4), sets.concat()].concat()
}

/// A datagram of NetFlow v5 with records of 48 bytes.
pub fn v5(sequence: u32, records: &[Vec<u8>]) -> Vec<u8> {
    let count = be(records.len() as u64, 2);
    let times = [be(1_000_000, 4), be(1_700_000_000, 4), be(500_000_000, 4)].concat();
    let rest = [be(sequence.into(), 4), vec![1, 2, 0x40, 100]].concat();
    [vec![0, 5], count, times, rest, records.concat()].concat()
}

fn shared() -> PathBuf {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    env::var_os("FIBULA_SHARED").map_or(beside, PathBuf::from).join("data")
}

/// A capture with exports: its name, and the datagrams with their senders.
pub type Capture = (String, Vec<(SocketAddr, Vec<u8>)>);

/// The captures with exports of flows; empty, with a message, where the real data is missing.
pub fn captures() -> Vec<Capture> {
    let folder = shared().join("bmp");
    let Ok(entries) = fs::read_dir(&folder) else {
        eprintln!("no captures at {} (set FIBULA_SHARED): without them", folder.display());
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.file_name().unwrap().to_string_lossy().starts_with("pmacct-tests_1"));
    paths.sort();
    assert!(paths.len() >= 10, "only {} captures in {}", paths.len(), folder.display());
    paths
        .iter()
        .map(|path| (path.file_name().unwrap().to_string_lossy().into(), udp(path)))
        .collect()
}

/// A file with IPFIX messages, if the real data is there.
pub fn ipfix_file() -> Option<Vec<u8>> {
    fs::read(shared().join("flows/cesnet-example_flows.ipfix")).ok()
}

fn udp(path: &Path) -> Vec<(SocketAddr, Vec<u8>)> {
    let bytes = fs::read(path).unwrap();
    let mut container = Container::recognise(&bytes).unwrap();
    let (mut at, mut first, mut out) = (0, true, Vec::new());
    while at < bytes.len() {
        match container.next(&bytes[at..], first) {
            Step::Packet(len, packet) => {
                at += len;
                let Some(link) = LinkType::from_number(packet.link) else { continue };
                let frame = Frame::parse_captured(link, packet.data, packet.length as usize);
                if let (Some(udp), Some((from, _))) = (frame.udp(), frame.ends()) {
                    let payload = frame.segment().unwrap()[8..].to_vec();
                    out.push((SocketAddr::new(from, udp.source_port()), payload));
                }
            }
            Step::Skip(len) => at += len,
            other => panic!("{}: {other:?}", path.display()),
        }
        first = false;
    }
    out
}
