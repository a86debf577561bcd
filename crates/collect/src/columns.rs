//! Records of flows as columns of Arrow, with the names of the rows that `fibula annotate --flows-in` writes.

use std::net::IpAddr;
use std::sync::Arc;

use arrow_array::builder::{
    ListBuilder, StringBuilder, TimestampMicrosecondBuilder, UInt8Builder, UInt16Builder,
    UInt32Builder, UInt64Builder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};
use fibula_annotate::write_ip;
use fibula_flows::{ExportFault, FlowRecord, FlowSink, FlowSource};

/// Addresses as text. Many records have the same one as the record before, such as their exporter.
#[derive(Default)]
struct Addresses {
    column: StringBuilder,
    last: Option<IpAddr>,
    text: Vec<u8>,
}

impl Addresses {
    fn append_option(&mut self, address: Option<IpAddr>) {
        let Some(address) = address else { return self.column.append_null() };
        if self.last != Some(address) {
            self.text.clear();
            write_ip(address, &mut self.text);
            self.last = Some(address);
        }
        self.column.append_option(str::from_utf8(&self.text).ok());
    }

    fn finish(&mut self) -> impl arrow_array::Array + use<> {
        self.column.finish()
    }
}

/// Lists of numbers; null without any.
#[derive(Default)]
struct Lists(ListBuilder<UInt32Builder>);

impl Lists {
    fn append_option(&mut self, values: impl Iterator<Item = u32>) {
        let mut is_there = false;
        for value in values {
            self.0.values().append_value(value);
            is_there = true;
        }
        self.0.append(is_there);
    }

    fn finish(&mut self) -> impl arrow_array::Array + use<> {
        self.0.finish()
    }
}

/// Microseconds since 1970.
#[derive(Default)]
struct Times(TimestampMicrosecondBuilder);

impl Times {
    fn append_option(&mut self, micros: Option<u64>) {
        self.0.append_option(micros.and_then(|micros| i64::try_from(micros).ok()));
    }

    fn finish(&mut self) -> impl arrow_array::Array + use<> {
        self.0.finish().with_timezone("UTC")
    }
}

fn utc() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

fn list() -> DataType {
    DataType::List(Arc::new(Field::new_list_field(DataType::UInt32, true)))
}

/// Zero stands for none.
fn known(address: Option<IpAddr>) -> Option<IpAddr> {
    address.filter(|address| !address.is_unspecified())
}

/// Declares the columns: their builder, their type, and the value of a record.
macro_rules! columns {
    ($record:ident, $source:ident, $time:ident; $($name:ident: $builder:ty, $kind:expr, $value:expr;)*) => {
        #[derive(Default)]
        struct Builders {
            $($name: $builder,)*
        }

        impl Builders {
            fn append(&mut self, $record: &FlowRecord, $source: &FlowSource<'_>, $time: u64) {
                $(self.$name.append_option($value);)*
            }

            fn finish(&mut self) -> Vec<ArrayRef> {
                vec![$(Arc::new(self.$name.finish()),)*]
            }
        }

        fn fields() -> Vec<Field> {
            vec![$(Field::new(stringify!($name), $kind, true),)*]
        }
    };
}

columns! { record, source, time;
    time: Times, utc(), Some(time);
    exporter: Addresses, DataType::Utf8, known(record.exporter().or(source.agent()).or(Some(source.exporter())));
    export: StringBuilder, DataType::Utf8, Some(source.protocol().name());
    domain: UInt32Builder, DataType::UInt32, Some(source.domain());
    first: Times, utc(), record.start_ms().and_then(|ms| ms.checked_mul(1000));
    last: Times, utc(), record.end_ms().and_then(|ms| ms.checked_mul(1000));
    src: Addresses, DataType::Utf8, record.source();
    dst: Addresses, DataType::Utf8, record.destination();
    protocol: UInt8Builder, DataType::UInt8, record.protocol();
    src_port: UInt16Builder, DataType::UInt16, record.source_port();
    dst_port: UInt16Builder, DataType::UInt16, record.destination_port();
    tcp_flags: UInt16Builder, DataType::UInt16, record.tcp_flags();
    tos: UInt8Builder, DataType::UInt8, record.tos();
    icmp: Lists, list(), record.icmp().map(|(kind, code)| [kind.into(), code.into()]).into_iter().flatten();
    packets: UInt64Builder, DataType::UInt64, record.packets();
    bytes: UInt64Builder, DataType::UInt64, record.bytes();
    sampling: UInt32Builder, DataType::UInt32, record.sampling_rate();
    input: UInt32Builder, DataType::UInt32, record.input();
    output: UInt32Builder, DataType::UInt32, record.output();
    input_name: StringBuilder, DataType::Utf8, record.input().and_then(|number| source.interface_name(number));
    output_name: StringBuilder, DataType::Utf8, record.output().and_then(|number| source.interface_name(number));
    src_as: UInt32Builder, DataType::UInt32, record.source_as();
    dst_as: UInt32Builder, DataType::UInt32, record.destination_as();
    src_mask: UInt8Builder, DataType::UInt8, record.source_mask();
    dst_mask: UInt8Builder, DataType::UInt8, record.destination_mask();
    next_hop: Addresses, DataType::Utf8, known(record.next_hop());
    bgp_next_hop: Addresses, DataType::Utf8, known(record.bgp_next_hop());
    direction: UInt8Builder, DataType::UInt8, record.direction();
    vlan: UInt16Builder, DataType::UInt16, record.vlan();
    post_vlan: UInt16Builder, DataType::UInt16, record.post_vlan();
    input_vrf: UInt32Builder, DataType::UInt32, record.input_vrf();
    output_vrf: UInt32Builder, DataType::UInt32, record.output_vrf();
    vrf_name: StringBuilder, DataType::Utf8, vrf_name(record, source);
    mpls: Lists, list(), record.labels();
    nat_src: Addresses, DataType::Utf8, record.nat_source();
    nat_dst: Addresses, DataType::Utf8, record.nat_destination();
    nat_src_port: UInt16Builder, DataType::UInt16, record.nat_source_port();
    nat_dst_port: UInt16Builder, DataType::UInt16, record.nat_destination_port();
    reverse_packets: UInt64Builder, DataType::UInt64, record.reverse_packets();
    reverse_bytes: UInt64Builder, DataType::UInt64, record.reverse_bytes();
}

fn vrf_name<'a>(record: &FlowRecord, source: &'a FlowSource<'_>) -> Option<&'a str> {
    let name = |vrf: Option<u32>| vrf.and_then(|vrf| source.vrf_name(vrf));
    name(record.input_vrf()).or_else(|| name(record.output_vrf()))
}

/// The columns that are looked up.
pub(crate) const ENDS: [&str; 2] = ["src", "dst"];

/// The names and types of the columns of flows.
pub(crate) fn flow_fields() -> Vec<Field> {
    fields()
}

/// Collects records until they are taken as a batch.
pub(crate) struct FlowColumns {
    builders: Builders,
    schema: SchemaRef,
    /// When the datagram arrived whose records are added, in microseconds since 1970.
    pub(crate) time: u64,
    rows: usize,
    /// The last fault since it was taken.
    fault: Option<ExportFault>,
}

impl FlowColumns {
    pub(crate) fn new() -> Self {
        let schema = Arc::new(Schema::new(fields()));
        Self { builders: Builders::default(), schema, time: 0, rows: 0, fault: None }
    }

    /// The number of records since the last batch.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    pub(crate) fn take_fault(&mut self) -> Option<ExportFault> {
        self.fault.take()
    }

    /// The records since the last batch.
    pub(crate) fn take(&mut self) -> Result<RecordBatch, ArrowError> {
        self.rows = 0;
        RecordBatch::try_new(Arc::clone(&self.schema), self.builders.finish())
    }
}

impl FlowSink for FlowColumns {
    fn flow(&mut self, record: &FlowRecord, source: &FlowSource<'_>) {
        self.builders.append(record, source, self.time);
        self.rows += 1;
    }

    fn fault(&mut self, fault: &ExportFault) {
        self.fault = Some(*fault);
    }
}
