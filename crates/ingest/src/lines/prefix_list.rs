//! Prefix lists of routers, with what they permit and deny.
//!
//! ```text
//! ip prefix-list customers seq 5 permit 10.0.0.0/8 ge 9 le 24
//! ipv6 prefix-list customers deny 2001:db8::/32
//! ```

use std::borrow::Cow;

use fibula_core::{AnyPrefix, Attributes, Change, ColumnKind, Update, Value};

use super::{Form, excerpt};
use crate::{ColumnDecl, Sink, SourceInfo};

const COLUMNS: [(&str, ColumnKind); 5] = [
    ("list", ColumnKind::Str),
    ("sequence", ColumnKind::Int),
    ("action", ColumnKind::Str),
    ("ge", ColumnKind::Int),
    ("le", ColumnKind::Int),
];

pub(super) fn is_line(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    matches!(*words, ["ip" | "ipv6", "prefix-list", _, ref rest @ ..]
        if rest.contains(&"permit") || rest.contains(&"deny"))
}

pub(super) struct PrefixList;

impl Form for PrefixList {
    fn info(&self) -> SourceInfo {
        let decl = |(name, kind): (&str, ColumnKind)| ColumnDecl { name: name.to_owned(), kind };
        SourceInfo {
            format: "prefix-list",
            columns: COLUMNS.map(decl).to_vec(),
            ..SourceInfo::default()
        }
    }

    fn line(&mut self, line: &str, sink: &mut dyn Sink) -> Result<(), Cow<'static, str>> {
        let wrong = || format!("not an entry of a prefix list: {}", excerpt(line));
        let words: Vec<&str> = line.split_whitespace().collect();
        let (list, rest) = match *words {
            // What bgpq4 and others print before a list, and a router between lists.
            ["no", "ip" | "ipv6", "prefix-list", ..] | ["!"] => return Ok(()),
            ["ip" | "ipv6", "prefix-list", _, "description", ..] => return Ok(()),
            ["ip" | "ipv6", "prefix-list", list, ref rest @ ..] => (list, rest),
            _ => return Err(wrong().into()),
        };
        let (sequence, rest) = match *rest {
            ["seq", number, ref rest @ ..] => {
                (Value::Int(number.parse().map_err(|_| wrong())?), rest)
            }
            _ => (Value::Null, rest),
        };
        let [action @ ("permit" | "deny"), prefix, ref limits @ ..] = *rest else {
            return Err(wrong().into());
        };
        let prefix = prefix
            .split_once('/')
            .and_then(|(ip, len)| AnyPrefix::new(ip.parse().ok()?, len.parse().ok()?).ok());
        let prefix = prefix.ok_or_else(wrong)?;
        let (mut ge, mut le) = (Value::Null, Value::Null);
        let mut limits = limits.iter();
        while let Some(limit) = limits.next() {
            let number = limits.next().and_then(|number| number.parse().ok()).ok_or_else(wrong)?;
            match *limit {
                "ge" => ge = Value::Int(number),
                "le" => le = Value::Int(number),
                "eq" => (ge, le) = (Value::Int(number), Value::Int(number)),
                _ => return Err(wrong().into()),
            }
        }
        let values = [Value::Str(list), sequence, Value::Str(action), ge, le];
        sink.update(&Update::new(prefix, Change::Announce(Attributes::Values(&values))));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::decode;
    use crate::Format;

    #[test]
    fn entries() {
        let sink = decode(
            Format::PrefixList,
            "no ip prefix-list a\nip prefix-list a seq 5 permit 10.0.0.0/8 ge 9 le 24\n!\n\
             ip prefix-list a deny 192.0.2.0/24\nipv6 prefix-list b permit 2001:db8::/32 le 48\n\
             ip prefix-list a description x\n",
        );
        assert_eq!(
            sink.lines,
            [
                "10.0.0.0/8 = a, 5, permit, 9, 24",
                "192.0.2.0/24 = a, null, deny, null, null",
                "2001:db8::/32 = b, null, permit, null, 48",
            ]
        );
        assert_eq!(sink.damage.len(), 0);
        let sink = decode(
            Format::PrefixList,
            "ip prefix-list a permit 10.0.0.0/8\nip prefix-list a permit 10.0.0.1/8\nip prefix-list a permit 10.0.0.0/8 gt 9\nroute-map x\n",
        );
        assert_eq!((sink.lines.len(), sink.damage.len()), (1, 3));
    }
}
