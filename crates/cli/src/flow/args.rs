//! The arguments of `fibula flow`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args as ClapArgs;
use fibula_annotate::AnnotateOptions;
use fibula_collect::{
    CollectOptions, FlowFormat, FlowForward, FlowOutput, FlowPartition, FlowPlace,
};
use fibula_core::AnyPrefix;

use crate::annotate::tables::Named;
use crate::annotate::{TableReadArgs, parse_default};
use crate::config::parse_size;
use crate::failure::Failure;
use crate::rpki::RpkiArgs;
use crate::source::ReadArgs;

const EXAMPLES: &str = "\
Examples:
  fibula flow --listen 0.0.0.0:2055 --table rib.gz --add prefix,origin_as -o flows/
  fibula flow --listen 0.0.0.0:2055 --listen [::]:6343 --layer own=own.csv --layer bgp=rib.fib -o flows/
  fibula flow --listen 127.0.0.1:4739 --table table.fib --format jsonl -o - | vector --config vector.yaml
  fibula flow --listen 0.0.0.0:2055 --table table.fib --ipfix 192.0.2.9:4739 --ipfix-enterprise 64500
  fibula flow --listen 0.0.0.0:2055 --sockets 4 --rotate 1m --partition hour --templates templates.bin -o flows/

NetFlow v5 and v9, IPFIX and sFlow v5 are recognised by their content, at every address. Each flow is a
row with the columns of `fibula annotate --flows-in`, and the table's values for its source (src_NAME)
and its destination (dst_NAME).

Files appear under their names when they are complete, and none is ever replaced:
flows-20260131T235500.000000Z-0.parquet. They end at each multiple of --rotate, at --rotate-bytes, and
when the command is stopped. INT and TERM stop it: what was received is written first. A table file that
is replaced is opened again; HUP opens all of them again.

Exit codes: 0 stopped by a signal, or the reader of standard output has gone; 2 wrong usage, an address
that cannot be listened at, or an output that failed. Files written before are complete.";

/// Receive exports of flows, add values to them, and write files
#[derive(ClapArgs, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Receive datagrams at this address: 0.0.0.0:2055, [::]:2055 (both families). Repeatable
    #[arg(long, short, value_name = "ADDRESS:PORT", required = true)]
    listen: Vec<SocketAddr>,
    /// Hear only exporters of these networks (default: all)
    #[arg(long, value_delimiter = ',', value_name = "PREFIX,...")]
    allow: Vec<AnyPrefix>,
    /// The table: a snapshot, table files, URLs, fetch:NAME, gen:v4:2024:900000:1, embedded; several merge in order
    /// (default: FIBULA_TABLE, else that of the configuration, else embedded)
    #[arg(long, short, value_name = "TABLE,...")]
    pub table: Vec<String>,
    /// A table beside others, NAME=TABLE,...: its columns become NAME_column. Repeatable
    #[arg(long, value_name = "NAME=TABLE,...", conflicts_with = "table")]
    pub layer: Vec<String>,
    /// The table for flows of a VRF, by the name or the number that exporters have for it: NAME=TABLE,... Others, and
    /// flows without a VRF, are looked up in the table above. Repeatable
    #[arg(long, value_name = "NAME=TABLE,...", conflicts_with_all = ["dated", "at", "rpki", "aspa"])]
    vrf: Vec<String>,
    /// A table whose values win over those of the tables above, for all flows that it covers, however short its
    /// prefixes are: TABLE,... Repeatable, the first one wins
    #[arg(long, value_name = "TABLE,...", conflicts_with = "at")]
    own: Vec<String>,
    /// The table file has several dates (build --as-of): each flow is looked up in the newest table that is not later
    /// than its last packet
    #[arg(long, conflicts_with_all = ["layer", "at", "rpki", "aspa"])]
    pub dated: bool,
    /// Values to add: prefix (the matched prefix), value columns of the table, covering (a list of all prefixes that
    /// cover the address, longest first) (default: all value columns)
    #[arg(long, short, value_delimiter = ',', value_name = "NAME,...")]
    add: Vec<String>,
    /// The value to write if the address matches no route (default: null)
    #[arg(long, value_delimiter = ',', value_name = "NAME=VALUE,...", value_parser = parse_default)]
    default: Vec<(String, String)>,
    /// The folder of the files, or - for standard output (jsonl, rowbinary)
    #[arg(long, short, value_name = "FOLDER", required_unless_present = "ipfix")]
    pub output: Option<PathBuf>,
    /// Send the flows on to this collector, as IPFIX over UDP, in place of files or beside them
    #[arg(long, value_name = "ADDRESS:PORT")]
    ipfix: Option<SocketAddr>,
    /// Send the values of the table, too, as elements of the enterprise with this number (its private enterprise
    /// number), from 1 in the order of the columns; their names are sent as RFC 5610 says
    #[arg(long, value_name = "NUMBER", requires = "ipfix", value_parser = clap::value_parser!(u32).range(1..))]
    ipfix_enterprise: Option<u32>,
    /// The format: parquet, arrow, jsonl, rowbinary (ClickHouse's RowBinaryWithNamesAndTypes) (default: parquet, and
    /// jsonl for standard output)
    #[arg(long, short, value_name = "FORMAT")]
    format: Option<FlowFormat>,
    /// Begin a new file at each multiple of this time, UTC: 30s, 5m, 1h
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = parse_time)]
    rotate: Duration,
    /// Begin a new file when one has about this number of bytes: 64MiB, 1GiB
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = parse_bytes)]
    rotate_bytes: u64,
    /// Folders by the time at which a file begins, UTC: day (date=2026-01-31), hour (date=2026-01-31/hour=23)
    #[arg(long, value_name = "none|day|hour", default_value = "none")]
    partition: FlowPartition,
    /// Keep templates, sampling rates and names of interfaces in this file over a restart
    #[arg(long, value_name = "FILE")]
    templates: Option<PathBuf>,
    /// Write counts for Prometheus into this file every 10 seconds, as the textfile collector of node_exporter reads
    /// them
    #[arg(long, value_name = "FILE")]
    pub metrics: Option<PathBuf>,
    /// Sockets at each address, each with two threads. The system gives all datagrams of an exporter's address and port
    /// to the same one
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u16).range(1..=256))]
    sockets: u16,
    /// Bytes of datagrams that the system keeps for each socket; net.core.rmem_max limits them without privileges
    #[arg(long, value_name = "SIZE", default_value = "16MiB", value_parser = parse_bytes)]
    receive_buffer: u64,
    /// Bytes of datagrams that wait to be decoded, for each socket. What comes when they are full is dropped and
    /// counted
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = parse_bytes)]
    queue: u64,
    /// Print counts on standard error this often, and at the end; 0: only at the end
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = fibula_fetch::parse_duration)]
    pub report: Duration,
    /// Print nothing but errors
    #[arg(long, short)]
    pub quiet: bool,
    /// Print the counts at the end as a JSON object on standard error
    #[arg(long, conflicts_with = "quiet")]
    pub json: bool,
    #[command(flatten)]
    pub rpki: RpkiArgs,
    #[command(flatten)]
    pub read: TableReadArgs,
}

fn parse_bytes(text: &str) -> Result<u64, &'static str> {
    const MOST: u64 = 1 << 31;
    parse_size(text).and_then(|bytes| match bytes {
        0..MOST => Ok(bytes),
        _ => Err("a size below 2GiB"),
    })
}

fn parse_time(text: &str) -> Result<Duration, &'static str> {
    match fibula_fetch::parse_duration(text)? {
        Duration::ZERO => Err("a time of at least 1s"),
        time => Ok(time),
    }
}

impl Args {
    /// The tables of the command line.
    pub fn tables<'a>(&'a self, read: &'a ReadArgs) -> Named<'a> {
        let Self { table, layer, rpki, dated, .. } = self;
        Named { table, layer, rpki, read, is_dated: *dated }
    }

    /// The names of the tables that win.
    pub fn own(&self) -> Vec<Vec<String>> {
        self.own.iter().map(|tables| vec![tables.clone()]).collect()
    }

    /// The names of VRFs, each with its tables.
    pub fn vrfs(&self) -> Result<Vec<(String, Vec<String>)>, Failure> {
        let mut vrfs: Vec<(String, Vec<String>)> = Vec::new();
        for argument in &self.vrf {
            let named = argument.split_once('=');
            let named = named.filter(|(name, tables)| !name.is_empty() && !tables.is_empty());
            let Some((name, tables)) = named else {
                return Err(Failure::new(format_args!("--vrf {argument:?} is not NAME=TABLE"))
                    .hint("for instance --vrf blue=blue.csv --vrf 7=green.csv"));
            };
            if vrfs.iter().any(|(known, _)| known == name) {
                return Err(Failure::new(format_args!("two VRFs are called {name:?}"))
                    .hint("tables of one VRF are separated by commas: --vrf blue=a.csv,b.csv"));
            }
            vrfs.push((name.to_owned(), vec![tables.to_owned()]));
        }
        Ok(vrfs)
    }

    /// The format of the output.
    pub fn format(&self) -> FlowFormat {
        let is_stream = self.output.as_deref() == Some(Path::new("-"));
        let usual = if is_stream { FlowFormat::JsonLines } else { FlowFormat::Parquet };
        self.format.unwrap_or(usual)
    }

    /// The options of the lookups.
    pub fn annotate(&self) -> AnnotateOptions {
        let mut options = AnnotateOptions::default();
        options.add.clone_from(&self.add);
        options.defaults.clone_from(&self.default);
        options
    }

    /// The bytes that the system should keep for each socket.
    pub fn receive_buffer(&self) -> usize {
        // It is below 2 GiB.
        self.receive_buffer as usize
    }

    /// The options of the collector.
    pub fn collect(&self) -> Result<CollectOptions, Failure> {
        let format = self.format();
        let place = match &self.output {
            None => FlowPlace::Nowhere,
            Some(output) if output == Path::new("-") => FlowPlace::StandardOutput,
            Some(folder) => FlowPlace::Folder(folder.clone()),
        };
        if place == FlowPlace::StandardOutput && !format.is_stream() {
            return Err(Failure::new(format_args!("{format} is written into files only"))
                .hint("name a folder with -o, or take --format jsonl or rowbinary"));
        }
        let mut output = FlowOutput::new(place, format);
        output.rotate = self.rotate;
        output.rotate_bytes = self.rotate_bytes.max(1);
        output.partition = self.partition;
        let mut options = CollectOptions::new(self.listen.clone(), output);
        options.allowed.clone_from(&self.allow);
        options.sockets = self.sockets.into();
        options.receive_buffer = self.receive_buffer();
        // It is below 2 GiB.
        options.queue_bytes = self.queue as usize;
        options.templates.clone_from(&self.templates);
        let enterprise = self.ipfix_enterprise;
        options.forward = self.ipfix.map(|to| FlowForward { to, enterprise });
        Ok(options)
    }
}
