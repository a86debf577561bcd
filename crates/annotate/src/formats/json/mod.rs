//! JSON: objects keep their bytes, and members are appended to them.

mod around;
mod between;
mod find;
mod plain;
mod shape;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use std::net::IpAddr;

use self::around::{end_within, opens_array};
use self::between::Between;
use self::find::{Found, MemberValue, Names, find};
use self::shape::LineTemplate;
use super::{Decode, LogDecoder, SAMPLE_BYTES, Style, last_line_end, line_end, set};
use crate::added::{added_name, first_twice};
use crate::block::{Block, Row, RowKind};
use crate::fault::Fault;
use crate::pipeline::keys::KeySink;
use crate::rules::FlowChoice;
use crate::{AnnotateError, AnnotateOptions, Column, LogFormat};

/// Decoder of JSON: one object on each line, objects in an array, or objects of several lines each. The array may be a
/// member of an object, whose other members are then kept (`{"Records":[{...},{...}]}`).
///
/// Objects and the bytes between them are kept. Anything that is not an object, and an object of an array without a
/// comma before it, is copied unchanged and counted. Members are added at the end of an object, which must not already
/// have members with these names. An array that is not closed at the end of the input is an error.
#[derive(Clone)]
pub(crate) struct JsonLines {
    names: Arc<Names>,
    /// The number of address columns in `names`; a column of times may follow them.
    addresses: usize,
    strict: bool,
    shape: Option<ObjectLayout>,
    found: Vec<Found>,
    /// The members of the previous object.
    before: LineTemplate,
    /// For each column, whether an object of the input had it.
    present: Arc<[AtomicBool]>,
    /// Whether the input had anything but separators between objects.
    any: Arc<AtomicBool>,
    /// The commas and brackets so far, if objects do not follow each other by lines.
    between: Between,
    /// Whether the decoder is within something that is not an object.
    stray: bool,
    /// The object around an array of objects.
    around: Around,
    /// Chooses the columns by the fields of flows, from the first object.
    flows: Option<FlowChoice>,
}

/// The object around an array of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Around {
    /// The input has none.
    None,
    /// The next object may be one.
    Next,
    /// The decoder is within one.
    Within,
}

/// How objects follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ObjectLayout {
    Lines,
    /// Objects in arrays, or of several lines.
    Values,
}

impl JsonLines {
    pub(crate) fn new(options: &AnnotateOptions, added: &[String]) -> Result<Self, AnnotateError> {
        let mut columns: Vec<String> = Vec::new();
        for column in options.columns.iter().chain(&options.time) {
            match column {
                Column::Name(name) => columns.push(name.clone()),
                Column::Number(_) => {
                    return Err(AnnotateError::ColumnKind {
                        format: LogFormat::JsonLines,
                        column: column.clone(),
                    });
                }
            }
        }
        if let Some(name) = first_twice(&columns) {
            return Err(AnnotateError::Twice { name: name.clone() });
        }
        let addresses = options.columns.len();
        if addresses == 0 {
            return Err(AnnotateError::NoColumn { format: LogFormat::JsonLines });
        }
        let all = |name: &String| added.iter().map(|add| added_name(name, add)).collect::<Vec<_>>();
        let added = columns[..addresses].iter().flat_map(all).collect();
        let mut decoder = Self::of(options, None, columns, added);
        decoder.addresses = addresses;
        Ok(decoder)
    }

    /// A decoder of the fields of flows. The first object shows their names.
    pub(crate) fn of_flows(options: &AnnotateOptions, choice: FlowChoice) -> Self {
        Self::of(options, Some(choice), choice.all_names(), choice.added())
    }

    /// All of the columns are addresses or fields of flows.
    fn of(
        options: &AnnotateOptions,
        flows: Option<FlowChoice>,
        columns: Vec<String>,
        added: Vec<String>,
    ) -> Self {
        let mut decoder = Self {
            addresses: 0,
            present: Arc::new([]),
            names: Arc::new(Names { columns: Vec::new(), added: Vec::new() }),
            strict: options.strict,
            shape: None,
            found: Vec::new(),
            before: LineTemplate::default(),
            any: Arc::default(),
            between: Between::default(),
            stray: false,
            around: Around::None,
            flows,
        };
        decoder.call(columns, added);
        decoder
    }

    fn call(&mut self, columns: Vec<String>, added: Vec<String>) {
        self.addresses = columns.len();
        self.present = columns.iter().map(|_| AtomicBool::new(false)).collect();
        self.names = Arc::new(Names { columns, added });
        self.before = LineTemplate::default();
    }

    /// Chooses the columns by the members of an object.
    fn choose(&mut self, text: &[u8], choice: FlowChoice) -> Result<(), String> {
        let mut before = LineTemplate::default();
        if find(text, text.len(), &self.names, &mut self.found, &mut before).is_err() {
            return Ok(()); // no object: counted as one
        }
        let names = self.names.columns.iter().zip(&self.found);
        let names = names.filter(|(_, found)| found.is_present());
        let names: Vec<String> = names.map(|(name, _)| name.clone()).collect();
        let chosen = choice.of_names(&names)?;
        self.call(chosen.into_iter().map(|at| names[at].clone()).collect(), choice.added());
        self.flows = None;
        Ok(())
    }

    /// Detects the shape from the beginning of the input; `None` if more input is needed.
    fn tell(&mut self, data: &[u8], end: bool) -> Option<ObjectLayout> {
        let text = data.trim_ascii_start();
        match text.first() {
            Some(b'[') if begins_array(text) => return Some(ObjectLayout::Values),
            Some(b'[') if text[1..].trim_ascii_start().is_empty() && !end => return None,
            None if !end => return None,
            Some(b'{') => {}
            _ => return Some(ObjectLayout::Lines),
        }
        if let Some(array) = opens_array(text) {
            let has_columns = |this: &mut Self, text: &[u8], len: usize| {
                let before = &mut LineTemplate::default();
                find(text, len, &this.names, &mut this.found, before).is_ok()
                    && this.found.iter().any(Found::is_present)
            };
            let is_long = end || text.len() >= SAMPLE_BYTES;
            let inside = text[array + 1..].trim_ascii_start();
            match (object_end(text), object_end(inside)) {
                (None, _) | (_, None) if !is_long => return None,
                (Some(whole), _) if has_columns(self, text, whole) => {}
                (_, Some(first)) if has_columns(self, inside, first) => {
                    self.around = Around::Next;
                    return Some(ObjectLayout::Values);
                }
                _ => {}
            }
        }
        let (content, _) = line_end(text, end)?;
        let before = &mut LineTemplate::default();
        if find(text, content, &self.names, &mut self.found, before).is_ok() {
            return Some(ObjectLayout::Lines);
        }
        match object_end(text) {
            Some(len) if len > content && len <= SAMPLE_BYTES => Some(ObjectLayout::Values),
            None if !end && text.len() < SAMPLE_BYTES => None,
            _ => Some(ObjectLayout::Lines),
        }
    }

    /// Adds the object at `start..object_end`, whose row extends to `end`.
    fn object<K: KeySink>(
        &mut self,
        data: &[u8],
        (start, object_end, end): (usize, usize, usize),
        block: &mut Block<K>,
    ) -> Result<(), Fault> {
        let text = &data[start..object_end];
        if let Some(choice) = self.flows {
            self.choose(text, choice).map_err(|what| Fault::Row { at: start, what })?;
        }
        let (rest, len) = (&data[start..], text.len());
        match find(rest, len, &self.names, &mut self.found, &mut self.before) {
            Ok(None) => {}
            Ok(Some(taken)) => {
                let name = self.names.added[taken].clone();
                return Err(AnnotateError::NameTaken { name }.into());
            }
            Err(error) => return self.stray(start, end, || describe(&error), block),
        }
        self.cells(start, block)?;
        // The object ends with a brace. Members are inserted before it and the whitespace before it.
        let mut inner = &text[..text.len() - 1];
        if inner.last().is_some_and(u8::is_ascii_whitespace) {
            inner = inner.trim_ascii_end();
        }
        let is_empty = inner.ends_with(b"{") && inner.trim_ascii_start() == b"{";
        let kind = if is_empty { RowKind::AnnotateEmpty } else { RowKind::Annotate };
        block.row(Row { start, insert: start + inner.len(), end, pad: 0, kind });
        Ok(())
    }

    /// Counts something that is not an object, and copies it unchanged.
    fn stray<K: KeySink>(
        &mut self,
        start: usize,
        end: usize,
        what: impl FnOnce() -> String,
        block: &mut Block<K>,
    ) -> Result<(), Fault> {
        block.tally.rows += 1;
        block.bad_record(self.strict, || Fault::Record { at: start, what: what() })?;
        block.pass(start, end);
        Ok(())
    }

    /// Adds the cells of an object to the block.
    fn cells<K: KeySink>(&mut self, at: usize, block: &mut Block<K>) -> Result<(), Fault> {
        for (slot, found) in self.found.iter_mut().enumerate() {
            if found.is_present() {
                set(&self.present[slot]);
            }
            let place = std::mem::take(&mut found.place);
            if slot == self.addresses {
                let text = match place {
                    MemberValue::Empty => String::new(),
                    MemberValue::Address(address) => IpAddr::from(address).to_string(),
                    MemberValue::Other(text) => text,
                };
                block.time(at, text.as_bytes(), self.strict)?;
                continue;
            }
            match place {
                MemberValue::Empty => block.empty(),
                MemberValue::Address(address) => block.address(address),
                MemberValue::Other(text) => {
                    if block.cell(text.as_bytes()).is_err() {
                        let fault = || Fault::Unparsable { at, slot, text: text.into_bytes() };
                        block.bad_cell(self.strict, fault)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn lines<K: KeySink>(
        &mut self,
        data: &[u8],
        end: bool,
        block: &mut Block<K>,
    ) -> Result<usize, Fault> {
        let mut start = 0;
        while !block.is_full() {
            let Some((content, next)) = line_end(&data[start..], end) else { break };
            let line = data[start..start + content].trim_ascii_end();
            if line.is_empty() {
                block.pass(start, start + next);
            } else {
                set(&self.any);
                self.object(data, (start, start + line.len(), start + next), block)?;
            }
            start += next;
        }
        Ok(start)
    }

    fn values<K: KeySink>(
        &mut self,
        data: &[u8],
        end: bool,
        block: &mut Block<K>,
    ) -> Result<usize, Fault> {
        let mut start = 0;
        while !block.is_full() && start < data.len() {
            let rest = &data[start..];
            let (passed, wrong) = self.between.pass(rest);
            if passed > 0 {
                block.pass(start, start + passed);
                start += passed;
                self.stray = false;
            }
            if let Some(what) = wrong {
                set(&self.any);
                self.stray = false;
                self.stray(start, start + 1, || what.to_owned(), block)?;
                start += 1;
            }
            if passed > 0 || wrong.is_some() {
                continue;
            }
            set(&self.any);
            if self.around == Around::Within && !self.between.is_open() {
                // The other members of the object around the array.
                match end_within(rest) {
                    Some(len) => {
                        block.pass(start, start + len);
                        start += len;
                    }
                    None if end => return Err(Fault::OpenArray { at: start }),
                    None => break,
                }
                (self.around, self.between) = (Around::Next, Between::default());
                continue;
            }
            if self.around == Around::Next
                && let Some(len) = opens_array(rest)
            {
                block.pass(start, start + len);
                start += len;
                self.around = Around::Within;
                continue;
            }
            if rest[0] == b'{' {
                self.stray = false;
                match object_end(rest) {
                    Some(len) if self.between.value() => {
                        self.object(data, (start, start + len, start + len), block)?;
                        start += len;
                    }
                    Some(len) => {
                        let what = || "no comma before this object".to_owned();
                        self.stray(start, start + len, what, block)?;
                        start += len;
                    }
                    None if end => {
                        let what = || "an object is open at the end of the input".to_owned();
                        self.stray(start, data.len(), what, block)?;
                        start = data.len();
                    }
                    None => break,
                }
                continue;
            }
            let len = rest.iter().position(|&b| ends_stray(b)).unwrap_or(rest.len());
            if std::mem::replace(&mut self.stray, true) {
                block.pass(start, start + len);
            } else {
                self.between.value();
                self.stray(start, start + len, || "not a JSON object".to_owned(), block)?;
            }
            start += len;
        }
        let is_open = self.between.is_open() || self.around == Around::Within;
        if end && start == data.len() && is_open {
            return Err(Fault::OpenArray { at: start });
        }
        Ok(start)
    }
}

impl<K: KeySink + 'static> Decode<K> for JsonLines {
    fn decode(&mut self, data: &[u8], end: bool, block: &mut Block<K>) -> Result<usize, Fault> {
        if self.shape.is_none() {
            self.shape = self.tell(data, end);
        }
        match self.shape {
            None => Ok(0),
            Some(ObjectLayout::Lines) => self.lines(data, end, block),
            Some(ObjectLayout::Values) => self.values(data, end, block),
        }
    }

    fn fork(&self) -> Option<Box<dyn Decode<K>>> {
        (self.shape == Some(ObjectLayout::Lines)).then(|| Box::new(self.clone()) as _)
    }
}

impl LogDecoder for JsonLines {
    fn names(&self) -> &[String] {
        &self.names.columns[..self.addresses]
    }

    fn style(&self) -> Style {
        Style::Members
    }

    fn cut(&mut self, data: &[u8]) -> usize {
        last_line_end(data)
    }

    fn finish(&self) -> Result<(), AnnotateError> {
        match self.present.iter().position(|present| !present.load(Ordering::Relaxed)) {
            Some(slot) if self.any.load(Ordering::Relaxed) => {
                let column = Column::Name(self.names.columns[slot].clone());
                Err(AnnotateError::InNoRow { column })
            }
            _ => Ok(()),
        }
    }
}

/// Whether the text begins like an array of objects, or like an empty array.
pub(super) fn begins_array(text: &[u8]) -> bool {
    let Some(inside) = text.trim_ascii_start().strip_prefix(b"[") else { return false };
    matches!(inside.trim_ascii_start().first(), Some(b'{' | b']'))
}

/// Whether the byte ends text that is not an object.
fn ends_stray(byte: u8) -> bool {
    byte.is_ascii_whitespace() || b",[]{".contains(&byte)
}

/// The end of the object that begins at the first byte; `None` if it is not complete.
fn object_end(data: &[u8]) -> Option<usize> {
    data.strip_prefix(b"{").and_then(end_within).map(|len| len + 1)
}

/// The error without its line number, which counts from this line.
fn describe(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let what = text.split(" at line ").next().unwrap_or_default();
    format!("not a JSON object: {what} at byte {}", error.column())
}

/// Appends text as a JSON string.
pub(crate) fn write_string(text: &str, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push(b'"');
    for &byte in text.as_bytes() {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0..0x20 => {
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
            }
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::answers::Without;
    use proptest::prelude::*;

    fn decode(columns: &[&str], strict: bool, text: &str) -> Result<Block, Fault> {
        let mut block = Block::default();
        let used = decode_into(&mut block, columns, strict, text)?;
        assert_eq!(used, text.len());
        Ok(block)
    }

    fn decode_into(
        block: &mut Block,
        columns: &[&str],
        strict: bool,
        text: &str,
    ) -> Result<usize, Fault> {
        let columns = columns.iter().map(|&c| Column::Name(c.into())).collect();
        let options = AnnotateOptions { columns, strict, ..AnnotateOptions::default() };
        JsonLines::new(&options, &[]).unwrap().decode(text.as_bytes(), true, block)
    }

    #[test]
    fn members_are_found_and_others_counted() {
        let text = "{\"ip\":\"10.0.0.1\"}\r\n[1]\n\n{\"ip\":null}\n{ } \n{\"ip\":7}\n{\"ip\":\"x\"";
        let block = decode(&["ip"], false, text).unwrap();
        assert_eq!(
            (&block.keys.v4.addrs[..], &block.keys.v4.cells[..]),
            (&[0x0a00_0001][..], &[0][..])
        );
        let kinds: Vec<_> = block.rows.iter().map(|row| row.kind).collect();
        let (a, p) = (RowKind::Annotate, RowKind::Pass);
        assert_eq!(kinds, [a, p, p, a, RowKind::AnnotateEmpty, a, p]);
        let t = block.tally;
        let (empty, unparsable) = (block.count(Without::Empty), block.count(Without::Unparsable));
        assert_eq!((t.rows, empty, unparsable, t.damaged), (6, 2, 1, 2));
        let first = block.rows[0];
        assert_eq!(&text[first.insert..first.end], "}\r\n");
    }

    #[test]
    fn strict_says_where() {
        let fault = decode(&["ip"], true, "{\"ip\":\"10.0.0.1\"}\n{\"ip\":7}\n").unwrap_err();
        assert!(matches!(fault, Fault::Unparsable { at: 18, slot: 0, .. }), "{fault:?}");
        let fault = decode(&["ip"], true, "\n{\"ip\":}\n").unwrap_err();
        assert!(matches!(fault, Fault::Record { at: 1, .. }), "{fault:?}");
    }

    #[test]
    fn records_within_an_object() {
        let records = "[{\"ip\":\"10.0.0.1\"},\n{\"ip\":\"10.0.0.2\",\"n\":NaN}]";
        let one = format!("{{\"v\":1,\"Records\":{records},\"next\":{{\"a\":1}}}}\n");
        for text in [one.clone(), format!("{one}{one}"), one.replace('\n', "")] {
            let block = decode(&["ip"], true, &text).unwrap();
            assert_eq!(block.keys.v4.addrs[..2], [0x0a00_0001, 0x0a00_0002]);
            assert_eq!(block.tally.rows as usize, text.matches("\"ip\"").count());
        }
        // The column is one of the object itself, or of neither.
        let text = "{\"tags\":[{\"ip\":\"10.0.0.9\"}],\"ip\":\"10.0.0.1\"}\n";
        assert_eq!(decode(&["ip"], true, text).unwrap().keys.v4.addrs, [0x0a00_0001]);
        assert_eq!(decode(&["x"], true, text).unwrap().tally.rows, 1);
        let cut = &one[..one.len() - 3];
        assert!(matches!(decode(&["ip"], false, cut), Err(Fault::OpenArray { .. })));
    }

    proptest! {
        #[test]
        fn strings_read_back(text: String) {
            let mut out = Vec::new();
            write_string(&text, &mut out);
            let back: String = serde_json::from_slice(&out).unwrap();
            prop_assert_eq!(back, text);
        }

        #[test]
        fn rows_tile_any_input(text in "([{}\\[\\]\":,a.\\\\ \r]|\n|\"a\":|\"10.0.0.1\"|\\{\"a\":\\{\"b\":){0,40}") {
            let mut block = Block::default();
            // The rows before the end of an array that is cut off are there, too.
            match decode_into(&mut block, &["a", "a.b"], false, &text) {
                Ok(used) | Err(Fault::OpenArray { at: used }) => prop_assert_eq!(used, text.len()),
                Err(fault) => prop_assert!(false, "{:?}", fault),
            }
            let mut at = 0;
            for row in &block.rows {
                prop_assert!(row.start == at && row.start <= row.insert && row.insert <= row.end);
                at = row.end;
            }
            prop_assert_eq!(at, text.len());
        }
    }
}
