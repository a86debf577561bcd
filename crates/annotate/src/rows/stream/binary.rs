//! RowBinary: values one after the other, without names and ends of rows.

use super::types::{CellForm, CellType, CellTypes};
use crate::block::{Block, Row, RowKind};
use crate::fault::Fault;
use crate::formats::{Decode, LogDecoder, Style, Wire};
use crate::input::MAX_RECORD;
use crate::{Address, AnnotateError, Column};

/// Decoder of rows whose columns have these types.
pub(super) struct RowBinary {
    types: Vec<CellType>,
    /// For each slot, the number of its column, counted from 0.
    columns: Vec<usize>,
    names: Vec<String>,
    /// The rows of the stream so far.
    rows: u64,
    /// The values of a row.
    found: Vec<Value>,
}

/// Where a value is in the data.
#[derive(Clone, Copy)]
struct Value {
    is_null: bool,
    start: usize,
    end: usize,
}

impl RowBinary {
    pub(super) fn new(
        types: &CellTypes,
        columns: &[Column],
        rows: u64,
    ) -> Result<Self, AnnotateError> {
        let types = types.0.clone();
        let mut fields = Vec::new();
        for column in columns {
            let &Column::Number(number) = column else {
                let what = format!("RowBinary has no column names, {column} was asked for");
                return Err(AnnotateError::Stream { what });
            };
            let Some(of) = types.get(number - 1) else {
                let what =
                    format!("column {number} was asked for, there are {} types", types.len());
                return Err(AnnotateError::Stream { what });
            };
            if matches!(of.form, CellForm::Fixed(_)) {
                return Err(AnnotateError::Type { kind: of.name.clone() });
            }
            fields.push(number - 1);
        }
        let names = columns.iter().map(Column::to_string).collect();
        Ok(Self { types, columns: fields, names, rows, found: Vec::new() })
    }

    /// Finds the values of the row at `start`. Returns its end; `None` if the row is not complete.
    fn row(&mut self, data: &[u8], start: usize) -> Result<Option<usize>, Fault> {
        let damaged = |what: String| Fault::Bytes { at: start, what };
        let mut at = start;
        self.found.clear();
        for (number, CellType { name, nullable, form }) in self.types.iter().enumerate() {
            if *nullable {
                match data.get(at) {
                    None => return Ok(None),
                    Some(0) => at += 1,
                    Some(1) => {
                        at += 1;
                        self.found.push(Value { is_null: true, start: at, end: at });
                        continue;
                    }
                    Some(flag) => {
                        return Err(damaged(format!(
                            "the value of column {} begins with the byte {flag}, a value of type {name} begins with 0 \
                             or 1",
                            number + 1
                        )));
                    }
                }
            }
            let len = match *form {
                CellForm::Text => {
                    let Some((len, bytes)) = length(&data[at..]) else {
                        if data.len() - at < LONGEST_LENGTH {
                            return Ok(None);
                        }
                        let what = format!("the text of column {} has no valid length", number + 1);
                        return Err(damaged(what));
                    };
                    at += bytes;
                    len
                }
                CellForm::Number => 4,
                CellForm::Network(len) | CellForm::Fixed(len) => len,
            };
            if len > MAX_RECORD {
                return Err(damaged(format!(
                    "the text of column {} has {len} bytes, a row has at most {MAX_RECORD}",
                    number + 1
                )));
            }
            if data.len() - at < len {
                return Ok(None);
            }
            self.found.push(Value { is_null: false, start: at, end: at + len });
            at += len;
        }
        Ok(Some(at))
    }
}

/// The most bytes of a length that is not beyond any limit.
const LONGEST_LENGTH: usize = 5;

/// A length of seven bits in each byte, and its own length.
fn length(data: &[u8]) -> Option<(usize, usize)> {
    let mut len = 0;
    for (at, &byte) in data.iter().take(LONGEST_LENGTH).enumerate() {
        len |= u64::from(byte & 0x7f) << (7 * at);
        if byte < 0x80 {
            return Some((usize::try_from(len).ok()?, at + 1));
        }
    }
    None
}

/// The address of a value that is not text.
fn address(form: CellForm, bytes: &[u8]) -> Option<Address> {
    match (form, bytes.len()) {
        (CellForm::Number, 4) => Some(Address::V4(u32::from_le_bytes(bytes.try_into().ok()?))),
        (CellForm::Network(_), 4) => Some(Address::V4(u32::from_be_bytes(bytes.try_into().ok()?))),
        (CellForm::Network(_), 16) => {
            Some(Address::from_v6(u128::from_be_bytes(bytes.try_into().ok()?)))
        }
        _ => None,
    }
}

impl Decode for RowBinary {
    fn decode(&mut self, data: &[u8], end: bool, block: &mut Block) -> Result<usize, Fault> {
        let mut start = 0;
        while !block.is_full() && start < data.len() {
            let Some(next) = self.row(data, start)? else {
                if end {
                    let what = "the input ends within this row".to_owned();
                    return Err(Fault::Bytes { at: start, what });
                }
                break;
            };
            self.rows += 1;
            for (slot, &field) in self.columns.iter().enumerate() {
                let (value, form) = (self.found[field], self.types[field].form);
                let bytes = &data[value.start..value.end];
                match address(form, bytes) {
                    _ if value.is_null => block.empty(),
                    Some(address) => block.address(address),
                    None => {
                        if block.cell(bytes).is_err() {
                            let (row, column) = (self.rows, self.names[slot].clone());
                            let text = String::from_utf8_lossy(bytes).chars().take(60).collect();
                            let fault = || AnnotateError::Cell { row, column, text }.into();
                            block.bad_cell(false, fault)?;
                        }
                    }
                }
            }
            block.row(Row { start, insert: next, end: next, pad: 0, kind: RowKind::Annotate });
            start = next;
        }
        Ok(start)
    }
}

impl LogDecoder for RowBinary {
    fn names(&self) -> &[String] {
        &self.names
    }

    fn style(&self) -> Style {
        Style::Wire(Wire::Binary)
    }
}
