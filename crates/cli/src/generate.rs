//! `fibula gen`: tables and traffic to test with.

use std::io::{self, Write};
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use fibula_core::{Addr, Family, Routes};
use fibula_testkit::Rng;
use fibula_testkit::fib::{GenSpec, HopModel};
use fibula_testkit::traffic::{self, Traffic};

use crate::failure::{Failure, Outcome};
use crate::output::{Output, utc};
use crate::same;
use crate::source::{self, ReadArgs, parse_family};
use crate::table;

const EXAMPLES: &str = "\
Examples:
  fibula gen table v4:2024:900000:1 -o table.tsv
  fibula gen table gen:v6:2024:200000:7 --synthetic-hops near:64
  fibula gen traffic --table table.fib --traffic ZIPF --count 1000000 -o addresses.txt
  fibula gen traffic --table embedded --format flows --count 3000000 -o flows.csv

The same arguments give the same output on every machine.";

/// Generate tables and traffic
#[derive(ClapArgs, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    what: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Table(TableArgs),
    Traffic(TrafficArgs),
}

/// A routing table with the prefix lengths and nesting of the Internet in a year: prefix, tab, hop
#[derive(ClapArgs, Debug)]
#[command(after_help = EXAMPLES)]
struct TableArgs {
    /// Family, year, prefixes and seed: v4:2024:900000:1
    #[arg(value_name = "SPEC")]
    spec: String,
    /// How hops are assigned: hash:N (unrelated) or near:N (shared by neighbours)
    #[arg(long, value_name = "MODEL", default_value_t = table::DEFAULT_HOPS)]
    synthetic_hops: HopModel,
    /// Where to write, - for standard output
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    output: PathBuf,
}

/// Addresses, or flows, for a table
#[derive(ClapArgs, Debug)]
#[command(after_help = EXAMPLES)]
struct TrafficArgs {
    /// The table: a snapshot, table files, URLs, fetch:NAME, gen:v4:2024:900000:1, embedded (default: FIBULA_TABLE,
    /// else that of the configuration, else embedded)
    #[arg(long, short, value_name = "TABLE,...")]
    table: Vec<String>,
    /// RND, PFX, ZIPF, REP, SEQ, WORST, MATCH0 to MATCH100 (see `fibula bench --help`)
    #[arg(long, value_name = "KIND", default_value = "PFX")]
    traffic: Traffic,
    /// Number of addresses, or flows
    #[arg(long, short, value_name = "N", default_value = "1000000",
          value_parser = clap::value_parser!(u64).range(0..=1 << 30))]
    count: u64,
    /// Address family (default: those that the table has; where it has both, one in four is IPv6)
    #[arg(long, short, value_name = "v4|v6", value_parser = parse_family)]
    family: Option<Family>,
    /// An address a line, or CSV of flows: time,src_ip,dst_ip,bytes
    #[arg(long, value_enum, default_value_t = TrafficFormat::List)]
    format: TrafficFormat,
    /// Seed
    #[arg(long, value_name = "N", default_value = "1")]
    seed: u64,
    /// Where to write, - for standard output
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    output: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TrafficFormat {
    List,
    Flows,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Outcome, Failure> {
    match &args.what {
        Command::Table(args) => table(args)?,
        Command::Traffic(args) => traffic(args)?,
    }
    Ok(Outcome::Done)
}

fn table(args: &TableArgs) -> Result<(), Failure> {
    let text = format!("gen:{}", args.spec.trim_start_matches("gen:"));
    let spec = GenSpec::from_str(&text).map_err(Failure::new)?;
    let hops = spec.with_hops(args.synthetic_hops);
    let mut out = Output::create(&args.output)?;
    match spec.family {
        Family::V4 => write_table(&mut out, &hops.generate::<u32>())?,
        Family::V6 => write_table(&mut out, &hops.generate::<u128>())?,
    }
    out.finish()
}

fn write_table<A: Addr>(out: &mut dyn Write, routes: &Routes<A>) -> io::Result<()> {
    writeln!(out, "prefix\thop")?;
    for route in routes.iter() {
        let hop = route.hop.index().unwrap_or_default();
        writeln!(out, "{}\t{hop}", route.prefix)?;
    }
    Ok(())
}

fn traffic(args: &TrafficArgs) -> Result<(), Failure> {
    let sources = source::tables(&args.table, &ReadArgs::automatic())?;
    same::refuse_tables(&sources, &args.output)?;
    let loaded = table::load_aloud(&sources, &ReadArgs::automatic())?;
    let families = match args.family {
        Some(family) => vec![family],
        None => loaded.families(),
    };
    // One source address a row, and for flows a destination as well.
    let columns = if args.format == TrafficFormat::Flows { 2 } else { 1 };
    let total = args.count as usize * columns;
    let v6 = match &*families {
        [Family::V6] => total,
        [_, _] => args.count as usize / V6_ONE_IN * columns,
        _ => 0,
    };
    let v4 = traffic::keys(&loaded.table.v4, args.traffic, total - v6, args.seed);
    let v6 = traffic::keys(&loaded.table.v6, args.traffic, v6, args.seed);
    let mut out = Output::create(&args.output)?;
    match args.format {
        TrafficFormat::List => list(&mut out, &v4, &v6)?,
        TrafficFormat::Flows => flows(&mut out, &v4, &v6, args.seed)?,
    }
    out.finish()
}

/// Of tables with both families, one address in this many is IPv6.
const V6_ONE_IN: usize = 4;

/// Spreads the rows of the second family evenly among those of the first: for each row whether it
/// belongs to the second.
fn mixed(first: usize, second: usize) -> impl Iterator<Item = bool> {
    let total = first + second;
    (0..total).map(move |row| (row + 1) * second / total > row * second / total)
}

fn list(out: &mut dyn Write, v4: &[u32], v6: &[u128]) -> io::Result<()> {
    let (mut v4, mut v6) = (v4.iter(), v6.iter());
    for is_v6 in mixed(v4.len(), v6.len()) {
        let addr = if is_v6 { v6.next().map(|a| a.to_ip()) } else { v4.next().map(|a| a.to_ip()) };
        if let Some(addr) = addr {
            writeln!(out, "{addr}")?;
        }
    }
    Ok(())
}

/// 2026-01-01 00:00:00 UTC: flows begin at a fixed time, so that equal arguments give equal files.
const FLOWS_BEGIN: u64 = 1_767_225_600;

fn flows(out: &mut dyn Write, v4: &[u32], v6: &[u128], seed: u64) -> io::Result<()> {
    let mut rng = Rng::new(seed);
    let mut micros = FLOWS_BEGIN * 1_000_000;
    let (mut v4, mut v6) = (v4.chunks_exact(2), v6.chunks_exact(2));
    let ips = |pair: &[u32]| (pair[0].to_ip(), pair[1].to_ip());
    let ips6 = |pair: &[u128]| (pair[0].to_ip(), pair[1].to_ip());
    writeln!(out, "time,src_ip,dst_ip,bytes")?;
    for is_v6 in mixed(v4.len(), v6.len()) {
        let pair = if is_v6 { v6.next().map(ips6) } else { v4.next().map(ips) };
        let Some((src, dst)) = pair else { continue };
        micros += rng.below(2_000);
        let (date, time) = (utc(micros / 1_000_000), micros % 60_000_000);
        // `2026-01-01 00:00 UTC` gives date and minute; seconds have six decimals.
        let (day, minute) = (&date[..10], &date[11..16]);
        let (second, fraction) = (time / 1_000_000, time % 1_000_000);
        let bytes = flow_bytes(&mut rng);
        writeln!(out, "{day}T{minute}:{second:02}.{fraction:06}Z,{src},{dst},{bytes}")?;
    }
    Ok(())
}

/// Flow sizes have a heavy tail: most are a packet, few are most of the traffic.
fn flow_bytes(rng: &mut Rng) -> u64 {
    let magnitude = rng.below(1 << 20).leading_zeros() - 44; // 0 for half of all, 1 for a quarter...
    40 + (rng.below(1_400) << magnitude)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_mixed_evenly() {
        assert_eq!(mixed(3, 1).collect::<Vec<_>>(), [false, false, false, true]);
        assert_eq!(mixed(0, 2).filter(|is_v6| *is_v6).count(), 2);
        assert_eq!(mixed(1000, 333).filter(|is_v6| *is_v6).count(), 333);
        assert_eq!(mixed(0, 0).count(), 0);
    }

    #[test]
    fn flows_are_rows() {
        let mut out = Vec::new();
        flows(&mut out, &[1, 2, 3, 4], &[5, 6], 1).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4);
        assert!(lines[1].starts_with("2026-01-01T00:00:00.00"), "{}", lines[1]);
        assert!(lines[1].contains("Z,0.0.0.1,0.0.0.2,"), "{}", lines[1]);
        assert!(lines[3].contains(",::5,::6,"), "{}", lines[3]);
    }
}
