//! Records of options: sampling rates, names of interfaces and VRFs, the exporter's start.

use crate::ExportProtocol;
use crate::bytes::integer;
use crate::decoder::{FlowSink, Work};
use crate::fault::ExportFaultKind;
use crate::state::{Domain, RateKey};
use crate::template::{Spec, Template, VARIABLE, variable};
use crate::times::ratio;

/// The fields of a record that are understood.
#[derive(Default)]
struct Found<'a> {
    sampler: Option<u64>,
    interface: Option<u64>,
    vrf: Option<u64>,
    interval: Option<u64>,
    run: Option<u64>,
    gap: Option<u64>,
    size: Option<u64>,
    population: Option<u64>,
    system_init: Option<u64>,
    interface_name: Option<&'a [u8]>,
    interface_description: Option<&'a [u8]>,
    vrf_name: Option<&'a [u8]>,
}

impl<'a> Found<'a> {
    fn field(&mut self, spec: &Spec, bytes: &'a [u8]) {
        if spec.enterprise != 0 {
            return;
        }
        let place = match spec.number {
            10 | 14 => &mut self.interface,
            34 | 50 => &mut self.interval,
            48 | 302 => &mut self.sampler,
            160 => &mut self.system_init,
            234 | 235 => &mut self.vrf,
            305 => &mut self.run,
            306 => &mut self.gap,
            309 => &mut self.size,
            310 => &mut self.population,
            82 => return self.interface_name = Some(bytes),
            83 => return self.interface_description = Some(bytes),
            236 => return self.vrf_name = Some(bytes),
            _ => return,
        };
        *place = place.or(integer(bytes));
    }

    /// A field of NetFlow v9's own numbers for scopes: 1 system, 2 interface, 3 line card, 4 cache, 5 template.
    fn scope(&mut self, spec: &Spec, bytes: &'a [u8]) {
        match spec.number {
            2 => self.interface = integer(bytes),
            1 | 3..=5 => {}
            _ => self.field(spec, bytes),
        }
    }

    fn rate(&self) -> Option<u32> {
        let run = self.run.zip(self.gap);
        let rate = self.interval.filter(|rate| *rate > 0);
        let rate = rate.or_else(|| run.and_then(|(run, gap)| ratio(run.saturating_add(gap), run)));
        let size = self.size.zip(self.population);
        let rate = rate.or_else(|| size.and_then(|(size, population)| ratio(population, size)));
        rate.and_then(|rate| rate.try_into().ok())
    }

    fn keep(&self, domain: &mut Domain, limit: usize) {
        let interface = self.interface.and_then(|number| u32::try_from(number).ok());
        if let Some(rate) = self.rate() {
            let key = match (self.sampler, interface) {
                (Some(sampler), _) => RateKey::Sampler(sampler),
                (None, Some(interface)) => RateKey::Interface(interface),
                (None, None) => RateKey::All,
            };
            domain.set_rate(key, rate, limit);
        }
        // The name is the short one, `Gi0/1`; some exporters send only the description.
        let name = self.interface_name.or(self.interface_description);
        if let (Some(interface), Some(name)) = (interface, name) {
            domain.name_interface(interface, name, limit);
        }
        if let (Some(vrf), Some(name)) = (self.vrf, self.vrf_name)
            && let Ok(vrf) = u32::try_from(vrf)
        {
            domain.name_vrf(vrf, name, limit);
        }
        domain.system_init = self.system_init.or(domain.system_init);
    }
}

/// Reads a record; `None` if a field does not fit.
fn read<'a>(
    template: &Template,
    v9: bool,
    data: &'a [u8],
    at: &mut usize,
    end: usize,
) -> Option<Found<'a>> {
    let mut found = Found::default();
    for (index, spec) in template.specs.iter().enumerate() {
        let bytes = match spec.len {
            VARIABLE if !v9 => variable(data, at, end)?,
            len => {
                let bytes = data.get(*at..*at + usize::from(len))?;
                *at += usize::from(len);
                bytes
            }
        };
        if *at > end {
            return None;
        }
        if v9 && template.scopes.is_some_and(|scopes| index < usize::from(scopes)) {
            found.scope(spec, bytes);
        } else {
            found.field(spec, bytes);
        }
    }
    Some(found)
}

impl<S: FlowSink> Work<'_, S> {
    /// Reads the records of a set of options. Returns how many there were.
    pub(crate) fn options(&mut self, number: u16, data: &[u8], mut at: usize, end: usize) -> u32 {
        let v9 = self.key.protocol == ExportProtocol::NetflowV9;
        // It is put back: the domain's other parts change while it is read.
        let Some(template) = self.domain.templates.remove(&number) else { return 0 };
        let (mut records, mut fault) = (0, None);
        while end.saturating_sub(at) >= template.least {
            let start = at;
            let Some(found) = read(&template, v9, data, &mut at, end) else {
                fault = Some(start);
                break;
            };
            found.keep(self.domain, self.limits.names);
            records += 1;
        }
        self.domain.templates.insert(number, template);
        self.counts.options += u64::from(records);
        if let Some(at) = fault {
            self.fault(at, ExportFaultKind::Record);
        }
        records
    }
}
