//! The output of `ipset save`: sets of addresses and prefixes.
//!
//! ```text
//! create bad hash:net family inet hashsize 1024 maxelem 65536
//! add bad 203.0.113.0/24 timeout 300 comment "from a feed"
//! add bad 203.0.113.128/25 nomatch                              not in the set, though the /24 is
//! add web 192.0.2.1,tcp:80                                      the rest of the element is a value
//! ```

use std::borrow::Cow;

use fibula_core::{ColumnKind, Value};

use super::{Form, excerpt};
use crate::text::{Earlier, emit_key, parse_key};
use crate::{ColumnDecl, HostBits, Sink, SourceInfo};

/// `nomatch` has the set of elements that are exceptions, which have no `set`.
const COLUMNS: [&str; 5] = ["set", "nomatch", "element", "timeout", "comment"];

pub(super) fn is_line(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words[..] {
        ["create", _, kind, ..] => {
            ["hash:", "bitmap:", "list:"].iter().any(|family| kind.starts_with(family))
        }
        ["add" | "-A", _, element, ..] => {
            let address = element.split(',').next().unwrap_or_default();
            parse_key(address.as_bytes(), HostBits::Mask).is_ok()
        }
        _ => false,
    }
}

#[derive(Default)]
pub(super) struct Ipset {
    earlier: Earlier,
    record: u64,
}

impl Form for Ipset {
    fn info(&self) -> SourceInfo {
        let decl = |name: &str| ColumnDecl { name: name.to_owned(), kind: ColumnKind::Str };
        SourceInfo { format: "ipset", columns: COLUMNS.map(decl).to_vec(), ..SourceInfo::default() }
    }

    fn line(&mut self, line: &str, sink: &mut dyn Sink) -> Result<(), Cow<'static, str>> {
        self.record += 1;
        let (line, comment) = match line.split_once(" comment \"") {
            Some((line, comment)) => (line, comment.split('"').next()),
            None => (line, None),
        };
        let words: Vec<&str> = line.split_whitespace().collect();
        let (set, element, options) = match words[..] {
            ["create" | "-N", ..] | ["COMMIT"] => return Ok(()),
            ["add" | "-A", set, element, ref options @ ..] => (set, element, options),
            _ => return Err(format!("not a line of ipset save: {}", excerpt(line)).into()),
        };
        let (address, rest) = element.split_once(',').unwrap_or((element, ""));
        let key = parse_key(address.as_bytes(), HostBits::Mask)
            .map_err(|error| format!("{}: {}", error.text(), excerpt(address)))?;
        let (mut nomatch, mut timeout) = (false, None);
        let mut options = options.iter();
        while let Some(option) = options.next() {
            match *option {
                "nomatch" => nomatch = true,
                "timeout" => timeout = options.next().copied(),
                // Counters and marks of the kernel say nothing about the set.
                "packets" | "bytes" | "skbmark" | "skbprio" | "skbqueue" => drop(options.next()),
                other => {
                    return Err(format!(
                        "an option that could change the element: {}",
                        excerpt(other)
                    )
                    .into());
                }
            }
        }
        let values = [
            text(Some(set).filter(|_| !nomatch)),
            text(Some(set).filter(|_| nomatch)),
            text(Some(rest)),
            text(timeout),
            text(comment),
        ];
        emit_key(key, self.record, &mut self.earlier, &values, sink)
    }
}

fn text(text: Option<&str>) -> Value<'_> {
    text.filter(|text| !text.is_empty()).map_or(Value::Null, Value::Str)
}

#[cfg(test)]
mod tests {
    use super::super::decode;
    use crate::Format;

    #[test]
    fn sets() {
        let sink = decode(
            Format::Ipset,
            "create bad hash:net family inet hashsize 1024 maxelem 65536 comment\n\
             add bad 203.0.113.0/24 timeout 300 packets 1 bytes 60 comment \"a b\"\n\
             add bad 203.0.113.128/25 nomatch\nadd bad 192.0.2.1,tcp:80\nadd bad 10.0.0.0-10.0.0.3\n",
        );
        assert_eq!(
            sink.lines,
            [
                "203.0.113.0/24 = bad, null, null, 300, a b",
                "203.0.113.128/25 = null, bad, null, null, null",
                "192.0.2.1/32 = bad, null, tcp:80, null, null",
                "10.0.0.0/30 = bad, null, null, null, null",
            ]
        );
        assert_eq!(sink.damage.len(), 0);
        let sink = decode(
            Format::Ipset,
            "add bad 10.0.0.0/8\nadd bad 11.0.0.0/8 except\nadd bad eth0\ndel bad 10.0.0.0/8\n",
        );
        assert_eq!((sink.lines.len(), sink.damage.len()), (1, 3));
    }
}
