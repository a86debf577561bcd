//! Detects the format from the first bytes.

use std::borrow::Cow;
use std::path::Path;

use crate::{Format, bmp, fpm, json, lines, mrt, no_text, ris};

/// Number of bytes for [`detect`], if there are as many.
pub(crate) const HEAD: usize = 4096;

/// The detected format of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Detected {
    Format(Format),
    /// Another kind of file, given by mistake; its description.
    NoTable(Cow<'static, str>),
}

/// Detects the format of a file from its name and its beginning (decompressed).
pub(crate) fn detect(path: &Path, head: &[u8]) -> Detected {
    if mrt::looks_like_mrt(head) {
        return Detected::Format(Format::Mrt);
    }
    if fpm::looks_like_frame(head) == Some(true) {
        return Detected::Format(Format::Fpm);
    }
    if bmp::looks_like_bmp(head) {
        return Detected::Format(Format::Bmp);
    }
    if head.starts_with(b"PAR1") {
        return Detected::Format(Format::Parquet);
    }
    if head.starts_with(b"ARROW1") || head.starts_with(b"\xff\xff\xff\xff") {
        return Detected::Format(Format::Arrow);
    }
    if let Some(what) = no_table(head) {
        return Detected::NoTable(what.into());
    }
    let name = path.file_name().map(|n| n.to_string_lossy().to_lowercase()).unwrap_or_default();
    let stem = ["gz", "bz2", "xz", "zst", "zstd"]
        .iter()
        .find_map(|ext| name.strip_suffix(ext)?.strip_suffix('.'))
        .unwrap_or(&name);
    // An mmdb file begins with its search tree; only a marker near its end identifies it. The decoder searches this
    // marker and reports damage if there is none.
    if stem.ends_with(".mmdb") {
        return Detected::Format(Format::Mmdb);
    }
    if let Some(what) = no_text(head) {
        return Detected::NoTable(format!("this is {what}").into());
    }
    if ris::detect(head) {
        return Detected::Format(Format::Ris);
    }
    if json::detect(head) {
        return Detected::Format(Format::Json);
    }
    if let Some(format) = lines::detect(head) {
        return Detected::Format(format);
    }
    Detected::Format(match stem.rsplit_once('.').map(|(_, ext)| ext) {
        Some("csv") => Format::Csv,
        Some("tsv") => Format::Tsv,
        _ => Format::Text,
    })
}

fn no_table(head: &[u8]) -> Option<&'static str> {
    if head.starts_with(b"\x89FIBULA") {
        return Some(
            "this is a fibula snapshot in a pipe or in an archive, where it cannot be used: name the \
             snapshot's own file",
        );
    }
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    let begins = |tag: &[u8]| text.get(..tag.len()).is_some_and(|t| t.eq_ignore_ascii_case(tag));
    let is_html = begins(b"<!doctype html") || begins(b"<html");
    is_html
        .then_some("this is an HTML page, perhaps a server's error message, and no routing table")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_content_and_name() {
        let text = b"10.0.0.0/8 1\n";
        let is = |name: &str, head: &[u8], format| {
            assert_eq!(detect(Path::new(name), head), Detected::Format(format), "{name}");
        };
        is("a/table.CSV.gz", text, Format::Csv);
        is("table.tsv", text, Format::Tsv);
        is("-", text, Format::Text);
        is("-", b"", Format::Text);
        is("x.mmdb", b"\0\0\x01\0", Format::Mmdb);
        is("x.csv", b"\x03\0\0\0\x0d\x04\0\x02\0\x03dut", Format::Bmp);
        is("x.csv", b"{\"type\":\"ris_message\",\"data\":{}}\n", Format::Ris);
        is("x.csv", b"{\"type\":\"ris\",\n\"x\":\"ris_message\"}", Format::Json);
        is("x.csv", b"\x38\x7a\x7a\x18\x00\x0c\x00\x01\x00\x00\x00\x40rest", Format::Mrt);
        let frame = b"\x01\x01\x00\x14\x10\x00\x00\x00\x18\x00\0\0\0\0\0\0\0\0\0\0";
        is("x.csv", frame, Format::Fpm);
        is("x.csv", b"PAR1\x15", Format::Parquet);
        is("x.csv", b"ARROW1\0\0", Format::Arrow);
        is("x.csv", b"\xff\xff\xff\xff\x10\0\0\0", Format::Arrow);
        for head in [
            &b"PK\x03\x04\x0a\0"[..],
            b"\x89FIBULA\n\0",
            b"\n<!DOCTYPE HTML><p>503",
            b"<html lang=en>",
        ] {
            assert!(matches!(detect(Path::new("t.csv"), head), Detected::NoTable(_)));
        }
    }
}
