//! Filters of ClassBench and ClassBench-ng: `@SRC DST FIRST : LAST FIRST : LAST PROTOCOL/MASK [FLAGS/MASK]`.

use super::draft::{Draft, Word, words};
use super::{RuleText, TextError, values};
use crate::{Action, Condition, Field};

const FORM: &str = "a filter is @SRC DST FIRST : LAST FIRST : LAST PROTOCOL/MASK";

pub(super) fn read(text: &str) -> Result<RuleText, TextError> {
    let (mut out, mut with_flags) = (RuleText::default(), 0u64);
    for (number, line) in (1..).zip(text.lines()) {
        let words = words(line, number)?;
        let Some(&first) = words.first() else { continue };
        let [src, dst, a, colon, b, c, colon2, d, protocol, ref flags @ ..] = words[..] else {
            return Err(first.error(FORM));
        };
        let Some(source) = src.text.strip_prefix('@') else {
            return Err(src.error(format!("no @ in front: {FORM}")));
        };
        if let Some(other) = [colon, colon2].iter().find(|word| word.text != ":") {
            return Err(other.error(FORM));
        }
        let mut draft = Draft::new();
        for (word, text, is_source) in [(src, source, true), (dst, dst.text, false)] {
            let (field, condition) =
                values::addresses(text, is_source).ok_or_else(|| word.error("not a prefix"))?;
            draft.is(word, field, condition);
        }
        for (field, first, last) in [(Field::SrcPort, a, b), (Field::DstPort, c, d)] {
            let (first_port, last_port) = (port(first)?, port(last)?);
            // The whole range is written for "any": packets without ports match it.
            if (first_port, last_port) != (0, 65_535) {
                draft.is(first, field, Condition::Range(first_port, last_port));
            }
        }
        let (value, mask) = masked(protocol)?;
        if mask != 0 {
            draft.is(protocol, Field::Protocol, Condition::Masked(value & mask, mask));
        }
        if let [flags, rest @ ..] = flags {
            with_flags += u64::from(masked(*flags)?.1 != 0);
            if let Some(rest) = rest.iter().find(|word| values::number(word.text).is_none()) {
                return Err(rest.error(FORM));
            }
        }
        draft.finish(first, &Action::ALLOW, &mut out)?;
    }
    if with_flags > 0 {
        out.notes.push(format!(
            "{with_flags} filters have flags; ClassBench does not say which bits of a packet they are, so they were left out"
        ));
    }
    Ok(out)
}

fn port(word: Word<'_>) -> Result<u128, TextError> {
    let port = values::number(word.text).filter(|port| *port <= 65_535);
    port.ok_or_else(|| word.error("not a port, 0 to 65535"))
}

fn masked(word: Word<'_>) -> Result<(u128, u128), TextError> {
    let both = word
        .text
        .split_once('/')
        .and_then(|(value, mask)| Some((values::number(value)?, values::number(mask)?)));
    both.ok_or_else(|| word.error("not a value and its mask, as 0x06/0xFF"))
}
