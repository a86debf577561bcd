//! `fibula annotate`: columns of addresses in, the same rows with prefixes and values out.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args as ClapArgs;
use fibula_annotate::{AnnotateError, AnnotateOptions, Annotator, Column, Format, Header, Summary};
use fibula_core::grouped;
use fibula_rib::{EnginePart, Snapshot};

use crate::engines;
use crate::failure::{Failure, Outcome};
use crate::input;
use crate::output::{Grid, Output, bar, size};
use crate::progress::{ms, note};
use crate::source::{ReadArgs, Source, parse_delimiter, parse_yes_no};
use crate::table;

const EXAMPLES: &str = "\
Examples:
  fibula annotate access.log > annotated.log
  fibula annotate --table table.fib --column src_ip,dst_ip --add prefix,origin_as flows.csv -o out.csv
  fibula annotate --table rib.gz --column id.orig_h,id.resp_h --format jsonl conn.json.xz
  tcpdump -w - | fibula annotate --table table.fib --format pcap -

Formats: csv, tsv, jsonl (JSON objects, a line each), list (lines that begin with an address: plain
lists, access logs), pcap (also pcapng; packets become CSV rows). Told from the file's name, else
from its content. gz, bz2, xz and zst are undone. Rows keep their bytes and their order.

A table file that needs special reading (--names, --key...) is made a snapshot by `fibula build`.";

/// Add matched prefixes and values to data with addresses
#[derive(ClapArgs, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The data, - for standard input
    #[arg(value_name = "FILE", default_value = "-")]
    input: PathBuf,
    /// The table: a snapshot, table files, gen:v4:2024:900000:1, embedded
    #[arg(long, short, value_name = "TABLE,...", default_value = "embedded")]
    table: Vec<String>,
    /// Where to write, - for standard output
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Format of the data: csv, tsv, jsonl, list, pcap (default: told from name or content)
    #[arg(long, short, value_name = "FORMAT")]
    format: Option<Format>,
    /// Columns with addresses, by name or by number from 1 (default: found out; jsonl needs them)
    #[arg(long, short, value_delimiter = ',', value_name = "COLUMN,...")]
    column: Vec<Column>,
    /// What to add: prefix, and value columns of the table (default: all value columns)
    #[arg(long, short, value_delimiter = ',', value_name = "NAME,...")]
    add: Vec<String>,
    /// The first row names the columns, or does not (default: found out)
    #[arg(long, value_name = "yes|no", value_parser = parse_yes_no)]
    header: Option<bool>,
    /// The character between fields, or tab
    #[arg(long, value_name = "CHAR", value_parser = parse_delimiter)]
    delimiter: Option<u8>,
    /// Quotes are ordinary characters
    #[arg(long)]
    no_quotes: bool,
    /// Text that is not an address, and damaged records, are errors
    #[arg(long)]
    strict: bool,
    /// How many of the most frequent values the summary lists for each added column
    #[arg(long, value_name = "N", default_value = "10")]
    top: usize,
    /// No summary on standard error
    #[arg(long, short)]
    quiet: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Outcome, Failure> {
    let snapshot = snapshot(&Source::parse_list(&args.table)?)?;
    let v4 = engines::stored_or_auto::<u32>(&snapshot)?;
    let v6 = engines::stored_or_auto::<u128>(&snapshot)?;

    if same_file(&args.input, &args.output) {
        let message = format_args!("{}: is input and output", args.output.display());
        return Err(Failure::new(message).hint("write to another file"));
    }
    let mut data = BufReader::with_capacity(256 << 10, input::open(&args.input)?);
    let options = options(args, &mut data)?;
    let format = options.format;
    let annotator = Annotator::new(&snapshot, &v4.engine, &v6.engine, options)
        .map_err(|error| failure(args, &error))?;

    let mut out = Output::create(&args.output)?;
    let started = Instant::now();
    let summary = annotator.annotate(&mut data, &mut out).map_err(|error| failure(args, &error))?;
    if summary.output_closed {
        return Err(Failure::output_closed());
    }
    out.finish()?;
    if !args.quiet {
        let time = started.elapsed();
        let added = if args.add.is_empty() { snapshot.columns().width() } else { args.add.len() };
        say(&summary, format, added, time);
    }
    Ok(Outcome::Done)
}

fn snapshot(sources: &[(String, Source)]) -> Result<Snapshot, Failure> {
    if let [(_, Source::Snapshot(path))] = sources {
        return Ok(Snapshot::open(path)?);
    }
    let table = table::load_aloud(sources, &ReadArgs::automatic())?.table;
    let bytes = fibula_rib::to_bytes(&table, &EnginePart::none(), &EnginePart::none())?;
    Ok(Snapshot::from_bytes(bytes)?)
}

fn same_file(input: &Path, output: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok().filter(|path| path.is_file());
    real(input).is_some_and(|path| real(output) == Some(path))
}

fn options(args: &Args, data: &mut BufReader<impl Read>) -> Result<AnnotateOptions, Failure> {
    let format = match args.format.or_else(|| Format::from_path(&args.input)) {
        Some(format) => format,
        None => {
            let head = data.fill_buf().map_err(|e| Failure::io(args.input.display(), &e))?;
            Format::guess(head)
        }
    };
    let mut options = AnnotateOptions::new(format);
    options.columns = args.column.clone();
    options.add = args.add.clone();
    options.header = match args.header {
        None => Header::Detect,
        Some(true) => Header::Present,
        Some(false) => Header::Absent,
    };
    options.delimiter = args.delimiter;
    if args.no_quotes {
        options.quote = None;
    }
    options.strict = args.strict;
    options.top = args.top;
    Ok(options)
}

/// Names the file, and the option that would help.
fn failure(args: &Args, error: &AnnotateError) -> Failure {
    if let AnnotateError::Write(error) = error {
        return Failure::io(args.output.display(), error);
    }
    let failure = Failure::new(format_args!("{}: {error}", args.input.display()));
    match error {
        AnnotateError::UnknownValue { .. } => failure.hint("--add takes prefix and these names"),
        AnnotateError::NoColumn { .. }
        | AnnotateError::UnknownColumn { .. }
        | AnnotateError::ColumnNumber { .. }
        | AnnotateError::ColumnKind { .. } => {
            failure.hint("--column names the columns with addresses, --format the format")
        }
        AnnotateError::Unparsable { .. } | AnnotateError::Record { .. } => {
            failure.hint("without --strict it is counted and the rest goes on")
        }
        AnnotateError::NotACapture => failure.hint("--format names the format"),
        _ => failure,
    }
}

/// Width of the bars.
const BAR: usize = 30;

/// The summary, on standard error: standard output has the data.
fn say(summary: &Summary, format: Format, added: usize, time: Duration) {
    let share = |part: u64| 100.0 * part as f64 / summary.addresses.max(1) as f64;
    let rate = |count: u64| grouped((count as f64 / time.as_secs_f64().max(1e-9)) as u64);
    note(format_args!(
        "{} rows ({format}), {} addresses, {:.1} % matched, in {} ({} addresses/s, {}/s)",
        grouped(summary.rows),
        grouped(summary.addresses),
        share(summary.matched),
        ms(time),
        rate(summary.addresses),
        size((summary.bytes_read as f64 / time.as_secs_f64().max(1e-9)) as u64),
    ));
    for (count, what) in [
        (summary.unparsable, "cells with text that is not an address"),
        (summary.empty, "cells without an address"),
        (summary.damaged, "damaged records"),
        (summary.truncated, "packets captured too short"),
    ] {
        if count > 0 {
            note(format_args!("{} {what}", grouped(count)));
        }
    }
    // Every address column adds the same values, so its tops are as many.
    let slots = summary.top.len() / added.max(1);
    let each = summary.addresses as f64 / slots.max(1) as f64;
    for top in summary.top.iter().filter(|top| !top.values.is_empty()) {
        note(format_args!("\n{}: {} distinct values", top.column, grouped(top.distinct as u64)));
        let mut grid = Grid::headless(&[false, true, true, false]);
        let most = top.values.first().map_or(1, |(_, count)| (*count).max(1));
        for (value, count) in &top.values {
            grid.row([
                value.chars().take(40).collect(),
                grouped(*count),
                format!("{:.1} %", 100.0 * *count as f64 / each),
                bar(*count as f64 / most as f64, BAR),
            ]);
        }
        let mut text = Vec::new();
        // Writing to memory does not fail.
        let _ = grid.write_aligned(&mut text);
        note(String::from_utf8_lossy(&text).trim_end());
    }
}
