//! Flows of nfdump 1.6: a common part, addresses and counters, and the extensions that a map lists.

use super::header::{u16_at, u32_at, u64_at};
use super::records::{Origin, ends, labels, pair, wides};
use super::{Known, NfcapdFaultKind};
use crate::FlowRecord;
use crate::record::{Slot, Wide};

/// The most extensions of a map; nfdump 1.6 has 49 of them.
const EXTENSIONS: usize = 64;

/// The bytes of an extension; `None` if it is not known.
fn len_of(extension: u16) -> Option<usize> {
    Some(match extension {
        4 | 6 | 8 | 9 | 11 | 13 | 14 | 16 | 18 | 23 | 25 | 38 => 4,
        5 | 7 | 15 | 17 | 19 | 26 | 27 | 39 | 47 | 48 => 8,
        46 => 12,
        10 | 12 | 20 | 21 | 24 => 16,
        37 => 20,
        41 | 42 | 45 => 24,
        40 => 32,
        22 => 40,
        43 => 72,
        _ => return None,
    })
}

/// Takes bytes from the beginning.
fn take<'a>(rest: &mut &'a [u8], len: usize) -> Result<&'a [u8], NfcapdFaultKind> {
    let (bytes, behind) = rest.split_at_checked(len).ok_or(NfcapdFaultKind::Extensions)?;
    *rest = behind;
    Ok(bytes)
}

/// An integer of four bytes, or of eight.
fn counter(bytes: &[u8]) -> Option<u64> {
    u64_at(bytes, 0).or_else(|| u32_at(bytes, 0).map(u64::from))
}

impl Known {
    /// Reads a map: its number, the size of all extensions, and their numbers up to a zero.
    pub(super) fn map(&mut self, bytes: &[u8]) -> Result<bool, NfcapdFaultKind> {
        let size = NfcapdFaultKind::RecordSize(bytes.len() as u16);
        let number = u16_at(bytes, 4).ok_or(size)?;
        let list = bytes.get(8..).ok_or(size)?.chunks_exact(2);
        let list = list.map(|id| u16_at(id, 0).unwrap_or_default()).take_while(|id| *id != 0);
        let list: Vec<_> = list.take(EXTENSIONS + 1).collect();
        if list.len() > EXTENSIONS || list.iter().any(|id| len_of(*id).is_none()) {
            return Err(NfcapdFaultKind::Map(number));
        }
        self.maps.insert(number, list.into());
        Ok(false)
    }

    /// Reads a flow of kind 1 (nfdump before 1.6.10) or 10.
    pub(super) fn older_flow(
        &self,
        kind: u16,
        bytes: &[u8],
        record: &mut FlowRecord,
    ) -> Result<Origin, NfcapdFaultKind> {
        let size = NfcapdFaultKind::RecordSize(bytes.len() as u16);
        let header = if kind == 1 { 28 } else { 32 };
        let (common, mut rest) = bytes.split_at_checked(header).ok_or(size)?;
        let (flags, exporter) = match kind {
            1 => (common[4].into(), common[5].into()),
            _ => (u16_at(common, 4).ok_or(size)?, u16_at(common, 28).ok_or(size)?),
        };
        let map = u16_at(common, 6).ok_or(size)?;
        common_part(common, record).ok_or(size)?;
        let wide = |bit: u16| flags & bit != 0;
        let addresses = take(&mut rest, if wide(1) { 32 } else { 8 })?;
        let stored = match wide(1) {
            false => pair(addresses, [Slot::Source4, Slot::Destination4], record),
            true => wides(addresses, &[Wide::Source6, Wide::Destination6], record),
        };
        stored.ok_or(NfcapdFaultKind::Extensions)?;
        for (slot, bit) in [(Slot::Packets, 2), (Slot::Bytes, 4)] {
            let bytes = take(&mut rest, if wide(bit) { 8 } else { 4 })?;
            record.set(slot, counter(bytes).unwrap_or_default());
        }
        let mut received = None;
        let list = self.maps.get(&map).ok_or(NfcapdFaultKind::NoMap(map))?;
        for &extension in list {
            let bytes = take(&mut rest, len_of(extension).unwrap_or_default())?;
            match extension {
                27 => received = u64_at(bytes, 0),
                _ => store(extension, bytes, record).ok_or(NfcapdFaultKind::Extensions)?,
            }
        }
        // Records are aligned to four bytes.
        match rest.len() < 4 {
            true => Ok((exporter, 0, received)),
            false => Err(NfcapdFaultKind::Elements),
        }
    }
}

fn common_part(common: &[u8], record: &mut FlowRecord) -> Option<()> {
    let ms = |at: usize, ms: usize| {
        Some(u64::from(u32_at(common, at)?) * 1000 + u64::from(u16_at(common, ms)?))
    };
    record.set(Slot::Start, ms(12, 8)?);
    record.set(Slot::End, ms(16, 10)?);
    let &[forwarding, tcp_flags, protocol, tos] = common.get(20..24)?.first_chunk()?;
    record.set(Slot::ForwardingStatus, forwarding.into());
    record.set(Slot::TcpFlags, tcp_flags.into());
    record.set(Slot::Tos, tos.into());
    ends(protocol, u16_at(common, 24)?, u16_at(common, 26)?, record);
    Some(())
}

/// Stores the fields of an extension that has all of its bytes.
fn store(extension: u16, bytes: &[u8], record: &mut FlowRecord) -> Option<()> {
    let halves = |slots: [Slot; 2], record: &mut FlowRecord| {
        let values = [u16_at(bytes, 0)?, u16_at(bytes, 2)?];
        slots.into_iter().zip(values).for_each(|(slot, value)| record.set(slot, value.into()));
        Some(())
    };
    let slot = match extension {
        4 => return halves([Slot::Input, Slot::Output], record),
        5 => return pair(bytes, [Slot::Input, Slot::Output], record),
        6 => return halves([Slot::SourceAs, Slot::DestinationAs], record),
        7 => return pair(bytes, [Slot::SourceAs, Slot::DestinationAs], record),
        8 => {
            let &[_, direction, source, destination] = bytes.first_chunk()?;
            record.set(Slot::Direction, direction.into());
            record.set(Slot::SourceMask4, source.into());
            record.set(Slot::DestinationMask4, destination.into());
            return Some(());
        }
        10 => return wides(bytes, &[Wide::NextHop6], record),
        12 => return wides(bytes, &[Wide::BgpNextHop6], record),
        13 => return halves([Slot::Vlan, Slot::PostVlan], record),
        22 => return labels(bytes, record),
        24 => return wides(bytes, &[Wide::Exporter6], record),
        38 => return halves([Slot::NatSourcePort, Slot::NatDestinationPort], record),
        39 => return pair(bytes, [Slot::NatSource4, Slot::NatDestination4], record),
        40 => return wides(bytes, &[Wide::NatSource6, Wide::NatDestination6], record),
        46 => return pair(bytes.get(4..)?, [Slot::OutputVrf, Slot::InputVrf], record),
        9 => Slot::NextHop4,
        11 => Slot::BgpNextHop4,
        14 | 15 => Slot::ReversePackets,
        16 | 17 => Slot::ReverseBytes,
        20 => Slot::SourceMac,
        21 => Slot::DestinationMac,
        23 => Slot::Exporter4,
        _ => return Some(()),
    };
    record.set(slot, counter(bytes)?);
    Some(())
}
