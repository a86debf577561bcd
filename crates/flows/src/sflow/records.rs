//! The records of a sample: the packet, and what the agent knows of it.

use std::net::IpAddr;

use fibula_packet::LinkType;

use super::packet;
use crate::bytes::Cursor;
use crate::record::{FlowRecord, Slot, Wide};

/// Adds what a record says; `None` if it is cut. Records that are not understood add nothing.
pub(super) fn record(format: u32, mut data: Cursor<'_>, record: &mut FlowRecord) -> Option<()> {
    match format {
        1 => header(&mut data, record),
        2 => ethernet(&mut data, record),
        3 => ip(&mut data, record, false),
        4 => ip(&mut data, record, true),
        1001 => switch(&mut data, record),
        1002 => router(&mut data, record),
        1003 => gateway(&mut data, record),
        1007 => nat(&mut data, record),
        1020 => {
            record.set(Slot::NatSourcePort, data.u32()?.into());
            record.set(Slot::NatDestinationPort, data.u32()?.into());
            Some(())
        }
        _ => Some(()),
    }
}

/// The first bytes of a packet.
fn header(data: &mut Cursor<'_>, record: &mut FlowRecord) -> Option<()> {
    let (protocol, length, stripped) = (data.u32()?, data.u32()?, data.u32()?);
    let len = usize::try_from(data.u32()?).ok()?;
    let bytes = data.take(len)?;
    record.set(Slot::Bytes, length.into());
    let link = match protocol {
        1 => LinkType::Ethernet,
        7 => LinkType::Ppp,
        11 | 12 => LinkType::RawIp,
        _ => return Some(()),
    };
    let wire_len = usize::try_from(length.saturating_sub(stripped)).ok()?;
    packet::read(link, bytes, wire_len, record);
    Some(())
}

/// MAC addresses fill two words each.
fn ethernet(data: &mut Cursor<'_>, record: &mut FlowRecord) -> Option<()> {
    let length = data.u32()?;
    if !record.has(Slot::Bytes) {
        record.set(Slot::Bytes, length.into());
    }
    for slot in [Slot::SourceMac, Slot::DestinationMac] {
        let mac = data.u64()? >> 16;
        if !record.has(slot) {
            record.set(slot, mac);
        }
    }
    Some(())
}

fn ip(data: &mut Cursor<'_>, record: &mut FlowRecord, six: bool) -> Option<()> {
    let (length, protocol) = (data.u32()?, data.u32()?);
    let mut address = || -> Option<IpAddr> {
        Some(match six {
            true => IpAddr::V6((*data.take(16)?.first_chunk::<16>()?).into()),
            false => IpAddr::V4(data.u32()?.into()),
        })
    };
    let (source, destination) = (address()?, address()?);
    let [source_port, destination_port] = [data.u32()?, data.u32()?];
    let (flags, tos) = (data.u32()?, data.u32()?);
    if record.source().is_none() {
        record.set_address((Slot::Source4, Wide::Source6), source);
        record.set_address((Slot::Destination4, Wide::Destination6), destination);
    }
    let protocols = [(Slot::Protocol, protocol), (Slot::Bytes, length), (Slot::Tos, tos)];
    // Of other protocols, ports and flags are zero.
    let ports = [(Slot::SourcePort, source_port), (Slot::DestinationPort, destination_port)];
    let has_ports = u8::try_from(protocol).is_ok_and(fibula_packet::has_ports);
    let flags = [(Slot::TcpFlags, flags)];
    let flags = flags.into_iter().filter(|_| protocol == 6);
    for (slot, value) in
        protocols.into_iter().chain(ports.into_iter().filter(|_| has_ports)).chain(flags)
    {
        if !record.has(slot) {
            record.set(slot, value.into());
        }
    }
    Some(())
}

fn switch(data: &mut Cursor<'_>, record: &mut FlowRecord) -> Option<()> {
    let (source, _, destination, _) = (data.u32()?, data.u32()?, data.u32()?, data.u32()?);
    // All ones: the agent does not know it.
    for (slot, vlan) in [(Slot::Vlan, source), (Slot::PostVlan, destination)] {
        if vlan != u32::MAX {
            record.set(slot, vlan.into());
        }
    }
    Some(())
}

fn router(data: &mut Cursor<'_>, record: &mut FlowRecord) -> Option<()> {
    if let Some(hop) = super::address(data)?.ok()? {
        record.set_address((Slot::NextHop4, Wide::NextHop6), hop);
    }
    // The methods of a record take the mask of the other family where the own one is missing.
    record.set(Slot::SourceMask4, data.u32()?.into());
    record.set(Slot::DestinationMask4, data.u32()?.into());
    Some(())
}

/// The route of BGP: the next hop, the own AS, the source's AS, its peer, and the AS path to the destination.
fn gateway(data: &mut Cursor<'_>, record: &mut FlowRecord) -> Option<()> {
    if let Some(hop) = super::address(data)?.ok()? {
        record.set_address((Slot::BgpNextHop4, Wide::BgpNextHop6), hop);
    }
    let (_, source, _) = (data.u32()?, data.u32()?, data.u32()?);
    record.set(Slot::SourceAs, source.into());
    let segments = data.u32()?;
    let mut last = None;
    for _ in 0..segments {
        let (_, count) = (data.u32()?, data.u32()?);
        let mut path = data.part(usize::try_from(count).ok()?.checked_mul(4)?)?;
        path.at = path.end.saturating_sub(4).max(path.at);
        last = path.u32().or(last);
    }
    if let Some(last) = last {
        record.set(Slot::DestinationAs, last.into());
    }
    Some(())
}

fn nat(data: &mut Cursor<'_>, record: &mut FlowRecord) -> Option<()> {
    for slots in
        [(Slot::NatSource4, Wide::NatSource6), (Slot::NatDestination4, Wide::NatDestination6)]
    {
        if let Some(address) = super::address(data)?.ok()? {
            record.set_address(slots, address);
        }
    }
    Some(())
}
