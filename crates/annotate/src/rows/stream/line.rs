//! The line protocol of InfluxDB and Telegraf: `measurement,tag=value field=value,field="text" time`.

use crate::block::{Block, Row, RowKind};
use crate::fault::Fault;
use crate::formats::{Decode, LogDecoder, Style, Wire};
use crate::{AnnotateError, Column};

/// Decoder of lines. Tags and fields are found by their names; a field comes before a tag of the same name.
pub(super) struct Line {
    names: Vec<String>,
    found: Vec<Option<Found>>,
    /// The value of a tag or field without its escapes.
    text: Vec<u8>,
}

/// Where the value of a column is in a line.
#[derive(Clone, Copy)]
struct Found {
    start: usize,
    end: usize,
}

/// The parts of a line.
struct Parts {
    /// Where fields are added.
    insert: usize,
    end: usize,
}

impl Line {
    pub(super) fn new(columns: &[Column]) -> Result<Self, AnnotateError> {
        let name = |column: &Column| match column {
            Column::Name(name) => Ok(name.clone()),
            Column::Number(number) => {
                let what =
                    format!("the line protocol has no column numbers, {number} was asked for");
                Err(AnnotateError::Stream { what })
            }
        };
        let names: Vec<String> = columns.iter().map(name).collect::<Result<_, _>>()?;
        let found = vec![None; names.len()];
        Ok(Self { names, found, text: Vec::new() })
    }

    /// Notes the value of a tag or field if it is a column.
    fn note(&mut self, line: &[u8], key: (usize, usize), value: (usize, usize)) {
        for (slot, name) in self.names.iter().enumerate() {
            let key = &line[key.0..key.1];
            let is_name = key == name.as_bytes()
                || key.contains(&b'\\')
                    && unescaped(key, b",= ", &mut self.text) == name.as_bytes();
            if is_name {
                self.found[slot] = Some(Found { start: value.0, end: value.1 });
            }
        }
    }

    /// Reads the tags and fields of a line that begins with a measurement.
    fn read(&mut self, line: &[u8]) -> Option<usize> {
        let mut at = skip(line, 0, b", ")?;
        while line[at] == b',' {
            let key = at + 1;
            let equals = skip(line, key, b",= ").filter(|&at| line[at] == b'=')?;
            at = skip(line, equals + 1, b", ")?;
            self.note(line, (key, equals), (equals + 1, at));
        }
        // Fields follow the first blank that is not in a tag.
        loop {
            let key = at + 1;
            let equals = skip(line, key, b",= ").filter(|&at| line[at] == b'=')?;
            let value = equals + 1;
            at = match line.get(value)? {
                b'"' => end_of_text(line, value)?,
                _ => skip(line, value, b", ").unwrap_or(line.len()),
            };
            self.note(line, (key, equals), (value, at));
            match line.get(at) {
                Some(b',') => {}
                Some(b' ') | None => return Some(at),
                Some(_) => return None,
            }
        }
    }
}

/// The first of these bytes from `at` on that is not escaped.
fn skip(line: &[u8], mut at: usize, until: &[u8]) -> Option<usize> {
    loop {
        match line.get(at)? {
            b'\\' => at += 2,
            byte if until.contains(byte) => return Some(at),
            _ => at += 1,
        }
    }
}

/// The end of the text whose quote is at `at`, after its other quote.
fn end_of_text(data: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += 1;
        match data.get(at)? {
            b'\\' => at += 1,
            b'"' => return Some(at + 1),
            _ => {}
        }
    }
}

/// Text without the backslashes before these bytes.
fn unescaped<'t>(text: &[u8], escaped: &[u8], out: &'t mut Vec<u8>) -> &'t [u8] {
    out.clear();
    let mut at = 0;
    while at < text.len() {
        if text[at] == b'\\' && text.get(at + 1).is_some_and(|byte| escaped.contains(byte)) {
            at += 1;
        }
        out.push(text[at]);
        at += 1;
    }
    out
}

/// The line at the beginning of `data`, whose text between quotes may have line ends; `None` if it is not complete.
fn line_end(data: &[u8], end: bool) -> Option<(usize, usize)> {
    let (mut at, mut quoted, mut in_fields) = (0, false, false);
    while at < data.len() {
        // Quotes are ordinary characters of a measurement and of tags. Fields follow the first blank.
        let sign = if in_fields { b'"' } else { b' ' };
        let Some(found) = memchr::memchr3(b'\n', b'\\', sign, &data[at..]) else { break };
        at += found;
        match data[at] {
            // Only in text, a line end can follow a backslash.
            b'\\' => at += usize::from(quoted || data.get(at + 1) != Some(&b'\n')),
            b'"' => quoted = !quoted,
            b' ' => in_fields = true,
            _ if !quoted => {
                return Some((at - usize::from(at > 0 && data[at - 1] == b'\r'), at + 1));
            }
            _ => {}
        }
        at += 1;
    }
    (end && !data.is_empty()).then_some((data.len(), data.len()))
}

impl Decode for Line {
    fn decode(&mut self, data: &[u8], end: bool, block: &mut Block) -> Result<usize, Fault> {
        let mut start = 0;
        while !block.is_full() {
            let Some((content, next)) = line_end(&data[start..], end) else { break };
            let line = &data[start..start + content];
            let next = start + next;
            if line.is_empty() || line[0] == b'#' {
                block.pass(start, next);
                start = next;
                continue;
            }
            self.found.fill(None);
            let Some(parts) = self.read(line).map(|at| Parts { insert: start + at, end: next })
            else {
                block.tally.rows += 1;
                let what = || "not a line of the line protocol".to_owned();
                block.bad_record(false, || Fault::Record { at: start, what: what() })?;
                block.pass(start, next);
                start = next;
                continue;
            };
            for slot in 0..self.found.len() {
                let Some(Found { start: from, end: to }) = self.found[slot] else {
                    block.empty();
                    continue;
                };
                let value = &line[from..to];
                let value =
                    match value.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\"")) {
                        Some(text) => text,
                        None => value,
                    };
                let value = match value.contains(&b'\\') {
                    true => unescaped(value, b",= \"\\", &mut self.text),
                    false => value,
                };
                if block.cell(value).is_err() {
                    let text = value.to_vec();
                    block.bad_cell(false, || Fault::Unparsable { at: start, slot, text })?;
                }
            }
            let Parts { insert, end } = parts;
            block.row(Row { start, insert, end, pad: 0, kind: RowKind::Annotate });
            start = next;
        }
        Ok(start)
    }
}

impl LogDecoder for Line {
    fn names(&self) -> &[String] {
        &self.names
    }

    fn style(&self) -> Style {
        Style::Wire(Wire::Line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_outside_of_text() {
        for (text, content) in [
            ("m v=1\nn", 5),
            ("m v=1\r\nn", 5),
            ("m,t=\"x v=1\nn", 10),
            ("m v=\"a\nb\" 1\nn", 11),
            ("m v=\"a\\\"\nb\"\nn", 11),
            ("m\\ \"x v=1\nn", 9),
        ] {
            assert_eq!(
                line_end(text.as_bytes(), false).map(|found| found.0),
                Some(content),
                "{text}"
            );
        }
        assert_eq!(line_end(b"m v=\"a\n", false), None);
        assert_eq!(line_end(b"m v=1", true), Some((5, 5)));
        assert_eq!(line_end(b"m v=1\\", true), Some((6, 6)));
    }

    #[test]
    fn values_are_found() {
        let names = ["src", "d t"].map(|name| Column::Name(name.to_owned()));
        let mut line = Line::new(&names).unwrap();
        for (text, insert, found) in [
            ("m,src=10.0.0.1 v=1 5", 18, [Some("10.0.0.1"), None]),
            ("m src=\"::1\",d\\ t=\"x y\" 5", 22, [Some("\"::1\""), Some("\"x y\"")]),
            ("m,d\\ t=a\\,b v=1,w=\" \"", 21, [None, Some("a\\,b")]),
        ] {
            line.found.fill(None);
            assert_eq!(line.read(text.as_bytes()), Some(insert), "{text}");
            let values = line.found.iter().map(|found| found.map(|of| &text[of.start..of.end]));
            assert_eq!(values.collect::<Vec<_>>(), found, "{text}");
        }
        for text in [
            "m",
            "m v",
            "m, v=1",
            "m v=",
            "m v=\"a",
            "m v=1,",
            "m\\",
            "m,\\",
            "m v=\"\\",
            "m v=\"a\"b",
        ] {
            assert_eq!(line.read(text.as_bytes()), None, "{text}");
        }
    }
}
