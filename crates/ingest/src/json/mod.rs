//! JSON: the address ranges that providers publish, and arrays of prefixes or of objects with them.
//!
//! What is a prefix, an address or a range as text, anywhere in the document, is a route. Its values are
//! the other texts, numbers and booleans of the object that it stands in and of the objects around that, and
//! the name of the list that holds it:
//!
//! | document | a route has |
//! |---|---|
//! | `{"prefixes": [{"ip_prefix": "192.0.2.0/24", "region": "eu", "service": "S3"}]}` (AWS) | `region`, `service` |
//! | `{"values": [{"name": "Sql", "properties": {"addressPrefixes": ["192.0.2.0/24"]}}]}` (Azure) | `name` |
//! | `{"addresses": ["192.0.2.0/24"], "ipv6_addresses": ["2001:db8::/32"]}` (Fastly) | `list` |
//! | `["192.0.2.0/24", "2001:db8::/32"]` | nothing |
//!
//! Objects around the prefixes give their values only from below a list on: what stands beside the first
//! list is about the document (`createDate`, `syncToken`). A column is of integers if it never holds
//! anything else. The format is read from its end, so the decoder waits for all of the input.

use std::borrow::Cow;
use std::collections::HashMap;

use fibula_core::{AnyPrefix, Attributes, Change, ColumnKind, Prefix, Update, Value};
use serde_json::Value as Json;

use crate::text::{END_NAMES, Key, KeyError, PREFIX_NAMES, START_NAMES, parse_key, parse_range};
use crate::{ColumnDecl, Damage, Decoder, HostBits, Sink, SourceInfo, Stopped, Tail};

/// The column with the name of the list that a prefix stands in, if it is no object's.
const LIST: &str = "list";
/// A document with more names is not of this kind.
const MAX_COLUMNS: usize = 256;

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

/// Decodes such a document; a record is a route or what should be one.
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
    fn decode(&mut self, input: &[u8], tail: Tail, sink: &mut dyn Sink) -> Result<usize, Stopped> {
        if !tail.is_last() {
            return Ok(0);
        }
        let text = input.strip_prefix(b"\xef\xbb\xbf").unwrap_or(input);
        let document: Result<Json, _> = serde_json::from_slice(text);
        let mut walk = Walk::new(self.host_bits);
        match &document {
            Ok(document) => walk.node(document, Place::default()),
            Err(error) => walk.trouble(format!("not JSON: {error}")),
        }
        sink.begin(&SourceInfo {
            format: "json",
            columns: walk.columns.iter().map(|column| column.decl()).collect(),
            ..SourceInfo::default()
        });
        let mut values = Vec::new();
        for found in &walk.found {
            self.records += 1;
            match found {
                Ok((key, context)) => {
                    let cells = walk.cells(*context);
                    values.clear();
                    let kinds = walk.columns.iter().map(Column::kind);
                    values.extend(cells.iter().zip(kinds).map(|(cell, kind)| match cell {
                        Some(cell) => cell.value(kind),
                        None => Value::Null,
                    }));
                    announce(*key, &values, sink);
                }
                Err(what) => {
                    let damage = Damage::new(self.records, 0, what.clone());
                    if sink.damage(&damage).is_break() {
                        return Err(Stopped::BySink);
                    }
                }
            }
        }
        Ok(input.len())
    }

    fn records(&self) -> u64 {
        self.records
    }
}

fn announce(key: Key, values: &[Value<'_>], sink: &mut dyn Sink) {
    let mut announce = |prefix: AnyPrefix| {
        let change = Change::Announce(Attributes::Values(values));
        sink.update(&Update::new(prefix.unmapped(), change));
    };
    match key {
        Key::Prefix(prefix) => announce(prefix),
        Key::RangeV4(first, last) => {
            Prefix::split_range(first, last).for_each(|prefix| announce(prefix.into()));
        }
        Key::RangeV6(first, last) => {
            Prefix::split_range(first, last).for_each(|prefix| announce(prefix.into()));
        }
    }
}

/// A column met so far.
struct Column {
    name: String,
    is_int: bool,
}

impl Column {
    fn kind(&self) -> ColumnKind {
        if self.is_int { ColumnKind::Int } else { ColumnKind::Str }
    }

    fn decl(&self) -> ColumnDecl {
        ColumnDecl { name: self.name.clone(), kind: self.kind() }
    }
}

/// A value of a column: its number, and its text if it is not only a number.
struct Cell<'d> {
    int: Option<u64>,
    text: Cow<'d, str>,
}

impl Cell<'_> {
    fn value(&self, kind: ColumnKind) -> Value<'_> {
        match (kind, self.int) {
            (ColumnKind::Int, Some(int)) => Value::Int(int),
            _ => Value::Str(&self.text),
        }
    }
}

/// The values of an object, and the object around it whose values count, too.
struct Context<'d> {
    around: Option<usize>,
    cells: Vec<(usize, Cell<'d>)>,
}

/// Where a part of the document stands.
#[derive(Clone, Copy, Default)]
struct Place<'d> {
    around: Option<usize>,
    /// Below a list.
    in_list: bool,
    /// The name of the list.
    list: Option<&'d str>,
}

/// The routes and columns of a document.
struct Walk<'d> {
    host_bits: HostBits,
    columns: Vec<Column>,
    by_name: HashMap<String, usize>,
    contexts: Vec<Context<'d>>,
    found: Vec<Result<(Key, Option<usize>), String>>,
    is_over: bool,
}

impl<'d> Walk<'d> {
    fn new(host_bits: HostBits) -> Self {
        Self {
            host_bits,
            columns: Vec::new(),
            by_name: HashMap::new(),
            contexts: Vec::new(),
            found: Vec::new(),
            is_over: false,
        }
    }

    fn trouble(&mut self, what: String) {
        self.found.push(Err(what));
    }

    /// The key that a text is; an error if it is meant as one but is none.
    fn key(&self, text: &str) -> Option<Result<Key, String>> {
        let is_likely = text.len() <= 100 && text.bytes().any(|b| matches!(b, b'.' | b':'));
        let key = is_likely.then(|| parse_key(text.trim().as_bytes(), self.host_bits))?;
        match key {
            Ok(key) => Some(Ok(key)),
            Err(KeyError::Syntax) => None,
            Err(error) => Some(Err(format!("{}: {text:?}", error.text()))),
        }
    }

    fn route(&mut self, key: Result<Key, String>, context: Option<usize>) {
        self.found.push(key.map(|key| (key, context)));
    }

    fn node(&mut self, node: &'d Json, place: Place<'d>) {
        match node {
            Json::Object(members) => self.object(members, place),
            Json::Array(items) => self.list(items, place),
            _ => {}
        }
    }

    fn list(&mut self, items: &'d [Json], place: Place<'d>) {
        let texts = || items.iter().filter_map(Json::as_str);
        // One prefix makes it a list of prefixes, and what is none in it a mistake.
        if texts().any(|text| self.key(text).is_some()) {
            let mut context = place.around;
            if context.is_none()
                && let Some(name) = place.list
            {
                context = self.context(None, vec![(LIST, Cell { int: None, text: name.into() })]);
            }
            for text in texts() {
                let none = || Err(format!("not an address, a prefix or a range: {text:?}"));
                let key = self.key(text).unwrap_or_else(none);
                self.route(key, context);
            }
        }
        let before = self.found.len();
        let mut barren = Vec::new();
        for item in items.iter().filter(|item| !item.is_string()) {
            let before = self.found.len();
            self.node(item, Place { in_list: true, ..place });
            if self.found.len() == before && item.is_object() {
                barren.push(item);
            }
        }
        // Objects that have no prefix beside others that have one.
        if self.found.len() > before {
            for item in barren {
                let text: String = item.to_string().chars().take(80).collect();
                self.trouble(format!("no prefix in {text}"));
            }
        }
    }

    fn object(&mut self, members: &'d serde_json::Map<String, Json>, place: Place<'d>) {
        let keys = self.keys_of(members);
        let is_key = |name: &str| keys.names.contains(&name);
        let scalars = members.iter().filter(|(name, _)| !is_key(name));
        let cells: Vec<_> =
            scalars.filter_map(|(name, value)| Some((name.as_str(), cell(value)?))).collect();
        let context = match keys.found.is_empty() && !place.in_list {
            true => None,
            false => self.context(place.around, cells),
        };
        for key in keys.found {
            self.route(key, context);
        }
        for (name, child) in members {
            // `{"192.0.2.0/24": {"asn": 64500}}`
            if let Some(key) = self.key(name) {
                let cells = match child {
                    Json::Object(members) => members
                        .iter()
                        .filter_map(|(name, value)| Some((name.as_str(), cell(value)?)))
                        .collect(),
                    scalar => cell(scalar).map(|cell| ("value", cell)).into_iter().collect(),
                };
                let context = self.context(context, cells);
                self.route(key, context);
            } else {
                let list = Some(name.as_str());
                self.node(child, Place { around: context, list, ..place });
            }
        }
    }

    /// The members of an object that say what addresses it is about.
    fn keys_of(&self, members: &'d serde_json::Map<String, Json>) -> Keys<'d> {
        let texts = || members.iter().filter_map(|(name, v)| Some((name.as_str(), v.as_str()?)));
        let named = |names: &[&str]| {
            texts().find(|(name, _)| names.contains(&name.to_ascii_lowercase().as_str()))
        };
        if let (Some(start), Some(end)) = (named(START_NAMES), named(END_NAMES))
            && let Ok(range) = parse_range(start.1.as_bytes(), end.1.as_bytes(), false)
        {
            return Keys { names: vec![start.0, end.0], found: vec![Ok(range)] };
        }
        let spelled = |(name, text): (&'d str, &str)| {
            text.contains(['/', '-']).then(|| Some((name, self.key(text)?)))?
        };
        let (names, found) = texts().filter_map(spelled).unzip();
        let mut keys = Keys { names, found };
        // Addresses may be gateways, too: one counts by its name alone.
        if keys.found.is_empty()
            && let Some((name, text)) = named(PREFIX_NAMES)
            && let Some(key) = self.key(text)
        {
            keys = Keys { names: vec![name], found: vec![key] };
        }
        keys
    }

    /// Keeps the values of an object; `None` if there are none, around it neither.
    fn context(&mut self, around: Option<usize>, cells: Vec<(&'d str, Cell<'d>)>) -> Option<usize> {
        let cells: Vec<_> =
            cells.into_iter().filter_map(|(name, c)| Some((self.column(name, &c)?, c))).collect();
        if cells.is_empty() {
            return around;
        }
        self.contexts.push(Context { around, cells });
        Some(self.contexts.len() - 1)
    }

    fn column(&mut self, name: &str, cell: &Cell<'_>) -> Option<usize> {
        let at = match self.by_name.get(name) {
            Some(&at) => at,
            None if self.columns.len() < MAX_COLUMNS => {
                self.columns.push(Column { name: name.to_owned(), is_int: true });
                self.by_name.insert(name.to_owned(), self.columns.len() - 1);
                self.columns.len() - 1
            }
            None => {
                if !std::mem::replace(&mut self.is_over, true) {
                    self.trouble(format!(
                        "more than {MAX_COLUMNS} columns; the others are left out"
                    ));
                }
                return None;
            }
        };
        self.columns[at].is_int &= cell.int.is_some();
        Some(at)
    }

    /// The values of a route, column by column; an inner object's count before an outer one's.
    fn cells(&self, context: Option<usize>) -> Vec<Option<&Cell<'d>>> {
        let mut cells = vec![None; self.columns.len()];
        let mut next = context;
        while let Some(context) = next.and_then(|at| self.contexts.get(at)) {
            for (column, cell) in &context.cells {
                cells[*column].get_or_insert(cell);
            }
            next = context.around;
        }
        cells
    }
}

struct Keys<'d> {
    names: Vec<&'d str>,
    found: Vec<Result<Key, String>>,
}

fn cell(value: &Json) -> Option<Cell<'_>> {
    let text = match value {
        Json::String(text) => Cow::Borrowed(text.as_str()),
        Json::Number(number) => number.to_string().into(),
        Json::Bool(true) => "true".into(),
        Json::Bool(false) => "false".into(),
        _ => return None,
    };
    Some(Cell { int: value.as_u64(), text })
}

#[cfg(test)]
mod tests;
