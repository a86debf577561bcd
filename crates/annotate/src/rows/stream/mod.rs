//! Annotation of a stream: a filter between two programs, one of which waits for the answer to each block.
//!
//! ```text
//!   input
//!     | decoders       one for each form: tsv, json (the one of files), binary, line
//!     v emit           lookup, counts, and the added values, with the bytes of the row or alone
//!   output             written and flushed before the next read
//! ```
//!
//! - **Invariant** There is one output row for each input row, in the same order.
//! - **Invariant** All rows of a block are looked up in one table. A new table is taken between blocks.

mod binary;
mod emit;
mod line;
#[cfg(test)]
mod tests;
mod tsv;
mod types;
mod work;

use std::fmt;
use std::io::{ErrorKind, Read, Write};
use std::str::FromStr;
use std::sync::Arc;

pub use self::types::CellTypes;
use self::work::StreamWork;
use super::process::Process;
use crate::formats::line_end;
use crate::input::{CHUNK, Input};
use crate::{AnnotateError, AnnotateOptions, LookupTable, Summary};

/// The format of a stream; the output has the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamFormat {
    /// Lines with fields between tabs, as ClickHouse's TabSeparated: `\t`, `\n` and `\\` are escapes, `\N` is null.
    Tsv,
    /// A JSON object on each line.
    JsonLines,
    /// ClickHouse's RowBinary, with columns of [`StreamOptions::types`].
    RowBinary,
    /// The line protocol of InfluxDB and Telegraf. Columns are tags or fields, and values are added as fields.
    Influx,
    /// Arrow IPC streams, also several one after the other.
    Arrow,
}

impl StreamFormat {
    /// All formats.
    pub const ALL: [Self; 5] =
        [Self::Tsv, Self::JsonLines, Self::RowBinary, Self::Influx, Self::Arrow];

    /// The format's name in options.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tsv => "tsv",
            Self::JsonLines => "jsonl",
            Self::RowBinary => "rowbinary",
            Self::Influx => "influx",
            Self::Arrow => "arrow",
        }
    }
}

impl fmt::Display for StreamFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for StreamFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.map(Self::name);
        let found = Self::ALL.into_iter().find(|format| format.name() == text);
        found.ok_or_else(|| format!("a stream is one of {}", known.join(", ")))
    }
}

/// The options of a stream, beside those of any annotation.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StreamOptions {
    /// The format.
    pub format: StreamFormat,
    /// Writes the added values alone, without the columns of the input. Not in the line protocol.
    pub only_added: bool,
    /// With [`StreamOptions::only_added`] in JSON: puts the values into an object of this name.
    pub inside: Option<String>,
    /// The types of all columns of RowBinary.
    pub types: CellTypes,
}

impl StreamOptions {
    /// A stream of this format, with all columns of the input.
    pub fn new(format: StreamFormat) -> Self {
        Self { format, only_added: false, inside: None, types: CellTypes::default() }
    }
}

/// The other program of a stream: gives a new table, and ends the stream.
pub trait StreamHost {
    /// A new table, if there is one since the last call. It is called after each read, before the rows that were read
    /// are looked up.
    fn renewed(&mut self) -> Option<Arc<dyn LookupTable>> {
        None
    }

    /// The new table cannot be used: its columns are not those that the stream began with. The old one stays.
    fn refused(&mut self, error: &AnnotateError) {
        let _ = error;
    }

    /// Whether the stream should end, although its input does not. A read may then return no bytes.
    fn is_stopped(&self) -> bool {
        false
    }
}

/// A stream with one table, to the end of its input.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoHost;

impl StreamHost for NoHost {}

/// Annotates a stream: answers the rows of each read, in their order, and flushes the output before the next read.
/// Every row gets exactly one row of output. Cells that are not addresses, and rows that cannot be read, get nulls and
/// are counted.
///
/// ```
/// # use fibula_annotate::{AnnotateOptions, Column, NoHost, StreamFormat, StreamOptions, annotate_stream};
/// # use fibula_core::{Attributes, Change, Update, Value};
/// # use fibula_fib::{Fib, FibOptions};
/// # use fibula_rib::{BuilderOptions, ColumnKind, TableBuilder};
/// # let mut builder = TableBuilder::new(BuilderOptions::default());
/// # builder.begin_source("t", "text", &[("country".into(), ColumnKind::Str)], false, None);
/// # let country = [Value::Str("CH")];
/// # builder.apply(&Update::new("192.0.2.0/24".parse()?, Change::Announce(Attributes::Values(&country))));
/// # let fib = Fib::of_table(builder.finish()?, &FibOptions::default())?;
/// // The table says that 192.0.2.0/24 is in CH.
/// let mut options = AnnotateOptions::default();
/// options.columns = vec![Column::Number(1)];
/// let mut stream = StreamOptions::new(StreamFormat::Tsv);
/// stream.only_added = true;
/// let mut output = Vec::new();
/// let input = &b"192.0.2.7\t53\n\\N\t80\n"[..];
/// annotate_stream(std::sync::Arc::new(fib), &options, &stream, input, &mut output, &mut NoHost)?;
/// assert_eq!(output, b"CH\n\\N\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If reading or writing fails, if the options do not fit the table or the stream, and at a row of RowBinary or Arrow
/// that is damaged, because the next one cannot be found. Rows before the error are written.
pub fn annotate_stream(
    table: Arc<dyn LookupTable>,
    options: &AnnotateOptions,
    stream: &StreamOptions,
    input: impl Read,
    mut output: impl Write,
    host: &mut dyn StreamHost,
) -> Result<Summary, AnnotateError> {
    if !table.has_columns() {
        return Err(AnnotateError::Live);
    }
    check(&*table, options, stream)?;
    let options = AnnotateOptions { top: 0, threads: 1, ..options.clone() };
    let mut total = Summary::default();
    let done = match stream.format {
        #[cfg(feature = "columnar")]
        StreamFormat::Arrow => {
            let only_added = stream.only_added;
            crate::files::ipc::filter(table, &options, only_added, input, output, host, &mut total)
        }
        #[cfg(not(feature = "columnar"))]
        StreamFormat::Arrow => Err(AnnotateError::Columnar { format: crate::LogFormat::Arrow }),
        _ => {
            let work = StreamWork::new(table, &options, stream)?;
            rows(work, &mut Input::new(input, CHUNK, false), &mut output, host, &mut total)
        }
    };
    match done {
        Err(AnnotateError::Write(error)) if error.kind() == ErrorKind::BrokenPipe => {
            total.output_closed = true;
        }
        other => other?,
    }
    Ok(total)
}

/// Refuses options that a stream does not have.
fn check(
    table: &dyn LookupTable,
    options: &AnnotateOptions,
    stream: &StreamOptions,
) -> Result<(), AnnotateError> {
    use StreamFormat::{Arrow, Influx, JsonLines, RowBinary};
    let lists = options.all_covering || options.add.iter().any(|name| name == "covering");
    let format = stream.format;
    let what = match () {
        () if options.columns.is_empty() => {
            "a stream needs its columns of addresses by name or number"
        }
        () if options.time.is_some() || table.dated().is_some() => {
            "a stream has no column of times"
        }
        () if options.only.is_some() => "a stream has all rows of its input",
        () if lists && !matches!(format, JsonLines | Arrow) => {
            "lists of covering prefixes are for streams of JSON and Arrow"
        }
        () if stream.only_added && format == Influx => {
            "the line protocol needs the measurement of each line, so its values are not added alone"
        }
        () if stream.inside.is_some() && (format != JsonLines || !stream.only_added) => {
            "an object around the added values is for streams of JSON with the added values alone"
        }
        () if stream.types.is_empty() && format == RowBinary => {
            "RowBinary needs the types of all columns"
        }
        () if !stream.types.is_empty() && format != RowBinary => "types are for RowBinary",
        () => return Ok(()),
    };
    Err(AnnotateError::Stream { what: what.to_owned() })
}

/// Annotates a stream of rows. The counts are added to `total`.
fn rows<R: Read>(
    mut work: StreamWork,
    input: &mut Input<R>,
    output: &mut impl Write,
    host: &mut dyn StreamHost,
    total: &mut Summary,
) -> Result<(), AnnotateError> {
    let (mut header, mut out) = (Vec::new(), Vec::new());
    let (mut lines, mut bytes) = (0, 0);
    loop {
        work.rows_before = total.rows;
        let mut process = Process::new(&work)?;
        if !header.is_empty() {
            // The columns of a later table have the same names, and the header was written.
            process.block(&header, false, &mut out)?;
            out.clear();
        }
        (process.done.lines, process.done.bytes) = (lines, bytes);
        let done = loop {
            if header.is_empty()
                && work.has_header()
                && let Some((_, next)) = line_end(input.data(), input.at_end())
            {
                header = input.data()[..next].to_vec();
            }
            let mut done = Ok(());
            while !input.data().is_empty() {
                let decoded = process.block(input.data(), input.at_end(), &mut out);
                let written = output.write_all(&out).map_err(AnnotateError::Write);
                total.bytes_written += out.len() as u64;
                out.clear();
                match written.and(decoded) {
                    Ok(0) => break,
                    Ok(used) => input.consume(used),
                    Err(error) => {
                        done = Err(error);
                        break;
                    }
                }
            }
            let flushed = output.flush().map_err(AnnotateError::Write);
            if done.is_err() || flushed.is_err() {
                break done.and(flushed).map(|()| None);
            }
            // A read that was stopped looks like the end of the input, but its last row may not be whole.
            if input.at_end() || host.is_stopped() {
                break Ok(None);
            }
            match input.more() {
                Ok(true) => {}
                Ok(false) => break Err(work.too_long(process.done.lines, process.done.bytes)),
                Err(error) => break Err(AnnotateError::Read(error)),
            }
            if host.is_stopped() {
                break Ok(None);
            }
            if let Some(table) = host.renewed() {
                match work.renewed(table) {
                    Ok(next) => break Ok(Some(next)),
                    Err(error) => host.refused(&error),
                }
            }
        };
        (lines, bytes) = (process.done.lines, process.done.bytes);
        total.bytes_read = bytes;
        total.extend(process.finish().0);
        match done? {
            Some(next) => work = next,
            None => return Ok(()),
        }
    }
}
