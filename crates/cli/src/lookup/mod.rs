//! `fibula lookup`: finds the routes and values of addresses and prefixes, and the prefixes that have given values.

mod history;
mod lines;
mod print;

use std::io;
use std::net::IpAddr;
use std::str::FromStr;

use clap::{Args as ClapArgs, ValueEnum};
use fibula_core::AnyPrefix;
use fibula_fib::{EngineChoice, Fib, Match, aggregate};

use self::lines::Lines;
use self::print::Printer;
use crate::config;
use crate::failure::{Failure, Outcome};
use crate::layer;
use crate::progress::note;
use crate::rpki::RpkiArgs;
use crate::source::{self, ReadArgs, Source};
use crate::table;

const EXAMPLES: &str = "\
Examples:
  fibula lookup 8.8.8.8 2001:4860:4860::8888
  fibula lookup --table table.fib --all 192.0.2.1
  fibula lookup --table rib.gz --peer AS64500 --json 192.0.2.1
  fibula lookup --table table.fib 192.0.2.0/24 --view covered
  fibula lookup --table rib.gz --where origin_as=64500 --aggregate
  fibula lookup --table rib.gz --rpki vrps.json --where rpki=invalid-origin
  fibula lookup --layer geo=embedded --layer asn=rib.gz 192.0.2.1
  fibula lookup --table year.fib --at 2024-05-01 192.0.2.1
  fibula lookup --table year.fib --history 192.0.2.1
  cut -f1 access.log | fibula lookup --table table.fib - > found.tsv

Prints each address or prefix with the matched prefix and the value columns: aligned on a terminal,
otherwise separated by tabs. A prefix matches the longest route that covers all of it. The column
`match` says which route was found: exact (the same prefix), covering (a shorter one) or covered (a
longer one). It is printed with --view, and if an argument is a prefix.

Addresses and prefixes are arguments, or lines of standard input (with - or without arguments). Of
a line, only the text up to the first space, tab, comma or semicolon is used. With the default view,
each input line gives one output line, which is flushed when no further input is available. Another
program can therefore ask line by line (with --no-header). A line that is no address and no prefix
gives an output line without values (in JSON, with the member error) and a message with the line's
number on standard error. Empty lines and lines that begin with # give an output line without values.

Exit code: 1 if an address or prefix has no route; 2 if an input is no address and no prefix (the
others are answered), or for any other error.";

/// Look up addresses, prefixes and values
#[derive(ClapArgs, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Addresses and prefixes; - for standard input, which is also read if there is none
    #[arg(value_name = "ADDRESS|PREFIX")]
    questions: Vec<String>,
    /// The table: a snapshot, table files, URLs, fetch:NAME, gen:v4:2024:900000:1, embedded (default: FIBULA_TABLE,
    /// else that of the configuration, else embedded)
    #[arg(long, short, value_name = "TABLE,...")]
    table: Vec<String>,
    /// A table beside others, NAME=TABLE,...: its columns become NAME_column. Repeatable
    #[arg(long, value_name = "NAME=TABLE,...", conflicts_with = "table")]
    layer: Vec<String>,
    /// Routes to print: longest (the longest that covers the address or prefix), exact (of the same prefix), covering
    /// (all that cover it, longest first), covered (all inside it), all (covering and covered)
    #[arg(long, value_name = "VIEW")]
    view: Option<View>,
    /// Same as --view all
    #[arg(long, short, conflicts_with = "view")]
    all: bool,
    /// Print the routes that have this value in this column (COLUMN= for no value). Repeatable: conditions on the
    /// same column are alternatives, and conditions on different columns must all hold
    #[arg(long = "where", value_name = "COLUMN=VALUE", conflicts_with_all = ["questions", "view", "all"])]
    wanted: Vec<Condition>,
    /// Print the smallest list of prefixes that covers the addresses of the routes found, without values. Addresses
    /// of longer routes with other values are included
    #[arg(long, requires = "wanted", conflicts_with = "questions")]
    aggregate: bool,
    /// For a file of several dates (build --as-of), print each address's match over time: the match in the first
    /// table, then one line for each change with its date
    #[arg(long, requires = "questions")]
    #[arg(conflicts_with_all = ["wanted", "view", "all", "layer", "at", "rpki", "aspa"])]
    history: bool,
    /// Print one JSON object for each line
    #[arg(long)]
    json: bool,
    /// Do not print the line with the column names
    #[arg(long)]
    no_header: bool,
    #[command(flatten)]
    rpki: RpkiArgs,
    #[command(flatten)]
    read: ReadArgs,
}

/// The routes to print for an address or prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum View {
    Longest,
    Exact,
    Covering,
    Covered,
    All,
}

/// A condition `COLUMN=VALUE`.
#[derive(Clone, Debug)]
struct Condition(String, String);

impl FromStr for Condition {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('=') {
            Some((column, value)) if !column.is_empty() => {
                Ok(Self(column.to_owned(), value.to_owned()))
            }
            _ => Err("this is COLUMN=VALUE, such as origin_as=64500"),
        }
    }
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Outcome, Failure> {
    if args.history {
        return history::run(args);
    }
    let reads_lines = args.questions.iter().any(|question| question == "-")
        || args.questions.is_empty() && args.wanted.is_empty();
    let fib = open(args, reads_lines)?;
    let outcome = match args.wanted.is_empty() {
        true => Asking::new(args, &fib)?.all(),
        false => by_value(args, &fib),
    }?;
    fib.unchanged()?;
    Ok(outcome)
}

/// Opens the table. Finding routes needs no engine.
fn open(args: &Args, reads_lines: bool) -> Result<Fib, Failure> {
    let options = crate::engines::options([EngineChoice::Search]);
    let is_input =
        |table: &String| table.split(',').any(|name| name == "-" || name.ends_with("=-"));
    let tables = if args.layer.is_empty() { config::tables(&args.table)? } else { Vec::new() };
    if reads_lines && tables.iter().chain(&args.layer).any(is_input) {
        return Err(Failure::new("standard input cannot be both the table and the questions")
            .hint("name the table's file, or give the addresses as arguments"));
    }
    args.rpki.check(reads_lines, &args.layer)?;
    if args.rpki.is_requested() {
        return Ok(Fib::of_table(args.rpki.load(&tables, &args.read)?, &options)?);
    }
    if args.layer.is_empty() {
        let sources = source::parse_list(&tables, &args.read)?;
        // Read only the needed part of the embedded table: reading all of it takes longer than the rest of the
        // command.
        if let [(_, Source::Embedded)] = *sources
            && !reads_lines
            && args.wanted.is_empty()
            && args.read.takes_all()
            && args.read.at.is_none()
            && args.read.synthetic_hops.is_none()
        {
            let requested = args.questions.iter().filter_map(|text| question(text).ok());
            let requested: Vec<AnyPrefix> = requested.map(Subject::prefix).collect();
            let fib = Fib::of_table(fibula::sources::embedded(Some(&requested))?, &options)?;
            config::report(Some(fib.provenance()));
            return Ok(fib);
        }
        return table::open(&sources, &args.read, &options);
    }
    let layers = layer::load(&layer::parse(&args.layer, &args.read)?, &args.read)?;
    Ok(Fib::of_table(layers.table, &options)?)
}

/// Prints the routes with the wanted values, or with `--aggregate` the prefixes that cover their addresses.
fn by_value(args: &Args, fib: &Fib) -> Result<Outcome, Failure> {
    let conditions: Vec<_> =
        args.wanted.iter().map(|Condition(name, value)| (name, value)).collect();
    let found = fib.routes_where(&conditions)?;
    let mut any = false;
    if args.aggregate {
        let mut printer = Printer::prefixes(args)?;
        for prefix in aggregate(found.filter_map(|route| route.prefix())) {
            any = true;
            printer.prefix(prefix)?;
        }
        printer.flush()?;
    } else {
        let mut printer = Printer::routes(args, fib.columns())?;
        for route in found {
            any = true;
            printer.route(&route)?;
        }
        printer.flush()?;
    }
    Ok(if any { Outcome::Done } else { Outcome::Negative })
}

/// The addresses and prefixes to look up, with the table and the printer.
struct Asking<'a> {
    args: &'a Args,
    fib: &'a Fib,
    view: View,
    printer: Printer<'a>,
    missed: u64,
    bad: u64,
}

impl<'a> Asking<'a> {
    fn new(args: &'a Args, fib: &'a Fib) -> Result<Self, Failure> {
        let view = if args.all { View::All } else { args.view.unwrap_or(View::Longest) };
        let is_prefix = |question: &String| question.parse::<AnyPrefix>().is_ok();
        let shows_match = args.view.is_some() || args.questions.iter().any(is_prefix);
        let printer = Printer::answers(args, fib.columns(), shows_match)?;
        Ok(Self { args, fib, view, printer, missed: 0, bad: 0 })
    }

    fn all(mut self) -> Result<Outcome, Failure> {
        for question in &self.args.questions {
            match question.as_str() {
                "-" => self.lines()?,
                text => self.one(text, "")?,
            }
        }
        if self.args.questions.is_empty() {
            self.lines()?;
        }
        self.printer.flush()?;
        match (self.bad, self.missed) {
            (0, 0) => Ok(Outcome::Done),
            (0, _) => Ok(Outcome::Negative),
            (bad, _) => {
                let what = match bad {
                    1 => "input is no address and no prefix",
                    _ => "inputs are no addresses and no prefixes",
                };
                Err(Failure::new(format_args!("{bad} {what}"))
                    .hint("they look like 192.0.2.1, 2001:db8::1, 192.0.2.0/24 or 2001:db8::/32"))
            }
        }
    }

    /// Answers the lines of standard input.
    fn lines(&mut self) -> Result<(), Failure> {
        let mut lines = Lines::new(io::stdin().lock());
        loop {
            if !lines.is_waiting() {
                self.printer.flush()?;
            }
            let failed = |error| Failure::io("standard input", &error);
            let Some((number, line)) = lines.next().map_err(failed)? else { return Ok(()) };
            let line = String::from_utf8_lossy(line);
            let is_end = |c: char| c.is_whitespace() || c == ',' || c == ';';
            let text = line.trim_start().split(is_end).next().unwrap_or_default();
            if text.is_empty() || text.starts_with('#') {
                self.printer.nothing(None, None)?;
            } else {
                self.one(text, &format!("line {number}: "))?;
            }
        }
    }

    fn one(&mut self, text: &str, place: &str) -> Result<(), Failure> {
        let requested = match question(text) {
            Ok(requested) => requested,
            Err(what) => {
                note(format_args!("{place}{what}"));
                self.bad += 1;
                return self.printer.nothing(Some(&shortened(text)), Some(&what));
            }
        };
        let (fib, prefix) = (self.fib, requested.prefix());
        let found: Vec<Match<'_>> = match (self.view, requested) {
            (View::Longest, Subject::Address(ip)) => fib.lookup(ip).into_iter().collect(),
            (View::Longest, Subject::Prefix(prefix)) => fib.covering(prefix)?.take(1).collect(),
            (View::Exact, _) => fib.exact(prefix)?.into_iter().collect(),
            (View::Covering, _) => fib.covering(prefix)?.collect(),
            (View::Covered, _) => fib.covered(prefix)?.collect(),
            (View::All, _) => fib.overlapping(prefix)?.collect(),
        };
        self.missed += u64::from(found.is_empty());
        self.printer.answer(requested, &found)
    }
}

/// The subject of one lookup.
#[derive(Clone, Copy)]
enum Subject {
    Address(IpAddr),
    Prefix(AnyPrefix),
}

impl Subject {
    fn prefix(self) -> AnyPrefix {
        match self {
            Self::Address(ip) => AnyPrefix::host(ip),
            Self::Prefix(prefix) => prefix,
        }
    }
}

/// Parses an address or a prefix, or returns the error.
fn question(text: &str) -> Result<Subject, String> {
    if let Ok(ip) = text.parse() {
        return Ok(Subject::Address(ip));
    }
    match text.parse() {
        Ok(prefix) => Ok(Subject::Prefix(prefix)),
        Err(error) if text.contains('/') => Err(format!("{:?}: {error}", shortened(text))),
        Err(_) => Err(format!("{:?} is not an address", shortened(text))),
    }
}

/// Shortens a text for an error message, as a line may be very long.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
