//! `fibula export`: a table for other tools.

mod memory;
mod paths;

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Instant;

use clap::Args as ClapArgs;
use fibula_core::{Family, Prefix, grouped};
use fibula_export::{ExportError, TextFormat};
use fibula_rib::Table;

use crate::failure::{Failure, Outcome};
use crate::layer::TableArgs;
use crate::output::Output;
use crate::progress::{ms, note};
use crate::same;

const EXAMPLES: &str = "\
Examples:
  fibula export table.fib -o table.csv
  fibula export table.fib --to intervals --family v4 -o v4.parquet
  fibula export --layer geo=countries.csv --layer asn=rib.gz --columns country -o geo.mmdb
  fibula export table.fib --to clickhouse -o prefixes.csv
  fibula export --to memory rib.gz --engine sail-l --keys 1000000 -o folder
  fibula export rib.gz | head
  fibula export rib.gz --columns next_hop --compress -o small.csv
  fibula export --paths rib.gz -o paths.parquet
  fibula export --paths updates.gz --within ours.csv --path-regex _64500_ | jq .as_path

`fibula build` reads all formats but the last. They are tsv and csv (each line a prefix and its values), clickhouse
(CSV for an ip_trie dictionary), mmdb (for MaxMind's readers, both families), intervals (Parquet:
start, end and values of the runs of addresses with equal values, without overlaps; start and end
are 32-bit integers for IPv4, 16 bytes for IPv6), prefixes (Parquet: a row for each prefix). The
file's ending chooses the format (.tsv .txt .csv .mmdb .parquet); another ending needs --to.
memory (only written) is a folder with the tables of an engine as the memories of a lookup pipeline:
map.json and a NAME.hex for each, which Verilog's $readmemh loads.

--paths writes a row for each path of each peer, and for each withdrawal, with the columns time, change
(announce, withdraw), peer_address, peer_as, view, vrf, prefix, path_id, next_hop, as_path, origin_as,
origin, local_pref, med, communities.

--compress writes the fewest routes with which every address has the values that it has now (ORTC);
prefixes are others then. The fewer combinations of values there are, the more it saves: name the
columns that are needed with --columns.

DuckDB, logs(ip UINTEGER) joined with intervals, NULL where no route covers:
  SELECT l.*, CASE WHEN l.ip <= r.\"end\" THEN r.asn END AS asn
  FROM logs l ASOF LEFT JOIN 'v4.parquet' r ON l.ip >= r.start;

ClickHouse:
  CREATE DICTIONARY asn (prefix String, asn UInt32 DEFAULT 0) PRIMARY KEY prefix
  SOURCE(FILE(path 'prefixes.csv' format 'CSVWithNames')) LAYOUT(IP_TRIE) LIFETIME(3600);
  SELECT dictGet('asn', 'asn', toIPv6('2001:db8::1'));";

/// Write a table in the format of another tool
#[derive(ClapArgs, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    table: TableArgs,
    /// Format: tsv, csv, clickhouse, mmdb, intervals, prefixes, memory (default: by the output's name;
    /// tsv on standard output); of --paths: parquet, arrow, jsonl
    #[arg(long, value_name = "FORMAT")]
    to: Option<To>,
    /// The output file, - for standard output; a folder for memory
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// The family of intervals and memory, if the table has both
    #[arg(long, value_name = "v4|v6", value_parser = parse_family)]
    family: Option<Family>,
    /// The database_type of an mmdb file
    #[arg(long, value_name = "TEXT", default_value = "fibula")]
    mmdb_type: String,
    /// Write the fewest routes that give every address the same values
    #[arg(long)]
    compress: bool,
    #[command(flatten)]
    paths: paths::PathArgs,
    #[command(flatten)]
    memory: memory::MemoryArgs,
}

/// `--to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum To {
    Text(TextFormat),
    Mmdb,
    Intervals,
    Prefixes,
    Memory,
    /// Of paths alone.
    Arrow,
    /// Of paths alone.
    JsonLines,
}

impl FromStr for To {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "tsv" | "text" => Ok(Self::Text(TextFormat::Tsv)),
            "csv" => Ok(Self::Text(TextFormat::Csv)),
            "clickhouse" => Ok(Self::Text(TextFormat::ClickHouse)),
            "mmdb" => Ok(Self::Mmdb),
            "intervals" | "parquet" => Ok(Self::Intervals),
            "prefixes" => Ok(Self::Prefixes),
            "memory" => Ok(Self::Memory),
            "arrow" => Ok(Self::Arrow),
            "jsonl" => Ok(Self::JsonLines),
            _ => Err(
                "formats are tsv, csv, clickhouse, mmdb, intervals, prefixes, memory; of --paths parquet, arrow, jsonl",
            ),
        }
    }
}

fn parse_family(text: &str) -> Result<Family, &'static str> {
    match text {
        "v4" => Ok(Family::V4),
        "v6" => Ok(Family::V6),
        _ => Err("v4 or v6"),
    }
}

impl Args {
    /// The requested format, or the one of the output's file name ending.
    fn format(&self) -> Result<To, Failure> {
        let path = &self.output;
        let is_stdout = path.as_os_str() == "-";
        let is_special = path.metadata().is_ok_and(|meta| !meta.is_file());
        let to = match self.to.or_else(|| To::from_path(path)) {
            Some(to) => to,
            None if is_stdout || is_special => To::Text(TextFormat::Tsv),
            None => {
                let name = path.display();
                return Err(Failure::new(format_args!("{name}: unknown file name ending"))
                    .hint("name it .tsv, .txt, .csv, .mmdb or .parquet, or set --to"));
            }
        };
        if matches!(to, To::Arrow | To::JsonLines) {
            return Err(Failure::new("arrow and jsonl are formats of --paths"));
        }
        if to == To::Memory && is_stdout {
            return Err(Failure::new("memory is a folder of files").hint("name a folder with -o"));
        }
        if to != To::Memory && self.memory.is_given() {
            return Err(Failure::new("--engine, --keys and --updates are for --to memory"));
        }
        if matches!(to, To::Mmdb | To::Intervals | To::Prefixes)
            && is_stdout
            && std::io::stdout().is_terminal()
        {
            return Err(Failure::new("this format is not for terminals")
                .hint("name a file with -o, or redirect the output"));
        }
        Ok(to)
    }
}

impl To {
    fn from_path(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "tsv" | "txt" => Some(Self::Text(TextFormat::Tsv)),
            "csv" => Some(Self::Text(TextFormat::Csv)),
            "mmdb" => Some(Self::Mmdb),
            "parquet" => Some(Self::Intervals),
            _ => None,
        }
    }
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Outcome, Failure> {
    if args.paths.paths {
        return paths::run(args);
    }
    let to = args.format()?;
    same::refuse_tables(&args.table.all_sources()?, &args.output)?;
    let mut loaded = args.table.load()?;
    if let Some(name) = missing_column(&loaded.table, args) {
        return Err(Failure::new(format_args!("{}: no column {name:?}", loaded.name)));
    }
    if args.compress {
        compress(&mut loaded.table, &loaded.name);
    }
    let table = &loaded.table;
    let family = match (to, args.family) {
        (To::Intervals | To::Memory, None) if !table.v4.is_empty() && !table.v6.is_empty() => {
            return Err(Failure::new(format_args!("{}: has IPv4 and IPv6 routes", loaded.name))
                .hint(
                    "the output is of one family: --family v4, and another output with --family v6",
                ));
        }
        (_, Some(family)) => family,
        (_, None) if table.v4.is_empty() => Family::V6,
        (_, None) => Family::V4,
    };
    if to == To::Mmdb {
        report_hidden(&args.output, table);
    }
    let started = Instant::now();
    if to == To::Memory {
        let what = match family {
            Family::V4 => memory::write(&args.memory, &table.v4, &args.output)?,
            Family::V6 => memory::write(&args.memory, &table.v6, &args.output)?,
        };
        note(format_args!("{}: {what}, in {}", args.output.display(), ms(started.elapsed())));
        return Ok(Outcome::Done);
    }
    let mut out = Output::create(&args.output)?;
    let written = write(args, table, to, family, &mut out);
    let what = written.map_err(|error| match error {
        ExportError::Write(error) => Failure::from(error),
        error => Failure::new(format_args!("{}: {error}", args.output.display())),
    })?;
    out.finish()?;
    note(format_args!("{}: {what}, in {}", args.output.display(), ms(started.elapsed())));
    Ok(Outcome::Done)
}

/// Replaces the routes by the fewest ones, and reports how many there were.
fn compress(table: &mut Table, name: &str) {
    let count = |table: &Table| grouped((table.v4.len() + table.v6.len()) as u64);
    let (before, started) = (count(table), Instant::now());
    (table.v4, table.v6) = (fibula_fib::compress(&table.v4), fibula_fib::compress(&table.v6));
    note(format_args!(
        "{name}: {before} routes, {} of them are enough, in {}",
        count(table),
        ms(started.elapsed())
    ));
}

/// Reports the number of IPv6 routes that an MMDB file cannot have: its readers take `::/96` as the IPv4 addresses.
fn report_hidden(output: &Path, table: &Table) {
    let is_hidden = |prefix: Prefix<u128>| prefix.len() >= 96 && prefix.addr() >> 32 == 0;
    let hidden = table.v6.iter().filter(|route| is_hidden(route.prefix)).count() as u64;
    if hidden > 0 {
        let (output, hidden) = (output.display(), grouped(hidden));
        note(format_args!(
            "{output}: left out {hidden} IPv6 routes in ::/96, which are IPv4 addresses for readers of MMDB"
        ));
    }
}

/// Writes the table and reports the result.
fn write(
    args: &Args,
    table: &Table,
    to: To,
    family: Family,
    out: &mut (impl Write + Send),
) -> Result<String, ExportError> {
    let routes = grouped((table.v4.len() + table.v6.len()) as u64);
    match (to, family) {
        (To::Text(form), _) => fibula_export::text(table, form, out)?,
        (To::Mmdb, _) => {
            // When the data is from, not when it was written: equal tables give equal files.
            let date = table.provenance.sources.iter().filter_map(|source| source.date).max();
            let epoch = date.unwrap_or(table.provenance.created);
            fibula_export::mmdb(table, &args.mmdb_type, epoch, out)?;
        }
        (To::Prefixes, _) => fibula_export::prefixes(table, out)?,
        (To::Memory | To::Arrow | To::JsonLines, _) => {
            unreachable!("these are not tables in a file")
        }
        (To::Intervals, family) => {
            let intervals = match family {
                Family::V4 => fibula_export::intervals::<u32>(table, out)?,
                Family::V6 => fibula_export::intervals::<u128>(table, out)?,
            };
            return Ok(format!("{} intervals", grouped(intervals)));
        }
    }
    Ok(format!("{routes} routes"))
}

/// The error for a requested column that the table does not have. Reading a table reports this by itself.
fn missing_column(table: &Table, args: &Args) -> Option<String> {
    let requested = args.table.read.columns.as_ref().filter(|_| args.table.layer.is_empty())?;
    requested.iter().find(|name| table.columns.find(name).is_none()).cloned()
}
