//! `netflow_parser` as the oracle: its fields by number, and what follows from them for a record of ours.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use fibula_flows::FlowRecord;
use netflow_parser::variable_versions::field_value::FieldValue;
use netflow_parser::variable_versions::ipfix::lookup::{
    IANAIPFixField, IPFixField, ReverseInformationElement,
};
use netflow_parser::variable_versions::v9::lookup::V9Field;
use netflow_parser::variable_versions::{ipfix, v9};
use netflow_parser::{AutoScopedParser, NetflowPacket, NetflowParser};

/// A record of the oracle: bytes of fields by enterprise and number.
pub struct Fields(Box<dyn Fn(u32, u16) -> Option<Vec<u8>>>);

impl Fields {
    fn get(&self, number: u16) -> Option<Vec<u8>> {
        self.0(0, number)
    }

    fn integer(&self, numbers: &[u16]) -> Option<u64> {
        let bytes = numbers.iter().find_map(|number| self.get(*number))?;
        Some(bytes.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    fn address(&self, v4: &[u16], v6: &[u16]) -> Option<IpAddr> {
        let four = v4
            .iter()
            .find_map(|number| self.get(*number))
            .map(|bytes| IpAddr::from(Ipv4Addr::from(<[u8; 4]>::try_from(&bytes[..]).unwrap())));
        let six = v6
            .iter()
            .find_map(|number| self.get(*number))
            .map(|bytes| IpAddr::from(Ipv6Addr::from(<[u8; 16]>::try_from(&bytes[..]).unwrap())));
        match (four, six) {
            (Some(four), Some(six)) => match self.integer(&[60]) {
                Some(4) => Some(four),
                Some(6) => Some(six),
                _ => Some(if six.is_unspecified() { four } else { six }),
            },
            (four, six) => four.or(six),
        }
    }

    fn reverse(&self, numbers: &[u16]) -> Option<u64> {
        let bytes = numbers.iter().find_map(|number| self.0(29305, *number))?;
        Some(bytes.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    /// Compares all fields that both know, but for times.
    pub fn compare(&self, record: &FlowRecord) {
        let int = |numbers: &[u16]| self.integer(numbers);
        let addresses = [
            (record.source(), self.address(&[8, 44], &[27, 169])),
            (record.destination(), self.address(&[12, 45], &[28, 170])),
            (record.next_hop(), self.address(&[15], &[62])),
            (record.bgp_next_hop(), self.address(&[18], &[63])),
            (record.nat_source(), self.address(&[225], &[281])),
            (record.nat_destination(), self.address(&[226], &[282])),
        ];
        for (at, (ours, theirs)) in addresses.into_iter().enumerate() {
            assert_eq!(ours, theirs, "address {at} of {record:?}");
        }
        let integers = [
            ("bytes", record.bytes(), int(&[1, 85, 231, 23, 224, 312])),
            ("packets", record.packets(), int(&[2, 86, 298, 24])),
            ("protocol", record.protocol().map(u64::from), int(&[4])),
            ("tos", record.tos().map(u64::from), int(&[5])),
            // The oracle keeps nine flags.
            ("tcp_flags", record.tcp_flags().map(|flags| u64::from(flags & 0x1ff)), int(&[6])),
            ("source_port", record.source_port().map(u64::from), int(&[7, 180, 182])),
            ("destination_port", record.destination_port().map(u64::from), int(&[11, 181, 183])),
            ("input", record.input().map(u64::from), int(&[10, 252])),
            ("output", record.output().map(u64::from), int(&[14, 253])),
            ("source_as", record.source_as().map(u64::from), int(&[16])),
            ("destination_as", record.destination_as().map(u64::from), int(&[17])),
            ("direction", record.direction().map(u64::from), int(&[61])),
            ("vlan", record.vlan().map(u64::from), int(&[58, 243])),
            ("post_vlan", record.post_vlan().map(u64::from), int(&[59, 254])),
            ("input_vrf", record.input_vrf().map(u64::from), int(&[234])),
            ("output_vrf", record.output_vrf().map(u64::from), int(&[235])),
            ("end_reason", record.end_reason().map(u64::from), int(&[136])),
            (
                "reverse_bytes",
                record.reverse_bytes(),
                self.reverse(&[1, 85]).or_else(|| int(&[232])),
            ),
            (
                "reverse_packets",
                record.reverse_packets(),
                self.reverse(&[2, 86]).or_else(|| int(&[299])),
            ),
        ];
        for (name, ours, theirs) in integers {
            assert_eq!(ours, theirs, "{name} of {record:?}");
        }
        if let Some(start) = int(&[152]) {
            assert_eq!(record.start_ms(), Some(start), "{record:?}");
        }
        if let Some(end) = int(&[153]) {
            assert_eq!(record.end_ms(), Some(end), "{record:?}");
        }
    }
}

fn bytes(value: &FieldValue) -> Vec<u8> {
    let mut out = Vec::new();
    value.write_be_bytes(&mut out).unwrap();
    out
}

fn of_ipfix(record: Vec<(IPFixField, FieldValue)>) -> Fields {
    Fields(Box::new(move |enterprise, number| {
        let field = match enterprise {
            0 => IPFixField::IANA(IANAIPFixField::from(number)),
            _ => IPFixField::ReverseInformationElement(ReverseInformationElement::from(number)),
        };
        record.iter().find(|(other, _)| *other == field).map(|(_, value)| bytes(value))
    }))
}

fn of_v9(record: Vec<(V9Field, FieldValue)>) -> Fields {
    Fields(Box::new(move |enterprise, number| {
        let field = V9Field::from(number);
        let found = record.iter().find(|(other, _)| *other == field && enterprise == 0);
        found.map(|(_, value)| bytes(value))
    }))
}

/// The oracle for datagrams of several exporters.
pub fn oracle() -> AutoScopedParser {
    let builder = NetflowParser::builder().with_max_records_per_flowset(65_536);
    AutoScopedParser::try_with_builder(builder).unwrap()
}

/// The records of flows of a datagram, and the number of sets without a template.
pub fn parse(
    oracle: &mut AutoScopedParser,
    from: SocketAddr,
    datagram: &[u8],
) -> (Vec<Fields>, u64) {
    let result = oracle.parse_from_source(from, datagram);
    assert!(result.error.is_none(), "{:?}", result.error);
    let (mut records, mut missing) = (Vec::new(), 0);
    for packet in result.packets {
        match packet {
            NetflowPacket::V9(packet) => {
                for set in packet.flowsets {
                    match set.body {
                        v9::FlowSetBody::Data(data) => {
                            records.extend(data.fields.into_iter().map(of_v9));
                        }
                        v9::FlowSetBody::NoTemplate(_) => missing += 1,
                        _ => {}
                    }
                }
            }
            NetflowPacket::IPFix(packet) => {
                for set in packet.flowsets {
                    match set.body {
                        ipfix::FlowSetBody::Data(data) => {
                            records.extend(data.fields.into_iter().map(of_ipfix));
                        }
                        ipfix::FlowSetBody::NoTemplate(_) => missing += 1,
                        _ => {}
                    }
                }
            }
            other => panic!("{other:?}"),
        }
    }
    (records, missing)
}
