//! Our own format.
//!
//! ```text
//! line      = [ "priority" NUMBER ] condition... "->" action [ "label" TEXT ]
//! condition = "any" | "tcp" | "udp" | "icmp" | "icmp6" | "proto" PROTOCOL
//!           | "src" ADDRESSES | "dst" ADDRESSES | "sport" PORTS | "dport" PORTS
//!           | FIELD VALUE | FIELD VALUE "/" MASK | FIELD FIRST "-" LAST
//! action    = "drop" | "allow" | [ "allow" ] [ "mark" NUMBER ] [ "vrf" NAME | "table" NUMBER ]
//! ```

use super::draft::{Draft, Word, unquoted, words};
use super::{RuleText, TextError, values};
use crate::{Action, Condition, Field, Table};

pub(super) fn read(text: &str) -> Result<RuleText, TextError> {
    let mut out = RuleText::default();
    for (number, line) in (1..).zip(text.lines()) {
        let words = words(line, number)?;
        if let Some(first) = words.first() {
            rule(*first, &words, &mut out)?;
        }
    }
    Ok(out)
}

fn rule(first: Word<'_>, words: &[Word<'_>], out: &mut RuleText) -> Result<(), TextError> {
    let Some(arrow) = words.iter().position(|word| word.text == "->") else {
        return Err(first.error("the line has no action: add `-> drop` or `-> allow` at its end"));
    };
    let (conditions, action) = (&words[..arrow], &words[arrow + 1..]);
    let mut draft = Draft::new();
    let mut rest = conditions.iter().copied();
    let (mut at, mut conditions) = (0, 0);
    while let Some(word) = rest.next() {
        conditions += u32::from(word.text != "priority");
        let mut value = || {
            rest.next()
                .ok_or_else(|| word.error(format!("`{}` needs a value behind it", word.text)))
        };
        match word.text {
            "any" => {}
            "priority" if at == 0 => {
                let number = value()?;
                draft.priority = values::number(number.text)
                    .and_then(|number| u32::try_from(number).ok())
                    .ok_or_else(|| number.error("a priority is a number up to 4294967295"))?;
            }
            "priority" => return Err(word.error("`priority` stands at the line's beginning")),
            "src" | "dst" => {
                let addresses = value()?;
                let (field, condition) = values::addresses(addresses.text, word.text == "src")
                    .ok_or_else(|| {
                        addresses
                            .error("not an address, a prefix or two addresses with a `-` between")
                    })?;
                draft.is(addresses, field, condition);
            }
            "sport" | "dport" => {
                let ports = value()?;
                let field = if word.text == "sport" { Field::SrcPort } else { Field::DstPort };
                let condition = values::any(field, ports.text)
                    .ok_or_else(|| ports.error("not a port or two ports with a `-` between"))?;
                draft.is(ports, field, condition);
            }
            "proto" => {
                let name = value()?;
                let number = values::protocol(name.text)
                    .ok_or_else(|| name.error("not a protocol: give its number, 0 to 255"))?;
                draft.is(name, Field::Protocol, Condition::Is(number.into()));
            }
            "tcp" | "udp" | "icmp" | "icmp6" | "sctp" | "gre" | "esp" => {
                let number = values::protocol(word.text).unwrap_or_default();
                draft.is(word, Field::Protocol, Condition::Is(number.into()));
            }
            name => {
                let field: Field = name.parse().map_err(|_| {
                    word.error(format!(
                        "`{name}` is no condition: any, src, dst, sport, dport, proto, tcp, udp, icmp, icmp6 or a \
                         field's name ({})",
                        Field::ALL.map(Field::name).join(", ")
                    ))
                })?;
                let text = value()?;
                let condition = values::any(field, text.text).ok_or_else(|| {
                    text.error(format!(
                        "not a value of {field} ({} bits): VALUE, VALUE/MASK or FIRST-LAST",
                        field.bits()
                    ))
                })?;
                draft.is(text, field, condition);
            }
        }
        at += 1;
    }
    if conditions == 0 {
        return Err(words[arrow].error("a rule for all packets begins with `any`"));
    }
    let action = self::action(words[arrow], action, &mut draft)?;
    draft.finish(first, &action, out)
}

fn action(arrow: Word<'_>, words: &[Word<'_>], draft: &mut Draft<'_>) -> Result<Action, TextError> {
    let (mut drop, mut allow, mut mark, mut table) = (false, false, 0, Table::Default);
    let mut rest = words.iter().copied();
    while let Some(word) = rest.next() {
        let mut value = || {
            rest.next()
                .ok_or_else(|| word.error(format!("`{}` needs a value behind it", word.text)))
        };
        let number = |word: Word<'_>| {
            values::number(word.text)
                .and_then(|number| u16::try_from(number).ok())
                .ok_or_else(|| word.error("a number up to 65535 is needed"))
        };
        match word.text {
            "drop" => drop = true,
            "allow" => allow = true,
            "mark" if mark != 0 => return Err(word.error("a packet has one mark only")),
            "mark" => {
                let text = value()?;
                mark = number(text)?;
                if mark == 0 {
                    return Err(text.error("the mark 0 is none: leave it out"));
                }
                allow = true;
            }
            "table" if table == Table::Default => {
                table = Table::Number(number(value()?)?);
                allow = true;
            }
            "vrf" if table == Table::Default => {
                table = Table::Name(unquoted(value()?.text).into());
                allow = true;
            }
            "vrf" | "table" => return Err(word.error("a packet is looked up in one table only")),
            "label" if draft.label.is_some() => {
                return Err(word.error("a rule has one label only"));
            }
            "label" => draft.label = Some(unquoted(value()?.text)),
            name => {
                return Err(word.error(format!(
                    "`{name}` is no action: drop, allow, mark NUMBER, vrf NAME, table NUMBER, label TEXT"
                )));
            }
        }
    }
    match (drop, allow) {
        (true, false) => Ok(Action::Drop),
        (false, true) => Ok(Action::Allow { mark, table }),
        (true, true) => Err(arrow.error("a packet cannot be dropped and allowed: leave one out")),
        (false, false) => Err(arrow.error("the action is missing behind `->`: drop or allow")),
    }
}
