//! Decoders convert input bytes to rows and address cells. They do no I/O and never panic on any input.

pub(crate) mod csv;
pub(crate) mod exports;
mod guess;
pub(crate) mod json;
pub(crate) mod list;
pub(crate) mod pcap;
pub(crate) mod wire;
mod within;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use self::csv::scan::Dialect;
use crate::added::Addition;
use crate::block::Block;
use crate::fault::Fault;
use crate::pipeline::keys::Cells;
use crate::rules::{FlowChoice, FlowKeys};
use crate::{AnnotateError, AnnotateOptions, LogFormat, LookupTable};

/// How added values are written.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Style {
    /// As delimited fields.
    Fields(Dialect),
    /// As members of a JSON object.
    Members,
    /// In a form of streams.
    Wire(Wire),
}

/// The forms of values in streams between programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    /// Fields behind tabs, with the escapes of ClickHouse's TabSeparated; null is `\N`.
    Tabs,
    /// RowBinary: every value is nullable. Integers are UInt64, fractions Float64.
    Binary,
    /// Fields of the line protocol, which leaves nulls out.
    Line,
}

/// Creates the decoder of a format with rows.
pub(crate) fn decoder(
    format: LogFormat,
    options: &AnnotateOptions,
    additions: &[Addition],
    table: &Arc<dyn LookupTable>,
) -> Result<Box<dyn Decode>, AnnotateError> {
    if options.time.is_some()
        && matches!(format, LogFormat::List | LogFormat::Pcap | LogFormat::Flows)
    {
        return Err(AnnotateError::NoTimes { format });
    }
    let added = || additions.iter().map(|addition| addition.name.clone()).collect::<Vec<_>>();
    Ok(match format {
        LogFormat::Csv | LogFormat::Tsv => Box::new(csv::Csv::new(format, options, added())?),
        LogFormat::JsonLines => Box::new(json::JsonLines::new(options, &added())?),
        LogFormat::List => Box::new(list::List::of_table(options, table)?),
        LogFormat::Pcap => Box::new(pcap::Pcap::new(options)?),
        LogFormat::Flows => Box::new(exports::Exports::new(options)?),
        LogFormat::Parquet | LogFormat::Arrow => return Err(AnnotateError::Columnar { format }),
    })
}

/// Creates the decoder of rows with the fields of flows, or of packets.
pub(crate) fn flow_decoder(
    format: LogFormat,
    options: &AnnotateOptions,
    choice: FlowChoice,
) -> Result<Box<dyn Decode<FlowKeys>>, AnnotateError> {
    Ok(match format {
        LogFormat::Csv | LogFormat::Tsv => Box::new(csv::Csv::of_flows(format, options, choice)?),
        LogFormat::JsonLines => Box::new(json::JsonLines::of_flows(options, choice)),
        LogFormat::Pcap => Box::new(pcap::Pcap::of_flows(options, choice)),
        _ => return Err(AnnotateError::NoFlows { format }),
    })
}

/// Decodes input into rows; the part that does not depend on the kind of keys.
pub(crate) trait LogDecoder: Send {
    /// The names of the address columns, in the order of the cells; known once a row was decoded.
    fn names(&self) -> &[String];

    /// How values are added to its rows; known once a row was decoded.
    fn style(&self) -> Style;

    /// Returns an error that is known only at the end of the input: a column that no row has.
    fn finish(&self) -> Result<(), AnnotateError> {
        Ok(())
    }

    /// Whether rows are in [`Block::text`] instead of the data.
    fn writes_rows(&self) -> bool {
        false
    }

    /// The end of the last complete record in `data`, which begins with a record; 0 if none is complete. The next call
    /// gets the data from there on.
    fn cut(&mut self, data: &[u8]) -> usize {
        let _ = data;
        0
    }

    /// Where the next record is in the input, if the records before it decide how it is read.
    fn position(&self) -> Option<pcap::Position> {
        None
    }

    /// Continues at a position of another decoder of the same input.
    fn seek(&mut self, position: pcap::Position) {
        let _ = position;
    }
}

/// Decodes input into rows with keys.
pub(crate) trait Decode<K = Cells>: LogDecoder {
    /// Decodes complete records at the beginning of `data` into `block`, until it is full. Returns
    /// how many bytes were consumed, 0 if no record is complete. With `end`, `data` is the rest of the
    /// input, and the last record is complete even without a line end.
    fn decode(&mut self, data: &[u8], end: bool, block: &mut Block<K>) -> Result<usize, Fault>;

    /// A decoder for another part of the same input, which is split by [`LogDecoder::cut`]. The decoders share the
    /// state that [`LogDecoder::finish`] checks. `None` if the input cannot be decoded in parts, or only after more of
    /// it was decoded.
    fn fork(&self) -> Option<Box<dyn Decode<K>>> {
        None
    }
}

/// The maximum number of rows, and of bytes, that are examined to detect the properties of an input.
pub(crate) const SAMPLE_ROWS: usize = 1000;
pub(crate) const SAMPLE_BYTES: usize = 1 << 20;

/// Sets a flag that is shared with other threads. It is not written again once it is set.
pub(crate) fn set(flag: &AtomicBool) {
    if !flag.load(Ordering::Relaxed) {
        flag.store(true, Ordering::Relaxed);
    }
}

/// The end of the last complete line of `data`; 0 if none is complete.
pub(crate) fn last_line_end(data: &[u8]) -> usize {
    memchr::memrchr(b'\n', data).map_or(0, |at| at + 1)
}

/// The line at the beginning of `data`: where its content ends and where the next line begins;
/// `None` if it is not complete. CR LF and LF end lines.
#[inline]
pub(crate) fn line_end(data: &[u8], end: bool) -> Option<(usize, usize)> {
    match memchr::memchr(b'\n', data) {
        Some(at) if at > 0 && data[at - 1] == b'\r' => Some((at - 1, at + 1)),
        Some(at) => Some((at, at + 1)),
        None if end && !data.is_empty() => {
            Some((data.len() - usize::from(data.ends_with(b"\r")), data.len()))
        }
        None => None,
    }
}
