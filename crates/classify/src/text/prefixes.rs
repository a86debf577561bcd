//! Prefixes, one on each line: plain, followed by an action, or in the form of a router's prefix lists.

use super::draft::{Draft, words};
use super::{RuleOptions, RuleText, TextError, values};
use crate::{Action, Field};

pub(super) fn read(text: &str, options: &RuleOptions) -> Result<RuleText, TextError> {
    let mut out = RuleText::default();
    // A router's lists: `ip` or `ipv6`, name, and the number of the last entry.
    let mut lists: Vec<(&str, &str, u128)> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let words = words(line, number)?;
        let Some(&first) = words.first() else { continue };
        let (mut draft, mut rest) = (Draft::new(), &words[..]);
        let (mut action, mut family) = (None, None);
        // ip prefix-list NAME [seq NUMBER] permit|deny PREFIX
        if let [ip, list, name, more @ ..] = rest
            && matches!(ip.text, "ip" | "ipv6")
            && list.text == "prefix-list"
        {
            draft.label = Some(name.text.to_owned());
            family = Some(ip.text);
            let known = lists.iter().position(|list| (list.0, list.1) == (ip.text, name.text));
            let at = known.unwrap_or_else(|| {
                lists.push((ip.text, name.text, 0));
                lists.len() - 1
            });
            rest = more;
            if let [seq, number, more @ ..] = more
                && seq.text == "seq"
                && let Some(value) = values::number(number.text)
            {
                if known.is_some() && value <= lists[at].2 {
                    return Err(number.error(
                        "a router goes by the numbers: put the list's lines in the order of their numbers",
                    ));
                }
                (lists[at].2, rest) = (value, more);
            }
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
        let of_field = match field {
            Field::Ipv6Src | Field::Ipv6Dst => "ipv6",
            _ => "ip",
        };
        if family.is_some_and(|family| family != of_field) {
            return Err(prefix.error(format!("a prefix of `{of_field} prefix-list`")));
        }
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
    for family in ["ip", "ipv6"] {
        let names = lists.iter().filter(|list| list.0 == family).map(|list| list.1);
        let names: Vec<&str> = names.collect();
        if names.len() > 1 {
            out.notes.push(format!(
                "the prefix lists {} are read as one, in the order of their lines",
                names.join(", ")
            ));
        }
    }
    Ok(out)
}
