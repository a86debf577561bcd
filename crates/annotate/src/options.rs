//! What to annotate and how.

use std::convert::Infallible;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// The format of the input; the output has the same, except that packets become CSV rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Comma-separated values (another delimiter by choice), quoted as RFC 4180 says.
    Csv,
    /// Tab-separated values.
    Tsv,
    /// One JSON object a line.
    JsonLines,
    /// Lines that begin with an address: plain lists, access logs. Values are added after tabs.
    List,
    /// A packet capture, pcap or pcapng; each packet becomes a CSV row.
    Pcap,
    /// Parquet. Columns, not rows: annotated by [`ColumnAnnotator`](crate::ColumnAnnotator).
    Parquet,
    /// Arrow IPC, file (Feather) or stream; likewise.
    Arrow,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 7] =
        [Self::Csv, Self::Tsv, Self::JsonLines, Self::List, Self::Pcap, Self::Parquet, Self::Arrow];

    /// The name by which it is chosen: `"csv"`, `"tsv"`, `"jsonl"`, `"list"`, `"pcap"`, `"parquet"` or
    /// `"arrow"`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Tsv => "tsv",
            Self::JsonLines => "jsonl",
            Self::List => "list",
            Self::Pcap => "pcap",
            Self::Parquet => "parquet",
            Self::Arrow => "arrow",
        }
    }

    /// Whether it has columns, so that [`ColumnAnnotator`](crate::ColumnAnnotator) annotates it and not
    /// [`Annotator`](crate::Annotator).
    pub const fn is_columnar(self) -> bool {
        matches!(self, Self::Parquet | Self::Arrow)
    }

    /// The format that a file name's ending stands for, compression endings (`.gz`, `.bz2`, `.xz`,
    /// `.zst`) aside.
    ///
    /// ```
    /// use fibula_annotate::Format;
    /// assert_eq!(Format::from_path("flows/conn.json.xz".as_ref()), Some(Format::JsonLines));
    /// assert_eq!(Format::from_path("access.log".as_ref()), Some(Format::List));
    /// assert_eq!(Format::from_path("capture".as_ref()), None);
    /// ```
    pub fn from_path(path: &Path) -> Option<Self> {
        let ending = path.extension()?.to_str()?.to_ascii_lowercase();
        match ending.as_str() {
            "gz" | "bz2" | "xz" | "zst" => Self::from_path(Path::new(path.file_stem()?)),
            "csv" | "binetflow" => Some(Self::Csv),
            "tsv" | "tab" => Some(Self::Tsv),
            "json" | "jsonl" | "ndjson" => Some(Self::JsonLines),
            "txt" | "list" | "log" => Some(Self::List),
            "pcap" | "pcapng" | "cap" => Some(Self::Pcap),
            "parquet" | "pq" => Some(Self::Parquet),
            "arrow" | "arrows" | "feather" | "ipc" => Some(Self::Arrow),
            _ => None,
        }
    }

    /// Guesses the format from the beginning of the input: a capture by its magic number, JSON lines
    /// by a brace, a table by the delimiters of its first line, otherwise a list.
    ///
    /// ```
    /// use fibula_annotate::Format;
    /// assert_eq!(Format::guess(b"{\"ip\":\"10.0.0.1\"}\n"), Format::JsonLines);
    /// assert_eq!(Format::guess(b"time,src,dst\n"), Format::Csv);
    /// assert_eq!(Format::guess(b"10.0.0.1 - - [17/May/2015] \"GET /a,b\"\n"), Format::List);
    /// ```
    pub fn guess(head: &[u8]) -> Self {
        if crate::formats::pcap::is_capture(head) {
            return Self::Pcap;
        }
        if head.starts_with(b"PAR1") {
            return Self::Parquet;
        }
        // A file's magic number; a stream begins with the mark before its first message.
        if head.starts_with(b"ARROW1") || head.starts_with(&[0xff; 4]) {
            return Self::Arrow;
        }
        let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
        let line = head.split(|&b| b == b'\n').next().unwrap_or_default().trim_ascii();
        // An access log may hold commas and tabs, but not before the end of its address.
        let stop = line.iter().position(|b| b" ,\t".contains(b));
        match (line.first(), stop.map(|at| line[at])) {
            (Some(b'{'), _) => Self::JsonLines,
            (_, Some(b',')) => Self::Csv,
            (_, Some(b'\t')) => Self::Tsv,
            _ => Self::List,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// No format has this name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFormat(String);

impl fmt::Display for UnknownFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown format {:?}; known are", self.0)?;
        Format::ALL.iter().try_for_each(|format| write!(f, " {format}"))
    }
}

impl std::error::Error for UnknownFormat {}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<Self, UnknownFormat> {
        match text {
            "json" | "ndjson" => Ok(Self::JsonLines),
            "pcapng" => Ok(Self::Pcap),
            "feather" | "ipc" => Ok(Self::Arrow),
            "text" | "txt" | "log" => Ok(Self::List),
            _ => Self::ALL
                .into_iter()
                .find(|format| format.name() == text)
                .ok_or_else(|| UnknownFormat(text.to_owned())),
        }
    }
}

/// A column of the input.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Column {
    /// By the name that the header, or the JSON member, has. In JSON a dot also descends into nested
    /// objects, where no member has the whole name: `id.orig_h` finds `{"id.orig_h": ..}` and
    /// `{"id": {"orig_h": ..}}`.
    Name(String),
    /// By its place, counted from 1.
    Number(usize),
}

impl FromStr for Column {
    type Err = Infallible;

    /// Digits alone are a number, anything else (also `0`) a name.
    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text.parse::<usize>() {
            Ok(number) if number > 0 && !text.starts_with('+') => Self::Number(number),
            _ => Self::Name(text.to_owned()),
        })
    }
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Number(number) => write!(f, "{number}"),
        }
    }
}

/// Whether the first row of a CSV or TSV input names the columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Header {
    /// It does if columns are asked for by name, or if no address stands in the asked columns of the
    /// first row (in none of its columns, where none are asked for).
    #[default]
    Detect,
    /// It does.
    Present,
    /// It does not.
    Absent,
}

/// What to annotate and how.
///
/// ```
/// use fibula_annotate::{AnnotateOptions, Column, Format};
/// let mut options = AnnotateOptions::new(Format::Csv);
/// options.columns = vec![Column::Name("SrcAddr".into()), Column::Number(7)];
/// options.add = vec!["prefix".into(), "country".into()];
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AnnotateOptions {
    /// The format of the input.
    pub format: Format,
    /// The columns that hold addresses. None: in CSV and TSV every column that holds an address in
    /// the first data row, in a list the first word of the line, in a capture source and destination.
    /// JSON lines need at least one.
    pub columns: Vec<Column>,
    /// What to add for each address column: `"prefix"` for the matched prefix, and value columns of
    /// the table by name. None: all value columns.
    pub add: Vec<String>,
    /// What addresses without a route get in a value column, in place of nothing (`null` in JSON).
    pub defaults: Vec<(String, String)>,
    /// Whether the first row of a CSV or TSV input is a header.
    pub header: Header,
    /// The byte between fields, in place of the format's comma or tab.
    pub delimiter: Option<u8>,
    /// The quote of CSV and TSV; `None` where quotes are ordinary characters.
    pub quote: Option<u8>,
    /// Text that is not an address, rows of another width than the first and damaged records are
    /// errors, in place of being counted.
    pub strict: bool,
    /// Of a capture, a row for each flow (the packets of one direction with equal addresses, protocol
    /// and ports) in place of one for each packet. Memory grows with the flows; rows come at the end.
    pub flows: bool,
    /// How many of the most frequent values of each added column the summary lists; 0 for none.
    pub top: usize,
}

impl AnnotateOptions {
    /// The defaults for a format.
    pub fn new(format: Format) -> Self {
        Self {
            format,
            columns: Vec::new(),
            add: Vec::new(),
            defaults: Vec::new(),
            header: Header::Detect,
            delimiter: None,
            quote: Some(b'"'),
            strict: false,
            flows: false,
            top: 10,
        }
    }
}

/// The name of the column that adds `add` for the addresses of `column`.
pub(crate) fn added_name(column: &str, add: &str) -> String {
    format!("{}_{add}", column.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for format in Format::ALL {
            assert_eq!(format.name().parse(), Ok(format));
        }
        let error = "xml".parse::<Format>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown format \"xml\"; known are csv tsv jsonl list pcap parquet arrow"
        );
    }

    #[test]
    fn columns_are_numbers_or_names() {
        for (text, column) in [
            ("7", Column::Number(7)),
            ("0", Column::Name("0".into())),
            ("+7", Column::Name("+7".into())),
            ("id.orig_h", Column::Name("id.orig_h".into())),
        ] {
            assert_eq!(text.parse(), Ok(column));
        }
    }

    #[test]
    fn guesses() {
        for (head, format) in [
            (&b""[..], Format::List),
            (b"10.0.0.1\n10.0.0.2\n", Format::List),
            (b"10.0.0.1\t5\n", Format::Tsv),
            (b"\xef\xbb\xbf{}\n", Format::JsonLines),
            (b"\xd4\xc3\xb2\xa1\x02\x00", Format::Pcap),
            (b"PAR1\x15", Format::Parquet),
            (b"ARROW1\0\0", Format::Arrow),
            (b"\xff\xff\xff\xff\x10\x01", Format::Arrow),
            (b"\x0a\x0d\x0d\x0a\x1c\x00\x00\x00\x4d\x3c\x2b\x1a", Format::Pcap),
        ] {
            assert_eq!(Format::guess(head), format, "{head:?}");
        }
    }
}
