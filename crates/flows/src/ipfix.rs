//! IPFIX (RFC 7011).

use crate::bytes::{u16_at, u32_at};
use crate::decoder::{FlowSink, Work};
use crate::fault::{ExportFault, ExportFaultKind};
use crate::protocol::sets_end;
use crate::times::Clocks;

pub(crate) const HEADER: usize = 16;

/// Late messages are those whose number is at most so many records smaller than expected.
const WINDOW: u32 = 65_536;

/// The observation domain, if the header is there and the sets fit the message.
pub(crate) fn domain(datagram: &[u8]) -> Result<u32, ExportFault> {
    let fault = |at, kind| Err(ExportFault::new(at, kind));
    let (Some(len), Some(id)) = (u16_at(datagram, 2), u32_at(datagram, 12)) else {
        return fault(0, ExportFaultKind::Header);
    };
    let Some(message) = datagram.get(..len.into()).filter(|message| message.len() >= HEADER) else {
        return fault(2, ExportFaultKind::Length);
    };
    match sets_end(message, HEADER) {
        Ok(_) => Ok(id),
        Err(at) => fault(at, ExportFaultKind::Set),
    }
}

/// The clocks of a message.
pub(crate) fn clocks(message: &[u8]) -> Clocks {
    let seconds = u32_at(message, 4).unwrap_or_default();
    Clocks { export_ms: Some(u64::from(seconds) * 1000), uptime: None }
}

/// Decodes a datagram that [`domain`] accepted.
pub(crate) fn decode<S: FlowSink>(work: &mut Work<'_, S>, datagram: &[u8]) {
    let len = u16_at(datagram, 2).map_or(0, usize::from);
    let message = datagram.get(..len).unwrap_or(datagram);
    let number = u32_at(datagram, 8).unwrap_or_default();
    let records = work.sets(message, HEADER, clocks(message));
    // The number counts records: how many this message has is known only now.
    work.domain.sequence.check(number, records, None, WINDOW, &mut work.counts);
    if datagram.len() > len {
        work.fault(len, ExportFaultKind::Trailing);
    }
}
