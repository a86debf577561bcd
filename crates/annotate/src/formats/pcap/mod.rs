//! Captures: each packet becomes a CSV row.

mod flows;
mod packet;

use std::net::IpAddr;

use fibula_packet::capture::{Container, LIMIT, Packet, Step, Time};

use self::flows::{Flows, Sum};
use self::packet::{Protocol, flow};
use super::csv::scan::Dialect;
use super::{Decode, LogDecoder, Style};
use crate::block::{Block, Row, RowKind};
use crate::fault::Fault;
use crate::input::MAX_RECORD;
use crate::write::{write_int, write_ip};
use crate::{AnnotateError, AnnotateOptions, Column, LogFormat};

/// A packet or block with its header fits a record.
const _: () = assert!(LIMIT + 64 <= MAX_RECORD);

/// The columns of a packet's row.
const HEADER: &[u8] = b"time,src,dst,protocol,src_port,dst_port,length\n";

/// The columns of a flow's row.
const FLOWS_HEADER: &[u8] = b"first,last,src,dst,protocol,src_port,dst_port,packets,bytes\n";

/// Whether this is the beginning of a capture.
pub(crate) fn is_capture(head: &[u8]) -> bool {
    Container::recognise(head).is_some()
}

/// Decoder of pcap and pcapng: Ethernet (VLAN, MPLS, PPPoE), raw IP, Linux cooked captures, BSD
/// loopback, PPP, Cisco HDLC. A packet that is not IP, or cut before its addresses, is a row without
/// them.
pub(crate) struct Pcap {
    names: Vec<String>,
    /// For each slot whether it is the destination.
    slots: Vec<bool>,
    strict: bool,
    state: State,
    /// The flows so far, if packets are summed by flow; `None` once they are written.
    flows: Option<Flows>,
}

enum State {
    Start,
    /// The flag is set until the first record, or the file's header, has been read.
    Within(Container, bool),
    /// The capture is damaged in a way that hides what follows.
    Lost,
}

impl Pcap {
    pub(crate) fn new(options: &AnnotateOptions) -> Result<Self, AnnotateError> {
        let mut names: Vec<String> = Vec::new();
        for column in &options.columns {
            match column {
                Column::Name(name) if names.contains(name) => {
                    return Err(AnnotateError::Twice { name: name.clone() });
                }
                Column::Name(name) if name == "src" || name == "dst" => names.push(name.clone()),
                _ => {
                    let (format, column) = (LogFormat::Pcap, column.clone());
                    return Err(AnnotateError::ColumnKind { format, column });
                }
            }
        }
        if names.is_empty() {
            names = vec!["src".to_owned(), "dst".to_owned()];
        }
        let slots = names.iter().map(|name| name == "dst").collect();
        let flows = options.flows.then(Flows::default);
        Ok(Self { names, slots, strict: options.strict, state: State::Start, flows })
    }

    /// Recognises the capture and writes the header row; `false` if more data is needed.
    fn begin(&mut self, data: &[u8], end: bool, block: &mut Block) -> Result<bool, Fault> {
        let Some(container) = Container::recognise(data) else {
            if data.len() >= 12 || end {
                return Err(Fault::Options(AnnotateError::NotACapture));
            }
            return Ok(false);
        };
        self.state = State::Within(container, true);
        let header = if self.flows.is_some() { FLOWS_HEADER } else { HEADER };
        push_row(RowKind::Header, block, |text| text.extend_from_slice(header));
        Ok(true)
    }

    /// Counts damage at an offset of the data.
    fn damaged(&self, at: usize, what: &'static str, block: &mut Block) -> Result<(), Fault> {
        let number = match &self.flows {
            Some(flows) => flows.packets + 1,
            None => block.tally.rows + 1,
        };
        block.bad_record(self.strict, || Fault::Packet { at, number, what })
    }
}

impl Decode for Pcap {
    fn decode(&mut self, data: &[u8], end: bool, block: &mut Block) -> Result<usize, Fault> {
        let used = self.packets(data, end, block)?;
        if end
            && used == data.len()
            && let Some(flows) = self.flows.take()
        {
            flows.sums.iter().for_each(|flow| flow_row(flow, &self.slots, block));
        }
        Ok(used)
    }
}

impl LogDecoder for Pcap {
    fn names(&self) -> &[String] {
        &self.names
    }

    fn style(&self) -> Style {
        Style::Fields(Dialect { delimiter: b',', quote: Some(b'"') })
    }

    fn writes_rows(&self) -> bool {
        true
    }
}

impl Pcap {
    /// Converts packets to rows, or adds them to flows.
    fn packets(&mut self, data: &[u8], end: bool, block: &mut Block) -> Result<usize, Fault> {
        if matches!(self.state, State::Start) && !self.begin(data, end, block)? {
            return Ok(0);
        }
        let mut at = 0;
        while !block.is_full() && at < data.len() {
            let State::Within(container, first) = &mut self.state else { return Ok(data.len()) };
            match container.next(&data[at..], *first) {
                Step::Packet(len, packet) => {
                    block.tally.cut += u64::from(packet.data.len() < packet.length as usize);
                    match &mut self.flows {
                        Some(flows) => {
                            let flow = flow(packet.link, packet.data, packet.length as usize);
                            block.tally.truncated += u64::from(flow.truncated);
                            flows.add(&flow, packet.time, packet.length.into());
                        }
                        None => packet_row(&packet, &self.slots, block),
                    }
                    at += len;
                }
                Step::Skip(len) => at += len,
                Step::Damaged(len, what) => {
                    self.damaged(at, what, block)?;
                    at += len;
                }
                Step::Lost(what) => {
                    self.state = State::Lost;
                    self.damaged(at, what, block)?;
                }
                Step::Incomplete if end => {
                    self.state = State::Lost;
                    self.damaged(at, "the capture ends within a record", block)?;
                }
                Step::Incomplete => break,
            }
            if let State::Within(_, first) = &mut self.state {
                *first = false;
            }
        }
        Ok(at)
    }
}

/// Adds a row; `write` appends its text with the line end.
fn push_row(kind: RowKind, block: &mut Block, write: impl FnOnce(&mut Vec<u8>)) {
    let start = block.text.len();
    write(&mut block.text);
    let end = block.text.len();
    block.row(Row { start, insert: end - 1, end, pad: 0, kind });
}

/// Adds the address cells of a row.
fn cells(ends: Option<(IpAddr, IpAddr)>, slots: &[bool], block: &mut Block) {
    for &destination in slots {
        match ends {
            Some((_, ip)) if destination => block.address(ip.into()),
            Some((ip, _)) => block.address(ip.into()),
            None => block.empty(),
        }
    }
}

fn flow_row(flow: &Sum, slots: &[bool], block: &mut Block) {
    cells(flow.key.ends, slots, block);
    push_row(RowKind::Annotate, block, |text| {
        for time in [flow.first, flow.last] {
            if let Some(time) = time {
                write_time(time, text);
            }
            text.push(b',');
        }
        write_ends(flow.key.ends, flow.key.protocol, flow.key.ports, text);
        write_int(flow.packets, text);
        text.push(b',');
        write_int(flow.bytes, text);
        text.push(b'\n');
    });
}

fn packet_row(packet: &Packet<'_>, slots: &[bool], block: &mut Block) {
    let flow = flow(packet.link, packet.data, packet.length as usize);
    block.tally.truncated += u64::from(flow.truncated);
    cells(flow.ends, slots, block);
    push_row(RowKind::Annotate, block, |text| {
        if let Some(time) = packet.time {
            write_time(time, text);
        }
        text.push(b',');
        write_ends(flow.ends, flow.protocol, flow.ports, text);
        write_int(packet.length, text);
        text.push(b'\n');
    });
}

/// Writes addresses, protocol and ports, each followed by a comma.
fn write_ends(
    ends: Option<(IpAddr, IpAddr)>,
    protocol: Protocol,
    ports: Option<(u16, u16)>,
    text: &mut Vec<u8>,
) {
    for ip in [ends.map(|(source, _)| source), ends.map(|(_, destination)| destination)] {
        if let Some(ip) = ip {
            write_ip(ip, text);
        }
        text.push(b',');
    }
    write_protocol(protocol, text);
    text.push(b',');
    for port in [ports.map(|(source, _)| source), ports.map(|(_, destination)| destination)] {
        if let Some(port) = port {
            write_int(port, text);
        }
        text.push(b',');
    }
}

/// Writes seconds with six or nine decimals.
fn write_time(time: Time, out: &mut Vec<u8>) {
    write_int(time.seconds, out);
    out.push(b'.');
    let (mut fraction, digits) =
        if time.micros_only { (time.nanos / 1000, 6) } else { (time.nanos, 9) };
    let at = out.len();
    out.resize(at + digits, b'0');
    for place in out[at..].iter_mut().rev() {
        *place = b'0' + (fraction % 10) as u8;
        fraction /= 10;
    }
}

fn write_protocol(protocol: Protocol, out: &mut Vec<u8>) {
    match (protocol.name(), protocol) {
        (Some(name), _) => out.extend_from_slice(name.as_bytes()),
        (None, Protocol::Ip(number)) => write_int(number, out),
        (None, Protocol::Ether(kind)) => out.extend_from_slice(format!("{kind:#06x}").as_bytes()),
        (None, Protocol::Unknown) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::Tally;
    use crate::pipeline::answers::Without;
    use proptest::prelude::*;

    fn decode(data: &[u8], strict: bool) -> Result<Block, Fault> {
        let options = AnnotateOptions { strict, ..AnnotateOptions::default() };
        let mut block = Block::default();
        let used = Pcap::new(&options)?.decode(data, true, &mut block)?;
        assert_eq!(used, data.len());
        Ok(block)
    }

    /// A little-endian pcap of raw IP with one UDP packet, cut to `len` bytes.
    fn capture(len: u32) -> Vec<u8> {
        let ip = b"\x45\0\0\x1c\0\0\0\0\x40\x11\0\0\x0a\0\0\x01\x0a\0\0\x02\0\x35\x10\0\0\x08\0\0";
        let mut out =
            b"\xd4\xc3\xb2\xa1\x02\0\x04\0\0\0\0\0\0\0\0\0\xff\xff\0\0\x65\0\0\0".to_vec();
        for field in [100u32, 5, len, ip.len() as u32] {
            out.extend_from_slice(&field.to_le_bytes());
        }
        out.extend_from_slice(&ip[..len as usize]);
        out
    }

    #[test]
    fn a_packet_becomes_a_row() {
        let block = decode(&capture(28), true).unwrap();
        let text = String::from_utf8(block.text.clone()).unwrap();
        let header = String::from_utf8(HEADER.to_vec()).unwrap();
        assert_eq!(text, header + "100.000005,10.0.0.1,10.0.0.2,udp,53,4096,28\n");
        assert_eq!(block.keys.v4.addrs, [0x0a00_0001, 0x0a00_0002]);
    }

    #[test]
    fn cut_packets_and_cut_files() {
        let block = decode(&capture(10), true).unwrap();
        let Tally { truncated, cut, rows, .. } = block.tally;
        let empty = block.count(Without::Empty);
        assert_eq!((truncated, cut, empty, rows), (1, 1, 2, 1));
        let whole = capture(28);
        let cut = &whole[..whole.len() - 1];
        assert_eq!(decode(cut, false).unwrap().tally.damaged, 1);
        assert!(matches!(decode(cut, true), Err(Fault::Packet { at: 24, number: 1, .. })));
        let refused = decode(b"10.0.0.1\n", false);
        assert!(matches!(refused, Err(Fault::Options(AnnotateError::NotACapture))));
        assert!(matches!(decode(b"", false), Err(Fault::Options(AnnotateError::NotACapture))));
    }

    proptest! {
        /// Damage anywhere does not cause a panic, and rows tile the text that was written.
        #[test]
        fn damage(at in 0usize..92, byte: u8, cut in 0usize..92) {
            let mut data = capture(28);
            data.extend_from_slice(&capture(28)[24..]);
            let at = at % data.len();
            data[at] = byte;
            let len = data.len().min(cut);
            if let Ok(block) = decode(&data[..len], false) {
                let mut at = 0;
                for row in &block.rows {
                    prop_assert!(row.start == at && row.start < row.insert && row.insert < row.end);
                    at = row.end;
                }
                prop_assert_eq!(at, block.text.len());
            }
        }
    }
}
