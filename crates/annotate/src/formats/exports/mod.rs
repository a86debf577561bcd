//! Exports of flows: each record of the NetFlow, IPFIX and sFlow datagrams in a capture, of the IPFIX messages of a
//! file (RFC 5655), or of a file of nfdump's collectors becomes a row.
//!
//! `datagrams` finds the datagrams in packets, `stored` reads nfdump's files, `rows` writes the records, and
//! `fibula-flows` decodes.

mod datagrams;
mod rows;
mod stored;

use std::net::{Ipv4Addr, SocketAddr};

use fibula_flows::{FlowDecoder, NfcapdDecoder, ipfix_len};
use fibula_packet::LinkType;
use fibula_packet::capture::{Container, Packet, Step, Time};

use self::datagrams::{Datagram, datagram};
use self::rows::{HEADER, RowSink};
use self::stored::Stored;
use super::csv::scan::Dialect;
use super::pcap::ends;
use super::{Decode, LogDecoder, Style};
use crate::block::{Block, Row, RowKind};
use crate::fault::Fault;
use crate::{AnnotateError, AnnotateOptions, ExportRows, LogFormat};

/// Whether this is the beginning of a file of IPFIX messages.
pub(crate) fn is_ipfix(head: &[u8]) -> bool {
    matches!(ipfix_len(head), Some(Ok(_)))
}

/// Whether this is the beginning of a file of nfdump's collectors.
pub(crate) fn is_nfcapd(head: &[u8]) -> bool {
    NfcapdDecoder::recognise(head)
}

/// Decoder of captures with exports, and of files with flows.
pub(crate) struct Exports {
    names: Vec<String>,
    /// For each address column whether it is the destination.
    slots: Vec<bool>,
    form: ExportRows,
    strict: bool,
    state: State,
    /// The number of packets or messages so far.
    number: u64,
    flows: FlowDecoder,
}

enum State {
    Start,
    /// The flag is set until the first record, or the file's header, has been read.
    Capture(Container, bool),
    Messages,
    Stored(Box<Stored>),
    /// The next record cannot be found.
    Lost,
}

impl Exports {
    pub(crate) fn new(options: &AnnotateOptions) -> Result<Self, AnnotateError> {
        let (names, slots) = ends(options, LogFormat::Flows)?;
        Ok(Self {
            names,
            slots,
            form: options.export_rows,
            strict: options.strict,
            state: State::Start,
            number: 0,
            flows: FlowDecoder::default(),
        })
    }

    /// Recognises the input and writes the header row; `false` if more data is needed.
    fn begin(&mut self, data: &[u8], end: bool, block: &mut Block) -> Result<bool, Fault> {
        self.state = match Container::recognise(data) {
            Some(container) => State::Capture(container, true),
            None if is_ipfix(data) => State::Messages,
            None if is_nfcapd(data) => match Stored::begin(data, end)? {
                Some(stored) => State::Stored(Box::new(stored)),
                None => return Ok(false),
            },
            None if data.len() >= 12 || end => {
                return Err(Fault::Options(AnnotateError::NoExports));
            }
            None => return Ok(false),
        };
        let separator = match self.form {
            ExportRows::Csv => b',',
            ExportRows::Tsv => b'\t',
            ExportRows::JsonLines => return Ok(true),
        };
        let start = block.text.len();
        for (at, name) in HEADER.iter().enumerate() {
            if at > 0 {
                block.text.push(separator);
            }
            block.text.extend_from_slice(name.as_bytes());
        }
        let insert = block.text.len();
        block.text.push(b'\n');
        block.row(Row { start, insert, end: insert + 1, pad: 0, kind: RowKind::Header });
        Ok(true)
    }

    /// Reports damage of the container at an offset of the data.
    fn damaged(&self, at: usize, what: &'static str, block: &mut Block) -> Result<(), Fault> {
        let number = self.number + 1;
        block.bad_record(self.strict, || Fault::Packet { at, number, what })
    }

    /// Decodes a datagram, or a message of a file, that is in the record at an offset of the data.
    fn decode_export(
        &mut self,
        sender: SocketAddr,
        bytes: &[u8],
        time: Option<Time>,
        at: usize,
        block: &mut Block,
    ) -> Result<(), Fault> {
        let mut sink =
            RowSink { block, slots: &self.slots, form: self.form, time, first_fault: None };
        let counts = self.flows.decode(sender, bytes, &mut sink);
        let fault = sink.first_fault;
        block.tally.exports.add(&counts);
        match fault {
            Some(fault) => {
                let number = self.number;
                block.bad_record(self.strict, || Fault::Export { at, number, fault })
            }
            None => Ok(()),
        }
    }

    fn packet(&mut self, packet: &Packet<'_>, at: usize, block: &mut Block) -> Result<(), Fault> {
        block.tally.cut += u64::from(packet.data.len() < packet.length as usize);
        let link = LinkType::from_number(packet.link);
        if link.is_none() {
            block.tally.unknown_links += 1;
            let (number, link) = (self.number, packet.link);
            block.unlinked.meet(self.strict, || Fault::Link { number, link })?;
        }
        match datagram(link, packet.data, packet.length as usize) {
            Datagram::Export(sender, bytes) => {
                self.decode_export(sender, bytes, packet.time, at, block)
            }
            Datagram::Fragment => {
                block.tally.fragments += 1;
                Ok(())
            }
            Datagram::Other => {
                block.tally.other_packets += 1;
                Ok(())
            }
        }
    }

    /// Reads a record of a capture; `None` if it is not complete.
    fn capture(
        &mut self,
        data: &[u8],
        at: usize,
        end: bool,
        block: &mut Block,
    ) -> Result<Option<usize>, Fault> {
        let State::Capture(container, first) = &mut self.state else { return Ok(Some(data.len())) };
        let step = container.next(&data[at..], *first);
        *first = *first && matches!(step, Step::Incomplete);
        match step {
            Step::Packet(len, packet) => {
                self.number += 1;
                self.packet(&packet, at, block)?;
                Ok(Some(at + len))
            }
            Step::Skip(len) => Ok(Some(at + len)),
            Step::Damaged(len, what) => {
                self.damaged(at, what, block)?;
                Ok(Some(at + len))
            }
            Step::Lost(what) => {
                self.state = State::Lost;
                self.damaged(at, what, block)?;
                Ok(Some(data.len()))
            }
            Step::Incomplete if end => {
                self.state = State::Lost;
                self.damaged(at, "the capture ends within a record", block)?;
                Ok(Some(data.len()))
            }
            Step::Incomplete => Ok(None),
        }
    }

    /// Reads a message of a file; `None` if it is not complete.
    fn message(
        &mut self,
        data: &[u8],
        at: usize,
        end: bool,
        block: &mut Block,
    ) -> Result<Option<usize>, Fault> {
        let rest = &data[at..];
        let what = match ipfix_len(rest) {
            Some(Ok(len)) if len <= rest.len() => {
                self.number += 1;
                // A file has one exporting process.
                let sender = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0);
                self.decode_export(sender, &rest[..len], None, at, block)?;
                return Ok(Some(at + len));
            }
            Some(Err(_)) => "no IPFIX message begins here: the rest is lost",
            _ if end => "the file ends within an IPFIX message",
            _ => return Ok(None),
        };
        self.state = State::Lost;
        self.damaged(at, what, block)?;
        Ok(Some(data.len()))
    }
}

impl Decode for Exports {
    fn decode(&mut self, data: &[u8], end: bool, block: &mut Block) -> Result<usize, Fault> {
        if matches!(self.state, State::Start) && !self.begin(data, end, block)? {
            return Ok(0);
        }
        let (mut at, mut waits) = (0, false);
        while !block.is_full() && at < data.len() {
            let next = match self.state {
                State::Messages => self.message(data, at, end, block)?,
                State::Stored(_) => self.stored(data, at, block)?,
                _ => self.capture(data, at, end, block)?,
            };
            let Some(next) = next else {
                waits = true;
                break;
            };
            at = next;
        }
        if end && (waits || at == data.len()) && matches!(self.state, State::Stored(_)) {
            self.check_stored_end(data.len() - at, block)?;
            at = data.len();
        }
        Ok(at)
    }
}

impl LogDecoder for Exports {
    fn names(&self) -> &[String] {
        &self.names
    }

    fn style(&self) -> Style {
        match self.form {
            ExportRows::Csv => Style::Fields(Dialect { delimiter: b',', quote: Some(b'"') }),
            ExportRows::Tsv => Style::Fields(Dialect { delimiter: b'\t', quote: Some(b'"') }),
            ExportRows::JsonLines => Style::Members,
        }
    }

    fn writes_rows(&self) -> bool {
        true
    }
}
