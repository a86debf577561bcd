//! Tells a format from the first bytes.

use std::path::Path;

use crate::{Format, mrt};

/// Bytes that [`detect`] wants to see, if there are as many.
pub(crate) const HEAD: usize = 4096;

/// The format of a file called `path` that begins with `head` (decompressed); `None` if it is in none
/// that we know.
pub(crate) fn detect(path: &Path, head: &[u8]) -> Option<Format> {
    if mrt::looks_like_mrt(head) {
        return Some(Format::Mrt);
    }
    let name = path.file_name().map(|n| n.to_string_lossy().to_lowercase()).unwrap_or_default();
    let stem = ["gz", "bz2", "xz", "zst", "zstd"]
        .iter()
        .find_map(|ext| name.strip_suffix(ext)?.strip_suffix('.'))
        .unwrap_or(&name);
    // An mmdb file begins with its search tree; only the marker near its end tells it. The decoder looks
    // for that and reports damage if there is none.
    if stem.ends_with(".mmdb") {
        return Some(Format::Mmdb);
    }
    if is_binary(head) {
        return None;
    }
    Some(match stem.rsplit_once('.').map(|(_, ext)| ext) {
        Some("csv") => Format::Csv,
        Some("tsv") => Format::Tsv,
        _ => Format::Text,
    })
}

/// Text in any encoding that we take has no control characters but white space.
fn is_binary(head: &[u8]) -> bool {
    head.iter().any(|&b| b == 0 || (b < b' ' && !matches!(b, b'\t' | b'\n' | b'\r' | 0x0c | 0x1a)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_content_and_name() {
        let text = b"10.0.0.0/8 1\n";
        assert_eq!(detect(Path::new("a/table.CSV.gz"), text), Some(Format::Csv));
        assert_eq!(detect(Path::new("table.tsv"), text), Some(Format::Tsv));
        assert_eq!(detect(Path::new("-"), text), Some(Format::Text));
        assert_eq!(detect(Path::new("-"), b""), Some(Format::Text));
        assert_eq!(detect(Path::new("x.mmdb"), b"\0\0\x01\0"), Some(Format::Mmdb));
        assert_eq!(detect(Path::new("x.zip"), b"PK\x03\x04\x0a\0"), None);
        let mrt = b"\x38\x7a\x7a\x18\x00\x0c\x00\x01\x00\x00\x00\x40rest";
        assert_eq!(detect(Path::new("x.csv"), mrt), Some(Format::Mrt));
    }
}
