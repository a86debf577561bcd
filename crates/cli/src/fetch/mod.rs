//! `fibula fetch`: reads tables from the network into the cache; and the tables of other commands that are URLs.

mod check;
mod list;
mod names;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args as ClapArgs, ValueEnum};
use fibula_fetch::{CachedFile, Fetched, FileUse, Freshness, shown_name};
use serde_json::{Value as Json, json};

use crate::config::parse_size;
use crate::failure::{Failure, Outcome};
use crate::output::{self, Output, size, utc};
use crate::progress::note;
use crate::source::ReadArgs;

use names::{Names, Wanted};
pub use names::{column_names, dated, is_remote, tables, vrps};

const EXAMPLES: &str = "\
Examples:
  fibula fetch --list
  fibula fetch ris/rrc00
  fibula fetch routeviews@2026-11-28T08:00 -o rib.bz2
  fibula fetch https://data.example/networks.csv
  fibula build $(fibula fetch ris/rrc00) -o table.fib
  fibula lookup --table fetch:iptoasn 8.8.8.8
  fibula rpki fetch:vrps rib.bz2

Prints the path of each file in the cache. A file that the cache has is read again only if the server
has a newer one, and is replaced only when the new one is complete and can be read as a table. A
transfer that breaks off is resumed. If that fails, the old file stays, and is used.

Other commands take URLs (https://...) and names (fetch:NAME) wherever they take a table. They ask the
server once an hour at most (max-age in the configuration).

Exit codes: 0 if every file is new or unchanged; 1 if an old file is used because a newer one could not
be had, for the reason on standard error; 2 if there is none.";

/// Read tables from the network into the cache
#[derive(ClapArgs, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Sources by name (NAME@TIME for the table of that time), and URLs
    #[arg(value_name = "NAME|URL", required_unless_present = "list")]
    sources: Vec<String>,
    /// List the sources that have names
    #[arg(long, conflicts_with_all = ["sources", "output"])]
    list: bool,
    /// Also write the file to this name (- for standard output)
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// What the file is checked as: table, vrps, any (not looked into) (default: by the source, else table)
    #[arg(long = "as", value_name = "table|vrps|any")]
    file_use: Option<Use>,
    /// Ask no server: use what was fetched earlier (also FIBULA_OFFLINE=1)
    #[arg(long)]
    offline: bool,
    /// Ask no server about a file for which one was asked less than so long ago: 15m, 8h, 1d (default: ask)
    #[arg(long, value_name = "TIME", value_parser = fibula_fetch::parse_duration)]
    max_age: Option<Duration>,
    /// Give up when no byte comes for so long (default: 30s)
    #[arg(long, value_name = "TIME", value_parser = fibula_fetch::parse_duration)]
    timeout: Option<Duration>,
    /// Refuse larger files (default: 4GiB)
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    max_size: Option<u64>,
    /// Print an array of JSON objects
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    read: ReadArgs,
}

/// The value of `--as`.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Use {
    Table,
    Vrps,
    Any,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Outcome, Failure> {
    let mut names = Names::open()?;
    names.options.offline |= args.offline;
    names.options.max_age = args.max_age.unwrap_or_default();
    names.options.silence = args.timeout.unwrap_or(names.options.silence);
    names.options.max_bytes = args.max_size.unwrap_or(names.options.max_bytes);
    if args.list {
        return list::run(&names, args.json);
    }
    let file_use = args.file_use.map(|file_use| match file_use {
        Use::Table => FileUse::Table,
        Use::Vrps => FileUse::Vrps,
        Use::Any => FileUse::Any,
    });
    let mut found = Vec::new();
    for name in &args.sources {
        let name = name.strip_prefix(names::PREFIX).unwrap_or(name);
        let (files, _) = names.get(name, Wanted::Fetched(file_use), &args.read)?;
        files.iter().for_each(|file| say(name, file, true));
        found.extend(files.into_iter().map(|file| (name, file)));
    }
    let paths = match &args.output {
        Some(output) => vec![copied(&found, output)?],
        None => found.iter().map(|(_, file)| file.path.clone()).collect(),
    };
    if args.output.as_deref() == Some(Path::new("-")) {
        // Standard output has the file.
    } else if args.json {
        output::json(&found.iter().map(|(name, file)| object(name, file)).collect::<Vec<_>>())?;
    } else {
        use io::Write;
        let mut out = output::stdout();
        paths.iter().try_for_each(|path| writeln!(out, "{}", path.display()))?;
        out.flush()?;
    }
    let is_kept = |(_, file): &(&str, Fetched)| matches!(file.freshness, Freshness::Kept(_));
    Ok(if found.iter().any(is_kept) { Outcome::Negative } else { Outcome::Done })
}

/// Copies the only file to an output, whole or not at all.
fn copied(found: &[(&str, Fetched)], output: &Path) -> Result<PathBuf, Failure> {
    let [(_, fetched)] = found else {
        return Err(Failure::new(format_args!(
            "--output takes one file, and {} came",
            found.len()
        ))
        .hint("without --output, the paths of all of them are printed"));
    };
    let read = |error: &io::Error| Failure::io(fetched.path.display(), error);
    let mut from = File::open(&fetched.path).map_err(|error| read(&error))?;
    let mut out = Output::create(output)?;
    io::copy(&mut from, &mut out)?;
    out.finish()?;
    Ok(output.to_owned())
}

/// Says on standard error what came, or which date is used.
fn say(name: &str, fetched: &Fetched, every: bool) {
    use io::IsTerminal;
    let name = shown_name(name);
    let CachedFile { bytes, .. } = fetched.file;
    let (date, asked) = (date(&fetched.file), utc(fetched.file.checked));
    match &fetched.freshness {
        Freshness::New => note(format_args!("{name}: fetched {}, data of {date}", size(bytes))),
        Freshness::Kept(error) => {
            note(error);
            note(format_args!("{name}: the older file is used, data of {date}"));
        }
        Freshness::Offline => {
            note(format_args!("{name}: offline, data of {date}, the server was asked {asked}"));
        }
        Freshness::Unchanged | Freshness::Recent if every || io::stderr().is_terminal() => {
            note(format_args!(
                "{name}: nothing newer, data of {date}, the server was asked {asked}"
            ));
        }
        Freshness::Unchanged | Freshness::Recent => {}
    }
}

fn date(file: &CachedFile) -> String {
    utc(file.date())
}

fn object(name: &str, fetched: &Fetched) -> Json {
    let file = &fetched.file;
    let (freshness, reason) = match &fetched.freshness {
        Freshness::New => ("new", None),
        Freshness::Unchanged => ("unchanged", None),
        Freshness::Recent => ("recent", None),
        Freshness::Offline => ("offline", None),
        Freshness::Kept(error) => ("kept", Some(error.to_string())),
    };
    json!({
        "name": shown_name(name), "url": file.url, "path": fetched.path.display().to_string(), "state": freshness,
        "reason": reason, "bytes": file.bytes, "sha256": file.sha256, "date": file.date(),
        "fetched": file.fetched, "checked": file.checked,
    })
}
