//! What to annotate and how.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use fibula_fib::TimeFormat;

/// A column of the input.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Column {
    /// By the name that the header, or the JSON member, has. In JSON, and in Parquet and Arrow files, a dot also
    /// descends into nested objects or structures, where no member has the whole name: `id.orig_h` finds
    /// `{"id.orig_h": ..}` and `{"id": {"orig_h": ..}}`.
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

/// Which rows come out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Only {
    /// Those of whose addresses a route covers at least one.
    Matched,
    /// Those of whose addresses no route covers any, rows without an address among them.
    Unmatched,
}

/// How text values of the table are added to columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TextForm {
    /// `Dictionary(Int32, Utf8)`: four bytes a row. All columns share one dictionary, the table's.
    #[default]
    Dictionary,
    /// `Utf8`.
    Plain,
}

/// How matched prefixes are added to columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PrefixForm {
    /// `Utf8`, as in `192.0.2.0/24`.
    #[default]
    Text,
    /// Two columns: `Binary` of 4 or 16 bytes in network order (`_prefix`), and `UInt8`
    /// (`_prefix_len`).
    Binary,
}

/// What to annotate and how, for both annotators: of text and of columns.
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
    /// The columns that hold addresses. None: in CSV and TSV, and in Parquet and Arrow files for text,
    /// every column of whose first thousand cells at least half are addresses, empty ones aside (those
    /// within the first MiB of CSV and TSV, whose rows come out only then); in a list the first word of
    /// the line, in a capture source and destination. JSON needs at least one.
    pub columns: Vec<Column>,
    /// What to add for each address column: `"prefix"` for the matched prefix, value columns of the
    /// table by name, and `"covering"`, the list of all prefixes that cover the address, longest first (in fields
    /// of text separated by semicolons).
    /// None: all value columns.
    pub add: Vec<String>,
    /// Value columns get the values of all prefixes that cover the address, as a list like that of
    /// `"covering"`. A prefix without a value has a place in the list, too.
    pub all_covering: bool,
    /// Of files and rows: which rows come out. None: all. Otherwise comments, empty lines and records that are no rows do
    /// not come out, of JSON the objects alone, each with a line end, and Parquet files are encoded anew.
    pub only: Option<Only>,
    /// Of CSV, TSV, lists and JSON: cells of digits alone are addresses as numbers, IPv4 below 2^32, else IPv6. CSV and
    /// TSV then need [`AnnotateOptions::columns`].
    pub integers: bool,
    /// Of lists: addresses are found wherever they stand in a line, by their number from 1 (default: the first),
    /// in place of the words of these numbers. `10.0.0.1:443`, `[2001:db8::1]:443` and `src=10.0.0.1,` hold an
    /// address each; text with letters or digits right beside it is none. IPv6 addresses need a digit.
    pub scan: bool,
    /// What addresses without a route get in a value column, in place of nothing (null in JSON and in
    /// columns).
    pub defaults: Vec<(String, String)>,
    /// The column with the time of each row, where the table is one of several dates
    /// ([`DatedFib`](fibula_fib::DatedFib)): each row is looked up in the newest table that is not later. Rows before the first
    /// table, and without a time, get nothing. Not of lists and captures.
    pub time: Option<Column>,
    /// How times are written where the column has text or numbers.
    pub time_format: TimeFormat,
    /// Text that is not an address, rows of another width than the first and damaged records are
    /// errors, in place of being counted.
    pub strict: bool,
    /// How many of the most frequent values of each added column the summary lists; 0 for none.
    pub top: usize,
    /// Of CSV and TSV: whether the first row is a header.
    pub header: Header,
    /// Of text: the byte between fields. None: in CSV the first of comma, semicolon, tab and bar that
    /// parts the first row, elsewhere tab.
    pub delimiter: Option<u8>,
    /// Of CSV and TSV: the quote; `None` where quotes are ordinary characters.
    pub quote: Option<u8>,
    /// Of a capture: a row for each flow (the packets of one direction with equal addresses, protocol
    /// and ports) in place of one for each packet. Memory grows with the flows; rows come at the end.
    pub flows: bool,
    /// Of columns: how text is added.
    pub text: TextForm,
    /// Of columns: how prefixes are added.
    pub prefix: PrefixForm,
    /// Of Parquet, and of rows with [`Annotator::annotate_on_threads`](crate::Annotator::annotate_on_threads): threads
    /// that read, look up and render; the output does not depend on it.
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
            top: 10,
            header: Header::Detect,
            delimiter: None,
            quote: Some(b'"'),
            flows: false,
            text: TextForm::Dictionary,
            prefix: PrefixForm::Text,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }
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
