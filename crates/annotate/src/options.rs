//! The options of annotation.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;
use std::thread;

use fibula_fib::TimeFormat;

/// A column of the input.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Column {
    /// By the name in the header, or of the JSON member. In JSON, Parquet and Arrow, a dot also leads into nested
    /// objects or structures, unless a member has the whole name: `id.orig_h` finds `{"id.orig_h": ..}` and `{"id":
    /// {"orig_h": ..}}`.
    Name(String),
    /// By its position, counted from 1.
    Number(usize),
}

impl FromStr for Column {
    type Err = Infallible;

    /// Text of only digits (but not `0`) is a number, any other text a name.
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
    /// The first row is a header if columns are chosen by name, or if none of the chosen columns has an address in the
    /// first row (if no columns are chosen: none of all columns).
    #[default]
    Detect,
    /// The first row is a header.
    Present,
    /// The first row is data.
    Absent,
}

/// The rows to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Only {
    /// Rows with at least one address that a route covers.
    Matched,
    /// Rows without such an address, also rows without any address.
    Unmatched,
}

/// The form of rows that exports of flows become.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExportRows {
    /// Comma-separated values with a header.
    #[default]
    Csv,
    /// Tab-separated values with a header.
    Tsv,
    /// JSON objects, one on each line. Fields without a value are left out.
    JsonLines,
}

/// The type of added columns of text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TextForm {
    /// `Dictionary(Int32, Utf8)`: four bytes for each row. All columns share the table's dictionary.
    #[default]
    Dictionary,
    /// `Utf8`.
    Plain,
}

/// The type of added columns of prefixes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PrefixForm {
    /// `Utf8`, such as `192.0.2.0/24`.
    #[default]
    Text,
    /// Two columns: `Binary` of 4 or 16 bytes in network order (`_prefix`), and `UInt8`
    /// (`_prefix_len`).
    Binary,
}

/// The options of both annotators, for text and for columnar files.
///
/// ```
/// use fibula_annotate::{AnnotateOptions, Column};
/// let mut options = AnnotateOptions::default();
/// options.columns = vec![Column::Name("SrcAddr".into()), Column::Number(7)];
/// options.add = vec!["prefix".into(), "country".into()];
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AnnotateOptions {
    /// The columns with addresses. If empty, they are detected: in CSV, TSV, Parquet and Arrow, every text column in
    /// whose first thousand non-empty cells at least half are addresses (for CSV and TSV, cells of the first MiB,
    /// whose rows are written only then); in a list, the first word of the line; in a capture, source and
    /// destination. JSON needs at least one column.
    pub columns: Vec<Column>,
    /// The values to add for each address column: `"prefix"` for the matched prefix, value columns of the table by
    /// name, and `"covering"` for the list of all prefixes that cover the address, longest first (separated by
    /// semicolons in text fields). A value column that is itself called `prefix` or `covering` is asked for, and added,
    /// as `prefix_2` or `covering_2`. If empty: all value columns.
    pub add: Vec<String>,
    /// Value columns get a list with the values of all prefixes that cover the address, in the order of `"covering"`.
    /// A prefix without a value also has an entry in the list.
    pub all_covering: bool,
    /// For files and rows: the rows to write; `None` for all. Otherwise, comments, empty lines and records that are
    /// not rows are left out. Of JSON only the objects are written, each on a line, and Parquet files are encoded
    /// again.
    pub only: Option<Only>,
    /// For CSV, TSV, lists and JSON: cells with only digits are addresses as numbers, IPv4 below 2^32, else IPv6. CSV
    /// and TSV then need [`AnnotateOptions::columns`].
    pub integers: bool,
    /// For lists: finds addresses anywhere in a line, and column numbers count addresses (from 1; default: the first)
    /// instead of words. `10.0.0.1:443`, `[2001:db8::1]:443` and `src=10.0.0.1,` each contain an address. Text
    /// directly next to a letter or digit is not an address. IPv6 addresses need a digit.
    pub scan: bool,
    /// The value of a column for addresses without a route, instead of an empty field (null in JSON and in columnar
    /// files).
    pub defaults: Vec<(String, String)>,
    /// The column with the time of each row, for a table of several dates ([`DatedFib`](fibula_fib::DatedFib)). Each
    /// row is looked up in the newest table that is not later than its time. Rows before the first table, and rows
    /// without a time, get no values. Not for lists and captures.
    pub time: Option<Column>,
    /// The format of times in columns of text or numbers.
    pub time_format: TimeFormat,
    /// Returns an error for text that is not an address, for rows of another width than the first, and for damaged
    /// records. By default they are counted.
    pub strict: bool,
    /// For rows: writes nothing until the first address is found, or a MiB of rows was made. An input that
    /// [`Summary::unfit`](crate::Summary::unfit) refuses, or that has an error before, is not written then.
    pub hold: bool,
    /// Number of most frequent values in the summary, for each added column; 0 for none.
    pub top: usize,
    /// For CSV and TSV: whether the first row is a header.
    pub header: Header,
    /// For text: the byte between fields. If `None`: in CSV, the first of comma, semicolon, tab and bar that
    /// separates fields of the first row; in other formats, tab.
    pub delimiter: Option<u8>,
    /// For CSV and TSV: the quote; `None` to treat quotes as ordinary characters.
    pub quote: Option<u8>,
    /// For captures: writes one row for each flow instead of each packet. A flow is the packets of one direction with
    /// the same addresses, protocol and ports. Memory grows with the number of flows, and rows are written at the
    /// end.
    pub flows: bool,
    /// For exports of flows: the form of their rows.
    pub export_rows: ExportRows,
    /// For columnar files: the type of added text.
    pub text: TextForm,
    /// For columnar files: the type of added prefixes.
    pub prefix: PrefixForm,
    /// For Arrow: the maximum number of bytes of a batch, unpacked, with the dictionaries that it may use. If `None`:
    /// 256 MiB, or 64 times the stored bytes if that is more. A larger batch is an error, before memory is allocated.
    pub batch_bytes: Option<u64>,
    /// For Arrow: batches with more rows are written as several batches, so that memory for the added columns is
    /// bounded.
    pub batch_rows: Option<usize>,
    /// For Parquet, Arrow files, and rows with
    /// [`Annotator::annotate_on_threads`](crate::Annotator::annotate_on_threads): number of threads that read, look up
    /// and render. The output does not depend on it.
    pub threads: usize,
}

impl Default for AnnotateOptions {
    fn default() -> Self {
        Self {
            columns: Vec::new(),
            add: Vec::new(),
            all_covering: false,
            only: None,
            integers: false,
            scan: false,
            defaults: Vec::new(),
            time: None,
            time_format: TimeFormat::Auto,
            strict: false,
            hold: false,
            top: 10,
            header: Header::Detect,
            delimiter: None,
            quote: Some(b'"'),
            flows: false,
            export_rows: ExportRows::Csv,
            text: TextForm::Dictionary,
            prefix: PrefixForm::Text,
            batch_bytes: None,
            batch_rows: None,
            threads: processors(),
        }
    }
}

/// The number of processors that this process may use, read once: on Linux this opens files of the control group, which
/// takes some 25 us each time.
fn processors() -> usize {
    static COUNT: OnceLock<usize> = OnceLock::new();
    *COUNT.get_or_init(|| thread::available_parallelism().map_or(1, usize::from))
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
