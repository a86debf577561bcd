//! Captures: each packet becomes a CSV row.
//!
//! The decoder finds the packets, and `PacketRows` makes rows of them: `addresses` with the addresses as keys, `rules`
//! with the flow as key, for the rules of a packet filter.

mod addresses;
mod flows;
mod packet;
mod rules;

use fibula_packet::LinkType;
use fibula_packet::capture::{Container, LIMIT, Packet, Step};

use self::addresses::AddressRows;
pub(super) use self::addresses::ends;
use self::rules::FlowRows;
use super::csv::scan::Dialect;
use super::{Decode, LogDecoder, Style};
use crate::block::{Block, Row, RowKind};
use crate::fault::Fault;
use crate::input::MAX_RECORD;
use crate::pipeline::keys::KeySink;
use crate::rules::FlowChoice;
use crate::{AnnotateError, AnnotateOptions};

/// A packet or block with its header fits a record.
const _: () = assert!(LIMIT + 64 <= MAX_RECORD);

/// Whether this is the beginning of a capture.
pub(crate) fn is_capture(head: &[u8]) -> bool {
    Container::recognise(head).is_some()
}

/// Makes rows with keys of packets.
pub(crate) trait PacketRows: Send + Sized + 'static {
    type Keys: KeySink;

    /// The names of the columns with keys.
    fn names(&self) -> &[String];

    /// The names of all columns, with the line end; empty if no rows are written.
    fn header(&self) -> &'static [u8];

    /// Adds a packet, whose number is counted from 1. Its link type may be unknown.
    fn packet(
        &mut self,
        number: u64,
        link: Option<LinkType>,
        packet: &Packet<'_>,
        block: &mut Block<Self::Keys>,
    );

    /// Adds the rows that are known only after the last packet.
    fn end(&mut self, block: &mut Block<Self::Keys>) {
        let _ = block;
    }

    /// The same for other packets; `None` if rows sum packets of the whole capture.
    fn fork(&self) -> Option<Self>;
}

/// Decoder of pcap and pcapng: Ethernet (VLAN, MPLS, PPPoE), raw IP, Linux cooked captures, BSD
/// loopback, PPP, Cisco HDLC. A packet that is not IP, or cut before its addresses, is a row without
/// them.
pub(crate) struct Pcap<R> {
    rows: R,
    strict: bool,
    position: Position,
}

/// A place in a capture, before a record.
#[derive(Clone, Debug)]
pub(crate) struct Position {
    state: State,
    /// Number of packets before.
    packets: u64,
}

#[derive(Clone, Debug)]
enum State {
    Start,
    /// The flag is set until the first record, or the file's header, has been read.
    Within(Container, bool),
    /// The capture is damaged such that the next record cannot be found.
    Lost,
}

impl Position {
    /// The next packet or block; `None` once the capture is lost, or not yet recognised.
    fn next<'d>(&mut self, data: &'d [u8]) -> Option<Step<'d>> {
        let State::Within(container, first) = &mut self.state else { return None };
        let step = container.next(data, *first);
        match step {
            Step::Incomplete => {}
            Step::Lost(_) => self.state = State::Lost,
            Step::Packet(..) => (self.packets, *first) = (self.packets + 1, false),
            Step::Skip(_) | Step::Damaged(..) => *first = false,
        }
        Some(step)
    }
}

impl Pcap<AddressRows> {
    /// A decoder whose keys are the addresses of packets.
    pub(crate) fn new(options: &AnnotateOptions) -> Result<Self, AnnotateError> {
        Ok(Self::with(AddressRows::new(options)?, options))
    }
}

impl Pcap<FlowRows> {
    /// A decoder whose keys are the flows of packets.
    pub(crate) fn of_flows(options: &AnnotateOptions, choice: FlowChoice) -> Self {
        Self::with(FlowRows::new(choice.adds), options)
    }
}

impl<R: PacketRows> Pcap<R> {
    fn with(rows: R, options: &AnnotateOptions) -> Self {
        let position = Position { state: State::Start, packets: 0 };
        Self { rows, strict: options.strict, position }
    }

    /// Recognises the capture and writes the header row; `false` if more data is needed.
    fn begin(&mut self, data: &[u8], end: bool, block: &mut Block<R::Keys>) -> Result<bool, Fault> {
        let Some(container) = Container::recognise(data) else {
            if data.len() >= 12 || end {
                return Err(Fault::Options(AnnotateError::NotACapture));
            }
            return Ok(false);
        };
        self.position.state = State::Within(container, true);
        let header = self.rows.header();
        if !header.is_empty() {
            push_row(RowKind::Header, block, |text| text.extend_from_slice(header));
        }
        Ok(true)
    }

    /// Counts damage at an offset of the data.
    fn damaged(
        &self,
        at: usize,
        what: &'static str,
        block: &mut Block<R::Keys>,
    ) -> Result<(), Fault> {
        let number = self.position.packets + 1;
        block.bad_record(self.strict, || Fault::Packet { at, number, what })
    }

    /// Adds the packets at the beginning of the data.
    fn packets(
        &mut self,
        data: &[u8],
        end: bool,
        block: &mut Block<R::Keys>,
    ) -> Result<usize, Fault> {
        if matches!(self.position.state, State::Start) && !self.begin(data, end, block)? {
            return Ok(0);
        }
        let mut at = 0;
        while !block.is_full() && at < data.len() {
            let Some(step) = self.position.next(&data[at..]) else { return Ok(data.len()) };
            match step {
                Step::Packet(len, packet) => {
                    block.tally.cut += u64::from(packet.data.len() < packet.length as usize);
                    let (number, link) =
                        (self.position.packets, LinkType::from_number(packet.link));
                    if link.is_none() {
                        block.tally.unknown_links += 1;
                        let link = packet.link;
                        block.unlinked.meet(self.strict, || Fault::Link { number, link })?;
                    }
                    self.rows.packet(number, link, &packet, block);
                    at += len;
                }
                Step::Skip(len) => at += len,
                Step::Damaged(len, what) => {
                    self.damaged(at, what, block)?;
                    at += len;
                }
                Step::Lost(what) => self.damaged(at, what, block)?,
                Step::Incomplete if end => {
                    self.position.state = State::Lost;
                    self.damaged(at, "the capture ends within a record", block)?;
                }
                Step::Incomplete => break,
            }
        }
        Ok(at)
    }
}

impl<R: PacketRows> Decode<R::Keys> for Pcap<R> {
    fn decode(
        &mut self,
        data: &[u8],
        end: bool,
        block: &mut Block<R::Keys>,
    ) -> Result<usize, Fault> {
        let used = self.packets(data, end, block)?;
        if end && used == data.len() {
            self.rows.end(block);
        }
        Ok(used)
    }

    fn fork(&self) -> Option<Box<dyn Decode<R::Keys>>> {
        let (rows, position) = (self.rows.fork()?, self.position.clone());
        Some(Box::new(Self { rows, strict: self.strict, position }))
    }
}

impl<R: PacketRows> LogDecoder for Pcap<R> {
    fn names(&self) -> &[String] {
        self.rows.names()
    }

    fn style(&self) -> Style {
        Style::Fields(Dialect { delimiter: b',', quote: Some(b'"') })
    }

    fn writes_rows(&self) -> bool {
        true
    }

    /// Captures have no marks between records, so that all records up to the cut are visited.
    fn cut(&mut self, data: &[u8]) -> usize {
        let mut at = 0;
        while at < data.len() {
            match self.position.next(&data[at..]) {
                Some(Step::Packet(len, _) | Step::Skip(len) | Step::Damaged(len, _)) => at += len,
                // The decoder of the part reports that the rest is lost.
                Some(Step::Lost(_)) | None => return data.len(),
                Some(Step::Incomplete) => break,
            }
        }
        at
    }

    fn position(&self) -> Option<Position> {
        Some(self.position.clone())
    }

    fn seek(&mut self, position: Position) {
        self.position = position;
    }
}

/// Adds a row; `write` appends its text with the line end.
fn push_row<K: KeySink>(kind: RowKind, block: &mut Block<K>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = block.text.len();
    write(&mut block.text);
    let end = block.text.len();
    block.row(Row { start, insert: end - 1, end, pad: 0, kind });
}

#[cfg(test)]
mod tests {
    use super::addresses::HEADER;
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
