//! JSON: the address ranges of providers, and arrays of prefixes or of objects with prefixes.
//!
//! Every text that is a prefix, an address or a range becomes a route, anywhere in the document. Its values are the
//! other texts, numbers and booleans of its object and of the objects around it, and the name of the list that
//! contains it:
//!
//! | document | a route has |
//! |---|---|
//! | `{"prefixes": [{"ip_prefix": "192.0.2.0/24", "region": "eu", "service": "S3"}]}` (AWS) | `region`, `service` |
//! | `{"values": [{"name": "Sql", "properties": {"addressPrefixes": ["192.0.2.0/24"]}}]}` (Azure) | `name` |
//! | `{"addresses": ["192.0.2.0/24"], "ipv6_addresses": ["2001:db8::/32"]}` (Fastly) | `list` |
//! | `["192.0.2.0/24", "2001:db8::/32"]` | nothing |
//!
//! An object around the prefixes contributes its values only if it is inside a list. Values beside the first list
//! describe the document (`createDate`, `syncToken`). A column is of integers if all its values are. For ranges that
//! overlap, see [text](crate::text). The decoder waits for all of the input before it decodes. If an object has a
//! name twice, the last value counts.

use std::borrow::Cow;
use std::collections::HashMap;

use fibula_core::{ColumnKind, Value};

use crate::text::{
    END_NAMES, Key, KeyError, Overlaps, PREFIX_NAMES, START_NAMES, emit_key, parse_int, parse_key,
    parse_range,
};
use crate::{ColumnDecl, Damage, Decoder, HostBits, Sink, SourceInfo, Stopped, Tail};
use node::{Kind, Node};

mod node;

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
        let mark = input.len() - text.len();
        let document = Node::of(text);
        let mut walk = Walk::new(self.host_bits, text);
        match &document {
            Ok(document) => walk.node(document, Place::default()),
            Err((at, what)) => walk.trouble(*at, what.clone()),
        }
        sink.begin(&SourceInfo {
            format: "json",
            columns: walk.columns.iter().map(|column| column.decl()).collect(),
            ..SourceInfo::default()
        });
        let mut values = Vec::new();
        let is_range =
            |found: &Found| matches!(found.route, Ok((Key::RangeV4(..) | Key::RangeV6(..), _)));
        let mut overlaps: Option<Box<Overlaps>> =
            walk.found.iter().any(is_range).then(Box::default);
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
                    emit_key(*key, self.records, &mut overlaps, &values, sink)
                }
                Err(what) => Err(what.clone().into()),
            };
            if let Err(what) = result {
                let damage = Damage::new(self.records, (mark + found.at) as u64, what);
                if sink.damage(&damage).is_break() {
                    return Err(Stopped::BySink);
                }
            }
        }
        Ok(input.len())
    }

    fn records(&self) -> u64 {
        self.records
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

/// A route, or what should be one, and the byte where it stands.
struct Found {
    at: usize,
    /// Its key and the context that has its values.
    route: Result<(Key, Option<usize>), String>,
}

/// The routes and columns of a document.
struct Walk<'d> {
    text: &'d [u8],
    host_bits: HostBits,
    columns: Vec<Column>,
    by_name: HashMap<String, usize>,
    contexts: Vec<Context<'d>>,
    found: Vec<Found>,
    is_over: bool,
}

impl<'d> Walk<'d> {
    fn new(host_bits: HostBits, text: &'d [u8]) -> Self {
        Self {
            text,
            host_bits,
            columns: Vec::new(),
            by_name: HashMap::new(),
            contexts: Vec::new(),
            found: Vec::new(),
            is_over: false,
        }
    }

    fn trouble(&mut self, at: usize, what: String) {
        self.found.push(Found { at, route: Err(what) });
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

    fn route(&mut self, at: usize, key: Result<Key, String>, context: Option<usize>) {
        self.found.push(Found { at, route: key.map(|key| (key, context)) });
    }

    fn node(&mut self, node: &'d Node<'d>, place: Place<'d>) {
        match &node.kind {
            Kind::Object(members) => self.object(node.start, members, place),
            Kind::List(items) => self.list(items, place),
            _ => {}
        }
    }

    fn list(&mut self, items: &'d [Node<'d>], place: Place<'d>) {
        let texts = || items.iter().filter_map(|item| Some((item.start, item.as_str()?)));
        // One prefix makes it a list of prefixes, and what is none in it a mistake.
        if texts().any(|(_, text)| self.key(text).is_some()) {
            let mut context = place.around;
            if context.is_none()
                && let Some(name) = place.list
            {
                let at = items.first().map_or(0, |item| item.start);
                let cell = Cell { int: None, text: name.into() };
                context = self.context(at, None, vec![(LIST, cell)]);
            }
            for (at, text) in texts() {
                let none = || Err(format!("not an address, a prefix or a range: {text:?}"));
                let key = self.key(text).unwrap_or_else(none);
                self.route(at, key, context);
            }
        }
        let before = self.found.len();
        let mut barren = Vec::new();
        for item in items.iter().filter(|item| item.as_str().is_none()) {
            let before = self.found.len();
            self.node(item, Place { in_list: true, ..place });
            if self.found.len() == before && item.is_object() {
                barren.push(item);
            }
        }
        // Objects that have no prefix beside others that have one.
        if self.found.len() > before {
            for item in barren {
                let text = String::from_utf8_lossy(&self.text[item.start..item.end]);
                let words = text.split_whitespace().take(80).collect::<Vec<_>>().join(" ");
                let text: String = words.chars().take(80).collect();
                self.trouble(item.start, format!("no prefix in {text}"));
            }
        }
    }

    fn object(&mut self, start: usize, members: &'d [Member<'d>], place: Place<'d>) {
        let keys = self.keys_of(members);
        let is_key = |name: &str| keys.names.contains(&name);
        let scalars = members.iter().filter(|(name, _)| !is_key(name));
        let cells = cells_of(scalars);
        let context = match keys.found.is_empty() && !place.in_list {
            true => None,
            false => self.context(start, place.around, cells),
        };
        for (at, key) in keys.found {
            self.route(at, key, context);
        }
        for (name, child) in members {
            // `{"192.0.2.0/24": {"asn": 64500}}`
            if let Some(key) = self.key(name) {
                let cells = match &child.kind {
                    Kind::Object(members) => cells_of(members.iter()),
                    _ => cell(child).map(|cell| ("value", cell)).into_iter().collect(),
                };
                let context = self.context(child.start, context, cells);
                self.route(child.start, key, context);
            } else {
                let list = Some(&**name);
                self.node(child, Place { around: context, list, ..place });
            }
        }
    }

    /// The members of an object that say what addresses it is about.
    fn keys_of(&self, members: &'d [Member<'d>]) -> Keys<'d> {
        let text = |(name, v): &'d Member<'d>| Some((&**name, v.as_str()?, v.start));
        let texts = || members.iter().filter_map(text);
        let named = |names: &[&str]| {
            texts().find(|(name, ..)| names.contains(&name.to_ascii_lowercase().as_str()))
        };
        if let (Some(start), Some(end)) = (named(START_NAMES), named(END_NAMES))
            && let Ok(range) = parse_range(start.1.as_bytes(), end.1.as_bytes(), false)
        {
            return Keys { names: vec![start.0, end.0], found: vec![(start.2, Ok(range))] };
        }
        let spelled = |(name, text, at): (&'d str, &str, usize)| {
            text.contains(['/', '-']).then(|| Some((name, (at, self.key(text)?))))?
        };
        let (names, found) = texts().filter_map(spelled).unzip();
        let mut keys = Keys { names, found };
        // Addresses may be gateways, too: one counts by its name alone.
        if keys.found.is_empty()
            && let Some((name, text, at)) = named(PREFIX_NAMES)
            && let Some(key) = self.key(text)
        {
            keys = Keys { names: vec![name], found: vec![(at, key)] };
        }
        keys
    }

    /// Keeps the values of an object; `None` if there are none, around it neither.
    fn context(
        &mut self,
        start: usize,
        around: Option<usize>,
        cells: Vec<(&'d str, Cell<'d>)>,
    ) -> Option<usize> {
        let mut cells: Vec<_> = cells
            .into_iter()
            .filter_map(|(name, c)| Some((self.column(start, name, &c)?, c)))
            .collect();
        cells.reverse(); // of a name that comes twice the last one counts
        if cells.is_empty() {
            return around;
        }
        self.contexts.push(Context { around, cells });
        Some(self.contexts.len() - 1)
    }

    fn column(&mut self, at: usize, name: &str, cell: &Cell<'_>) -> Option<usize> {
        let column = match self.by_name.get(name) {
            Some(&column) => column,
            None if self.columns.len() < MAX_COLUMNS => {
                self.columns.push(Column { name: name.to_owned(), is_int: true });
                self.by_name.insert(name.to_owned(), self.columns.len() - 1);
                self.columns.len() - 1
            }
            None => {
                if !std::mem::replace(&mut self.is_over, true) {
                    self.trouble(
                        at,
                        format!("more than {MAX_COLUMNS} columns; the others are left out"),
                    );
                }
                return None;
            }
        };
        self.columns[column].is_int &= cell.int.is_some();
        Some(column)
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
    /// With the bytes where they stand.
    found: Vec<(usize, Result<Key, String>)>,
}

/// A member of an object.
type Member<'d> = (Cow<'d, str>, Node<'d>);

fn cells_of<'d>(members: impl Iterator<Item = &'d Member<'d>>) -> Vec<(&'d str, Cell<'d>)> {
    members.filter_map(|(name, value)| Some((&**name, cell(value)?))).collect()
}

fn cell<'d>(node: &'d Node<'d>) -> Option<Cell<'d>> {
    let text = match &node.kind {
        Kind::Text(text) => Cow::Borrowed(&**text),
        Kind::Number(number) => {
            return Some(Cell { int: parse_int(number.as_bytes()), text: (*number).into() });
        }
        Kind::Bool(true) => "true".into(),
        Kind::Bool(false) => "false".into(),
        _ => return None,
    };
    Some(Cell { int: None, text })
}

#[cfg(test)]
mod tests;
