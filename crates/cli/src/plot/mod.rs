//! `fibula plot`: a picture of a table.

mod hilbert;
mod lengths;
mod svg;

use std::io::{IsTerminal, Write};
use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use fibula_core::{Family, grouped};

use crate::failure::{Failure, Outcome};
use crate::layer::TableArgs;
use crate::output::{Output, size};
use crate::progress::note;
use crate::same;
use crate::source::parse_family;
use crate::table::Loaded;

const EXAMPLES: &str = "\
Examples:
  fibula plot rib.gz -o lengths.svg
  fibula plot table.fib --chart hilbert -o map.svg
  fibula plot table.fib --chart hilbert --family v6 -o map6.svg
  fibula plot rib.gz --chart hilbert --show hops --columns origin_as -o origins.svg

lengths: a bar for each prefix length, of each family that the table has. The axis is logarithmic, since
a table has a hundred thousand routes of some lengths and ten of others; --linear shows shares as areas.

hilbert: a map on which addresses that are near each other lie near each other (a Hilbert curve). For
IPv4 a cell is a /16 and a square of the grid a /8; for IPv6 they are a /19 and a /11 of 2000::/3, which
has all global addresses. A colour says how much of a cell has a route (--show covered), or how many
different values the addresses of a cell have (--show hops; --columns says which values count). A
default route is left out: it would fill the map.";

/// Draw a table: its prefix lengths, or a map of the address space (SVG)
#[derive(ClapArgs, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    table: TableArgs,
    /// What is drawn
    #[arg(long, value_enum, default_value_t = Chart::Lengths)]
    chart: Chart,
    /// The picture, - for standard output
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// lengths: only this family; hilbert: its map (default: IPv4, if the table has IPv4 routes)
    #[arg(long, value_name = "v4|v6", value_parser = parse_family)]
    family: Option<Family>,
    /// hilbert: what colours mean
    #[arg(long, value_enum, default_value_t = Show::Covered)]
    show: Show,
    /// lengths: a linear axis
    #[arg(long)]
    linear: bool,
}

/// `--chart`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Chart {
    Lengths,
    Hilbert,
}

/// `--show`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Show {
    Covered,
    Hops,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Outcome, Failure> {
    match args.chart {
        Chart::Lengths if args.show != Show::Covered => {
            return Err(Failure::new("--show is for --chart hilbert"));
        }
        Chart::Hilbert if args.linear => {
            return Err(Failure::new("--linear is for --chart lengths"));
        }
        _ => {}
    }
    if args.output.as_os_str() == "-" && std::io::stdout().is_terminal() {
        return Err(Failure::new("a picture is not for terminals")
            .hint("name a file with -o, or redirect the output"));
    }
    same::refuse_tables(&args.table.all_sources()?, &args.output)?;
    let loaded = args.table.load()?;
    let picture = draw(args, &loaded)?;
    let mut out = Output::create(&args.output)?;
    out.write_all(picture.as_bytes())?;
    out.finish()?;
    note(format_args!("{}: {}", args.output.display(), size(picture.len() as u64)));
    Ok(Outcome::Done)
}

fn draw(args: &Args, loaded: &Loaded) -> Result<String, Failure> {
    let table = &loaded.table;
    let has = |family| match family {
        Family::V4 => !table.v4.is_empty(),
        Family::V6 => !table.v6.is_empty(),
    };
    if let Some(family) = args.family
        && !has(family)
        && !args.table.read.allow_empty
    {
        let other = if family == Family::V4 { Family::V6 } else { Family::V4 };
        return Err(Failure::new(format_args!("{}: no IP{family} routes to draw", loaded.name))
            .hint(format_args!("--family {other} draws the others")));
    }
    let drawn = match (args.chart, args.family) {
        (Chart::Lengths, family) => lengths::draw(loaded, family, args.linear),
        (Chart::Hilbert, Some(Family::V6)) => hilbert::v6(loaded, args.show),
        (Chart::Hilbert, None) if !has(Family::V4) && has(Family::V6) => {
            hilbert::v6(loaded, args.show)
        }
        (Chart::Hilbert, _) => hilbert::v4(loaded, args.show),
    };
    drawn.map_err(|error| Failure::new(format_args!("{}: drawing: {error}", loaded.name)))
}

/// `"1 route"`, `"1,234 routes"`.
fn routes(count: usize) -> String {
    format!("{} {}", grouped(count as u64), if count == 1 { "route" } else { "routes" })
}
