//! What `fibula diff` prints: `+` and `~` lines are routes of the later table, `-` lines are none.
//!
//! ```text
//! + 192.0.2.0/24  origin_as 64500, country CH
//! ~ 198.51.100.0/24  origin_as 64501 -> 64502
//! - 203.0.113.0/24  origin_as 64503
//! ```

use std::borrow::Cow;

use fibula_core::{Attributes, Change, ColumnKind, Update, Value};

use super::{Form, excerpt};
use crate::{ColumnDecl, Sink, SourceInfo};

const COLUMNS: [&str; 2] = ["change", "values"];

pub(super) fn is_line(line: &str) -> bool {
    // Lists of YAML begin with `- `, too, but the values stand behind two blanks here.
    let rest = ["+ ", "- ", "~ "].iter().find_map(|sign| line.strip_prefix(sign));
    rest.and_then(|rest| rest.split_once("  ")).is_some_and(|(prefix, values)| {
        prefix.parse::<fibula_core::AnyPrefix>().is_ok() && values.contains(' ')
    })
}

pub(super) struct Differences;

impl Form for Differences {
    fn info(&self) -> SourceInfo {
        let decl = |name: &str| ColumnDecl { name: name.to_owned(), kind: ColumnKind::Str };
        SourceInfo { format: "diff", columns: COLUMNS.map(decl).to_vec(), ..SourceInfo::default() }
    }

    fn line(&mut self, line: &str, sink: &mut dyn Sink) -> Result<(), Cow<'static, str>> {
        let (sign, rest) = line.split_once(' ').unwrap_or((line, ""));
        let change = match sign {
            "+" => "added",
            "~" => "changed",
            "-" => {
                sink.ignored("prefixes that only the earlier table has");
                return Ok(());
            }
            _ => return Err(format!("not a line of fibula diff: {}", excerpt(line)).into()),
        };
        let (prefix, values) = rest.split_once("  ").unwrap_or((rest, ""));
        let prefix = prefix.parse().map_err(|_| format!("not a prefix: {}", excerpt(prefix)))?;
        let values = if values.is_empty() { Value::Null } else { Value::Str(values) };
        let values = [Value::Str(change), values];
        sink.update(&Update::new(prefix, Change::Announce(Attributes::Values(&values))));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::decode;
    use crate::Format;

    #[test]
    fn differences() {
        let sink = decode(
            Format::Diff,
            "+ 192.0.2.0/24  asn 64500, country CH\n~ 198.51.100.0/24  asn 64501 -> 64502\n- 203.0.113.0/24  asn 1\n",
        );
        let expected = [
            "192.0.2.0/24 = added, asn 64500, country CH",
            "198.51.100.0/24 = changed, asn 64501 -> 64502",
        ];
        assert_eq!(sink.lines, expected);
        assert_eq!((sink.damage.len(), sink.ignored), (0, 1));
    }
}
