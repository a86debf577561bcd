//! `fibula annotate`: columns of addresses in, the same rows with prefixes and values out.

mod inputs;

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, Instant};

use clap::Args as ClapArgs;
use fibula_annotate::{
    AnnotateError, AnnotateOptions, Annotator, Column, ColumnAnnotator, ColumnOptions, FileOptions,
    Format, Header, PrefixForm, Summary, TextForm,
};
use fibula_core::grouped;
use fibula_fib::{Fib, FibOptions};

use self::inputs::Job;
use crate::failure::{Failure, Outcome};
use crate::input;
use crate::layer;
use crate::output::{Grid, Output, bar, size};
use crate::progress::{Bar, ms, note};
use crate::source::{ReadArgs, Source, parse_delimiter, parse_yes_no};
use crate::table;

const EXAMPLES: &str = "\
Examples:
  fibula annotate access.log > annotated.log
  fibula annotate --table table.fib --column src_ip,dst_ip --add prefix,origin_as flows.csv -o out.csv
  fibula annotate --table rib.gz --column id.orig_h,id.resp_h --format jsonl conn.json.xz
  fibula annotate --layer geo=countries.csv --layer asn=rib.gz flows.parquet -o out.parquet
  fibula annotate --table table.fib --column src --default asn=0 'logs/*.parquet' -o annotated/
  fibula annotate --table table.fib --flows capture.pcapng
  tcpdump -w - | fibula annotate --table table.fib --format pcap -

Formats: csv, tsv, jsonl (JSON objects, a line each), list (lines that begin with an address: plain
lists, access logs), pcap (also pcapng; packets become CSV rows), parquet, arrow (IPC file or stream).
Told from the file's name, else from its content. gz, bz2, xz and zst are undone. Rows keep their
bytes and their order; Parquet columns keep theirs, compression and statistics included.

Several tables merge in order: for the same prefix a later one replaces an earlier one. With --layer
they stand beside each other, and each adds its own columns. A table file that needs special reading
(--names, --key...) is made a snapshot by `fibula build`.";

/// Add matched prefixes and values to data with addresses
#[derive(ClapArgs, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The data: files, patterns, directories; - for standard input
    #[arg(value_name = "FILE", default_value = "-")]
    inputs: Vec<PathBuf>,
    /// The table: a snapshot, table files, gen:v4:2024:900000:1, embedded; several merge in order
    #[arg(long, short, value_name = "TABLE,...", default_value = "embedded")]
    table: Vec<String>,
    /// A table beside others, NAME=TABLE,...: its columns become NAME_column. Repeatable
    #[arg(long, value_name = "NAME=TABLE,...", conflicts_with = "table")]
    layer: Vec<String>,
    /// Where to write, - for standard output; a directory, if there are several files
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Format of the data: csv, tsv, jsonl, list, pcap, parquet, arrow (default: told from name or
    /// content)
    #[arg(long, short, value_name = "FORMAT")]
    format: Option<Format>,
    /// Columns with addresses, by name or by number from 1 (default: found out; jsonl needs them)
    #[arg(long, short, value_delimiter = ',', value_name = "COLUMN,...")]
    column: Vec<Column>,
    /// What to add: prefix, value columns of the table, and for parquet and arrow covering (the list
    /// of all prefixes that cover the address) (default: all value columns)
    #[arg(long, short, value_delimiter = ',', value_name = "NAME,...")]
    add: Vec<String>,
    /// What an address without a route gets in a column (default: nothing; null where there is one)
    #[arg(long, value_delimiter = ',', value_name = "NAME=VALUE,...", value_parser = parse_default)]
    default: Vec<(String, String)>,
    /// How text is added to parquet and arrow
    #[arg(long, value_name = "dictionary|plain", default_value = "dictionary")]
    text: Text,
    /// How prefixes are added to parquet and arrow: as text, or as bytes and length
    #[arg(long, value_name = "text|binary", default_value = "text")]
    prefix: Prefix,
    /// Threads for parquet (default: one for each processor)
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// The first row names the columns, or does not (default: found out)
    #[arg(long, value_name = "yes|no", value_parser = parse_yes_no)]
    header: Option<bool>,
    /// The character between fields, or tab
    #[arg(long, value_name = "CHAR", value_parser = parse_delimiter)]
    delimiter: Option<u8>,
    /// Quotes are ordinary characters
    #[arg(long)]
    no_quotes: bool,
    /// Of a capture, a row for each flow in place of one for each packet: the packets of one direction
    /// with equal addresses, protocol and ports
    #[arg(long)]
    flows: bool,
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

/// `--text`.
#[derive(Clone, Copy, Debug)]
struct Text(TextForm);

impl FromStr for Text {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "dictionary" => Ok(Self(TextForm::Dictionary)),
            "plain" => Ok(Self(TextForm::Plain)),
            _ => Err("dictionary or plain"),
        }
    }
}

/// `--prefix`.
#[derive(Clone, Copy, Debug)]
struct Prefix(PrefixForm);

impl FromStr for Prefix {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "text" => Ok(Self(PrefixForm::Text)),
            "binary" => Ok(Self(PrefixForm::Binary)),
            _ => Err("text or binary"),
        }
    }
}

fn parse_default(text: &str) -> Result<(String, String), &'static str> {
    let (name, value) = text.split_once('=').ok_or("NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Outcome, Failure> {
    let jobs = inputs::jobs(&args.inputs, &args.output)?;
    let fib = open(args)?;
    let mut columns = None;
    let mut total = Totals::default();
    for job in &jobs {
        let started = Instant::now();
        let (format, summary) = one(args, job, &fib, &mut columns)?;
        total.add(&summary, started.elapsed());
        if !args.quiet {
            let name = (jobs.len() > 1).then(|| job.input.display().to_string());
            let added = if args.add.is_empty() { fib.columns().width() } else { args.add.len() };
            say(&summary, format, added, started.elapsed(), name.as_deref());
        }
    }
    if jobs.len() > 1 && !args.quiet {
        total.say(jobs.len());
    }
    Ok(Outcome::Done)
}

/// Annotates one file. The annotator of columns is made for the first that needs one.
fn one(
    args: &Args,
    job: &Job,
    fib: &Fib,
    columns: &mut Option<ColumnAnnotator>,
) -> Result<(Format, Summary), Failure> {
    if same_file(&job.input, &job.output) {
        let message = format_args!("{}: is input and output", job.output.display());
        return Err(Failure::new(message).hint("write to another file"));
    }
    let named = args.format.or_else(|| Format::from_path(&job.input));
    if named == Some(Format::Parquet) && job.input.as_os_str() == "-" {
        return Err(Failure::new(
            "Parquet cannot be read from standard input: it is read back to front",
        )
        .hint("give the file's name"));
    }
    let columnar = named.map_or_else(|| sniff(&job.input), Ok)?;
    if let Some(folder) = job.output.parent().filter(|_| job.output != args.output) {
        std::fs::create_dir_all(folder).map_err(|e| Failure::io(folder.display(), &e))?;
    }
    if columnar.is_columnar() {
        let annotator = match columns {
            Some(annotator) => annotator,
            None => {
                let made = ColumnAnnotator::new(fib.clone(), &column_options(args));
                columns.insert(made.map_err(|error| failure(job, &error))?)
            }
        };
        return Ok((columnar, file(args, job, columnar, annotator, fib)?));
    }
    let mut data = BufReader::with_capacity(256 << 10, input::open(&job.input)?);
    let options = options(args, job, &mut data)?;
    let format = options.format;
    let annotator = Annotator::new(fib.clone(), options).map_err(|error| failure(job, &error))?;
    let mut out = Output::create(&job.output)?;
    let summary = annotator.annotate(&mut data, &mut out).map_err(|error| failure(job, &error))?;
    if summary.output_closed {
        return Err(Failure::output_closed());
    }
    fib.unchanged()?;
    out.finish()?;
    Ok((format, summary))
}

/// The format of a file whose name does not tell, as far as its first bytes do; lists for the others,
/// which are looked at again when they are open and not compressed any more.
fn sniff(path: &Path) -> Result<Format, Failure> {
    if path.as_os_str() == "-" {
        return Ok(Format::List);
    }
    let fail = |error| Failure::io(path.display(), &error);
    let file = File::open(path).map_err(fail)?;
    if !file.metadata().map_err(fail)?.is_file() {
        return Ok(Format::List); // a pipe: what is read here would be missing later
    }
    let mut head = Vec::new();
    file.take(8).read_to_end(&mut head).map_err(fail)?;
    Ok(Some(Format::guess(&head)).filter(|format| format.is_columnar()).unwrap_or(Format::List))
}

fn column_options(args: &Args) -> ColumnOptions {
    let mut options = ColumnOptions::default();
    options.add.clone_from(&args.add);
    options.defaults.clone_from(&args.default);
    (options.text, options.prefix) = (args.text.0, args.prefix.0);
    options.strict = args.strict;
    options
}

/// Annotates a file of columns.
fn file(
    args: &Args,
    job: &Job,
    format: Format,
    annotator: &ColumnAnnotator,
    fib: &Fib,
) -> Result<Summary, Failure> {
    let mut options = FileOptions::default();
    options.columns.clone_from(&args.column);
    options.top = top(args);
    options.threads = args.threads.unwrap_or(options.threads);
    let mut out = Watched { inner: Output::create(&job.output)?, error: None };
    let done = {
        let bar = Bar::new(&job.input.display().to_string());
        let mut show = |at| bar.show_rows(at);
        match format {
            Format::Parquet => {
                annotator.annotate_parquet(&job.input, &mut out, &options, &mut show)
            }
            _ => arrow(job, annotator, &mut out, &options, &mut show)?,
        }
    };
    if let Some(error) = out.error {
        return Err(Failure::io(job.output.display(), &error));
    }
    let summary = done.map_err(|error| failure(job, &error))?;
    fib.unchanged()?;
    out.inner.finish()?;
    Ok(summary)
}

fn arrow(
    job: &Job,
    annotator: &ColumnAnnotator,
    out: &mut impl Write,
    options: &FileOptions,
    show: &mut dyn FnMut(fibula_annotate::Progress),
) -> Result<Result<Summary, AnnotateError>, Failure> {
    if job.input.is_file() {
        let fail = |error| Failure::io(job.input.display(), &error);
        let mut file = File::open(&job.input).map_err(fail)?;
        let mut magic = Vec::new();
        (&mut file).take(6).read_to_end(&mut magic).map_err(fail)?;
        if magic == b"ARROW1" {
            file.rewind().map_err(fail)?;
            return Ok(annotator.annotate_ipc_file(file, out, options, show));
        }
    }
    Ok(annotator.annotate_ipc_stream(input::open(&job.input)?, out, options, show))
}

/// An output that remembers what went wrong: the file formats only tell that something did.
struct Watched {
    inner: Output,
    error: Option<io::Error>,
}

impl Watched {
    fn watch<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        result.map_err(|error| {
            let again = io::Error::new(error.kind(), error.to_string());
            if error.kind() != io::ErrorKind::Interrupted {
                self.error.get_or_insert(error);
            }
            again
        })
    }
}

impl Write for Watched {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let result = self.inner.write(bytes);
        self.watch(result)
    }

    fn flush(&mut self) -> io::Result<()> {
        let result = self.inner.flush();
        self.watch(result)
    }
}

/// How many of the most frequent values are listed.
fn top(args: &Args) -> usize {
    if args.quiet { 0 } else { args.top }
}

/// The table, with the engines that are stored with it or `auto`.
fn open(args: &Args) -> Result<Fib, Failure> {
    let (read, options) = (ReadArgs::automatic(), FibOptions::default());
    if args.layer.is_empty() {
        return table::open(&Source::parse_list(&args.table)?, &read, &options);
    }
    let layers = layer::load(&layer::parse(&args.layer)?, &read)?;
    Ok(Fib::of_table(layers.table, &options)?)
}

fn same_file(input: &Path, output: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok().filter(|path| path.is_file());
    real(input).is_some_and(|path| real(output) == Some(path))
}

fn options(
    args: &Args,
    job: &Job,
    data: &mut BufReader<impl Read>,
) -> Result<AnnotateOptions, Failure> {
    let format = match args.format.or_else(|| Format::from_path(&job.input)) {
        Some(format) => format,
        None => {
            let head = data.fill_buf().map_err(|e| Failure::io(job.input.display(), &e))?;
            Format::guess(head)
        }
    };
    let mut options = AnnotateOptions::new(format);
    options.columns = args.column.clone();
    options.add = args.add.clone();
    options.defaults.clone_from(&args.default);
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
    options.flows = args.flows;
    options.top = args.top;
    Ok(options)
}

/// Names the file, and the option that would help.
fn failure(job: &Job, error: &AnnotateError) -> Failure {
    if let AnnotateError::Write(error) = error {
        return Failure::io(job.output.display(), error);
    }
    let failure = Failure::new(format_args!("{}: {error}", job.input.display()));
    match error {
        AnnotateError::UnknownValue { .. } => failure.hint("--add takes prefix and these names"),
        AnnotateError::Default { .. } | AnnotateError::DefaultKind { .. } => {
            failure.hint("--default NAME=VALUE, for value columns that --add names")
        }
        AnnotateError::Columnar { .. } => {
            failure.hint("it must come from a file that is not compressed, or with --format")
        }
        AnnotateError::Type { .. } => failure.hint(
            "addresses are text, unsigned integers, or 4 or 16 bytes; --column names the columns",
        ),
        AnnotateError::File { .. } => {
            failure.hint("the file is damaged, or of another format: --format names it")
        }
        AnnotateError::NoColumn { .. }
        | AnnotateError::UnknownColumn { .. }
        | AnnotateError::ColumnNumber { .. }
        | AnnotateError::ColumnKind { .. } => {
            failure.hint("--column names the columns with addresses, --format the format")
        }
        AnnotateError::Unparsable { .. }
        | AnnotateError::Record { .. }
        | AnnotateError::Cell { .. } => {
            failure.hint("without --strict it is counted and the rest goes on")
        }
        AnnotateError::NotACapture => failure.hint("--format names the format"),
        _ => failure,
    }
}

/// Width of the bars.
const BAR: usize = 30;

/// The summary, on standard error: standard output has the data.
fn say(summary: &Summary, format: Format, added: usize, time: Duration, name: Option<&str>) {
    let share = |part: u64| 100.0 * part as f64 / summary.addresses.max(1) as f64;
    let rate = |count: u64| grouped((count as f64 / time.as_secs_f64().max(1e-9)) as u64);
    let said = name.map_or(String::new(), |name| format!("{name}: "));
    let bytes = match summary.bytes_read {
        0 => String::new(),
        read => format!(", {}/s", size((read as f64 / time.as_secs_f64().max(1e-9)) as u64)),
    };
    note(format_args!(
        "{said}{} rows ({format}), {} addresses, {:.1} % matched, in {} ({} addresses/s{bytes})",
        grouped(summary.rows),
        grouped(summary.addresses),
        share(summary.matched),
        ms(time),
        rate(summary.addresses),
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
    if name.is_some() {
        return; // of several files: not a page for each
    }
    // Every address column adds the same values, so its tops are as many.
    let slots = summary.top.len() / added.clamp(1, summary.top.len().max(1));
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

/// What several files had together.
#[derive(Default)]
struct Totals {
    rows: u64,
    addresses: u64,
    matched: u64,
    unparsable: u64,
    time: Duration,
}

impl Totals {
    fn add(&mut self, summary: &Summary, time: Duration) {
        self.rows += summary.rows;
        self.addresses += summary.addresses;
        self.matched += summary.matched;
        self.unparsable += summary.unparsable;
        self.time += time;
    }

    fn say(&self, files: usize) {
        note(format_args!(
            "{files} files, {} rows, {} addresses, {:.1} % matched, {} not an address, in {}",
            grouped(self.rows),
            grouped(self.addresses),
            100.0 * self.matched as f64 / self.addresses.max(1) as f64,
            grouped(self.unparsable),
            ms(self.time),
        ));
    }
}
