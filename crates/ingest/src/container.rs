//! Files around or beside what we read, which people give by mistake: one table of their signatures.

use std::borrow::Cow;

/// Offset, bytes there, and what such a file is and what to do.
const SIGNATURES: [(usize, &[u8], &str); 25] = [
    (257, b"ustar", "a tar archive: unpack it first"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7z archive: unpack it first"),
    (0, b"Rar!\x1a\x07", "a RAR archive: unpack it first"),
    (0, b"\x04\x22\x4d\x18", "compressed with lz4: decompress it first (lz4 -d)"),
    (0, b"\x02\x21\x4c\x18", "compressed with lz4: decompress it first (lz4 -d)"),
    (0, b"LZIP", "compressed with lzip: decompress it first (lzip -d)"),
    (0, b"\x1f\x9d", "compressed with compress: decompress it first (uncompress)"),
    (0, b"\xff\x06\0\0sNaPpY", "compressed with snappy: decompress it first"),
    (0, b"SQLite format 3\0", "a SQLite database: export a table of it as CSV"),
    (0, b"PAR1", "a Parquet file: export it as text"),
    (0, b"ARROW1", "an Arrow file: export it as text"),
    (0, b"\xff\xff\xff\xff", "an Arrow stream: export it as text"),
    (0, b"Obj\x01", "an Avro file: convert it to CSV or JSON"),
    (0, b"ORC", "an ORC file: convert it to CSV or JSON"),
    (
        0,
        b"OBMP",
        "messages of OpenBMP with binary headers: record the BMP stream of the routers itself",
    ),
    (0, b"\xd4\xc3\xb2\xa1", CAPTURE),
    (0, b"\xa1\xb2\xc3\xd4", CAPTURE),
    (0, b"\x4d\x3c\xb2\xa1", CAPTURE),
    (0, b"\xa1\xb2\x3c\x4d", CAPTURE),
    (0, b"\n\r\r\n", CAPTURE),
    (0, b"%PDF-", "a PDF document: give the text of its table"),
    (0, b"\xff\xfe", "text in UTF-16: convert it to UTF-8 (iconv -f UTF-16 -t UTF-8)"),
    (0, b"\xfe\xff", "text in UTF-16: convert it to UTF-8 (iconv -f UTF-16 -t UTF-8)"),
    (0, b"\xd0\xcf\x11\xe0", "an old document of Office: export the sheet as CSV"),
    (0, b"\x7fELF", "a program"),
];
const CAPTURE: &str = "a capture of packets, which `annotate` and `classify` read as data: record the routes \
                       themselves (MRT, BMP)";
const WORKBOOK: &str = "a workbook (xlsx): export the sheet as CSV";
const ZIP: &str = "a zip archive: unpack it first";
const UTF16: &str = "text in UTF-16: convert it to UTF-8 (iconv -f UTF-16LE -t UTF-8)";

/// What a file is that begins so, if it is one that nothing here reads as text, and what to do. 512 decompressed bytes
/// are enough.
///
/// ```
/// assert_eq!(fibula_ingest::container(b"PK\x03\x04\x14\0").unwrap(), "a zip archive: unpack it first");
/// assert_eq!(fibula_ingest::container(b"10.0.0.0/8\n"), None);
/// ```
pub fn container(head: &[u8]) -> Option<&'static str> {
    let has = |at: usize, bytes: &[u8]| head.get(at..).is_some_and(|rest| rest.starts_with(bytes));
    if has(0, b"PK\x03\x04") {
        // The first member of a workbook, or a folder that only a workbook has.
        let is_workbook = [&b"[Content_Types].xml"[..], b"xl/"].iter().any(|name| has(30, name));
        return Some(if is_workbook { WORKBOOK } else { ZIP });
    }
    if let Some((.., what)) = SIGNATURES.iter().find(|(at, bytes, _)| has(*at, bytes)) {
        return Some(*what);
    }
    if let [first, 0, second, 0, ..] = *head
        && first.is_ascii_graphic()
        && second.is_ascii_graphic()
    {
        return Some(UTF16);
    }
    None
}

/// What a file is that begins so, if it is no text: a [`container`], or bytes with a control character.
///
/// ```
/// assert!(fibula_ingest::no_text(b"10.0.0.0/8\x01").unwrap().starts_with("no text: byte 10 is 0x01"));
/// ```
pub fn no_text(head: &[u8]) -> Option<Cow<'static, str>> {
    if let Some(what) = container(head) {
        return Some(what.into());
    }
    let at = head.iter().position(|&byte| is_control(byte))?;
    let byte = head[at];
    Some(format!("no text: byte {at} is {byte:#04x}, a control character").into())
}

/// Text in any encoding that we take has no control characters but white space, and the end-of-file mark of DOS.
fn is_control(byte: u8) -> bool {
    byte < b' ' && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x0c | 0x1a)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_signature_is_its_own() {
        for (at, bytes, what) in SIGNATURES {
            let head = [&b"x".repeat(at)[..], bytes, b"x"].concat();
            assert_eq!(container(&head), Some(what));
        }
        let workbook = [&b"PK\x03\x04"[..], &[0; 26], b"[Content_Types].xml"].concat();
        assert_eq!(container(&workbook), Some(WORKBOOK));
        assert_eq!(container(b"1\x000\0.\0"), Some(UTF16));
        for text in [&b""[..], b"\xef\xbb\xbf10.0.0.0/8\r\n", b"ORB 1", b"a\x1a"] {
            assert_eq!(no_text(text), None);
        }
    }
}
