//! Writes records of flows as rows of CSV, TSV or JSON lines.

use std::net::IpAddr;

use fibula_flows::{ExportFault, FlowRecord, FlowSink, FlowSource, NfcapdSource};
use fibula_packet::capture::Time;

use crate::ExportRows;
use crate::block::{Block, Row, RowKind};
use crate::formats::json::write_string;
use crate::write::{write_int, write_ip};

/// The names of the columns.
pub(super) const HEADER: [&str; 40] = [
    "time",
    "exporter",
    "export",
    "domain",
    "first",
    "last",
    "src",
    "dst",
    "protocol",
    "src_port",
    "dst_port",
    "tcp_flags",
    "tos",
    "icmp",
    "packets",
    "bytes",
    "sampling",
    "input",
    "output",
    "input_name",
    "output_name",
    "src_as",
    "dst_as",
    "src_mask",
    "dst_mask",
    "next_hop",
    "bgp_next_hop",
    "direction",
    "vlan",
    "post_vlan",
    "input_vrf",
    "output_vrf",
    "vrf_name",
    "mpls",
    "nat_src",
    "nat_dst",
    "nat_src_port",
    "nat_dst_port",
    "reverse_packets",
    "reverse_bytes",
];

/// Where a record comes from.
pub(super) trait Origin {
    /// The sender, or what stands for it beside the record.
    fn address(&self) -> Option<IpAddr>;
    fn export(&self) -> Option<&'static str>;
    fn number(&self) -> Option<u32>;
    /// The time of the record's datagram, in milliseconds since 1970.
    fn time_ms(&self) -> Option<u64>;
    fn interface(&self, number: u32) -> Option<&str>;
    fn vrf(&self, number: u32) -> Option<&str>;
}

impl Origin for FlowSource<'_> {
    fn address(&self) -> Option<IpAddr> {
        self.agent().or(Some(self.exporter()).filter(|ip| !ip.is_unspecified()))
    }

    fn export(&self) -> Option<&'static str> {
        Some(self.protocol().name())
    }

    fn number(&self) -> Option<u32> {
        Some(self.domain())
    }

    fn time_ms(&self) -> Option<u64> {
        self.export_ms()
    }

    fn interface(&self, number: u32) -> Option<&str> {
        self.interface_name(number)
    }

    fn vrf(&self, number: u32) -> Option<&str> {
        self.vrf_name(number)
    }
}

impl Origin for NfcapdSource<'_> {
    fn address(&self) -> Option<IpAddr> {
        self.exporter()
    }

    fn export(&self) -> Option<&'static str> {
        self.protocol().map(|protocol| protocol.name())
    }

    fn number(&self) -> Option<u32> {
        self.domain()
    }

    fn time_ms(&self) -> Option<u64> {
        self.received_ms()
    }

    fn interface(&self, number: u32) -> Option<&str> {
        self.interface_name(number)
    }

    fn vrf(&self, number: u32) -> Option<&str> {
        self.vrf_name(number)
    }
}

/// Adds a row for each record.
pub(super) struct RowSink<'a> {
    pub(super) block: &'a mut Block,
    /// For each address column whether it is the destination.
    pub(super) slots: &'a [bool],
    pub(super) form: ExportRows,
    /// When the datagram was captured.
    pub(super) time: Option<Time>,
    pub(super) first_fault: Option<ExportFault>,
}

impl FlowSink for RowSink<'_> {
    fn flow(&mut self, record: &FlowRecord, source: &FlowSource<'_>) {
        self.row(record, source);
    }

    fn fault(&mut self, fault: &ExportFault) {
        self.first_fault = self.first_fault.or(Some(*fault));
    }
}

impl RowSink<'_> {
    /// Adds the row of a record.
    pub(super) fn row(&mut self, record: &FlowRecord, origin: &impl Origin) {
        let (from, to) = (record.source(), record.destination());
        for &destination in self.slots {
            match if destination { to } else { from } {
                Some(ip) => self.block.address(ip.into()),
                None => self.block.empty(),
            }
        }
        let start = self.block.text.len();
        let mut row = Fields { out: &mut self.block.text, form: self.form, at: 0, empty: true };
        row.begin();
        let ms = |ms: Option<u64>| ms.map(|ms| ((ms / 1000) as i64, (ms % 1000) as u32 * 1000));
        let captured = self.time.map(|time| (time.seconds, time.nanos / 1000));
        // A file has no time but the exporter's, or its collector's.
        row.time(captured.or_else(|| ms(origin.time_ms())));
        let unknown = |ip: &IpAddr| ip.is_unspecified();
        row.ip(record.exporter().or_else(|| origin.address()));
        row.text(origin.export());
        row.int(origin.number());
        row.time(ms(record.start_ms()));
        row.time(ms(record.end_ms()));
        row.ip(from);
        row.ip(to);
        row.int(record.protocol());
        row.int(record.source_port());
        row.int(record.destination_port());
        row.int(record.tcp_flags());
        row.int(record.tos());
        row.list(
            record.icmp().map(|(kind, code)| [kind.into(), code.into()]).into_iter().flatten(),
        );
        row.int(record.packets());
        row.int(record.bytes());
        row.int(record.sampling_rate());
        row.int(record.input());
        row.int(record.output());
        row.text(record.input().and_then(|number| origin.interface(number)));
        row.text(record.output().and_then(|number| origin.interface(number)));
        row.int(record.source_as());
        row.int(record.destination_as());
        row.int(record.source_mask());
        row.int(record.destination_mask());
        // Zero stands for none.
        row.ip(record.next_hop().filter(|ip| !unknown(ip)));
        row.ip(record.bgp_next_hop().filter(|ip| !unknown(ip)));
        row.int(record.direction());
        row.int(record.vlan());
        row.int(record.post_vlan());
        row.int(record.input_vrf());
        row.int(record.output_vrf());
        let name = |vrf: Option<u32>| vrf.and_then(|vrf| origin.vrf(vrf));
        row.text(name(record.input_vrf()).or_else(|| name(record.output_vrf())));
        row.list(record.labels());
        row.ip(record.nat_source());
        row.ip(record.nat_destination());
        row.int(record.nat_source_port());
        row.int(record.nat_destination_port());
        row.int(record.reverse_packets());
        row.int(record.reverse_bytes());
        let insert = row.end();
        let end = self.block.text.len();
        self.block.row(Row { start, insert, end, pad: 0, kind: RowKind::Annotate });
    }
}

/// Writes the fields of a row in order.
struct Fields<'a> {
    out: &'a mut Vec<u8>,
    form: ExportRows,
    at: usize,
    /// Whether the row has no field yet.
    empty: bool,
}

impl Fields<'_> {
    fn begin(&mut self) {
        if self.form == ExportRows::JsonLines {
            self.out.push(b'{');
        }
    }

    /// Ends the row, and returns where values are added.
    fn end(self) -> usize {
        let insert = self.out.len();
        if self.form == ExportRows::JsonLines {
            self.out.push(b'}');
        }
        self.out.push(b'\n');
        insert
    }

    /// Begins the next field; `false` if nothing is written for it. JSON leaves members without a value out.
    fn next(&mut self, there: bool) -> bool {
        let name = HEADER[self.at];
        self.at += 1;
        let json = self.form == ExportRows::JsonLines;
        if json && !there {
            return false;
        }
        if !self.empty {
            self.out.push(if self.form == ExportRows::Tsv { b'\t' } else { b',' });
        }
        self.empty = false;
        if json {
            self.out.push(b'"');
            self.out.extend_from_slice(name.as_bytes());
            self.out.extend_from_slice(b"\":");
        }
        there
    }

    fn int(&mut self, value: Option<impl itoa::Integer>) {
        if self.next(value.is_some())
            && let Some(value) = value
        {
            write_int(value, self.out);
        }
    }

    fn quoted(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let json = self.form == ExportRows::JsonLines;
        if json {
            self.out.push(b'"');
        }
        write(self.out);
        if json {
            self.out.push(b'"');
        }
    }

    fn ip(&mut self, value: Option<IpAddr>) {
        if self.next(value.is_some())
            && let Some(value) = value
        {
            self.quoted(|out| write_ip(value, out));
        }
    }

    /// Numbers, separated by slashes; an array in JSON.
    fn list(&mut self, values: impl Iterator<Item = u32>) {
        let json = self.form == ExportRows::JsonLines;
        let mut values = values.peekable();
        if !self.next(values.peek().is_some()) {
            return;
        }
        if json {
            self.out.push(b'[');
        }
        let mut first = true;
        for value in values {
            if !first {
                self.out.push(if json { b',' } else { b'/' });
            }
            first = false;
            write_int(value, self.out);
        }
        if json {
            self.out.push(b']');
        }
    }

    /// Seconds since 1970 and microseconds.
    fn time(&mut self, value: Option<(i64, u32)>) {
        if self.next(value.is_some())
            && let Some((seconds, mut micros)) = value
        {
            write_int(seconds, self.out);
            self.out.push(b'.');
            let at = self.out.len();
            self.out.resize(at + 6, b'0');
            for place in self.out[at..].iter_mut().rev() {
                *place = b'0' + (micros % 10) as u8;
                micros /= 10;
            }
        }
    }

    /// Text that an exporter sent. In CSV and TSV it is quoted if it needs to be.
    fn text(&mut self, value: Option<&str>) {
        if !self.next(value.is_some()) {
            return;
        }
        let Some(value) = value else { return };
        if self.form == ExportRows::JsonLines {
            return write_string(value, self.out);
        }
        if !value.contains(['"', ',', '\t', '\n', '\r']) {
            return self.out.extend_from_slice(value.as_bytes());
        }
        self.out.push(b'"');
        for part in value.split_inclusive('"') {
            self.out.extend_from_slice(part.as_bytes());
            if part.ends_with('"') {
                self.out.push(b'"');
            }
        }
        self.out.push(b'"');
    }
}
