//! JSON: the address ranges of providers, and arrays of prefixes or of objects with prefixes.
//!
//! An object with a member that is called as columns of prefixes are (`prefix`, `cidr`, ...) is about that prefix; its
//! netmask or length may be another member, and two members may be a range. In other objects and in lists every text
//! that is a prefix or a range becomes a route, anywhere in the document. The values of a route are the other texts,
//! numbers and booleans of its object and of the objects around it, and the name of the list that contains it:
//!
//! | document | a route has |
//! |---|---|
//! | `{"prefixes": [{"ip_prefix": "192.0.2.0/24", "region": "eu", "service": "S3"}]}` (AWS) | `region`, `service` |
//! | `{"values": [{"name": "Sql", "properties": {"addressPrefixes": ["192.0.2.0/24"]}}]}` (Azure) | `name` |
//! | `{"addresses": ["192.0.2.0/24"], "ipv6_addresses": ["2001:db8::/32"]}` (Fastly) | `list` |
//! | `[{"prefix": "192.0.2.0/24", "site": {"name": "a"}}]` | `site.name` |
//! | `["192.0.2.0/24", "2001:db8::/32"]` | nothing |
//! | `{"cidr": "192.0.2.0/24", "id": 1}`, one on each line (JSON lines) | `id` |
//!
//! An object around the prefixes contributes its values only if it is inside a list. Values next to the first list
//! describe the document (`createDate`, `syncToken`). Lists are no values; they are counted. A column is of integers,
//! numbers or booleans if all its values are. For ranges that overlap, see [text](crate::text). The decoder waits for
//! all of the input before it decodes. If an object has a name twice, the last value counts.
//!
//! [`census`] scans the whole document first: a name determines the role of a member only if at least half of the
//! members of that name have values for this role. [`keys`] finds the members of an object that are its prefix,
//! [`walk`] makes routes and values.

use fibula_core::Value;

use crate::text::{Earlier, Key, emit_key};
use crate::{Damage, Decoder, HostBits, Sink, SourceInfo, StopReason, Tail};
use census::Census;
use column::Column;
use node::Node;
use walk::{Route, Walk};

mod census;
mod column;
mod keys;
mod node;
mod walk;

/// See [`Sink::noted`].
const LEFT_OUT: &str = "lists beside prefixes in JSON, left out since they are no values";
const OTHER_LINES: &str =
    "lines of JSON that have no member such as those with the prefixes of other lines";
const FURTHER: &str =
    "members of JSON with prefixes that are values beside the prefix of their object";
const OTHERS: &str =
    "objects of JSON with an address and a prefix under a name that says less, which was taken";
const SEVERAL: &str = "objects of JSON with several prefixes, under names that do not say which is the key: each is a route";
const REPLACED: &str = "members of JSON objects that a later member of the same name replaces";

pub(crate) fn detect(head: &[u8]) -> bool {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    match text {
        [b'{', rest @ ..] => matches!(rest.trim_ascii_start(), [] | [b'"' | b'}', ..]),
        [b'[', rest @ ..] => {
            matches!(rest.trim_ascii_start(), [] | [b'"' | b'{' | b'[' | b']', ..])
        }
        _ => false,
    }
}

/// Decodes such a document. A record is a route, or a value where a route is expected.
pub(crate) struct JsonDecoder {
    host_bits: HostBits,
    records: u64,
}

impl JsonDecoder {
    pub(crate) fn new(host_bits: HostBits) -> Self {
        Self { host_bits, records: 0 }
    }
}

impl Decoder for JsonDecoder {
    fn decode(
        &mut self,
        input: &[u8],
        tail: Tail,
        sink: &mut dyn Sink,
    ) -> Result<usize, StopReason> {
        if !tail.is_last() {
            return Ok(0);
        }
        let text = input.strip_prefix(b"\xef\xbb\xbf").unwrap_or(input);
        let mark = input.len() - text.len();
        let lines = node::lines(text);
        let is_lines = lines.is_some();
        let (document, wrong) = match lines {
            Some((document, wrong)) => (Some(document), wrong),
            None => match Node::of(text) {
                Ok(document) => (Some(document), Vec::new()),
                Err(wrong) => (None, vec![wrong]),
            },
        };
        let census = document.as_ref().map(Census::of).unwrap_or_default();
        let mut walk = Walk::new(text, &census, self.host_bits, is_lines);
        if let Some(document) = &document {
            walk.document(document);
        }
        wrong.into_iter().for_each(|(at, what)| walk.trouble(at, what));
        sink.begin(&SourceInfo {
            format: "json",
            columns: walk.columns.iter().map(Column::decl).collect(),
            types: walk
                .columns
                .iter()
                .filter_map(|column| Some((column.name.clone(), column.scalar()?)))
                .collect(),
            ..SourceInfo::default()
        });
        (0..walk.other_lines).for_each(|_| sink.ignored(OTHER_LINES));
        (0..walk.left_out).for_each(|_| sink.noted(LEFT_OUT));
        (0..walk.further).for_each(|_| sink.noted(FURTHER));
        (0..walk.others).for_each(|_| sink.noted(OTHERS));
        (0..walk.several).for_each(|_| sink.noted(SEVERAL));
        (0..walk.replaced).for_each(|_| sink.noted(REPLACED));
        let mut values = Vec::new();
        let is_range =
            |found: &Route| matches!(found.route, Ok((Key::RangeV4(..) | Key::RangeV6(..), _)));
        let ranges = walk.found.iter().any(is_range);
        let mut earlier = if ranges { Earlier::with_ranges() } else { Earlier::default() };
        for found in &walk.found {
            self.records += 1;
            let result = match &found.route {
                Ok((key, context)) => {
                    let cells = walk.cells(*context);
                    values.clear();
                    let kinds = walk.columns.iter().map(Column::kind);
                    values.extend(cells.iter().zip(kinds).map(|(cell, kind)| match cell {
                        Some(cell) => cell.value(kind),
                        None => Value::Null,
                    }));
                    emit_key(*key, self.records, &mut earlier, &values, sink)
                }
                Err(what) => Err(what.clone().into()),
            };
            if let Err(what) = result {
                let damage = Damage::new(self.records, (mark + found.at) as u64, what);
                if sink.damage(&damage).is_break() {
                    return Err(StopReason::BySink);
                }
            }
        }
        Ok(input.len())
    }

    fn records(&self) -> u64 {
        self.records
    }
}

#[cfg(test)]
mod tests;
