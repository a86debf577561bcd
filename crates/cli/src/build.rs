//! `fibula build`: compiles sources into one snapshot file.

use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args as ClapArgs;
use fibula_core::{Addr, Routes, grouped};
use fibula_fib::Chosen;
use fibula_rib::{Columns, EnginePart, Pod, Table, Written};
use serde_json::{Map, Value as Json, json};

use crate::as_of;
use crate::engines::{self, AUTO};
use crate::failure::{Failure, Outcome};
use crate::layer::TableArgs;
use crate::output::{self, size, utc};
use crate::rpki::RpkiArgs;
use crate::same;
use crate::table;

const EXAMPLES: &str = "\
Examples:
  fibula build rib.20260101.0000.bz2 updates.20260101.*.gz -o table.fib
  fibula build prefixes.csv --columns asn,country -o table.fib
  fibula build ranges.csv --delimiter ';' --key 2,3 --names asn,first,last -o table.fib
  fibula build rib.gz --peer AS64500 --as-path -o table.fib
  zcat list.gz | fibula build - -o table.fib
  fibula build old.fib --engine radix -o new.fib
  fibula build --layer geo=countries.csv --layer asn=rib.gz -o both.fib
  fibula build lists/*.txt feed.csv --tags list -o bad.fib
  fibula build rib.gz --peer all --tags origin_as -o origins.fib
  fibula build rib.gz --rpki vrps.json -o checked.fib
  fibula build --as-of 2024/*.csv -o year.fib
  fibula build --as-of ribs/ --columns origin_as -o year.fib
  fibula build --as-of year.fib 2025-01-01=today.csv -o year.fib

Sources are merged in order: for the same prefix, a later line or source replaces an earlier one
with all its columns, and columns that it lacks become null. The number of replaced prefixes is
reported; -v names them. With --tags COLUMN, that column keeps the values of all lines and sources instead:
drop;botnet. For a source without the column, the value is its name without folder and suffix:
lists/drop.txt gives drop.
From a BGP collector's peers, the best path of each prefix is taken (by local preference, AS path
length, origin, peer, MED). --peer takes one peer, or all sessions of an AS. Updates after a RIB
replace and withdraw the routes of its peers. Damaged records are counted, reported with file, record
and byte offset, and skipped. --strict stops at them instead.
Layers do not replace each other: every prefix gets the values of each layer, as columns such as
geo_country and asn_origin_as.
With --as-of, each source is the whole table of one date. The file keeps all dates and stores their
differences; annotate --time looks each row up in the table of its time. The date is in the file's
name (2024-05-01.csv, rib.20240501.0000.bz2; UTC), in the first record of an MRT RIB, or before the
name: 2024-05-01=FILE. A folder stands for all its files. If a source is a file of several dates,
the other sources are added to its dates.

The file is written under a temporary name, synced and renamed: readers see the old or the new file.";

/// Compile tables into one snapshot file
#[derive(ClapArgs, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    table: TableArgs,
    /// Each source is the whole table of one date: a file with a date in its name, an MRT RIB, DATE=FILE, or a folder
    /// of these. The file keeps all the tables, for annotate --time and lookup --at
    #[arg(long, conflicts_with_all = ["layer", "at", "rpki", "aspa"])]
    as_of: bool,
    /// The snapshot file to write
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
    /// The engine: auto, or a name such as radix. Of several names, each address family takes the first that supports
    /// it: dxr16,planb
    #[arg(long, short, value_delimiter = ',', value_name = "NAME,...", default_value = AUTO)]
    engine: Vec<String>,
    /// Print the report as a JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    rpki: RpkiArgs,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Outcome, Failure> {
    if args.as_of {
        return as_of(args);
    }
    let mut stages: Vec<(String, Duration)> = Vec::new();
    same::refuse_feeds(&args.table.all_sources()?, &args.output)?;
    args.rpki.refuse(&args.output)?;
    args.rpki.check(args.table.has_input(), &args.table.layer)?;
    let mut loaded = args.table.load_with(&args.rpki.reading(&args.table.read))?;
    stages.extend(loaded.stages.iter().map(|(stage, time)| ((*stage).to_owned(), *time)));
    if args.rpki.is_requested() {
        let started = Instant::now();
        loaded.table = args.rpki.add(loaded.table, args.table.read.allow_empty)?;
        stages.push(("rpki".to_owned(), started.elapsed()));
    }
    let table = &loaded.table;
    let v4 = compile::<u32>(args, &table.v4)?;
    let v6 = compile::<u128>(args, &table.v6)?;
    stages.push(("compile v4".to_owned(), v4.time));
    stages.push(("compile v6".to_owned(), v6.time));

    let started = Instant::now();
    let written = fibula_rib::write(&args.output, table, &part(&v4), &part(&v6))?;
    stages.push(("write".to_owned(), started.elapsed()));

    let report = BuildReport { args, stages, damaged: loaded.damaged, written };
    if args.json {
        return report.json(json!({
            "sources": table.provenance.sources,
            "peer": table::peer(&table.provenance, &args.table.read),
            "routes": { "ipv4": table.v4.len(), "ipv6": table.v6.len() },
            "attribute_rows": table.columns.len(),
            "columns": columns_json(&table.columns),
            "engines": { "ipv4": engine_json(&table.v4, &v4), "ipv6": engine_json(&table.v6, &v6) },
        }));
    }
    let mut out = output::stdout();
    describe(&mut out, table, table::peer(&table.provenance, &args.table.read))?;
    engine(&mut out, &table.v4, &v4)?;
    engine(&mut out, &table.v6, &v6)?;
    report.print(out)
}

/// Compiles tables of several dates into one file.
fn as_of(args: &Args) -> Result<Outcome, Failure> {
    let loaded = as_of::load(&args.table.sources, &args.table.read, &args.output)?;
    let dated = &loaded.dated;
    let (routes4, routes6) = (dated.routes::<u32>(), dated.routes::<u128>());
    let v4 = compile::<u32>(args, routes4)?;
    let v6 = compile::<u128>(args, routes6)?;
    let stages = [
        ("read", loaded.reading),
        ("compare", loaded.comparing),
        ("compile v4", v4.time),
        ("compile v6", v6.time),
    ];
    let mut stages = stages.map(|(stage, time)| (stage.to_owned(), time)).to_vec();
    let started = Instant::now();
    let written = dated.write(&args.output, &part(&v4), &part(&v6))?;
    stages.push(("write".to_owned(), started.elapsed()));

    let report = BuildReport { args, stages, damaged: loaded.damaged, written };
    if args.json {
        return report.json(json!({
            "dates": as_of::dates_json(dated.dates()),
            "prefixes": { "ipv4": routes4.len(), "ipv6": routes6.len() },
            "changes": dated.changes(),
            "attribute_rows": dated.columns().len(),
            "columns": columns_json(dated.columns()),
            "engines": { "ipv4": engine_json(routes4, &v4), "ipv6": engine_json(routes6, &v6) },
        }));
    }
    let mut out = output::stdout();
    as_of::describe(&mut out, dated.dates(), [routes4.len(), routes6.len()], dated.changes())?;
    describe_columns(&mut out, dated.columns())?;
    engine(&mut out, routes4, &v4)?;
    engine(&mut out, routes6, &v6)?;
    report.print(out)
}

/// The report at the end, for both kinds of file.
struct BuildReport<'a> {
    args: &'a Args,
    stages: Vec<(String, Duration)>,
    damaged: u64,
    written: Written,
}

impl BuildReport<'_> {
    /// Prints the object with this report's members added.
    fn json(&self, mut object: Json) -> Result<Outcome, Failure> {
        let seconds: Map<String, Json> = self
            .stages
            .iter()
            .map(|(name, time)| (name.clone(), time.as_secs_f64().into()))
            .collect();
        object["damaged"] = self.damaged.into();
        object["seconds"] = seconds.into();
        object["file"] = json!({
            "path": self.args.output.display().to_string(),
            "bytes": self.written.bytes,
            "digest": format!("{:032x}", self.written.digest),
        });
        output::json(&object)?;
        Ok(Outcome::Done)
    }

    fn print(&self, mut out: impl Write) -> Result<Outcome, Failure> {
        if self.damaged > 0 {
            writeln!(out, "damage   {} records skipped", grouped(self.damaged))?;
        }
        writeln!(out, "time     {}", as_of::times(&self.stages))?;
        let (path, bytes) = (self.args.output.display(), size(self.written.bytes));
        writeln!(out, "file     {path}: {bytes}, digest {:032x}", self.written.digest)?;
        out.flush()?;
        Ok(Outcome::Done)
    }
}

/// Compiles by the same rule as opening a table does: the first requested engine that the family has and that accepts
/// the routes, or the automatic choice if the family has none of them.
fn compile<A: Addr + Pod>(args: &Args, routes: &Routes<A>) -> Result<Chosen<A>, Failure> {
    if args.engine.iter().any(|name| name == "all") {
        return Err(Failure::new("a snapshot has one engine for each family, not all")
            .hint("--engine auto leaves the choice to fibula"));
    }
    engines::choose::<A>(&args.engine)?;
    Ok(engines::options(args.engine.iter().map(String::as_str)).compile(routes)?)
}

fn part<A: Addr>(built: &Chosen<A>) -> EnginePart<'_> {
    EnginePart::of(built.name, &*built.engine)
}

fn columns_json(columns: &Columns) -> Json {
    let column = |(at, name)| json!({ "name": name, "kind": columns.type_name(at), "values": columns.distinct(at) });
    columns.names().enumerate().map(column).collect()
}

/// A family's engine as JSON; null if the family has no routes.
fn engine_json<A: Addr + Pod>(routes: &Routes<A>, built: &Chosen<A>) -> Json {
    if routes.is_empty() {
        return Json::Null;
    }
    json!({ "name": built.name, "reason": built.reason, "bytes": built.engine.memory().total() })
}

fn describe(out: &mut impl Write, table: &Table, peer: Option<String>) -> std::io::Result<()> {
    for source in &table.provenance.sources {
        let date = source.date.map_or(String::new(), |date| format!(", {}", utc(date)));
        let withdrawn = match source.withdrawn {
            0 => String::new(),
            n => format!(", {} withdrawn", grouped(n)),
        };
        let announced = grouped(source.announced);
        writeln!(
            out,
            "source   {} ({}{date}): {announced} announced{withdrawn}",
            source.name, source.format
        )?;
    }
    if let Some(peer) = peer {
        writeln!(out, "peer     {peer}")?;
    }
    let (v4, v6) = (grouped(table.v4.len() as u64), grouped(table.v6.len() as u64));
    writeln!(
        out,
        "routes   {v4} IPv4, {v6} IPv6, {} attribute rows",
        grouped(table.columns.len().into())
    )?;
    describe_columns(out, &table.columns)
}

fn describe_columns(out: &mut impl Write, columns: &Columns) -> std::io::Result<()> {
    let column = |(i, name): (usize, &str)| {
        format!("{name} ({}, {} values)", columns.type_name(i), grouped(columns.distinct(i) as u64))
    };
    let list: Vec<String> = columns.names().enumerate().map(column).collect();
    writeln!(out, "columns  {}", if list.is_empty() { "none".to_owned() } else { list.join(", ") })
}

fn engine<A: Addr + Pod>(
    out: &mut impl Write,
    routes: &Routes<A>,
    built: &Chosen<A>,
) -> std::io::Result<()> {
    let routes = routes.len();
    if routes == 0 {
        return Ok(());
    }
    let bytes = built.engine.memory().total();
    let each = bytes as f64 / routes as f64;
    writeln!(
        out,
        "IP{}     {}; {}, {each:.1} bytes a prefix",
        A::FAMILY,
        built.reason,
        size(bytes as u64)
    )
}
