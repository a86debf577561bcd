//! Writes rules in our own format.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::values::protocol_name;
use crate::rules::{Quoted, ones};
use crate::{Condition, Field, Rule};

/// The line that [`read`](super::read) makes this rule of; [`Rule::line`](crate::Rule::line) is not part of it.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.priority != 0 {
            write!(f, "priority {} ", self.priority)?;
        }
        let conditions = conditions(self);
        if conditions.is_empty() {
            f.write_str("any ")?;
        }
        for (field, condition) in conditions {
            write!(f, "{} ", Written(field, condition))?;
        }
        write!(f, "-> {}", self.action)?;
        if let Some(label) = &self.label {
            write!(f, " label {}", Quoted(label))?;
        }
        Ok(())
    }
}

/// The conditions that bring all of the rule's, those left out that others bring.
fn conditions(rule: &Rule) -> Vec<(Field, Condition)> {
    let mut all = Vec::new();
    for field in Field::ALL {
        let (value, mask) =
            (rule.mask_match().flow().get(field), rule.mask_match().mask().get(field));
        if let Some(range) = rule.ranges().iter().find(|range| range.field == field) {
            all.push((field, Condition::Range(range.first, range.last)));
            // The bits that all values of the range have in common are in the mask, perhaps with others.
            let differ = 128 - (range.first ^ range.last).leading_zeros();
            let common = ones(field) & u128::MAX.checked_shl(differ).unwrap_or(0);
            if mask != common {
                all.push((field, Condition::Masked(value, mask)));
            }
        } else if mask == ones(field) {
            all.push((field, Condition::Is(value)));
        } else if mask != 0 {
            let len = (mask << (128 - field.bits())).leading_ones();
            let is_prefix = mask.count_ones() == len;
            all.push((
                field,
                match is_prefix {
                    true => Condition::Prefix(value, len),
                    false => Condition::Masked(value, mask),
                },
            ));
        }
    }
    let mut at = 0;
    while at < all.len() {
        let mut fewer = all.clone();
        fewer.remove(at);
        let made =
            fewer.iter().try_fold(Rule::new(rule.action.clone()), |rule, (field, condition)| {
                rule.when(*field, *condition)
            });
        let same =
            |made: &Rule| made.mask_match() == rule.mask_match() && made.ranges() == rule.ranges();
        if made.as_ref().is_ok_and(same) { all = fewer } else { at += 1 }
    }
    all
}

struct Written(Field, Condition);

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(field, condition) = *self;
        match field {
            Field::Ipv4Src | Field::Ipv6Src => f.write_str("src ")?,
            Field::Ipv4Dst | Field::Ipv6Dst => f.write_str("dst ")?,
            Field::SrcPort => f.write_str("sport ")?,
            Field::DstPort => f.write_str("dport ")?,
            Field::Protocol => match condition {
                Condition::Is(6) => return f.write_str("tcp"),
                Condition::Is(17) => return f.write_str("udp"),
                Condition::Is(number) => {
                    return match protocol_name(number) {
                        Some(name) => write!(f, "proto {name}"),
                        None => write!(f, "proto {number}"),
                    };
                }
                _ => f.write_str("protocol ")?,
            },
            _ => write!(f, "{field} ")?,
        }
        let value = |value: u128| Value(field, value);
        let is_address =
            matches!(field, Field::Ipv4Src | Field::Ipv4Dst | Field::Ipv6Src | Field::Ipv6Dst);
        match condition {
            Condition::Is(is) => write!(f, "{}", value(is)),
            Condition::Prefix(is, len) if is_address => write!(f, "{}/{len}", value(is)),
            Condition::Prefix(is, len) => {
                let low = ones(field).checked_shr(len).unwrap_or(0);
                write!(f, "{}-{}", value(is), value(is | low))
            }
            Condition::Masked(is, mask) if is_address => write!(f, "{}/{}", value(is), value(mask)),
            Condition::Masked(is, mask) => write!(f, "{is:#x}/{mask:#x}"),
            Condition::Range(first, last) => write!(f, "{}-{}", value(first), value(last)),
        }
    }
}

struct Value(Field, u128);

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(field, value) = *self;
        match field {
            Field::Ipv4Src | Field::Ipv4Dst => Ipv4Addr::from_bits(value as u32).fmt(f),
            Field::Ipv6Src | Field::Ipv6Dst => Ipv6Addr::from_bits(value).fmt(f),
            Field::EthSrc | Field::EthDst => {
                let [_, _, a, b, c, d, e, g] = (value as u64).to_be_bytes();
                write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
            }
            Field::EthType | Field::TcpFlags | Field::VlanTpid | Field::InnerVlanTpid => {
                write!(f, "{value:#x}")
            }
            _ => value.fmt(f),
        }
    }
}
