//! Reads the beginning of a table: its delimiter, its header and its address columns.

use std::net::IpAddr;

use super::lead::{Directive, Lead, is_called};
use super::scan::{Dialect, Quotes, Record, record, text, unquoted};
use super::{Csv, Layout, damage};
use crate::added::{added_name, first_twice};
use crate::address::Address;
use crate::block::{Block, Row, RowKind};
use crate::fault::Fault;
use crate::formats::{SAMPLE_BYTES, SAMPLE_ROWS, line_end};
use crate::pipeline::keys::KeySink;
use crate::{AnnotateError, Column, Header};

/// The first record, with the text of all fields.
pub(super) struct Fields {
    pub(super) record: Record,
    pub(super) text: Vec<String>,
}

/// Whether a text is a prefix.
fn is_prefix(text: &[u8]) -> bool {
    let text = std::str::from_utf8(text).unwrap_or_default();
    text.split_once('/').is_some_and(|(address, len)| {
        let len = len.parse::<u8>();
        address.parse::<IpAddr>().is_ok_and(|_| len.is_ok_and(|len| len <= 128))
    })
}

impl Csv {
    /// Reads the beginning of the input. Returns the offset of the next record, or `None` if more input is needed.
    pub(super) fn begin<K: KeySink>(
        &mut self,
        data: &[u8],
        end: bool,
        block: &mut Block<K>,
    ) -> Result<Option<usize>, Fault> {
        let Some(Lead { start, directive }) = self.lead(data, end) else { return Ok(None) };
        let mut directive = directive;
        if let Some(Directive { dialect, .. }) = directive {
            self.dialect = dialect;
        } else if self.detect
            && let Some(delimiter) = self.delimiter(&data[start..], end)
        {
            self.dialect.delimiter = delimiter;
        }
        let Some(mut first) = Self::fields(&data[start..], end, self.dialect) else {
            return Ok((end && start == data.len()).then_some(start));
        };
        let is_directive = directive.is_some();
        if let Some(Directive { names, .. }) = directive.take() {
            first.record.fields = names.len();
            first.text = names;
            self.directive = Some(data[start..start + first.record.content].to_owned());
        }
        let header = match self.header {
            Header::Present => true,
            _ if is_directive => true,
            Header::Absent => false,
            Header::Detect => !self.holds_address(&first),
        };
        let names = header.then_some(&first.text[..]);
        let fields = if let Some(choice) = self.flows {
            let chosen = choice.of_names(&first.text);
            chosen.map_err(|what| Fault::Row { at: start, what })?
        } else if !self.columns.is_empty() {
            self.resolve(self.columns.iter(), &first, names)?
        } else {
            let body = if header { start + first.record.next } else { start };
            match self.address_columns(&data[body..], end) {
                Some(columns) if columns.is_empty() => {
                    return Err(AnnotateError::NoColumn { format: self.format }.into());
                }
                Some(columns) => columns,
                None => return Ok(None),
            }
        };
        let time = self.resolve(self.time.iter(), &first, names)?;
        self.begin_rows(&first, names, fields, time)?;
        if start > 0 {
            block.pass(0, start);
        }
        if header {
            let Record { content, next, quotes, .. } = first.record;
            if quotes == Quotes::Open {
                return Err(Fault::OpenQuote { at: start });
            }
            if let Some(what) = damage(first.record, first.record.fields) {
                block.bad_record(self.strict, || Fault::Record { at: start, what })?;
            }
            block.row(Row {
                start,
                insert: start + content,
                end: start + next,
                pad: 0,
                kind: RowKind::Header,
            });
            return Ok(Some(start + next));
        }
        Ok(Some(start))
    }

    /// Sets the layout and the names of the columns. The names come from the header, if there is one.
    fn begin_rows(
        &mut self,
        first: &Fields,
        header: Option<&[String]>,
        columns: Vec<usize>,
        time: Vec<usize>,
    ) -> Result<(), AnnotateError> {
        self.names = columns
            .iter()
            .map(|&field| match header.and_then(|names| names.get(field)) {
                // The mark of a comment before a header is no part of the first name.
                Some(name) => name.trim_start_matches('#').to_owned(),
                None => (field + 1).to_string(),
            })
            .collect();
        if let Some(name) = first_twice(&self.names) {
            return Err(AnnotateError::Twice { name: name.clone() });
        }
        if let Some(header) = header {
            for name in self
                .names
                .iter()
                .flat_map(|name| self.add.iter().map(move |add| added_name(name, add)))
            {
                if header.contains(&name) {
                    return Err(AnnotateError::NameTaken { name });
                }
            }
        }
        if let Some(field) = time.iter().find(|field| columns.contains(field)) {
            let name = header.and_then(|names| names.get(*field)).cloned();
            let name = name.unwrap_or_else(|| (field + 1).to_string());
            return Err(AnnotateError::Twice { name });
        }
        // The time's slot comes last.
        let columns = columns.into_iter().chain(time);
        let mut fields: Vec<_> = columns.enumerate().map(|(slot, field)| (field, slot)).collect();
        fields.sort_unstable();
        self.found = vec![(0, 0); fields.len()];
        self.layout = Some(Layout { fields, width: first.record.fields });
        Ok(())
    }

    pub(super) fn fields(data: &[u8], end: bool, dialect: Dialect) -> Option<Fields> {
        let mut found = Vec::new();
        let record = record(data, end, dialect, |_, from, to| {
            found.push(text(&data[from..to], dialect.quote));
        })?;
        Some(Fields { record, text: found })
    }

    /// Whether one of the chosen columns of the row has an address or a prefix (if none are chosen: one of all
    /// columns). No column is called so.
    pub(super) fn holds_address(&self, row: &Fields) -> bool {
        let is_address = |text: &String| {
            let text = text.trim().as_bytes();
            let digits = if self.integers { Address::from_digits(text) } else { None };
            digits.or_else(|| Address::parse_cell(text)).is_some() || is_prefix(text)
        };
        if self.columns.is_empty() {
            return row.text.iter().any(is_address);
        }
        self.columns.iter().any(|column| match column {
            Column::Number(number) => row.text.get(number.wrapping_sub(1)).is_some_and(is_address),
            Column::Name(_) => false,
        })
    }

    /// Detects the address columns: those in which at least half of the non-empty cells in the first rows are
    /// addresses. `None` if more input is needed.
    fn address_columns(&self, data: &[u8], end: bool) -> Option<Vec<usize>> {
        // For each column, the number of non-empty cells and of addresses.
        let mut seen: Vec<(u32, u32)> = Vec::new();
        let (mut at, mut rows) = (0, 0);
        while rows < SAMPLE_ROWS {
            at += data[at..].iter().position(|b| !b"\r\n".contains(b)).unwrap_or(data.len() - at);
            if self.directive.is_some() && data[at..].starts_with(b"#") {
                match line_end(&data[at..], end) {
                    Some((_, next)) => at += next,
                    None => return None,
                }
                continue;
            }
            let quote = self.dialect.quote;
            let rest = &data[at..];
            let found = record(rest, end, self.dialect, |field, from, to| {
                if seen.len() <= field {
                    seen.resize(field + 1, (0, 0));
                }
                let cell = unquoted(&rest[from..to], quote).trim_ascii();
                let (filled, addresses) = &mut seen[field];
                *filled += u32::from(!cell.is_empty());
                *addresses += u32::from(Address::parse_cell(cell).is_some());
            });
            match found {
                Some(record) => at += record.next,
                None if end || (rows > 0 && data.len() >= SAMPLE_BYTES) => break,
                None => return None,
            }
            rows += 1;
            // Later rows are never examined, even if they were already read.
            if at >= SAMPLE_BYTES {
                break;
            }
        }
        let holds = |column: &usize| {
            let (filled, addresses) = seen[*column];
            addresses > 0 && 2 * addresses >= filled
        };
        Some((0..seen.len()).filter(holds).collect())
    }

    /// Detects the delimiter: the first one that splits the first record into fields with all chosen columns; otherwise
    /// the first one that splits it at all. `None` if there is none, or if the record is not complete.
    pub(super) fn delimiter(&self, data: &[u8], end: bool) -> Option<u8> {
        let mut found = None;
        for delimiter in *b",;\t|" {
            let dialect = Dialect { delimiter, ..self.dialect };
            let mut names = Vec::new();
            let parted = record(data, end, dialect, |_, from, to| {
                names.push(text(&data[from..to], dialect.quote));
            });
            if parted?.fields < 2 {
                continue;
            }
            found = found.or(Some(delimiter));
            let has = |column: &Column| match column {
                Column::Name(name) => names.iter().any(|other| is_called(other, name)),
                Column::Number(number) => *number <= names.len(),
            };
            if self.columns.iter().all(has) {
                return Some(delimiter);
            }
        }
        found
    }

    /// The positions of the chosen columns.
    fn resolve<'c>(
        &self,
        columns: impl Iterator<Item = &'c Column>,
        first: &Fields,
        names: Option<&[String]>,
    ) -> Result<Vec<usize>, AnnotateError> {
        let fields = first.record.fields;
        let place = |column: &Column| match column {
            Column::Number(number) if (1..=fields).contains(number) => Ok(number - 1),
            Column::Number(number) => Err(AnnotateError::ColumnNumber { number: *number, fields }),
            Column::Name(name) => {
                let known = names.unwrap_or_default();
                known.iter().position(|n| is_called(n, name)).ok_or_else(|| {
                    AnnotateError::UnknownColumn { name: name.clone(), known: known.to_vec() }
                })
            }
        };
        columns.map(place).collect()
    }
}
