//! Values in the forms of streams: ClickHouse's TabSeparated and RowBinary, and the line protocol of InfluxDB.

use fibula_core::ScalarType;
use fibula_fib::Typed;

use super::Wire;
use crate::write::write_int;

/// The bytes before a value of the column `name`.
pub(crate) fn label(form: Wire, name: &str) -> Vec<u8> {
    match form {
        Wire::Tabs => vec![b'\t'],
        Wire::Binary => Vec::new(),
        Wire::Line => {
            let mut label = vec![b','];
            for byte in name.bytes() {
                match byte {
                    b',' | b'=' | b' ' => label.extend([b'\\', byte]),
                    // A key cannot have a line end.
                    b'\n' => label.push(b'_'),
                    _ => label.push(byte),
                }
            }
            label.push(b'=');
            label
        }
    }
}

/// Appends a value of a column of this type.
pub(crate) fn value(form: Wire, value: Typed<'_>, scalar: Option<ScalarType>, out: &mut Vec<u8>) {
    match form {
        Wire::Tabs => tabs(value, out),
        Wire::Binary => binary(value, scalar, out),
        Wire::Line => line(value, out),
    }
}

fn tabs(value: Typed<'_>, out: &mut Vec<u8>) {
    match value {
        Typed::Null => out.extend_from_slice(b"\\N"),
        Typed::Int(int) => write_int(int, out),
        Typed::Float(float) => out.extend_from_slice(float.to_string().as_bytes()),
        Typed::Bool(is) => out.extend_from_slice(boolean(is)),
        Typed::Str(text) => escaped(text, out),
    }
}

fn boolean(is: bool) -> &'static [u8] {
    if is { b"true" } else { b"false" }
}

/// Appends text with the escapes of TabSeparated.
pub(crate) fn escaped(text: &str, out: &mut Vec<u8>) {
    for byte in text.bytes() {
        let escape = match byte {
            b'\t' => b't',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\\' => b'\\',
            0 => b'0',
            _ => {
                out.push(byte);
                continue;
            }
        };
        out.extend([b'\\', escape]);
    }
}

/// Appends a nullable value. All values of a column have one type, since a reader finds the next value by it: text in a
/// column of fractions or of truth values is null.
fn binary(value: Typed<'_>, scalar: Option<ScalarType>, out: &mut Vec<u8>) {
    let is_text = matches!(scalar, Some(ScalarType::Int | ScalarType::Wide) | None);
    match value {
        Typed::Int(int) => {
            out.push(0);
            out.extend_from_slice(&int.to_le_bytes());
        }
        Typed::Float(float) => {
            out.push(0);
            out.extend_from_slice(&float.to_le_bytes());
        }
        Typed::Bool(is) => out.extend([0, u8::from(is)]),
        Typed::Str(text) if is_text => {
            out.push(0);
            let mut len = text.len();
            while len >= 0x80 {
                out.push(len as u8 | 0x80);
                len >>= 7;
            }
            out.push(len as u8);
            out.extend_from_slice(text.as_bytes());
        }
        Typed::Null | Typed::Str(_) => out.push(1),
    }
}

fn line(value: Typed<'_>, out: &mut Vec<u8>) {
    match value {
        Typed::Null => {}
        Typed::Int(int) => {
            write_int(int, out);
            // Integers of the line protocol are signed unless they say otherwise, and few readers know the others.
            out.push(if i64::try_from(int).is_ok() { b'i' } else { b'u' });
        }
        Typed::Float(float) => out.extend_from_slice(float.to_string().as_bytes()),
        Typed::Bool(is) => out.extend_from_slice(boolean(is)),
        Typed::Str(text) => {
            out.push(b'"');
            for byte in text.bytes() {
                if matches!(byte, b'"' | b'\\') {
                    out.push(b'\\');
                }
                out.push(byte);
            }
            out.push(b'"');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(form: Wire, of: Typed<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        value(form, of, None, &mut out);
        out
    }

    #[test]
    fn text_is_escaped() {
        assert_eq!(text(Wire::Tabs, Typed::Str("a\tb\\N\n")), b"a\\tb\\\\N\\n");
        assert_eq!(text(Wire::Tabs, Typed::Null), b"\\N");
        assert_eq!(text(Wire::Line, Typed::Str("say \"a\\b\"")), br#""say \"a\\b\"""#);
        assert_eq!(label(Wire::Line, "a b=c,d"), br",a\ b\=c\,d=");
    }

    #[test]
    fn lengths_of_seven_bits() {
        for len in [0, 127, 128, 300, 70_000] {
            let bytes = text(Wire::Binary, Typed::Str(&"x".repeat(len)));
            let (mut read, mut at) = (0, 1);
            loop {
                read |= usize::from(bytes[at] & 0x7f) << (7 * (at - 1));
                at += 1;
                if bytes[at - 1] < 0x80 {
                    break;
                }
            }
            assert_eq!((bytes[0], read, bytes.len() - at), (0, len, len));
        }
    }

    /// A value of another kind would move all values behind it.
    #[test]
    fn text_in_a_column_of_numbers_is_null() {
        let mut out = Vec::new();
        value(Wire::Binary, Typed::Str("n/a"), Some(ScalarType::Double), &mut out);
        value(Wire::Binary, Typed::Float(0.5), Some(ScalarType::Double), &mut out);
        assert_eq!(out, [1, 0, 0, 0, 0, 0, 0, 0, 0xe0, 0x3f]);
    }
}
