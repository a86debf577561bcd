//! Sets of templates, options and flows, which NetFlow v9 and IPFIX share.

use crate::ExportProtocol;
use crate::bytes::{Cursor, u16_at};
use crate::decoder::{FlowSink, Work};
use crate::fault::ExportFaultKind;
use crate::state::Held;
use crate::template::{Spec, Template};
use crate::times::Clocks;

/// A set: its number, and where its content is.
#[derive(Clone, Copy)]
struct Set {
    number: u16,
    at: usize,
    end: usize,
}

impl Set {
    fn at(data: &[u8], at: usize) -> Option<Self> {
        let (number, len) = (u16_at(data, at)?, usize::from(u16_at(data, at + 2)?));
        let end = at + len;
        (len >= 4 && end <= data.len()).then_some(Self { number, at: at + 4, end })
    }
}

impl<S: FlowSink> Work<'_, S> {
    /// Decodes the sets of a message. Returns the number of data records; `None` if it is not known, because a template
    /// is.
    pub(crate) fn sets(&mut self, data: &[u8], mut at: usize, clocks: Clocks) -> Option<u32> {
        let (flows, options) = match self.key.protocol {
            ExportProtocol::Ipfix => (2, 3),
            _ => (0, 1),
        };
        let mut records = Some(0u32);
        while let Some(set) = Set::at(data, at) {
            if set.number == flows || set.number == options {
                self.templates(data, set, set.number == options);
            } else if set.number < 256 {
                self.fault(at, ExportFaultKind::SetNumber(set.number));
            } else {
                let here = self.data(data, set, clocks);
                records = records.zip(here).map(|(all, here)| all.wrapping_add(here));
            }
            at = set.end;
        }
        records
    }

    /// Decodes the records of a set; `None` if its template is not known.
    fn data(&mut self, data: &[u8], set: Set, clocks: Clocks) -> Option<u32> {
        let tick = self.tick;
        let Some(template) = self.domain.templates.get_mut(&set.number) else {
            if set.end > set.at {
                self.hold(data, set);
            }
            return None;
        };
        template.used = tick;
        Some(match template.scopes {
            None => self.flows(set.number, data, set.at, set.end, clocks),
            Some(_) => self.options(set.number, data, set.at, set.end),
        })
    }

    /// Keeps a set, with its message's header, until its template comes.
    fn hold(&mut self, data: &[u8], set: Set) {
        let header = match self.key.protocol {
            ExportProtocol::Ipfix => crate::ipfix::HEADER,
            _ => crate::v9::HEADER,
        };
        let message = [&data[..header], &data[set.at - 4..set.end]].concat().into_boxed_slice();
        let held = Held { template: set.number, message };
        let dropped = match self.limits.held {
            0 => 1,
            limit => {
                self.counts.held += 1;
                self.domain.hold(held, limit)
            }
        };
        self.counts.dropped += dropped;
    }

    /// Decodes the sets that waited for a template.
    fn release(&mut self, template: u16) {
        while let Some(held) = self.domain.release(template) {
            let (header, clocks) = match self.key.protocol {
                ExportProtocol::Ipfix => {
                    (crate::ipfix::HEADER, crate::ipfix::clocks(&held.message))
                }
                _ => (crate::v9::HEADER, crate::v9::clocks(&held.message)),
            };
            if let Some(set) = Set::at(&held.message, header) {
                self.data(&held.message, set, clocks);
                self.counts.released += 1;
            }
        }
    }

    /// Reads the templates of a set.
    fn templates(&mut self, data: &[u8], set: Set, options: bool) {
        let mut cursor = Cursor { data, at: set.at, end: set.end };
        // Fewer bytes, or zeros, are padding.
        while cursor.left() >= 4 && data[cursor.at..set.end].iter().any(|byte| *byte != 0) {
            let at = cursor.at;
            if let Err(kind) = self.template(&mut cursor, options) {
                self.fault(at, kind);
                // Where the next template begins is known after some faults only.
                if !matches!(kind, ExportFaultKind::TemplateLength) {
                    return;
                }
            }
        }
    }

    fn template(&mut self, cursor: &mut Cursor<'_>, options: bool) -> Result<(), ExportFaultKind> {
        let cut = ExportFaultKind::TemplateCut;
        let ipfix = self.key.protocol == ExportProtocol::Ipfix;
        let number = cursor.u16().ok_or(cut)?;
        let first = cursor.u16().ok_or(cut)?;
        if ipfix && first == 0 {
            self.withdraw(number, options);
            return Ok(());
        }
        if number < 256 {
            return Err(ExportFaultKind::TemplateNumber(number));
        }
        let (fields, scopes) = match (options, ipfix) {
            (false, _) => (first, None),
            (true, true) => (first, Some(cursor.u16().ok_or(cut)?)),
            (true, false) => {
                // NetFlow v9 has the lengths of both lists in bytes.
                let bytes = cursor.u16().ok_or(cut)?;
                if first % 4 != 0 || bytes % 4 != 0 {
                    return Err(ExportFaultKind::Scope);
                }
                ((first / 4).saturating_add(bytes / 4), Some(first / 4))
            }
        };
        if scopes.is_some_and(|scopes| scopes > fields || ipfix && scopes == 0) {
            return Err(ExportFaultKind::Scope);
        }
        if fields > self.limits.fields {
            return Err(ExportFaultKind::TemplateFields(fields));
        }
        let mut specs = Vec::with_capacity(usize::from(fields).min(cursor.left() / 4));
        for _ in 0..fields {
            specs.push(spec(cursor, ipfix).ok_or(cut)?);
        }
        let template = Template::new(specs, scopes, ipfix, self.tick)?;
        let (redefined, forgotten) = self.domain.define(number, template, self.limits.templates);
        self.counts.templates += 1;
        self.counts.redefined += u64::from(redefined);
        self.counts.forgotten += u64::from(forgotten);
        self.release(number);
        Ok(())
    }

    /// Forgets a template; the number of a set of templates stands for all of its kind (RFC 7011, section 8.1).
    fn withdraw(&mut self, number: u16, options: bool) {
        let all: Vec<u16> = match number {
            2 | 3 => self.domain.templates.iter(),
            _ => {
                self.counts.withdrawn += u64::from(self.domain.remove(number));
                return;
            }
        }
        .filter(|(_, template)| template.scopes.is_some() == options)
        .map(|(number, _)| *number)
        .collect();
        for number in all {
            self.counts.withdrawn += u64::from(self.domain.remove(number));
        }
    }
}

/// Reads a field of a template. The upper bit of a number announces an enterprise in IPFIX.
fn spec(cursor: &mut Cursor<'_>, ipfix: bool) -> Option<Spec> {
    let (number, len) = (cursor.u16()?, cursor.u16()?);
    if ipfix && number & 0x8000 != 0 {
        let enterprise = cursor.u32()?;
        return Some(Spec { enterprise, number: number & 0x7fff, len });
    }
    Some(Spec { enterprise: 0, number, len })
}
