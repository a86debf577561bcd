use std::borrow::Cow;

use fibula_core::Value;
use memchr::memchr;

use super::layout::{Layout, State};
use super::options::TextOptions;
use super::overlap::Earlier;
use super::rows::{MAX_LINE, Row, Rows};
use super::sniff::sniff;
use crate::{Damage, Decoder, Format, HostBits, Sink, SourceInfo, StopReason, Tail};

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

/// The state after the head was analysed.
struct Running {
    layout: Layout,
    rows: Rows,
    state: State,
    /// Within a line that is too long.
    skipping: bool,
}

impl Default for TextDecoder {
    fn default() -> Self {
        Self::new(TextOptions::default(), Format::Text)
    }
}

impl TextDecoder {
    /// Makes a decoder. `format` is one of the text formats ([`Format::Text`], `Csv`, `Tsv`, `Ranges`).
    pub fn new(options: TextOptions, format: Format) -> Self {
        Self { options, format, running: None, lines: 0, offset: 0 }
    }

    /// Finds the layout out; returns the length of a byte order mark.
    fn start(&mut self, input: &[u8], sink: &mut dyn Sink) -> Result<usize, StopReason> {
        let text = input.strip_prefix(BOM).unwrap_or(input);
        let mut head = text;
        if input.len() > HEAD {
            head = &input[input.len() - text.len()..HEAD];
            let whole = memchr::memrchr(b'\n', head).map_or(head.len(), |at| at + 1);
            head = &head[..whole];
        }
        let layout = sniff(head, self.format, &self.options).map_err(StopReason::Misfit)?;
        sink.begin(&SourceInfo {
            format: "text",
            columns: layout.columns.iter().map(|column| column.decl.clone()).collect(),
            types: layout
                .columns
                .iter()
                .filter_map(|column| Some((column.decl.name.clone(), column.scalar?)))
                .collect(),
            ..SourceInfo::default()
        });
        layout.notes.iter().for_each(|note| sink.noted(note));
        let rows = layout.rows();
        let earlier = if layout.ranges { Earlier::with_ranges() } else { Earlier::default() };
        let state = State { header: layout.header, record: 0, earlier };
        self.running = Some(Running { layout, rows, state, skipping: false });
        Ok(input.len() - text.len())
    }
}

impl Decoder for TextDecoder {
    fn decode(
        &mut self,
        input: &[u8],
        tail: Tail,
        sink: &mut dyn Sink,
    ) -> Result<usize, StopReason> {
        let mut at = 0;
        if self.running.is_none() {
            if input.len() < HEAD && !tail.is_last() {
                return Ok(0);
            }
            at = self.start(input, sink)?;
        }
        let host_bits = self.options.host_bits;
        let Some(running) = &mut self.running else { return Err(StopReason::BySink) };
        let (mut fields, mut values) = (Vec::new(), Vec::new());
        while at < input.len() {
            let rest = &input[at..];
            running.state.record = self.lines + 1;
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
                        let Running { layout, rows, state, .. } = running;
                        let fields: Vec<&[u8]> = rows.quoted.fields().collect();
                        let mut values = Vec::new();
                        let result = layout.emit(state, &fields, host_bits, &mut values, sink);
                        (len, lines, result)
                    }
                },
            };
            if let Err(what) = result {
                let damage = Damage::new(self.lines + 1, self.offset + at as u64, what);
                if sink.damage(&damage).is_break() {
                    return Err(StopReason::BySink);
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
        self.layout.emit(&mut self.state, fields, host_bits, values, sink)
    }
}
