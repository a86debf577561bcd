//! The errors of annotation.

use std::fmt;
use std::io;

use fibula_flows::{ExportFault, NfcapdFault};

use crate::{Column, LogFormat};

/// The error that prevents or stops annotation.
#[derive(Debug)]
#[non_exhaustive]
pub enum AnnotateError {
    /// The table has no value column with this name.
    UnknownValue {
        /// The requested name.
        name: String,
        /// The existing names.
        known: Vec<String>,
    },
    /// The header has no column with this name.
    UnknownColumn {
        /// The requested name.
        name: String,
        /// The existing names.
        known: Vec<String>,
    },
    /// The first row has fewer columns than the requested number.
    ColumnNumber {
        /// The requested number.
        number: usize,
        /// The number of columns.
        fields: usize,
    },
    /// The format is columnar and needs a [`ColumnAnnotator`](crate::ColumnAnnotator).
    Columnar {
        /// The format.
        format: LogFormat,
    },
    /// The format does not have such columns: for example, a list has no column names.
    ColumnKind {
        /// The format.
        format: LogFormat,
        /// The column.
        column: Column,
    },
    /// No address column was chosen, and none can be detected.
    NoColumn {
        /// The format.
        format: LogFormat,
    },
    /// No row has the chosen column.
    InNoRow {
        /// The column.
        column: Column,
    },
    /// The input is not text.
    Binary {
        /// The position of a byte that text does not contain, counted from 0.
        offset: u64,
    },
    /// The same column, or the same value, was requested twice.
    Twice {
        /// Its name.
        name: String,
    },
    /// Two of the values to add have this name: the table has a column that is called as the lengths of prefixes.
    SameName {
        /// The name.
        name: String,
    },
    /// The output would have two columns of this name.
    NameTaken {
        /// The name.
        name: String,
    },
    /// The delimiter or the quote is a byte that cannot be one, or both are the same byte.
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
        /// The error in it.
        what: String,
    },
    /// The fields of a row are no flow, or columns of these fields are missing.
    Row {
        /// The line, counted from 1.
        line: u64,
        /// The fault, with the text.
        what: String,
    },
    /// Inputs of this format have no rows with the fields of flows.
    NoFlows {
        /// The format.
        format: LogFormat,
    },
    /// A quote is never closed, so the lines below it cannot be read.
    OpenQuote {
        /// The line on which its record begins, counted from 1.
        line: u64,
    },
    /// The input ends within a JSON array: it was cut off.
    OpenArray {
        /// The line on which it ends, counted from 1.
        line: u64,
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
    /// The table has several dates, but no column of times was given.
    NoTime,
    /// A column of times was given, but the table has no dates.
    NotDated,
    /// The format does not support a column of times.
    NoTimes {
        /// The format.
        format: LogFormat,
    },
    /// Columns of this type hold no addresses.
    Type {
        /// The type, as Arrow calls it.
        kind: String,
    },
    /// A default was given for a column that is not added, or that cannot have one.
    Default {
        /// Its name.
        name: String,
    },
    /// A default is text, but its column has values of another type.
    DefaultKind {
        /// The column.
        name: String,
        /// The default.
        text: String,
        /// The type of the column: `int`, `float` or `bool`.
        kind: &'static str,
    },
    /// The table is a generation of a live one: it has attribute sets and no columns.
    Live,
    /// A limit is exceeded.
    Limit {
        /// The limited quantity.
        what: &'static str,
    },
    /// An Arrow or Parquet file is damaged, or uses an unsupported feature.
    File {
        /// The error in it.
        what: String,
    },
    /// The cells of a row are no flow.
    FlowCell {
        /// The row, counted from 1.
        row: u64,
        /// The name of the column.
        column: String,
        /// The error in the cell.
        what: String,
    },
    /// The columns of flows are not found, or columns with the names of added ones are there.
    FlowColumns {
        /// The error.
        what: String,
    },
    /// A column of bytes has cells that are neither of four or sixteen bytes, nor text beside text alone.
    BytesAndText {
        /// The length of the first of these cells.
        len: usize,
    },
    /// The headers of a packet cannot be read, because its link type is not known (strict).
    LinkType {
        /// The packet, counted from 1.
        packet: u64,
        /// The number of the link type.
        link: u32,
    },
    /// A capture is damaged (strict).
    Packet {
        /// The number of the next packet, counted from 1.
        packet: u64,
        /// The byte at which the damaged record begins.
        offset: u64,
        /// The error in it.
        what: &'static str,
    },
    /// An export of flows is damaged (strict).
    Export {
        /// The number of the packet or message, counted from 1.
        number: u64,
        /// The byte of the input at which its record begins.
        offset: u64,
        /// The error in it.
        fault: ExportFault,
    },
    /// A file of nfdump's collectors is damaged (strict), or of a kind that is not read.
    Stored {
        /// The error, with its place in the file.
        fault: NfcapdFault,
    },
    /// The options do not fit a stream, or the columns of a new table do not.
    Stream {
        /// The error.
        what: String,
    },
    /// A row of a binary stream is damaged, so the next one cannot be found.
    Bytes {
        /// The byte at which the row begins, counted from 0.
        offset: u64,
        /// The error in it.
        what: String,
    },
    /// A record is longer than the limit for records in memory.
    TooLong {
        /// The line on which it begins, counted from 1.
        line: u64,
        /// The most bytes that a record may have.
        limit: usize,
    },
    /// The input is not a capture.
    NotACapture,
    /// The input is neither a capture, nor a file of IPFIX messages, nor one of nfdump's collectors.
    NoExports,
    /// Reading failed.
    Read(io::Error),
    /// Writing failed. An output closed by its reader is not an error: see
    /// [`Summary::output_closed`](crate::Summary::output_closed).
    Write(io::Error),
}

impl AnnotateError {
    /// The same error, in an input with this many lines and bytes before the data in which it was found.
    pub(crate) fn behind(mut self, lines: u64, bytes: u64) -> Self {
        match &mut self {
            Self::Unparsable { line, .. }
            | Self::Record { line, .. }
            | Self::Row { line, .. }
            | Self::OpenQuote { line }
            | Self::OpenArray { line }
            | Self::Time { line, .. } => *line += lines,
            Self::Packet { offset, .. } | Self::Export { offset, .. } => *offset += bytes,
            _ => {}
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
            Self::SameName { name } => write!(
                f,
                "two of the added columns would be called {name:?}: one is a column of the table, the other the \
                 prefixes' lengths; leave out one, or take the prefixes as text"
            ),
            Self::NameTaken { name } => write!(f, "the input already has a column {name:?}"),
            Self::Delimiter => f.write_str(
                "delimiter and quote must be two different characters, neither of them a line end",
            ),
            Self::Unparsable { line, column, text } => {
                write!(f, "line {line}, column {column}: {text:?} is not an address")
            }
            Self::Row { line, what } => write!(f, "line {line}: {what}"),
            Self::NoFlows { format } => write!(f, "format {format} has no rows with the fields of flows"),
            Self::Record { line, what } => write!(f, "record at line {line}: {what}"),
            Self::OpenQuote { line } => write!(
                f,
                "line {line}: a quote in this record is never closed, so the lines below it cannot be read"
            ),
            Self::OpenArray { line } => write!(
                f,
                "line {line}: the input ends within a JSON array, before its `]`: it was cut off, so get it again"
            ),
            Self::Cell { row, column, text } => {
                write!(f, "row {row}, column {column}: {text:?} is not an address")
            }
            Self::FlowCell { row, column, what } => write!(f, "row {row}, column {column}: {what}"),
            Self::FlowColumns { what } | Self::Stream { what } => f.write_str(what),
            Self::Bytes { offset, what } => write!(f, "row at byte {offset}: {what}"),
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
                write!(
                    f,
                    "{format} has no column of times: convert it to csv, tsv, jsonl, parquet or arrow, or read its \
                     words as fields, with a blank as delimiter"
                )
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
            Self::Export { number, offset, fault } => {
                write!(f, "export {number}, in the record at byte {offset}: {fault}")
            }
            Self::BytesAndText { len } => write!(
                f,
                "a column of bytes holds addresses of 4 or 16 bytes, or text alone, but it has a cell of {len} bytes \
                 beside others"
            ),
            Self::LinkType { packet, link } => {
                write!(f, "packet {packet}: link type {link} is not known, so its headers are not read")
            }
            Self::TooLong { line, limit } => {
                write!(f, "the record at line {line} is longer than {limit} bytes")
            }
            Self::Stored { fault } => write!(f, "{fault}"),
            Self::NoExports => f.write_str(
                "the input is neither a capture (pcap, pcapng) nor a file of IPFIX messages or of nfcapd",
            ),
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
