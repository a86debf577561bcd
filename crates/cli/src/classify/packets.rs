//! Reads packets from captures and rows. Columns are read in `columns`.

use std::io::{BufRead, Write as _};
use std::path::Path;

use fibula_annotate::{AnnotateError, AnnotateOptions, FlowChoice, LogFormat, RuleAnnotator};
use fibula_classify::{Field, Flow};

use super::Hits;
use crate::annotate::reading::{Columns, Reading};
use crate::failure::Failure;
use crate::input::Input;

/// Counts of packets and damage, for the summary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PacketCounts {
    /// Packets of unknown link types, of which no fields are read.
    pub unknown_links: u64,
    /// Places where the capture is damaged.
    pub damaged: u64,
    /// The first damaged place.
    pub first_damage: Option<String>,
    /// There are no columns of ports: packets are taken as packets without.
    pub without_ports: bool,
}

/// Classifies all packets of a file. For columnar input, the rows and the rules' columns are written to `parquet`, if
/// it is given.
pub fn each(path: &Path, hits: &mut Hits, parquet: Option<&Path>) -> Result<PacketCounts, Failure> {
    let (_, reading) = Reading::of(Input::open(path)?, None)?;
    let mut data = match reading {
        Reading::Columns(columns) => return super::columns::rows(path, columns, hits, parquet),
        Reading::Rows(data, _) => data,
    };
    let head = data.fill_buf().map_err(|error| Failure::io(path.display(), &error))?;
    // What comes from a pipe, or was compressed.
    let guessed = LogFormat::guess(head);
    if head.starts_with(b"ARROW1") || guessed == LogFormat::Parquet {
        return Err(Failure::new(format_args!(
            "{}: {guessed} is not read in order: it cannot be compressed, nor come from standard input",
            path.display()
        ))
        .hint("name a file that is not compressed"));
    }
    if guessed == LogFormat::Arrow {
        let columns = Columns::ArrowStream(Box::new(data));
        return super::columns::rows(path, columns, hits, parquet);
    }
    if let Some(to) = parquet {
        let what = format_args!("{}: Parquet output needs Parquet or Arrow input", to.display());
        return Err(
            Failure::new(what).hint("other packets become CSV: give the output another name")
        );
    }
    let format = match guessed {
        LogFormat::Pcap => LogFormat::Pcap,
        guessed => {
            let named = LogFormat::from_path(path).filter(|format| *format != LogFormat::List);
            match named.unwrap_or(guessed) {
                format @ (LogFormat::Tsv | LogFormat::JsonLines) => format,
                _ => LogFormat::Csv,
            }
        }
    };
    rows(path, format, data, hits)
}

/// The columns of a capture's rows, after the packet number.
pub(super) const COLUMNS_OF_FLOWS: &str = "src,dst,protocol,src_port,dst_port";

pub(super) fn write_flow(row: &mut Vec<u8>, number: u64, flow: &Flow) {
    use std::net::{Ipv4Addr, Ipv6Addr};
    // Writing to memory cannot fail.
    let _ = write!(row, "{number},");
    let _ = match flow.get(Field::IpVersion) {
        4 => {
            let ip = |field| Ipv4Addr::from_bits(flow.get(field) as u32);
            write!(row, "{},{},", ip(Field::Ipv4Src), ip(Field::Ipv4Dst))
        }
        6 => {
            let ip = |field| Ipv6Addr::from_bits(flow.get(field));
            write!(row, "{},{},", ip(Field::Ipv6Src), ip(Field::Ipv6Dst))
        }
        _ => {
            row.extend_from_slice(b",,,,");
            return;
        }
    };
    let _ = write!(row, "{},", flow.get(Field::Protocol));
    let ports = [(Field::SrcPort, Field::DstPort), (Field::IcmpType, Field::IcmpCode)];
    let _ = match flow.get(Field::Transport) {
        kind @ 1..=2 => {
            let (from, to) = ports[kind as usize - 1];
            write!(row, "{},{}", flow.get(from), flow.get(to))
        }
        _ => write!(row, ","),
    };
}

/// Classifies packets, or rows of CSV, TSV or JSON, as `annotate` reads them.
fn rows(
    path: &Path,
    format: LogFormat,
    data: impl BufRead,
    hits: &mut Hits,
) -> Result<PacketCounts, Failure> {
    let failed = |error: AnnotateError| {
        let failure = Failure::new(format_args!("{}: {error}", path.display()));
        match error {
            AnnotateError::Write(error) => Failure::io("the output", &error),
            AnnotateError::Row { line: 1, .. } => {
                failure.hint("a capture is pcap or pcapng; CSV begins with the columns' names")
            }
            AnnotateError::Record { .. } | AnnotateError::Packet { .. } => {
                failure.hint("without --strict it is counted and the rest goes on")
            }
            _ => failure,
        }
    };
    let mut options = AnnotateOptions::default();
    options.strict = hits.strict;
    options.threads = hits.threads.map_or(options.threads, usize::from);
    let classifier = hits.classifier.clone();
    let writes = hits.out.is_some();
    let annotator = RuleAnnotator::new(classifier, format, &options, writes).map_err(failed)?;
    let classified = match &mut hits.out {
        Some(out) => annotator.annotate(data, out, &mut |_| {}),
        None => annotator.annotate(data, std::io::sink(), &mut |_| {}),
    };
    let (summary, counts) = classified.map_err(failed)?;
    if summary.output_closed {
        return Err(Failure::output_closed());
    }
    if summary.rows == 0 && (summary.bytes_read == 0 || summary.columns.is_empty()) {
        return Err(Failure::new(format_args!("{}: the file is empty", path.display())));
    }
    (hits.bytes, hits.unmatched_bytes) = (counts.bytes.clone(), counts.unmatched_bytes);
    hits.rows_counted = Some(counts);
    Ok(PacketCounts {
        unknown_links: summary.unknown_links,
        damaged: summary.damaged,
        first_damage: summary.first_damaged,
        without_ports: summary.columns.len() == 3,
    })
}

/// The positions of the five columns. The ports may be missing.
pub(super) fn columns(names: &[&str]) -> Result<[Option<usize>; 5], String> {
    let found = FlowChoice { adds: false }.of_names(names)?;
    Ok([0, 1, 2, 3, 4].map(|at| found.get(at).copied()))
}

/// The input has none of the columns that are added.
pub(super) fn unclassified(names: &[&str]) -> Result<(), String> {
    FlowChoice { adds: true }.of_names(names).map(drop)
}
