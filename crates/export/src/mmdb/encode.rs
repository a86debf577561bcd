//! Encodes values.

use fibula_rib::ScalarType;

/// A type as the format numbers them.
pub(super) const UTF8: u8 = 2;
const DOUBLE: u8 = 3;
pub(super) const UINT16: u8 = 5;
pub(super) const UINT32: u8 = 6;
pub(super) const MAP: u8 = 7;
const INT32: u8 = 8;
pub(super) const UINT64: u8 = 9;
const UINT128: u8 = 10;
pub(super) const ARRAY: u8 = 11;
const BOOL: u8 = 14;
const FLOAT: u8 = 15;

/// The header of a value: its type and size.
pub(super) fn control(kind: u8, size: usize, out: &mut Vec<u8>) {
    let (small, rest, bytes) = match size {
        0..29 => (size as u8, 0, 0),
        29..285 => (29, size - 29, 1),
        285..65_821 => (30, size - 285, 2),
        _ => (31, size - 65_821, 3),
    };
    // Types beyond 7 are in a second byte.
    if kind > 7 {
        out.extend_from_slice(&[small, kind - 7]);
    } else {
        out.push(kind << 5 | small);
    }
    out.extend_from_slice(&(rest as u32).to_be_bytes()[4 - bytes..]);
}

/// The longest text that a size can express.
const LONGEST: usize = 65_821 + (1 << 24) - 1;

pub(super) fn text(text: &str) -> Vec<u8> {
    let mut end = text.len().min(LONGEST);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let mut out = Vec::with_capacity(end + 5);
    control(UTF8, end, &mut out);
    out.extend_from_slice(&text.as_bytes()[..end]);
    out
}

/// A text in its original type; `None` if it is no value of that type.
pub(super) fn typed(text: &str, of: ScalarType) -> Option<Vec<u8>> {
    let fixed = |kind, bytes: &[u8]| {
        let mut out = Vec::with_capacity(bytes.len() + 2);
        control(kind, bytes.len(), &mut out);
        out.extend_from_slice(bytes);
        out
    };
    Some(match of {
        ScalarType::Bool => {
            let mut out = Vec::with_capacity(2);
            // The size is the value.
            control(BOOL, usize::from(text.parse::<bool>().ok()?), &mut out);
            out
        }
        ScalarType::Float => fixed(FLOAT, &text.parse::<f32>().ok()?.to_be_bytes()),
        ScalarType::Double => fixed(DOUBLE, &text.parse::<f64>().ok()?.to_be_bytes()),
        ScalarType::Int => match text.parse::<i32>() {
            Ok(int) => fixed(INT32, &int.to_be_bytes()),
            Err(_) => number(UINT64, text.parse().ok()?),
        },
        ScalarType::Wide => {
            let bytes = text.parse::<u128>().ok()?.to_be_bytes();
            let first = bytes.iter().position(|&byte| byte != 0).unwrap_or(bytes.len());
            fixed(UINT128, &bytes[first..])
        }
    })
}

pub(super) fn number(kind: u8, value: u64) -> Vec<u8> {
    let bytes = value.to_be_bytes();
    let first = bytes.iter().position(|&byte| byte != 0).unwrap_or(bytes.len());
    let mut out = Vec::with_capacity(10);
    control(kind, bytes.len() - first, &mut out);
    out.extend_from_slice(&bytes[first..]);
    out
}
