//! NetFlow version 9 (RFC 3954).

use crate::bytes::u32_at;
use crate::decoder::{FlowSink, Work};
use crate::fault::{ExportFault, ExportFaultKind};
use crate::protocol::sets_end;
use crate::times::Clocks;

pub(crate) const HEADER: usize = 20;

/// Late datagrams are those whose number is at most so much smaller than expected.
const WINDOW: u32 = 256;

/// The source id, if the header is there and the sets fit the datagram.
pub(crate) fn domain(datagram: &[u8]) -> Result<u32, ExportFault> {
    let Some(id) = u32_at(datagram, 16) else {
        return Err(ExportFault::new(0, ExportFaultKind::Header));
    };
    sets_end(datagram, HEADER).map_err(|at| ExportFault::new(at, ExportFaultKind::Set))?;
    Ok(id)
}

/// The clocks of a message.
pub(crate) fn clocks(message: &[u8]) -> Clocks {
    let seconds = u32_at(message, 8).unwrap_or_default();
    Clocks { export_ms: Some(u64::from(seconds) * 1000), uptime: u32_at(message, 4) }
}

/// Decodes a datagram that [`domain`] accepted.
pub(crate) fn decode<S: FlowSink>(work: &mut Work<'_, S>, datagram: &[u8]) {
    let clocks = clocks(datagram);
    let number = u32_at(datagram, 12).unwrap_or_default();
    work.domain.sequence.check(number, Some(1), clocks.uptime, WINDOW, &mut work.counts);
    work.sets(datagram, HEADER, clocks);
}
