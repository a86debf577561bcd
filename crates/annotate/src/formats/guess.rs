//! Guesses a format from the beginning of an input.

use crate::LogFormat;

impl LogFormat {
    /// The format of a log that names its columns in comments, as Zeek and IIS write it; `None` for other inputs.
    ///
    /// ```
    /// use fibula_annotate::LogFormat;
    /// assert_eq!(LogFormat::of_directives(b"#separator \\x09\n#set_separator"), Some(LogFormat::Tsv));
    /// assert_eq!(LogFormat::of_directives(b"# made by x\n"), None);
    /// ```
    pub fn of_directives(head: &[u8]) -> Option<Self> {
        let begins = |words: &[&[u8]]| words.iter().any(|word| head.starts_with(word));
        if begins(&[b"#separator ", b"#fields\t"]) {
            return Some(Self::Tsv);
        }
        begins(&[b"#Software: ", b"#Version: ", b"#Date: ", b"#Fields: "]).then_some(Self::Csv)
    }

    /// Guesses the format from the beginning of the input: a capture or a file of nfcapd by its magic number, IPFIX by
    /// its version, JSON by a brace or by a bracket and a brace, a table by the delimiters of its first line, otherwise
    /// a list.
    ///
    /// ```
    /// use fibula_annotate::LogFormat;
    /// assert_eq!(LogFormat::guess(b"{\"ip\":\"10.0.0.1\"}\n"), LogFormat::JsonLines);
    /// assert_eq!(LogFormat::guess(b"time,src,dst\n"), LogFormat::Csv);
    /// assert_eq!(LogFormat::guess(b"10.0.0.1 - - [17/May/2015] \"GET /a,b\"\n"), LogFormat::List);
    /// ```
    pub fn guess(head: &[u8]) -> Self {
        if super::pcap::is_capture(head) {
            return Self::Pcap;
        }
        if super::exports::is_ipfix(head) || super::exports::is_nfcapd(head) {
            return Self::Flows;
        }
        if head.starts_with(b"PAR1") {
            return Self::Parquet;
        }
        // The magic number of a file, or the mark before the first message of a stream.
        if head.starts_with(b"ARROW1") || head.starts_with(&[0xff; 4]) {
            return Self::Arrow;
        }
        let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
        let mut lines = head.split(|&b| b == b'\n').map(<[u8]>::trim_ascii);
        let first = lines.clone().next().unwrap_or_default();
        if let Some(format) = Self::of_directives(first) {
            return format;
        }
        let line = lines.find(|line| !line.is_empty() && line[0] != b'#').unwrap_or(first);
        // An access log may contain commas and tabs, but only after its address.
        let stop = line.iter().position(|b| b" ,;\t".contains(b));
        match (line.first(), stop.map(|at| line[at])) {
            (Some(b'{'), _) => Self::JsonLines,
            (Some(b'['), _) if super::json::begins_array(head) => Self::JsonLines,
            (_, Some(b',' | b';')) => Self::Csv,
            (_, Some(b'\t')) => Self::Tsv,
            _ => Self::List,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guesses() {
        for (head, format) in [
            (&b""[..], LogFormat::List),
            (b"10.0.0.1\n10.0.0.2\n", LogFormat::List),
            (b"10.0.0.1\t5\n", LogFormat::Tsv),
            (b"\xef\xbb\xbf{}\n", LogFormat::JsonLines),
            (b"[\n  {\"a\": 1},\n", LogFormat::JsonLines),
            (b"[17/May/2015] 10.0.0.1\n", LogFormat::List),
            (b"ip;n\n10.0.0.1;7\n", LogFormat::Csv),
            (b"\xd4\xc3\xb2\xa1\x02\x00", LogFormat::Pcap),
            (b"\x00\x0a\x00\x10\x65", LogFormat::Flows),
            (b"\x0c\xa5\x02\x00\x01", LogFormat::Flows),
            (b"# made by x, y\n\nip\tn\n", LogFormat::Tsv),
            (b"# 10.0.0.0/8, 192.0.2.0/24\n10.0.0.1\n", LogFormat::List),
            (b"#separator \\x09\n#set_separator\t,\n", LogFormat::Tsv),
            (b"#Software: Microsoft Internet Information Services 10.0\r\n", LogFormat::Csv),
            (b"PAR1\x15", LogFormat::Parquet),
            (b"ARROW1\0\0", LogFormat::Arrow),
            (b"\xff\xff\xff\xff\x10\x01", LogFormat::Arrow),
            (b"\x0a\x0d\x0d\x0a\x1c\x00\x00\x00\x4d\x3c\x2b\x1a", LogFormat::Pcap),
        ] {
            assert_eq!(LogFormat::guess(head), format, "{head:?}");
        }
    }
}
