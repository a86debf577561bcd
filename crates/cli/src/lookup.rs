//! `fibula lookup`: what does the table say about these addresses?

use std::io::{self, BufRead, BufWriter, StdoutLock, Write};
use std::net::IpAddr;

use clap::Args as ClapArgs;
use fibula_core::{Hop, Prefix, Value};
use fibula_rib::{Columns, EnginePart, Snapshot, StoredFamily};
use serde_json::{Map, Value as Json};

use crate::failure::{Failure, Outcome};
use crate::output::{self, Grid};
use crate::progress::note;
use crate::source::{ReadArgs, Source};
use crate::table;

const EXAMPLES: &str = "\
Examples:
  fibula lookup 8.8.8.8 2001:4860:4860::8888
  fibula lookup --table table.fib --all 192.0.2.1
  fibula lookup --table rib.gz --peer AS64500 --json 192.0.2.1
  cut -f1 access.log | fibula lookup --table table.fib > found.tsv

Prints address, matched prefix and value columns: aligned on a terminal, otherwise separated by
tabs. Without addresses they are read from standard input, one in front of each line.

Exit code 1 if an address has no route, 2 if something is not an address (the others are answered).";

/// Look addresses up: matched prefix and values
#[derive(ClapArgs, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The addresses; none: read from standard input
    #[arg(value_name = "ADDRESS")]
    addresses: Vec<String>,
    /// The table: a snapshot, table files, gen:v4:2024:900000:1, embedded
    #[arg(long, short, value_name = "TABLE,...", default_value = "embedded")]
    table: Vec<String>,
    /// All prefixes that cover the address, longest first
    #[arg(long, short)]
    all: bool,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
    /// Leave out the line of column names
    #[arg(long)]
    no_header: bool,
    #[command(flatten)]
    read: ReadArgs,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Outcome, Failure> {
    let snapshot = snapshot(&Source::parse_list(&args.table)?, &args.read)?;
    let mut printer = Printer::new(args, snapshot.columns())?;
    let mut found = Found::default();
    if args.addresses.is_empty() {
        for (number, line) in io::stdin().lock().split(b'\n').enumerate() {
            let line = line.map_err(|error| Failure::io("standard input", &error))?;
            let line = String::from_utf8_lossy(&line);
            let is_end = |c: char| c.is_whitespace() || c == ',' || c == ';';
            let text = line.trim_start().split(is_end).next().unwrap_or_default();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            one(&snapshot, args, text, &mut printer, &mut found, &|| {
                format!("line {}: ", number + 1)
            })?;
        }
    }
    for text in &args.addresses {
        one(&snapshot, args, text, &mut printer, &mut found, &String::new)?;
    }
    printer.finish()?;
    match found {
        Found { bad: 0, missed: 0 } => Ok(Outcome::Done),
        Found { bad: 0, .. } => Ok(Outcome::Negative),
        Found { bad, .. } => {
            Err(Failure::new(format_args!("{bad} of the inputs are no addresses"))
                .hint("addresses look like 192.0.2.1 or 2001:db8::1"))
        }
    }
}

/// What went other than hoped.
#[derive(Default)]
struct Found {
    missed: u64,
    bad: u64,
}

/// Opens the snapshot, or makes one in memory without engines: finding a route needs none.
fn snapshot(sources: &[(String, Source)], read: &ReadArgs) -> Result<Snapshot, Failure> {
    if let [(_, Source::Snapshot(path))] = sources
        && read.columns.is_none()
        && read.synthetic_hops.is_none()
    {
        return Ok(Snapshot::open(path)?);
    }
    let table = table::load_aloud(sources, read)?.table;
    let bytes = fibula_rib::to_bytes(&table, &EnginePart::none(), &EnginePart::none())?;
    Ok(Snapshot::from_bytes(bytes)?)
}

fn one(
    snapshot: &Snapshot,
    args: &Args,
    text: &str,
    printer: &mut Printer<'_>,
    found: &mut Found,
    place: &dyn Fn() -> String,
) -> Result<(), Failure> {
    let Ok(ip) = text.parse::<IpAddr>() else {
        note(format_args!("{}{text:?} is not an address", place()));
        found.bad += 1;
        return Ok(());
    };
    // A v4-mapped address (::ffff:192.0.2.1) means the IPv4 one.
    let routes = match ip.to_canonical() {
        IpAddr::V4(v4) => covering::<u32>(snapshot, v4.into(), args.all),
        IpAddr::V6(v6) => covering::<u128>(snapshot, v6.into(), args.all),
    };
    found.missed += u64::from(routes.is_empty());
    printer.print(ip, &routes)
}

/// The longest matching prefix, or all, as text with their hops.
fn covering<A: StoredFamily>(snapshot: &Snapshot, addr: A, all: bool) -> Vec<(String, Hop)> {
    let stored = snapshot.family::<A>();
    let route = |index: usize| {
        let route = stored.get(index);
        (Prefix::to_string(&route.prefix), route.hop)
    };
    stored.covering(addr).take(if all { usize::from(A::BITS) + 1 } else { 1 }).map(route).collect()
}

/// How results are printed: JSON lines and tab-separated values at once, aligned columns at the end.
struct Printer<'a> {
    columns: &'a Columns,
    out: BufWriter<StdoutLock<'static>>,
    style: Style,
}

enum Style {
    Json,
    Tsv,
    Aligned(Grid),
}

impl<'a> Printer<'a> {
    fn new(args: &Args, columns: &'a Columns) -> Result<Self, Failure> {
        let mut out = output::stdout();
        let names: Vec<&str> = ["address", "prefix"].into_iter().chain(columns.names()).collect();
        let style = if args.json {
            Style::Json
        } else if output::is_terminal() {
            let left = vec![false; names.len()];
            Style::Aligned(if args.no_header { Grid::headless(&left) } else { Grid::new(&names) })
        } else {
            if !args.no_header {
                writeln!(out, "{}", names.join("\t"))?;
            }
            Style::Tsv
        };
        Ok(Self { columns, out, style })
    }

    /// Prints the routes of an address, or that it has none.
    fn print(&mut self, ip: IpAddr, routes: &[(String, Hop)]) -> Result<(), Failure> {
        if let Style::Json = self.style {
            return self.json(ip, routes);
        }
        let none = [("-".to_owned(), Hop::NONE)];
        for (prefix, hop) in if routes.is_empty() { &none } else { routes } {
            let values = table::row(self.columns, *hop).map(text);
            let row = [ip.to_string(), prefix.clone()].into_iter().chain(values);
            match &mut self.style {
                Style::Aligned(grid) => grid.row(row),
                _ => writeln!(self.out, "{}", row.collect::<Vec<_>>().join("\t"))?,
            }
        }
        Ok(())
    }

    /// `{"address": .., "prefix": .., values...}`; with several routes an object each, without any
    /// one whose prefix is null.
    fn json(&mut self, ip: IpAddr, routes: &[(String, Hop)]) -> Result<(), Failure> {
        let none = [(String::new(), Hop::NONE)];
        for (prefix, hop) in if routes.is_empty() { &none } else { routes } {
            let mut object = Map::new();
            object.insert("address".to_owned(), ip.to_string().into());
            let prefix = if prefix.is_empty() { Json::Null } else { prefix.as_str().into() };
            object.insert("prefix".to_owned(), prefix);
            for (name, value) in self.columns.names().zip(table::row(self.columns, *hop)) {
                let value = match value {
                    Value::Null => Json::Null,
                    Value::Int(int) => int.into(),
                    Value::Str(text) => text.into(),
                };
                // A column of the table may itself be called "prefix"; the matched one comes first.
                object.entry(name).or_insert(value);
            }
            serde_json::to_writer(&mut self.out, &object)?;
            writeln!(self.out)?;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<(), Failure> {
        if let Style::Aligned(grid) = &self.style {
            grid.write_aligned(&mut self.out)?;
        }
        self.out.flush()?;
        Ok(())
    }
}

/// A value as a cell: tabs and line ends would break the row.
fn text(value: Value<'_>) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::Int(int) => int.to_string(),
        Value::Str(text) => text.replace(['\t', '\n', '\r'], " "),
    }
}
