//! NetFlow version 5: records of 48 bytes after a header of 24. They are read as those of a template.

use std::sync::LazyLock;

use crate::bytes::{u16_at, u32_at};
use crate::decoder::{FlowSink, Work};
use crate::fault::{ExportFault, ExportFaultKind};
use crate::record::Slot;
use crate::template::{Program, Spec};
use crate::times::Clocks;

const HEADER: usize = 24;
const RECORD: usize = 48;

/// Late datagrams are those whose number is at most so many flows smaller than expected.
const WINDOW: u32 = 30 * 256;

/// The fields, by their numbers in templates; 210 is padding.
static PROGRAM: LazyLock<Program> = LazyLock::new(|| {
    const FIELDS: [(u16, u16); 20] = [
        (8, 4),
        (12, 4),
        (15, 4),
        (10, 2),
        (14, 2),
        (2, 4),
        (1, 4),
        (22, 4),
        (21, 4),
        (7, 2),
        (11, 2),
        (210, 1),
        (6, 1),
        (4, 1),
        (5, 1),
        (16, 2),
        (17, 2),
        (9, 1),
        (13, 1),
        (210, 2),
    ];
    Program::new(&FIELDS.map(|(number, len)| Spec { enterprise: 0, number, len }))
});

/// The engine, if the header is there and its records are.
pub(crate) fn domain(datagram: &[u8]) -> Result<u32, ExportFault> {
    let fault = |at, kind| Err(ExportFault::new(at, kind));
    let (Some(count), Some(engine)) = (u16_at(datagram, 2), u16_at(datagram, 20)) else {
        return fault(0, ExportFaultKind::Header);
    };
    if datagram.len() < HEADER {
        return fault(0, ExportFaultKind::Header);
    }
    if datagram.len() < HEADER + RECORD * usize::from(count) {
        return fault(2, ExportFaultKind::Length);
    }
    Ok(engine.into())
}

/// Decodes a datagram that [`domain`] accepted.
pub(crate) fn decode<S: FlowSink>(work: &mut Work<'_, S>, datagram: &[u8]) {
    let word = |at| u32_at(datagram, at).unwrap_or_default();
    let count = u16_at(datagram, 2).unwrap_or_default();
    let (uptime, number) = (word(4), word(16));
    let export_ms = u64::from(word(8)) * 1000 + u64::from(word(12)) / 1_000_000;
    let clocks = Clocks { export_ms: Some(export_ms), uptime: Some(uptime) };
    let units = Some(u32::from(count));
    work.domain.sequence.check(number, units, Some(uptime), WINDOW, &mut work.counts);
    // The upper two bits are the mode of sampling.
    let rate = u16_at(datagram, 22).unwrap_or_default() & 0x3fff;
    let end = HEADER + RECORD * usize::from(count);
    for at in (HEADER..end).step_by(RECORD) {
        if PROGRAM.read(datagram, at, end, work.record).is_none() {
            break;
        }
        clocks.set(work.record, &PROGRAM, None);
        if rate > 0 {
            work.record.set(Slot::Rate, rate.into());
        }
        work.deliver(clocks.export_ms);
    }
    if datagram.len() > end {
        work.fault(end, ExportFaultKind::Trailing);
    }
}
