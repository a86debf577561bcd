//! Lines with fields between tabs, as ClickHouse's TabSeparated. Every line is a row, also an empty one.

use crate::block::{Block, Row, RowKind};
use crate::fault::Fault;
use crate::formats::{Decode, LogDecoder, Style, Wire, line_end};
use crate::{AnnotateError, Column, Header};

/// Decoder of lines. If columns are chosen by name, the first line names them.
pub(super) struct Tsv {
    columns: Vec<Column>,
    /// Whether the next line is the header.
    awaits_header: bool,
    /// The numbers of the fields with addresses, ascending and counted from 0, each with its slot.
    fields: Vec<(usize, usize)>,
    names: Vec<String>,
    /// The field of each slot in a line, if it has one.
    found: Vec<Option<(usize, usize)>>,
}

/// Whether the first line of a stream names its columns.
pub(super) fn has_header(columns: &[Column], header: Header) -> bool {
    header == Header::Present || columns.iter().any(|column| matches!(column, Column::Name(_)))
}

impl Tsv {
    pub(super) fn new(columns: &[Column], header: Header) -> Self {
        let mut tsv = Self {
            columns: columns.to_vec(),
            awaits_header: has_header(columns, header),
            fields: Vec::new(),
            names: columns.iter().map(Column::to_string).collect(),
            found: vec![None; columns.len()],
        };
        if !tsv.awaits_header {
            let number = |(slot, column): (usize, &Column)| match column {
                Column::Number(number) => Some((number - 1, slot)),
                // Columns with names have a header.
                Column::Name(_) => None,
            };
            tsv.fields = columns.iter().enumerate().filter_map(number).collect();
            tsv.fields.sort_unstable();
        }
        tsv
    }

    /// Finds the columns by the names in the header.
    fn header(&mut self, line: &[u8]) -> Result<(), AnnotateError> {
        let text = String::from_utf8_lossy(line);
        let known: Vec<&str> = text.split('\t').collect();
        self.fields.clear();
        for (slot, column) in self.columns.iter().enumerate() {
            let field = match column {
                Column::Number(number) if *number <= known.len() => number - 1,
                Column::Number(number) => {
                    let (number, fields) = (*number, known.len());
                    return Err(AnnotateError::ColumnNumber { number, fields });
                }
                Column::Name(name) => {
                    known.iter().position(|known| known == name).ok_or_else(|| {
                        let known = known.iter().map(|&name| name.to_owned()).collect();
                        AnnotateError::UnknownColumn { name: name.clone(), known }
                    })?
                }
            };
            self.names[slot] = known[field].to_owned();
            self.fields.push((field, slot));
        }
        self.fields.sort_unstable();
        self.awaits_header = false;
        Ok(())
    }

    /// Finds the fields of a line.
    fn locate(&mut self, line: &[u8]) {
        self.found.fill(None);
        let mut wanted = self.fields.iter().copied().peekable();
        let (mut number, mut start) = (0, 0);
        for tab in memchr::memchr_iter(b'\t', line).chain([line.len()]) {
            // A column may be chosen twice.
            while let Some((_, slot)) = wanted.next_if(|&(field, _)| field == number) {
                self.found[slot] = Some((start, tab));
            }
            if wanted.peek().is_none() {
                return;
            }
            (number, start) = (number + 1, tab + 1);
        }
    }
}

impl Decode for Tsv {
    fn decode(&mut self, data: &[u8], end: bool, block: &mut Block) -> Result<usize, Fault> {
        let mut start = 0;
        while !block.is_full() {
            let Some((content, next)) = line_end(&data[start..], end) else { break };
            let line = &data[start..start + content];
            let row =
                |kind| Row { start, insert: start + content, end: start + next, pad: 0, kind };
            if self.awaits_header {
                self.header(line)?;
                block.row(row(RowKind::Header));
                start += next;
                continue;
            }
            self.locate(line);
            for (slot, found) in self.found.iter().enumerate() {
                match found.map(|(from, to)| &line[from..to]) {
                    None => {
                        block.empty();
                        let what = format!("it has no column {}", self.names[slot]);
                        block.bad_record(false, || Fault::Record { at: start, what })?;
                    }
                    Some(br"\N") => block.empty(),
                    Some(field) => {
                        if block.cell(field).is_err() {
                            let text = field.to_vec();
                            block.bad_cell(false, || Fault::Unparsable {
                                at: start,
                                slot,
                                text,
                            })?;
                        }
                    }
                }
            }
            block.row(row(RowKind::Annotate));
            start += next;
        }
        Ok(start)
    }
}

impl LogDecoder for Tsv {
    fn names(&self) -> &[String] {
        &self.names
    }

    fn style(&self) -> Style {
        Style::Wire(Wire::Tabs)
    }
}
