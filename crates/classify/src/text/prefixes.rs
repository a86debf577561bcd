//! Prefixes, one on each line: plain, followed by an action, or in the form of a router's prefix lists.

use super::draft::{Draft, words};
use super::{RuleOptions, RuleText, TextError, values};
use crate::Action;

pub(super) fn read(text: &str, options: &RuleOptions) -> Result<RuleText, TextError> {
    let mut out = RuleText::default();
    for (number, line) in (1..).zip(text.lines()) {
        let words = words(line, number)?;
        let Some(&first) = words.first() else { continue };
        let (mut draft, mut rest) = (Draft::new(), &words[..]);
        let mut action = None;
        // ip prefix-list NAME [seq NUMBER] permit|deny PREFIX
        if let [ip, list, name, more @ ..] = rest
            && matches!(ip.text, "ip" | "ipv6")
            && list.text == "prefix-list"
        {
            draft.label = Some(name.text.to_owned());
            rest = match more {
                [seq, number, more @ ..]
                    if seq.text == "seq" && values::number(number.text).is_some() =>
                {
                    more
                }
                _ => more,
            };
            let Some((word, more)) = rest.split_first() else {
                return Err(name.error("`permit` or `deny` is missing behind the name"));
            };
            action = Some(match word.text {
                "permit" => Action::ALLOW,
                "deny" => Action::Drop,
                "description" => continue,
                _ => return Err(word.error("`permit` or `deny` was expected")),
            });
            rest = more;
        }
        let [prefix, rest @ ..] = rest else {
            return Err(first.error("the line has no prefix"));
        };
        let (field, condition) =
            values::addresses(prefix.text, options.source).ok_or_else(|| {
                prefix.error("not a prefix, an address or two addresses with a `-` between")
            })?;
        draft.is(*prefix, field, condition);
        if let Some(word) = rest.first() {
            action = Some(match word.text {
                "permit" | "allow" | "accept" if action.is_none() => Action::ALLOW,
                "deny" | "drop" | "reject" if action.is_none() => Action::Drop,
                "ge" | "le" => {
                    return Err(word.error(
                        "`ge` and `le` are about lengths of routes, which packets do not have: leave them out",
                    ));
                }
                _ => return Err(word.error("nothing but `allow` or `drop` may follow the prefix")),
            });
            if let Some(more) = rest.get(1) {
                return Err(more.error("nothing may follow the action"));
            }
        }
        draft.finish(first, action.as_ref().unwrap_or(&options.action), &mut out)?;
    }
    Ok(out)
}
