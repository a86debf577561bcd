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
mod tests {
    use super::*;
    use crate::pipeline::answers::Without;
    use proptest::prelude::*;

    fn csv(columns: &[&str], header: Header) -> Csv {
        let columns = columns.iter().map(|c| c.parse().unwrap()).collect();
        let options = AnnotateOptions { columns, header, ..AnnotateOptions::default() };
        Csv::new(LogFormat::Csv, &options, vec!["asn".into()]).unwrap()
    }

    fn decode(csv: &mut Csv, text: &str) -> Result<Block, Fault> {
        let mut block = Block::default();
        let used = csv.decode(text.as_bytes(), true, &mut block)?;
        assert_eq!(used, text.len());
        Ok(block)
    }

    #[test]
    fn columns_by_name_number_and_by_looking() {
        let text = "t,src,dst\r\n1,10.0.0.1,10.0.0.2\r\n2, 10.0.0.3 ,\"10.0.0.4\"\r\n";
        for columns in [&["src", "dst"][..], &["2", "3"], &[]] {
            let mut csv = csv(columns, Header::Detect);
            let block = decode(&mut csv, text).unwrap();
            assert_eq!(csv.names(), ["src", "dst"]);
            assert_eq!(block.keys.v4.addrs, [0x0a000001, 0x0a000002, 0x0a000003, 0x0a000004]);
            assert_eq!(block.rows[0].kind, RowKind::Header);
        }
        let mut csv = csv(&["3", "1"], Header::Detect);
        let block = decode(&mut csv, "10.0.0.1,x,10.0.0.2\n").unwrap();
        assert_eq!(
            (csv.names(), &block.keys.v4.addrs[..]),
            (&["3".into(), "1".into()][..], &[0x0a000002, 0x0a000001][..])
        );
    }

    #[test]
    fn rows_of_other_widths() {
        let mut csv = csv(&["b"], Header::Present);
        let block = decode(&mut csv, "a,b,c\n1\n1,10.0.0.1,3,4\n\n").unwrap();
        assert_eq!(block.rows.iter().map(|r| r.pad).collect::<Vec<_>>(), [0, 2, 0, 0]);
        assert_eq!((block.tally.rows, block.tally.damaged, block.count(Without::Empty)), (2, 2, 1));
        csv.strict = true;
        let fault = decode(&mut csv, "1\n").unwrap_err();
        assert!(matches!(fault, Fault::Record { at: 0, .. }));
    }

    /// Values are below their names: before the fields that the header does not have.
    #[test]
    fn values_of_wide_rows() {
        let text = "a,b\n1,10.0.0.1\n2,10.0.0.2,x,y\n3,\"10.0.0.3\",\n";
        let block = decode(&mut csv(&["b"], Header::Present), text).unwrap();
        let behind = |row: &Row| &text[row.insert..row.end];
        let behind: Vec<_> = block.rows.iter().map(behind).collect();
        assert_eq!(behind, ["\n", "\n", ",x,y\n", ",\n"]);
        assert_eq!(block.tally.damaged, 2);
    }

    #[test]
    fn times_in_brackets() {
        let text = b"x [02/Feb/2024:00:00:00 +0100] \"GET /\" [x";
        assert_eq!(time_text(text, (2, 23)), b"[02/Feb/2024:00:00:00 +0100]");
        assert_eq!(time_text(text, (39, 41)), b"[x");
        assert_eq!(time_text(text, (0, 1)), b"x");
    }

    #[test]
    fn comments_among_rows() {
        let text = "# by x\nip,n\n10.0.0.1,1\n# half, of, it\n#2,10.0.0.9\n10.0.0.3,3\n";
        let block = decode(&mut csv(&["ip"], Header::Present), text).unwrap();
        let kinds: Vec<_> = block.rows.iter().map(|row| row.kind).collect();
        use RowKind::{Annotate, Header as Names, Pass};
        assert_eq!(kinds, [Pass, Names, Annotate, Pass, Annotate, Annotate]);
        assert_eq!((block.tally.rows, block.tally.damaged), (3, 0));
        let text = "#fields\tip\tn\n#types\taddr\tint\n10.0.0.1\t1\n#close\t1\n";
        let block = decode(&mut csv(&[], Header::Detect), text).unwrap();
        let kinds: Vec<_> = block.rows.iter().map(|row| row.kind).collect();
        assert_eq!(kinds, [Names, Pass, Annotate, Pass]);
        let other = format!("{text}#fields\tn\tip\n1\t10.0.0.1\n");
        let fault = decode(&mut csv(&[], Header::Detect), &other).unwrap_err();
        assert!(matches!(fault, Fault::Row { at, .. } if at == text.len()), "{fault:?}");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let text = "src,src_asn\n10.0.0.1,5\n";
        let refused =
            |columns: &[&str], text: &str| match decode(&mut csv(columns, Header::Detect), text) {
                Err(Fault::Options(error)) => error.to_string(),
                other => panic!("{other:?}"),
            };
        assert_eq!(refused(&["src"], text), "the input already has a column \"src_asn\"");
        assert_eq!(refused(&["x"], text), "the header has no column \"x\"; it has: src, src_asn");
        assert_eq!(refused(&["9"], text), "column 9 was asked for, the first row has 2");
        assert_eq!(refused(&["1", "1"], text), "\"src\" was asked for twice");
        assert_eq!(
            refused(&[], "a,b\n1,2\n"),
            "no address column found in the csv input: name one"
        );
    }

    /// Rows below an open quote would be lost in silence. A last line that was cut off loses nothing but itself.
    #[test]
    fn quotes_that_are_left_open() {
        for (text, at) in [
            ("src,\"dst\n10.0.0.1,10.0.0.2\n", 0),
            ("src,\"dst", 0),
            ("src,dst\n10.0.0.1,\"10.0.0.2\n10.0.0.3,10.0.0.4\n", 8),
        ] {
            let fault = decode(&mut csv(&["src"], Header::Present), text).unwrap_err();
            assert!(matches!(fault, Fault::OpenQuote { at: place } if place == at), "{fault:?}");
        }
        let text = "src,dst\n10.0.0.1,10.0.0.2\n10.0.0.3,\"10.0";
        for text in [text, &format!("{text}\r\n")] {
            let block = decode(&mut csv(&["src"], Header::Present), text).unwrap();
            assert_eq!((block.tally.rows, block.tally.damaged), (2, 1));
        }
        let mut strict = csv(&["src"], Header::Present);
        strict.strict = true;
        let fault = decode(&mut strict, text).unwrap_err();
        assert!(matches!(fault, Fault::Record { at: 26, .. }), "{fault:?}");
    }

    #[test]
    fn empty_inputs() {
        for text in ["", "\n", "\r\n\n"] {
            let mut csv = csv(&["src"], Header::Detect);
            assert_eq!(decode(&mut csv, text).unwrap().tally.rows, 0);
        }
    }

    proptest! {
        /// For any input and any cut, rows tile the input and give the same addresses.
        #[test]
        fn cuts_do_not_matter(text in "(a,b\r?\n)?([0-9.,\"\r\n ]{0,12}|10\\.0\\.0\\.1|,|\n|\"){0,20}", cut in 0usize..80) {
            let mut whole = csv(&["1"], Header::Detect);
            let Ok(expected) = decode(&mut whole, &text) else { return Ok(()) };
            let mut parts = csv(&["1"], Header::Detect);
            let mut block: Block = Block::default();
            let data = text.as_bytes();
            let used = parts.decode(&data[..cut.min(data.len())], false, &mut block).unwrap();
            parts.decode(&data[used..], true, &mut block).unwrap();
            prop_assert_eq!(&block.keys.v4.addrs, &expected.keys.v4.addrs);
            prop_assert_eq!(block.tally.rows, expected.tally.rows);
            let mut at = 0;
            for row in &expected.rows {
                prop_assert!(row.start == at && row.start <= row.insert && row.insert <= row.end);
                at = row.end;
            }
            prop_assert_eq!(at, data.len());
        }
    }
}
