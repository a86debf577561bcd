//! The data section.

use std::collections::HashMap;

use fibula_core::Value;
use fibula_rib::Columns;

use super::encode::{UINT32, UINT64, number, text, typed};
use super::layout::Layout;
use crate::ExportError;

/// The data section.
pub(super) struct Data {
    pub(super) bytes: Vec<u8>,
    /// By row where its map is, if it is used.
    pub(super) rows: Vec<Option<u32>>,
}

impl Data {
    pub(super) fn new(columns: &Columns, used: &[bool]) -> Result<Self, ExportError> {
        let mut bytes = Vec::new();
        let layout = Layout::of(columns, &mut bytes)?;
        let wide: Vec<bool> = (0..columns.width())
            .map(|column| {
                (0..columns.distinct(column)).any(|code| {
                    matches!(columns.decode(column, code as u32), Value::Int(int) if int > u64::from(u32::MAX))
                })
            })
            .collect();
        // The stored form of a value: itself, or a pointer to an equal one.
        let mut values: Vec<HashMap<u32, Vec<u8>>> = vec![HashMap::new(); columns.width()];
        let mut rows = vec![None; used.len()];
        for row in (0..columns.len()).filter(|&row| used[row as usize]) {
            let mut found: Vec<Vec<u8>> = vec![Vec::new(); columns.width()];
            for column in 0..columns.width() {
                let Some(code) = columns.code(column, row) else { continue };
                let value = match values[column].get(&code) {
                    Some(value) => value,
                    None => {
                        let value = match columns.decode(column, code) {
                            Value::Int(int) if wide[column] => number(UINT64, int),
                            Value::Int(int) => number(UINT32, int),
                            Value::Str(value) => {
                                let typed =
                                    columns.scalar_type(column).and_then(|of| typed(value, of));
                                typed.unwrap_or_else(|| text(value))
                            }
                            Value::Null => continue,
                        };
                        let value = shared(&mut bytes, value)?;
                        values[column].entry(code).or_insert(value)
                    }
                };
                found[column].clone_from(value);
            }
            rows[row as usize] = Some(place(&bytes)?);
            layout.write(&found, &mut bytes);
        }
        Ok(Self { bytes, rows })
    }
}

fn place(bytes: &[u8]) -> Result<u32, ExportError> {
    u32::try_from(bytes.len()).map_err(|_| ExportError::Limit { what: "bytes of values" })
}

/// Puts a value into the data and gives a pointer to it, if that is shorter than the value.
pub(super) fn shared(bytes: &mut Vec<u8>, value: Vec<u8>) -> Result<Vec<u8>, ExportError> {
    let pointer = pointer(place(bytes)?);
    if pointer.len() >= value.len() {
        return Ok(value);
    }
    bytes.extend_from_slice(&value);
    Ok(pointer)
}

/// A pointer to a place of the data: the size in two bits, then the place less what shorter ones reach.
fn pointer(place: u32) -> Vec<u8> {
    let head = |size: u8, high: u32| 1 << 5 | size << 3 | high as u8;
    match place {
        0..2048 => vec![head(0, place >> 8), place as u8],
        2048..526_336 => {
            let rest = place - 2048;
            vec![head(1, rest >> 16), (rest >> 8) as u8, rest as u8]
        }
        526_336..134_744_064 => {
            let rest = place - 526_336;
            vec![head(2, rest >> 24), (rest >> 16) as u8, (rest >> 8) as u8, rest as u8]
        }
        _ => [&[head(3, 0)][..], &place.to_be_bytes()].concat(),
    }
}
