//! Reads the beginning of a table: its delimiter, its header and its address columns.

use super::scan::{Dialect, Record, record, text, unquoted};
use super::{Csv, Layout};
use crate::added::{added_name, first_twice};
use crate::address::Address;
use crate::block::{Block, Row, RowKind};
use crate::fault::Fault;
use crate::formats::{SAMPLE_BYTES, SAMPLE_ROWS};
use crate::pipeline::keys::KeySink;
use crate::{AnnotateError, Column, Header};

/// The first record, with the text of all fields.
struct Fields {
    record: Record,
    text: Vec<String>,
}

impl Csv {
    /// Reads the beginning of the input. Returns the offset of the next record, or `None` if more input is needed.
    pub(super) fn begin<K: KeySink>(
        &mut self,
        data: &[u8],
        end: bool,
        block: &mut Block<K>,
    ) -> Result<Option<usize>, Fault> {
        // Skip empty lines before the first row.
        let start = data.iter().position(|b| !b"\r\n".contains(b)).unwrap_or(data.len());
        if self.detect
            && let Some(delimiter) = self.delimiter(&data[start..], end)
        {
            self.dialect.delimiter = delimiter;
        }
        let Some(first) = self.fields(&data[start..], end) else {
            return Ok((end && start == data.len()).then_some(start));
        };
        let header = match self.header {
            Header::Present => true,
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
            let Record { content, next, open, .. } = first.record;
            if open {
                return Err(Fault::OpenQuote { at: start });
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
                Some(name) => name.clone(),
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

    fn fields(&self, data: &[u8], end: bool) -> Option<Fields> {
        let mut found = Vec::new();
        let quote = self.dialect.quote;
        let record = record(data, end, self.dialect, |_, from, to| {
            found.push(text(&data[from..to], quote));
        })?;
        Some(Fields { record, text: found })
    }

    /// Whether one of the chosen columns of the row has an address (if none are chosen: one of all columns).
    fn holds_address(&self, row: &Fields) -> bool {
        let is_address = |text: &String| {
            let text = text.trim().as_bytes();
            Address::parse(text).is_some() || self.integers && Address::from_digits(text).is_some()
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
            let quote = self.dialect.quote;
            let rest = &data[at..];
            let found = record(rest, end, self.dialect, |field, from, to| {
                if seen.len() <= field {
                    seen.resize(field + 1, (0, 0));
                }
                let cell = unquoted(&rest[from..to], quote).trim_ascii();
                let (filled, addresses) = &mut seen[field];
                *filled += u32::from(!cell.is_empty());
                *addresses += u32::from(Address::parse(cell).is_some());
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
    fn delimiter(&self, data: &[u8], end: bool) -> Option<u8> {
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
                Column::Name(name) => names.iter().any(|other| other.trim() == name.trim()),
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
                // Whitespace around a name is ignored, as it is around an address.
                known.iter().position(|n| n == name || n.trim() == name).ok_or_else(|| {
                    AnnotateError::UnknownColumn { name: name.clone(), known: known.to_vec() }
                })
            }
        };
        columns.map(place).collect()
    }
}
