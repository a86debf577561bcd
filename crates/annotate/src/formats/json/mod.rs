//! JSON lines: lines keep their bytes, members are appended to their objects.

mod find;

use self::find::{Found, Place, find};
use super::{LogDecoder, Style, line_end};
use crate::block::{Block, Kind, Row};
use crate::fault::Fault;
use crate::{AnnotateError, AnnotateOptions, Column, Format};

/// Decoder of JSON lines. Empty lines and lines that are not objects are copied as they are; the
/// latter are counted.
///
/// An added member comes last in its object. Should the object already have one of that name, readers
/// that keep the last of equal names, as nearly all do, see the added one.
pub(crate) struct JsonLines {
    names: Vec<String>,
    strict: bool,
    found: Vec<Found>,
}

impl JsonLines {
    pub(crate) fn new(options: &AnnotateOptions) -> Result<Self, AnnotateError> {
        let mut names: Vec<String> = Vec::new();
        for column in &options.columns {
            match column {
                Column::Name(name) if names.contains(name) => {
                    return Err(AnnotateError::Twice { name: name.clone() });
                }
                Column::Name(name) => names.push(name.clone()),
                Column::Number(_) => {
                    return Err(AnnotateError::ColumnKind {
                        format: Format::JsonLines,
                        column: column.clone(),
                    });
                }
            }
        }
        if names.is_empty() {
            return Err(AnnotateError::NoColumn { format: Format::JsonLines });
        }
        Ok(Self { names, strict: options.strict, found: Vec::new() })
    }

    /// Gives the cells of a line to the block.
    fn cells(&mut self, at: usize, block: &mut Block) -> Result<(), Fault> {
        for (slot, found) in self.found.iter_mut().enumerate() {
            match std::mem::take(&mut found.place) {
                Place::Empty => block.empty(),
                Place::Address(address) => block.address(address),
                Place::Other(text) => {
                    block.unparsable();
                    let fault = || Fault::Unparsable { at, slot, text: text.into_bytes() };
                    block.fault(self.strict, fault)?;
                }
            }
        }
        Ok(())
    }
}

impl LogDecoder for JsonLines {
    fn decode(&mut self, data: &[u8], end: bool, block: &mut Block) -> Result<usize, Fault> {
        let mut start = 0;
        while !block.is_full() {
            let Some((content, next)) = line_end(&data[start..], end) else { break };
            let line = data[start..start + content].trim_ascii_end();
            if line.is_empty() {
                block.pass(start, start + next);
                start += next;
                continue;
            }
            if let Err(error) = find(line, &self.names, &mut self.found) {
                block.tally.rows += 1;
                block.tally.damaged += 1;
                block.fault(self.strict, || Fault::Record { at: start, what: describe(&error) })?;
                block.pass(start, start + next);
                start += next;
                continue;
            }
            self.cells(start, block)?;
            // The line is an object, so it ends with a brace; behind what stands before it is where
            // members go.
            let inner = line[..line.len() - 1].trim_ascii_end();
            let empty = inner.trim_ascii_start() == b"{";
            block.row(Row {
                start,
                insert: start + inner.len(),
                end: start + next,
                pad: 0,
                kind: if empty { Kind::AnnotateEmpty } else { Kind::Annotate },
            });
            start += next;
        }
        Ok(start)
    }

    fn names(&self) -> &[String] {
        &self.names
    }

    fn style(&self) -> Style {
        Style::Members
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
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode(columns: &[&str], strict: bool, text: &str) -> Result<Block, Fault> {
        let columns = columns.iter().map(|&c| Column::Name(c.into())).collect();
        let options = AnnotateOptions { columns, strict, ..AnnotateOptions::default() };
        let mut block = Block::default();
        let used = JsonLines::new(&options).unwrap().decode(text.as_bytes(), true, &mut block)?;
        assert_eq!(used, text.len());
        Ok(block)
    }

    #[test]
    fn members_are_found_and_others_counted() {
        let text = "{\"ip\":\"10.0.0.1\"}\r\n[1]\n\n{\"ip\":null}\n{ } \n{\"ip\":7}\n{\"ip\":\"x\"";
        let block = decode(&["ip"], false, text).unwrap();
        assert_eq!((&block.v4.addrs[..], &block.v4.cells[..]), (&[0x0a00_0001][..], &[0][..]));
        let kinds: Vec<_> = block.rows.iter().map(|row| row.kind).collect();
        let (a, p) = (Kind::Annotate, Kind::Pass);
        assert_eq!(kinds, [a, p, p, a, Kind::AnnotateEmpty, a, p]);
        let t = block.tally;
        assert_eq!((t.rows, t.empty, t.unparsable, t.damaged), (6, 2, 1, 2));
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
            let block = decode(&["a", "a.b"], false, &text).unwrap();
            let mut at = 0;
            for row in &block.rows {
                prop_assert!(row.start == at && row.start <= row.insert && row.insert <= row.end);
                at = row.end;
            }
            prop_assert_eq!(at, text.len());
        }
    }
}
