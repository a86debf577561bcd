//! Times and sampling rates of a record, from its own fields and those of its message.

use crate::decoder::{FlowSink, Work};
use crate::elements::Clock;
use crate::record::{FlowRecord, Slot};
use crate::state::{Domain, RateKey};
use crate::template::{Program, SAMPLING};

/// Seconds from 1900, where NTP begins, to 1970.
const NTP_TO_UNIX: u64 = 2_208_988_800;

/// The clocks of a message.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clocks {
    /// When it was exported, in milliseconds since 1970.
    pub(crate) export_ms: Option<u64>,
    /// The exporter's uptime then, in milliseconds.
    pub(crate) uptime: Option<u32>,
}

impl Clocks {
    /// A time in milliseconds since 1970. `init` is when the exporter started.
    fn unix_ms(&self, clock: Clock, raw: u64, init: Option<u64>) -> Option<u64> {
        match clock {
            Clock::None => None,
            Clock::Uptime => {
                // The uptime wraps after 49.7 days; the difference to that of the export does not.
                let export = self.export_ms?;
                let uptime = match self.uptime {
                    Some(uptime) => uptime,
                    None => export.wrapping_sub(init?) as u32,
                };
                let age = uptime.wrapping_sub(raw as u32) as i32;
                export.checked_add_signed(-i64::from(age))
            }
            Clock::Seconds => raw.checked_mul(1000),
            Clock::Millis => Some(raw),
            Clock::Ntp if raw == 0 => None,
            Clock::Ntp => {
                let (seconds, fraction) = (raw >> 32, raw & 0xffff_ffff);
                // NTP's seconds wrap in 2036.
                let era = if seconds < NTP_TO_UNIX { 1 << 32 } else { 0 };
                Some((seconds + era - NTP_TO_UNIX) * 1000 + ((fraction * 1000) >> 32))
            }
            Clock::MicrosBefore => self.export_ms?.checked_sub(raw / 1000),
        }
    }

    /// Sets the times of the first and last packet.
    #[inline]
    pub(crate) fn set(&self, record: &mut FlowRecord, program: &Program, init: Option<u64>) {
        let init = record.get(Slot::SystemInit).or(init);
        let read = |slot, clock| self.unix_ms(clock, record.get(slot)?, init);
        let mut start = read(Slot::RawStart, program.start);
        let mut end = read(Slot::RawEnd, program.end);
        if let Some(duration) = record.get(Slot::Duration).map(|micros| micros / 1000) {
            end = end.or_else(|| start?.checked_add(duration));
            start = start.or_else(|| end?.checked_sub(duration));
        }
        for (slot, time) in [(Slot::Start, start), (Slot::End, end)] {
            if let Some(time) = time {
                record.set(slot, time);
            }
        }
    }
}

/// The sampling rates that a domain's exporter has announced.
pub(crate) struct Rates<'a> {
    domain: &'a Domain,
    common: Option<u32>,
    by_interface: bool,
}

impl<'a> Rates<'a> {
    /// `session` is the rate for all domains of the exporter.
    pub(crate) fn of(domain: &'a Domain, session: Option<u32>) -> Self {
        let by_interface =
            domain.rates.last().is_some_and(|(key, _)| matches!(key, RateKey::Interface(_)));
        Self { domain, common: domain.common_rate().or(session), by_interface }
    }

    /// Sets the rate of a record: its own, its sampler's, its interface's, or that of all.
    #[inline]
    pub(crate) fn set(&self, record: &mut FlowRecord) {
        if record.has_any(SAMPLING) {
            self.of_record(record);
        }
        if record.has(Slot::Rate) {
            return;
        }
        let mut rate = self.common;
        if self.by_interface {
            let input =
                record.input().and_then(|input| self.domain.rate(RateKey::Interface(input)));
            rate = input.or(rate);
        }
        if let Some(rate) = rate {
            record.set(Slot::Rate, rate.into());
        }
    }

    fn of_record(&self, record: &mut FlowRecord) {
        let stated = record.get(Slot::Rate).filter(|rate| *rate > 0);
        let run = || record.get(Slot::SampledRun).zip(record.get(Slot::SampledGap));
        let size = || record.get(Slot::SampleSize).zip(record.get(Slot::SamplePopulation));
        let sampler = || self.domain.rate(RateKey::Sampler(record.get(Slot::Sampler)?));
        let rate = stated
            .or_else(|| run().and_then(|(run, gap)| ratio(run.saturating_add(gap), run)))
            .or_else(|| size().and_then(|(size, population)| ratio(population, size)))
            .or_else(|| sampler().map(u64::from));
        match rate {
            Some(rate) => record.set(Slot::Rate, rate),
            None => record.unset(Slot::Rate),
        }
    }
}

/// How many packets there are for each one that is taken, rounded; `None` if there is no such number.
pub(crate) fn ratio(all: u64, taken: u64) -> Option<u64> {
    let rounded = all.checked_add(taken / 2)?.checked_div(taken)?;
    Some(rounded).filter(|rate| *rate > 0)
}

impl<S: FlowSink> Work<'_, S> {
    /// Reads the records of a set and gives them to the sink. Returns how many there were.
    pub(crate) fn flows(
        &mut self,
        template: u16,
        data: &[u8],
        mut at: usize,
        end: usize,
        clocks: Clocks,
    ) -> u32 {
        let Some(template) = self.domain.templates.get(&template) else { return 0 };
        let (program, least) = (&template.program, template.least);
        let rates = Rates::of(self.domain, self.session_rate);
        let source = crate::FlowSource {
            exporter: self.exporter,
            key: self.key,
            time_ms: clocks.export_ms,
            domain: self.domain,
        };
        let (mut records, mut fault) = (0, None);
        while end.saturating_sub(at) >= least {
            let Some(next) = program.read(data, at, end, self.record) else {
                fault = Some(at);
                break;
            };
            if program.has_times() {
                clocks.set(self.record, program, self.domain.system_init);
            }
            rates.set(self.record);
            self.sink.flow(self.record, &source);
            records += 1;
            at = next;
        }
        self.counts.flows += u64::from(records);
        if let Some(at) = fault {
            self.fault(at, crate::ExportFaultKind::Record);
        }
        records
    }
}
