//! Headers of sampled packets.

use fibula_packet::{Frame, LinkType};

use crate::record::{FlowRecord, Slot, Wide};

/// Reads a frame that begins with its Ethernet header.
pub(crate) fn frame(bytes: &[u8], wire_len: usize, record: &mut FlowRecord) {
    read(LinkType::Ethernet, bytes, wire_len, record);
}

/// Reads a packet that begins with its IP header.
pub(crate) fn packet(bytes: &[u8], wire_len: usize, record: &mut FlowRecord) {
    read(LinkType::RawIp, bytes, wire_len, record);
}

/// Sets the fields of a packet's headers. Other fields of the record keep what they have.
pub(crate) fn read(link: LinkType, bytes: &[u8], wire_len: usize, record: &mut FlowRecord) {
    let key = Frame::parse_captured(link, bytes, wire_len).flow_key();
    if let Some((source, destination)) = key.ends {
        record.set_address((Slot::Source4, Wide::Source6), source);
        record.set_address((Slot::Destination4, Wide::Destination6), destination);
    }
    let ports = key.ports.unzip();
    // FlowKey has the destination first, as Ethernet does.
    let macs = key.macs.map(|(destination, source)| (mac(source), mac(destination))).unzip();
    let icmp = key.icmp.map(|(kind, code)| u64::from(kind) << 8 | u64::from(code));
    let outer = key.tags[0].map(|tag| u64::from(tag.vid()));
    for (slot, value) in [
        (Slot::Protocol, key.protocol.map(u64::from)),
        (Slot::SourcePort, ports.0.map(u64::from)),
        (Slot::DestinationPort, ports.1.map(u64::from)),
        (Slot::TcpFlags, key.tcp_flags.map(u64::from)),
        (Slot::Tos, key.traffic_class.map(u64::from)),
        (Slot::IcmpTypeCode, icmp),
        (Slot::Vlan, outer),
        (Slot::SourceMac, macs.0),
        (Slot::DestinationMac, macs.1),
        (Slot::Packets, Some(1)),
    ] {
        if let Some(value) = value.filter(|_| !record.has(slot)) {
            record.set(slot, value);
        }
    }
}

/// An address as an integer.
fn mac(bytes: [u8; 6]) -> u64 {
    bytes.iter().fold(0, |mac, byte| mac << 8 | u64::from(*byte))
}
