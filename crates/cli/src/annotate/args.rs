//! The arguments of `fibula annotate`.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::{Args as ClapArgs, ValueEnum};
use fibula_annotate::{
    AnnotateOptions, CellTypes, Column, ExportRows, Header, LogFormat, Only, PrefixForm,
    StreamFormat, StreamOptions, TextForm,
};
use fibula_rib::{Loading, Moment, TimeFormat};

use crate::failure::Failure;
use crate::layer;
use crate::rpki::RpkiArgs;
use crate::source::{self, Peer, ReadArgs, Source, parse_delimiter, parse_yes_no};

const EXAMPLES: &str = "\
Examples:
  fibula annotate access.log > annotated.log
  fibula annotate --table table.fib --column src_ip,dst_ip --add prefix,origin_as flows.csv -o out.csv
  fibula annotate --table rib.gz --column id.orig_h,id.resp_h --format jsonl conn.json.xz
  fibula annotate --layer geo=countries.csv --layer asn=rib.gz flows.parquet -o out.parquet
  fibula annotate --table table.fib --column src --default asn=0 'logs/*.parquet' -o annotated/
  fibula annotate --table rib.gz --rpki vrps.json --column dst --add prefix,origin_as,rpki flows.csv
  fibula annotate --table table.fib --flows capture.pcapng
  fibula annotate --table table.fib --flows-in exports.pcap -o flows.jsonl.gz
  fibula annotate --table bad.fib --only matched --column src flows.csv
  fibula annotate --table year.fib --column src --time ts flows.csv
  journalctl -f | fibula annotate --table bad.fib --scan --only matched
  tcpdump -w - | fibula annotate --table table.fib --format pcap -
  fibula annotate --table table.fib --stream tsv --column 1 --add origin_as --only-added

Formats: csv, tsv, jsonl (JSON objects: one a line, in an array, or each over several lines), list
(each line begins with an address: plain lists, access logs), pcap (also pcapng; packets become CSV
rows), flows (NetFlow, IPFIX and sFlow in a capture, or a file of IPFIX messages or of nfcapd), parquet,
arrow (IPC file or stream). The file's name gives the format, or else its content.
Input in gz, bz2, xz or zst is decompressed. Rows keep their bytes and their order. Parquet columns
keep their bytes too, with their compression and statistics.

Several tables are merged in order: for the same prefix, a later table replaces an earlier one. With
--layer, tables are not merged, and each adds its own columns. If a table file needs options such as
--names or --key, compile it into a snapshot with `fibula build` first.";

/// Add matched prefixes and values to data with addresses
#[derive(ClapArgs, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The data: files, patterns, directories; - for standard input
    #[arg(value_name = "FILE", default_value = "-")]
    pub inputs: Vec<PathBuf>,
    /// The table: a snapshot, table files, URLs, fetch:NAME, gen:v4:2024:900000:1, embedded; several merge in order
    /// (default: FIBULA_TABLE, else that of the configuration, else embedded)
    #[arg(long, short, value_name = "TABLE,...")]
    pub table: Vec<String>,
    /// A table beside others, NAME=TABLE,...: its columns become NAME_column. Repeatable
    #[arg(long, value_name = "NAME=TABLE,...", conflicts_with = "table")]
    pub layer: Vec<String>,
    /// Where to write: a file, - for standard output, or a directory if there are several inputs. Rows are compressed
    /// if the file's name ends in .gz or .zst
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    pub output: PathBuf,
    /// Format of the data: csv, tsv, jsonl, list, pcap, flows, parquet, arrow (default: by the file's name, else by its
    /// content)
    #[arg(long, short, value_name = "FORMAT")]
    pub format: Option<LogFormat>,
    /// Columns with addresses, by name or by number from 1. In jsonl, parquet and arrow, a.b is the field b inside a
    /// (default: detected; required for jsonl)
    #[arg(long, short, value_delimiter = ',', value_name = "COLUMN,...")]
    pub column: Vec<Column>,
    /// Columns to add: prefix (the matched prefix), value columns of the table, covering (a list of all prefixes that
    /// cover the address, longest first) (default: all value columns)
    #[arg(long, short, value_delimiter = ',', value_name = "NAME,...")]
    pub add: Vec<String>,
    /// Put the values of all prefixes that cover the address into each value column, longest prefix first: separated
    /// by semicolons in CSV, an array in JSON, a list in parquet and arrow
    #[arg(long)]
    pub covering: bool,
    /// Print only rows with at least one address that matches a route (matched), or only rows without one
    /// (unmatched). Comments and empty lines are left out, only the objects of a JSON array are printed, and a Parquet
    /// file is encoded again
    #[arg(long, value_name = "matched|unmatched")]
    pub only: Option<OnlyRows>,
    /// Read cells that contain only digits as addresses: IPv4 below 2^32, else IPv6. For csv and tsv, with --column
    /// (parquet and arrow have number types)
    #[arg(long)]
    pub integers: bool,
    /// Find addresses anywhere in lines of text, such as syslog, 10.0.0.1:443, [2001:db8::1]:443. The first address
    /// of each line is used, with --only the first that matches a route; --column 1,3 uses the first and the third
    #[arg(long)]
    pub scan: bool,
    /// The column with the time of each row, for a table file of several dates (build --as-of). Each row is looked up
    /// in the newest table that is not later than this time. Times are 2024-05-01T12:00:00Z, 2024-05-01 12:00 (UTC if
    /// there is no zone), 01/May/2024:12:00:00 +0000, 20240501120000, numbers since 1970, and timestamps and dates of
    /// parquet and arrow. Not for list and pcap
    #[arg(long, value_name = "COLUMN", conflicts_with_all = ["layer", "at", "rpki", "aspa"])]
    pub time: Option<Column>,
    /// How to read text and numbers in the --time column: auto (text, or numbers whose unit follows from their size),
    /// rfc3339, or the unit of the numbers: s, ms, us, ns
    #[arg(long, value_name = "FORMAT", requires = "time")]
    pub time_format: Option<TimeFormat>,
    /// The value to write in a column if the address matches no route (default: null, or an empty cell in formats
    /// without null)
    #[arg(long, value_delimiter = ',', value_name = "NAME=VALUE,...", value_parser = parse_default)]
    pub default: Vec<(String, String)>,
    /// How text values are stored in parquet and arrow: dictionary or plain (default: dictionary; plain with --stream)
    #[arg(long, value_name = "dictionary|plain")]
    pub text: Option<Text>,
    /// How prefixes are stored in parquet and arrow: as text, or as bytes and length
    #[arg(long, value_name = "text|binary", default_value = "text")]
    pub prefix: Prefix,
    /// Number of threads. The output does not depend on it (default: one for each processor)
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Look up on an accelerator, by its name: cuda:0, opencl:0. The output is the same.
    /// Input is read in large pieces, so rows of a pipe that is still being written come late
    #[arg(long, value_name = "NAME", conflicts_with = "time")]
    pub device: Option<String>,
    /// Whether the first row has the column names (default: detected)
    #[arg(long, value_name = "yes|no", value_parser = parse_yes_no)]
    pub header: Option<bool>,
    /// The character between fields, or tab (default: detected for csv). Lines are then rows of fields, also of words
    /// (' ')
    #[arg(long, value_name = "CHAR", value_parser = parse_delimiter)]
    pub delimiter: Option<u8>,
    /// Treat quotes as ordinary characters
    #[arg(long)]
    pub no_quotes: bool,
    /// For a capture, write one row for each flow instead of each packet. A flow is the packets of one direction with
    /// the same addresses, protocol and ports
    #[arg(long)]
    pub flows: bool,
    /// Decode exports of flows and write one row for each of their records, instead of one for each packet: the
    /// datagrams of NetFlow v5 and v9, IPFIX and sFlow v5 in a capture, on any port; or a file of IPFIX messages or of
    /// nfdump's collectors (nfcapd), for which it is not needed. The same as --format flows
    #[arg(long, conflicts_with_all = ["flows", "format", "scan"])]
    pub flows_in: bool,
    /// How the rows of flows are written: csv, tsv, jsonl (default: by the name of the output, else csv)
    #[arg(long, value_name = "csv|tsv|jsonl")]
    pub rows: Option<Rows>,
    /// Stop with an error at text that is not an address and at damaged records
    #[arg(long)]
    pub strict: bool,
    /// How many of the most frequent values the summary lists for each added column
    #[arg(long, value_name = "N", default_value = "10")]
    pub top: usize,
    /// Do not print the summary on standard error; with --stream, print nothing but the error that ends it
    #[arg(long, short)]
    pub quiet: bool,
    /// Print the summary as JSON on standard error, one object a line for each file
    #[arg(long, conflicts_with = "quiet")]
    pub json: bool,
    #[command(flatten)]
    pub stream: StreamArgs,
    #[command(flatten)]
    pub rpki: RpkiArgs,
    #[command(flatten)]
    pub read: TableReadArgs,
}

/// Options of a stream between two programs.
#[derive(ClapArgs, Debug)]
#[command(next_help_heading = "Answering a program")]
pub struct StreamArgs {
    /// Read standard input as a stream of this format and answer each block of rows before the next one is read: tsv
    /// (ClickHouse's TabSeparated), jsonl, rowbinary, influx, arrow. Needs --column. Each row gets one row of output. A
    /// table file that is replaced is opened again. INT and TERM end it after the current block
    #[arg(
        long,
        value_name = "FORMAT",
        requires = "column",
        conflicts_with_all = [
            "inputs", "output", "format", "only", "scan", "time", "device", "delimiter", "no_quotes", "flows", "flows_in",
            "rows",
            "strict", "threads", "top", "json", "rpki", "aspa"
        ]
    )]
    pub stream: Option<StreamFormat>,
    /// Write the added values alone, as a function of a database returns them
    #[arg(long, requires = "stream")]
    pub only_added: bool,
    /// Put the values of --only-added into an object of this name (jsonl)
    #[arg(long, value_name = "NAME", requires = "only_added")]
    pub inside: Option<String>,
    /// The types of all columns of rowbinary, as ClickHouse calls them: 'String, UInt16, Nullable(IPv6)'
    #[arg(long, value_name = "TYPE,...", requires = "stream")]
    pub types: Option<CellTypes>,
}

impl StreamArgs {
    /// The options of the stream, if the data is one.
    pub fn options(&self) -> Option<StreamOptions> {
        let mut options = StreamOptions::new(self.stream?);
        options.only_added = self.only_added;
        options.inside.clone_from(&self.inside);
        options.types = self.types.clone().unwrap_or_default();
        Some(options)
    }
}

/// Options for reading the table: the subset of `fibula build`'s options that does not clash with the options for the
/// data.
#[derive(ClapArgs, Debug)]
#[command(next_help_heading = "Reading the table")]
pub struct TableReadArgs {
    /// Use the data of an archive (gz, bz2, xz, zstd) before the place where it is damaged or cut short
    #[arg(long)]
    salvage: bool,
    /// Accept a table without routes, or one most of which is damaged
    #[arg(long)]
    allow_empty: bool,
    /// Collect in this column the values of all rows and sources of a prefix, each once, separated by semicolons
    /// (drop;botnet), instead of only the last one's. For a file without the column, the value is the file's name
    #[arg(long, value_name = "COLUMN")]
    tags: Option<String>,
    /// BGP peers whose routes are taken: best (all peers, the best path of each prefix), all (the same, and --tags
    /// lists the values of all paths), most (the peer with the most routes), an address, AS64500, or an index
    #[arg(long, default_value = "best", value_name = "PEER", hide_default_value = true)]
    peer: Peer,
    /// How snapshots are loaded: auto (mapped if the file is read-only, else read), map (make sure that no program
    /// writes into the file meanwhile), read
    #[arg(long, default_value = "auto", value_name = "auto|map|read", hide_default_value = true)]
    load: Loading,
    /// For a table file of several dates (build --as-of), use the newest table that is not later than this time for
    /// all rows (default: the newest)
    #[arg(long, value_name = "TIME")]
    at: Option<Moment>,
    /// Name the prefixes that were replaced by a later line or source (the first 20 of each kind)
    #[arg(long, short)]
    verbose: bool,
}

impl TableReadArgs {
    /// These options in the form that other commands use, with defaults for all others.
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

/// The value of `--only`.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum OnlyRows {
    Matched,
    Unmatched,
}

/// The value of `--rows`.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Rows {
    Csv,
    Tsv,
    Jsonl,
}

/// The value of `--text`.
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

/// The value of `--prefix`.
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

/// Parses `NAME=VALUE`.
pub fn parse_default(text: &str) -> Result<(String, String), &'static str> {
    let (name, value) = text.split_once('=').ok_or("NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

impl Args {
    /// All tables, those of layers one after the other. The data and a table cannot both be standard input.
    pub fn sources(&self) -> Result<Vec<(String, Source)>, Failure> {
        let tables = match &*self.layer {
            [] => source::tables(&self.table, &self.read.read())?,
            layers => layer::sources(layers, &self.read.read())?,
        };
        let input = Path::new("-");
        let is_input = |(_, table): &(String, Source)| *table == Source::Feed(input.to_owned());
        if self.inputs.iter().any(|data| data == input) && tables.iter().any(is_input) {
            return Err(Failure::new("standard input cannot be both the table and the data")
                .hint("give one of them as a file"));
        }
        Ok(tables)
    }

    /// The form of the rows of flows in this output.
    pub fn export_rows(&self, output: &Path) -> ExportRows {
        match self.rows {
            Some(Rows::Csv) => ExportRows::Csv,
            Some(Rows::Tsv) => ExportRows::Tsv,
            Some(Rows::Jsonl) => ExportRows::JsonLines,
            None => match LogFormat::from_path(output) {
                Some(LogFormat::Tsv) => ExportRows::Tsv,
                Some(LogFormat::JsonLines) => ExportRows::JsonLines,
                _ => ExportRows::Csv,
            },
        }
    }

    /// The options for the annotators of text and of columnar files.
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
        options.hold = true;
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
        options.text = match &self.text {
            Some(text) => text.0,
            // A dictionary is sent whole, before the first row.
            None if self.stream.stream.is_some() => TextForm::Plain,
            None => TextForm::Dictionary,
        };
        options.prefix = self.prefix.0;
        options.threads = self.threads.unwrap_or(options.threads);
        options
    }
}
