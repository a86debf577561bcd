//! Flows sent on as IPFIX (RFC 7011), with the table's values.
//!
//! What a flow does not have is not sent: each combination of fields is a template of its own, defined before its first
//! record and again every minute. The table's values are elements of the user's enterprise, numbered from 1 in the
//! order of the columns, whose names and types are sent as RFC 5610 says.

use std::collections::HashMap;
use std::net::{IpAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, DataType, SchemaRef};

use crate::FlowForward;
use crate::columns::flow_fields;
use crate::rows::{Values, columns};

/// Bytes of a message, so that it fits the usual packet.
const FULL: usize = 1400;
/// The longest message of UDP.
const LONGEST: usize = 65_000;
/// Templates that are kept. When there are more, all are defined anew.
const TEMPLATES: usize = 1024;
/// How often templates are sent again, in microseconds.
const AGAIN: u64 = 60_000_000;
/// The template of names and types, and the first one of flows.
const NAMES: u16 = 256;
const FIRST: u16 = 257;
/// The enterprise of reverse elements (RFC 5103).
const REVERSE: u32 = 29305;
const VARIABLE: u16 = 0xffff;

/// What was sent on.
#[derive(Debug, Default)]
pub(crate) struct Forwarded {
    pub(crate) flows: AtomicU64,
    /// Flows that were too long, or that the system did not send.
    pub(crate) unsent: AtomicU64,
}

/// A field of a template: element, length, enterprise.
type FieldSpec = (u16, u16, u32);

/// Sends the flows of one thread.
pub(crate) struct Forwarder {
    socket: UdpSocket,
    counts: Arc<Forwarded>,
    enterprise: Option<u32>,
    domain: u32,
    /// The number of records that were sent.
    sequence: u32,
    templates: HashMap<Vec<FieldSpec>, u16>,
    next: u16,
    /// When templates were sent last, in microseconds since 1970.
    defined: u64,
    /// The columns whose names were sent.
    named: Option<SchemaRef>,
    message: Message,
    record: Vec<u8>,
    fields: Vec<FieldSpec>,
}

/// A message that is being filled.
#[derive(Default)]
struct Message {
    bytes: Vec<u8>,
    /// The template and the place of the set that is open.
    set: Option<(u16, usize)>,
    /// The records of flows and of names, which the sequence number counts.
    records: u32,
    flows: u32,
}

impl Message {
    /// Adds a record of this template to its set.
    fn add(&mut self, template: u16, record: &[u8]) {
        if self.set.is_none_or(|(open, _)| open != template) {
            self.close();
            self.set = Some((template, self.bytes.len()));
            self.bytes.extend(template.to_be_bytes());
            self.bytes.extend([0; 2]);
        }
        self.bytes.extend_from_slice(record);
    }

    /// Writes the length of the set that is open.
    fn close(&mut self) {
        if let Some((_, at)) = self.set.take() {
            let len = (self.bytes.len() - at) as u16;
            self.bytes[at + 2..at + 4].copy_from_slice(&len.to_be_bytes());
        }
    }
}

impl Forwarder {
    pub(crate) fn new(
        options: &FlowForward,
        number: usize,
        counts: Arc<Forwarded>,
    ) -> std::io::Result<Self> {
        let local: IpAddr = match options.to.ip() {
            IpAddr::V4(_) => [0; 4].into(),
            IpAddr::V6(_) => [0; 16].into(),
        };
        let socket = UdpSocket::bind((local, 0))?;
        socket.connect(options.to)?;
        Ok(Self {
            socket,
            counts,
            enterprise: options.enterprise,
            domain: u32::try_from(number).unwrap_or(0).saturating_add(1),
            sequence: 0,
            templates: HashMap::new(),
            next: FIRST,
            defined: 0,
            named: None,
            message: Message::default(),
            record: Vec::new(),
            fields: Vec::new(),
        })
    }

    /// Sends the flows of a batch.
    pub(crate) fn send(&mut self, batch: &RecordBatch, time: u64) -> Result<(), ArrowError> {
        let own = flow_fields().len();
        let columns = columns(batch)?;
        let schema = batch.schema();
        let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        if time.saturating_sub(self.defined) >= AGAIN || self.named.as_ref() != Some(&schema) {
            self.define_again(&schema, time);
        }
        for row in 0..batch.num_rows() {
            self.record.clear();
            self.fields.clear();
            for (at, column) in
                columns.iter().enumerate().filter(|(_, column)| !column.is_null(row))
            {
                if at < own {
                    standard(names[at], column, row, &mut self.fields, &mut self.record);
                } else if let Some(enterprise) = self.enterprise {
                    let len = value(column, row, &mut self.record);
                    self.fields.push(((at - own + 1) as u16 & 0x7fff, len, enterprise));
                }
            }
            align_families(&mut self.fields);
            self.put(time);
        }
        self.finish(time);
        Ok(())
    }

    /// Adds the record that was made to the message.
    fn put(&mut self, time: u64) {
        let known = self.templates.get(&self.fields).copied();
        let define = match known {
            Some(_) => 0,
            None => 8 + 8 * self.fields.len(),
        };
        let len = self.record.len() + define + 8;
        if 16 + len > LONGEST {
            self.counts.unsent.fetch_add(1, Ordering::Relaxed);
            return;
        }
        if self.message.bytes.len() + len > FULL {
            self.finish(time);
        }
        self.begin();
        let template = known.unwrap_or_else(|| self.define());
        self.message.add(template, &self.record);
        self.message.records += 1;
        self.message.flows += 1;
    }

    fn begin(&mut self) {
        if self.message.bytes.is_empty() {
            self.message.bytes.extend([0; 16]);
        }
    }

    /// Gives the fields a number, and defines it in the message.
    fn define(&mut self) -> u16 {
        if self.templates.len() >= TEMPLATES {
            self.templates.clear();
        }
        let number = self.next;
        self.next = if number == u16::MAX { FIRST } else { number + 1 };
        self.templates.insert(self.fields.clone(), number);
        let definition = definition(number, &self.fields);
        self.message.close();
        self.message.add(2, &definition);
        self.message.close();
        number
    }

    /// Sends all templates, and the names of the table's values.
    fn define_again(&mut self, schema: &SchemaRef, time: u64) {
        self.finish(time);
        let known: Vec<_> =
            self.templates.iter().map(|(fields, number)| definition(*number, fields)).collect();
        for definition in known {
            self.put_definition(2, &definition, time);
        }
        if let Some(enterprise) = self.enterprise {
            // Two fields of scope: the enterprise and the element; then its type and its name.
            let fields =
                [(346, 4), (303, 2), (339, 1), (341, VARIABLE)].map(|(id, len)| (id, len, 0));
            let mut options = definition(NAMES, &fields);
            options.splice(4..4, 2u16.to_be_bytes());
            self.put_definition(3, &options, time);
            for (at, field) in schema.fields().iter().skip(flow_fields().len()).enumerate() {
                let mut record = enterprise.to_be_bytes().to_vec();
                record.extend(((at + 1) as u16 & 0x7fff).to_be_bytes());
                record.push(data_type(field.data_type()));
                text(field.name(), &mut record);
                self.put_definition(NAMES, &record, time);
                self.message.records += 1;
            }
        }
        self.finish(time);
        (self.defined, self.named) = (time, Some(Arc::clone(schema)));
    }

    fn put_definition(&mut self, set: u16, bytes: &[u8], time: u64) {
        if self.message.bytes.len() + bytes.len() + 4 > FULL {
            self.finish(time);
        }
        self.begin();
        self.message.add(set, bytes);
    }

    /// Sends the message.
    fn finish(&mut self, time: u64) {
        self.message.close();
        if self.message.bytes.is_empty() {
            return;
        }
        let Message { bytes, records, flows, .. } = &mut self.message;
        let seconds = u32::try_from(time / 1_000_000).unwrap_or(u32::MAX);
        let head = [&[0, 10][..], &(bytes.len() as u16).to_be_bytes(), &seconds.to_be_bytes()];
        let head = [&head.concat()[..], &self.sequence.to_be_bytes(), &self.domain.to_be_bytes()];
        bytes[..16].copy_from_slice(&head.concat());
        let is_sent = self.socket.send(bytes).is_ok();
        let counted = if is_sent { &self.counts.flows } else { &self.counts.unsent };
        counted.fetch_add((*flows).into(), Ordering::Relaxed);
        self.sequence = self.sequence.wrapping_add(*records);
        bytes.clear();
        (*records, *flows) = (0, 0);
    }
}

/// A template's record of a set of templates.
fn definition(number: u16, fields: &[FieldSpec]) -> Vec<u8> {
    let mut out = [number, fields.len() as u16].map(u16::to_be_bytes).concat();
    for &(element, len, enterprise) in fields {
        let flag = if enterprise == 0 { 0 } else { 0x8000 };
        out.extend((element | flag).to_be_bytes());
        out.extend(len.to_be_bytes());
        if enterprise != 0 {
            out.extend(enterprise.to_be_bytes());
        }
    }
    out
}

/// The mask elements are those of the address's family.
fn align_families(fields: &mut [FieldSpec]) {
    let has = |fields: &[FieldSpec], element| fields.contains(&(element, 16, 0));
    for (address, v4, v6) in [(27, 9, 29), (28, 13, 30)] {
        if has(fields, address) {
            fields.iter_mut().filter(|field| **field == (v4, 1, 0)).for_each(|field| field.0 = v6);
        }
    }
    if has(fields, 27) {
        fields.iter_mut().filter(|field| **field == (32, 2, 0)).for_each(|field| field.0 = 139);
    }
}

/// Adds the fields of a column of flows.
fn standard(
    name: &str,
    column: &Values<'_>,
    row: usize,
    fields: &mut Vec<FieldSpec>,
    out: &mut Vec<u8>,
) {
    let address = match name {
        "exporter" => Some((130, 131)),
        "src" => Some((8, 27)),
        "dst" => Some((12, 28)),
        "next_hop" => Some((15, 62)),
        "bgp_next_hop" => Some((18, 63)),
        "nat_src" => Some((225, 281)),
        "nat_dst" => Some((226, 282)),
        _ => None,
    };
    if let Some((v4, v6)) = address {
        match column.text(row).and_then(|text| text.parse().ok()) {
            Some(IpAddr::V4(address)) => {
                fields.push((v4, 4, 0));
                out.extend(address.octets());
            }
            Some(IpAddr::V6(address)) => {
                fields.push((v6, 16, 0));
                out.extend(address.octets());
            }
            None => {}
        }
        return;
    }
    if name == "mpls" {
        for (at, label) in column.integers(row).take(10).enumerate() {
            fields.push((70 + at as u16, 3, 0));
            out.extend(&((label as u32) << 4).to_be_bytes()[1..]);
        }
        return;
    }
    if name == "icmp" {
        fields.push((32, 2, 0));
        return out.extend(column.integers(row).take(2).map(|part| part as u8));
    }
    let (element, len, enterprise) = match name {
        "first" => (152, 8, 0),
        "last" => (153, 8, 0),
        "protocol" => (4, 1, 0),
        "src_port" => (7, 2, 0),
        "dst_port" => (11, 2, 0),
        "tcp_flags" => (6, 2, 0),
        "tos" => (5, 1, 0),
        "packets" => (2, 8, 0),
        "bytes" => (1, 8, 0),
        "sampling" => (34, 4, 0),
        "input" => (10, 4, 0),
        "output" => (14, 4, 0),
        "src_as" => (16, 4, 0),
        "dst_as" => (17, 4, 0),
        "src_mask" => (9, 1, 0),
        "dst_mask" => (13, 1, 0),
        "direction" => (61, 1, 0),
        "vlan" => (58, 2, 0),
        "post_vlan" => (59, 2, 0),
        "input_vrf" => (234, 4, 0),
        "output_vrf" => (235, 4, 0),
        "nat_src_port" => (227, 2, 0),
        "nat_dst_port" => (228, 2, 0),
        "reverse_packets" => (2, 8, REVERSE),
        "reverse_bytes" => (1, 8, REVERSE),
        // The protocol and the domain of the exporter, and names.
        _ => return,
    };
    let Some(mut number) = column.integers(row).next() else { return };
    if matches!(name, "first" | "last") {
        number /= 1000;
    }
    fields.push((element, len, enterprise));
    out.extend(&number.to_be_bytes()[8 - usize::from(len)..]);
}

/// Adds a value of the table. Returns its length, or that it is variable.
fn value(column: &Values<'_>, row: usize, out: &mut Vec<u8>) -> u16 {
    match column {
        Values::U8(_) | Values::U16(_) | Values::U32(_) | Values::U64(_) => {
            let len = match column {
                Values::U8(_) => 1,
                Values::U16(_) => 2,
                Values::U32(_) => 4,
                _ => 8,
            };
            let number = column.integers(row).next().unwrap_or_default();
            out.extend(&number.to_be_bytes()[8 - usize::from(len)..]);
            len
        }
        Values::F64(values) => {
            out.extend(values.value(row).to_be_bytes());
            8
        }
        Values::Bool(values) => {
            out.push(if values.value(row) { 1 } else { 2 });
            1
        }
        _ => {
            text(&column.joined(row), out);
            VARIABLE
        }
    }
}

/// Text with its length before it. What is longer than a message is cut.
fn text(text: &str, out: &mut Vec<u8>) {
    let mut len = text.len().min(LONGEST / 2);
    while !text.is_char_boundary(len) {
        len -= 1;
    }
    match u8::try_from(len) {
        Ok(short) if short < 255 => out.push(short),
        _ => {
            out.push(255);
            out.extend((len as u16).to_be_bytes());
        }
    }
    out.extend_from_slice(&text.as_bytes()[..len]);
}

/// The number of a type (RFC 5610, section 3.1).
fn data_type(kind: &DataType) -> u8 {
    match kind {
        DataType::UInt8 => 1,
        DataType::UInt16 => 2,
        DataType::UInt32 => 3,
        DataType::UInt64 => 4,
        DataType::Float64 => 10,
        DataType::Boolean => 11,
        _ => 13,
    }
}
