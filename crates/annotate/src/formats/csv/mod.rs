//! CSV and TSV: records keep their bytes, and values are added as further fields.

mod begin;
mod lead;
mod plain;
pub(crate) mod scan;

use self::lead::directive;
use self::plain::{Located, Plain, cut};
use self::scan::{Dialect, Quotes, Record, record, unquoted, unquoted_place};
use fibula_simd::parse_v4_at;

use super::{Decode, LogDecoder, Style, line_end};
use crate::block::{Block, Row, RowKind};
use crate::fault::Fault;
use crate::pipeline::keys::KeySink;
use crate::rules::FlowChoice;
use crate::{AnnotateError, AnnotateOptions, Column, Header, LogFormat};

/// Decoder of delimited text. The first record determines the positions of the address columns and the width of a row.
/// Empty lines are copied unchanged.
#[derive(Clone)]
pub(crate) struct Csv {
    format: LogFormat,
    dialect: Dialect,
    /// Whether the delimiter is detected from the first record.
    detect: bool,
    columns: Vec<Column>,
    /// The column of times; its slot comes after those of the addresses.
    time: Option<Column>,
    header: Header,
    strict: bool,
    /// Whether a cell with only digits is an address.
    integers: bool,
    /// The suffixes of the added columns, to check whether their names are taken.
    add: Vec<String>,
    /// Chooses the columns by the fields of flows.
    flows: Option<FlowChoice>,
    layout: Option<Layout>,
    names: Vec<String>,
    /// The line that names the columns after a word of its own. Lines that begin with `#` are then comments.
    directive: Option<Vec<u8>>,
    /// For each slot, the range of its field in a record.
    found: Vec<(usize, usize)>,
}

/// The layout of rows, which the beginning of the input determines.
#[derive(Clone)]
struct Layout {
    /// The numbers of the fields with addresses or the time, ascending and counted from 0, each with its slot.
    fields: Vec<(usize, usize)>,
    width: usize,
}

impl Layout {
    /// Reads the record at the beginning of `data` and stores the ranges of these fields in `found`. Missing fields get
    /// empty ranges. Also returns where values are added: before the fields that the first row does not have, so that
    /// the values are below their names.
    fn locate(
        &self,
        data: &[u8],
        end: bool,
        dialect: Dialect,
        found: &mut [(usize, usize)],
    ) -> Option<(Record, usize)> {
        found.fill((0, 0));
        let mut insert = None;
        let mut wanted = self.fields.iter();
        let mut next = wanted.next();
        let record = record(data, end, dialect, |i, from, to| {
            if let Some(&(field, slot)) = next
                && field == i
            {
                found[slot] = (from, to);
                next = wanted.next();
            }
            if i + 1 == self.width {
                insert = Some(to);
            }
        })?;
        Some((record, insert.unwrap_or(record.content)))
    }
}

impl Csv {
    pub(crate) fn new(
        format: LogFormat,
        options: &AnnotateOptions,
        add: Vec<String>,
    ) -> Result<Self, AnnotateError> {
        let own = if format == LogFormat::Tsv { b'\t' } else { b',' };
        let (delimiter, quote) = (options.delimiter.unwrap_or(own), options.quote);
        let detect = format == LogFormat::Csv && options.delimiter.is_none();
        let bad = |b: u8| b == b'\n' || b == b'\r';
        if bad(delimiter) || quote.is_some_and(|quote| bad(quote) || quote == delimiter) {
            return Err(AnnotateError::Delimiter);
        }
        // Without chosen columns, counts and ports would be addresses, too.
        if options.integers && options.columns.is_empty() {
            return Err(AnnotateError::NoColumn { format });
        }
        let requested = options.columns.iter().chain(&options.time);
        let named = requested.into_iter().any(|column| matches!(column, Column::Name(_)));
        let header = if named { Header::Present } else { options.header };
        Ok(Self {
            format,
            dialect: Dialect { delimiter, quote },
            detect,
            columns: options.columns.clone(),
            time: options.time.clone(),
            header,
            strict: options.strict,
            integers: options.integers,
            add,
            flows: None,
            layout: None,
            names: Vec::new(),
            directive: None,
            found: Vec::new(),
        })
    }

    /// A decoder of the fields of flows, whose columns have names.
    pub(crate) fn of_flows(
        format: LogFormat,
        options: &AnnotateOptions,
        choice: FlowChoice,
    ) -> Result<Self, AnnotateError> {
        let csv = Self::new(format, options, Vec::new())?;
        Ok(Self { flows: Some(choice), header: Header::Present, ..csv })
    }
}

/// What a line is that may be no row.
enum Between {
    Row,
    /// An empty line or a comment, with its length.
    Pass(usize),
    /// The names of other columns.
    Columns,
    Incomplete,
}

impl Csv {
    /// Looks at a line that begins with a line end or with `#`. A comment has another number of fields than the rows.
    fn between(&self, rest: &[u8], end: bool, width: usize) -> Between {
        if rest[0] == b'\r' && rest.get(1) != Some(&b'\n') {
            return Between::Row;
        }
        let Some((content, next)) = line_end(rest, end) else { return Between::Incomplete };
        let line = &rest[..content];
        if content == 0 {
            return Between::Pass(next);
        }
        match &self.directive {
            Some(known) if directive(line).is_some() && line != known => Between::Columns,
            Some(_) => Between::Pass(next),
            None => {
                let delimiters = memchr::memchr_iter(self.dialect.delimiter, line).count();
                if delimiters + 1 == width { Between::Row } else { Between::Pass(next) }
            }
        }
    }
}

/// The error for a line that names other columns than those before it.
fn changed(at: usize) -> Fault {
    let what =
        "other columns than before: cut the input here, and read its parts one after the other";
    Fault::Row { at, what: what.to_owned() }
}

impl<K: KeySink + 'static> Decode<K> for Csv {
    fn decode(&mut self, data: &[u8], end: bool, block: &mut Block<K>) -> Result<usize, Fault> {
        let mut start = 0;
        if self.layout.is_none() {
            match self.begin(data, end, block)? {
                Some(at) => start = at,
                None => return Ok(0),
            }
        }
        // Without a layout, the input has only empty lines.
        let Some(layout) = &self.layout else {
            block.pass(0, start);
            return Ok(start);
        };
        let quote = self.dialect.quote;
        let mut plain = Plain::new(data, start, self.dialect);
        while !block.is_full() && start < data.len() {
            let rest = &data[start..];
            if matches!(rest[0], b'\n' | b'\r' | b'#') {
                match self.between(rest, end, layout.width) {
                    Between::Row => {}
                    Between::Incomplete => break,
                    Between::Columns => return Err(changed(start)),
                    Between::Pass(next) => {
                        block.pass(start, start + next);
                        start += next;
                        plain.seek(start);
                        continue;
                    }
                }
            }
            self.found.fill((start, start));
            let located = plain.locate(start, &layout.fields, &mut self.found);
            if let Located::Record(record) = located
                && record.fields == layout.width
            {
                let (cells, time) = self.found.split_at(self.names.len());
                for (slot, &place) in cells.iter().enumerate() {
                    let (from, to) = unquoted_place(data, place, quote);
                    if let Some(v4) = parse_v4_at(data, from, to) {
                        block.v4(v4);
                        continue;
                    }
                    let field = &data[from..to];
                    if block.cell(field).is_err() {
                        let fault = || Fault::Unparsable { at: start, slot, text: field.to_vec() };
                        block.bad_cell(self.strict, fault)?;
                    }
                }
                if let &[place] = time {
                    let place = unquoted_place(data, place, quote);
                    block.time(start, time_text(data, place), self.strict)?;
                }
                let (insert, end) = (start + record.content, start + record.next);
                block.row(Row { start, insert, end, pad: 0, kind: RowKind::Annotate });
                start = end;
                continue;
            }
            let record = layout.locate(rest, end, self.dialect, &mut self.found);
            let Some((record, insert)) = record else { break };
            if record.quotes == Quotes::Open && rest.trim_ascii_end().contains(&b'\n') {
                return Err(Fault::OpenQuote { at: start });
            }
            if let Some(what) = damage(record, layout.width) {
                block.bad_record(self.strict, || Fault::Record { at: start, what })?;
            }
            let (cells, time) = self.found.split_at(self.names.len());
            for (slot, &(from, to)) in cells.iter().enumerate() {
                let field = unquoted(&rest[from..to], quote);
                if block.cell(field).is_err() {
                    let fault = || Fault::Unparsable { at: start, slot, text: field.to_vec() };
                    block.bad_cell(self.strict, fault)?;
                }
            }
            if let &[place] = time {
                let place = unquoted_place(rest, place, quote);
                block.time(start, time_text(rest, place), self.strict)?;
            }
            block.row(Row {
                start,
                insert: start + insert,
                end: start + record.next,
                pad: layout.width.saturating_sub(record.fields),
                kind: RowKind::Annotate,
            });
            start += record.next;
            plain.seek(start);
        }
        Ok(start)
    }

    fn fork(&self) -> Option<Box<dyn Decode<K>>> {
        self.layout.is_some().then(|| Box::new(self.clone()) as _)
    }
}

impl LogDecoder for Csv {
    fn names(&self) -> &[String] {
        &self.names
    }

    fn style(&self) -> Style {
        Style::Fields(self.dialect)
    }

    fn cut(&mut self, data: &[u8]) -> usize {
        cut(data, self.dialect)
    }
}

/// The text of a time. In brackets, as access logs have it, it may contain a delimiter before its zone.
#[inline]
fn time_text(data: &[u8], (from, to): (usize, usize)) -> &[u8] {
    /// The length of `[02/Feb/2024:00:00:00.000000 +0000]`.
    const LONGEST: usize = 35;
    let text = &data[from..to];
    if text.first() != Some(&b'[') {
        return text;
    }
    let longest = &data[from..data.len().min(from + LONGEST)];
    memchr::memchr(b']', longest).map_or(text, |close| &longest[..=close])
}

/// What is wrong with a record, if anything is.
fn damage(record: Record, width: usize) -> Option<String> {
    match record.quotes {
        Quotes::Open => Some("a quote is open at the end of the input".to_owned()),
        Quotes::TextBehind => Some(
            "text behind a closing quote: write a quote within quotes twice, or read the input without quotes"
                .to_owned(),
        ),
        Quotes::Regular if record.fields != width => {
            Some(format!("{} fields, the first row has {width}", record.fields))
        }
        Quotes::Regular => None,
    }
}

#[cfg(test)]
mod tests;
