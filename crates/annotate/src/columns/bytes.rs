//! Decides what the cells of a column of bytes are: addresses in network order, or text that was stored without the
//! mark that it is text, as some writers of Parquet do.

use std::fmt::Write;
use std::net::{Ipv4Addr, Ipv6Addr};

use crate::{Address, AnnotateError};

/// The form of the addresses in a column of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BytesForm {
    /// Four or sixteen bytes in network order.
    Bytes,
    Text,
}

impl BytesForm {
    /// The form of all cells, which are not null. Cells of four or sixteen bytes are bytes, unless all of them are the
    /// sixteen characters of an address.
    ///
    /// # Errors
    /// If cells have other lengths and not all of them are printable text.
    pub(crate) fn of<'a>(cells: impl Iterator<Item = &'a [u8]>) -> Result<Self, AnnotateError> {
        let (mut other, mut is_text, mut is_address, mut any) = (None, true, true, false);
        for cell in cells {
            match cell.len() {
                0 => continue,
                16 => any = true,
                len => {
                    is_address = false;
                    if len != 4 {
                        other = other.or(Some(len));
                    }
                }
            }
            is_text = is_text && is_printable(cell);
            is_address = is_address && is_text && Address::parse_cell(cell).is_some();
        }
        match other {
            Some(_) if is_text => Ok(Self::Text),
            Some(len) => Err(AnnotateError::BytesAndText { len }),
            None if any && is_address => Ok(Self::Text),
            None => Ok(Self::Bytes),
        }
    }

    /// A cell as the text of an address, or as the text that it is. Others are shown in hexadecimal digits.
    pub(crate) fn text(self, cell: &[u8]) -> String {
        match (self, <[u8; 4]>::try_from(cell), <[u8; 16]>::try_from(cell)) {
            (Self::Bytes, Ok(v4), _) => Ipv4Addr::from(v4).to_string(),
            (Self::Bytes, _, Ok(v6)) => Ipv6Addr::from(v6).to_string(),
            (Self::Text, ..) if is_printable(cell) => String::from_utf8_lossy(cell).into_owned(),
            _ => cell.iter().map(|byte| format!("{byte:02x}")).collect(),
        }
    }
}

/// Whether all bytes are printable ASCII.
pub(crate) fn is_printable(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| (b' '..=b'~').contains(byte))
}

/// A UUID as it is written, such as `00112233-4455-6677-8899-aabbccddeeff`.
pub(crate) fn uuid(cell: &[u8]) -> String {
    cell.iter().enumerate().fold(String::new(), |mut text, (at, byte)| {
        let between = if matches!(at, 4 | 6 | 8 | 10) { "-" } else { "" };
        let _ = write!(text, "{between}{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(cells: &[&[u8]]) -> Option<BytesForm> {
        BytesForm::of(cells.iter().copied()).ok()
    }

    #[test]
    fn forms() {
        use BytesForm::{Bytes, Text};
        assert_eq!(form(&[&[10, 0, 0, 1], &[7; 16], b""]), Some(Bytes));
        assert_eq!(form(&[b"2001:db8:0:1::10"]), Some(Text));
        assert_eq!(form(&[b"2001:db8:0:1::10", b"10.0.0.1", b"x"]), Some(Text));
        // 50.51.52.53, and text that is no address.
        assert_eq!(form(&[b"2345"]), Some(Bytes));
        assert_eq!(form(&[b"2001:db8:0:1::10", b"sixteen letters!"]), Some(Bytes));
        assert_eq!(form(&[&[10, 0, 0, 1], b"10.0.0.1"]), None);
        assert_eq!(form(&[&[10, 0, 0, 1], &[1; 5]]), None);
        assert_eq!(form(&[]), Some(Bytes));
    }
}
