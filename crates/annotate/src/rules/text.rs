//! Flows and rules as text.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fibula_classify::{Field, Flow, RuleId, Rules};

use super::choice::ADDED;
use super::lookup::rule_numbers;
use crate::formats::Style;
use crate::formats::csv::scan::write_field;
use crate::formats::json::write_string;
use crate::write::{write_int, write_ip};

/// Writes the number of a packet or row and the five fields of its flow, separated by commas. Packets that are not IP
/// have empty fields.
pub(crate) fn write_flow(number: u64, flow: &Flow, out: &mut Vec<u8>) {
    write_int(number, out);
    out.push(b',');
    let ends: [IpAddr; 2] = match flow.get(Field::IpVersion) {
        4 => [Field::Ipv4Src, Field::Ipv4Dst]
            .map(|field| Ipv4Addr::from_bits(flow.get(field) as u32).into()),
        6 => [Field::Ipv6Src, Field::Ipv6Dst]
            .map(|field| Ipv6Addr::from_bits(flow.get(field)).into()),
        _ => return out.extend_from_slice(b",,,,"),
    };
    for ip in ends {
        write_ip(ip, out);
        out.push(b',');
    }
    write_int(flow.get(Field::Protocol) as u8, out);
    out.push(b',');
    let ports = match flow.get(Field::Transport) {
        1 => Some((Field::SrcPort, Field::DstPort)),
        2 => Some((Field::IcmpType, Field::IcmpCode)),
        _ => None,
    };
    match ports {
        Some((from, to)) => {
            write_int(flow.get(from) as u16, out);
            out.push(b',');
            write_int(flow.get(to) as u16, out);
        }
        None => out.push(b','),
    }
}

/// The text of rules, as it is added to rows. It is rendered when a rule is hit first.
pub(crate) struct RuleText {
    style: Style,
    /// The text of each rule; the last one is for rows without a rule.
    texts: Vec<Vec<u8>>,
}

impl RuleText {
    pub(crate) fn new(rules: &Rules, style: Style) -> Self {
        Self { style, texts: vec![Vec::new(); rule_numbers(rules) + 1] }
    }

    /// The names of the columns, as they are added to a header.
    pub(crate) fn header(&self) -> Vec<u8> {
        let mut header = Vec::new();
        if let Style::Fields(dialect) = self.style {
            for name in ADDED {
                header.push(dialect.delimiter);
                header.extend_from_slice(name.as_bytes());
            }
        }
        header
    }

    /// The values of a rule, or of none, as members or fields behind others.
    #[inline]
    pub(crate) fn of(&mut self, rules: &Rules, id: Option<RuleId>) -> &[u8] {
        let at = id.map_or(self.texts.len() - 1, |id| id.0 as usize);
        if self.texts[at].is_empty() {
            self.texts[at] = self.render(rules, id);
        }
        &self.texts[at]
    }

    #[cold]
    fn render(&self, rules: &Rules, id: Option<RuleId>) -> Vec<u8> {
        let rule = id.and_then(|id| rules.get(id));
        let line = rule.map(|rule| rule.line.to_string());
        let action = rule.map(|rule| rule.action.to_string());
        let label = rule.and_then(|rule| rule.label.as_deref());
        let mut out = Vec::new();
        for (name, value) in ADDED.into_iter().zip([line.as_deref(), action.as_deref(), label]) {
            match self.style {
                Style::Fields(dialect) => {
                    out.push(dialect.delimiter);
                    write_field(value.unwrap_or_default().as_bytes(), dialect, &mut out);
                }
                Style::Members => {
                    out.push(b',');
                    write_string(name, &mut out);
                    out.push(b':');
                    match value {
                        None => out.extend_from_slice(b"null"),
                        Some(value) if name == ADDED[0] => out.extend_from_slice(value.as_bytes()),
                        Some(value) => write_string(value, &mut out),
                    }
                }
                // Rules are not added to streams.
                Style::Wire(_) => {}
            }
        }
        out
    }
}
