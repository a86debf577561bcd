//! Records of flows as columns of Arrow, with the names of the rows that `fibula annotate --flows-in` writes.

use std::mem;
use std::net::IpAddr;
use std::sync::Arc;

use arrow_array::builder::{
    BinaryBuilder, GenericByteBuilder, ListBuilder, PrimitiveBuilder, StringBuilder, UInt32Builder,
};
use arrow_array::types::{
    ArrowPrimitiveType, ByteArrayType, TimestampMicrosecondType, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{ArrayRef, ListArray, PrimitiveArray, RecordBatch, StringArray};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};
use fibula_annotate::write_ip;
use fibula_flows::{ExportFault, FlowRecord, FlowSink, FlowSource};

/// A builder that takes many nulls at once.
trait TakesNulls {
    fn append_nulls(&mut self, count: usize);
}

impl<T: ArrowPrimitiveType> TakesNulls for PrimitiveBuilder<T> {
    fn append_nulls(&mut self, count: usize) {
        self.append_nulls(count);
    }
}

impl<T: ByteArrayType> TakesNulls for GenericByteBuilder<T> {
    fn append_nulls(&mut self, count: usize) {
        self.append_nulls(count);
    }
}

impl TakesNulls for ListBuilder<UInt32Builder> {
    fn append_nulls(&mut self, count: usize) {
        self.append_nulls(count);
    }
}

/// A column. Exporters leave most of them out: nulls are counted, and appended together before the next value.
#[derive(Default)]
struct Column<B> {
    builder: B,
    nulls: usize,
}

impl<B: TakesNulls> Column<B> {
    /// The builder, with all nulls so far.
    fn whole(&mut self) -> &mut B {
        if self.nulls > 0 {
            self.builder.append_nulls(mem::take(&mut self.nulls));
        }
        &mut self.builder
    }
}

type Numbers<T> = Column<PrimitiveBuilder<T>>;

impl<T: ArrowPrimitiveType> Numbers<T> {
    fn append_option(&mut self, value: Option<T::Native>) {
        match value {
            Some(value) => self.whole().append_value(value),
            None => self.nulls += 1,
        }
    }

    fn finish(&mut self) -> PrimitiveArray<T> {
        self.whole().finish()
    }
}

type Texts = Column<StringBuilder>;

impl Texts {
    fn append_option(&mut self, value: Option<&str>) {
        match value {
            Some(value) => self.whole().append_value(value),
            None => self.nulls += 1,
        }
    }

    fn finish(&mut self) -> StringArray {
        self.whole().finish()
    }
}

/// Lists of numbers; null without any.
type Lists = Column<ListBuilder<UInt32Builder>>;

impl Lists {
    fn append_option(&mut self, values: impl Iterator<Item = u32>) {
        let mut values = values.peekable();
        match values.peek() {
            Some(_) => self.whole().append_value(values.map(Some)),
            None => self.nulls += 1,
        }
    }

    fn finish(&mut self) -> ListArray {
        self.whole().finish()
    }
}

/// Addresses as text. Many records have the same one as the record before, such as their exporter.
#[derive(Default)]
struct Addresses {
    column: Column<BinaryBuilder>,
    last: Option<IpAddr>,
    text: Vec<u8>,
}

impl Addresses {
    fn append_option(&mut self, address: Option<IpAddr>) {
        let Some(address) = address else { return self.column.nulls += 1 };
        if self.last != Some(address) {
            self.text.clear();
            write_ip(address, &mut self.text);
            self.last = Some(address);
        }
        self.column.whole().append_value(&self.text);
    }

    /// The texts, which are checked all at once: they are ASCII.
    fn finish(&mut self) -> StringArray {
        StringArray::from(self.column.whole().finish())
    }
}

/// Microseconds since 1970.
#[derive(Default)]
struct Times(Numbers<TimestampMicrosecondType>);

impl Times {
    fn append_option(&mut self, micros: Option<u64>) {
        self.0.append_option(micros.and_then(|micros| i64::try_from(micros).ok()));
    }

    fn finish(&mut self) -> PrimitiveArray<TimestampMicrosecondType> {
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
    export: Texts, DataType::Utf8, Some(source.protocol().name());
    domain: Numbers<UInt32Type>, DataType::UInt32, Some(source.domain());
    first: Times, utc(), record.start_ms().and_then(|ms| ms.checked_mul(1000));
    last: Times, utc(), record.end_ms().and_then(|ms| ms.checked_mul(1000));
    src: Addresses, DataType::Utf8, record.source();
    dst: Addresses, DataType::Utf8, record.destination();
    protocol: Numbers<UInt8Type>, DataType::UInt8, record.protocol();
    src_port: Numbers<UInt16Type>, DataType::UInt16, record.source_port();
    dst_port: Numbers<UInt16Type>, DataType::UInt16, record.destination_port();
    tcp_flags: Numbers<UInt16Type>, DataType::UInt16, record.tcp_flags();
    tos: Numbers<UInt8Type>, DataType::UInt8, record.tos();
    icmp: Lists, list(), record.icmp().map(|(kind, code)| [kind.into(), code.into()]).into_iter().flatten();
    packets: Numbers<UInt64Type>, DataType::UInt64, record.packets();
    bytes: Numbers<UInt64Type>, DataType::UInt64, record.bytes();
    sampling: Numbers<UInt32Type>, DataType::UInt32, record.sampling_rate();
    input: Numbers<UInt32Type>, DataType::UInt32, record.input();
    output: Numbers<UInt32Type>, DataType::UInt32, record.output();
    input_name: Texts, DataType::Utf8, record.input().and_then(|number| source.interface_name(number));
    output_name: Texts, DataType::Utf8, record.output().and_then(|number| source.interface_name(number));
    src_as: Numbers<UInt32Type>, DataType::UInt32, record.source_as();
    dst_as: Numbers<UInt32Type>, DataType::UInt32, record.destination_as();
    src_mask: Numbers<UInt8Type>, DataType::UInt8, record.source_mask();
    dst_mask: Numbers<UInt8Type>, DataType::UInt8, record.destination_mask();
    next_hop: Addresses, DataType::Utf8, known(record.next_hop());
    bgp_next_hop: Addresses, DataType::Utf8, known(record.bgp_next_hop());
    direction: Numbers<UInt8Type>, DataType::UInt8, record.direction();
    vlan: Numbers<UInt16Type>, DataType::UInt16, record.vlan();
    post_vlan: Numbers<UInt16Type>, DataType::UInt16, record.post_vlan();
    input_vrf: Numbers<UInt32Type>, DataType::UInt32, record.input_vrf();
    output_vrf: Numbers<UInt32Type>, DataType::UInt32, record.output_vrf();
    vrf_name: Texts, DataType::Utf8, vrf_name(record, source);
    mpls: Lists, list(), record.labels();
    nat_src: Addresses, DataType::Utf8, record.nat_source();
    nat_dst: Addresses, DataType::Utf8, record.nat_destination();
    nat_src_port: Numbers<UInt16Type>, DataType::UInt16, record.nat_source_port();
    nat_dst_port: Numbers<UInt16Type>, DataType::UInt16, record.nat_destination_port();
    reverse_packets: Numbers<UInt64Type>, DataType::UInt64, record.reverse_packets();
    reverse_bytes: Numbers<UInt64Type>, DataType::UInt64, record.reverse_bytes();
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
