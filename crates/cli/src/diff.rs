//! `fibula diff`: the differences between two tables.

use std::io::Write;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use fibula_core::{Addr, Value, grouped};
use fibula_rib::{DatedSnapshot, Difference, Differences, Pod, Table};
use serde_json::{Map, Value as Json, json};

use crate::failure::{Failure, Outcome};
use crate::output::{self, Grid, json_addresses, json_value, text_addresses};
use crate::progress::note;
use crate::same;
use crate::source::{self, ReadArgs, Source};
use crate::table;
use crate::written::To;

const EXAMPLES: &str = "\
Examples:
  fibula diff yesterday.fib today.fib
  fibula diff --summary rib.20260101.bz2 rib.20260102.bz2
  fibula diff old.csv new.csv --json | jq -r 'select(.change == \"gone\").prefix'
  fibula diff old.fib new.mmdb --columns country -o changes.csv

Prints a line for each prefix that differs: + is only in the second table, - only in the first, ~
has other values:
  - 192.0.2.0/24  origin_as 64500, country CH
  ~ 198.51.100.0/24  origin_as 64501 -> 64502
Columns are compared by name and values by their text. A column that one table lacks counts as
empty there; --columns compares only the columns that it names. A summary goes to standard error.
Its affected addresses are those that get other values than before, or that only one of the tables
covers; they are counted exactly.

--json prints objects with change (added, gone, changed), prefix, before and after (all values by
name), and at the end one with change = summary. Numbers of IPv6 addresses are strings there, since
many JSON readers cannot hold them.
-o writes a table: prefix, change, and NAME_before and NAME_after for each column (.csv, .tsv,
.parquet).

Exit code 0 if the tables are equal, 1 if they differ, 2 if there was an error.";

/// Print the differences between two tables
#[derive(ClapArgs, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The table before: a snapshot, table files (several merge in order), embedded
    #[arg(value_name = "BEFORE,...")]
    before: String,
    /// The table after
    #[arg(value_name = "AFTER,...")]
    after: String,
    /// Print only the summary, on standard output
    #[arg(long, conflicts_with = "output")]
    summary: bool,
    /// Print JSON objects, one a line
    #[arg(long, conflicts_with = "output")]
    json: bool,
    /// Write the differences as a table
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Format of that table (default: by the file's ending)
    #[arg(long, value_name = "csv|tsv|parquet", requires = "output")]
    to: Option<To>,
    #[command(flatten)]
    read: ReadArgs,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Outcome, Failure> {
    let to = args.output.as_ref().map(|path| To::of(args.to, path)).transpose()?;
    let both = [args.before.clone(), args.after.clone()];
    let sources = source::parse_list(&both, &args.read)?;
    if args.read.at.is_some() && !is_of_several_dates(&sources) {
        return Err(table::no_dates());
    }
    if let Some(path) = &args.output {
        same::refuse_tables(&sources, path)?;
    }
    let before = load(&args.before, args)?;
    let after = load(&args.after, args)?;
    let differences = Differences::new(&before, &after)?;
    let v4 = Counted::new::<u32>(&differences, [before.v4.len(), after.v4.len()]);
    let v6 = Counted::new::<u128>(&differences, [before.v6.len(), after.v6.len()]);
    if let (Some(path), Some(to)) = (&args.output, to) {
        to.write(&differences.to_table()?, path)?;
    }
    let mut out = output::stdout();
    if args.output.is_none() && !args.summary {
        family::<u32>(args, &differences, &mut out)?;
        family::<u128>(args, &differences, &mut out)?;
    }
    if args.json {
        let summary = json!({ "change": "summary", "ipv4": v4.json(false), "ipv6": v6.json(true) });
        serde_json::to_writer(&mut out, &summary)?;
        writeln!(out)?;
    }
    out.flush()?;
    if !args.json {
        let text = summary(&[("IPv4", &v4), ("IPv6", &v6)]);
        if args.summary { write!(out, "{text}")? } else { note(text.trim_end()) }
    }
    out.flush()?;
    Ok(if v4.is_none() && v6.is_none() { Outcome::Done } else { Outcome::Negative })
}

fn load(name: &str, args: &Args) -> Result<Table, Failure> {
    let sources = source::parse_list(&[name.to_owned()], &args.read)?;
    // A time chooses a table where there are several; the other one may be one table.
    let at = args.read.at.filter(|_| is_of_several_dates(&sources));
    Ok(table::load_aloud(&sources, &ReadArgs { at, ..args.read.clone() })?.table)
}

fn is_of_several_dates(sources: &[(String, Source)]) -> bool {
    sources
        .iter()
        .any(|(_, source)| matches!(source, Source::Snapshot(path) if DatedSnapshot::is_one(path)))
}

/// The numbers of differences in a family.
struct Counted {
    /// Before and after.
    routes: [usize; 2],
    added: u64,
    gone: u64,
    changed: u64,
    addresses: fibula_rib::AddressCount,
}

impl Counted {
    fn new<A: Addr + Pod>(differences: &Differences<'_>, routes: [usize; 2]) -> Self {
        let (mut added, mut gone, mut changed) = (0, 0, 0);
        for difference in differences.prefixes::<A>() {
            match difference.kind() {
                "added" => added += 1,
                "gone" => gone += 1,
                _ => changed += 1,
            }
        }
        Self { routes, added, gone, changed, addresses: differences.addresses::<A>() }
    }

    fn is_none(&self) -> bool {
        self.added + self.gone + self.changed == 0
    }

    fn json(&self, as_text: bool) -> Json {
        let addresses = json_addresses(self.addresses, as_text);
        json!({
            "before": self.routes[0], "after": self.routes[1],
            "added": self.added, "gone": self.gone, "changed": self.changed, "addresses": addresses,
        })
    }
}

fn summary(families: &[(&str, &Counted)]) -> String {
    let heads = ["", ">before", ">after", ">added", ">gone", ">changed", ">addresses affected"];
    let mut grid = Grid::new(&heads);
    for (name, counted) in families {
        let Counted { routes: [before, after], added, gone, changed, addresses } = counted;
        let numbers = [*before as u64, *after as u64, *added, *gone, *changed].map(grouped);
        let addresses = text_addresses(*addresses);
        grid.row([(*name).to_owned()].into_iter().chain(numbers).chain([addresses]));
    }
    let mut text = Vec::new();
    // Writing to memory does not fail.
    let _ = grid.write_aligned(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

fn family<A: Addr + Pod>(
    args: &Args,
    differences: &Differences<'_>,
    out: &mut impl Write,
) -> Result<(), Failure> {
    for difference in differences.prefixes::<A>() {
        if args.json {
            json_line(differences, &difference, out)?;
            continue;
        }
        let Difference { prefix, before, after } = difference;
        let sign = if before.is_none() {
            '+'
        } else if after.is_none() {
            '-'
        } else {
            '~'
        };
        write!(out, "{sign} {prefix}")?;
        let mut separator = "  ";
        for (name, earlier, later) in differences.values(&difference) {
            let (earlier, later) = (text(earlier), text(later));
            let values = match sign {
                '+' if later != "-" => later,
                '-' if earlier != "-" => earlier,
                '~' if earlier != later => format!("{earlier} -> {later}"),
                _ => continue,
            };
            write!(out, "{separator}{name} {values}")?;
            separator = ", ";
        }
        writeln!(out)?;
    }
    Ok(())
}

/// A value in a line.
fn text(value: Value<'_>) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::Int(int) => int.to_string(),
        Value::Str(text) => text.replace(['\n', '\r', '\t'], " "),
    }
}

fn json_line<A: Addr>(
    differences: &Differences<'_>,
    difference: &Difference<A>,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let (mut before, mut after) = (Map::new(), Map::new());
    for (name, earlier, later) in differences.typed(difference) {
        before.insert(name.to_owned(), json_value(earlier));
        after.insert(name.to_owned(), json_value(later));
    }
    let mut object = Map::new();
    object.insert("change".to_owned(), difference.kind().into());
    object.insert("prefix".to_owned(), difference.prefix.to_string().into());
    if !difference.before.is_none() {
        object.insert("before".to_owned(), before.into());
    }
    if !difference.after.is_none() {
        object.insert("after".to_owned(), after.into());
    }
    serde_json::to_writer(&mut *out, &object)?;
    Ok(writeln!(out)?)
}
