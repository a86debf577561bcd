//! The records of a block: flows of nfdump 1.7, and what they refer to.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::header::{u16_at, u32_at, u64_at};
use super::{Known, NAMES, NfcapdFaultKind, NfcapdSource, StoredExporter};
use crate::record::{Slot, Wide};
use crate::state::rename;
use crate::{ExportProtocol, FlowRecord};

/// Names by number.
#[derive(Debug, Default)]
pub(super) struct Names {
    by_number: HashMap<u32, Box<str>>,
    bytes: usize,
}

impl Names {
    pub(super) fn get(&self, number: u32) -> Option<&str> {
        self.by_number.get(&number).map(|name| &**name)
    }

    fn set(&mut self, number: u32, name: &[u8]) {
        rename(&mut self.by_number, &mut self.bytes, number, name, NAMES);
    }
}

/// A record with its header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Raw<'a> {
    kind: u16,
    pub(super) bytes: &'a [u8],
}

/// The record at an offset of a block; `None` at its end.
pub(super) fn next(block: &[u8], at: usize) -> Option<Result<Raw<'_>, NfcapdFaultKind>> {
    let rest = block.get(at..).filter(|rest| !rest.is_empty())?;
    let (Some(kind), Some(size)) = (u16_at(rest, 0), u16_at(rest, 2)) else {
        return Some(Err(NfcapdFaultKind::RecordSize(rest.len() as u16)));
    };
    let bytes = rest.get(..size.into()).filter(|bytes| bytes.len() >= 4);
    Some(bytes.map(|bytes| Raw { kind, bytes }).ok_or(NfcapdFaultKind::RecordSize(size)))
}

/// The protocol by its number in records, and in the table of exporters.
fn protocol(number: u32) -> Option<ExportProtocol> {
    match number {
        5 => Some(ExportProtocol::NetflowV5),
        9 => Some(ExportProtocol::NetflowV9),
        10 => Some(ExportProtocol::Ipfix),
        0x85 | 9999 => Some(ExportProtocol::Sflow),
        _ => None,
    }
}

/// An IPv6 address is stored as two integers, the upper one first.
pub(super) fn v6_at(data: &[u8], at: usize) -> Option<[u8; 16]> {
    let (upper, lower) = (u64_at(data, at)?, u64_at(data, at + 8)?);
    Some((u128::from(upper) << 64 | u128::from(lower)).to_be_bytes())
}

impl Known {
    /// Reads a record, and returns whether it was a flow.
    pub(super) fn read(
        &mut self,
        raw: Raw<'_>,
        record: &mut FlowRecord,
        sink: &mut impl FnMut(&FlowRecord, &NfcapdSource<'_>),
    ) -> Result<bool, NfcapdFaultKind> {
        let bytes = raw.bytes;
        record.begin(0, 0);
        let (exporter, version, received_ms) = match raw.kind {
            11 => flow(bytes, record)?,
            1 | 10 => self.older_flow(raw.kind, bytes, record)?,
            2 => return self.map(bytes),
            7 => return self.exporter(bytes),
            13 => return names(bytes, |number, name| self.names.interfaces.set(number, name)),
            14 => return names(bytes, |number, name| self.names.vrfs.set(number, name)),
            // Histograms, statistics, samplers, names of applications; the file's name and its statistics.
            3..=6 | 8 | 9 | 12 | 15 | 0x8001 | 0x8002 => return Ok(false),
            kind => return Err(NfcapdFaultKind::RecordKind(kind)),
        };
        let of = self.exporters.get(&exporter);
        let source = NfcapdSource {
            exporter: record.exporter().or(of.and_then(|of| of.address)),
            protocol: protocol(version).or(of.and_then(|of| of.protocol).filter(|_| version == 0)),
            domain: of.map(|of| of.id),
            received_ms: received_ms.filter(|ms| *ms > 0),
            names: &self.names,
        };
        sink(record, &source);
        Ok(true)
    }

    fn exporter(&mut self, bytes: &[u8]) -> Result<bool, NfcapdFaultKind> {
        let parse = || {
            let family = u16_at(bytes, 24)?;
            let address = match family {
                2 => u32_at(bytes, 16).map(|bits| IpAddr::from(Ipv4Addr::from_bits(bits))),
                10 => v6_at(bytes, 8).map(|octets| IpAddr::from(Ipv6Addr::from(octets))),
                _ => None,
            };
            let known = StoredExporter {
                address,
                protocol: protocol(u32_at(bytes, 4)?),
                id: u32_at(bytes, 28)?,
            };
            Some((u16_at(bytes, 26)?, known))
        };
        let size = NfcapdFaultKind::RecordSize(bytes.len() as u16);
        let (number, known) = parse().ok_or(size)?;
        self.exporters.insert(number, known);
        Ok(false)
    }
}

/// An array of numbers with their names: the number of elements and their size, four bytes, and the elements.
fn names(bytes: &[u8], mut set: impl FnMut(u32, &[u8])) -> Result<bool, NfcapdFaultKind> {
    let size = NfcapdFaultKind::RecordSize(bytes.len() as u16);
    let (Some(count), Some(len)) = (u16_at(bytes, 4), u16_at(bytes, 6)) else { return Err(size) };
    let elements = bytes.get(12..).ok_or(size)?;
    if len < 4 || elements.len() < usize::from(count) * usize::from(len) {
        return Err(size);
    }
    for element in elements.chunks_exact(len.into()).take(count.into()) {
        if let Some(number) = u32_at(element, 0) {
            set(number, &element[4..]);
        }
    }
    Ok(false)
}

/// The number of its exporter, the version of the export, and when that was received, of a flow.
pub(super) type Origin = (u16, u32, Option<u64>);

const HEADER: usize = 12;

/// Padding that a record may have behind its elements.
const PADDING: usize = 7;

/// A flow of nfdump 1.7: a header and elements, each with its number and length.
fn flow(bytes: &[u8], record: &mut FlowRecord) -> Result<Origin, NfcapdFaultKind> {
    let size = NfcapdFaultKind::RecordSize(bytes.len() as u16);
    let header = bytes.get(..HEADER).ok_or(size)?;
    let (Some(count), Some(exporter)) = (u16_at(header, 4), u16_at(header, 8)) else {
        return Err(size);
    };
    let mut rest = &bytes[HEADER..];
    let mut received = None;
    for _ in 0..count {
        let (Some(number), Some(len)) = (u16_at(rest, 0), u16_at(rest, 2)) else {
            return Err(NfcapdFaultKind::Element { number: 0, len: rest.len() as u16 });
        };
        let fault = NfcapdFaultKind::Element { number, len };
        let (element, behind) = rest.split_at_checked(len.into()).ok_or(fault)?;
        rest = behind;
        let fields = element.get(4..).ok_or(fault)?;
        let there = match number {
            1 => generic(fields, record).map(|ms| received = Some(ms)),
            _ => optional(number, fields, record),
        };
        there.ok_or(fault)?;
    }
    match rest.len() <= PADDING {
        true => Ok((exporter, header[11].into(), received)),
        false => Err(NfcapdFaultKind::Elements),
    }
}

/// Sets ports, or type and code of ICMP, which are where others have the destination's port.
pub(super) fn ends(protocol: u8, source: u16, destination: u16, record: &mut FlowRecord) {
    record.set(Slot::Protocol, protocol.into());
    if matches!(protocol, 1 | 58) {
        return record.set(Slot::IcmpTypeCode, destination.into());
    }
    record.set(Slot::SourcePort, source.into());
    record.set(Slot::DestinationPort, destination.into());
}

/// The element that every flow has. Returns when it was received.
fn generic(fields: &[u8], record: &mut FlowRecord) -> Option<u64> {
    let word = |at| u64_at(fields, at);
    let &[protocol, tcp_flags, forwarding, tos] = fields.get(44..48)?.first_chunk()?;
    for (slot, value) in [
        (Slot::Start, word(0)?),
        (Slot::End, word(8)?),
        (Slot::Packets, word(24)?),
        (Slot::Bytes, word(32)?),
        (Slot::TcpFlags, tcp_flags.into()),
        (Slot::ForwardingStatus, forwarding.into()),
        (Slot::Tos, tos.into()),
    ] {
        record.set(slot, value);
    }
    ends(protocol, u16_at(fields, 40)?, u16_at(fields, 42)?, record);
    word(16)
}

/// Sets a pair of integers of four bytes.
pub(super) fn pair(fields: &[u8], slots: [Slot; 2], record: &mut FlowRecord) -> Option<()> {
    let values = [u32_at(fields, 0)?, u32_at(fields, 4)?];
    for (slot, value) in slots.into_iter().zip(values) {
        record.set(slot, value.into());
    }
    Some(())
}

/// Sets the addresses of an element, which has as many as there are slots.
pub(super) fn wides(fields: &[u8], slots: &[Wide], record: &mut FlowRecord) -> Option<()> {
    for (at, slot) in slots.iter().enumerate() {
        record.set_wide(*slot, v6_at(fields, 16 * at)?);
    }
    Some(())
}

/// Stores labels of MPLS: there are ten, of which those behind the last one are zero.
pub(super) fn labels(fields: &[u8], record: &mut FlowRecord) -> Option<()> {
    let words = fields.get(..40)?.chunks_exact(4);
    let words = words.map(|word| u32_at(word, 0).unwrap_or_default());
    let count = words.clone().rposition(|label| label != 0).map_or(0, |last| last + 1);
    for (slot, label) in (Slot::Label as u8..).zip(words.take(count)) {
        record.begin_slot(slot);
        record.store(slot, label.into());
    }
    Some(())
}

/// Stores an element that a flow may have; `None` if it is shorter than its fields. Others are skipped.
fn optional(number: u16, fields: &[u8], record: &mut FlowRecord) -> Option<()> {
    let one = |slot, record: &mut FlowRecord| {
        record.set(slot, u32_at(fields, 0)?.into());
        Some(())
    };
    match number {
        2 => pair(fields, [Slot::Source4, Slot::Destination4], record),
        3 => wides(fields, &[Wide::Source6, Wide::Destination6], record),
        4 => {
            pair(fields, [Slot::Input, Slot::Output], record)?;
            let &[source, destination, direction] = fields.get(8..11)?.first_chunk()?;
            record.set(Slot::SourceMask4, source.into());
            record.set(Slot::DestinationMask4, destination.into());
            record.set(Slot::Direction, direction.into());
            Some(())
        }
        5 => {
            record.set(Slot::ReversePackets, u64_at(fields, 8)?);
            record.set(Slot::ReverseBytes, u64_at(fields, 16)?);
            Some(())
        }
        6 => pair(fields, [Slot::Vlan, Slot::PostVlan], record),
        7 => pair(fields, [Slot::SourceAs, Slot::DestinationAs], record),
        8 => one(Slot::BgpNextHop4, record),
        9 => wides(fields, &[Wide::BgpNextHop6], record),
        10 => one(Slot::NextHop4, record),
        11 => wides(fields, &[Wide::NextHop6], record),
        12 => one(Slot::Exporter4, record),
        13 => wides(fields, &[Wide::Exporter6], record),
        14 => labels(fields, record),
        15 => {
            record.set(Slot::SourceMac, u64_at(fields, 0)?);
            record.set(Slot::DestinationMac, u64_at(fields, 16)?);
            Some(())
        }
        20 => pair(fields, [Slot::NatSource4, Slot::NatDestination4], record),
        21 => wides(fields, &[Wide::NatSource6, Wide::NatDestination6], record),
        22 => {
            record.set(Slot::NatSourcePort, u16_at(fields, 0)?.into());
            record.set(Slot::NatDestinationPort, u16_at(fields, 2)?.into());
            Some(())
        }
        36 => pair(fields, [Slot::OutputVrf, Slot::InputVrf], record),
        _ => Some(()),
    }
}
