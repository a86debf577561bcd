//! Why annotation stopped.

use std::fmt;
use std::io;

use crate::{Column, LogFormat};

/// Why annotation could not begin, or stopped.
#[derive(Debug)]
#[non_exhaustive]
pub enum AnnotateError {
    /// The table has no value column of this name.
    UnknownValue {
        /// The name that was asked for.
        name: String,
        /// The names that there are.
        known: Vec<String>,
    },
    /// The header has no column of this name.
    UnknownColumn {
        /// The name that was asked for.
        name: String,
        /// The names that there are.
        known: Vec<String>,
    },
    /// The first row has fewer columns than the number that was asked for.
    ColumnNumber {
        /// The number that was asked for.
        number: usize,
        /// How many there are.
        fields: usize,
    },
    /// The format has columns in place of rows: a [`ColumnAnnotator`](crate::ColumnAnnotator) is for it.
    Columnar {
        /// The format.
        format: LogFormat,
    },
    /// The format cannot be asked for this column, for instance a list for a name.
    ColumnKind {
        /// The format.
        format: LogFormat,
        /// The column.
        column: Column,
    },
    /// No address column was asked for, and none can be found.
    NoColumn {
        /// The format.
        format: LogFormat,
    },
    /// No row has the column that was asked for.
    InNoRow {
        /// The column.
        column: Column,
    },
    /// The input is not text.
    Binary {
        /// The place of a byte that no text has, counted from 0.
        offset: u64,
    },
    /// The same column, or the same value, was asked for twice.
    Twice {
        /// Its name.
        name: String,
    },
    /// The output would have two columns of this name.
    NameTaken {
        /// The name.
        name: String,
    },
    /// A delimiter or quote that cannot be one, or the same byte for both.
    Delimiter,
    /// The text is not an address (strict).
    Unparsable {
        /// The line, counted from 1.
        line: u64,
        /// The column.
        column: String,
        /// The text, shortened.
        text: String,
    },
    /// A record is damaged (strict).
    Record {
        /// The line, counted from 1.
        line: u64,
        /// What is wrong with it.
        what: String,
    },
    /// The cell of a column is not an address (strict).
    Cell {
        /// The row, counted from 1.
        row: u64,
        /// The column.
        column: String,
        /// The cell, shortened.
        text: String,
    },
    /// The text is not a time (strict).
    Time {
        /// The line, counted from 1.
        line: u64,
        /// The column.
        column: String,
        /// The text, shortened.
        text: String,
    },
    /// The cell of a column of times is not a time (strict).
    TimeCell {
        /// The row, counted from 1.
        row: u64,
        /// The column.
        column: String,
        /// The cell, shortened.
        text: String,
    },
    /// Columns of this type hold no times.
    TimeType {
        /// The type, as Arrow calls it.
        kind: String,
    },
    /// The table has several dates, and no column says which.
    NoTime,
    /// A column of times, and a table without dates.
    NotDated,
    /// The format has no column of times.
    NoTimes {
        /// The format.
        format: LogFormat,
    },
    /// Columns of this type hold no addresses.
    Type {
        /// The type, as Arrow calls it.
        kind: String,
    },
    /// A default was given for something that is not added, or that has none.
    Default {
        /// Its name.
        name: String,
    },
    /// A default that is text, for a column of something else.
    DefaultKind {
        /// The column.
        name: String,
        /// The default.
        text: String,
        /// What the column holds: `int`, `float` or `bool`.
        kind: &'static str,
    },
    /// The table is a generation of a live one: it has attribute sets and no columns.
    Live,
    /// There is too much of something.
    Limit {
        /// What there is too much of.
        what: &'static str,
    },
    /// An Arrow or Parquet file is damaged, or holds what we cannot read.
    File {
        /// What is wrong with it.
        what: String,
    },
    /// A capture is damaged (strict).
    Packet {
        /// The packet that would have come next, counted from 1.
        packet: u64,
        /// The byte at which the damaged record begins.
        offset: u64,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A record is longer than what is kept in memory.
    TooLong {
        /// The line that it begins on, counted from 1.
        line: u64,
        /// The most bytes that a record may have.
        limit: usize,
    },
    /// The input is not a capture.
    NotACapture,
    /// Reading failed.
    Read(io::Error),
    /// Writing failed. A reader that went away is not an error: see
    /// [`Summary::output_closed`](crate::Summary::output_closed).
    Write(io::Error),
}

impl AnnotateError {
    /// The same error in an input that has so many lines before those that its own are counted from.
    pub(crate) fn behind(mut self, lines: u64) -> Self {
        if let Self::Unparsable { line, .. } | Self::Record { line, .. } | Self::Time { line, .. } =
            &mut self
        {
            *line += lines;
        }
        self
    }
}

impl fmt::Display for AnnotateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownValue { name, known } => {
                write!(f, "the table has no value column {name:?}; it has: {}", known.join(", "))
            }
            Self::UnknownColumn { name, known } => {
                write!(f, "the header has no column {name:?}; it has: {}", known.join(", "))
            }
            Self::ColumnNumber { number, fields } => {
                write!(f, "column {number} was asked for, the first row has {fields}")
            }
            Self::ColumnKind { format, column: Column::Name(name) } => {
                write!(f, "format {format} has no column {name:?} to ask for")
            }
            Self::ColumnKind { format, column: Column::Number(number) } => {
                write!(f, "format {format} has no column numbers, {number} was asked for")
            }
            Self::NoColumn { format } => {
                write!(f, "no address column found in the {format} input: name one")
            }
            Self::InNoRow { column } => write!(f, "no row has a column {column}"),
            Self::Binary { offset } => {
                write!(f, "the input is not text, or text in UTF-16: byte {offset} is zero")
            }
            Self::Twice { name } => write!(f, "{name:?} was asked for twice"),
            Self::NameTaken { name } => write!(f, "the input already has a column {name:?}"),
            Self::Delimiter => f.write_str(
                "delimiter and quote must be two different characters, neither of them a line end",
            ),
            Self::Unparsable { line, column, text } => {
                write!(f, "line {line}, column {column}: {text:?} is not an address")
            }
            Self::Record { line, what } => write!(f, "record at line {line}: {what}"),
            Self::Cell { row, column, text } => {
                write!(f, "row {row}, column {column}: {text:?} is not an address")
            }
            Self::Time { line, column, text } => {
                write!(f, "line {line}, column {column}: {text:?} is not a time")
            }
            Self::TimeCell { row, column, text } => {
                write!(f, "row {row}, column {column}: {text:?} is not a time")
            }
            Self::TimeType { kind } => write!(f, "a column of type {kind} holds no times"),
            Self::NoTime => {
                f.write_str("the table has several dates: name the column with the time of each row")
            }
            Self::NotDated => f.write_str(
                "a column of times needs the tables of several dates, which `fibula build --as-of` writes",
            ),
            Self::NoTimes { format } => {
                write!(f, "{format} has no column of times: convert it to csv, tsv, jsonl, parquet or arrow")
            }
            Self::Columnar { format } => {
                write!(f, "format {format} is annotated by columns, not rows")
            }
            Self::Type { kind } => write!(f, "a column of type {kind} holds no addresses"),
            Self::Default { name } => {
                write!(
                    f,
                    "a default was given for {name:?}, which is no value column that is added"
                )
            }
            Self::DefaultKind { name, text, kind } => {
                let values = match *kind {
                    "float" => "numbers",
                    "bool" => "true and false",
                    _ => "integers",
                };
                write!(f, "column {name:?} holds {values}, its default {text:?} is none")
            }
            Self::Live => f.write_str(
                "the table is a generation of a live one and has no columns to annotate with: open a \
                 snapshot or a checkpoint of it",
            ),
            Self::Limit { what } => write!(f, "more than 2^31 - 1 {what}"),
            Self::File { what } => f.write_str(what),
            Self::Packet { packet, offset, what } => {
                write!(f, "packet {packet}, at byte {offset}: {what}")
            }
            Self::TooLong { line, limit } => {
                write!(f, "the record at line {line} is longer than {limit} bytes")
            }
            Self::NotACapture => f.write_str("the input is neither pcap nor pcapng"),
            Self::Read(error) => write!(f, "reading the input: {error}"),
            Self::Write(error) => write!(f, "writing the output: {error}"),
        }
    }
}

impl std::error::Error for AnnotateError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read(error) | Self::Write(error) => Some(error),
            _ => None,
        }
    }
}
