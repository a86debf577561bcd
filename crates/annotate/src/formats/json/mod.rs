//! JSON: objects keep their bytes, and members are appended to them.

mod around;
mod between;
mod find;
mod layout;
mod plain;
mod shape;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use std::net::IpAddr;

use self::between::Between;
use self::find::{Found, MemberValue, Names, find};
pub(super) use self::layout::begins_array;
use self::layout::{Around, ObjectLayout};
use self::shape::LineTemplate;
use super::{Decode, LogDecoder, Style, last_line_end, set};
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
    /// Whether an object that already has a member to add is copied unchanged and counted, instead of ending the input.
    keeps_taken: bool,
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
            keeps_taken: false,
        };
        decoder.call(columns, added);
        decoder
    }

    /// A decoder of a stream: each line is an object, whatever the first one is like, and no object ends the stream.
    pub(crate) fn of_stream(
        options: &AnnotateOptions,
        added: &[String],
    ) -> Result<Self, AnnotateError> {
        let shape = Some(ObjectLayout::Lines);
        Ok(Self { shape, keeps_taken: true, ..Self::new(options, added)? })
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
                if self.keeps_taken {
                    let what = || AnnotateError::NameTaken { name }.to_string();
                    return self.stray(start, end, what, block);
                }
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
mod tests;
