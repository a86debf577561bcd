//! The arguments of `fibula annotate`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args as ClapArgs, ValueEnum};
use fibula_annotate::{AnnotateOptions, Column, Header, LogFormat, Only, PrefixForm, TextForm};
use fibula_rib::{Loading, Moment, TimeFormat};

use crate::rpki::RpkiArgs;
use crate::source::{Peer, ReadArgs, parse_delimiter, parse_yes_no};

const EXAMPLES: &str = "\
Examples:
  fibula annotate access.log > annotated.log
  fibula annotate --table table.fib --column src_ip,dst_ip --add prefix,origin_as flows.csv -o out.csv
  fibula annotate --table rib.gz --column id.orig_h,id.resp_h --format jsonl conn.json.xz
  fibula annotate --layer geo=countries.csv --layer asn=rib.gz flows.parquet -o out.parquet
  fibula annotate --table table.fib --column src --default asn=0 'logs/*.parquet' -o annotated/
  fibula annotate --table rib.gz --rpki vrps.json --column dst --add prefix,origin_as,rpki flows.csv
  fibula annotate --table table.fib --flows capture.pcapng
  fibula annotate --table bad.fib --only matched --column src flows.csv
  fibula annotate --table year.fib --column src --time ts flows.csv
  journalctl -f | fibula annotate --table bad.fib --scan --only matched
  tcpdump -w - | fibula annotate --table table.fib --format pcap -

Formats: csv, tsv, jsonl (JSON objects: a line each, in an array, or of several lines), list (lines that begin with an address: plain
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
    pub inputs: Vec<PathBuf>,
    /// The table: a snapshot, table files, gen:v4:2024:900000:1, embedded; several merge in order
    #[arg(long, short, value_name = "TABLE,...", default_value = "embedded")]
    pub table: Vec<String>,
    /// A table beside others, NAME=TABLE,...: its columns become NAME_column. Repeatable
    #[arg(long, value_name = "NAME=TABLE,...", conflicts_with = "table")]
    pub layer: Vec<String>,
    /// Where to write, - for standard output; a directory, if there are several files. Rows that go to
    /// a file with .gz or .zst are compressed
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    pub output: PathBuf,
    /// Format of the data: csv, tsv, jsonl, list, pcap, parquet, arrow (default: told from name or
    /// content)
    #[arg(long, short, value_name = "FORMAT")]
    pub format: Option<LogFormat>,
    /// Columns with addresses, by name or by number from 1; a.b is b inside a, in jsonl, parquet and arrow (default:
    /// found out; jsonl needs them)
    #[arg(long, short, value_delimiter = ',', value_name = "COLUMN,...")]
    pub column: Vec<Column>,
    /// What to add: prefix, value columns of the table, covering (the list of all prefixes that cover the
    /// address, longest first) (default: all value columns)
    #[arg(long, short, value_delimiter = ',', value_name = "NAME,...")]
    pub add: Vec<String>,
    /// Value columns list the values of all prefixes that cover the address, as covering lists these: in CSV
    /// separated by semicolons, in JSON an array, in parquet and arrow a list
    #[arg(long)]
    pub covering: bool,
    /// Print the rows alone of whose addresses a route covers one (matched) or none (unmatched), without comments
    /// and empty lines; of a JSON array its objects; a Parquet file is encoded anew
    #[arg(long, value_name = "matched|unmatched")]
    pub only: Option<OnlyRows>,
    /// Cells of digits alone are addresses as numbers: IPv4 below 2^32, else IPv6. Of csv and tsv with --column
    /// (parquet and arrow have types for that)
    #[arg(long)]
    pub integers: bool,
    /// Find addresses anywhere in lines of text, such as syslog, 10.0.0.1:443, [2001:db8::1]:443: the first of
    /// each line, or those of the numbers that --column says
    #[arg(long)]
    pub scan: bool,
    /// The column with the time of each row, where the table is a file of several dates (build --as-of): each row is
    /// looked up in the newest table that is not later. Times are 2024-05-01T12:00:00Z, 2024-05-01 12:00 (UTC
    /// without a zone), numbers since 1970, timestamps and dates of parquet and arrow (not of list and pcap)
    #[arg(long, value_name = "COLUMN", conflicts_with_all = ["layer", "at", "rpki"])]
    pub time: Option<Column>,
    /// How text and numbers of --time are read: auto (text, or a number whose unit follows from its size),
    /// rfc3339, s, ms, us, ns (numbers in that unit)
    #[arg(long, value_name = "FORMAT", requires = "time")]
    pub time_format: Option<TimeFormat>,
    /// What an address without a route gets in a column (default: nothing; null where there is one)
    #[arg(long, value_delimiter = ',', value_name = "NAME=VALUE,...", value_parser = parse_default)]
    pub default: Vec<(String, String)>,
    /// How text is added to parquet and arrow
    #[arg(long, value_name = "dictionary|plain", default_value = "dictionary")]
    pub text: Text,
    /// How prefixes are added to parquet and arrow: as text, or as bytes and length
    #[arg(long, value_name = "text|binary", default_value = "text")]
    pub prefix: Prefix,
    /// Threads that annotate csv, tsv, jsonl, list and parquet; the output does not depend on it (default: one for each
    /// processor)
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// The first row names the columns, or does not (default: found out)
    #[arg(long, value_name = "yes|no", value_parser = parse_yes_no)]
    pub header: Option<bool>,
    /// The character between fields, or tab (default: of csv found out)
    #[arg(long, value_name = "CHAR", value_parser = parse_delimiter)]
    pub delimiter: Option<u8>,
    /// Quotes are ordinary characters
    #[arg(long)]
    pub no_quotes: bool,
    /// Of a capture, a row for each flow in place of one for each packet: the packets of one direction
    /// with equal addresses, protocol and ports
    #[arg(long)]
    pub flows: bool,
    /// Text that is not an address, and damaged records, are errors
    #[arg(long)]
    pub strict: bool,
    /// How many of the most frequent values the summary lists for each added column
    #[arg(long, value_name = "N", default_value = "10")]
    pub top: usize,
    /// No summary on standard error
    #[arg(long, short)]
    pub quiet: bool,
    /// Print the summary as JSON, an object for each file on a line of standard error
    #[arg(long, conflicts_with = "quiet")]
    pub json: bool,
    #[command(flatten)]
    pub rpki: RpkiArgs,
    #[command(flatten)]
    pub read: TableReadArgs,
}

/// How the table is read: what of `fibula build` has a place beside the options for the data.
#[derive(ClapArgs, Debug)]
#[command(next_help_heading = "Reading the table")]
pub struct TableReadArgs {
    /// Use what comes out of an archive (gz, bz2, xz, zstd) before it is damaged or cut short
    #[arg(long)]
    salvage: bool,
    /// Take a table without routes, or one of which most is damaged
    #[arg(long)]
    allow_empty: bool,
    /// List the values that all rows and sources have for a prefix in this column, each once, separated by
    /// semicolons (drop;botnet), instead of the last one's. A file without such a column gives its name
    #[arg(long, value_name = "COLUMN")]
    tags: Option<String>,
    /// BGP peers whose routes are taken: best, all (with --tags), most, an address, AS64500, or an index
    #[arg(long, default_value = "best", value_name = "PEER", hide_default_value = true)]
    peer: Peer,
    /// How a snapshot comes into memory: auto (mapped if nobody may write it, else read), map (only if nobody
    /// writes into the file meanwhile), read
    #[arg(long, default_value = "auto", value_name = "auto|map|read", hide_default_value = true)]
    load: Loading,
    /// Of a file of several dates (build --as-of), the table of this time, for all rows (default: the newest)
    #[arg(long, value_name = "TIME")]
    at: Option<Moment>,
    /// Name the prefixes that were replaced by a later line or source (the first 20 of each kind)
    #[arg(long, short)]
    verbose: bool,
}

impl TableReadArgs {
    /// The same as other commands have it.
    pub fn read(&self) -> ReadArgs {
        ReadArgs {
            salvage: self.salvage,
            allow_empty: self.allow_empty,
            tags: self.tags.clone(),
            peer: self.peer.clone(),
            load: self.load,
            at: self.at,
            verbose: self.verbose,
            ..ReadArgs::automatic()
        }
    }
}

/// `--only`.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum OnlyRows {
    Matched,
    Unmatched,
}

/// `--text`.
#[derive(Clone, Copy, Debug)]
pub struct Text(TextForm);

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
pub struct Prefix(PrefixForm);

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

impl Args {
    /// The options of both annotators.
    pub fn options(&self) -> AnnotateOptions {
        let mut options = AnnotateOptions::default();
        options.columns.clone_from(&self.column);
        options.add.clone_from(&self.add);
        options.defaults.clone_from(&self.default);
        (options.all_covering, options.integers, options.scan) =
            (self.covering, self.integers, self.scan);
        options.only = self.only.map(|only| match only {
            OnlyRows::Matched => Only::Matched,
            OnlyRows::Unmatched => Only::Unmatched,
        });
        options.time.clone_from(&self.time);
        options.time_format = self.time_format.unwrap_or_default();
        options.strict = self.strict;
        options.top = if self.quiet { 0 } else { self.top };
        options.header = match self.header {
            None => Header::Detect,
            Some(true) => Header::Present,
            Some(false) => Header::Absent,
        };
        options.delimiter = self.delimiter;
        if self.no_quotes {
            options.quote = None;
        }
        options.flows = self.flows;
        (options.text, options.prefix) = (self.text.0, self.prefix.0);
        options.threads = self.threads.unwrap_or(options.threads);
        options
    }
}
