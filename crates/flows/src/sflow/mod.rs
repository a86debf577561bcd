//! sFlow version 5. Samples of flows become records, one for each sampled packet; counters are skipped.

pub(crate) mod packet;
mod records;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::bytes::Cursor;
use crate::decoder::{FlowSink, Work};
use crate::fault::{ExportFault, ExportFaultKind};
use crate::record::Slot;

/// Late datagrams and samples are those whose number is at most so much smaller than expected.
const WINDOW: u32 = 256;

/// The header of a datagram.
struct Header {
    agent: Option<IpAddr>,
    sub_agent: u32,
    number: u32,
    uptime: u32,
    samples: u32,
}

/// Reads the header, and moves the cursor to the first sample.
fn header(cursor: &mut Cursor<'_>) -> Result<Header, ExportFault> {
    let short = ExportFault::new(0, ExportFaultKind::Header);
    cursor.u32().ok_or(short)?;
    let at = cursor.at;
    let agent = match address(cursor) {
        Some(Ok(agent)) => agent,
        Some(Err(kind)) => return Err(ExportFault::new(at, ExportFaultKind::Address(kind))),
        None => return Err(short),
    };
    let mut word = || cursor.u32().ok_or(short);
    let (sub_agent, number, uptime, samples) = (word()?, word()?, word()?, word()?);
    Ok(Header { agent, sub_agent, number, uptime, samples })
}

/// An address with its type; `None` if it is cut, an error if its type is unknown. Type 0 has no address.
pub(crate) fn address(cursor: &mut Cursor<'_>) -> Option<Result<Option<IpAddr>, u32>> {
    Some(Ok(match cursor.u32()? {
        0 => None,
        1 => Some(Ipv4Addr::from(cursor.u32()?).into()),
        2 => Some(Ipv6Addr::from(*cursor.take(16)?.first_chunk::<16>()?).into()),
        kind => return Some(Err(kind)),
    }))
}

/// Data of a given format: a sample, or a record of one. Its length is rounded up to words; the end may lack them.
fn next<'a>(cursor: &mut Cursor<'a>) -> Option<(u32, Cursor<'a>)> {
    let (format, len) = (cursor.u32()?, cursor.u32()?);
    let len = usize::try_from(len).ok()?;
    let part = cursor.part(len)?;
    cursor.take((len.wrapping_neg() % 4).min(cursor.left()));
    Some((format, part))
}

/// Whether the samples lead to the end of the datagram.
pub(crate) fn ends_with_samples(datagram: &[u8]) -> bool {
    let mut cursor = Cursor::new(datagram, 0);
    let Ok(header) = header(&mut cursor) else { return false };
    (0..header.samples).all(|_| next(&mut cursor).is_some()) && cursor.left() == 0
}

/// The sub-agent and the agent, if the header is there and the samples fit the datagram.
pub(crate) fn domain(datagram: &[u8]) -> Result<(u32, Option<IpAddr>), ExportFault> {
    let mut cursor = Cursor::new(datagram, 0);
    let header = header(&mut cursor)?;
    for _ in 0..header.samples {
        let at = cursor.at;
        next(&mut cursor).ok_or(ExportFault::new(at, ExportFaultKind::Sample))?;
    }
    Ok((header.sub_agent, header.agent))
}

/// Decodes a datagram that [`domain`] accepted.
pub(crate) fn decode<S: FlowSink>(work: &mut Work<'_, S>, datagram: &[u8]) {
    let mut cursor = Cursor::new(datagram, 0);
    let Ok(header) = header(&mut cursor) else { return };
    let uptime = Some(header.uptime);
    work.domain.sequence.check(header.number, Some(1), uptime, WINDOW, &mut work.counts);
    for _ in 0..header.samples {
        let at = cursor.at;
        let Some((format, mut sample)) = next(&mut cursor) else { return };
        let expanded = match format {
            1 => false,
            3 => true,
            _ => {
                work.counts.other_samples += 1;
                continue;
            }
        };
        if flow_sample(work, &mut sample, expanded).is_none() {
            work.fault(at, ExportFaultKind::Sample);
        }
    }
    if cursor.left() > 0 {
        work.fault(cursor.at, ExportFaultKind::Trailing);
    }
}

/// Decodes a sample of a flow; `None` if it is cut, and then gives no record.
fn flow_sample<S: FlowSink>(
    work: &mut Work<'_, S>,
    sample: &mut Cursor<'_>,
    expanded: bool,
) -> Option<()> {
    let number = sample.u32()?;
    let source = if expanded {
        u64::from(sample.u32()?) << 32 | u64::from(sample.u32()?)
    } else {
        let source = sample.u32()?;
        u64::from(source >> 24) << 32 | u64::from(source & 0xff_ffff)
    };
    let rate = sample.u32()?;
    sample.take(8)?;
    let (input, output) = (interface(sample, expanded)?, interface(sample, expanded)?);
    let count = sample.u32()?;
    work.record.begin(0, 0);
    work.record.set(Slot::Packets, 1);
    for (slot, value) in
        [(Slot::Input, input), (Slot::Output, output), (Slot::Rate, (rate > 0).then_some(rate))]
    {
        if let Some(value) = value {
            work.record.set(slot, value.into());
        }
    }
    for _ in 0..count {
        let (format, part) = next(sample)?;
        records::record(format, part, work.record)?;
    }
    // The numbers of a source are followed once its sample is known to be whole.
    let mut counts = crate::ExportCounts::default();
    if let Some(sequence) = work.domain.samples_of(source) {
        sequence.check(number, Some(1), None, WINDOW, &mut counts);
    }
    work.counts.lost_samples += counts.lost;
    work.counts.without_addresses += u64::from(work.record.source().is_none());
    work.deliver(None);
    Some(())
}

/// The number of an interface; `Some(None)` if packets have none, because they are discarded, sent to several
/// interfaces, or the agent's own.
fn interface(sample: &mut Cursor<'_>, expanded: bool) -> Option<Option<u32>> {
    let (kind, number, own) = if expanded {
        (sample.u32()?, sample.u32()?, u32::MAX)
    } else {
        let word = sample.u32()?;
        (word >> 30, word & 0x3fff_ffff, 0x3fff_ffff)
    };
    Some((kind == 0 && number != own).then_some(number))
}
