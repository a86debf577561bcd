//! `fibula lookup`: what does the table say about these addresses?

use std::io::{self, BufRead, BufWriter, StdoutLock, Write};
use std::net::IpAddr;

use clap::Args as ClapArgs;
use fibula_core::{Addr, AnyPrefix, Value};
use fibula_fib::{Columns, EngineChoice, Fib, FibOptions, Match};
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
    // Finding a route with its prefix needs no engine.
    let options = FibOptions::default().engines([EngineChoice::Search]);
    let fib = table::open(&Source::parse_list(&args.table)?, &args.read, &options)?;
    let mut printer = Printer::new(args, fib.columns())?;
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
            one(&fib, args, text, &mut printer, &mut found, &|| format!("line {}: ", number + 1))?;
        }
    }
    for text in &args.addresses {
        one(&fib, args, text, &mut printer, &mut found, &String::new)?;
    }
    printer.finish()?;
    fib.unchanged()?;
    match found {
        Found { bad: 0, missed: 0 } => Ok(Outcome::Done),
        Found { bad: 0, .. } => Ok(Outcome::Negative),
        Found { bad, .. } => {
            let what = if bad == 1 { "input is no address" } else { "inputs are no addresses" };
            Err(Failure::new(format_args!("{bad} {what}"))
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

fn one(
    fib: &Fib,
    args: &Args,
    text: &str,
    printer: &mut Printer<'_>,
    found: &mut Found,
    place: &dyn Fn() -> String,
) -> Result<(), Failure> {
    let Ok(ip) = text.parse::<IpAddr>() else {
        note(format_args!("{}{}", place(), no_address(text)));
        found.bad += 1;
        return Ok(());
    };
    let routes: Vec<Match<'_>> = match args.all {
        true => fib.covering(ip)?.collect(),
        false => fib.lookup(ip).into_iter().collect(),
    };
    found.missed += u64::from(routes.is_empty());
    printer.print(ip, &routes)
}

/// What the text is in place of an address.
fn no_address(text: &str) -> String {
    if let Ok(prefix) = text.parse::<AnyPrefix>() {
        let (first, last) = match prefix {
            AnyPrefix::V4(prefix) => (prefix.first().to_ip(), prefix.last().to_ip()),
            AnyPrefix::V6(prefix) => (prefix.first().to_ip(), prefix.last().to_ip()),
        };
        return format!("{prefix} is a prefix, not an address: ask for one from {first} to {last}");
    }
    // A line may be as long as a file.
    let shown: String = text.chars().take(60).collect();
    let more = if shown.len() < text.len() { "..." } else { "" };
    format!("{shown:?}{more} is not an address")
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
    fn print(&mut self, ip: IpAddr, routes: &[Match<'_>]) -> Result<(), Failure> {
        if routes.is_empty() {
            return self.route(ip, None);
        }
        routes.iter().try_for_each(|route| self.route(ip, Some(route)))
    }

    fn route(&mut self, ip: IpAddr, route: Option<&Match<'_>>) -> Result<(), Failure> {
        if let Style::Json = self.style {
            return self.json(ip, route);
        }
        let prefix = route.and_then(Match::prefix).map_or("-".to_owned(), |p| p.to_string());
        let mut row = vec![ip.to_string(), prefix];
        match route {
            Some(route) => row.extend(route.values().map(|(_, value)| text(value))),
            None => row.extend(self.columns.names().map(|_| text(Value::Null))),
        }
        match &mut self.style {
            Style::Aligned(grid) => grid.row(row),
            _ => writeln!(self.out, "{}", row.join("\t"))?,
        }
        Ok(())
    }

    /// `{"address": .., "prefix": .., values...}`; with several routes an object each, without any
    /// one whose prefix is null.
    fn json(&mut self, ip: IpAddr, route: Option<&Match<'_>>) -> Result<(), Failure> {
        let mut object = Map::new();
        object.insert("address".to_owned(), ip.to_string().into());
        let prefix = route.and_then(Match::prefix).map(|prefix| prefix.to_string());
        object.insert("prefix".to_owned(), prefix.into());
        for name in self.columns.names() {
            let value = match route.and_then(|route| route.value(name)).unwrap_or(Value::Null) {
                Value::Null => Json::Null,
                Value::Int(int) => int.into(),
                Value::Str(text) => text.into(),
            };
            // A column of the table may itself be called "prefix"; the matched one comes first.
            object.entry(name).or_insert(value);
        }
        serde_json::to_writer(&mut self.out, &object)?;
        writeln!(self.out)?;
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
