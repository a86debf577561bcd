//! Rows of packets, or of flows, whose keys are addresses.

use std::net::IpAddr;

use fibula_packet::LinkType;
use fibula_packet::capture::{Packet, Time};

use super::flows::{Flows, Sum};
use super::packet::{Flow, Protocol, flow};
use super::{PacketRows, push_row};
use crate::block::{Block, RowKind};
use crate::pipeline::keys::Cells;
use crate::write::{write_int, write_ip};
use crate::{AnnotateError, AnnotateOptions, Column, LogFormat};

/// The columns of a packet's row.
pub(super) const HEADER: &[u8] = b"time,src,dst,protocol,src_port,dst_port,length\n";

/// The columns of a flow's row.
const FLOWS_HEADER: &[u8] = b"first,last,src,dst,protocol,src_port,dst_port,packets,bytes\n";

/// Rows with the addresses of packets as keys.
pub(crate) struct AddressRows {
    names: Vec<String>,
    /// For each slot whether it is the destination.
    slots: Vec<bool>,
    /// The flows so far, if packets are summed by flow.
    flows: Option<Flows>,
}

/// The columns that are looked up, of `src` and `dst`, and for each whether it is the destination.
pub(crate) fn ends(
    options: &AnnotateOptions,
    format: LogFormat,
) -> Result<(Vec<String>, Vec<bool>), AnnotateError> {
    let mut names: Vec<String> = Vec::new();
    for column in &options.columns {
        match column {
            Column::Name(name) if names.contains(name) => {
                return Err(AnnotateError::Twice { name: name.clone() });
            }
            Column::Name(name) if name == "src" || name == "dst" => names.push(name.clone()),
            _ => return Err(AnnotateError::ColumnKind { format, column: column.clone() }),
        }
    }
    if names.is_empty() {
        names = vec!["src".to_owned(), "dst".to_owned()];
    }
    let slots = names.iter().map(|name| name == "dst").collect();
    Ok((names, slots))
}

impl AddressRows {
    pub(super) fn new(options: &AnnotateOptions) -> Result<Self, AnnotateError> {
        let (names, slots) = ends(options, LogFormat::Pcap)?;
        Ok(Self { names, slots, flows: options.flows.then(Flows::default) })
    }
}

impl PacketRows for AddressRows {
    type Keys = Cells;

    fn names(&self) -> &[String] {
        &self.names
    }

    fn header(&self) -> &'static [u8] {
        if self.flows.is_some() { FLOWS_HEADER } else { HEADER }
    }

    fn packet(&mut self, _: u64, link: Option<LinkType>, packet: &Packet<'_>, block: &mut Block) {
        let flow = flow(link, packet.data, packet.length as usize);
        block.tally.truncated += u64::from(flow.truncated);
        match &mut self.flows {
            Some(flows) => flows.add(&flow, packet.time, packet.length.into()),
            None => packet_row(packet, &flow, &self.slots, block),
        }
    }

    fn end(&mut self, block: &mut Block) {
        let flows = self.flows.as_mut().map(std::mem::take).unwrap_or_default();
        flows.sums.iter().for_each(|flow| flow_row(flow, &self.slots, block));
    }

    fn fork(&self) -> Option<Self> {
        let (names, slots) = (self.names.clone(), self.slots.clone());
        self.flows.is_none().then_some(Self { names, slots, flows: None })
    }
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

fn packet_row(packet: &Packet<'_>, flow: &Flow, slots: &[bool], block: &mut Block) {
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
