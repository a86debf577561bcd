use std::borrow::Cow;

use fibula_core::{AnyPrefix, Attributes, Change, Prefix, Update, Value};
use memchr::memchr;

use super::address::{Key, parse_key, parse_range};
use super::options::TextOptions;
use super::rows::{MAX_LINE, Row, Rows};
use super::sniff::{KeyAt, Layout, sniff};
use crate::{ColumnKind, Damage, Decoder, Format, HostBits, Sink, SourceInfo, Stopped, Tail};

/// The layout is found out from this much of the input.
const HEAD: usize = 1 << 20;
const BOM: &[u8] = b"\xef\xbb\xbf";

/// Decodes text; see the [module](super). A record is a line, counted from 1.
pub struct TextDecoder {
    options: TextOptions,
    format: Format,
    running: Option<Running>,
    lines: u64,
    offset: u64,
}

/// What is known once the head was looked at.
struct Running {
    layout: Layout,
    rows: Rows,
    /// The header has not passed by yet.
    header: bool,
    /// Within a line that is too long.
    skipping: bool,
}

impl Default for TextDecoder {
    fn default() -> Self {
        Self::new(TextOptions::default(), Format::Text)
    }
}

impl TextDecoder {
    /// A decoder; `format` is one of text's ([`Format::Text`], `Csv`, `Tsv`, `Ranges`).
    pub fn new(options: TextOptions, format: Format) -> Self {
        Self { options, format, running: None, lines: 0, offset: 0 }
    }

    /// Finds the layout out; returns the length of a byte order mark.
    fn start(&mut self, input: &[u8], sink: &mut dyn Sink) -> Result<usize, Stopped> {
        let text = input.strip_prefix(BOM).unwrap_or(input);
        let mut head = text;
        if input.len() > HEAD {
            head = &input[input.len() - text.len()..HEAD];
            let whole = memchr::memrchr(b'\n', head).map_or(head.len(), |at| at + 1);
            head = &head[..whole];
        }
        let layout = sniff(head, self.format, &self.options).map_err(Stopped::Misfit)?;
        sink.begin(&SourceInfo {
            format: "text",
            columns: layout.columns.iter().map(|column| column.decl.clone()).collect(),
            ..SourceInfo::default()
        });
        let rows = Rows::new(layout.delimiter, layout.fields);
        let header = layout.header;
        self.running = Some(Running { layout, rows, header, skipping: false });
        Ok(input.len() - text.len())
    }
}

impl Decoder for TextDecoder {
    fn decode(&mut self, input: &[u8], tail: Tail, sink: &mut dyn Sink) -> Result<usize, Stopped> {
        let mut at = 0;
        if self.running.is_none() {
            if input.len() < HEAD && !tail.is_last() {
                return Ok(0);
            }
            at = self.start(input, sink)?;
        }
        let host_bits = self.options.host_bits;
        let Some(running) = &mut self.running else { return Err(Stopped::BySink) };
        let (mut fields, mut values) = (Vec::new(), Vec::new());
        while at < input.len() {
            let rest = &input[at..];
            let (len, lines, result) = match running.skip_line(rest) {
                Some(len) => (len, 0, Ok(())),
                None => match running.rows.next(rest, tail == Tail::End, &mut fields) {
                    Row::Need if tail.is_last() => {
                        (rest.len(), 1, Err("the last line is cut off".into()))
                    }
                    Row::Need => break,
                    Row::Comment(len) => (len, 1, Ok(())),
                    Row::Bad(len, what) => (len, 1, Err(what.into())),
                    Row::TooLong => {
                        running.skipping = true;
                        (0, 1, Err(format!("a line of more than {MAX_LINE} bytes").into()))
                    }
                    Row::Fields(len) => {
                        (len, 1, running.emit(&fields, host_bits, &mut values, sink))
                    }
                    Row::Quoted(len, lines) => {
                        let Running { layout, rows, header, .. } = running;
                        let fields: Vec<&[u8]> = rows.quoted.fields().collect();
                        let mut values = Vec::new();
                        let result = layout.emit(header, &fields, host_bits, &mut values, sink);
                        (len, lines, result)
                    }
                },
            };
            if let Err(what) = result {
                let damage = Damage::new(self.lines + 1, self.offset + at as u64, what);
                if sink.damage(&damage).is_break() {
                    return Err(Stopped::BySink);
                }
            }
            self.lines += lines;
            at += len;
        }
        self.offset += at as u64;
        Ok(at)
    }

    fn records(&self) -> u64 {
        self.lines
    }
}

impl Running {
    /// Within a line that is too long: how much of `rest` belongs to it.
    fn skip_line(&mut self, rest: &[u8]) -> Option<usize> {
        if !self.skipping {
            return None;
        }
        let end = memchr(b'\n', rest);
        self.skipping = end.is_none();
        Some(end.map_or(rest.len(), |end| end + 1))
    }

    fn emit<'a>(
        &mut self,
        fields: &[&'a [u8]],
        host_bits: HostBits,
        values: &mut Vec<Value<'a>>,
        sink: &mut dyn Sink,
    ) -> Result<(), Cow<'static, str>> {
        self.layout.emit(&mut self.header, fields, host_bits, values, sink)
    }
}

impl Layout {
    /// Turns a row into updates.
    fn emit<'a>(
        &self,
        header: &mut bool,
        fields: &[&'a [u8]],
        host_bits: HostBits,
        values: &mut Vec<Value<'a>>,
        sink: &mut dyn Sink,
    ) -> Result<(), Cow<'static, str>> {
        if std::mem::take(header) {
            return Ok(());
        }
        if fields.len() > self.fields {
            return Err(format!("more than {} fields", self.fields).into());
        }
        let key = self.key(fields, host_bits)?;
        values.clear();
        for column in &self.columns {
            let text = fields.get(column.field).copied().unwrap_or_default();
            values.push(value(text, column.decl.kind).ok_or_else(|| column.complain(text))?);
        }
        match key {
            Key::Prefix(prefix) => announce(prefix, values, sink),
            Key::RangeV4(first, last) => Prefix::split_range(first, last)
                .for_each(|prefix| announce(AnyPrefix::V4(prefix), values, sink)),
            Key::RangeV6(first, last) => Prefix::split_range(first, last)
                .for_each(|prefix| announce(AnyPrefix::V6(prefix), values, sink)),
        }
        Ok(())
    }

    fn key(&self, fields: &[&[u8]], host_bits: HostBits) -> Result<Key, Cow<'static, str>> {
        let field = |at: usize| fields.get(at).copied().unwrap_or_default();
        match self.key {
            KeyAt::One(at) => parse_key(field(at), host_bits)
                .map_err(|error| format!("{}: {}", error.text(), excerpt(field(at))).into()),
            KeyAt::Two { start, end, decimal } => parse_range(field(start), field(end), decimal)
                .map_err(|error| {
                    let (start, end) = (excerpt(field(start)), excerpt(field(end)));
                    format!("{}: {start} to {end}", error.text()).into()
                }),
        }
    }
}

fn announce(prefix: AnyPrefix, values: &[Value<'_>], sink: &mut dyn Sink) {
    let change = Change::Announce(Attributes::Values(values));
    sink.update(&Update::new(prefix, change));
}

/// The value of a field; `None` if it is not of the kind.
fn value(text: &[u8], kind: ColumnKind) -> Option<Value<'_>> {
    match kind {
        _ if text.is_empty() => Some(Value::Null),
        ColumnKind::Int => parse_int(text).map(Value::Int),
        ColumnKind::Str => std::str::from_utf8(text).ok().map(Value::Str),
    }
}

/// An unsigned integer of up to 64 bits, digits only.
pub(super) fn parse_int(text: &[u8]) -> Option<u64> {
    text.iter().try_fold(0u64, |value, &b| {
        let digit = b.is_ascii_digit().then(|| u64::from(b - b'0'))?;
        value.checked_mul(10)?.checked_add(digit)
    })
}

impl super::sniff::Column {
    #[cold]
    fn complain(&self, text: &[u8]) -> Cow<'static, str> {
        let name = &self.decl.name;
        match self.decl.kind {
            ColumnKind::Str => format!("column {name} is not UTF-8: {}", excerpt(text)),
            ColumnKind::Int => format!(
                "column {name} held integers so far, this is none: {}; declare it as text if it is",
                excerpt(text)
            ),
        }
        .into()
    }
}

/// The beginning of a field, fit to be shown.
#[cold]
fn excerpt(text: &[u8]) -> String {
    const MAX: usize = 60;
    let shown = String::from_utf8_lossy(&text[..text.len().min(MAX)]).into_owned();
    let dots = if text.len() > MAX { "..." } else { "" };
    format!("{shown:?}{dots}")
}
