//! `fibula stats`: the contents of a table, and its engines.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args as ClapArgs;
use fibula_core::{Addr, BuildError, Memory, Routes, grouped};
use fibula_fib::{EngineChoice, Fib, Pod, SEARCH};
use fibula_rib::snapshot::SnapshotErrorKind;
use fibula_rib::{DatedSnapshot, Rib};
use fibula_simd::Isa;
use fibula_testkit::{HopShares, TableShape};
use serde::Serialize;

use crate::as_of;
use crate::engines::{self, AUTO};
use crate::failure::{Failure, Outcome};
use crate::output::{self, Grid, bar, size, utc};
use crate::progress::note;
use crate::replay::feed::Player;
use crate::replay::report::RibStats;
use crate::source::{self, ReadArgs, Source};
use crate::table::{self, Loaded};

const EXAMPLES: &str = "\
Examples:
  fibula stats
  fibula stats --table table.fib --engines all
  fibula stats --table rib.gz --peer AS64500 --json
  fibula stats --table rib.gz --rib
  fibula stats --table year.fib
  fibula stats --table gen:v4:2024:900000:1 --synthetic-hops near:64 --engines dxr,radix";

/// Describe a table: lengths, nesting, hops, engine memory
#[derive(ClapArgs, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The table: a snapshot, table files, URLs, fetch:NAME, gen:v4:2024:900000:1, embedded (default: FIBULA_TABLE,
    /// else that of the configuration, else embedded)
    #[arg(long, short, value_name = "TABLE,...")]
    table: Vec<String>,
    /// Engines to compile it with: names, auto, all
    #[arg(long, short, value_delimiter = ',', value_name = "NAME,...", default_value = AUTO)]
    engines: Vec<String>,
    /// Read the table again with the routes of all peers, and print the bytes that the RIB needs for each
    /// route
    #[arg(long)]
    rib: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    read: ReadArgs,
}

#[derive(Serialize)]
struct Stats {
    table: String,
    sources: Vec<SourceStats>,
    peer: Option<String>,
    damaged: u64,
    rows: u32,
    columns: Vec<ColumnStats>,
    rib: Option<RibStats>,
    v4: Option<FamilyStats>,
    v6: Option<FamilyStats>,
    stages: Vec<Stage>,
    snapshot: Option<SnapshotStats>,
}

#[derive(Serialize)]
struct SourceStats {
    name: String,
    format: String,
    date: Option<String>,
    announced: u64,
    withdrawn: u64,
    repeated: u64,
    replaced: u64,
}

#[derive(Serialize)]
struct ColumnStats {
    name: String,
    kind: &'static str,
    distinct: usize,
}

#[derive(Serialize)]
struct Stage {
    stage: String,
    ms: f64,
}

#[derive(Serialize)]
struct SnapshotStats {
    digest: String,
    /// The same whichever engine is stored.
    table_digest: String,
    tool: String,
    created: String,
    sections: BTreeMap<String, u64>,
}

#[derive(Serialize)]
struct FamilyStats {
    prefixes: usize,
    /// By prefix length; lengths without prefixes are left out.
    lengths: BTreeMap<usize, usize>,
    more_specific_share: f64,
    mean_depth: f64,
    /// The share of more-specifics whose hop is that of the route around them.
    hop_of_parent_share: f64,
    intervals: usize,
    intervals_merged: usize,
    gaps: usize,
    hops: HopStats,
    engines: Vec<EngineStats>,
}

/// How unequally hops are used.
#[derive(Serialize)]
struct HopStats {
    distinct: usize,
    /// Share of prefixes that the most used 1, 10, 100 hops have.
    top1_share: f64,
    top10_share: f64,
    top100_share: f64,
    /// Of the distribution of hops over prefixes, in bits.
    entropy_bits: f64,
}

#[derive(Serialize)]
struct EngineStats {
    engine: String,
    isa: &'static str,
    bytes: usize,
    bytes_per_prefix: f64,
    build_ms: f64,
    tables: Vec<TableStats>,
    reason: Option<String>,
}

#[derive(Serialize)]
struct TableStats {
    table: &'static str,
    bytes: usize,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Outcome, Failure> {
    engines::choose::<u32>(&args.engines)?;
    let sources = source::tables(&args.table, &args.read)?;
    if let [(_, Source::Snapshot(path))] = &*sources
        && args.read.at.is_none()
        && !args.rib
    {
        match DatedSnapshot::open_with(path, args.read.load) {
            Err(error) if error.kind() == SnapshotErrorKind::NotDated => {}
            dated => return as_of::stats(path, &dated?, args.json),
        }
    }
    let loaded = table::load(&sources, &args.read)?;
    let mut stats = stats(args, &loaded)?;
    if args.rib {
        stats.rib = Some(rib(args)?);
    }
    if args.json {
        output::json(&stats)?;
    } else {
        let mut out = output::stdout();
        print(&mut out, &stats)?;
        out.flush()?;
    }
    Ok(Outcome::Done)
}

/// The sources in a RIB, every peer's routes.
fn rib(args: &Args) -> Result<RibStats, Failure> {
    let mut rib = Rib::default();
    let mut player = Player::new(&args.read, None, false);
    for (name, source) in source::tables(&args.table, &args.read)? {
        if name == "-" {
            return Err(Failure::new(
                "--rib reads the table twice, standard input can be read once",
            )
            .hint("write it to a file"));
        }
        player.table(&source, &mut rib)?;
    }
    Ok(rib.memory().into())
}

fn stats(args: &Args, loaded: &Loaded) -> Result<Stats, Failure> {
    let table = &loaded.table;
    let columns = &table.columns;
    let mut stages: Vec<Stage> = loaded
        .stages
        .iter()
        .map(|(stage, time)| Stage {
            stage: (*stage).to_owned(),
            ms: rounded(time.as_secs_f64() * 1e3),
        })
        .collect();
    let v4 = family::<u32>(args, loaded, &mut stages)?;
    let v6 = family::<u128>(args, loaded, &mut stages)?;
    Ok(Stats {
        table: loaded.name.clone(),
        sources: sources(loaded),
        peer: table::peer(&table.provenance, &args.read),
        damaged: loaded.damaged,
        rows: columns.len(),
        columns: columns
            .names()
            .enumerate()
            .map(|(i, name)| ColumnStats {
                name: name.to_owned(),
                kind: columns.type_name(i),
                distinct: columns.distinct(i),
            })
            .collect(),
        rib: None,
        v4,
        v6,
        stages,
        snapshot: loaded.snapshot.as_ref().map(|snapshot| SnapshotStats {
            digest: format!("{:032x}", snapshot.digest()),
            table_digest: format!("{:032x}", snapshot.table_digest()),
            tool: snapshot.provenance().tool.clone(),
            created: utc(snapshot.provenance().created),
            sections: snapshot.sections().map(|(name, bytes)| (name.to_owned(), bytes)).collect(),
        }),
    })
}

fn sources(loaded: &Loaded) -> Vec<SourceStats> {
    let sources = loaded.table.provenance.sources.iter();
    sources
        .map(|source| SourceStats {
            name: source.name.clone(),
            format: source.format.clone(),
            date: source.date.map(utc),
            announced: source.announced,
            withdrawn: source.withdrawn,
            repeated: source.repeated,
            replaced: source.replaced,
        })
        .collect()
}

fn family<A: Addr + Pod>(
    args: &Args,
    loaded: &Loaded,
    stages: &mut Vec<Stage>,
) -> Result<Option<FamilyStats>, Failure> {
    let routes = loaded.table.routes::<A>();
    if routes.is_empty() {
        return Ok(None);
    }
    let started = Instant::now();
    let shape = TableShape::of(routes);
    let ms = rounded(started.elapsed().as_secs_f64() * 1e3);
    stages.push(Stage { stage: format!("measure {}", A::FAMILY), ms });
    let engines = engine_stats(args, loaded, routes)?;
    for engine in &engines {
        let stage = format!("compile {} {}", A::FAMILY, engine.engine);
        stages.push(Stage { stage, ms: engine.build_ms });
    }
    let more_specific: usize = shape.more_specific.iter().sum();
    let lengths = shape.lengths.iter().copied().enumerate().filter(|(_, count)| *count > 0);
    Ok(Some(FamilyStats {
        prefixes: shape.prefixes,
        lengths: lengths.collect(),
        more_specific_share: rounded(shape.more_specific_share()),
        mean_depth: rounded(shape.mean_depth()),
        hop_of_parent_share: rounded(shape.hop_of_parent as f64 / more_specific.max(1) as f64),
        intervals: shape.intervals,
        intervals_merged: shape.merged,
        gaps: shape.gaps,
        hops: hops(routes),
        engines,
    }))
}

fn engine_stats<A: Addr + Pod>(
    args: &Args,
    loaded: &Loaded,
    routes: &Routes<A>,
) -> Result<Vec<EngineStats>, Failure> {
    let stats = |engine, isa: Isa, memory: &Memory, time: Duration, reason| {
        let table = |&(table, bytes): &(&'static str, usize)| TableStats { table, bytes };
        EngineStats {
            engine,
            isa: isa.name(),
            bytes: memory.total(),
            bytes_per_prefix: rounded(memory.total() as f64 / routes.len() as f64),
            build_ms: rounded(time.as_secs_f64() * 1e3),
            tables: memory.tables().iter().map(table).collect(),
            reason,
        }
    };
    let mut all = Vec::new();
    if let Some(snapshot) = &loaded.snapshot {
        let stored = [EngineChoice::Stored, EngineChoice::Search];
        let fib = Fib::of_snapshot(Arc::clone(snapshot), &engines::options(stored))?;
        let family = fib.family::<A>();
        let name = family.engine_name();
        if name != SEARCH {
            let (label, memory) = (format!("snapshot:{name}"), family.memory());
            all.push(stats(label, family.isa(), &memory, family.time(), None));
        }
    }
    for choice in engines::choose::<A>(&args.engines)? {
        match choice.build(routes, Isa::detect()) {
            Ok(built) => {
                let memory = built.engine.memory();
                all.push(stats(built.label, built.isa, &memory, built.time, built.reason));
            }
            Err(error @ BuildError::Limit { .. }) => note(format_args!("skipped: {error}")),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(all)
}

fn hops<A: Addr>(routes: &Routes<A>) -> HopStats {
    let shares = HopShares::of(routes);
    HopStats {
        distinct: shares.distinct(),
        top1_share: rounded(shares.top(1)),
        top10_share: rounded(shares.top(10)),
        top100_share: rounded(shares.top(100)),
        entropy_bits: rounded(shares.entropy_bits()),
    }
}

fn rounded(number: f64) -> f64 {
    (number * 10_000.0).round() / 10_000.0
}

fn print(out: &mut impl Write, stats: &Stats) -> std::io::Result<()> {
    writeln!(out, "{}", stats.table)?;
    for source in &stats.sources {
        let date = source.date.as_ref().map_or(String::new(), |date| format!(", {date}"));
        let (announced, withdrawn) = (grouped(source.announced), grouped(source.withdrawn));
        writeln!(
            out,
            "source   {} ({}{date}): {announced} announced, {withdrawn} withdrawn",
            source.name, source.format
        )?;
    }
    if let Some(peer) = &stats.peer {
        writeln!(out, "peer     {peer}")?;
    }
    if stats.damaged > 0 {
        writeln!(out, "damage   {} records skipped", grouped(stats.damaged))?;
    }
    if let Some(snapshot) = &stats.snapshot {
        let bytes: u64 = snapshot.sections.values().sum();
        let (tool, created) = (&snapshot.tool, &snapshot.created);
        writeln!(
            out,
            "snapshot {}, written by {tool} on {created}, digest {}",
            size(bytes),
            snapshot.digest
        )?;
    }
    let column =
        |c: &ColumnStats| format!("{} ({}, {} values)", c.name, c.kind, grouped(c.distinct as u64));
    let columns: Vec<String> = stats.columns.iter().map(column).collect();
    writeln!(out, "columns  {}; {} distinct rows", columns.join(", "), grouped(stats.rows.into()))?;
    if let Some(rib) = &stats.rib {
        writeln!(out, "rib      {}", rib.line())?;
    }
    for (name, family) in [("IPv4", &stats.v4), ("IPv6", &stats.v6)] {
        if let Some(family) = family {
            print_family(out, name, family)?;
        }
    }
    let stages: Vec<String> =
        stats.stages.iter().map(|s| format!("{} {:.1} ms", s.stage, s.ms)).collect();
    writeln!(out, "\ntime     {}", stages.join(", "))
}

/// Width of the bars.
const BAR: usize = 40;

fn print_family(out: &mut impl Write, name: &str, family: &FamilyStats) -> std::io::Result<()> {
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let count = |n: usize| grouped(n as u64);
    let hops = &family.hops;
    writeln!(out, "\n{name}: {} prefixes", count(family.prefixes))?;
    writeln!(
        out,
        "nesting  {} are more-specifics, mean depth {:.2}, {} of them with the hop around them",
        percent(family.more_specific_share),
        family.mean_depth,
        percent(family.hop_of_parent_share)
    )?;
    writeln!(
        out,
        "ranges   {} elementary intervals, {} after merging, {} of them gaps",
        count(family.intervals),
        count(family.intervals_merged),
        count(family.gaps)
    )?;
    writeln!(
        out,
        "hops     {} in use; the first has {} of the prefixes, ten {}, a hundred {}; {:.2} bits",
        count(hops.distinct),
        percent(hops.top1_share),
        percent(hops.top10_share),
        percent(hops.top100_share),
        hops.entropy_bits
    )?;
    let most = family.lengths.values().copied().max().unwrap_or(1);
    let mut grid = Grid::headless(&[true, true, true, false]);
    for (length, &n) in &family.lengths {
        let share = percent(n as f64 / family.prefixes as f64);
        grid.row([format!("/{length}"), count(n), share, bar(n as f64 / most as f64, BAR)]);
    }
    grid.write_aligned(out)?;
    let mut grid = Grid::new(&["engine", "isa", ">memory", ">bytes/prefix", ">build ms", "tables"]);
    for engine in &family.engines {
        let tables = engine.tables.iter();
        let tables: Vec<String> =
            tables.map(|t| format!("{} {}", t.table, size(t.bytes as u64))).collect();
        grid.row([
            engine.engine.clone(),
            engine.isa.to_owned(),
            size(engine.bytes as u64),
            format!("{:.1}", engine.bytes_per_prefix),
            format!("{:.1}", engine.build_ms),
            tables.join(", "),
        ]);
    }
    grid.write_aligned(out)?;
    for reason in family.engines.iter().filter_map(|engine| engine.reason.as_ref()) {
        writeln!(out, "auto is {reason}")?;
    }
    Ok(())
}
